/*
 * Asynchronous reads and writes of aligned pieces of one preallocated file.
 *
 * Two engines: io_uring where the kernel allows it, with the file and the buffers registered; else
 * a few threads that call pread and pwrite through the file I/O seam. Whatever is less than asked
 * for (no io_uring, no O_DIRECT, no registered buffers) works all the same, only slower, and
 * drps_aio_about() says why.
 *
 * aio.c checks operations and counts them, aio_request.c knows how far each has come, aio_uring.c
 * and aio_threads.c are the engines; probe.c measures with them what requests cost on a disk.
 */
#ifndef DRPS_STORAGE_IO_AIO_H
#define DRPS_STORAGE_IO_AIO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/drps_err.h"
#include "base/drps_io.h"
#include "storage/drps_iostat.h"

/*
 * One open file and the operations on it. Threads: one at a time, except for drps_aio_stats(). The
 * thread that hands operations over must not end before they have finished: the kernel cancels
 * what an ending thread has under way.
 */
struct drps_aio;

enum {
    DRPS_AIO_ALIGN = 4096,     /* of buffers, offsets and sizes: what O_DIRECT needs anywhere */
    DRPS_AIO_SECTOR = 512,     /* the least unit that O_DIRECT takes anywhere */
    DRPS_AIO_DEPTH_MAX = 4096, /* operations under way */
    DRPS_AIO_PIECES_MAX = 256  /* of memory that one operation writes from */
};

/* What drps_aio_open() does about the file. */
enum drps_aio_file {
    DRPS_AIO_MAKE, /* it must not exist, and is made */
    DRPS_AIO_USE,  /* it exists, with file_bytes or more */
    DRPS_AIO_LOOK, /* the same, and it is only read and stays as it is */
};

struct drps_aio_config {
    const struct drps_io *io; /* borrowed until close. With calls that are not those of drps_io_os()
                                 and do not ask for requests to io_uring: threads */
    const char *path;         /* borrowed until close */
    enum drps_aio_file file;
    uint64_t file_bytes; /* preallocated; a multiple of DRPS_AIO_ALIGN, not 0 */
    void *buffers;       /* all memory that is read into and written from, aligned; borrowed
                            until close. The kernel keeps it resident where registered */
    size_t buffers_bytes;
    unsigned depth;   /* operations under way at most, 1 to DRPS_AIO_DEPTH_MAX */
    uint32_t align;   /* of operations: DRPS_AIO_ALIGN (or 0), or what drps_aio_sector() said */
    int threads_only; /* 1: never io_uring */
};

/*
 * The unit of operations on files of a folder: DRPS_AIO_SECTOR where its file system says that it
 * takes such past the page cache, else DRPS_AIO_ALIGN. `path`, which must not exist, is made and
 * removed to ask.
 */
DRPS_MUST_CHECK
int drps_aio_sector(const struct drps_io *io, const char *path, uint32_t *sector_out,
                    struct drps_err *err);

/*
 * Make the file and get ready. *aio_out is yours to drps_aio_close(). A failure leaves no new file.
 * Returns 0, or a negative code:
 *   -EINVAL   the configuration is not as described above
 *   -EEXIST   there is such a file, which should be made; it is untouched
 *   DRPS_E_CORRUPT  the file, which should exist, is shorter than file_bytes; it is untouched
 *   -ENOSPC   the disk has no room for file_bytes (err says how many)
 *   -ENOMEM, -EAGAIN and others from the system, unchanged
 */
DRPS_MUST_CHECK
int drps_aio_open(const struct drps_aio_config *config, struct drps_aio **aio_out,
                  struct drps_err *err);

/* Give the file room for `bytes`, a multiple of DRPS_AIO_ALIGN and no fewer than it has.
 * -ENOSPC and others: it has as many as before. */
DRPS_MUST_CHECK
int drps_aio_grow(struct drps_aio *aio, uint64_t bytes, struct drps_err *err);

/* Make what finished operations wrote last. */
DRPS_MUST_CHECK
int drps_aio_sync(const struct drps_aio *aio, struct drps_err *err);

/* Waits for what is under way, whose result is lost, and closes the file, which stays. NULL-safe.
 */
void drps_aio_close(struct drps_aio *aio);

/* Close a file that is not needed any more, and leave it empty, so that its room is free at once.
 * The kernel lets go of a file that an io_uring had only some time after it is closed and removed.
 * NULL-safe. */
void drps_aio_discard(struct drps_aio *aio);

/* A read or a write. */
struct drps_aio_op {
    void *buf;       /* inside config.buffers, aligned; untouched by the caller until finished */
    uint32_t bytes;  /* a multiple of config.align, not 0 */
    uint64_t offset; /* a multiple of config.align; the piece ends within the file */
    int write;
    uint32_t tag;               /* comes back from drps_aio_wait() */
    const struct iovec *pieces; /* NULL, or pieces of memory to write from instead of buf: each as
                                   buf, of a multiple of config.align bytes, together `bytes`. The
                                   array is untouched by the caller until finished, too */
    unsigned pieces_n;          /* 1 to DRPS_AIO_PIECES_MAX */
};

/*
 * Hand over n operations at once: one system call, or one waking of the threads. They may finish in
 * any order; what overlaps is for the caller to keep apart.
 * Returns 0, or a negative code:
 *   -EINVAL  more than `depth` would be under way, or an operation is not as described above; none
 *            was handed over
 *   others   of an operation that failed before, or from the kernel; only close is left
 */
DRPS_MUST_CHECK
int drps_aio_submit(struct drps_aio *aio, const struct drps_aio_op *ops, size_t n,
                    struct drps_err *err);

/* Operations handed over whose tags have not come back. */
unsigned drps_aio_under_way(const struct drps_aio *aio);

/*
 * Tags of finished operations, at most `cap`, in no order. Waits until at least `least` have
 * finished; 0 only looks. Short transfers are continued until whole.
 *
 * tags_out  [cap] caller-owned; the first *n_out are set
 * Returns 0, or a negative code; from then on every submit and wait returns it, and only close is
 * left:
 *   -EINVAL         `least` is more than is under way or than `cap`; this one call is refused
 *   DRPS_E_CORRUPT  the file ends before a piece does: something else cut it
 *   -EIO, -ENOSPC and others from the device (err names file, offset and what to do)
 */
DRPS_MUST_CHECK
int drps_aio_wait(struct drps_aio *aio, unsigned least, uint32_t *tags_out, size_t cap,
                  size_t *n_out, struct drps_err *err);

/*
 * What was done so far; any thread, at any time between open and close. Every operation that
 * finished counts as one read or write and as one call; its latency runs from submit to when wait
 * saw it finished. Seeks are operations that do not begin where the one before of the same kind
 * ended; queue_depth_sum has all operations under way when a read was handed over, itself included.
 */
void drps_aio_stats(const struct drps_aio *aio, struct drps_iostat *out);

/* How the file is read and written. */
struct drps_aio_about {
    const char *engine; /* "io_uring" or "threads"; static */
    int direct;         /* O_DIRECT: past the page cache */
    int registered;     /* the kernel knows the buffers and need not look them up each time */
    char why[128];      /* what is not as wished, and the reason; empty if all is */
};
void drps_aio_about(const struct drps_aio *aio, struct drps_aio_about *out);

#endif
