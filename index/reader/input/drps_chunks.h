/*
 * Hands the input out as pieces of whole lines, for the reader. Needs input/ for the bytes.
 *
 * A piece lies within one file and ends with a line feed (one is added to a last line without it).
 * What was read beyond the last line feed is carried to the next piece, as are lines that the
 * reader gives back.
 */
#ifndef DRPS_READER_INPUT_CHUNKS_H
#define DRPS_READER_INPUT_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

#include "index/reader/input/drps_input.h"
#include "index/reader/input/drps_share.h"

enum { DRPS_CHUNK_PAD = 64 }; /* readable bytes behind a piece: the number parsers load ahead */

struct drps_chunks {
    struct drps_input in;
    const char *const *paths; /* borrowed */
    size_t n_paths, next_path;
    const struct drps_reader_share *share; /* borrowed: what is read of them; NULL: all */
    int in_file;                           /* a file is being read */
    size_t piece_bytes;                    /* wanted size of a piece */
    uint64_t line_limit;                   /* largest piece, and so the longest line */
    uint64_t memory_bytes;
    char *carry; /* own: read, not yet handed out */
    size_t carry_n, carry_cap;
    uint64_t file_lines; /* lines of this file in the pieces before */
    int within;          /* reading began within this file */
};

DRPS_MUST_CHECK
int drps_chunks_init(struct drps_chunks *c, const struct drps_io *io, const char *const *paths,
                     size_t n_paths, uint64_t memory_bytes, struct drps_err *err);
void drps_chunks_destroy(struct drps_chunks *c);

/*
 * Open the next file and read its first block: 64 KiB and eight lines, or a piece, or all of it,
 * lies in c->carry then, without a byte order mark. Returns 1, or 0 after the last file.
 */
DRPS_MUST_CHECK
int drps_chunks_next_file(struct drps_chunks *c, struct drps_err *err);

/* Open files until there is one that is not empty, as drps_chunks_next_file() does. Returns 0 after
 * the last one, too, with nothing in c->carry. */
DRPS_MUST_CHECK
int drps_chunks_first_file(struct drps_chunks *c, struct drps_err *err);

/* Go back, and read but a share from then on; it is borrowed. */
void drps_chunks_take_share(struct drps_chunks *c, const struct drps_reader_share *share);

/* Go back to before the first file; what was read of pipes is lost. */
void drps_chunks_rewind(struct drps_chunks *c);

/*
 * Read on in a file whose first block was read and not yet handed out, until so many lines, or
 * `most` bytes, or all of it, lie in c->carry. With little memory an eighth of it bounds `most`.
 */
DRPS_MUST_CHECK
int drps_chunks_look_ahead(struct drps_chunks *c, size_t lines, size_t most, struct drps_err *err);

/*
 * The next piece of the current file into *text (own by the caller, capacity *cap without the pad,
 * kept from call to call): *n bytes read, of which the first *lines_end are whole lines. *last:
 * nothing of the file lies beyond *n. The caller takes any number of the whole lines and hands the
 * rest to drps_chunks_keep().
 */
DRPS_MUST_CHECK
int drps_chunks_fill(struct drps_chunks *c, char **text, size_t *cap, size_t *n, size_t *lines_end,
                     int *last, struct drps_err *err);
DRPS_MUST_CHECK
int drps_chunks_keep(struct drps_chunks *c, const char *rest, size_t n, struct drps_err *err);

#endif
