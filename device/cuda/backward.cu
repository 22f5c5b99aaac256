/*
 * The backward pass, by rows: a group of lanes sums what a row's entries say, in the order of
 * samples, and steps the row where it lies. A row of very many entries is summed in pieces, each by
 * a warp, which are then added in their order. The last kernel also adds up the losses, and steps
 * the intercept.
 */
#include "device/cuda/step.h"

/* Sums over entries of one row; each lane has factor c of its own. */
struct row_sums {
    float weight;  /* of g x, g the slope of the entry's sample */
    float squares; /* fm: of g x x */
    float factor;  /* fm: of g x times the sample's sum; mf: of g x times the other row */
};

/* The entry that makes a pair with entry j of sample s; j itself: there is none. */
static __device__ uint32_t other_of(const struct drps_device_batch *b, uint32_t s, uint32_t j)
{
    const uint32_t start = start_of(b, s), end = start_of(b, s + 1);
    return end - start != 2 ? j : start + (j == start);
}

/* Adds transposed entry t. */
static __device__ void add_entry(const struct step *a, uint32_t t, uint32_t c, int is_factor,
                                 struct row_sums *sums)
{
    const struct drps_device_batch *b = &a->is.batch;
    const uint32_t s = b->of_samples[t], factors = a->is.model.factors;
    const float x = b->of_values ? b->of_values[t] : 1.0f, gx = a->slopes[s] * x;
    sums->weight += gx;
    if (a->is.model.predictor == DRPS_DEVICE_FM) {
        sums->squares += gx * x;
        if (is_factor) sums->factor += gx * a->sums[(uint64_t)s * factors + c];
    } else if (is_factor) { /* mf */
        const uint32_t j = b->of_entries[t], other = other_of(b, s, j);
        const float *row = a->params + (uint64_t)local_of(b, other) * a->is.model.dim;
        if (other != j) sums->factor += gx * value_of(b, other) * row[1 + c];
    }
}

/* The row's float 1 + c, and by the first lane its weight, which is float 0. */
static __device__ void step_row(const struct step *a, uint32_t r, uint32_t touches, uint32_t c,
                                int is_factor, const struct row_sums *sums)
{
    if (is_factor) {
        const float factor = row_at(&a->is, r)[1 + c];
        step_float(a, r, 1 + c, sums->factor - sums->squares * factor, touches, 0);
    }
    if (c == 0) step_float(a, r, 0, sums->weight, touches, 0);
}

static __device__ uint32_t first_row(const struct step *a)
{
    return a->is.model.has_bias ? 1 : 0;
}

/* F lanes a row. */
template <int F> static __global__ void backward(struct step a)
{
    const struct drps_device_batch *b = &a.is.batch;
    const uint32_t f = threadIdx.x % F, factors = a.is.model.factors;
    const uint64_t r = first_row(&a) + (uint64_t)blockIdx.x * (THREADS / F) + threadIdx.x / F;
    if (r >= b->rows) return;
    const uint32_t first = b->ends[r], last = b->ends[r + 1];
    if (last - first > DRPS_DEVICE_LONG) return;
    for (uint32_t c = f; c < factors + f || c == 0; c += F) {
        struct row_sums sums = {0, 0, 0};
        for (uint32_t t = first; t < last; t++)
            add_entry(&a, t, c, c < factors, &sums);
        step_row(&a, (uint32_t)r, last - first, c, c < factors, &sums);
    }
}

/* A warp a piece: F lanes for the factors, 32 / F entries at a time. */
template <int F> static __global__ void sum_pieces(struct step a)
{
    const struct drps_device_batch *b = &a.is.batch;
    const uint32_t p = blockIdx.x * WARPS + threadIdx.x / WARP, f = threadIdx.x % F;
    const uint32_t slot = threadIdx.x % WARP / F, factors = a.is.model.factors;
    const int is_piece = p < b->n_pieces;
    const uint32_t first = is_piece ? b->pieces[p].first : 0,
                   last = is_piece ? b->pieces[p].last : 0;
    float *part = a.parts + (uint64_t)p * step_part_floats(&a.is.model);
    for (uint32_t c = f; c < factors + f || c == 0; c += F) {
        struct row_sums sums = {0, 0, 0};
        for (uint32_t t = first + slot; t < last; t += WARP / F)
            add_entry(&a, t, c, c < factors, &sums);
        for (int d = F; d < WARP; d *= 2) {
            sums.weight += __shfl_xor_sync(ALL_LANES, sums.weight, d);
            sums.squares += __shfl_xor_sync(ALL_LANES, sums.squares, d);
            sums.factor += __shfl_xor_sync(ALL_LANES, sums.factor, d);
        }
        if (!is_piece || slot) continue;
        if (c < factors) part[2 + c] = sums.factor;
        if (c) continue;
        part[0] = sums.weight;
        part[1] = sums.squares;
    }
}

