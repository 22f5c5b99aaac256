/*
 * The seam through which all file I/O of drps passes (the key-value engines do their own).
 *
 * `struct drps_io` is a table of system calls. Programs use drps_io_os(); tests wrap it to inject
 * faults: a failing call, a short transfer, a full disk. The helpers below it turn the raw calls
 * into calls that finish or fail with a text naming the file and the offset.
 */
#ifndef DRPS_IO_H
#define DRPS_IO_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/drps_err.h"

struct drps_io;

/* A read or write that io_uring carries out, past the calls below. */
struct drps_io_request {
    int fd;
    int write;
    int n;                      /* pieces of memory, 1 or more */
    const struct iovec *pieces; /* borrowed for the call */
    size_t bytes;               /* in all pieces */
    uint64_t offset;
};

/* Each member returns a result >= 0 or -errno, may block, and may be called from any thread. None
 * is NULL but for the last two. */
struct drps_io_ops {
    int (*open)(void *ctx, const char *path, int flags, mode_t mode);
    int (*close)(void *ctx, int fd);
    ssize_t (*read)(void *ctx, int fd, void *buf, size_t n); /* at the file position */
    ssize_t (*pread)(void *ctx, int fd, void *buf, size_t n, uint64_t offset);
    ssize_t (*pwrite)(void *ctx, int fd, const void *buf, size_t n, uint64_t offset);
    /* n pieces, one after the other in the file; n >= 1, at most IOV_MAX */
    ssize_t (*pwritev)(void *ctx, int fd, const struct iovec *pieces, int n, uint64_t offset);
    int (*fsync)(void *ctx, int fd);
    int (*ftruncate)(void *ctx, int fd, uint64_t size);
    int (*fallocate)(void *ctx, int fd, uint64_t size);
    int64_t (*size)(void *ctx, int fd); /* of a regular file; else -ESPIPE for a pipe, -EISDIR for
                                           a folder, -ENODEV for a device, -ENXIO for a socket */
    int (*rename)(void *ctx, const char *from, const char *to);
    int (*unlink)(void *ctx, const char *path);
    int (*mkdir)(void *ctx, const char *path, mode_t mode);
    int (*rmdir)(void *ctx, const char *path);
    /* Exchange two names at once. -EINVAL, -ENOSYS, -ENOTSUP: the file system cannot. */
    int (*exchange)(void *ctx, const char *a, const char *b);
    int (*link)(void *ctx, const char *from, const char *to); /* a second name for a file */
    /* For tests, who see requests to io_uring and make them fail; both or none. NULL: the operating
     * system's table is not asked, and any other one gets no such requests, but the calls above.
     * asked: one is about to be handed over; returns how many of its bytes may move.
     * told: so many have, or -errno; returns what counts as the result. It is called once for each
     * call of asked, with the same request. */
    size_t (*asked)(void *ctx, const struct drps_io_request *request);
    ssize_t (*told)(void *ctx, const struct drps_io_request *request, ssize_t got);
};

/* The calls, and when to stop. */
struct drps_io {
    const struct drps_io_ops *ops;
    void *ctx;
    const atomic_int *stop; /* once it is not 0, functions that read or write a file's bytes return
                               DRPS_E_INTERRUPTED; those that clean up go on. NULL: never */
};

/* For long work between files: 0, or DRPS_E_INTERRUPTED. */
static inline int drps_io_stopped(const struct drps_io *io, struct drps_err *err)
{
    if (!io->stop || !atomic_load_explicit(io->stop, memory_order_relaxed)) return 0;
    return drps_err_set(err, DRPS_E_INTERRUPTED, "interrupted");
}

/* Returns the operating system's calls. Static; never freed. */
const struct drps_io *drps_io_os(void);

/*
 * Open for reading (flags O_RDONLY) or as open(2) says. Returns the descriptor in *fd_out, -1 on
 * failure. What is opened for reading must be a regular file: pipes, devices and folders are
 * refused (folders are opened with O_DIRECTORY), and none of them keeps the caller waiting.
 */
