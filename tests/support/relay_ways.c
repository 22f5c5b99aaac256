/* The table of ways, the checks that a store took the one that is meant, and its memory. */
#include "support/relay_ways.h"

#include "storage/io/drps_aio.h"
#include "storage/relay/drps_relay.h"
#include "storage/relay/run_layout.h"
#include "storage/relay/runs/drps_runs.h"
#include "support/store_run.h"

static int keeps_all(const struct drps_store_stats *s)
{
    return s->rows_sent == 0;
}

static int has_runs(const struct drps_store_stats *s)
{
    return s->rows_sent > 0 && s->runs > DRPS_RUNS_LEAST;
}

static int has_few_runs(const struct drps_store_stats *s)
{
    return s->rows_sent > 0 && s->runs <= 2 * DRPS_RUNS_LEAST;
}

const struct relay_way relay_ways[RELAY_WAYS] = {
    {.name = "all rows in memory",
     .shape = {.rows = 700, .max_step_rows = 30, .row_bytes = 20, .epoch_steps = 40},
     .wide_row_bytes = 1020,
     .max_steps = 3,
     .waiting = 100,
     .is = keeps_all},
    {.name = "runs",
     .shape = {.rows = 700, .max_step_rows = 30, .row_bytes = 20, .epoch_steps = 60},
     .wide_row_bytes = 1020,
     .max_steps = 3,
     .is = has_runs},
    {.name = "runs of few windows",
     .shape = {.rows = 700, .max_step_rows = 30, .row_bytes = 20, .epoch_steps = 30},
     .wide_row_bytes = 1020,
     .max_steps = 6,
     .is = has_runs},
    {.name = "runs, and rows that wait in memory",
     .shape = {.rows = 700, .max_step_rows = 30, .row_bytes = 20, .epoch_steps = 60},
     .wide_row_bytes = 1020,
     .max_steps = 2,
     .waiting = 15,
     .is = has_runs},
    {.name = "runs of rows wider than a chunk",
     .shape = {.rows = 100, .max_step_rows = 20, .row_bytes = 5000, .epoch_steps = 40},
     .wide_row_bytes = 5000,
     .max_steps = 4,
     .is = has_runs},
    {.name = "rows in grid order",
     .shape = {.rows = 400, .row_bytes = 520, .epoch_steps = 144, .grid = 12},
     .wide_row_bytes = 520,
     .max_steps = 2,
     .is = has_runs},
    {.name = "runs that are merged",
     .shape = {.rows = 900, .max_step_rows = 30, .row_bytes = 48, .epoch_steps = 120},
     .wide_row_bytes = 200,
     .max_steps = 2,
     .tight_buffers = 1,
     .is = has_few_runs},
    {.name = "runs that are merged, and rows that wait in memory",
     .shape = {.rows = 900, .max_step_rows = 30, .row_bytes = 48, .epoch_steps = 70},
     .wide_row_bytes = 200,
     .max_steps = 1,
     .waiting = 10,
     .tight_buffers = 1,
     .is = has_few_runs},
};

struct plan *relay_plan(const struct relay_way *way, int wide, size_t epochs, uint64_t seed)
{
    struct plan_shape shape = way->shape;
    shape.max_block_rows = 9;
    shape.epochs = epochs;
    if (wide) shape.row_bytes = way->wide_row_bytes;
    struct plan *p = plan_new(seed, &shape);
    plan_cut(p, seed, way->max_steps);
    return p;
}

uint64_t relay_least_buffers(const struct drps_store_config *config)
{
    struct drps_run_layout l;
    uint64_t bytes =
        drps_run_layout_least(config->windows->windows, config->rows, config->row_bytes) -
        drps_run_layout_scan(config->rows, config->row_bytes);
    while (drps_run_layout_choose(config, bytes, 1000, &l, NULL) < 0)
        bytes += DRPS_AIO_ALIGN;
    return bytes;
}

struct drps_store_config relay_config(const struct plan *p, const struct relay_way *way)
{
    struct drps_store_config config = plan_config(p);
    struct drps_relay_share share;
    drps_relay_share(0, p->rows, p->row_bytes, 0, &share);
    config.chunk_bytes = 4096;
    if (way->tight_buffers) share.buffer_bytes = relay_least_buffers(&config);
    config.buffer_bytes = share.buffer_bytes;
    config.scan_bytes = 4;
    config.memory_bytes = share.buffer_bytes + p->source.working_rows * share.row_bytes +
                          (uint64_t)way->waiting * p->rows / 100 * share.waiting_bytes;
    return config;
}
