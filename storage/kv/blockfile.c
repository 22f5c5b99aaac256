/*
 * Blocks in a file of their own, for training; storage/kv/drps_extents.h knows where each lies.
 *
 * All blocks asked for together are moved in runs, many at a time, past the page cache. A read goes
 * through gaps that cost less than another request. A write has only pages that hold values of the
 * call, mostly moved to where they lie side by side; where one of them also holds other stored
 * values, its run is read, changed and written in place.
 *
 * A page's checksum is kept in memory and compared whenever a value is taken from the page. The
 * file is of no use without these, and is not kept: a model is written to a database.
 */
#include "storage/kv/kv_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_checksum.h"
#include "storage/io/drps_aio.h"
#include "storage/kv/drps_extents.h"

enum {
    DEPTH = 128,             /* runs under way */
    BUFFERS_LEAST = 1 << 20, /* and at least two of the largest page */
    BUFFERS_MOST = 8 << 20,  /* beyond, the pool makes better use of memory */
    GAP_BYTES = 8 << 10,     /* where the disk was not measured */
    SCAN_BYTES = 1 << 20,    /* of values read at a time */
    SCAN_KEYS = 1 << 14,
    SORT_KEYS = 1 << 13, /* read together */
};

/* One run on its way. */
struct transfer {
    struct drps_run run;
    size_t at;  /* of its bytes in the buffers */
    int reads;  /* what is under way is a read */
    int writes; /* the run is to be written, maybe after a read */
    int done;
};

struct blockfile {
    const struct drps_kv_ops *ops;
    char *path;
    struct drps_extents places;
    uint64_t gap_bytes;
    uint64_t *stored; /* own: one bit a block */
    uint32_t *sum;    /* own: [pages] of those with a stored block */
    struct drps_aio *aio;
    char *buffers; /* own: a ring of runs, given out and taken back in order */
    size_t buffers_bytes;
    size_t ring_at; /* where the next run begins */
    struct transfer ring[DEPTH];
    unsigned first, n;            /* of the ring: runs under way or waiting for older ones */
    uint64_t *order;              /* own: [SORT_KEYS] of the keys being read */
    struct drps_aio_op op[DEPTH]; /* to submit */
    size_t ops_n;
    struct drps_kv_counters counters;
    pthread_mutex_t lock; /* one call at a time */
    int alive;            /* the lock exists */
};

/* One call of get_many or put_many. */
struct call {
    const uint32_t *keys;
    size_t n;
    size_t next;           /* key of the next run to plan */
    struct drps_run run;   /* planned, and waiting for room, unless it has no keys */
    const uint64_t *order; /* [n] of a read: see drps_extents_sort() */
    int write;
    void *const *out;      /* [n] of a read */
    const void *const *in; /* [n] of a write */
};

/* ---- Opening and closing ---- */

static uint64_t tables_bytes(const struct drps_kv_options *o, uint64_t *page_most_out)
{
    struct drps_extents_size size;
    drps_extents_measure(o->block_first, o->blocks, o->row_bytes, DRPS_AIO_SECTOR, &size);
    *page_most_out = size.page_bytes + DRPS_AIO_ALIGN; /* if sectors are larger */
    return size.table_bytes + size.pages * sizeof(uint32_t) + o->blocks / 8 + sizeof(uint64_t) +
           SORT_KEYS * sizeof(uint64_t) + sizeof(struct blockfile);
}

static void kv_memory_need(const struct drps_kv_options *o, uint64_t *least_out, uint64_t *most_out)
{
    uint64_t page;
    const uint64_t tables = tables_bytes(o, &page);
    const uint64_t least = 2 * page > BUFFERS_LEAST ? 2 * page : BUFFERS_LEAST;
    *least_out = tables + SCAN_BYTES + page + least;
    *most_out = *least_out - least + (least > BUFFERS_MOST ? least : BUFFERS_MOST);
}

static size_t buffers_for(const struct drps_kv_options *o)
{
    uint64_t least, most, page;
    kv_memory_need(o, &least, &most);
    const uint64_t tables = tables_bytes(o, &page);
    uint64_t bytes = o->memory_bytes < least  ? least
                     : o->memory_bytes > most ? most
                                              : o->memory_bytes;
    bytes -= tables + SCAN_BYTES + page;
    return (size_t)(bytes / DRPS_AIO_ALIGN * DRPS_AIO_ALIGN) + DRPS_AIO_ALIGN;
}

