/* Products of blocks by OpenBLAS, which only this file of the folder includes, and by a plain loop.
 */
#include "engine/recommend/math/drps_products.h"

#include <float.h>

#ifdef DRPS_WITH_OPENBLAS
#include <cblas.h>

#include "engine/model/math/drps_blas.h"
#endif

void drps_product_ref(const float *queries, size_t q, const float *items, size_t n, size_t d,
                      float *scores, void *scratch)
{
    (void)scratch;
    for (size_t i = 0; i < q; i++)
        for (size_t j = 0; j < n; j++) {
            float sum = 0;
            for (size_t k = 0; k < d; k++)
                sum += queries[i * d + k] * items[j * d + k];
            scores[i * n + j] = sum;
        }
}

#ifdef DRPS_WITH_OPENBLAS
int drps_product_has_blas(void)
{
    return 1;
}

void drps_product_blas(const float *queries, size_t q, const float *items, size_t n, size_t d,
                       float *scores, void *scratch)
{
    (void)scratch;
    drps_blas_begin();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)q, (int)n, (int)d, 1, queries, (int)d,
                items, (int)d, 0, scores, (int)n);
    drps_blas_end();
}

#else
int drps_product_has_blas(void)
{
    return 0;
}

void drps_product_blas(const float *queries, size_t q, const float *items, size_t n, size_t d,
                       float *scores, void *scratch)
{
    drps_product_own(queries, q, items, n, d, scores, scratch);
}
#endif

double drps_product_error(size_t d)
{
    const double u = (double)FLT_EPSILON / 2, du = (double)d * u;
    return du / (1 - du);
}
