/*
 * The block pool is run as the block store runs it (storage/pib/drps_pool.h), without rows: a step
 * pins the blocks that are there, gives up others for those that are missing, and holds all of them
 * until it ends. What is given up and what comes in also make runs (storage/kv/drps_extents.h), as
 * of blocks in a file of their own. The first epoch fills the pool, the second one is counted. Not
 * simulated: that the store reads steps ahead where the pool has room for them.
 */
#include "index/forecast/simulation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_batch.h"
#include "storage/kv/drps_extents.h"

/* One pool and what it did since the counting began. */
struct trial {
    struct drps_pool pool;
    struct drps_extents extents; /* unless the simulation is without requests */
    struct drps_forecast count;
    struct drps_forecast_requests requests;
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
        drps_extents_write_run(&t->extents, m->moved, n, i, t->pool.stored, &run);
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
    drps_extents_sort(&t->extents, m->moved, n, m->order);
    for (size_t i = 0; i < n; i += run.keys) {
        drps_extents_read_run(&t->extents, m->moved, m->order, n, i, m->disk->gap_bytes, &run);
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
        if (pool->entry[pool->spare[i]].dirty) m->moved[n++] = pool->entry[pool->spare[i]].block;
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

void drps_simulation_destroy(struct simulation *m)
{
    drps_steps_close(m->uses);
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

int drps_simulation_read(struct simulation *m, uint64_t step, size_t *n_out, struct drps_err *err)
{
    const void *record;
    size_t bytes;

    *n_out = 0;
    int rc = drps_steps_record(m->uses, step, &record, &bytes, err);
    if (rc < 0) return rc;
    rc = decode_step(m, record, bytes, n_out, err);
    if (rc == 0 && m->share < 1) *n_out = take_sample(m, *n_out);
    return rc < 0 ? drps_steps_fault(m->uses, step, err), rc : 0;
}

/* The largest step, by reading all. */
int drps_simulation_measure(struct simulation *m, struct drps_err *err)
{
    int rc = 0;
    m->most_blocks = m->most_units = m->all_uses = 0;
    for (uint64_t s = 0; s < m->options->steps && rc == 0; s++) {
        size_t n;
        uint64_t units = 0;
        rc = drps_simulation_read(m, s, &n, err);
        for (size_t i = 0; i < n && rc == 0; i++)
            units +=
                drps_pool_units(m->block_first, (unsigned)__builtin_ctz(m->unit_rows), m->list[i]);
        m->all_uses += n;
        if (n > m->most_blocks) m->most_blocks = n;
        if (units > m->most_units) m->most_units = units;
    }
    return rc;
}

int drps_simulation_open(struct simulation *m, const struct drps_io *io, const char *dir,
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
    int rc = drps_steps_open(io, dir, DRPS_FILE_USES, DRPS_KIND_USES, o->steps, o->memory_bytes / 8,
                             &m->uses, err);
    return rc == 0 ? drps_simulation_measure(m, err) : rc;
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
        rc = drps_simulation_read(m, i % steps, &n, err);
        for (size_t k = 0; k < n_trials && rc == 0; k++)
            rc = trial_step(m, &trials[k], i, n, err);
    }
    return rc;
}

/* Whether the largest step does. */
int drps_simulation_fits(const struct simulation *m, const struct drps_pool_shape *shape)
{
    return shape->entries >= m->most_blocks && shape->units >= m->most_units;
}

/* Fill the counts of out[0 .. n) for shapes[0 .. n), whose pools are simulated side by side, and of
 * requests (NULL: nobody asks). */
int drps_simulation_run(struct simulation *m, const struct drps_pool_shape *shapes, size_t n,
                        enum drps_evict_rule rule, struct drps_forecast *out,
                        struct drps_forecast_requests *requests, struct drps_err *err)
{
    int rc = 0;
    size_t used = 0;
    struct trial *trials = calloc(n, sizeof(*trials));

    if (!trials) return drps_err_set(err, -ENOMEM, "no memory to simulate pools");
    for (size_t i = 0; i < n && rc == 0; i++) {
        out[i].feasible = drps_simulation_fits(m, &shapes[i]) && m->blocks;
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
            rc = drps_extents_init(&t->extents, m->block_first, m->blocks, config.row_bytes,
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
        drps_extents_destroy(&trials[i].extents);
    }
    free(trials);
    return rc;
}

/* What simulating one pool takes, at most. */
uint64_t drps_simulation_bytes(const struct simulation *m, const struct drps_pool_shape *shape)
{
    return drps_pool_block_overhead(m->blocks) +
           drps_evict_bytes(shape->entries, m->options->steps, (uint32_t)m->options->rows) +
           shape->entries * sizeof(struct drps_pool_entry) + shape->units * sizeof(uint32_t);
}