static void kv_close(struct drps_kv *base)
{
    struct blockfile *kv = (struct blockfile *)base;
    if (!kv) return;
    drps_aio_discard(kv->aio);
    drps_pages_free(kv->buffers, kv->buffers_bytes);
    drps_extents_destroy(&kv->places);
    free(kv->stored);
    free(kv->sum);
    free(kv->order);
    free(kv->path);
    if (kv->alive) (void)pthread_mutex_destroy(&kv->lock);
    free(kv);
}

static int open_places(struct blockfile *kv, const struct drps_kv_options *o, uint32_t sector,
                       struct drps_err *err)
{
    int rc = drps_extents_init(&kv->places, o->block_first, o->blocks, o->row_bytes, sector);
    if (rc < 0) return drps_err_set(err, rc, "%s: places of %zu blocks", kv->path, o->blocks);
    kv->stored = calloc(o->blocks / 64 + 1, sizeof(*kv->stored));
    kv->sum = drps_array_new(kv->places.pages, sizeof(*kv->sum));
    kv->order = drps_array_new(SORT_KEYS, sizeof(*kv->order));
    kv->buffers_bytes = buffers_for(o);
    kv->buffers = drps_pages_new(kv->buffers_bytes);
    if (!kv->stored || !kv->sum || !kv->order || !kv->buffers)
        return drps_err_set(err, -ENOMEM, "%s: tables of %zu blocks", kv->path, o->blocks);
    return 0;
}

static int open_parts(struct blockfile *kv, const struct drps_kv_options *o, struct drps_err *err)
{
    uint32_t sector;
    int rc = drps_aio_sector(o->io, kv->path, &sector, err);
    if (rc == 0) rc = open_places(kv, o, sector, err);
    if (rc < 0) return rc;
    const uint64_t bytes = (uint64_t)kv->places.vacancy.sectors * sector;
    const struct drps_aio_config config = {
        .io = o->io,
        .path = kv->path,
        .file_bytes = (bytes + DRPS_AIO_ALIGN - 1) / DRPS_AIO_ALIGN * DRPS_AIO_ALIGN,
        .buffers = kv->buffers,
        .buffers_bytes = kv->buffers_bytes,
        .depth = DEPTH,
        .align = sector,
        .threads_only = o->no_uring,
    };
    return drps_aio_open(&config, &kv->aio, err);
}

static int kv_open(const char *path, const struct drps_kv_options *o, struct drps_kv **kv_out,
                   struct drps_err *err)
{
    *kv_out = NULL;
    if (!o->create || !o->io || !o->block_first || !o->blocks || !o->row_bytes)
        return drps_err_set(err, -EINVAL, "%s: a block file is made for given blocks, for training",
                            path);
    struct blockfile *kv = calloc(1, sizeof(*kv));
    if (kv) kv->path = strdup(path);
    if (!kv || !kv->path) {
        free(kv);
        return drps_err_set(err, -ENOMEM, "handle of %s", path);
    }
    kv->ops = &drps_kv_file;
    kv->gap_bytes = o->gap_bytes ? o->gap_bytes : GAP_BYTES;
    (void)pthread_mutex_init(&kv->lock, NULL); /* glibc: cannot fail with default attributes */
    kv->alive = 1;
    int rc = open_parts(kv, o, err);
    if (rc < 0) {
        kv_close((struct drps_kv *)kv);
        return rc;
    }
    *kv_out = (struct drps_kv *)kv;
    return 0;
}

/* ---- One run ---- */

static int is_stored(const struct blockfile *kv, uint32_t block)
{
    return (int)(kv->stored[block >> 6] >> (block & 63) & 1);
}

static char *page_of(const struct blockfile *kv, const struct transfer *t, uint32_t page)
{
    return kv->buffers + t->at + (drps_extents_offset(&kv->places, page) - t->run.offset);
}

static uint32_t page_bytes(const struct blockfile *kv, uint32_t page)
{
    return drps_extents_extent(&kv->places, page) * kv->places.sector;
}

static uint32_t page_sum(const struct blockfile *kv, const struct transfer *t, uint32_t page)
{
    return (uint32_t)drps_checksum(page_of(kv, t, page), page_bytes(kv, page));
}

