/*
 * Backward: from the last layer to the first, the derivatives by a layer's floats are complete when
 * its turn comes, since all that read it had theirs before. They go on to its parameters and, added
 * up, to its inputs, one of which may be there several times. A function for each kind of layer.
 */
#include <string.h>

#include "base/kernel/drps_level.h"
#include "engine/model/layers/gemm.h"
#include "engine/model/layers/image.h"
#include "engine/model/layers/lstm.h"
#include "engine/model/layers/passes.h"
#include "engine/model/layers/vectors.h"
#include "engine/model/math/drps_dot.h"

/* ---- Layers of entries ---- */

static void add_factors(const struct pass *p, const struct drps_layer *y, float *grads)
{
    const size_t each = y->each, width = width_of(y);
    const int bag = y->kind == DRPS_LAYER_BAG;
    const float *slope = slope_of(p, y);
    for (size_t s = 0; s < p->n; s++, slope += width) {
        const size_t end = drps_batch_start(p->b, p->first + s + 1);
        if (bag) add_scaled(width, 1, slope, grads + y->first);
        for (size_t j = drps_batch_start(p->b, p->first + s); j < end; j++) {
            const size_t field = bag ? 0 : field_of(p, j);
            float *of_factors = grads + drps_batch_local(p->b, j) * p->dim + 1;
            if (field >= y->parts) continue;
            add_scaled(each, drps_batch_value(p->b, j), slope + field * each, of_factors);
        }
    }
}

static void add_weights(const struct pass *p, const struct drps_layer *y, float *grads)
{
    const float *slope = slope_of(p, y);
    for (size_t s = 0; s < p->n; s++) {
        const size_t end = drps_batch_start(p->b, p->first + s + 1);
        for (size_t j = drps_batch_start(p->b, p->first + s); j < end; j++)
            grads[drps_batch_local(p->b, j) * p->dim] += slope[s] * drps_batch_value(p->b, j);
    }
}

/* ---- Layers of matrices ---- */

static void full(const struct pass *p, const struct drps_layer *y,
                 const struct drps_layers_vectors *vectors, float *grads)
{
    const struct drps_layer *in = input_of(p, y, 0);
    const size_t w = width_of(in), N = width_of(y);
    const float *slope = slope_of(p, y);
    const struct chunk_vectors v = {.a = out_of(p, in), .deltas = slope};
    float *of_b = grads + y->first + N * w;
    drps_layers_take_vectors(p, y, &v, vectors, grads);
    for (size_t s = 0; s < p->n; s++)
        add_scaled(N, 1, slope + s * N, of_b);
    if (is_data(in)) return;
    drps_layers_product_back(p->n, w, N, slope, p->params + y->first, slope_of(p, in));
}

static void cross(const struct pass *p, const struct drps_layer *y, float *grads)
{
    const struct drps_layer *first = input_of(p, y, 0), *second = input_of(p, y, 1);
    const size_t width = width_of(y);
    const float *w = p->params + y->first;
    for (size_t s = 0; s < p->n; s++) {
        const size_t at = s * width;
        const float *a = out_of(p, first) + at, *b = out_of(p, second) + at;
        const float *slope = slope_of(p, y) + at;
        const float of_dot = drps_dot(width, slope, a);
        add_scaled(width, drps_dot(width, w, b), slope, slope_of(p, first) + at);
        add_scaled(width, of_dot, w, slope_of(p, second) + at);
        add_scaled(width, 1, slope, slope_of(p, second) + at);
        add_scaled(width, of_dot, b, grads + y->first);
        add_scaled(width, 1, slope, grads + y->first + width);
    }
}

/* ---- Layers of single floats: n floats each ---- */

static void relu(size_t n, const float *restrict out, const float *restrict slope,
                 float *restrict of_a)
{
    for (size_t k = 0; k < n; k++)
        of_a[k] += out[k] > 0 ? slope[k] : 0;
}

static void sigmoid(size_t n, const float *restrict out, const float *restrict slope,
                    float *restrict of_a)
{
    for (size_t k = 0; k < n; k++)
        of_a[k] += slope[k] * (out[k] * (1 - out[k]));
}

static void tangent(size_t n, const float *restrict out, const float *restrict slope,
                    float *restrict of_a)
{
    for (size_t k = 0; k < n; k++)
        of_a[k] += slope[k] * (1 - out[k] * out[k]);
}

static void drop(const struct pass *p, const struct drps_layer *y, size_t n,
                 const float *restrict slope, float *restrict of_a)
{
    const struct mask mask = mask_of(p, y);
    for (size_t k = 0; k < n; k++)
        of_a[k] += slope[k] * mask_at(&mask, k);
}

static void of_floats(const struct pass *p, const struct drps_layer *y)
{
    const size_t n = p->n * width_of(y);
    const float *out = out_of(p, y), *slope = slope_of(p, y);
    float *of_a = slope_of(p, input_of(p, y, 0));
    if (y->kind == DRPS_LAYER_RELU)
        relu(n, out, slope, of_a);
    else if (y->kind == DRPS_LAYER_SIGMOID)
        sigmoid(n, out, slope, of_a);
    else if (y->kind == DRPS_LAYER_TANH)
        tangent(n, out, slope, of_a);
    else if (p->dropout->trains)
        drop(p, y, n, slope, of_a);
    else
        add_scaled(n, 1, slope, of_a);
}

