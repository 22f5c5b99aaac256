/*
 * The optimizers: their kinds, rows at the beginning, and the plain twin of their steps, which are
 * in optim_step.c.
 */
#include "engine/model/drps_optim.h"

#include <math.h>
#include <string.h>

static const char *const names[] = {
    [DRPS_OPTIM_SGD] = "sgd",         [DRPS_OPTIM_ADAGRAD] = "adagrad",
    [DRPS_OPTIM_FTRL] = "ftrl",       [DRPS_OPTIM_ADAM] = "adam",
    [DRPS_OPTIM_LBFGS] = "lbfgs",     [DRPS_OPTIM_BFGS] = "bfgs",
    [DRPS_OPTIM_DFP] = "dfp",         [DRPS_OPTIM_SR1] = "sr1",
    [DRPS_OPTIM_BROYDEN] = "broyden", [DRPS_OPTIM_ALTERNATING] = "alternating",
};

const char *drps_optim_name(enum drps_optim_kind kind)
{
    return (size_t)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "unknown";
}

static const float TOLERANCE = 1e-5f;

/* The usual settings of the kind. */
static void set_usual(struct drps_optim *o)
{
    static const float rates[] = {0.01f, 0.05f, 0.1f, 0.001f};
    if (drps_optim_is_newton(o->kind)) {
        o->pairs = o->kind == DRPS_OPTIM_LBFGS ? DRPS_OPTIM_PAIRS : 0;
        o->tolerance = TOLERANCE;
        return;
    }
    if (o->kind == DRPS_OPTIM_ALTERNATING) return;
    o->lr = rates[o->kind];
    o->eps = DRPS_OPTIM_EPS;
    o->beta = DRPS_OPTIM_BETA;
    if (o->kind != DRPS_OPTIM_ADAM) return;
    o->beta1 = DRPS_OPTIM_BETA1;
    o->beta2 = DRPS_OPTIM_BETA2;
}

int drps_optim_init(struct drps_optim *o, const char *kind, struct drps_err *err)
{
    memset(o, 0, sizeof(*o));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(kind, names[i]) == 0) {
            o->kind = (enum drps_optim_kind)i;
            set_usual(o);
            return 0;
        }
    return drps_err_set(
        err, DRPS_E_CONFIG,
        "optimizer \"%s\" is none of sgd, adagrad, ftrl, adam, lbfgs, bfgs, dfp, sr1, broyden",
        kind);
}

uint32_t drps_optim_states(const struct drps_optim *o)
{
    static const uint32_t states[] = {[DRPS_OPTIM_SGD] = 0,
                                      [DRPS_OPTIM_ADAGRAD] = 1,
                                      [DRPS_OPTIM_FTRL] = 2,
                                      [DRPS_OPTIM_ADAM] = 2};
    if (drps_optim_is_newton(o->kind)) return DRPS_OPTIM_NEWTON_STATES + 2 * o->pairs;
    return drps_optim_steps_batches(o->kind) ? states[o->kind] : 0;
}

size_t drps_optim_row_floats(const struct drps_optim *o, uint32_t dim)
{
    return (size_t)dim * (1 + drps_optim_states(o)) + (o->kind == DRPS_OPTIM_ADAM);
}

void drps_optim_init_row(const struct drps_optim *o, uint32_t dim, int intercept, float *row)
{
    memset(row + dim, 0, (drps_optim_row_floats(o, dim) - dim) * sizeof(*row));
    if (o->kind != DRPS_OPTIM_FTRL) return;
    for (uint32_t d = 0; d < dim; d++) {
        /* ftrl_one's closed form with n = 0, solved for z */
        const float l2 = intercept ? 0.0f : o->l2,
                    l1 = intercept || (d > 0 && !o->l1_all) ? 0.0f : o->l1;
        const float z = fabsf(row[d]) * (drps_optim_beta(o) / o->lr + l2) + l1;
        row[dim + d] = row[d] > 0 ? -z : row[d] < 0 ? z : 0.0f;
    }
}

/* What adam steps a row with, of which this is step t. */
static struct drps_optim adam_at_ref(const struct drps_optim *o, float t)
{
    struct drps_optim at = *o;
    const double share = 1 - pow((double)drps_optim_beta1(o), (double)t);
    const double root = sqrt(1 - pow((double)drps_optim_beta2(o), (double)t));
    at.lr = (float)((double)o->lr * root / share);
    at.eps = (float)((double)drps_optim_eps(o) * root);
    at.l1 = (float)((double)o->l1 * share);
    return at;
}

/* The rules of engine/model/drps_optim.h, one float at a time. */
static void step_float_ref(const struct drps_optim *o, float *w, float *a, float *b, float g,
                           float l2, float l1)
{
    float rate = o->lr;

    if (o->kind == DRPS_OPTIM_FTRL) {
        const float before = sqrtf(*b), after = sqrtf(*b + g * g);
        *a += g - (after - before) / o->lr * *w;
        *b += g * g;
        if (fabsf(*a) <= l1)
            *w = 0;
        else
            *w = -(*a - (*a > 0 ? l1 : -l1)) / ((drps_optim_beta(o) + after) / o->lr + l2);
        return;
    }
    g += l2 * *w;
    if (o->kind == DRPS_OPTIM_ADAGRAD) {
        *a += g * g;
        rate = o->lr / sqrtf(*a + drps_optim_eps(o));
        if (isinf(*a)) *w = NAN;
    }
    if (o->kind == DRPS_OPTIM_ADAM) {
        const float beta1 = drps_optim_beta1(o), beta2 = drps_optim_beta2(o);
        *a = beta1 * *a + (1 - beta1) * g;
        *b = beta2 * *b + (1 - beta2) * (g * g);
        rate = o->lr / (sqrtf(*b) + drps_optim_eps(o));
        if (isinf(*b)) *w = NAN;
        g = *a;
    }
    *w -= rate * g;
    if (l1 > 0) {
        if (*w > l1 * rate)
            *w -= l1 * rate;
        else if (*w < -(l1 * rate))
            *w += l1 * rate;
        else if (!isnan(*w))
            *w = 0;
    }
}

void drps_optim_step_ref(const struct drps_optim *o, uint32_t dim, const struct drps_rows *rows,
                         size_t first, size_t last, const float *grads, const uint32_t *touches,
                         size_t common)
{
    for (size_t i = first; i < last; i++) {
        float *w = drps_row_at(rows, i);
        struct drps_optim at = *o;
        if (o->kind == DRPS_OPTIM_ADAM) at = adam_at_ref(o, w[3 * dim] += 1);
        for (uint32_t d = 0; d < dim; d++) {
            float l1 = d == 0 || o->l1_all ? at.l1 : 0, l2 = o->l2;
            if (drps_optim_counts_touches(o->kind) && (o->l1 > 0 || o->l2 > 0)) {
                l1 *= (float)touches[i];
                l2 *= (float)touches[i];
            }
            if (i < common) l1 = l2 = 0;
            step_float_ref(&at, &w[d], &w[dim + d], &w[2 * dim + d], grads[i * dim + d], l2, l1);
        }
    }
}

void drps_batch_touches(const struct drps_batch *b, size_t first, size_t last, int has_bias,
                        uint32_t *touches)
{
    const size_t end = drps_batch_start(b, last);

    if (has_bias) touches[0] += (uint32_t)(last - first);
    if (b->local16)
        for (size_t j = drps_batch_start(b, first); j < end; j++)
            touches[b->local16[j]]++;
    else
        for (size_t j = drps_batch_start(b, first); j < end; j++)
            touches[b->local32[j]]++;
}
