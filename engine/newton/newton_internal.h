/* What the sources of engine/newton/ share. Private to it. */
#ifndef DRPS_ENGINE_NEWTON_INTERNAL_H
#define DRPS_ENGINE_NEWTON_INTERNAL_H

#include <string.h>

#include "engine/newton/drps_newton.h"
#include "engine/newton/matrix.h"

/* Arrays of dim floats of a row. */
enum newton_lane {
    LANE_POINT,    /* that is tried, or that was tried last */
    LANE_ACCEPTED, /* the accepted point that it was reached from */
    LANE_MARK,     /* its first float: the pass that has moved the row last, a uint32_t; 0: none */
    LANE_SUM,      /* of gradients in that pass, and */
    LANE_REST,     /* what rounding has left of it */
    LANE_OWN,      /* lbfgs: the gradient at the accepted point; a matrix: the row's number */
    LANE_PAIRS,    /* s and y of slot 0, of slot 1, ... */
};

enum { NEWTON_VECTORS_MOST = 2 * DRPS_OPTIM_PAIRS_MOST + 1 };

/* Sums over the rows of a pass. The point of the pass is taken as accepted: of `vectors`, s are the
 * first in the order of slots, then y, then the gradient. */
struct newton_sums {
    double weights;                                       /* squares of all but the intercept */
    double gradient;                                      /* squares */
    double along;                                         /* gradient times (point - accepted) */
    double dot[NEWTON_VECTORS_MOST][NEWTON_VECTORS_MOST]; /* [i][j], i <= j */
};

struct drps_newton {
    struct drps_optim optim;
    uint64_t rows;
    uint32_t dim;
    int has_bias;
    size_t row_bytes;
    struct drps_newton_state state;
    struct newton_sums sums;
    struct newton_matrix matrix; /* without any: lbfgs */
};

static inline float *newton_lane(const void *row, uint32_t dim, size_t lane)
{
    return (float *)(uintptr_t)row + lane * dim;
}

static inline uint32_t newton_u32(const void *row, uint32_t dim, size_t lane)
{
    uint32_t v;
    memcpy(&v, newton_lane(row, dim, lane), sizeof(v));
    return v;
}

static inline void newton_set_u32(void *row, uint32_t dim, size_t lane, uint32_t v)
{
    memcpy(newton_lane(row, dim, lane), &v, sizeof(v));
}

/* Float d of the gradient at the point of the pass that has moved the row. */
static inline double newton_gradient(const float *row, uint32_t dim, size_t d, double l2)
{
    return (double)row[LANE_SUM * dim + d] + (double)row[LANE_REST * dim + d] + l2 * (double)row[d];
}

/*
 * The direction of lbfgs, by the two-loop recursion on coefficients. dot as in struct newton_sums,
 * of `pairs` pairs in a ring whose oldest is `oldest`; the coefficients go to s.on_..., by slot.
 * Returns the slope along it, by a step of 1.
 */
double newton_direction(const double dot[NEWTON_VECTORS_MOST][NEWTON_VECTORS_MOST], uint32_t pairs,
                        uint32_t oldest, struct drps_newton_state *s);

/* The slot that the next pair goes to. */
uint32_t newton_next_slot(const struct drps_newton *n);

/* A new direction, with that slope, from a point of that value; `step` is tried first. */
void newton_search_begin(struct drps_newton_search *s, double value, double slope, double step);

enum newton_verdict { NEWTON_ACCEPTED, NEWTON_AGAIN, NEWTON_STUCK };

/* What becomes of the step that was tried, with this value and slope (by a step of 1). AGAIN: with
 * another s->step. STUCK: there is none. */
enum newton_verdict newton_search_judge(struct drps_newton_search *s, double value, double slope);

#endif
