/* Makes features of the text of a field: numbers, categories, bins and dates, and crosses of
 * several fields. Takes the label. */
#include <math.h>

#include "index/reader/columns.h"
#include "index/reader/text/drps_date.h"

static int add_hour(struct drps_parse *ps, const struct drps_column *column, const char *p,
                    const char *end)
{
    uint64_t v;
    if (end - p != 8 || drps_number_u64(p, &v) != end || v % 100 > 23)
        return drps_parse_bad(ps, p, "%.100s is not YYMMDDHH", column->name);
    drps_parse_name(ps, column->field, end - 2, 2, 1);
    return 0;
}

static float scaled(const struct drps_column *column, float v)
{
    if (column->scale == DRPS_SCALE_LOG) return copysignf(log1pf(fabsf(v)), v);
    if (column->scale == DRPS_SCALE_LINEAR) return (v - column->shift) / column->unit;
    return v;
}

/* What is no number may be a missing one: 0. Else it is bad. */
static int check_missing(struct drps_parse *ps, const struct drps_column *column, const char *p,
                         const char *end)
{
    if (drps_columns_missing(p, end)) return 0;
    while (p < end && drps_is_blank(*p))
        p++;
    if (column->guessed)
        return drps_parse_bad(ps, p, "%.60s %s; for words give the kind %.60s:category",
                              column->name, drps_number_why(p), column->name);
    return drps_parse_bad(ps, p, "%.100s %s", column->name, drps_number_why(p));
}

static int add_number(struct drps_parse *ps, const struct drps_column *column, const char *p,
                      const char *end)
{
    float v;
    if (!drps_columns_number(p, end, &v)) return check_missing(ps, column, p, end);
    if (column->scale != DRPS_SCALE_NONE) {
        v = scaled(column, v);
        if (!isfinite(v))
            return drps_parse_bad(ps, p, "%.100s, scaled, is above the largest float",
                                  column->name);
    }
    if (v != 0) drps_parse_name(ps, column->field, p, 0, v);
    return 0;
}

/* The bin's name. A missing number is the category "". */
static const char *bin_of(const struct drps_column *column, float v)
{
    size_t least = 0, most = column->n_cuts;
    while (least < most) {
        const size_t middle = (least + most) / 2;
        if (column->cuts[middle] <= v)
            least = middle + 1;
        else
            most = middle;
    }
    return column->bin_names[least];
}

static int add_bin(struct drps_parse *ps, const struct drps_column *column, const char *p,
                   const char *end)
{
    float v;
    const char *name = "";
    if (drps_columns_number(p, end, &v))
        name = bin_of(column, v);
    else if (check_missing(ps, column, p, end) < 0)
        return DRPS_PARSE_BAD;
    drps_parse_name(ps, column->field, name, strlen(name), 1);
    return 0;
}

static const char hours[24][8] = {"hour=00", "hour=01", "hour=02", "hour=03", "hour=04", "hour=05",
                                  "hour=06", "hour=07", "hour=08", "hour=09", "hour=10", "hour=11",
                                  "hour=12", "hour=13", "hour=14", "hour=15", "hour=16", "hour=17",
                                  "hour=18", "hour=19", "hour=20", "hour=21", "hour=22", "hour=23"};
static const char weekdays[7][12] = {"weekday=Mon", "weekday=Tue", "weekday=Wed", "weekday=Thu",
                                     "weekday=Fri", "weekday=Sat", "weekday=Sun"};
static const char months[12][9] = {"month=01", "month=02", "month=03", "month=04",
                                   "month=05", "month=06", "month=07", "month=08",
                                   "month=09", "month=10", "month=11", "month=12"};

static int read_date(const char *p, const char *end, struct drps_date *date)
{
    return drps_date_read(p, end, date) || drps_date_read_seconds(p, end, date);
}

static int add_date(struct drps_parse *ps, const struct drps_column *column, const char *p,
                    const char *end)
{
    struct drps_date date;
    if (!read_date(p, end, &date)) {
        if (drps_columns_missing(p, end)) return 0;
        return drps_parse_bad(ps, p,
                              "%.60s is no date like 2017-11-06 or 2017-11-06 14:32:21; for words "
                              "give the kind %.60s:category",
                              column->name, column->name);
    }
    if (date.hour >= 0) drps_parse_name(ps, column->field, hours[date.hour], 7, 1);
    drps_parse_name(ps, column->field, weekdays[date.weekday], 11, 1);
    drps_parse_name(ps, column->field, months[date.month - 1], 8, 1);
    return 0;
}

static int add_label(struct drps_reader *r, struct drps_parse *ps, const struct drps_column *column,
                     const char *p, const char *end, float *label)
{
    struct drps_columns *c = r->state;
    int words = DRPS_LABEL_NUMBERS;
    if (r->options.label_ignored) return 0;
    const int known =
        drps_columns_number(p, end, label) || drps_columns_label_word(p, end, label, &words);
    c->label_at = drps_reads_classes(&r->options) ? p : NULL;
    c->label_end = end;
    if (drps_parse_names(r, known)) return 0;
    while (p < end && drps_is_blank(*p))
        p++;
    if (!known)
        return drps_parse_bad(ps, p, "label (column %.100s) %s", column->name, drps_number_why(p));
    if (c->label_words == DRPS_LABEL_UNKNOWN) c->label_words = words;
    if (c->label_words == words) return 0;
    if (c->label_words == DRPS_LABEL_NUMBERS)
        return drps_parse_bad(ps, p, "label (column %.100s): all labels before are numbers",
                              column->name);
    return drps_parse_bad(ps, p, "label (column %.100s): all labels before are %s or %s",
                          column->name, drps_columns_pair_word(c->label_words, 1),
                          drps_columns_pair_word(c->label_words, 0));
}

