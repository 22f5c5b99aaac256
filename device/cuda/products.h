/* Products of matrices, by cuBLAS, which is loaded when a net asks for it first: other models do
 * without. Private to device/cuda/. */
#ifndef DRPS_DEVICE_CUDA_PRODUCTS_H
#define DRPS_DEVICE_CUDA_PRODUCTS_H

#include "device/cuda/cuda_internal.h"

/* out [n][N] += in [n][w] times the transposed weights [N][w]. Matrices are row-major. */
int product(struct drps_device *dev, size_t n, size_t w, size_t N, const float *in,
            const float *weights, float *out, char *why);
/* of_weights [N][w] = the transposed slopes [n][N] times in [n][w]; `adds`: + what is there. */
int product_weights(struct drps_device *dev, size_t n, size_t w, size_t N, const float *slopes,
                    const float *in, int adds, float *of_weights, char *why);
/* of_in [n][w] = slopes [n][N] times weights [N][w]; `adds`: + what is there. */
int product_back(struct drps_device *dev, size_t n, size_t w, size_t N, const float *slopes,
                 const float *weights, int adds, float *of_in, char *why);

/* 1: the library is there, which stays loaded; 0: *why says what is missing. */
int products_can(char *why);
/* Opens it. 0, or an error if it is not there. */
int products_open(struct drps_device *dev, char *why);
void products_close(struct drps_device *dev);

#endif
