/* Placing samples: checks, the algorithm by its name, the two simple ones, hashed features. */
#include "partition/samples.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"
#include "partition/order.h"

uint64_t samples_weight_max(const struct drps_sample_set *set, const struct drps_samples_options *o)
{
    uint64_t all = o->by_entries ? set->starts[set->n] : set->n, heaviest = 0;
    for (size_t s = 0; s < set->n; s++)
        if (sample_weight(set, o, s) > heaviest) heaviest = sample_weight(set, o, s);
    uint64_t even = all / o->machines;
    uint64_t limit = (uint64_t)((double)all / o->machines * (1 + SAMPLES_SLACK));
    return limit > even + heaviest ? limit : even + heaviest;
}

int samples_cut(const struct drps_sample_set *set, const struct drps_samples_options *o,
                const uint64_t *key, uint32_t *owner)
{
    uint64_t all = o->by_entries ? set->starts[set->n] : set->n, before = 0;
    struct keyed *pairs = drps_array_new(set->n, 2 * sizeof(*pairs)); /* upper half: scratch */
    if (!pairs) return -ENOMEM;
    for (size_t s = 0; s < set->n; s++)
        pairs[s] = (struct keyed){key[s], (uint32_t)s};
    keyed_sort(pairs, pairs + set->n, set->n);
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

/* Ranges of the samples in random order, or as they come. */
static int cut_by(const struct drps_sample_set *set, const struct drps_samples_options *o,
                  int random, uint32_t *owner, struct drps_err *err)
{
    uint64_t *key = drps_array_new(set->n, sizeof(*key));
    int rc = key ? 0 : -ENOMEM;
    for (size_t s = 0; rc == 0 && s < set->n; s++)
        key[s] = random ? drps_rng_at(o->seed, s) : s;
    if (rc == 0) rc = samples_cut(set, o, key, owner);
    free(key);
    return rc == 0 ? 0 : drps_err_set(err, rc, "no memory to place %zu samples", set->n);
}

int samples_hash(const struct drps_sample_set *set, const struct drps_samples_options *o,
                 uint32_t *owner, struct drps_err *err)
{
    return cut_by(set, o, 1, owner, err);
}

static int samples_range(const struct drps_sample_set *set, const struct drps_samples_options *o,
                         uint32_t *owner, struct drps_err *err)
{
    return cut_by(set, o, 0, owner, err);
}

static const struct algorithm {
    const char *name;
    int (*place)(const struct drps_sample_set *set, const struct drps_samples_options *o,
                 uint32_t *owner, struct drps_err *err);
} algorithms[] = {{"auto", samples_auto},
                  {"dppa", samples_dppa},
                  {"range", samples_range},
                  {"hash", samples_hash}};

static int check_set(const struct drps_sample_set *set, struct drps_err *err)
{
    if (set->n > UINT32_MAX)
        return drps_err_set(err, DRPS_E_CONFIG, "%zu samples; at most %u can be placed", set->n,
                            UINT32_MAX);
    for (size_t s = 0; s < set->n; s++) {
        if (set->starts[s + 1] < set->starts[s])
            return drps_err_set(err, -EINVAL, "sample %zu ends before it begins", s);
        for (size_t i = set->starts[s]; i < set->starts[s + 1]; i++)
            if (set->features[i] >= set->features_n)
                return drps_err_set(err, -EINVAL, "sample %zu: feature %u of %u", s,
                                    set->features[i], set->features_n);
    }
    return 0;
}

int drps_samples_place(const struct drps_sample_set *set, const struct drps_samples_options *o,
                       uint32_t *owner_out, struct drps_err *err)
{
    if (o->machines < 1 || o->machines > DRPS_MACHINES_MAX)
        return drps_err_set(err, DRPS_E_CONFIG, "%u machines; 1 to %d are possible", o->machines,
                            DRPS_MACHINES_MAX);
    if (o->batch_size < 1) return drps_err_set(err, DRPS_E_CONFIG, "batches of 0 samples");
    if (!(o->dppa_beta >= 0))
        return drps_err_set(err, DRPS_E_CONFIG, "dppa: beta is %g; it is 0 or more", o->dppa_beta);
    int rc = check_set(set, err);
    if (rc < 0) return rc;
    for (size_t i = 0; o->algo && i < sizeof(algorithms) / sizeof(algorithms[0]); i++)
        if (strcmp(algorithms[i].name, o->algo) == 0)
            return algorithms[i].place(set, o, owner_out, err);
    return drps_err_set(err, DRPS_E_CONFIG,
                        "samples are placed by auto, dppa, range or hash, not by '%s'",
                        o->algo ? o->algo : "");
}

int drps_samples_hash_features(const struct drps_sample_set *set, uint32_t bins, uint64_t seed,
                               size_t *starts_out, uint32_t *features_out, struct drps_err *err)
{
    if (bins == 0) return drps_err_set(err, -EINVAL, "features cannot be hashed into 0 bins");
    size_t n = 0;
    starts_out[0] = 0;
    for (size_t s = 0; s < set->n; s++) {
        for (size_t i = set->starts[s]; i < set->starts[s + 1]; i++) {
            uint32_t bin = (uint32_t)(drps_rng_at(seed, set->features[i]) % bins);
            size_t k = starts_out[s];
            while (k < n && features_out[k] != bin)
                k++;
            if (k == n) features_out[n++] = bin;
        }
        starts_out[s + 1] = n;
    }
    return 0;
}
