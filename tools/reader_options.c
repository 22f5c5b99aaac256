/* Takes the options of drps_reader_options.h into those of the reader. */
#include "tools/drps_reader_options.h"

#include <string.h>

static const char *format_named(struct drps_cli *cli, const char *arg)
{
    if (strcmp(arg, "auto") == 0) return "auto";
    return drps_reader_formats()[drps_cli_choice(cli, arg, drps_reader_formats())];
}

int reader_option(struct drps_cli *cli, struct drps_reader_options *o, int key, char *arg)
{
    static const char *const on_error[] = {"stop", "skip", NULL};
    static const char *const scales[] = {"standard", "robust", "log", "none", NULL};
    switch (key) {
    case READER_KEY_FORMAT:
        o->format = format_named(cli, arg);
        return 0;
    case READER_KEY_ON_ERROR:
        o->skip_bad_lines = drps_cli_choice(cli, arg, on_error) == 1;
        return 0;
    case READER_KEY_LABEL:
        o->csv_label = arg;
        return 0;
    case READER_KEY_COLUMNS:
        o->csv_kinds = arg;
        return 0;
    case READER_KEY_WEIGHT:
        o->weight = arg;
        return 0;
    case READER_KEY_CLICKS:
        o->clicks = arg;
        return 0;
    case READER_KEY_IMPRESSIONS:
        o->impressions = arg;
        return 0;
    case READER_KEY_SEPARATOR:
        if (strcmp(arg, "tab") != 0 && strlen(arg) != 1)
            drps_cli_usage(cli, "one character, or 'tab', not '%s'", arg);
        o->csv_separator = strlen(arg) == 1 ? arg[0] : '\t';
        return 0;
    case READER_KEY_HEADER:
        o->csv_header = DRPS_CSV_HEADER;
        return 0;
    case READER_KEY_NO_HEADER:
        o->csv_header = DRPS_CSV_NO_HEADER;
        return 0;
    case READER_KEY_SCALE:
        o->csv_scale = scales[drps_cli_choice(cli, arg, scales)];
        return 0;
    case READER_KEY_CROSS:
        o->csv_cross = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}
