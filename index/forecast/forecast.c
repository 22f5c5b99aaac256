/*
 * I/O of an epoch, before it is run: of one pool of blocks (simulation.h), or for each store a
 * curve over sizes of memory.
 *
 * A curve has many pools, which run side by side where memory allows (pools.h), and epochs may have
 * billions of uses. There a share of the blocks, evenly spread over the placed order, runs through
 * pools of that share of the size, and the counts are scaled up (miniature simulation: Waldspurger
 * et al., USENIX ATC 2017). A single pool is run whole.
 */
#include <pthread.h>
#include <string.h>

#include "index/plan/drps_window.h"

#include "index/forecast/pools.h"
#include "index/forecast/simulation.h"

enum {
    CURVE_POINTS = 7,
    CURVE_USES = 2 << 20, /* of blocks in an epoch, that run through the pools of a curve */
};

const struct drps_forecast_disk drps_forecast_usual_disk = {
    .seek_seconds = 40e-6, .bytes_per_s = 1.2e9, .gap_bytes = 24 << 10, .sector = 512};

/* ---- One pool ---- */

int drps_forecast_pib(const struct drps_io *io, const char *dir,
                      const struct drps_window_options *options, const uint32_t *block_first,
                      size_t blocks, const struct drps_pool_shape *shape, enum drps_evict_rule rule,
                      const struct drps_forecast_disk *disk, struct drps_forecast *out,
                      struct drps_forecast_requests *requests_out, struct drps_err *err)
{
    struct simulation m;

    *requests_out = (struct drps_forecast_requests){0};
    *out = (struct drps_forecast){.store = "pib",
                                  .sampled = 1,
                                  .memory_bytes = (uint64_t)shape->units * shape->unit_rows *
                                                  options->row_bytes};
    int rc = drps_simulation_open(&m, io, dir, options, block_first, blocks, shape->unit_rows, disk,
                                  err);
    if (rc == 0) rc = drps_simulation_run(&m, shape, 1, rule, out, requests_out, err);
    drps_simulation_destroy(&m);
    return rc;
}

/* ---- All pools of a curve ---- */

_Static_assert((int)CURVE_POINTS <= (int)POOLS_MOST, "the pools of a curve can run side by side");
_Static_assert((int)CURVE_POINTS <= (int)DRPS_WINDOW_MEASURE_MOST, "so can its windows");

static struct pools_config pools_config(const struct simulation *m)
{
    return (struct pools_config){.block_first = m->block_first,
                                 .blocks = m->blocks,
                                 .row_bytes = (size_t)m->options->row_bytes,
                                 .unit_rows = m->unit_rows,
                                 .steps = m->options->steps};
}

/* Two epochs; what is counted is the second. */
static int run_pools(struct simulation *m, struct pools *pools, struct drps_err *err)
{
    const uint64_t steps = m->options->steps;
    int rc = 0;
    for (uint64_t i = 0; i < 2 * steps && rc == 0; i++) {
        const int changes = i % steps < m->options->train_steps;
        size_t n;
        if (i == steps) drps_pools_forget(pools);
        rc = drps_simulation_read(m, i % steps, &n, err);
        if (rc == 0 && (rc = drps_pools_step(pools, i, m->list, m->distance, n, changes, err)) < 0)
            (void)drps_steps_fault(m->uses, i % steps, err);
    }
    return rc;
}

/* Count as drps_simulation_run() does, with all pools in one pass. */
static int simulate_together(struct simulation *m, const struct drps_pool_shape *shapes, size_t n,
                             struct drps_forecast *out, struct drps_err *err)
{
    const struct pools_config config = pools_config(m);
    struct drps_pool_shape feasible[POOLS_MOST];
    struct pools *pools;
    size_t used = 0;

    for (size_t i = 0; i < n; i++) {
        out[i].feasible = drps_simulation_fits(m, &shapes[i]) && m->blocks;
        if (out[i].feasible) feasible[used++] = shapes[i];
    }
    if (!used) return 0;
    int rc = drps_pools_open(&config, feasible, used, &pools, err);
    if (rc == 0) rc = run_pools(m, pools, err);
    for (size_t i = 0, k = 0; i < n && rc == 0; i++) {
        if (!out[i].feasible) continue;
        const struct pools_count count = drps_pools_counted(pools, k++);
        out[i].read_bytes = count.read_bytes;
        out[i].written_bytes = count.written_bytes;
        out[i].ios = count.ios;
    }
    drps_pools_close(pools);
    return rc;
}

