/*
 * RocksDB under the block store.
 *
 * The block pool above it already keeps the blocks that will be needed soonest, so RocksDB is a
 * cold store here: it caches indexes and filters but gains nothing from caching values, and the
 * kernel's page cache gains nothing at all (direct I/O). There is no write-ahead log: what is not
 * synced may be lost, which a training store can afford.
 */
#include "storage/kv/kv_internal.h"

#ifdef DRPS_WITH_ROCKSDB

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_endian.h"
#include "storage/kv/rocksdb_bulk.h"

enum {
    GET_MAX = 32,              /* values of one MultiGet: RocksDB itself works in groups of 32 */
    GET_MAX_BYTES = 256 << 10, /* of one MultiGet: every reading thread holds as much */
    DEFAULT_MEMORY = 32 << 20,
    DEFAULT_VALUE = 4096,
};

struct rocksdb_kv {
    const struct drps_kv_ops *ops;
    char *path;
    int read_only;
    struct drps_rocksdb_bulk
        *bulk; /* own: of a database that is written once, until it is synced */
    rocksdb_t *db;
    rocksdb_column_family_handle_t *cf;
    rocksdb_options_t *options;
    rocksdb_readoptions_t *get_options;
    rocksdb_readoptions_t *scan_options;
    rocksdb_writeoptions_t *write_options;
    struct drps_kv_counters counters;
};

/* Takes and frees `text`. */
static int fail(const struct rocksdb_kv *kv, const char *doing, char *text, struct drps_err *err)
{
    int rc = drps_kv_foreign_error("RocksDB", kv->path, doing, text, err);
    rocksdb_free(text);
    return rc;
}

static size_t clamp(size_t v, size_t least, size_t most)
{
    return v < least ? least : v > most ? most : v;
}

/* Blocks of one value each: a get then reads one block and nothing beside it. */
static rocksdb_block_based_table_options_t *table_options(size_t memory, size_t value, int bulk)
{
    rocksdb_block_based_table_options_t *t = rocksdb_block_based_options_create();
    rocksdb_cache_t *cache = rocksdb_cache_create_lru(memory / 5);
    rocksdb_block_based_options_set_block_cache(t, cache);
    rocksdb_cache_destroy(cache); /* the table options keep it */
    rocksdb_block_based_options_set_block_size(t, clamp(value, 4096, 64 << 10));
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(t, 1);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(t, 1);
    rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(t, 0);
    rocksdb_block_based_options_set_format_version(t, 5);
    /* Written once in key order there is one sorted run, where no filter could save a read. */
    if (!bulk)
        rocksdb_block_based_options_set_filter_policy(t, rocksdb_filterpolicy_create_ribbon(10));
    return t;
}

static void set_write_path(rocksdb_options_t *o, size_t memory, int bulk)
{
    rocksdb_options_set_write_buffer_size(o, clamp(memory / 12, 1 << 20, 64 << 20));
    rocksdb_options_set_max_write_buffer_number(o, 2);
    rocksdb_options_set_use_direct_io_for_flush_and_compaction(o, 1);
    /* A compaction holds one read buffer a sorted run and one write buffer. */
    rocksdb_options_set_writable_file_max_buffer_size(o, clamp(memory / 128, 128 << 10, 1 << 20));
    rocksdb_options_compaction_readahead_size(o, clamp(memory / 256, 64 << 10, 1 << 20));
    rocksdb_options_set_max_background_jobs(o, 2);
    /* The bytes of trained floats do not compress. */
    rocksdb_options_set_compression(o, rocksdb_no_compression);
    rocksdb_options_set_target_file_size_base(o, bulk ? 64 << 20
                                                      : clamp(memory / 2, 8 << 20, 64 << 20));
    rocksdb_options_set_max_bytes_for_level_base(o, clamp(memory * 2, 32 << 20, 256 << 20));
    if (bulk) return; /* keys in order: levels take the files as they are, without rewriting them */
    /*
     * Blocks are rewritten in no order at all, again and again. Universal compaction moved nearly
     * 40 % fewer bytes than levels (measured in pairs of runs: 1.45 times the steps a second), and
     * takes up to twice the space on disk for it.
     */
    rocksdb_options_set_compaction_style(o, rocksdb_universal_compaction);
    rocksdb_universal_compaction_options_t *u = rocksdb_universal_compaction_options_create();
    rocksdb_universal_compaction_options_set_max_size_amplification_percent(u, 100);
    rocksdb_options_set_universal_compaction_options(o, u);
    rocksdb_universal_compaction_options_destroy(u);
}

