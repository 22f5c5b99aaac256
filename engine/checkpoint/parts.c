/* Writing the parts of a checkpoint, front to back; those that were written are synced together at
 * the end. */
#include "engine/checkpoint/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_thread.h"
#include "base/folder/drps_durable.h"
#include "base/record/drps_recfile.h"
#include "engine/checkpoint/drps_checkpoint.h"
#include "engine/checkpoint/drps_checkpoint_files.h"

enum {
    RECORD_BYTES = 64 << 10, /* of rows: what is read for the sake of one of them */
    PART_BYTES = 1 << 20,
    PARTS_MOST = 1 << 14,
    SYNC_THREADS = 8,
};

struct drps_parts {
    const struct drps_io *io;
    const char *dir, *before;
    struct drps_parts_shape shape;
    uint64_t next;              /* the first row that has not come */
    struct drps_recwriter *out; /* the part that it is in; NULL: it begins one */
    char *record;               /* own: [record_rows][row_bytes] */
    uint64_t used;              /* rows in it */
    uint64_t *written;          /* own: [n] parts that are to be synced */
    size_t n, cap;
    uint64_t bytes; /* of these */
};

/* ---- Shape and names ---- */

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Rows that take at least so many bytes, one or more of them, but not more than there are. */
static uint64_t rows_for(uint64_t bytes, uint64_t rows, size_t row_bytes)
{
    const uint64_t n = bytes / row_bytes + (bytes % row_bytes != 0);
    return n < rows ? n + !n : rows + !rows;
}

void drps_parts_shape(uint64_t rows, size_t row_bytes, uint64_t part_bytes,
                      struct drps_parts_shape *out)
{
    const uint64_t bytes = part_bytes ? part_bytes : PART_BYTES;
    const uint64_t record = rows_for(least_of(bytes, RECORD_BYTES), rows, row_bytes);
    const uint64_t records = (rows + record - 1) / record;
    const uint64_t few = records / PARTS_MOST + 1, wanted = bytes / (record * row_bytes);
    *out = (struct drps_parts_shape){
        .rows = rows,
        .row_bytes = row_bytes,
        .record_rows = record,
        .part_rows = least_of(record * (wanted > few ? wanted : few), rows + !rows)};
}

char *drps_part_path(const char *dir, uint64_t part)
{
    char *path;
    return asprintf(&path, "%s/" DRPS_CHECKPOINT_ROWS "/%05llu.rec", dir,
                    (unsigned long long)part) < 0
               ? NULL
               : path;
}

/* ---- Beginning ---- */

int drps_parts_begin(const struct drps_io *io, const char *dir, const char *before,
                     const struct drps_parts_shape *shape, struct drps_parts **p_out,
                     struct drps_err *err)
{
    *p_out = NULL;
    struct drps_parts *p = calloc(1, sizeof(*p));
    char *path = drps_path_join(dir, DRPS_CHECKPOINT_ROWS);
    int rc = p && path ? 0 : -ENOMEM;
    if (rc == 0) {
        *p = (struct drps_parts){.io = io, .dir = dir, .before = before, .shape = *shape};
        p->record = drps_array_new(shape->record_rows, shape->row_bytes);
        if (!p->record) rc = -ENOMEM;
    }
    if (rc < 0)
        (void)drps_err_set(err, rc, "no memory to write a checkpoint");
    else if ((rc = io->ops->mkdir(io->ctx, path, 0777)) < 0)
        (void)drps_err_set(err, rc, "cannot create the folder %s: %s", path, drps_err_name(rc));
    free(path);
    if (rc < 0) {
        drps_parts_close(p);
        return rc;
    }
    *p_out = p;
    return 0;
}

void drps_parts_close(struct drps_parts *p)
{
    if (!p) return;
    drps_recwriter_close(p->out);
    free(p->record);
    free(p->written);
    free(p);
}

/* ---- Parts of the checkpoint before ---- */

static int no_memory(struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory to write a checkpoint");
}

/* A second name for the part, or a copy where the file system has no such thing. */
static int take_part(struct drps_parts *p, uint64_t part, struct drps_err *err)
{
    char *from = drps_part_path(p->before, part), *to = drps_part_path(p->dir, part);
    uint64_t bytes = 0, sum;
    int rc = from && to ? 0 : no_memory(err);
    if (rc == 0 && p->io->ops->link(p->io->ctx, from, to) < 0)
        rc = drps_copy_file(p->io, from, to, &bytes, &sum, err);
    p->bytes += bytes;
    free(from);
    free(to);
    return rc;
}

/* Take the parts of the rows before `row`. */
static int take_before(struct drps_parts *p, uint64_t row, struct drps_err *err)
{
    const uint64_t part_rows = p->shape.part_rows;
    int rc = 0;
    if (row == p->next) return 0;
    if (row < p->next || row > p->shape.rows || !p->before || p->out ||
        (row % part_rows && row < p->shape.rows))
        return drps_err_set(err, -EINVAL, "rows of a checkpoint from %llu on, %llu of %llu came",
                            (unsigned long long)row, (unsigned long long)p->next,
                            (unsigned long long)p->shape.rows);
    for (; p->next < row && rc == 0; p->next = least_of(p->next + part_rows, row))
        rc = take_part(p, p->next / part_rows, err);
    return rc;
}

/* ---- Parts that are written ---- */

