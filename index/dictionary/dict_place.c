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

/* Order keys that lie together: those of one bucket are all below those of the next. */
enum { BUCKETS = 256 * 16 };

/* What places from the table. Names are gone through twice: once to count those of each bucket,
 * once to put them there. So buckets alone are sorted, in little memory. */
struct table {
    struct dict *d;
    struct dict_base *base;   /* borrowed; NULL: there is no earlier plan */
    struct dict_keyed *order; /* [n] own: order keys of names that have no row yet, by bucket, there
                                 by name */
    size_t end[BUCKETS], n;   /* behind those of each bucket that are there; all */
};

/* The first byte of the key, and the highest bit of the next two: of rows that one segment of the
 * epoch uses, which segment. */
static unsigned bucket_of(uint64_t order)
{
    const unsigned next = (unsigned)(order >> 40 & 0xffff);
    return (unsigned)(order >> 56) << 4 | (31 - (unsigned)__builtin_clz(next | 1));
}

static uint64_t order_of(const struct table *t, const struct dict_keyed *at)
{
    const struct dict *d = t->d;
    const struct key_count *c = key_table_count(&d->keys, at->id);
    struct dict_key k = {
        .key = at->key, .mask = c->mask, .first = key_count_first(c), .count = c->uses};
    if (d->options.table_by_field) drps_dict_name_of(d, at->id, &k);
    return drps_dict_order(&d->options, &k);
}

/* Whether training touches a name that the base has no row for. */
static int is_new(const struct dict *d, uint32_t id)
{
    return key_table_count(&d->keys, id)->uses && d->placed[id] == DRPS_NO_ROW;
}

/* Give the names of the base their rows, and count all others that training touches. */
static int count_buckets(struct table *t, uint64_t rows_out[2], struct drps_err *err)
{
    struct dict *d = t->d;
    struct dict_cursor next = {0};
    struct dict_keyed at;
    int rc = 0;
    while (rc == 0 && drps_dict_next(d, &next, &at)) {
        rc = drps_dict_base_row(t->base, at.key, &d->placed[at.id], err);
        if (rc < 0 || !is_new(d, at.id)) continue;
        const uint64_t order = order_of(t, &at);
        t->end[bucket_of(order)]++;
        rows_out[drps_dict_order_table(order)]++;
        t->n++;
    }
    return rc;
}

/* Puts the names into their buckets. Returns how many the largest one has. */
static size_t fill_buckets(struct table *t)
{
    struct dict_cursor next = {0};
    struct dict_keyed at;
    size_t begin = 0, most = 0;
    for (size_t b = 0; b < BUCKETS; b++) {
        const size_t n = t->end[b];
        t->end[b] = begin;
        begin += n;
        if (n > most) most = n;
    }
    while (drps_dict_next(t->d, &next, &at)) {
        if (!is_new(t->d, at.id)) continue;
        const uint64_t order = order_of(t, &at);
        t->order[t->end[bucket_of(order)]++] = (struct dict_keyed){order, at.id};
    }
    return most;
}

/* Names with the same order key stay in the order of their keys. */
static int sort_buckets(struct table *t, size_t most, struct drps_err *err)
{
    struct dict_keyed *aux = drps_pages_new(most * sizeof(*aux));
    if (!aux) return drps_err_set(err, -ENOMEM, "no memory for placing");
    for (size_t b = 0, begin = 0; b < BUCKETS; begin = t->end[b++])
        if (t->end[b] - begin > 1) drps_dict_sort_keys(t->order + begin, aux, t->end[b] - begin);
    drps_pages_free(aux, most * sizeof(*aux));
    return 0;
}

static int map_table(struct table *t, uint32_t first_row, uint64_t rows_out[2],
                     struct drps_err *err)
{
    struct dict *d = t->d;
    d->placed_n = (size_t)key_table_end(&d->keys);
    d->placed = drps_pages_new(d->placed_n * sizeof(*d->placed));
    int rc = d->placed ? count_buckets(t, rows_out, err)
                       : drps_err_set(err, -ENOMEM, "no memory for placing");
    if (rc == 0 && t->n > DRPS_NO_ROW - first_row) rc = drps_dict_too_many_rows(err);
    if (rc < 0) return rc;
    t->order = drps_pages_new(t->n * sizeof(*t->order));
    if (!t->order) return drps_err_set(err, -ENOMEM, "no memory for placing");
    rc = sort_buckets(t, fill_buckets(t), err);
    for (size_t i = 0; i < t->n && rc == 0; i++)
        d->placed[t->order[i].id] = first_row + (uint32_t)i;
    drps_pages_free(t->order, t->n * sizeof(*t->order));
    return rc;
}

static int write_table_names(const struct table *t, const char *plan_dir, struct drps_err *err)
{
    struct dict *d = t->d;
    struct dict_names *w = NULL;
    struct dict_cursor next = {0};
    struct dict_keyed at;
    int rc = drps_dict_names_open(d, t->base, plan_dir, &w, err);
    while (rc == 0 && drps_dict_next(d, &next, &at)) {
        struct dict_key k = {.key = at.key};
        if (d->placed[at.id] == DRPS_NO_ROW) continue;
        drps_dict_name_of(d, at.id, &k);
        const struct drps_names_entry name = {.key = k.key,
                                              .row = d->placed[at.id],
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
 * memory, up to 44 bytes for each of no more keys than the table has room for, is less than what
 * reading has given back. */
static int place_table(struct dict *d, struct dict_base *base, const char *plan_dir,
                       uint32_t first_row, uint64_t rows_out[2], struct drps_err *err)
{
    struct table t = {.d = d, .base = base};
    int rc = map_table(&t, first_row, rows_out, err);
    return rc < 0 ? rc : write_table_names(&t, plan_dir, err);
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
