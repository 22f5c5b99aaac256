/* Reads the first lines of a file for what the format learns from them. */
#ifndef DRPS_READER_PIECES_BEGINNING_H
#define DRPS_READER_PIECES_BEGINNING_H

#include "base/drps_err.h"
#include "index/reader/drps_reader.h"

/*
 * See how the file begins whose first block was read: its header, its separator, and what kind its
 * first label is. Whoever reads on in it, and other files, has to know. No sample is kept.
 * DRPS_E_CONFIG where the first line is longer than the block.
 */
DRPS_MUST_CHECK
int drps_reader_see_beginning(struct drps_reader *r, struct drps_err *err);

#endif
