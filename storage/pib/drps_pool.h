/*
 * The block pool: memory for blocks of any size, which blocks are in it, and which must leave.
 *
 * Memory is cut into units of some rows, a power of two, so that nothing is lost between blocks: a
 * block takes as many units as it needs, anywhere, linked in a list. An *entry* is the record of
 * one block in the pool. Both run out: a block comes in when there is an entry and units enough.
 *
 * The pool belongs to the prefetch thread (prefetch.c). Others touch a block's rows only while that
 * thread has handed them out: I/O threads between drps_fetch_run()'s begin and end, the engine
 * between step_open and step_close.
 *
 * Without rows (config.bookkeeping) the pool is a simulation of itself:
 * index/forecast/simulation.c.
 */
#ifndef DRPS_STORAGE_PIB_POOL_H
#define DRPS_STORAGE_PIB_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "storage/drps_store.h"
#include "storage/pib/drps_evict.h"

#define DRPS_POOL_NONE UINT32_MAX

struct drps_pool_entry {
    uint64_t next_use; /* step that needs the block next, as the last step that pinned it knows */
    uint32_t block;    /* DRPS_POOL_NONE: the entry is empty */
    uint32_t unit;     /* the block's first unit */
    uint16_t pins;     /* steps that hold the block: prefetched, not yet released */
    uint16_t dirty;    /* 1: the block's bytes are newer than the engine's */
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
    uint32_t units, entries;
    uint32_t pinned, pinned_units; /* entries with pins, and their units */
    char *rows;                    /* own: [units << unit_shift][row_bytes]; NULL: bookkeeping */
    size_t rows_bytes;
    uint32_t *entry_of;            /* own: [blocks] DRPS_POOL_NONE: not in the pool */
    uint64_t *stored;              /* own: one bit a block: the engine has a value of it */
    struct drps_pool_entry *entry; /* own: [entries] */
    uint32_t *spare;               /* own: empty entries, a stack */
    uint32_t n_spare;
    uint32_t *next_unit; /* own: [units] the next unit of the same block, or of the free ones */
    uint32_t free_unit, n_free_units;
    struct drps_evict evict; /* entries with a block and no pins */
};

/* 0 or -ENOMEM; `pool` may be destroyed in either case. */
int drps_pool_init(struct drps_pool *pool, const struct drps_pool_config *config);
void drps_pool_destroy(struct drps_pool *pool);

/* Returns how many rows the largest block has. */
size_t drps_pool_max_rows(const uint32_t *block_first, size_t blocks);

/* The shape of a pool that takes `bytes` at most, for rows and what is kept for units and entries.
 * block_first [blocks + 1], blocks > 0. */
void drps_pool_shape(const uint32_t *block_first, size_t blocks, size_t row_bytes,
                     const struct drps_step_size *step, uint64_t bytes,
                     struct drps_pool_shape *out);

/* Returns how many rows a unit of such a pool has. */
uint32_t drps_pool_unit_rows_for(const uint32_t *block_first, size_t blocks, size_t row_bytes);

/* Returns the memory for tables by block, beside entries and units. */
uint64_t drps_pool_block_overhead(uint64_t blocks);

/* Pin a block that is in the pool and learn its next use. Returns its entry, or DRPS_POOL_NONE
 * when it is not there. */
uint32_t drps_pool_pin(struct drps_pool *pool, uint32_t block, uint64_t next_use);

/* Give one pin back. `now` is a step before which none will be prefetched again. 0 or -ENOMEM. */
int drps_pool_unpin(struct drps_pool *pool, uint32_t entry, int changed, uint64_t now);

/*
 * Evict blocks in step `now` until `blocks` more of `units` units together fit. The caller has made
 * sure that pinned blocks leave room enough. Returns how many blocks were evicted: their entries
 * are the last ones on the stack of spare entries, and hold their blocks until the next
 * drps_pool_admit(), so that the caller can write the dirty ones.
 */
size_t drps_pool_evict(struct drps_pool *pool, size_t blocks, size_t units, uint64_t now);

/* Returns a pinned entry, and units, for a block that is not in the pool, for which there is room.
 */
uint32_t drps_pool_admit(struct drps_pool *pool, uint32_t block, uint64_t next_use);

/* ---- What is known of a block or a unit ---- */

static inline size_t drps_pool_block_rows(const struct drps_pool *pool, uint32_t block)
{
    return pool->block_first[block + 1] - pool->block_first[block];
}

static inline size_t drps_pool_block_bytes(const struct drps_pool *pool, uint32_t block)
{
    return drps_pool_block_rows(pool, block) * pool->row_bytes;
}

/* Returns how many units of 1 << unit_shift rows a block takes. */
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

/* Returns how many rows a unit has when `left` rows of the block are still to come: all but the
 * last unit are full. */
static inline size_t drps_pool_rows_of_unit(const struct drps_pool *pool, size_t left)
{
    const size_t most = (size_t)1 << pool->unit_shift;
    return left < most ? left : most;
}

/* Copy a block's rows from or to its units, of which `unit` is the first, to or from one piece of
 * memory. */
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
