/*
 * The file is written and read past the page cache where the file system allows that: in pieces of
 * a whole number of rows and of PAGE bytes, from a buffer that is aligned to PAGE.
 */
#include "engine/publish/drps_params.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_checksum.h"

enum {
    PAGE = 4096,
    PIECE_BYTES = 1 << 20, /* of a request, or a little more */
    RUN = 256,             /* floats that are looked at together */
};

struct drps_params {
    const struct drps_io *io; /* borrowed */
    char *path;               /* own, as are the next two */
    struct drps_summer *content;
    char *piece; /* [piece_rows][param_bytes], and up to a page */
    int fd;
    uint64_t rows, next; /* of all; the first that has not come */
    size_t dim, row_bytes, param_bytes;
    size_t piece_rows, used; /* rows */
    struct drps_params_found found;
    void (*tell)(void *ctx, uint64_t bytes, uint64_t all_bytes); /* may be NULL */
    void *tell_ctx;
};

/* Rows of a piece: their bytes are a multiple of PAGE. Parameters are multiples of 4 bytes. */
static size_t piece_rows(uint64_t param_bytes)
{
    const uint64_t odd = param_bytes & (PAGE - 1);
    const uint64_t unit = odd ? PAGE / (odd & -odd) : 1; /* the least number of rows that does */
    const uint64_t units = PIECE_BYTES / (unit * param_bytes);
    return (size_t)(unit * (units ? units : 1));
}

/* ---- Files ---- */

static int open_direct(const struct drps_io *io, const char *path, int flags, int *fd_out,
                       struct drps_err *err)
{
    const int fd = io->ops->open(io->ctx, path, flags | O_DIRECT, 0666);
    if (fd == -EINVAL)
        return drps_io_open(io, path, flags, fd_out, err); /* there is no such thing */
    *fd_out = fd < 0 ? -1 : fd;
    return fd < 0 ? drps_err_set(err, fd, "cannot open %s: %s", path, drps_err_name(fd)) : 0;
}

static int make(const struct drps_io *io, const char *path, uint64_t rows, uint32_t dim,
                struct drps_params **w_out, struct drps_err *err)
{
    *w_out = NULL;
    struct drps_params *w = calloc(1, sizeof(*w));
    if (!w) return drps_err_set(err, -ENOMEM, "no memory for %s", path);
    w->io = io;
    w->fd = -1;
    w->rows = rows;
    w->dim = dim;
    w->param_bytes = dim * sizeof(float);
    w->piece_rows = piece_rows(w->param_bytes);
    w->path = strdup(path);
    w->content = drps_summer_new();
    w->piece = aligned_alloc(PAGE, (w->piece_rows * w->param_bytes + PAGE) / PAGE * PAGE);
    if (!w->path || !w->content || !w->piece) {
        drps_params_close(w);
        return drps_err_set(err, -ENOMEM, "no memory for %s", path);
    }
    *w_out = w;
    return 0;
}

int drps_params_open(const struct drps_io *io, const char *path, uint64_t rows, uint32_t dim,
                     size_t row_bytes, struct drps_params **w_out, struct drps_err *err)
{
    int rc = make(io, path, rows, dim, w_out, err);
    if (rc == 0) rc = open_direct(io, path, O_WRONLY, &(*w_out)->fd, err);
    if (rc < 0) {
        drps_params_close(*w_out);
        *w_out = NULL;
        return rc;
    }
    (*w_out)->row_bytes = row_bytes;
    return 0;
}

void drps_params_close(struct drps_params *w)
{
    if (!w) return;
    drps_io_close(w->io, w->fd);
    drps_summer_free(w->content);
    free(w->path);
    free(w->piece);
    free(w);
}

/* ---- Writing ---- */

static unsigned count_bad(const float *v, size_t n)
{
    unsigned bad = 0;
    for (size_t i = 0; i < n; i++)
        bad += !(fabsf(v[i]) <= FLT_MAX);
    return bad;
}

static void note_first(struct drps_params *w, const float *v, size_t at)
{
    while (fabsf(v[at]) <= FLT_MAX)
        at++;
    w->found.row = w->next - w->used + at / w->dim;
    w->found.column = at % w->dim;
    w->found.value = (double)v[at];
}

static void look_at(struct drps_params *w)
{
    const float *v = (const float *)(const void *)w->piece;
    const size_t n = w->used * w->dim;
    for (size_t i = 0; i < n; i += RUN) {
        const unsigned bad = n - i < RUN ? count_bad(v + i, n - i) : count_bad(v + i, RUN);
        if (bad && !w->found.bad) note_first(w, v, i);
        w->found.bad += bad;
    }
}

