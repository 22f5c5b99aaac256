/* Sums over samples, or over groups of rows: a block has 32 columns of a group, and 8 threads for
 * each, whose sums it adds in their order. */
#include "device/cuda/net.h"

/* Rows of a group. Tests have several with few rows, too. */
enum { GROUP = DRPS_DEVICE_EMULATED ? 64 : 1024 };

struct sums {
    uint64_t n; /* rows */
    uint32_t each, width;
    const float *x, *by;
    float *to;
};

static __global__ void sum_samples(struct sums a)
{
    __shared__ float sums[WARPS][WARP];
    const uint32_t lane = threadIdx.x % WARP, part = threadIdx.x / WARP;
    const uint32_t across = (a.width + WARP - 1) / WARP;
    const uint64_t group = blockIdx.x / across, first = group * a.each;
    const uint64_t end = first + a.each < a.n ? first + a.each : a.n;
    const uint32_t column = blockIdx.x % across * WARP + lane;
    float sum = 0;
    for (uint64_t s = first + part; column < a.width && s < end; s += WARPS)
        sum += (a.by ? a.by[s] : 1.0f) * a.x[s * a.width + column];
    sums[part][lane] = sum;
    __syncthreads();
    if (part || column >= a.width) return;
    sum = 0;
    for (uint32_t i = 0; i < WARPS; i++)
        sum += sums[i][lane];
    a.to[group * a.width + column] = sum;
}

int net_sum_samples(struct drps_device *dev, uint32_t samples, uint32_t width, const float *x,
                    const float *by, float *to, char *why)
{
    const struct sums a = {samples, samples, width, x, by, to};
    return device_launch(dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_LAYER, sum_samples, a,
                         device_blocks(width, WARP), THREADS, why);
}

uint64_t net_sum_groups(uint64_t n)
{
    return device_blocks(n, GROUP);
}

int net_sum_rows(struct drps_device *dev, uint64_t n, uint32_t width, const float *x, float *room,
                 float *to, char *why)
{
    const uint64_t groups = net_sum_groups(n);
    const struct sums a = {n, GROUP, width, x, NULL, room};
    int rc = device_launch(dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_LAYER, sum_samples, a,
                           groups * device_blocks(width, WARP), THREADS, why);
    return rc < 0 ? rc : net_sum_samples(dev, (uint32_t)groups, width, room, NULL, to, why);
}
