#include "storage/fetch.h"

#include <errno.h>
#include <string.h>

#include "base/drps_clock.h"

enum {
    THREADS = 8, /* more than processors: they wait for the disk most of the time */
    CHUNK_MIN = 8,
    CHUNK_MAX = 128,
    CHUNK_BYTES =
        128
        << 10, /* every thread's write batch takes as much memory in the engine, and more to grow */
};

/* The arguments of one get_many or put_many. */
struct group {
    uint32_t keys[CHUNK_MAX];
    void *rows[CHUNK_MAX];
    size_t bytes[CHUNK_MAX];
    size_t n;
    uint64_t total_bytes;
};

static void group_add(struct group *g, const struct drps_pool *pool, uint32_t block, uint32_t frame)
{
    g->keys[g->n] = block;
    g->rows[g->n] = drps_pool_frame_rows(pool, frame);
    g->bytes[g->n] = drps_pool_block_bytes(pool, block);
    g->total_bytes += g->bytes[g->n];
    g->n++;
}

static int write_group(struct drps_fetch *f, const struct group *g, struct drps_iostat *io,
                       struct drps_err *err)
{
    uint64_t start = drps_clock_ns();
    int rc =
        f->config->kv->put_many(f->kv, g->keys, g->n, (const void *const *)g->rows, g->bytes, err);
    drps_latency_add(&io->write_latency, drps_clock_ns() - start);
    io->writes += g->n;
    io->written_bytes += g->total_bytes;
    io->write_calls++;
    return rc;
}

static int read_group(struct drps_fetch *f, const struct group *g, struct drps_iostat *io,
                      struct drps_err *err)
{
    uint64_t start = drps_clock_ns();
    int rc = f->config->kv->get_many(f->kv, g->keys, g->n, g->rows, g->bytes, err);
    drps_latency_add(&io->read_latency, drps_clock_ns() - start);
    io->reads += g->n;
    io->read_bytes += g->total_bytes;
    io->read_calls++;
    for (size_t i = 0; i < g->n; i++)
        io->seeks += i == 0 || g->keys[i] != g->keys[i - 1] + 1;
    return rc;
}

/* Writes come first: an item's victim leaves through the frame that its block comes into. */
static int do_chunk(struct drps_fetch *f, const struct drps_fetch_item *items, size_t n,
                    struct drps_iostat *io, struct drps_err *err)
{
    struct group g;
    int rc = 0;
    g.n = 0;
    g.total_bytes = 0;
    for (size_t i = 0; i < n; i++)
        if (items[i].victim != DRPS_POOL_NONE)
            group_add(&g, f->pool, items[i].victim, items[i].frame);
    if (g.n) rc = write_group(f, &g, io, err);
    if (rc < 0) return rc;
    g.n = 0;
    g.total_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        if (items[i].read) {
            group_add(&g, f->pool, items[i].block, items[i].frame);
            continue;
        }
        f->config->init(f->config->init_ctx, f->pool->block_first[items[i].block],
                        drps_pool_block_rows(f->pool, items[i].block),
                        drps_pool_frame_rows(f->pool, items[i].frame));
    }
    return g.n ? read_group(f, &g, io, err) : 0;
}

static int may_take(const struct drps_fetch *f)
{
    return f->next < f->n && !f->stopping && !f->failure.code;
}

/* Take and do chunks while there are any; the lock is held at begin and end. */
static void take_chunks(struct drps_fetch *f)
{
    while (may_take(f)) {
        const struct drps_fetch_item *items = f->items + f->next;
        size_t n = f->n - f->next < f->chunk ? f->n - f->next : f->chunk;
        struct drps_iostat io;
        struct drps_err err = DRPS_ERR_INIT;
        memset(&io, 0, sizeof(io));
        f->next += n;
        f->busy++;
        io.queue_depth_sum = (uint64_t)f->busy;
        (void)pthread_mutex_unlock(&f->lock);
        int rc = do_chunk(f, items, n, &io, &err);
        (void)pthread_mutex_lock(&f->lock);
        if (!io.read_calls) io.queue_depth_sum = 0;
        drps_iostat_merge(&f->io, &io);
        if (rc < 0) (void)drps_err_set(&f->failure, rc, "%s", err.text);
        if (!--f->busy) (void)pthread_cond_signal(&f->done);
    }
}