static rocksdb_options_t *make_options(const struct drps_kv_options *in)
{
    size_t memory = in->memory_bytes ? (size_t)in->memory_bytes : DEFAULT_MEMORY;
    size_t value = in->value_bytes ? in->value_bytes : DEFAULT_VALUE;
    rocksdb_options_t *o = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(o, in->create != 0);
    rocksdb_options_set_error_if_exists(o, in->create != 0);
    rocksdb_options_set_use_direct_reads(o, 1);
    rocksdb_options_set_max_open_files(o, 512);
    /* What is read is there: the lowest run needs no filter. */
    rocksdb_options_set_optimize_filters_for_hits(o, 1);
    rocksdb_options_set_skip_stats_update_on_db_open(o, 1);
    rocksdb_options_set_stats_dump_period_sec(o, 0);
    rocksdb_options_set_stats_persist_period_sec(o, 0);
    /* Nothing but what is written at the start. Errors come back from the calls; writing one into a
     * log file that did not fit on a full disk before aborts the process, where RocksDB was built
     * with assertions. */
    rocksdb_options_set_info_log_level(o, 5);
    rocksdb_options_set_keep_log_file_num(o, 1);
    rocksdb_options_set_manifest_preallocation_size(o, 64 << 10); /* not 4 MiB of a small model */
    set_write_path(o, memory, in->bulk);
    rocksdb_block_based_table_options_t *t = table_options(memory, value, in->bulk);
    rocksdb_options_set_block_based_table_factory(o, t);
    rocksdb_block_based_options_destroy(t);
    return o;
}

static void kv_close(struct drps_kv *base)
{
    struct rocksdb_kv *kv = (struct rocksdb_kv *)base;
    if (!kv) return;
    drps_rocksdb_bulk_free(kv->bulk);
    if (kv->cf) rocksdb_column_family_handle_destroy(kv->cf);
    if (kv->db) rocksdb_close(kv->db);
    if (kv->get_options) rocksdb_readoptions_destroy(kv->get_options);
    if (kv->scan_options) rocksdb_readoptions_destroy(kv->scan_options);
    if (kv->write_options) rocksdb_writeoptions_destroy(kv->write_options);
    if (kv->options) rocksdb_options_destroy(kv->options);
    free(kv->path);
    free(kv);
}

static int open_db(struct rocksdb_kv *kv, struct drps_err *err)
{
    const char *names[] = {"default"};
    const rocksdb_options_t *options[] = {kv->options};
    char *text = NULL;
    if (kv->read_only)
        kv->db = rocksdb_open_for_read_only_column_families(kv->options, kv->path, 1, names,
                                                            options, &kv->cf, 0, &text);
    else
        kv->db =
            rocksdb_open_column_families(kv->options, kv->path, 1, names, options, &kv->cf, &text);
    return text ? fail(kv, "open", text, err) : 0;
}

