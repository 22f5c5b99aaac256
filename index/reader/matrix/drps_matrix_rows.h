/* Reads a matrix of a program, row by row: what it says is checked before it is used. Shared with
 * the layers above. */
#ifndef DRPS_INDEX_READER_MATRIX_ROWS_H
#define DRPS_INDEX_READER_MATRIX_ROWS_H

#include <stddef.h>

#include "base/drps_err.h"
#include "index/reader/matrix/drps_matrix.h"

/* Check what does not take looking at all entries: arrays that are needed are there, and types are
 * known. DRPS_E_CONFIG. */
DRPS_MUST_CHECK
int drps_matrix_check(const struct drps_matrix *m, struct drps_err *err);

/* Where row i lies among the entries. DRPS_E_FORMAT: starts decrease, or lie beyond the entries. */
DRPS_MUST_CHECK
int drps_matrix_row(const struct drps_matrix *m, uint64_t i, uint64_t *first_out, uint64_t *n_out,
                    struct drps_err *err);

/* Entry k, of sample i for the text: its column and its value. DRPS_E_FORMAT. */
DRPS_MUST_CHECK
int drps_matrix_entry(const struct drps_matrix *m, uint64_t i, uint64_t k, uint64_t *column_out,
                      float *value_out, struct drps_err *err);

/* Element i of an array that is there: as a number; as an integer, for arrays of I32 and I64. */
double drps_array_real(const struct drps_array *a, uint64_t i);
int64_t drps_array_integer(const struct drps_array *a, uint64_t i);

/* 1: the array has integers. */
int drps_array_has_integers(const struct drps_array *a);

#endif
