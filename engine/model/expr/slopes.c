/* Values of all operations, forward; then derivatives of the loss by each of them, backward. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/model/expr/drps_slopes.h"
#include "engine/model/expr/parts.h"
#include "index/expr/drps_expr_ops.h"

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

static size_t most_of(const struct place *p)
{
    return p->na > p->nb ? p->na : p->nb;
}

static void forward(int op, const struct place *p)
{
    const double log_total = op == OP_SOFTMAX || op == OP_LOG_SUM_EXP ? expr_log_sum(p->a, p->na)
                             : op == OP_SOFTMAX_ENTROPY               ? expr_log_sum(p->b, p->nb)
                                                                      : 0;
    memset(p->v, 0, p->n * sizeof(*p->v));
    if (op == OP_LOG_SUM_EXP) {
        p->v[0] = log_total;
        return;
    }
    for (size_t i = 0; i < most_of(p); i++) {
        const double a = p->a[p->na > 1 ? i : 0], b = p->nb ? p->b[p->nb > 1 ? i : 0] : 0;
        p->v[p->n > 1 ? i : 0] += op == OP_SOFTMAX           ? exp(a - log_total)
                                  : op == OP_SOFTMAX_ENTROPY ? a * (log_total - b)
                                                             : expr_part(op, a, b);
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
    const double log_total = expr_log_sum(p->b, p->nb);
    double total = 0;
    for (size_t i = 0; i < p->na; i++)
        total += p->a[i];
    for (size_t i = 0; i < p->nb; i++)
        p->db[i] += p->d[0] * (total * exp(p->b[i] - log_total) - p->a[i]);
    for (size_t i = 0; i < p->na; i++)
        p->da[i] += p->d[0] * (log_total - p->b[i]);
}

static void parts_backward(int op, const struct place *p)
{
    double by_a, by_b;
    for (size_t i = 0; i < most_of(p); i++) {
        const size_t at = p->n > 1 ? i : 0, at_a = p->na > 1 ? i : 0, at_b = p->nb > 1 ? i : 0;
        expr_part_slopes(op, p->a[at_a], p->nb ? p->b[at_b] : 0, p->v[at], &by_a, &by_b);
        p->da[at_a] += p->d[at] * by_a;
        if (p->nb) p->db[at_b] += p->d[at] * by_b;
    }
}

static void backward(int op, const struct place *p)
{
    switch (op) {
    case OP_SOFTMAX:
        softmax_backward(p);
        break;
    case OP_SOFTMAX_ENTROPY:
        softmax_entropy_backward(p);
        break;
    case OP_LOG_SUM_EXP:
        for (size_t i = 0; i < p->na; i++)
            p->da[i] += p->d[0] * exp(p->a[i] - p->v[0]);
        break;
    default:
        parts_backward(op, p);
        break;
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
                                "in column %d %s is %s; divide by and take log of nothing "
                                "that can be 0, or train with a smaller learning rate",
                                node->column, what,
                                isnan(v[i]) ? "not a number"
                                : v[i] > 0  ? "infinite"
                                            : "minus infinite");
    return 0;
}

static double leaf(const struct drps_expr *e, const struct drps_expr_node *node,
                   const struct drps_expr_sample *s, size_t c)
{
    switch (node->op) {
    case OP_NUMBER:
        return node->number;
    case OP_SCORES:
        return (double)s->scores[c];
    case OP_OWN:
        return s->own ? (double)s->own[c] : 0;
    default: /* OP_Y: a class is the vector that is 1 there */
        return !e->vector_y ? (double)s->y : (double)((float)c == s->y);
    }
}

static int values(const struct drps_expr *e, size_t outputs, const struct drps_expr_sample *s,
                  double *work, struct drps_err *err)
{
    int rc = 0;
    for (int i = 0; i < e->n && rc == 0; i++) {
        const struct drps_expr_node *node = &e->nodes[i];
        const struct place p = place_of(e, i, outputs, work);
        for (size_t c = 0; c < p.n && node->a < 0; c++)
            p.v[c] = leaf(e, node, s, c);
        if (node->a >= 0) forward(node->op, &p);
        rc = check_finite(node, "a value", p.v, p.n, err);
    }
    return rc;
}

/* Derivatives leave as floats. */
static int give_slopes(const struct drps_expr_node *node, const struct place *p, float *out,
                       struct drps_err *err)
{
    for (size_t c = 0; c < p->n && out; c++) {
        if (fabs(p->d[c]) > (double)FLT_MAX)
            return drps_err_set(err, DRPS_E_CONFIG,
                                "in column %d a derivative is too large; train with a "
                                "smaller learning rate",
                                node->column);
        out[c] = (float)p->d[c];
    }
    return 0;
}

/* What is of labels and numbers alone has no derivative that anything needs: it may be infinite. */
static int derivatives(const struct drps_expr *e, size_t outputs, const struct drps_expr_sample *s,
                       double *work, struct drps_err *err)
{
    int rc = 0;
    work[((size_t)e->n * 2 - 1) * outputs] = 1;
    for (int i = e->n - 1; i >= 0 && rc == 0; i--) {
        const struct drps_expr_node *node = &e->nodes[i];
        if (!node->varies) continue;
        const struct place p = place_of(e, i, outputs, work);
        rc = check_finite(node, "a derivative", p.d, p.n, err);
        if (rc == 0 && node->a >= 0) backward(node->op, &p);
        if (rc == 0 && node->op == OP_SCORES) rc = give_slopes(node, &p, s->slopes, err);
        if (rc == 0 && node->op == OP_OWN) rc = give_slopes(node, &p, s->own_slopes, err);
    }
    return rc;
}

int drps_expr_slopes(const struct drps_expr *e, size_t outputs, const struct drps_expr_sample *s,
                     double *work, double *loss_out, struct drps_err *err)
{
    memset(work, 0, drps_expr_work(e, outputs) * sizeof(*work));
    if (s->slopes) memset(s->slopes, 0, outputs * sizeof(*s->slopes));
    if (s->own_slopes) memset(s->own_slopes, 0, outputs * sizeof(*s->own_slopes));
    int rc = values(e, outputs, s, work, err);
    if (rc == 0 && (s->slopes || s->own_slopes)) rc = derivatives(e, outputs, s, work, err);
    *loss_out = rc == 0 ? work[(size_t)(e->n - 1) * outputs] : (double)NAN;
    return rc;
}

int drps_expr_value(const struct drps_expr *e, size_t outputs, const float *scores, double *work,
                    const double **value_out, size_t *n_out, struct drps_err *err)
{
    const struct drps_expr_sample s = {.scores = scores};
    *value_out = work + (size_t)(e->n - 1) * outputs;
    *n_out = e->nodes[e->n - 1].vector ? outputs : 1;
    return values(e, outputs, &s, work, err);
}
