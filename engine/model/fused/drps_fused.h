/*
 * A batch of ratings trained by one thread where its rows lie. The plain way copies the parameters
 * of a batch's rows, adds gradients up in a dense array, and steps all rows at the end. A row may
 * as well be read where it lies until its last sample in the batch has been read, and stepped right
 * then: most rows of a small batch have one sample, whose gradient is then still in L1. Sums and
 * steps are those of the plain way, in its order, so the bytes are the same. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_MODEL_FUSED_H
#define DRPS_ENGINE_MODEL_FUSED_H

#include "engine/model/drps_optim.h"

/* 1: drps_fused_train() does what drps_model_gradient() and drps_optim_step() do. It is for pairs
 * of mf without values, and AdaGrad without l1. */
int drps_fused_fits(const struct drps_model *model, const struct drps_optim *optim,
                    const struct drps_batch *b);

/* 1: it is the faster way. Where many rows have several samples, the processor too often
 * mispredicts whether a sample is the last one of its row. */
int drps_fused_pays(const struct drps_batch *b);

/* Room for one batch of m rows of dim floats and n samples, for one thread. */
struct drps_fused_room {
    void *counts;  /* [m][2] uint32_t */
    float *grads;  /* [m][dim] */
    float *scores; /* [n] of the samples before the step */
    void *scratch; /* drps_model_scratch_bytes() */
};

/*
 * Train a batch on its rows, all but the intercept. Returns the sum of the losses; grads[0 .. dim)
 * are the intercept's, as drps_model_gradient() has them.
 */
double drps_fused_train(const struct drps_model *model, const struct drps_optim *optim,
                        const struct drps_batch *b, const struct drps_rows *rows,
                        const struct drps_fused_room *room);

#endif
