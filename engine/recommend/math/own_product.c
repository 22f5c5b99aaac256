/*
 * drps's own product of two blocks. Items are taken PANEL at a time and turned, so that a vector
 * has the same factor of neighbouring items; TILE queries meet them at once, whose sums stay in
 * registers.
 */
#include <string.h>

#include "base/kernel/drps_level.h"
#include "base/kernel/drps_vector_floats.h"
#include "engine/recommend/math/drps_products.h"

enum {
    WIDTH = DRPS_VECTOR_FLOATS,
    VECTORS = 2,                 /* of a panel */
    PANEL = WIDTH * VECTORS,     /* items */
    TILE = WIDTH == 16 ? 12 : 6, /* queries: sums fill the registers, but for a few */
};

DRPS_VECTOR_TYPES(vec, vec_at, WIDTH);

/* sums of `tile` queries, a constant, with a panel [d][PANEL], of which `n` items are there. */
DRPS_INLINE void meet(size_t tile, const float *queries, size_t d, const float *panel, size_t n,
                      float *scores, size_t stride)
{
    vec sums[TILE][VECTORS] = {{{0}}};
    for (size_t k = 0; k < d; k++) {
        const vec a = *(const vec_at *)(panel + k * PANEL);
        const vec b = *(const vec_at *)(panel + k * PANEL + WIDTH);
#pragma GCC unroll 12
        for (size_t i = 0; i < tile; i++) {
            sums[i][0] += queries[i * d + k] * a;
            sums[i][1] += queries[i * d + k] * b;
        }
    }
#pragma GCC unroll 12
    for (size_t i = 0; i < tile; i++) {
        if (n == PANEL) {
            *(vec_at *)(scores + i * stride) = sums[i][0];
            *(vec_at *)(scores + i * stride + WIDTH) = sums[i][1];
        } else {
            memcpy(scores + i * stride, sums[i], n * sizeof(*scores));
        }
    }
}

/* Factor k of item j becomes panel[k][j]; items from n on are 0. */
static void turn(const float *items, size_t n, size_t d, float *restrict panel)
{
    if (n < PANEL) memset(panel, 0, d * PANEL * sizeof(*panel));
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; k < d; k++)
            panel[k * PANEL + j] = items[j * d + k];
}

DRPS_KERNEL(size_t, drps_product_scratch, (size_t d), (d))
{
    return d * PANEL * sizeof(float);
}

DRPS_KERNEL(void, drps_product_own,
            (const float *queries, size_t q, const float *items, size_t n, size_t d, float *scores,
             void *scratch),
            (queries, q, items, n, d, scores, scratch))
{
    for (size_t j = 0; j < n; j += PANEL) {
        const size_t some = n - j < PANEL ? n - j : PANEL;
        size_t i = 0;
        turn(items + j * d, some, d, scratch);
        for (; i + TILE <= q; i += TILE)
            meet(TILE, queries + i * d, d, scratch, some, scores + i * n + j, n);
        for (; i < q; i++)
            meet(1, queries + i * d, d, scratch, some, scores + i * n + j, n);
    }
}
