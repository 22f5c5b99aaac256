/* A buffer is filled, whole lines in it are visited, and the rest moves to its front. */
#include "base/folder/drps_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_MS = 100, PAD = 64 };

struct lines {
    const struct drps_io *io;
    const char *path; /* for texts */
    int fd, pipe;
    char *buf; /* own: [DRPS_LINES_BYTES] */
    size_t n;
    uint64_t line;   /* number of the last one visited */
    uint64_t before; /* bytes in front of the buffer */
    drps_line_visit visit;
    void *ctx;
};

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static int visit_line(struct lines *l, const char *p, const char *end, struct drps_err *err)
{
    if (!l->line++ && end - p >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) p += 3;
    while (p < end && is_blank(*p))
        p++;
    while (end > p && is_blank(end[-1]))
        end--;
    const struct drps_line line = {.number = l->line,
                                   .offset = l->before + (uint64_t)(p - l->buf),
                                   .text = p,
                                   .n = (size_t)(end - p)};
    return p < end ? l->visit(l->ctx, &line, err) : 0;
}

/* Visit the whole lines of the buffer; at the end of the file what is left is one, too. */
static int visit_whole(struct lines *l, int at_end, struct drps_err *err)
{
    const char *p = l->buf, *const end = l->buf + l->n;
    int rc = 0;
    for (const char *lf; rc == 0 && p < end && (lf = memchr(p, '\n', (size_t)(end - p)));
         p = lf + 1)
        rc = visit_line(l, p, lf, err);
    if (rc == 0 && at_end && p < end) {
        l->buf[l->n] = '\n';
        rc = visit_line(l, p, end, err);
        p = end;
    }
    if (rc) return rc;
    l->before += (uint64_t)(p - l->buf);
    l->n = (size_t)(end - p);
    if (l->n == DRPS_LINES_BYTES)
        return drps_err_set(err, DRPS_E_FORMAT, "%s:%llu: a line has more than %d bytes", l->path,
                            (unsigned long long)l->line + 1, DRPS_LINES_BYTES);
    memmove(l->buf, p, l->n);
    return 0;
}

/* A pipe may come late; who interrupts does not wait for it. */
static int wait_for(const struct lines *l, struct drps_err *err)
{
    struct pollfd p = {.fd = l->fd, .events = POLLIN};
    for (;;) {
        const int rc = drps_io_stopped(l->io, err);
        if (rc < 0 || !l->pipe || poll(&p, 1, WAIT_MS) != 0) return rc;
    }
}

static int read_all(struct lines *l, struct drps_err *err)
{
    for (;;) {
        int rc = wait_for(l, err);
        if (rc < 0) return rc;
        const ssize_t got =
            l->io->ops->read(l->io->ctx, l->fd, l->buf + l->n, DRPS_LINES_BYTES - l->n);
        if (got == -EINTR || got == -EAGAIN) continue;
        if (got < 0)
            return drps_err_set(err, (int)got, "cannot read %s: %s", l->path,
                                drps_err_name((int)got));
        l->n += (size_t)got;
        rc = visit_whole(l, got == 0, err);
        if (rc || got == 0) return rc;
    }
}

const char *drps_lines_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

int drps_lines_read(const struct drps_io *io, const char *path, drps_line_visit visit, void *ctx,
                    struct drps_err *err)
{
    const int is_stdin = strcmp(path, "-") == 0;
    struct lines l = {.io = io,
                      .path = drps_lines_name(path),
                      .fd = is_stdin ? STDIN_FILENO : -1,
                      .pipe = is_stdin,
                      .buf = calloc(DRPS_LINES_BYTES + PAD, 1),
                      .visit = visit,
                      .ctx = ctx};
    int rc = l.buf ? 0 : drps_err_set(err, -ENOMEM, "no memory to read %s", l.path);
    if (rc == 0 && !is_stdin) {
        rc = drps_io_open_data(io, path, 0, &l.fd, err);
        l.pipe = rc == 1;
    }
    if (rc >= 0) rc = read_all(&l, err);
    if (!is_stdin) drps_io_close(io, l.fd);
    free(l.buf);
    return rc;
}
