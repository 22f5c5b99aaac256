/*
 * Comma separated values with a header (RFC 4180, except that a quoted field must end on its line).
 *
 * What a column means comes from the options; the label is found by name; other columns are numbers
 * or categories by what the first lines below the header hold there.
 */
#include "index/reader/columns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/drps_alloc.h"

enum {
    MOST_FIELDS = 65535, /* field numbers have 16 bits in the dictionary */
    DECIDING_LINES = 1000,
    DECIDING_BYTES = 1 << 20,
};

struct text {
    const char *p, *end;
};

/* Find the next line with something on it; an empty text is the end of the block. */
static struct text next_line(const char *p, const char *end)
{
    while (p < end) {
        const char *feed = memchr(p, '\n', (size_t)(end - p));
        const char *stop = feed ? feed : end;
        struct text line = {p, stop > p && stop[-1] == '\r' ? stop - 1 : stop};
        while (p < line.end && drps_is_blank(*p))
            p++;
        if (p < line.end) return line;
        p = stop + 1;
    }
    return (struct text){end, end};
}

static size_t count_columns(const struct text *header, char separator)
{
    size_t n = 1;
    int quoted = 0;
    for (const char *p = header->p; p < header->end; p++) {
        quoted ^= *p == '"';
        n += !quoted && *p == separator;
    }
    return n;
}

static char detect_separator(const struct text *header)
{
    static const char known[] = ",\t;";
    char best = ',';
    for (const char *s = known; *s; s++)
        if (count_columns(header, *s) > count_columns(header, best)) best = *s;
    return best;
}

static int kind_named(const char *p, size_t n)
{
    static const struct {
        const char *name;
        int kind;
    } kinds[] = {{"ignore", DRPS_COLUMN_IGNORE},
                 {"label", DRPS_COLUMN_LABEL},
                 {"number", DRPS_COLUMN_NUMBER},
                 {"category", DRPS_COLUMN_CATEGORY}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strlen(kinds[i].name) == n && memcmp(kinds[i].name, p, n) == 0) return kinds[i].kind;
    return -1;
}

/* Write names of the header's columns, "a, b, c", as many as there is room for. */
static char *list_columns(const struct drps_columns *c, char *text, size_t cap)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < c->n; i++) {
        char name[64];
        const char *p = c->columns[i].name;
        (void)drps_parse_excerpt(p, p + strlen(p), name, sizeof(name));
        const size_t n = strlen(name);
        if (used + n + 40 > cap) {
            (void)snprintf(text + used, cap - used, ", ... (%zu in all)", c->n);
            break;
        }
        used += (size_t)snprintf(text + used, cap - used, "%s%s", i ? ", " : "", name);
    }
    return text;
}

enum { LIST_BYTES = 300 };

/* Apply one "column:kind". `rest` gets the kind of "*"; if it is NULL, "*" is a column like others.
 */
static int apply_kind(struct drps_columns *c, const char *p, size_t n, int *rest,
                      struct drps_err *err)
{
    const char *colon = memrchr(p, ':', n);
    int kind = colon ? kind_named(colon + 1, (size_t)(p + n - colon) - 1) : -1;
    char list[LIST_BYTES];
    if (kind < 0)
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "kinds of columns: '%.*s' is not column:number, column:category, column:ignore or "
            "column:label",
            (int)(n < 100 ? n : 100), p);
    const size_t bytes = (size_t)(colon - p);
    struct drps_column *column = drps_columns_find(c, p, bytes, 0);
    if (!column && rest && bytes == 1 && *p == '*') {
        if (kind == DRPS_COLUMN_LABEL)
            return drps_err_set(err, DRPS_E_CONFIG,
                                "kinds of columns: one column is the label, not all");
        *rest = kind;
        return 0;
    }
    if (!column)
        return drps_err_set(
            err, DRPS_E_CONFIG, "kinds of columns: the header has no column '%.*s'; it has: %s",
            (int)(bytes < 100 ? bytes : 100), p, list_columns(c, list, sizeof(list)));
    column->kind = kind;
    column->given = 1;
    return 0;
}

