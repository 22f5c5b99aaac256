/*
 * I/O of an epoch, before it is run.
 *
 * The block pool is run as the block store runs it (storage/pool.h), without rows: a step pins the
 * blocks that are there, gives up others for those that are missing, and holds all of them until it
 * ends. What is given up and what comes in also make runs (storage/places.h), as of blocks in a
 * file of their own. The first epoch fills the pool, the second one is counted. Not simulated: that
 * the store reads steps ahead where the pool has room for them.
 *
 * A curve has many pools, which run side by side where memory allows (pools.h), and epochs may have
 * billions of uses. There a share of the blocks, evenly spread over the placed order, runs through
 * pools of that share of the size, and the counts are scaled up (miniature simulation: Waldspurger
 * et al., USENIX ATC 2017). A single pool is run whole.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "index/drps_window.h"

#include "base/drps_alloc.h"
#include "index/drps_batch.h"
#include "index/pools.h"
#include "index/steps.h"
#include "storage/places.h"
#include "storage/pool.h"

enum {
    CURVE_POINTS = 7,
    CURVE_USES = 2 << 20, /* of blocks in an epoch, that run through the pools of a curve */
};

const struct drps_forecast_disk drps_forecast_usual_disk = {
    .seek_seconds = 40e-6, .bytes_per_s = 1.2e9, .gap_bytes = 24 << 10, .sector = 512};

/* One pool and what it did since the counting began. */
struct trial {
    struct drps_pool pool;
    struct drps_places places; /* unless the simulation is without requests */
    struct drps_forecast count;
    struct drps_forecast_requests requests;
};

struct simulation {
    const struct drps_window_options *options;
    const struct drps_forecast_disk *disk; /* NULL: requests are not counted */
    const uint32_t *block_first;
    size_t blocks;
    uint32_t unit_rows;
    uint64_t most_blocks, most_units; /* of a step, in the share that is simulated */
    uint64_t all_uses;                /* of an epoch, of all blocks */
    double share;                     /* of the blocks, evenly spread */
    uint64_t share_32;                /* times 2^32 */
    struct steps *uses;
    uint32_t *list, *distance; /* [cap] of one step */
    uint32_t *moved;           /* [cap] blocks that one step writes, then those that it reads */
    uint64_t *order;           /* [cap] of those that it reads */
    uint32_t *frame;           /* [cap] of the blocks of one step */
    size_t list_cap, distance_cap, moved_cap, order_cap, frame_cap;
};

/* ---- One step of one pool ---- */

