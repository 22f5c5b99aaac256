/* The columns of csv data and JSON lines, as a line and as JSON. */
#include "tools/index/columns.h"

#include <stdio.h>
#include <string.h>

#include "api/report/drps_index_report.h"

enum { NAMES_TOLD = 40 /* of a kind */, FEW_COLUMNS = 20, TEXT_BYTES = 4096 };

/* A text of names; what there is no room for is left out. */
struct text {
    char p[TEXT_BYTES];
    size_t n;
};

static void put(struct text *t, const char *between, const char *name)
{
    const int n = snprintf(t->p + t->n, sizeof(t->p) - t->n, "%s%s", between, name);
    if (n > 0 && t->n + (size_t)n < sizeof(t->p)) t->n += (size_t)n;
    t->p[t->n] = '\0';
}

/* The columns that are told together. */
struct group {
    const char *title;
    enum drps_column_kind kind;
    int scaled;
};

static int is_of(const struct drps_reader_column *c, const struct group *g)
{
    return c->kind == g->kind && (c->kind != DRPS_COLUMN_NUMBER || c->scaled == g->scaled);
}

/* Neighbours of a kind, after so many that were told. Returns how many of them are told. */
static size_t put_neighbours(struct text *t, const struct drps_reader_column *columns, size_t n,
                             int joined, size_t told)
{
    const size_t room = told < NAMES_TOLD ? NAMES_TOLD - told : 0, names = n < room ? n : room;
    if (joined) { /* "f1 to f28" */
        put(t, told ? ", " : "", columns[0].name);
        put(t, " to ", columns[n - 1].name);
        return n;
    }
    for (size_t k = 0; k < names; k++)
        put(t, told + k ? ", " : "", columns[k].name);
    return names;
}

static void put_group(struct text *t, const struct group *g,
                      const struct drps_reader_column *columns, size_t n)
{
    size_t of_group = 0, told = 0;
    char more[32];
    for (size_t i = 0; i < n; i++)
        of_group += (size_t)is_of(&columns[i], g);
    if (!of_group) return;
    if (t->n) put(t, "; ", "");
    put(t, g->title, ": ");
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && is_of(&columns[end], g);)
            end++;
        told += put_neighbours(t, columns + i, end - i, n > FEW_COLUMNS && end > i + 2, told);
        if (end == i) end++;
    }
    (void)snprintf(more, sizeof(more), "%zu in all", of_group);
    if (told < of_group) put(t, ", ... ", more);
}

static void tell_groups(const struct drps_log *log, const struct drps_reader_column *columns,
                        size_t n)
{
    static const struct group groups[] = {
        {"numbers", DRPS_COLUMN_NUMBER, 0},
        {"scaled numbers", DRPS_COLUMN_NUMBER, 1},
        {"bins", DRPS_COLUMN_BINS, 0},
        {"categories", DRPS_COLUMN_CATEGORY, 0},
        {"dates", DRPS_COLUMN_DATE, 0},
        {"crosses", DRPS_COLUMN_CROSS, 0},
        {"ignored", DRPS_COLUMN_IGNORE, 0},
        {"label", DRPS_COLUMN_LABEL, 0},
        {"weight", DRPS_COLUMN_WEIGHT, 0},
        {"clicks", DRPS_COLUMN_CLICKS, 0},
        {"impressions", DRPS_COLUMN_IMPRESSIONS, 0},
    };
    struct text text = {.n = 0};
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
        put_group(&text, &groups[i], columns, n);
    drps_log(log, DRPS_LOG_INFO, "%s", text.p);
}

/* What may not be what was meant: codes, and which word of a label is which class. */
static void tell_notes(const struct drps_log *log, const struct drps_reader_column *columns,
                       size_t n)
{
    struct text codes = {.n = 0};
    const char *first = NULL;
    size_t told = 0;
    for (size_t i = 0; i < n; i++) {
        if (columns[i].kind == DRPS_COLUMN_LABEL && strchr(columns[i].why, ';'))
            drps_log(log, DRPS_LOG_INFO, "label %s%s", columns[i].name,
                     strchr(columns[i].why, ';'));
        if (!columns[i].guessed_codes || told++ >= NAMES_TOLD) continue;
        put(&codes, codes.n ? ", " : "", columns[i].name);
        if (!first) first = columns[i].name;
    }
    if (first)
        drps_log(log, DRPS_LOG_INFO,
                 "taken for codes, though they look like numbers: %s; if one is a quantity, give "
                 "--columns '%s:number'",
                 codes.p, first);
}

void index_columns_show(void *ctx, const struct drps_reader_column *columns, size_t n)
{
    struct index_columns *c = ctx;
    const struct drps_log *log = &c->cli->log;
    c->shown = 1;
    c->list = drps_columns_json(columns, n);
    tell_groups(log, columns, n);
    tell_notes(log, columns, n);
    for (size_t i = 0; i < n; i++)
        drps_log(log, DRPS_LOG_DEBUG, "column %s: %s (%s)", columns[i].name,
                 drps_column_kind_name(columns[i].kind), columns[i].why);
}
