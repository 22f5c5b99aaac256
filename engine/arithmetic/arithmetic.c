/*
 * The plan's batches come from a feed, as in training; their rows are frames of an arena without a
 * store. Only steps are timed, not reading and decoding, which another thread does beside them in
 * training, or which is done once.
 */
#include "engine/arithmetic/drps_arithmetic.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "engine/step/drps_feed.h"
#include "engine/step/drps_worker.h"
#include "engine/train/learning/drps_learning.h"

enum {
    ENOUGH_NS = 300000000,      /* of steps */
    LONGEST_NS = 2 * ENOUGH_NS, /* with reading */
    ARENA_MOST = 256 << 20,     /* more than caches hold */
    BUFFER_BYTES = 1 << 20,
    EPOCHS = 1000,  /* of a plan so small that one is too short to be timed */
    WARM_SHARE = 4, /* so little of ENOUGH_NS, or an epoch, comes first and does not count */
};

struct measuring {
    const struct drps_plan *plan;
    struct drps_server server; /* without a store: rows are those of the arena */
    struct drps_worker worker; /* own */
    struct drps_feed *feed;    /* own */
    char *arena;               /* own: [frames] rows */
    uint64_t frames;
    uint32_t *index; /* own: [max_batch_rows] frames of a batch's rows */
    uint64_t train_ns, score_ns, trained, scored;
};

static struct drps_worker_size size_of(const struct drps_plan_info *info)
{
    return (struct drps_worker_size){
        .samples = info->max_batch_samples, .rows = info->max_batch_rows, .members = 1};
}

/* Rows of the arena: all of the plan, or as many as an eighth of the memory has room for. */
static uint64_t frames_of(const struct measuring *m, uint64_t memory_bytes)
{
    const uint64_t most = memory_bytes / 8 < ARENA_MOST ? memory_bytes / 8 : ARENA_MOST;
    const uint64_t fit = most / m->server.row_bytes, rows = m->plan->info.rows;
    return fit < rows ? fit : rows;
}

static int fits(const struct measuring *m, uint64_t memory_bytes)
{
    const struct drps_worker_size size = size_of(&m->plan->info);
    const uint64_t beside = drps_worker_memory(&m->server, &size) +
                            m->plan->info.max_batch_rows * sizeof(*m->index) +
                            drps_feed_memory(m->feed, BUFFER_BYTES, 0);
    return m->frames >= 1 && beside < memory_bytes / 2;
}

static int open_rows(struct measuring *m, struct drps_err *err)
{
    const struct drps_worker_size size = size_of(&m->plan->info);
    m->arena = drps_pages_new(m->frames * m->server.row_bytes);
    m->index = drps_array_new((size_t)m->plan->info.max_batch_rows, sizeof(*m->index));
    if (!m->arena || !m->index)
        return drps_err_set(err, -ENOMEM, "no memory to measure arithmetic");
    for (uint64_t f = 0; f < m->frames; f++)
        drps_server_fresh(&m->server, f, 1, m->arena + f * m->server.row_bytes);
    m->server.rows =
        (struct drps_rows){.base = m->arena, .stride = m->server.row_bytes, .index = m->index};
    return drps_worker_start(&m->worker, &m->server, &size, err);
}

/* The next batch. Rows of a rank's batch are known by their places at servers: here they are spread
 * over the arena, as neighbours of one batch are over those. */
static int next_batch(struct measuring *m, struct drps_batch *out, struct drps_err *err)
{
    struct drps_feed_batch batch;
    struct drps_feed_share share;
    if (m->plan->info.ranks.count > 1 && !drps_plan_circulates(&m->plan->info)) {
        int rc = drps_feed_next_share(m->feed, &share, err);
        if (rc < 0) return rc;
        *out = share.body;
        for (size_t i = 0; i < out->rows; i++)
            m->index[i] = (uint32_t)(i * m->frames / out->rows);
        return 0;
    }
    int rc = drps_feed_next(m->feed, &batch, err);
    if (rc < 0) return rc;
    *out = batch.body;
    for (size_t i = 0; i < out->rows; i++)
        m->index[i] = (uint32_t)(batch.ids[i] % m->frames);
    return 0;
}

