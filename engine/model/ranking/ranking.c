/* One pass over a sample's negatives computes scores, losses and gradients: nothing is kept of them
 * (drps_ranking.h). warp looks for its negative in a pass before. */
#include "engine/model/ranking/drps_ranking.h"

#include <math.h>

#include "base/kernel/drps_level.h"
#include "engine/model/math/drps_dot.h"

/* A sample: where its rows begin in params, and its entries. */
struct ranked {
    size_t user, positive; /* floats */
    size_t start, end;     /* entries */
    size_t negatives;
};

/* Slopes of a loss by two scores. */
struct slopes {
    float loss, positive, negative;
};

/* Returns 1, or 0: a row is missing. */
static int find(const struct drps_batch *b, size_t dim, size_t s, struct ranked *out)
{
    int found = 0;
    *out = (struct ranked){.start = drps_batch_start(b, s), .end = drps_batch_start(b, s + 1)};
    for (size_t j = out->start; j < out->end; j++) {
        const size_t at = drps_batch_local(b, j) * dim;
        if (b->fields[j] == DRPS_ROLE_USER) {
            out->user = at;
            found |= 1;
        } else if (b->fields[j] == DRPS_ROLE_POSITIVE) {
            out->positive = at;
            found |= 2;
        } else {
            out->negatives++;
        }
    }
    return found == 3 && out->negatives;
}

DRPS_INLINE float score_of(size_t factors, const float *u, const float *v)
{
    return u[0] + v[0] + drps_dot(factors, u + 1, v + 1);
}

/* grads += slope * (1, factors of row). */
DRPS_INLINE void add(size_t factors, float *restrict grads, float slope, const float *restrict row)
{
    grads[0] += slope;
#pragma omp simd
    for (size_t f = 1; f <= factors; f++)
        grads[f] += slope * row[f];
}

/* The same without the bias. */
DRPS_INLINE void add_factors(size_t factors, float *restrict grads, float slope,
                             const float *restrict row)
{
#pragma omp simd
    for (size_t f = 1; f <= factors; f++)
        grads[f] += slope * row[f];
}

static struct slopes bpr_pair(float positive, float negative)
{
    const float d = positive - negative;
    const float e = expf(-fabsf(d));
    const float slope = (d < 0 ? 1 : e) / (1 + e);
    return (struct slopes){(d < 0 ? -d : 0) + log1pf(e), -slope, slope};
}

static struct slopes wmf_negative(float negative)
{
    return (struct slopes){negative * negative / 2, 0, negative};
}

/* The first negative of the draws that warp steps: its entry; r->end: there is none. */
DRPS_INLINE size_t find_violator(const struct drps_batch *b, const struct ranked *r, size_t factors,
                                 const float *params, float positive)
{
    size_t found = r->end;
    for (size_t j = r->start; j < r->end; j++) {
        const uint16_t role = b->fields[j];
        if (role < DRPS_ROLE_NEGATIVE || (found < r->end && role > b->fields[found])) continue;
        const float *v = params + drps_batch_local(b, j) * (factors + 1);
        if (score_of(factors, params + r->user, v) > positive - 1) found = j;
    }
    return found;
}

static float warp_weight(const struct drps_ranking *of, uint16_t role)
{
    const uint64_t trials = (uint64_t)role - DRPS_ROLE_NEGATIVE + 1;
    const uint64_t others = of->items ? of->items - 1 : 0;
    const uint64_t rank = others / trials;
    return rank > 1 ? logf((float)rank) : 0;
}

/* A negative's loss and slopes; `stepped` is the one that warp steps, of weight `weight`. */
DRPS_INLINE struct slopes pair_of(enum drps_loss loss, float positive, float negative, float share,
                                  int is_stepped, float weight)
{
    struct slopes s = {0, 0, 0};
    if (loss == DRPS_LOSS_WARP) {
        if (is_stepped) s = (struct slopes){weight * (1 - positive + negative), -weight, weight};
        return s;
    }
    s = loss == DRPS_LOSS_BPR ? bpr_pair(positive, negative) : wmf_negative(negative);
    return (struct slopes){s.loss * share, s.positive * share, s.negative * share};
}

