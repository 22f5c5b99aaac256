/* An open checkpoint: rows are read by the record. The part and the record that were read last are
 * kept, as rows are mostly asked for in order. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/folder/drps_manifest.h"
#include "engine/checkpoint/checkpoint_internal.h"
#include "engine/checkpoint/held.h"
#include "engine/checkpoint/parts.h"

enum { ROW_BYTES_MOST = 1 << 30, RECORD_BYTES_MOST = 1 << 20 };

struct drps_checkpoint {
    const struct drps_io *io;
    char *dir, *path; /* own: of the checkpoint, of its manifest */
    char *store;      /* own: the folder of a store, in place of rows; NULL: none */
    json_t *manifest; /* own */
    uint64_t rows;
    size_t row_bytes;
    struct drps_checkpoint_held held;
    pthread_mutex_t lock;
    struct drps_rows_file {
        char *dir; /* own: of the checkpoint that rows are read from */
        struct drps_parts_shape shape;
        struct drps_recfile *part; /* own: the one that was read last; NULL: none */
        uint64_t part_number;
        char *record;   /* own: room for the largest record, 8-byte aligned */
        uint64_t first; /* row in it; UINT64_MAX: none */
    } from;             /* under the lock */
};

/* ---- Opening ---- */

static int read_numbers(struct drps_checkpoint *cp, struct drps_err *err)
{
    const json_t *files = json_object_get(cp->manifest, "files");
    struct drps_parts_shape *s = &cp->from.shape;
    uint64_t row_bytes;
    int rc = drps_manifest_get_count(files, "rows", cp->path, &s->rows, err);
    if (rc == 0) rc = drps_manifest_get_count(files, "row_bytes", cp->path, &row_bytes, err);
    if (rc == 0) rc = drps_manifest_get_count(files, "record_rows", cp->path, &s->record_rows, err);
    if (rc == 0) rc = drps_manifest_get_count(files, "part_rows", cp->path, &s->part_rows, err);
    if (rc < 0) return rc;
    const uint64_t records = s->part_rows / (s->record_rows + !s->record_rows);
    const uint64_t whole = s->part_rows == s->rows ? s->rows : records * s->record_rows;
    const struct drps_bound bounds[] = {
        {"rows", s->rows, 0, UINT32_MAX, "32 bits"},
        {"row_bytes", row_bytes, 4, ROW_BYTES_MOST, "what a row may have"},
        {"part_rows", s->part_rows, 1, s->rows + !s->rows, "all rows"},
        {"part_rows", s->part_rows, whole, whole, "whole records"},
        {"record_rows", s->record_rows, 1, RECORD_BYTES_MOST / (row_bytes + !row_bytes) + 1,
         "a record's bytes"},
    };
    rc = drps_manifest_check(bounds, sizeof(bounds) / sizeof(*bounds), cp->path, err);
    cp->rows = s->rows;
    cp->row_bytes = s->row_bytes = (size_t)row_bytes;
    if (rc < 0 || !json_is_true(json_object_get(files, "store"))) return rc;
    cp->store = drps_path_join(cp->dir, DRPS_CHECKPOINT_STORE);
    return cp->store ? 0 : drps_err_set(err, -ENOMEM, "no memory to read %s", cp->dir);
}

static int read_held_numbers(struct drps_checkpoint *cp, struct drps_err *err)
{
    const json_t *held = json_object_get(json_object_get(cp->manifest, "files"), "held");
    uint64_t slots, row_bytes;
    if (!held) return 0;
    int rc = drps_manifest_get_count(held, "slots", cp->path, &slots, err);
    if (rc == 0) rc = drps_manifest_get_count(held, "row_bytes", cp->path, &row_bytes, err);
    if (rc < 0) return rc;
    const struct drps_bound bounds[] = {
        {"slots", slots, 1, UINT32_MAX, "32 bits"},
        {"row_bytes", row_bytes, 4, ROW_BYTES_MOST, "what a row may have"},
    };
    cp->held = (struct drps_checkpoint_held){slots, (size_t)row_bytes};
    return drps_manifest_check(bounds, sizeof(bounds) / sizeof(*bounds), cp->path, err);
}

