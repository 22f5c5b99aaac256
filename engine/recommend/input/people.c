/* The dictionary says whose each row is: names have the field of a user or of an item. Lists of
 * names are looked up some thousand at a time. */
#include "engine/recommend/input/drps_people.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/drps_alloc.h"
#include "engine/recommend/input/keyrows.h"
#include "base/folder/drps_lines.h"
#include "index/reader/drps_reader.h"

enum { BATCH = 4096, TEXT_BYTES = 256 * 1024 };

uint64_t drps_people_memory(uint64_t rows)
{
    return (DRPS_FIELDS + 1) * drps_rowset_memory(rows) + drps_keyrows_memory(BATCH) + TEXT_BYTES +
           DRPS_LINES_BYTES + BATCH * (sizeof(uint64_t) + sizeof(size_t));
}

/* ---- The dictionary ---- */

static int take_name(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                     size_t bytes, struct drps_err *err)
{
    struct drps_people *p = ctx;
    const struct drps_modeldir_info *info = drps_modeldir_info(p->md);
    const unsigned kind = field ? DRPS_FIELD_ITEM : DRPS_FIELD_USER;
    (void)key;
    (void)bytes;
    if (!text || row >= info->rows || row < drps_model_common_rows(&info->model))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "the dictionary of %s names row %u, which is no user's or item's",
                            p->model, row);
    if (drps_rowset_has(&p->of[0], row) || drps_rowset_has(&p->of[1], row))
        return drps_err_set(err, DRPS_E_CORRUPT, "the dictionary of %s gives row %u two names",
                            p->model, row);
    drps_rowset_add(&p->of[kind], row);
    return drps_io_stopped(p->io, err);
}

int drps_people_init(struct drps_people *p, const struct drps_io *io, struct drps_modeldir *md,
                     const char *model, int skip_unknown, struct drps_err *err)
{
    const uint64_t rows = drps_modeldir_info(md)->rows;
    *p = (struct drps_people){.io = io, .md = md, .model = model, .skip_unknown = skip_unknown};
    if (!drps_rowset_init(&p->of[0], rows) || !drps_rowset_init(&p->of[1], rows))
        return drps_err_set(err, -ENOMEM, "no memory for sets of %llu rows",
                            (unsigned long long)rows);
    return drps_modeldir_scan_names(md, take_name, p, err);
}

void drps_people_destroy(struct drps_people *p)
{
    for (int f = 0; f < DRPS_FIELDS; f++)
        drps_rowset_destroy(&p->of[f]);
}

/* ---- Lists of names ---- */

/* Names that wait to be looked up, with where they stand. */
struct batch {
    struct drps_keyrows keys;
    char text[TEXT_BYTES]; /* the names, a zero byte after each, for messages */
    size_t used;
    size_t starts[BATCH];
    uint64_t lines[BATCH]; /* 0: of no file */
};

struct choice {
    struct drps_people *p;
    unsigned field;
    const char *file;
    struct drps_rowset *named;
    struct batch *batch;
};

static int unknown_name(const struct choice *c, size_t i, struct drps_err *err)
{
    const char *what = c->field == DRPS_FIELD_USER ? "user" : "item";
    const char *name = c->batch->text + c->batch->starts[i];
    const unsigned long long line = c->batch->lines[i];
    if (!line)
        return drps_err_set(err, DRPS_E_NOT_FOUND,
                            "%s has no %s '%s'; unknown names can be skipped", c->p->model, what,
                            name);
    return drps_err_set(err, DRPS_E_NOT_FOUND,
                        "%s:%llu: %s has no %s '%s'; unknown names can be skipped",
                        drps_lines_name(c->file), line, c->p->model, what, name);
}

static int look_up(struct choice *c, struct drps_err *err)
{
    struct batch *b = c->batch;
    int rc = drps_keyrows_find(&b->keys, c->p->md, err);
    for (size_t i = 0; rc == 0 && i < b->keys.n; i++) {
        const uint32_t row = b->keys.rows[i];
        if (row != DRPS_NO_ROW && row < c->named->rows)
            drps_rowset_add(c->named, row);
        else if (c->p->skip_unknown)
            c->p->unknown++;
        else
            rc = unknown_name(c, i, err);
    }
    b->keys.n = b->used = 0;
    return rc;
}

static int take(struct choice *c, const char *name, size_t n, uint64_t line, struct drps_err *err)
{
    struct batch *b = c->batch;
    uint64_t key;
    uint32_t check;
    int rc = 0;
    if (n + 1 > TEXT_BYTES)
        return drps_err_set(err, DRPS_E_FORMAT, "a name of %zu bytes is too long", n);
    if (b->keys.n == BATCH || n + 1 > TEXT_BYTES - b->used) rc = look_up(c, err);
    if (rc < 0) return rc;
    drps_name_hash(c->field, name, n, drps_modeldir_info(c->p->md)->hash_seed, &key, &check);
    b->starts[b->keys.n] = b->used;
    b->lines[b->keys.n] = line;
    memcpy(b->text + b->used, name, n);
    b->text[b->used + n] = '\0';
    b->used += n + 1;
    drps_keyrows_add(&b->keys, key);
    return 0;
}

static int take_line(void *ctx, const struct drps_line *line, struct drps_err *err)
{
    return take(ctx, line->text, line->n, line->number, err);
}

static int take_list(struct choice *c, const struct drps_name_list *list, struct drps_err *err)
{
    int rc = drps_keyrows_init(&c->batch->keys, BATCH, err);
    for (size_t i = 0; rc == 0 && i < list->n; i++)
        rc = take(c, list->names[i], strlen(list->names[i]), 0, err);
    if (rc == 0 && list->n) rc = look_up(c, err);
    if (rc == 0 && list->file) rc = drps_lines_read(c->p->io, list->file, take_line, c, err);
    return rc == 0 ? look_up(c, err) : rc;
}

/* Rows stay in the set where being named is `keep`. */
static void restrict_to(struct drps_rowset *set, const struct drps_rowset *named, int keep)
{
    for (uint64_t r = drps_rowset_next(set, 0); r < set->rows; r = drps_rowset_next(set, r + 1))
        if (drps_rowset_has(named, r) != keep) drps_rowset_remove(set, r);
}

int drps_people_choose(struct drps_people *p, struct drps_rowset *set, unsigned field,
                       const struct drps_name_list *list, int keep, struct drps_err *err)
{
    struct drps_rowset named = {.words = NULL};
    struct choice c = {.p = p, .field = field, .file = list->file, .named = &named};
    if (!list->n && !list->file) return 0;
    c.batch = calloc(1, sizeof(*c.batch));
    int rc = c.batch && drps_rowset_init(&named, set->rows)
                 ? take_list(&c, list, err)
                 : drps_err_set(err, -ENOMEM, "no memory for a list of names");
    if (rc == 0) restrict_to(set, &named, keep);
    if (c.batch) drps_keyrows_destroy(&c.batch->keys);
    free(c.batch);
    drps_rowset_destroy(&named);
    return rc;
}
