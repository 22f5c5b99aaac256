/* Layers whose gradient is made of vectors: their widths, and the products. */
#include "engine/model/layers/vectors.h"

#include <string.h>

#include "engine/model/layers/gemm.h"

enum { GATES = 4 };

/* Floats of x behind those of the layer's input. */
static uint32_t before_of(const struct drps_layer *y)
{
    return y->kind == DRPS_LAYER_LSTM ? y->each : 0;
}

static uint32_t floats_of(const struct drps_layer *y)
{
    return y->parts * y->each;
}

struct drps_layers_widths drps_layers_vectors_of(const struct drps_layers *l, uint32_t i)
{
    const struct drps_layer *y = &l->layers[i];
    const uint32_t times = y->kind == DRPS_LAYER_LSTM ? GATES : y->kind == DRPS_LAYER_FULL;
    if (!times) return (struct drps_layers_widths){0};
    return (struct drps_layers_widths){.w = floats_of(&l->layers[y->input[0]]) + before_of(y),
                                       .N = floats_of(y) * times};
}

/* Adds the products with a to the first matrix, and those with `before`, of so many floats, to the
 * matrix that follows it. */
static void add_products(size_t n, struct drps_layers_widths all, size_t before,
                         const struct chunk_vectors *v, float *grads)
{
    const size_t w = all.w - before, N = all.N;
    drps_layers_product_weights(n, w, N, v->deltas, v->a, grads);
    if (before) drps_layers_product_weights(n, before, N, v->deltas, v->before, grads + N * w);
}

void drps_layers_add_products(const struct drps_layers *l, uint32_t i, size_t n,
                              const float *inputs, const float *deltas, float *grads)
{
    const struct drps_layers_widths all = drps_layers_vectors_of(l, i);
    const uint32_t before = before_of(&l->layers[i]);
    const struct chunk_vectors v = {inputs, inputs + n * (all.w - before), deltas};
    add_products(n, all, before, &v, grads);
}

static void keep(const struct pass *p, size_t i, struct drps_layers_widths all, size_t before,
                 const struct chunk_vectors *v, const struct drps_layers_vectors *kept)
{
    const size_t n = p->n, w = all.w - before, N = all.N;
    float *inputs = kept->inputs[i] + p->first * all.w;
    memcpy(inputs, v->a, n * w * sizeof(*inputs));
    if (before) memcpy(inputs + n * w, v->before, n * before * sizeof(*inputs));
    memcpy(kept->deltas[i] + p->first * N, v->deltas, n * N * sizeof(*inputs));
}

void drps_layers_take_vectors(const struct pass *p, const struct drps_layer *y,
                              const struct chunk_vectors *v, const struct drps_layers_vectors *kept,
                              float *grads)
{
    const uint32_t i = (uint32_t)(y - p->l->layers), before = before_of(y);
    const struct drps_layers_widths all = drps_layers_vectors_of(p->l, i);
    if (kept && kept->inputs[i]) keep(p, i, all, before, v, kept);
    add_products(p->n, all, before, v, grads + y->first);
}
