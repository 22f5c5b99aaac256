/*
 * The passes over pairs of field-aware factorization machines, with vectors of WIDTH floats.
 * Included once for each WIDTH (4, 8, 16), which names the functions: C has no templates.
 *
 * A pair has groups * WIDTH + rest factors. `plain`, which both tiles are or neither, groups and
 * rest are constants wherever this is hot.
 */
#define WIDTH_NAME(name) DRPS_WIDTH_NAME(name, WIDTH)

#define VEC WIDTH_NAME(pair_vec)
#define VEC_AT WIDTH_NAME(pair_vec_at)
DRPS_VECTOR_TYPES(VEC, VEC_AT, WIDTH);

/* Adds the product of entries i of `a` and j of `b`: of vectors to *sum, of the rest to *rests. */
DRPS_INLINE void WIDTH_NAME(add_product)(int plain, size_t groups, size_t rest,
                                         const struct tile *a, size_t i, const struct tile *b,
                                         size_t j, const float *restrict params, VEC *sum,
                                         float *rests)
{
    const size_t factors = groups * WIDTH + rest;
    const float *v = params + a->row[i] + (plain ? j * factors : b->field[j]);
    const float *w = params + b->row[j] + (plain ? i * factors : a->field[i]);
    const float x = plain ? 1 : a->x[i] * b->x[j];
    for (size_t g = 0; g < groups * WIDTH; g += WIDTH)
        *sum += x * *(const VEC_AT *)(v + g) * *(const VEC_AT *)(w + g);
    for (size_t r = groups * WIDTH; r < factors; r++)
        *rests += x * v[r] * w[r];
}

DRPS_INLINE float WIDTH_NAME(pairs)(int plain, size_t groups, size_t rest, const struct tile *a,
                                    const struct tile *b, const float *restrict params)
{
    /* Four sums: additions have a latency of several cycles. */
    enum { SUMS = 4 };
    VEC sum[SUMS] = {{0}};
    float rests = 0, t[WIDTH];
    for (size_t i = 0; i < a->n; i++) {
        size_t j = a == b ? i + 1 : 0;
        for (; j + SUMS <= b->n; j += SUMS) {
#pragma GCC unroll 4
            for (size_t e = 0; e < SUMS; e++)
                WIDTH_NAME(add_product)
            (plain, groups, rest, a, i, b, j + e, params, &sum[e], &rests);
        }
        for (; j < b->n; j++)
            WIDTH_NAME(add_product)(plain, groups, rest, a, i, b, j, params, &sum[0], &rests);
    }
    const VEC all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    memcpy(t, &all, sizeof(t));
    for (int width = WIDTH / 2; width; width /= 2)
        for (int i = 0; i < width; i++)
            t[i] += t[i + width];
    return t[0] + rests;
}

DRPS_INLINE void WIDTH_NAME(add_pairs)(int plain, size_t groups, size_t rest, const struct tile *a,
                                       const struct tile *b, float slope,
                                       const float *restrict params, float *restrict grads)
{
    const size_t factors = groups * WIDTH + rest;
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = a == b ? i + 1 : 0; j < b->n; j++) {
            const size_t v = a->row[i] + (plain ? j * factors : b->field[j]);
            const size_t w = b->row[j] + (plain ? i * factors : a->field[i]);
            const float x = plain ? slope : slope * a->x[i] * b->x[j];
            for (size_t g = 0; g < groups * WIDTH; g += WIDTH) {
                const VEC dv = x * *(const VEC_AT *)(params + w + g);
                const VEC dw = x * *(const VEC_AT *)(params + v + g);
                *(VEC_AT *)(grads + v + g) += dv;
                *(VEC_AT *)(grads + w + g) += dw;
            }
            for (size_t r = groups * WIDTH; r < factors; r++) {
                grads[v + r] += x * params[w + r];
                grads[w + r] += x * params[v + r];
            }
        }
}

#undef VEC
#undef VEC_AT
#undef WIDTH_NAME
#undef WIDTH
