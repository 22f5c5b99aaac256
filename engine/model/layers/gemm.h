/*
 * Products of matrices, as full layers need them. All matrices are row-major, lie without gaps and
 * do not overlap; all products are added to what is there. No dimension is 0 or above INT_MAX.
 *
 * n samples, w floats a sample before a layer, N after it: a [n][w], weights [N][w], b [n][N].
 *
 * OpenBLAS computes them with one thread, where the build has it and they are not too narrow:
 * drps's threads share out the samples. Any threads may call these at a time; in a serial build of
 * OpenBLAS they take turns.
 */
#ifndef DRPS_ENGINE_MODEL_LAYERS_GEMM_H
#define DRPS_ENGINE_MODEL_LAYERS_GEMM_H

#include <stddef.h>

/* b += a weights^T */
void drps_layers_product(size_t n, size_t w, size_t N, const float *a, const float *weights,
                         float *b);
/* weights += b^T a */
void drps_layers_product_weights(size_t n, size_t w, size_t N, const float *b, const float *a,
                                 float *weights);
/* a += b weights */
void drps_layers_product_back(size_t n, size_t w, size_t N, const float *b, const float *weights,
                              float *a);

/* The same by drps's own loops. */
void drps_layers_own_product(size_t n, size_t w, size_t N, const float *a, const float *weights,
                             float *b);
void drps_layers_own_weights(size_t n, size_t w, size_t N, const float *b, const float *a,
                             float *weights);
void drps_layers_own_back(size_t n, size_t w, size_t N, const float *b, const float *weights,
                          float *a);

#endif
