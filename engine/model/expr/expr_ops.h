/* The operators of expressions: kind, name and number of operands. */
#ifndef DRPS_EXPR_OPS_H
#define DRPS_EXPR_OPS_H

enum expr_op {
    OP_SCORES,
    OP_Y,
    OP_NUMBER,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV, /* without names of functions */
    OP_EXP,
    OP_LOG,
    OP_TANH,
    OP_SIGMOID,
    OP_SOFTPLUS,
    OP_SQUARE,
    OP_SOFTMAX, /* vector to vector */
    OP_SUM,
    OP_NORM2, /* vector to scalar */
    OP_DOT,
    OP_CROSS_ENTROPY,
    OP_LOGISTIC,
    OP_SQUARED,         /* two vectors to scalar */
    OP_SOFTMAX_ENTROPY, /* cross_entropy(y, softmax(a)), whose logarithm never meets 0 */
};

#endif
