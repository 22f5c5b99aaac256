/* Placing samples: checks, the algorithm by its name, and features hashed into bins. */
#include <errno.h>
#include <string.h>

#include "base/drps_rng.h"
#include "partition/samples.h"

static const struct algorithm {
    const char *name;
    int (*place)(const struct drps_sample_set *set, const struct drps_samples_options *o,
                 uint32_t *owner, struct drps_err *err);
} algorithms[] = {
    {"auto", drps_samples_auto}, {"range", drps_samples_range}, {"hash", drps_samples_hash}};

int drps_sample_set_check(const struct drps_sample_set *set, struct drps_err *err)
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
    int rc = drps_sample_set_check(set, err);
    if (rc < 0) return rc;
    for (size_t i = 0; o->algo && i < sizeof(algorithms) / sizeof(algorithms[0]); i++)
        if (strcmp(algorithms[i].name, o->algo) == 0)
            return algorithms[i].place(set, o, owner_out, err);
    return drps_err_set(err, DRPS_E_CONFIG,
                        "samples are placed by auto, range or hash, not by '%s'",
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
