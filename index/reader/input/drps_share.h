/*
 * Shares of plain text: which bytes of a list of files each of several readers reads, so that
 * together they read every line once. Needs base/ for files.
 *
 * The list is one run of bytes, file after file. It is cut into equal pieces; a line belongs to the
 * share in which it begins, and so does a compressed file as a whole. Shares are contiguous and may
 * be empty. Where a share begins and ends is the same whoever asks.
 */
#ifndef DRPS_READER_INPUT_SHARE_H
#define DRPS_READER_INPUT_SHARE_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"

/* A byte of a list of n files; {n, 0} is its end. */
struct drps_share_place {
    size_t path;
    uint64_t byte; /* below the file's size */
};

/* What lies from one place up to another: a line begins at both. */
struct drps_reader_share {
    struct drps_share_place begin, end;
    uint64_t lines; /* of the file, before `begin`; 0 as dealt: see drps_reader_share_lines() */
    uint64_t bytes; /* of files, as they are */
};

/*
 * Deal the files paths[0 .. n) to `shares` readers, of which this is number `share`.
 * DRPS_E_CONFIG: a path is standard input or a pipe, which cannot be shared.
 */
DRPS_MUST_CHECK
int drps_reader_share(const struct drps_io *io, const char *const *paths, size_t n, uint32_t share,
                      uint32_t shares, struct drps_reader_share *out, struct drps_err *err);

/*
 * Count the line feeds of a file in bytes [from, to), which ends with the file (to UINT64_MAX: all
 * of it). share.lines are those of [0, share.begin.byte) of its first file: they can also be summed
 * up from what others count of the shares before.
 */
DRPS_MUST_CHECK
int drps_reader_share_lines(const struct drps_io *io, const char *path, uint64_t from, uint64_t to,
                            uint64_t *lines_out, struct drps_err *err);

#endif
