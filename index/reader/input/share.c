/* Deals files to readers by bytes, and counts lines (drps_share.h). */
#include "index/reader/input/drps_share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/reader/input/codec.h"
#include "index/reader/text/drps_count.h"

enum { BLOCK = 1 << 18 };

/* Up to n bytes at `at`; fewer only where the file ends. */
static int read_block(const struct drps_io *io, int fd, const char *path, void *buf, size_t n,
                      uint64_t at, size_t *n_out, struct drps_err *err)
{
    *n_out = 0;
    while (*n_out < n) {
        const ssize_t got =
            io->ops->pread(io->ctx, fd, (char *)buf + *n_out, n - *n_out, at + *n_out);
        if (got == -EINTR) continue;
        if (got < 0)
            return drps_err_set(err, (int)got, "%s: read at byte %llu: %s", path,
                                (unsigned long long)(at + *n_out), drps_err_name((int)got));
        if (got == 0) break;
        *n_out += (size_t)got;
    }
    return drps_io_stopped(io, err);
}

static int open_file(const struct drps_io *io, const char *path, int *fd_out, uint64_t *size_out,
                     struct drps_err *err)
{
    const int is_stdin = strcmp(path, "-") == 0;
    int rc = is_stdin ? 1 : drps_io_open_data(io, path, 0, fd_out, err);
    if (rc < 0) return rc;
    if (rc == 0) rc = drps_io_size(io, *fd_out, path, size_out, err);
    if (rc > 0)
        rc = drps_err_set(err, DRPS_E_CONFIG, "%s cannot be read in shares: give files",
                          is_stdin ? "standard input" : path);
    if (rc < 0 && !is_stdin) drps_io_close(io, *fd_out);
    return rc;
}

/* Find the first line that begins at `byte`, which is not 0, or behind it; at most the size. */
static int next_line(const struct drps_io *io, int fd, const char *path, uint64_t byte,
                     uint64_t *begin_out, struct drps_err *err)
{
    char *buf = malloc(BLOCK), *feed = NULL;
    uint64_t at = byte - 1;
    size_t n = BLOCK;
    int rc = buf ? 0 : drps_err_set(err, -ENOMEM, "no memory to read %s", path);
    while (rc == 0 && !feed && n == BLOCK) {
        rc = read_block(io, fd, path, buf, BLOCK, at, &n, err);
        feed = rc == 0 ? memchr(buf, '\n', n) : NULL;
        at += feed ? (uint64_t)(feed - buf) + 1 : n;
    }
    free(buf);
    *begin_out = at;
    return rc;
}

/* Move a place within a file of this size to where a line begins. A compressed file is one line. */
static int settle(const struct drps_io *io, const char *const *paths,
                  struct drps_share_place *place, struct drps_err *err)
{
    const char *path = place->byte ? paths[place->path] : NULL;
    uint8_t head[DRPS_CODEC_MAGIC_BYTES];
    uint64_t size = 0, begin = 0;
    size_t n = 0;
    int fd = -1;
    if (!path) return 0;
    int rc = open_file(io, path, &fd, &size, err);
    if (rc < 0) return rc;
    rc = read_block(io, fd, path, head, sizeof(head), 0, &n, err);
    if (rc == 0 && drps_codec_find(head, n))
        begin = size;
    else if (rc == 0)
        rc = next_line(io, fd, path, place->byte, &begin, err);
    drps_io_close(io, fd);
    place->byte = begin;
    if (begin >= size) *place = (struct drps_share_place){place->path + 1, 0};
    return rc;
}

/* Returns the place of byte `at` of all files. */
static struct drps_share_place place_of(const uint64_t *size, size_t n, uint64_t at)
{
    size_t path = 0;
    for (; path < n && at >= size[path]; path++)
        at -= size[path];
    return (struct drps_share_place){path, path < n ? at : 0};
}

static uint64_t bytes_before(const uint64_t *size, const struct drps_share_place *place)
{
    uint64_t sum = place->byte;
    for (size_t i = 0; i < place->path; i++)
        sum += size[i];
    return sum;
}

int drps_reader_share(const struct drps_io *io, const char *const *paths, size_t n, uint32_t share,
                      uint32_t shares, struct drps_reader_share *out, struct drps_err *err)
{
    uint64_t all = 0, *size = drps_array_new(n + 1, sizeof(*size));
    int rc = size ? 0 : drps_err_set(err, -ENOMEM, "no memory for %zu files", n);
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; rc == 0 && i < n; i++) {
        int fd;
        rc = open_file(io, paths[i], &fd, &size[i], err);
        if (rc < 0) break;
        drps_io_close(io, fd);
        all += size[i];
    }
    if (rc == 0) {
        out->begin = place_of(size, n, (uint64_t)((__uint128_t)all * share / shares));
        out->end = place_of(size, n, (uint64_t)((__uint128_t)all * (share + 1) / shares));
        if (!share) out->begin = (struct drps_share_place){0, 0}; /* empty files, too */
        rc = settle(io, paths, &out->begin, err);
    }
    if (rc == 0) rc = settle(io, paths, &out->end, err);
    if (rc == 0) out->bytes = bytes_before(size, &out->end) - bytes_before(size, &out->begin);
    free(size);
    return rc;
}

int drps_reader_share_lines(const struct drps_io *io, const char *path, uint64_t from, uint64_t to,
                            uint64_t *lines_out, struct drps_err *err)
{
    char *buf = malloc(BLOCK);
    uint64_t size = 0;
    size_t n = 1;
    int fd = -1;
    *lines_out = 0;
    int rc = buf ? 0 : drps_err_set(err, -ENOMEM, "no memory to read %s", path);
    if (rc == 0) rc = open_file(io, path, &fd, &size, err);
    const int opened = rc == 0;
    for (; rc == 0 && n && from < to; from += n) {
        const size_t want = to - from < BLOCK ? (size_t)(to - from) : BLOCK;
        rc = read_block(io, fd, path, buf, want, from, &n, err);
        if (rc == 0) *lines_out += drps_text_count(buf, n, '\n');
    }
    if (opened) drps_io_close(io, fd);
    free(buf);
    return rc;
}
