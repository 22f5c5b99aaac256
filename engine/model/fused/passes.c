/* Both passes read rows where they lie (passes.h). Of a sample the gradients of both rows are
 * known before either is stepped. */
#include "engine/model/fused/passes.h"

#include "base/kernel/drps_level.h"
#include "engine/model/math/drps_dot.h"
#include "engine/model/drps_optim_floats.h"

enum { LINE = 64, AHEAD = 8 /* samples, whose rows are requested from memory */ };

DRPS_INLINE size_t local_at(const struct drps_batch *b, int wide, size_t j)
{
    return wide ? b->local32[j] : b->local16[j];
}

DRPS_INLINE void request(const struct drps_batch *b, int wide, size_t j, size_t bytes,
                         const struct drps_rows *rows)
{
    const char *row = drps_row_at(rows, local_at(b, wide, j));
    for (size_t i = 0; i < bytes; i += LINE)
        __builtin_prefetch(row + i, 1);
    __builtin_prefetch(row + bytes - 1, 1);
}

/* The number of factors is a constant in the instances below. */
DRPS_INLINE void forward(int wide, const struct drps_batch *b, size_t factors, float bias,
                         size_t first, size_t last, const struct drps_rows *rows,
                         float *restrict scores)
{
    const size_t row_bytes = 2 * (factors + 1) * sizeof(float);
    for (size_t s = first; s < last; s++) {
        const float *u = drps_row_at(rows, local_at(b, wide, 2 * s));
        const float *v = drps_row_at(rows, local_at(b, wide, 2 * s + 1));
        if (last - s > AHEAD) {
            request(b, wide, 2 * (s + AHEAD), row_bytes, rows);
            request(b, wide, 2 * (s + AHEAD) + 1, row_bytes, rows);
        }
        scores[s] = bias + (u[0] + v[0] + drps_dot(factors, u + 1, v + 1));
    }
}

/* A row's gradient, which begins at 0, gets that of a sample: g for its bias, g times the other
 * row's factors for its own. */
DRPS_INLINE void add(size_t factors, int begins, float g, const float *restrict other,
                     float *restrict grad)
{
    grad[0] = (begins ? 0.0f : grad[0]) + g;
    if (begins) {
#pragma omp simd
        for (size_t f = 1; f <= factors; f++)
            grad[f] = 0.0f + g * other[f];
    } else {
#pragma omp simd
        for (size_t f = 1; f <= factors; f++)
            grad[f] += g * other[f];
    }
}

/* Bias and factors apart, as gradients are written: a load of parts of two stores waits. */
DRPS_INLINE void step(size_t factors, enum drps_regular regular, const struct drps_optim *o,
                      float l2, float *restrict row, const float *restrict grad)
{
    const size_t dim = factors + 1;
    drps_step_run(DRPS_OPTIM_ADAGRAD, regular, o, 1, row, row + dim, NULL, grad, l2, 0);
    drps_step_floats(DRPS_OPTIM_ADAGRAD, regular, o, 1, dim, row, grad, l2, 0);
}

/* Steps two rows that have this sample alone: gradients stay in registers. */
DRPS_INLINE void step_pair(size_t factors, enum drps_regular regular, const struct drps_optim *o,
                           float g, float *restrict u, float *restrict v)
{
    const float lr = o->lr, eps = drps_optim_eps(o), l2 = o->l2, of_bias = 0.0f + g;
    float *restrict of_u = u + factors + 1, *restrict of_v = v + factors + 1;
    drps_adagrad_one(&u[0], &of_u[0], of_bias, lr, eps, l2, 0, regular);
    drps_adagrad_one(&v[0], &of_v[0], of_bias, lr, eps, l2, 0, regular);
#pragma omp simd
    for (size_t f = 1; f <= factors; f++) {
        const float gu = 0.0f + g * v[f], gv = 0.0f + g * u[f];
        drps_adagrad_one(&u[f], &of_u[f], gu, lr, eps, l2, 0, regular);
        drps_adagrad_one(&v[f], &of_v[f], gv, lr, eps, l2, 0, regular);
    }
}

/* A sample of rows that have more: gradients are added up, and a row is stepped at its last. */
DRPS_INLINE void add_pair(size_t factors, enum drps_regular regular, const struct drps_optim *o,
                          float g, float *u, float *v, struct drps_fused_uses *of_i,
                          struct drps_fused_uses *of_j, float *gu, float *gv)
{
    add(factors, of_i->read++ == 0, g, v, gu);
    add(factors, of_j->read++ == 0, g, u, gv);
    if (of_i->read == of_i->all) step(factors, regular, o, (float)of_i->all * o->l2, u, gu);
    if (of_j->read == of_j->all && u != v)
        step(factors, regular, o, (float)of_j->all * o->l2, v, gv);
}

DRPS_INLINE void backward(int wide, const struct drps_batch *b, size_t factors,
                          enum drps_regular regular, const struct drps_optim *optim, size_t first,
                          size_t last, const float *slopes, const struct drps_rows *rows,
                          struct drps_fused_uses *uses, float *grads)
{
    const struct drps_optim copy = *optim; /* that stores to rows cannot change */
    for (size_t s = first; s < last; s++) {
        const size_t i = local_at(b, wide, 2 * s), j = local_at(b, wide, 2 * s + 1);
        float *u = drps_row_at(rows, i), *v = drps_row_at(rows, j);
        const float g = slopes[s - first];
        if (uses[i].all + uses[j].all == 2)
            step_pair(factors, regular, &copy, g, u, v);
        else
            add_pair(factors, regular, &copy, g, u, v, &uses[i], &uses[j],
                     grads + i * (factors + 1), grads + j * (factors + 1));
    }
}

#define BY_FORM(body, ...)                                                                         \
    if (b->local32)                                                                                \
        body(1, b, __VA_ARGS__);                                                                   \
    else                                                                                           \
        body(0, b, __VA_ARGS__)

#define BY_FACTORS(body, ...)                                                                      \
    switch (factors) {                                                                             \
    case 8:                                                                                        \
        BY_FORM(body, 8, __VA_ARGS__);                                                             \
        break;                                                                                     \
    case 16:                                                                                       \
        BY_FORM(body, 16, __VA_ARGS__);                                                            \
        break;                                                                                     \
    case 32:                                                                                       \
        BY_FORM(body, 32, __VA_ARGS__);                                                            \
        break;                                                                                     \
    default:                                                                                       \
        BY_FORM(body, factors, __VA_ARGS__);                                                       \
        break;                                                                                     \
    }

DRPS_KERNEL(void, drps_fused_forward,
            (const struct drps_batch *b, size_t factors, float bias, size_t first, size_t last,
             const struct drps_rows *rows, float *scores),
            (b, factors, bias, first, last, rows, scores)){
    BY_FACTORS(forward, bias, first, last, rows, scores)}

DRPS_KERNEL(void, drps_fused_backward,
            (const struct drps_batch *b, size_t factors, const struct drps_optim *optim,
             size_t first, size_t last, const float *slopes, const struct drps_rows *rows,
             struct drps_fused_uses *uses, float *grads),
            (b, factors, optim, first, last, slopes, rows, uses, grads))
{
    if (optim->l2 > 0)
        BY_FACTORS(backward, DRPS_L2, optim, first, last, slopes, rows, uses, grads)
    else
        BY_FACTORS(backward, DRPS_PLAIN, optim, first, last, slopes, rows, uses, grads)
}
