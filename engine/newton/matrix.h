/*
 * The methods that keep the approximation H of the inverse Hessian, all of it, in memory: bfgs,
 * dfp, sr1, broyden. n parameters; everything in double. Private to engine/newton/.
 */
#ifndef DRPS_ENGINE_NEWTON_MATRIX_H
#define DRPS_ENGINE_NEWTON_MATRIX_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "engine/model/drps_optim.h"

struct newton_matrix {
    size_t n;                     /* parameters; 0: there is no matrix */
    double *h;                    /* own: [n][n]; of no meaning while !begun */
    int begun;                    /* a pair was taken since the start, or since forget() */
    double *gradient, *direction; /* own: [n], as are all below; at the accepted point */
    double *point_gradient, *s;   /* at the point of the pass; the way to it */
    double *y, *hy, *sh;          /* scratch */
};

/* Returns the bytes of n parameters; UINT64_MAX: more than there can be. */
uint64_t newton_matrix_memory(uint64_t n);

DRPS_MUST_CHECK
int newton_matrix_init(struct newton_matrix *m, size_t n, struct drps_err *err);
void newton_matrix_destroy(struct newton_matrix *m);

/* The point is accepted: its gradient becomes `gradient`. pair: H takes s and y, too. Without
 * curvature, s . y not positive, H is forgotten. */
void newton_matrix_accept(struct newton_matrix *m, enum drps_optim_kind kind, int pair);

/* direction = - H gradient, or without H - gradient. Returns the slope along it; where that is not
 * negative H is forgotten first. */
double newton_matrix_direction(struct newton_matrix *m);

#endif
