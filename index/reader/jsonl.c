/*
 * JSON lines: an object a line. Keys are columns, those of nested objects joined by dots; an
 * array's values are categories of one column. What a column means is decided as in csv, but that a
 * string is no number unless an option says so.
 *
 * Columns are those of the first lines and those that an option names: a key that comes later is a
 * bad line, as dropping it would go unseen.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "index/reader/columns.h"
#include "index/reader/json.h"

enum { MOST_COLUMNS = 65536, LEAST_TABLE = 64 };

/* ---- Columns by name ---- */

static size_t slot_of(const struct drps_columns *c, const char *name, size_t bytes)
{
    uint64_t key;
    uint32_t check;
    drps_name_hash(0, name, bytes, 0, &key, &check);
    size_t at = (size_t)key & (c->table_cap - 1);
    for (; c->table[at]; at = (at + 1) & (c->table_cap - 1)) {
        const char *have = c->columns[c->table[at] - 1].name;
        if (strlen(have) == bytes && memcmp(have, name, bytes) == 0) break;
    }
    return at;
}

/* Make a table with room for one column more. */
static int grow_table(struct drps_columns *c, struct drps_err *err)
{
    if (2 * (c->n + 1) < c->table_cap) return 0;
    size_t cap = LEAST_TABLE;
    while (cap <= 4 * (c->n + 1))
        cap *= 2;
    uint32_t *table = calloc(cap, sizeof(*table));
    if (!table) return drps_err_set(err, -ENOMEM, "JSON columns");
    free(c->table);
    c->table = table;
    c->table_cap = cap;
    for (size_t i = 0; i < c->n; i++)
        table[slot_of(c, c->columns[i].name, strlen(c->columns[i].name))] = (uint32_t)i + 1;
    return 0;
}

/* The column of this name, or SIZE_MAX. Keys mostly come in one order. */
static size_t find(struct drps_columns *c, const char *name, size_t bytes)
{
    const size_t next = c->next_column < c->n ? c->next_column : 0;
    size_t at = SIZE_MAX;
    if (next < c->n && strcmp(c->columns[next].name, name) == 0)
        at = next;
    else if (c->table[slot_of(c, name, bytes)])
        at = c->table[slot_of(c, name, bytes)] - 1;
    c->next_column = at + 1;
    return at;
}

/* ---- The first lines ---- */

struct looking {
    struct drps_columns *columns;
    struct drps_first_lines *first; /* NULL: columns are looked for, else weighed */
    struct drps_reader *r;
    uint64_t line;
    int labels, weights; /* of the line; counted while scales and bins are learned */
    struct drps_err *err;
    int failed; /* a code; 0: none but bad lines */
};

static int fail(struct looking *l, int rc)
{
    l->failed = rc;
    return DRPS_PARSE_BAD;
}

static int look_for_column(struct looking *l, const struct drps_json_leaf *leaf)
{
    struct drps_columns *c = l->columns;
    if (find(c, leaf->path, leaf->path_bytes) != SIZE_MAX) return 0;
    if (c->n == MOST_COLUMNS)
        return fail(l, drps_err_set(l->err, DRPS_E_CONFIG, "JSON lines have more than %d keys",
                                    MOST_COLUMNS));
    int rc = grow_table(c, l->err);
    if (rc < 0) return fail(l, rc);
    const size_t slot = slot_of(c, leaf->path, leaf->path_bytes);
    if (!drps_columns_append(c, leaf->path, leaf->path_bytes))
        return fail(l, drps_err_set(l->err, -ENOMEM, "JSON columns"));
    c->table[slot] = (uint32_t)c->n;
    return 0;
}

/* Says whether keys that are in none of the first lines are to be ignored; else they make a bad
 * line. */
static int ignores_others(const struct drps_reader *r, const struct drps_columns *c)
{
    return r->options.csv_only_kinds || c->rest == DRPS_COLUMN_IGNORE;
}

static int look_at_leaf(void *ctx, struct drps_parse *ps, const struct drps_json_leaf *leaf)
{
    struct looking *l = ctx;
    (void)ps;
    if (leaf->type == DRPS_JSON_EMPTY) return 0;
    if (!l->first) return look_for_column(l, leaf);
    const size_t at = find(l->columns, leaf->path, leaf->path_bytes);
    const int is_text = leaf->type != DRPS_JSON_NUMBER || leaf->in_array;
    if (drps_first_lines_learning(l->first)) {
        if (leaf->type == DRPS_JSON_NULL) return 0;
        if (at == SIZE_MAX) return ignores_others(l->r, l->columns) ? 0 : DRPS_PARSE_BAD;
        l->labels += l->columns->columns[at].kind == DRPS_COLUMN_LABEL;
        l->weights += l->columns->columns[at].kind == DRPS_COLUMN_WEIGHT;
    }
    if (at == SIZE_MAX) return 0;
    const int rc = drps_first_lines_add(l->first, l->columns, at, leaf->p,
                                        leaf->type == DRPS_JSON_NULL ? leaf->p : leaf->end, l->line,
                                        is_text, l->err);
    return rc < 0 ? fail(l, rc) : 0;
}

