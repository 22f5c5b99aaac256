/* Writing text to a file or a pipe, by the buffer. */
#include "tools/gen/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/drps_cli.h"

static const char *output_name(const struct gen_output *out)
{
    return out->path ? out->path : "standard output";
}

/* Open the file to write. Pipes and devices are written to as they are, a file that exists only
 * with --force. Returns a descriptor, or a negative code. */
static int open_output(const char *path, int force, struct drps_err *err)
{
    struct stat st;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) {
        if (!force && stat(path, &st) == 0 && S_ISREG(st.st_mode))
            return drps_err_set(
                err, -EEXIST,
                "%s exists already: choose another name, or pass --force to replace it", path);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    }
    return fd >= 0 ? fd : drps_err_set(err, -errno, "cannot write %s: %s", path, strerror(errno));
}

int gen_output_open(struct gen_output *out, const char *path, int force, size_t line_bytes,
                    struct drps_err *err)
{
    out->path = path;
    out->cap = GEN_OUTPUT_BYTES + line_bytes;
    out->buf = malloc(out->cap);
    if (!out->buf)
        return drps_err_set(err, -ENOMEM, "no memory for lines of %zu bytes", line_bytes);
    out->fd = path ? open_output(path, force, err) : STDOUT_FILENO;
    if (out->fd < 0) return out->fd;
    struct stat st;
    out->is_file = fstat(out->fd, &st) == 0 && S_ISREG(st.st_mode);
    return 0;
}

/* Returns how much may be written now; 0: the run is interrupted. Who reads from a pipe may keep us
 * waiting, so look at the stop flag now and then. A pipe that is ready takes PIPE_BUF bytes at
 * once. */
static size_t room_in(const struct gen_output *out, size_t n)
{
    enum { LOOK_MS = 100 };
    struct pollfd fd = {.fd = out->fd, .events = POLLOUT};
    if (out->is_file) return n;
    while (!atomic_load_explicit(drps_cli_stop(), memory_order_relaxed)) {
        const int ready = poll(&fd, 1, LOOK_MS);
        if (ready > 0 || (ready < 0 && errno != EINTR)) /* write() reports faults */
            return n < PIPE_BUF ? n : PIPE_BUF;
    }
    return 0;
}

int gen_output_flush(struct gen_output *out, struct drps_err *err)
{
    for (size_t done = 0; done < out->used;) {
        const size_t room = room_in(out, out->used - done);
        if (!room)
            return drps_err_set(err, DRPS_E_INTERRUPTED, "interrupted while writing %s",
                                output_name(out));
        ssize_t n = write(out->fd, out->buf + done, room);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return drps_err_set(err, -errno, "cannot write %s at byte %ju: %s", output_name(out),
                                (uintmax_t)(out->bytes + done), strerror(errno));
        done += (size_t)n;
    }
    out->bytes += out->used;
    out->used = 0;
    return 0;
}

/* Some file systems report a full disk only when the file is closed. */
int gen_output_finish(struct gen_output *out, struct drps_err *err)
{
    int rc = gen_output_flush(out, err);
    if (rc < 0 || !out->path) return rc;
    int failed = close(out->fd);
    out->fd = -1;
    return failed ? drps_err_set(err, -errno, "cannot write %s: %s", out->path, strerror(errno))
                  : 0;
}

void gen_output_abort(struct gen_output *out)
{
    struct stat st;
    if (out->path && out->fd >= 0) {
        if (fstat(out->fd, &st) == 0 && S_ISREG(st.st_mode))
            (void)unlink(out->path); /* a failure is told already */
        (void)close(out->fd);
    }
    free(out->buf);
}
