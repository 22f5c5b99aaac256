/* An open checkpoint: rows are read by the record, and the record read last is kept, as rows are
 * mostly asked for in order. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/folder/drps_manifest.h"
#include "engine/checkpoint/checkpoint_internal.h"

enum { ROW_BYTES_MOST = 1 << 30 };

struct drps_checkpoint {
    const struct drps_io *io;
    char *dir, *path; /* own: of the checkpoint, of its manifest */
    char *store;      /* own: the folder of a store, in place of the next; NULL: none */
    json_t *manifest; /* own */
    struct drps_recfile *file;
    uint64_t rows, record_rows;
    size_t row_bytes;
    pthread_mutex_t lock; /* of the next two */
    char *record;         /* own: room for the largest record, 8-byte aligned */
    uint64_t at;          /* the number of the record in it; UINT64_MAX: none */
};

/* ---- Opening ---- */

static int read_numbers(struct drps_checkpoint *cp, struct drps_err *err)
{
    const json_t *files = json_object_get(cp->manifest, "files");
    uint64_t row_bytes, records;
    int rc = drps_manifest_get_count(files, "rows", cp->path, &cp->rows, err);
    if (rc == 0) rc = drps_manifest_get_count(files, "row_bytes", cp->path, &row_bytes, err);
    if (rc == 0)
        rc = drps_manifest_get_count(files, "record_rows", cp->path, &cp->record_rows, err);
    if (rc == 0) rc = drps_manifest_get_count(files, "records", cp->path, &records, err);
    if (rc < 0) return rc;
    const int store = json_is_true(json_object_get(files, "store"));
    const uint64_t due = store ? 0 : (cp->rows - 1) / (cp->record_rows + !cp->record_rows) + 1;
    const struct drps_bound bounds[] = {
        {"rows", cp->rows, 1, UINT32_MAX, "32 bits"},
        {"row_bytes", row_bytes, 4, ROW_BYTES_MOST, "what a row may have"},
        {"record_rows", cp->record_rows, 1, cp->rows, "all rows"},
        {"records", records, due, due, "the rows of a record"},
    };
    rc = drps_manifest_check(bounds, sizeof(bounds) / sizeof(*bounds), cp->path, err);
    cp->row_bytes = (size_t)row_bytes;
    if (rc < 0 || !store) return rc;
    cp->store = drps_path_join(cp->dir, DRPS_CHECKPOINT_STORE);
    return cp->store ? 0 : drps_err_set(err, -ENOMEM, "no memory to read %s", cp->dir);
}

static uint64_t rows_of(const struct drps_checkpoint *cp, uint64_t record)
{
    const uint64_t left = cp->rows - record * cp->record_rows;
    return left < cp->record_rows ? left : cp->record_rows;
}

static int open_rows(struct drps_checkpoint *cp, struct drps_err *err)
{
    char *path = drps_path_join(cp->dir, DRPS_CHECKPOINT_ROWS);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to read %s", cp->dir);
    int rc = drps_recfile_open(cp->io, path, DRPS_KIND_CHECKPOINT_ROWS, &cp->file, err);
    const uint64_t records = (cp->rows - 1) / cp->record_rows + 1;
    if (rc == 0 && drps_recfile_count(cp->file) != records)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s has %llu records, %llu are due", path,
                          (unsigned long long)drps_recfile_count(cp->file),
                          (unsigned long long)records);
    for (uint64_t i = 0; i < records && rc == 0; i++)
        if (drps_recfile_bytes(cp->file, i) != rows_of(cp, i) * cp->row_bytes)
            rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: record %llu has %llu bytes, %llu are due",
                              path, (unsigned long long)i,
                              (unsigned long long)drps_recfile_bytes(cp->file, i),
                              (unsigned long long)(rows_of(cp, i) * cp->row_bytes));
    free(path);
    return rc;
}