static int by_number(const void *a, const void *b)
{
    uint32_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

static void count_request(const struct simulation *m, struct trial *t, uint64_t bytes)
{
    t->requests.n++;
    t->requests.moved_bytes += bytes;
    t->requests.seconds += m->disk->seek_seconds + (double)bytes / m->disk->bytes_per_s;
}

static void count_blocks(const struct simulation *m, struct trial *t, size_t n,
                         uint64_t *bytes_inout)
{
    for (size_t i = 0; i < n; i++)
        *bytes_inout += drps_pool_block_bytes(&t->pool, m->moved[i]);
    t->count.ios += n;
}

/* m->moved [n], increasing, is written. */
static void count_writes(const struct simulation *m, struct trial *t, size_t n)
{
    struct drps_run run;
    count_blocks(m, t, n, &t->count.written_bytes);
    if (!m->disk) return;
    for (size_t i = 0; i < n; i += run.keys) {
        drps_places_write_run(&t->places, m->moved, n, i, t->pool.stored, &run);
        count_request(m, t, run.bytes);
        if (run.shared) count_request(m, t, run.bytes); /* it is read first */
    }
}

/* m->moved [n], increasing, is read. */
static int count_reads(struct simulation *m, struct trial *t, size_t n, struct drps_err *err)
{
    struct drps_run run;
    count_blocks(m, t, n, &t->count.read_bytes);
    if (!m->disk) return 0;
    if (drps_array_reserve(&m->order, &m->order_cap, n, sizeof(*m->order)) < 0)
        return drps_err_set(err, -ENOMEM, "no memory for %zu blocks", n);
    drps_places_sort(&t->places, m->moved, n, m->order);
    for (size_t i = 0; i < n; i += run.keys) {
        drps_places_read_run(&t->places, m->moved, m->order, n, i, m->disk->gap_bytes, &run);
        count_request(m, t, run.bytes);
    }
    return 0;
}

static int give_up(struct simulation *m, struct trial *t, uint64_t now, size_t missing,
                   size_t units, struct drps_err *err)
{
    struct drps_pool *pool = &t->pool;
    const size_t evicted = drps_pool_evict(pool, missing, units, now);
    size_t n = 0;
    if (drps_array_reserve(&m->moved, &m->moved_cap, evicted, sizeof(*m->moved)) < 0)
        return drps_err_set(err, -ENOMEM, "no memory for %zu blocks", evicted);
    for (size_t i = pool->n_spare - evicted; i < pool->n_spare; i++)
        if (pool->frame[pool->spare[i]].dirty) m->moved[n++] = pool->frame[pool->spare[i]].block;
    if (n && m->disk) qsort(m->moved, n, sizeof(*m->moved), by_number);
    count_writes(m, t, n);
    for (size_t i = 0; i < n; i++)
        drps_pool_set_stored(pool, m->moved[i]);
    return 0;
}

static int bring(struct simulation *m, struct trial *t, uint64_t now, size_t n,
                 struct drps_err *err)
{
    struct drps_pool *pool = &t->pool;
    size_t read = 0;
    if (drps_array_reserve(&m->moved, &m->moved_cap, n, sizeof(*m->moved)) < 0)
        return drps_err_set(err, -ENOMEM, "no memory for %zu blocks", n);
    for (size_t i = 0; i < n; i++) {
        if (m->frame[i] != DRPS_POOL_NONE) continue;
        m->frame[i] = drps_pool_admit(pool, m->list[i], now + m->distance[i]);
        if (drps_pool_is_stored(pool, m->list[i])) m->moved[read++] = m->list[i];
    }
    return count_reads(m, t, read, err);
}

/* m->list [n] is the step's; `now` counts steps of both epochs. */
static int trial_step(struct simulation *m, struct trial *t, uint64_t now, size_t n,
                      struct drps_err *err)
{
    const int changes = now % m->options->steps < m->options->train_steps;
    size_t missing = 0, units = 0;
    if (drps_array_reserve(&m->frame, &m->frame_cap, n, sizeof(*m->frame)) < 0)
        return drps_err_set(err, -ENOMEM, "no memory for %zu blocks", n);
    for (size_t i = 0; i < n; i++) {
        m->frame[i] = drps_pool_pin(&t->pool, m->list[i], now + m->distance[i]);
        if (m->frame[i] != DRPS_POOL_NONE) continue;
        missing++;
        units += drps_pool_block_units(&t->pool, m->list[i]);
    }
    int rc = give_up(m, t, now, missing, units, err);
    if (rc == 0) rc = bring(m, t, now, n, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        if (drps_pool_unpin(&t->pool, m->frame[i], changes, now + 1) < 0)
            rc = drps_err_set(err, -ENOMEM, "no memory for the next uses of blocks");
    return rc;
}

/* ---- The records ---- */

static void simulation_destroy(struct simulation *m)
{
    steps_close(m->uses);
    free(m->list);
    free(m->distance);
    free(m->moved);
    free(m->order);
    free(m->frame);
}

static int check_step(const struct simulation *m, size_t n, struct drps_err *err)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++)
        most = m->distance[i] > most ? m->distance[i] : most;
    if (n && (m->list[n - 1] >= m->blocks || most > m->options->steps))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "block %" PRIu32 " of %zu, a distance of %" PRIu32 " in %" PRIu64
                            " steps",
                            m->list[n - 1], m->blocks, most, m->options->steps);
    return 0;
}

static int decode_step(struct simulation *m, const void *record, size_t bytes, size_t *n_out,
                       struct drps_err *err)
{
    size_t n = bytes >= 4 ? drps_list_count(record) : 0;

