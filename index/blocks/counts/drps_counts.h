/*
 * Counting accesses of blocks while they are merged: the one thing that block builders ask about
 * the data. Shared inside index/.
 *
 * Blocks are numbered like rows; at first block b is row b alone. Merging (a, b), a < b, gives a
 * the rows and batches of b, and b is dead from then on: its counts are 0. Every answer is a sum or
 * a minimum over batches. So the answers of several counters, each over its share of the batches
 * (shards), combine to the answer of one over all, exactly, and
 * builders do not know the difference: drps_remote.h counts in several processes.
 */
#ifndef DRPS_INDEX_BLOCKS_COUNTS_COUNTS_H
#define DRPS_INDEX_BLOCKS_COUNTS_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "index/blocks/counts/drps_access.h"

struct block_pair {
    uint32_t a, b; /* a < b */
};
struct block_pair_count {
    uint32_t a, b, count;
};

struct counts;
struct counts_ops {
    /* AccNum: how many batches touch each block. count_out [blocks]. Sum over shards. */
    int (*counts)(struct counts *t, uint32_t *count_out, struct drps_err *err);
    /* Sum over a block's batches of drps_mix64(batch), modulo 2^64 (base/drps_rng.h): equal batch
     * sets have equal ones. sig_out [blocks]. Sum. */
    int (*signatures)(struct counts *t, uint64_t *sig_out, struct drps_err *err);
    /* Least drps_mix64(batch ^ salt) >> 32 of each block's batches; UINT32_MAX: none. min_out
     * [blocks]. Minimum. */
    int (*minhash)(struct counts *t, uint64_t salt, uint32_t *min_out, struct drps_err *err);
    /* C_ij of n pairs: batches that touch both. Sum. */
    int (*cocounts)(struct counts *t, const struct block_pair *pairs, size_t n, uint32_t *count_out,
                    struct drps_err *err);
    /*
     * Choose the pairs of blocks that pairs() tells of, until the next call: those with equal
     * group[block], not 0. A block that takes another in stays in its own. group [blocks], copied.
     * At first all are of one group.
     */
    int (*groups)(struct counts *t, const uint8_t *group, struct drps_err *err);
    /*
     * All pairs with C_ij > 0, sorted by (a, b). With `with` not NULL: only pairs of which one
     * block at least is among these (with_n of them, increasing); that takes as many steps as their
     * batches have blocks. *pairs_out is the caller's to free().
     * DRPS_E_MEMORY_BUDGET when they take more than memory_bytes: *n_out is how many there are all
     * the same. Sum by pair.
     */
    int (*pairs)(struct counts *t, const uint32_t *with, size_t with_n, uint64_t memory_bytes,
                 struct block_pair_count **pairs_out, size_t *n_out, struct drps_err *err);
    /* Merge n pairs of live blocks; no block occurs in two of them. */
    int (*merge)(struct counts *t, const struct block_pair *pairs, size_t n, struct drps_err *err);
    /* Sum over batches of (blocks that it touches) squared: the steps that counting all pairs
     * takes. Sum. */
    int (*pair_work)(struct counts *t, uint64_t *work_out, struct drps_err *err);
    /* Back to one row a block. */
    int (*reset)(struct counts *t, struct drps_err *err);
    /*
     * The batches of n rows, increasing, whatever has merged: row i of *out is rows[i]. *out is the
     * caller's to drps_access_free(). DRPS_E_MEMORY_BUDGET when they take more than memory_bytes.
     * Where the counts are sharded, the shards answer one after the other.
     */
    int (*lists)(struct counts *t, const uint32_t *rows, size_t n, uint64_t memory_bytes,
                 struct access *out, struct drps_err *err);
    void (*close)(struct counts *t); /* NULL-safe */
};

struct counts {
    const struct counts_ops *ops;
    uint32_t blocks;        /* = rows */
    uint32_t batches;       /* of the epoch, whatever the share of them that is counted here */
    int streamed;           /* 1: every answer reads all accesses from disk: ask for much at once */
    uint64_t access_bytes;  /* of memory that accesses take, in this process */
    uint64_t pair_accesses; /* pairs() has room for so many accesses of blocks of any group */
    const atomic_int *stop; /* as in struct access_source, for whoever opened it to set */
};

/*
 * Counts over the accesses of one table in memory, borrowed until close. A share p < 1 of the
 * batches is counted, those with drps_mix64(batch ^ seed) below p * 2^64. Memory beside the
 * accesses: 13 bytes a row, 8 a batch, up to 6 an incidence of merged blocks, and a copy of what is
 * counted when p < 1. From the first pairs() on 25 bytes a row and 4 an incidence of the blocks
 * that are of any group.
 */
DRPS_MUST_CHECK
int drps_counts_open(const struct access *access, double share, uint64_t seed,
                     struct counts **t_out, struct drps_err *err);

/* Counts over batches [first, end), which are loaded first: DRPS_E_MEMORY_BUDGET as
 * drps_access_load().
 */
DRPS_MUST_CHECK
int drps_counts_load(const struct access_source *from, uint32_t first, uint32_t end,
                     struct counts **t_out, struct drps_err *err);

#endif
