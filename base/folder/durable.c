/* What is written lasts once its file is synced, and its name once the folder is. */
#include "base/folder/drps_durable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_checksum.h"

enum { COPY_BYTES = 256 * 1024 };

int drps_sync_folder(const struct drps_io *io, const char *path, struct drps_err *err)
{
    int fd;
    int rc = drps_io_open(io, path, O_RDONLY | O_DIRECTORY, &fd, err);
    if (rc == 0) rc = drps_io_sync(io, fd, path, err);
    drps_io_close(io, fd);
    return rc;
}

int drps_sync_parent(const struct drps_io *io, const char *path, struct drps_err *err)
{
    const char *slash = strrchr(path, '/');
    char *parent = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    if (!parent) return drps_err_set(err, -ENOMEM, "no memory to sync the folder of %s", path);
    int rc = drps_sync_folder(io, parent, err);
    free(parent);
    return rc;
}

int drps_make_folder(const struct drps_io *io, const char *path, struct drps_err *err)
{
    int rc = io->ops->mkdir(io->ctx, path, 0777);
    if (rc == -EEXIST) return 0;
    if (rc < 0)
        return drps_err_set(err, rc, "cannot create the folder %s: %s", path, drps_err_name(rc));
    return drps_sync_parent(io, path, err);
}

int drps_copy_file(const struct drps_io *io, const char *from, const char *to, uint64_t *bytes_out,
                   uint64_t *sum_out, struct drps_err *err)
{
    int in = -1, out = -1;
    char *buf = malloc(COPY_BYTES);
    struct drps_summer *sum = drps_summer_new();
    int rc = buf && sum ? 0 : drps_err_set(err, -ENOMEM, "no memory to read %s", from);

    *bytes_out = *sum_out = 0;
    if (rc == 0) rc = drps_io_open(io, from, O_RDONLY, &in, err);
    if (rc == 0) rc = drps_io_size(io, in, from, bytes_out, err);
    if (rc == 0 && to) rc = drps_io_open(io, to, O_WRONLY | O_CREAT | O_TRUNC, &out, err);
    for (uint64_t at = 0; rc == 0 && at < *bytes_out; at += COPY_BYTES) {
        const size_t n = *bytes_out - at < COPY_BYTES ? (size_t)(*bytes_out - at) : COPY_BYTES;
        rc = drps_io_read_at(io, in, buf, n, at, from, err);
        if (rc < 0) break;
        drps_summer_add(sum, buf, n);
        if (to) rc = drps_io_write_at(io, out, buf, n, at, to, err);
    }
    if (rc == 0 && to) rc = drps_io_sync(io, out, to, err);
    if (rc == 0) *sum_out = drps_summer_value(sum);
    drps_io_close(io, in);
    drps_io_close(io, out);
    drps_summer_free(sum);
    free(buf);
    return rc;
}
