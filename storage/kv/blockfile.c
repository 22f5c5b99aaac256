/*
 * The engine `file`: blocks in a file of their own, for training. drps_extents.h knows where each
 * lies, blockfile_runs.c moves the bytes, and storage/io reads and writes.
 *
 * All blocks asked for together are moved in runs, many at a time, past the page cache. A read goes
 * through gaps that cost less than another request. A write has only pages that hold values of the
 * call, mostly moved to where they lie side by side; where one of them also holds other stored
 * values, its run is read, changed and written in place.
 *
 * A page's checksum is kept in memory and compared whenever a value is taken from the page. The
 * file is of no use without these, and is not kept: a model is written to a database.
 */
#include "storage/kv/blockfile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

enum {
    BUFFERS_LEAST = 1 << 20, /* and at least two of the largest page */
    BUFFERS_MOST = 8 << 20,  /* beyond, the block pool makes better use of memory */
    GAP_BYTES = 8 << 10,     /* where the disk was not measured */
    SCAN_BYTES = 1 << 20,    /* of values read at a time */
    SCAN_KEYS = 1 << 14,
    SORT_KEYS = 1 << 13, /* read together */
};

/* ---- Opening and closing ---- */

static uint64_t tables_bytes(const struct drps_kv_options *o, uint64_t *page_most_out)
{
    struct drps_extents_size size;
    drps_extents_measure(o->block_first, o->blocks, o->row_bytes, DRPS_AIO_SECTOR, &size);
    *page_most_out = size.page_bytes + DRPS_AIO_ALIGN; /* if sectors are larger */
    return size.table_bytes + size.pages * sizeof(uint32_t) + o->blocks / 8 + sizeof(uint64_t) +
           SORT_KEYS * sizeof(uint64_t) + sizeof(struct drps_blockfile);
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
    struct drps_blockfile *kv = (struct drps_blockfile *)base;
    if (!kv) return;
    drps_aio_discard(kv->aio);
    drps_pages_free(kv->buffers, kv->buffers_bytes);
    drps_extents_destroy(&kv->extents);
    free(kv->stored);
    free(kv->sum);
    free(kv->order);
    free(kv->path);
    if (kv->alive) (void)pthread_mutex_destroy(&kv->lock);
    free(kv);
}

static int open_tables(struct drps_blockfile *kv, const struct drps_kv_options *o, uint32_t sector,
                       struct drps_err *err)
{
    int rc = drps_extents_init(&kv->extents, o->block_first, o->blocks, o->row_bytes, sector);
    if (rc < 0) return drps_err_set(err, rc, "%s: extents of %zu blocks", kv->path, o->blocks);
    kv->stored = calloc(o->blocks / 64 + 1, sizeof(*kv->stored));
    kv->sum = drps_array_new(kv->extents.pages, sizeof(*kv->sum));
    kv->order = drps_array_new(SORT_KEYS, sizeof(*kv->order));
    kv->buffers_bytes = buffers_for(o);
    kv->buffers = drps_pages_new(kv->buffers_bytes);
    if (!kv->stored || !kv->sum || !kv->order || !kv->buffers)
        return drps_err_set(err, -ENOMEM, "%s: tables of %zu blocks", kv->path, o->blocks);
    return 0;
}

