/*
 * Forward: each layer's floats from those of its inputs, for all samples of the chunk before the
 * next layer's. A function for each kind of layer.
 */
#include <string.h>

#include "base/kernel/drps_level.h"
#include "engine/model/layers/activations.h"
#include "engine/model/layers/gemm.h"
#include "engine/model/layers/image.h"
#include "engine/model/layers/lstm.h"
#include "engine/model/layers/passes.h"
#include "engine/model/math/drps_dot.h"

/* ---- Layers of entries ---- */

/* Sums of factors: of each field, or, of a bag, of all features and a b of its own. */
static void sum_factors(const struct pass *p, const struct drps_layer *y)
{
    const size_t each = y->each, width = width_of(y);
    const int bag = y->kind == DRPS_LAYER_BAG;
    float *out = out_of(p, y);
    memset(out, 0, p->n * width * sizeof(*out));
    for (size_t s = 0; s < p->n; s++, out += width) {
        if (bag) memcpy(out, p->params + y->first, width * sizeof(*out));
        const size_t end = drps_batch_start(p->b, p->first + s + 1);
        for (size_t j = drps_batch_start(p->b, p->first + s); j < end; j++) {
            const size_t field = bag ? 0 : field_of(p, j);
            const float *factors = p->params + drps_batch_local(p->b, j) * p->dim + 1;
            if (field >= y->parts) continue;
            add_scaled(each, drps_batch_value(p->b, j), factors, out + field * each);
        }
    }
}

static void sum_weights(const struct pass *p, const struct drps_layer *y)
{
    float *out = out_of(p, y);
    for (size_t s = 0; s < p->n; s++) {
        const size_t end = drps_batch_start(p->b, p->first + s + 1);
        float sum = 0;
        for (size_t j = drps_batch_start(p->b, p->first + s); j < end; j++)
            sum += drps_batch_value(p->b, j) * p->params[drps_batch_local(p->b, j) * p->dim];
        out[s] = sum;
    }
}

/* How many of a sample's numbers by place a layer of `width` reads. */
static size_t places_of(const struct pass *p, size_t width)
{
    return p->b->numbers.each < width ? p->b->numbers.each : width;
}

static void copy_numbers(const struct pass *p, const struct drps_layer *y)
{
    const size_t width = width_of(y), each = p->b->numbers.each;
    float *out = out_of(p, y);
    for (size_t s = 0; s < p->n; s++, out += width)
        drps_dense_floats(&p->b->numbers, (p->first + s) * each, places_of(p, width), out);
}

/* Copy n numbers to a channel of as many pixels, whose channels lie beside each other. */
static void copy_channel(const struct drps_dense *d, size_t first, size_t n, size_t channels,
                         float *restrict out)
{
    if (d->floats)
        for (size_t i = 0; i < n; i++)
            out[i * channels] = d->floats[first + i];
    else
        for (size_t i = 0; i < n; i++)
            out[i * channels] = d->levels[d->bytes[first + i]];
}

static void copy_pixels(const struct pass *p, const struct drps_layer *y)
{
    const size_t width = width_of(y), each = p->b->numbers.each, most = places_of(p, width);
    float *out = out_of(p, y);
    for (size_t s = 0; s < p->n; s++, out += width)
        for (size_t c = 0; (c + 1) * y->parts <= most; c++)
            copy_channel(&p->b->numbers, (p->first + s) * each + c * y->parts, y->parts, y->each,
                         out + c);
}

static void sum_numbers(const struct pass *p, const struct drps_layer *y)
{
    const size_t width = width_of(y);
    float *out = out_of(p, y);
    memset(out, 0, p->n * width * sizeof(*out));
    for (size_t s = 0; s < p->n; s++, out += width) {
        const size_t end = drps_batch_start(p->b, p->first + s + 1);
        for (size_t j = drps_batch_start(p->b, p->first + s); j < end; j++)
            if (field_of(p, j) < width) out[field_of(p, j)] += drps_batch_value(p->b, j);
    }
}

