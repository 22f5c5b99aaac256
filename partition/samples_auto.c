/*
 * Co-placement of samples: a range of min-hashes a machine to start with, then restreaming: four
 * times, every sample leaves its machine and joins the one with the best score
 *
 *   sum over its features f of c_f,i / n_f / (1 + n_f B / N)  -  0.6 weight_i / cap
 *
 * of those that have room; n_f samples have the feature, c_f,i of them on machine i, N / B is the
 * number of batches. Only features of 2 <= n_f <= N / 20 count: rarer ones bring nothing together,
 * commoner ones are everywhere. c / n, and not c / (c + 1): a feature's row can be at home on one
 * machine only, so that it is the largest share that saves; one of many batches is worth little.
 * Source: the project's own; restreaming as in Nishimura, Ugander, KDD 2013, with the penalty of
 * full machines of Stanton, Kliot, KDD 2012.
 */
#include "partition/samples.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"
#include "partition/order.h"

enum { PASSES = 4, LEAST_SAMPLES = 2, MOST_SHARE = 20 };

#define FULLNESS 0.6

/* Samples of one feature on one machine. */
struct held {
    uint32_t machine, samples;
};

struct state {
    const struct drps_sample_set *set;
    const struct drps_samples_options *o;
    uint32_t *samples; /* own [R]: n_f; 0 where it does not count */
    size_t *starts;    /* own [R + 1]: room of a feature in held: min(n_f, W) */
    uint32_t *used;    /* own [R]: entries of a feature in held */
    struct held *held; /* own */
    uint64_t *weight;  /* own [W] */
    double *score;     /* own [W] */
    uint64_t cap;
};

static void state_free(struct state *st)
{
    free(st->samples);
    free(st->starts);
    free(st->used);
    free(st->held);
    free(st->weight);
    free(st->score);
}

/* n_f of every feature that counts. */
static void count_features(const struct drps_sample_set *set, uint32_t *samples)
{
    for (size_t i = 0; i < set->starts[set->n]; i++)
        samples[set->features[i]]++;
    for (uint32_t f = 0; f < set->features_n; f++)
        if (samples[f] < LEAST_SAMPLES || samples[f] > set->n / MOST_SHARE) samples[f] = 0;
}

static int state_init(struct state *st, const struct drps_sample_set *set,
                      const struct drps_samples_options *o)
{
    *st = (struct state){.set = set, .o = o, .cap = samples_weight_max(set, o)};
    st->samples = calloc((size_t)set->features_n + 1, sizeof(*st->samples));
    st->starts = calloc((size_t)set->features_n + 1, sizeof(*st->starts));
    st->used = calloc((size_t)set->features_n + 1, sizeof(*st->used));
    st->weight = calloc(o->machines, sizeof(*st->weight));
    st->score = calloc(o->machines, sizeof(*st->score));
    if (!st->samples || !st->starts || !st->used || !st->weight || !st->score) return -ENOMEM;
    count_features(set, st->samples);
    for (uint32_t f = 0; f < set->features_n; f++) {
        uint32_t n = st->samples[f];
        st->starts[f + 1] = st->starts[f] + (n < o->machines ? n : o->machines);
    }
    st->held = drps_array_new(st->starts[set->features_n], sizeof(*st->held));
    return st->held ? 0 : -ENOMEM;
}

static void add(struct state *st, size_t s, uint32_t machine)
{
    st->weight[machine] += sample_weight(st->set, st->o, s);
    for (size_t i = st->set->starts[s]; i < st->set->starts[s + 1]; i++) {
        uint32_t f = st->set->features[i], k = 0;
        if (st->samples[f] == 0) continue;
        struct held *held = st->held + st->starts[f];
        while (k < st->used[f] && held[k].machine != machine)
            k++;
        if (k == st->used[f]) held[st->used[f]++] = (struct held){machine, 0};
        held[k].samples++;
    }
}

/* The opposite of add(). */
static void drop(struct state *st, size_t s, uint32_t machine)
{
    st->weight[machine] -= sample_weight(st->set, st->o, s);
    for (size_t i = st->set->starts[s]; i < st->set->starts[s + 1]; i++) {
        uint32_t f = st->set->features[i], k = 0;
        if (st->samples[f] == 0) continue;
        struct held *held = st->held + st->starts[f];
        while (held[k].machine != machine)
            k++;
        if (--held[k].samples == 0) held[k] = held[--st->used[f]];
    }
}

static void add_scores(struct state *st, size_t s)
{
    double batch_share = (double)st->o->batch_size / (double)st->set->n;
    for (size_t i = st->set->starts[s]; i < st->set->starts[s + 1]; i++) {
        uint32_t f = st->set->features[i];
        const struct held *held = st->held + st->starts[f];
        double n = st->samples[f], worth = 1 / (n * (1 + batch_share * n));
        for (uint32_t k = 0; k < st->used[f]; k++)
            st->score[held[k].machine] += worth * held[k].samples;
    }
}

/* The machine with the best score that has room. `home` always has: the sample was there. */
static uint32_t best_machine(struct state *st, size_t s, uint32_t home)
{
    uint64_t weight = sample_weight(st->set, st->o, s);
    uint32_t best = home;
    for (uint32_t m = 0; m < st->o->machines; m++)
        st->score[m] = -FULLNESS * (double)st->weight[m] / (double)st->cap;
    add_scores(st, s);
    for (uint32_t m = 0; m < st->o->machines; m++)
        if (st->weight[m] + weight <= st->cap && st->score[m] > st->score[best]) best = m;
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
        key[s] = UINT64_MAX;
        for (size_t i = st->set->starts[s]; i < st->set->starts[s + 1]; i++) {
            uint64_t hash = drps_rng_at(st->o->seed, st->set->features[i]);
            if (st->samples[st->set->features[i]] && hash < key[s]) key[s] = hash;
        }
    }
    int rc = samples_cut(st->set, st->o, key, owner);
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

int samples_auto(const struct drps_sample_set *set, const struct drps_samples_options *o,
                 uint32_t *owner, struct drps_err *err)
{
    struct state st;
    uint64_t together = 0, dealt = 0;
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
    rc = samples_hash(set, o, random, err);
    if (rc == 0) rc = remote_rows(set, o, random, &dealt, err);
    if (rc == 0 && together >= dealt)
        for (size_t s = 0; s < set->n; s++)
            owner[s] = random[s];
    free(random);
    return rc;
}
