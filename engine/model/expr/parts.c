/* The operations that go number by number, and sums of such. */
#include "engine/model/expr/parts.h"

#include <math.h>

#include "index/expr/drps_expr_ops.h"

static double softplus(double a)
{
    return (a > 0 ? a : 0) + log1p(exp(-fabs(a)));
}

static double sigmoid(double a)
{
    const double t = exp(-fabs(a));
    return (a < 0 ? t : 1) / (1 + t);
}

/* -1, 0 at the kink, or 1. */
static double sign(double a)
{
    return (double)(a > 0) - (double)(a < 0);
}

static double huber(double a)
{
    return fabs(a) <= 1 ? 0.5 * a * a : fabs(a) - 0.5;
}

double expr_log_sum(const double *a, size_t n)
{
    double most = a[0], sum = 0;
    for (size_t i = 1; i < n; i++)
        most = a[i] > most ? a[i] : most;
    for (size_t i = 0; i < n; i++)
        sum += exp(a[i] - most);
    return most + log(sum);
}

double expr_part(int op, double a, double b)
{
    switch (op) {
    case OP_ADD:
        return a + b;
    case OP_SUB:
        return a - b;
    case OP_MUL:
    case OP_DOT:
        return a * b;
    case OP_DIV:
        return a / b;
    case OP_MAX:
        return a >= b ? a : b;
    case OP_MIN:
        return a <= b ? a : b;
    case OP_NEGATIVE:
        return -a;
    case OP_EXP:
        return exp(a);
    case OP_LOG:
        return log(a);
    case OP_SQRT:
        return sqrt(a);
    case OP_TANH:
        return tanh(a);
    case OP_SIGMOID:
        return sigmoid(a);
    case OP_SOFTPLUS:
        return softplus(a);
    case OP_SQUARE:
    case OP_NORM2:
        return a * a;
    case OP_ABS:
    case OP_NORM1:
        return fabs(a);
    case OP_RELU:
        return a > 0 ? a : 0;
    case OP_HUBER:
        return huber(a);
    case OP_SUM:
        return a;
    case OP_HINGE:
        return a * b < 1 ? 1 - a * b : 0;
    case OP_CROSS_ENTROPY:
        return a == 0 ? 0 : -a * log(b);
    case OP_LOGISTIC:
        return softplus(-a * b);
    default:
        return 0.5 * (a - b) * (a - b); /* OP_SQUARED */
    }
}

void expr_part_slopes(int op, double a, double b, double v, double *by_a, double *by_b)
{
    *by_a = 1, *by_b = 0;
    switch (op) {
    case OP_ADD:
        *by_b = 1;
        break;
    case OP_SUB:
        *by_b = -1;
        break;
    case OP_MUL:
    case OP_DOT:
        *by_a = b, *by_b = a;
        break;
    case OP_DIV:
        *by_a = 1 / b, *by_b = -v / b;
        break;
    case OP_MAX:
        *by_a = a >= b, *by_b = !(a >= b);
        break;
    case OP_MIN:
        *by_a = a <= b, *by_b = !(a <= b);
        break;
    case OP_NEGATIVE:
        *by_a = -1;
        break;
    case OP_EXP:
        *by_a = v;
        break;
    case OP_LOG:
        *by_a = 1 / a;
        break;
    case OP_SQRT:
        *by_a = 0.5 / v;
        break;
    case OP_TANH:
        *by_a = 1 - v * v;
        break;
    case OP_SIGMOID:
        *by_a = v * (1 - v);
        break;
    case OP_SOFTPLUS:
        *by_a = sigmoid(a);
        break;
    case OP_SQUARE:
    case OP_NORM2:
        *by_a = 2 * a;
        break;
    case OP_ABS:
    case OP_NORM1:
        *by_a = sign(a);
        break;
    case OP_RELU:
        *by_a = a > 0;
        break;
    case OP_HUBER:
        *by_a = fabs(a) <= 1 ? a : sign(a);
        break;
    case OP_SUM:
        break;
    case OP_HINGE:
        *by_a = a * b < 1 ? -b : 0, *by_b = a * b < 1 ? -a : 0;
        break;
    case OP_CROSS_ENTROPY:
        *by_a = a == 0 ? 0 : -log(b), *by_b = a == 0 ? 0 : -a / b;
        break;
    case OP_LOGISTIC:
        *by_a = -b * sigmoid(-a * b), *by_b = -a * sigmoid(-a * b);
        break;
    default:
        *by_a = a - b, *by_b = b - a;
        break;
    }
}
