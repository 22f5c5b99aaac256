/* The calls: each is done to the real folder, and then to the model. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/power_folder.h"

static void *need(void *memory)
{
    if (!memory) abort();
    return memory;
}

/* ---- Losing power ---- */

static void cut(struct power *p)
{
    if (p->off) return;
    power_look_below(p, p->disk.root, p->root);
    p->off = 1;
}

/* Holds the lock when it returns 0. */
static int begin(struct power *p)
{
    (void)pthread_mutex_lock(&p->lock);
    if (!p->off) return 0;
    (void)pthread_mutex_unlock(&p->lock);
    return -EIO;
}

static int strikes(struct power *p, unsigned call)
{
    if (!(p->calls & call) || --p->left) return 0;
    cut(p);
    return 1;
}

/* Ends what begin() began. The caller is never told of the change at which the power goes. */
static ssize_t end(struct power *p, int changed, ssize_t rc)
{
    if (changed && strikes(p, POWER_CHANGES)) rc = -EIO;
    (void)pthread_mutex_unlock(&p->lock);
    return rc;
}

/* ---- Calls on descriptors ---- */

static struct disk_node *node_of(const struct power *p, int fd)
{
    if (fd >= POWER_FILES) abort();
    return fd < 0 ? NULL : p->opened[fd];
}

/* Returns 1 when opening has changed something. */
static int note_open(struct power *p, struct power_place *at, int fd, int flags,
                     const struct stat *before)
{
    const int made = flags & O_CREAT && !before;
    if (made && at->folder) {
        at->node = disk_node_new(&p->disk, 0);
        disk_link(&p->disk, at->folder, at->name, at->node);
    }
    const int emptied = flags & O_TRUNC && before && before->st_size;
    if (emptied && at->node) disk_resize(at->node, 0);
    if (fd >= POWER_FILES) abort();
    p->opened[fd] = at->node;
    return at->node && (made || emptied);
}

static int power_open(void *ctx, const char *path, int flags, mode_t mode)
{
    struct power *p = ctx;
    struct stat st;
    int rc = begin(p);
    if (rc < 0) return rc;
    struct power_place at = power_locate(p, path);
    const int existed = lstat(path, &st) == 0;
    const int fd = p->inner->ops->open(p->inner->ctx, path, flags, mode);
    const int changed = fd >= 0 && note_open(p, &at, fd, flags, existed ? &st : NULL);
    rc = (int)end(p, changed, fd);
    if (rc < 0 && fd >= 0) (void)p->inner->ops->close(p->inner->ctx, fd); /* the power went */
    return rc;
}

static int power_close(void *ctx, int fd)
{
    struct power *p = ctx;
    (void)pthread_mutex_lock(&p->lock);
    if (node_of(p, fd)) p->opened[fd] = NULL;
    const int rc = p->inner->ops->close(p->inner->ctx, fd);
    (void)pthread_mutex_unlock(&p->lock);
    return p->off ? -EIO : rc;
}

static ssize_t power_read(void *ctx, int fd, void *buf, size_t n)
{
    struct power *p = ctx;
    return p->off ? -EIO : p->inner->ops->read(p->inner->ctx, fd, buf, n);
}

static ssize_t power_pread(void *ctx, int fd, void *buf, size_t n, uint64_t offset)
{
    struct power *p = ctx;
    return p->off ? -EIO : p->inner->ops->pread(p->inner->ctx, fd, buf, n, offset);
}

static ssize_t power_pwritev(void *ctx, int fd, const struct iovec *pieces, int n, uint64_t offset)
{
    struct power *p = ctx;
    const int rc = begin(p);
    if (rc < 0) return rc;
    struct disk_node *node = node_of(p, fd);
    const ssize_t put = n > 1 ? p->inner->ops->pwritev(p->inner->ctx, fd, pieces, n, offset)
                              : p->inner->ops->pwrite(p->inner->ctx, fd, pieces[0].iov_base,
                                                      pieces[0].iov_len, offset);
    const int changed = put > 0 && node;
    if (changed) disk_write(node, pieces, n, (size_t)put, offset);
    return end(p, changed, put);
}

static ssize_t power_pwrite(void *ctx, int fd, const void *buf, size_t n, uint64_t offset)
{
    const struct iovec piece = {.iov_base = (void *)buf, .iov_len = n}; /* which is only read */
    return power_pwritev(ctx, fd, &piece, 1, offset);
}

