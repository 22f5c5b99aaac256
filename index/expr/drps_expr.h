/*
 * Losses as texts: the language, parsed to a list of operations whose shapes are checked.
 *
 *   cross_entropy(y, softmax(W*x))     logistic(y, w*x)     squared(y, W*x) + 0.01 * norm2(W*x)
 *
 * W*x are the J scores of a sample, a vector; w*x is one score, a number. y is the label: where the
 * loss has W*x and labels are named classes a vector of J, which is 1 at the sample's class and 0
 * elsewhere; otherwise a number. `own` is a row of the training sample alone, of the scores' shape,
 * 0 for other samples. docs/expressions.md has the operators. engine/model/expr/ computes values
 * and derivatives.
 *
 * Source: Xie et al., "Orpheus", section 3.1; own is a data-dependent variable of section 4.
 */
#ifndef DRPS_INDEX_EXPR_H
#define DRPS_INDEX_EXPR_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

/* A text with its end, operations, brackets in each other, and J. */
enum {
    DRPS_EXPR_TEXT = 512,
    DRPS_EXPR_NODES = 128,
    DRPS_EXPR_DEPTH = 32,
    DRPS_EXPR_OUTPUTS_LEAST = 2,
    DRPS_EXPR_OUTPUTS_MOST = 65535
};

/* One operation; operands have smaller numbers than it. */
struct drps_expr_node {
    double number;
    int16_t a, b;   /* b is -1 where there is one operand, a too where there is none */
    int16_t column; /* of the text, from 1 */
    uint8_t op;     /* enum drps_expr_op */
    uint8_t vector; /* 1: J numbers; 0: one */
    uint8_t varies; /* 1: with scores or own, so that there is a derivative */
};

/* Holds no pointers: a copy is one of its own. n is 0 where there is none. */
struct drps_expr {
    char text[DRPS_EXPR_TEXT];
    struct drps_expr_node nodes[DRPS_EXPR_NODES];
    int n;
    int vector_scores; /* 1: W*x; 0: w*x */
    int vector_y;      /* 1: labels are named classes; 0: numbers */
    int has_own;
};

/* Parse a loss. With `number_y` labels are numbers also where the loss has W*x. Returns 0, or
 * DRPS_E_CONFIG with the place in the text, what is wrong and what to do. */
DRPS_MUST_CHECK
int drps_expr_parse(struct drps_expr *e, const char *text, int number_y, struct drps_err *err);

/* Parse a value that is made of the scores alone, J = outputs of them: a number or a vector,
 * without y and own. Errors are those of drps_expr_parse(). */
DRPS_MUST_CHECK
int drps_expr_parse_value(struct drps_expr *e, const char *text, size_t outputs,
                          struct drps_err *err);

/* 1: the loss has a softmax of the scores, which are log-probabilities then, up to a constant. */
int drps_expr_has_softmax(const struct drps_expr *e);

/* Returns the name of an operation whose derivative jumps, as that of abs at 0; NULL: there is
 * none. */
const char *drps_expr_kink(const struct drps_expr *e);

#endif
