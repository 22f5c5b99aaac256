/* Splits the header and the lines of csv data, and makes features of the fields. */
#include "index/reader/columns.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* Take the quoted field behind the quote at p. */
static char *take_quoted(struct drps_parse *ps, char separator, char *p, char *end, char **text,
                         char **text_end)
{
    char *open = p++, *to = p;

    *text = p;
    for (;; p++) {
        char *quote = memchr(p, '"', (size_t)(end - p));
        if (!quote) {
            (void)drps_parse_bad(ps, open, "the quote is not closed on this line");
            return NULL;
        }
        if (to != p) memmove(to, p, (size_t)(quote - p));
        to += quote - p;
        p = quote + 1;
        if (p == end || *p != '"') break;
        *to++ = '"'; /* a doubled quote stands for one */
    }
    *text_end = to;
    if (p < end && *p != separator) {
        (void)drps_parse_bad(ps, p, "text follows the closing quote");
        return NULL;
    }
    return p;
}

char *drps_columns_take(struct drps_parse *ps, char separator, char *p, char *end, char **text,
                        char **text_end)
{
    if (p < end && *p == '"') return take_quoted(ps, separator, p, end, text, text_end);
    *text = p;
    while (p < end && *p != separator)
        p++;
    *text_end = p;
    return p;
}

int drps_columns_number(const char *p, const char *end, float *v_out)
{
    while (p < end && drps_is_blank(*p))
        p++;
    while (p < end && drps_is_blank(end[-1]))
        end--;
    return p < end && drps_number_float(p, v_out) == end;
}

static const char *const label_pairs[][2] = {{"no", "yes"}, {"false", "true"}, {"n", "y"}};

int drps_columns_label_word(const char *p, const char *end, float *label_out, int *pair_out)
{
    while (p < end && drps_is_blank(*p))
        p++;
    while (p < end && drps_is_blank(end[-1]))
        end--;
    for (size_t i = 0; i < sizeof(label_pairs) / sizeof(label_pairs[0]); i++)
        for (int label = 0; label < 2; label++) {
            const char *word = label_pairs[i][label];
            if (strlen(word) != (size_t)(end - p) || strncasecmp(word, p, (size_t)(end - p)) != 0)
                continue;
            *label_out = (float)label;
            *pair_out = DRPS_LABEL_WORDS + (int)i;
            return 1;
        }
    return 0;
}

float drps_reader_label_number(const char *name)
{
    char text[DRPS_CLASS_NAME_BYTES + DRPS_CHUNK_PAD] = "";
    const char *end = text + snprintf(text, DRPS_CLASS_NAME_BYTES, "%s", name);
    float number = NAN;
    int pair;
    if (!drps_columns_number(text, end, &number))
        (void)drps_columns_label_word(text, end, &number, &pair);
    return number;
}

const char *drps_columns_pair_word(int pair, int label)
{
    return label_pairs[pair - DRPS_LABEL_WORDS][label];
}

int drps_columns_missing(const char *p, const char *end)
{
    static const char *const words[] = {"",     "na",   "n/a", "#n/a", "nan",
                                        "null", "none", "-",   "?",    "\\N"};
    while (p < end && drps_is_blank(*p))
        p++;
    while (p < end && drps_is_blank(end[-1]))
        end--;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i]) == (size_t)(end - p) &&
            strncasecmp(words[i], p, (size_t)(end - p)) == 0)
            return 1;
    return 0;
}

