/* The inner product of two rows' factors, summed in an order that depends on their number alone.
 * Private to engine/model/ and its folders. */
#ifndef DRPS_ENGINE_MODEL_DOT_H
#define DRPS_ENGINE_MODEL_DOT_H

#include <stddef.h>
#include <string.h>

#include "base/kernel/drps_vector_floats.h"

enum {
    DRPS_DOT_WIDTH = DRPS_VECTOR_FLOATS < 8 ? DRPS_VECTOR_FLOATS : 8,
    DRPS_DOT_PARTS = 16 / DRPS_DOT_WIDTH
};

typedef float drps_dot_vec __attribute__((vector_size(DRPS_DOT_WIDTH * sizeof(float))));
typedef float drps_dot_vec4 __attribute__((vector_size(16)));

/* The sum of a vector by halves: the order is fixed by this function, and short. */
DRPS_INLINE float drps_dot_total(const drps_dot_vec *v)
{
    drps_dot_vec4 low, high;
    memcpy(&low, v, sizeof(low));
    memcpy(&high, (const char *)v + sizeof(*v) - sizeof(high), sizeof(high));
    if (DRPS_DOT_WIDTH == 8) low += high;
    return (low[0] + low[2]) + (low[1] + low[3]);
}

/* <u, v> of n floats, `run` at a time: 8 or 16. These elements are summed by halves, too. */
DRPS_INLINE float drps_dot_by(size_t run, size_t n, const float *restrict u,
                              const float *restrict v)
{
    drps_dot_vec sum[DRPS_DOT_PARTS] = {{0}}, x, y;
    for (size_t f = 0; f + run <= n; f += run)
#pragma GCC unroll 4
        for (size_t p = 0; p < run / DRPS_DOT_WIDTH; p++) {
            memcpy(&x, u + f + p * DRPS_DOT_WIDTH, sizeof(x));
            memcpy(&y, v + f + p * DRPS_DOT_WIDTH, sizeof(y));
            sum[p] += x * y;
        }
#pragma GCC unroll 4
    for (size_t parts = run / DRPS_DOT_WIDTH / 2; parts; parts /= 2)
#pragma GCC unroll 4
        for (size_t p = 0; p < parts; p++)
            sum[p] += sum[p + parts];
    return drps_dot_total(&sum[0]);
}

/* <u, v>; the number of factors is a constant wherever this is hot. */
DRPS_INLINE float drps_dot(size_t factors, const float *restrict u, const float *restrict v)
{
    float rest = 0;
    if (factors == 8) return drps_dot_by(8, 8, u, v);
    for (size_t f = factors / 16 * 16; f < factors; f++)
        rest += u[f] * v[f];
    return factors < 16 ? rest : drps_dot_by(16, factors, u, v) + rest;
}

#endif
