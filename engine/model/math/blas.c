/* Turns of threads in OpenBLAS. */
#include "engine/model/math/drps_blas.h"

#ifdef DRPS_WITH_OPENBLAS
#include <pthread.h>

/* cblas.h of another library does not declare these. */
void openblas_set_num_threads(int threads);
int openblas_get_parallel(void);

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int turns; /* set once */

static void prepare(void)
{
    openblas_set_num_threads(1);
    turns = openblas_get_parallel() == 0;
}

int drps_blas_takes_turns(void)
{
    (void)pthread_once(&once, prepare); /* cannot fail: `once` is valid */
    return turns;
}

void drps_blas_begin(void)
{
    if (drps_blas_takes_turns()) (void)pthread_mutex_lock(&turn);
}

void drps_blas_end(void)
{
    if (turns) (void)pthread_mutex_unlock(&turn);
}
#else
int drps_blas_takes_turns(void)
{
    return 0;
}

void drps_blas_begin(void)
{
}

void drps_blas_end(void)
{
}
#endif
