/* Sums over samples: a block has 32 columns, and 8 threads for each, whose sums it adds in their
 * order. */
#include "device/cuda/net.h"

struct sums {
    uint32_t samples, width;
    const float *x, *by;
    float *to;
};

static __global__ void sum_samples(struct sums a)
{
    __shared__ float sums[WARPS][WARP];
    const uint32_t lane = threadIdx.x % WARP, part = threadIdx.x / WARP;
    const uint32_t column = blockIdx.x * WARP + lane;
    float sum = 0;
    for (uint32_t s = part; column < a.width && s < a.samples; s += WARPS)
        sum += (a.by ? a.by[s] : 1.0f) * a.x[(uint64_t)s * a.width + column];
    sums[part][lane] = sum;
    __syncthreads();
    if (part || column >= a.width) return;
    sum = 0;
    for (uint32_t i = 0; i < WARPS; i++)
        sum += sums[i][lane];
    a.to[column] = sum;
}

int net_sum_samples(struct drps_device *dev, uint32_t samples, uint32_t width, const float *x,
                    const float *by, float *to, char *why)
{
    const struct sums a = {samples, width, x, by, to};
    return device_launch(dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_LAYER, sum_samples, a,
                         device_blocks(width, WARP), THREADS, why);
}
