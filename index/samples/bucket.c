/*
 * Bytes of a bucket of the spool (bucket.h): chunks in memory while the spool may have more, then a
 * file behind one buffer.
 */
#include "index/samples/bucket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

/* Gets the memory that the next bytes go to. */
static int take_buffer(struct bucket_store *s, struct bucket *b, struct drps_err *err)
{
    /* Bytes come and go in turn: huge pages would gain nothing, and are slow to get where a virtual
     * machine lends them from its host. */
    char *buffer = malloc(BUCKET_BUFFER_BYTES);
    b->buffered = 0;
    if (!buffer ||
        drps_array_reserve(&b->chunks, &b->chunks_cap, b->chunks_n + 1, sizeof(*b->chunks))) {
        free(buffer);
        return drps_err_set(err, -ENOMEM, "no memory for the spool");
    }
    if (s->chunks_n == s->chunks_max) {
        b->own = buffer;
        return 0;
    }
    b->chunks[b->chunks_n++] = buffer;
    s->chunks_n++;
    return 0;
}

int drps_bucket_open(struct bucket_store *s, const char *dir, const char *name, unsigned number,
                     struct bucket *b, struct drps_err *err)
{
    if (asprintf(&b->path, "%s/%s-%u", dir, name, number) < 0) b->path = NULL;
    if (!b->path) return drps_err_set(err, -ENOMEM, "no memory for the spool");
    int rc = take_buffer(s, b, err);
    return rc < 0 ? rc : drps_io_open(s->io, b->path, O_RDWR | O_CREAT | O_TRUNC, &b->fd, err);
}

void drps_bucket_close(const struct drps_io *io, struct bucket *b)
{
    if (b->fd >= 0) (void)io->ops->unlink(io->ctx, b->path); /* scratch; the folder goes anyway */
    drps_io_close(io, b->fd);
    free(b->path);
    for (size_t i = 0; i < b->chunks_n; i++)
        free(b->chunks[i]);
    free(b->chunks);
    free(b->own);
    free(b->marks);
    *b = (struct bucket){.fd = -1};
}

/* How many bytes lie in memory, before those of the file. */
static uint64_t bytes_in_memory(const struct bucket *b)
{
    const uint64_t all = (uint64_t)b->chunks_n * BUCKET_BUFFER_BYTES;
    return b->written < all ? b->written : all;
}

int drps_bucket_flush(struct bucket_store *s, struct bucket *b, struct drps_err *err)
{
    if (b->own) {
        int rc = drps_io_write_at(s->io, b->fd, b->own, b->buffered,
                                  b->written - bytes_in_memory(b), b->path, err);
        if (rc < 0) return rc;
    }
    b->written += b->buffered;
    b->buffered = 0;
    return 0;
}

int drps_bucket_put(struct bucket_store *s, struct bucket *b, const void *data, size_t n,
                    struct drps_err *err)
{
    const char *at = data;
    while (n) {
        if (b->buffered == BUCKET_BUFFER_BYTES) {
            int rc = drps_bucket_flush(s, b, err);
            if (rc == 0 && !b->own) rc = take_buffer(s, b, err);
            if (rc < 0) return rc;
        }
        size_t room = BUCKET_BUFFER_BYTES - b->buffered;
        size_t part = n < room ? n : room;
        memcpy(bucket_tail(b), at, part);
        b->buffered += part;
        at += part;
        n -= part;
    }
    return 0;
}

/* Copy those of n bytes that lie in memory to or from `data`; returns how many these are. */
static size_t copy_memory(struct bucket *b, char *data, size_t n, uint64_t at, int write)
{
    size_t done = 0;
    while (done < n && at + done < bytes_in_memory(b)) {
        const uint64_t from = at + done;
        char *chunk = b->chunks[from / BUCKET_BUFFER_BYTES] + from % BUCKET_BUFFER_BYTES;
        size_t part = BUCKET_BUFFER_BYTES - (size_t)(from % BUCKET_BUFFER_BYTES);
        if (part > n - done) part = n - done;
        memcpy(write ? chunk : data + done, write ? data + done : chunk, part);
        done += part;
    }
    return done;
}

int drps_bucket_read(struct bucket_store *s, struct bucket *b, char *data, size_t n, uint64_t at,
                     struct drps_err *err)
{
    const size_t done = copy_memory(b, data, n, at, 0);
    if (done == n) return 0;
    return drps_io_read_at(s->io, b->fd, data + done, n - done, at + done - bytes_in_memory(b),
                           b->path, err);
}

int drps_bucket_write(struct bucket_store *s, struct bucket *b, char *data, size_t n, uint64_t at,
                      struct drps_err *err)
{
    const size_t done = copy_memory(b, data, n, at, 1);
    if (done == n) return 0;
    return drps_io_write_at(s->io, b->fd, data + done, n - done, at + done - bytes_in_memory(b),
                            b->path, err);
}
