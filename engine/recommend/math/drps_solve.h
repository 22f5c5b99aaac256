/* Least squares with a penalty: the normal equations are summed up, and solved by Cholesky's
 * decomposition. Pure arithmetic. Shared inside engine/recommend/. */
#ifndef DRPS_ENGINE_RECOMMEND_MATH_SOLVE_H
#define DRPS_ENGINE_RECOMMEND_MATH_SOLVE_H

#include <stddef.h>

/* Sums over equations <z, x> = y in d unknowns. The arrays are the caller's. */
struct drps_normal {
    size_t d, n;    /* unknowns; equations so far */
    double *matrix; /* [d][d] the lower triangle: sum of z z' */
    double *right;  /* [d] sum of y z; then the solution */
};

/* No equations. */
void drps_normal_clear(struct drps_normal *s);

/* One more: z is 1, then rest [d - 1]. */
void drps_normal_add(struct drps_normal *s, const float *rest, double y);

/*
 * right becomes the x that minimises the sum of (<z, x> - y)^2 + penalty |x|^2; without equations
 * it is 0. The matrix is lost. Returns 1, or 0: the penalty is too small to tell what x is.
 */
int drps_normal_solve(struct drps_normal *s, double penalty);

#endif