static int make_room(struct drps_checkpoint *cp, struct drps_err *err)
{
    const struct drps_parts_shape *s = &cp->from.shape;
    cp->from.first = UINT64_MAX;
    cp->from.dir = strdup(cp->dir);
    cp->from.record = drps_array_new(((size_t)s->record_rows * s->row_bytes + 7) / 8, 8);
    return cp->from.dir && cp->from.record
               ? 0
               : drps_err_set(err, -ENOMEM, "no memory for rows of %s", cp->dir);
}

static void close_rows(struct drps_rows_file *from)
{
    drps_recfile_close(from->part);
    free(from->dir);
    free(from->record);
}

int drps_checkpoint_open(const struct drps_checkpoints *c, uint64_t number,
                         struct drps_checkpoint **cp_out, struct drps_err *err)
{
    *cp_out = NULL;
    struct drps_checkpoint *cp = calloc(1, sizeof(*cp));
    if (!cp) return drps_err_set(err, -ENOMEM, "no memory to read a checkpoint");
    cp->io = c->io;
    (void)pthread_mutex_init(&cp->lock, NULL); /* glibc: cannot fail with default attributes */
    cp->dir = drps_checkpoint_name(c, number);
    cp->path = cp->dir ? drps_path_join(cp->dir, DRPS_CHECKPOINT_MANIFEST) : NULL;
    int rc = cp->path ? drps_manifest_read(c->io, cp->path, DRPS_CHECKPOINT_KIND,
                                           DRPS_CHECKPOINT_VERSION, &cp->manifest, err)
                      : drps_err_set(err, -ENOMEM, "no memory to read a checkpoint");
    if (rc == 0) rc = read_numbers(cp, err);
    if (rc == 0) rc = read_held_numbers(cp, err);
    if (rc == 0 && !cp->store) rc = make_room(cp, err);
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
    close_rows(&cp->from);
    json_decref(cp->manifest);
    (void)pthread_mutex_destroy(&cp->lock);
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

const struct drps_checkpoint_held *drps_checkpoint_held(const struct drps_checkpoint *cp)
{
    return &cp->held;
}

uint64_t drps_checkpoint_parts(const struct drps_checkpoint *cp)
{
    return cp->store ? 0 : drps_parts_count(&cp->from.shape);
}

uint64_t drps_checkpoint_records(const struct drps_checkpoint *cp)
{
    const uint64_t record_rows = cp->from.shape.record_rows;
    return cp->store ? 0 : cp->rows / record_rows + (cp->rows % record_rows != 0);
}

uint64_t drps_checkpoint_rows_of_part(const struct drps_checkpoint *cp)
{
    return cp->from.shape.part_rows;
}

char *drps_checkpoint_part(const struct drps_checkpoint *cp, uint64_t part)
{
    return drps_part_path(cp->dir, part);
}

/* ---- Rows; the lock is held ---- */

/* Rows of record i of a part. */
static uint64_t rows_of(const struct drps_parts_shape *s, uint64_t part, uint64_t i)
{
    const uint64_t first = part * s->part_rows, in = i * s->record_rows;
    const uint64_t left = s->rows - first < s->part_rows ? s->rows - first : s->part_rows;
    return left - in < s->record_rows ? left - in : s->record_rows;
}

static int check_part(const struct drps_rows_file *from, const char *path, struct drps_err *err)
{
    const struct drps_parts_shape *s = &from->shape;
    const uint64_t part = from->part_number, first = part * s->part_rows;
    const uint64_t left = s->rows - first < s->part_rows ? s->rows - first : s->part_rows;
    const uint64_t due = (left - 1) / s->record_rows + 1, has = drps_recfile_count(from->part);
    if (has != due)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s has %llu records, %llu are due", path,
                            (unsigned long long)has, (unsigned long long)due);
    for (uint64_t i = 0; i < due; i++)
        if (drps_recfile_bytes(from->part, i) != rows_of(s, part, i) * s->row_bytes)
            return drps_err_set(err, DRPS_E_CORRUPT, "%s: record %llu has %llu bytes, %llu are due",
                                path, (unsigned long long)i,
                                (unsigned long long)drps_recfile_bytes(from->part, i),
                                (unsigned long long)(rows_of(s, part, i) * s->row_bytes));
    return 0;
}