/* One sample of label y; slopes are multiplied by `scale`. Returns its loss. */
DRPS_INLINE float run_sample(const struct drps_ranking *of, const struct drps_batch *b,
                             const struct ranked *r, size_t factors, float y, float scale,
                             const float *restrict params, float *restrict grads, float *place_out)
{
    const float *u = params + r->user, *p = params + r->positive;
    const float positive = score_of(factors, u, p), share = 1.0f / (float)r->negatives;
    const int is_wmf = of->loss == DRPS_LOSS_WMF, is_warp = of->loss == DRPS_LOSS_WARP;
    const size_t stepped = is_warp ? find_violator(b, r, factors, params, positive) : r->end;
    const float weight = stepped < r->end ? warp_weight(of, b->fields[stepped]) : 0;
    float loss = is_wmf ? y * (1 - positive) * (1 - positive) / 2 : 0;
    float slope = is_wmf ? y * (positive - 1) : 0, place = 0;

    for (size_t j = r->start; j < r->end; j++) {
        if (b->fields[j] < DRPS_ROLE_NEGATIVE) continue;
        const size_t at = drps_batch_local(b, j) * (factors + 1);
        const float negative = score_of(factors, u, params + at);
        const struct slopes s = pair_of(of->loss, positive, negative, share, j == stepped, weight);
        loss += s.loss;
        slope += s.positive;
        place += positive > negative ? 0 : positive == negative ? 0.5f : 1;
        if (!grads || (is_warp && j != stepped)) continue;
        add(factors, grads + at, scale * s.negative, u);
        add_factors(factors, grads + r->user, scale * s.negative, params + at);
        if (is_wmf) grads[r->user] += scale * s.negative;
    }
    *place_out = place;
    if (!grads || (is_warp && stepped == r->end)) return loss;
    add(factors, grads + r->positive, scale * slope, u);
    add_factors(factors, grads + r->user, scale * slope, p);
    if (is_wmf) grads[r->user] += scale * slope;
    return loss;
}

/* The number of factors is a constant in the instances below. */
DRPS_INLINE double run(const struct drps_ranking *of, const struct drps_batch *b, size_t factors,
                       size_t first, size_t last, float share, const float *restrict params,
                       float *restrict grads, float *restrict ranked)
{
    double sum = 0;
    for (size_t s = first; s < last; s++) {
        const float weight = b->weights ? b->weights[s] : 1;
        float *out = ranked + s * DRPS_RANKED;
        struct ranked r;
        out[DRPS_RANKED_LOSS] = NAN;
        out[DRPS_RANKED_PLACE] = 0;
        out[DRPS_RANKED_NEGATIVES] = 1;
        if (find(b, factors + 1, s, &r)) {
            out[DRPS_RANKED_NEGATIVES] = (float)r.negatives;
            out[DRPS_RANKED_LOSS] = run_sample(of, b, &r, factors, b->labels[s], weight * share,
                                               params, grads, &out[DRPS_RANKED_PLACE]);
        }
        sum += (double)weight * (double)out[DRPS_RANKED_LOSS];
    }
    return sum;
}

DRPS_KERNEL(double, drps_ranking_pass,
            (const struct drps_ranking *r, const struct drps_batch *b, size_t first, size_t last,
             float share, const float *params, float *grads, float *ranked),
            (r, b, first, last, share, params, grads, ranked))
{
    switch (r->factors) {
    case 16:
        return run(r, b, 16, first, last, share, params, grads, ranked);
    case 32:
        return run(r, b, 32, first, last, share, params, grads, ranked);
    case 64:
        return run(r, b, 64, first, last, share, params, grads, ranked);
    default:
        return run(r, b, r->factors, first, last, share, params, grads, ranked);
    }
}
