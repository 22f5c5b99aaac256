/*
 * OpenBLAS as drps calls it: on the thread that calls, as drps has threads of its own. Calls of a
 * build for one thread share buffers, so that threads take turns there. Who calls cblas_...() does
 * so between these two. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_MODEL_MATH_BLAS_H
#define DRPS_ENGINE_MODEL_MATH_BLAS_H

#include <stdint.h>

void drps_blas_begin(void);
void drps_blas_end(void);

/* 1: threads take turns; 0: they do not, or drps was built without OpenBLAS. */
int drps_blas_takes_turns(void);

/* Returns a number, not 0, that says which kernels compute products here: processes with the same
 * one get the same bits of the same matrices. */
uint64_t drps_blas_kind(void);

#endif