    if (n > bytes)
        return drps_err_set(err, DRPS_E_CORRUPT, "a list of %zu blocks in %zu bytes", n, bytes);
    if (drps_array_reserve(&m->list, &m->list_cap, n, sizeof(*m->list)) ||
        drps_array_reserve(&m->distance, &m->distance_cap, n, sizeof(*m->distance)))
        return drps_err_set(err, -ENOMEM, "no memory for %zu blocks", n);
    int rc = drps_uses_decode(record, bytes, m->list, m->distance, err);
    if (rc < 0) return rc;
    *n_out = n;
    return check_step(m, n, err);
}

/* Keeps the blocks of the share: neighbours are used alike, so it has some of each kind. */
static size_t take_sample(struct simulation *m, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        m->list[kept] = m->list[i];
        m->distance[kept] = m->distance[i];
        kept += (m->list[i] + UINT64_C(1)) * m->share_32 >> 32 != m->list[i] * m->share_32 >> 32;
    }
    return kept;
}

static int read_step(struct simulation *m, uint64_t step, size_t *n_out, struct drps_err *err)
{
    const void *record;
    size_t bytes;

    *n_out = 0;
    int rc = steps_record(m->uses, step, &record, &bytes, err);
    if (rc < 0) return rc;
    rc = decode_step(m, record, bytes, n_out, err);
    if (rc == 0 && m->share < 1) *n_out = take_sample(m, *n_out);
    return rc < 0 ? steps_fault(m->uses, step, err), rc : 0;
}

/* The largest step, by reading all. */
static int measure_steps(struct simulation *m, struct drps_err *err)
{
    int rc = 0;
    m->most_blocks = m->most_units = m->all_uses = 0;
    for (uint64_t s = 0; s < m->options->steps && rc == 0; s++) {
        size_t n;
        uint64_t units = 0;
        rc = read_step(m, s, &n, err);
        for (size_t i = 0; i < n && rc == 0; i++)
            units +=
                (m->block_first[m->list[i] + 1] - m->block_first[m->list[i]] + m->unit_rows - 1) /
                m->unit_rows;
        m->all_uses += n;
        if (n > m->most_blocks) m->most_blocks = n;
        if (units > m->most_units) m->most_units = units;
    }
    return rc;
}

static int simulation_open(struct simulation *m, const struct drps_io *io, const char *dir,
                           const struct drps_window_options *o, const uint32_t *block_first,
                           size_t blocks, uint32_t unit_rows, const struct drps_forecast_disk *disk,
                           struct drps_err *err)
{
    *m = (struct simulation){.options = o,
                             .disk = disk,
                             .block_first = block_first,
                             .blocks = blocks,
                             .unit_rows = unit_rows,
                             .share = 1};
    if (o->steps >= INT32_MAX || blocks >= UINT32_MAX)
        return drps_err_set(err, -EINVAL, "a forecast for %" PRIu64 " steps and %zu blocks",
                            o->steps, blocks);
    int rc = steps_open(io, dir, "uses.rec", DRPS_KIND_USES, o->steps, o->memory_bytes / 8,
                        &m->uses, err);
    return rc == 0 ? measure_steps(m, err) : rc;
}

static void start_counting(struct trial *t)
{
    t->count = (struct drps_forecast){0};
    t->requests = (struct drps_forecast_requests){0};
}

/* Two epochs through all pools; what is counted is the second. */
static int run_trials(struct simulation *m, struct trial *trials, size_t n_trials,
                      struct drps_err *err)
{
    const uint64_t steps = m->options->steps;
    int rc = 0;
    for (uint64_t i = 0; i < 2 * steps && n_trials && rc == 0; i++) {
        size_t n;
        for (size_t k = 0; i == steps && k < n_trials; k++)
            start_counting(&trials[k]);
        rc = read_step(m, i % steps, &n, err);
        for (size_t k = 0; k < n_trials && rc == 0; k++)
            rc = trial_step(m, &trials[k], i, n, err);
    }
    return rc;
}

