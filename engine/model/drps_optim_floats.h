/*
 * The optimizers' updates of a float, and of the floats of a row, written once as inline functions
 * for the kernels that step rows. `kind`, `regular` and mostly the number of floats are constants
 * there. Shared inside engine/model/.
 */
#ifndef DRPS_ENGINE_MODEL_OPTIM_FLOATS_H
#define DRPS_ENGINE_MODEL_OPTIM_FLOATS_H

#include <math.h>

#include "base/kernel/drps_vector_floats.h"
#include "engine/model/drps_optim.h"

/* |w| - by, but not through zero. What is no number stays so: every comparison with it is false. */
DRPS_INLINE float drps_shrink(float w, float by)
{
    const float left = fabsf(w) - by;
    return left <= 0 ? 0.0f : copysignf(left, w);
}

/* The parts of an update besides the gradient. */
enum drps_regular { DRPS_PLAIN, DRPS_L2, DRPS_L2_AND_L1 };

/* l2 and l1 are already multiplied by the row's touches. */
DRPS_INLINE void drps_sgd_one(float *w, float g, float lr, float l2, float l1,
                              enum drps_regular regular)
{
    if (regular) g += l2 * *w;
    *w -= lr * g;
    if (regular == DRPS_L2_AND_L1) *w = drps_shrink(*w, l1 * lr);
}

DRPS_INLINE void drps_adagrad_one(float *w, float *a, float g, float lr, float eps, float l2,
                                  float l1, enum drps_regular regular)
{
    if (regular) g += l2 * *w;
    *a += g * g;
    const float rate = lr / sqrtf(*a + eps);
    /* 0, which changes no bit; of an infinite sum no number: else its rate of 0 would hide it */
    const float none = *a - *a;
    *w -= rate * g - none;
    if (regular == DRPS_L2_AND_L1) *w = drps_shrink(*w, l1 * rate);
}

DRPS_INLINE void drps_ftrl_one(float *w, float *z, float *n, float g, float lr, float beta,
                               float l2, float l1)
{
    const float root = sqrtf(*n), more = *n + g * g, new_root = sqrtf(more);
    *z += g - (new_root - root) / lr * *w;
    *n = more;
    const float left = fabsf(*z) - l1;
    const float next = -copysignf(left, *z) / ((beta + new_root) / lr + l2);
    *w = left <= 0 ? 0.0f : next;
}

/* rate, eps and l1 are those of the row's step: drps_adam_begin(). */
DRPS_INLINE void drps_adam_one(float *w, float *m, float *v, float g, float rate, float eps,
                               float beta1, float beta2, float l2, float l1,
                               enum drps_regular regular)
{
    if (regular) g += l2 * *w;
    *m = beta1 * *m + (1 - beta1) * g;
    *v = beta2 * *v + (1 - beta2) * (g * g);
    const float its_rate = rate / (sqrtf(*v) + eps);
    const float none = *v - *v; /* as adagrad's */
    *w -= its_rate * *m - none;
    if (regular == DRPS_L2_AND_L1) *w = drps_shrink(*w, l1 * its_rate);
}

/* ---- The steps of a row that adam counts ---- */

enum {
    DRPS_ADAM_BITS = 24,
    DRPS_ADAM_COUNTS = 1 << DRPS_ADAM_BITS /* where floats stop counting */
};

/* beta^(2^i) for each i. */
struct drps_adam_powers {
    double of_1[DRPS_ADAM_BITS + 1], of_2[DRPS_ADAM_BITS + 1];
};

static inline void drps_adam_init(struct drps_adam_powers *p, const struct drps_optim *o)
{
    p->of_1[0] = (double)drps_optim_beta1(o);
    p->of_2[0] = (double)drps_optim_beta2(o);
    for (int i = 0; i < DRPS_ADAM_BITS; i++) {
        p->of_1[i + 1] = p->of_1[i] * p->of_1[i];
        p->of_2[i + 1] = p->of_2[i] * p->of_2[i];
    }
}