static int open_part(struct drps_checkpoint *cp, uint64_t part, struct drps_err *err)
{
    struct drps_rows_file *from = &cp->from;
    if (from->part && from->part_number == part) return 0;
    drps_recfile_close(from->part);
    from->part = NULL;
    from->part_number = part;
    char *path = drps_part_path(from->dir, part);
    int rc = path ? drps_recfile_open(cp->io, path, DRPS_KIND_CHECKPOINT_ROWS, &from->part, err)
                  : drps_err_set(err, -ENOMEM, "no memory to read %s", from->dir);
    if (rc == 0 && (rc = check_part(from, path, err)) < 0) {
        drps_recfile_close(from->part);
        from->part = NULL;
    }
    free(path);
    return rc;
}

/* Have the record with that row in from.record; *n_out: rows from there to its end. */
static int load(struct drps_checkpoint *cp, uint64_t row, uint64_t *n_out, struct drps_err *err)
{
    struct drps_rows_file *from = &cp->from;
    const struct drps_parts_shape *s = &from->shape;
    const uint64_t part = row / s->part_rows, i = row % s->part_rows / s->record_rows;
    const uint64_t first = part * s->part_rows + i * s->record_rows;
    *n_out = first + rows_of(s, part, i) - row;
    if (from->first == first) return 0;
    from->first = UINT64_MAX;
    int rc = open_part(cp, part, err);
    if (rc == 0) rc = drps_recfile_read(from->part, i, 1, from->record, err);
    if (rc == 0) from->first = first;
    return rc;
}

/* ---- Reading ---- */

int drps_checkpoint_read_held(const struct drps_checkpoint *cp, void *rows_out,
                              struct drps_err *err)
{
    char *path = drps_path_join(cp->dir, DRPS_CHECKPOINT_HELD);
    int rc = path ? drps_held_read(cp->io, path, &cp->held, rows_out, err)
                  : drps_err_set(err, -ENOMEM, "no memory to read a checkpoint");
    free(path);
    return rc;
}

int drps_checkpoint_verify(struct drps_checkpoint *cp, struct drps_err *err)
{
    uint64_t n;
    int rc = cp->held.slots ? drps_checkpoint_read_held(cp, NULL, err) : 0;
    if (cp->store || rc < 0) return rc;
    (void)pthread_mutex_lock(&cp->lock);
    for (uint64_t row = 0; row < cp->rows && rc == 0; row += n) {
        rc = drps_io_stopped(cp->io, err);
        if (rc == 0) rc = load(cp, row, &n, err);
    }
    (void)pthread_mutex_unlock(&cp->lock);
    return rc;
}

int drps_checkpoint_read(struct drps_checkpoint *cp, uint64_t first, size_t n, void *rows_out,
                         struct drps_err *err)
{
    char *out = rows_out;
    uint64_t there;
    int rc = 0;
    if (cp->store || first > cp->rows || n > cp->rows - first)
        return drps_err_set(err, -EINVAL, "rows %llu to %llu of a checkpoint of %llu",
                            (unsigned long long)first, (unsigned long long)(first + n),
                            (unsigned long long)cp->rows);
    (void)pthread_mutex_lock(&cp->lock);
    while (n && (rc = load(cp, first, &there, err)) == 0) {
        const size_t now = n < there ? n : (size_t)there;
        memcpy(out, cp->from.record + (size_t)(first - cp->from.first) * cp->row_bytes,
               now * cp->row_bytes);
        out += now * cp->row_bytes;
        first += now;
        n -= now;
    }
    (void)pthread_mutex_unlock(&cp->lock);
    return rc;
}

int drps_checkpoint_follow(struct drps_checkpoint *cp, const struct drps_checkpoints *c,
                           uint64_t number, struct drps_err *err)
{
    struct drps_checkpoint *other;
    int rc = drps_checkpoint_open(c, number, &other, err);
    if (rc < 0) return rc;
    if (cp->store || other->store || cp->rows != other->rows || cp->row_bytes != other->row_bytes) {
        rc = drps_err_set(err, -EINVAL, "%s has not the rows of %s", other->dir, cp->dir);
    } else {
        (void)pthread_mutex_lock(&cp->lock);
        const struct drps_rows_file was = cp->from;
        cp->from = other->from;
        other->from = was;
        (void)pthread_mutex_unlock(&cp->lock);
    }
    drps_checkpoint_close(other);
    return rc;
}
