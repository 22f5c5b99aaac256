/*
 * Field-aware factorization machines (Juan et al., RecSys 2016), Eq. 4: the sum over all pairs of
 * entries i < j of x_i x_j <v_i[f_j], v_j[f_i]>. A sample of n entries has n (n - 1) / 2 pairs, and
 * no reformulation makes them fewer.
 *
 * Row and field of each entry are found once for a tile of entries, so that the loop over pairs has
 * little but loads, products and stores; a sample of more entries has pairs within each tile and
 * between every two. 4, 8 and 16 factors have passes of their own, and so have samples with one
 * entry of the value 1 for each field, as clicks are: in the order of their fields the numbers that
 * one row has for the others lie side by side.
 */
#include "engine/model/ffm/drps_ffm.h"

#include <math.h>
#include <string.h>

#include "base/kernel/drps_level.h"
#include "base/kernel/drps_vector_floats.h"

enum { TILE = 64 };

/* Entries of a tile. */
struct tile {
    size_t n;
    int plain;          /* 1: entry i has field i of n, and the value 1 */
    size_t row[TILE];   /* where the factors of its row begin */
    size_t field[TILE]; /* where those for its field begin in another row */
    float x[TILE];
};

#define ELEMENTS 4
#include "engine/model/ffm/passes.h"
#define ELEMENTS 8
#include "engine/model/ffm/passes.h"
#define ELEMENTS 16
#include "engine/model/ffm/passes.h"

/* 1: the sample has one entry of each of the fields, all of value 1; these are then in `t`. */
static int fill_plain(const struct drps_batch *b, size_t factors, size_t dim, size_t first,
                      size_t n, struct tile *t)
{
    uint64_t seen = 0;
    if (b->values || n > TILE || 1 + n * factors != dim) return 0;
    for (size_t i = 0; i < n; i++) {
        const size_t field = b->fields[first + i];
        seen |= UINT64_C(1) << field;
        t->row[field] = drps_batch_local(b, first + i) * dim + 1;
    }
    t->n = n;
    t->plain = 1;
    return n && seen == ~UINT64_C(0) >> (TILE - n);
}

static void fill(const struct drps_batch *b, size_t factors, size_t dim, size_t first, size_t end,
                 struct tile *t)
{
    t->n = end - first < TILE ? end - first : TILE;
    t->plain = 0;
    for (size_t i = 0; i < t->n; i++) {
        t->row[i] = drps_batch_local(b, first + i) * dim + 1;
        t->field[i] = b->fields[first + i] * factors;
        t->x[i] = drps_batch_value(b, first + i);
    }
}

/* What a sample's values are multiplied with: 1, or 1 / |x|. */
static float scale_of(const struct drps_batch *b, int normalized, size_t first, size_t end)
{
    float squares = b->values ? 0 : (float)(end - first);
    if (!normalized) return 1;
    for (size_t j = first; b->values && j < end; j++)
        squares += b->values[j] * b->values[j];
    return squares > 0 ? 1 / sqrtf(squares) : 1;
}

static float weights_of(const struct tile *t, const float *params)
{
    float sum = 0;
    for (size_t i = 0; i < t->n; i++)
        sum += (t->plain ? 1 : t->x[i]) * params[t->row[i] - 1];
    return sum;
}

static void add_weights(const struct tile *t, float slope, float *grads)
{
    for (size_t i = 0; i < t->n; i++)
        grads[t->row[i] - 1] += slope * (t->plain ? 1 : t->x[i]);
}

/* The sum over pairs of an entry of `a` and one of `b`, or, where they are one, over those behind
 * it. */
static float pairs_of(size_t factors, const struct tile *a, const struct tile *b,
                      const float *params)
{
    switch (factors) {
    case 4:
        return a->plain ? pairs_4(1, 1, 0, a, b, params) : pairs_4(0, 1, 0, a, b, params);
    case 8:
        return a->plain ? pairs_8(1, 1, 0, a, b, params) : pairs_8(0, 1, 0, a, b, params);
    case 16:
        return a->plain ? pairs_16(1, 1, 0, a, b, params) : pairs_16(0, 1, 0, a, b, params);
    default:
        return pairs_4(a->plain, factors / 4, factors % 4, a, b, params);
    }
}

/* Adds the gradient of those pairs. */
static void add_pairs(size_t factors, const struct tile *a, const struct tile *b, float slope,
                      const float *params, float *grads)
{
    switch (factors) {
    case 4:
        if (a->plain)
            add_pairs_4(1, 1, 0, a, b, slope, params, grads);
        else
            add_pairs_4(0, 1, 0, a, b, slope, params, grads);
        return;
    case 8:
        if (a->plain)
            add_pairs_8(1, 1, 0, a, b, slope, params, grads);
        else
            add_pairs_8(0, 1, 0, a, b, slope, params, grads);
        return;
    case 16:
        if (a->plain)
            add_pairs_16(1, 1, 0, a, b, slope, params, grads);
        else
            add_pairs_16(0, 1, 0, a, b, slope, params, grads);
        return;
    default:
        add_pairs_4(a->plain, factors / 4, factors % 4, a, b, slope, params, grads);
        return;
    }
}

DRPS_KERNEL(void, drps_ffm_forward,
            (const struct drps_batch *b, size_t factors, size_t dim, int normalized, float bias,
             size_t first, size_t last, const float *params, float *scores),
            (b, factors, dim, normalized, bias, first, last, params, scores))
{
    struct tile one, other;
    for (size_t s = first; s < last; s++) {
        const size_t start = drps_batch_start(b, s), end = drps_batch_start(b, s + 1);
        const float scale = scale_of(b, normalized, start, end);
        float weights = 0, pairs = 0;
        for (size_t j = start; j < end; j += TILE) {
            if (j > start || !fill_plain(b, factors, dim, j, end - j, &one))
                fill(b, factors, dim, j, end, &one);
            weights += weights_of(&one, params);
            pairs += pairs_of(factors, &one, &one, params);
            for (size_t k = j + TILE; k < end; k += TILE) {
                fill(b, factors, dim, k, end, &other);
                pairs += pairs_of(factors, &one, &other, params);
            }
        }
        scores[s] = bias + scale * weights + scale * scale * pairs;
    }
}

DRPS_KERNEL(void, drps_ffm_backward,
            (const struct drps_batch *b, size_t factors, size_t dim, int normalized, size_t first,
             size_t last, const float *slopes, const float *params, float *grads),
            (b, factors, dim, normalized, first, last, slopes, params, grads))
{
    struct tile one, other;
    for (size_t s = first; s < last; s++) {
        const size_t start = drps_batch_start(b, s), end = drps_batch_start(b, s + 1);
        const float scale = scale_of(b, normalized, start, end);
        const float of_weights = slopes[s - first] * scale, of_pairs = of_weights * scale;
        for (size_t j = start; j < end; j += TILE) {
            if (j > start || !fill_plain(b, factors, dim, j, end - j, &one))
                fill(b, factors, dim, j, end, &one);
            add_weights(&one, of_weights, grads);
            add_pairs(factors, &one, &one, of_pairs, params, grads);
            for (size_t k = j + TILE; k < end; k += TILE) {
                fill(b, factors, dim, k, end, &other);
                add_pairs(factors, &one, &other, of_pairs, params, grads);
            }
        }
    }
}