/* Returns a row's step number: at least 1, and a number where a file has none. */
static inline uint32_t drps_adam_number(float count)
{
    if (!(count < DRPS_ADAM_COUNTS)) return DRPS_ADAM_COUNTS;
    return count >= 1 ? (uint32_t)count : 1;
}

/* Returns what steps a row the count-th time: its rate, eps and l1 are those of that step. Products
 * of doubles, as powers of a mathematical library differ from processor to processor. */
static inline struct drps_optim drps_adam_at(const struct drps_optim *o,
                                             const struct drps_adam_powers *p, float count)
{
    struct drps_optim at = *o;
    double power_1 = 1, power_2 = 1;
    for (uint32_t t = drps_adam_number(count); t; t &= t - 1) {
        power_1 *= p->of_1[__builtin_ctz(t)];
        power_2 *= p->of_2[__builtin_ctz(t)];
    }
    const double root = sqrt(1 - power_2);
    at.lr = (float)((double)o->lr * root / (1 - power_1));
    at.eps = (float)((double)drps_optim_eps(o) * root);
    at.l1 = (float)((double)o->l1 * (1 - power_1));
    return at;
}

/* Counts a step of a row, and returns what makes it. */
static inline struct drps_optim drps_adam_begin(const struct drps_optim *o,
                                                const struct drps_adam_powers *p, size_t dim,
                                                float *row)
{
    row[3 * dim] += 1;
    return drps_adam_at(o, p, row[3 * dim]);
}

/* n floats that lie side by side; n is constant. */
DRPS_INLINE void drps_step_run(enum drps_optim_kind kind, enum drps_regular regular,
                               const struct drps_optim *o, size_t n, float *restrict w,
                               float *restrict a, float *restrict b, const float *restrict g,
                               float l2, float l1)
{
    const float lr = o->lr, eps = drps_optim_eps(o), beta = drps_optim_beta(o);
    if (kind == DRPS_OPTIM_SGD) {
#pragma omp simd
        for (size_t d = 0; d < n; d++)
            drps_sgd_one(&w[d], g[d], lr, l2, l1, regular);
    } else if (kind == DRPS_OPTIM_ADAGRAD) {
#pragma omp simd
        for (size_t d = 0; d < n; d++)
            drps_adagrad_one(&w[d], &a[d], g[d], lr, eps, l2, l1, regular);
    } else if (kind == DRPS_OPTIM_ADAM) {
        const float beta1 = drps_optim_beta1(o), beta2 = drps_optim_beta2(o);
#pragma omp simd
        for (size_t d = 0; d < n; d++)
            drps_adam_one(&w[d], &a[d], &b[d], g[d], lr, eps, beta1, beta2, l2, l1, regular);
    } else {
#pragma omp simd
        for (size_t d = 0; d < n; d++)
            drps_ftrl_one(&w[d], &a[d], &b[d], g[d], lr, beta, l2, l1);
    }
}

/* Floats from `from` on of one row, [dim] parameters and states; l2 and l1 are those of this row.
 * Halving runs leave at most three floats that are no vector. */
DRPS_INLINE void drps_step_floats(enum drps_optim_kind kind, enum drps_regular regular,
                                  const struct drps_optim *o, size_t from, size_t dim,
                                  float *restrict row, const float *restrict g, float l2, float l1)
{
    float *restrict w = row, *restrict a = row + dim, *restrict b = row + 2 * dim;
    size_t d = from;
#define STEP_RUN(n) drps_step_run(kind, regular, o, n, w + d, a + d, b + d, g + d, l2, l1), d += (n)
    while (d + 16 <= dim)
        STEP_RUN(16);
    if (d + 8 <= dim) STEP_RUN(8);
    if (d + 4 <= dim) STEP_RUN(4);
    while (d < dim)
        STEP_RUN(1);
#undef STEP_RUN
}

#endif
