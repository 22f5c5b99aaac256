/*
 * Table files written from front to back, which a new RocksDB database takes over as they are.
 *
 * A model is written once, in the order of its keys. Through the database itself each value would
 * be copied into a table in memory, as large as little memory allows, and each of these would
 * become a small file with syncs of its own. A table file beside the database is written in one
 * go, and only its name changes when the database takes it over.
 *
 * For keys that are put in increasing order into a database that has none. Until
 * drps_rocksdb_bulk_end() the database shows nothing of it; if that is never called, the files stay
 * in the database's folder and belong to nobody.
 */
#ifndef DRPS_STORAGE_ROCKSDB_BULK_H
#define DRPS_STORAGE_ROCKSDB_BULK_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

#include <rocksdb/c.h>

struct drps_rocksdb_bulk; /* opaque */

/* For the database in folder `path`, with its options, both borrowed until free. NULL: no memory.
 */
struct drps_rocksdb_bulk *drps_rocksdb_bulk_new(const char *path, const rocksdb_options_t *options);
void drps_rocksdb_bulk_free(struct drps_rocksdb_bulk *b); /* NULL-safe */

/* Put the value of a key above all that were put before. Of a failure only free is left. */
DRPS_MUST_CHECK
int drps_rocksdb_bulk_put(struct drps_rocksdb_bulk *b, uint32_t key, const void *value,
                          size_t bytes, struct drps_err *err);

/* Complete the files, and let the database have them for good. Once. */
DRPS_MUST_CHECK
int drps_rocksdb_bulk_end(struct drps_rocksdb_bulk *b, rocksdb_t *db,
                          rocksdb_column_family_handle_t *cf, struct drps_err *err);

#endif
