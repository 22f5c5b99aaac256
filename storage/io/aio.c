/* Opening a file for asynchronous requests, handing them to an engine, errors and counters. */
#include "storage/io/drps_aio.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "storage/io/aio_internal.h"

enum {
    REGISTER_BYTES = 1 << 30, /* the kernel takes no larger piece as one registered buffer */
};

/* ---- Opening and closing ---- */

static int check_config(const struct drps_aio_config *c, struct drps_err *err)
{
    if (!c->depth || c->depth > DRPS_AIO_DEPTH_MAX)
        return drps_err_set(err, -EINVAL, "%s: %u operations under way; 1 to %d are possible",
                            c->path, c->depth, DRPS_AIO_DEPTH_MAX);
    if (!c->file_bytes || c->file_bytes % DRPS_AIO_ALIGN || c->file_bytes > INT64_MAX)
        return drps_err_set(err, -EINVAL, "%s: %" PRIu64 " bytes are no multiple of %d", c->path,
                            c->file_bytes, DRPS_AIO_ALIGN);
    if (c->align && c->align != DRPS_AIO_SECTOR && c->align != DRPS_AIO_ALIGN)
        return drps_err_set(err, -EINVAL, "%s: operations aligned to %" PRIu32, c->path, c->align);
    if (!c->buffers || !c->buffers_bytes || (uintptr_t)c->buffers % DRPS_AIO_ALIGN)
        return drps_err_set(err, -EINVAL, "%s: the buffers are missing or not aligned to %d",
                            c->path, DRPS_AIO_ALIGN);
    return 0;
}

/* The alignment that the file system asks for past the page cache; 0: it does not say. */
static uint32_t direct_align(int fd)
{
#ifdef STATX_DIOALIGN
    struct statx s;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &s) == 0 && s.stx_mask & STATX_DIOALIGN)
        return s.stx_dio_mem_align > s.stx_dio_offset_align ? s.stx_dio_mem_align
                                                            : s.stx_dio_offset_align;
#else
    (void)fd;
#endif
    return 0;
}

int drps_aio_sector(const struct drps_io *io, const char *path, uint32_t *sector_out,
                    struct drps_err *err)
{
    int fd;
    *sector_out = DRPS_AIO_ALIGN;
    int rc = drps_io_open(io, path, O_RDWR | O_CREAT | O_EXCL, &fd, err);
    if (rc < 0) return rc;
    const uint32_t align = direct_align(fd);
    if (align && align <= DRPS_AIO_SECTOR) *sector_out = DRPS_AIO_SECTOR;
    drps_io_close(io, fd);
    rc = io->ops->unlink(io->ctx, path);
    return rc < 0 ? drps_err_set(err, rc, "cannot remove %s: %s", path, drps_err_name(rc)) : 0;
}

static int preallocate(const struct drps_aio *aio, uint64_t bytes, struct drps_err *err)
{
    char size[32];
    int rc = drps_io_fallocate(aio->io, aio->fd, bytes, err);
    if (rc >= 0 || rc == DRPS_E_INTERRUPTED) return rc;
    (void)drps_size_format(bytes, size, sizeof(size));
    if (rc == -ENOSPC || rc == -EDQUOT)
        return drps_err_set(err, rc,
                            "no space left for %s, which needs %s (%" PRIu64
                            " bytes): free some space or choose another folder",
                            aio->path, size, bytes);
    return drps_err_set(err, rc, "cannot make %s %s (%" PRIu64 " bytes) large: %s", aio->path, size,
                        aio->file_bytes, drps_err_name(rc));
}

static int access_of(const struct drps_aio *aio)
{
    return aio->file == DRPS_AIO_LOOK ? O_RDONLY : O_RDWR;
}

