/*
 * Comma separated values, with a header or without (RFC 4180, except that a quoted field must end
 * on its line).
 *
 * What a column means comes from the options; the label is found by name; other columns are what
 * the first lines below the header say.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "index/reader/columns.h"

static size_t count_columns(const struct drps_span *header, char separator)
{
    size_t n = 1;
    int quoted = 0;
    for (const char *p = header->p; p < header->end; p++) {
        quoted ^= *p == '"';
        n += !quoted && *p == separator;
    }
    return n;
}

static char detect_separator(const struct drps_span *header)
{
    static const char known[] = ",\t;";
    char best = ',';
    for (const char *s = known; *s; s++)
        if (count_columns(header, *s) > count_columns(header, best)) best = *s;
    return count_columns(header, best) == 1 && count_columns(header, ' ') > 1 ? ' ' : best;
}

/* *found_out: whether the line is all numbers and missing ones, but not all missing: no header has
 * such names. */
static int find_all_numbers(const struct drps_span *line, char separator, int *found_out,
                            struct drps_err *err)
{
    struct drps_parse ps = {.out = NULL};
    size_t numbers = 0, missing = 0, n = 0;
    const size_t bytes = (size_t)(line->end - line->p);
    char *copy = malloc(bytes + DRPS_CHUNK_PAD), *p = copy;
    *found_out = 0;
    if (!copy) return drps_err_set(err, -ENOMEM, "no memory for the first line of csv");
    memcpy(copy, line->p, bytes);
    memset(copy + bytes, 0, DRPS_CHUNK_PAD);
    for (;; p++) {
        char *text, *end;
        float v;
        p = drps_columns_take(&ps, separator, p, copy + bytes, &text, &end);
        if (!p) break;
        n++;
        if (drps_columns_number(text, end, &v))
            numbers++;
        else
            missing += (size_t)drps_columns_missing(text, end);
        if (p == copy + bytes) break;
    }
    free(copy);
    *found_out = p && numbers > 0 && numbers + missing == n;
    return 0;
}

/* The number of a column that is called so, or 0. */
static size_t column_number(const char *name)
{
    size_t v = 0;
    if (!name || *name < '1' || *name > '9') return 0;
    for (; *name >= '0' && *name <= '9' && v < UINT32_MAX; name++)
        v = v * 10 + (size_t)(*name - '0');
    return *name ? 0 : v;
}

/*
 * In a file that has neither a header nor the label, columns behind the label's keep the numbers
 * that they have in training. Returns the label's number if this is such a file, which is so where
 * a kind is given to one column more than the file has; else 0.
 */
static size_t skipped_label(const struct drps_reader_options *o, size_t columns)
{
    const size_t label = column_number(o->csv_label);
    if (!o->label_optional || !label || !o->csv_kinds) return 0;
    size_t last = label;
    for (const char *p = o->csv_kinds; *p; p += *p != '\0') {
        size_t v = 0;
        const char *digits = p;
        while (*p >= '0' && *p <= '9' && v < UINT32_MAX)
            v = v * 10 + (size_t)(*p++ - '0');
        if (p > digits && *p == ':' && v > last) last = v;
        p += strcspn(p, ",\n");
    }
    return last == columns + 1 ? label : 0;
}

struct weighing {
    struct drps_columns *columns;
    struct drps_first_lines *first;
    struct drps_text *fields; /* [columns] */
};

/* A line that does not have the header's columns says nothing. */
static int weigh_line(void *ctx, char *p, char *end, uint64_t line, struct drps_err *err)
{
    const struct weighing *w = ctx;
    const struct drps_columns *c = w->columns;
    struct drps_parse ps = {.out = NULL};
    size_t n = 0;
    int rc = 0;
    for (;; p++) {
        char *text, *text_end;
        p = drps_columns_take(&ps, c->separator, p, end, &text, &text_end);
        if (!p || n == c->n) return drps_first_lines_end(w->first, c, 0, err);
        w->fields[n++] = (struct drps_text){text, text_end};
        if (p == end) break;
    }
    for (size_t i = 0; rc == 0 && n == c->n && i < n; i++)
        rc = drps_first_lines_add(w->first, c, i, w->fields[i].p, w->fields[i].end, line, 0, err);
    return rc < 0 ? rc : drps_first_lines_end(w->first, c, n == c->n, err);
}

static int decide(struct drps_reader *r, struct drps_columns *c, struct drps_err *err)
{
    struct weighing w = {.columns = c,
                         .first = drps_first_lines_new(),
                         .fields = drps_array_new(c->n, sizeof(*w.fields))};
    int rc = w.first && w.fields ? 0 : drps_err_set(err, -ENOMEM, "csv lines");
    if (rc == 0) rc = drps_first_lines_learn(w.first, r, c, weigh_line, &w, err);
    drps_first_lines_free(w.first);
    free(w.fields);
    return rc;
}

static int split_first(const struct drps_reader *r, struct drps_columns *c,
                       const struct drps_span *line, struct drps_err *err)
{
    const struct drps_reader_options *o = &r->options;
    const char separator = o->csv_separator ? o->csv_separator : detect_separator(line);
    const size_t bytes = (size_t)(line->end - line->p);
    int headless = o->csv_header == DRPS_CSV_NO_HEADER;
    if (o->csv_header == DRPS_CSV_HEADER_BY_LINE) {
        int rc = find_all_numbers(line, separator, &headless, err);
        if (rc < 0) return rc;
    }
    if (!headless) return drps_columns_init(c, line->p, bytes, separator, r->chunks.in.name, err);
    return drps_columns_init_headless(c, line->p, bytes, separator,
                                      skipped_label(o, count_columns(line, separator)),
                                      r->chunks.in.name, err);
}

static int csv_open(struct drps_reader *r, const char *head, size_t n, struct drps_err *err)
{
    const struct drps_reader_options *o = &r->options;
    struct drps_columns *c = calloc(1, sizeof(*c));
    r->state = c;
    if (!c) return drps_err_set(err, -ENOMEM, "csv reader");
    const struct drps_span first = drps_next_line(head, head + n);
    if (first.p == first.end) return 0; /* no lines at all */
    if (first.end == head + n && !r->chunks.in.ended)
        return drps_err_set(err, DRPS_E_FORMAT, "%s: the %s is longer than %zu bytes",
                            r->chunks.in.name, "header", n);
    int rc = split_first(r, c, &first, err);
    if (rc == 0) rc = drps_kinds_apply(c, o->csv_kinds, 0, r->chunks.in.name, err);
    if (rc == 0) rc = drps_columns_choose_label(r, c, err);
    if (rc == 0) rc = drps_columns_choose_counts(r, c, err);
    if (rc == 0) rc = drps_kinds_apply_rest(c, o, err);
    if (rc < 0) return rc;
    c->named = drps_reads_classes(o) && o->labels == DRPS_READER_NAMES;
    if (!c->headless) c->header_line = 1 + drps_text_count(head, (size_t)(first.p - head), '\n');
    rc = decide(r, c, err);
    return rc < 0 ? rc : drps_columns_finish(c, r, err);
}

const struct drps_format drps_format_csv = {
    .name = "csv",
    .has_names = 1,
    .has_fields = 1,
    .has_classes = 1,
    .open = csv_open,
    .close = drps_columns_close,
    .begin_file = drps_columns_begin_file,
    .bound = drps_columns_bound,
    .made = drps_columns_made,
    .line = drps_columns_line,
};
