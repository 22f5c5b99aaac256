/* The bytes of one input file or of stdin, after decompression. */
#ifndef DRPS_INDEX_READER_INPUT_INPUT_H
#define DRPS_INDEX_READER_INPUT_INPUT_H

#include <stddef.h>
#include <stdint.h>

#include <stdatomic.h>

#include "base/drps_io.h"
#include "index/reader/input/codec.h"

struct drps_input {
    const atomic_int *stop; /* borrowed: ends waiting for a pipe; may be NULL */
    const struct drps_io *io;
    const char *name; /* borrowed; for texts. "stdin" for "-" */
    int fd, is_stdin, is_open;
    int ended;                      /* the file has no more bytes */
    int waits;                      /* it may be a pipe */
    const struct drps_codec *codec; /* NULL: plain */
    void *codec_state;
    struct drps_codec_io flow; /* in: bytes read ahead, within buf */
    uint64_t file_bytes;       /* of this file, read so far, compressed */
    int is_part;               /* only bytes part_at .. part_end of it are still to be read */
    uint64_t part_at, part_end;
    uint64_t all_bytes; /* the same of all files */
    uint64_t codec_limit_bytes;
    uint8_t *buf; /* own */
    size_t buf_bytes;
};

/* Allocate the read-ahead buffer; codec_limit_bytes bounds what a decoder may take. */
DRPS_MUST_CHECK
int drps_input_init(struct drps_input *in, const struct drps_io *io, size_t buf_bytes,
                    uint64_t codec_limit_bytes, struct drps_err *err);
void drps_input_destroy(struct drps_input *in);

/* Open the next file, closing the one before; path is borrowed while it is read. */
DRPS_MUST_CHECK
int drps_input_open(struct drps_input *in, const char *path, struct drps_err *err);
/* Open a part of a plain file: its bytes [from, to), or up to its end. */
DRPS_MUST_CHECK
int drps_input_open_part(struct drps_input *in, const char *path, uint64_t from, uint64_t to,
                         struct drps_err *err);
void drps_input_close(struct drps_input *in);

/* Up to n > 0 bytes of text; *n_out = 0 means the end. DRPS_E_CORRUPT and others name the file. */
DRPS_MUST_CHECK
int drps_input_read(struct drps_input *in, void *buf, size_t n, size_t *n_out,
                    struct drps_err *err);

/* Whether the sizes of all files are known, as those of pipes and of missing files are not.
 * *bytes_out gets the sum of those that are, as they are stored. */
int drps_input_sizes(const char *const *paths, size_t n, uint64_t *bytes_out);

#endif
