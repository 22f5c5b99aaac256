/* The operating system's calls as a table, and helpers that finish what one call begins. */
#include "base/drps_io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/drps_size.h"

/* One system call moves at most this much: a round number under the kernel's 2 GiB. */
enum { MAX_TRANSFER = 1 << 30 };

/* Without O_NONBLOCK, a FIFO would keep a reader waiting for its writer. Once open, a file is as
 * any other: io_uring takes the flag for more than a pipe's. */
static int os_open(void *ctx, const char *path, int flags, mode_t mode)
{
    (void)ctx;
    const int waits = (flags & O_ACCMODE) == O_RDONLY && !(flags & O_PATH);
    int fd = open(path, flags | O_CLOEXEC | (waits ? O_NONBLOCK : 0), mode);
    if (fd < 0) return -errno;
    if (waits) (void)fcntl(fd, F_SETFL, flags & O_DIRECT); /* cannot fail for these flags */
    return fd;
}

static int os_close(void *ctx, int fd)
{
    (void)ctx;
    return close(fd) ? -errno : 0;
}

static ssize_t os_read(void *ctx, int fd, void *buf, size_t n)
{
    (void)ctx;
    ssize_t got = read(fd, buf, n);
    return got < 0 ? -errno : got;
}

static ssize_t os_pread(void *ctx, int fd, void *buf, size_t n, uint64_t offset)
{
    (void)ctx;
    ssize_t got = pread(fd, buf, n, (off_t)offset);
    return got < 0 ? -errno : got;
}

static ssize_t os_pwrite(void *ctx, int fd, const void *buf, size_t n, uint64_t offset)
{
    (void)ctx;
    ssize_t put = pwrite(fd, buf, n, (off_t)offset);
    return put < 0 ? -errno : put;
}

static ssize_t os_pwritev(void *ctx, int fd, const struct iovec *pieces, int n, uint64_t offset)
{
    (void)ctx;
    ssize_t put = pwritev(fd, pieces, n, (off_t)offset);
    return put < 0 ? -errno : put;
}

static int os_fsync(void *ctx, int fd)
{
    (void)ctx;
    return fsync(fd) ? -errno : 0;
}

static int os_ftruncate(void *ctx, int fd, uint64_t size)
{
    (void)ctx;
    return ftruncate(fd, (off_t)size) ? -errno : 0;
}

static int os_fallocate(void *ctx, int fd, uint64_t size)
{
    (void)ctx;
    return -posix_fallocate(fd, 0, (off_t)size);
}

static int64_t os_size(void *ctx, int fd)
{
    (void)ctx;
    struct stat st;
    if (fstat(fd, &st)) return -errno;
    switch (st.st_mode & S_IFMT) {
    case S_IFREG:
        return (int64_t)st.st_size;
    case S_IFIFO:
        return -ESPIPE;
    case S_IFDIR:
        return -EISDIR;
    case S_IFCHR:
    case S_IFBLK:
        return -ENODEV;
    default:
        return -ENXIO;
    }
}

static int os_rename(void *ctx, const char *from, const char *to)
{
    (void)ctx;
    return rename(from, to) ? -errno : 0;
}

static int os_unlink(void *ctx, const char *path)
{
    (void)ctx;
    return unlink(path) ? -errno : 0;
}

static int os_mkdir(void *ctx, const char *path, mode_t mode)
{
    (void)ctx;
    return mkdir(path, mode) ? -errno : 0;
}

static int os_rmdir(void *ctx, const char *path)
{
    (void)ctx;
    return rmdir(path) ? -errno : 0;
}

static int os_exchange(void *ctx, const char *a, const char *b)
{
    (void)ctx;
    return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) ? -errno : 0;
}

static int os_link(void *ctx, const char *from, const char *to)
{
    (void)ctx;
    return link(from, to) ? -errno : 0;
}