/* ---- Layers of parts ---- */

enum { RUN = 16 }; /* factors whose sum is kept in registers */

/* Adds the derivatives by `run` <= RUN floats of each part: that by a part is the sum of the
 * others.
 */
DRPS_INLINE void pairs(size_t run, size_t parts, size_t each, float slope, const float *restrict a,
                       float *restrict of_a)
{
    float sum[RUN] = {0};
    for (size_t i = 0; i < parts; i++)
        for (size_t k = 0; k < run; k++)
            sum[k] += a[i * each + k];
    for (size_t i = 0; i < parts; i++)
        for (size_t k = 0; k < run; k++)
            of_a[i * each + k] += slope * (sum[k] - a[i * each + k]);
}

static void fm(const struct pass *p, const struct drps_layer *y)
{
    const struct drps_layer *in = input_of(p, y, 0);
    const size_t each = in->each, width = width_of(in);
    const float *a = out_of(p, in), *slope = slope_of(p, y);
    float *of_a = slope_of(p, in);
    for (size_t s = 0; s < p->n; s++, a += width, of_a += width) {
        size_t k = 0;
        for (; k + RUN <= each; k += RUN)
            pairs(RUN, in->parts, each, slope[s], a + k, of_a + k);
        if (k < each) pairs(each - k, in->parts, each, slope[s], a + k, of_a + k);
    }
}

static void dots(const struct pass *p, const struct drps_layer *y)
{
    struct part parts[MOST_PARTS];
    const size_t n = parts_of(p, y, parts), each = input_of(p, y, 0)->each;
    const float *slope = slope_of(p, y);
    for (size_t s = 0; s < p->n; s++)
        for (size_t i = 0; i < n; i++) {
            const size_t at = s * parts[i].width;
            for (size_t j = i + 1; j < n; j++, slope++) {
                const size_t other = s * parts[j].width;
                add_scaled(each, *slope, parts[j].out + other, parts[i].slope + at);
                add_scaled(each, *slope, parts[i].out + at, parts[j].slope + other);
            }
        }
}

/* ---- Layers of layers ---- */

static void sum(const struct pass *p, const struct drps_layer *y)
{
    for (size_t i = 0; i < y->inputs_n; i++)
        add_scaled(p->n * width_of(y), 1, slope_of(p, y), slope_of(p, input_of(p, y, i)));
}

static void join(const struct pass *p, const struct drps_layer *y)
{
    const float *slope = slope_of(p, y);
    for (size_t i = 0; i < y->inputs_n; i++) {
        const struct drps_layer *in = input_of(p, y, i);
        const size_t width = width_of(in);
        for (size_t s = 0; s < p->n; s++)
            add_scaled(width, 1, slope + s * width_of(y), slope_of(p, in) + s * width);
        slope += width;
    }
}

static void layer(const struct pass *p, const struct drps_layer *y,
                  const struct drps_layers_vectors *vectors, float *grads)
{
    switch (y->kind) {
    case DRPS_LAYER_EMBEDDING:
    case DRPS_LAYER_BAG:
        add_factors(p, y, grads);
        break;
    case DRPS_LAYER_LINEAR:
        add_weights(p, y, grads);
        break;
    case DRPS_LAYER_NUMBERS:
    case DRPS_LAYER_IMAGE:
        break; /* have no parameters */
    case DRPS_LAYER_CONV:
        drps_layers_conv_back(p, y, grads);
        break;
    case DRPS_LAYER_POOL:
        drps_layers_pool_back(p, y);
        break;
    case DRPS_LAYER_FULL:
        full(p, y, vectors, grads);
        break;
    case DRPS_LAYER_RELU:
    case DRPS_LAYER_SIGMOID:
    case DRPS_LAYER_TANH:
    case DRPS_LAYER_DROPOUT:
        of_floats(p, y);
        break;
    case DRPS_LAYER_FM:
        fm(p, y);
        break;
    case DRPS_LAYER_DOTS:
        dots(p, y);
        break;
    case DRPS_LAYER_CROSS:
        cross(p, y, grads);
        break;
    case DRPS_LAYER_SUM:
        sum(p, y);
        break;
    case DRPS_LAYER_JOIN:
        join(p, y);
        break;
    case DRPS_LAYER_LSTM:
        drps_lstm_backward(p, y, vectors, grads);
        break;
    }
}

DRPS_KERNEL(void, drps_layers_backward,
            (const struct drps_layers *l, const struct drps_batch *b, size_t first, size_t last,
             const float *slopes, const float *params, const struct drps_dropout *dropout,
             const struct drps_layers_vectors *vectors, void *scratch, float *grads),
            (l, b, first, last, slopes, params, dropout, vectors, scratch, grads))
{
    const struct pass p = pass_of(l, b, first, last, params, dropout, scratch);
    if (first == last) return;
    memset(p.slopes, 0, p.n * l->width * sizeof(*p.slopes));
    memcpy(slope_of(&p, &l->layers[l->n - 1]), slopes, p.n * l->outputs * sizeof(*slopes));
    for (size_t i = l->n; i-- > 0;)
        layer(&p, &l->layers[i], vectors, grads);
}
