/* Which column is the label, and what the fields of the features are called. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "index/reader/columns.h"

enum { MOST_FIELDS = 65535 /* field numbers have 16 bits in the dictionary */ };

/* ---- The label ---- */

/* Fail, as no column is the label. The text says which may be. */
static int no_label(const struct drps_reader *r, const struct drps_columns *c, struct drps_err *err)
{
    const struct drps_reader_options *o = &r->options;
    char list[DRPS_LIST_BYTES], what[128];
    const int detected = !o->format || strcmp(o->format, "auto") == 0;
    if (o->csv_label)
        (void)snprintf(what, sizeof(what), "has no column '%.100s'", o->csv_label);
    else
        (void)snprintf(what, sizeof(what), "no column is named label, target, y or click");
    const int found_header = strcmp(r->format->name, "csv") == 0 && !c->headless &&
                             o->csv_header == DRPS_CSV_HEADER_BY_LINE;
    return drps_err_set(
        err, DRPS_E_CONFIG, "%s: %s%s%s; the label column must be one of: %s%s%s",
        r->chunks.in.name,
        detected       ? "looks like "
        : o->csv_label ? "the header "
                       : "",
        detected ? strcmp(r->format->name, "csv") == 0 ? "csv, but " : "JSON lines, but " : "",
        what, drps_columns_list(c, list, sizeof(list)), detected ? " (or name another format)" : "",
        found_header ? "; if the first line is no header, say so" : "");
}

int drps_columns_choose_label(const struct drps_reader *r, struct drps_columns *c,
                              struct drps_err *err)
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
    if (!labels && c->headless && c->n && c->columns[0].kind == -1 && !r->options.csv_only_kinds) {
        c->columns[0].kind = DRPS_COLUMN_LABEL;
        labels = 1;
    }
    return labels || r->options.label_optional ? 0 : no_label(r, c, err);
}

/* ---- Weights ---- */

/* Find the column of weights, clicks or impressions that an option names. */
static int choose_count(const struct drps_reader *r, struct drps_columns *c, const char *name,
                        enum drps_column_kind kind, const char *what, struct drps_err *err)
{
    char list[DRPS_LIST_BYTES];
    const int csv = strcmp(r->format->name, "csv") == 0;
    struct drps_column *column = name ? drps_columns_find(c, name, strlen(name), 0) : NULL;
    if (!name) return 0;
    if (!column)
        return drps_err_set(err, DRPS_E_CONFIG, "%s: the %s no %s '%.100s' for %s; %s: %s",
                            r->chunks.in.name, csv ? "header has" : "first lines have",
                            csv ? "column" : "key", name, what, csv ? "it has" : "they have",
                            drps_columns_list(c, list, sizeof(list)));
    if (column->kind != -1)
        return drps_err_set(err, DRPS_E_CONFIG, "%s: column '%.100s' cannot be %s and %s at once",
                            r->chunks.in.name, name, what,
                            column->kind == DRPS_COLUMN_LABEL ? "the label" : "something else");
    column->kind = (int)kind;
    column->given = 1;
    return 0;
}

int drps_columns_choose_counts(const struct drps_reader *r, struct drps_columns *c,
                               struct drps_err *err)
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

/* ---- Fields ---- */

static int is_feature(const struct drps_column *column)
{
    return column->kind != DRPS_COLUMN_IGNORE && column->kind != DRPS_COLUMN_LABEL &&
           !drps_column_counts(column->kind);
}

static size_t features_of(const struct drps_column *column)
{
    return !is_feature(column) ? 0 : column->kind == DRPS_COLUMN_DATE ? 3 : 1;
}

static int add_field(struct drps_columns *c, const char *name, const char *kind,
                     struct drps_err *err)
{
    char **field = &c->fields[c->n_fields];
    const int bytes =
        c->known_kinds ? asprintf(field, "%s", name) : asprintf(field, "%s:%s", name, kind);
    if (bytes < 0) return drps_err_set(err, -ENOMEM, "csv header");
    c->n_fields++;
    return 0;
}

static int name_fields(struct drps_columns *c, struct drps_reader *r, char *kind,
                       struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->n; i++) {
        if (!is_feature(&c->columns[i])) continue;
        c->columns[i].field = (uint32_t)c->n_fields;
        c->line_features += features_of(&c->columns[i]);
        if (!c->known_kinds) (void)drps_kind_text(&c->columns[i], kind, DRPS_KIND_BYTES);
        rc = add_field(c, c->columns[i].name, kind, err);
    }
    for (size_t i = 0; rc == 0 && i < c->n_crosses; i++) {
        c->crosses[i].field = (uint32_t)c->n_fields;
        c->line_features++;
        rc = add_field(c, c->crosses[i].name, "cross", err);
    }
    for (size_t i = 0; i < c->n_fields; i++)
        r->fields[i] = c->fields[i];
    r->n_fields = c->n_fields;
    return rc;
}

int drps_columns_finish(struct drps_columns *c, struct drps_reader *r, struct drps_err *err)
{
    const size_t most = c->n + c->n_crosses;
    size_t fields = c->n_crosses;
    for (size_t i = 0; i < c->n; i++)
        fields += (size_t)is_feature(&c->columns[i]);
    if (fields > MOST_FIELDS)
        return drps_err_set(err, DRPS_E_CONFIG, "csv: %zu feature columns; at most %d are possible",
                            fields, MOST_FIELDS);
    char *kind = malloc(DRPS_KIND_BYTES);
    r->fields = malloc((most + 1) * sizeof(*r->fields));
    c->fields = calloc(most + 1, sizeof(*c->fields));
    if (c->n_crosses) c->texts = calloc(c->n + 1, sizeof(*c->texts));
    int rc = kind && r->fields && c->fields && (c->texts || !c->n_crosses)
                 ? 0
                 : drps_err_set(err, -ENOMEM, "csv header");
    if (rc == 0) rc = name_fields(c, r, kind, err);
    free(kind);
    return rc;
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

const char *drps_reader_csv_label(const struct drps_reader *r)
{
    const struct drps_columns *c = r->state;
    if (!c || !drps_reader_has_columns(r->format->name)) return NULL;
    for (size_t i = 0; i < c->n; i++)
        if (c->columns[i].kind == DRPS_COLUMN_LABEL) return c->columns[i].name;
    return NULL;
}

int drps_reader_has_columns(const char *format)
{
    return strcmp(format, "csv") == 0 || strcmp(format, "jsonl") == 0;
}

int drps_reader_csv_headless(const struct drps_reader *r)
{
    const struct drps_columns *c = r->state;
    return strcmp(r->format->name, "csv") == 0 && c && c->headless;
}
