/*
 * Linear scores: one gathered sum a sample forwards, one scattered addition an entry backwards.
 *
 * Both passes are bound by loads and stores, not by arithmetic: scalar loads with independent
 * accumulators are faster than gather instructions on current x86 cores. The sum of a sample does
 * not depend on the range it is computed in.
 */
#include "engine/model/kernels.h"

/* Sum over entries [j, end) of x * params[l * dim]. */
DRPS_INLINE float dot(int wide, int valued, const struct drps_batch *b, size_t dim, size_t j,
                      size_t end, const float *restrict params)
{
    float a0 = 0, a1 = 0, a2 = 0, a3 = 0;

    for (; j + 4 <= end; j += 4) {
        a0 += drps_value_at(b, valued, j) * params[drps_local_at(b, wide, j) * dim];
        a1 += drps_value_at(b, valued, j + 1) * params[drps_local_at(b, wide, j + 1) * dim];
        a2 += drps_value_at(b, valued, j + 2) * params[drps_local_at(b, wide, j + 2) * dim];
        a3 += drps_value_at(b, valued, j + 3) * params[drps_local_at(b, wide, j + 3) * dim];
    }
    for (; j < end; j++)
        a0 += drps_value_at(b, valued, j) * params[drps_local_at(b, wide, j) * dim];
    return (a0 + a1) + (a2 + a3);
}

DRPS_INLINE void forward(int wide, int valued, const struct drps_batch *b, size_t dim, float bias,
                         size_t first, size_t last, const float *restrict params,
                         float *restrict scores)
{
    for (size_t s = first; s < last; s++)
        scores[s] = bias + dot(wide, valued, b, dim, drps_batch_start(b, s),
                               drps_batch_start(b, s + 1), params);
}

DRPS_INLINE void backward(int wide, int valued, const struct drps_batch *b, size_t dim,
                          size_t first, size_t last, const float *restrict slopes,
                          float *restrict grads)
{
    for (size_t s = first; s < last; s++) {
        const float g = slopes[s - first];
        const size_t end = drps_batch_start(b, s + 1);
        for (size_t j = drps_batch_start(b, s); j < end; j++)
            grads[drps_local_at(b, wide, j) * dim] += g * drps_value_at(b, valued, j);
    }
}

void drps_linear_forward(const struct drps_batch *b, size_t dim, float bias, size_t first,
                         size_t last, const float *params, float *scores)
{
    if (dim == 1)
        DRPS_BY_FORM(b, forward, b, 1, bias, first, last, params, scores);
    else
        DRPS_BY_FORM(b, forward, b, dim, bias, first, last, params, scores);
}

void drps_linear_backward(const struct drps_batch *b, size_t dim, size_t first, size_t last,
                          const float *slopes, float *grads)
{
    if (dim == 1)
        DRPS_BY_FORM(b, backward, b, 1, first, last, slopes, grads);
    else
        DRPS_BY_FORM(b, backward, b, dim, first, last, slopes, grads);
}