static void *thread_main(void *arg)
{
    struct drps_fetch *f = arg;
    (void)pthread_mutex_lock(&f->lock);
    while (!f->stopping) {
        take_chunks(f);
        if (!f->stopping) (void)pthread_cond_wait(&f->work, &f->lock);
    }
    (void)pthread_mutex_unlock(&f->lock);
    return NULL;
}

int drps_fetch_start(struct drps_fetch *f, const struct drps_store_config *config,
                     const struct drps_pool *pool, struct drps_kv *kv, struct drps_err *err)
{
    memset(f, 0, sizeof(*f));
    f->config = config;
    f->pool = pool;
    f->kv = kv;
    f->threads = config->threads > 0 ? config->threads : THREADS;
    if (f->threads > DRPS_FETCH_THREADS_MAX) f->threads = DRPS_FETCH_THREADS_MAX;
    f->chunk_max = CHUNK_BYTES / (pool->max_rows * pool->row_bytes);
    if (f->chunk_max < 1) f->chunk_max = 1;
    if (f->chunk_max > CHUNK_MAX) f->chunk_max = CHUNK_MAX;
    (void)pthread_mutex_init(&f->lock,
                             NULL); /* glibc: these three cannot fail with default attributes */
    (void)pthread_cond_init(&f->work, NULL);
    (void)pthread_cond_init(&f->done, NULL);
    f->alive = 1;
    while (f->started < f->threads - 1) {
        int rc = pthread_create(&f->thread[f->started], NULL, thread_main, f);
        if (rc)
            return drps_err_set(err, -rc, "start I/O thread %d of %d", f->started + 1, f->threads);
        f->started++;
    }
    return 0;
}

static size_t chunk_size(const struct drps_fetch *f, size_t n)
{
    size_t even =
        n / (2 * (size_t)f->threads) + 1; /* twice as many as threads: who is quick takes another */
    if (even < CHUNK_MIN) even = CHUNK_MIN;
    return even < f->chunk_max ? even : f->chunk_max;
}

int drps_fetch_run(struct drps_fetch *f, const struct drps_fetch_item *items, size_t n,
                   struct drps_err *err)
{
    if (!n) return 0;
    (void)pthread_mutex_lock(&f->lock);
    f->items = items;
    f->n = n;
    f->next = 0;
    f->chunk = chunk_size(f, n);
    if (n > f->chunk) (void)pthread_cond_broadcast(&f->work);
    take_chunks(f);
    while (f->busy)
        (void)pthread_cond_wait(&f->done, &f->lock);
    int finished = f->next == n;
    f->n = 0;
    int rc = f->failure.code;
    if (rc)
        (void)drps_err_set(err, rc, "%s", f->failure.text);
    else if (!finished)
        rc = drps_err_set(err, DRPS_E_INTERRUPTED, "the row store is closing");
    (void)pthread_mutex_unlock(&f->lock);
    return rc;
}

void drps_fetch_cancel(struct drps_fetch *f)
{
    if (!f->alive) return;
    (void)pthread_mutex_lock(&f->lock);
    f->stopping = 1;
    (void)pthread_cond_broadcast(&f->work);
    (void)pthread_mutex_unlock(&f->lock);
}

void drps_fetch_stats(struct drps_fetch *f, struct drps_iostat *out)
{
    (void)pthread_mutex_lock(&f->lock);
    *out = f->io;
    (void)pthread_mutex_unlock(&f->lock);
}

void drps_fetch_stop(struct drps_fetch *f)
{
    if (!f->alive) return;
    drps_fetch_cancel(f);
    while (f->started > 0)
        (void)pthread_join(f->thread[--f->started], NULL); /* cannot fail for a thread of ours */
    (void)pthread_cond_destroy(&f->done);
    (void)pthread_cond_destroy(&f->work);
    (void)pthread_mutex_destroy(&f->lock);
    f->alive = 0;
}
