/*
 * Plays the part of CUDA's runtime that device/cuda/ uses, on the processor, for tests on machines
 * without a device. The sources of the kernels are compiled against this header by the compiler of
 * the host. It is not fast, and it is stricter than a device:
 *
 * - Work given to a stream is done as late as possible: when the host waits for it, or when another
 *   stream does. So a missing wait shows, always, as bytes that are not there yet.
 * - Memory of the device cannot be touched but by kernels and copies, and has a page behind each
 *   allocation that nobody may touch: who does is killed by a signal. It begins as NaNs.
 * - Copies are to and from pinned memory alone; a pointer to memory of the host among a kernel's
 *   arguments is an error.
 * - A shuffle that a lane of the warp never comes to is an error.
 *
 * Blocks run one after the other, the threads of a block as fibers, which meet at __syncthreads()
 * and at shuffles.
 */
#ifndef DRPS_EMULATED_CUDA_RUNTIME_H
#define DRPS_EMULATED_CUDA_RUNTIME_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <functional>

#define __global__
#define __device__
#define __host__
#define __shared__ static

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};
extern dim3 threadIdx, blockIdx, blockDim, gridDim;

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorLaunchFailure = 719
};
const char *cudaGetErrorString(cudaError_t rc);

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
enum cudaDeviceAttr { cudaDevAttrMemoryClockRate, cudaDevAttrGlobalMemoryBusWidth };

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    void *attrs;
    unsigned numAttrs;
};

cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device);
cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr what, int device);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all_bytes);
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMallocHost(void **out, size_t bytes);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreate(cudaEvent_t *out);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);

/* ---- Kernels ---- */

namespace emulated
{
/* Whether the words of an argument point to memory of the host. */
bool points_to_host(const void *argument, size_t bytes);
cudaError_t launch(const cudaLaunchConfig_t *config, std::function<void()> thread);
void meet_block();
void meet_warp();
uint32_t shuffle(uint32_t mask, uint32_t bits, unsigned from);
unsigned lane();
} // namespace emulated

template <typename T>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(T), T argument)
{
    if (emulated::points_to_host(&argument, sizeof(argument))) return cudaErrorInvalidValue;
    return emulated::launch(config, [kernel, argument] { kernel(argument); });
}

static inline void __syncthreads()
{
    emulated::meet_block();
}

static inline void __syncwarp()
{
    emulated::meet_warp();
}

static inline float __shfl_xor_sync(uint32_t mask, float value, int distance)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bits = emulated::shuffle(mask, bits, emulated::lane() ^ (unsigned)distance);
    memcpy(&value, &bits, sizeof(bits));
    return value;
}

#endif
