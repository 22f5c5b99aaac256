/*
 * Placed ids. With several generations the runs are merged twice: once for the order of the rows,
 * once beside the placed ids that follow from them. A single generation is placed from its table.
 */
#include "index/dictionary/dict_runs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_endian.h"
#include "base/drps_extsort.h"
#include "index/dictionary/dict_base.h"
#include "index/dictionary/scatter.h"
#include "index/order/drps_grid.h"
#include "index/plan/drps_algorithm.h"
#include "index/plan/drps_names.h"

_Static_assert(SCATTER_NONE == DRPS_NO_ROW, "a key without a number has no row");

enum { AHEAD = 40 };

/* ---- The order ---- */

/*
 * The placed order: table; rows of all segments first, by falling count; then by falling number of
 * segments, equal patterns together, by first use, by falling count. Ties by key. So a page of rows
 * is in use in few stretches of the epoch, and rows of one batch alone lie together.
 */
static uint64_t order_key(unsigned table, uint32_t mask, uint32_t first, uint32_t count)
{
    enum { COUNT_BITS = 24 };
    const unsigned cold = DICT_SEGMENTS - (unsigned)__builtin_popcount(mask);
    const uint32_t most = (1u << COUNT_BITS) - 1;
    const uint32_t rank = most - (count < most ? count : most);
    const uint32_t middle = cold ? mask << 16 | first : UINT32_MAX - count;
    return (uint64_t)table << 62 | (uint64_t)cold << 56 | (uint64_t)middle << COUNT_BITS | rank;
}

static uint64_t order_key_of(const struct dict *d, unsigned table, uint64_t key, uint32_t mask,
                             uint32_t first, uint32_t count)
{
    if (d->options.by_hash) return (uint64_t)table << 62 | grid_hash(d->options.order_seed, key);
    return order_key(table, mask, first, count);
}

static unsigned table_of(const struct dict *d, uint64_t key, unsigned field)
{
    if (d->options.table_by_key) return key < DRPS_SAMPLE_KEYS ? 1 : 0;
    return d->options.table_by_field && field ? 1 : 0;
}

static int too_many_rows(struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CONFIG,
                        "more than 4,294,967,294 rows: use a data set with fewer features");
}

/* ---- From runs ---- */

struct placing {
    struct dict *d;
    struct dict_base *base;        /* borrowed; NULL: there is no earlier plan */
    struct drps_extsort *by_order; /* order key -> number of the key in key order */
    struct scatter by_key;         /* number of the key -> placed id */
    struct scatter by_id;          /* provisional id -> placed id */
};

/* Finds the place of the key with this number in the order of rows, unless it has a row already. */
static int order_one(struct placing *p, const struct dict_merged *at, uint64_t number,
                     uint64_t rows_out[2], struct drps_err *err)
{
    const struct dict *d = p->d;
    uint32_t row;
    int rc = drps_dict_base_row(p->base, at->key, &row, err);
    if (rc < 0) return rc;
    if (row != DRPS_NO_ROW) return drps_scatter_put(&p->by_key, number, row, err);
    if (!at->count) return 0;
    /* Ties by key: keys come in their order, which the sort keeps. */
    const unsigned table = table_of(d, at->key, at->field);
    const struct drps_sort_record r = {
        .hi = order_key_of(d, table, at->key, at->mask, at->first, at->count),
        .a = (uint32_t)number};
    rows_out[table]++;
    return drps_extsort_add(p->by_order, &r, err);
}

static int collect_order(struct placing *p, uint64_t rows_out[2], struct drps_err *err)
{
    struct dict_merge m = {0};
    struct dict_merged at = {.ids =
                                 drps_array_new(drps_dict_generations(p->d) + 1, sizeof(uint32_t))};
    uint64_t number = 0;
    int rc = at.ids ? drps_dict_merge_open(p->d, &m, err)
                    : drps_err_set(err, -ENOMEM, "no memory for placing");

    while (rc == 0 && (rc = drps_dict_merge_next(&m, &at, err)) > 0) {
        rc = order_one(p, &at, number++, rows_out, err);
        if (rc == 0) rc = drps_dict_merge_skip(&m, &at, err);
    }
    drps_dict_merge_close(&m);
    free(at.ids);
    return rc;
}

