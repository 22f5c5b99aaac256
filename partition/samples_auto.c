/*
 * Co-placement of samples: a range of min-hashes a machine to start with, then restreaming: four
 * times, every sample leaves its machine and joins the one with the best score (affinity.h), less
 * 0.6 weight_i / cap, of those that have room.
 * Source: the project's own; restreaming as in Nishimura, Ugander, KDD 2013, with the penalty of
 * full machines of Stanton, Kliot, KDD 2012.
 */
#include "partition/samples.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "partition/affinity.h"

enum { PASSES = 4 };

struct state {
    const struct drps_sample_set *set;
    const struct drps_samples_options *o;
    struct affinity affinity; /* own */
    uint64_t *weight;         /* own [W] */
    uint64_t cap;
};

static void state_free(struct state *st)
{
    drps_affinity_free(&st->affinity);
    free(st->weight);
}

static int state_init(struct state *st, const struct drps_sample_set *set,
                      const struct drps_samples_options *o)
{
    *st = (struct state){.set = set, .o = o, .cap = drps_samples_weight_max(set, o)};
    int rc = drps_affinity_begin(&st->affinity, set->features_n, o->machines);
    st->weight = calloc(o->machines, sizeof(*st->weight));
    if (rc < 0 || !st->weight) return -ENOMEM;
    drps_affinity_count(&st->affinity, set->features, set->starts[set->n]);
    return drps_affinity_ready(&st->affinity, set->n, AFFINITY_LEAST_SAMPLES);
}

static const uint32_t *features_of(const struct state *st, size_t s, size_t *n_out)
{
    *n_out = st->set->starts[s + 1] - st->set->starts[s];
    return st->set->features + st->set->starts[s];
}

static void add(struct state *st, size_t s, uint32_t machine)
{
    size_t n;
    const uint32_t *features = features_of(st, s, &n);
    st->weight[machine] += sample_weight(st->set, st->o, s);
    drps_affinity_add(&st->affinity, features, n, machine);
}

/* The opposite of add(). */
static void drop(struct state *st, size_t s, uint32_t machine)
{
    size_t n;
    const uint32_t *features = features_of(st, s, &n);
    st->weight[machine] -= sample_weight(st->set, st->o, s);
    drps_affinity_drop(&st->affinity, features, n, machine);
}

/* The machine with the best score that has room. `home` always has: the sample was there. */
static uint32_t best_machine(struct state *st, size_t s, uint32_t home)
{
    const double batch_share = (double)st->o->batch_size / (double)st->set->n;
    const uint64_t weight = sample_weight(st->set, st->o, s);
    double *score = st->affinity.score;
    uint32_t best = home;
    size_t n;
    const uint32_t *features = features_of(st, s, &n);
    for (uint32_t m = 0; m < st->o->machines; m++)
        score[m] = -SAMPLES_FULLNESS * (double)st->weight[m] / (double)st->cap;
    drps_affinity_add_scores(&st->affinity, features, n, batch_share);
    for (uint32_t m = 0; m < st->o->machines; m++)
        if (st->weight[m] + weight <= st->cap && score[m] > score[best]) best = m;
    return best;
}

static void restream(struct state *st, uint32_t *owner)
{
    for (size_t s = 0; s < st->set->n; s++)
        add(st, s, owner[s]);
    for (int pass = 0; pass < PASSES; pass++) {
        for (size_t s = 0; s < st->set->n; s++) {
            drop(st, s, owner[s]);
            owner[s] = best_machine(st, s, owner[s]);
            add(st, s, owner[s]);
        }
    }
}

static int cut_by_minhash(const struct state *st, uint32_t *owner)
{
    uint64_t *key = drps_array_new(st->set->n, sizeof(*key));
    if (!key) return -ENOMEM;
    for (size_t s = 0; s < st->set->n; s++) {
        size_t n;
        const uint32_t *features = features_of(st, s, &n);
        key[s] = drps_affinity_minhash(&st->affinity, features, n, st->o->seed);
    }
    int rc = drps_samples_cut(st->set, st->o, key, owner);
    free(key);
    return rc;
}

/* The least remote rows that batches of this placement of samples leave to any placement of rows.
 */
static int remote_rows(const struct drps_sample_set *set, const struct drps_samples_options *o,
                       const uint32_t *owner, uint64_t *remote_out, struct drps_err *err)
{
    struct drps_units_maker *maker = NULL;
    struct drps_units units = {0};
    struct drps_unit_costs costs = {.row_bytes = 1};
    uint32_t *first = drps_array_new((size_t)set->features_n + 1, sizeof(*first));
    uint32_t *uses = calloc((size_t)set->features_n + 1, sizeof(*uses));
    int rc = first && uses ? 0 : drps_err_set(err, -ENOMEM, "no memory to compare placements");
    for (size_t f = 0; rc == 0 && f <= set->features_n; f++)
        first[f] = (uint32_t)f; /* one row a unit */
    if (rc == 0)
        rc = drps_units_new(first, set->features_n, uses, 0, &costs, o->machines, &maker, err);
    if (rc == 0)
        rc = drps_samples_batches(set, owner, o->machines, o->batch_size, o->seed, drps_units_add,
                                  maker, err);
    if (rc == 0) rc = drps_units_finish(maker, &units, err);
    if (rc == 0) *remote_out = drps_units_affinity_bound(&units);
    drps_units_destroy(&units);
    drps_units_maker_free(maker);
    free(first);
    free(uses);
    return rc;
}

int drps_samples_auto(const struct drps_sample_set *set, const struct drps_samples_options *o,
                      uint32_t *owner, struct drps_err *err)
{
    struct state st;
    uint64_t together = 0, random_rows = 0;
    int rc = state_init(&st, set, o);
    if (rc == 0) rc = cut_by_minhash(&st, owner);
    if (rc < 0)
        drps_err_set(err, rc, "no memory to place %zu samples of %zu entries together", set->n,
                     set->starts[set->n]);
    if (rc == 0) restream(&st, owner);
    state_free(&st);
    if (rc == 0) rc = remote_rows(set, o, owner, &together, err);
    if (rc < 0) return rc;

    uint32_t *random = drps_array_new(set->n, sizeof(*random));
    if (!random) return drps_err_set(err, -ENOMEM, "no memory to place %zu samples", set->n);
    rc = drps_samples_hash(set, o, random, err);
    if (rc == 0) rc = remote_rows(set, o, random, &random_rows, err);
    if (rc == 0 && together >= random_rows)
        for (size_t s = 0; s < set->n; s++)
            owner[s] = random[s];
    free(random);
    return rc;
}