/* Train a batch, or score one. */
static void time_batch(struct measuring *m, const struct drps_batch *batch, int trains, int counts)
{
    m->server.rows.n = batch->rows;
    const uint64_t start = drps_clock_thread_ns();
    if (trains)
        (void)drps_worker_train(&m->worker, batch); /* what it learns does not matter */
    else
        drps_worker_predict(&m->worker, batch);
    const uint64_t took = drps_clock_thread_ns() - start;
    if (!counts) return;
    *(trains ? &m->train_ns : &m->score_ns) += took;
    *(trains ? &m->trained : &m->scored) += batch->samples;
}

/* Training batches are scored, too, every fourth. */
static int time_batches(struct measuring *m, struct drps_err *err)
{
    const struct drps_plan_info *info = &m->plan->info;
    const uint64_t steps = info->batches + info->eval_batches, start = drps_clock_ns();
    uint64_t spent = 0;
    int rc = 0;
    for (uint64_t i = 0; i < EPOCHS * steps && rc == 0; i++) {
        struct drps_batch batch;
        rc = next_batch(m, &batch, err);
        if (rc < 0) break;
        if (batch.samples == 0) continue;
        const uint64_t begin = drps_clock_ns();
        const int counts = i >= steps || spent > ENOUGH_NS / WARM_SHARE;
        if (i % steps < info->batches) time_batch(m, &batch, 1, counts);
        if (i % 4 == 0 || i % steps >= info->batches) time_batch(m, &batch, 0, counts);
        spent += drps_clock_ns() - begin;
        if (m->trained && m->scored && (spent > ENOUGH_NS || drps_clock_ns() - start > LONGEST_NS))
            break;
    }
    return rc;
}

static int measure(struct measuring *m, uint64_t memory_bytes, struct drps_speeds *speeds,
                   struct drps_err *err)
{
    int rc = drps_feed_open(m->plan, drps_model_common_rows(&m->server.model), &m->feed, err);
    m->frames = frames_of(m, memory_bytes);
    if (rc < 0) return rc;
    if (!fits(m, memory_bytes)) return 1;
    rc = open_rows(m, err);
    if (rc == 0) rc = drps_feed_start(m->feed, 0, EPOCHS, BUFFER_BYTES, 0, err);
    if (rc == 0) rc = time_batches(m, err);
    if (rc < 0) return rc;
    if (!m->trained || !m->scored) return 1;
    speeds->sample_ns = (double)(m->train_ns ? m->train_ns : 1) / (double)m->trained;
    speeds->test_sample_ns = (double)(m->score_ns ? m->score_ns : 1) / (double)m->scored;
    return 0;
}

int drps_arithmetic_measure(const struct drps_plan *plan, uint64_t memory_bytes,
                            struct drps_speeds *speeds, struct drps_err *err)
{
    const struct drps_train_options usual = {.seed = 1};
    struct measuring m = {.plan = plan};
    struct drps_model model;
    struct drps_optim optim;
    if (!plan->info.batches || drps_algorithm_is_topic(drps_plan_algorithm(&plan->info))) return 1;
    int rc = drps_learning_model(plan, &usual, &model, err);
    if (rc == 0) rc = drps_learning_optim(plan, &usual, &model, &optim, err);
    if (rc < 0) return rc;
    drps_server_init(&m.server, &model, &optim);
    rc = measure(&m, memory_bytes, speeds, err);
    drps_worker_stop(&m.worker);
    drps_feed_close(m.feed);
    drps_pages_free(m.arena, m.frames * m.server.row_bytes);
    free(m.index);
    return rc;
}