/*
 * "column:kind,column:kind,*:kind": a column's name may hold colons but no comma. Lines after the
 * first hold one column each, commas and all: see drps_reader_csv_kinds(). *rest_out: the kind of
 * columns that nothing else is said of; -1: what they hold decides.
 */
static int apply_kinds(struct drps_columns *c, const char *kinds, int *rest_out,
                       struct drps_err *err)
{
    const char *separators = ",\n";
    for (const char *p = kinds; *p;) {
        size_t n = strcspn(p, separators);
        if (n == 0 && *p == '\n') { /* nothing but machine-made lines */
            separators = "\n";
            p++;
            continue;
        }
        int rc = apply_kind(c, p, n, separators[0] == ',' ? rest_out : NULL, err);
        if (rc < 0) return rc;
        p += n;
        if (*p == '\n') separators = "\n";
        p += *p == ',' || *p == '\n';
    }
    return 0;
}

/* Fail, as no column is the label. The text says which may be. */
static int no_label(const struct drps_reader *r, const struct drps_columns *c, struct drps_err *err)
{
    const struct drps_reader_options *o = &r->options;
    char list[LIST_BYTES], what[128];
    const int detected = !o->format || strcmp(o->format, "auto") == 0;
    if (o->csv_label)
        (void)snprintf(what, sizeof(what), "has no column '%.100s'", o->csv_label);
    else
        (void)snprintf(what, sizeof(what), "no column is named label, target, y or click");
    return drps_err_set(
        err, DRPS_E_CONFIG, "%s: %s%s; the label column must be one of: %s%s", r->chunks.in.name,
        detected       ? "looks like csv, but "
        : o->csv_label ? "the header "
                       : "",
        what, list_columns(c, list, sizeof(list)), detected ? " (or name another format)" : "");
}

/* Exactly one column is the label: the one that an option names, or else one with a usual name. */
static int choose_label(const struct drps_reader *r, struct drps_columns *c, struct drps_err *err)
{
    static const char *const usual[] = {"label", "target", "y", "click"};
    const char *name = r->options.csv_label;
    size_t labels = 0;

    if (r->options.clicks) return 0; /* they say it */
    if (name) {
        struct drps_column *column = drps_columns_find(c, name, strlen(name), 0);
        if (!column && r->options.label_optional) return 0;
        if (!column) return no_label(r, c, err);
        column->kind = DRPS_COLUMN_LABEL;
        column->given = 1;
    }
    for (size_t i = 0; i < c->n; i++)
        labels += c->columns[i].kind == DRPS_COLUMN_LABEL;
    if (labels > 1)
        return drps_err_set(err, DRPS_E_CONFIG, "csv: %zu columns are to be the label", labels);
    for (size_t i = 0; labels == 0 && i < sizeof(usual) / sizeof(usual[0]); i++) {
        struct drps_column *column = drps_columns_find(c, usual[i], strlen(usual[i]), 1);
        if (!column || column->kind != -1) continue;
        column->kind = DRPS_COLUMN_LABEL;
        labels = 1;
    }
    return labels || r->options.label_optional ? 0 : no_label(r, c, err);
}

/* Find the column of weights, clicks or impressions that an option names. */
static int choose_count(const struct drps_reader *r, struct drps_columns *c, const char *name,
                        enum drps_column_kind kind, const char *what, struct drps_err *err)
{
    char list[LIST_BYTES];
    struct drps_column *column = name ? drps_columns_find(c, name, strlen(name), 0) : NULL;
    if (!name) return 0;
    if (!column)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: the header has no column '%.100s' for %s; it has: %s",
                            r->chunks.in.name, name, what, list_columns(c, list, sizeof(list)));
    if (column->kind != -1)
        return drps_err_set(err, DRPS_E_CONFIG, "%s: column '%.100s' cannot be %s and %s at once",
                            r->chunks.in.name, name, what,
                            column->kind == DRPS_COLUMN_LABEL ? "the label" : "something else");
    column->kind = (int)kind;
    column->given = 1;
    return 0;
}