static int compare_columns(const void *a, const void *b)
{
    const struct drps_column *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int check_names(const struct drps_columns *c, const char *file, struct drps_err *err)
{
    const struct drps_column **sorted = malloc(c->n * sizeof(*sorted));
    int rc = 0;

    if (!sorted) return drps_err_set(err, -ENOMEM, "csv header");
    for (size_t i = 0; i < c->n; i++)
        sorted[i] = &c->columns[i];
    qsort(sorted, c->n, sizeof(*sorted), compare_columns);
    for (size_t i = 1; i < c->n && rc == 0; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            rc =
                drps_err_set(err, DRPS_E_FORMAT, "%s: two columns of the header are named '%.100s'",
                             file, sorted[i]->name);
    free(sorted);
    return rc;
}

static int split_header(struct drps_columns *c, size_t bytes, const char *file,
                        struct drps_err *err)
{
    struct drps_parse ps = {.out = NULL};
    char *p = c->names, *end = c->names + bytes;

    for (;;) {
        char *text, *text_end;
        p = drps_columns_take(&ps, c->separator, p, end, &text, &text_end);
        if (!p) return drps_err_set(err, DRPS_E_FORMAT, "%s: header: %s", file, ps.bad_why);
        int last = p == end;
        *text_end = '\0'; /* on the separator, the closing quote, or behind the line */
        c->columns[c->n++] = (struct drps_column){.name = text, .kind = -1};
        if (last) return check_names(c, file, err);
        p++;
    }
}

int drps_columns_init(struct drps_columns *c, const char *p, size_t bytes, char separator,
                      const char *file, struct drps_err *err)
{
    c->separator = separator;
    c->header = malloc(bytes + 1);
    c->names = malloc(bytes + 1);
    c->columns = malloc((drps_parse_count(p, bytes, separator) + 1) * sizeof(*c->columns));
    if (!c->header || !c->names || !c->columns) return drps_err_set(err, -ENOMEM, "csv header");
    memcpy(c->header, p, bytes);
    memcpy(c->names, p, bytes);
    c->names[bytes] = '\0';
    c->header_bytes = bytes;
    return split_header(c, bytes, file, err);
}

void drps_columns_free(struct drps_columns *c)
{
    if (!c) return;
    free(c->header);
    for (size_t i = 0; c->fields && i < c->n_features; i++)
        free(c->fields[i]);
    free(c->fields);
    free(c->names);
    free(c->columns);
    free(c);
}

int drps_columns_finish(struct drps_columns *c, struct drps_reader *r, struct drps_err *err)
{
    r->fields = malloc((c->n + 1) * sizeof(*r->fields));
    if (!r->fields) return drps_err_set(err, -ENOMEM, "csv header");
    for (size_t i = 0; i < c->n; i++) {
        if (!drps_column_is_feature(c->columns[i].kind)) continue;
        c->columns[i].field = (uint32_t)r->n_fields;
        r->fields[r->n_fields++] = c->columns[i].name;
    }
    c->n_features = r->n_fields;
    return 0;
}

struct drps_column *drps_columns_find(const struct drps_columns *c, const char *name, size_t bytes,
                                      int any_case)
{
    for (size_t i = 0; i < c->n; i++) {
        const char *have = c->columns[i].name;
        if (strlen(have) != bytes) continue;
        if ((any_case ? strncasecmp(have, name, bytes) : memcmp(have, name, bytes)) == 0)
            return &c->columns[i];
    }
    return NULL;
}

void drps_columns_close(struct drps_reader *r)
{
    drps_columns_free(r->state);
}

size_t drps_columns_bound(const struct drps_reader *r, const char *text, size_t n, size_t lines)
{
    const struct drps_columns *c = r->state;
    (void)text;
    /* Each feature has a separator or the line's end of its own. */
    return c->n_features == 0 ? 0 : lines > n / c->n_features ? n : lines * c->n_features;
}

void drps_columns_begin_file(struct drps_reader *r)
{
    struct drps_columns *c = r->state;
    c->header_next = 1;
}

static int check_header(struct drps_columns *c, struct drps_parse *ps, const char *p,
                        const char *end)
{
    c->header_next = 0;
    if ((size_t)(end - p) == c->header_bytes && memcmp(p, c->header, c->header_bytes) == 0)
        return 0;
    ps->bad_fatal = 1;
    return drps_parse_bad(ps, p, "the header differs from that of the first file");
}

static int add_hour(struct drps_parse *ps, const struct drps_column *column, const char *p,
                    const char *end)
{
    uint64_t v;
    if (end - p != 8 || drps_number_u64(p, &v) != end || v % 100 > 23)
        return drps_parse_bad(ps, p, "%.100s is not YYMMDDHH", column->name);
    drps_parse_name(ps, column->field, end - 2, 2, 1);
    return 0;
}

static int add_number(struct drps_parse *ps, const struct drps_column *column, const char *p,
                      const char *end)
{
    float v;
    if (!drps_columns_number(p, end, &v)) {
        if (drps_columns_missing(p, end)) return 0;
        while (p < end && drps_is_blank(*p))
            p++;
        if (column->guessed)
            return drps_parse_bad(ps, p, "%.60s %s; for words give the kind %.60s:category",
                                  column->name, drps_number_why(p), column->name);
        return drps_parse_bad(ps, p, "%.100s %s", column->name, drps_number_why(p));
    }
    if (v != 0) drps_parse_name(ps, column->field, p, 0, v);
    return 0;
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

static int add_label(struct drps_reader *r, struct drps_parse *ps, const struct drps_column *column,
                     const char *p, const char *end, float *label)
{
    struct drps_columns *c = r->state;
    int words = DRPS_LABEL_NUMBERS;
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

static int add_field(struct drps_reader *r, struct drps_parse *ps, const struct drps_column *column,
                     const char *p, const char *end, float *label)
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

/* One of a line's two samples, whose n features lie at `from`. */
static int end_counted(const struct drps_reader *r, struct drps_parse *ps, size_t from, size_t n,
                       const char *label, float weight)
{
    struct drps_samples *s = ps->out;
    const size_t first = s->starts[s->n];
    float value;
    if (first != from) {
        memcpy(s->keys + first, s->keys + from, n * sizeof(*s->keys));
        memcpy(s->values + first, s->values + from, n * sizeof(*s->values));
        memcpy(s->names + first, s->names + from, n * sizeof(*s->names));
    }
    ps->nnz = first + n;
    ps->weight = weight;
    (void)drps_columns_number(label, label + strlen(label), &value);
    if (drps_reads_classes(&r->options) &&
        drps_parse_class(r, ps, label, label + strlen(label), &value) < 0)
        return DRPS_PARSE_BAD;
    return drps_parse_sample(ps, value, 0);
}

/* As many samples of label 1 as there were clicks, and of label -1 as there were other impressions:
 * one each, with these weights. */
static int end_clicks(struct drps_reader *r, struct drps_parse *ps)
{
    static const char positive[DRPS_CHUNK_PAD] = "1", negative[DRPS_CHUNK_PAD] = "-1";
    const struct drps_columns *c = r->state;
    const size_t from = ps->out->starts[ps->out->n], n = ps->nnz - from;
    if (c->clicks > c->impressions)
        return drps_parse_bad(ps, NULL, "%g clicks of %g impressions", (double)c->clicks,
                              (double)c->impressions);
    (void)drps_parse_names(r, 1);
    if (end_counted(r, ps, from, n, positive, c->clicks) < 0) return DRPS_PARSE_BAD;
    return end_counted(r, ps, from, n, negative, c->impressions - c->clicks);
}

int drps_columns_line(struct drps_reader *r, struct drps_parse *ps, char *p, char *end)
{
    struct drps_columns *c = r->state;
    float label = 0;
    size_t i = 0;

    c->label_at = NULL;
    if (drps_skip_blanks(p) >= end) return 0;
    if (c->header_next) return check_header(c, ps, p, end);
    for (;; p++) {
        char *text, *text_end;
        p = drps_columns_take(ps, c->separator, p, end, &text, &text_end);
        if (!p) return DRPS_PARSE_BAD;
        if (i < c->n && add_field(r, ps, &c->columns[i], text, text_end, &label) < 0)
            return DRPS_PARSE_BAD;
        i++;
        if (p == end) break;
    }
    if (i != c->n) return drps_parse_bad(ps, NULL, "%zu columns, the header has %zu", i, c->n);
    if (c->label_at && drps_parse_class(r, ps, c->label_at, c->label_end, &label) < 0)
        return DRPS_PARSE_BAD;
    return r->options.clicks ? end_clicks(r, ps) : drps_parse_sample(ps, label, 0);
}
