#include "support/fault_io.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_names[] = {
#define FAULT_NAME(name) #name,
    FAULT_OPS(FAULT_NAME)
#undef FAULT_NAME
};

const char *fault_op_name(unsigned op)
{
    return op ? op_names[__builtin_ctz(op)] : "none";
}

/* Count the call; whether it is to fail. */
static int strikes(struct fault_io *f, enum fault_number op)
{
    atomic_fetch_add(&f->calls[op], 1);
    if (!(f->ops & 1u << op)) return 0;
    long left = atomic_load(&f->countdown);
    if (left <= 0 && !(f->persistent && atomic_load(&f->fired))) return 0;
    left = atomic_fetch_sub(&f->countdown, 1) - 1;
    if (left > 0 || (left < 0 && !f->persistent)) return 0;
    atomic_fetch_add(&f->fired, 1);
    return 1;
}

static int is_called(struct fault_io *f, int fd, const char *name)
{
    if (fd < 0 || fd >= FAULT_FILES) return 0;
    pthread_mutex_lock(&f->lock);
    const char *slash = strrchr(f->opened[fd], '/');
    const int is = strcmp(slash ? slash + 1 : f->opened[fd], name) == 0;
    pthread_mutex_unlock(&f->lock);
    return is;
}

/* As strikes(), of a call that moves bytes of a file. */
static int strikes_file(struct fault_io *f, enum fault_number op, int fd)
{
    const char *only = atomic_load(&f->only);
    if (!only || is_called(f, fd, only)) return strikes(f, op);
    atomic_fetch_add(&f->calls[op], 1);
    return 0;
}

/* --- which files have bytes that a crash would lose
 * ----------------------------------------------------- */

static void note_open(struct fault_io *f, int fd, const char *path)
{
    if (fd < 0 || fd >= FAULT_FILES) return;
    pthread_mutex_lock(&f->lock);
    (void)snprintf(f->opened[fd], FAULT_PATH_BYTES, "%s", path);
    pthread_mutex_unlock(&f->lock);
}

static size_t find_unsynced(const struct fault_io *f, const char *path)
{
    size_t i = 0;
    while (i < f->unsynced_n && strcmp(f->unsynced[i], path) != 0)
        i++;
    return i;
}

static void forget(struct fault_io *f, size_t i)
{
    if (i < f->unsynced_n) memmove(f->unsynced[i], f->unsynced[--f->unsynced_n], FAULT_PATH_BYTES);
}

static void note_write(struct fault_io *f, int fd)
{
    if (fd < 0 || fd >= FAULT_FILES) return;
    pthread_mutex_lock(&f->lock);
    size_t i = find_unsynced(f, f->opened[fd]);
    if (i == f->unsynced_n && i < FAULT_FILES)
        memcpy(f->unsynced[f->unsynced_n++], f->opened[fd], FAULT_PATH_BYTES);
    pthread_mutex_unlock(&f->lock);
}

static void note_sync(struct fault_io *f, int fd)
{
    if (fd < 0 || fd >= FAULT_FILES) return;
    pthread_mutex_lock(&f->lock);
    forget(f, find_unsynced(f, f->opened[fd]));
    pthread_mutex_unlock(&f->lock);
}

static void note_unlink(struct fault_io *f, const char *path)
{
    pthread_mutex_lock(&f->lock);
    forget(f, find_unsynced(f, path));
    pthread_mutex_unlock(&f->lock);
}

static void note_rename(struct fault_io *f, const char *from)
{
    size_t n = strlen(from);
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->unsynced_n; i++)
        f->unsynced_at_rename += strncmp(f->unsynced[i], from, n) == 0 &&
                                 (f->unsynced[i][n] == '/' || !f->unsynced[i][n]);
    pthread_mutex_unlock(&f->lock);
}

static void note_struck(struct fault_io *f, const char *path)
{
    pthread_mutex_lock(&f->lock);
    (void)snprintf(f->struck, sizeof(f->struck), "%s", path);
    pthread_mutex_unlock(&f->lock);
}

/* --- the calls
 * ------------------------------------------------------------------------------------------ */

static int fault_open(void *ctx, const char *path, int flags, mode_t mode)
{
    struct fault_io *f = ctx;
    if (strikes(f, FAULT_NR_OPEN)) {
        note_struck(f, path);
        return f->code;
    }
    int fd = f->inner->ops->open(f->inner->ctx, path, flags, mode);
    note_open(f, fd, path);
    return fd;
}

static int fault_close(void *ctx, int fd)
{
    struct fault_io *f = ctx;
    int bad = strikes(f, FAULT_NR_CLOSE);
    int rc = f->inner->ops->close(f->inner->ctx, fd); /* a failed close closes all the same */
    return bad ? f->code : rc;
}

static size_t half(size_t n)
{
    return n > 1 ? n / 2 : n;
}

static ssize_t fault_read(void *ctx, int fd, void *buf, size_t n)
{
    struct fault_io *f = ctx;
    if (strikes(f, FAULT_NR_READ)) {
        if (f->effect != FAULT_SHORT) return f->code;
        n = half(n);
    }
    return f->inner->ops->read(f->inner->ctx, fd, buf, n);
}