/* Change over to a descriptor that passes by the page cache, where the file system allows it. */
static int go_direct(struct drps_aio *aio, struct drps_err *err)
{
    const struct drps_io *io = aio->io;
    int fd = io->ops->open(io->ctx, aio->path, access_of(aio) | O_DIRECT, 0);
    if (fd == -EINVAL) {
        drps_aio_note(aio, "no O_DIRECT on this file system");
        return 0;
    }
    if (fd < 0) return drps_err_set(err, fd, "cannot open %s: %s", aio->path, drps_err_name(fd));
    drps_io_close(io, aio->fd);
    aio->fd = fd;
    aio->about.direct = 1;
    return 0;
}

/*
 * The file is made and preallocated before it is opened with O_DIRECT: an open that is refused for
 * O_DIRECT may have made the file already, and where a file system cannot preallocate, the C
 * library writes single bytes.
 */
static int make_file(struct drps_aio *aio, struct drps_err *err)
{
    int rc = drps_io_open(aio->io, aio->path, O_RDWR | O_CREAT | O_EXCL, &aio->fd, err);
    if (rc < 0) return rc;
    rc = preallocate(aio, aio->file_bytes, err);
    if (rc == 0) rc = go_direct(aio, err);
    return rc;
}

/* A file that exists may have holes: what is written gets its room now. */
static int use_file(struct drps_aio *aio, struct drps_err *err)
{
    uint64_t bytes = 0;
    int rc = drps_io_open(aio->io, aio->path, access_of(aio), &aio->fd, err);
    if (rc == 0) rc = drps_io_size(aio->io, aio->fd, aio->path, &bytes, err);
    if (rc < 0) return rc;
    if (bytes < aio->file_bytes)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s has %" PRIu64 " bytes of %" PRIu64 ": something else cut it",
                            aio->path, bytes, aio->file_bytes);
    if (aio->file == DRPS_AIO_USE) rc = preallocate(aio, aio->file_bytes, err);
    return rc < 0 ? rc : go_direct(aio, err);
}

static int start_engine(struct drps_aio *aio, const struct drps_aio_engine *engine,
                        struct drps_err *err)
{
    int rc = engine->start(aio, err);
    if (rc < 0) {
        engine->stop(aio);
        return rc;
    }
    aio->engine = engine;
    aio->about.engine = engine->name;
    return 0;
}

static int choose_engine(struct drps_aio *aio, int threads_only, struct drps_err *err)
{
    struct drps_err why_not = DRPS_ERR_INIT;
    if (!threads_only && aio->io->ops != drps_io_os()->ops && !aio->io->ops->asked) {
        drps_aio_note(aio, "no io_uring past a replaced drps_io");
        threads_only = 1;
    }
    if (!threads_only) {
        if (start_engine(aio, &drps_aio_uring, &why_not) == 0) return 0;
        drps_aio_note(aio, "%s", why_not.text);
    }
    return start_engine(aio, &drps_aio_threads, err);
}

static int allocate(struct drps_aio *aio)
{
    aio->free = drps_array_new(aio->depth, sizeof(*aio->free));
    aio->finished = drps_array_new(aio->depth, sizeof(*aio->finished));
    aio->requests = calloc(aio->depth, sizeof(*aio->requests));
    aio->lock = malloc(sizeof(*aio->lock));
    if (aio->lock) (void)pthread_mutex_init(aio->lock, NULL); /* cannot fail with the defaults */
    if (!aio->free || !aio->finished || !aio->requests || !aio->lock) return -ENOMEM;
    while (aio->free_n < aio->depth) {
        aio->free[aio->free_n] = aio->free_n;
        aio->free_n++;
    }
    return 0;
}

