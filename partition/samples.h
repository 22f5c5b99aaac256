/* What the algorithms that place samples share. Private to partition/. */
#ifndef DRPS_PARTITION_SAMPLES_H
#define DRPS_PARTITION_SAMPLES_H

#include "partition/drps_partition.h"

#define SAMPLES_SLACK 0.02      /* a machine's weight over the average */
#define SAMPLES_ROUND_SLACK 0.1 /* the same, of the entries of a round */
#define SAMPLES_FULLNESS 0.6    /* restreaming: what a full machine loses against an empty one */

/* Returns the weight of a sample: 1, or its features. */
static inline uint64_t sample_weight(const struct drps_sample_set *set,
                                     const struct drps_samples_options *o, size_t s)
{
    return o->by_entries ? set->starts[s + 1] - set->starts[s] : 1;
}

/* Returns the most weight that a machine may have. */
uint64_t drps_samples_weight_max(const struct drps_sample_set *set,
                                 const struct drps_samples_options *o);

/* Sort samples by key [N] and cut them into W runs of equal weight. Returns 0 or -ENOMEM. */
int drps_samples_cut(const struct drps_sample_set *set, const struct drps_samples_options *o,
                     const uint64_t *key, uint32_t *owner);

/* Algorithms: fill owner [N]; 0 or a negative code. */
int drps_samples_hash(const struct drps_sample_set *set, const struct drps_samples_options *o,
                      uint32_t *owner, struct drps_err *err);
int drps_samples_range(const struct drps_sample_set *set, const struct drps_samples_options *o,
                       uint32_t *owner, struct drps_err *err);
int drps_samples_auto(const struct drps_sample_set *set, const struct drps_samples_options *o,
                      uint32_t *owner, struct drps_err *err);

#endif
