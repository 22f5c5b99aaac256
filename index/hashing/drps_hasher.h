/* Samples whose features are hashed, one at a time. Shared inside index/ and engine/. */
#ifndef DRPS_INDEX_HASHING_HASHER_H
#define DRPS_INDEX_HASHING_HASHER_H

#include "index/hashing/drps_hashing.h"

struct drps_hasher; /* opaque: the memory of one sample, owned by whoever called drps_hasher_new()
                     */

/* A sample as a reader has it: n features. */
struct drps_hasher_input {
    const uint64_t *keys;   /* [n] */
    const float *values;    /* [n] */
    const uint16_t *fields; /* [n], or NULL: entries have none */
    size_t n;
};

/* What it becomes; borrowed until the next sample, or the hasher's end. */
struct drps_hashed {
    uint64_t *keys; /* [n] numbers of bins, each once */
    float *values;
    uint16_t *fields; /* NULL where the input has none */
    size_t n;
    int all_ones; /* all values are 1 */
};

/* `h` is checked and has bits; `seed` changes all hashes. NULL when memory is gone. */
struct drps_hasher *drps_hasher_new(const struct drps_hashing *h, uint64_t seed);
void drps_hasher_free(struct drps_hasher *h); /* NULL-safe */

/* -ENOMEM; DRPS_E_FORMAT: values of one bin add up to infinity. */
DRPS_MUST_CHECK
int drps_hasher_run(struct drps_hasher *h, const struct drps_hasher_input *in,
                    struct drps_hashed *out, struct drps_err *err);

/* The most features that a sample of n becomes. */
size_t drps_hashed_most(const struct drps_hashing *h, size_t n);

/* 1: oph has met a value that is not 1, and taken the feature for one that is in the sample. */
int drps_hasher_took_values(const struct drps_hasher *h);

/* Bin and sign of a key, as `signed` has them: what tests and other programs can go by. */
uint64_t drps_hash_bin(uint64_t key, uint64_t seed, uint32_t bits, int *negative_out);

#endif