/* Float d of a part, summed over the pieces of a row. */
static __device__ float sum_parts(const struct step *a, const struct drps_device_long_row *row,
                                  uint32_t d)
{
    const uint32_t floats = step_part_floats(&a->is.model);
    float sum = 0;
    for (uint32_t p = row->first; p < row->first + row->count; p++)
        sum += a->parts[(uint64_t)p * floats + d];
    return sum;
}

/* A block a long row: thread by thread the floats of it. */
static __device__ void finish_row(const struct step *a, const struct drps_device_long_row *row)
{
    const struct drps_device_batch *b = &a->is.batch;
    const uint32_t factors = a->is.model.factors, dim = a->is.model.dim;
    const uint32_t touches = b->ends[row->row + 1] - b->ends[row->row];
    if (a->is.model.predictor == DRPS_DEVICE_FFM || a->is.model.predictor == DRPS_DEVICE_NET) {
        for (uint32_t d = threadIdx.x; d < dim; d += THREADS)
            step_float(a, row->row, d, sum_parts(a, row, d), touches, 0);
        return;
    }
    for (uint32_t c = threadIdx.x; c < factors || c == 0; c += THREADS) {
        const struct row_sums sums = {c ? 0.0f : sum_parts(a, row, 0), sum_parts(a, row, 1),
                                      c < factors ? sum_parts(a, row, 2 + c) : 0.0f};
        step_row(a, row->row, touches, c, c < factors, &sums);
    }
}

/* One block: the loss of the batch, and the step of the intercept. */
static __device__ void finish_sums(const struct step *a)
{
    __shared__ double losses[THREADS], slopes[THREADS];
    double loss = 0, slope = 0;
    for (uint32_t i = threadIdx.x; i < a->blocks; i += THREADS) {
        loss += a->block_losses[i];
        slope += a->block_slopes[i];
    }
    losses[threadIdx.x] = loss;
    slopes[threadIdx.x] = slope;
    __syncthreads();
    if (threadIdx.x) return;
    loss = slope = 0;
    for (uint32_t i = 0; i < THREADS; i++) {
        loss += losses[i];
        slope += slopes[i];
    }
    *a->loss = loss;
    if (a->is.model.has_bias && !a->is.model.fixed_bias && a->is.model.predictor != DRPS_DEVICE_NET)
        step_float(a, 0, 0, (float)slope, 0, 1);
}

static __global__ void finish(struct step a)
{
    if (blockIdx.x)
        finish_row(&a, &a.is.batch.long_rows[blockIdx.x - 1]);
    else
        finish_sums(&a);
}

template <int F> static int launch(struct drps_device *dev, const struct step *step, char *why)
{
    const struct drps_device_batch *b = &step->is.batch;
    const uint64_t common = step->is.model.has_bias ? 1 : 0;
    int rc = device_launch(dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_BACKWARD, backward<F>, *step,
                           device_blocks(b->rows - common, THREADS / F), THREADS, why);
    if (rc == 0)
        rc = device_launch(dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_PIECES, sum_pieces<F>, *step,
                           device_blocks(b->n_pieces, WARPS), THREADS, why);
    return rc;
}

int step_backward(struct drps_device *dev, const struct step *step, char *why)
{
    const uint32_t factors = step->is.model.factors;
    if (step->is.model.predictor == DRPS_DEVICE_FFM) return step_ffm_backward(dev, step, why);
    switch (factors ? step_lanes(factors) : 1) {
    case 1:
        return launch<1>(dev, step, why);
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

int step_finish(struct drps_device *dev, const struct step *step, char *why)
{
    return device_launch(dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_FINISH, finish, *step,
                         1 + (uint64_t)step->is.batch.n_long, THREADS, why);
}
