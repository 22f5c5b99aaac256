/*
 * The block store as the engine's thread sees it: opening it, and running steps. The prefetch
 * thread (prefetch.c) brings the blocks; pib_internal.h has the idea.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "storage/kv/drps_kv.h"
#include "storage/pib/pib_internal.h"

/* 0, or the failure of a thread, copied to err. The lock is held. */
static int failed(const struct drps_pib *st, struct drps_err *err)
{
    if (!st->failure.code) return 0;
    return drps_err_set(err, st->failure.code, "%s", st->failure.text);
}

static void pib_close(struct drps_store *base)
{
    struct drps_pib *st = (struct drps_pib *)base;
    if (!st) return;
    drps_prefetch_stop(st);
    drps_fetch_stop(&st->fetch);
    if (st->kv) st->config.kv->close(st->kv);
    drps_pool_destroy(&st->pool);
    for (size_t i = 0; i < DRPS_PIB_DEPTH; i++) {
        free(st->ring[i].blocks);
        free(st->ring[i].entries);
    }
    free(st->index);
    free(st->items);
    free(st->next_use);
    drps_marks_destroy(&st->marks);
    if (st->alive) {
        (void)pthread_cond_destroy(&st->wake);
        (void)pthread_cond_destroy(&st->news);
        (void)pthread_mutex_destroy(&st->lock);
    }
    free(st);
}

static int open_engine(struct drps_pib *st, const struct drps_pib_split *split,
                       struct drps_err *err)
{
    char *path = drps_path_join(st->config.dir, "blocks");
    if (!path) return drps_err_set(err, -ENOMEM, "path of the block database");
    int rc = st->config.kv->open(path, &split->engine, &st->kv, err);
    free(path);
    return rc;
}

static int open_pool(struct drps_pib *st, const struct drps_pool_shape *shape, struct drps_err *err)
{
    const struct drps_pool_config config = {.block_first = st->config.block_first,
                                            .blocks = st->config.blocks,
                                            .row_bytes = st->config.row_bytes,
                                            .shape = *shape,
                                            .rule = st->config.evict};
    if (drps_pool_init(&st->pool, &config) < 0)
        return drps_err_set(err, -ENOMEM, "block pool of %u x %u rows of %zu bytes", shape->units,
                            shape->unit_rows, st->config.row_bytes);
    st->stats.pool_bytes = st->pool.rows_bytes;
    st->stats.pool = *shape;
    return 0;
}

static int open_parts(struct drps_pib *st, struct drps_err *err)
{
    struct drps_pib_split split;
    int rc = drps_pib_split_memory(&st->config, &split, err);
    if (!rc) rc = open_pool(st, &split.pool, err);
    if (!rc) rc = open_engine(st, &split, err);
    if (!rc) rc = drps_fetch_start(&st->fetch, &st->config, &st->pool, st->kv, err);
    if (!rc) rc = drps_prefetch_start(st, err);
    return rc;
}

static int pib_open(const struct drps_store_config *config, struct drps_store **st_out,
                    struct drps_err *err)
{
    *st_out = NULL;
    struct drps_pib *st = calloc(1, sizeof(*st));
    if (!st) return drps_err_set(err, -ENOMEM, "handle of the row store");
    st->ops = &drps_store_pib;
    st->config = *config;
    if (config->timeline) st->timeline = *config->timeline;
    st->depth = DRPS_PIB_DEPTH;
    if (config->prefetch_steps > 0 && config->prefetch_steps < DRPS_PIB_DEPTH)
        st->depth = (uint64_t)config->prefetch_steps;
    if (st->depth < config->open_steps) st->depth = config->open_steps;
    (void)pthread_mutex_init(&st->lock,
                             NULL); /* glibc: these three cannot fail with default attributes */
    (void)pthread_cond_init(&st->news, NULL);
    (void)pthread_cond_init(&st->wake, NULL);
    st->alive = 1;
    int rc = drps_open_steps_init(&st->steps, config->open_steps, err);
    if (rc == 0) rc = drps_marks_init(&st->marks, config, err);
    if (rc == 0) rc = open_parts(st, err);
    if (rc < 0) {
        pib_close((struct drps_store *)st);
        return rc;
    }
    *st_out = (struct drps_store *)st;
    return 0;
}

/* Wait until the step's blocks are in the pool. */
static int await_ready(struct drps_pib *st, uint64_t step, struct drps_err *err)
{
    (void)pthread_mutex_lock(&st->lock);
    if (st->ready <= step && !st->failure.code) {
        uint64_t start = drps_clock_ns();
        while (st->ready <= step && !st->failure.code)
            (void)pthread_cond_wait(&st->news, &st->lock);
        st->stats.stall_ns += drps_clock_ns() - start;
        st->stats.stalled_steps++;
    }
    int rc = failed(st, err);
    (void)pthread_mutex_unlock(&st->lock);
    return rc;
}

/* The frames of the rows ids[0 .. n), increasing, of one block that begins with row `first`. */
static void place_block(struct drps_pib *st, const uint32_t *ids, size_t n, uint32_t first,
                        uint32_t unit, uint32_t *slots_out)
{
    const struct drps_pool *pool = &st->pool;
    const unsigned shift = pool->unit_shift;
    uint32_t at = first; /* first row of `unit` */
    for (size_t i = 0; i < n; i++) {
        for (; (ids[i] - at) >> shift; at += 1u << shift)
            unit = pool->next_unit[unit];
        slots_out[i] = (unit << shift) + (ids[i] - at);
    }
}