static int open_part(struct drps_parts *p, struct drps_err *err)
{
    const uint64_t part = p->next / p->shape.part_rows;
    char *path = drps_part_path(p->dir, part);
    int rc =
        path ? drps_array_reserve(&p->written, &p->cap, p->n + 1, sizeof(*p->written)) : -ENOMEM;
    if (rc < 0)
        (void)no_memory(err);
    else
        rc = drps_recwriter_open(p->io, path, DRPS_KIND_CHECKPOINT_ROWS, &p->out, err);
    if (rc == 0) p->written[p->n++] = part;
    free(path);
    return rc;
}

/* The record is the rows that are held, and these, which end it. */
static int write_record(struct drps_parts *p, size_t n, const void *rows, struct drps_err *err)
{
    const size_t row_bytes = p->shape.row_bytes;
    const struct drps_piece pieces[] = {{p->record, (size_t)p->used * row_bytes},
                                        {rows, n * row_bytes}};
    p->used = 0;
    return drps_recwriter_add(p->out, pieces, 2, err);
}

static void hold(struct drps_parts *p, size_t n, const void *rows)
{
    const size_t row_bytes = p->shape.row_bytes;
    memcpy(p->record + (size_t)p->used * row_bytes, rows, n * row_bytes);
    p->used += n;
}

static int finish_part(struct drps_parts *p, struct drps_err *err)
{
    int rc = drps_recwriter_finish(p->out, err);
    p->bytes += drps_recwriter_bytes(p->out);
    drps_recwriter_close(p->out);
    p->out = NULL;
    return rc;
}

/* Rows that end no later than the record does. */
static int add_piece(struct drps_parts *p, size_t n, const void *rows, struct drps_err *err)
{
    const struct drps_parts_shape *s = &p->shape;
    int rc = p->out ? 0 : open_part(p, err);
    if (rc < 0) return rc;
    p->next += n;
    if (p->used + n == s->record_rows || p->next == s->rows)
        rc = write_record(p, n, rows, err);
    else
        hold(p, n, rows);
    if (rc == 0 && (p->next % s->part_rows == 0 || p->next == s->rows)) rc = finish_part(p, err);
    return rc;
}

int drps_parts_add(struct drps_parts *p, uint64_t first, size_t n, const void *rows,
                   struct drps_err *err)
{
    const struct drps_parts_shape *s = &p->shape;
    const char *at = rows;
    int rc = take_before(p, first, err);
    if (rc == 0 && n > s->rows - p->next)
        rc = drps_err_set(err, -EINVAL, "rows %llu to %llu of a checkpoint of %llu",
                          (unsigned long long)first, (unsigned long long)(first + n),
                          (unsigned long long)s->rows);
    while (n && rc == 0) {
        const size_t now =
            (size_t)least_of(n, least_of(s->record_rows - p->used, s->rows - p->next));
        rc = add_piece(p, now, at, err);
        at += now * s->row_bytes;
        n -= now;
    }
    return rc;
}

/* ---- Syncing ---- */

/* Parts still to be synced, shared by the threads that do it. */
struct syncing {
    const struct drps_parts *p;
    _Atomic size_t next; /* relaxed: it only hands out numbers */
};

struct syncer {
    struct syncing *all;
    pthread_t thread;
    int rc; /* this and the text are read once the thread has ended */
    struct drps_err failure;
};

static int sync_part(const struct drps_parts *p, uint64_t part, struct drps_err *err)
{
    int fd = -1;
    char *path = drps_part_path(p->dir, part);
    int rc = path ? drps_io_open(p->io, path, O_RDONLY, &fd, err) : no_memory(err);
    if (rc == 0) rc = drps_io_sync(p->io, fd, path, err);
    drps_io_close(p->io, fd);
    free(path);
    return rc;
}

/* Sync parts while there are any; the first failure ends the work of all threads. */
static void *sync_some(void *arg)
{
    struct syncer *by = arg;
    const struct drps_parts *p = by->all->p;
    size_t i;
    while (by->rc == 0 &&
           (i = atomic_fetch_add_explicit(&by->all->next, 1, memory_order_relaxed)) < p->n)
        by->rc = sync_part(p, p->written[i], &by->failure);
    if (by->rc < 0) atomic_store_explicit(&by->all->next, p->n, memory_order_relaxed);
    return NULL;
}

/* A file system makes files last together that are synced at the same time. */
static int sync_parts(const struct drps_parts *p, struct drps_err *err)
{
    struct syncing all = {.p = p};
    struct syncer by[SYNC_THREADS];
    int n = 0, rc = 0;
    for (int i = 0; i < SYNC_THREADS; i++)
        by[i] = (struct syncer){.all = &all, .failure = DRPS_ERR_INIT};
    while (n < SYNC_THREADS - 1 && (size_t)n + 1 < p->n &&
           pthread_create(&by[n].thread, NULL, sync_some, &by[n]) == 0)
        n++; /* fewer threads than wished for: the others do more */
    (void)sync_some(&by[n]);
    for (int i = 0; i <= n; i++) {
        if (i < n) (void)pthread_join(by[i].thread, NULL); /* cannot fail for a thread of ours */
        if (by[i].rc < 0 && rc == 0) rc = drps_err_set(err, by[i].rc, "%s", by[i].failure.text);
    }
    return rc;
}

int drps_parts_finish(struct drps_parts *p, uint64_t *bytes_out, struct drps_err *err)
{
    int rc = take_before(p, p->shape.rows, err);
    if (rc == 0) rc = sync_parts(p, err);
    *bytes_out = p->bytes;
    return rc;
}
