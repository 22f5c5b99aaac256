/*
 * drps's own products of matrices, for builds without OpenBLAS and for narrow layers. What the
 * innermost loop reads again and again stays in L1: some rows of the weights, or one row of their
 * gradient. The order of each sum is fixed by the sizes, and for a sample's floats by w and N.
 */
#include "base/kernel/drps_level.h"
#include "engine/model/layers/gemm.h"
#include "engine/model/math/drps_dot.h"

enum {
    BLOCK = 8,   /* rows of weights that meet all samples */
    TOGETHER = 4 /* rows that are added at once, so that the sum is loaded and stored less often */
};

/* to [n] += the sum of `rows` <= TOGETHER rows of [n], each times its x, which are `step` apart. */
DRPS_INLINE void add_rows(size_t rows, size_t n, const float *x, size_t step,
                          const float *restrict from, float *restrict to)
{
    if (rows == TOGETHER) {
        const float x0 = x[0], x1 = x[step], x2 = x[2 * step], x3 = x[3 * step];
        for (size_t k = 0; k < n; k++)
            to[k] +=
                (x0 * from[k] + x1 * from[n + k]) + (x2 * from[2 * n + k] + x3 * from[3 * n + k]);
        return;
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < n; k++)
            to[k] += x[r * step] * from[r * n + k];
}

static size_t at_most(size_t n, size_t most)
{
    return n < most ? n : most;
}

DRPS_KERNEL(void, drps_layers_own_product,
            (size_t n, size_t w, size_t N, const float *a, const float *weights, float *b),
            (n, w, N, a, weights, b))
{
    for (size_t j = 0; j < N; j += BLOCK) {
        const size_t end = j + at_most(N - j, BLOCK);
        for (size_t s = 0; s < n; s++)
            for (size_t k = j; k < end; k++)
                b[s * N + k] += drps_dot(w, a + s * w, weights + k * w);
    }
}

DRPS_KERNEL(void, drps_layers_own_weights,
            (size_t n, size_t w, size_t N, const float *b, const float *a, float *weights),
            (n, w, N, b, a, weights))
{
    for (size_t k = 0; k < N; k++)
        for (size_t s = 0; s < n; s += TOGETHER)
            add_rows(at_most(n - s, TOGETHER), w, b + s * N + k, N, a + s * w, weights + k * w);
}

DRPS_KERNEL(void, drps_layers_own_back,
            (size_t n, size_t w, size_t N, const float *b, const float *weights, float *a),
            (n, w, N, b, weights, a))
{
    for (size_t k = 0; k < N; k += TOGETHER)
        for (size_t s = 0; s < n; s++)
            add_rows(at_most(N - k, TOGETHER), w, b + s * N + k, 1, weights + k * w, a + s * w);
}
