/* What takes lines into a piece of samples: room for them, and bad lines. Private to
 * index/reader/pieces/. */
#ifndef DRPS_READER_PIECES_PIECES_H
#define DRPS_READER_PIECES_PIECES_H

#include "index/reader/drps_parse.h"

/*
 * Choose how many of the n bytes of whole lines in s->text are parsed now, and make room for what
 * they yield: all, or, where the arrays would exceed the budget, the lines in the first half, and
 * so on. DRPS_E_MEMORY_BUDGET where a line alone does.
 */
DRPS_MUST_CHECK
int drps_pieces_choose_lines(const struct drps_reader *r, struct drps_samples *s, size_t n,
                             size_t *taken_out, struct drps_err *err);

/* The same for *n samples of a format that is not text, with up to so many features each. */
DRPS_MUST_CHECK
int drps_pieces_choose_samples(const struct drps_reader *r, struct drps_samples *s, size_t *n,
                               size_t each, struct drps_err *err);

/* Tell a bad line, or forgive it. `number` is the line's in its file. Returns 0 where it is
 * skipped, or DRPS_E_FORMAT. */
DRPS_MUST_CHECK
int drps_pieces_handle_bad(struct drps_reader *r, const struct drps_parse *ps, const char *line,
                           const char *end, uint64_t number, struct drps_err *err);

#endif
