/*
 * Signed hashing keeps the order of a sample's features, and finds those of one bin in a small open
 * table. One-permutation hashing takes one pass over the keys, and a second one over those of a
 * part for each part that is filled from it.
 */
#include "index/hashing/drps_hasher.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"

/* Streams of hashes that must not be the same. */
#define BIN_STREAM 0x62696e73u     /* "bins" */
#define PART_STREAM 0x70617274u    /* "part" */
#define DONOR_STREAM 0x646f6e6f72u /* "donor" */
#define AGAIN_STREAM 0x616761696eu /* "again" */

enum { SAMPLE_MOST = 1 << 29 };

struct drps_hasher {
    struct drps_hashing of;
    uint64_t seed;
    unsigned part_bits; /* oph: bins are 2^part_bits */
    int took_values;
    uint64_t *keys; /* own, as the arrays that follow: what the sample becomes */
    float *values;
    uint16_t *fields;
    double *sums;    /* signed: of the values of a bin */
    uint32_t *table; /* signed: 1 + place in `keys` of what is there; 0: nothing */
    uint64_t *least; /* oph: [bins] least hash of each part */
    uint32_t *first; /* oph: [bins + 1] where its keys begin in `sorted` */
    uint64_t *sorted;
    size_t keys_cap, values_cap, fields_cap, sums_cap, table_cap, sorted_cap;
};

static void free_arrays(struct drps_hasher *h)
{
    free(h->keys);
    free(h->values);
    free(h->fields);
    free(h->sums);
    free(h->table);
    free(h->least);
    free(h->first);
    free(h->sorted);
}

struct drps_hasher *drps_hasher_new(const struct drps_hashing *of, uint64_t seed)
{
    struct drps_hasher *h = calloc(1, sizeof(*h));
    if (!h) return NULL;
    h->of = *of;
    h->seed = seed;
    if (of->kind != DRPS_HASH_OPH) return h;
    while (UINT32_C(1) << h->part_bits < of->bins)
        h->part_bits++;
    h->least = calloc(of->bins, sizeof(*h->least));
    h->first = calloc((size_t)of->bins + 1, sizeof(*h->first));
    if (h->least && h->first) return h;
    drps_hasher_free(h);
    return NULL;
}

void drps_hasher_free(struct drps_hasher *h)
{
    if (!h) return;
    free_arrays(h);
    free(h);
}

size_t drps_hashed_most(const struct drps_hashing *h, size_t n)
{
    return h->kind == DRPS_HASH_OPH && n ? h->bins : n;
}

int drps_hasher_took_values(const struct drps_hasher *h)
{
    return h->took_values;
}

/* ---- Signed ---- */

uint64_t drps_hash_bin(uint64_t key, uint64_t seed, uint32_t bits, int *negative_out)
{
    const uint64_t hash = drps_rng_at(seed ^ BIN_STREAM, key);
    *negative_out = (int)(hash & 1);
    return hash >> (64 - bits);
}

static int signed_room(struct drps_hasher *h, const struct drps_hasher_input *in, size_t *mask_out)
{
    size_t entries = 16;
    while (entries < 2 * in->n)
        entries *= 2;
    *mask_out = entries - 1;
    return drps_array_reserve(&h->keys, &h->keys_cap, in->n, sizeof(*h->keys)) ||
           drps_array_reserve(&h->values, &h->values_cap, in->n, sizeof(*h->values)) ||
           drps_array_reserve(&h->sums, &h->sums_cap, in->n, sizeof(*h->sums)) ||
           (in->fields &&
            drps_array_reserve(&h->fields, &h->fields_cap, in->n, sizeof(*h->fields))) ||
           drps_array_reserve(&h->table, &h->table_cap, entries, sizeof(*h->table));
}

/* Returns the place of a bin among the n that there are, n if it is new. */
static size_t place_of(struct drps_hasher *h, uint64_t bin, size_t n, size_t mask)
{
    size_t at = drps_mix64(bin) & mask;
    for (; h->table[at]; at = (at + 1) & mask)
        if (h->keys[h->table[at] - 1] == bin) return h->table[at] - 1;
    h->table[at] = (uint32_t)n + 1;
    return n;
}

/* Sums become values; those of 0 are left out. Returns how many are left. */
static size_t settle_sums(struct drps_hasher *h, size_t n, int has_fields, int *finite,
                          int *all_ones)
{
    size_t kept = 0;
    *finite = *all_ones = 1;
    for (size_t i = 0; i < n; i++) {
        const float value = (float)h->sums[i];
        *finite &= isfinite(value) != 0;
        if (value == 0) continue;
        *all_ones &= value == 1;
        h->keys[kept] = h->keys[i];
        if (has_fields) h->fields[kept] = h->fields[i];
        h->values[kept++] = value;
    }
    return kept;
}

