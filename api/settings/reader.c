/* Takes the settings of drps_reader_settings.h into the options of the reader. */
#include "api/settings/drps_reader_settings.h"

#include <string.h>

#include "index/layers/drps_layers.h"

static const char *format_named(struct drps_values *v, const char *arg)
{
    if (strcmp(arg, "auto") == 0) return "auto";
    return drps_reader_formats()[drps_value_choice(v, arg, drps_reader_formats())];
}

static void take_sequence(struct drps_reader_options *o, struct drps_values *v, const char *arg)
{
    o->sequence_lines = strcmp(arg, "lines") == 0;
    if (!o->sequence_lines && (*arg < '0' || *arg > '9'))
        drps_value_bad(v, "'%s' is neither `lines` nor a number from 1 to %d", arg,
                       DRPS_SEQUENCE_MOST);
    else
        o->sequence =
            o->sequence_lines ? 0 : (uint32_t)drps_value_count(v, arg, 1, DRPS_SEQUENCE_MOST);
}

int drps_reader_setting(struct drps_reader_options *o, struct drps_values *v, int key,
                        const char *arg)
{
    static const char *const on_error[] = {"stop", "skip", NULL};
    static const char *const scales[] = {"standard", "robust", "log", "none", NULL};
    switch (key) {
    case READER_KEY_FORMAT:
        o->format = format_named(v, arg);
        return 1;
    case READER_KEY_ON_ERROR:
        o->skip_bad_lines = drps_value_choice(v, arg, on_error) == 1;
        return 1;
    case READER_KEY_LABEL:
        o->csv_label = arg;
        return 1;
    case READER_KEY_COLUMNS:
        o->csv_kinds = arg;
        return 1;
    case READER_KEY_WEIGHT:
        o->weight = arg;
        return 1;
    case READER_KEY_CLICKS:
        o->clicks = arg;
        return 1;
    case READER_KEY_IMPRESSIONS:
        o->impressions = arg;
        return 1;
    case READER_KEY_SEPARATOR:
        if (strcmp(arg, "tab") != 0 && strlen(arg) != 1)
            drps_value_bad(v, "one character, or 'tab', not '%s'", arg);
        o->csv_separator = strlen(arg) == 1 ? arg[0] : '\t';
        return 1;
    case READER_KEY_HEADER:
        o->csv_header = DRPS_CSV_HEADER;
        return 1;
    case READER_KEY_NO_HEADER:
        o->csv_header = DRPS_CSV_NO_HEADER;
        return 1;
    case READER_KEY_SCALE:
        o->csv_scale = scales[drps_value_choice(v, arg, scales)];
        return 1;
    case READER_KEY_SEQUENCE:
        take_sequence(o, v, arg);
        return 1;
    case READER_KEY_CROSS:
        o->csv_cross = arg;
        return 1;
    default:
        return 0;
    }
}
