/* Products of matrices by OpenBLAS, which only this file of the folder includes, or by own loops.
 */
#include "engine/model/layers/gemm.h"

#ifdef DRPS_WITH_OPENBLAS
#include <cblas.h>
#include <pthread.h>

/* cblas.h of another library does not declare these. */
void openblas_set_num_threads(int threads);
int openblas_get_parallel(void);

/* A layer of fewer floats is a few products of a matrix and a vector, which own loops do as fast
 * and without a turn. */
enum { NARROW = 4 };

/* Calls of several threads share buffers in a serial build of OpenBLAS. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int takes_turns; /* set once */

static void prepare(void)
{
    openblas_set_num_threads(1);
    takes_turns = openblas_get_parallel() == 0;
}

static void begin(void)
{
    (void)pthread_once(&once, prepare); /* cannot fail: `once` is valid */
    if (takes_turns) (void)pthread_mutex_lock(&turn);
}

static void end(void)
{
    if (takes_turns) (void)pthread_mutex_unlock(&turn);
}

void drps_layers_product(size_t n, size_t w, size_t N, const float *a, const float *weights,
                         float *b)
{
    if (N < NARROW) {
        drps_layers_own_product(n, w, N, a, weights, b);
        return;
    }
    begin();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)N, (int)w, 1, a, (int)w,
                weights, (int)w, 1, b, (int)N);
    end();
}

void drps_layers_product_weights(size_t n, size_t w, size_t N, const float *b, const float *a,
                                 float *weights)
{
    if (N < NARROW) {
        drps_layers_own_weights(n, w, N, b, a, weights);
        return;
    }
    begin();
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)N, (int)w, (int)n, 1, b, (int)N, a,
                (int)w, 1, weights, (int)w);
    end();
}

void drps_layers_product_back(size_t n, size_t w, size_t N, const float *b, const float *weights,
                              float *a)
{
    if (N < NARROW) {
        drps_layers_own_back(n, w, N, b, weights, a);
        return;
    }
    begin();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)w, (int)N, 1, b, (int)N,
                weights, (int)w, 1, a, (int)w);
    end();
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
