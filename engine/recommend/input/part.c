/* A buffer in front of a file. */
#include "engine/recommend/input/drps_part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct drps_part {
    const struct drps_io *io; /* borrowed */
    char *path;               /* own, as is buf */
    int fd;
    char *buf; /* NULL: all is written */
    size_t used;
    uint64_t written;
};

int drps_part_open(const struct drps_io *io, const char *dir, unsigned number,
                   struct drps_part **p_out, struct drps_err *err)
{
    char name[32];
    struct drps_part *p = calloc(1, sizeof(*p));
    *p_out = NULL;
    if (!p) return drps_err_set(err, -ENOMEM, "no memory for a scratch file");
    (void)snprintf(name, sizeof(name), "%u.part", number);
    p->io = io;
    p->fd = -1;
    p->path = drps_path_join(dir, name);
    p->buf = malloc(DRPS_PART_BYTES);
    int rc = p->path && p->buf ? 0 : drps_err_set(err, -ENOMEM, "no memory for a scratch file");
    if (rc == 0) rc = drps_io_open(io, p->path, O_RDWR | O_CREAT | O_EXCL, &p->fd, err);
    if (rc < 0) {
        drps_part_close(p);
        return rc;
    }
    *p_out = p;
    return 0;
}

void drps_part_close(struct drps_part *p)
{
    if (!p) return;
    if (p->fd >= 0) (void)p->io->ops->unlink(p->io->ctx, p->path); /* the folder goes later */
    drps_io_close(p->io, p->fd);
    free(p->path);
    free(p->buf);
    free(p);
}

static int flush(struct drps_part *p, struct drps_err *err)
{
    const int rc = drps_io_write_at(p->io, p->fd, p->buf, p->used, p->written, p->path, err);
    p->written += p->used;
    p->used = 0;
    return rc;
}

int drps_part_add(struct drps_part *p, const void *data, size_t n, struct drps_err *err)
{
    const char *from = data;
    while (n) {
        const size_t room = DRPS_PART_BYTES - p->used, some = n < room ? n : room;
        memcpy(p->buf + p->used, from, some);
        p->used += some;
        from += some;
        n -= some;
        const int rc = p->used == DRPS_PART_BYTES ? flush(p, err) : 0;
        if (rc < 0) return rc;
    }
    return 0;
}

uint64_t drps_part_bytes(const struct drps_part *p)
{
    return p->written + p->used;
}

int drps_part_finish(struct drps_part *p, struct drps_err *err)
{
    const int rc = flush(p, err);
    free(p->buf);
    p->buf = NULL;
    return rc;
}

int drps_part_read(const struct drps_part *p, void *data, size_t n, uint64_t at,
                   struct drps_err *err)
{
    return drps_io_read_at(p->io, p->fd, data, n, at, p->path, err);
}