static const struct drps_io_ops os_ops = {
    .open = os_open,
    .close = os_close,
    .read = os_read,
    .pread = os_pread,
    .pwrite = os_pwrite,
    .pwritev = os_pwritev,
    .fsync = os_fsync,
    .ftruncate = os_ftruncate,
    .fallocate = os_fallocate,
    .size = os_size,
    .rename = os_rename,
    .unlink = os_unlink,
    .mkdir = os_mkdir,
    .rmdir = os_rmdir,
    .exchange = os_exchange,
    .link = os_link,
};

static const struct drps_io os_io = {.ops = &os_ops, .ctx = NULL};

const struct drps_io *drps_io_os(void)
{
    return &os_io;
}

static int open_any(const struct drps_io *io, const char *path, int flags, int *fd_out,
                    struct drps_err *err)
{
    *fd_out = -1;
    int fd = io->ops->open(io->ctx, path, flags, 0666);
    if (fd < 0)
        return drps_err_set(err, fd, "cannot %s %s: %s", flags & O_CREAT ? "create" : "open", path,
                            drps_err_name(fd));
    *fd_out = fd;
    return 0;
}

int drps_io_fallocate(const struct drps_io *io, int fd, uint64_t size, struct drps_err *err)
{
    for (;;) {
        const int rc = io->ops->fallocate(io->ctx, fd, size);
        if (rc != -EINTR) return rc;
        const int stopped = drps_io_stopped(io, err);
        if (stopped < 0) return stopped;
    }
}

/* What has no size, by the code that says so. */
static const char *kind_name(int code)
{
    return code == -ESPIPE   ? "a pipe"
           : code == -EISDIR ? "a folder"
           : code == -ENODEV ? "a device"
                             : "no file";
}

static int is_kind(int code)
{
    return code == -ESPIPE || code == -EISDIR || code == -ENODEV || code == -ENXIO;
}

int drps_io_open(const struct drps_io *io, const char *path, int flags, int *fd_out,
                 struct drps_err *err)
{
    const int reads = (flags & O_ACCMODE) == O_RDONLY && !(flags & (O_PATH | O_DIRECTORY));
    int rc = open_any(io, path, flags, fd_out, err);
    if (rc < 0 || !reads) return rc;
    const int64_t size = io->ops->size(io->ctx, *fd_out);
    if (size >= 0) return 0;
    rc = (int)size;
    drps_io_close(io, *fd_out);
    *fd_out = -1;
    if (is_kind(rc))
        return drps_err_set(err, rc, "%s is %s, where a regular file is expected", path,
                            kind_name(rc));
    return drps_err_set(err, rc, "cannot stat %s: %s", path, drps_err_name(rc));
}

int drps_io_open_data(const struct drps_io *io, const char *path, int look, int *fd_out,
                      struct drps_err *err)
{
    int rc = open_any(io, path, look ? O_PATH : O_RDONLY, fd_out, err);
    if (rc < 0) return rc;
    const int64_t size = io->ops->size(io->ctx, *fd_out);
    if (size >= 0 || size == -ESPIPE) return size < 0;
    rc = (int)size;
    drps_io_close(io, *fd_out);
    *fd_out = -1;
    if (rc == -EISDIR) return drps_err_set(err, rc, "%s is a folder: name the files in it", path);
    if (is_kind(rc))
        return drps_err_set(err, rc, "%s is %s: data come from files and pipes%s", path,
                            kind_name(rc),
                            strcmp(path, "/dev/stdin") == 0 ? ", or - for a terminal" : "");
    return drps_err_set(err, rc, "cannot stat %s: %s", path, drps_err_name(rc));
}

void drps_io_close(const struct drps_io *io, int fd)
{
    if (fd >= 0) (void)io->ops->close(io->ctx, fd); /* writers have synced before */
}