static int run_signed(struct drps_hasher *h, const struct drps_hasher_input *in,
                      struct drps_hashed *out, struct drps_err *err)
{
    size_t n = 0, mask;
    int negative, finite;
    if (signed_room(h, in, &mask))
        return drps_err_set(err, -ENOMEM, "no memory to hash a sample of %zu features", in->n);
    memset(h->table, 0, (mask + 1) * sizeof(*h->table));
    for (size_t i = 0; i < in->n; i++) {
        const uint64_t field = in->fields ? in->fields[i] : 0;
        const uint64_t bin =
            (field << h->of.bits) + drps_hash_bin(in->keys[i], h->seed, h->of.bits, &negative);
        const size_t at = place_of(h, bin, n, mask);
        if (at == n) {
            h->keys[n] = bin;
            if (in->fields) h->fields[n] = in->fields[i];
            h->sums[n++] = 0;
        }
        h->sums[at] += negative ? -(double)in->values[i] : (double)in->values[i];
    }
    out->n = settle_sums(h, n, in->fields != NULL, &finite, &out->all_ones);
    return finite ? 0
                  : drps_err_set(err, DRPS_E_FORMAT,
                                 "the values of features in one bin add up to infinity");
}

/* ---- One-permutation hashing ---- */

static uint64_t part_of(const struct drps_hasher *h, uint64_t hash)
{
    return hash >> (64 - h->part_bits);
}

/* The least hash of each part, and how many keys it has: first[part + 1]. Returns how many parts
 * have any. */
static size_t count_parts(struct drps_hasher *h, const struct drps_hasher_input *in)
{
    size_t full = 0;
    memset(h->first, 0, ((size_t)h->of.bins + 1) * sizeof(*h->first));
    for (size_t i = 0; i < in->n; i++) {
        const uint64_t hash = drps_rng_at(h->seed ^ PART_STREAM, in->keys[i]);
        const uint64_t part = part_of(h, hash);
        full += !h->first[part + 1];
        if (!h->first[part + 1]++ || hash < h->least[part]) h->least[part] = hash;
        h->took_values |= in->values[i] != 1.0f;
    }
    return full;
}

/* Keys by part: those of part p are sorted[first[p]] and up. */
static void sort_keys(struct drps_hasher *h, const struct drps_hasher_input *in)
{
    for (uint32_t p = 0; p < h->of.bins; p++)
        h->first[p + 1] += h->first[p];
    for (size_t i = in->n; i-- > 0;) {
        const uint64_t part = part_of(h, drps_rng_at(h->seed ^ PART_STREAM, in->keys[i]));
        h->sorted[--h->first[part + 1]] = in->keys[i];
    }
    /* Each first[p + 1] is now where part p begins. */
    memmove(h->first, h->first + 1, h->of.bins * sizeof(*h->first));
    h->first[h->of.bins] = (uint32_t)in->n;
}

/* The part that has keys for an empty one: the first that has any of those drawn by its number. */
static uint64_t donor_of(const struct drps_hasher *h, uint32_t part)
{
    for (uint64_t draw = 0;; draw++) {
        const uint64_t donor =
            part_of(h, drps_rng_at(h->seed ^ DONOR_STREAM, (uint64_t)part << 32 | draw));
        if (h->first[donor + 1] > h->first[donor]) return donor;
    }
}

/* The least hash of the donor's keys, under the empty part's own hash. */
static uint64_t least_again(const struct drps_hasher *h, uint32_t part, uint64_t donor)
{
    const uint64_t seed = drps_rng_at(h->seed ^ AGAIN_STREAM, part);
    uint64_t least = UINT64_MAX;
    for (uint32_t i = h->first[donor]; i < h->first[donor + 1]; i++) {
        const uint64_t hash = drps_rng_at(seed, h->sorted[i]);
        if (hash < least) least = hash;
    }
    return least;
}

static int run_oph(struct drps_hasher *h, const struct drps_hasher_input *in,
                   struct drps_hashed *out, struct drps_err *err)
{
    const uint32_t bins = h->of.bins, low_bits = h->of.bits - h->part_bits;
    const uint64_t low = (UINT64_C(1) << low_bits) - 1;
    out->all_ones = 1;
    if (!in->n) return 0;
    if (drps_array_reserve(&h->keys, &h->keys_cap, bins, sizeof(*h->keys)) ||
        drps_array_reserve(&h->values, &h->values_cap, bins, sizeof(*h->values)) ||
        drps_array_reserve(&h->sorted, &h->sorted_cap, in->n, sizeof(*h->sorted)))
        return drps_err_set(err, -ENOMEM, "no memory to hash a sample of %zu features", in->n);
    const size_t full = count_parts(h, in);
    if (full < bins) sort_keys(h, in);
    for (uint32_t p = 0; p < bins; p++) {
        const int empty = full < bins && h->first[p] == h->first[p + 1];
        const uint64_t least = empty ? least_again(h, p, donor_of(h, p)) : h->least[p];
        h->keys[p] = (uint64_t)p << low_bits | (least & low);
        h->values[p] = 1;
    }
    out->n = bins;
    return 0;
}

/* ---- Both ---- */

int drps_hasher_run(struct drps_hasher *h, const struct drps_hasher_input *in,
                    struct drps_hashed *out, struct drps_err *err)
{
    *out = (struct drps_hashed){.n = 0};
    if (in->n >= SAMPLE_MOST)
        return drps_err_set(err, DRPS_E_FORMAT, "a sample has more than 2^29 features");
    const int rc =
        h->of.kind == DRPS_HASH_OPH ? run_oph(h, in, out, err) : run_signed(h, in, out, err);
    out->keys = h->keys;
    out->values = h->values;
    out->fields = in->fields ? h->fields : NULL;
    return rc;
}