int drps_aio_open_pieces(const struct drps_aio_config *config, size_t register_bytes,
                         struct drps_aio **aio_out, struct drps_err *err)
{
    *aio_out = NULL;
    int rc = check_config(config, err);
    if (rc < 0) return rc;
    struct drps_aio *aio = calloc(1, sizeof(*aio));
    if (!aio) return drps_err_set(err, -ENOMEM, "no memory for I/O on %s", config->path);
    aio->fd = -1; /* from here on drps_aio_close(aio) is safe */
    aio->io = config->io;
    aio->path = config->path;
    aio->file = config->file;
    aio->file_bytes = config->file_bytes;
    aio->align = config->align ? config->align : DRPS_AIO_ALIGN;
    aio->buffers = config->buffers;
    aio->buffers_bytes = config->buffers_bytes;
    aio->register_bytes = register_bytes;
    aio->depth = config->depth;
    aio->read_end = aio->write_end = UINT64_MAX;

    rc = allocate(aio);
    if (rc < 0) {
        (void)drps_err_set(err, rc, "no memory for I/O on %s", aio->path);
        goto out;
    }
    rc = aio->file == DRPS_AIO_MAKE ? make_file(aio, err) : use_file(aio, err);
    if (rc == 0) rc = choose_engine(aio, config->threads_only, err);
    if (rc < 0) {
        if (aio->fd >= 0 && aio->file == DRPS_AIO_MAKE)
            (void)aio->io->ops->unlink(aio->io->ctx, aio->path); /* was not there */
        goto out;
    }
    *aio_out = aio;
    aio = NULL;
out:
    drps_aio_close(aio);
    return rc;
}

int drps_aio_open(const struct drps_aio_config *config, struct drps_aio **aio_out,
                  struct drps_err *err)
{
    return drps_aio_open_pieces(config, REGISTER_BYTES, aio_out, err);
}

static void stop(struct drps_aio *aio)
{
    size_t n;
    while (aio->under_way &&
           aio->engine->reap(aio, aio->under_way, aio->finished, aio->depth, &n, NULL) == 0)
        aio->under_way -= (unsigned)n;
    aio->engine->stop(aio);
    aio->engine = NULL;
}

void drps_aio_discard(struct drps_aio *aio)
{
    if (!aio) return;
    if (aio->engine) stop(aio);
    if (aio->fd >= 0)
        (void)aio->io->ops->ftruncate(aio->io->ctx, aio->fd, 0); /* no more than that */
    drps_aio_close(aio);
}

void drps_aio_close(struct drps_aio *aio)
{
    if (!aio) return;
    if (aio->engine) stop(aio);
    drps_io_close(aio->io, aio->fd);
    if (aio->lock) (void)pthread_mutex_destroy(aio->lock);
    free(aio->lock);
    free(aio->requests);
    free(aio->finished);
    free(aio->free);
    free(aio);
}

int drps_aio_grow(struct drps_aio *aio, uint64_t bytes, struct drps_err *err)
{
    if (bytes % DRPS_AIO_ALIGN || bytes < aio->file_bytes || bytes > INT64_MAX)
        return drps_err_set(err, -EINVAL, "%s: %" PRIu64 " bytes after %" PRIu64, aio->path, bytes,
                            aio->file_bytes);
    int rc = preallocate(aio, bytes, err);
    if (rc < 0) /* it may have got a part */
        (void)aio->io->ops->ftruncate(aio->io->ctx, aio->fd, aio->file_bytes);
    else
        aio->file_bytes = bytes;
    return rc;
}

int drps_aio_sync(const struct drps_aio *aio, struct drps_err *err)
{
    return drps_io_sync(aio->io, aio->fd, aio->path, err);
}

/* ---- Operations ---- */

static int check_memory(const struct drps_aio *aio, const void *buf, size_t bytes,
                        struct drps_err *err)
{
    const uintptr_t at = (uintptr_t)buf - (uintptr_t)aio->buffers; /* wraps when below */
    if (!bytes || bytes % aio->align || at % aio->align)
        return drps_err_set(err, -EINVAL, "%s: %zu bytes of memory are not aligned to %" PRIu32,
                            aio->path, bytes, aio->align);
    if (at > aio->buffers_bytes || bytes > aio->buffers_bytes - at)
        return drps_err_set(err, -EINVAL, "%s: a piece is not inside the buffers", aio->path);
    return 0;
}