static int verify_page(const struct blockfile *kv, const struct transfer *t, uint32_t page,
                       struct drps_err *err)
{
    if (page_sum(kv, t, page) == kv->sum[page]) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s: the %" PRIu32 " bytes at offset %" PRIu64
                        " are not those that were written (checksum): the disk is failing, or "
                        "something else wrote there; start again",
                        kv->path, page_bytes(kv, page), drps_extents_offset(&kv->places, page));
}

/* A value's place in its page. */
static char *value_at(const struct blockfile *kv, const struct transfer *t, uint32_t page,
                      uint32_t key)
{
    return page_of(kv, t, page) +
           drps_extents_between(&kv->places, drps_extents_first(&kv->places, page), key);
}

static size_t value_bytes_of(const struct blockfile *kv, uint32_t key)
{
    return (size_t)drps_extents_between(&kv->places, key, key + 1);
}

/* Take the values of a run that was read. */
static int take_values(const struct blockfile *kv, const struct transfer *t, const struct call *c,
                       struct drps_err *err)
{
    uint32_t verified = UINT32_MAX;
    for (size_t i = t->run.key; i < t->run.key + t->run.keys; i++) {
        const size_t k = (size_t)(c->order[i] & UINT32_MAX);
        const uint32_t page = drps_extents_page(&kv->places, c->keys[k]);
        int rc = page == verified ? 0 : verify_page(kv, t, page, err);
        if (rc < 0) return rc;
        verified = page;
        memcpy(c->out[k], value_at(kv, t, page, c->keys[k]), value_bytes_of(kv, c->keys[k]));
    }
    return 0;
}

/* What a page holds beside the values of the call: what was read, if the run was, else zeros. */
static int prepare_page(const struct blockfile *kv, const struct transfer *t, uint32_t page,
                        struct drps_err *err)
{
    if (t->run.shared) return verify_page(kv, t, page, err);
    memset(page_of(kv, t, page), 0, page_bytes(kv, page));
    return 0;
}

/* Put the values into their pages. */
static int fill_pages(struct blockfile *kv, const struct transfer *t, const struct call *c,
                      struct drps_err *err)
{
    const size_t keys_end = t->run.key + t->run.keys;
    for (size_t k = t->run.key; k < keys_end;) {
        const uint32_t page = drps_extents_page(&kv->places, c->keys[k]);
        const uint32_t end = drps_extents_first(&kv->places, page + 1);
        int rc = prepare_page(kv, t, page, err);
        if (rc < 0) return rc;
        for (; k < keys_end && c->keys[k] < end; k++)
            memcpy(value_at(kv, t, page, c->keys[k]), c->in[k], value_bytes_of(kv, c->keys[k]));
        kv->sum[page] = page_sum(kv, t, page);
    }
    return 0;
}

/* ---- All runs of a call ---- */

/* Room for a run, behind the newest one: where the ring ends too early, at its beginning. */
static int find_room(const struct blockfile *kv, uint32_t bytes, size_t *at_out)
{
    if (kv->n == DEPTH) return 0;
    if (!kv->n) {
        *at_out = 0;
        return 1;
    }
    const size_t oldest = kv->ring[kv->first].at, at = kv->ring_at;
    *at_out = at > oldest && kv->buffers_bytes - at < bytes ? 0 : at;
    const size_t end = *at_out > oldest ? kv->buffers_bytes : oldest;
    return end - *at_out >= bytes && *at_out + bytes != oldest;
}

static void queue(struct blockfile *kv, struct transfer *t, int write)
{
    t->reads = !write;
    kv->op[kv->ops_n++] = (struct drps_aio_op){.buf = kv->buffers + t->at,
                                               .bytes = t->run.bytes,
                                               .offset = t->run.offset,
                                               .write = write,
                                               .tag = (uint32_t)(t - kv->ring)};
}

/* Plan the next run, unless there is one; 0: there are no more. */
static int plan_run(struct blockfile *kv, struct call *c)
{
    if (c->run.keys) return 1;
    if (c->next == c->n) return 0;
    if (c->write)
        drps_extents_write_run(&kv->places, c->keys, c->n, c->next, kv->stored, &c->run);
    else
        drps_extents_read_run(&kv->places, c->keys, c->order, c->n, c->next, kv->gap_bytes,
                              &c->run);
    c->next += c->run.keys;
    return 1;
}