/* Nothing is made durable in earnest: the real folder is thrown away. */
static int sync_node(struct power *p, struct disk_node *node, int fd)
{
    char path[64];
    if (strikes(p, POWER_SYNCS)) return -EIO;
    const int lost = --p->left_to_lose == 0;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (node->folder) {
        power_look_at_folder(p, node, path);
        if (!lost) disk_sync_folder(&p->disk, node);
    } else if (lost) {
        disk_lose_file(node);
    } else {
        if (node->outside) power_look_at_file(node, path);
        disk_sync_file(node);
    }
    return lost ? -EIO : 0;
}

static int power_fsync(void *ctx, int fd)
{
    struct power *p = ctx;
    int rc = begin(p);
    if (rc < 0) return rc;
    struct disk_node *node = node_of(p, fd);
    rc = node ? sync_node(p, node, fd) : p->inner->ops->fsync(p->inner->ctx, fd);
    return (int)end(p, 0, rc);
}

static int power_ftruncate(void *ctx, int fd, uint64_t size)
{
    struct power *p = ctx;
    int rc = begin(p);
    if (rc < 0) return rc;
    struct disk_node *node = node_of(p, fd);
    rc = p->inner->ops->ftruncate(p->inner->ctx, fd, size);
    if (rc == 0 && node) disk_resize(node, size);
    return (int)end(p, rc == 0 && node, rc);
}

static int power_fallocate(void *ctx, int fd, uint64_t size)
{
    struct power *p = ctx;
    int rc = begin(p);
    if (rc < 0) return rc;
    struct disk_node *node = node_of(p, fd);
    rc = p->inner->ops->fallocate(p->inner->ctx, fd, size);
    if (rc == 0 && node) disk_grow(node, size);
    return (int)end(p, rc == 0 && node, rc);
}

static int64_t power_size(void *ctx, int fd)
{
    struct power *p = ctx;
    return p->off ? -EIO : p->inner->ops->size(p->inner->ctx, fd);
}

/* ---- Calls on names ---- */

/* A call on one name: its place, and what it returned. */
static int made_folder(struct power *p, const struct power_place *at, int rc)
{
    const int changed = rc == 0 && at->folder;
    if (changed) disk_link(&p->disk, at->folder, at->name, disk_node_new(&p->disk, 1));
    return (int)end(p, changed, rc);
}

static int removed(struct power *p, const struct power_place *at, int rc)
{
    const int changed = rc == 0 && at->folder && at->node;
    if (changed) disk_unlink(&p->disk, at->folder, at->name);
    return (int)end(p, changed, rc);
}

static int power_mkdir(void *ctx, const char *path, mode_t mode)
{
    struct power *p = ctx;
    const int rc = begin(p);
    if (rc < 0) return rc;
    const struct power_place at = power_locate(p, path);
    return made_folder(p, &at, p->inner->ops->mkdir(p->inner->ctx, path, mode));
}

static int power_unlink(void *ctx, const char *path)
{
    struct power *p = ctx;
    const int rc = begin(p);
    if (rc < 0) return rc;
    const struct power_place at = power_locate(p, path);
    return removed(p, &at, p->inner->ops->unlink(p->inner->ctx, path));
}

static int power_rmdir(void *ctx, const char *path)
{
    struct power *p = ctx;
    const int rc = begin(p);
    if (rc < 0) return rc;
    const struct power_place at = power_locate(p, path);
    return removed(p, &at, p->inner->ops->rmdir(p->inner->ctx, path));
}

/* A call on two names: both in the folder, or none. */
static int moved(struct power *p, const struct power_place *a, const struct power_place *b, int rc,
                 void (*move)(struct disk *d, struct disk_node *from, const char *name,
                              struct disk_node *to, const char *new_name))
{
    if (a->inside != b->inside) abort();
    const int changed = rc == 0 && a->node && b->folder;
    if (changed) move(&p->disk, a->folder, a->name, b->folder, b->name);
    return (int)end(p, changed, rc);
}

static int power_rename(void *ctx, const char *from, const char *to)
{
    struct power *p = ctx;
    const int rc = begin(p);
    if (rc < 0) return rc;
    const struct power_place a = power_locate(p, from), b = power_locate(p, to);
    return moved(p, &a, &b, p->inner->ops->rename(p->inner->ctx, from, to), disk_rename);
}