/* All pools side by side, or, where these take too much memory, as many at a time as it allows, the
 * largest first. */
static int curve_of_shapes(struct simulation *m, const struct drps_pool_shape *shapes,
                           struct drps_forecast *out, struct drps_err *err)
{
    const struct pools_config config = pools_config(m);
    int rc = 0;
    if (drps_pools_bytes(&config) <= m->options->memory_bytes)
        return simulate_together(m, shapes, CURVE_POINTS, out, err);
    for (size_t i = 0, n; i < CURVE_POINTS && rc == 0; i += n) {
        uint64_t bytes = drps_simulation_bytes(m, &shapes[i]);
        for (n = 1; i + n < CURVE_POINTS; n++) {
            bytes += drps_simulation_bytes(m, &shapes[i + n]);
            if (bytes > m->options->memory_bytes) break;
        }
        rc = drps_simulation_run(m, shapes + i, n, DRPS_EVICT_FARTHEST, out + i, NULL, err);
    }
    return rc;
}

/* ---- A share of the blocks ---- */

/* Pools of the share's size; one that the largest step fits in whole has room for the share of any
 * step. */
static void shrink(const struct simulation *m, struct drps_pool_shape *shape, int whole_fits)
{
    const uint32_t units = (uint32_t)((double)shape->units * m->share + 0.5);
    const uint32_t frames = (uint32_t)((double)shape->entries * m->share + 0.5);
    if (!whole_fits) {
        shape->units = shape->entries = 0;
        return;
    }
    shape->units = units > m->most_units ? units : (uint32_t)m->most_units;
    shape->entries = frames > m->most_blocks ? frames : (uint32_t)m->most_blocks;
}

static uint64_t curve_uses(const struct simulation *m)
{
    return m->options->curve_uses ? m->options->curve_uses : CURVE_USES;
}

static uint64_t scaled(uint64_t count, double share)
{
    return (uint64_t)((double)count / share + 0.5);
}

static void scale(struct drps_forecast *f, double share)
{
    f->sampled = share;
    f->read_bytes = scaled(f->read_bytes, share);
    f->written_bytes = scaled(f->written_bytes, share);
    f->ios = scaled(f->ios, share);
}

static int curve_by_share(struct simulation *m, struct drps_pool_shape *shapes,
                          struct drps_forecast *out, struct drps_err *err)
{
    int whole_fits[CURVE_POINTS];
    for (size_t i = 0; i < CURVE_POINTS; i++)
        whole_fits[i] = drps_simulation_fits(m, &shapes[i]);
    m->share = (double)curve_uses(m) / (double)m->all_uses;
    m->share_32 = (uint64_t)(m->share * 0x1p32);
    int rc = drps_simulation_measure(m, err);
    for (size_t i = 0; i < CURVE_POINTS; i++)
        shrink(m, &shapes[i], whole_fits[i]);
    if (rc == 0) rc = curve_of_shapes(m, shapes, out, err);
    for (size_t i = 0; i < CURVE_POINTS && rc == 0; i++) {
        scale(&out[i], m->share);
        out[i].feasible = whole_fits[i];
    }
    return rc;
}

/* ---- A curve for each store ---- */

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int curve_pib(struct simulation *m, struct drps_forecast *out, struct drps_err *err)
{
    struct drps_pool_shape shapes[CURVE_POINTS];
    for (size_t i = 0; i < CURVE_POINTS; i++) {
        const uint64_t unit = m->unit_rows * m->options->row_bytes;
        const uint64_t units = (out[i].memory_bytes + unit - 1) / unit;
        shapes[i] = (struct drps_pool_shape){.unit_rows = m->unit_rows,
                                             .units = (uint32_t)units,
                                             .entries = (uint32_t)least_of(units, m->blocks)};
    }
    return m->all_uses > curve_uses(m) ? curve_by_share(m, shapes, out, err)
                                       : curve_of_shapes(m, shapes, out, err);
}

