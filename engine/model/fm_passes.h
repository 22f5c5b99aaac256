/*
 * The inner passes of factorization machines over ELEMENTS x `groups` neighbouring factors.
 * Included once for each ELEMENTS (4, 8, 16), which names the functions: C has no templates, and
 * arrays in plain loops are not kept in registers reliably by either compiler. ELEMENTS wider than
 * the machine's vectors are PARTS of these; sums are the same with any number of parts.
 *
 * D = factors + 1 floats a row; factor f of row l is params[l * D + 1 + f]. `groups`,
 * `with_weights`, `wide` and `valued` are constants. with_weights: the pass also does the rows'
 * first floats; it is then the only pass.
 */
#define ELEMENTS_NAME(name) DRPS_WIDTH_NAME(name, ELEMENTS)

#define WIDTH (ELEMENTS < DRPS_VECTOR_FLOATS ? ELEMENTS : DRPS_VECTOR_FLOATS)
#define PARTS (ELEMENTS / WIDTH)
#define VECTORS (groups * PARTS)
#define MOST (4 * PARTS) /* vectors of a pass */

#define VEC ELEMENTS_NAME(vec)
#define VEC_AT ELEMENTS_NAME(vec_at)
DRPS_VECTOR_TYPES(VEC, VEC_AT, WIDTH);

/* Returns the sum of all elements, halving: the order is fixed by these loops, not by the compiler.
 */
DRPS_INLINE float ELEMENTS_NAME(total)(const VEC *parts)
{
    VEC v[PARTS];
    float t[WIDTH];
    memcpy(v, parts, sizeof(v));
#pragma GCC unroll 4
    for (int n = PARTS / 2; n; n /= 2)
#pragma GCC unroll 4
        for (int p = 0; p < n; p++)
            v[p] += v[p + n];
    memcpy(t, v, sizeof(t));
    for (int width = WIDTH / 2; width; width /= 2)
        for (int i = 0; i < width; i++)
            t[i] += t[i + width];
    return t[0];
}

DRPS_INLINE void ELEMENTS_NAME(forward)(int wide, int valued, int groups, int with_weights,
                                        const struct drps_batch *b, size_t factors, size_t factor,
                                        float bias, size_t first, size_t last,
                                        const float *restrict params, float *restrict scores,
                                        float *restrict sums)
{
    const size_t dim = factors + 1;
    for (size_t s = first; s < last; s++) {
        /* Two sets of accumulators, for even and odd entries: additions have a latency of several
         * cycles. */
        VEC sum[2][MOST] = {{{0}}}, squares[2][MOST] = {{{0}}};
        float weights[2] = {0, 0};
        const size_t end = drps_batch_start(b, s + 1);
        size_t j = drps_batch_start(b, s);

        for (; j + 2 <= end; j += 2) {
#pragma GCC unroll 2
            for (int e = 0; e < 2; e++) {
                const float *row = params + drps_local_at(b, wide, j + (size_t)e) * dim;
                const float x = drps_value_at(b, valued, j + (size_t)e);
                if (with_weights) weights[e] += x * row[0];
#pragma GCC unroll 16
                for (int v = 0; v < VECTORS; v++) {
                    VEC t = *(const VEC_AT *)(row + 1 + factor + v * WIDTH);
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
#pragma GCC unroll 16
            for (int v = 0; v < VECTORS; v++) {
                VEC t = *(const VEC_AT *)(row + 1 + factor + v * WIDTH);
                if (valued) t *= x;
                sum[0][v] += t;
                squares[0][v] += t * t;
            }
        }

        VEC pairs[PARTS] = {{0}};
        float *out = sums + (s - first) * factors + factor;
#pragma GCC unroll 16
        for (int v = 0; v < VECTORS; v++) {
            VEC all = sum[0][v] + sum[1][v];
            *(VEC_AT *)(out + v * WIDTH) = all;
            pairs[v % PARTS] += all * all - (squares[0][v] + squares[1][v]);
        }
        const float half = 0.5f * ELEMENTS_NAME(total)(pairs);
        if (with_weights)
            scores[s] = bias + (weights[0] + weights[1]) + half;
        else
            scores[s] += half;
    }
}

DRPS_INLINE void ELEMENTS_NAME(backward)(int wide, int valued, int groups, int with_weights,
                                         const struct drps_batch *b, size_t factors, size_t factor,
                                         size_t first, size_t last, const float *restrict slopes,
                                         const float *restrict params, const float *restrict sums,
                                         float *restrict grads)
{
    const size_t dim = factors + 1;
    for (size_t s = first; s < last; s++) {
        const float g = slopes[s - first];
        const size_t end = drps_batch_start(b, s + 1);
        VEC sum[MOST]; /* times the slope */
#pragma GCC unroll 16
        for (int v = 0; v < VECTORS; v++)
            sum[v] = g * *(const VEC_AT *)(sums + (s - first) * factors + factor + v * WIDTH);

        for (size_t j = drps_batch_start(b, s); j < end; j++) {
            const size_t at = drps_local_at(b, wide, j) * dim;
            const float x = drps_value_at(b, valued, j);
            const float gx = g * x;
            if (with_weights) grads[at] += gx;
#pragma GCC unroll 16
            for (int v = 0; v < VECTORS; v++) {
                const VEC_AT *values = (const VEC_AT *)(params + at + 1 + factor + v * WIDTH);
                VEC_AT *out = (VEC_AT *)(grads + at + 1 + factor + v * WIDTH);
                VEC t = sum[v] - gx * *values;
                if (valued) t *= x;
                *out += t;
            }
        }
    }
}

#undef VEC
#undef VEC_AT
#undef MOST
#undef VECTORS
#undef PARTS
#undef WIDTH
#undef ELEMENTS
#undef ELEMENTS_NAME