static int kv_open(const char *path, const struct drps_kv_options *options, struct drps_kv **kv_out,
                   struct drps_err *err)
{
    *kv_out = NULL;
    struct rocksdb_kv *kv = calloc(1, sizeof(*kv));
    if (!kv) return drps_err_set(err, -ENOMEM, "handle of database %s", path);
    kv->ops = &drps_kv_rocksdb;
    kv->read_only = options->read_only;
    kv->path = strdup(path);
    if (!kv->path) {
        kv_close((struct drps_kv *)kv);
        return drps_err_set(err, -ENOMEM, "handle of database %s", path);
    }
    kv->options = make_options(options);
    kv->get_options = rocksdb_readoptions_create();
    kv->scan_options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_fill_cache(kv->scan_options,
                                       0); /* never for gets: it would keep indexes out too */
    rocksdb_readoptions_set_readahead_size(kv->scan_options, 256 << 10);
    kv->write_options = rocksdb_writeoptions_create();
    rocksdb_writeoptions_disable_WAL(kv->write_options, 1);
    int rc = open_db(kv, err);
    if (rc == 0 && options->bulk && options->create) {
        kv->bulk = drps_rocksdb_bulk_new(kv->path, kv->options);
        if (!kv->bulk) rc = drps_err_set(err, -ENOMEM, "no memory to write database %s", path);
    }
    if (rc < 0) {
        kv_close((struct drps_kv *)kv);
        return rc;
    }
    *kv_out = (struct drps_kv *)kv;
    return 0;
}

/* Move one result of MultiGet to the caller's room. */
static int take(const struct rocksdb_kv *kv, uint32_t key, rocksdb_pinnableslice_t *slice,
                char *text, void *out, size_t bytes, struct drps_err *err)
{
    if (text) return fail(kv, "read", text, err);
    if (!slice) return drps_kv_missing(kv->path, key, err);
    size_t found;
    const char *value = rocksdb_pinnableslice_value(slice, &found);
    int rc = 0;
    if (!value)
        rc = drps_kv_missing(kv->path, key, err);
    else if (found != bytes)
        rc = drps_kv_wrong_size(kv->path, key, found, bytes, err);
    else
        memcpy(out, value, bytes);
    rocksdb_pinnableslice_destroy(slice);
    return rc;
}

static int get_group(struct rocksdb_kv *kv, const uint32_t *keys, size_t n, void *const *values_out,
                     const size_t *value_bytes, struct drps_err *err)
{
    char coded[GET_MAX][DRPS_KV_KEY_BYTES];
    const char *key_list[GET_MAX] = {NULL};
    size_t key_bytes[GET_MAX] = {0};
    rocksdb_pinnableslice_t *slices[GET_MAX] = {NULL};
    char *texts[GET_MAX] = {NULL};
    for (size_t i = 0; i < n; i++) {
        drps_put_be32(coded[i], keys[i]);
        key_list[i] = coded[i];
        key_bytes[i] = DRPS_KV_KEY_BYTES;
    }
    rocksdb_batched_multi_get_cf(kv->db, kv->get_options, kv->cf, n, key_list, key_bytes, slices,
                                 texts, true);
    int rc = 0;
    for (size_t i = 0; i < n;
         i++) { /* every slice and text must be released, whatever failed before */
        int one =
            take(kv, keys[i], slices[i], texts[i], values_out[i], value_bytes[i], rc ? NULL : err);
        if (!rc) rc = one;
    }
    return rc;
}

static int kv_get_many(struct drps_kv *base, const uint32_t *keys, size_t n,
                       void *const *values_out, const size_t *value_bytes, struct drps_err *err)
{
    struct rocksdb_kv *kv = (struct rocksdb_kv *)base;
    drps_kv_count_get(&kv->counters, n, value_bytes);
    for (size_t i = 0, group; i < n; i += group) {
        size_t bytes = value_bytes[i];
        for (group = 1; group < GET_MAX && i + group < n && bytes < GET_MAX_BYTES; group++)
            bytes += value_bytes[i + group];
        int rc = get_group(kv, keys + i, group, values_out + i, value_bytes + i, err);
        if (rc < 0) return rc;
    }
    return 0;
}

static int put_bulk(const struct rocksdb_kv *kv, const uint32_t *keys, size_t n,
                    const void *const *values, const size_t *value_bytes, struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = drps_rocksdb_bulk_put(kv->bulk, keys[i], values[i], value_bytes[i], err);
    return rc;
}

