/* Table files that a RocksDB database takes over: one after another, of FILE_BYTES each. */
#include "storage/kv/kv_internal.h"

#ifdef DRPS_WITH_ROCKSDB

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_endian.h"
#include "storage/kv/rocksdb_bulk.h"

enum { FILE_BYTES = 64 << 20 };

struct drps_rocksdb_bulk {
    const char *path; /* borrowed */
    rocksdb_envoptions_t *env;
    rocksdb_sstfilewriter_t *writer;
    char **files; /* own: [files_n] their paths; the last one is being written if `used` is not 0 */
    size_t files_n;
    uint64_t used; /* bytes of values in it */
};

struct drps_rocksdb_bulk *drps_rocksdb_bulk_new(const char *path, const rocksdb_options_t *options)
{
    struct drps_rocksdb_bulk *b = calloc(1, sizeof(*b));
    if (!b) return NULL;
    b->path = path;
    b->env = rocksdb_envoptions_create();
    b->writer = rocksdb_sstfilewriter_create(b->env, options);
    return b;
}

void drps_rocksdb_bulk_free(struct drps_rocksdb_bulk *b)
{
    if (!b) return;
    rocksdb_sstfilewriter_destroy(b->writer);
    rocksdb_envoptions_destroy(b->env);
    for (size_t i = 0; i < b->files_n; i++)
        free(b->files[i]);
    free(b->files);
    free(b);
}

/* Takes and frees `text`, NULL where nothing failed. */
static int result(const struct drps_rocksdb_bulk *b, char *text, struct drps_err *err)
{
    if (!text) return 0;
    const int rc = drps_kv_foreign_error("RocksDB", b->path, "write", text, err);
    rocksdb_free(text);
    return rc;
}

static int begin_file(struct drps_rocksdb_bulk *b, struct drps_err *err)
{
    char *text = NULL, *name;
    char **files = realloc(b->files, (b->files_n + 1) * sizeof(*files));
    if (files) b->files = files;
    if (!files || asprintf(&name, "%s/" DRPS_ROCKSDB_BULK_FILE "%zu.sst", b->path, b->files_n) < 0)
        return drps_err_set(err, -ENOMEM, "no memory to write database %s", b->path);
    b->files[b->files_n++] = name;
    rocksdb_sstfilewriter_open(b->writer, name, &text);
    return result(b, text, err);
}

/* Writes the file's index, and syncs it. */
static int end_file(struct drps_rocksdb_bulk *b, struct drps_err *err)
{
    char *text = NULL;
    b->used = 0;
    rocksdb_sstfilewriter_finish(b->writer, &text);
    return result(b, text, err);
}

int drps_rocksdb_bulk_put(struct drps_rocksdb_bulk *b, uint32_t key, const void *value,
                          size_t bytes, struct drps_err *err)
{
    char coded[DRPS_KV_KEY_BYTES], *text = NULL;
    int rc = b->used ? 0 : begin_file(b, err);
    if (rc < 0) return rc;
    drps_put_be32(coded, key);
    rocksdb_sstfilewriter_put(b->writer, coded, sizeof(coded), value, bytes, &text);
    b->used += sizeof(coded) + bytes;
    rc = result(b, text, err);
    return rc == 0 && b->used >= FILE_BYTES ? end_file(b, err) : rc;
}

int drps_rocksdb_bulk_end(struct drps_rocksdb_bulk *b, rocksdb_t *db,
                          rocksdb_column_family_handle_t *cf, struct drps_err *err)
{
    char *text = NULL;
    const int rc = b->used ? end_file(b, err) : 0;
    if (rc < 0 || !b->files_n) return rc;
    rocksdb_ingestexternalfileoptions_t *o = rocksdb_ingestexternalfileoptions_create();
    rocksdb_ingestexternalfileoptions_set_move_files(o, 1);
    rocksdb_ingest_external_file_cf(db, cf, (const char *const *)b->files, b->files_n, o, &text);
    rocksdb_ingestexternalfileoptions_destroy(o);
    return result(b, text, err);
}

#endif /* DRPS_WITH_ROCKSDB */
