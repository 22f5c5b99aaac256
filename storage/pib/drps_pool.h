/*
 * The block pool: memory for blocks of any size, who is in it, and who must leave.
 *
 * Memory is cut into units of some rows, a power of two, so that nothing is lost between blocks: a
 * block takes as many units as it needs, anywhere, linked in a list. A *frame* is the record of one
 * block in the pool. Both run out: a block comes in when there is a frame and units enough.
 *
 * Belongs to the prefetch thread (prefetch.c). Others touch a block's rows only while that thread
 * has handed them out: I/O threads between drps_fetch_run()'s begin and end, the engine between
 * step_open and step_close.
 *
 * Without rows (config.bookkeeping) it is a simulation of itself: index/forecast/simulation.c.
 */
#ifndef DRPS_STORAGE_PIB_POOL_H
#define DRPS_STORAGE_PIB_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "storage/drps_store.h"
#include "storage/pib/drps_evict.h"

#define DRPS_POOL_NONE UINT32_MAX

struct drps_frame {
    uint64_t next_use; /* of the block in it, as the last step that pinned it knows */
    uint32_t block;    /* NONE: empty */
    uint32_t unit;     /* its first */
    uint16_t pins;     /* steps that hold it: prefetched, not yet released */
    uint16_t dirty;    /* its bytes are newer than the engine's */
};

struct drps_pool_config {
    const uint32_t *block_first; /* [blocks + 1] borrowed */
    size_t blocks;
    size_t row_bytes;
    struct drps_pool_shape shape;
    enum drps_evict_rule rule;
    int bookkeeping; /* 1: no memory for rows */
};

struct drps_pool {
    const uint32_t *block_first; /* borrowed */
    size_t blocks;
    size_t row_bytes;
    unsigned unit_shift; /* a unit has 1 << unit_shift rows */
    uint32_t units, frames;
    uint32_t pinned, pinned_units; /* frames with pins, and their units */
    char *rows;                    /* own: [units << unit_shift][row_bytes]; NULL: bookkeeping */
    size_t rows_bytes;
    uint32_t *frame_of;       /* own: [blocks], NONE: not in the pool */
    uint64_t *stored;         /* own: one bit a block: the engine has a value of it */
    struct drps_frame *frame; /* own: [frames] */
    uint32_t *spare;          /* own: empty frames, a stack */
    uint32_t n_spare;
    uint32_t *next_unit; /* own: [units] of the same block, or of the free ones */
    uint32_t free_unit, n_free_units;
    struct drps_evict evict; /* frames with a block and no pins */
};

/* 0 or -ENOMEM; `pool` may be destroyed in either case. */
int drps_pool_init(struct drps_pool *pool, const struct drps_pool_config *config);
void drps_pool_destroy(struct drps_pool *pool);

/* Rows of the largest block. */
size_t drps_pool_max_rows(const uint32_t *block_first, size_t blocks);

/* The unit of the pool for these blocks: see storage/drps_store.h. */
uint32_t drps_pool_unit_rows_for(const uint32_t *block_first, size_t blocks, size_t row_bytes);

/* Memory beside frames and units: for each block. */
uint64_t drps_pool_block_overhead(uint64_t blocks);

/* Pin a block that is in the pool and learn its next use. Returns its frame, or NONE when it is not
 * there. */
uint32_t drps_pool_pin(struct drps_pool *pool, uint32_t block, uint64_t next_use);

/* Give one pin back; `now`: no step before it will be prefetched again. 0 or -ENOMEM. */
int drps_pool_unpin(struct drps_pool *pool, uint32_t frame, int changed, uint64_t now);

/*
 * In step `now`: give up blocks until `blocks` more of `units` units together fit; pinned ones, the
 * caller has made sure, leave room enough. Returns how many were given up: their frames are the
 * last ones on the stack of spare frames, and hold their blocks, for the caller to write the dirty
 * ones, until the next drps_pool_admit().
 */
size_t drps_pool_evict(struct drps_pool *pool, size_t blocks, size_t units, uint64_t now);

/* A pinned frame for a block that is not in the pool, for which there is room. */
uint32_t drps_pool_admit(struct drps_pool *pool, uint32_t block, uint64_t next_use);

static inline size_t drps_pool_block_rows(const struct drps_pool *pool, uint32_t block)
{
    return pool->block_first[block + 1] - pool->block_first[block];
}

static inline size_t drps_pool_block_bytes(const struct drps_pool *pool, uint32_t block)
{
    return drps_pool_block_rows(pool, block) * pool->row_bytes;
}

/* Units of 1 << unit_shift rows that a block takes. */
static inline uint32_t drps_pool_units(const uint32_t *block_first, unsigned unit_shift,
                                       size_t block)
{
    const uint64_t rows = block_first[block + 1] - block_first[block];
    return (uint32_t)((rows + (1u << unit_shift) - 1) >> unit_shift);
}

static inline uint32_t drps_pool_block_units(const struct drps_pool *pool, uint32_t block)
{
    return drps_pool_units(pool->block_first, pool->unit_shift, block);
}

static inline char *drps_pool_unit_rows(const struct drps_pool *pool, uint32_t unit)
{
    return pool->rows + ((size_t)unit << pool->unit_shift) * pool->row_bytes;
}

/* All but the last unit of a block are full: the rows of one, with `left` of the block to go. */
static inline size_t drps_pool_rows_of_unit(const struct drps_pool *pool, size_t left)
{
    const size_t most = (size_t)1 << pool->unit_shift;
    return left < most ? left : most;
}

/* A block's rows between its units, `unit` being the first, and one piece of memory. */
void drps_pool_copy_out(const struct drps_pool *pool, uint32_t block, uint32_t unit, void *rows);
void drps_pool_copy_in(const struct drps_pool *pool, uint32_t block, uint32_t unit,
                       const void *rows);

static inline int drps_pool_is_stored(const struct drps_pool *pool, uint32_t block)
{
    return (int)(pool->stored[block >> 6] >> (block & 63) & 1);
}

static inline void drps_pool_set_stored(struct drps_pool *pool, uint32_t block)
{
    pool->stored[block >> 6] |= UINT64_C(1) << (block & 63);
}

#endif