DRPS_MUST_CHECK
int drps_io_open(const struct drps_io *io, const char *path, int flags, int *fd_out,
                 struct drps_err *err);

/*
 * Give a file space for its first `size` bytes. A signal may end the call early: it is made again,
 * unless io->stop is set. No text but for DRPS_E_INTERRUPTED: the caller knows what the file is
 * for.
 */
DRPS_MUST_CHECK
int drps_io_fallocate(const struct drps_io *io, int fd, uint64_t size, struct drps_err *err);

/* Open what is read from front to back: a regular file, or a pipe, which is not waited for: poll(2)
 * tells when it has a writer. `look` 1: the descriptor only shows that the file exists. Returns 1
 * for a pipe, 0 for a file. */
DRPS_MUST_CHECK
int drps_io_open_data(const struct drps_io *io, const char *path, int look, int *fd_out,
                      struct drps_err *err);

/* Close; fd < 0 is allowed and does nothing. A failure matters only to writers, who call
 * drps_io_sync() first. */
void drps_io_close(const struct drps_io *io, int fd);

/*
 * Read exactly n bytes at offset; a file that ends before them is DRPS_E_CORRUPT ("ends at byte
 * ..."). `path` is only for the text.
 */
DRPS_MUST_CHECK
int drps_io_read_at(const struct drps_io *io, int fd, void *buf, size_t n, uint64_t offset,
                    const char *path, struct drps_err *err);

/* Write exactly n bytes at offset. -ENOSPC says how much room was asked for and what to do. */
DRPS_MUST_CHECK
int drps_io_write_at(const struct drps_io *io, int fd, const void *buf, size_t n, uint64_t offset,
                     const char *path, struct drps_err *err);

/* Make the file's bytes and size last. */
DRPS_MUST_CHECK
int drps_io_sync(const struct drps_io *io, int fd, const char *path, struct drps_err *err);

/* Cut the file to `size` bytes, or let it end in a hole. */
DRPS_MUST_CHECK
int drps_io_resize(const struct drps_io *io, int fd, const char *path, uint64_t size,
                   struct drps_err *err);

/* The size of a file in bytes. */
DRPS_MUST_CHECK
int drps_io_size(const struct drps_io *io, int fd, const char *path, uint64_t *size_out,
                 struct drps_err *err);

/* Read a whole file into *data_out (free() it), with a zero byte after its end. At most `limit`
 * bytes. */
DRPS_MUST_CHECK
int drps_io_read_file(const struct drps_io *io, const char *path, size_t limit, char **data_out,
                      size_t *n_out, struct drps_err *err);

/* Read a whole text file like drps_io_read_file(). Control characters other than tabs and ends of
 * lines are refused with their line and column (DRPS_E_FORMAT), so that what is read is what an
 * editor shows. */
DRPS_MUST_CHECK
int drps_io_read_text(const struct drps_io *io, const char *path, size_t limit, char **text_out,
                      size_t *n_out, struct drps_err *err);

/* Make a file of so many bytes, whose room on the disk is set aside. -ENOSPC: the text says how
 * much it needs. */
DRPS_MUST_CHECK
int drps_io_reserve(const struct drps_io *io, const char *path, uint64_t bytes,
                    struct drps_err *err);

/* Write a whole file and sync it. An existing file is overwritten where it lies, so that room that
 * was set aside for it serves, even on a full disk. */
DRPS_MUST_CHECK
int drps_io_write_file(const struct drps_io *io, const char *path, const void *data, size_t n,
                       struct drps_err *err);

/* Unlink every regular file and folder below `path`, and `path` itself. A missing path is no error.
 */
int drps_io_remove_tree(const struct drps_io *io, const char *path, struct drps_err *err);

/* "<dir>/<name>" in a new string (free() it); NULL when memory is gone. */
char *drps_path_join(const char *dir, const char *name);

#endif
