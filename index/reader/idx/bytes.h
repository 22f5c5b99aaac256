/* The bytes of an input file in order, for formats that are not text. Private to index/reader/idx/.
 * Needs drps_input.h for what they are unpacked from. */
#ifndef DRPS_INDEX_READER_IDX_BYTES_H
#define DRPS_INDEX_READER_IDX_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "index/reader/input/drps_input.h"

struct drps_bytes {
    struct drps_input *in; /* borrowed: an open file */
    uint8_t *buf;          /* own */
    size_t at, n, cap;     /* buf[at .. n) is read, and not yet used */
    uint64_t offset;       /* of buf[at], in the file as it is unpacked */
};

/* Begin the file that `in` has open, of which head [n] has been read before. */
DRPS_MUST_CHECK
int drps_bytes_begin(struct drps_bytes *b, struct drps_input *in, const void *head, size_t n,
                     struct drps_err *err);
void drps_bytes_free(struct drps_bytes *b);

/* Read on until `want` bytes are there, or all that the file has. Errors are those of
 * drps_input_read(). */
DRPS_MUST_CHECK
int drps_bytes_need(struct drps_bytes *b, size_t want, struct drps_err *err);

/* How many bytes are there. */
static inline size_t drps_bytes_left(const struct drps_bytes *b)
{
    return b->n - b->at;
}

/* The next n bytes, which are there; valid until the next call of another function. */
static inline const uint8_t *drps_bytes_take(struct drps_bytes *b, size_t n)
{
    const uint8_t *p = b->buf + b->at;
    b->at += n;
    b->offset += n;
    return p;
}

#endif