static int kv_put_many(struct drps_kv *base, const uint32_t *keys, size_t n,
                       const void *const *values, const size_t *value_bytes, struct drps_err *err)
{
    struct rocksdb_kv *kv = (struct rocksdb_kv *)base;
    if (kv->read_only)
        return drps_err_set(err, -EROFS, "database %s is open for reading only", kv->path);
    drps_kv_count_put(&kv->counters, n, value_bytes);
    if (kv->bulk) return put_bulk(kv, keys, n, values, value_bytes, err);
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    for (size_t i = 0; i < n; i++) {
        char key[DRPS_KV_KEY_BYTES];
        drps_put_be32(key, keys[i]);
        rocksdb_writebatch_put(batch, key, sizeof(key), values[i], value_bytes[i]);
    }
    char *text = NULL;
    rocksdb_write(kv->db, kv->write_options, batch, &text);
    rocksdb_writebatch_destroy(batch);
    return text ? fail(kv, "write", text, err) : 0;
}

static int kv_scan(struct drps_kv *base, uint32_t first, uint32_t end, drps_kv_visit visit,
                   void *ctx, struct drps_err *err)
{
    struct rocksdb_kv *kv = (struct rocksdb_kv *)base;
    rocksdb_iterator_t *it = rocksdb_create_iterator_cf(kv->db, kv->scan_options, kv->cf);
    char from[DRPS_KV_KEY_BYTES];
    int rc = 0;
    drps_put_be32(from, first);
    for (rocksdb_iter_seek(it, from, sizeof(from)); !rc && rocksdb_iter_valid(it);
         rocksdb_iter_next(it)) {
        size_t key_bytes, bytes;
        const char *key = rocksdb_iter_key(it, &key_bytes);
        const char *value = rocksdb_iter_value(it, &bytes);
        if (key_bytes != DRPS_KV_KEY_BYTES)
            rc = drps_err_set(err, DRPS_E_CORRUPT, "database %s has a key of %zu bytes", kv->path,
                              key_bytes);
        else if (drps_get_be32(key) >= end)
            break;
        else
            rc = visit(ctx, drps_get_be32(key), value, bytes, err);
    }
    char *text = NULL;
    if (!rc) rocksdb_iter_get_error(it, &text);
    if (text) rc = fail(kv, "scan", text, err);
    rocksdb_iter_destroy(it);
    return rc;
}

/* From here on the database is as any other. */
static int end_bulk(struct rocksdb_kv *kv, struct drps_err *err)
{
    const int rc = drps_rocksdb_bulk_end(kv->bulk, kv->db, kv->cf, err);
    drps_rocksdb_bulk_free(kv->bulk);
    kv->bulk = NULL;
    return rc;
}

static int kv_sync(struct drps_kv *base, struct drps_err *err)
{
    struct rocksdb_kv *kv = (struct rocksdb_kv *)base;
    if (kv->read_only) return 0;
    if (kv->bulk) return end_bulk(kv, err);
    char *text = NULL;
    rocksdb_flushoptions_t *wait = rocksdb_flushoptions_create(); /* waits by default */
    rocksdb_flush_cf(kv->db, wait, kv->cf, &text);
    rocksdb_flushoptions_destroy(wait);
    return text ? fail(kv, "flush", text, err) : 0;
}

static void kv_stats(const struct drps_kv *base, struct drps_kv_stats *out)
{
    drps_kv_counters_read(&((const struct rocksdb_kv *)base)->counters, out);
}

/* Files are moved down the levels as they are. Measured beyond the values: 0.3 MB of 11, 0.6 MB of
 * 107, 6 MB of 461. */
static uint64_t kv_bulk_bytes(uint64_t value_bytes)
{
    return value_bytes + value_bytes / 64 + (1 << 20);
}

const struct drps_kv_ops drps_kv_rocksdb = {
    .name = "rocksdb",
    .memory_need = drps_kv_database_memory,
    .open = kv_open,
    .get_many = kv_get_many,
    .put_many = kv_put_many,
    .scan = kv_scan,
    .sync = kv_sync,
    .stats = kv_stats,
    .close = kv_close,
    .bulk_bytes = kv_bulk_bytes,
};

#endif /* DRPS_WITH_ROCKSDB */
