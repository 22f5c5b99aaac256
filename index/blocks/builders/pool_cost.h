/*
 * What a store pays that keeps blocks in a pool and evicts the one that is needed furthest ahead:
 * epochs of a layout, simulated. Private to index/blocks/builders/.
 */
#ifndef DRPS_INDEX_BLOCKS_BUILDERS_POOL_COST_H
#define DRPS_INDEX_BLOCKS_BUILDERS_POOL_COST_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "index/blocks/counts/drps_access.h"

/* The blocks that the batches of an epoch touch. */
struct pool_uses {
    uint64_t uses, use_rows; /* blocks that batches touch: sum of AccNum(B), and their rows */
    uint64_t step_rows;      /* rows of the blocks of the largest batch */
    /* The rest is for drps_pool_simulate(). */
    const uint32_t *first; /* borrowed: [blocks + 1] */
    size_t blocks;
    uint32_t batches;
    uint64_t *start; /* own: [batches + 1] */
    uint32_t *block; /* own: [uses] increasing within a batch */
    uint32_t *next;  /* own: [uses] the batch that is the next to touch the block: the first of the
                        next epoch after the last of this one */
};

/*
 * Position i holds row order[i] of `a` (NULL: row i), a block is a run of positions from first[i]
 * to first[i + 1] - 1. drps_pool_uses_free() in any case. Memory: 8 bytes an access, 4 a block and
 * 12 a batch.
 */
DRPS_MUST_CHECK
int drps_pool_uses_list(const struct access *a, const uint32_t *order, const uint32_t *first,
                        size_t blocks, struct pool_uses *out, struct drps_err *err);
void drps_pool_uses_free(struct pool_uses *u);

/* Blocks that an epoch does not find in the pool, which the epoch before has filled. */
struct pool_misses {
    uint64_t blocks, rows;
};

/* The pool has room for so many rows, and always for the batch in hand. Memory: 5 bytes a block
 * and 4 a batch. */
DRPS_MUST_CHECK
int drps_pool_simulate(const struct pool_uses *u, uint64_t pool_rows, struct pool_misses *out,
                       struct drps_err *err);

#endif
