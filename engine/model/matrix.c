/*
 * Scores of a matrix: each row has a float for each of J outputs, and a sample's scores are sums of
 * its rows. Loops go over the outputs, which lie side by side; entries are added in their order,
 * so that a sample's scores do not depend on the range that they are computed in.
 */
#include <string.h>

#include "engine/model/kernels.h"

/* sums [n] += x * row. */
DRPS_INLINE void add_row(size_t n, float x, const float *restrict row, float *restrict sums)
{
#pragma omp simd
    for (size_t c = 0; c < n; c++)
        sums[c] += x * row[c];
}

DRPS_INLINE void forward(int wide, int valued, const struct drps_batch *b, size_t outputs,
                         const float *bias, size_t first, size_t last, const float *params,
                         float *scores)
{
    for (size_t s = first; s < last; s++) {
        float *sums = scores + s * outputs;
        const size_t end = drps_batch_start(b, s + 1);
        if (bias)
            memcpy(sums, bias, outputs * sizeof(*sums));
        else
            memset(sums, 0, outputs * sizeof(*sums));
        for (size_t j = drps_batch_start(b, s); j < end; j++)
            add_row(outputs, drps_value_at(b, valued, j),
                    params + drps_local_at(b, wide, j) * outputs, sums);
    }
}

DRPS_INLINE void backward(int wide, int valued, const struct drps_batch *b, size_t outputs,
                          size_t first, size_t last, const float *slopes, float *grads)
{
    for (size_t s = first; s < last; s++) {
        const float *of_sample = slopes + (s - first) * outputs;
        const size_t end = drps_batch_start(b, s + 1);
        for (size_t j = drps_batch_start(b, s); j < end; j++)
            add_row(outputs, drps_value_at(b, valued, j), of_sample,
                    grads + drps_local_at(b, wide, j) * outputs);
    }
}

void drps_matrix_forward(const struct drps_batch *b, size_t outputs, const float *bias,
                         size_t first, size_t last, const float *params, float *scores)
{
    DRPS_BY_FORM(b, forward, b, outputs, bias, first, last, params, scores);
}

void drps_matrix_backward(const struct drps_batch *b, size_t outputs, size_t first, size_t last,
                          const float *slopes, float *grads)
{
    DRPS_BY_FORM(b, backward, b, outputs, first, last, slopes, grads);
}

void drps_matrix_bias_backward(size_t outputs, size_t samples, const float *slopes, float *grads)
{
    for (size_t s = 0; s < samples; s++)
        add_row(outputs, 1.0f, slopes + s * outputs, grads);
}