/* The number of a field is that of its channel, its row and its column. */
static void sum_pixels(const struct pass *p, const struct drps_layer *y)
{
    const size_t width = width_of(y);
    float *out = out_of(p, y);
    memset(out, 0, p->n * width * sizeof(*out));
    for (size_t s = 0; s < p->n; s++, out += width) {
        const size_t end = drps_batch_start(p->b, p->first + s + 1);
        for (size_t j = drps_batch_start(p->b, p->first + s); j < end; j++) {
            const size_t field = field_of(p, j), channel = field / y->parts;
            const size_t pixel = field - channel * y->parts;
            if (field < width) out[pixel * y->each + channel] += drps_batch_value(p->b, j);
        }
    }
}

/* ---- Layers of matrices ---- */

static void full(const struct pass *p, const struct drps_layer *y)
{
    const struct drps_layer *in = input_of(p, y, 0);
    const size_t w = width_of(in), N = width_of(y);
    const float *weights = p->params + y->first, *b = weights + N * w;
    float *out = out_of(p, y);
    for (size_t s = 0; s < p->n; s++)
        memcpy(out + s * N, b, N * sizeof(*out));
    drps_layers_product(p->n, w, N, out_of(p, in), weights, out);
}

DRPS_INLINE void cross_sample(size_t n, float of_a, const float *restrict a,
                              const float *restrict v, const float *restrict b, float *restrict out)
{
    for (size_t k = 0; k < n; k++)
        out[k] = a[k] * of_a + v[k] + b[k];
}

static void cross(const struct pass *p, const struct drps_layer *y)
{
    const size_t width = width_of(y);
    const float *a = out_of(p, input_of(p, y, 0)), *b = out_of(p, input_of(p, y, 1));
    const float *w = p->params + y->first, *v = w + width;
    float *out = out_of(p, y);
    for (size_t s = 0; s < p->n; s++, a += width, b += width, out += width)
        cross_sample(width, drps_dot(width, w, b), a, v, b, out);
}

/* ---- Layers of single floats: n floats each ---- */

/* A NaN stays one. */
static void relu(size_t n, const float *restrict a, float *restrict out)
{
    for (size_t k = 0; k < n; k++)
        out[k] = a[k] < 0 ? 0 : a[k];
}

static void sigmoid(size_t n, const float *restrict a, float *restrict out)
{
    for (size_t k = 0; k < n; k++)
        out[k] = sigmoid_of(a[k]);
}

static void tangent(size_t n, const float *restrict a, float *restrict out)
{
    for (size_t k = 0; k < n; k++)
        out[k] = tanh_of(a[k]);
}

static void drop(const struct pass *p, const struct drps_layer *y, size_t n,
                 const float *restrict a, float *restrict out)
{
    const struct mask mask = mask_of(p, y);
    for (size_t k = 0; k < n; k++)
        out[k] = a[k] * mask_at(&mask, k);
}

static void of_floats(const struct pass *p, const struct drps_layer *y)
{
    const size_t n = p->n * width_of(y);
    const float *a = out_of(p, input_of(p, y, 0));
    float *out = out_of(p, y);
    if (y->kind == DRPS_LAYER_RELU)
        relu(n, a, out);
    else if (y->kind == DRPS_LAYER_SIGMOID)
        sigmoid(n, a, out);
    else if (y->kind == DRPS_LAYER_TANH)
        tangent(n, a, out);
    else if (p->dropout->trains)
        drop(p, y, n, a, out);
    else
        memcpy(out, a, n * sizeof(*out));
}

/* ---- Layers of parts ---- */

enum { RUN = 16 }; /* factors whose sums are kept in registers */

/* Returns the sum over pairs of parts of their inner products, of `run` <= RUN floats of each part:
 * each part meets the sum of those before it, so that nothing cancels out. */
DRPS_INLINE float pairs(size_t run, size_t parts, size_t each, const float *restrict a)
{
    float sum[RUN] = {0}, met[RUN] = {0}, total = 0;
    for (size_t i = 0; i < parts; i++, a += each)
        for (size_t k = 0; k < run; k++) {
            met[k] += a[k] * sum[k];
            sum[k] += a[k];
        }
    for (size_t k = 0; k < run; k++)
        total += met[k];
    return total;
}

