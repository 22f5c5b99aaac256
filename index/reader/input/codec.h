/* One streaming decompressor. Each wraps one library in one file; input.c drives them. */
#ifndef DRPS_INDEX_READER_INPUT_CODEC_H
#define DRPS_INDEX_READER_INPUT_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

/* What a decoder works on: it moves `in` and `out` forward as it consumes and produces. */
struct drps_codec_io {
    const uint8_t *in;
    size_t in_n;
    int in_end; /* nothing comes after in[in_n - 1] */
    uint8_t *out;
    size_t out_n;
    int done; /* set by the decoder: the file may end here */
};

struct drps_codec {
    const char *name;
    /*
     * Begin a file. limit_bytes bounds the decoder's memory. Returns 0 or a negative code. NULL:
     * this build lacks the library, or no library is supported; `missing` says what to do.
     */
    int (*open)(uint64_t limit_bytes, void **state_out, struct drps_err *err);
    /*
     * Decode some. Consuming and producing nothing means that more input is needed. Returns 0,
     * DRPS_E_CORRUPT, DRPS_E_MEMORY_BUDGET or -ENOMEM; the text does not name the file.
     */
    int (*decode)(void *state, struct drps_codec_io *b, struct drps_err *err);
    void (*close)(void *state); /* NULL-safe */
    const char *missing;
};

extern const struct drps_codec drps_codec_gzip, drps_codec_zstd, drps_codec_xz;

/* Returns the codec whose magic bytes begin the file, or NULL for plain text. n may be small: then
 * fewer can match. */
const struct drps_codec *drps_codec_find(const uint8_t *head, size_t n);

enum { DRPS_CODEC_MAGIC_BYTES = 6 }; /* what drps_codec_find() wants to see */

#endif
