/*
 * What the sources of device/cuda/ share: an open device, how CUDA's errors become texts, and how
 * kernels are launched. Compiled by nvcc; or by the compiler of the host against an emulation
 * (tests/device/), so nothing here is CUDA's own syntax but __global__ and the like.
 */
#ifndef DRPS_DEVICE_CUDA_INTERNAL_H
#define DRPS_DEVICE_CUDA_INTERNAL_H

#include <cuda_runtime.h>

#include "device/drps_device.h"

#ifndef DRPS_DEVICE_EMULATED
#define DRPS_DEVICE_EMULATED 0
#endif

enum { TIMED_MOST = 4096 /* kernels whose events wait to be read */ };

/* A kernel under the clock. */
struct timed {
    cudaEvent_t begin, end;
    enum drps_device_kernel kernel;
};

struct drps_device {
    cudaStream_t queues[DRPS_DEVICE_QUEUES];
    cudaEvent_t events[DRPS_DEVICE_EVENTS];
    struct products *products; /* own; NULL: no net has asked for them */
    int is_timed;
    struct timed *timed; /* [TIMED_MOST] */
    unsigned n_timed;
    struct drps_device_times times;
};

/* Puts what `call` failed with into `why`, and returns a code of drps. */
int device_failed(cudaError_t rc, const char *call, char *why);

#define DEVICE_TRY(call)                                                                           \
    do {                                                                                           \
        const cudaError_t rc_ = (call);                                                            \
        if (rc_ != cudaSuccess) return device_failed(rc_, #call, why);                             \
    } while (0)

/* Before and after a launch: the clock, where kernels are timed. */
int device_begin(struct drps_device *dev, enum drps_device_queue queue,
                 enum drps_device_kernel kernel, char *why);
int device_end(struct drps_device *dev, enum drps_device_queue queue, char *why);

/* Launches kernel(argument) with `blocks` blocks of `threads` threads. */
template <typename T>
static int device_launch(struct drps_device *dev, enum drps_device_queue queue,
                         enum drps_device_kernel which, void (*kernel)(T), T argument,
                         uint64_t blocks, unsigned threads, char *why)
{
    if (!blocks) return 0;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3(threads);
    config.stream = dev->queues[queue];
    int rc = device_begin(dev, queue, which, why);
    if (rc < 0) return rc;
    DEVICE_TRY(cudaLaunchKernelEx(&config, kernel, argument));
    return device_end(dev, queue, why);
}

static inline uint64_t device_blocks(uint64_t n, uint64_t each)
{
    return (n + each - 1) / each;
}

/* rows.cu */
int device_gather(struct drps_device *dev, enum drps_device_queue queue,
                  const struct drps_device_rows *rows, const uint32_t *frames, size_t n,
                  size_t bytes, void *packed, char *why);
int device_scatter(struct drps_device *dev, enum drps_device_queue queue,
                   const struct drps_device_rows *rows, const uint32_t *frames, size_t n,
                   size_t bytes, const void *packed, char *why);

/* step.cu */
int device_can(const struct drps_device_model *model, const struct drps_device_optim *optim,
               char *why);
size_t device_room_bytes(const struct drps_device_model *model,
                         const struct drps_device_optim *optim, size_t samples, size_t rows,
                         size_t pieces);
void device_results(const struct drps_device_model *model, struct drps_device_results *out);
int device_train(struct drps_device *dev, const struct drps_device_step *step, char *why);
int device_predict(struct drps_device *dev, const struct drps_device_step *step, char *why);

#endif
