/*
 * The inner passes of factorization machines over LANES x `vectors` neighbouring factors. Included
 * once for each LANES (4, 8, 16), which names the functions: C has no templates, and arrays in
 * plain loops are not kept in registers reliably by either compiler. LANES wider than the machine's
 * vectors are split by the compiler.
 *
 * D = rank + 1 floats a row; factor f of row l is params[l * D + 1 + f]. `vectors`, `with_weights`,
 * `wide` and `valued` are constants. with_weights: the pass also does the rows' first floats; it is
 * then the only pass.
 */
#define LANES_JOIN2(name, lanes) name##_##lanes
#define LANES_JOIN(name, lanes) LANES_JOIN2(name, lanes)
#define LANES_NAME(name) LANES_JOIN(name, LANES)

#define VEC LANES_NAME(vec)
#define VEC_AT LANES_NAME(vec_at)
typedef float VEC __attribute__((vector_size(LANES * sizeof(float))));
/* The same in an array of floats, which is aligned to 4 bytes only. */
typedef float VEC_AT __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

/* The sum of all lanes, halving: the order is fixed by this loop, not by the compiler. */
DRPS_INLINE float LANES_NAME(total)(const VEC *v)
{
    float t[LANES];
    memcpy(t, v, sizeof(t));
    for (int width = LANES / 2; width; width /= 2)
        for (int i = 0; i < width; i++)
            t[i] += t[i + width];
    return t[0];
}

DRPS_INLINE void LANES_NAME(forward)(int wide, int valued, int vectors, int with_weights,
                                     const struct drps_batch *b, size_t rank, size_t factor,
                                     float bias, size_t first, size_t last,
                                     const float *restrict params, float *restrict scores,
                                     float *restrict sums)
{
    const size_t dim = rank + 1;
    for (size_t s = first; s < last; s++) {
        /* Two sets of accumulators, for even and odd entries: additions have a latency of several
         * cycles. */
        VEC sum[2][4] = {{{0}}}, squares[2][4] = {{{0}}};
        float weights[2] = {0, 0};
        const size_t end = drps_batch_start(b, s + 1);
        size_t j = drps_batch_start(b, s);

        for (; j + 2 <= end; j += 2) {
#pragma GCC unroll 2
            for (int e = 0; e < 2; e++) {
                const float *row = params + drps_local_at(b, wide, j + (size_t)e) * dim;
                const float x = drps_value_at(b, valued, j + (size_t)e);
                if (with_weights) weights[e] += x * row[0];
#pragma GCC unroll 4
                for (int v = 0; v < vectors; v++) {
                    VEC t = *(const VEC_AT *)(row + 1 + factor + v * LANES);
                    if (valued) t *= x;
                    sum[e][v] += t;
                    squares[e][v] += t * t;
                }
            }
        }
        if (j < end) {
            const float *row = params + drps_local_at(b, wide, j) * dim;
            const float x = drps_value_at(b, valued, j);
            if (with_weights) weights[0] += x * row[0];
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) {
                VEC t = *(const VEC_AT *)(row + 1 + factor + v * LANES);
                if (valued) t *= x;
                sum[0][v] += t;
                squares[0][v] += t * t;
            }
        }

        VEC pairs = {0};
        float *out = sums + (s - first) * rank + factor;
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            VEC all = sum[0][v] + sum[1][v];
            *(VEC_AT *)(out + v * LANES) = all;
            pairs += all * all - (squares[0][v] + squares[1][v]);
        }
        const float half = 0.5f * LANES_NAME(total)(&pairs);
        if (with_weights)
            scores[s] = bias + (weights[0] + weights[1]) + half;
        else
            scores[s] += half;
    }
}

DRPS_INLINE void LANES_NAME(backward)(int wide, int valued, int vectors, int with_weights,
                                      const struct drps_batch *b, size_t rank, size_t factor,
                                      size_t first, size_t last, const float *restrict slopes,
                                      const float *restrict params, const float *restrict sums,
                                      float *restrict grads)
{
    const size_t dim = rank + 1;
    for (size_t s = first; s < last; s++) {
        const float g = slopes[s - first];
        const size_t end = drps_batch_start(b, s + 1);
        VEC sum[4]; /* times the slope */
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sum[v] = g * *(const VEC_AT *)(sums + (s - first) * rank + factor + v * LANES);

        for (size_t j = drps_batch_start(b, s); j < end; j++) {
            const size_t at = drps_local_at(b, wide, j) * dim;
            const float x = drps_value_at(b, valued, j);
            const float gx = g * x;
            if (with_weights) grads[at] += gx;
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) {
                const VEC_AT *factors = (const VEC_AT *)(params + at + 1 + factor + v * LANES);
                VEC_AT *out = (VEC_AT *)(grads + at + 1 + factor + v * LANES);
                VEC t = sum[v] - gx * *factors;
                if (valued) t *= x;
                *out += t;
            }
        }
    }
}

#undef VEC
#undef VEC_AT
#undef LANES
#undef LANES_NAME
#undef LANES_JOIN
#undef LANES_JOIN2
