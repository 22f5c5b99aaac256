/* Entries of samples to a matrix and back. */
#include "index/plan/codec/drps_matrix.h"

#include <string.h>

int drps_matrix_encode(const struct drps_matrix_shape *shape, const uint32_t *starts,
                       uint32_t per_sample, const uint16_t *local, const float *values,
                       float *matrix)
{
    size_t j = 0;
    memset(matrix, 0, shape->samples * shape->columns * sizeof(*matrix));
    for (size_t s = 0; s < shape->samples; s++) {
        const size_t end = starts ? starts[s + 1] : j + per_sample;
        float *row = matrix + s * shape->columns;
        for (; j < end; j++) {
            if (values[j] == 0) return 0;
            row[local[j] - shape->first] = values[j];
        }
    }
    return 1;
}

/* The entries of a sample that has all of them. */
static void take_whole(const struct drps_matrix_shape *shape, const float *row, uint16_t *local,
                       float *values)
{
    memcpy(values, row, shape->columns * sizeof(*values));
    for (size_t k = 0; k < shape->columns; k++)
        local[k] = (uint16_t)(shape->first + k);
}

static size_t count(const float *row, size_t columns)
{
    size_t n = 0;
    for (size_t k = 0; k < columns; k++)
        n += row[k] != 0;
    return n;
}

int drps_matrix_decode(const struct drps_matrix_shape *shape, const float *matrix, uint32_t *starts,
                       uint32_t per_sample, uint16_t *local, float *values)
{
    size_t j = 0;
    if (starts) starts[0] = 0;
    for (size_t s = 0; s < shape->samples; s++) {
        const float *row = matrix + s * shape->columns;
        const size_t n = count(row, shape->columns);
        if (n > shape->nnz - j || (!starts && n != per_sample)) return 0;
        if (n == shape->columns) {
            take_whole(shape, row, local + j, values + j);
            j += n;
        } else {
            for (size_t k = 0; k < shape->columns; k++) {
                if (row[k] == 0) continue;
                local[j] = (uint16_t)(shape->first + k);
                values[j++] = row[k];
            }
        }
        if (starts) starts[s + 1] = (uint32_t)j;
    }
    return j == shape->nnz;
}