int drps_io_read_at(const struct drps_io *io, int fd, void *buf, size_t n, uint64_t offset,
                    const char *path, struct drps_err *err)
{
    char *at = buf;
    while (n) {
        size_t want = n < MAX_TRANSFER ? n : MAX_TRANSFER;
        int rc = drps_io_stopped(io, err);
        if (rc < 0) return rc;
        ssize_t got = io->ops->pread(io->ctx, fd, at, want, offset);
        if (got == -EINTR) continue;
        if (got < 0)
            return drps_err_set(err, (int)got,
                                "cannot read %zu bytes at offset %" PRIu64 " of %s: %s", want,
                                offset, path, drps_err_name((int)got));
        if (got == 0)
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "%s ends at byte %" PRIu64 ", %zu bytes too early", path, offset,
                                n);
        at += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return 0;
}

int drps_io_write_at(const struct drps_io *io, int fd, const void *buf, size_t n, uint64_t offset,
                     const char *path, struct drps_err *err)
{
    const char *at = buf;
    while (n) {
        size_t want = n < MAX_TRANSFER ? n : MAX_TRANSFER;
        int rc = drps_io_stopped(io, err);
        if (rc < 0) return rc;
        ssize_t put = io->ops->pwrite(io->ctx, fd, at, want, offset);
        if (put == -EINTR) continue;
        if (put == 0) put = -EIO;
        if (put == -ENOSPC || put == -EDQUOT)
            return drps_err_set(err, (int)put,
                                "no space left for %s (writing %zu bytes at offset %" PRIu64
                                "): free some space or choose another folder",
                                path, n, offset);
        if (put < 0)
            return drps_err_set(err, (int)put,
                                "cannot write %zu bytes at offset %" PRIu64 " of %s: %s", want,
                                offset, path, drps_err_name((int)put));
        at += put;
        offset += (uint64_t)put;
        n -= (size_t)put;
    }
    return 0;
}

int drps_io_sync(const struct drps_io *io, int fd, const char *path, struct drps_err *err)
{
    int rc = io->ops->fsync(io->ctx, fd);
    if (rc < 0) return drps_err_set(err, rc, "cannot sync %s: %s", path, drps_err_name(rc));
    return 0;
}

int drps_io_resize(const struct drps_io *io, int fd, const char *path, uint64_t size,
                   struct drps_err *err)
{
    int rc = io->ops->ftruncate(io->ctx, fd, size);
    if (rc < 0)
        return drps_err_set(err, rc, "cannot make %s %" PRIu64 " bytes long: %s", path, size,
                            drps_err_name(rc));
    return 0;
}

int drps_io_size(const struct drps_io *io, int fd, const char *path, uint64_t *size_out,
                 struct drps_err *err)
{
    int64_t size = io->ops->size(io->ctx, fd);
    *size_out = 0;
    if (size < 0)
        return drps_err_set(err, (int)size, "cannot stat %s: %s", path, drps_err_name((int)size));
    *size_out = (uint64_t)size;
    return 0;
}

int drps_io_read_file(const struct drps_io *io, const char *path, size_t limit, char **data_out,
                      size_t *n_out, struct drps_err *err)
{
    int fd;
    uint64_t size;
    char *data = NULL;

    *data_out = NULL;
    *n_out = 0;
    int rc = drps_io_open(io, path, O_RDONLY, &fd, err);
    if (rc < 0) return rc;
    rc = drps_io_size(io, fd, path, &size, err);
    if (rc < 0) goto out;
    if (size > limit) {
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "%s has %" PRIu64 " bytes; at most %zu were expected", path, size, limit);
        goto out;
    }
    data = malloc((size_t)size + 1);
    if (!data) {
        rc = drps_err_set(err, -ENOMEM, "no memory for %s (%" PRIu64 " bytes)", path, size);
        goto out;
    }
    rc = drps_io_read_at(io, fd, data, (size_t)size, 0, path, err);
    if (rc < 0) goto out;
    data[size] = '\0';
    *data_out = data;
    *n_out = (size_t)size;
    data = NULL;
out:
    free(data);
    drps_io_close(io, fd);
    return rc;
}

