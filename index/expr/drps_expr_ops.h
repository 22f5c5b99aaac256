/* The operations of expressions. Shared with engine/model/expr/, which computes them. */
#ifndef DRPS_INDEX_EXPR_OPS_H
#define DRPS_INDEX_EXPR_OPS_H

enum drps_expr_op {
    OP_SCORES,
    OP_Y,
    OP_OWN,
    OP_NUMBER, /* those without operands come first */

    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MAX,
    OP_MIN, /* two operands, number by number */

    OP_NEGATIVE,
    OP_EXP,
    OP_LOG,
    OP_SQRT,
    OP_TANH,
    OP_SIGMOID,
    OP_SOFTPLUS,
    OP_SQUARE,
    OP_ABS,
    OP_RELU,
    OP_HUBER, /* one operand, number by number */

    OP_SOFTMAX, /* vector to vector */

    OP_SUM,
    OP_NORM1,
    OP_NORM2,
    OP_LOG_SUM_EXP, /* vector to number */

    OP_DOT,
    OP_CROSS_ENTROPY,
    OP_LOGISTIC,
    OP_HINGE,
    OP_SQUARED,         /* two of one shape to a number */
    OP_SOFTMAX_ENTROPY, /* cross_entropy(y, softmax(a)), whose logarithm never meets 0 */
};

#endif
