/* Gram matrices, dense and sparse. Only this file includes OpenBLAS. */
#include "engine/cluster/sv/select/drps_gram.h"

#ifdef DRPS_WITH_OPENBLAS
#include <cblas.h>

void openblas_set_num_threads(int threads); /* cblas.h of another library does not declare it */
#endif

enum { BLOCK = 256 }; /* floats of each u that are doubles at a time */

size_t drps_gram_scratch(uint32_t n)
{
    return (size_t)n * BLOCK * sizeof(double);
}

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += (double)a[k] * (double)b[k];
    return sum;
}

void drps_gram_dense_plain(const struct drps_vectors *batch, double *gram_out)
{
    const size_t n = batch->n, dim = batch->dim;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            gram_out[i * n + j] = gram_out[j * n + i] =
                dot(batch->u + i * dim, batch->u + j * dim, dim);
}

#ifdef DRPS_WITH_OPENBLAS
/* The columns [from, from + width) of all u. */
static void take_block(const struct drps_vectors *batch, size_t from, size_t width, double *block)
{
    for (size_t i = 0; i < batch->n; i++)
        for (size_t k = 0; k < width; k++)
            block[i * width + k] = (double)batch->u[i * batch->dim + from + k];
}

void drps_gram_dense(const struct drps_vectors *batch, void *scratch, double *gram_out)
{
    const size_t n = batch->n, dim = batch->dim;
    openblas_set_num_threads(1);
    for (size_t i = 0; i < n * n; i++)
        gram_out[i] = 0;
    for (size_t from = 0; n && from < dim; from += BLOCK) {
        const size_t width = dim - from < BLOCK ? dim - from : BLOCK;
        take_block(batch, from, width, scratch);
        cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, (int)n, (int)width, 1, scratch,
                    (int)width, 1, gram_out, (int)n);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            gram_out[j * n + i] = gram_out[i * n + j];
}
#else
void drps_gram_dense(const struct drps_vectors *batch, void *scratch, double *gram_out)
{
    (void)scratch;
    drps_gram_dense_plain(batch, gram_out);
}
#endif

/* Samples i and j: a merge, as ids increase. */
static double sparse_dot(const struct drps_vectors *v, uint32_t i, uint32_t j)
{
    uint32_t a = v->first[i], b = v->first[j];
    double sum = 0;
    while (a < v->first[i + 1] && b < v->first[j + 1]) {
        const uint32_t at = v->ids[a], other = v->ids[b];
        if (at == other) sum += (double)v->values[a] * (double)v->values[b];
        a += at <= other;
        b += other <= at;
    }
    return sum;
}

void drps_gram_sparse(const struct drps_vectors *batch, double *gram_out)
{
    const size_t n = batch->n;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j <= i; j++)
            gram_out[i * n + j] = gram_out[j * n + i] = sparse_dot(batch, i, j);
}
