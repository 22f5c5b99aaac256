/*
 * Matrix factorization with biases (Koren, Bell, Volinsky, Computer 2009): score = intercept + bias
 * of the user + bias of the item + <user's factors, item's factors>. A sample with one known row
 * has its bias only.
 *
 * A value x scales its row wherever the row appears, so that two entries score as in a
 * factorization machine.
 */
#include "engine/model/kernels.h"

#include <string.h>

#include "base/drps_vector_floats.h"

enum { WIDTH = DRPS_VECTOR_FLOATS < 8 ? DRPS_VECTOR_FLOATS : 8, PARTS = 16 / WIDTH };

typedef float vec __attribute__((vector_size(WIDTH * sizeof(float))));
typedef float vec4 __attribute__((vector_size(16)));

/* The sum of a vector by halves: the order is fixed by this function, and short. */
DRPS_INLINE float total(const vec *v)
{
    vec4 low, high;
    memcpy(&low, v, sizeof(low));
    memcpy(&high, (const char *)v + sizeof(*v) - sizeof(high), sizeof(high));
    if (WIDTH == 8) low += high;
    return (low[0] + low[2]) + (low[1] + low[3]);
}

/* <u, v> of n floats, `run` at a time: 8 or 16. These elements are summed by halves, too. */
DRPS_INLINE float dot_by(size_t run, size_t n, const float *restrict u, const float *restrict v)
{
    vec sum[PARTS] = {{0}}, x, y;
    for (size_t f = 0; f + run <= n; f += run)
#pragma GCC unroll 4
        for (size_t p = 0; p < run / WIDTH; p++) {
            memcpy(&x, u + f + p * WIDTH, sizeof(x));
            memcpy(&y, v + f + p * WIDTH, sizeof(y));
            sum[p] += x * y;
        }
#pragma GCC unroll 4
    for (size_t parts = run / WIDTH / 2; parts; parts /= 2)
#pragma GCC unroll 4
        for (size_t p = 0; p < parts; p++)
            sum[p] += sum[p + parts];
    return total(&sum[0]);
}

/* <u, v>; the number of factors is a constant in the instances below. */
DRPS_INLINE float dot_of(size_t factors, const float *restrict u, const float *restrict v)
{
    float rest = 0;
    if (factors == 8) return dot_by(8, 8, u, v);
    for (size_t f = factors / 16 * 16; f < factors; f++)
        rest += u[f] * v[f];
    return factors < 16 ? rest : dot_by(16, factors, u, v) + rest;
}

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
            score += xu * u[0] + xv * v[0] + xu * xv * dot_of(factors, u + 1, v + 1);
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

void drps_mf_forward(const struct drps_batch *b, size_t factors, float bias, size_t first,
                     size_t last, const float *params, float *scores)
{
    BY_FACTORS(forward, bias, first, last, params, scores)
}

void drps_mf_backward(const struct drps_batch *b, size_t factors, size_t first, size_t last,
                      const float *slopes, const float *params, float *grads)
{
    BY_FACTORS(backward, first, last, slopes, params, grads)
}