static int open_parts(struct drps_blockfile *kv, const struct drps_kv_options *o,
                      struct drps_err *err)
{
    uint32_t sector;
    int rc = drps_aio_sector(o->io, kv->path, &sector, err);
    if (rc == 0) rc = open_tables(kv, o, sector, err);
    if (rc < 0) return rc;
    const uint64_t bytes = (uint64_t)kv->extents.free.sectors * sector;
    const struct drps_aio_config config = {
        .io = o->io,
        .path = kv->path,
        .file_bytes = (bytes + DRPS_AIO_ALIGN - 1) / DRPS_AIO_ALIGN * DRPS_AIO_ALIGN,
        .buffers = kv->buffers,
        .buffers_bytes = kv->buffers_bytes,
        .depth = DRPS_BLOCKFILE_DEPTH,
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
    struct drps_blockfile *kv = calloc(1, sizeof(*kv));
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

/* ---- Calls ---- */

static int check_values(const struct drps_blockfile *kv, const uint32_t *keys, size_t n,
                        const size_t *value_bytes, struct drps_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (keys[i] >= kv->extents.blocks || (i && keys[i] <= keys[i - 1]))
            return drps_err_set(err, -EINVAL, "%s: block %" PRIu32 " of %zu, after %" PRIu32,
                                kv->path, keys[i], kv->extents.blocks, i ? keys[i - 1] : 0);
        if (value_bytes[i] != drps_blockfile_value_bytes(kv, keys[i]))
            return drps_kv_wrong_size(kv->path, keys[i], drps_blockfile_value_bytes(kv, keys[i]),
                                      value_bytes[i], err);
    }
    return 0;
}

static int get_locked(struct drps_blockfile *kv, const uint32_t *keys, size_t n,
                      void *const *values_out, struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        if (!drps_blockfile_has(kv, keys[i])) return drps_kv_missing(kv->path, keys[i], err);
    for (size_t at = 0; at < n && rc == 0; at += SORT_KEYS) {
        struct drps_blockfile_call c = {.keys = keys + at,
                                        .n = n - at < SORT_KEYS ? n - at : SORT_KEYS,
                                        .order = kv->order,
                                        .out = values_out + at};
        drps_extents_sort(&kv->extents, c.keys, c.n, kv->order);
        rc = drps_blockfile_move(kv, &c, err);
    }
    return rc;
}

static int kv_get_many(struct drps_kv *base, const uint32_t *keys, size_t n,
                       void *const *values_out, const size_t *value_bytes, struct drps_err *err)
{
    struct drps_blockfile *kv = (struct drps_blockfile *)base;
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
    struct drps_blockfile *kv = (struct drps_blockfile *)base;
    int rc = check_values(kv, keys, n, value_bytes, err);
    if (rc < 0) return rc;
    drps_kv_count_put(&kv->counters, n, value_bytes);
    struct drps_blockfile_call c = {.keys = keys, .n = n, .write = 1, .in = values};
    (void)pthread_mutex_lock(&kv->lock);
    rc = drps_blockfile_move(kv, &c, err);
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

/* Some stored blocks from `from` to before `end`. Returns the block after them. */
static uint32_t collect(const struct drps_blockfile *kv, struct scan *s, uint32_t from,
                        uint32_t end)
{
    size_t used = 0;
    s->n = 0;
    for (; from < end && s->n < SCAN_KEYS; from++) {
        if (!drps_blockfile_has(kv, from)) continue;
        const size_t bytes = drps_blockfile_value_bytes(kv, from);
        if (bytes > s->capacity - used) break;
        s->keys[s->n] = from;
        s->values[s->n++] = s->bytes + used;
        used += bytes;
    }
    return from;
}

static int kv_scan(struct drps_kv *base, uint32_t first, uint32_t end, drps_kv_visit visit,
                   void *ctx, struct drps_err *err)
{
    struct drps_blockfile *kv = (struct drps_blockfile *)base;
    struct scan *s = calloc(1, sizeof(*s));
    int rc = s ? 0 : -ENOMEM;
    if (end > kv->extents.blocks) end = (uint32_t)kv->extents.blocks;
    for (uint32_t b = first; b < end && s; b++)
        if (drps_blockfile_value_bytes(kv, b) > s->capacity)
            s->capacity = drps_blockfile_value_bytes(kv, b);
    if (s && s->capacity < SCAN_BYTES) s->capacity = SCAN_BYTES;
    if (s) s->bytes = drps_array_new(s->capacity, 1);
    if (!s || !s->bytes) rc = drps_err_set(err, -ENOMEM, "%s: buffer for a scan", kv->path);
    while (first < end && rc == 0) {
        (void)pthread_mutex_lock(&kv->lock);
        first = collect(kv, s, first, end);
        rc = get_locked(kv, s->keys, s->n, s->values, err);
        (void)pthread_mutex_unlock(&kv->lock);
        for (size_t i = 0; i < s->n && rc == 0; i++)
            rc = visit(ctx, s->keys[i], s->values[i], drps_blockfile_value_bytes(kv, s->keys[i]),
                       err);
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
    const struct drps_blockfile *kv = (const struct drps_blockfile *)base;
    drps_kv_counters_read(&kv->counters, out);
    drps_aio_stats(kv->aio, &out->device.io);
    struct drps_aio_about about;
    drps_aio_about(kv->aio, &about);
    out->device.gap_bytes = kv->gap_bytes;
    out->device.sector = kv->extents.sector;
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
