/*
 * Scores of a matrix: each row has a float for each of J outputs, and a sample's scores are sums of
 * its rows. Outputs lie side by side and are vectors: passes take as many as fit the registers,
 * which hold a sample's sums, or its slopes, while its rows go by. A sample's scores depend neither
 * on the range that they are computed in nor on how wide the machine's vectors are.
 */
#include <string.h>

#include "base/kernel/drps_level.h"
#include "engine/model/kernels.h"
#include "base/kernel/drps_vector_floats.h"

enum { MATRIX_VECTORS = 4, LEAST_WIDTH = 4 };

/* Outputs [.., + n) of all: forward has bias (or NULL), params and scores; backward slopes and
 * grads. */
struct pass {
    const struct drps_batch *b;
    size_t outputs, n, first, last;
    const float *bias, *params, *slopes;
    float *scores, *grads;
};

#define WIDTH 4
#include "engine/model/matrix_passes.h"
#if DRPS_VECTOR_FLOATS >= 8
#define WIDTH 8
#include "engine/model/matrix_passes.h"
#endif
#if DRPS_VECTOR_FLOATS >= 16
#define WIDTH 16
#include "engine/model/matrix_passes.h"
#endif

/* Vectors are no wider than there are outputs. */
static size_t width_of(size_t outputs)
{
    size_t width = DRPS_VECTOR_FLOATS;
    while (width > outputs && width > LEAST_WIDTH)
        width /= 2;
    return width;
}

static void run_pass(const struct pass *p, size_t width, int backward)
{
    switch (width) {
#if DRPS_VECTOR_FLOATS >= 16
    case 16:
        backward ? backward_pass_16(p) : forward_pass_16(p);
        break;
#endif
#if DRPS_VECTOR_FLOATS >= 8
    case 8:
        backward ? backward_pass_8(p) : forward_pass_8(p);
        break;
#endif
    default:
        backward ? backward_pass_4(p) : forward_pass_4(p);
        break;
    }
}

/* Passes of about as many outputs each, so that none has less than a vector. */
static void run_passes(const struct pass *all, int backward)
{
    const size_t width = width_of(all->outputs), most = width * MATRIX_VECTORS;
    const size_t passes = (all->outputs + most - 1) / most;
    for (size_t i = 0; i < passes; i++) {
        const size_t c = all->outputs * i / passes;
        struct pass p = *all;
        p.n = all->outputs * (i + 1) / passes - c;
        if (backward) {
            p.slopes += c;
            p.grads += c;
        } else {
            p.bias = all->bias ? all->bias + c : NULL;
            p.params += c;
            p.scores += c;
        }
        run_pass(&p, width, backward);
    }
}

/* ---- Fewer outputs than a vector has floats ---- */

/* sums [n] += x * row. */
DRPS_INLINE void add_row(size_t n, float x, const float *restrict row, float *restrict sums)
{
#pragma omp simd
    for (size_t c = 0; c < n; c++)
        sums[c] += x * row[c];
}

DRPS_INLINE void few_forward(int wide, int valued, const struct drps_batch *b, size_t outputs,
                             const float *bias, size_t first, size_t last, const float *params,
                             float *scores)
{
    for (size_t s = first; s < last; s++) {
        float sums[LEAST_WIDTH] = {0};
        const size_t end = drps_batch_start(b, s + 1);
        if (bias) memcpy(sums, bias, outputs * sizeof(*sums));
        for (size_t j = drps_batch_start(b, s); j < end; j++)
            add_row(outputs, drps_value_at(b, valued, j),
                    params + drps_local_at(b, wide, j) * outputs, sums);
        memcpy(scores + s * outputs, sums, outputs * sizeof(*sums));
    }
}

DRPS_INLINE void few_backward(int wide, int valued, const struct drps_batch *b, size_t outputs,
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

/* ---- All ---- */

DRPS_KERNEL(void, drps_matrix_forward,
            (const struct drps_batch *b, size_t outputs, const float *bias, size_t first,
             size_t last, const float *params, float *scores),
            (b, outputs, bias, first, last, params, scores))
{
    const struct pass all = {.b = b,
                             .outputs = outputs,
                             .first = first,
                             .last = last,
                             .bias = bias,
                             .params = params,
                             .scores = scores};
    if (outputs == 2)
        DRPS_BY_FORM(b, few_forward, b, 2, bias, first, last, params, scores);
    else if (outputs == 3)
        DRPS_BY_FORM(b, few_forward, b, 3, bias, first, last, params, scores);
    else
        run_passes(&all, 0);
}

DRPS_KERNEL(void, drps_matrix_backward,
            (const struct drps_batch *b, size_t outputs, size_t first, size_t last,
             const float *slopes, float *grads),
            (b, outputs, first, last, slopes, grads))
{
    const struct pass all = {
        .b = b, .outputs = outputs, .first = first, .last = last, .slopes = slopes, .grads = grads};
    if (outputs == 2)
        DRPS_BY_FORM(b, few_backward, b, 2, first, last, slopes, grads);
    else if (outputs == 3)
        DRPS_BY_FORM(b, few_backward, b, 3, first, last, slopes, grads);
    else
        run_passes(&all, 1);
}

DRPS_KERNEL(void, drps_matrix_bias_backward,
            (size_t outputs, size_t samples, const float *slopes, float *grads),
            (outputs, samples, slopes, grads))
{
    for (size_t s = 0; s < samples; s++)
        add_row(outputs, 1.0f, slopes + s * outputs, grads);
}
