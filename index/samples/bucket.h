/*
 * A bucket of the spool: bytes that are appended, and then read or replaced anywhere. Private to
 * index/samples/.
 *
 * Its bytes are those of the chunks that stay in memory, then those of the file, then those that
 * are buffered. How many chunks there may be is one bound for all buckets of a spool.
 */
#ifndef DRPS_INDEX_SAMPLES_BUCKET_H
#define DRPS_INDEX_SAMPLES_BUCKET_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"

enum { BUCKET_BUFFER_BYTES = 256 * 1024 };

struct bucket {
    int fd;
    char *path;
    char **chunks; /* own: [chunks_n] of BUCKET_BUFFER_BYTES; the last one may be the buffer */
    size_t chunks_n, chunks_cap;
    char *own; /* the buffer, once the spool has all its chunks; it goes to the file */
    size_t buffered;
    uint64_t written; /* and not buffered */
    uint64_t *marks;  /* [marks_n] offsets where generations begin, after the first */
    size_t marks_n, marks_cap;
    uint64_t samples;
};

/* What the buckets of a spool share. */
struct bucket_store {
    const struct drps_io *io;
    size_t chunks_n, chunks_max; /* of all buckets */
};

/* An empty bucket, of the file dir/<name>-<number>. Close it also after a failure; before it is
 * opened its fd is -1. */
DRPS_MUST_CHECK
int drps_bucket_open(struct bucket_store *s, const char *dir, const char *name, unsigned number,
                     struct bucket *b, struct drps_err *err);
/* Removes the file. */
void drps_bucket_close(const struct drps_io *io, struct bucket *b);

/* Append n bytes. */
DRPS_MUST_CHECK
int drps_bucket_put(struct bucket_store *s, struct bucket *b, const void *data, size_t n,
                    struct drps_err *err);

/* Returns the address of the next byte, with room for BUCKET_BUFFER_BYTES - b->buffered. */
static inline char *bucket_tail(const struct bucket *b)
{
    return (b->own ? b->own : b->chunks[b->chunks_n - 1]) + b->buffered;
}

/* Write what is buffered: after that all bytes can be read. */
DRPS_MUST_CHECK
int drps_bucket_flush(struct bucket_store *s, struct bucket *b, struct drps_err *err);

/* Read or replace n bytes at byte `at` of those that are written. */
DRPS_MUST_CHECK
int drps_bucket_read(struct bucket_store *s, struct bucket *b, char *data, size_t n, uint64_t at,
                     struct drps_err *err);
DRPS_MUST_CHECK
int drps_bucket_write(struct bucket_store *s, struct bucket *b, char *data, size_t n, uint64_t at,
                      struct drps_err *err);

#endif
