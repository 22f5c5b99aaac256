/* Each piece of rows has its place in one file, as large as the rows that were announced for it,
 * and a buffer of what is to be appended there. */
#include "engine/warm/pieces.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"

struct piece {
    uint64_t expected; /* rows */
    uint64_t offset;   /* of its place in the file */
    uint64_t written;  /* bytes */
    size_t used;       /* bytes of its buffer */
};

struct warm_pieces {
    struct warm_pieces_options o;
    size_t row_bytes, entry_bytes; /* of a row, and with its number */
    uint64_t piece_rows;
    size_t n;
    struct piece *pieces; /* own: [n] */
    char *buffers;        /* own: [n][buffer_bytes] */
    size_t buffer_bytes;
    char *path; /* own */
    int fd;
};

/* ---- Beginning ---- */

static int too_little(const struct warm_pieces *p, struct drps_err *err)
{
    char has[32], need[32];
    const uint64_t least = p->n * (sizeof(struct piece) + p->entry_bytes);
    return drps_err_set(
        err, DRPS_E_MEMORY_BUDGET,
        "the memory limit leaves %s to put %llu rows of %zu bytes in order: about %s are "
        "needed",
        drps_size_format(p->o.memory_bytes, has, sizeof(has)), (unsigned long long)p->o.rows,
        p->row_bytes,
        drps_size_format(least > 2 * p->entry_bytes ? least : 2 * p->entry_bytes, need,
                         sizeof(need)));
}

/* Half of the memory for the rows of a piece, the rest for reading into it; or a buffer for each
 * piece. */
static int divide(struct warm_pieces *p, struct drps_err *err)
{
    const uint64_t half = p->o.memory_bytes / 2;
    p->piece_rows = 1;
    if (!p->o.rows) return 0; /* of a rank without rows: there is no piece */
    p->piece_rows = half / p->row_bytes;
    if (p->piece_rows > p->o.rows) p->piece_rows = p->o.rows;
    if (!p->piece_rows) return too_little(p, err);
    p->n = (size_t)((p->o.rows - 1) / p->piece_rows + 1);
    const uint64_t pieces = p->n * sizeof(*p->pieces);
    const uint64_t each = pieces < p->o.memory_bytes ? (p->o.memory_bytes - pieces) / p->n : 0;
    p->buffer_bytes = (size_t)(each < half ? each : half) / p->entry_bytes * p->entry_bytes;
    return p->buffer_bytes ? 0 : too_little(p, err);
}

int drps_warm_pieces_new(const struct warm_pieces_options *o, struct warm_pieces **p_out,
                         struct drps_err *err)
{
    *p_out = NULL;
    struct warm_pieces *p = calloc(1, sizeof(*p));
    if (!p) return drps_err_set(err, -ENOMEM, "no memory for rows");
    p->o = *o;
    p->fd = -1;
    p->row_bytes = o->server->row_bytes;
    p->entry_bytes = p->row_bytes + sizeof(uint32_t);
    int rc = divide(p, err);
    if (rc == 0) {
        p->pieces = calloc(p->n + 1, sizeof(*p->pieces));
        p->path = drps_path_join(o->dir, "pieces");
        if (!p->pieces || !p->path) rc = drps_err_set(err, -ENOMEM, "no memory for rows");
    }
    if (rc == 0) rc = drps_io_open(o->io, p->path, O_RDWR | O_CREAT | O_TRUNC, &p->fd, err);
    if (rc < 0) {
        drps_warm_pieces_free(p);
        return rc;
    }
    *p_out = p;
    return 0;
}

void drps_warm_pieces_free(struct warm_pieces *p)
{
    if (!p) return;
    drps_io_close(p->o.io, p->fd);
    if (p->fd >= 0) (void)p->o.io->ops->unlink(p->o.io->ctx, p->path);
    free(p->pieces);
    free(p->buffers);
    free(p->path);
    free(p);
}

/* ---- Rows come ---- */

void drps_warm_pieces_expect(struct warm_pieces *p, uint32_t row)
{
    p->pieces[row / p->piece_rows].expected++;
}

