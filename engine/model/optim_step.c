/*
 * The optimizers' steps. Rows of one float, and the first floats of rows where l1 shrinks them
 * alone, are collected in blocks and stepped in vectors; the other floats of a row are vectors
 * themselves. Every operation is exact or correctly rounded and none is fused, so that vector
 * elements, remainders and ranges all give the same bits.
 */
#include <math.h>
#include <string.h>

#include "base/kernel/drps_level.h"
#include "engine/model/drps_optim_floats.h"

enum {
    BLOCK = 64, /* rows whose first floats are stepped together, from copies in L1 */
    LINE = 64,
    /* How many rows ahead the cache lines of a row are requested. */
    FAR_GATHER = 96, /* one float a row, from memory */
    FAR_NARROW = 32, /* the same rows again: mostly in L2 */
    FAR_WIDE = 64,
    FAR_VERY_WIDE = 24,
    VERY_WIDE_FLOATS = 32,
};

/* Rows come from memory in random order: many must be under way, but no more than L2 keeps. */
DRPS_INLINE size_t far_of(size_t dim)
{
    return dim <= VERY_WIDE_FLOATS ? FAR_WIDE : FAR_VERY_WIDE;
}

DRPS_INLINE void prefetch(const char *at, size_t bytes, int to_write)
{
    for (size_t i = 0; i < bytes; i += LINE) {
        if (to_write)
            __builtin_prefetch(at + i, 1);
        else
            __builtin_prefetch(at + i, 0);
    }
    if (to_write)
        __builtin_prefetch(at + bytes - 1, 1);
    else
        __builtin_prefetch(at + bytes - 1, 0);
}

/* What adam steps the rows of a block with. */
struct adam_block {
    float rate[BLOCK], eps[BLOCK], l1[BLOCK];
};

/* How much of l2 and l1 row i takes. */
DRPS_INLINE float times(enum drps_optim_kind kind, const uint32_t *touches, size_t i, size_t common)
{
    if (i < common) return 0;
    return kind == DRPS_OPTIM_FTRL ? 1.0f : (float)touches[i];
}

/* What steps a row now, of which adam counts the steps. */
DRPS_INLINE struct drps_optim begin_row(enum drps_optim_kind kind, const struct drps_optim *o,
                                        const struct drps_adam_powers *powers, size_t dim,
                                        float *row)
{
    return kind == DRPS_OPTIM_ADAM ? drps_adam_begin(o, powers, dim, row) : *o;
}

DRPS_INLINE void note_row(struct adam_block *at, size_t k, struct drps_optim of_row)
{
    at->rate[k] = of_row.lr;
    at->eps[k] = of_row.eps;
    at->l1[k] = of_row.l1;
}

/*
 * The first floats of n <= BLOCK rows from row i on; kind, regular and often dim constant: copy
 * them into arrays, step these, copy back. `at` is of adam.
 */
DRPS_INLINE void step_firsts(enum drps_optim_kind kind, enum drps_regular regular, size_t dim,
                             const struct drps_optim *o, const struct drps_rows *rows, size_t i,
                             size_t n, const float *restrict grads,
                             const uint32_t *restrict touches, size_t common,
                             const struct adam_block *at)
{
    const float lr = o->lr, eps = drps_optim_eps(o), beta = drps_optim_beta(o);
    const float beta1 = drps_optim_beta1(o), beta2 = drps_optim_beta2(o);
    float w[BLOCK], a[BLOCK], b[BLOCK], l2[BLOCK], l1[BLOCK], copies[BLOCK] = {0};
    const float *restrict g = dim == 1 ? grads + i : copies;

    for (size_t k = 0; k < n; k++) {
        const float *row = drps_row_at(rows, i + k);
        if (dim > 1) copies[k] = grads[(i + k) * dim];
        w[k] = row[0];
        if (kind >= DRPS_OPTIM_ADAGRAD) a[k] = row[dim];
        if (kind >= DRPS_OPTIM_FTRL) b[k] = row[2 * dim];
    }
    for (size_t k = 0; regular && k < n; k++) {
        const float t = times(kind, touches, i + k, common);
        l2[k] = t * o->l2;
        l1[k] = t * (kind == DRPS_OPTIM_ADAM ? at->l1[k] : o->l1);
    }
    if (kind == DRPS_OPTIM_SGD) {
#pragma omp simd
        for (size_t k = 0; k < n; k++)
            drps_sgd_one(&w[k], g[k], lr, regular ? l2[k] : 0, regular ? l1[k] : 0, regular);
    } else if (kind == DRPS_OPTIM_ADAGRAD) {
#pragma omp simd
        for (size_t k = 0; k < n; k++)
            drps_adagrad_one(&w[k], &a[k], g[k], lr, eps, regular ? l2[k] : 0, regular ? l1[k] : 0,
                             regular);
    } else if (kind == DRPS_OPTIM_ADAM) {
#pragma omp simd
        for (size_t k = 0; k < n; k++)
            drps_adam_one(&w[k], &a[k], &b[k], g[k], at->rate[k], at->eps[k], beta1, beta2,
                          regular ? l2[k] : 0, regular ? l1[k] : 0, regular);
    } else {
#pragma omp simd
        for (size_t k = 0; k < n; k++)
            drps_ftrl_one(&w[k], &a[k], &b[k], g[k], lr, beta, regular ? l2[k] : 0,
                          regular ? l1[k] : 0);
    }
    for (size_t k = 0; k < n; k++) {
        float *row = drps_row_at(rows, i + k);
        row[0] = w[k];
        if (kind >= DRPS_OPTIM_ADAGRAD) row[dim] = a[k];
        if (kind >= DRPS_OPTIM_FTRL) row[2 * dim] = b[k];
    }
}

