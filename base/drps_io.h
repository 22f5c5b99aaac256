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

/* Each member returns a result >= 0 or -errno, may block, and may be called from any thread. None
 * is NULL. */
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
    int64_t (*size)(void *ctx, int fd);
    int (*rename)(void *ctx, const char *from, const char *to);
    int (*unlink)(void *ctx, const char *path);
    int (*mkdir)(void *ctx, const char *path, mode_t mode);
    int (*rmdir)(void *ctx, const char *path);
    int (*link)(void *ctx, const char *from, const char *to); /* a second name for a file */
};

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

/* The operating system's calls. Static; never freed. */
const struct drps_io *drps_io_os(void);

/* Open for reading (flags O_RDONLY) or as open(2) says. Returns the descriptor in *fd_out, -1 on
 * failure. */
DRPS_MUST_CHECK
int drps_io_open(const struct drps_io *io, const char *path, int flags, int *fd_out,
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

DRPS_MUST_CHECK
int drps_io_sync(const struct drps_io *io, int fd, const char *path, struct drps_err *err);

/* Cut the file, or let it end in a hole. */
DRPS_MUST_CHECK
int drps_io_resize(const struct drps_io *io, int fd, const char *path, uint64_t size,
                   struct drps_err *err);

DRPS_MUST_CHECK
int drps_io_size(const struct drps_io *io, int fd, const char *path, uint64_t *size_out,
                 struct drps_err *err);

/* Read a whole file into *data_out (free() it), with a zero byte after its end. At most `limit`
 * bytes. */
DRPS_MUST_CHECK
int drps_io_read_file(const struct drps_io *io, const char *path, size_t limit, char **data_out,
                      size_t *n_out, struct drps_err *err);

/* Make a file of so many bytes, whose room on the disk is set aside. -ENOSPC says how much it
 * needs.
 */
DRPS_MUST_CHECK
int drps_io_reserve(const struct drps_io *io, const char *path, uint64_t bytes,
                    struct drps_err *err);

/* Write a whole file and sync it. One that is there is overwritten where it lies: room that was set
 * aside for it serves, even on a full disk. */
DRPS_MUST_CHECK
int drps_io_write_file(const struct drps_io *io, const char *path, const void *data, size_t n,
                       struct drps_err *err);

/* Unlink every regular file and folder below `path`, and `path` itself. A missing path is no error.
 */
int drps_io_remove_tree(const struct drps_io *io, const char *path, struct drps_err *err);

/*
 * A folder that appears whole or not at all. drps_stage_begin() makes "<path>.partial" (removing a
 * stale one that no running process holds) and locks it; files are then written under stage.dir;
 * drps_stage_commit() syncs every file in it and the folder, and renames it to <path>.
 * `replace` is NULL: an existing <path> is an error at begin. Otherwise it
 * names the manifest ("plan.json") that an existing <path> must hold; it is then moved aside first
 * and removed after, and any other folder is refused.
 * drps_stage_abort() removes the partial folder unless committed; NULL-safe and
 * idempotent.
 */
struct drps_stage {
    const struct drps_io *io;
    char *path; /* own: the final name */
    char *dir;  /* own: the partial folder's name */
    int lock_fd;
    int replace;
};

DRPS_MUST_CHECK
int drps_stage_begin(struct drps_stage *stage, const struct drps_io *io, const char *path,
                     const char *replace, struct drps_err *err);
DRPS_MUST_CHECK
int drps_stage_commit(struct drps_stage *stage, struct drps_err *err);
void drps_stage_abort(struct drps_stage *stage);

/* "<dir>/<name>" in a new string (free() it); NULL when memory is gone. */
char *drps_path_join(const char *dir, const char *name);

#endif
