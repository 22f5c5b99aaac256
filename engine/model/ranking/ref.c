/* The plain twin of ranking.c: the losses as drps_ranking.h has them, in double, a loop for each
 * thing. */
#include <math.h>

#include "engine/model/ranking/drps_ranking.h"

/* The row of the entry with this role, as an index of floats; -1: there is none. */
static ptrdiff_t row_of(const struct drps_batch *b, size_t s, size_t dim, size_t role)
{
    for (size_t j = drps_batch_start(b, s); j < drps_batch_start(b, s + 1); j++)
        if (b->fields[j] == role)
            return (ptrdiff_t)((b->local32 ? b->local32[j] : b->local16[j]) * dim);
    return -1;
}

static double score(const float *params, ptrdiff_t u, ptrdiff_t v, size_t factors)
{
    double sum = (double)params[u] + (double)params[v];
    for (size_t f = 1; f <= factors; f++)
        sum += (double)params[u + (ptrdiff_t)f] * (double)params[v + (ptrdiff_t)f];
    return sum;
}

/* The derivative by the score of a pair, to both rows. */
static void step_pair(float *grads, const float *params, ptrdiff_t u, ptrdiff_t v, size_t factors,
                      double slope, int user_bias)
{
    if (user_bias) grads[u] = (float)((double)grads[u] + slope);
    grads[v] = (float)((double)grads[v] + slope);
    for (size_t f = 1; f <= factors; f++) {
        float *of_user = &grads[u + (ptrdiff_t)f], *of_item = &grads[v + (ptrdiff_t)f];
        *of_user = (float)((double)*of_user + slope * (double)params[v + (ptrdiff_t)f]);
        *of_item = (float)((double)*of_item + slope * (double)params[u + (ptrdiff_t)f]);
    }
}

/* The rank that is estimated after so many draws, as a weight. */
static double weight_after(uint64_t items, size_t draws)
{
    const double rank = floor(((double)items - 1) / (double)draws);
    return log(rank > 1 ? rank : 1);
}

double drps_ranking_pass_ref(const struct drps_ranking *r, const struct drps_batch *b, size_t first,
                             size_t last, float share, const float *params, float *grads,
                             float *ranked)
{
    const size_t dim = r->factors + 1;
    double sum = 0;
    for (size_t s = first; s < last; s++) {
        const size_t n = drps_batch_start(b, s + 1) - drps_batch_start(b, s) - 2;
        const ptrdiff_t u = row_of(b, s, dim, DRPS_ROLE_USER);
        const ptrdiff_t p = row_of(b, s, dim, DRPS_ROLE_POSITIVE);
        const double weight = b->weights ? (double)b->weights[s] : 1;
        const double y = (double)b->labels[s], scale = weight * (double)share;
        const double sp = score(params, u, p, r->factors);
        const int is_wmf = r->loss == DRPS_LOSS_WMF;
        double loss = is_wmf ? y * (1 - sp) * (1 - sp) / 2 : 0, place = 0;
        int is_found = 0;
        if (is_wmf && grads) step_pair(grads, params, u, p, r->factors, scale * y * (sp - 1), 1);
        for (size_t k = 0; k < n; k++) {
            const ptrdiff_t v = row_of(b, s, dim, DRPS_ROLE_NEGATIVE + k);
            const double sn = score(params, u, v, r->factors);
            double slope = 0, slope_p = 0;
            place += sn > sp ? 1 : sn == sp ? 0.5 : 0;
            if (is_wmf) {
                loss += sn * sn / 2 / (double)n;
                slope = sn / (double)n;
            } else if (r->loss == DRPS_LOSS_BPR) {
                loss += log(1 + exp(sn - sp)) / (double)n;
                slope = 1 / (1 + exp(sp - sn)) / (double)n;
                slope_p = -slope;
            } else if (!is_found && sn > sp - 1) {
                is_found = 1;
                slope = weight_after(r->items, k + 1);
                loss = slope * (1 - sp + sn);
                slope_p = -slope;
            }
            if (!grads) continue;
            step_pair(grads, params, u, v, r->factors, scale * slope, is_wmf);
            step_pair(grads, params, u, p, r->factors, scale * slope_p, 0);
        }
        ranked[s * DRPS_RANKED + DRPS_RANKED_LOSS] = (float)loss;
        ranked[s * DRPS_RANKED + DRPS_RANKED_PLACE] = (float)place;
        ranked[s * DRPS_RANKED + DRPS_RANKED_NEGATIVES] = (float)n;
        sum += weight * loss;
    }
    return sum;
}
