/*
 * Linear scores: one gathered sum a sample forwards, one scattered addition an entry backwards.
 *
 * Both passes are bound by loads and stores, not by arithmetic: scalar loads with independent
 * accumulators are faster than gather instructions on current x86 cores. The sum of a sample does
 * not depend on the range it is computed in.
 *
 * In a dense batch the values are a matrix, so nothing is gathered: products are added in vectors,
 * in the same order, so that scores and gradients have the same bits.
 */
#include <string.h>

#include "base/kernel/drps_level.h"
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

/* ---- Dense batches ---- */

/* The four sums of dot(). */
DRPS_VECTOR_TYPES(sums, sums_at, 4);
/* Neighbouring gradients. */
DRPS_VECTOR_TYPES(vec, vec_at, DRPS_VECTOR_FLOATS);

enum { AT_ONCE = 4 /* samples whose sums do not wait for each other */ };

/* The scores of `count` samples of n values each; count is constant. */
DRPS_INLINE void dense_scores(size_t count, size_t n, float bias, const float *restrict x,
                              const float *restrict params, float *restrict scores)
{
    sums all[AT_ONCE] = {{0}};
    size_t k = 0;
    for (; k + 4 <= n; k += 4) {
        const sums w = *(const sums_at *)(params + k);
#pragma GCC unroll 4
        for (size_t i = 0; i < count; i++)
            all[i] += *(const sums_at *)(x + i * n + k) * w;
    }
    for (size_t i = 0; i < count; i++) {
        float a[4];
        memcpy(a, &all[i], sizeof(a));
        for (size_t j = k; j < n; j++)
            a[0] += x[i * n + j] * params[j];
        scores[i] = bias + ((a[0] + a[1]) + (a[2] + a[3]));
    }
}

static void dense_forward(const struct drps_batch *b, float bias, size_t first, size_t last,
                          const float *params, float *scores)
{
    const size_t n = b->per_sample;
    const float *of_first = params + b->dense - 1;
    size_t s = first;
    for (; s + AT_ONCE <= last; s += AT_ONCE)
        dense_scores(AT_ONCE, n, bias, b->values + s * n, of_first, scores + s);
    for (; s < last; s++)
        dense_scores(1, n, bias, b->values + s * n, of_first, scores + s);
}

/* The gradients of the rows of one or two vectors, of all samples; vectors is constant. */
DRPS_INLINE void dense_gradients(size_t vectors, size_t n, size_t samples, const float *restrict x,
                                 const float *restrict slopes, float *restrict grads)
{
    vec sum[2];
    for (size_t v = 0; v < vectors; v++)
        sum[v] = *(const vec_at *)(grads + v * DRPS_VECTOR_FLOATS);
    for (size_t s = 0; s < samples; s++)
        for (size_t v = 0; v < vectors; v++)
            sum[v] += slopes[s] * *(const vec_at *)(x + s * n + v * DRPS_VECTOR_FLOATS);
    for (size_t v = 0; v < vectors; v++)
        *(vec_at *)(grads + v * DRPS_VECTOR_FLOATS) = sum[v];
}

static void dense_backward(const struct drps_batch *b, size_t first, size_t last,
                           const float *slopes, float *grads)
{
    const size_t n = b->per_sample, samples = last - first;
    const float *x = b->values + first * n;
    float *of_first = grads + b->dense - 1;
    size_t k = 0;
    for (; k + 2 * DRPS_VECTOR_FLOATS <= n; k += 2 * DRPS_VECTOR_FLOATS)
        dense_gradients(2, n, samples, x + k, slopes, of_first + k);
    for (; k + DRPS_VECTOR_FLOATS <= n; k += DRPS_VECTOR_FLOATS)
        dense_gradients(1, n, samples, x + k, slopes, of_first + k);
    for (size_t s = 0; s < samples; s++)
        for (size_t j = k; j < n; j++)
            of_first[j] += slopes[s] * x[s * n + j];
}

/* ---- All ---- */

DRPS_KERNEL(void, drps_linear_forward,
            (const struct drps_batch *b, size_t dim, float bias, size_t first, size_t last,
             const float *params, float *scores),
            (b, dim, bias, first, last, params, scores))
{
    if (dim == 1 && b->dense)
        dense_forward(b, bias, first, last, params, scores);
    else if (dim == 1)
        DRPS_BY_FORM(b, forward, b, 1, bias, first, last, params, scores);
    else
        DRPS_BY_FORM(b, forward, b, dim, bias, first, last, params, scores);
}

DRPS_KERNEL(void, drps_linear_backward,
            (const struct drps_batch *b, size_t dim, size_t first, size_t last, const float *slopes,
             float *grads),
            (b, dim, first, last, slopes, grads))
{
    if (dim == 1 && b->dense)
        dense_backward(b, first, last, slopes, grads);
    else if (dim == 1)
        DRPS_BY_FORM(b, backward, b, 1, first, last, slopes, grads);
    else
        DRPS_BY_FORM(b, backward, b, dim, first, last, slopes, grads);
}