/* Begin as many runs as there is room for. */
static int begin_runs(struct blockfile *kv, struct call *c, struct drps_err *err)
{
    while (plan_run(kv, c)) {
        size_t at;
        if (!find_room(kv, c->run.bytes, &at)) return 0;
        struct transfer *t = &kv->ring[(kv->first + kv->n++) % DEPTH];
        *t = (struct transfer){.run = c->run, .at = at, .writes = c->write};
        kv->ring_at = at + c->run.bytes;
        c->run.keys = 0;
        const int fill = c->write && !t->run.shared;
        int rc = fill ? fill_pages(kv, t, c, err) : 0;
        if (rc < 0) return rc;
        queue(kv, t, fill);
    }
    return 0;
}

/* What was under way for a run has finished. */
static int go_on(struct blockfile *kv, struct transfer *t, const struct call *c,
                 struct drps_err *err)
{
    if (t->reads && t->writes) {
        int rc = fill_pages(kv, t, c, err);
        if (rc == 0) queue(kv, t, 1);
        return rc;
    }
    t->done = 1;
    return t->reads ? take_values(kv, t, c, err) : 0;
}

static int wait_some(struct blockfile *kv, const struct call *c, struct drps_err *err)
{
    uint32_t tags[DEPTH];
    size_t n = 0;
    int rc = drps_aio_wait(kv->aio, 1, tags, DEPTH, &n, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = go_on(kv, &kv->ring[tags[i]], c, err);
    for (; kv->n && kv->ring[kv->first].done; kv->n--)
        kv->first = (kv->first + 1) % DEPTH;
    return rc;
}

/* After a failure nothing may be under way that touches the buffers. */
static void drain(struct blockfile *kv)
{
    uint32_t tags[DEPTH];
    size_t n;
    while (drps_aio_under_way(kv->aio) && drps_aio_wait(kv->aio, 1, tags, DEPTH, &n, NULL) == 0)
        ;
    kv->n = 0;
    kv->ops_n = 0;
}

static int move(struct blockfile *kv, struct call *c, struct drps_err *err)
{
    int rc = 0;
    while (rc == 0 && (c->next < c->n || c->run.keys || kv->n)) {
        rc = begin_runs(kv, c, err);
        if (rc == 0) rc = drps_aio_submit(kv->aio, kv->op, kv->ops_n, err);
        kv->ops_n = 0;
        if (rc == 0) rc = wait_some(kv, c, err);
    }
    if (rc < 0) drain(kv);
    return rc;
}

static int check_values(const struct blockfile *kv, const uint32_t *keys, size_t n,
                        const size_t *value_bytes, struct drps_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (keys[i] >= kv->places.blocks || (i && keys[i] <= keys[i - 1]))
            return drps_err_set(err, -EINVAL, "%s: block %" PRIu32 " of %zu, after %" PRIu32,
                                kv->path, keys[i], kv->places.blocks, i ? keys[i - 1] : 0);
        if (value_bytes[i] != value_bytes_of(kv, keys[i]))
            return drps_kv_wrong_size(kv->path, keys[i], value_bytes_of(kv, keys[i]),
                                      value_bytes[i], err);
    }
    return 0;
}

static int get_locked(struct blockfile *kv, const uint32_t *keys, size_t n, void *const *values_out,
                      struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        if (!is_stored(kv, keys[i])) return drps_kv_missing(kv->path, keys[i], err);
    for (size_t at = 0; at < n && rc == 0; at += SORT_KEYS) {
        struct call c = {.keys = keys + at,
                         .n = n - at < SORT_KEYS ? n - at : SORT_KEYS,
                         .order = kv->order,
                         .out = values_out + at};
        drps_extents_sort(&kv->places, c.keys, c.n, kv->order);
        rc = move(kv, &c, err);
    }
    return rc;
}

static int kv_get_many(struct drps_kv *base, const uint32_t *keys, size_t n,
                       void *const *values_out, const size_t *value_bytes, struct drps_err *err)
{
    struct blockfile *kv = (struct blockfile *)base;
    int rc = check_values(kv, keys, n, value_bytes, err);
    if (rc < 0) return rc;
    drps_kv_count_get(&kv->counters, n, value_bytes);
    (void)pthread_mutex_lock(&kv->lock);
    rc = get_locked(kv, keys, n, values_out, err);
    (void)pthread_mutex_unlock(&kv->lock);
    return rc;
}

