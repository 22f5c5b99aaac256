/*
 * The passes over pairs of field-aware factorization machines, ELEMENTS factors at a time. Included
 * once for each ELEMENTS (4, 8, 16), which names the functions: C has no templates. ELEMENTS wider
 * than the machine's vectors are PARTS of these; sums are the same with any number of parts.
 *
 * A pair has groups * ELEMENTS + rest factors. `plain`, which both tiles are or neither, groups and
 * rest are constants wherever this is hot.
 */
#define ELEMENTS_NAME(name) DRPS_WIDTH_NAME(name, ELEMENTS)

#define WIDTH (ELEMENTS < DRPS_VECTOR_FLOATS ? ELEMENTS : DRPS_VECTOR_FLOATS)
#define PARTS (ELEMENTS / WIDTH)

#define VEC ELEMENTS_NAME(pair_vec)
#define VEC_AT ELEMENTS_NAME(pair_vec_at)
DRPS_VECTOR_TYPES(VEC, VEC_AT, WIDTH);

/* Adds the product of entries i of `a` and j of `b`: of vectors to sum [PARTS], of the rest to
 * *rests. */
DRPS_INLINE void ELEMENTS_NAME(add_product)(int plain, size_t groups, size_t rest,
                                            const struct tile *a, size_t i, const struct tile *b,
                                            size_t j, const float *restrict params, VEC *sum,
                                            float *rests)
{
    const size_t factors = groups * ELEMENTS + rest;
    const float *v = params + a->row[i] + (plain ? j * factors : b->field[j]);
    const float *w = params + b->row[j] + (plain ? i * factors : a->field[i]);
    const float x = plain ? 1 : a->x[i] * b->x[j];
    for (size_t g = 0; g < groups * ELEMENTS; g += ELEMENTS)
#pragma GCC unroll 4
        for (size_t p = 0; p < PARTS; p++)
            sum[p] +=
                x * *(const VEC_AT *)(v + g + p * WIDTH) * *(const VEC_AT *)(w + g + p * WIDTH);
    for (size_t r = groups * ELEMENTS; r < factors; r++)
        *rests += x * v[r] * w[r];
}

DRPS_INLINE float ELEMENTS_NAME(pairs)(int plain, size_t groups, size_t rest, const struct tile *a,
                                       const struct tile *b, const float *restrict params)
{
    /* Four sums: additions have a latency of several cycles. */
    enum { SUMS = 4 };
    VEC sum[SUMS][PARTS] = {{{0}}};
    float rests = 0, t[ELEMENTS];
    for (size_t i = 0; i < a->n; i++) {
        size_t j = a == b ? i + 1 : 0;
        for (; j + SUMS <= b->n; j += SUMS) {
#pragma GCC unroll 4
            for (size_t e = 0; e < SUMS; e++)
                ELEMENTS_NAME(add_product)
            (plain, groups, rest, a, i, b, j + e, params, sum[e], &rests);
        }
        for (; j < b->n; j++)
            ELEMENTS_NAME(add_product)(plain, groups, rest, a, i, b, j, params, sum[0], &rests);
    }
#pragma GCC unroll 4
    for (size_t p = 0; p < PARTS; p++)
        sum[0][p] = (sum[0][p] + sum[1][p]) + (sum[2][p] + sum[3][p]);
    memcpy(t, sum[0], sizeof(t));
    for (int width = ELEMENTS / 2; width; width /= 2)
        for (int i = 0; i < width; i++)
            t[i] += t[i + width];
    return t[0] + rests;
}

DRPS_INLINE void ELEMENTS_NAME(add_pairs)(int plain, size_t groups, size_t rest,
                                          const struct tile *a, const struct tile *b, float slope,
                                          const float *restrict params, float *restrict grads)
{
    const size_t factors = groups * ELEMENTS + rest;
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = a == b ? i + 1 : 0; j < b->n; j++) {
            const size_t v = a->row[i] + (plain ? j * factors : b->field[j]);
            const size_t w = b->row[j] + (plain ? i * factors : a->field[i]);
            const float x = plain ? slope : slope * a->x[i] * b->x[j];
            for (size_t g = 0; g < groups * ELEMENTS; g += WIDTH) {
                const VEC dv = x * *(const VEC_AT *)(params + w + g);
                const VEC dw = x * *(const VEC_AT *)(params + v + g);
                *(VEC_AT *)(grads + v + g) += dv;
                *(VEC_AT *)(grads + w + g) += dw;
            }
            for (size_t r = groups * ELEMENTS; r < factors; r++) {
                grads[v + r] += x * params[w + r];
                grads[w + r] += x * params[v + r];
            }
        }
}

#undef VEC
#undef VEC_AT
#undef ELEMENTS_NAME
#undef ELEMENTS
#undef WIDTH
#undef PARTS
