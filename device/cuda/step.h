/*
 * One step as its kernels get it, and what they share: where a batch's entries are, losses, and the
 * optimizers' rules. Private to device/cuda/.
 *
 * A kernel gives a sample, a row or a piece to a group of lanes of a warp. The order of each sum is
 * fixed by the sizes alone, and no two threads add to one float: so a step gives the same bytes
 * each time.
 */
#ifndef DRPS_DEVICE_CUDA_STEP_H
#define DRPS_DEVICE_CUDA_STEP_H

#include "device/cuda/cuda_internal.h"

enum { THREADS = 256, WARP = 32, WARPS = THREADS / WARP };
#define ALL_LANES 0xffffffffu

/* A net's arrays, in the room of the step. */
struct net_room {
    void *workspace; /* of products.h */
    float *params; /* [common rows][dim] the parameters of the net, as they were before the step */
    float *grads;  /* [common rows][dim] */
    float *outs, *slopes; /* [width of all layers][samples] each */
    float *dots;          /* [samples] cross: of a slope and its first input */
    float *kept;          /* what layers keep besides: net_kept() */
    float *rows;          /* [net_conv_room()] conv: what filters see */
    uint64_t *seed;       /* [1] of what dropout leaves out */
};

/* What adam steps the floats of a row with: its rate and eps, and what l1 is multiplied by. */
struct adam_rates {
    float rate, eps, of_l1;
};

struct step {
    struct drps_device_step is;
    uint32_t blocks; /* of the forward pass, each of which leaves two sums */
    int trains;
    struct net_room net;      /* of a net */
    double *loss;             /* [1] */
    float *scores;            /* [samples] */
    float *slopes;            /* [samples] */
    float *sums;              /* [samples][factors] fm: of x * factors */
    double *block_losses;     /* [blocks] */
    double *block_slopes;     /* [blocks] */
    float *params;            /* [rows][dim] mf, ffm: rows as they were before the step */
    float *parts;             /* [pieces][step_part_floats()] sums of a piece: of g x, of g x x, of
                                 factors; ffm: of each float */
    struct adam_rates *rates; /* [rows] adam: step_count() */
};

/* ---- The batch ---- */

static __device__ inline uint32_t start_of(const struct drps_device_batch *b, uint32_t s)
{
    return b->starts ? b->starts[s] : s * b->per_sample;
}

static __device__ inline uint32_t local_of(const struct drps_device_batch *b, uint32_t j)
{
    return b->local16 ? b->local16[j] : b->local32[j];
}

static __device__ inline float value_of(const struct drps_device_batch *b, uint32_t j)
{
    return b->values ? b->values[j] : 1.0f;
}

static __device__ inline float *row_at(const struct drps_device_step *is, uint32_t local)
{
    return (float *)(void *)((char *)is->rows.base + is->frames[local] * is->rows.stride);
}

/* ---- Losses ---- */

/* The loss of one sample in double, and its derivative by the score: engine/model/loss.c. */
static __device__ inline double loss_of(enum drps_device_loss loss, float score, float label,
                                        float *slope_out)
{
    const double y = label, s = score, z = y * s;
    double value = 0, slope = 0;
    switch (loss) {
    case DRPS_DEVICE_SQUARED:
        slope = s - y;
        value = 0.5 * slope * slope;
        break;
    case DRPS_DEVICE_LOGISTIC: {
        const double e = exp(-fabs(z));
        value = (z < 0 ? -z : 0) + log1p(e);
        slope = -y * (z < 0 ? 1 : e) / (1 + e);
        break;
    }
    case DRPS_DEVICE_HINGE:
        value = z < 1 ? 1 - z : 0;
        slope = z < 1 ? -y : 0;
        break;
    case DRPS_DEVICE_SQUARED_HINGE:
        value = z < 1 ? (1 - z) * (1 - z) : 0;
        slope = z < 1 ? -2 * y * (1 - z) : 0;
        break;
    case DRPS_DEVICE_SOFTMAX: /* of several scores: net_loss.cu */
        break;
    }
    if (z != z) value = slope = z; /* comparisons would hide it */
    *slope_out = (float)slope;
    return value;
}

