/*
 * What users say of columns: kinds and crosses as texts, the label, and the fields of the features.
 *
 * A kind is written as it is read: what the first lines have taught of a column is recorded in its
 * field, "price:number(120.5;37.25)", and a later file is read in the same way.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/reader/columns.h"

/* ---- A kind ---- */

/* Bin i is called "from..to". */
static int name_bins(struct drps_column *column, struct drps_err *err)
{
    const size_t n = column->n_cuts;
    column->bin_names = drps_array_new(n + 1, sizeof(*column->bin_names));
    if (!column->bin_names) return drps_err_set(err, -ENOMEM, "%zu bins", n + 1);
    for (size_t i = 0; i <= n; i++) {
        char from[20] = "", to[20] = "";
        if (i > 0) (void)snprintf(from, sizeof(from), "%.9g", (double)column->cuts[i - 1]);
        if (i < n) (void)snprintf(to, sizeof(to), "%.9g", (double)column->cuts[i]);
        (void)snprintf(column->bin_names[i], sizeof(*column->bin_names), "%s..%s", from, to);
    }
    return 0;
}

int drps_column_set_cuts(struct drps_column *column, const float *cuts, size_t n,
                         struct drps_err *err)
{
    column->cuts = drps_array_new(n + 1, sizeof(*column->cuts));
    if (!column->cuts) return drps_err_set(err, -ENOMEM, "%zu bins", n + 1);
    if (n) memcpy(column->cuts, cuts, n * sizeof(*cuts));
    column->n_cuts = n;
    column->bins = 0;
    return name_bins(column, err);
}

/* Read "1;2;3" into v. Returns how many there are; 0: it is no such list, or has more than most. */
static size_t read_list(const char *p, size_t n, float *v, size_t most)
{
    char text[64 + DRPS_CHUNK_PAD];
    size_t count = 0;
    for (const char *end = p + n; count < most;) {
        const char *stop = memchr(p, ';', (size_t)(end - p));
        if (!stop) stop = end;
        const size_t bytes = (size_t)(stop - p);
        if (bytes >= 64) return 0;
        memset(text, 0, sizeof(text));
        memcpy(text, p, bytes);
        if (!drps_columns_number(text, text + bytes, &v[count++])) return 0;
        if (stop == end) return count;
        p = stop + 1;
    }
    return 0;
}

static int is_word(const char *p, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(p, word, n) == 0;
}

static enum drps_scale scale_named(const char *p, size_t n)
{
    static const struct {
        const char *name;
        enum drps_scale scale;
    } scales[] = {{"none", DRPS_SCALE_NONE},
                  {"log", DRPS_SCALE_LOG},
                  {"standard", DRPS_SCALE_STANDARD},
                  {"robust", DRPS_SCALE_ROBUST}};
    for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++)
        if (is_word(p, n, scales[i].name)) return scales[i].scale;
    return DRPS_SCALE_AUTO;
}

/* What stands in the parentheses of "number(...)". Returns 0 if it may not. */
static int set_scale(struct drps_column *column, const char *p, size_t n)
{
    float v[2];
    column->scale = scale_named(p, n);
    if (column->scale != DRPS_SCALE_AUTO) return 1;
    if (read_list(p, n, v, 2) != 2 || !(v[1] > 0)) return 0;
    column->scale = DRPS_SCALE_LINEAR;
    column->shift = v[0];
    column->unit = v[1];
    return 1;
}

/* What stands in the parentheses of "bins(...)" and "cuts(...)". Returns 1, 0 if it may not, or
 * -ENOMEM. */
static int set_bins(struct drps_column *column, const char *p, size_t n, int cuts,
                    struct drps_err *err)
{
    float v[DRPS_COLUMN_BINS_MOST - 1];
    free(column->cuts);
    free(column->bin_names);
    column->cuts = NULL;
    column->bin_names = NULL;
    const size_t count =
        n == 0 && cuts ? 0 : read_list(p, n, v, cuts ? DRPS_COLUMN_BINS_MOST - 1 : 1);
    if (!cuts) {
        if (count != 1 || !(v[0] >= 2 && v[0] <= DRPS_COLUMN_BINS_MOST) || v[0] != floorf(v[0]))
            return 0;
        column->bins = (uint32_t)v[0];
        return 1;
    }
    if (n > 0 && count == 0) return 0;
    for (size_t i = 1; i < count; i++)
        if (v[i - 1] >= v[i]) return 0;
    const int rc = drps_column_set_cuts(column, v, count, err);
    return rc < 0 ? rc : 1;
}