/* Whether the largest step does. */
static int fits(const struct simulation *m, const struct drps_pool_shape *shape)
{
    return shape->frames >= m->most_blocks && shape->units >= m->most_units;
}

/* Fill the counts of out[0 .. n) for shapes[0 .. n), whose pools are simulated side by side, and of
 * requests (NULL: nobody asks). */
static int simulate(struct simulation *m, const struct drps_pool_shape *shapes, size_t n,
                    enum drps_evict_rule rule, struct drps_forecast *out,
                    struct drps_forecast_requests *requests, struct drps_err *err)
{
    int rc = 0;
    size_t used = 0;
    struct trial *trials = calloc(n, sizeof(*trials));

    if (!trials) return drps_err_set(err, -ENOMEM, "no memory to simulate pools");
    for (size_t i = 0; i < n && rc == 0; i++) {
        out[i].feasible = fits(m, &shapes[i]) && m->blocks;
        if (!out[i].feasible) continue;
        const struct drps_pool_config config = {.block_first = m->block_first,
                                                .blocks = m->blocks,
                                                .row_bytes = (size_t)m->options->row_bytes,
                                                .shape = shapes[i],
                                                .rule = rule,
                                                .bookkeeping = 1};
        struct trial *t = &trials[used++];
        rc = drps_pool_init(&t->pool, &config);
        if (rc == 0 && m->disk)
            rc = drps_places_init(&t->places, m->block_first, m->blocks, config.row_bytes,
                                  m->disk->sector);
        if (rc < 0) (void)drps_err_set(err, rc, "cannot simulate %zu blocks", m->blocks);
    }
    if (rc == 0) rc = run_trials(m, trials, used, err);
    for (size_t i = 0, k = 0; i < n && rc == 0; i++) {
        if (!out[i].feasible) continue;
        const struct trial *t = &trials[k++];
        out[i].read_bytes = t->count.read_bytes;
        out[i].written_bytes = t->count.written_bytes;
        out[i].ios = t->count.ios;
        if (requests) requests[i] = t->requests;
    }
    for (size_t i = 0; i < used; i++) {
        drps_pool_destroy(&trials[i].pool);
        drps_places_destroy(&trials[i].places);
    }
    free(trials);
    return rc;
}

/* ---- Points of the curve ---- */

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

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
    int rc =
        simulation_open(&m, io, dir, options, block_first, blocks, shape->unit_rows, disk, err);
    if (rc == 0) rc = simulate(&m, shape, 1, rule, out, requests_out, err);
    simulation_destroy(&m);
    return rc;
}

