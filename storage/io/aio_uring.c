/*
 * The engine `io_uring`: requests handed over together are one system call, and the file and the
 * buffers are registered where the kernel agrees. IORING_SETUP_SINGLE_ISSUER is not set, as the
 * thread that opens need not be the one that submits. It needs liburing.
 */
#include <errno.h>

#include "storage/io/aio_internal.h"

#ifdef DRPS_WITH_URING

#include <liburing.h>
#include <limits.h>
#include <stdlib.h>

enum { REFUSALS_MAX = 1000 }; /* in a row, for want of kernel memory, before one gives up */

struct uring {
    struct io_uring ring;
    int alive;          /* the ring exists */
    int fixed_file;     /* the file is registered, as number 0 */
    unsigned in_kernel; /* operations that the kernel has taken and not finished */
};

/* Give the buffers to the kernel in pieces; on failure they are looked up at every operation. */
static void register_buffers(struct drps_aio *aio, struct uring *u)
{
    size_t n = (aio->buffers_bytes - 1) / aio->register_bytes + 1;
    int rc = -ENOMEM;
    struct iovec *pieces = n <= INT_MAX ? calloc(n, sizeof(*pieces)) : NULL;
    if (pieces) {
        for (size_t i = 0; i < n; i++) {
            size_t left = aio->buffers_bytes - i * aio->register_bytes;
            pieces[i].iov_base = aio->buffers + i * aio->register_bytes;
            pieces[i].iov_len = left < aio->register_bytes ? left : aio->register_bytes;
        }
        rc = io_uring_register_buffers(&u->ring, pieces, (unsigned)n);
        free(pieces);
    }
    aio->about.registered = rc >= 0;
    if (rc == -ENOMEM)
        drps_aio_note(aio, "buffers not registered: over the limit of locked memory (ulimit -l)");
    else if (rc < 0)
        drps_aio_note(aio, "buffers not registered: %s", drps_err_name(rc));
}

static int uring_start(struct drps_aio *aio, struct drps_err *err)
{
    struct uring *u = calloc(1, sizeof(*u));
    if (!u) return drps_err_set(err, -ENOMEM, "no io_uring: no memory");
    aio->engine_state = u; /* from here on uring_stop() is safe */
    int rc = io_uring_queue_init(aio->depth, &u->ring, 0);
    if (rc == -ENOMEM)
        return drps_err_set(err, rc, "no io_uring: over the limit of locked memory (ulimit -l)");
    if (rc < 0) return drps_err_set(err, rc, "no io_uring: %s", drps_err_name(rc));
    u->alive = 1;
    if (!(u->ring.features & IORING_FEAT_RW_CUR_POS)) /* came with IORING_OP_READ and _WRITE */
        return drps_err_set(err, -ENOSYS, "no io_uring: the kernel is older than 5.6");
    register_buffers(aio, u);
    rc = io_uring_register_files(&u->ring, &aio->fd, 1);
    u->fixed_file = rc >= 0;
    if (rc < 0) drps_aio_note(aio, "file not registered: %s", drps_err_name(rc));
    return 0;
}

/* Whether one registered piece of the buffers has all of the part's bytes. */
static int in_one_piece(const struct drps_aio *aio, const struct drps_aio_part *part,
                        int *piece_out)
{
    size_t first = (size_t)(part->buf - aio->buffers);
    size_t piece = first / aio->register_bytes;
    *piece_out = (int)piece;
    return aio->about.registered && (first + part->bytes - 1) / aio->register_bytes == piece;
}

/* Queue what is left of a request. */
static void prepare(const struct drps_aio *aio, struct uring *u, uint32_t request)
{
    const struct drps_aio_request *s = &aio->requests[request];
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring); /* there are as many as requests */
    const struct drps_aio_part part = drps_aio_asked(aio, s);
    uint64_t offset = s->offset + s->moved;
    int fd = u->fixed_file ? 0 : aio->fd;
    int piece;
    if (!part.bytes) {
        io_uring_prep_nop(sqe);
    } else if (part.pieces) { /* not as registered: kernels before 6.15 cannot */
        io_uring_prep_writev(sqe, fd, part.pieces, part.pieces_n, offset);
    } else if (in_one_piece(aio, &part, &piece)) {
        if (s->write)
            io_uring_prep_write_fixed(sqe, fd, part.buf, part.bytes, offset, piece);
        else
            io_uring_prep_read_fixed(sqe, fd, part.buf, part.bytes, offset, piece);
    } else {
        if (s->write)
            io_uring_prep_write(sqe, fd, part.buf, part.bytes, offset);
        else
            io_uring_prep_read(sqe, fd, part.buf, part.bytes, offset);
    }
    if (u->fixed_file && part.bytes) io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
    io_uring_sqe_set_data64(sqe, request);
}

/* Wait after so many refusals in a row: until one more of the requests that the kernel has is done,
 * which gives memory back, or for some time where it has none. */
