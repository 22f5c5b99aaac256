/* What forward passes share: how a sample ends, and a block of them. Private to device/cuda/. */
#ifndef DRPS_DEVICE_CUDA_SAMPLES_H
#define DRPS_DEVICE_CUDA_SAMPLES_H

#include "device/cuda/step.h"

/* A group's sample is scored: its loss and slope, to what the block has of each group. */
static __device__ inline void end_sample(const struct step *a, uint32_t s, float score,
                                         double *losses, double *slopes)
{
    const struct drps_device_batch *b = &a->is.batch;
    float slope;
    a->scores[s] = score;
    if (!a->trains) return;
    const float weight = b->weights ? b->weights[s] : 1.0f;
    *losses = (double)weight * loss_of(a->is.model.loss, score, b->labels[s], &slope);
    slope *= weight;
    slope *= a->is.share;
    a->slopes[s] = slope;
    *slopes = (double)slope;
}

/* All threads of the block call this, at its end: the sums over its groups, in their order. */
static __device__ inline void end_block(const struct step *a, const double *losses,
                                        const double *slopes, uint32_t groups)
{
    double loss = 0, slope = 0;
    __syncthreads();
    if (!a->trains || threadIdx.x) return;
    for (uint32_t i = 0; i < groups; i++) {
        loss += losses[i];
        slope += slopes[i];
    }
    a->block_losses[blockIdx.x] = loss;
    a->block_slopes[blockIdx.x] = slope;
}

static __device__ inline float bias_of(const struct step *a)
{
    return a->is.model.has_bias ? row_at(&a->is, 0)[0] : 0.0f;
}

#endif