/* What simulating one pool takes, at most. */
static uint64_t trial_bytes(const struct simulation *m, const struct drps_pool_shape *shape)
{
    return drps_pool_block_overhead(m->blocks) +
           drps_evict_bytes(shape->frames, m->options->steps, (uint32_t)m->options->rows) +
           shape->frames * sizeof(struct drps_frame) + shape->units * sizeof(uint32_t);
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

/* As run_trials(). */
static int run_pools(struct simulation *m, struct pools *pools, struct drps_err *err)
{
    const uint64_t steps = m->options->steps;
    int rc = 0;
    for (uint64_t i = 0; i < 2 * steps && rc == 0; i++) {
        const int changes = i % steps < m->options->train_steps;
        size_t n;
        if (i == steps) pools_forget(pools);
        rc = read_step(m, i % steps, &n, err);
        if (rc == 0 && (rc = pools_step(pools, i, m->list, m->distance, n, changes, err)) < 0)
            (void)steps_fault(m->uses, i % steps, err);
    }
    return rc;
}

/* As simulate(). */
static int simulate_together(struct simulation *m, const struct drps_pool_shape *shapes, size_t n,
                             struct drps_forecast *out, struct drps_err *err)
{
    const struct pools_config config = pools_config(m);
    struct drps_pool_shape feasible[POOLS_MOST];
    struct pools *pools;
    size_t used = 0;

    for (size_t i = 0; i < n; i++) {
        out[i].feasible = fits(m, &shapes[i]) && m->blocks;
        if (out[i].feasible) feasible[used++] = shapes[i];
    }
    if (!used) return 0;
    int rc = pools_open(&config, feasible, used, &pools, err);
    if (rc == 0) rc = run_pools(m, pools, err);
    for (size_t i = 0, k = 0; i < n && rc == 0; i++) {
        if (!out[i].feasible) continue;
        const struct pools_count count = pools_counted(pools, k++);
        out[i].read_bytes = count.read_bytes;
        out[i].written_bytes = count.written_bytes;
        out[i].ios = count.ios;
    }
    pools_close(pools);
    return rc;
}

/* All pools side by side, or, where these take too much memory, as many at a time as it allows, the
 * largest first. */
static int curve_of_shapes(struct simulation *m, const struct drps_pool_shape *shapes,
                           struct drps_forecast *out, struct drps_err *err)
{
    const struct pools_config config = pools_config(m);
    int rc = 0;
    if (pools_bytes(&config) <= m->options->memory_bytes)
        return simulate_together(m, shapes, CURVE_POINTS, out, err);
    for (size_t i = 0, n; i < CURVE_POINTS && rc == 0; i += n) {
        uint64_t bytes = trial_bytes(m, &shapes[i]);
        for (n = 1; i + n < CURVE_POINTS; n++) {
            bytes += trial_bytes(m, &shapes[i + n]);
            if (bytes > m->options->memory_bytes) break;
        }
        rc = simulate(m, shapes + i, n, DRPS_EVICT_FARTHEST, out + i, NULL, err);
    }
    return rc;
}

/* ---- A share of the blocks ---- */

/* Pools of the share's size; one that the largest step fits in whole has room for the share of any
 * step. */
static void shrink(const struct simulation *m, struct drps_pool_shape *shape, int whole_fits)
{
    const uint32_t units = (uint32_t)((double)shape->units * m->share + 0.5);
    const uint32_t frames = (uint32_t)((double)shape->frames * m->share + 0.5);
    if (!whole_fits) {
        shape->units = shape->frames = 0;
        return;
    }
    shape->units = units > m->most_units ? units : (uint32_t)m->most_units;
    shape->frames = frames > m->most_blocks ? frames : (uint32_t)m->most_blocks;
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
        whole_fits[i] = fits(m, &shapes[i]);
    m->share = (double)curve_uses(m) / (double)m->all_uses;
    m->share_32 = (uint64_t)(m->share * 0x1p32);
    int rc = measure_steps(m, err);
    for (size_t i = 0; i < CURVE_POINTS; i++)
        shrink(m, &shapes[i], whole_fits[i]);
    if (rc == 0) rc = curve_of_shapes(m, shapes, out, err);
    for (size_t i = 0; i < CURVE_POINTS && rc == 0; i++) {
        scale(&out[i], m->share);
        out[i].feasible = whole_fits[i];
    }
    return rc;
}

static int curve_pib(struct simulation *m, struct drps_forecast *out, struct drps_err *err)
{
    struct drps_pool_shape shapes[CURVE_POINTS];
    for (size_t i = 0; i < CURVE_POINTS; i++) {
        const uint64_t unit = m->unit_rows * m->options->row_bytes;
        const uint64_t units = (out[i].memory_bytes + unit - 1) / unit;
        shapes[i] = (struct drps_pool_shape){.unit_rows = m->unit_rows,
                                             .units = (uint32_t)units,
                                             .frames = (uint32_t)least_of(units, m->blocks)};
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
    int rc = simulation_open(&m, io, dir, &half, block_first, blocks, unit_rows, NULL, err);
    struct relay_curve measured = {
        .io = io, .dir = dir, .options = &half, .out = relay, .err = DRPS_ERR_INIT};
    if (rc == 0) rc = curve_both(&m, &measured, pib, err);
    simulation_destroy(&m);
    if (rc < 0) return rc;
    size_t n = sizeof(all) / sizeof(all[0]);
    *n_out = n < cap ? n : cap;
    memcpy(out, all, *n_out * sizeof(*out));
    return 0;
}
