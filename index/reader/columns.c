/* Splits the header and the lines of csv data, and makes features of the fields. */
#include "index/reader/columns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

/* ---- Fields of a line ---- */

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

/* Take a field whose separator is no blank. */
static inline char *take(struct drps_parse *ps, char separator, char *p, char *end, char **text,
                         char **text_end)
{
    if (p < end && *p == '"') return take_quoted(ps, separator, p, end, text, text_end);
    *text = p;
    while (p < end && *p != separator)
        p++;
    *text_end = p;
    return p;
}

/* Take a field that any run of blanks ends. */
static char *take_blank(struct drps_parse *ps, char *p, char *end, char **text, char **text_end)
{
    while (p < end && *p == ' ')
        p++;
    p = take(ps, ' ', p, end, text, text_end);
    if (!p || p == end) return p;
    while (p + 1 < end && p[1] == ' ')
        p++;
    return p + 1 == end ? end : p;
}

char *drps_columns_take(struct drps_parse *ps, char separator, char *p, char *end, char **text,
                        char **text_end)
{
    return separator == ' ' ? take_blank(ps, p, end, text, text_end)
                            : take(ps, separator, p, end, text, text_end);
}

/* ---- The header ---- */

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

/* Split the line in c->names, which this changes. */
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
        if (last) return 0;
        p++;
    }
}

static int split_first_line(struct drps_columns *c, const char *p, size_t bytes, char separator,
                            const char *file, struct drps_err *err)
{
    c->separator = separator;
    c->rest = -1;
    c->names = malloc(bytes + 1);
    c->columns = malloc((drps_text_count(p, bytes, separator) + 1) * sizeof(*c->columns));
    if (!c->names || !c->columns) return drps_err_set(err, -ENOMEM, "csv header");
    memcpy(c->names, p, bytes);
    c->names[bytes] = '\0';
    return split_header(c, bytes, file, err);
}

int drps_columns_init(struct drps_columns *c, const char *p, size_t bytes, char separator,
                      const char *file, struct drps_err *err)
{
    int rc = split_first_line(c, p, bytes, separator, file, err);
    if (rc < 0) return rc;
    c->header = malloc(bytes + 1);
    if (!c->header) return drps_err_set(err, -ENOMEM, "csv header");
    memcpy(c->header, p, bytes);
    c->header_bytes = bytes;
    return check_names(c, file, err);
}

enum { NUMBER_CHARS = 12 };

int drps_columns_init_headless(struct drps_columns *c, const char *p, size_t bytes, char separator,
                               size_t skipped, const char *file, struct drps_err *err)
{
    int rc = split_first_line(c, p, bytes, separator, file, err);
    if (rc < 0) return rc;
    c->headless = 1;
    free(c->names);
    c->names = drps_array_new(c->n, NUMBER_CHARS);
    if (!c->names) return drps_err_set(err, -ENOMEM, "%zu csv columns", c->n);
    for (size_t i = 0; i < c->n; i++) {
        c->columns[i].name = c->names + i * NUMBER_CHARS;
        (void)snprintf(c->columns[i].name, NUMBER_CHARS, "%u",
                       (unsigned)(i + 1 + (skipped && i + 1 >= skipped)));
    }
    return 0;
}

void drps_columns_free(struct drps_columns *c)
{
    if (!c) return;
    for (size_t i = 0; i < c->n; i++) {
        free(c->columns[i].cuts);
        free(c->columns[i].bin_names);
        if (!c->names) free(c->columns[i].name);
    }
    for (size_t i = 0; i < c->n_crosses; i++)
        free(c->crosses[i].name);
    for (size_t i = 0; c->fields && i < c->n_fields; i++)
        free(c->fields[i]);
    free(c->fields);
    free(c->table);
    free(c->line_keys);
    free(c->crosses);
    free(c->texts);
    free(c->header);
    free(c->names);
    free(c->columns);
    free(c);
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

char *drps_columns_list(const struct drps_columns *c, char *text, size_t cap)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < c->n; i++) {
        char name[64];
        const char *p = c->columns[i].name;
        (void)drps_excerpt(p, p + strlen(p), name, sizeof(name));
        const size_t n = strlen(name);
        if (used + n + 40 > cap) {
            (void)snprintf(text + used, cap - used, ", ... (%zu in all)", c->n);
            break;
        }
        used += (size_t)snprintf(text + used, cap - used, "%s%s", i ? ", " : "", name);
    }
    return text;
}

void drps_columns_close(struct drps_reader *r)
{
    drps_columns_free(r->state);
}

size_t drps_columns_bound(const struct drps_reader *r, const char *text, size_t n, size_t lines)
{
    const struct drps_columns *c = r->state;
    (void)text;
    /* Each column has a separator or the line's end of its own; other lines are bad. */
    if (c->line_features == 0) return 0;
    const size_t most = c->n ? n / c->n + 1 : lines;
    return (lines < most ? lines : most) * c->line_features;
}

/* Each part of a cross, a byte of which may take two, and what stands between them. */
size_t drps_columns_made(const struct drps_reader *r, const char *text, size_t n, size_t lines)
{
    const struct drps_columns *c = r->state;
    (void)text;
    return c->n_crosses * (2 * n + lines * DRPS_CROSS_PARTS * (DRPS_COLUMN_BIN_BYTES + 1));
}

void drps_columns_begin_file(struct drps_reader *r)
{
    struct drps_columns *c = r->state;
    c->header_next = !c->headless;
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

/* ---- Lines ---- */

int drps_columns_end(struct drps_reader *r, struct drps_parse *ps, float label, int check)
{
    const struct drps_columns *c = r->state;
    if (c->label_at && drps_parse_class(r, ps, c->label_at, c->label_end, &label) < 0)
        return DRPS_PARSE_BAD;
    return drps_parse_sample(ps, label, check);
}

/* Most fields are plain numbers or categories: add one here, without a call. Returns 0 if it is
 * neither. */
static inline int add_plain(struct drps_parse *ps, const struct drps_column *column, const char *p,
                            const char *end)
{
    float v;
    if (column->kind == DRPS_COLUMN_CATEGORY)
        drps_parse_name(ps, column->field, p, (size_t)(end - p), 1);
    else if (column->kind != DRPS_COLUMN_NUMBER || column->scale != DRPS_SCALE_NONE ||
             !drps_columns_number(p, end, &v))
        return 0;
    else if (v != 0)
        drps_parse_name(ps, column->field, p, 0, v);
    return 1;
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

/* Ends a line of clicks as two samples: one of label 1, whose weight is the number of clicks, and
 * one of label -1, whose weight is that of the other impressions. */
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
        if (i < c->n && !add_plain(ps, &c->columns[i], text, text_end) &&
            drps_columns_add(r, ps, &c->columns[i], text, text_end, &label) < 0)
            return DRPS_PARSE_BAD;
        if (c->texts && i < c->n) c->texts[i] = (struct drps_text){text, text_end};
        i++;
        if (p == end) break;
    }
    if (i != c->n)
        return drps_parse_bad(ps, NULL, "%zu columns, the %s has %zu", i,
                              c->headless ? "first line" : "header", c->n);
    if (c->n_crosses) drps_columns_cross(c, ps);
    return r->options.clicks ? end_clicks(r, ps) : drps_columns_end(r, ps, label, 0);
}