/* A failure may have written some of the values: training cannot go on with them. */
static int kv_put_many(struct drps_kv *base, const uint32_t *keys, size_t n,
                       const void *const *values, const size_t *value_bytes, struct drps_err *err)
{
    struct blockfile *kv = (struct blockfile *)base;
    int rc = check_values(kv, keys, n, value_bytes, err);
    if (rc < 0) return rc;
    drps_kv_count_put(&kv->counters, n, value_bytes);
    struct call c = {.keys = keys, .n = n, .write = 1, .in = values};
    (void)pthread_mutex_lock(&kv->lock);
    rc = move(kv, &c, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        kv->stored[keys[i] >> 6] |= UINT64_C(1) << (keys[i] & 63);
    (void)pthread_mutex_unlock(&kv->lock);
    return rc;
}

/* ---- Scanning ---- */

struct scan {
    uint32_t keys[SCAN_KEYS];
    void *values[SCAN_KEYS];
    size_t n;
    char *bytes; /* own */
    size_t capacity;
};

/* Some stored blocks from `from` on. Returns the block after them. */
static uint32_t collect(const struct blockfile *kv, struct scan *s, uint32_t from)
{
    size_t used = 0;
    s->n = 0;
    for (; from < kv->places.blocks && s->n < SCAN_KEYS; from++) {
        if (!is_stored(kv, from)) continue;
        const size_t bytes = value_bytes_of(kv, from);
        if (bytes > s->capacity - used) break;
        s->keys[s->n] = from;
        s->values[s->n++] = s->bytes + used;
        used += bytes;
    }
    return from;
}

static int kv_scan(struct drps_kv *base, drps_kv_visit visit, void *ctx, struct drps_err *err)
{
    struct blockfile *kv = (struct blockfile *)base;
    struct scan *s = calloc(1, sizeof(*s));
    int rc = s ? 0 : -ENOMEM;
    for (uint32_t b = 0; b < kv->places.blocks && s; b++)
        if (value_bytes_of(kv, b) > s->capacity) s->capacity = value_bytes_of(kv, b);
    if (s && s->capacity < SCAN_BYTES) s->capacity = SCAN_BYTES;
    if (s) s->bytes = drps_array_new(s->capacity, 1);
    if (!s || !s->bytes) rc = drps_err_set(err, -ENOMEM, "%s: buffer for a scan", kv->path);
    for (uint32_t from = 0; from < kv->places.blocks && rc == 0;) {
        (void)pthread_mutex_lock(&kv->lock);
        from = collect(kv, s, from);
        rc = get_locked(kv, s->keys, s->n, s->values, err);
        (void)pthread_mutex_unlock(&kv->lock);
        for (size_t i = 0; i < s->n && rc == 0; i++)
            rc = visit(ctx, s->keys[i], s->values[i], value_bytes_of(kv, s->keys[i]), err);
    }
    if (s) free(s->bytes);
    free(s);
    return rc;
}

/* Nothing is kept, so nothing has to last. */
static int kv_sync(struct drps_kv *base, struct drps_err *err)
{
    (void)base;
    (void)err;
    return 0;
}

static void kv_stats(const struct drps_kv *base, struct drps_kv_stats *out)
{
    const struct blockfile *kv = (const struct blockfile *)base;
    drps_kv_counters_read(&kv->counters, out);
    drps_aio_stats(kv->aio, &out->device.io);
    struct drps_aio_about about;
    drps_aio_about(kv->aio, &about);
    out->device.gap_bytes = kv->gap_bytes;
    out->device.sector = kv->places.sector;
    out->device.direct = about.direct;
    (void)snprintf(out->device.io_engine, sizeof(out->device.io_engine), "%s", about.engine);
    (void)snprintf(out->device.io_remark, sizeof(out->device.io_remark), "%s", about.why);
}

const struct drps_kv_ops drps_kv_file = {
    .name = "file",
    .training_only = 1,
    .one_thread = 1,
    .memory_need = kv_memory_need,
    .open = kv_open,
    .get_many = kv_get_many,
    .put_many = kv_put_many,
    .scan = kv_scan,
    .sync = kv_sync,
    .stats = kv_stats,
    .close = kv_close,
};
