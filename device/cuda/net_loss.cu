/* Losses of samples with one score, or with one for each class (engine/model/softmax.c): a warp a
 * sample, whose lanes share out the classes. */
#include "device/cuda/net.h"

struct losses {
    struct step s;
    float *slopes; /* [samples][outputs] */
};

/* The sum over the lanes of a warp, in their order; all of them get it. room [WARP] is shared. */
static __device__ double sum_lanes(double x, double *room)
{
    double sum = 0;
    __syncwarp();
    room[threadIdx.x % WARP] = x;
    __syncwarp();
    for (uint32_t i = 0; i < WARP; i++)
        sum += room[i];
    return sum;
}

/* The loss of a sample with n classes, n = 0 of none, whose label is y: no number, if that is no
 * class. slopes [n] get `by` times their derivatives. */
static __device__ double softmax(uint32_t n, const float *scores, float y, float by, float *slopes,
                                 double *room)
{
    const int is_class = y >= 0 && y < (float)n;
    const uint32_t lane = threadIdx.x % WARP, label = is_class ? (uint32_t)y : n;
    double sum = 0;
    float most = -INFINITY;
    for (uint32_t c = lane; c < n; c += WARP)
        most = scores[c] > most ? scores[c] : most;
    for (int d = WARP / 2; d; d /= 2) {
        const float other = __shfl_xor_sync(ALL_LANES, most, d);
        most = other > most ? other : most;
    }
    for (uint32_t c = lane; c < n; c += WARP)
        sum += exp((double)scores[c] - (double)most);
    sum = sum_lanes(sum, room);
    for (uint32_t c = lane; c < n; c += WARP)
        slopes[c] =
            by * (float)(exp((double)scores[c] - (double)most) / sum - (c == label ? 1.0 : 0.0));
    if (!is_class) return n ? (double)NAN : 0;
    return log(sum) + (double)most - (double)scores[label];
}

static __global__ void losses(struct losses a)
{
    __shared__ double sums[WARPS], room[WARPS][WARP];
    const struct drps_device_batch *b = &a.s.is.batch;
    const uint32_t warp = threadIdx.x / WARP, s = blockIdx.x * WARPS + warp;
    const int is_sample = s < b->samples;
    const uint32_t n = is_sample ? a.s.is.model.outputs : 0;
    const float *scores = a.s.scores + (uint64_t)s * n;
    const float weight = is_sample && b->weights ? b->weights[s] : 1.0f;
    const float y = is_sample ? b->labels[s] : 0.0f;
    float *slopes = a.slopes + (uint64_t)s * n;
    const int is_first = threadIdx.x % WARP == 0;
    double loss = 0;
    if (a.s.is.model.loss == DRPS_DEVICE_SOFTMAX) {
        loss = softmax(n, scores, y, weight * a.s.is.share, slopes, room[warp]);
    } else if (is_sample && is_first) {
        float slope;
        loss = loss_of(a.s.is.model.loss, scores[0], y, &slope);
        slopes[0] = slope * weight * a.s.is.share;
    }
    if (is_first) sums[warp] = loss * (double)weight;
    __syncthreads();
    if (threadIdx.x) return;
    loss = 0;
    for (uint32_t i = 0; i < WARPS; i++)
        loss += sums[i];
    a.s.block_losses[blockIdx.x] = loss;
    a.s.block_slopes[blockIdx.x] = 0; /* the intercept is one of the net's parameters */
}

int net_losses(struct drps_device *dev, const struct step *step, float *slopes, char *why)
{
    const struct losses a = {*step, slopes};
    return device_launch(dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_LAYER, losses, a, step->blocks,
                         THREADS, why);
}
