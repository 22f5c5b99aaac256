/*
 * Matrix factorization with biases (Koren, Bell, Volinsky, Computer 2009): score = intercept + bias
 * of the user + bias of the item + <user's factors, item's factors>. A sample with one known row
 * has its bias only.
 *
 * A value x scales its row wherever the row appears, so that two entries score as in a
 * factorization machine.
 */
#include "engine/model/math/drps_dot.h"
#include "base/kernel/drps_level.h"
#include "engine/model/kernels.h"

/* The number of factors is a constant in the instances below. */
DRPS_INLINE void forward(int wide, int valued, const struct drps_batch *b, size_t factors,
                         float bias, size_t first, size_t last, const float *restrict params,
                         float *restrict scores)
{
    for (size_t s = first; s < last; s++) {
        const size_t start = drps_batch_start(b, s), end = drps_batch_start(b, s + 1);
        float score = bias;

        if (end - start == 2) {
            const float *u = params + drps_local_at(b, wide, start) * (factors + 1);
            const float *v = params + drps_local_at(b, wide, start + 1) * (factors + 1);
            const float xu = drps_value_at(b, valued, start),
                        xv = drps_value_at(b, valued, start + 1);
            score += xu * u[0] + xv * v[0] + xu * xv * drps_dot(factors, u + 1, v + 1);
        } else {
            for (size_t j = start; j < end; j++)
                score +=
                    drps_value_at(b, valued, j) * params[drps_local_at(b, wide, j) * (factors + 1)];
        }
        scores[s] = score;
    }
}

DRPS_INLINE void backward(int wide, int valued, const struct drps_batch *b, size_t factors,
                          size_t first, size_t last, const float *restrict slopes,
                          const float *restrict params, float *restrict grads)
{
    for (size_t s = first; s < last; s++) {
        const size_t start = drps_batch_start(b, s), end = drps_batch_start(b, s + 1);
        const float g = slopes[s - first];

        for (size_t j = start; j < end; j++)
            grads[drps_local_at(b, wide, j) * (factors + 1)] += g * drps_value_at(b, valued, j);
        if (end - start != 2) continue;

        const size_t u = drps_local_at(b, wide, start) * (factors + 1);
        const size_t v = drps_local_at(b, wide, start + 1) * (factors + 1);
        const float gx = g * drps_value_at(b, valued, start) * drps_value_at(b, valued, start + 1);
#pragma omp simd
        for (size_t f = 1; f <= factors; f++)
            grads[u + f] += gx * params[v + f];
#pragma omp simd
        for (size_t f = 1; f <= factors; f++)
            grads[v + f] += gx * params[u + f];
    }
}

#define BY_FACTORS(body, ...)                                                                      \
    switch (factors) {                                                                             \
    case 4:                                                                                        \
        DRPS_BY_FORM(b, body, b, 4, __VA_ARGS__);                                                  \
        break;                                                                                     \
    case 8:                                                                                        \
        DRPS_BY_FORM(b, body, b, 8, __VA_ARGS__);                                                  \
        break;                                                                                     \
    case 16:                                                                                       \
        DRPS_BY_FORM(b, body, b, 16, __VA_ARGS__);                                                 \
        break;                                                                                     \
    case 32:                                                                                       \
        DRPS_BY_FORM(b, body, b, 32, __VA_ARGS__);                                                 \
        break;                                                                                     \
    case 64:                                                                                       \
        DRPS_BY_FORM(b, body, b, 64, __VA_ARGS__);                                                 \
        break;                                                                                     \
    default:                                                                                       \
        DRPS_BY_FORM(b, body, b, factors, __VA_ARGS__);                                            \
        break;                                                                                     \
    }

DRPS_KERNEL(void, drps_mf_forward,
            (const struct drps_batch *b, size_t factors, float bias, size_t first, size_t last,
             const float *params, float *scores),
            (b, factors, bias, first, last, params, scores)){
    BY_FACTORS(forward, bias, first, last, params, scores)}

DRPS_KERNEL(void, drps_mf_backward,
            (const struct drps_batch *b, size_t factors, size_t first, size_t last,
             const float *slopes, const float *params, float *grads),
            (b, factors, first, last, slopes, params, grads))
{
    BY_FACTORS(backward, first, last, slopes, params, grads)
}