static int check_pieces(const struct drps_aio *aio, const struct drps_aio_op *op,
                        struct drps_err *err)
{
    uint64_t sum = 0;
    if (!op->write || !op->pieces_n || op->pieces_n > DRPS_AIO_PIECES_MAX)
        return drps_err_set(err, -EINVAL, "%s: %u pieces, 1 to %d can be written", aio->path,
                            op->pieces_n, DRPS_AIO_PIECES_MAX);
    for (unsigned i = 0; i < op->pieces_n; i++) {
        int rc = check_memory(aio, op->pieces[i].iov_base, op->pieces[i].iov_len, err);
        if (rc < 0) return rc;
        sum += op->pieces[i].iov_len;
    }
    if (sum != op->bytes)
        return drps_err_set(err, -EINVAL, "%s: pieces of %" PRIu64 " bytes, not %" PRIu32,
                            aio->path, sum, op->bytes);
    return 0;
}

static int check_op(const struct drps_aio *aio, const struct drps_aio_op *op, struct drps_err *err)
{
    if (!op->bytes || op->bytes % aio->align || op->offset % aio->align)
        return drps_err_set(
            err, -EINVAL, "%s: %" PRIu32 " bytes at offset %" PRIu64 " are not aligned to %" PRIu32,
            aio->path, op->bytes, op->offset, aio->align);
    if (op->offset > aio->file_bytes || op->bytes > aio->file_bytes - op->offset)
        return drps_err_set(err, -EINVAL,
                            "%s: %" PRIu32 " bytes at offset %" PRIu64 " reach beyond its %" PRIu64
                            " bytes",
                            aio->path, op->bytes, op->offset, aio->file_bytes);
    return op->pieces ? check_pieces(aio, op, err) : check_memory(aio, op->buf, op->bytes, err);
}

static void fill_request(struct drps_aio_request *s, const struct drps_aio_op *op, uint64_t now)
{
    *s = (struct drps_aio_request){.buf = op->buf,
                                   .pieces = op->pieces,
                                   .pieces_n = op->pieces_n,
                                   .offset = op->offset,
                                   .start_ns = now,
                                   .bytes = op->bytes,
                                   .tag = op->tag,
                                   .write = op->write};
}

static void count_submitted(struct drps_aio *aio, const struct drps_aio_op *ops, size_t n)
{
    (void)pthread_mutex_lock(aio->lock);
    for (size_t i = 0; i < n; i++) {
        uint64_t *end = ops[i].write ? &aio->write_end : &aio->read_end;
        aio->io_stats.seeks += ops[i].offset != *end;
        *end = ops[i].offset + ops[i].bytes;
        if (!ops[i].write) aio->io_stats.queue_depth_sum += aio->under_way + i + 1;
    }
    (void)pthread_mutex_unlock(aio->lock);
}

int drps_aio_submit(struct drps_aio *aio, const struct drps_aio_op *ops, size_t n,
                    struct drps_err *err)
{
    if (aio->failure.code) return drps_err_set(err, aio->failure.code, "%s", aio->failure.text);
    if (n > aio->depth - aio->under_way)
        return drps_err_set(err, -EINVAL,
                            "%s: %u operations under way and %zu more; at most %u are possible",
                            aio->path, aio->under_way, n, aio->depth);
    for (size_t i = 0; i < n; i++) {
        int rc = check_op(aio, &ops[i], err);
        if (rc < 0) return rc;
    }
    if (!n) return 0;
    uint64_t now = drps_clock_ns();
    aio->free_n -= (unsigned)n;
    const uint32_t *requests = aio->free + aio->free_n;
    for (size_t i = 0; i < n; i++)
        fill_request(&aio->requests[requests[i]], &ops[i], now);
    count_submitted(aio, ops, n);
    aio->under_way += (unsigned)n;
    int rc = aio->engine->submit(aio, requests, n, &aio->failure);
    return rc < 0 ? drps_err_set(err, rc, "%s", aio->failure.text) : 0;
}

