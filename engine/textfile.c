#include "engine/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 256 * 1024 };

int drps_textfile_open(struct drps_textfile *f, const struct drps_io *io, const char *path,
                       struct drps_err *err)
{
    memset(f, 0, sizeof(*f));
    f->io = io;
    f->fd = -1;
    f->buf = malloc(BUFFER_BYTES);
    if (!f->buf) return drps_err_set(err, -ENOMEM, "no memory to write %s", path);
    if (strcmp(path, "-") == 0) return 0;
    f->path = path;
    struct stat st;
    f->special = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
    if (f->special) return drps_io_open(io, path, O_WRONLY, &f->fd, err);
    if (asprintf(&f->partial, "%s.partial", path) < 0) {
        f->partial = NULL;
        return drps_err_set(err, -ENOMEM, "no memory to write %s", path);
    }
    return drps_io_open(io, f->partial, O_WRONLY | O_CREAT | O_TRUNC, &f->fd, err);
}

/* A pipe has no offsets. */
static int write_stream(struct drps_textfile *f, size_t n, struct drps_err *err)
{
    for (size_t at = 0; at < n;) {
        ssize_t put = write(f->fd, f->buf + at, n - at);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0)
            return drps_err_set(err, -errno, "cannot write to %s: %s", f->path,
                                drps_err_name(-errno));
        at += (size_t)put;
    }
    return 0;
}

static int flush(struct drps_textfile *f, struct drps_err *err)
{
    const size_t n = f->used;
    f->used = 0;
    if (!f->path) {
        if (fwrite(f->buf, 1, n, stdout) == n) return 0;
        const int rc = errno ? -errno : -EIO;
        return drps_err_set(err, rc, "cannot write to standard output: %s", drps_err_name(rc));
    }
    if (f->special) return write_stream(f, n, err);
    int rc = drps_io_write_at(f->io, f->fd, f->buf, n, f->written, f->partial, err);
    f->written += n;
    return rc;
}

int drps_textfile_room(struct drps_textfile *f, size_t n, char **at_out, struct drps_err *err)
{
    int rc = f->used + n > BUFFER_BYTES ? flush(f, err) : 0;
    *at_out = f->buf + f->used;
    return rc;
}

int drps_textfile_commit(struct drps_textfile *f, struct drps_err *err)
{
    int rc = flush(f, err);
    if (rc < 0) return rc;
    if (!f->path) {
        if (fflush(stdout) == 0) return 0;
        rc = errno ? -errno : -EIO;
        return drps_err_set(err, rc, "cannot write to standard output: %s", drps_err_name(rc));
    }
    if (f->special) return 0;
    rc = drps_io_sync(f->io, f->fd, f->partial, err);
    if (rc < 0) return rc;
    rc = f->io->ops->rename(f->io->ctx, f->partial, f->path);
    if (rc < 0)
        return drps_err_set(err, rc, "cannot rename %s to %s: %s", f->partial, f->path,
                            drps_err_name(rc));
    free(f->partial);
    f->partial = NULL; /* nothing left to remove */
    return 0;
}

void drps_textfile_close(struct drps_textfile *f)
{
    if (!f->io) return;
    drps_io_close(f->io, f->fd);
    if (f->partial && f->fd >= 0)
        (void)f->io->ops->unlink(f->io->ctx,
                                 f->partial); /* a leftover is overwritten by the next run */
    free(f->partial);
    free(f->buf);
    memset(f, 0, sizeof(*f));
    f->fd = -1;
}
