/* Entries and units of the block pool: given out, taken back, copied; drps_pool.h has the idea. */
#include "storage/pib/drps_pool.h"

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

static int allocate(struct drps_pool *pool, int bookkeeping)
{
    pool->rows_bytes = ((size_t)pool->units << pool->unit_shift) * pool->row_bytes;
    if (!bookkeeping) {
        pool->rows = drps_pages_new(pool->rows_bytes);
        if (!pool->rows) return -ENOMEM;
    }
    pool->entry_of = drps_array_new(pool->blocks, sizeof(*pool->entry_of));
    pool->stored = calloc(pool->blocks / 64 + 1, sizeof(*pool->stored));
    pool->entry = calloc(pool->entries, sizeof(*pool->entry));
    pool->spare = drps_array_new(pool->entries, sizeof(*pool->spare));
    pool->next_unit = drps_array_new(pool->units, sizeof(*pool->next_unit));
    return pool->entry_of && pool->stored && pool->entry && pool->spare && pool->next_unit
               ? 0
               : -ENOMEM;
}

int drps_pool_init(struct drps_pool *pool, const struct drps_pool_config *config)
{
    *pool = (struct drps_pool){
        .block_first = config->block_first,
        .blocks = config->blocks,
        .row_bytes = config->row_bytes,
        .unit_shift = (unsigned)__builtin_ctz(config->shape.unit_rows),
        .units = config->shape.units,
        .entries = config->shape.entries,
    };
    int rc = allocate(pool, config->bookkeeping);
    if (rc < 0) return rc;
    for (size_t b = 0; b < pool->blocks; b++)
        pool->entry_of[b] = NONE;
    for (uint32_t f = 0; f < pool->entries; f++) {
        pool->entry[f].block = NONE;
        pool->spare[f] = pool->entries - 1 - f; /* the lowest is taken first, as of units */
    }
    pool->n_spare = pool->entries;
    for (uint32_t u = 0; u < pool->units; u++)
        pool->next_unit[u] = u + 1;
    pool->n_free_units = pool->units;
    const size_t unit_rows = config->shape.unit_rows;
    const size_t max_rows = drps_pool_max_rows(pool->block_first, pool->blocks);
    return drps_evict_init(&pool->evict, config->rule, pool->entries,
                           (uint32_t)((max_rows + unit_rows - 1) / unit_rows),
                           unit_rows * pool->row_bytes);
}

void drps_pool_destroy(struct drps_pool *pool)
{
    drps_evict_destroy(&pool->evict);
    if (pool->rows) drps_pages_free(pool->rows, pool->rows_bytes);
    free(pool->entry_of);
    free(pool->stored);
    free(pool->entry);
    free(pool->spare);
    free(pool->next_unit);
    memset(pool, 0, sizeof(*pool));
}

uint32_t drps_pool_pin(struct drps_pool *pool, uint32_t block, uint64_t next_use)
{
    uint32_t f = pool->entry_of[block];
    if (f == NONE) return NONE;
    struct drps_pool_entry *entry = &pool->entry[f];
    if (!entry->pins++) {
        drps_evict_remove(&pool->evict, f, drps_pool_block_units(pool, block));
        pool->pinned++;
        pool->pinned_units += drps_pool_block_units(pool, block);
    }
    entry->next_use = next_use;
    return f;
}

int drps_pool_unpin(struct drps_pool *pool, uint32_t f, int changed, uint64_t now)
{
    struct drps_pool_entry *entry = &pool->entry[f];
    if (changed) entry->dirty = 1;
    if (--entry->pins) return 0;
    pool->pinned--;
    pool->pinned_units -= drps_pool_block_units(pool, entry->block);
    /* A next use in the past comes from a timeline that contradicts itself: that costs hits,
     * nothing else. */
    uint64_t next_use = entry->next_use < now ? now : entry->next_use;
    return drps_evict_insert(&pool->evict, f, drps_pool_block_units(pool, entry->block), next_use,
                             now);
}

/* Free the units of a block. Their links stay as they are, and the last one is linked to those that
 * were free before. */
static void free_units(struct drps_pool *pool, uint32_t first, uint32_t n)
{
    uint32_t last = first;
    for (uint32_t i = 1; i < n; i++)
        last = pool->next_unit[last];
    pool->next_unit[last] = pool->free_unit;
    pool->free_unit = first;
    pool->n_free_units += n;
}

size_t drps_pool_evict(struct drps_pool *pool, size_t blocks, size_t units, uint64_t now)
{
    size_t evicted = 0;
    while (pool->n_spare < blocks || pool->n_free_units < units) {
        uint32_t f = drps_evict_pop(&pool->evict, now);
        const struct drps_pool_entry *entry = &pool->entry[f];
        pool->entry_of[entry->block] = NONE;
        free_units(pool, entry->unit, drps_pool_block_units(pool, entry->block));
        pool->spare[pool->n_spare++] = f;
        evicted++;
    }
    return evicted;
}

uint32_t drps_pool_admit(struct drps_pool *pool, uint32_t block, uint64_t next_use)
{
    const uint32_t f = pool->spare[--pool->n_spare];
    const uint32_t n = drps_pool_block_units(pool, block);
    pool->entry[f] = (struct drps_pool_entry){
        .next_use = next_use, .block = block, .unit = pool->free_unit, .pins = 1};
    for (uint32_t i = 0; i < n; i++)
        pool->free_unit = pool->next_unit[pool->free_unit];
    pool->n_free_units -= n;
    pool->entry_of[block] = f;
    pool->pinned++;
    pool->pinned_units += n;
    return f;
}

void drps_pool_copy_out(const struct drps_pool *pool, uint32_t block, uint32_t unit, void *rows)
{
    char *to = rows;
    for (size_t left = drps_pool_block_rows(pool, block), n; left; left -= n) {
        n = drps_pool_rows_of_unit(pool, left);
        memcpy(to, drps_pool_unit_rows(pool, unit), n * pool->row_bytes);
        to += n * pool->row_bytes;
        unit = pool->next_unit[unit];
    }
}

void drps_pool_copy_in(const struct drps_pool *pool, uint32_t block, uint32_t unit,
                       const void *rows)
{
    const char *from = rows;
    for (size_t left = drps_pool_block_rows(pool, block), n; left; left -= n) {
        n = drps_pool_rows_of_unit(pool, left);
        memcpy(drps_pool_unit_rows(pool, unit), from, n * pool->row_bytes);
        from += n * pool->row_bytes;
        unit = pool->next_unit[unit];
    }
}
