/*
 * Field-aware factorization machines (Juan et al., RecSys 2016), Eq. 4. Forwards a warp goes
 * through the pairs of a sample; backwards through what the samples of a row say of its floats,
 * from a copy of the rows as they were before the step.
 *
 * Where the fields of each sample increase, the entries beside one are of different fields, and so
 * lanes add to different floats, which lie in shared memory if they fit. Else each lane has floats
 * of its own, and looks for entries of their field.
 */
#include "device/cuda/samples.h"

enum { SHARED_FLOATS = 1024 /* of a row, for each warp */ };

/* What a sample's values are multiplied with: 1, or 1 / |x|. All lanes call it, and get it. */
static __device__ float scale_of(const struct step *a, uint32_t start, uint32_t end)
{
    float squares = 0;
    if (!a->is.model.normalized) return 1.0f;
    for (uint32_t j = start + threadIdx.x % WARP; j < end; j += WARP) {
        const float x = value_of(&a->is.batch, j);
        squares += x * x;
    }
    for (int d = WARP / 2; d; d /= 2)
        squares += __shfl_xor_sync(ALL_LANES, squares, d);
    return squares > 0 ? 1.0f / sqrtf(squares) : 1.0f;
}

/* ---- Forwards ---- */

static __device__ float pair(const struct step *a, uint32_t i, uint32_t j)
{
    const struct drps_device_batch *b = &a->is.batch;
    const uint32_t factors = a->is.model.factors;
    const float *v = row_at(&a->is, local_of(b, i)) + 1 + b->fields[j] * factors;
    const float *w = row_at(&a->is, local_of(b, j)) + 1 + b->fields[i] * factors;
    float dot = 0;
    for (uint32_t f = 0; f < factors; f++)
        dot += v[f] * w[f];
    return value_of(b, i) * value_of(b, j) * dot;
}

static __global__ void forward_ffm(struct step a)
{
    __shared__ double losses[WARPS], slopes[WARPS];
    const struct drps_device_batch *b = &a.is.batch;
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint32_t s = blockIdx.x * WARPS + warp;
    const int is_sample = s < b->samples;
    const uint32_t start = is_sample ? start_of(b, s) : 0, end = is_sample ? start_of(b, s + 1) : 0;
    const float scale = scale_of(&a, start, end);
    float weights = 0, pairs = 0;
    for (uint32_t j = start + lane; j < end; j += WARP)
        weights += value_of(b, j) * row_at(&a.is, local_of(b, j))[0];
    for (uint32_t i = start; i < end; i++)
        for (uint32_t j = i + 1 + lane; j < end; j += WARP)
            pairs += pair(&a, i, j);
    for (int d = WARP / 2; d; d /= 2) {
        weights += __shfl_xor_sync(ALL_LANES, weights, d);
        pairs += __shfl_xor_sync(ALL_LANES, pairs, d);
    }
    if (!lane) {
        losses[warp] = slopes[warp] = 0;
        if (is_sample)
            end_sample(&a, s, bias_of(&a) + scale * weights + scale * scale * pairs, &losses[warp],
                       &slopes[warp]);
    }
    end_block(&a, losses, slopes, WARPS);
}

int step_ffm_forward(struct drps_device *dev, const struct step *step, char *why)
{
    return device_launch(dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_FORWARD, forward_ffm, *step,
                         step->blocks, THREADS, why);
}

/* ---- Backwards ---- */

/* What entry i of a sample adds to float f of the factors that entry j's row has for i's field. */
static __device__ float of_other(const struct step *a, uint32_t i, uint32_t j, uint32_t f)
{
    const struct drps_device_batch *b = &a->is.batch;
    const uint32_t factors = a->is.model.factors;
    const float *row = a->params + (uint64_t)local_of(b, i) * a->is.model.dim;
    return value_of(b, i) * row[1 + b->fields[j] * factors + f];
}

/* A transposed entry: its sample, its place there, and slopes times its value. */
struct entry {
    uint32_t start, end, j;
    float of_weight, of_pairs;
};

static __device__ struct entry entry_of(const struct step *a, uint32_t t)
{
    const struct drps_device_batch *b = &a->is.batch;
    const uint32_t s = b->of_samples[t];
    struct entry e;
    e.start = start_of(b, s);
    e.end = start_of(b, s + 1);
    e.j = b->of_entries[t];
    const float scale = scale_of(a, e.start, e.end);
    e.of_weight = a->slopes[s] * scale * value_of(b, e.j);
    e.of_pairs = e.of_weight * scale;
    return e;
}

