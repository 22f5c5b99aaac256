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

/* Memory of the device for what products need besides their matrices: as much as cuBLAS recommends
 * (cublasSetWorkspace(): 32 MiB since Hopper, 4 MiB before). The emulated device has tests that
 * count KiB. */
enum { PRODUCTS_ALIGN = 256, PRODUCTS_WORKSPACE = DRPS_DEVICE_EMULATED ? 4 << 10 : 32 << 20 };

/* 1: the library is there, which stays loaded; 0: *why says what is missing. */
int products_can(char *why);
/* Opens it, if it is not open, and lends it a workspace [PRODUCTS_WORKSPACE], which begins at a
 * multiple of PRODUCTS_ALIGN. 0, or an error if it is not there. */
int products_open(struct drps_device *dev, void *workspace, char *why);
void products_close(struct drps_device *dev);

#endif
