/*
 * A table of how many samples of each machine have each feature, for placing samples that are alike
 * together. Private to partition/.
 *
 * n_f samples have feature f, c_f,i of them on machine i. A sample with features F scores machine i
 *
 *   sum over f in F of c_f,i / n_f / (1 + n_f B / N)
 *
 * where N / B is the number of batches. Only features that some number of samples have count: rarer
 * ones bring nothing together, commoner ones are everywhere. c / n, and not c / (c + 1): a
 * feature's row can be at home on one machine only, so that it is the largest share that saves; one
 * of many batches is worth little.
 */
#ifndef DRPS_PARTITION_AFFINITY_H
#define DRPS_PARTITION_AFFINITY_H

#include <stddef.h>
#include <stdint.h>

enum { AFFINITY_LEAST_SAMPLES = 2, AFFINITY_MOST_SHARE = 20 };

/* Samples of one feature on one machine. */
struct affinity_held {
    uint32_t machine, samples;
};

struct affinity_feature {
    size_t start;     /* of its entries in held; there is room for min(n_f, W) */
    uint32_t samples; /* n_f; 0 where it does not count */
    uint32_t used;    /* entries in held */
};

/* Zero it first; drps_affinity_free() it in any case. */
struct affinity {
    uint32_t features_n, machines;
    struct affinity_feature *feature; /* own [R] */
    struct affinity_held *held;       /* own */
    double *score;                    /* own [W] */
};

/* 0 or -ENOMEM. All n_f are 0. */
int drps_affinity_begin(struct affinity *a, uint32_t features_n, uint32_t machines);

/* One sample more has these features; those from features_n on are unknown, and never count. */
void drps_affinity_count(struct affinity *a, const uint32_t *features, size_t n);

/*
 * All n_f of `samples` samples are known: features of fewer than `least` samples, and of more than
 * a twentieth, do not count from here on. Returns 0 or -ENOMEM.
 */
int drps_affinity_ready(struct affinity *a, uint64_t samples, uint32_t least);

/* What drps_affinity_ready() will take for so large a `least`. */
uint64_t drps_affinity_held_bytes(const struct affinity *a, uint64_t samples, uint32_t least);

/* Begin to load what the next calls with these features look at: they are anywhere in memory. */
void drps_affinity_prefetch(const struct affinity *a, const uint32_t *features, size_t n);

/* A sample with these features is on the machine; and is not any more. */
void drps_affinity_add(struct affinity *a, const uint32_t *features, size_t n, uint32_t machine);
void drps_affinity_drop(struct affinity *a, const uint32_t *features, size_t n, uint32_t machine);

/* Add a sample's scores to a->score [W]. batch_share: B / N. */
void drps_affinity_add_scores(struct affinity *a, const uint32_t *features, size_t n,
                              double batch_share);

/* Returns the least hash of the features that count; UINT64_MAX: there are none. */
uint64_t drps_affinity_minhash(const struct affinity *a, const uint32_t *features, size_t n,
                               uint64_t seed);

void drps_affinity_free(struct affinity *a);

#endif
