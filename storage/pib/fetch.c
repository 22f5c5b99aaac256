/* I/O threads take chunks of a list of blocks, and call the engine for as many blocks of a kind as
 * their room takes; fetch.h has the idea. */
#include "storage/pib/fetch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "storage/kv/drps_kv.h"

enum {
    THREADS = 8, /* more than processors: they wait for the disk most of the time */
    CHUNK_LEAST = 8,
    CHUNK_MOST = 128,
    CHUNK_BYTES = 128 << 10, /* every thread's write batch takes as much memory in the engine, and
                                more to grow */
    WHOLE_MOST = 8192,       /* for an engine that takes all there is */
    WHOLE_BYTES = 1 << 20,
};

/* The arguments of one get_many or put_many. Blocks of a single unit are read and written where
 * they are, others through `bytes`. */
struct drps_fetch_room {
    uint32_t *keys; /* own, as are the others: [items] */
    uint32_t *units;
    void **rows;
    size_t *sizes;
    char *bytes; /* [capacity] */
    size_t items, capacity;
    size_t n, used; /* of these */
    uint64_t total_bytes;
};

struct limits {
    int threads;
    size_t items;    /* of a chunk, at most */
    size_t capacity; /* bytes that go through a room */
};

static struct limits limits_for(const struct drps_store_config *config, size_t max_bytes)
{
    const int whole = config->kv->one_thread;
    const size_t bytes = whole ? WHOLE_BYTES : CHUNK_BYTES;
    struct limits l = {.threads = config->threads > 0 ? config->threads : THREADS,
                       .items = whole ? WHOLE_MOST : CHUNK_MOST,
                       .capacity = max_bytes > bytes ? max_bytes : bytes};
    if (whole) l.threads = 1;
    if (l.threads > DRPS_FETCH_THREADS_MAX) l.threads = DRPS_FETCH_THREADS_MAX;
    return l;
}

uint64_t drps_fetch_bytes(const struct drps_store_config *config, size_t max_bytes)
{
    const struct limits l = limits_for(config, max_bytes);
    return (uint64_t)l.threads * (l.items * (2 * sizeof(uint32_t) + 2 * sizeof(size_t)) +
                                  l.capacity + sizeof(struct drps_fetch_room));
}

static int room_init(struct drps_fetch_room *r, const struct limits *l)
{
    *r = (struct drps_fetch_room){.items = l->items, .capacity = l->capacity};
    r->keys = drps_array_new(r->items, sizeof(*r->keys));
    r->units = drps_array_new(r->items, sizeof(*r->units));
    r->rows = drps_array_new(r->items, sizeof(*r->rows));
    r->sizes = drps_array_new(r->items, sizeof(*r->sizes));
    r->bytes = drps_array_new(r->capacity, 1);
    return r->keys && r->units && r->rows && r->sizes && r->bytes ? 0 : -ENOMEM;
}

static void room_free(struct drps_fetch_room *r)
{
    free(r->keys);
    free(r->units);
    free(r->rows);
    free(r->sizes);
    free(r->bytes);
}

/* Add an item. Returns 0 when there is no room for one more. */
static int room_add(struct drps_fetch_room *r, const struct drps_pool *pool,
                    const struct drps_fetch_item *item)
{
    const size_t bytes = drps_pool_block_bytes(pool, item->block);
    const int in_place = drps_pool_block_units(pool, item->block) == 1;
    if (r->n == r->items || (!in_place && bytes > r->capacity - r->used)) return 0;
    r->keys[r->n] = item->block;
    r->units[r->n] = item->unit;
    r->rows[r->n] = in_place ? drps_pool_unit_rows(pool, item->unit) : r->bytes + r->used;
    r->sizes[r->n++] = bytes;
    r->used += in_place ? 0 : bytes;
    r->total_bytes += bytes;
    return 1;
}

static int is_in_place(const struct drps_fetch_room *r, const struct drps_pool *pool, size_t i)
{
    return r->rows[i] == drps_pool_unit_rows(pool, r->units[i]);
}

static int write_room(struct drps_fetch *f, struct drps_fetch_room *r, struct drps_iostat *io,
                      struct drps_err *err)
{
    for (size_t i = 0; i < r->n; i++)
        if (!is_in_place(r, f->pool, i))
            drps_pool_copy_out(f->pool, r->keys[i], r->units[i], r->rows[i]);
    uint64_t start = drps_clock_ns();
    int rc =
        f->config->kv->put_many(f->kv, r->keys, r->n, (const void *const *)r->rows, r->sizes, err);
    drps_latency_add(&io->write_latency, drps_clock_ns() - start);
    io->writes += r->n;
    io->written_bytes += r->total_bytes;
    io->write_calls++;
    return rc;
}

static int read_room(struct drps_fetch *f, struct drps_fetch_room *r, struct drps_iostat *io,
                     struct drps_err *err)
{
    uint64_t start = drps_clock_ns();
    int rc = f->config->kv->get_many(f->kv, r->keys, r->n, r->rows, r->sizes, err);
    drps_latency_add(&io->read_latency, drps_clock_ns() - start);
    io->reads += r->n;
    io->read_bytes += r->total_bytes;
    io->read_calls++;
    for (size_t i = 0; i < r->n; i++) {
        io->seeks += i == 0 || r->keys[i] != r->keys[i - 1] + 1;
        if (rc == 0 && !is_in_place(r, f->pool, i))
            drps_pool_copy_in(f->pool, r->keys[i], r->units[i], r->rows[i]);
    }
    return rc;
}

