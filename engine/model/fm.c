/*
 * Factorization machines (Rendle, ICDM 2010), Eq. 1 with the reformulation of Lemma 3.1: the sum
 * over all pairs of entries <v_i, v_j> x_i x_j is half of |sum of x v|^2 - sum of |x v|^2, which
 * costs O(k) an entry.
 *
 * The derivative by v_j is slope * x_j * (S - x_j v_j), S = sum of x v, so the forward pass keeps S
 * of each sample. 4, 8, 16, 32 and 64 factors take one pass with S in registers; another number is
 * cut into passes over 16, 4 and 1 factors after a pass over the weights.
 */
#include "engine/model/kernels.h"

#include <string.h>

#include "base/kernel/drps_level.h"
#include "base/kernel/drps_vector_floats.h"

#define ELEMENTS 4
#include "engine/model/fm_passes.h"
#define ELEMENTS 8
#include "engine/model/fm_passes.h"
#define ELEMENTS 16
#include "engine/model/fm_passes.h"

/* One factor: the remainder of an unusual number of them. */
DRPS_INLINE void forward_1(int wide, int valued, const struct drps_batch *b, size_t factors,
                           size_t factor, size_t first, size_t last, const float *restrict params,
                           float *restrict scores, float *restrict sums)
{
    for (size_t s = first; s < last; s++) {
        float sum = 0, squares = 0;
        const size_t end = drps_batch_start(b, s + 1);
        for (size_t j = drps_batch_start(b, s); j < end; j++) {
            const float t = drps_value_at(b, valued, j) *
                            params[drps_local_at(b, wide, j) * (factors + 1) + 1 + factor];
            sum += t;
            squares += t * t;
        }
        sums[(s - first) * factors + factor] = sum;
        scores[s] += 0.5f * (sum * sum - squares);
    }
}

DRPS_INLINE void backward_1(int wide, int valued, const struct drps_batch *b, size_t factors,
                            size_t factor, size_t first, size_t last, const float *restrict slopes,
                            const float *restrict params, const float *restrict sums,
                            float *restrict grads)
{
    for (size_t s = first; s < last; s++) {
        const float g = slopes[s - first];
        const float sum = sums[(s - first) * factors + factor];
        const size_t end = drps_batch_start(b, s + 1);
        for (size_t j = drps_batch_start(b, s); j < end; j++) {
            const size_t at = drps_local_at(b, wide, j) * (factors + 1) + 1 + factor;
            const float x = drps_value_at(b, valued, j);
            grads[at] += g * x * (sum - x * params[at]);
        }
    }
}

DRPS_KERNEL(void, drps_fm_forward,
            (const struct drps_batch *b, size_t factors, float bias, size_t first, size_t last,
             const float *params, float *scores, float *sums),
            (b, factors, bias, first, last, params, scores, sums))
{
    size_t f = 0;

    switch (factors) {
    case 4:
        DRPS_BY_FORM(b, forward_4, 1, 1, b, 4, 0, bias, first, last, params, scores, sums);
        return;
    case 8:
        DRPS_BY_FORM(b, forward_8, 1, 1, b, 8, 0, bias, first, last, params, scores, sums);
        return;
    case 16:
        DRPS_BY_FORM(b, forward_16, 1, 1, b, 16, 0, bias, first, last, params, scores, sums);
        return;
    case 32:
        DRPS_BY_FORM(b, forward_16, 2, 1, b, 32, 0, bias, first, last, params, scores, sums);
        return;
    case 64:
        DRPS_BY_FORM(b, forward_16, 4, 1, b, 64, 0, bias, first, last, params, scores, sums);
        return;
    default:
        break;
    }
    drps_linear_forward(b, factors + 1, bias, first, last, params, scores);
    for (; f + 16 <= factors; f += 16)
        DRPS_BY_FORM(b, forward_16, 1, 0, b, factors, f, bias, first, last, params, scores, sums);
    for (; f + 4 <= factors; f += 4)
        DRPS_BY_FORM(b, forward_4, 1, 0, b, factors, f, bias, first, last, params, scores, sums);
    for (; f < factors; f++)
        DRPS_BY_FORM(b, forward_1, b, factors, f, first, last, params, scores, sums);
}

DRPS_KERNEL(void, drps_fm_backward,
            (const struct drps_batch *b, size_t factors, size_t first, size_t last,
             const float *slopes, const float *params, const float *sums, float *grads),
            (b, factors, first, last, slopes, params, sums, grads))
{
    size_t f = 0;

    switch (factors) {
    case 4:
        DRPS_BY_FORM(b, backward_4, 1, 1, b, 4, 0, first, last, slopes, params, sums, grads);
        return;
    case 8:
        DRPS_BY_FORM(b, backward_8, 1, 1, b, 8, 0, first, last, slopes, params, sums, grads);
        return;
    case 16:
        DRPS_BY_FORM(b, backward_16, 1, 1, b, 16, 0, first, last, slopes, params, sums, grads);
        return;
    case 32:
        DRPS_BY_FORM(b, backward_16, 2, 1, b, 32, 0, first, last, slopes, params, sums, grads);
        return;
    case 64:
        DRPS_BY_FORM(b, backward_16, 4, 1, b, 64, 0, first, last, slopes, params, sums, grads);
        return;
    default:
        break;
    }
    drps_linear_backward(b, factors + 1, first, last, slopes, grads);
    for (; f + 16 <= factors; f += 16)
        DRPS_BY_FORM(b, backward_16, 1, 0, b, factors, f, first, last, slopes, params, sums, grads);
    for (; f + 4 <= factors; f += 4)
        DRPS_BY_FORM(b, backward_4, 1, 0, b, factors, f, first, last, slopes, params, sums, grads);
    for (; f < factors; f++)
        DRPS_BY_FORM(b, backward_1, b, factors, f, first, last, slopes, params, sums, grads);
}
