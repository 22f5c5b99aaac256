/* Turns of threads in OpenBLAS. */
#include "engine/model/math/drps_blas.h"

#ifdef DRPS_WITH_OPENBLAS
#include <pthread.h>
#include <string.h>

#include "base/drps_checksum.h"

/* cblas.h of another library does not declare these. */
void openblas_set_num_threads(int threads);
int openblas_get_parallel(void);
char *openblas_get_config(void);
char *openblas_get_corename(void);

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
/* The version and how it was built, and the processor whose kernels it has taken. */
uint64_t drps_blas_kind(void)
{
    const char *config = openblas_get_config(), *core = openblas_get_corename();
    const uint64_t sums[2] = {drps_checksum(config, strlen(config)),
                              drps_checksum(core, strlen(core))};
    return drps_checksum(sums, sizeof(sums)) | 1;
}
#else
int drps_blas_takes_turns(void)
{
    return 0;
}

uint64_t drps_blas_kind(void)
{
    return 2; /* own loops */
}

void drps_blas_begin(void)
{
}

void drps_blas_end(void)
{
}
#endif
