/*
 * The block pool: frames of equal size that hold blocks, who sits where, and who must leave.
 *
 * Belongs to the prefetch thread (prefetch.c). Others touch a frame's bytes only while that thread
 * has handed the frame out: I/O threads between drps_fetch_run()'s begin and end, the engine
 * between step_open and step_close.
 */
#ifndef DRPS_POOL_H
#define DRPS_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "storage/drps_store.h"
#include "storage/nextuse.h"

#define DRPS_POOL_NONE UINT32_MAX

struct drps_frame {
    uint64_t next_use; /* of the block in it, as the last step that pinned it knows */
    uint32_t block;    /* NONE: empty */
    uint16_t pins;     /* steps that hold it: prefetched, not yet released */
    uint16_t dirty;    /* its bytes are newer than the engine's */
};

/* Work for one frame: write out the block that was in it, then bring in or create the one that
 * comes. */
struct drps_fetch_item {
    uint32_t block;
    uint32_t frame;
    uint32_t victim; /* block to write first; NONE: nothing to write */
    uint32_t read;   /* 1: the engine has the block; 0: create it */
};

struct drps_pool {
    const uint32_t *block_first; /* borrowed: config's */
    size_t blocks;
    size_t row_bytes;
    size_t max_rows; /* of a block */
    char *rows;      /* own: [frames][max_rows][row_bytes] */
    size_t rows_bytes;
    uint32_t frames;
    uint32_t pinned;          /* frames with pins */
    uint32_t *frame_of;       /* own: [blocks], NONE: not in the pool */
    uint64_t *stored;         /* own: one bit a block: the engine has a value of it */
    struct drps_frame *frame; /* own: [frames] */
    uint32_t *spare;          /* own: empty frames, a stack */
    uint32_t n_spare;
    uint64_t *order;           /* own: [frames] room for sorting */
    struct drps_nextuse queue; /* frames with a block and no pins */
};

/* `max_rows` as drps_pool_max_rows() says. 0 or -ENOMEM; `pool` may be destroyed in either case. */
int drps_pool_init(struct drps_pool *pool, const struct drps_store_config *config, size_t max_rows,
                   uint32_t frames);
void drps_pool_destroy(struct drps_pool *pool);

/* Rows of the largest block. */
size_t drps_pool_max_rows(const uint32_t *block_first, size_t blocks);

/* Memory beside the rows: for each block, for each frame. */
uint64_t drps_pool_block_overhead(uint64_t blocks);
uint64_t drps_pool_frame_overhead(void);

/* Pin a block that is in the pool and learn its next use. Returns its frame, or NONE when it is not
 * there. */
uint32_t drps_pool_pin(struct drps_pool *pool, uint32_t block, uint64_t next_use);

/* Give one pin back; `now`: no step before it will be prefetched again. 0 or -ENOMEM. */
int drps_pool_unpin(struct drps_pool *pool, uint32_t frame, int changed, uint64_t now);

/* Frames that drps_pool_admit() can use. */
uint32_t drps_pool_available(const struct drps_pool *pool);

/*
 * Give each of n <= available blocks that are not in the pool (items[i].block, increasing;
 * next_use[i]) a pinned frame, and fill in the items. Returns how many blocks were evicted.
 */
size_t drps_pool_admit(struct drps_pool *pool, struct drps_fetch_item *items,
                       const uint64_t *next_use, size_t n);

static inline char *drps_pool_frame_rows(const struct drps_pool *pool, uint32_t frame)
{
    return pool->rows + (size_t)frame * pool->max_rows * pool->row_bytes;
}

static inline size_t drps_pool_block_rows(const struct drps_pool *pool, uint32_t block)
{
    return pool->block_first[block + 1] - pool->block_first[block];
}

static inline size_t drps_pool_block_bytes(const struct drps_pool *pool, uint32_t block)
{
    return drps_pool_block_rows(pool, block) * pool->row_bytes;
}

static inline int drps_pool_is_stored(const struct drps_pool *pool, uint32_t block)
{
    return (int)(pool->stored[block >> 6] >> (block & 63) & 1);
}

#endif