/* Returns whether a line of so many labels and weights is one that jsonl_line() takes. */
static int has_its_own(const struct looking *l)
{
    const struct drps_reader_options *o = &l->r->options;
    return (l->labels <= 1 || o->label_ignored) && l->weights <= 1 &&
           (l->labels || o->label_optional) && (l->weights || !o->weight);
}

/* A bad line is told when it is read. */
static int look_at_line(void *ctx, char *p, char *end, uint64_t line, struct drps_err *err)
{
    struct looking *l = ctx;
    struct drps_parse ps = {.out = NULL};
    l->line = line;
    l->labels = l->weights = 0;
    const int walked = drps_json_walk(&ps, p, end, look_at_leaf, l);
    if (l->failed || !l->first) return l->failed;
    return drps_first_lines_end(l->first, l->columns, walked == 0 && has_its_own(l), err);
}

static int decide(struct drps_reader *r, struct looking *l, struct drps_err *err)
{
    l->first = drps_first_lines_new();
    int rc = l->first ? 0 : drps_err_set(err, -ENOMEM, "JSON lines");
    if (rc == 0) rc = drps_first_lines_learn(l->first, r, l->columns, look_at_line, l, err);
    drps_first_lines_free(l->first);
    return rc;
}

static int jsonl_open(struct drps_reader *r, const char *head, size_t n, struct drps_err *err)
{
    const struct drps_reader_options *o = &r->options;
    struct drps_columns *c = calloc(1, sizeof(*c));
    struct looking l = {.columns = c, .r = r, .err = err};
    int are_all;
    (void)head;
    r->state = c;
    if (!c) return drps_err_set(err, -ENOMEM, "JSON reader");
    if (n == 0) return 0; /* no lines at all */
    c->rest = -1;
    int rc = drps_kinds_apply(c, o->csv_kinds, 1, r->chunks.in.name, err);
    if (rc == 0) rc = grow_table(c, err);
    if (rc == 0) rc = drps_lines_first(&r->chunks, 0, look_at_line, &l, &are_all, err);
    if (rc == 0) rc = drps_columns_choose_label(r, c, err);
    if (rc == 0) rc = drps_columns_choose_counts(r, c, err);
    if (rc == 0) rc = drps_kinds_apply_rest(c, o, err);
    if (rc < 0) return rc;
    c->line_keys = drps_array_new(c->n, sizeof(*c->line_keys));
    if (!c->line_keys) return drps_err_set(err, -ENOMEM, "JSON columns");
    c->named = drps_reads_classes(o) && o->labels == DRPS_READER_NAMES;
    rc = decide(r, &l, err);
    return rc < 0 ? rc : drps_columns_finish(c, r, err);
}

/* ---- Keys that objects lack ---- */

enum { ENOUGH_OBJECTS = 20, MOST_SHARE = 20 /* one of so many objects may lack what most have */ };

/* The line has a value of this column. */
static void note_key(struct drps_columns *c, size_t at)
{
    struct drps_column *column = &c->columns[at];
    if (column->noted == c->line) return;
    column->noted = c->line;
    c->line_keys[c->line_keys_n++] = (uint32_t)at;
}

/* The line was good: its keys count. */
static void count_keys(struct drps_columns *c)
{
    c->objects++;
    for (size_t i = 0; i < c->line_keys_n; i++)
        c->columns[c->line_keys[i]].objects++;
}

static int lacks_some(const struct drps_columns *c, const struct drps_column *column)
{
    return column->kind != DRPS_COLUMN_IGNORE && column->kind != DRPS_COLUMN_LABEL &&
           column->objects < c->objects &&
           (c->objects - column->objects) * MOST_SHARE <= c->objects;
}

/* Warns of a key that a few objects lack: misspelt there, it makes another column, and no line is
 * bad for it. */
