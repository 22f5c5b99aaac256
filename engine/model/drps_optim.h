/*
 * Optimizers: how a row changes when the sum of its gradients over a batch is known.
 *
 * A stored row is D parameters followed by the optimizer's state, D floats for each of its
 * `states`:
 *
 *   sgd      0   w -= lr * g
 *   adagrad  1   a += g^2;  w -= lr * g / sqrt(a + eps)
 *   ftrl     2   z += g - (sqrt(n + g^2) - sqrt(n)) / lr * w;  n += g^2;
 *                w = |z| <= l1 ? 0 : -(z - sign(z) l1) / ((beta + sqrt(n)) / lr + l2)
 *
 * AdaGrad is that of Duchi, Hazan and Singer (JMLR 2011), FTRL-Proximal that of McMahan et al. (KDD
 * 2013), Algorithm 1, whose alpha is `lr`.
 *
 * Regularisation touches only rows of the batch, once for each sample that touches the row: before
 * the step g += touches * l2 * w; for sgd and adagrad l1 shrinks w after the step by touches * l1 *
 * (the step's rate). FTRL applies l1 and l2 in its closed form. l1 applies to the first float of a
 * row only (weights and biases, not factors) unless l1_all is set; neither applies to the
 * intercept.
 *
 * Quasi-Newton methods step once in a pass over all samples: engine/newton/drps_newton.h. What
 * follows on stepping rows is not for them; a row has DRPS_OPTIM_NEWTON_STATES states, and with
 * lbfgs two more for each of its pairs.
 *
 * Of a topic model (alternating) batches step nothing here, and rows have no state.
 *
 * What is no finite number does not become one again: a parameter that is none stays so, and one
 * whose sum of squares (a, n) is infinite becomes none, so that whoever looks at parameters sees
 * it.
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
    /* Quasi-Newton: */
    DRPS_OPTIM_LBFGS,
    DRPS_OPTIM_BFGS, /* this one and those after it keep a matrix of all parameters */
    DRPS_OPTIM_DFP,
    DRPS_OPTIM_SR1,
    DRPS_OPTIM_BROYDEN,
    DRPS_OPTIM_ALTERNATING, /* of topic models alone: engine/topic/ */
};

enum { DRPS_OPTIM_NEWTON_STATES = 5, DRPS_OPTIM_PAIRS = 10, DRPS_OPTIM_PAIRS_MOST = 32 };

struct drps_optim {
    enum drps_optim_kind kind;
    float lr;   /* learning rate, > 0 (ftrl: alpha); drps_optim_init() gives sgd 0.01, adagrad 0.05,
                   ftrl 0.1 */
    float l1;   /* >= 0 */
    float l2;   /* >= 0 */
    float eps;  /* adagrad: added under the root; 0: 1e-8 */
    float beta; /* ftrl; 0: 1 */
    uint32_t pairs;  /* lbfgs: steps that it remembers; else 0. DRPS_OPTIM_PAIRS after init */
    float tolerance; /* quasi-Newton: done when the gradient's norm is this share of the first */
    int l1_all; /* 1: l1 applies to every float of a row, as all are weights; 0: to the first */
};

/* Set `o` to the kind of this name ("sgd", "adagrad", ...), with its usual rate and without
 * regularisation. DRPS_E_CONFIG: there is no such kind. */
DRPS_MUST_CHECK
int drps_optim_init(struct drps_optim *o, const char *kind, struct drps_err *err);
const char *drps_optim_name(enum drps_optim_kind kind);

/* Returns how many state arrays of D floats a row has. */
uint32_t drps_optim_states(const struct drps_optim *o);

/* 1: a quasi-Newton method; 1: one that keeps a matrix. */
static inline int drps_optim_is_newton(enum drps_optim_kind kind)
{
    return kind >= DRPS_OPTIM_LBFGS && kind <= DRPS_OPTIM_BROYDEN;
}
static inline int drps_optim_has_matrix(enum drps_optim_kind kind)
{
    return kind >= DRPS_OPTIM_BFGS && kind <= DRPS_OPTIM_BROYDEN;
}

/* What is added under adagrad's root, and ftrl's beta. */
#define DRPS_OPTIM_EPS 1e-8f
#define DRPS_OPTIM_BETA 1.0f
static inline float drps_optim_eps(const struct drps_optim *o)
{
    return o->eps > 0 ? o->eps : DRPS_OPTIM_EPS;
}
static inline float drps_optim_beta(const struct drps_optim *o)
{
    return o->beta > 0 ? o->beta : DRPS_OPTIM_BETA;
}

/*
 * Fill the state behind fresh parameters: row [dim * (1 + states)]. FTRL's z starts so that it
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