static ssize_t fault_pread(void *ctx, int fd, void *buf, size_t n, uint64_t offset)
{
    struct fault_io *f = ctx;
    if (strikes_file(f, FAULT_NR_PREAD, fd)) {
        if (f->effect != FAULT_SHORT) return f->code;
        n = half(n);
    }
    return f->inner->ops->pread(f->inner->ctx, fd, buf, n, offset);
}

/* The first n bytes of the pieces. */
static ssize_t write_first(struct fault_io *f, int fd, const struct iovec *pieces, size_t n,
                           uint64_t offset)
{
    struct iovec part[FAULT_PIECES];
    int parts = 0;
    for (size_t left = n; left || !parts; parts++) {
        if (parts == FAULT_PIECES) abort();
        part[parts] = pieces[parts];
        if (part[parts].iov_len > left) part[parts].iov_len = left;
        left -= part[parts].iov_len;
    }
    const struct drps_io_ops *ops = f->inner->ops;
    return parts > 1 ? ops->pwritev(f->inner->ctx, fd, part, parts, offset)
                     : ops->pwrite(f->inner->ctx, fd, part[0].iov_base, part[0].iov_len, offset);
}

static ssize_t fault_pwritev(void *ctx, int fd, const struct iovec *pieces, int pieces_n,
                             uint64_t offset)
{
    struct fault_io *f = ctx;
    size_t n = 0;
    for (int i = 0; i < pieces_n; i++)
        n += pieces[i].iov_len;
    int bad = strikes_file(f, FAULT_NR_PWRITE, fd);
    if (bad && f->effect == FAULT_ERROR) return f->code;
    if (f->disk_bytes) {
        uint64_t used = atomic_load(&f->written_bytes);
        if (used >= f->disk_bytes) {
            atomic_fetch_add(&f->fired, 1);
            return -ENOSPC;
        }
        if (n > f->disk_bytes - used)
            n = (size_t)(f->disk_bytes - used); /* the last bytes still fit */
    }
    if (bad && f->effect != FAULT_AGAIN) n = half(n);
    note_write(f, fd);
    ssize_t put = write_first(f, fd, pieces, n, offset);
    if (put > 0) atomic_fetch_add(&f->written_bytes, (unsigned long)put);
    return bad && f->effect != FAULT_SHORT ? f->code : put;
}

static ssize_t fault_pwrite(void *ctx, int fd, const void *buf, size_t n, uint64_t offset)
{
    const struct iovec piece = {.iov_base = (void *)buf, .iov_len = n}; /* which is only read */
    return fault_pwritev(ctx, fd, &piece, 1, offset);
}

static int fault_fsync(void *ctx, int fd)
{
    struct fault_io *f = ctx;
    if (strikes(f, FAULT_NR_FSYNC)) {
        note_struck(f, fd >= 0 && fd < FAULT_FILES ? f->opened[fd] : "");
        return f->code;
    }
    int rc = f->inner->ops->fsync(f->inner->ctx, fd);
    if (rc == 0) note_sync(f, fd);
    return rc;
}

static int fault_ftruncate(void *ctx, int fd, uint64_t size)
{
    struct fault_io *f = ctx;
    if (strikes(f, FAULT_NR_FTRUNCATE)) return f->code;
    return f->inner->ops->ftruncate(f->inner->ctx, fd, size);
}

static int fault_fallocate(void *ctx, int fd, uint64_t size)
{
    struct fault_io *f = ctx;
    if (strikes(f, FAULT_NR_FALLOCATE)) return f->code;
    return f->inner->ops->fallocate(f->inner->ctx, fd, size);
}

static int64_t fault_size(void *ctx, int fd)
{
    struct fault_io *f = ctx;
    if (strikes(f, FAULT_NR_SIZE)) return f->code;
    return f->inner->ops->size(f->inner->ctx, fd);
}

static int fault_rename(void *ctx, const char *from, const char *to)
{
    struct fault_io *f = ctx;
    if (strikes(f, FAULT_NR_RENAME)) return f->code;
    note_rename(f, from);
    return f->inner->ops->rename(f->inner->ctx, from, to);
}

static int fault_unlink(void *ctx, const char *path)
{
    struct fault_io *f = ctx;
    if (strikes(f, FAULT_NR_UNLINK)) return f->code;
    int rc = f->inner->ops->unlink(f->inner->ctx, path);
    if (rc == 0) note_unlink(f, path);
    return rc;
}

static int fault_mkdir(void *ctx, const char *path, mode_t mode)
{
    struct fault_io *f = ctx;
    if (strikes(f, FAULT_NR_MKDIR)) return f->code;
    return f->inner->ops->mkdir(f->inner->ctx, path, mode);
}

static int fault_rmdir(void *ctx, const char *path)
{
    struct fault_io *f = ctx;
    if (strikes(f, FAULT_NR_RMDIR)) return f->code;
    return f->inner->ops->rmdir(f->inner->ctx, path);
}

