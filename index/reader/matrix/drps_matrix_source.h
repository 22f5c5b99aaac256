/*
 * A matrix as the input of a reader, in place of text: the samples are those of the text of the
 * same numbers, libsvm's, libffm's, or of ratings. Private to index/reader/.
 */
#ifndef DRPS_INDEX_READER_MATRIX_SOURCE_H
#define DRPS_INDEX_READER_MATRIX_SOURCE_H

#include "index/reader/parse.h"

/* Check the matrix of the reader's options, whose format is set. DRPS_E_CONFIG. */
DRPS_MUST_CHECK
int drps_matrix_source_open(struct drps_reader *r, struct drps_err *err);

/* As drps_reader_next(). */
DRPS_MUST_CHECK
int drps_matrix_source_next(struct drps_reader *r, struct drps_samples *out, struct drps_err *err);

#endif
