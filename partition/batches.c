/* The batches of a placement: every machine's samples, shuffled, cut, their distinct rows. */
#include "partition/drps_partition.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"
#include "partition/order.h"

struct walk {
    const struct drps_sample_set *set;
    struct keyed *order; /* own [2 N], upper half scratch: samples by (machine, random) */
    uint32_t *rows;      /* own [R]: of the batch at hand */
    uint32_t *batch;     /* own [R]: the last batch that touched a feature, from 1 */
    uint32_t batches;
};

static int walk_init(struct walk *w, const struct drps_sample_set *set, const uint32_t *owner,
                     uint64_t seed)
{
    *w = (struct walk){.set = set,
                       .order = drps_array_new(set->n, 2 * sizeof(*w->order)),
                       .rows = drps_array_new(set->features_n, sizeof(*w->rows)),
                       .batch = calloc((size_t)set->features_n + 1, sizeof(*w->batch))};
    if (!w->order || !w->rows || !w->batch) return -ENOMEM;
    for (size_t s = 0; s < set->n; s++)
        w->order[s] =
            (struct keyed){(uint64_t)owner[s] << 32 | drps_rng_at(seed, s) >> 32, (uint32_t)s};
    drps_keyed_sort(w->order, w->order + set->n, set->n);
    return 0;
}

static void walk_free(struct walk *w)
{
    free(w->order);
    free(w->rows);
    free(w->batch);
}

/* Distinct rows of the samples order[from .. to - 1]; returns how many. */
static size_t collect(struct walk *w, size_t from, size_t to)
{
    size_t n = 0;
    w->batches++;
    for (size_t k = from; k < to; k++) {
        size_t s = w->order[k].item;
        for (size_t i = w->set->starts[s]; i < w->set->starts[s + 1]; i++) {
            uint32_t row = w->set->features[i];
            if (w->batch[row] == w->batches) continue;
            w->batch[row] = w->batches;
            w->rows[n++] = row;
        }
    }
    return n;
}

int drps_samples_batches(const struct drps_sample_set *set, const uint32_t *owner,
                         uint32_t machines, uint32_t batch_size, uint64_t seed,
                         drps_batch_visit visit, void *ctx, struct drps_err *err)
{
    struct walk w;
    size_t from = 0;
    int rc = walk_init(&w, set, owner, seed);
    if (rc < 0) drps_err_set(err, rc, "no memory to cut %zu samples into batches", set->n);
    for (uint32_t m = 0; rc == 0 && m < machines; m++) {
        while (rc == 0 && from < set->n && owner[w.order[from].item] == m) {
            size_t to = from + 1;
            while (to < set->n && to - from < batch_size && owner[w.order[to].item] == m)
                to++;
            size_t n = collect(&w, from, to);
            rc = visit(ctx, m, w.rows, n, err);
            from = to;
        }
    }
    walk_free(&w);
    return rc;
}