DRPS_INLINE void step_narrow(enum drps_optim_kind kind, enum drps_regular regular,
                             const struct drps_optim *o, const struct drps_rows *rows, size_t first,
                             size_t last, const float *restrict grads,
                             const uint32_t *restrict touches, size_t common)
{
    struct drps_adam_powers powers;
    struct adam_block at;
    if (kind == DRPS_OPTIM_ADAM) drps_adam_init(&powers, o);
    for (size_t i = first; i < last; i += BLOCK) {
        const size_t n = last - i < BLOCK ? last - i : BLOCK;
        const size_t ahead = last - i < BLOCK + FAR_NARROW ? 0 : n;
        for (size_t k = 0; k < ahead; k++)
            __builtin_prefetch(drps_row_at(rows, i + k + FAR_NARROW), 1);
        for (size_t k = 0; kind == DRPS_OPTIM_ADAM && k < n; k++)
            note_row(&at, k, drps_adam_begin(o, &powers, 1, drps_row_at(rows, i + k)));
        step_firsts(kind, regular, 1, o, rows, i, n, grads, touches, common, &at);
    }
}

/* The floats of one row, but its first one where that takes l1. */
DRPS_INLINE void step_rest(enum drps_optim_kind kind, enum drps_regular regular,
                           const struct drps_optim *o, size_t dim, float *restrict row,
                           const float *restrict g, float l2)
{
    const enum drps_regular rest = regular ? DRPS_L2 : DRPS_PLAIN; /* l1 is for the first float */
    drps_step_floats(kind, rest, o, regular == DRPS_L2_AND_L1, dim, row, g, regular ? l2 : 0, 0);
}

/* All floats of one row, which all take l1. */
DRPS_INLINE void step_whole(enum drps_optim_kind kind, const struct drps_optim *o, size_t dim,
                            float *restrict row, const float *restrict g, float l2, float l1)
{
    drps_step_floats(kind, DRPS_L2_AND_L1, o, 0, dim, row, g, l2, l1);
}

DRPS_INLINE void step_rows_whole(enum drps_optim_kind kind, size_t dim, const struct drps_optim *o,
                                 const struct drps_rows *rows, size_t first, size_t last,
                                 const float *grads, const uint32_t *touches, size_t common)
{
    struct drps_adam_powers powers;
    if (kind == DRPS_OPTIM_ADAM) drps_adam_init(&powers, o);
    for (size_t i = first; i < last; i++) {
        float *row = drps_row_at(rows, i);
        const float t = times(kind, touches, i, common);
        const struct drps_optim at = begin_row(kind, o, &powers, dim, row);
        step_whole(kind, &at, dim, row, grads + i * dim, t * at.l2, t * at.l1);
    }
}

DRPS_INLINE void step_wide(enum drps_optim_kind kind, enum drps_regular regular, size_t dim,
                           const struct drps_optim *o, const struct drps_rows *rows, size_t first,
                           size_t last, const float *restrict grads,
                           const uint32_t *restrict touches, size_t common)
{
    const size_t row_bytes = drps_optim_row_floats(o, (uint32_t)dim) * sizeof(float),
                 far = far_of(dim);
    const struct drps_optim copy =
        *o; /* that stores to rows cannot change: it stays in registers */
    struct drps_adam_powers powers;
    struct adam_block at;
    if (kind == DRPS_OPTIM_ADAM) drps_adam_init(&powers, o);
    o = &copy;

    for (size_t i = first; i < last; i += BLOCK) {
        const size_t n = last - i < BLOCK ? last - i : BLOCK;
        for (size_t k = i; k < i + n; k++) {
            if (last - k > far) prefetch(drps_row_at(rows, k + far), row_bytes, 1);
            float *row = drps_row_at(rows, k);
            const float l2 = regular ? times(kind, touches, k, common) * o->l2 : 0;
            const struct drps_optim of_row = begin_row(kind, o, &powers, dim, row);
            if (kind == DRPS_OPTIM_ADAM) note_row(&at, k - i, of_row);
            step_rest(kind, regular, &of_row, dim, row, grads + k * dim, l2);
        }
        if (regular == DRPS_L2_AND_L1)
            step_firsts(kind, regular, dim, o, rows, i, n, grads, touches, common, &at);
    }
}

