/* What the algorithms that place samples share, and the two simple ones: hashed and in ranges. */
#include "partition/samples.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"
#include "partition/order.h"

uint64_t drps_samples_weight_max(const struct drps_sample_set *set,
                                 const struct drps_samples_options *o)
{
    uint64_t all = o->by_entries ? set->starts[set->n] : set->n, heaviest = 0;
    for (size_t s = 0; s < set->n; s++)
        if (sample_weight(set, o, s) > heaviest) heaviest = sample_weight(set, o, s);
    uint64_t even = all / o->machines;
    uint64_t limit = (uint64_t)((double)all / o->machines * (1 + SAMPLES_SLACK));
    return limit > even + heaviest ? limit : even + heaviest;
}

int drps_samples_cut(const struct drps_sample_set *set, const struct drps_samples_options *o,
                     const uint64_t *key, uint32_t *owner)
{
    uint64_t all = o->by_entries ? set->starts[set->n] : set->n, before = 0;
    struct keyed *pairs = drps_array_new(set->n, 2 * sizeof(*pairs)); /* upper half: scratch */
    if (!pairs) return -ENOMEM;
    for (size_t s = 0; s < set->n; s++)
        pairs[s] = (struct keyed){key[s], (uint32_t)s};
    drps_keyed_sort(pairs, pairs + set->n, set->n);
    for (size_t i = 0; i < set->n; i++) {
        uint64_t weight = sample_weight(set, o, pairs[i].item);
        /* a sample goes where its first unit of weight falls */
        uint32_t machine = all ? (uint32_t)((__uint128_t)before * o->machines / all) : 0;
        owner[pairs[i].item] = machine < o->machines ? machine : o->machines - 1;
        before += weight;
    }
    free(pairs);
    return 0;
}

/* Give each machine a range of the samples, in random order or as they come. */
static int cut_by(const struct drps_sample_set *set, const struct drps_samples_options *o,
                  int random, uint32_t *owner, struct drps_err *err)
{
    uint64_t *key = drps_array_new(set->n, sizeof(*key));
    int rc = key ? 0 : -ENOMEM;
    for (size_t s = 0; rc == 0 && s < set->n; s++)
        key[s] = random ? drps_rng_at(o->seed, s) : s;
    if (rc == 0) rc = drps_samples_cut(set, o, key, owner);
    free(key);
    return rc == 0 ? 0 : drps_err_set(err, rc, "no memory to place %zu samples", set->n);
}

int drps_samples_hash(const struct drps_sample_set *set, const struct drps_samples_options *o,
                      uint32_t *owner, struct drps_err *err)
{
    return cut_by(set, o, 1, owner, err);
}

int drps_samples_range(const struct drps_sample_set *set, const struct drps_samples_options *o,
                       uint32_t *owner, struct drps_err *err)
{
    return cut_by(set, o, 0, owner, err);
}
