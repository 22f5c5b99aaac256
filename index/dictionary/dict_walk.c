/* Walks over all keys in their order, in the table of the only generation or through the merged
 * runs of several, and rows that go to the keys' provisional ids. */
#include "index/dictionary/drps_dict_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_endian.h"
#include "index/dictionary/dict_runs.h"
#include "index/dictionary/drps_scatter.h"
#include "index/plan/drps_names.h"

_Static_assert(SCATTER_NONE == DRPS_NO_ROW, "a key without a number has no row");

struct dict_walk {
    struct dict *d;          /* borrowed */
    struct dict_cursor next; /* of the table */
    struct dict_keyed last;  /* that was given of it */
    struct dict_merge runs;  /* own; of several generations */
    struct dict_merged at;   /* with own ids */
    int stepped;             /* 0: the runs are still at the key that was given */
    struct scatter by_id;    /* own: provisional id -> row, of several generations */
};

const struct dict_options *drps_dict_options(const struct dict *d)
{
    return &d->options;
}

uint64_t drps_dict_keys(const struct dict *d)
{
    const uint64_t end = key_table_small_end(&d->keys);
    uint64_t keys = d->keys.n;
    for (uint64_t key = 0; key < end; key++)
        keys += key_count_is_there(&d->keys.small[key]) != 0;
    return keys;
}

/* The only generation stays in the table, unless it has more small keys than placing has memory
 * for. */
int drps_dict_seal(struct dict *d, struct drps_err *err)
{
    int rc;
    if (d->sealed) return 0;
    d->sealed = 1;
    if (d->bases_n == 1 && drps_dict_keys(d) <= d->keys.max) {
        const uint32_t end = dict_next_id(d);
        rc = drps_dict_sort_table(d, err);
        return rc < 0 ? rc : drps_dict_push_base(d, end, err);
    }
    rc = drps_dict_end_generation(d, err);
    drps_dict_free_table(d);
    return rc;
}

void drps_dict_keep_keys(struct dict *d)
{
    drps_key_table_close_entries(&d->keys);
    drps_dict_free_names(d);
}

/* ---- The table ---- */

void drps_dict_name_of(const struct dict *d, uint32_t id, struct dict_key *k)
{
    uint16_t field;
    if (!d->options.strings) return;
    const char *name = d->arena + d->name_at[id];
    memcpy(&field, name, sizeof(field));
    k->field = field;
    k->bytes = drps_get_u32(name + 2);
    k->text = name + DICT_NAME_HEAD;
}

static int next_of_table(struct dict_walk *w, struct dict_key *out)
{
    const struct dict *d = w->d;
    if (!drps_dict_next(d, &w->next, &w->last)) return 0;
    *out = (struct dict_key){.key = w->last.key};
    if (!d->keys.entries) return 1;
    const struct key_count *c = key_table_count(&d->keys, w->last.id);
    out->mask = c->mask;
    out->first = key_count_first(c);
    out->count = c->uses;
    out->check = d->keys.checks ? d->keys.checks[w->last.id] : 0;
    drps_dict_name_of(d, w->last.id, out);
    return 1;
}

/* ---- Runs ---- */

static int open_runs(struct dict_walk *w, uint64_t memory_bytes, struct drps_err *err)
{
    struct dict *d = w->d;
    const size_t generations = drps_dict_generations(d);
    w->at.ids = drps_array_new(generations + 1, sizeof(*w->at.ids));
    int rc = w->at.ids ? drps_dict_merge_open(d, &w->runs, err)
                       : drps_err_set(err, -ENOMEM, "no memory for placing");
    if (rc == 0 && memory_bytes)
        rc = drps_scatter_open(d->io, d->dir, "id", drps_dict_base(d, generations), memory_bytes,
                               &w->by_id, err);
    return rc;
}

static int next_of_runs(struct dict_walk *w, struct dict_key *out, struct drps_err *err)
{
    int rc = w->stepped ? 0 : drps_dict_merge_skip(&w->runs, &w->at, err);
    w->stepped = 0;
    if (rc == 0) rc = drps_dict_merge_next(&w->runs, &w->at, err);
    if (rc > 0) *out = w->at.k;
    return rc;
}

static int write_map(struct dict_walk *w, struct drps_err *err)
{
    enum { PART = 1 << 16 };
    struct dict *d = w->d;
    const uint64_t ids = drps_dict_base(d, drps_dict_generations(d));
    uint32_t *part = drps_array_new(PART, sizeof(*part));
    int rc = part ? drps_scatter_finish(&w->by_id, err)
                  : drps_err_set(err, -ENOMEM, "no memory for placing");

    if (rc == 0 && asprintf(&d->map_path, "%s/map", d->dir) < 0) {
        d->map_path = NULL;
        rc = drps_err_set(err, -ENOMEM, "no memory for placing");
    }
    if (rc == 0) rc = drps_io_open(d->io, d->map_path, O_RDWR | O_CREAT | O_TRUNC, &d->map_fd, err);
    for (uint64_t done = 0, n; rc == 0 && done < ids; done += n) {
        n = ids - done < PART ? ids - done : PART;
        for (uint64_t i = 0; rc == 0 && i < n; i++)
            rc = drps_scatter_next(&w->by_id, &part[i], err);
        if (rc == 0)
            rc = drps_io_write_at(d->io, d->map_fd, part, n * sizeof(*part), done * sizeof(*part),
                                  d->map_path, err);
    }
    free(part);
    return rc;
}

/* ---- Either ---- */

int drps_dict_walk_open(struct dict *d, uint64_t memory_bytes, struct dict_walk **w_out,
                        struct drps_err *err)
{
    struct dict_walk *w = *w_out = calloc(1, sizeof(*w));
    int rc = 0;
    if (!w) return drps_err_set(err, -ENOMEM, "no memory for placing");
    w->d = d;
    w->stepped = 1;
    if (!d->sorted) {
        rc = open_runs(w, memory_bytes, err);
    } else if (memory_bytes && !d->placed) {
        d->placed_n = (size_t)key_table_end(&d->keys);
        d->placed = drps_pages_new(d->placed_n * sizeof(*d->placed));
        if (!d->placed) rc = drps_err_set(err, -ENOMEM, "no memory for placing");
    }
    if (rc == 0) return 0;
    drps_dict_walk_close(w);
    *w_out = NULL;
    return rc;
}

int drps_dict_walk_next(struct dict_walk *w, struct dict_key *out, struct drps_err *err)
{
    return w->d->sorted ? next_of_table(w, out) : next_of_runs(w, out, err);
}

int drps_dict_walk_put(struct dict_walk *w, uint32_t row, struct drps_err *err)
{
    struct dict *d = w->d;
    int rc = 0;
    if (d->sorted) d->placed[w->last.id] = row;
    for (size_t i = 0; !d->sorted && rc == 0 && i < w->at.ids_n; i++)
        rc = drps_scatter_put(&w->by_id, w->at.ids[i], row, err);
    return rc;
}

int drps_dict_walk_finish(struct dict_walk *w, struct drps_err *err)
{
    return w->d->sorted ? 0 : write_map(w, err);
}

void drps_dict_walk_close(struct dict_walk *w)
{
    if (!w) return;
    drps_dict_merge_close(&w->runs);
    drps_scatter_close(&w->by_id);
    free(w->at.ids);
    free(w);
}
