#include "storage/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

#define NONE DRPS_POOL_NONE

size_t drps_pool_max_rows(const uint32_t *block_first, size_t blocks)
{
    size_t most = 0;
    for (size_t b = 0; b < blocks; b++) {
        size_t n = block_first[b + 1] - block_first[b];
        if (n > most) most = n;
    }
    return most;
}

uint64_t drps_pool_block_overhead(uint64_t blocks)
{
    return blocks * sizeof(uint32_t) + blocks / 8 + 8;
}

uint64_t drps_pool_frame_overhead(void)
{
    return sizeof(struct drps_frame) + sizeof(uint32_t) + sizeof(uint64_t) +
           drps_nextuse_bytes(1, 0) - drps_nextuse_bytes(0, 0);
}

int drps_pool_init(struct drps_pool *pool, const struct drps_store_config *config, size_t max_rows,
                   uint32_t frames)
{
    memset(pool, 0, sizeof(*pool));
    pool->block_first = config->block_first;
    pool->blocks = config->blocks;
    pool->row_bytes = config->row_bytes;
    pool->max_rows = max_rows;
    pool->frames = frames;
    pool->rows_bytes = (size_t)frames * max_rows * config->row_bytes;
    pool->rows = drps_pages_new(pool->rows_bytes);
    pool->frame_of = drps_array_new(config->blocks, sizeof(*pool->frame_of));
    pool->stored = calloc(config->blocks / 64 + 1, sizeof(*pool->stored));
    pool->frame = calloc(frames, sizeof(*pool->frame));
    pool->spare = drps_array_new(frames, sizeof(*pool->spare));
    pool->order = drps_array_new(frames, sizeof(*pool->order));
    if (!pool->rows || !pool->frame_of || !pool->stored || !pool->frame || !pool->spare ||
        !pool->order)
        return -ENOMEM;
    for (size_t b = 0; b < config->blocks; b++)
        pool->frame_of[b] = NONE;
    for (uint32_t f = 0; f < frames; f++) {
        pool->frame[f].block = NONE;
        pool->spare[f] = frames - 1 - f; /* the lowest is taken first */
    }
    pool->n_spare = frames;
    return drps_nextuse_init(&pool->queue, frames);
}

void drps_pool_destroy(struct drps_pool *pool)
{
    drps_nextuse_destroy(&pool->queue);
    drps_pages_free(pool->rows, pool->rows_bytes);
    free(pool->frame_of);
    free(pool->stored);
    free(pool->frame);
    free(pool->spare);
    free(pool->order);
    memset(pool, 0, sizeof(*pool));
}

uint32_t drps_pool_pin(struct drps_pool *pool, uint32_t block, uint64_t next_use)
{
    uint32_t f = pool->frame_of[block];
    if (f == NONE) return NONE;
    struct drps_frame *frame = &pool->frame[f];
    if (!frame->pins++) {
        drps_nextuse_remove(&pool->queue, f);
        pool->pinned++;
    }
    frame->next_use = next_use;
    return f;
}

int drps_pool_unpin(struct drps_pool *pool, uint32_t f, int changed, uint64_t now)
{
    struct drps_frame *frame = &pool->frame[f];
    if (changed) frame->dirty = 1;
    if (--frame->pins) return 0;
    pool->pinned--;
    /* A next use in the past comes from a timeline that contradicts itself: that costs hits,
     * nothing else. */
    uint64_t key = frame->next_use < now ? now : frame->next_use;
    return drps_nextuse_insert(&pool->queue, f, key, now);
}

uint32_t drps_pool_available(const struct drps_pool *pool)
{
    return pool->n_spare + pool->queue.n;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

/* Collect n frames in pool->order as (block to write << 32 | frame), those with nothing to write
 * last. */
static size_t vacate(struct drps_pool *pool, size_t n)
{
    size_t evicted = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t write = NONE;
        uint32_t f;
        if (pool->n_spare) {
            f = pool->spare[--pool->n_spare];
        } else {
            f = drps_nextuse_pop(&pool->queue);
            uint32_t block = pool->frame[f].block;
            pool->frame_of[block] = NONE;
            if (pool->frame[f].dirty) write = block;
            evicted++;
        }
        pool->order[i] = (uint64_t)write << 32 | f;
    }
    /* In key order, so that what is written together can be read together. */
    if (evicted) qsort(pool->order, n, sizeof(*pool->order), by_value);
    return evicted;
}

size_t drps_pool_admit(struct drps_pool *pool, struct drps_fetch_item *items,
                       const uint64_t *next_use, size_t n)
{
    size_t evicted = vacate(pool, n);
    for (size_t i = 0; i < n; i++) {
        uint32_t block = items[i].block;
        uint32_t f = (uint32_t)pool->order[i];
        items[i].frame = f;
        items[i].victim = (uint32_t)(pool->order[i] >> 32);
        items[i].read = (uint32_t)drps_pool_is_stored(pool, block);
        pool->frame_of[block] = f;
        pool->frame[f] = (struct drps_frame){.next_use = next_use[i], .block = block, .pins = 1};
    }
    for (size_t i = 0; i < n; i++) /* only now: a victim is never among the blocks that come in */
        if (items[i].victim != NONE)
            pool->stored[items[i].victim >> 6] |= 1ull << (items[i].victim & 63);
    pool->pinned += (uint32_t)n;
    return evicted;
}
