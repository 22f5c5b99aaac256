/*
 * Optimizers: how a row changes when the sum of its gradients over a batch is known.
 *
 * A stored row is D parameters followed by the optimizer's state, D floats for each of its
 * `states`, and with adam one float a row, t:
 *
 *   sgd      0   w -= lr * g
 *   adagrad  1   a += g^2;  w -= lr * g / sqrt(a + eps)
 *   ftrl     2   z += g - (sqrt(n + g^2) - sqrt(n)) / lr * w;  n += g^2;
 *                w = |z| <= l1 ? 0 : -(z - sign(z) l1) / ((beta + sqrt(n)) / lr + l2)
 *   adam     2   t += 1;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
 *                w -= lr_t * m / (sqrt(v) + eps_t)  with
 *                lr_t = lr sqrt(1 - beta2^t) / (1 - beta1^t),  eps_t = eps sqrt(1 - beta2^t)
 *
 * AdaGrad is that of Duchi, Hazan and Singer (JMLR 2011), FTRL-Proximal that of McMahan et al. (KDD
 * 2013), Algorithm 1, whose alpha is `lr`. Adam is Algorithm 1 of Kingma and Ba (ICLR 2015), in the
 * order of operations that their section 2 gives, with eps_t so that the result is that of
 * Algorithm 1. It is the lazy form for sparse gradients: what a row has of m, v and t changes only
 * in steps that touch the row, and t is the number of these steps. So a row's bytes depend on its
 * own gradients and their order alone, like those of the other optimizers.
 *
 * Regularisation touches only rows of the batch, once for each sample that touches the row: before
 * the step g += touches * l2 * w; for sgd, adagrad and adam l1 shrinks w after the step by touches
 * * l1 * (the step's rate), which of adam is (1 - beta1^t) lr_t / (sqrt(v) + eps_t), as m has that
 * share of a gradient that stays. FTRL applies l1 and l2 in its closed form. l1 applies to the
 * first float of a row only (weights and biases, not factors) unless l1_all is set; neither applies
 * to the intercept.
 *
 * Quasi-Newton methods step once in a pass over all samples: engine/newton/drps_newton.h. What
 * follows on stepping rows is not for them; a row has DRPS_OPTIM_NEWTON_STATES states, and with
 * lbfgs two more for each of its pairs.
 *
 * Of a topic model (alternating) batches step nothing here, and rows have no state.
 *
 * What is no finite number does not become one again: a parameter that is none stays so, and one
 * whose sum or mean of squares (a, n, v) is infinite becomes none, so that whoever looks at
 * parameters sees it.
 */
#ifndef DRPS_ENGINE_MODEL_OPTIM_H
#define DRPS_ENGINE_MODEL_OPTIM_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "engine/model/drps_model.h"

enum drps_optim_kind {
    DRPS_OPTIM_SGD,
    DRPS_OPTIM_ADAGRAD,
    DRPS_OPTIM_FTRL,
    DRPS_OPTIM_ADAM, /* the last one that steps after a batch */
    /* Quasi-Newton: */
    DRPS_OPTIM_LBFGS,
    DRPS_OPTIM_BFGS, /* this one and those after it keep a matrix of all parameters */
    DRPS_OPTIM_DFP,
    DRPS_OPTIM_SR1,
    DRPS_OPTIM_BROYDEN,
    DRPS_OPTIM_ALTERNATING, /* of topic models alone: engine/topic/ */
};

enum { DRPS_OPTIM_NEWTON_STATES = 5, DRPS_OPTIM_PAIRS = 10, DRPS_OPTIM_PAIRS_MOST = 32 };

/* The largest of adam's betas: as t counts to 2^24, where floats end to count, and then stays, its
 * 2^24th power must be nothing beside 1. */
#define DRPS_OPTIM_BETAS_MOST 0.999999f

struct drps_optim {
    enum drps_optim_kind kind;
    float lr;   /* learning rate, > 0 (ftrl: alpha); drps_optim_init() gives sgd 0.01, adagrad 0.05,
                   ftrl 0.1, adam 0.001 */
    float l1;   /* >= 0 */
    float l2;   /* >= 0 */
    float eps;  /* adagrad: added under the root, adam: to the root; 0: 1e-8 */
    float beta; /* ftrl; 0: 1 */
    float beta1, beta2; /* adam: > 0, at most DRPS_OPTIM_BETAS_MOST; 0: 0.9 and 0.999 */
    uint32_t pairs;     /* lbfgs: steps that it remembers; else 0. DRPS_OPTIM_PAIRS after init */
    float tolerance;    /* quasi-Newton: done when the gradient's norm is this share of the first */
    int l1_all; /* 1: l1 applies to every float of a row, as all are weights; 0: to the first */
};

