/* Gram matrices, dense and sparse. Only this file includes OpenBLAS. */
#include "engine/cluster/sv/select/drps_gram.h"

#ifdef DRPS_WITH_OPENBLAS
#include <cblas.h>

#include "engine/model/math/drps_blas.h"
#endif

enum { BLOCK = 256 }; /* floats of each u that are doubles at a time */

size_t drps_gram_scratch(uint32_t n)
{
    return (size_t)n * BLOCK * sizeof(double);
}

/* What is below the diagonal is above it, too. */
static void mirror(double *gram, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            gram[j * n + i] = gram[i * n + j];
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
    drps_blas_begin();
    for (size_t i = 0; i < n * n; i++)
        gram_out[i] = 0;
    for (size_t from = 0; n && from < dim; from += BLOCK) {
        const size_t width = dim - from < BLOCK ? dim - from : BLOCK;
        take_block(batch, from, width, scratch);
        cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, (int)n, (int)width, 1, scratch,
                    (int)width, 1, gram_out, (int)n);
    }
    drps_blas_end();
    mirror(gram_out, n);
}
#else
void drps_gram_dense(const struct drps_vectors *batch, void *scratch, double *gram_out)
{
    (void)scratch;
    drps_gram_dense_plain(batch, gram_out);
}
#endif

/* ---- Sparse vectors: their entries in the order of ids, so that those of an id are neighbours
 * ---- */

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

/* An entry: its id, and below that its number. */
static uint64_t entry_key(const struct drps_vectors *v, uint32_t e)
{
    return (uint64_t)v->ids[e] << 32 | e;
}

/* One pass of a radix sort. */
static void sort_by_digit(const uint64_t *from, uint64_t *to, size_t n, unsigned shift)
{
    size_t begin[DIGITS + 1] = {0};
    for (size_t i = 0; i < n; i++)
        begin[(from[i] >> shift) % DIGITS + 1]++;
    for (size_t d = 0; d < DIGITS; d++)
        begin[d + 1] += begin[d];
    for (size_t i = 0; i < n; i++)
        to[begin[(from[i] >> shift) % DIGITS]++] = from[i];
}

/* Returns the sorted keys, which lie in `keys` or in `other`. */
static const uint64_t *sort_by_id(uint64_t *keys, uint64_t *other, size_t n)
{
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++)
        all |= keys[i];
    for (unsigned shift = 32; shift < 64 && all >> shift; shift += DIGIT_BITS) {
        uint64_t *sorted = other;
        sort_by_digit(keys, sorted, n, shift);
        other = keys;
        keys = sorted;
    }
    return keys;
}

size_t drps_gram_sparse_scratch(uint32_t entries)
{
    return (size_t)entries * (2 * sizeof(uint64_t) + sizeof(uint32_t));
}

/* Entries of one id: all pairs of their samples. */
static void add_pairs(const struct drps_vectors *v, const uint64_t *keys, size_t n,
                      const uint32_t *samples, double *gram)
{
    for (size_t p = 0; p < n; p++) {
        const uint32_t e = (uint32_t)keys[p];
        double *row = gram + (size_t)samples[e] * v->n;
        for (size_t q = 0; q <= p; q++)
            row[samples[(uint32_t)keys[q]]] +=
                (double)v->values[e] * (double)v->values[(uint32_t)keys[q]];
    }
}

void drps_gram_sparse(const struct drps_vectors *batch, void *scratch, double *gram_out)
{
    const size_t n = batch->n, entries = batch->first[n];
    uint64_t *keys = scratch;
    uint32_t *samples = (uint32_t *)(keys + 2 * entries);
    for (size_t i = 0; i < n * n; i++)
        gram_out[i] = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t e = batch->first[i]; e < batch->first[i + 1]; e++) {
            keys[e] = entry_key(batch, e);
            samples[e] = i;
        }
    const uint64_t *sorted = sort_by_id(keys, keys + entries, entries);
    for (size_t from = 0, to; from < entries; from = to) {
        for (to = from + 1; to < entries && sorted[to] >> 32 == sorted[from] >> 32;)
            to++;
        add_pairs(batch, sorted + from, to - from, samples, gram_out);
    }
    mirror(gram_out, n);
}