/* The frames of all rows of a step: both lists are sorted, so one walk finds each row in its
 * block's units. */
static int place_rows(struct drps_pib *st, uint64_t step, const uint32_t *ids, size_t n,
                      struct drps_err *err)
{
    const struct drps_pib_step *rec = &st->ring[step % st->depth];
    const uint32_t *block_first = st->config.block_first;
    size_t i = 0;
    if (drps_array_reserve(&st->index, &st->index_cap, n, sizeof(*st->index)) < 0)
        return drps_err_set(err, -ENOMEM, "index of %zu rows", n);
    for (size_t b = 0; b < rec->n && i < n; b++) {
        const uint32_t first = block_first[rec->blocks[b]];
        const uint32_t end = block_first[rec->blocks[b] + 1];
        size_t to = i;
        for (uint32_t least = first; to < n && ids[to] < end; least = ids[to++] + 1)
            if (ids[to] < least) {
                i = to;
                goto unlisted;
            }
        place_block(st, ids + i, to - i, first, st->pool.entry[rec->entries[b]].unit,
                    st->index + i);
        i = to;
    }
    if (i == n) return 0;
unlisted:
    return drps_err_set(err, -EINVAL,
                        "step %llu: row %u is in none of the step's blocks, or out of order",
                        (unsigned long long)step, ids[i]);
}

static int pib_step_open(struct drps_store *base, uint64_t step, const uint32_t *ids, size_t n,
                         struct drps_rows *rows_out, struct drps_err *err)
{
    struct drps_pib *st = (struct drps_pib *)base;
    *rows_out = (struct drps_rows){0};
    int rc = drps_open_steps_check(&st->steps, step, err);
    if (!rc && step >= st->timeline.steps)
        rc = drps_err_set(err, -EINVAL, "step %llu opened, there are %llu",
                          (unsigned long long)step, (unsigned long long)st->timeline.steps);
    if (!rc) rc = await_ready(st, step, err);
    if (!rc) rc = place_rows(st, step, ids, n, err);
    if (rc < 0) return rc;
    drps_open_steps_add(&st->steps);
    drps_marks_open(&st->marks, step, ids, n);
    *rows_out = (struct drps_rows){
        .base = st->pool.rows, .stride = st->config.row_bytes, .index = st->index, .n = n};
    return 0;
}

static int pib_step_close(struct drps_store *base, uint64_t step, int changed, struct drps_err *err)
{
    struct drps_pib *st = (struct drps_pib *)base;
    int rc = drps_open_steps_close(&st->steps, step, err);
    if (rc < 0) return rc;
    drps_marks_close(&st->marks, step, changed);
    (void)pthread_mutex_lock(&st->lock);
    st->ring[step % st->depth].changed = changed;
    st->closed = st->steps.lowest;
    (void)pthread_cond_signal(&st->wake);
    rc = failed(st, err);
    (void)pthread_mutex_unlock(&st->lock);
    return rc;
}

static int scan_still(struct drps_pib *st, int changed, drps_row_visit visit, void *ctx,
                      struct drps_err *err)
{
    int rc = drps_open_steps_none(&st->steps, err);
    if (rc < 0) return rc;
    (void)pthread_mutex_lock(&st->lock);
    st->scanning = 1;
    while (!st->idle) /* what it is doing ends with its I/O; it never waits for this thread without
                         being idle */
        (void)pthread_cond_wait(&st->news, &st->lock);
    rc = failed(st, err);
    (void)pthread_mutex_unlock(&st->lock);
    if (!rc) rc = drps_pib_scan_rows(st, changed, visit, ctx, err);
    (void)pthread_mutex_lock(&st->lock);
    st->scanning = 0;
    (void)pthread_cond_signal(&st->wake);
    (void)pthread_mutex_unlock(&st->lock);
    return rc;
}

static int pib_scan(struct drps_store *base, size_t bytes, drps_row_visit visit, void *ctx,
                    struct drps_err *err)
{
    (void)bytes; /* blocks are read whole */
    return scan_still((struct drps_pib *)base, 0, visit, ctx, err);
}

static int pib_scan_changed(struct drps_store *base, drps_row_visit visit, void *ctx,
                            struct drps_err *err)
{
    return scan_still((struct drps_pib *)base, 1, visit, ctx, err);
}

static void pib_forget_changes(struct drps_store *base)
{
    drps_marks_clear(&((struct drps_pib *)base)->marks);
}

static void pib_stats(struct drps_store *base, struct drps_store_stats *out)
{
    struct drps_pib *st = (struct drps_pib *)base;
    (void)pthread_mutex_lock(&st->lock);
    *out = st->stats;
    const uint64_t ready = st->ready;
    (void)pthread_mutex_unlock(&st->lock);
    out->steps = st->steps.opened;
    out->steps_ahead = ready > out->steps ? ready - out->steps : 0;
    drps_fetch_stats(&st->fetch, &out->io);
    struct drps_kv_stats engine;
    st->config.kv->stats(st->kv, &engine);
    out->device = engine.device;
}

const struct drps_store_ops drps_store_pib = {
    .name = "pib",
    .memory_need = drps_pib_memory_need,
    .open = pib_open,
    .step_open = pib_step_open,
    .step_close = pib_step_close,
    .scan = pib_scan,
    .scan_changed = pib_scan_changed,
    .forget_changes = pib_forget_changes,
    .stats = pib_stats,
    .close = pib_close,
};