static void remark_keys(const struct drps_reader *r)
{
    const struct drps_columns *c = r->state;
    const struct drps_column *least = NULL;
    size_t n = 0;
    for (size_t i = 0; c->objects >= ENOUGH_OBJECTS && i < c->n; i++) {
        if (!lacks_some(c, &c->columns[i])) continue;
        if (!least || c->columns[i].objects < least->objects) least = &c->columns[i];
        n++;
    }
    if (!n) return;
    const uint64_t lack = c->objects - least->objects;
    char others[64] = "";
    if (n > 1)
        (void)snprintf(others, sizeof(others), " (%zu more key%s lacked by some, too)", n - 1,
                       n > 2 ? "s are" : " is");
    drps_log(r->options.log, DRPS_LOG_WARN,
             "%llu of %llu objects %s no key '%.100s', which the others have%s: is it spelt "
             "otherwise there? null says that a value is missing",
             (unsigned long long)lack, (unsigned long long)c->objects, lack == 1 ? "has" : "have",
             least->name, others);
}

static int end_piece(struct drps_reader *r, struct drps_parse *ps, int file_ends,
                     struct drps_err *err)
{
    (void)ps;
    (void)err;
    if (file_ends && r->chunks.next_path == r->chunks.n_paths) remark_keys(r);
    return 0;
}

/* ---- Lines ---- */

struct line {
    struct drps_reader *r;
    float label;
    int labels, weights;
};

static int take_leaf(void *ctx, struct drps_parse *ps, const struct drps_json_leaf *leaf)
{
    struct line *l = ctx;
    struct drps_columns *c = l->r->state;
    const size_t at = c->n ? find(c, leaf->path, leaf->path_bytes) : SIZE_MAX;
    if (at != SIZE_MAX) note_key(c, at);
    if (leaf->type == DRPS_JSON_NULL || leaf->type == DRPS_JSON_EMPTY) return 0;
    if (at == SIZE_MAX) {
        if (ignores_others(l->r, c)) return 0;
        return drps_parse_bad(ps, leaf->p,
                              "the key '%.60s' is in none of the first lines: give its kind, or "
                              "the kind *:ignore for all that are not named",
                              leaf->path);
    }
    const struct drps_column *column = &c->columns[at];
    if (column->kind == DRPS_COLUMN_LABEL && l->labels++ && !l->r->options.label_ignored)
        return drps_parse_bad(ps, leaf->p, "a second label (%.100s)", column->name);
    if (column->kind == DRPS_COLUMN_WEIGHT && l->weights++)
        return drps_parse_bad(ps, leaf->p, "a second weight (%.100s)", column->name);
    if (c->texts) c->texts[at] = (struct drps_text){leaf->p, leaf->end};
    return drps_columns_add(l->r, ps, column, leaf->p, leaf->end, &l->label);
}

static int jsonl_line(struct drps_reader *r, struct drps_parse *ps, char *p, char *end)
{
    struct drps_columns *c = r->state;
    struct line l = {.r = r};
    if (drps_skip_blanks(p) >= end) return 0;
    c->label_at = NULL;
    c->line_keys_n = 0;
    c->line++;
    for (size_t i = 0; c->texts && i < c->n; i++)
        c->texts[i] = (struct drps_text){p, p};
    if (drps_json_walk(ps, p, end, take_leaf, &l) < 0) return DRPS_PARSE_BAD;
    if (!l.labels && !r->options.label_optional)
        return drps_parse_bad(ps, NULL, "the object has no label");
    if (!l.weights && r->options.weight)
        return drps_parse_bad(ps, NULL, "the object has no weight (%.100s)", r->options.weight);
    if (c->n_crosses) drps_columns_cross(c, ps);
    if (drps_columns_end(r, ps, l.label, 1) < 0) return DRPS_PARSE_BAD;
    count_keys(c);
    return 0;
}

/* A value stands behind a colon, a comma or a bracket. */
static size_t jsonl_bound(const struct drps_reader *r, const char *text, size_t n, size_t lines)
{
    const struct drps_columns *c = r->state;
    const size_t values = drps_text_count(text, n, ':') + drps_text_count(text, n, ',') +
                          drps_text_count(text, n, '[');
    return values * (c->line_features > c->n_fields ? 3 : 1) + lines * c->n_crosses;
}

const struct drps_format drps_format_jsonl = {
    .name = "jsonl",
    .has_names = 1,
    .has_fields = 1,
    .has_classes = 1,
    .open = jsonl_open,
    .close = drps_columns_close,
    .bound = jsonl_bound,
    .made = drps_columns_made,
    .line = jsonl_line,
    .end_piece = end_piece,
};