static int number_rows(struct placing *p, uint32_t first_row, struct drps_err *err)
{
    const struct drps_sort_record *r;
    uint64_t placed = first_row;
    int rc = drps_extsort_finish(p->by_order, err);
    while (rc == 0 && (rc = drps_extsort_next(p->by_order, &r, err)) > 0) {
        if (placed >= DRPS_NO_ROW) return too_many_rows(err);
        rc = drps_scatter_put(&p->by_key, r->a, (uint32_t)placed++, err);
    }
    return rc;
}

/* Walk the keys once more beside their placed ids, which makes the final dictionary and the placed
 * ids by provisional id. */
static int write_names(struct placing *p, const char *plan_dir, struct drps_err *err)
{
    struct dict_merge m = {0};
    struct dict_names *w = NULL;
    struct dict_merged at = {.ids =
                                 drps_array_new(drps_dict_generations(p->d) + 1, sizeof(uint32_t))};
    uint32_t row;
    int rc = at.ids ? drps_scatter_finish(&p->by_key, err)
                    : drps_err_set(err, -ENOMEM, "no memory for placing");

    if (rc == 0) rc = drps_dict_names_open(p->d, p->base, plan_dir, &w, err);
    if (rc == 0) rc = drps_dict_merge_open(p->d, &m, err);
    while (rc == 0 && (rc = drps_dict_merge_next(&m, &at, err)) > 0) {
        rc = drps_scatter_next(&p->by_key, &row, err);
        const struct drps_names_entry name = {
            .key = at.key, .row = row, .field = at.field, .text = at.text, .bytes = at.bytes};
        if (rc == 0 && row != DRPS_NO_ROW) rc = drps_dict_names_add(w, &name, err);
        for (size_t i = 0; rc == 0 && i < at.ids_n; i++)
            rc = drps_scatter_put(&p->by_id, at.ids[i], row, err);
        if (rc == 0) rc = drps_dict_merge_skip(&m, &at, err);
    }
    if (rc == 0) rc = drps_dict_names_finish(w, err);
    drps_dict_names_close(w);
    drps_dict_merge_close(&m);
    free(at.ids);
    return rc;
}

static int write_map(struct placing *p, struct drps_err *err)
{
    enum { PART = 1 << 16 };
    struct dict *d = p->d;
    uint32_t *part = drps_array_new(PART, sizeof(*part));
    int rc = part ? drps_scatter_finish(&p->by_id, err)
                  : drps_err_set(err, -ENOMEM, "no memory for placing");

    if (rc == 0 && asprintf(&d->map_path, "%s/map", d->dir) < 0) {
        d->map_path = NULL;
        rc = drps_err_set(err, -ENOMEM, "no memory for placing");
    }
    if (rc == 0) rc = drps_io_open(d->io, d->map_path, O_RDWR | O_CREAT | O_TRUNC, &d->map_fd, err);
    for (uint64_t done = 0, n; rc == 0 && done < drps_dict_base(d, drps_dict_generations(d));
         done += n) {
        n = drps_dict_base(d, drps_dict_generations(d)) - done < PART
                ? drps_dict_base(d, drps_dict_generations(d)) - done
                : PART;
        for (uint64_t i = 0; rc == 0 && i < n; i++)
            rc = drps_scatter_next(&p->by_id, &part[i], err);
        if (rc == 0)
            rc = drps_io_write_at(d->io, d->map_fd, part, n * sizeof(*part), done * sizeof(*part),
                                  d->map_path, err);
    }
    free(part);
    return rc;
}