/* Sums over entries [first, last) into sums [dim]: lanes go through the other entries' factors. */
static __device__ void sum_in_order(const struct step *a, uint32_t first, uint32_t last,
                                    float *sums)
{
    const struct drps_device_batch *b = &a->is.batch;
    const uint32_t lane = threadIdx.x % WARP, factors = a->is.model.factors;
    for (uint32_t d = lane; d < a->is.model.dim; d += WARP)
        sums[d] = 0;
    for (uint32_t t = first; t < last; t++) {
        const struct entry e = entry_of(a, t);
        const uint32_t n = (e.end - e.start) * factors;
        __syncwarp();
        if (!lane) sums[0] += e.of_weight;
        for (uint32_t k = lane; k < n; k += WARP) {
            const uint32_t i = e.start + k / factors, f = k % factors;
            if (i != e.j)
                sums[1 + b->fields[i] * factors + f] += e.of_pairs * of_other(a, i, e.j, f);
        }
    }
    __syncwarp();
}

/* The same sum of float d alone; all lanes call it, each for its own. */
static __device__ float sum_of_float(const struct step *a, uint32_t first, uint32_t last,
                                     uint32_t d)
{
    const struct drps_device_batch *b = &a->is.batch;
    const uint32_t factors = a->is.model.factors;
    const uint32_t field = d ? (d - 1) / factors : 0, f = d ? (d - 1) % factors : 0;
    float sum = 0;
    for (uint32_t t = first; t < last; t++) {
        const struct entry e = entry_of(a, t);
        if (!d) sum += e.of_weight;
        for (uint32_t i = e.start; d && i < e.end; i++)
            if (i != e.j && b->fields[i] == field) sum += e.of_pairs * of_other(a, i, e.j, f);
    }
    return sum;
}

/* The sums of row r, or of a piece of it, by a warp: the row is stepped with them, or `part` gets
 * them. */
static __device__ void sum_entries(const struct step *a, uint32_t first, uint32_t last, uint32_t r,
                                   float *part, float *shared)
{
    const uint32_t dim = a->is.model.dim;
    const int is_shared = a->is.batch.has_order && dim <= SHARED_FLOATS;
    if (is_shared) sum_in_order(a, first, last, shared);
    for (uint32_t at = 0; at < dim; at += WARP) {
        const uint32_t d = at + threadIdx.x % WARP;
        const float sum =
            is_shared ? (d < dim ? shared[d] : 0.0f) : sum_of_float(a, first, last, d);
        if (d >= dim) continue;
        if (part)
            part[d] = sum;
        else
            step_float(a, r, d, sum, last - first, 0);
    }
}

static __global__ void backward_ffm(struct step a)
{
    __shared__ float shared[WARPS][SHARED_FLOATS];
    const struct drps_device_batch *b = &a.is.batch;
    const uint32_t warp = threadIdx.x / WARP;
    const uint64_t r = (a.is.model.has_bias ? 1 : 0) + (uint64_t)blockIdx.x * WARPS + warp;
    if (r >= b->rows) return;
    const uint32_t first = b->ends[r], last = b->ends[r + 1];
    if (last - first > DRPS_DEVICE_LONG) return;
    sum_entries(&a, first, last, (uint32_t)r, NULL, shared[warp]);
}

static __global__ void sum_ffm_pieces(struct step a)
{
    __shared__ float shared[WARPS][SHARED_FLOATS];
    const struct drps_device_batch *b = &a.is.batch;
    const uint32_t warp = threadIdx.x / WARP, p = blockIdx.x * WARPS + warp;
    if (p >= b->n_pieces) return;
    sum_entries(&a, b->pieces[p].first, b->pieces[p].last, b->pieces[p].row,
                a.parts + (uint64_t)p * a.is.model.dim, shared[warp]);
}

int step_ffm_backward(struct drps_device *dev, const struct step *step, char *why)
{
    const struct drps_device_batch *b = &step->is.batch;
    const uint64_t common = step->is.model.has_bias ? 1 : 0;
    int rc = device_launch(dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_BACKWARD, backward_ffm, *step,
                           device_blocks(b->rows - common, WARPS), THREADS, why);
    if (rc == 0)
        rc = device_launch(dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_PIECES, sum_ffm_pieces, *step,
                           device_blocks(b->n_pieces, WARPS), THREADS, why);
    return rc;
}
