/*
 * How the block store splits its memory: the engine first, since it does not bend, then tables and
 * buffers, and what is left becomes frames.
 */
#include <errno.h>

#include "storage/pib_internal.h"

enum {
    MIB = 1 << 20,
    ENGINE_LEAST = 24 * MIB,   /* under this RocksDB fails to stay within what it is given */
    ENGINE_MOST = 192 * MIB,   /* beyond it frames pay better */
    ENGINE_PART = 8,           /* of the memory, between these two */
    QUEUE_SPAN_MOST = 1 << 24, /* steps to the next use that are planned for */
};

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int check_config(const struct drps_store_config *config, uint32_t *max_rows_out,
                        struct drps_err *err)
{
    if (!config->row_bytes || config->row_bytes % 4)
        return drps_err_set(err, -EINVAL, "rows of %zu bytes: not a multiple of 4",
                            config->row_bytes);
    if (!config->blocks || config->blocks >= DRPS_POOL_NONE || !config->block_first)
        return drps_err_set(err, -EINVAL, "%zu blocks", config->blocks);
    if (config->rows > UINT32_MAX || config->block_first[0] != 0 ||
        config->block_first[config->blocks] != config->rows)
        return drps_err_set(err, -EINVAL, "blocks cover rows %u to %u, there are %llu rows",
                            config->block_first[0], config->block_first[config->blocks],
                            (unsigned long long)config->rows);
    for (size_t b = 0; b < config->blocks; b++)
        if (config->block_first[b] >= config->block_first[b + 1])
            return drps_err_set(err, -EINVAL, "block %zu begins at row %u and ends at row %u", b,
                                config->block_first[b], config->block_first[b + 1]);
    if (!config->timeline || !config->kv || !config->init)
        return drps_err_set(err, -EINVAL,
                            "a block store needs a timeline, an engine and an initialiser");
    *max_rows_out = (uint32_t)drps_pool_max_rows(config->block_first, config->blocks);
    return 0;
}

/* Tables of the pool, the ring of steps, the lists of the prefetch thread, the index of one step.
 */
static uint64_t fixed_bytes(const struct drps_store_config *config, size_t step_blocks,
                            size_t max_rows)
{
    uint64_t span = least_of(config->timeline->steps, QUEUE_SPAN_MOST);
    uint64_t rows =
        config->max_step_rows ? config->max_step_rows : (uint64_t)step_blocks * max_rows;
    uint64_t step =
        DRPS_PIB_DEPTH * 2 * sizeof(uint32_t) + sizeof(struct drps_fetch_item) + sizeof(uint64_t);
    return drps_pool_block_overhead(config->blocks) + drps_nextuse_bytes(0, span) +
           step_blocks * step + least_of(rows, config->rows) * sizeof(uint32_t);
}

int drps_pib_memory_need(const struct drps_store_config *config, size_t max_step_blocks,
                         uint64_t *least_out, uint64_t *most_out, struct drps_err *err)
{
    uint32_t max_rows;
    *least_out = *most_out = 0;
    int rc = check_config(config, &max_rows, err);
    if (rc < 0) return rc;
    uint64_t frame = (uint64_t)max_rows * config->row_bytes + drps_pool_frame_overhead();
    uint64_t fixed = fixed_bytes(config, max_step_blocks, max_rows);
    *least_out = ENGINE_LEAST + fixed + (max_step_blocks ? max_step_blocks : 1) * frame;
    *most_out = ENGINE_MOST + fixed + config->blocks * frame;
    return 0;
}

int drps_pib_split_memory(const struct drps_store_config *config, struct drps_pib_split *split_out,
                          struct drps_err *err)
{
    uint64_t least, most;
    *split_out = (struct drps_pib_split){0};
    int rc = drps_pib_memory_need(config, config->max_step_blocks, &least, &most, err);
    if (rc < 0) return rc;
    if (config->memory_bytes < least)
        return drps_err_set(
            err, DRPS_E_MEMORY_BUDGET,
            "the block store has %llu bytes of memory and needs at least %llu: %d for %s, the rest "
            "for the %zu blocks of the largest step",
            (unsigned long long)config->memory_bytes, (unsigned long long)least, ENGINE_LEAST,
            config->kv->name, config->max_step_blocks);
    rc = check_config(config, &split_out->max_rows, err);
    if (rc < 0) return rc;
    uint64_t frame = (uint64_t)split_out->max_rows * config->row_bytes + drps_pool_frame_overhead();
    uint64_t fixed = fixed_bytes(config, config->max_step_blocks, split_out->max_rows);
    /* The engine's part grows with the memory, but never at the cost of frames that the largest
     * step needs. */
    uint64_t engine = config->memory_bytes / ENGINE_PART;
    engine = engine < ENGINE_LEAST ? ENGINE_LEAST : least_of(engine, ENGINE_MOST);
    engine = least_of(engine, ENGINE_LEAST + (config->memory_bytes - least));
    uint64_t frames = least_of((config->memory_bytes - engine - fixed) / frame, config->blocks);
    split_out->frames =
        (uint32_t)least_of(frames, UINT32_MAX / split_out->max_rows); /* slots are 32 bits */
    split_out->engine_bytes = engine;
    split_out->fixed_bytes = fixed;
    return 0;
}