int drps_warm_pieces_begin(struct warm_pieces *p, struct drps_err *err)
{
    uint64_t offset = 0;
    for (size_t i = 0; i < p->n; i++) {
        p->pieces[i].offset = offset;
        offset += p->pieces[i].expected * p->entry_bytes;
    }
    p->buffers = drps_array_new(p->n, p->buffer_bytes);
    return p->buffers ? 0 : drps_err_set(err, -ENOMEM, "no memory for rows on their way");
}

static int flush(struct warm_pieces *p, size_t i, struct drps_err *err)
{
    struct piece *piece = &p->pieces[i];
    int rc = drps_io_write_at(p->o.io, p->fd, p->buffers + i * p->buffer_bytes, piece->used,
                              piece->offset + piece->written, p->path, err);
    piece->written += piece->used;
    piece->used = 0;
    return rc;
}

int drps_warm_pieces_add(struct warm_pieces *p, uint32_t row, const void *bytes,
                         struct drps_err *err)
{
    const size_t i = (size_t)(row / p->piece_rows);
    struct piece *piece = &p->pieces[i];
    char *at = p->buffers + i * p->buffer_bytes + piece->used;
    memcpy(at, &row, sizeof(row));
    memcpy(at + sizeof(row), bytes, p->row_bytes);
    piece->used += p->entry_bytes;
    return piece->used == p->buffer_bytes ? flush(p, i, err) : 0;
}

/* ---- Rows go out ---- */

/* Put the piece's rows over the fresh ones. */
static int put(struct warm_pieces *p, const struct piece *piece, uint64_t first, char *rows,
               char *entries, size_t cap, struct drps_err *err)
{
    int rc = 0;
    for (uint64_t done = 0; done < piece->written && rc == 0; done += cap) {
        const uint64_t left = piece->written - done;
        const size_t n = left < cap ? (size_t)left : cap;
        rc = drps_io_read_at(p->o.io, p->fd, entries, n, piece->offset + done, p->path, err);
        for (size_t at = 0; at < n && rc == 0; at += p->entry_bytes) {
            uint32_t row;
            memcpy(&row, entries + at, sizeof(row));
            if (row - first >= p->piece_rows)
                return drps_err_set(err, DRPS_E_CORRUPT, "%s changed while it was read", p->path);
            memcpy(rows + (row - first) * p->row_bytes, entries + at + sizeof(row), p->row_bytes);
        }
    }
    return rc;
}

static int let_out(struct warm_pieces *p, drps_row_visit visit, void *ctx, char *rows,
                   char *entries, size_t cap, struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < p->n && rc == 0; i++) {
        const uint64_t first = i * p->piece_rows;
        const uint64_t left = p->o.rows - first;
        const size_t n = (size_t)(left < p->piece_rows ? left : p->piece_rows);
        rc = drps_io_stopped(p->o.io, err);
        if (rc < 0) break;
        drps_server_fresh(p->o.server, first, n, rows);
        rc = put(p, &p->pieces[i], first, rows, entries, cap, err);
        if (rc == 0) rc = visit(ctx, first, n, rows, err);
    }
    return rc;
}

int drps_warm_pieces_end(struct warm_pieces *p, drps_row_visit visit, void *ctx,
                         struct drps_err *err)
{
    enum { READ_BYTES = 1 << 20 };
    int rc = 0;
    for (size_t i = 0; i < p->n && rc == 0; i++)
        if (p->pieces[i].used) rc = flush(p, i, err);
    free(p->buffers);
    p->buffers = NULL;
    if (rc < 0) return rc;
    const uint64_t half = p->o.memory_bytes / 2, most = half < READ_BYTES ? half : READ_BYTES;
    const size_t cap = (size_t)(most / p->entry_bytes + !(most / p->entry_bytes)) * p->entry_bytes;
    char *rows = drps_array_new((size_t)p->piece_rows, p->row_bytes);
    char *entries = malloc(cap);
    rc = rows && entries ? let_out(p, visit, ctx, rows, entries, cap, err)
                         : drps_err_set(err, -ENOMEM, "no memory for a piece of rows");
    free(rows);
    free(entries);
    return rc;
}
