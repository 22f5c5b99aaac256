/*
 * LevelDB under the block store.
 *
 * LevelDB maps its table files and leaves reading to page faults. The kernel reads ahead around
 * every fault, up to megabytes for one block, which under a memory limit also pushes out what
 * others need. LevelDB offers no switch for that; storage/kv/mapped.c tells the kernel from
 * outside.
 */
#include "storage/kv/kv_internal.h"

#ifdef DRPS_WITH_LEVELDB

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_endian.h"
#include "storage/kv/mapped.h"

#include <leveldb/c.h>

enum {
    DEFAULT_MEMORY = 32 << 20,
    DEFAULT_VALUE = 4096,
    POOL_STEPS = 4, /* measured: docs/blocks.md */
};

struct leveldb_kv {
    const struct drps_kv_ops *ops;
    char *path;
    int bulk;
    int read_only;
    leveldb_t *db;
    leveldb_options_t *options;
    leveldb_cache_t *cache;
    leveldb_filterpolicy_t *filter;
    leveldb_readoptions_t *get_options;
    leveldb_readoptions_t *scan_options;
    leveldb_writeoptions_t *write_options;
    leveldb_writeoptions_t *sync_options;
    struct drps_kv_counters counters;
    struct drps_mapped mapped;
};

/* Takes and frees `text`. */
static int fail(const struct leveldb_kv *kv, const char *doing, char *text, struct drps_err *err)
{
    int rc = drps_kv_foreign_error("LevelDB", kv->path, doing, text, err);
    leveldb_free(text);
    return rc;
}

static size_t clamp(size_t v, size_t least, size_t most)
{
    return v < least ? least : v > most ? most : v;
}

static void make_options(struct leveldb_kv *kv, const struct drps_kv_options *in)
{
    size_t memory = in->memory_bytes ? (size_t)in->memory_bytes : DEFAULT_MEMORY;
    size_t value = in->value_bytes ? in->value_bytes : DEFAULT_VALUE;
    leveldb_options_t *o = leveldb_options_create();
    kv->options = o;
    kv->cache = leveldb_cache_create_lru(
        memory / 8); /* of blocks: the block pool above has the ones worth keeping */
    kv->filter = leveldb_filterpolicy_create_bloom(10);
    leveldb_options_set_create_if_missing(o, in->create != 0);
    leveldb_options_set_error_if_exists(o, in->create != 0);
    leveldb_options_set_cache(o, kv->cache);
    leveldb_options_set_filter_policy(o, kv->filter);
    leveldb_options_set_compression(o, leveldb_no_compression);
    leveldb_options_set_write_buffer_size(o, clamp(memory / 6, 1 << 20, 32 << 20));
    leveldb_options_set_block_size(o, clamp(value, 4096, 64 << 10));
    leveldb_options_set_max_file_size(o, in->bulk ? 64 << 20 : 16 << 20);
    leveldb_options_set_max_open_files(o, 512);
}

static void make_call_options(struct leveldb_kv *kv)
{
    kv->get_options = leveldb_readoptions_create();
    leveldb_readoptions_set_verify_checksums(kv->get_options, 1);
    leveldb_readoptions_set_fill_cache(kv->get_options, 0);
    kv->scan_options = leveldb_readoptions_create();
    leveldb_readoptions_set_verify_checksums(kv->scan_options, 1);
    leveldb_readoptions_set_fill_cache(kv->scan_options, 0);
    kv->write_options = leveldb_writeoptions_create();
    kv->sync_options = leveldb_writeoptions_create();
    leveldb_writeoptions_set_sync(kv->sync_options, 1);
}

static void kv_close(struct drps_kv *base)
{
    struct leveldb_kv *kv = (struct leveldb_kv *)base;
    if (!kv) return;
    if (kv->db) leveldb_close(kv->db);
    if (kv->options) leveldb_options_destroy(kv->options);
    if (kv->cache) leveldb_cache_destroy(kv->cache);
    if (kv->filter) leveldb_filterpolicy_destroy(kv->filter);
    if (kv->get_options) leveldb_readoptions_destroy(kv->get_options);
    if (kv->scan_options) leveldb_readoptions_destroy(kv->scan_options);
    if (kv->write_options) leveldb_writeoptions_destroy(kv->write_options);
    if (kv->sync_options) leveldb_writeoptions_destroy(kv->sync_options);
    drps_mapped_destroy(&kv->mapped);
    free(kv->path);
    free(kv);
}

static int kv_open(const char *path, const struct drps_kv_options *options, struct drps_kv **kv_out,
                   struct drps_err *err)
{
    *kv_out = NULL;
    struct leveldb_kv *kv = calloc(1, sizeof(*kv));
    if (!kv) return drps_err_set(err, -ENOMEM, "handle of database %s", path);
    kv->ops = &drps_kv_leveldb;
    kv->bulk = options->bulk;
    kv->read_only = options->read_only;
    kv->path = strdup(path);
    if (!kv->path || drps_mapped_init(&kv->mapped, path) < 0) {
        kv_close((struct drps_kv *)kv);
        return drps_err_set(err, -ENOMEM, "handle of database %s", path);
    }
    make_options(kv, options);
    make_call_options(kv);
    char *text = NULL;
    kv->db = leveldb_open(kv->options, path, &text);
    if (text) {
        int rc = fail(kv, "open", text, err);
        kv_close((struct drps_kv *)kv);
        return rc;
    }
    *kv_out = (struct drps_kv *)kv;
    return 0;
}