static int fault_exchange(void *ctx, const char *a, const char *b)
{
    struct fault_io *f = ctx;
    if (strikes(f, FAULT_NR_EXCHANGE)) return f->code;
    note_rename(f, a);
    note_rename(f, b);
    return f->inner->ops->exchange(f->inner->ctx, a, b);
}

static int fault_link(void *ctx, const char *from, const char *to)
{
    struct fault_io *f = ctx;
    if (strikes(f, FAULT_NR_LINK)) return f->code;
    return f->inner->ops->link(f->inner->ctx, from, to);
}

/* --- requests to io_uring
 * ------------------------------------------------------------------------------- */

/* The request will fail with `code` whatever the kernel says of it. */
static void note_doomed(struct fault_io *f, const struct drps_io_request *r, int code)
{
    pthread_mutex_lock(&f->lock);
    if (f->doomed_n == FAULT_REQUESTS) abort();
    f->doomed[f->doomed_n++] =
        (struct fault_request){.fd = r->fd, .write = r->write, .offset = r->offset, .code = code};
    pthread_mutex_unlock(&f->lock);
}

/* The code of a request that is to fail, which is forgotten; else 0. */
static int take_doomed(struct fault_io *f, const struct drps_io_request *r)
{
    int code = 0;
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->doomed_n && !code; i++)
        if (f->doomed[i].fd == r->fd && f->doomed[i].write == r->write &&
            f->doomed[i].offset == r->offset) {
            code = f->doomed[i].code;
            f->doomed[i] = f->doomed[--f->doomed_n];
        }
    pthread_mutex_unlock(&f->lock);
    return code;
}

/* Bytes of a write that the disk still has room for. */
static size_t fits(const struct fault_io *f, size_t bytes)
{
    if (!f->disk_bytes) return bytes;
    const uint64_t used = atomic_load(&f->written_bytes);
    const uint64_t room = used < f->disk_bytes ? f->disk_bytes - used : 0;
    return bytes < room ? bytes : (size_t)room;
}

static size_t fault_asked(void *ctx, const struct drps_io_request *r)
{
    struct fault_io *f = ctx;
    const struct drps_io_ops *inner = f->inner->ops;
    atomic_fetch_add(&f->requests, 1);
    const int bad = strikes_file(f, r->write ? FAULT_NR_PWRITE : FAULT_NR_PREAD, r->fd);
    size_t may = r->write ? fits(f, r->bytes) : r->bytes;
    int code = may ? 0 : -ENOSPC;
    if (!may) atomic_fetch_add(&f->fired, 1);
    if (bad && f->effect != FAULT_SHORT) code = f->code;
    if (bad && f->effect == FAULT_ERROR) may = 0;
    if (bad && f->effect != FAULT_AGAIN) may = half(may);
    if (code) note_doomed(f, r, code);
    if (r->write && may) note_write(f, r->fd);
    if (r->write) atomic_fetch_add(&f->written_bytes, may);
    /* A table below is asked for what may move, so that both agree on it. */
    struct drps_io_request below = *r;
    below.bytes = may;
    return inner->asked ? inner->asked(f->inner->ctx, &below) : may;
}

static ssize_t fault_told(void *ctx, const struct drps_io_request *r, ssize_t got)
{
    struct fault_io *f = ctx;
    const struct drps_io_ops *inner = f->inner->ops;
    if (inner->told) got = inner->told(f->inner->ctx, r, got);
    const int code = take_doomed(f, r);
    return code ? code : got;
}

#define CALLS                                                                                      \
    .open = fault_open, .close = fault_close, .read = fault_read, .pread = fault_pread,            \
    .pwrite = fault_pwrite, .pwritev = fault_pwritev, .fsync = fault_fsync,                        \
    .ftruncate = fault_ftruncate, .fallocate = fault_fallocate, .size = fault_size,                \
    .rename = fault_rename, .unlink = fault_unlink, .mkdir = fault_mkdir, .rmdir = fault_rmdir,    \
    .exchange = fault_exchange, .link = fault_link

static const struct drps_io_ops fault_ops = {CALLS};
static const struct drps_io_ops request_ops = {CALLS, .asked = fault_asked, .told = fault_told};

struct fault_io *fault_io_new(const struct drps_io *inner)
{
    struct fault_io *f = calloc(1, sizeof(*f));
    if (!f) return NULL;
    f->io = (struct drps_io){.ops = &fault_ops, .ctx = f};
    f->inner = inner;
    f->code = -EIO;
    pthread_mutex_init(&f->lock, NULL);
    return f;
}

void fault_io_see_requests(struct fault_io *f)
{
    f->io.ops = &request_ops;
}

void fault_io_free(struct fault_io *f)
{
    if (!f) return;
    pthread_mutex_destroy(&f->lock);
    free(f);
}

void fault_io_arm(struct fault_io *f, unsigned ops, long k, int persistent,
                  enum fault_effect effect, int code)
{
    f->ops = ops;
    f->persistent = persistent;
    f->effect = effect;
    f->code = code;
    atomic_store(&f->fired, 0);
    atomic_store(&f->countdown, k);
}