DRPS_INLINE void step_kind(enum drps_optim_kind kind, enum drps_regular regular,
                           const struct drps_optim *o, uint32_t dim, const struct drps_rows *rows,
                           size_t first, size_t last, const float *grads, const uint32_t *touches,
                           size_t common)
{
    switch (dim) {
    case 1:
        step_narrow(kind, regular, o, rows, first, last, grads, touches, common);
        break;
    case 9:
        step_wide(kind, regular, 9, o, rows, first, last, grads, touches, common);
        break;
    case 17:
        step_wide(kind, regular, 17, o, rows, first, last, grads, touches, common);
        break;
    default:
        step_wide(kind, regular, dim, o, rows, first, last, grads, touches, common);
        break;
    }
}

DRPS_INLINE void step_regular(enum drps_optim_kind kind, const struct drps_optim *o, uint32_t dim,
                              const struct drps_rows *rows, size_t first, size_t last,
                              const float *grads, const uint32_t *touches, size_t common)
{
    if (o->l1 > 0 && o->l1_all)
        step_rows_whole(kind, dim, o, rows, first, last, grads, touches, common);
    else if (o->l1 > 0)
        step_kind(kind, DRPS_L2_AND_L1, o, dim, rows, first, last, grads, touches, common);
    else if (o->l2 > 0)
        step_kind(kind, DRPS_L2, o, dim, rows, first, last, grads, touches, common);
    else
        step_kind(kind, DRPS_PLAIN, o, dim, rows, first, last, grads, touches, common);
}

DRPS_KERNEL(void, drps_optim_step,
            (const struct drps_optim *o, uint32_t dim, const struct drps_rows *rows, size_t first,
             size_t last, const float *grads, const uint32_t *touches, size_t common),
            (o, dim, rows, first, last, grads, touches, common))
{
    switch (o->kind) {
    case DRPS_OPTIM_SGD:
        step_regular(DRPS_OPTIM_SGD, o, dim, rows, first, last, grads, touches, common);
        break;
    case DRPS_OPTIM_ADAGRAD:
        step_regular(DRPS_OPTIM_ADAGRAD, o, dim, rows, first, last, grads, touches, common);
        break;
    case DRPS_OPTIM_FTRL:
        step_regular(DRPS_OPTIM_FTRL, o, dim, rows, first, last, grads, touches, common);
        break;
    case DRPS_OPTIM_ADAM:
        step_regular(DRPS_OPTIM_ADAM, o, dim, rows, first, last, grads, touches, common);
        break;
    default: /* quasi-Newton, alternating: no step of a batch */
        break;
    }
}

DRPS_INLINE void gather(size_t dim, const struct drps_rows *rows, size_t first, size_t last,
                        float *restrict params)
{
    const size_t far = far_of(dim);
    for (size_t i = first; i < last; i++) {
        if (last - i > far) prefetch(drps_row_at(rows, i + far), dim * sizeof(float), 0);
        memcpy(params + i * dim, drps_row_at(rows, i), dim * sizeof(float));
    }
}

/* One float a row. Without the requests ahead the loop waits for a few misses at a time: 20 against
 * 15 ns for 10 rows. */
static void gather_narrow(const struct drps_rows *rows, size_t first, size_t last,
                          float *restrict params)
{
    const char *const base = rows->base;
    const uint32_t *const index = rows->index;
    const size_t stride = rows->stride,
                 ahead = last - first > FAR_GATHER ? last - FAR_GATHER : first;
    size_t i = first;

    for (; i < ahead; i++) {
        __builtin_prefetch(base + index[i + FAR_GATHER] * stride, 1); /* the step will write it */
        memcpy(params + i, base + index[i] * stride, sizeof(float));
    }
    for (; i < last; i++)
        memcpy(params + i, base + index[i] * stride, sizeof(float));
}

DRPS_KERNEL(void, drps_rows_gather,
            (const struct drps_rows *rows, uint32_t dim, size_t first, size_t last, float *params),
            (rows, dim, first, last, params))
{
    switch (dim) {
    case 1:
        gather_narrow(rows, first, last, params);
        break;
    case 9:
        gather(9, rows, first, last, params);
        break;
    case 17:
        gather(17, rows, first, last, params);
        break;
    default:
        gather(dim, rows, first, last, params);
        break;
    }
}