static int get_one(struct leveldb_kv *kv, uint32_t key, void *out, size_t bytes,
                   struct drps_err *err)
{
    char coded[DRPS_KV_KEY_BYTES];
    char *text = NULL;
    size_t found;
    drps_put_be32(coded, key);
    char *value = leveldb_get(kv->db, kv->get_options, coded, sizeof(coded), &found, &text);
    if (text) return fail(kv, "read", text, err);
    if (!value) return drps_kv_missing(kv->path, key, err);
    int rc = 0;
    if (found == bytes)
        memcpy(out, value, bytes);
    else
        rc = drps_kv_wrong_size(kv->path, key, found, bytes, err);
    leveldb_free(value);
    return rc;
}

static int kv_get_many(struct drps_kv *base, const uint32_t *keys, size_t n,
                       void *const *values_out, const size_t *value_bytes, struct drps_err *err)
{
    struct leveldb_kv *kv = (struct leveldb_kv *)base;
    drps_kv_count_get(&kv->counters, n, value_bytes);
    for (size_t i = 0; i < n; i++) {
        drps_mapped_check(&kv->mapped);
        int rc = get_one(kv, keys[i], values_out[i], value_bytes[i], err);
        if (rc < 0) return rc;
    }
    return 0;
}

static int write_batch(struct leveldb_kv *kv, leveldb_writebatch_t *batch,
                       const leveldb_writeoptions_t *how, const char *doing, struct drps_err *err)
{
    char *text = NULL;
    leveldb_write(kv->db, how, batch, &text);
    return text ? fail(kv, doing, text, err) : 0;
}

static int kv_put_many(struct drps_kv *base, const uint32_t *keys, size_t n,
                       const void *const *values, const size_t *value_bytes, struct drps_err *err)
{
    struct leveldb_kv *kv = (struct leveldb_kv *)base;
    if (kv->read_only)
        return drps_err_set(err, -EROFS, "database %s is open for reading only", kv->path);
    drps_kv_count_put(&kv->counters, n, value_bytes);
    drps_mapped_check(
        &kv->mapped); /* LevelDB merges files in the background while it is only written to */
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    for (size_t i = 0; i < n; i++) {
        char key[DRPS_KV_KEY_BYTES];
        drps_put_be32(key, keys[i]);
        leveldb_writebatch_put(batch, key, sizeof(key), values[i], value_bytes[i]);
    }
    int rc = write_batch(kv, batch, kv->write_options, "write", err);
    leveldb_writebatch_destroy(batch);
    return rc;
}

/* A damaged block is skipped by the iterator, which only its status tells: it must be asked at
 * every key. */
static int scan_error(const struct leveldb_kv *kv, const leveldb_iterator_t *it,
                      struct drps_err *err)
{
    char *text = NULL;
    leveldb_iter_get_error(it, &text);
    return text ? fail(kv, "scan", text, err) : 0;
}

static int kv_scan(struct drps_kv *base, uint32_t first, uint32_t end, drps_kv_visit visit,
                   void *ctx, struct drps_err *err)
{
    struct leveldb_kv *kv = (struct leveldb_kv *)base;
    leveldb_iterator_t *it = leveldb_create_iterator(kv->db, kv->scan_options);
    char from[DRPS_KV_KEY_BYTES];
    drps_put_be32(from, first);
    leveldb_iter_seek(it, from, sizeof(from));
    int rc = scan_error(kv, it, err);
    while (!rc && leveldb_iter_valid(it)) {
        size_t key_bytes, bytes;
        const char *key = leveldb_iter_key(it, &key_bytes);
        const char *value = leveldb_iter_value(it, &bytes);
        if (key_bytes != DRPS_KV_KEY_BYTES)
            rc = drps_err_set(err, DRPS_E_CORRUPT, "database %s has a key of %zu bytes", kv->path,
                              key_bytes);
        else if (drps_get_be32(key) >= end)
            break;
        else
            rc = visit(ctx, drps_get_be32(key), value, bytes, err);
        if (rc) break;
        leveldb_iter_next(it);
        rc = scan_error(kv, it, err);
    }
    leveldb_iter_destroy(it);
    return rc;
}

/* An empty batch with sync set makes the log, and with it every write before, durable. */
static int kv_sync(struct drps_kv *base, struct drps_err *err)
{
    struct leveldb_kv *kv = (struct leveldb_kv *)base;
    if (kv->read_only) return 0;
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    int rc = write_batch(kv, batch, kv->sync_options, "sync", err);
    leveldb_writebatch_destroy(batch);
    if (!rc && kv->bulk) leveldb_compact_range(kv->db, NULL, 0, NULL, 0);
    return rc;
}

static void kv_stats(const struct drps_kv *base, struct drps_kv_stats *out)
{
    drps_kv_counters_read(&((const struct leveldb_kv *)base)->counters, out);
}

/* Beside the tables there are a log and what a compaction rewrites, a file of 64 MiB at a time.
 * Measured beyond the values: 3.5 MB of 11, 10 MB of 107, 73 MB of 461. */
static uint64_t kv_bulk_bytes(uint64_t value_bytes)
{
    const uint64_t most = 80 << 20;
    return value_bytes + value_bytes / 64 + (value_bytes / 3 < most ? value_bytes / 3 : most) +
           (1 << 20);
}

const struct drps_kv_ops drps_kv_leveldb = {
    .name = "leveldb",
    .memory_need = drps_kv_database_memory,
    .open = kv_open,
    .get_many = kv_get_many,
    .put_many = kv_put_many,
    .scan = kv_scan,
    .sync = kv_sync,
    .stats = kv_stats,
    .close = kv_close,
    .pool_steps = POOL_STEPS,
    .bulk_bytes = kv_bulk_bytes,
};

#endif /* DRPS_WITH_LEVELDB */
