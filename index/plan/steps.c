/*
 * Runs of records around the step asked for, and scratch files.
 *
 * A run is as many neighbouring records as fit the buffer, and at least one. Where it lies follows
 * from the direction of reading: a step before the run in memory is taken for a walk backwards.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "index/plan/drps_steps.h"

#include "base/drps_alloc.h"
#include "index/plan/drps_batch.h"

enum { BUFFER_LEAST = 64 * 1024, BUFFER_MOST = 4 * 1024 * 1024 };

/* ---- Records of steps ---- */

struct steps {
    const struct drps_io *io;
    char *path;
    struct drps_recfile *file;
    uint64_t count;
    uint64_t first, n; /* records in buf */
    uint64_t target;   /* bytes of a run */
    char *buf;
    size_t cap;
    uint32_t *list;
    size_t list_cap;
};

int drps_steps_open(const struct drps_io *io, const char *dir, const char *name, uint32_t kind,
                    uint64_t count, uint64_t buffer_bytes, struct steps **st_out,
                    struct drps_err *err)
{
    *st_out = NULL;
    struct steps *st = calloc(1, sizeof(*st));
    if (!st) return drps_err_set(err, -ENOMEM, "no memory to read %s/%s", dir, name);
    st->target = buffer_bytes < BUFFER_LEAST  ? BUFFER_LEAST
                 : buffer_bytes > BUFFER_MOST ? BUFFER_MOST
                                              : buffer_bytes;
    st->io = io;
    st->path = drps_path_join(dir, name);
    int rc = st->path ? 0 : drps_err_set(err, -ENOMEM, "no memory to read %s/%s", dir, name);
    if (rc == 0) rc = drps_recfile_open(io, st->path, kind, &st->file, err);
    if (rc == 0) st->count = drps_recfile_count(st->file);
    if (rc == 0 && st->count != count)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s holds %" PRIu64 " records, expected %" PRIu64,
                          st->path, st->count, count);
    if (rc < 0) {
        drps_steps_close(st);
        return rc;
    }
    *st_out = st;
    return 0;
}

void drps_steps_close(struct steps *st)
{
    if (!st) return;
    drps_recfile_close(st->file);
    free(st->path);
    free(st->buf);
    free(st->list);
    free(st);
}

int drps_steps_fault(const struct steps *st, uint64_t s, struct drps_err *err)
{
    if (err && err->code == DRPS_E_INTERRUPTED) return err->code; /* which is no fault of it */
    return drps_err_context(err, "%s: record %" PRIu64, st->path, s);
}

/* The run that holds s: the one that ends with it when reading backwards, else the one that begins
 * with it. */
static int load_run(struct steps *st, uint64_t s, struct drps_err *err)
{
    uint64_t first = s;
    uint64_t n = 1;

    if (st->n && s < st->first) {
        while (first > 0 &&
               drps_recfile_run_bytes(st->file, first - 1, s - first + 2) <= st->target)
            first--;
        n = s - first + 1;
    } else {
        n = drps_recfile_run_length(st->file, s, st->target);
    }
    st->n = 0; /* until the bytes are there */
    size_t bytes = (size_t)drps_recfile_run_bytes(st->file, first, n);
    if (drps_array_reserve(&st->buf, &st->cap, bytes, 1))
        return drps_err_set(err, -ENOMEM, "no memory for %zu bytes of %s", bytes, st->path);
    int rc = drps_recfile_read(st->file, first, n, st->buf, err);
    if (rc < 0) return rc;
    st->first = first;
    st->n = n;
    return 0;
}

int drps_steps_record(struct steps *st, uint64_t s, const void **record_out, size_t *bytes_out,
                      struct drps_err *err)
{
    int rc = drps_io_stopped(st->io, err); /* what the buffer holds may take long to work through */
    if (rc == 0 && (!st->n || s < st->first || s >= st->first + st->n)) rc = load_run(st, s, err);
    if (rc < 0) return rc;
    *record_out = st->buf + drps_recfile_offset_in_run(st->file, st->first, s);
    *bytes_out = (size_t)drps_recfile_bytes(st->file, s);
    return 0;
}

