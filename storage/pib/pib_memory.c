/*
 * How the block store splits its memory: the engine first, since it does not bend, then tables and
 * buffers, and what is left becomes the block pool.
 */
#include <errno.h>

#include "storage/kv/drps_kv.h"
#include "storage/pib/drps_pib.h"
#include "storage/pib/pib_internal.h"

enum {
    ENGINE_PART = 8,           /* of the memory, between the engine's least and most */
    QUEUE_SPAN_MOST = 1 << 24, /* steps to the next use that are planned for */
};

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static unsigned open_steps(const struct drps_store_config *config)
{
    return config->open_steps ? config->open_steps : 1;
}

/* How many of the largest steps the pool has room for together, at least. */
static unsigned pool_steps(const struct drps_store_config *config)
{
    const unsigned open = open_steps(config), wanted = config->kv->pool_steps;
    return open > wanted ? open : wanted;
}

/* The most that steps open together need. */
static struct drps_step_size open_size(const struct drps_store_config *config)
{
    const struct drps_step_size *step = &config->step;
    const uint64_t n = pool_steps(config);
    return (struct drps_step_size){
        .blocks = least_of(n * step->blocks, config->blocks),
        .block_rows = least_of(n * step->block_rows, config->rows),
        .rows = step->rows,
    };
}

static int check_config(const struct drps_store_config *config, struct drps_err *err)
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
    if (open_steps(config) > DRPS_PIB_DEPTH)
        return drps_err_set(err, -EINVAL, "%u steps open at a time: a block store has room for %d",
                            config->open_steps, DRPS_PIB_DEPTH);
    if (!config->timeline || !config->kv || !config->init)
        return drps_err_set(err, -EINVAL,
                            "a block store needs a timeline, an engine and an initialiser");
    return 0;
}

/* Steps that next uses lie apart at most, in the pool and in the steps that are read ahead. */
static uint64_t queue_span(const struct drps_timeline *timeline)
{
    const uint64_t ahead =
        timeline->max_use_distance ? timeline->max_use_distance + DRPS_PIB_DEPTH : timeline->steps;
    return least_of(least_of(ahead, timeline->steps), QUEUE_SPAN_MOST);
}

/* Memory beside the pool's units: its tables, the ring of steps, the lists of the prefetch thread,
 * buffers of the I/O threads, the index of one step. */
static uint64_t fixed_bytes(const struct drps_store_config *config)
{
    const size_t max_rows = drps_pool_max_rows(config->block_first, config->blocks);
    const struct drps_step_size *step = &config->step;
    const uint64_t span = queue_span(config->timeline);
    uint64_t rows = step->rows         ? step->rows
                    : step->block_rows ? step->block_rows
                                       : step->blocks * max_rows;
    uint64_t each =
        DRPS_PIB_DEPTH * 2 * sizeof(uint32_t) + sizeof(struct drps_fetch_item) + sizeof(uint64_t);
    return drps_pool_block_overhead(config->blocks) +
           drps_evict_bytes(0, span, (uint32_t)max_rows) +
           drps_fetch_bytes(config, max_rows * config->row_bytes) + step->blocks * each +
           least_of(rows, config->rows) * sizeof(uint32_t);
}

static struct drps_kv_options engine_options(const struct drps_store_config *config)
{
    return (struct drps_kv_options){
        .value_bytes = (size_t)(config->rows / config->blocks) * config->row_bytes,
        .create = 1,
        .io = config->io,
        .block_first = config->block_first,
        .blocks = config->blocks,
        .row_bytes = config->row_bytes,
        .gap_bytes = config->seek_bytes / 2,
        .no_uring = config->no_uring,
    };
}

uint64_t drps_pib_engine_least(const struct drps_store_config *config)
{
    const struct drps_kv_options engine = engine_options(config);
    uint64_t least, most;
    config->kv->memory_need(&engine, &least, &most);
    return least;
}

static void shape(const struct drps_store_config *config, uint64_t bytes,
                  struct drps_pool_shape *out)
{
    const struct drps_step_size size = open_size(config);
    drps_pool_shape(config->block_first, config->blocks, config->row_bytes, &size, bytes, out);
}

int drps_pib_memory_need(const struct drps_store_config *config, uint64_t *least_out,
                         uint64_t *most_out, struct drps_err *err)
{
    *least_out = *most_out = 0;
    int rc = check_config(config, err);
    if (rc < 0) return rc;
    const struct drps_kv_options engine = engine_options(config);
    const uint64_t fixed = fixed_bytes(config);
    struct drps_pool_shape pool;
    shape(config, 0, &pool);
    config->kv->memory_need(&engine, least_out, most_out);
    *least_out += fixed + pool.least_bytes;
    *most_out += fixed + pool.most_bytes;
    return 0;
}

int drps_pib_split_memory(const struct drps_store_config *config, struct drps_pib_split *split_out,
                          struct drps_err *err)
{
    uint64_t least, most, engine_least, engine_most;
    int rc = drps_pib_memory_need(config, &least, &most, err);
    if (rc < 0) return rc;
    *split_out = (struct drps_pib_split){.engine = engine_options(config)};
    config->kv->memory_need(&split_out->engine, &engine_least, &engine_most);
    if (config->memory_bytes < least)
        return drps_err_set(
            err, DRPS_E_MEMORY_BUDGET,
            "the block store has %llu bytes of memory and needs at least %llu: %llu for %s, the "
            "rest for the %llu blocks of the %u largest steps",
            (unsigned long long)config->memory_bytes, (unsigned long long)least,
            (unsigned long long)engine_least, config->kv->name,
            (unsigned long long)open_size(config).blocks, pool_steps(config));
    /* The engine's part grows with the memory, but never at the cost of what the largest step
     * needs. */
    uint64_t engine = config->memory_bytes / ENGINE_PART;
    engine = engine < engine_least ? engine_least : least_of(engine, engine_most);
    engine = least_of(engine, engine_least + (config->memory_bytes - least));
    split_out->engine.memory_bytes = engine;
    shape(config, config->memory_bytes - engine - fixed_bytes(config), &split_out->pool);
    return 0;
}