/* Read a kind. Returns 1, 0 if it is none, or -ENOMEM. */
static int set_kind(struct drps_column *column, const char *p, size_t n, struct drps_err *err)
{
    static const struct {
        const char *name;
        int kind;
    } kinds[] = {{"ignore", DRPS_COLUMN_IGNORE},     {"label", DRPS_COLUMN_LABEL},
                 {"number", DRPS_COLUMN_NUMBER},     {"date", DRPS_COLUMN_DATE},
                 {"category", DRPS_COLUMN_CATEGORY}, {"bins", DRPS_COLUMN_BINS},
                 {"cuts", DRPS_COLUMN_BINS}};
    const char *open = n && p[n - 1] == ')' ? memchr(p, '(', n) : NULL;
    const size_t name = open ? (size_t)(open - p) : n;
    int kind = -1;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (is_word(p, name, kinds[i].name)) kind = kinds[i].kind;
    if (kind < 0 || (!open && kind == DRPS_COLUMN_BINS) ||
        (open && kind != DRPS_COLUMN_BINS && kind != DRPS_COLUMN_NUMBER))
        return 0;
    column->kind = kind;
    column->given = 1;
    if (!open) return 1;
    const size_t inner = n - name - 2;
    if (kind == DRPS_COLUMN_NUMBER) return set_scale(column, open + 1, inner);
    return set_bins(column, open + 1, inner, *p == 'c', err);
}

/* Append to a text of `cap` bytes, as much as there is room for. */
static size_t append(char *text, size_t used, size_t cap, const char *what, double v)
{
    const int n = used < cap ? snprintf(text + used, cap - used, "%s%.9g", what, v) : 0;
    return n > 0 ? used + (size_t)n : used;
}

char *drps_kind_text(const struct drps_column *column, char *text, size_t cap)
{
    static const char *const names[] = {
        [DRPS_COLUMN_IGNORE] = "ignore", [DRPS_COLUMN_LABEL] = "label",
        [DRPS_COLUMN_NUMBER] = "number", [DRPS_COLUMN_CATEGORY] = "category",
        [DRPS_COLUMN_BINS] = "cuts(",    [DRPS_COLUMN_DATE] = "date"};
    size_t used = (size_t)snprintf(text, cap, "%s", names[column->kind]);
    if (column->kind == DRPS_COLUMN_NUMBER && column->scale == DRPS_SCALE_LOG)
        (void)snprintf(text, cap, "number(log)");
    if (column->kind == DRPS_COLUMN_NUMBER && column->scale == DRPS_SCALE_LINEAR) {
        used = append(text, used, cap, "(", (double)column->shift);
        used = append(text, used, cap, ";", (double)column->unit);
    }
    for (size_t i = 0; column->kind == DRPS_COLUMN_BINS && i < column->n_cuts; i++)
        used = append(text, used, cap, i ? ";" : "", (double)column->cuts[i]);
    if (column->kind == DRPS_COLUMN_BINS ||
        (column->kind == DRPS_COLUMN_NUMBER && column->scale == DRPS_SCALE_LINEAR))
        (void)snprintf(text + used, cap - used, ")");
    return text;
}

/* ---- Kinds of all columns ---- */

struct drps_column *drps_columns_append(struct drps_columns *c, const char *name, size_t bytes)
{
    struct drps_column *more = realloc(c->columns, (c->n + 1) * sizeof(*more));
    if (more) c->columns = more;
    char *copy = more ? strndup(name, bytes) : NULL;
    if (!copy) return NULL;
    c->columns[c->n] = (struct drps_column){.name = copy, .kind = -1};
    return &c->columns[c->n++];
}

struct applying {
    struct drps_columns *columns;
    const char *file;
    int add;   /* a column that is not there is added */
    int final; /* the kinds are of an earlier file: nothing is learned, and "*" is a name */
};

/* What to do about a column of the training data that is not there. A header with numbers among its
 * names may be a line of data. */
static const char *missing_advice(const struct drps_columns *c)
{
    if (c->headless) return "give it the columns of these";
    for (size_t i = 0; i < c->n; i++) {
        const char *name = c->columns[i].name;
        if (strpbrk(name, "0123456789") && !name[strspn(name, "0123456789.eE+-")])
            return "is it a line of data? Then put the header of these before it";
    }
    return "name its columns as in these";
}

static int no_such_column(const struct applying *a, const char *p, size_t bytes,
                          struct drps_err *err)
{
    const struct drps_columns *c = a->columns;
    const int shown = (int)(bytes < 100 ? bytes : 100);
    const char *line = c->headless ? "first line" : "header";
    char list[DRPS_LIST_BYTES];
    (void)drps_columns_list(c, list, sizeof(list));
    if (!a->final)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: kinds of columns: the %s has no column '%.*s'; it has: %s",
                            a->file, line, shown, p, list);
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s: the %s has no column '%.*s', which the training data have; it has: "
                        "%s; %s",
                        a->file, line, shown, p, list, missing_advice(c));
}