int drps_checkpoint_open(const struct drps_checkpoints *c, uint64_t number,
                         struct drps_checkpoint **cp_out, struct drps_err *err)
{
    *cp_out = NULL;
    struct drps_checkpoint *cp = calloc(1, sizeof(*cp));
    if (!cp) return drps_err_set(err, -ENOMEM, "no memory to read a checkpoint");
    cp->io = c->io;
    cp->at = UINT64_MAX;
    (void)pthread_mutex_init(&cp->lock, NULL); /* glibc: cannot fail with default attributes */
    cp->dir = drps_checkpoint_name(c, number);
    cp->path = cp->dir ? drps_path_join(cp->dir, DRPS_CHECKPOINT_MANIFEST) : NULL;
    int rc = cp->path ? drps_manifest_read(c->io, cp->path, DRPS_CHECKPOINT_KIND,
                                           DRPS_CHECKPOINT_VERSION, &cp->manifest, err)
                      : drps_err_set(err, -ENOMEM, "no memory to read a checkpoint");
    if (rc == 0) rc = read_numbers(cp, err);
    if (rc == 0 && !cp->store) rc = open_rows(cp, err);
    if (rc == 0 && !cp->store) {
        cp->record = drps_array_new((drps_recfile_run_bytes(cp->file, 0, 1) + 7) / 8, 8);
        if (!cp->record) rc = drps_err_set(err, -ENOMEM, "no memory for rows of %s", cp->dir);
    }
    if (rc < 0) {
        drps_checkpoint_close(cp);
        return rc;
    }
    *cp_out = cp;
    return 0;
}

void drps_checkpoint_close(struct drps_checkpoint *cp)
{
    if (!cp) return;
    drps_recfile_close(cp->file);
    json_decref(cp->manifest);
    (void)pthread_mutex_destroy(&cp->lock);
    free(cp->record);
    free(cp->path);
    free(cp->store);
    free(cp->dir);
    free(cp);
}

const json_t *drps_checkpoint_manifest(const struct drps_checkpoint *cp)
{
    return cp->manifest;
}

const char *drps_checkpoint_dir(const struct drps_checkpoint *cp)
{
    return cp->dir;
}

const char *drps_checkpoint_path(const struct drps_checkpoint *cp)
{
    return cp->path;
}

const char *drps_checkpoint_store(const struct drps_checkpoint *cp)
{
    return cp->store;
}

uint64_t drps_checkpoint_rows(const struct drps_checkpoint *cp)
{
    return cp->rows;
}

size_t drps_checkpoint_row_bytes(const struct drps_checkpoint *cp)
{
    return cp->row_bytes;
}

/* ---- Rows ---- */

/* Have record `number` in cp->record. Lock held. */
static int load(struct drps_checkpoint *cp, uint64_t number, struct drps_err *err)
{
    if (cp->at == number) return 0;
    cp->at = UINT64_MAX;
    int rc = drps_recfile_read(cp->file, number, 1, cp->record, err);
    if (rc == 0) cp->at = number;
    return rc;
}

int drps_checkpoint_verify(struct drps_checkpoint *cp, struct drps_err *err)
{
    int rc = 0;
    if (cp->store) return 0;
    (void)pthread_mutex_lock(&cp->lock);
    for (uint64_t i = 0; i < drps_recfile_count(cp->file) && rc == 0; i++) {
        rc = drps_io_stopped(cp->io, err);
        if (rc == 0) rc = load(cp, i, err);
    }
    (void)pthread_mutex_unlock(&cp->lock);
    return rc;
}

int drps_checkpoint_read(struct drps_checkpoint *cp, uint64_t first, size_t n, void *rows_out,
                         struct drps_err *err)
{
    char *out = rows_out;
    int rc = 0;
    if (cp->store || first > cp->rows || n > cp->rows - first)
        return drps_err_set(err, -EINVAL, "rows %llu to %llu of a checkpoint of %llu",
                            (unsigned long long)first, (unsigned long long)(first + n),
                            (unsigned long long)cp->rows);
    (void)pthread_mutex_lock(&cp->lock);
    while (n && rc == 0) {
        const uint64_t record = first / cp->record_rows, at = first % cp->record_rows;
        const uint64_t there = rows_of(cp, record) - at;
        const size_t now = n < there ? n : (size_t)there;
        rc = load(cp, record, err);
        if (rc == 0) memcpy(out, cp->record + (size_t)at * cp->row_bytes, now * cp->row_bytes);
        out += now * cp->row_bytes;
        first += now;
        n -= now;
    }
    (void)pthread_mutex_unlock(&cp->lock);
    return rc;
}