static int choose_counts(const struct drps_reader *r, struct drps_columns *c, struct drps_err *err)
{
    const struct drps_reader_options *o = &r->options;
    int rc = choose_count(r, c, o->weight, DRPS_COLUMN_WEIGHT, "the weight", err);
    if (rc == 0) rc = choose_count(r, c, o->clicks, DRPS_COLUMN_CLICKS, "clicks", err);
    if (rc == 0)
        rc = choose_count(r, c, o->impressions, DRPS_COLUMN_IMPRESSIONS, "impressions", err);
    for (size_t i = 0; rc == 0 && o->clicks && i < c->n; i++)
        if (c->columns[i].kind == DRPS_COLUMN_LABEL)
            rc = drps_err_set(err, DRPS_E_CONFIG,
                              "%s: clicks and impressions are the labels: name no label column",
                              r->chunks.in.name);
    return rc;
}

/* Give this kind to all columns that nothing else is said of. */
static void give_rest(struct drps_columns *c, int kind)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->columns[i].kind != -1) continue;
        c->columns[i].kind = kind;
        c->columns[i].given = 1;
    }
}

/* ---- Columns that nobody named ---- */

/* What the first lines hold in a column decides about its kind. */
struct evidence {
    uint64_t numbers, missing;
    uint64_t other_line; /* 1 is the file's first; 0: nothing that is no number */
    char other[32];
    int pair; /* of words that are labels; 0: none */
};

/* Returns 1 for a number, and for what can only be meant for one: it is infinite, or too large. */
static int number_shaped(const char *p, const char *end)
{
    float v;
    if (drps_columns_number(p, end, &v)) return 1;
    while (p < end && drps_is_blank(*p))
        p++;
    while (p < end && drps_is_blank(end[-1]))
        end--;
    if (p < end && (*p == '-' || *p == '+')) p++;
    const size_t n = (size_t)(end - p);
    if ((n == 3 && strncasecmp(p, "inf", n) == 0) || (n == 8 && strncasecmp(p, "infinity", n) == 0))
        return 1;
    return n > 0 && strspn(p, "0123456789.eE+-") >= n &&
           strcmp(drps_number_why(p), "is too large") == 0;
}

static void weigh(struct evidence *e, const char *text, const char *text_end, uint64_t line)
{
    if (drps_columns_missing(text, text_end)) {
        e->missing++;
    } else if (number_shaped(text, text_end)) {
        e->numbers++;
    } else if (!e->other_line) {
        e->other_line = line;
        (void)drps_parse_excerpt(text, text_end, e->other, sizeof(e->other));
    }
}

/* Weigh the fields of a line. One that does not have the header's columns says nothing. `copy` has
 * room for the line, as taking fields writes. */
static void weigh_line(const struct drps_columns *c, const struct text *line, uint64_t number,
                       char *copy, struct text *fields, struct evidence *evidence)
{
    struct drps_parse ps = {.out = NULL};
    const size_t bytes = (size_t)(line->end - line->p);
    char *p = copy, *end = copy + bytes;
    size_t n = 0;
    memcpy(copy, line->p, bytes);
    memset(end, 0, DRPS_CHUNK_PAD);
    for (;; p++) {
        char *text, *text_end;
        p = drps_columns_take(&ps, c->separator, p, end, &text, &text_end);
        if (!p || n == c->n) return;
        fields[n++] = (struct text){text, text_end};
        if (p == end) break;
    }
    for (size_t i = 0; n == c->n && i < n; i++) {
        float label;
        if (c->columns[i].kind == -1) weigh(&evidence[i], fields[i].p, fields[i].end, number);
        if (c->columns[i].kind == DRPS_COLUMN_LABEL && !c->named && !evidence[i].pair)
            (void)drps_columns_label_word(fields[i].p, fields[i].end, &label, &evidence[i].pair);
    }
}

