/*
 * The forward and backward passes of field-aware factorization machines (engine/model/model.c calls
 * them). Shapes as in engine/model/drps_model.h; contracts as of other kernels: a forward pass
 * fills scores [s] for s in [first, last); a backward pass takes slopes [last - first] and adds to
 * grads, but for the intercept's.
 */
#ifndef DRPS_MODEL_FFM_H
#define DRPS_MODEL_FFM_H

#include <stddef.h>

#include "index/plan/drps_batch.h"

/* `dim` floats a row, for dim - 1 over `factors` fields; `normalized`: see drps_model.h. */
void drps_ffm_forward(const struct drps_batch *b, size_t factors, size_t dim, int normalized,
                      float bias, size_t first, size_t last, const float *params, float *scores);
void drps_ffm_backward(const struct drps_batch *b, size_t factors, size_t dim, int normalized,
                       size_t first, size_t last, const float *slopes, const float *params,
                       float *grads);

#endif
