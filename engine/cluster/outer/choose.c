/* Which layers' gradients go as vectors, from shapes alone, and what that takes. */
#include <string.h>

#include "engine/cluster/outer/drps_outer.h"
#include "engine/cluster/outer/message.h"

enum {
    PRODUCTS = 200,       /* multiplications with additions, in the time of a byte of the link */
    ADDED = 16,           /* floats that are zeroed and added in it */
    STEP_COST = 16 << 10, /* bytes; as that of an all-reduce's step */
};

static double floats_of(const struct drps_outer_layer *y)
{
    return (double)y->w * y->N;
}

/* Bytes that a rank sends in an all-reduce of W. */
static double sums_bytes(const struct drps_outer_layer *y, uint32_t ranks)
{
    return 2 * (ranks - 1.0) / ranks * floats_of(y) * sizeof(float);
}

static double vectors_bytes(const struct drps_outer_layer *y, uint32_t ranks, uint64_t samples)
{
    return (ranks - 1.0) * (double)samples * ((double)y->w + y->N) * sizeof(float);
}

/* What a rank computes of the others' vectors, as bytes. */
static double computing_bytes(const struct drps_outer_layer *y, uint32_t ranks, uint64_t samples)
{
    return (ranks - 1.0) * floats_of(y) * ((double)samples / PRODUCTS + 1.0 / ADDED);
}

/* The bytes that vectors save; none: not more than 0. */
static double saved_bytes(const struct drps_outer_layer *y, uint32_t ranks, uint64_t samples,
                          enum drps_outer_rule rule)
{
    const double computing = rule == DRPS_OUTER_TIME ? computing_bytes(y, ranks, samples) : 0;
    return sums_bytes(y, ranks) - vectors_bytes(y, ranks, samples) - computing;
}

static struct drps_outer_layer layer_of(const struct drps_layers *l, uint32_t i)
{
    const struct drps_layers_widths v = drps_layers_vectors_of(l, i);
    const struct drps_layer *y = &l->layers[i];
    return (struct drps_outer_layer){
        .layer = i, .line = y->line, .w = v.w, .N = v.N, .first = y->first};
}

void drps_outer_choose(const struct drps_layers *l, uint32_t ranks, uint64_t samples,
                       enum drps_outer_rule rule, struct drps_outer_choice *out)
{
    double saved = 0;
    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < l->n && ranks > 1; i++) {
        const struct drps_outer_layer y = layer_of(l, i); /* others save nothing */
        const double of_layer = saved_bytes(&y, ranks, samples, rule);
        if (!(of_layer > 0)) continue;
        saved += of_layer;
        out->layers[out->n++] = y;
    }
    if (rule == DRPS_OUTER_TIME && saved <= STEP_COST) out->n = 0;
}

uint64_t drps_outer_cost(const struct drps_outer_choice *c, uint32_t ranks, uint64_t samples)
{
    double cost = c->n ? STEP_COST : 0;
    for (uint32_t i = 0; i < c->n; i++)
        cost += vectors_bytes(&c->layers[i], ranks, samples) +
                computing_bytes(&c->layers[i], ranks, samples);
    return (uint64_t)cost;
}

uint64_t drps_outer_floats(const struct drps_outer_choice *c)
{
    uint64_t floats = 0;
    for (uint32_t i = 0; i < c->n; i++)
        floats += (uint64_t)c->layers[i].w * c->layers[i].N;
    return floats;
}

size_t drps_outer_move_rest(const struct drps_outer_choice *c, size_t n, float *values, float *rest,
                            enum drps_outer_move move)
{
    size_t at = 0, from = 0;
    for (uint32_t i = 0; i <= c->n; i++) {
        const size_t end = i < c->n ? (size_t)c->layers[i].first : n, bytes = (end - from) * 4;
        memcpy(move == DRPS_OUTER_OUT ? rest + at : values + from,
               move == DRPS_OUTER_OUT ? values + from : rest + at, bytes);
        at += end - from;
        if (i < c->n) from = end + (size_t)c->layers[i].w * c->layers[i].N;
    }
    return at;
}

uint64_t drps_outer_message_bytes(const struct drps_outer_choice *c, uint64_t samples)
{
    return outer_message_most(c, samples);
}