static void back_off(struct uring *u, int refusals)
{
    struct io_uring_cqe *cqe;
    const unsigned done = io_uring_cq_ready(&u->ring);
    if (u->in_kernel > done)
        (void)io_uring_wait_cqe_nr(&u->ring, &cqe, done + 1); /* interrupted: it is asked anew */
    else
        drps_aio_pause(refusals);
}

/* Hand what is queued to the kernel, and wait for `wait` results if nothing interrupts. */
static int hand_over(const struct drps_aio *aio, struct uring *u, unsigned wait,
                     struct drps_err *err)
{
    int refusals = 0;
    for (;;) {
        int rc = io_uring_submit_and_wait(&u->ring, wait);
        if (rc > 0) u->in_kernel += (unsigned)rc;
        if (rc >= 0 && !io_uring_sq_ready(&u->ring)) return 0;
        if (rc > 0) {
            refusals = 0;
        } else if (rc == 0 || rc == -EAGAIN || rc == -EBUSY) {
            if (++refusals == REFUSALS_MAX)
                return drps_err_set(err, -EAGAIN,
                                    "the kernel takes no more operations on %s: free some memory",
                                    aio->path);
            back_off(u, refusals);
        } else if (rc != -EINTR) {
            return drps_err_set(err, rc, "cannot hand operations on %s to io_uring: %s", aio->path,
                                drps_err_name(rc));
        }
    }
}

static int uring_submit(struct drps_aio *aio, const uint32_t *requests, size_t n,
                        struct drps_err *err)
{
    struct uring *u = aio->engine_state;
    for (size_t i = 0; i < n; i++)
        prepare(aio, u, requests[i]);
    return hand_over(aio, u, 0, err);
}

/* Take a result off the ring: whose it is, and what the call for the rest of it returned. */
static uint32_t take(const struct drps_aio *aio, struct uring *u, struct io_uring_cqe *cqe,
                     int64_t *got_out)
{
    const uint32_t request = (uint32_t)io_uring_cqe_get_data64(cqe);
    *got_out = drps_aio_told(aio, &aio->requests[request], cqe->res);
    io_uring_cqe_seen(&u->ring, cqe);
    u->in_kernel--;
    return request;
}

static int uring_reap(struct drps_aio *aio, size_t least, uint32_t *requests_out, size_t cap,
                      size_t *n_out, struct drps_err *err)
{
    struct uring *u = aio->engine_state;
    struct io_uring_cqe *cqe;
    int rc = 0;
    size_t n = 0;
    for (;;) {
        int refusals = 0;
        while (n < cap && io_uring_peek_cqe(&u->ring, &cqe) == 0) {
            int64_t got;
            const uint32_t request = take(aio, u, cqe, &got);
            if (drps_aio_advance(aio, &aio->requests[request], got)) {
                requests_out[n++] = request;
                continue;
            }
            prepare(aio, u, request);
            if (got == -EAGAIN) refusals = aio->requests[request].stalls;
        }
        if (n >= least && !io_uring_sq_ready(&u->ring)) break;
        if (refusals) back_off(u, refusals);
        rc = hand_over(aio, u, n < least ? (unsigned)(least - n) : 0, err);
        if (rc < 0) break;
    }
    *n_out = n;
    return rc;
}

static void uring_stop(struct drps_aio *aio)
{
    struct uring *u = aio->engine_state;
    if (!u) return;
    struct io_uring_cqe *cqe;
    while (u->in_kernel) { /* only after a failure: the buffers are still written to */
        int rc = io_uring_wait_cqe(&u->ring, &cqe);
        if (rc < 0 && rc != -EINTR && rc != -EAGAIN) break;
        int64_t lost;
        if (rc == 0) (void)take(aio, u, cqe, &lost);
    }
    if (u->alive) io_uring_queue_exit(&u->ring);
    free(u);
    aio->engine_state = NULL;
}

#else

static int uring_start(struct drps_aio *aio, struct drps_err *err)
{
    (void)aio;
    return drps_err_set(err, -ENOSYS, "no io_uring: built without liburing");
}

static int uring_submit(struct drps_aio *aio, const uint32_t *requests, size_t n,
                        struct drps_err *err)
{
    (void)aio, (void)requests, (void)n;
    return drps_err_set(err, -ENOSYS, "built without liburing");
}

static int uring_reap(struct drps_aio *aio, size_t least, uint32_t *requests_out, size_t cap,
                      size_t *n_out, struct drps_err *err)
{
    (void)aio, (void)least, (void)requests_out, (void)cap;
    *n_out = 0;
    return drps_err_set(err, -ENOSYS, "built without liburing");
}

static void uring_stop(struct drps_aio *aio)
{
    (void)aio;
}

#endif

const struct drps_aio_engine drps_aio_uring = {
    .name = "io_uring",
    .start = uring_start,
    .submit = uring_submit,
    .reap = uring_reap,
    .stop = uring_stop,
};