static void fm(const struct pass *p, const struct drps_layer *y)
{
    const struct drps_layer *in = input_of(p, y, 0);
    const size_t each = in->each;
    const float *a = out_of(p, in);
    float *out = out_of(p, y);
    for (size_t s = 0; s < p->n; s++, a += width_of(in)) {
        size_t k = 0;
        out[s] = 0;
        for (; k + RUN <= each; k += RUN)
            out[s] += pairs(RUN, in->parts, each, a + k);
        if (k < each) out[s] += pairs(each - k, in->parts, each, a + k);
    }
}

static void dots(const struct pass *p, const struct drps_layer *y)
{
    struct part parts[MOST_PARTS];
    const size_t n = parts_of(p, y, parts), each = input_of(p, y, 0)->each;
    float *out = out_of(p, y);
    for (size_t s = 0; s < p->n; s++)
        for (size_t i = 0; i < n; i++) {
            const float *a = parts[i].out + s * parts[i].width;
            for (size_t j = i + 1; j < n; j++)
                *out++ = drps_dot(each, a, parts[j].out + s * parts[j].width);
        }
}

/* ---- Layers of layers ---- */

static void sum(const struct pass *p, const struct drps_layer *y)
{
    const size_t n = p->n * width_of(y);
    memcpy(out_of(p, y), out_of(p, input_of(p, y, 0)), n * sizeof(float));
    for (size_t i = 1; i < y->inputs_n; i++)
        add_scaled(n, 1, out_of(p, input_of(p, y, i)), out_of(p, y));
}

static void join(const struct pass *p, const struct drps_layer *y)
{
    float *out = out_of(p, y);
    for (size_t i = 0; i < y->inputs_n; i++) {
        const struct drps_layer *in = input_of(p, y, i);
        const size_t width = width_of(in);
        for (size_t s = 0; s < p->n; s++)
            memcpy(out + s * width_of(y), out_of(p, in) + s * width, width * sizeof(*out));
        out += width;
    }
}

static void layer(const struct pass *p, const struct drps_layer *y)
{
    switch (y->kind) {
    case DRPS_LAYER_EMBEDDING:
    case DRPS_LAYER_BAG:
        sum_factors(p, y);
        break;
    case DRPS_LAYER_LINEAR:
        sum_weights(p, y);
        break;
    case DRPS_LAYER_NUMBERS:
        p->b->numbers.each ? copy_numbers(p, y) : sum_numbers(p, y);
        break;
    case DRPS_LAYER_IMAGE:
        p->b->numbers.each ? copy_pixels(p, y) : sum_pixels(p, y);
        break;
    case DRPS_LAYER_CONV:
        drps_layers_conv(p, y);
        break;
    case DRPS_LAYER_POOL:
        drps_layers_pool(p, y);
        break;
    case DRPS_LAYER_FULL:
        full(p, y);
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
        cross(p, y);
        break;
    case DRPS_LAYER_SUM:
        sum(p, y);
        break;
    case DRPS_LAYER_JOIN:
        join(p, y);
        break;
    case DRPS_LAYER_LSTM:
        drps_lstm_forward(p, y);
        break;
    }
}

DRPS_KERNEL(size_t, drps_layers_scratch_bytes, (const struct drps_layers *l, size_t samples),
            (l, samples))
{
    /* Floats, their derivatives, what is kept besides, and room for what conv reads. */
    return sizeof(float) *
           ((2 * (size_t)l->width + l->kept) * samples + drps_layers_conv_room(l, samples));
}

DRPS_KERNEL(void, drps_layers_forward,
            (const struct drps_layers *l, const struct drps_batch *b, size_t first, size_t last,
             const float *params, const struct drps_dropout *dropout, float *scores, void *scratch),
            (l, b, first, last, params, dropout, scores, scratch))
{
    const struct pass p = pass_of(l, b, first, last, params, dropout, scratch);
    if (first == last) return;
    for (size_t i = 0; i < l->n; i++)
        layer(&p, &l->layers[i]);
    const float *out = out_of(&p, &l->layers[l->n - 1]);
    for (size_t s = first; s < last; s++)
        for (size_t c = 0; c < l->outputs; c++)
            scores[s * l->outputs + c] = params[c] + *out++;
}
