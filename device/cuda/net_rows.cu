/* Rows of features are stepped with what the layers say that read them: a warp a row goes through
 * its entries, each lane for floats of its own. */
#include "device/cuda/net.h"

/* The gradient by float d of the row that has transposed entries [first, last). */
static __device__ float sum_float(const struct net_rows *r, uint32_t first, uint32_t last,
                                  uint32_t d)
{
    const struct drps_device_batch *b = &r->s.is.batch;
    float sum = 0;
    for (uint32_t t = first; t < last; t++) {
        const uint32_t j = b->of_entries[t];
        const uint64_t s = b->of_samples[t];
        const uint32_t field = b->fields ? b->fields[j] : 0;
        float of_entry = 0;
        for (uint32_t i = 0; i < r->n; i++) {
            const struct row_layer *y = &r->layers[i];
            const uint32_t part = y->kind == DRPS_DEVICE_EMBEDDING ? field : 0;
            if ((y->kind == DRPS_DEVICE_WEIGHTS) != (d == 0) || part >= y->parts) continue;
            of_entry += y->slopes[s * y->parts * y->each + part * y->each + (d ? d - 1 : 0)];
        }
        sum += of_entry * value_of(b, j);
    }
    return sum;
}

static __global__ void step_rows(struct net_rows r)
{
    const struct drps_device_batch *b = &r.s.is.batch;
    const uint32_t dim = r.s.is.model.dim;
    const uint64_t row = r.s.is.model.common + (uint64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    if (row >= b->rows) return;
    const uint32_t first = b->ends[row], last = b->ends[row + 1];
    if (last - first > DRPS_DEVICE_LONG) return;
    for (uint32_t d = threadIdx.x % WARP; d < dim; d += WARP)
        step_float(&r.s, (uint32_t)row, d, sum_float(&r, first, last, d), last - first, 0);
}

static __global__ void sum_pieces(struct net_rows r)
{
    const struct drps_device_batch *b = &r.s.is.batch;
    const uint32_t p = blockIdx.x * WARPS + threadIdx.x / WARP, dim = r.s.is.model.dim;
    if (p >= b->n_pieces) return;
    for (uint32_t d = threadIdx.x % WARP; d < dim; d += WARP)
        r.s.parts[(uint64_t)p * dim + d] = sum_float(&r, b->pieces[p].first, b->pieces[p].last, d);
}

int net_step_rows(struct drps_device *dev, const struct net_rows *rows, char *why)
{
    const struct drps_device_batch *b = &rows->s.is.batch;
    int rc = device_launch(dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_BACKWARD, step_rows, *rows,
                           device_blocks(b->rows - rows->s.is.model.common, WARPS), THREADS, why);
    if (rc == 0)
        rc = device_launch(dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_PIECES, sum_pieces, *rows,
                           device_blocks(b->n_pieces, WARPS), THREADS, why);
    return rc;
}
