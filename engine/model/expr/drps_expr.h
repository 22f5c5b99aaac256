/*
 * A loss as a text, its value and its derivative by the scores: arithmetic only, no I/O, no memory.
 *
 *   cross_entropy(y, softmax(W*x))     logistic(y, w*x)     squared(y, W*x) + 0.01 * norm2(W*x)
 *
 * W*x are the J scores of a sample, a vector, and y is a vector of J floats; w*x is one score, and
 * y a number. For a = W*x the gradient by row k of W is x[k] u with u = df/da: u and x are the
 * sample's sufficient vectors. Source: Xie et al., "Orpheus", section 3.1.
 *
 * Shared inside engine/.
 */
#ifndef DRPS_ENGINE_MODEL_EXPR_H
#define DRPS_ENGINE_MODEL_EXPR_H

#include <stddef.h>

#include "base/drps_err.h"

enum { DRPS_EXPR_TEXT = 512, DRPS_EXPR_NODES = 128, DRPS_EXPR_DEPTH = 32 };

/* One operation; operands have smaller numbers than it. */
struct drps_expr_node {
    int op, a, b; /* b is -1 where there is one operand, a too where there is none */
    int vector;   /* 1: J numbers; 0: one */
    int column;   /* of the text, from 1 */
    double number;
};

struct drps_expr {
    struct drps_expr_node nodes[DRPS_EXPR_NODES];
    int n;
    int vector_scores; /* 1: W*x; 0: w*x */
};

/* Returns 0, or DRPS_E_CONFIG with the place in the text, what is wrong and what to do. */
DRPS_MUST_CHECK
int drps_expr_parse(struct drps_expr *e, const char *text, struct drps_err *err);

/* Returns how many doubles drps_expr_slopes() works in; `outputs` is J, 1 for w*x. */
size_t drps_expr_work(const struct drps_expr *e, size_t outputs);

/*
 * The loss of one sample, and u = its derivatives by the scores.
 *
 * scores, y, slopes [outputs]   of the caller; work [drps_expr_work()]
 * Returns 0, or DRPS_E_CONFIG where a value or a derivative is not finite: err names the column.
 */
DRPS_MUST_CHECK
int drps_expr_slopes(const struct drps_expr *e, size_t outputs, const float *scores, const float *y,
                     double *work, double *loss_out, float *slopes, struct drps_err *err);

#endif