/* Read a weight, or how many clicks or impressions there were. */
static int take_count(struct drps_parse *ps, const struct drps_column *column, const char *p,
                      const char *end, float *to)
{
    const char *what = column->kind == DRPS_COLUMN_WEIGHT   ? "weight"
                       : column->kind == DRPS_COLUMN_CLICKS ? "clicks"
                                                            : "impressions";
    const int number = drps_columns_number(p, end, to);
    while (p < end && drps_is_blank(*p))
        p++;
    if (!number)
        return drps_parse_bad(ps, p, "%s (column %.100s): %s", what, column->name,
                              drps_number_why(p));
    if (*to < 0)
        return drps_parse_bad(ps, p, "%s (column %.100s): is negative", what, column->name);
    return 0;
}

int drps_columns_add(struct drps_reader *r, struct drps_parse *ps, const struct drps_column *column,
                     char *p, char *end, float *label)
{
    struct drps_columns *c = r->state;
    switch (column->kind) {
    case DRPS_COLUMN_LABEL:
        return add_label(r, ps, column, p, end, label);
    case DRPS_COLUMN_NUMBER:
        return add_number(ps, column, p, end);
    case DRPS_COLUMN_CATEGORY:
        drps_parse_name(ps, column->field, p, (size_t)(end - p), 1);
        return 0;
    case DRPS_COLUMN_BINS:
        return add_bin(ps, column, p, end);
    case DRPS_COLUMN_DATE:
        return add_date(ps, column, p, end);
    case DRPS_COLUMN_HOUR:
        return add_hour(ps, column, p, end);
    case DRPS_COLUMN_WEIGHT:
        return take_count(ps, column, p, end, &ps->weight);
    case DRPS_COLUMN_CLICKS:
        return take_count(ps, column, p, end, &c->clicks);
    case DRPS_COLUMN_IMPRESSIONS:
        return take_count(ps, column, p, end, &c->impressions);
    default:
        return 0;
    }
}

/* Returns whether the text can name a class, which is not yet made of it. */
static int names_class(const char *p, const char *end)
{
    while (p < end && drps_is_blank(*p))
        p++;
    while (p < end && drps_is_blank(end[-1]))
        end--;
    return drps_class_check(p, (size_t)(end - p)) == 0;
}

/* Checks a text of a column that may refuse it, by adding its features to arrays that nobody
 * reads. */
static int check_adding(struct drps_reader *r, const struct drps_column *column, char *p, char *end)
{
    enum { MOST_OF_FIELD = 4 };
    uint64_t keys[MOST_OF_FIELD];
    float values[MOST_OF_FIELD], label;
    struct drps_name names[MOST_OF_FIELD];
    struct drps_samples out = {.keys = keys, .values = values, .names = names};
    struct drps_parse ps = {.out = &out};
    if (column->kind == DRPS_COLUMN_BINS && column->bins) {
        float v;
        return drps_columns_number(p, end, &v) ? 0 : check_missing(&ps, column, p, end);
    }
    if (drps_columns_add(r, &ps, column, p, end, &label) < 0) return DRPS_PARSE_BAD;
    return column->kind == DRPS_COLUMN_LABEL && r->options.classes && !names_class(p, end)
               ? DRPS_PARSE_BAD
               : 0;
}

int drps_columns_check(struct drps_reader *r, const struct drps_column *column, char *p, char *end)
{
    return column->kind == DRPS_COLUMN_CATEGORY ? 0 /* any text is one */
                                                : check_adding(r, column, p, end);
}

/* ---- Crosses ---- */

/* What a column's text is in a cross: of bins the bin, of dates the hour or else the weekday, else
 * the text. */
static struct drps_span part_of(const struct drps_column *column, const struct drps_text *text)
{
    struct drps_date date;
    const char *name = NULL;
    float v;
    if (column->kind == DRPS_COLUMN_BINS && drps_columns_number(text->p, text->end, &v))
        name = bin_of(column, v);
    else if (column->kind == DRPS_COLUMN_DATE && read_date(text->p, text->end, &date))
        name = date.hour >= 0 ? hours[date.hour] : weekdays[date.weekday];
    return name ? (struct drps_span){name, name + strlen(name)}
                : (struct drps_span){text->p, text->end};
}

/* Parts are joined by stars. A star or a backslash within one has a backslash before it, so that no
 * two crosses have one name. */
static char *put_part(char *to, struct drps_span part)
{
    for (const char *p = part.p; p < part.end; p++) {
        if (*p == '*' || *p == '\\') *to++ = '\\';
        *to++ = *p;
    }
    return to;
}

void drps_columns_cross(const struct drps_columns *c, struct drps_parse *ps)
{
    for (size_t i = 0; i < c->n_crosses; i++) {
        const struct drps_cross *cross = &c->crosses[i];
        char *text = ps->made, *to = text;
        for (size_t k = 0; k < cross->n; k++) {
            const size_t at = cross->parts[k];
            if (k) *to++ = '*';
            to = put_part(to, part_of(&c->columns[at], &c->texts[at]));
        }
        ps->made = to;
        drps_parse_name(ps, cross->field, text, (size_t)(to - text), 1);
    }
}
