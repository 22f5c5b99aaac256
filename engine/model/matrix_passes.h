/*
 * The passes of a matrix over n neighbouring outputs: `vectors` of WIDTH floats, the last of which
 * ends where the outputs end and so may share some with the one before it. These are computed
 * twice, from the same floats to the same floats: a row is loaded as a whole before it is stored.
 * Included once for each WIDTH, which names the functions. `wide`, `valued` and `vectors`, 1 to
 * MATRIX_VECTORS, are constants; WIDTH <= n <= vectors * WIDTH, and n > (vectors - 1) * WIDTH.
 *
 * Arrays begin at the first of these outputs; rows are `outputs` floats apart.
 */
#define WIDTH_NAME(name) DRPS_WIDTH_NAME(name, WIDTH)

#define VEC WIDTH_NAME(vec)
#define VEC_AT WIDTH_NAME(vec_at)
DRPS_VECTOR_TYPES(VEC, VEC_AT, WIDTH);

/* Where vector v begins. */
DRPS_INLINE size_t WIDTH_NAME(at)(int v, int vectors, size_t n)
{
    return v + 1 < vectors ? (size_t)v * WIDTH : n - WIDTH;
}

DRPS_INLINE void WIDTH_NAME(load)(int vectors, size_t n, const float *from, VEC *to)
{
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
        to[v] = *(const VEC_AT *)(from + WIDTH_NAME(at)(v, vectors, n));
}

DRPS_INLINE void WIDTH_NAME(store)(int vectors, size_t n, const VEC *from, float *to)
{
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
        *(VEC_AT *)(to + WIDTH_NAME(at)(v, vectors, n)) = from[v];
}

DRPS_INLINE void WIDTH_NAME(forward)(int wide, int valued, int vectors, const struct drps_batch *b,
                                     size_t outputs, size_t n, const float *bias, size_t first,
                                     size_t last, const float *restrict params,
                                     float *restrict scores)
{
    for (size_t s = first; s < last; s++) {
        /* Two sets of sums, of even and odd entries: additions have a latency of several cycles. */
        VEC sums[2][MATRIX_VECTORS] = {{{0}}}, row[MATRIX_VECTORS];
        const size_t end = drps_batch_start(b, s + 1);
        size_t j = drps_batch_start(b, s);

        if (bias) WIDTH_NAME(load)(vectors, n, bias, sums[0]);
        for (; j + 2 <= end; j += 2) {
#pragma GCC unroll 2
            for (int e = 0; e < 2; e++) {
                const size_t l = drps_local_at(b, wide, j + (size_t)e);
                const float x = drps_value_at(b, valued, j + (size_t)e);
                WIDTH_NAME(load)(vectors, n, params + l * outputs, row);
#pragma GCC unroll 4
                for (int v = 0; v < vectors; v++)
                    sums[e][v] += valued ? x * row[v] : row[v];
            }
        }
        if (j < end) {
            const float x = drps_value_at(b, valued, j);
            WIDTH_NAME(load)(vectors, n, params + drps_local_at(b, wide, j) * outputs, row);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                sums[0][v] += valued ? x * row[v] : row[v];
        }
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sums[0][v] += sums[1][v];
        WIDTH_NAME(store)(vectors, n, sums[0], scores + s * outputs);
    }
}

DRPS_INLINE void WIDTH_NAME(backward)(int wide, int valued, int vectors, const struct drps_batch *b,
                                      size_t outputs, size_t n, size_t first, size_t last,
                                      const float *restrict slopes, float *restrict grads)
{
    for (size_t s = first; s < last; s++) {
        VEC slope[MATRIX_VECTORS], row[MATRIX_VECTORS];
        const size_t end = drps_batch_start(b, s + 1);
        WIDTH_NAME(load)(vectors, n, slopes + (s - first) * outputs, slope);
        for (size_t j = drps_batch_start(b, s); j < end; j++) {
            float *grad = grads + drps_local_at(b, wide, j) * outputs;
            const float x = drps_value_at(b, valued, j);
            WIDTH_NAME(load)(vectors, n, grad, row);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                row[v] += valued ? x * slope[v] : slope[v];
            WIDTH_NAME(store)(vectors, n, row, grad);
        }
    }
}

/* The outputs that struct pass names, in so many vectors. */
static void WIDTH_NAME(forward_pass)(const struct pass *p)
{
#define FORWARD(vectors)                                                                           \
    DRPS_BY_FORM(p->b, WIDTH_NAME(forward), vectors, p->b, p->outputs, p->n, p->bias, p->first,    \
                 p->last, p->params, p->scores)
    switch ((p->n + WIDTH - 1) / WIDTH) {
    case 1:
        FORWARD(1);
        break;
    case 2:
        FORWARD(2);
        break;
    case 3:
        FORWARD(3);
        break;
    default:
        FORWARD(4);
        break;
    }
#undef FORWARD
}

static void WIDTH_NAME(backward_pass)(const struct pass *p)
{
#define BACKWARD(vectors)                                                                          \
    DRPS_BY_FORM(p->b, WIDTH_NAME(backward), vectors, p->b, p->outputs, p->n, p->first, p->last,   \
                 p->slopes, p->grads)
    switch ((p->n + WIDTH - 1) / WIDTH) {
    case 1:
        BACKWARD(1);
        break;
    case 2:
        BACKWARD(2);
        break;
    case 3:
        BACKWARD(3);
        break;
    default:
        BACKWARD(4);
        break;
    }
#undef BACKWARD
}

#undef WIDTH
#undef WIDTH_NAME
#undef VEC
#undef VEC_AT