/* Weigh whole lines from the header on, DECIDING_LINES below it at most. */
static void weigh_lines(const struct drps_reader *r, const struct drps_columns *c, char *copy,
                        struct text *fields, struct evidence *evidence)
{
    const char *p = r->chunks.carry, *end = p + r->chunks.carry_n;
    struct text line = next_line(p, end);
    uint64_t number = 1 + drps_parse_count(p, (size_t)(line.p - p), '\n');
    const uint64_t last = number + DECIDING_LINES;
    for (;;) {
        const char *from = line.p;
        line = next_line(line.end < end ? line.end + 1 : end, end);
        number += drps_parse_count(from, (size_t)(line.p - from), '\n');
        const int cut = line.end == end && !r->chunks.in.ended;
        if (line.p == line.end || number > last || cut) return;
        weigh_line(c, &line, number, copy, fields, evidence);
    }
}

static void decide(struct drps_columns *c, const struct evidence *evidence)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->columns[i].kind != -1) continue;
        c->columns[i].guessed = 1;
        c->columns[i].kind = evidence[i].numbers && !evidence[i].other_line ? DRPS_COLUMN_NUMBER
                                                                            : DRPS_COLUMN_CATEGORY;
    }
}

static void explain(const struct drps_column *column, const struct evidence *e, char *why, size_t n)
{
    if (column->guessed && e->other_line)
        (void)snprintf(why, n, "'%s' in line %llu is no number", e->other,
                       (unsigned long long)e->other_line);
    else if (column->guessed && e->numbers)
        (void)snprintf(why, n, "%llu numbers, %llu missing, in the first lines",
                       (unsigned long long)e->numbers, (unsigned long long)e->missing);
    else if (column->guessed)
        (void)snprintf(why, n, "nothing in the first lines");
    else if (e->pair)
        (void)snprintf(why, n, "%s; %s is 1, the positive class, and %s is 0",
                       column->given ? "as given" : "by its name",
                       drps_columns_pair_word(e->pair, 1), drps_columns_pair_word(e->pair, 0));
    else
        (void)snprintf(why, n, column->given ? "as given" : "by its name");
}

static int tell(const struct drps_reader *r, const struct drps_columns *c,
                const struct evidence *evidence, struct drps_err *err)
{
    if (!r->options.on_columns) return 0;
    struct drps_reader_column *told = drps_array_new(c->n, sizeof(*told));
    if (!told) return drps_err_set(err, -ENOMEM, "csv columns");
    for (size_t i = 0; i < c->n; i++) {
        told[i].name = c->columns[i].name;
        told[i].kind = (enum drps_column_kind)c->columns[i].kind;
        explain(&c->columns[i], &evidence[i], told[i].why, sizeof(told[i].why));
    }
    r->options.on_columns(r->options.columns_ctx, told, c->n);
    free(told);
    return 0;
}

static int guess_kinds(struct drps_reader *r, struct drps_columns *c, struct drps_err *err)
{
    size_t guesses = 0; /* and the label: which words it has is told */
    for (size_t i = 0; i < c->n; i++)
        guesses += c->columns[i].kind == -1 || c->columns[i].kind == DRPS_COLUMN_LABEL;
    int rc = guesses ? drps_chunks_look_ahead(&r->chunks, c->header_line + DECIDING_LINES,
                                              DECIDING_BYTES, err)
                     : 0;
    if (rc < 0) return rc;
    char *copy = malloc(r->chunks.carry_n + DRPS_CHUNK_PAD);
    struct text *fields = drps_array_new(c->n, sizeof(*fields));
    struct evidence *evidence = calloc(c->n, sizeof(*evidence));
    rc = copy && fields && evidence ? 0 : drps_err_set(err, -ENOMEM, "csv lines");
    if (rc == 0 && guesses) weigh_lines(r, c, copy, fields, evidence);
    if (rc == 0) decide(c, evidence);
    if (rc == 0) rc = tell(r, c, evidence, err);
    free(copy);
    free(fields);
    free(evidence);
    return rc;
}

