/*
 * Feature hashing: features are numbered by a hash of their key in place of a dictionary of all of
 * them, so that a model has a bounded number of rows. What plan.json and model.json say of it.
 *
 *   signed  a feature's bin is the upper `bits` of a hash of its key, and its value is negated
 * where the hash's lowest bit is set; features of a sample that share a bin are added up.
 *           Weinberger, Dasgupta, Langford, Smola and Attenberg, "Feature hashing for large scale
 *           multitask learning", ICML 2009. Where entries have fields each field has bins of its
 *           own: bin b of field f is number f * 2^bits + b.
 *   oph     one-permutation hashing with re-randomized densification, for sets: a feature is in a
 *           sample or not, whatever its value. Keys are hashed once; the hash's upper bits choose
 *           one of `bins` parts, and each part keeps the lowest bits of its least hash, so that a
 *           sample becomes `bins` features of value 1, each one of 2^bits / bins. A part that got
 * no key takes the keys of another one, drawn by its number, under a hash of its own. Li, Li and
 * Zhang, "Re-randomized densification for one permutation hashing and bin-wise consistent weighted
 * sampling", NeurIPS 2019; the lowest bits as in Li, Shrivastava, Moore and Koenig, "Hashing
 * algorithms for large-scale learning", NIPS 2011.
 */
#ifndef DRPS_INDEX_HASHING_HASHING_H
#define DRPS_INDEX_HASHING_HASHING_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

enum drps_hash_kind { DRPS_HASH_SIGNED, DRPS_HASH_OPH };

/* At most so many bits: a row has a number of 32. Parts of a sample. */
enum { DRPS_HASH_BITS_MOST = 30, DRPS_HASH_BINS_LEAST = 2, DRPS_HASH_BINS_MOST = 1024 };

struct drps_hashing {
    uint32_t bits; /* 2^bits features; 0: features are not hashed, and nothing else is said */
    enum drps_hash_kind kind;
    uint32_t bins; /* oph: a power of two, DRPS_HASH_BINS_LEAST .. 2^(bits - 1); else 0 */
};

/* Names of the kinds, NULL-terminated, by their number. */
const char *const *drps_hash_kinds(void);

/* Fill in the bins that oph has by default: 256, or half of 2^bits if that is less. */
void drps_hashing_complete(struct drps_hashing *h);

/* DRPS_E_CONFIG: numbers out of range, or that do not go together. */
DRPS_MUST_CHECK
int drps_hashing_check(const struct drps_hashing *h, struct drps_err *err);

/* 1: both hash alike. */
int drps_hashing_same(const struct drps_hashing *a, const struct drps_hashing *b);

/* Write "signed, 2^18 bins", or "oph, 256 of 2^18 bins a sample". Returns text. */
enum { DRPS_HASHING_TEXT_BYTES = 64 };
const char *drps_hashing_text(const struct drps_hashing *h, char text[DRPS_HASHING_TEXT_BYTES]);

/* The member "hashing" of a manifest (a json_t object), which is missing where features are not
 * hashed; `path` is its file, for the message. DRPS_E_CORRUPT. */
void drps_hashing_put(void *manifest /* json_t ** */, const struct drps_hashing *h);
DRPS_MUST_CHECK
int drps_hashing_get(const void *manifest, const char *path, struct drps_hashing *out,
                     struct drps_err *err);

#endif
