/*
 * Entries of samples as a matrix: a value for each sample and row, 0 where the sample has no entry.
 * Where samples have nearly all rows, that takes fewer bytes than values with their indices.
 */
#ifndef DRPS_INDEX_PLAN_CODEC_MATRIX_H
#define DRPS_INDEX_PLAN_CODEC_MATRIX_H

#include <stddef.h>
#include <stdint.h>

/* The rows of the matrix's columns are first, first + 1, ..., each below 65536. */
struct drps_matrix_shape {
    size_t samples, columns, nnz;
    uint16_t first;
};

/*
 * Fill matrix [samples][columns] from entries, which have rows local [nnz], increasing within a
 * sample, and values [nnz]; sample s has entries starts[s] to starts[s + 1] - 1, or, where starts
 * is NULL, per_sample of them. Returns 0 if an entry has the value 0, which a matrix cannot say.
 */
int drps_matrix_encode(const struct drps_matrix_shape *shape, const uint32_t *starts,
                       uint32_t per_sample, const uint16_t *local, const float *values,
                       float *matrix);

/* The entries again: starts [samples + 1] is filled, or, where it is NULL, each sample must have
 * per_sample entries. Returns 0 if there are not as many, or not nnz in all. */
int drps_matrix_decode(const struct drps_matrix_shape *shape, const float *matrix, uint32_t *starts,
                       uint32_t per_sample, uint16_t *local, float *values);

#endif
