/*
 * Placed ids. With several generations the runs are merged twice: once for the order of the rows,
 * once beside the placed ids that follow from them. A single generation is placed from its table.
 */
#include <errno.h>

#include "base/drps_alloc.h"
#include "base/drps_extsort.h"
#include "index/dictionary/dict_base.h"
#include "index/dictionary/drps_scatter.h"
#include "index/plan/drps_names.h"

/* ---- From runs ---- */

struct placing {
    struct dict *d;
    struct dict_base *base;        /* borrowed; NULL: there is no earlier plan */
    struct drps_extsort *by_order; /* order key -> number of the key in key order */
    struct scatter by_key;         /* number of the key -> placed id */
};

/* Finds the place of the key with this number in the order of rows, unless it has a row already. */
static int order_one(struct placing *p, const struct dict_key *k, uint64_t number,
                     uint64_t rows_out[2], struct drps_err *err)
{
    uint32_t row;
    int rc = drps_dict_base_row(p->base, k->key, &row, err);
    if (rc < 0) return rc;
    if (row != DRPS_NO_ROW) return drps_scatter_put(&p->by_key, number, row, err);
    if (!k->count) return 0;
    /* Ties by key: keys come in their order, which the sort keeps. */
    const struct drps_sort_record r = {.hi = drps_dict_order(&p->d->options, k),
                                       .a = (uint32_t)number};
    rows_out[drps_dict_order_table(r.hi)]++;
    return drps_extsort_add(p->by_order, &r, err);
}

static int collect_order(struct placing *p, uint64_t rows_out[2], struct drps_err *err)
{
    struct dict_walk *w;
    struct dict_key k;
    uint64_t number = 0;
    int rc = drps_dict_walk_open(p->d, 0, &w, err);
    while (rc == 0 && (rc = drps_dict_walk_next(w, &k, err)) > 0)
        rc = order_one(p, &k, number++, rows_out, err);
    drps_dict_walk_close(w);
    return rc;
}

static int number_rows(struct placing *p, uint32_t first_row, struct drps_err *err)
{
    const struct drps_sort_record *r;
    uint64_t placed = first_row;
    int rc = drps_extsort_finish(p->by_order, err);
    while (rc == 0 && (rc = drps_extsort_next(p->by_order, &r, err)) > 0) {
        if (placed >= DRPS_NO_ROW) return drps_dict_too_many_rows(err);
        rc = drps_scatter_put(&p->by_key, r->a, (uint32_t)placed++, err);
    }
    return rc;
}

/* Walk the keys once more beside their placed ids, which makes the final dictionary and the placed
 * ids by provisional id. */
static int write_names(struct placing *p, uint64_t memory_bytes, const char *plan_dir,
                       struct drps_err *err)
{
    struct dict_walk *w = NULL;
    struct dict_names *names = NULL;
    struct dict_key k;
    uint32_t row;
    int rc = drps_scatter_finish(&p->by_key, err);

    if (rc == 0) rc = drps_dict_names_open(p->d, p->base, plan_dir, &names, err);
    if (rc == 0) rc = drps_dict_walk_open(p->d, memory_bytes, &w, err);
    while (rc == 0 && (rc = drps_dict_walk_next(w, &k, err)) > 0) {
        rc = drps_scatter_next(&p->by_key, &row, err);
        const struct drps_names_entry name = {
            .key = k.key, .row = row, .field = k.field, .text = k.text, .bytes = k.bytes};
        if (rc == 0 && row != DRPS_NO_ROW) rc = drps_dict_names_add(names, &name, err);
        if (rc == 0) rc = drps_dict_walk_put(w, row, err);
    }
    if (rc == 0) rc = drps_dict_names_finish(names, err);
    if (rc == 0) rc = drps_dict_walk_finish(w, err);
    drps_dict_names_close(names);
    drps_dict_walk_close(w);
    return rc;
}

static int place_runs(struct dict *d, struct dict_base *base, const char *plan_dir,
                      uint32_t first_row, uint64_t rows_out[2], struct drps_err *err)
{
    struct placing p = {.d = d, .base = base};
    const uint64_t share = d->options.memory_bytes / 3 + 1;

    int rc = drps_extsort_open(d->io, d->dir, "place", share, &p.by_order, err);
    if (rc == 0)
        rc = drps_scatter_open(d->io, d->dir, "key", drps_dict_base(d, drps_dict_generations(d)),
                               share, &p.by_key, err);
    if (rc == 0) rc = collect_order(&p, rows_out, err);
    if (rc == 0) rc = number_rows(&p, first_row, err);
    drps_extsort_close(p.by_order);
    if (rc == 0) rc = write_names(&p, share, plan_dir, err);
    drps_scatter_close(&p.by_key);
    return rc;
}

