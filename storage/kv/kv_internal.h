/* What the engines share: their tables, error texts of their libraries turned into codes, and
 * counters. Private to storage/kv/. */
#ifndef DRPS_KV_INTERNAL_H
#define DRPS_KV_INTERNAL_H

#include <stdatomic.h>

#include "storage/kv/drps_kv.h"

#ifdef DRPS_WITH_ROCKSDB
extern const struct drps_kv_ops drps_kv_rocksdb;
#endif
#ifdef DRPS_WITH_LEVELDB
extern const struct drps_kv_ops drps_kv_leveldb;
#endif

extern const struct drps_kv_ops drps_kv_file;

/* How the names of files begin that RocksDB is to take over; a number and ".sst" follow. */
#define DRPS_ROCKSDB_BULK_FILE "bulk-"

enum { DRPS_KV_KEY_BYTES = 4 };

/*
 * The code for an error text of RocksDB or LevelDB (both descend from one code base and begin their
 * texts with the same words: "Corruption: ", "IO error: ", ...); the text goes into err. `text`
 * stays the caller's to free.
 */
int drps_kv_foreign_error(const char *engine, const char *path, const char *doing, const char *text,
                          struct drps_err *err);

/* memory_need() of a database: under 24 MiB RocksDB fails to stay within what it is given, beyond
 * 192 MiB the block pool above it makes better use of memory. */
void drps_kv_database_memory(const struct drps_kv_options *options, uint64_t *least_out,
                             uint64_t *most_out);

/* Return DRPS_E_NOT_FOUND for a key, DRPS_E_CORRUPT for a value of the wrong size, with a text. */
int drps_kv_missing(const char *path, uint32_t key, struct drps_err *err);
int drps_kv_wrong_size(const char *path, uint32_t key, size_t found, size_t expected,
                       struct drps_err *err);

/* Counters of one engine; any thread adds, relaxed: nothing is ordered by them. */
struct drps_kv_counters {
    _Atomic uint64_t gets, puts, get_bytes, put_bytes, get_calls, put_calls;
};

void drps_kv_count_get(struct drps_kv_counters *c, size_t n, const size_t *value_bytes);
void drps_kv_count_put(struct drps_kv_counters *c, size_t n, const size_t *value_bytes);
void drps_kv_counters_read(const struct drps_kv_counters *c, struct drps_kv_stats *out);

#endif
