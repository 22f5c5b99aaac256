/* Reads of the one path are copies from memory. */
#include "engine/predict/text_io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { TEXT_FD = 1 << 30 /* no file has so large a number */ };

static int text_open(void *ctx, const char *path, int flags, mode_t mode)
{
    struct drps_text_io *t = ctx;
    (void)mode;
    if (strcmp(path, DRPS_TEXT_PATH) != 0) return -ENOENT;
    if (!(flags & O_PATH)) t->at = 0;
    return TEXT_FD;
}

static int text_close(void *ctx, int fd)
{
    (void)ctx, (void)fd;
    return 0;
}

static ssize_t text_pread(void *ctx, int fd, void *buf, size_t n, uint64_t offset)
{
    const struct drps_text_io *t = ctx;
    (void)fd;
    if (offset >= t->bytes) return 0;
    if (n > t->bytes - offset) n = t->bytes - (size_t)offset;
    memcpy(buf, t->text + offset, n);
    return (ssize_t)n;
}

static ssize_t text_read(void *ctx, int fd, void *buf, size_t n)
{
    struct drps_text_io *t = ctx;
    const ssize_t got = text_pread(ctx, fd, buf, n, t->at);
    if (got > 0) t->at += (size_t)got;
    return got;
}

static int64_t text_size(void *ctx, int fd)
{
    const struct drps_text_io *t = ctx;
    (void)fd;
    return (int64_t)t->bytes;
}

void drps_text_io_init(struct drps_text_io *t, const char *text, size_t bytes)
{
    *t = (struct drps_text_io){.ops = *drps_io_os()->ops, .text = text, .bytes = bytes};
    t->ops.open = text_open;
    t->ops.close = text_close;
    t->ops.read = text_read;
    t->ops.pread = text_pread;
    t->ops.size = text_size;
    t->io = (struct drps_io){.ops = &t->ops, .ctx = t};
}