static int power_exchange(void *ctx, const char *from, const char *to)
{
    struct power *p = ctx;
    const int rc = begin(p);
    if (rc < 0) return rc;
    const struct power_place a = power_locate(p, from), b = power_locate(p, to);
    return moved(p, &a, &b, p->inner->ops->exchange(p->inner->ctx, from, to), disk_exchange);
}

static int power_link(void *ctx, const char *from, const char *to)
{
    struct power *p = ctx;
    int rc = begin(p);
    if (rc < 0) return rc;
    const struct power_place a = power_locate(p, from), b = power_locate(p, to);
    if (a.inside != b.inside) abort();
    rc = p->inner->ops->link(p->inner->ctx, from, to);
    const int changed = rc == 0 && a.node && b.folder;
    if (changed) disk_link(&p->disk, b.folder, b.name, a.node);
    return (int)end(p, changed, rc);
}

/* ---- Requests to io_uring ---- */

static struct disk_node *written_node(const struct power *p, const struct drps_io_request *r)
{
    return r->write ? node_of(p, r->fd) : NULL;
}

/* From now on a cut may find a part of it; a sync need not have it before it is told of. */
static size_t power_asked(void *ctx, const struct drps_io_request *r)
{
    struct power *p = ctx;
    if (begin(p) < 0) return 0;
    const struct drps_io_ops *inner = p->inner->ops;
    const size_t may = inner->asked ? inner->asked(p->inner->ctx, r) : r->bytes;
    struct disk_node *node = written_node(p, r);
    atomic_fetch_add(&p->requests, may > 0);
    if (node && may) disk_begin_write(node, r->pieces, r->n, may, r->offset);
    (void)pthread_mutex_unlock(&p->lock);
    return may;
}

static ssize_t power_told(void *ctx, const struct drps_io_request *r, ssize_t got)
{
    struct power *p = ctx;
    const struct drps_io_ops *inner = p->inner->ops;
    if (inner->told) got = inner->told(p->inner->ctx, r, got);
    if (begin(p) < 0) return -EIO;
    struct disk_node *node = written_node(p, r);
    if (node && got > 0) disk_end_write(node, r->offset, (size_t)got);
    return end(p, node && got > 0, got);
}

#define CALLS                                                                                      \
    .open = power_open, .close = power_close, .read = power_read, .pread = power_pread,            \
    .pwrite = power_pwrite, .pwritev = power_pwritev, .fsync = power_fsync,                        \
    .ftruncate = power_ftruncate, .fallocate = power_fallocate, .size = power_size,                \
    .rename = power_rename, .unlink = power_unlink, .mkdir = power_mkdir, .rmdir = power_rmdir,    \
    .exchange = power_exchange, .link = power_link

static const struct drps_io_ops power_ops = {CALLS};
static const struct drps_io_ops request_ops = {CALLS, .asked = power_asked, .told = power_told};

/* ---- The twin ---- */

struct power *power_new(const struct drps_io *inner, const char *root)
{
    struct power *p = need(calloc(1, sizeof(*p)));
    p->io = (struct drps_io){.ops = &power_ops, .ctx = p};
    p->inner = inner;
    p->root = need(strdup(root));
    (void)pthread_mutex_init(&p->lock, NULL); /* glibc: cannot fail with default attributes */
    disk_init(&p->disk);
    power_look_below(p, p->disk.root, root);
    for (struct disk_node *node = p->disk.all; node; node = node->next) {
        node->outside = 0;
        if (node->folder)
            disk_sync_folder(&p->disk, node);
        else
            disk_sync_file(node);
    }
    return p;
}

void power_see_requests(struct power *p)
{
    p->io.ops = &request_ops;
}

void power_free(struct power *p)
{
    if (!p) return;
    (void)pthread_mutex_destroy(&p->lock);
    disk_destroy(&p->disk);
    free(p->root);
    free(p);
}

void power_cut_at(struct power *p, unsigned calls, long k)
{
    (void)pthread_mutex_lock(&p->lock);
    p->calls = calls;
    p->left = k;
    (void)pthread_mutex_unlock(&p->lock);
}

void power_lose_sync_at(struct power *p, long k)
{
    (void)pthread_mutex_lock(&p->lock);
    p->left_to_lose = k;
    (void)pthread_mutex_unlock(&p->lock);
}

void power_cut(struct power *p)
{
    (void)pthread_mutex_lock(&p->lock);
    cut(p);
    (void)pthread_mutex_unlock(&p->lock);
}