static int create_rows(const struct drps_fetch *f, const struct drps_fetch_item *item,
                       struct drps_err *err)
{
    const struct drps_pool *pool = f->pool;
    uint64_t first = pool->block_first[item->block];
    uint32_t unit = item->unit;
    int rc = 0;
    for (size_t left = drps_pool_block_rows(pool, item->block), n; left && rc == 0; left -= n) {
        n = drps_pool_rows_of_unit(pool, left);
        rc = f->config->init(f->config->init_ctx, first, n, drps_pool_unit_rows(pool, unit), err);
        first += n;
        unit = pool->next_unit[unit];
    }
    return rc;
}

/* Do as many items of one kind, from `from` on, as the room takes, in one call of the engine. */
static int do_some(struct drps_fetch *f, struct drps_fetch_room *r,
                   const struct drps_fetch_item *items, size_t n, enum drps_fetch_what what,
                   size_t *from, struct drps_iostat *io, struct drps_err *err)
{
    r->n = r->used = 0;
    r->total_bytes = 0;
    for (; *from < n; (*from)++)
        if (items[*from].what == what && !room_add(r, f->pool, &items[*from])) break;
    if (!r->n) return 0;
    return what == DRPS_FETCH_WRITE ? write_room(f, r, io, err) : read_room(f, r, io, err);
}

static int do_chunk(struct drps_fetch *f, struct drps_fetch_room *r,
                    const struct drps_fetch_item *items, size_t n, struct drps_iostat *io,
                    struct drps_err *err)
{
    int rc = 0;
    for (size_t at = 0; at < n && rc == 0;)
        rc = do_some(f, r, items, n, DRPS_FETCH_WRITE, &at, io, err);
    for (size_t at = 0; at < n && rc == 0;)
        rc = do_some(f, r, items, n, DRPS_FETCH_READ, &at, io, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        if (items[i].what == DRPS_FETCH_CREATE) rc = create_rows(f, &items[i], err);
    return rc;
}

static int may_take(const struct drps_fetch *f)
{
    return f->next < f->n && !f->stopping && !f->failure.code;
}

/* Take and do chunks while there are any; the lock is held at begin and end. */
static void take_chunks(struct drps_fetch *f, struct drps_fetch_room *room)
{
    while (may_take(f)) {
        const struct drps_fetch_item *items = f->items + f->next;
        size_t n = f->n - f->next < f->chunk ? f->n - f->next : f->chunk;
        struct drps_iostat io;
        struct drps_err err = DRPS_ERR_INIT;
        memset(&io, 0, sizeof(io));
        f->next += n;
        f->busy++;
        const uint64_t depth = (uint64_t)f->busy;
        (void)pthread_mutex_unlock(&f->lock);
        int rc = do_chunk(f, room, items, n, &io, &err);
        (void)pthread_mutex_lock(&f->lock);
        io.queue_depth_sum = depth * io.read_calls;
        drps_iostat_merge(&f->io, &io);
        if (rc < 0) (void)drps_err_set(&f->failure, rc, "%s", err.text);
        if (!--f->busy) (void)pthread_cond_signal(&f->done);
    }
}

static void *thread_main(void *arg)
{
    struct drps_fetch *f = arg;
    (void)pthread_mutex_lock(&f->lock);
    struct drps_fetch_room *room = &f->room[++f->rooms_taken]; /* the first is the caller's */
    while (!f->stopping) {
        take_chunks(f, room);
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
    const struct limits l =
        limits_for(config, drps_pool_max_rows(pool->block_first, pool->blocks) * pool->row_bytes);
    f->threads = l.threads;
    f->chunk_least = l.threads == 1 ? SIZE_MAX : CHUNK_LEAST; /* nobody to share with */
    f->chunk_most = l.items;
    (void)pthread_mutex_init(&f->lock,
                             NULL); /* glibc: these three cannot fail with default attributes */
    (void)pthread_cond_init(&f->work, NULL);
    (void)pthread_cond_init(&f->done, NULL);
    f->alive = 1;
    f->room = calloc((size_t)f->threads, sizeof(*f->room));
    int rc = f->room ? 0 : -ENOMEM;
    for (int i = 0; i < f->threads && rc == 0; i++)
        rc = room_init(&f->room[i], &l);
    if (rc < 0) return drps_err_set(err, rc, "buffers of %d I/O threads", f->threads);
    while (f->started < f->threads - 1) {
        rc = pthread_create(&f->thread[f->started], NULL, thread_main, f);
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
    if (even < f->chunk_least) even = f->chunk_least;
    return even < f->chunk_most ? even : f->chunk_most;
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
    take_chunks(f, f->room);
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
    for (int i = 0; f->room && i < f->threads; i++)
        room_free(&f->room[i]);
    free(f->room);
    f->alive = 0;
}