/*
 * Fields are called "column:kind": a file that is read later for the same model is told these kinds
 * (see drps_reader_csv_kinds()), so that what its first lines happen to hold decides nothing.
 */
static int name_fields(struct drps_columns *c, struct drps_reader *r, struct drps_err *err)
{
    if (c->n_features > MOST_FIELDS)
        return drps_err_set(err, DRPS_E_CONFIG, "csv: %zu feature columns; at most %d are possible",
                            c->n_features, MOST_FIELDS);
    c->fields = calloc(c->n_features + 1, sizeof(*c->fields));
    if (!c->fields) return drps_err_set(err, -ENOMEM, "csv header");
    for (size_t i = 0; i < c->n; i++) {
        const struct drps_column *column = &c->columns[i];
        if (!drps_column_is_feature(column->kind)) continue;
        char **field = &c->fields[column->field];
        if (asprintf(field, "%s:%s", column->name,
                     column->kind == DRPS_COLUMN_NUMBER ? "number" : "category") < 0) {
            *field = NULL;
            return drps_err_set(err, -ENOMEM, "csv header");
        }
        r->fields[column->field] = *field;
    }
    return 0;
}

char *drps_reader_csv_kinds(const char *wanted, const char *const *fields, size_t n)
{
    size_t bytes = wanted ? strlen(wanted) + 1 : 0;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(fields[i]) + 1;
    char *kinds = malloc(bytes + 1);
    if (!kinds) return NULL;
    char *at = kinds;
    *at = '\0';
    if (wanted) at = stpcpy(at, wanted);
    for (size_t i = 0; i < n; i++) {
        *at++ = '\n';
        at = stpcpy(at, fields[i]);
    }
    return kinds;
}

static int csv_open(struct drps_reader *r, const char *head, size_t n, struct drps_err *err)
{
    const struct drps_reader_options *o = &r->options;
    struct drps_columns *c = calloc(1, sizeof(*c));
    r->state = c;
    if (!c) return drps_err_set(err, -ENOMEM, "csv reader");
    struct text header = next_line(head, head + n);
    if (header.p == header.end) return 0; /* no lines at all */
    if (header.end == head + n && !r->chunks.in.ended)
        return drps_err_set(err, DRPS_E_FORMAT, "%s: the header is longer than %zu bytes",
                            r->chunks.in.name, n);
    int rc = drps_columns_init(c, header.p, (size_t)(header.end - header.p),
                               o->csv_separator ? o->csv_separator : detect_separator(&header),
                               r->chunks.in.name, err);
    int rest = -1;
    if (rc == 0 && o->csv_kinds) rc = apply_kinds(c, o->csv_kinds, &rest, err);
    if (rc == 0) rc = choose_label(r, c, err);
    if (rc == 0) rc = choose_counts(r, c, err);
    if (rc < 0) return rc;
    if (rest >= 0) give_rest(c, rest);
    for (size_t i = 0; o->csv_only_kinds && i < c->n; i++)
        if (c->columns[i].kind == -1) c->columns[i].kind = DRPS_COLUMN_IGNORE;
    c->named = drps_reads_classes(o) && o->labels == DRPS_READER_NAMES;
    c->header_line = 1 + drps_parse_count(head, (size_t)(header.p - head), '\n');
    rc = guess_kinds(r, c, err);
    if (rc == 0) rc = drps_columns_finish(c, r, err);
    return rc < 0 ? rc : name_fields(c, r, err);
}

const char *drps_reader_csv_label(const struct drps_reader *r)
{
    const struct drps_columns *c = r->state;
    for (size_t i = 0; r->format == &drps_format_csv && c && i < c->n; i++)
        if (c->columns[i].kind == DRPS_COLUMN_LABEL) return c->columns[i].name;
    return NULL;
}

const struct drps_format drps_format_csv = {
    .name = "csv",
    .has_names = 1,
    .has_classes = 1,
    .open = csv_open,
    .close = drps_columns_close,
    .begin_file = drps_columns_begin_file,
    .bound = drps_columns_bound,
    .line = drps_columns_line,
};
