/*
 * Adam counts the steps of each row, in the float behind its moments, and what a step is made with
 * follows from their number. A thread a row does both, and leaves the rates for the kernels that
 * step the row's floats.
 */
#include "device/cuda/step.h"

enum { COUNT_BITS = 24, COUNTS = 1 << COUNT_BITS /* where floats end to count */ };

struct counting {
    struct step s;
    uint64_t first;                                    /* rows before it have no step */
    double of_1[COUNT_BITS + 1], of_2[COUNT_BITS + 1]; /* beta^(2^i) */
};

/* The number of a step; of a file that has none it is one all the same. */
static __device__ uint32_t number_of(float count)
{
    if (!(count < COUNTS)) return COUNTS;
    return count >= 1 ? (uint32_t)count : 1;
}

static __global__ void count(struct counting a)
{
    const struct drps_device_optim *o = &a.s.is.optim;
    const uint64_t r = a.first + (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    double power_1 = 1, power_2 = 1;
    if (r >= a.s.is.batch.rows) return;
    float *steps = row_at(&a.s.is, (uint32_t)r) + 3 * (uint64_t)a.s.is.model.dim;
    *steps += 1;
    uint32_t t = number_of(*steps);
    for (uint32_t i = 0; t; i++, t >>= 1)
        if (t & 1) {
            power_1 *= a.of_1[i];
            power_2 *= a.of_2[i];
        }
    const double root = sqrt(1 - power_2), share = 1 - power_1;
    a.s.rates[r].rate = (float)((double)o->lr * root / share);
    a.s.rates[r].eps = (float)((double)o->eps * root);
    a.s.rates[r].of_l1 = (float)share;
}

int step_count(struct drps_device *dev, const struct step *step, char *why)
{
    const struct drps_device_model *m = &step->is.model;
    struct counting a = {};
    if (step->is.optim.kind != DRPS_DEVICE_ADAM) return 0;
    a.s = *step;
    a.first = m->has_bias && m->fixed_bias && m->predictor != DRPS_DEVICE_NET;
    a.of_1[0] = (double)step->is.optim.beta1;
    a.of_2[0] = (double)step->is.optim.beta2;
    for (int i = 0; i < COUNT_BITS; i++) {
        a.of_1[i + 1] = a.of_1[i] * a.of_1[i];
        a.of_2[i + 1] = a.of_2[i] * a.of_2[i];
    }
    return device_launch(dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_BACKWARD, count, a,
                         device_blocks(step->is.batch.rows - a.first, THREADS), THREADS, why);
}
