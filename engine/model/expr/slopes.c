/* Values of all operations, forward; then derivatives of the loss by each of them, backward. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/model/expr/drps_expr.h"
#include "engine/model/expr/expr_ops.h"

/* Arrays of one operation: values v and derivatives d, of itself and of its operands. */
struct place {
    size_t n, na, nb; /* numbers of the result and of the operands */
    const double *a, *b;
    double *v, *d, *da, *db;
};

size_t drps_expr_work(const struct drps_expr *e, size_t outputs)
{
    return 2 * (size_t)e->n * outputs;
}

static double softplus(double a)
{
    return (a > 0 ? a : 0) + log1p(exp(-fabs(a)));
}

static double sigmoid(double a)
{
    const double t = exp(-fabs(a));
    return (a < 0 ? t : 1) / (1 + t);
}

/* Returns the logarithm of the sum of exp(a). */
static double log_sum(const double *a, size_t n)
{
    double most = a[0], sum = 0;
    for (size_t i = 1; i < n; i++)
        most = a[i] > most ? a[i] : most;
    for (size_t i = 0; i < n; i++)
        sum += exp(a[i] - most);
    return most + log(sum);
}

/* The part of operation `op` that numbers a and b of its operands make. */
static double part(int op, double a, double b)
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
    case OP_EXP:
        return exp(a);
    case OP_LOG:
        return log(a);
    case OP_TANH:
        return tanh(a);
    case OP_SIGMOID:
        return sigmoid(a);
    case OP_SOFTPLUS:
        return softplus(a);
    case OP_SQUARE:
    case OP_NORM2:
        return a * a;
    case OP_SUM:
        return a;
    case OP_CROSS_ENTROPY:
        return a == 0 ? 0 : -a * log(b);
    case OP_LOGISTIC:
        return softplus(-a * b);
    default:
        return 0.5 * (a - b) * (a - b); /* OP_SQUARED */
    }
}

/* The derivatives of part() by a and b; v is what it returned. */
static void part_slopes(int op, double a, double b, double v, double *by_a, double *by_b)
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
    case OP_EXP:
        *by_a = v;
        break;
    case OP_LOG:
        *by_a = 1 / a;
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
    case OP_SUM:
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

static size_t most_of(const struct place *p)
{
    return p->na > p->nb ? p->na : p->nb;
}

static void forward(int op, const struct place *p)
{
    const double log_total = op == OP_SOFTMAX           ? log_sum(p->a, p->na)
                             : op == OP_SOFTMAX_ENTROPY ? log_sum(p->b, p->nb)
                                                        : 0;
    memset(p->v, 0, p->n * sizeof(*p->v));
    for (size_t i = 0; i < most_of(p); i++) {
        const double a = p->a[p->na > 1 ? i : 0], b = p->nb ? p->b[p->nb > 1 ? i : 0] : 0;
        p->v[p->n > 1 ? i : 0] += op == OP_SOFTMAX           ? exp(a - log_total)
                                  : op == OP_SOFTMAX_ENTROPY ? a * (log_total - b)
                                                             : part(op, a, b);
    }
}

static void softmax_backward(const struct place *p)
{
    double inner = 0;
    for (size_t i = 0; i < p->n; i++)
        inner += p->d[i] * p->v[i];
    for (size_t i = 0; i < p->n; i++)
        p->da[i] += p->v[i] * (p->d[i] - inner);
}

static void softmax_entropy_backward(const struct place *p)
{
    const double log_total = log_sum(p->b, p->nb);
    double total = 0;
    for (size_t i = 0; i < p->na; i++)
        total += p->a[i];
    for (size_t i = 0; i < p->nb; i++)
        p->db[i] += p->d[0] * (total * exp(p->b[i] - log_total) - p->a[i]);
}

static void backward(int op, const struct place *p)
{
    double by_a, by_b;
    if (op == OP_SOFTMAX) {
        softmax_backward(p);
        return;
    }
    if (op == OP_SOFTMAX_ENTROPY) {
        softmax_entropy_backward(p);
        return;
    }
    for (size_t i = 0; i < most_of(p); i++) {
        const size_t at = p->n > 1 ? i : 0, at_a = p->na > 1 ? i : 0, at_b = p->nb > 1 ? i : 0;
        part_slopes(op, p->a[at_a], p->nb ? p->b[at_b] : 0, p->v[at], &by_a, &by_b);
        p->da[at_a] += p->d[at] * by_a;
        if (p->nb) p->db[at_b] += p->d[at] * by_b;
    }
}

static struct place place_of(const struct drps_expr *e, int i, size_t outputs, double *work)
{
    const struct drps_expr_node *node = &e->nodes[i];
    double *slopes = work + (size_t)e->n * outputs;
    struct place p = {.n = node->vector ? outputs : 1,
                      .v = work + (size_t)i * outputs,
                      .d = slopes + (size_t)i * outputs};
    if (node->a >= 0) {
        p.na = e->nodes[node->a].vector ? outputs : 1;
        p.a = work + (size_t)node->a * outputs;
        p.da = slopes + (size_t)node->a * outputs;
    }
    if (node->b >= 0) {
        p.nb = e->nodes[node->b].vector ? outputs : 1;
        p.b = work + (size_t)node->b * outputs;
        p.db = slopes + (size_t)node->b * outputs;
    }
    return p;
}

static int check_finite(const struct drps_expr_node *node, const char *what, const double *v,
                        size_t n, struct drps_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return drps_err_set(err, DRPS_E_CONFIG,
                                "loss, column %d: %s is %g; divide by and take log of nothing "
                                "that can be 0, or train with a smaller --lr",
                                node->column, what, v[i]);
    return 0;
}

/* Slopes are floats. */
static int too_large(const struct drps_expr_node *node, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CONFIG,
                        "loss, column %d: a derivative is too large; train with a smaller --lr",
                        node->column);
}

int drps_expr_slopes(const struct drps_expr *e, size_t outputs, const float *scores, const float *y,
                     double *work, double *loss_out, float *slopes, struct drps_err *err)
{
    int rc = 0;
    memset(work, 0, drps_expr_work(e, outputs) * sizeof(*work));
    memset(slopes, 0, outputs * sizeof(*slopes));
    for (int i = 0; i < e->n && rc == 0; i++) {
        const struct drps_expr_node *node = &e->nodes[i];
        const struct place p = place_of(e, i, outputs, work);
        for (size_t c = 0; c < p.n && node->a < 0; c++)
            p.v[c] = node->op == OP_NUMBER   ? node->number
                     : node->op == OP_SCORES ? (double)scores[c]
                                             : (double)y[c];
        if (node->a >= 0) forward(node->op, &p);
        rc = check_finite(node, "a value", p.v, p.n, err);
    }
    if (rc == 0) work[((size_t)e->n * 2 - 1) * outputs] = 1;
    for (int i = e->n - 1; i >= 0 && rc == 0; i--) {
        const struct place p = place_of(e, i, outputs, work);
        rc = check_finite(&e->nodes[i], "a derivative", p.d, p.n, err);
        for (size_t c = 0; c < p.n && rc == 0 && e->nodes[i].op == OP_SCORES; c++)
            rc = fabs(p.d[c]) > (double)FLT_MAX ? too_large(&e->nodes[i], err) : 0;
        if (rc == 0 && e->nodes[i].a >= 0) backward(e->nodes[i].op, &p);
        for (size_t c = 0; c < p.n && e->nodes[i].op == OP_SCORES; c++)
            slopes[c] = (float)p.d[c];
    }
    *loss_out = rc == 0 ? work[(size_t)(e->n - 1) * outputs] : (double)NAN;
    return rc;
}