static uint64_t chunks(uint64_t bytes)
{
    return (bytes + DRPS_FORECAST_CHUNK_BYTES - 1) / DRPS_FORECAST_CHUNK_BYTES;
}

static int curve_relay(const struct drps_io *io, const char *dir,
                       const struct drps_window_options *o, struct drps_forecast *out,
                       struct drps_err *err)
{
    uint64_t frames[CURVE_POINTS];
    struct drps_window_measure measured[CURVE_POINTS];

    for (size_t i = 0; i < CURVE_POINTS; i++)
        frames[i] = out[i].memory_bytes / o->row_bytes;
    int rc = drps_windows_measure(io, dir, o, frames, CURVE_POINTS, measured, err);
    for (size_t i = 0; i < CURVE_POINTS && rc == 0; i++) {
        out[i].windows = measured[i].cut.windows;
        out[i].feasible = o->steps == 0 || out[i].windows > 0;
        out[i].read_bytes = out[i].written_bytes = measured[i].rows_sent * o->row_bytes;
        out[i].ios = 2 * chunks(out[i].read_bytes);
    }
    return rc;
}

/* The two curves share nothing but the plan's files: each has a thread, and half of the memory. */
struct relay_curve {
    const struct drps_io *io;
    const char *dir;
    const struct drps_window_options *options;
    struct drps_forecast *out;
    struct drps_err err;
    int rc;
};

static void *measure_relay(void *arg)
{
    struct relay_curve *c = arg;
    c->rc = curve_relay(c->io, c->dir, c->options, c->out, &c->err);
    return NULL;
}

static int curve_both(struct simulation *m, struct relay_curve *relay, struct drps_forecast *pib,
                      struct drps_err *err)
{
    pthread_t thread;
    const int alone = pthread_create(&thread, NULL, measure_relay, relay) != 0;
    int rc = curve_pib(m, pib, err);
    if (alone)
        (void)measure_relay(relay); /* leaves its result in there */
    else
        (void)pthread_join(thread, NULL); /* cannot fail for a thread of ours */
    return rc < 0 || relay->rc == 0 ? rc : drps_err_set(err, relay->rc, "%s", relay->err.text);
}

int drps_forecast_curve(const struct drps_io *io, const char *dir,
                        const struct drps_window_options *options, const uint32_t *block_first,
                        size_t blocks, struct drps_forecast *out, size_t cap, size_t *n_out,
                        struct drps_err *err)
{
    struct drps_forecast all[1 + 2 * CURVE_POINTS];
    struct drps_forecast *pib = all + 1, *relay = all + 1 + CURVE_POINTS;
    struct simulation m;
    struct drps_window_options half = *options;
    uint64_t model = options->rows * options->row_bytes;
    const uint32_t unit_rows =
        drps_pool_unit_rows_for(block_first, blocks, (size_t)options->row_bytes);

    *n_out = 0;
    all[0] = (struct drps_forecast){
        .store = "resident", .memory_bytes = model, .feasible = 1, .sampled = 1};
    for (size_t i = 0; i < CURVE_POINTS; i++) {
        pib[i] = (struct drps_forecast){.store = "pib", .memory_bytes = model >> i, .sampled = 1};
        relay[i] =
            (struct drps_forecast){.store = "relay", .memory_bytes = model >> i, .sampled = 1};
    }
    half.memory_bytes /= 2;
    int rc = drps_simulation_open(&m, io, dir, &half, block_first, blocks, unit_rows, NULL, err);
    struct relay_curve measured = {
        .io = io, .dir = dir, .options = &half, .out = relay, .err = DRPS_ERR_INIT};
    if (rc == 0) rc = curve_both(&m, &measured, pib, err);
    drps_simulation_destroy(&m);
    if (rc < 0) return rc;
    size_t n = sizeof(all) / sizeof(all[0]);
    *n_out = n < cap ? n : cap;
    memcpy(out, all, *n_out * sizeof(*out));
    return 0;
}