unsigned drps_aio_under_way(const struct drps_aio *aio)
{
    return aio->under_way;
}

static int request_failed(const struct drps_aio *aio, const struct drps_aio_request *s,
                          struct drps_err *err)
{
    uint64_t at = s->offset + s->moved;
    uint32_t left = s->bytes - s->moved;
    if (s->result == DRPS_E_CORRUPT)
        return drps_err_set(err, s->result,
                            "%s ends at byte %" PRIu64 ", %" PRIu32
                            " bytes too early: something else cut it; start again",
                            aio->path, at, left);
    if (s->result == -ENOSPC || s->result == -EDQUOT)
        return drps_err_set(err, s->result,
                            "no space left for %s (writing %" PRIu32 " bytes at offset %" PRIu64
                            "): free some space or choose another folder",
                            aio->path, left, at);
    return drps_err_set(err, s->result,
                        "cannot %s %" PRIu32 " bytes at offset %" PRIu64
                        " of %s: %s: see the system's log for the disk, or choose another folder",
                        s->write ? "write" : "read", left, at, aio->path, drps_err_name(s->result));
}

static void count_finished(struct drps_aio *aio, const struct drps_aio_request *s, uint64_t now)
{
    struct drps_iostat *io = &aio->io_stats;
    if (s->write) {
        io->writes++;
        io->write_calls++;
        io->written_bytes += s->bytes;
        drps_latency_add(&io->write_latency, now - s->start_ns);
    } else {
        io->reads++;
        io->read_calls++;
        io->read_bytes += s->bytes;
        drps_latency_add(&io->read_latency, now - s->start_ns);
    }
}

/* Take n finished requests back: their tags go out, their counts in, the first failure is kept. */
static size_t take_back(struct drps_aio *aio, size_t n, uint32_t *tags_out)
{
    size_t good = 0;
    uint64_t now = n ? drps_clock_ns() : 0;
    (void)pthread_mutex_lock(aio->lock);
    for (size_t i = 0; i < n; i++) {
        const struct drps_aio_request *s = &aio->requests[aio->finished[i]];
        aio->free[aio->free_n++] = aio->finished[i];
        if (s->result < 0) {
            if (!aio->failure.code) (void)request_failed(aio, s, &aio->failure);
            continue;
        }
        count_finished(aio, s, now);
        tags_out[good++] = s->tag;
    }
    (void)pthread_mutex_unlock(aio->lock);
    aio->under_way -= (unsigned)n;
    return good;
}

int drps_aio_wait(struct drps_aio *aio, unsigned least, uint32_t *tags_out, size_t cap,
                  size_t *n_out, struct drps_err *err)
{
    size_t n = 0;
    *n_out = 0;
    if (aio->failure.code) return drps_err_set(err, aio->failure.code, "%s", aio->failure.text);
    if (least > aio->under_way || least > cap)
        return drps_err_set(err, -EINVAL,
                            "%s: cannot wait for %u operations of %u under way, with room for %zu",
                            aio->path, least, aio->under_way, cap);
    if (cap > aio->depth) cap = aio->depth;
    (void)aio->engine->reap(aio, least, aio->finished, cap, &n, &aio->failure); /* kept there */
    *n_out = take_back(aio, n, tags_out);
    return aio->failure.code ? drps_err_set(err, aio->failure.code, "%s", aio->failure.text) : 0;
}

void drps_aio_stats(const struct drps_aio *aio, struct drps_iostat *out)
{
    (void)pthread_mutex_lock(aio->lock);
    *out = aio->io_stats;
    (void)pthread_mutex_unlock(aio->lock);
}

void drps_aio_about(const struct drps_aio *aio, struct drps_aio_about *out)
{
    *out = aio->about;
}
