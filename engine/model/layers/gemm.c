/* Products of matrices by OpenBLAS, which only this file of the folder includes, or by own loops.
 */
#include "engine/model/layers/gemm.h"

#ifdef DRPS_WITH_OPENBLAS
#include <cblas.h>

#include "engine/model/math/drps_blas.h"

/* A layer of fewer floats is a few products of a matrix and a vector, which own loops do as fast
 * and without a turn. */
enum { NARROW = 4 };

void drps_layers_product(size_t n, size_t w, size_t N, const float *a, const float *weights,
                         float *b)
{
    if (N < NARROW) {
        drps_layers_own_product(n, w, N, a, weights, b);
        return;
    }
    drps_blas_begin();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)N, (int)w, 1, a, (int)w,
                weights, (int)w, 1, b, (int)N);
    drps_blas_end();
}

void drps_layers_product_weights(size_t n, size_t w, size_t N, const float *b, const float *a,
                                 float *weights)
{
    if (N < NARROW) {
        drps_layers_own_weights(n, w, N, b, a, weights);
        return;
    }
    drps_blas_begin();
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)N, (int)w, (int)n, 1, b, (int)N, a,
                (int)w, 1, weights, (int)w);
    drps_blas_end();
}

void drps_layers_product_back(size_t n, size_t w, size_t N, const float *b, const float *weights,
                              float *a)
{
    if (N < NARROW) {
        drps_layers_own_back(n, w, N, b, weights, a);
        return;
    }
    drps_blas_begin();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)w, (int)N, 1, b, (int)N,
                weights, (int)w, 1, a, (int)w);
    drps_blas_end();
}
#else
void drps_layers_product(size_t n, size_t w, size_t N, const float *a, const float *weights,
                         float *b)
{
    drps_layers_own_product(n, w, N, a, weights, b);
}

void drps_layers_product_weights(size_t n, size_t w, size_t N, const float *b, const float *a,
                                 float *weights)
{
    drps_layers_own_weights(n, w, N, b, a, weights);
}

void drps_layers_product_back(size_t n, size_t w, size_t N, const float *b, const float *weights,
                              float *a)
{
    drps_layers_own_back(n, w, N, b, weights, a);
}
#endif