static int apply_kind(const struct applying *a, const char *p, size_t n, struct drps_err *err)
{
    struct drps_columns *c = a->columns;
    const char *colon = memrchr(p, ':', n);
    const size_t bytes = colon ? (size_t)(colon - p) : 0, kind_bytes = colon ? n - bytes - 1 : 0;
    if (a->final && colon && is_word(colon + 1, kind_bytes, "cross"))
        return drps_cross_add(c, p, bytes, err);
    struct drps_column rest = {.kind = -1};
    struct drps_column *column = colon ? drps_columns_find(c, p, bytes, 0) : NULL;
    const int all = !column && !a->final && bytes == 1 && *p == '*';
    if (!column && !all && colon && a->add) {
        column = drps_columns_append(c, p, bytes);
        if (!column) return drps_err_set(err, -ENOMEM, "no memory for columns");
    }
    int rc = colon ? set_kind(column ? column : &rest, colon + 1, kind_bytes, err) : 0;
    free(rest.cuts);
    free(rest.bin_names);
    if (rc < 0) return rc;
    if (rc == 0)
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "kinds of columns: '%.*s' is not column:number, column:number(log), column:category, "
            "column:date, column:bins(10), column:cuts(18;30), column:ignore or column:label",
            (int)(n < 100 ? n : 100), p);
    if (all && rest.kind == DRPS_COLUMN_LABEL)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "kinds of columns: one column is the label, not all");
    if (all && (rest.kind == DRPS_COLUMN_BINS || rest.scale != DRPS_SCALE_AUTO))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "kinds of columns: for all columns say number, category, date or "
                            "ignore alone");
    if (all)
        c->rest = rest.kind;
    else if (!column)
        return no_such_column(a, p, bytes, err);
    else
        column->final = a->final;
    return 0;
}

/*
 * "column:kind,column:kind,*:kind": a column's name may hold colons but no comma. Lines after the
 * first hold one column or cross each, commas and all: see drps_reader_csv_kinds().
 */
static int apply_kinds(struct applying *a, const char *kinds, struct drps_err *err)
{
    for (const char *p = kinds; *p;) {
        const size_t n = strcspn(p, a->final ? "\n" : ",\n");
        const int rc = n || *p == ',' ? apply_kind(a, p, n, err) : 0;
        if (rc < 0) return rc;
        p += n;
        a->final |= *p == '\n';
        p += *p != '\0';
    }
    return 0;
}

int drps_kinds_apply(struct drps_columns *c, const char *kinds, int add, const char *file,
                     struct drps_err *err)
{
    struct applying a = {.columns = c, .file = file, .add = add};
    return kinds ? apply_kinds(&a, kinds, err) : 0;
}

/* What all numbers are scaled by that nothing is said of. */
static int apply_scale(struct drps_columns *c, const char *name, struct drps_err *err)
{
    const enum drps_scale scale = scale_named(name, strlen(name));
    if (scale == DRPS_SCALE_AUTO)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "scale '%.100s' is not one of: standard, robust, log, none", name);
    for (size_t i = 0; i < c->n; i++)
        if (!c->columns[i].final && c->columns[i].scale == DRPS_SCALE_AUTO)
            c->columns[i].scale = scale;
    return 0;
}

int drps_kinds_apply_rest(struct drps_columns *c, const struct drps_reader_options *o,
                          struct drps_err *err)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->columns[i].kind != -1) continue;
        if (c->rest != -1) {
            c->columns[i].kind = c->rest;
            c->columns[i].given = 1;
        } else if (o->csv_only_kinds) {
            c->columns[i].kind = DRPS_COLUMN_IGNORE;
        }
    }
    int rc = o->csv_scale ? apply_scale(c, o->csv_scale, err) : 0;
    return rc < 0 ? rc : drps_crosses_apply(c, o->csv_cross, err);
}

void drps_reader_field(const char *field, struct drps_reader_field *out)
{
    struct drps_column column = {.scale = DRPS_SCALE_NONE};
    struct drps_err ignored = DRPS_ERR_INIT;
    const char *colon = strrchr(field, ':');
    *out = (struct drps_reader_field){.name_bytes = strlen(field), .unit = 1};
    if (!colon) return;
    out->name_bytes = (size_t)(colon - field);
    if (strncmp(colon + 1, "number", 6) != 0 ||
        set_kind(&column, colon + 1, strlen(colon + 1), &ignored) != 1)
        return;
    out->is_number = 1;
    out->is_log = column.scale == DRPS_SCALE_LOG;
    if (column.scale != DRPS_SCALE_LINEAR) return;
    out->is_linear = 1;
    out->shift = (double)column.shift;
    out->unit = (double)column.unit;
}
