/* The two passes of a fused batch over a chunk of its samples. Private to this folder. */
#ifndef DRPS_ENGINE_MODEL_FUSED_PASSES_H
#define DRPS_ENGINE_MODEL_FUSED_PASSES_H

#include "engine/model/drps_optim.h"

/* The samples of the batch that have a row, and how many of them the backward pass has read. */
struct drps_fused_uses {
    uint32_t all, read;
};

/* scores[s] for s in [first, last), of parameters as `rows` have them. */
void drps_fused_forward(const struct drps_batch *b, size_t factors, float bias, size_t first,
                        size_t last, const struct drps_rows *rows, float *scores);

/* slopes [last - first]. Adds to grads; a row whose last sample has been read is stepped. */
void drps_fused_backward(const struct drps_batch *b, size_t factors, const struct drps_optim *optim,
                         size_t first, size_t last, const float *slopes,
                         const struct drps_rows *rows, struct drps_fused_uses *uses, float *grads);

#endif
