/*
 * Projection of a batch's gradient dW = sum of u_i x_i' onto the chosen x. With S their matrix:
 *
 *   U' = solve(S S' + r I, S (V' U + E)),   r = 1e-6 of the largest squared norm of a chosen x
 *
 * where E is what earlier projections left wrong. Private to engine/cluster/sv/select/.
 */
#ifndef DRPS_SELECT_PROJECT_H
#define DRPS_SELECT_PROJECT_H

#include "engine/model/drps_vectors.h"

/* Shapes: n vectors of the batch, C picks. */
struct projection {
    const struct drps_vectors *batch;
    const uint32_t *picks; /* [C] */
    uint32_t count;        /* C */
    const double *gram_u;  /* [n][n] */
    const double *gram_x;  /* [n][n] */
    double *factor;        /* [C][C] scratch: the Cholesky factor of S S' + r I */
    double *block;         /* scratch of projection_block_bytes() */
};

size_t projection_block_bytes(uint32_t count);

/* u_out [C][dim] without E. Returns the share of |dW|^2 that is right, 0 where the matrix cannot be
 * factored, and 1 for a dW of zeros. */
double project(const struct projection *p, float *u_out);

/* Add to u_out, of project(), what error [rows][dim] asks for, and let `error` be what is left. */
void project_error(const struct projection *p, float *error, float *u_out);

#endif
