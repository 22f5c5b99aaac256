/*
 * Convolution as a product of matrices: the K x K pixels that a filter sees are copied to a row,
 * one for each pixel of the result, and `full N` of these rows is the result. Rows are made for
 * some thousand pixels at a time, of one sample or of several.
 *
 * Source: Chellapilla, Puri and Simard, "High Performance Convolutional Neural Networks for
 * Document Processing" (2006), section 3.
 */
#include <string.h>

#include "base/kernel/drps_level.h"
#include "engine/model/layers/gemm.h"
#include "engine/model/layers/image.h"

enum { ROOM = 1 << 20 }; /* floats of rows that are made at a time, but of one row at least */

/* Floats that a filter sees. */
static size_t row_floats(const struct drps_layers *l, const struct drps_layer *y)
{
    return (size_t)y->kernel * y->kernel * l->layers[y->input[0]].each;
}

/* Rows that are made at a time for so many samples. */
static size_t rows_of(const struct drps_layers *l, const struct drps_layer *y, size_t samples)
{
    const size_t most = ROOM / row_floats(l, y), all = samples * y->parts;
    return all < most ? all : most ? most : 1;
}

/* A row of pixels within what a filter sees: `n` floats that are there, with zeros around them. */
struct run {
    size_t before, n, after;
    size_t at; /* where the n floats are in the image; 0 where n is */
};

/* Where the floats lie that row `ky` of a filter meets in result pixel `pixel`. */
static inline struct run run_of(const struct drps_layer *a, const struct drps_layer *y,
                                size_t pixel, size_t ky)
{
    const long border = (long)y->border, K = (long)y->kernel;
    const long in_y = (long)(pixel / y->columns * y->step + ky) - border;
    const long x = (long)(pixel % y->columns * y->step) - border;
    const long first = x < 0 ? 0 : x;
    const long end = x + K < (long)a->columns ? x + K : (long)a->columns;
    const size_t all = (size_t)K * a->each;
    if (in_y < 0 || in_y >= (long)a->rows) return (struct run){.before = all};
    const size_t before = (size_t)(first - x) * a->each, n = (size_t)(end - first) * a->each;
    return (struct run){.before = before,
                        .n = n,
                        .after = all - before - n,
                        .at = (size_t)(in_y * (long)a->columns + first) * a->each};
}

/* Make the rows of result pixels [first, end), counted through all samples. */
static void make_rows(const struct pass *p, const struct drps_layer *y, size_t first, size_t end)
{
    const struct drps_layer *a = input_of(p, y, 0);
    float *row = p->room;
    for (size_t q = first; q < end; q++) {
        const float *image = out_of(p, a) + q / y->parts * width_of(a);
        for (size_t ky = 0; ky < y->kernel; ky++) {
            const struct run r = run_of(a, y, q % y->parts, ky);
            memset(row, 0, r.before * sizeof(*row));
            memcpy(row + r.before, image + r.at, r.n * sizeof(*row));
            memset(row + r.before + r.n, 0, r.after * sizeof(*row));
            row += r.before + r.n + r.after;
        }
    }
}

/* Add what stands in the rows to the pixels that they were made from. */
static void add_rows(const struct pass *p, const struct drps_layer *y, size_t first, size_t end)
{
    const struct drps_layer *a = input_of(p, y, 0);
    const float *row = p->room;
    for (size_t q = first; q < end; q++) {
        float *image = slope_of(p, a) + q / y->parts * width_of(a);
        for (size_t ky = 0; ky < y->kernel; ky++) {
            const struct run r = run_of(a, y, q % y->parts, ky);
            add_scaled(r.n, 1, row + r.before, image + r.at);
            row += r.before + r.n + r.after;
        }
    }
}

DRPS_KERNEL(size_t, drps_layers_conv_room, (const struct drps_layers *l, size_t samples),
            (l, samples))
{
    size_t most = 0;
    for (const struct drps_layer *y = l->layers; y < l->layers + l->n; y++) {
        if (y->kind != DRPS_LAYER_CONV) continue;
        const size_t floats = rows_of(l, y, samples) * row_floats(l, y);
        most = floats > most ? floats : most;
    }
    return most;
}

DRPS_KERNEL(void, drps_layers_conv, (const struct pass *p, const struct drps_layer *y), (p, y))
{
    const size_t w = row_floats(p->l, y), N = y->each, all = p->n * y->parts;
    const size_t rows = rows_of(p->l, y, p->n);
    const float *weights = p->params + y->first, *b = weights + N * w;
    float *out = out_of(p, y);
    for (size_t q = 0; q < all; q++)
        memcpy(out + q * N, b, N * sizeof(*out));
    for (size_t q = 0; q < all; q += rows) {
        const size_t n = all - q < rows ? all - q : rows;
        make_rows(p, y, q, q + n);
        drps_layers_product(n, w, N, p->room, weights, out + q * N);
    }
}

DRPS_KERNEL(void, drps_layers_conv_back,
            (const struct pass *p, const struct drps_layer *y, float *grads), (p, y, grads))
{
    const size_t w = row_floats(p->l, y), N = y->each, all = p->n * y->parts;
    const size_t rows = rows_of(p->l, y, p->n);
    const float *slope = slope_of(p, y);
    float *of_weights = grads + y->first, *of_b = of_weights + N * w;
    for (size_t q = 0; q < all; q++)
        add_scaled(N, 1, slope + q * N, of_b);
    for (size_t q = 0; q < all; q += rows) {
        const size_t n = all - q < rows ? all - q : rows;
        make_rows(p, y, q, q + n);
        drps_layers_product_weights(n, w, N, slope + q * N, p->room, of_weights);
        if (is_data(input_of(p, y, 0))) continue;
        memset(p->room, 0, n * w * sizeof(*p->room));
        drps_layers_product_back(n, w, N, slope + q * N, p->params + y->first, p->room);
        add_rows(p, y, q, q + n);
    }
}
