/* A text file is written under another name, synced and renamed; standard output is written as it
 * comes. */
#include "engine/publish/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 256 * 1024 };

static const char text_name[] = "text";
static const struct drps_owned owned[] = {{.name = text_name}, {.name = NULL}};
static const struct drps_stage_kind text_kind = {.file = text_name, .owned = owned};

static int open_staged(struct drps_textfile *f, int replace, struct drps_err *err)
{
    int rc = drps_stage_begin(&f->stage, f->io, f->path, &text_kind, replace, err);
    if (rc < 0) return rc;
    f->made = drps_path_join(f->stage.dir, text_name);
    if (!f->made) return drps_err_set(err, -ENOMEM, "no memory to write %s", f->path);
    return drps_io_open(f->io, f->made, O_WRONLY | O_CREAT | O_EXCL, &f->fd, err);
}

int drps_textfile_open(struct drps_textfile *f, const struct drps_io *io, const char *path,
                       int replace, struct drps_err *err)
{
    struct stat st;
    *f = (struct drps_textfile){.io = io, .fd = -1, .buf = malloc(BUFFER_BYTES)};
    if (!f->buf) return drps_err_set(err, -ENOMEM, "no memory to write %s", path);
    if (strcmp(path, "-") == 0) return 0;
    f->path = path;
    const int exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return drps_err_set(err, -EISDIR, "%s is a folder: name a file", path);
    f->special = exists && !S_ISREG(st.st_mode);
    return f->special ? drps_io_open(io, path, O_WRONLY, &f->fd, err)
                      : open_staged(f, replace, err);
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
    int rc = drps_io_write_at(f->io, f->fd, f->buf, n, f->written, f->made, err);
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
    return f->special ? 0 : drps_stage_commit(&f->stage, err);
}

void drps_textfile_close(struct drps_textfile *f)
{
    if (!f->io) return;
    drps_io_close(f->io, f->fd);
    drps_stage_abort(&f->stage);
    free(f->made);
    free(f->buf);
    *f = (struct drps_textfile){.fd = -1};
}
