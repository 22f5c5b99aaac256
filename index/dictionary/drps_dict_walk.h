/*
 * The keys of a dictionary that has all its samples, in the order of keys, and the rows that they
 * get: what placing needs, on one machine or with others. Shared inside index/dictionary/.
 *
 *     drps_dict_seal -> walks -> drps_dict_keep_keys -> a last walk that puts rows
 */
#ifndef DRPS_INDEX_DICTIONARY_DICT_WALK_H
#define DRPS_INDEX_DICTIONARY_DICT_WALK_H

#include "index/dictionary/drps_dict.h"

/* A key, and what was counted of it. */
struct dict_key {
    uint64_t key;
    uint32_t mask, first, count; /* of training samples: segments, first time, how many */
    uint32_t check;              /* of the name, where strings are kept */
    unsigned field;
    const char *text; /* borrowed until the next key; NULL: strings are not kept */
    size_t bytes;
};

const struct dict_options *drps_dict_options(const struct dict *d);

/* No sample is added any more. Once is enough. */
DRPS_MUST_CHECK
int drps_dict_seal(struct dict *d, struct drps_err *err);

/* ---- The order ---- */

/* Returns by what rows are sorted, ties by key. Its upper two bits are the number of the table. */
uint64_t drps_dict_order(const struct dict_options *o, const struct dict_key *k);
static inline unsigned drps_dict_order_table(uint64_t order)
{
    return (unsigned)(order >> 62);
}

/* More rows than there are numbers: DRPS_E_CONFIG. */
int drps_dict_too_many_rows(struct drps_err *err);

/* Add what was counted of the same key elsewhere. DRPS_E_CONFIG: its name is another. */
DRPS_MUST_CHECK
int drps_dict_join(const struct dict_options *o, struct dict_key *into, const struct dict_key *from,
                   struct drps_err *err);

/* ---- Walks ---- */

struct dict_walk; /* opaque */

/* memory_bytes: for the rows, of a walk that puts them; 0: it does not. */
DRPS_MUST_CHECK
int drps_dict_walk_open(struct dict *d, uint64_t memory_bytes, struct dict_walk **w_out,
                        struct drps_err *err);
/* The next key: 1, or 0 at the end. */
DRPS_MUST_CHECK
int drps_dict_walk_next(struct dict_walk *w, struct dict_key *out, struct drps_err *err);
/* The row of the key that drps_dict_walk_next() gave; of each key. */
DRPS_MUST_CHECK
int drps_dict_walk_put(struct dict_walk *w, uint32_t row, struct drps_err *err);
/* All keys have their rows: drps_dict_placed() and drps_dict_map() give them from now on. */
DRPS_MUST_CHECK
int drps_dict_walk_finish(struct dict_walk *w, struct drps_err *err);
void drps_dict_walk_close(struct dict_walk *w); /* NULL-safe */

/* Give back the memory of all but the keys: later walks have a dict_key's `key` alone. */
void drps_dict_keep_keys(struct dict *d);
/* Give back the memory of the keys, too: after the last walk. */
void drps_dict_free_table(struct dict *d);

#endif
