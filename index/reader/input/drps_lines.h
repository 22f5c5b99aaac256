/*
 * Lines of the input before it is read, for formats that have to know more than its first block.
 * Needs drps_chunks.h for the text.
 */
#ifndef DRPS_READER_INPUT_LINES_H
#define DRPS_READER_INPUT_LINES_H

#include "index/reader/input/drps_chunks.h"

struct drps_span {
    const char *p, *end;
};

/* The next line with something on it, without its end; an empty text is the end of the block. */
struct drps_span drps_next_line(const char *p, const char *end);

/* Takes a line with something on it, which it may write into. DRPS_CHUNK_PAD bytes behind its end
 * can be read, and *end is no part of a number. `line` is its number in the file, from 1. */
typedef int (*drps_take_line)(void *ctx, char *p, char *end, uint64_t line, struct drps_err *err);

/*
 * Reads ahead in the file whose first block the chunks have, and calls `take` for each of its first
 * DRPS_FIRST_LINES lines after `skipped` lines, or those in DRPS_FIRST_BYTES. *all_out: the input
 * has no more lines.
 */
enum { DRPS_FIRST_LINES = 1000, DRPS_FIRST_BYTES = 1 << 20 };
DRPS_MUST_CHECK
int drps_lines_first(struct drps_chunks *c, uint64_t skipped, drps_take_line take, void *ctx,
                     int *all_out, struct drps_err *err);

/*
 * Calls `take` for lines of all files, but for the first one of each where `headers` is set: for
 * one of `share` lines that follow on each other, drawn at random; 1: for each. The files are then
 * begun anew, with the first block of the first that is not empty, so that they must be such that
 * can be read twice.
 */
DRPS_MUST_CHECK
int drps_lines_all(struct drps_chunks *c, int headers, uint64_t share, drps_take_line take,
                   void *ctx, struct drps_err *err);

#endif
