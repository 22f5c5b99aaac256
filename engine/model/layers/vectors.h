/* What backward.c and lstm.c do with the vectors of a chunk. */
#ifndef DRPS_ENGINE_MODEL_LAYERS_VECTORS_PRIVATE_H
#define DRPS_ENGINE_MODEL_LAYERS_VECTORS_PRIVATE_H

#include "engine/model/layers/passes.h"

/* The vectors of the n samples of a chunk, in any order of samples. */
struct chunk_vectors {
    const float *a;      /* [n][w]: of the layer's input */
    const float *before; /* [n][N]: of lstm h of the sample before, or 0; NULL of others */
    const float *deltas;
};

/* Adds their products to the gradient of layer y in grads, and leaves them where `kept` says; NULL:
 * nowhere. */
void drps_layers_take_vectors(const struct pass *p, const struct drps_layer *y,
                              const struct chunk_vectors *v, const struct drps_layers_vectors *kept,
                              float *grads);

#endif
