/* Losses of samples with one score, or with one for each class (engine/model/softmax.c): a thread a
 * sample. */
#include "device/cuda/net.h"

struct losses {
    struct step s;
    float *slopes; /* [samples][outputs] */
};

static __device__ double softmax(uint32_t n, const float *scores, float label, float by,
                                 float *slopes)
{
    const uint32_t y = (uint32_t)label;
    double sum = 0;
    float most = scores[0];
    for (uint32_t c = 1; c < n; c++)
        most = scores[c] > most ? scores[c] : most;
    for (uint32_t c = 0; c < n; c++)
        sum += exp((double)scores[c] - (double)most);
    for (uint32_t c = 0; c < n; c++)
        slopes[c] =
            by * (float)(exp((double)scores[c] - (double)most) / sum - (c == y ? 1.0 : 0.0));
    return log(sum) + (double)most - (double)scores[y < n ? y : 0];
}

static __global__ void losses(struct losses a)
{
    __shared__ double sums[THREADS];
    const struct drps_device_batch *b = &a.s.is.batch;
    const uint32_t s = blockIdx.x * THREADS + threadIdx.x, n = a.s.is.model.outputs;
    double loss = 0;
    if (s < b->samples) {
        const float weight = b->weights ? b->weights[s] : 1.0f,
                    *scores = a.s.scores + (uint64_t)s * n;
        float *slopes = a.slopes + (uint64_t)s * n;
        if (a.s.is.model.loss == DRPS_DEVICE_SOFTMAX) {
            loss = softmax(n, scores, b->labels[s], weight * a.s.is.share, slopes);
        } else {
            loss = loss_of(a.s.is.model.loss, scores[0], b->labels[s], slopes);
            slopes[0] = slopes[0] * weight * a.s.is.share;
        }
        loss *= (double)weight;
    }
    sums[threadIdx.x] = loss;
    __syncthreads();
    if (threadIdx.x) return;
    loss = 0;
    for (uint32_t i = 0; i < THREADS; i++)
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
