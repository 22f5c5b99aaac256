/* Products of blocks by OpenBLAS, which only this file of the folder includes, and by a plain loop.
 */
#include "engine/recommend/math/drps_products.h"

#include <float.h>

#ifdef DRPS_WITH_OPENBLAS
#include <cblas.h>
#include <pthread.h>

/* cblas.h of another library does not declare these. */
void openblas_set_num_threads(int threads);
int openblas_get_parallel(void);

/* Calls of several threads share buffers in a serial build of OpenBLAS. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
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

int drps_product_takes_turns(void)
{
    return openblas_get_parallel() == 0;
}

void drps_product_blas(const float *queries, size_t q, const float *items, size_t n, size_t d,
                       float *scores, void *scratch)
{
    const int turns = drps_product_takes_turns();
    (void)scratch;
    if (turns) (void)pthread_mutex_lock(&turn);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)q, (int)n, (int)d, 1, queries, (int)d,
                items, (int)d, 0, scores, (int)n);
    if (turns) (void)pthread_mutex_unlock(&turn);
}

void drps_product_one_thread(void)
{
    openblas_set_num_threads(1);
}
#else
int drps_product_has_blas(void)
{
    return 0;
}

int drps_product_takes_turns(void)
{
    return 0;
}

void drps_product_one_thread(void)
{
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