static int check_text(const char *text, size_t n, const char *path, struct drps_err *err)
{
    size_t line = 1, begin = 0; /* the line, and where it begins */
    for (size_t i = 0; i < n; i++) {
        const unsigned char byte = (unsigned char)text[i];
        const int ends = byte == '\r' && (i + 1 == n || text[i + 1] == '\n');
        if (byte == '\n') {
            line++;
            begin = i + 1;
        } else if ((byte < ' ' && byte != '\t' && !ends) || byte == 0x7f) {
            return drps_err_set(err, DRPS_E_FORMAT,
                                "%s:%zu:%zu: a control character (byte 0x%02x): not a text file",
                                path, line, i - begin + 1, byte);
        }
    }
    return 0;
}

int drps_io_read_text(const struct drps_io *io, const char *path, size_t limit, char **text_out,
                      size_t *n_out, struct drps_err *err)
{
    int rc = drps_io_read_file(io, path, limit, text_out, n_out, err);
    if (rc < 0) return rc;
    rc = check_text(*text_out, *n_out, path, err);
    if (rc == 0) return 0;
    explicit_bzero(*text_out, *n_out); /* it may be a key */
    free(*text_out);
    *text_out = NULL;
    *n_out = 0;
    return rc;
}

int drps_io_reserve(const struct drps_io *io, const char *path, uint64_t bytes,
                    struct drps_err *err)
{
    char size[32];
    int fd;
    int rc = drps_io_open(io, path, O_WRONLY | O_CREAT | O_EXCL, &fd, err);
    if (rc < 0 || !bytes) {
        drps_io_close(io, fd);
        return rc;
    }
    rc = drps_io_fallocate(io, fd, bytes, err);
    drps_io_close(io, fd);
    if (rc >= 0 || rc == DRPS_E_INTERRUPTED) return rc < 0 ? rc : 0;
    return drps_err_set(err, rc,
                        "no space left for %s, which needs %s: %s; free some space or choose "
                        "another folder",
                        path, drps_size_format(bytes, size, sizeof(size)), drps_err_name(rc));
}

int drps_io_write_file(const struct drps_io *io, const char *path, const void *data, size_t n,
                       struct drps_err *err)
{
    int fd;
    int rc = drps_io_open(io, path, O_WRONLY | O_CREAT, &fd, err);
    if (rc < 0) return rc;
    rc = drps_io_write_at(io, fd, data, n, 0, path, err);
    if (rc == 0) rc = drps_io_resize(io, fd, path, n, err);
    if (rc == 0) rc = drps_io_sync(io, fd, path, err);
    drps_io_close(io, fd);
    return rc;
}

char *drps_path_join(const char *dir, const char *name)
{
    size_t n = strlen(dir);
    const char *sep = n && dir[n - 1] == '/' ? "" : "/";
    char *path;
    return asprintf(&path, "%s%s%s", dir, sep, name) < 0 ? NULL : path;
}

static int remove_entries(const struct drps_io *io, const char *path, DIR *dir,
                          struct drps_err *err)
{
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        char *child = drps_path_join(path, entry->d_name);
        if (!child) return drps_err_set(err, -ENOMEM, "no memory to remove %s", path);
        int rc = drps_io_remove_tree(io, child, err);
        free(child);
        if (rc < 0) return rc;
    }
    return 0;
}

int drps_io_remove_tree(const struct drps_io *io, const char *path, struct drps_err *err)
{
    int rc = io->ops->unlink(io->ctx, path);
    if (rc == 0 || rc == -ENOENT) return 0;
    if (rc != -EISDIR && rc != -EPERM)
        return drps_err_set(err, rc, "cannot remove %s: %s", path, drps_err_name(rc));
    DIR *dir = opendir(path);
    if (!dir) return drps_err_set(err, -errno, "cannot list %s: %s", path, strerror(errno));
    rc = remove_entries(io, path, dir, err);
    closedir(dir);
    if (rc < 0) return rc;
    rc = io->ops->rmdir(io->ctx, path);
    if (rc < 0)
        return drps_err_set(err, rc, "cannot remove the folder %s: %s", path, drps_err_name(rc));
    return 0;
}
