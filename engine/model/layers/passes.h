/*
 * What the two passes share: where the floats of layers lie, and which of them dropout leaves out.
 *
 * Shapes: n samples from number `first` of the batch on. Scratch has the floats of all layers, then
 * the loss's derivatives by them: outs and slopes [l->width * n], where those of a layer are a
 * matrix [n][width] that begins at n * at. Behind them lies what passes keep besides: for each
 * sample l->kept floats, of which those of a layer begin at n * kept_at. Last comes room for what
 * conv reads.
 */
#ifndef DRPS_ENGINE_MODEL_LAYERS_PASSES_H
#define DRPS_ENGINE_MODEL_LAYERS_PASSES_H

#include "base/drps_rng.h"
#include "base/kernel/drps_vector_floats.h"
#include "engine/model/layers/drps_layers_pass.h"

struct pass {
    const struct drps_layers *l;
    const struct drps_batch *b;
    size_t first, n;
    size_t dim; /* D */
    const float *params;
    const struct drps_dropout *dropout;
    float *outs, *slopes, *kept;
    float *room; /* drps_layers_conv_room() floats */
};

static inline struct pass pass_of(const struct drps_layers *l, const struct drps_batch *b,
                                  size_t first, size_t last, const float *params,
                                  const struct drps_dropout *dropout, void *scratch)
{
    const size_t n = last - first;
    return (struct pass){.l = l,
                         .b = b,
                         .first = first,
                         .n = n,
                         .dim = 1 + (size_t)l->factors,
                         .params = params,
                         .dropout = dropout,
                         .outs = scratch,
                         .slopes = (float *)scratch + l->width * n,
                         .kept = (float *)scratch + 2 * l->width * n,
                         .room = (float *)scratch + (2 * l->width + l->kept) * n};
}

static inline size_t width_of(const struct drps_layer *y)
{
    return (size_t)y->parts * y->each;
}

/* Returns layer y's input number i. */
static inline const struct drps_layer *input_of(const struct pass *p, const struct drps_layer *y,
                                                size_t i)
{
    return &p->l->layers[y->input[i]];
}

/* 1: nobody asks for the derivatives by its floats, which are numbers of the data. */
static inline int is_data(const struct drps_layer *y)
{
    return y->kind == DRPS_LAYER_NUMBERS || y->kind == DRPS_LAYER_IMAGE;
}

static inline float *out_of(const struct pass *p, const struct drps_layer *y)
{
    return p->outs + y->at * p->n;
}

static inline float *slope_of(const struct pass *p, const struct drps_layer *y)
{
    return p->slopes + y->at * p->n;
}

static inline float *kept_of(const struct pass *p, const struct drps_layer *y)
{
    return p->kept + y->kept_at * p->n;
}

/* Returns the field of an entry; of data without fields it is 0. */
static inline size_t field_of(const struct pass *p, size_t entry)
{
    return p->b->fields ? p->b->fields[entry] : 0;
}

/* A part of the inputs of `dots`: that of sample s begins at s * width. */
struct part {
    const float *out;
    float *slope;
    size_t width;
};

/* n (n - 1) / 2 inner products are at most DRPS_LAYER_WIDTH. */
enum { MOST_PARTS = 1024 };
_Static_assert(MOST_PARTS *(MOST_PARTS - 1) / 2 <= DRPS_LAYER_WIDTH, "too many inner products");
_Static_assert((MOST_PARTS + 1) * MOST_PARTS / 2 > DRPS_LAYER_WIDTH, "they may be more");

/* Fills in the parts of all inputs of y, in their order. Returns how many they are. */
static inline size_t parts_of(const struct pass *p, const struct drps_layer *y,
                              struct part parts[MOST_PARTS])
{
    size_t n = 0;
    for (size_t i = 0; i < y->inputs_n; i++) {
        const struct drps_layer *in = input_of(p, y, i);
        for (size_t k = 0; k < in->parts && n < MOST_PARTS; k++, n++)
            parts[n] = (struct part){.out = out_of(p, in) + k * in->each,
                                     .slope = slope_of(p, in) + k * in->each,
                                     .width = width_of(in)};
    }
    return n;
}

/* How a layer leaves floats out. */
struct mask {
    uint64_t seed, from; /* number of the first sample's first float */
    float probability, scale;
};

static inline struct mask mask_of(const struct pass *p, const struct drps_layer *y)
{
    return (struct mask){.seed = drps_rng_at(p->dropout->seed, (uint64_t)(y - p->l->layers)),
                         .from = (uint64_t)p->first * width_of(y),
                         .probability = y->probability,
                         .scale = 1 / (1 - y->probability)};
}

/* Returns what float i of a layer, counted from sample `first` on, is multiplied by. */
static inline float mask_at(const struct mask *m, size_t i)
{
    return drps_unit_float(drps_rng_at(m->seed, m->from + i)) < m->probability ? 0 : m->scale;
}

/* to [n] += x from [n], which do not overlap. */
DRPS_INLINE void add_scaled(size_t n, float x, const float *restrict from, float *restrict to)
{
    for (size_t k = 0; k < n; k++)
        to[k] += x * from[k];
}

#endif