static int decode_rows(struct steps *st, const void *record, size_t bytes, uint64_t rows,
                       size_t *n_out, struct drps_err *err)
{
    size_t used;
    uint32_t n = bytes >= 4 ? drps_list_count(record) : 0;

    if (n / 16 > bytes) /* a dense list has up to 16 numbers a byte: bounds the allocation */
        return drps_err_set(err, DRPS_E_CORRUPT, "a list of %" PRIu32 " rows in %zu bytes", n,
                            bytes);
    if (drps_array_reserve(&st->list, &st->list_cap, n, sizeof(*st->list)))
        return drps_err_set(err, -ENOMEM, "no memory for %" PRIu32 " rows", n);
    int rc = drps_list_decode(record, bytes, st->list, &used, err);
    if (rc < 0) return rc;
    if (used != bytes)
        return drps_err_set(err, DRPS_E_CORRUPT, "the list ends after %zu bytes of %zu", used,
                            bytes);
    if (n && st->list[n - 1] >= rows)
        return drps_err_set(err, DRPS_E_CORRUPT, "row %" PRIu32 " of %" PRIu64, st->list[n - 1],
                            rows);
    *n_out = n;
    return 0;
}

int drps_steps_rows(struct steps *st, uint64_t s, uint64_t rows, const uint32_t **list_out,
                    size_t *n_out, struct drps_err *err)
{
    const void *record;
    size_t bytes;

    *n_out = 0;
    int rc = drps_steps_record(st, s, &record, &bytes, err);
    if (rc < 0) return rc;
    rc = decode_rows(st, record, bytes, rows, n_out, err);
    *list_out = st->list;
    if (rc < 0) (void)drps_steps_fault(st, s, err);
    return rc;
}

/* ---- Scratch files ---- */

enum { KIND_SCRATCH = DRPS_REC_KIND('S', 'C', 'R', 'A') };

int drps_steps_scratch_begin(struct steps_scratch *s, const struct drps_io *io, const char *dir,
                             const char *name, struct drps_err *err)
{
    *s = (struct steps_scratch){.io = io, .path = drps_path_join(dir, name)};
    if (!s->path) return drps_err_set(err, -ENOMEM, "no memory to write %s/%s", dir, name);
    return drps_recwriter_open(io, s->path, KIND_SCRATCH, &s->writer, err);
}

int drps_steps_scratch_turn(struct steps_scratch *s, struct drps_err *err)
{
    int rc = drps_recwriter_finish(s->writer, err);
    drps_recwriter_close(s->writer);
    s->writer = NULL;
    if (rc == 0) rc = drps_recfile_open(s->io, s->path, KIND_SCRATCH, &s->file, err);
    return rc;
}

int drps_steps_scratch_read(struct steps_scratch *s, uint64_t first, uint64_t stride, size_t n,
                            struct drps_piece *pieces, struct drps_err *err)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += (size_t)drps_recfile_run_bytes(s->file, first + i * stride, 1);
    if (drps_array_reserve(&s->buf, &s->cap, bytes, 1))
        return drps_err_set(err, -ENOMEM, "no memory for %zu bytes of %s", bytes, s->path);
    char *at = s->buf;
    for (size_t i = 0; i < n; i++) {
        uint64_t r = first + i * stride;
        int rc = drps_recfile_read(s->file, r, 1, at, err);
        if (rc < 0) return rc;
        pieces[i] = (struct drps_piece){at, (size_t)drps_recfile_bytes(s->file, r)};
        at += drps_recfile_run_bytes(s->file, r, 1);
    }
    return 0;
}

void drps_steps_scratch_end(struct steps_scratch *s)
{
    drps_recwriter_close(s->writer);
    drps_recfile_close(s->file);
    if (s->path)
        (void)s->io->ops->unlink(s->io->ctx,
                                 s->path); /* its folder is a stage, which is removed on failure */
    free(s->path);
    free(s->buf);
    *s = (struct steps_scratch){0};
}
