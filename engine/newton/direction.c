/* The direction of L-BFGS as coefficients of its vectors: the two-loop recursion (Nocedal 1980),
 * in which every dot product is taken from those of the vectors with each other. */
#include "engine/newton/newton_internal.h"

/* vector i times the direction so far, of which the coefficients are `on` [2 pairs + 1] */
static double times(const double dot[NEWTON_VECTORS_MOST][NEWTON_VECTORS_MOST], uint32_t vectors,
                    uint32_t i, const double *on)
{
    double sum = 0;
    for (uint32_t j = 0; j < vectors; j++)
        sum += on[j] * (i < j ? dot[i][j] : dot[j][i]);
    return sum;
}

double newton_direction(const double dot[NEWTON_VECTORS_MOST][NEWTON_VECTORS_MOST], uint32_t pairs,
                        uint32_t oldest, struct drps_newton_state *s)
{
    const uint32_t gradient = 2 * pairs, vectors = 2 * pairs + 1;
    double on[NEWTON_VECTORS_MOST] = {0}, alpha[DRPS_OPTIM_PAIRS_MOST];

    on[gradient] = -1;
    for (uint32_t k = pairs; k-- > 0;) { /* the newest pair first */
        const uint32_t i = (oldest + k) % pairs;
        alpha[i] = times(dot, vectors, i, on) / dot[i][pairs + i];
        on[pairs + i] -= alpha[i];
    }
    if (pairs) {
        const uint32_t newest = (oldest + pairs - 1) % pairs, y = pairs + newest;
        const double scale = dot[newest][y] / dot[y][y];
        for (uint32_t j = 0; j < vectors; j++)
            on[j] *= scale;
    }
    for (uint32_t k = 0; k < pairs; k++) {
        const uint32_t i = (oldest + k) % pairs;
        const double beta = times(dot, vectors, pairs + i, on) / dot[i][pairs + i];
        on[i] += alpha[i] - beta;
    }
    memset(s->on_s, 0, sizeof(s->on_s));
    memset(s->on_y, 0, sizeof(s->on_y));
    s->on_gradient = on[gradient];
    memcpy(s->on_s, on, pairs * sizeof(*on));
    memcpy(s->on_y, on + pairs, pairs * sizeof(*on));
    return times(dot, vectors, gradient, on);
}