/* ---- Optimizers: engine/model/drps_optim_floats.h ---- */

static __device__ inline float shrink(float w, float by)
{
    const float left = fabsf(w) - by;
    return left <= 0 ? 0.0f : copysignf(left, w);
}

/* Steps float d of row r with gradient g. `touches` is how often l2 and l1 count, but in ftrl,
 * where they count once; a common row is not regularised. */
static __device__ inline void step_float(const struct step *a, uint32_t r, uint32_t d, float g,
                                         uint32_t touches, int is_common)
{
    const struct drps_device_optim *o = &a->is.optim;
    const uint32_t dim = a->is.model.dim;
    const int is_ftrl = o->kind == DRPS_DEVICE_FTRL;
    const float times = is_common ? 0.0f : is_ftrl ? 1.0f : (float)touches;
    const float l2 = times * o->l2;
    float *row = row_at(&a->is, r);
    float l1 = d == 0 || o->l1_all ? times * o->l1 : 0.0f, w = row[d], rate = o->lr;
    if (is_ftrl) {
        float z = row[dim + d], n = row[2 * dim + d];
        const float root = sqrtf(n), more = n + g * g, new_root = sqrtf(more);
        z += g - (new_root - root) / o->lr * w;
        const float left = fabsf(z) - l1;
        row[dim + d] = z;
        row[2 * dim + d] = more;
        row[d] = left <= 0 ? 0.0f : -copysignf(left, z) / ((o->beta + new_root) / o->lr + l2);
        return;
    }
    if (l2 > 0) g += l2 * w;
    if (o->kind == DRPS_DEVICE_ADAGRAD) {
        const float squares = row[dim + d] + g * g;
        row[dim + d] = squares;
        rate = o->lr / sqrtf(squares + o->eps);
        w -= rate * g - (squares - squares); /* of an infinite sum no number */
    } else if (o->kind == DRPS_DEVICE_ADAM) {
        const struct adam_rates at = a->rates[r];
        const float m = o->beta1 * row[dim + d] + (1 - o->beta1) * g;
        const float v = o->beta2 * row[2 * dim + d] + (1 - o->beta2) * (g * g);
        row[dim + d] = m;
        row[2 * dim + d] = v;
        rate = at.rate / (sqrtf(v) + at.eps);
        l1 *= at.of_l1;
        w -= rate * m - (v - v);
    } else {
        w -= rate * g;
    }
    row[d] = l1 > 0 ? shrink(w, l1 * rate) : w;
}

/* ---- Passes ---- */

/* adam.cu: the optimizer counts the steps of the batch's rows, before any of their floats is
 * stepped. */
int step_count(struct drps_device *dev, const struct step *step, char *why);

int step_forward(struct drps_device *dev, const struct step *step, char *why);
int step_backward(struct drps_device *dev, const struct step *step, char *why);
int step_finish(struct drps_device *dev, const struct step *step, char *why);

int step_ffm_forward(struct drps_device *dev, const struct step *step, char *why);
int step_ffm_backward(struct drps_device *dev, const struct step *step, char *why);

static __device__ __host__ inline uint32_t step_part_floats(const struct drps_device_model *model)
{
    const int has_all = model->predictor == DRPS_DEVICE_FFM || model->predictor == DRPS_DEVICE_NET;
    return has_all ? model->dim : model->factors + 2;
}

/* Blocks of the forward pass. */
uint64_t step_forward_blocks(const struct drps_device_model *model, size_t samples);

/* Lanes of a group that go through `factors` floats side by side: a power of two. */
static inline int step_lanes(uint32_t factors)
{
    int lanes = 4;
    while (lanes < WARP && (uint32_t)lanes < factors)
        lanes *= 2;
    return lanes;
}

#endif
