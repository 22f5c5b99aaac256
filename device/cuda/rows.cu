/* Rows out of their frames into one piece of memory, and back: a thread moves a float, so that
 * neighbouring threads touch neighbouring bytes of a row. */
#include "device/cuda/cuda_internal.h"

enum { THREADS = 256 };

struct move {
    char *base;
    uint64_t stride;
    const uint32_t *frames;
    float *packed;
    uint64_t n, floats; /* rows, floats of each */
};

static __device__ float *in_frame(const struct move *m, uint64_t i)
{
    const uint64_t row = i / m->floats;
    return (float *)(void *)(m->base + m->frames[row] * m->stride) + (i - row * m->floats);
}

static __global__ void gather(struct move m)
{
    const uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < m.n * m.floats) m.packed[i] = *in_frame(&m, i);
}

static __global__ void scatter(struct move m)
{
    const uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < m.n * m.floats) *in_frame(&m, i) = m.packed[i];
}

int device_gather(struct drps_device *dev, enum drps_device_queue queue,
                  const struct drps_device_rows *rows, const uint32_t *frames, size_t n,
                  size_t bytes, void *packed, char *why)
{
    const struct move m = {(char *)rows->base, rows->stride, frames,
                           (float *)packed,    (uint64_t)n,  (uint64_t)(bytes / sizeof(float))};
    return device_launch(dev, queue, DRPS_DEVICE_GATHER, gather, m,
                         device_blocks(m.n * m.floats, THREADS), THREADS, why);
}

int device_scatter(struct drps_device *dev, enum drps_device_queue queue,
                   const struct drps_device_rows *rows, const uint32_t *frames, size_t n,
                   size_t bytes, const void *packed, char *why)
{
    const struct move m = {
        (char *)rows->base,      rows->stride, frames,
        (float *)(void *)packed, (uint64_t)n,  (uint64_t)(bytes / sizeof(float))};
    return device_launch(dev, queue, DRPS_DEVICE_SCATTER, scatter, m,
                         device_blocks(m.n * m.floats, THREADS), THREADS, why);
}
