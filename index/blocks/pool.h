/*
 * What a store pays that keeps blocks in a pool and evicts the one that is needed furthest ahead:
 * epochs of a layout, simulated. Private to index/.
 */
#ifndef DRPS_INDEX_BLOCKS_POOL_H
#define DRPS_INDEX_BLOCKS_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "index/blocks/access.h"

/* Of one epoch. */
struct pool_reads {
    uint64_t uses, use_rows;    /* blocks that batches touch: sum of AccNum(B), and their rows */
    uint64_t misses, miss_rows; /* of these, not in the pool, which the epoch before has filled */
    uint64_t step_rows;         /* rows of the blocks of the largest batch */
};

/*
 * Rows lie as they do in `a`, row r at place r, a block being a run of places from first[i] to
 * first[i + 1] - 1. The pool has room for so many rows, and always for the batch in hand. Memory: 8
 * bytes a use (at most one an access), 9 a block and 17 a batch.
 */
DRPS_MUST_CHECK
int pool_simulate(const struct access *a, const uint32_t *first, size_t blocks, uint64_t pool_rows,
                  struct pool_reads *out, struct drps_err *err);

#endif