/* Set `o` to the kind of this name ("sgd", "adagrad", ...), with its usual rate and without
 * regularisation. DRPS_E_CONFIG: there is no such kind. */
DRPS_MUST_CHECK
int drps_optim_init(struct drps_optim *o, const char *kind, struct drps_err *err);
const char *drps_optim_name(enum drps_optim_kind kind);

/* Returns how many state arrays of D floats a row has. */
uint32_t drps_optim_states(const struct drps_optim *o);

/* Returns the floats of a row of `dim` parameters, with its state. */
size_t drps_optim_row_floats(const struct drps_optim *o, uint32_t dim);

/* Returns the most that it is with an optimizer that steps batches. */
static inline uint64_t drps_optim_row_floats_most(uint64_t dim)
{
    return 3 * dim + 1;
}

/* 1: it steps rows after each batch; 1: l1 and l2 count once for each sample that touches a row; 1:
 * a quasi-Newton method; 1: one that keeps a matrix. */
static inline int drps_optim_steps_batches(enum drps_optim_kind kind)
{
    return kind <= DRPS_OPTIM_ADAM;
}
static inline int drps_optim_counts_touches(enum drps_optim_kind kind)
{
    return drps_optim_steps_batches(kind) && kind != DRPS_OPTIM_FTRL;
}
static inline int drps_optim_is_newton(enum drps_optim_kind kind)
{
    return kind >= DRPS_OPTIM_LBFGS && kind <= DRPS_OPTIM_BROYDEN;
}
static inline int drps_optim_has_matrix(enum drps_optim_kind kind)
{
    return kind >= DRPS_OPTIM_BFGS && kind <= DRPS_OPTIM_BROYDEN;
}

/* What is added under adagrad's root or to adam's, ftrl's beta, and adam's. */
#define DRPS_OPTIM_EPS 1e-8f
#define DRPS_OPTIM_BETA 1.0f
#define DRPS_OPTIM_BETA1 0.9f
#define DRPS_OPTIM_BETA2 0.999f
static inline float drps_optim_eps(const struct drps_optim *o)
{
    return o->eps > 0 ? o->eps : DRPS_OPTIM_EPS;
}
static inline float drps_optim_beta(const struct drps_optim *o)
{
    return o->beta > 0 ? o->beta : DRPS_OPTIM_BETA;
}
static inline float drps_optim_beta1(const struct drps_optim *o)
{
    return o->beta1 > 0 ? o->beta1 : DRPS_OPTIM_BETA1;
}
static inline float drps_optim_beta2(const struct drps_optim *o)
{
    return o->beta2 > 0 ? o->beta2 : DRPS_OPTIM_BETA2;
}

/*
 * Fill the state behind fresh parameters: row [drps_optim_row_floats()]. FTRL's z starts so that it
 * yields the parameters, which for the `intercept` (not regularised) takes another z.
 */
void drps_optim_init_row(const struct drps_optim *o, uint32_t dim, int intercept, float *row);

/*
 * Step rows i in [first, last) of `rows` with grads [m][dim] (indexed by i). touches [m] counts the
 * samples that touch row i; needed (non-NULL) when l1 or l2 is set, except by ftrl. Rows i < common
 * are not regularised. A row's new bytes do not depend on the range that it is stepped in.
 */
void drps_optim_step(const struct drps_optim *o, uint32_t dim, const struct drps_rows *rows,
                     size_t first, size_t last, const float *grads, const uint32_t *touches,
                     size_t common);

/* The plain twin. */
void drps_optim_step_ref(const struct drps_optim *o, uint32_t dim, const struct drps_rows *rows,
                         size_t first, size_t last, const float *grads, const uint32_t *touches,
                         size_t common);

/* touches[l] += entries of samples [first, last) that touch local row l (row 0 counts every sample
 * when has_bias). */
void drps_batch_touches(const struct drps_batch *b, size_t first, size_t last, int has_bias,
                        uint32_t *touches);

/* Copy the parameters of rows [first, last) into params [m][dim]. */
void drps_rows_gather(const struct drps_rows *rows, uint32_t dim, size_t first, size_t last,
                      float *params);

#endif