static int place_runs(struct dict *d, struct dict_base *base, const char *plan_dir,
                      uint32_t first_row, uint64_t rows_out[2], struct drps_err *err)
{
    struct placing p = {.d = d, .base = base};
    uint64_t share = d->options.memory_bytes / 3;

    int rc = drps_extsort_open(d->io, d->dir, "place", share, &p.by_order, err);
    if (rc == 0)
        rc = drps_scatter_open(d->io, d->dir, "key", drps_dict_base(d, drps_dict_generations(d)),
                               share, &p.by_key, err);
    if (rc == 0) rc = collect_order(&p, rows_out, err);
    if (rc == 0) rc = number_rows(&p, first_row, err);
    drps_extsort_close(p.by_order);
    if (rc == 0)
        rc = drps_scatter_open(d->io, d->dir, "id", drps_dict_base(d, drps_dict_generations(d)),
                               share, &p.by_id, err);
    if (rc == 0) rc = write_names(&p, plan_dir, err);
    drps_scatter_close(&p.by_key);
    if (rc == 0) rc = write_map(&p, err);
    drps_scatter_close(&p.by_id);
    return rc;
}

/* ---- A single generation ---- */

/* Returns the name of the key with this number, with its row. */
static struct drps_names_entry name_of(const struct dict *d, uint64_t key, uint32_t number)
{
    struct drps_names_entry e = {.key = key, .row = d->placed ? d->placed[number] : DRPS_NO_ROW};
    uint16_t field;
    if (!d->options.strings) return e;
    const char *name = d->arena + d->name_at[number];
    memcpy(&field, name, sizeof(field));
    e.field = field;
    e.bytes = drps_get_u32(name + 2);
    e.text = name + DICT_NAME_HEAD;
    return e;
}

/* Give names of the base their rows, and list the order keys of all others that training touches,
 * by name: *n_out of them. */
static int list_order(struct dict *d, struct dict_base *base, struct dict_keyed *order,
                      size_t *n_out, uint64_t rows_out[2], struct drps_err *err)
{
    const size_t n = d->keys.n;
    *n_out = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + AHEAD < n) __builtin_prefetch(&d->keys.entries[d->sorted[i + AHEAD].number]);
        const uint32_t number = d->sorted[i].number;
        const struct key_entry *e = &d->keys.entries[number];
        int rc = drps_dict_base_row(base, e->key, &d->placed[number], err);
        if (rc < 0) return rc;
        if (!e->count || d->placed[number] != DRPS_NO_ROW) continue;
        const unsigned field = d->options.table_by_field ? name_of(d, e->key, number).field : 0;
        const unsigned table = table_of(d, e->key, field);
        order[(*n_out)++] = (struct dict_keyed){
            order_key_of(d, table, e->key, e->mask, e->first, e->count), number};
        rows_out[table]++;
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
    if (rc == 0 && rows > DRPS_NO_ROW - first_row) rc = too_many_rows(err);
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
        if (i + AHEAD < n) __builtin_prefetch(&d->placed[d->sorted[i + AHEAD].number]);
        const struct drps_names_entry name = name_of(d, d->sorted[i].key, d->sorted[i].number);
        if (name.row != DRPS_NO_ROW) rc = drps_dict_names_add(w, &name, err);
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

/* The only one stays in the table, from where it is placed. */
static int last_generation(struct dict *d, struct drps_err *err)
{
    int rc;
    if (d->bases_n == 1) {
        const uint32_t end = dict_next_id(d);
        rc = drps_dict_sort_table(d, err);
        return rc < 0 ? rc : drps_dict_push_base(d, end, err);
    }
    rc = drps_dict_end_generation(d, err);
    drps_dict_free_table(d);
    return rc;
}

int drps_dict_place(struct dict *d, const char *plan_dir, uint32_t first_row, uint64_t rows_out[2],
                    struct drps_err *err)
{
    struct dict_base *base = NULL;
    rows_out[0] = rows_out[1] = 0;
    int rc = last_generation(d, err);
    if (rc == 0) rc = drps_dict_base_open(d, &base, err);
    if (rc == 0)
        rc = d->sorted ? place_table(d, base, plan_dir, first_row, rows_out, err)
                       : place_runs(d, base, plan_dir, first_row, rows_out, err);
    drps_dict_base_close(base);
    drps_dict_free_table(d);
    return rc;
}