/* The last piece is filled up to a page: finish() cuts the file. */
static int write_piece(struct drps_params *w, struct drps_err *err)
{
    const size_t bytes = w->used * w->param_bytes;
    const size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
    const uint64_t offset = (w->next - w->used) * w->param_bytes;
    drps_summer_add(w->content, w->piece, bytes);
    look_at(w);
    memset(w->piece + bytes, 0, whole - bytes);
    w->used = 0;
    if (w->tell) w->tell(w->tell_ctx, w->next * w->param_bytes, w->rows * w->param_bytes);
    return bytes ? drps_io_write_at(w->io, w->fd, w->piece, whole, offset, w->path, err) : 0;
}

void drps_params_tell(struct drps_params *w,
                      void (*tell)(void *ctx, uint64_t bytes, uint64_t all_bytes), void *ctx)
{
    w->tell = tell;
    w->tell_ctx = ctx;
}

static int add(struct drps_params *w, uint64_t first, size_t n, const void *rows, size_t stride,
               struct drps_err *err)
{
    const char *row = rows;
    if (first != w->next || n > w->rows - first)
        return drps_err_set(err, -EINVAL, "rows %llu to %llu came where row %llu of %llu was next",
                            (unsigned long long)first, (unsigned long long)(first + n),
                            (unsigned long long)w->next, (unsigned long long)w->rows);
    for (size_t i = 0; i < n; i++, row += stride) {
        memcpy(w->piece + w->used * w->param_bytes, row, w->param_bytes);
        w->next++;
        if (++w->used < w->piece_rows) continue;
        int rc = write_piece(w, err);
        if (rc < 0) return rc;
    }
    return 0;
}

int drps_params_add(void *writer, uint64_t first, size_t n, const void *rows, struct drps_err *err)
{
    struct drps_params *w = writer;
    return add(w, first, n, rows, w->row_bytes, err);
}

int drps_params_add_packed(struct drps_params *w, uint64_t first, size_t n, const void *params,
                           struct drps_err *err)
{
    return add(w, first, n, params, w->param_bytes, err);
}

int drps_params_finish(struct drps_params *w, struct drps_params_found *found_out,
                       struct drps_err *err)
{
    memset(found_out, 0, sizeof(*found_out));
    if (w->next != w->rows)
        return drps_err_set(err, -EINVAL, "%llu rows of %llu came", (unsigned long long)w->next,
                            (unsigned long long)w->rows);
    int rc = write_piece(w, err);
    if (rc == 0) rc = drps_io_resize(w->io, w->fd, w->path, w->rows * w->param_bytes, err);
    if (rc == 0) rc = drps_io_sync(w->io, w->fd, w->path, err);
    if (rc < 0) return rc;
    *found_out = w->found;
    found_out->content = drps_summer_value(w->content);
    return 0;
}

/* ---- Reading ---- */

static int check_size(const struct drps_params *r, struct drps_err *err)
{
    const uint64_t want = r->rows * r->param_bytes;
    uint64_t bytes;
    int rc = drps_io_size(r->io, r->fd, r->path, &bytes, err);
    if (rc < 0 || bytes == want) return rc;
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s has %llu bytes; %llu rows of %zu floats have %llu: it is damaged",
                        r->path, (unsigned long long)bytes, (unsigned long long)r->rows, r->dim,
                        (unsigned long long)want);
}

/* The last request asks for no more than there is, which is no whole page: not past the cache. */
static int read_piece(struct drps_params *r, struct drps_err *err)
{
    const uint64_t left = r->rows - r->next;
    const size_t n = left < r->piece_rows ? (size_t)left : r->piece_rows;
    const size_t bytes = n * r->param_bytes;
    int rc = 0;
    r->used = n;
    if (bytes % PAGE) {
        drps_io_close(r->io, r->fd);
        rc = drps_io_open(r->io, r->path, O_RDONLY, &r->fd, err);
    }
    return rc == 0 ? drps_io_read_at(r->io, r->fd, r->piece, bytes, r->next * r->param_bytes,
                                     r->path, err)
                   : rc;
}

int drps_params_read(const struct drps_io *io, const char *path, uint64_t rows, uint32_t dim,
                     drps_params_visit visit, void *ctx, struct drps_err *err)
{
    struct drps_params *r;
    int rc = make(io, path, rows, dim, &r, err);
    if (rc < 0) return rc;
    rc = open_direct(io, path, O_RDONLY, &r->fd, err);
    if (rc == 0) rc = check_size(r, err);
    while (rc == 0 && r->next < r->rows) {
        rc = read_piece(r, err);
        if (rc == 0) rc = visit(ctx, r->next, r->used, r->piece, err);
        r->next += r->used;
    }
    drps_params_close(r);
    return rc;
}
