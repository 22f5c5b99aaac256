/*
 * The forward pass: rows are read where they lie, and give scores, losses and slopes. Each block
 * leaves the sums of its samples' losses and slopes.
 */
#include "device/cuda/samples.h"

enum { LINEAR_LANES = 8 /* of a sample */ };

static __global__ void forward_linear(struct step a)
{
    enum { GROUPS = THREADS / LINEAR_LANES };
    __shared__ double losses[GROUPS], slopes[GROUPS];
    const struct drps_device_batch *b = &a.is.batch;
    const uint32_t group = threadIdx.x / LINEAR_LANES, lane = threadIdx.x % LINEAR_LANES;
    const uint32_t s = blockIdx.x * GROUPS + group;
    const int is_sample = s < b->samples;
    float score = 0;
    if (is_sample) {
        const uint32_t end = start_of(b, s + 1);
#pragma unroll 4
        for (uint32_t j = start_of(b, s) + lane; j < end; j += LINEAR_LANES)
            score += value_of(b, j) * row_at(&a.is, local_of(b, j))[0];
    }
    for (int d = LINEAR_LANES / 2; d; d /= 2)
        score += __shfl_xor_sync(ALL_LANES, score, d);
    if (!lane) {
        losses[group] = slopes[group] = 0;
        if (is_sample) end_sample(&a, s, bias_of(&a) + score, &losses[group], &slopes[group]);
    }
    end_block(&a, losses, slopes, GROUPS);
}

/* A warp a sample: F lanes go through the factors of an entry, 32 / F entries at a time. The score
 * is that of Lemma 3.1 of Rendle (ICDM 2010). */
template <int F> static __global__ void forward_fm(struct step a)
{
    __shared__ double losses[WARPS], slopes[WARPS];
    const struct drps_device_batch *b = &a.is.batch;
    const uint32_t warp = threadIdx.x / WARP, f = threadIdx.x % F, slot = threadIdx.x % WARP / F;
    const uint32_t s = blockIdx.x * WARPS + warp, factors = a.is.model.factors;
    const int is_sample = s < b->samples;
    const uint32_t start = is_sample ? start_of(b, s) : 0, end = is_sample ? start_of(b, s + 1) : 0;
    float weights = 0, pairs = 0;
    for (uint32_t c = f; c < factors + f; c += F) {
        float sum = 0, squares = 0;
        const int is_factor = c < factors;
#pragma unroll 4
        for (uint32_t j = start + slot; j < end; j += WARP / F) {
            const float *row = row_at(&a.is, local_of(b, j));
            const float x = value_of(b, j);
            if (c == 0) weights += x * row[0];
            const float t = is_factor ? x * row[1 + c] : 0.0f;
            sum += t;
            squares += t * t;
        }
        for (int d = F; d < WARP; d *= 2) {
            sum += __shfl_xor_sync(ALL_LANES, sum, d);
            squares += __shfl_xor_sync(ALL_LANES, squares, d);
        }
        if (is_sample && is_factor && !slot) a.sums[(uint64_t)s * factors + c] = sum;
        pairs += sum * sum - squares;
    }
    for (int d = F / 2; d; d /= 2)
        pairs += __shfl_xor_sync(ALL_LANES, pairs, d);
    for (int d = WARP / 2; d; d /= 2)
        weights += __shfl_xor_sync(ALL_LANES, weights, d);
    if (threadIdx.x % WARP == 0) {
        losses[warp] = slopes[warp] = 0;
        if (is_sample)
            end_sample(&a, s, bias_of(&a) + weights + 0.5f * pairs, &losses[warp], &slopes[warp]);
    }
    end_block(&a, losses, slopes, WARPS);
}

/* F lanes a sample: its two rows, or what it has of them. */
template <int F> static __global__ void forward_mf(struct step a)
{
    enum { GROUPS = THREADS / F };
    __shared__ double losses[GROUPS], slopes[GROUPS];
    const struct drps_device_batch *b = &a.is.batch;
    const uint32_t group = threadIdx.x / F, f = threadIdx.x % F, factors = a.is.model.factors;
    const uint32_t s = blockIdx.x * GROUPS + group;
    const int is_sample = s < b->samples;
    const uint32_t start = is_sample ? start_of(b, s) : 0, end = is_sample ? start_of(b, s + 1) : 0;
    float weights = 0, dot = 0;
    for (uint32_t j = start + f; j < end; j += F)
        weights += value_of(b, j) * row_at(&a.is, local_of(b, j))[0];
    if (end - start == 2) {
        const float *u = row_at(&a.is, local_of(b, start));
        const float *v = row_at(&a.is, local_of(b, start + 1));
        const float x = value_of(b, start) * value_of(b, start + 1);
        for (uint32_t c = f; c < factors; c += F)
            dot += u[1 + c] * v[1 + c];
        weights += x * dot;
    }
    for (int d = F / 2; d; d /= 2)
        weights += __shfl_xor_sync(ALL_LANES, weights, d);
    if (!f) {
        losses[group] = slopes[group] = 0;
        if (is_sample) end_sample(&a, s, bias_of(&a) + weights, &losses[group], &slopes[group]);
    }
    end_block(&a, losses, slopes, GROUPS);
}

static uint64_t groups_of(const struct drps_device_model *model)
{
    switch (model->predictor) {
    case DRPS_DEVICE_LINEAR:
        return THREADS / LINEAR_LANES;
    case DRPS_DEVICE_MF:
        return (uint64_t)(THREADS / step_lanes(model->factors));
    case DRPS_DEVICE_FM:
    case DRPS_DEVICE_FFM:
    case DRPS_DEVICE_NET: /* losses */
        break;
    }
    return WARPS;
}

uint64_t step_forward_blocks(const struct drps_device_model *model, size_t samples)
{
    return device_blocks(samples, groups_of(model));
}

template <int F> static int launch(struct drps_device *dev, const struct step *step, char *why)
{
    void (*const kernel)(struct step) =
        step->is.model.predictor == DRPS_DEVICE_MF ? forward_mf<F> : forward_fm<F>;
    return device_launch(dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_FORWARD, kernel, *step, step->blocks,
                         THREADS, why);
}

int step_forward(struct drps_device *dev, const struct step *step, char *why)
{
    if (step->is.model.predictor == DRPS_DEVICE_LINEAR)
        return device_launch(dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_FORWARD, forward_linear, *step,
                             step->blocks, THREADS, why);
    if (step->is.model.predictor == DRPS_DEVICE_FFM) return step_ffm_forward(dev, step, why);
    switch (step_lanes(step->is.model.factors)) {
    case 4:
        return launch<4>(dev, step, why);
    case 8:
        return launch<8>(dev, step, why);
    case 16:
        return launch<16>(dev, step, why);
    default:
        return launch<32>(dev, step, why);
    }
}
