#include "support/memory_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/record/drps_recfile.h"

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int find(const struct memory_io *m, const char *name)
{
    for (int i = 0; i < MEMORY_FILES; i++)
        if (strcmp(m->files[i].name, name) == 0) return i;
    return -1;
}

static int memory_open(void *ctx, const char *path, int flags, mode_t mode)
{
    struct memory_io *m = ctx;
    int i = find(m, last_part(path));
    (void)mode;
    if (i < 0 && !(flags & O_CREAT)) return -ENOENT;
    if (i < 0) {
        i = find(m, "");
        if (i < 0) return -EMFILE;
        (void)snprintf(m->files[i].name, sizeof(m->files[i].name), "%s", last_part(path));
    }
    if (flags & O_TRUNC) m->files[i].n = 0;
    return i;
}

static int memory_close(void *ctx, int fd)
{
    (void)ctx;
    (void)fd;
    return 0;
}

static ssize_t memory_pread(void *ctx, int fd, void *buf, size_t n, uint64_t offset)
{
    const struct memory_io *m = ctx;
    size_t have = m->files[fd].n;
    if (offset >= have) return 0;
    if (n > have - offset) n = (size_t)(have - offset);
    memcpy(buf, m->files[fd].data + offset, n);
    return (ssize_t)n;
}

static ssize_t memory_pwrite(void *ctx, int fd, const void *buf, size_t n, uint64_t offset)
{
    struct memory_io *m = ctx;
    size_t end = (size_t)offset + n;
    if (end > m->files[fd].n) {
        uint8_t *grown = realloc(m->files[fd].data, end);
        if (!grown) return -ENOMEM;
        memset(grown + m->files[fd].n, 0, end - m->files[fd].n);
        m->files[fd].data = grown;
        m->files[fd].n = end;
    }
    memcpy(m->files[fd].data + offset, buf, n);
    return (ssize_t)n;
}

static ssize_t memory_pwritev(void *ctx, int fd, const struct iovec *pieces, int n, uint64_t offset)
{
    ssize_t put = 0;
    for (int i = 0; i < n; i++) {
        const ssize_t got =
            memory_pwrite(ctx, fd, pieces[i].iov_base, pieces[i].iov_len, offset + (uint64_t)put);
        if (got < 0) return got;
        put += got;
    }
    return put;
}

static int memory_fsync(void *ctx, int fd)
{
    (void)ctx;
    (void)fd;
    return 0;
}

static int64_t memory_size(void *ctx, int fd)
{
    const struct memory_io *m = ctx;
    return (int64_t)m->files[fd].n;
}

static const struct drps_io_ops memory_ops = {.open = memory_open,
                                              .close = memory_close,
                                              .pread = memory_pread,
                                              .pwrite = memory_pwrite,
                                              .pwritev = memory_pwritev,
                                              .fsync = memory_fsync,
                                              .size = memory_size};

void memory_io_init(struct memory_io *m)
{
    memset(m, 0, sizeof(*m));
    m->io = (struct drps_io){.ops = &memory_ops, .ctx = m};
}

void memory_io_destroy(struct memory_io *m)
{
    for (size_t i = 0; i < MEMORY_FILES; i++)
        free(m->files[i].data);
    memset(m, 0, sizeof(*m));
}

void memory_io_put(struct memory_io *m, const char *name, const void *data, size_t n)
{
    int fd = memory_open(m, name, O_CREAT | O_TRUNC, 0);
    if (fd < 0 || (n && memory_pwrite(m, fd, data, n, 0) < 0)) abort();
}

int memory_io_records(struct memory_io *m, const char *name, uint32_t kind, const uint8_t *data,
                      size_t n)
{
    struct drps_recwriter *w;
    size_t at = 0;
    int rc = drps_recwriter_open(&m->io, name, kind, &w, NULL);
    while (rc == 0 && at + 2 <= n) {
        size_t bytes = (size_t)(data[at] | data[at + 1] << 8);
        at += 2;
        if (bytes > n - at) bytes = n - at;
        struct drps_piece piece = {data + at, bytes};
        rc = drps_recwriter_add(w, &piece, 1, NULL);
        at += bytes;
    }
    if (rc == 0) rc = drps_recwriter_finish(w, NULL);
    drps_recwriter_close(w);
    return rc;
}
