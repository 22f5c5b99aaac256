/* Plays the part of cuBLAS that device/cuda/ uses, by plain loops: see cuda_runtime.h. */
#ifndef DRPS_EMULATED_CUBLAS_H
#define DRPS_EMULATED_CUBLAS_H

#include "cuda_runtime.h"

enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_INVALID_VALUE = 7 };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
typedef struct cublasContext *cublasHandle_t;
#define CUBLAS_VER_MAJOR 0

/* false: as on a machine without the library; DRPS_EMULATED_CUBLAS=none says so. */
bool emulated_cublas_is_there();
cublasStatus_t cublasCreate(cublasHandle_t *out);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
/* Stricter than cuBLAS: there is no product without it, and each leaves NaNs in all of it. */
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes);
cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b,
                           int m, int n, int k, const float *alpha, const float *a, int step_a,
                           const float *b, int step_b, const float *beta, float *out, int step_out);

#endif