/* ---- A single generation ---- */

/* Give names of the base their rows, and list the order keys of all others that training touches,
 * by name: *n_out of them. */
static int list_order(struct dict *d, struct dict_base *base, struct dict_keyed *order,
                      size_t *n_out, uint64_t rows_out[2], struct drps_err *err)
{
    const size_t n = d->keys.n;
    *n_out = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + DICT_AHEAD < n)
            __builtin_prefetch(&d->keys.entries[d->sorted[i + DICT_AHEAD].number]);
        const uint32_t number = d->sorted[i].number;
        const struct key_entry *e = &d->keys.entries[number];
        int rc = drps_dict_base_row(base, e->key, &d->placed[number], err);
        if (rc < 0) return rc;
        if (!e->count || d->placed[number] != DRPS_NO_ROW) continue;
        struct dict_key k = {.key = e->key, .mask = e->mask, .first = e->first, .count = e->count};
        if (d->options.table_by_field) drps_dict_name_of(d, number, &k);
        order[*n_out] = (struct dict_keyed){drps_dict_order(&d->options, &k), number};
        rows_out[drps_dict_order_table(order[(*n_out)++].key)]++;
    }
    return 0;
}

static int map_table(struct dict *d, struct dict_base *base, uint32_t first_row,
                     uint64_t rows_out[2], struct drps_err *err)
{
    const size_t n = d->keys.n;
    struct dict_keyed *order = drps_pages_new(n * sizeof(*order));
    struct dict_keyed *aux = drps_pages_new(n * sizeof(*aux));
    size_t rows = 0;
    d->placed = drps_pages_new(n * sizeof(*d->placed));
    d->placed_n = n;
    int rc = order && aux && d->placed ? list_order(d, base, order, &rows, rows_out, err)
                                       : drps_err_set(err, -ENOMEM, "no memory for placing");
    if (rc == 0 && rows > DRPS_NO_ROW - first_row) rc = drps_dict_too_many_rows(err);
    if (rc == 0) drps_dict_sort_keys(order, aux, rows); /* ties stay in the order of keys */
    for (size_t i = 0; i < rows && rc == 0; i++)
        d->placed[order[i].number] = first_row + (uint32_t)i;
    drps_pages_free(order, n * sizeof(*order));
    drps_pages_free(aux, n * sizeof(*aux));
    return rc;
}

static int write_table_names(struct dict *d, struct dict_base *base, const char *plan_dir,
                             struct drps_err *err)
{
    const size_t n = d->keys.n;
    struct dict_names *w = NULL;
    int rc = drps_dict_names_open(d, base, plan_dir, &w, err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (i + DICT_AHEAD < n) __builtin_prefetch(&d->placed[d->sorted[i + DICT_AHEAD].number]);
        const uint32_t number = d->sorted[i].number;
        struct dict_key k = {.key = d->sorted[i].key};
        if (d->placed[number] == DRPS_NO_ROW) continue;
        drps_dict_name_of(d, number, &k);
        const struct drps_names_entry name = {.key = k.key,
                                              .row = d->placed[number],
                                              .field = k.field,
                                              .text = k.text,
                                              .bytes = k.bytes};
        rc = drps_dict_names_add(w, &name, err);
    }
    if (rc == 0) rc = drps_dict_names_finish(w, err);
    drps_dict_names_close(w);
    return rc;
}

/* Place as place_runs() does, from the table. What it takes beside the table's half of the run's
 * memory, 36 bytes a key, is less than what reading has given back. */
static int place_table(struct dict *d, struct dict_base *base, const char *plan_dir,
                       uint32_t first_row, uint64_t rows_out[2], struct drps_err *err)
{
    int rc = map_table(d, base, first_row, rows_out, err);
    return rc < 0 ? rc : write_table_names(d, base, plan_dir, err);
}

/* ---- Either ---- */

int drps_dict_place(struct dict *d, const char *plan_dir, uint32_t first_row, uint64_t rows_out[2],
                    struct drps_err *err)
{
    struct dict_base *base = NULL;
    rows_out[0] = rows_out[1] = 0;
    int rc = drps_dict_seal(d, err);
    if (rc == 0) rc = drps_dict_base_open(d, &base, err);
    if (rc == 0)
        rc = d->sorted ? place_table(d, base, plan_dir, first_row, rows_out, err)
                       : place_runs(d, base, plan_dir, first_row, rows_out, err);
    drps_dict_base_close(base);
    drps_dict_free_table(d);
    return rc;
}
