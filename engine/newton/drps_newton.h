/*
 * Quasi-Newton methods whose vectors lie in the row store (docs/quasi-newton.md). An epoch is one
 * pass over all samples, which gives value and gradient of the objective at one point:
 *
 *   f(w) = sum of the samples' losses + l2 / 2 |w|^2      of rows that training samples use,
 * without the intercept in |w|^2
 *
 * A row has the point that is tried, the accepted point before it, the gradient summed so far, and
 * with lbfgs what it has of the accepted gradient and of the last pairs s = difference of two
 * accepted points, y = difference of their gradients. When the pass first opens it, the row does
 * what was decided after the pass before: it accepts that point or goes back, keeps the pair, and
 * moves along the direction, a sum of the row's own vectors times coefficients that all rows share.
 * After the pass the rows are visited once, in the order of their numbers, for the dot products of
 * all vectors; these decide (Chen, Wang, Zhou: Large-scale L-BFGS using MapReduce, NIPS 2014).
 * Sums are in double in that order: stores, memory and threads do not matter.
 *
 * bfgs, dfp, sr1 and broyden keep an approximation of the inverse Hessian in memory, and read s and
 * y into arrays in that visit.
 */
#ifndef DRPS_ENGINE_NEWTON_H
#define DRPS_ENGINE_NEWTON_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "engine/model/drps_optim.h"
#include "storage/drps_store.h"

struct drps_newton; /* opaque */

/* Where the search for a step along the direction is. */
struct drps_newton_search {
    double value, slope;   /* at the accepted point, by a step of 1 */
    double step;           /* that is tried */
    double low, low_slope; /* the largest step known to be too short */
    double high;           /* the smallest known to be too long; infinite: none */
    uint64_t trials;
};

enum drps_newton_end {
    DRPS_NEWTON_GOES_ON,
    DRPS_NEWTON_CONVERGED, /* the gradient is as small as optim.tolerance asks for */
    DRPS_NEWTON_STALLED,   /* no step makes the value smaller: floats have no more digits */
};

/* All that is not in the rows, but for a matrix: what the rows do when the next pass opens them, or
 * the one under way has. */
struct drps_newton_state {
    uint64_t pass;  /* from 1 */
    int accepts;    /* the point of the pass before is accepted */
    int keeps;      /* and its pair goes to `slot` */
    uint32_t slot;  /* of the newest pair */
    uint32_t pairs; /* rows have pairs in slots 0 .. pairs - 1 then */
    /* The direction: these times the vectors, by slot. */
    double on_gradient, on_s[DRPS_OPTIM_PAIRS_MOST], on_y[DRPS_OPTIM_PAIRS_MOST];
    struct drps_newton_search search;
    double first_norm; /* of the first gradient */
    uint64_t idle;     /* accepted steps in a row that have hardly made the value smaller */
    enum drps_newton_end end;
};

/* What a pass came to. */
struct drps_newton_pass {
    double objective; /* at the point of the pass; 0: no quasi-Newton method */
    double gradient_norm;
    double step;       /* with which that point was reached; 0: where training begins */
    uint64_t accepted; /* 1: training goes on from there */
};

/* Bytes of memory; UINT64_MAX: more than there can be. */
uint64_t drps_newton_memory(const struct drps_optim *optim, uint64_t rows, uint32_t dim);

/* `from` NULL: begins anew. Otherwise what drps_newton_state() returned, checked with
 * drps_newton_check_state(); a method that keeps a matrix cannot go on. */
DRPS_MUST_CHECK
int drps_newton_open(const struct drps_optim *optim, uint64_t rows, uint32_t dim, int has_bias,
                     const struct drps_newton_state *from, struct drps_newton **newton_out,
                     struct drps_err *err);
void drps_newton_close(struct drps_newton *n); /* NULL-safe */

const struct drps_newton_state *drps_newton_state(const struct drps_newton *n);

/* Returns 0, or DRPS_E_CORRUPT when no run can have come to this state. */
DRPS_MUST_CHECK
int drps_newton_check_state(const struct drps_newton_state *s, const struct drps_optim *optim,
                            const char *path, struct drps_err *err);

/* ---- Rows ---- */

/* Fresh states of rows first .. first + n - 1 know their numbers, which a matrix needs. */
void drps_newton_number(const struct drps_optim *optim, uint32_t dim, uint64_t first, size_t n,
                        void *rows);

/* The rows [first, last) of a training step: those that the pass opens first move to its point.
 * params [m][dim] gets all of them. Several threads, disjoint ranges. */
void drps_newton_open_rows(const struct drps_newton *n, const struct drps_rows *rows, size_t first,
                           size_t last, float *params);

/* Add gradients [m][dim] of rows [first, last). Several threads, disjoint ranges. */
void drps_newton_add(const struct drps_newton *n, const struct drps_rows *rows, size_t first,
                     size_t last, const float *grads);

/* Passes on the accepted parameters of rows: ctx of drps_newton_visit_accepted(), a drps_row_visit
 * for scans of at least drps_newton_accepted_bytes(). visit() gets rows row_bytes apart, of which
 * only the first dim floats count. */
struct drps_newton_visit {
    const struct drps_newton *newton;
    drps_row_visit visit;
    void *ctx;
};
DRPS_MUST_CHECK
int drps_newton_visit_accepted(void *ctx, uint64_t first, size_t n, const void *rows,
                               struct drps_err *err);
size_t drps_newton_accepted_bytes(const struct drps_newton *n);

/* ---- After a pass ---- */

void drps_newton_sums_begin(struct drps_newton *n);

/* A drps_row_visit; ctx is the struct drps_newton: of all rows, whole. */
DRPS_MUST_CHECK
int drps_newton_sums_add(void *ctx, uint64_t first, size_t n, const void *rows,
                         struct drps_err *err);

/* Decide on the next pass. loss: the sum over all samples in this one. Returns what the pass came
 * to; whether another one is needed, drps_newton_state()->end says. */
struct drps_newton_pass drps_newton_decide(struct drps_newton *n, double loss);

#endif
