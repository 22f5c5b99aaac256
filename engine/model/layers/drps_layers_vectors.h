/*
 * What the gradient of W of full layers is made of: of each sample the layer's input x and delta,
 * the loss's derivative by its floats. The gradient is the sum over samples of delta x^T, so that
 * who has these vectors can compute it (Xie et al., "Lighter-Communication Distributed Machine
 * Learning via Sufficient Factor Broadcasting", UAI 2016).
 *
 * The backward pass adds up the products of a chunk of samples at a time. The same chunks, added in
 * the same order to the same floats, give the same bits.
 */
#ifndef DRPS_ENGINE_MODEL_LAYERS_VECTORS_H
#define DRPS_ENGINE_MODEL_LAYERS_VECTORS_H

#include <stddef.h>

#include "index/layers/drps_layers.h"

/* Where the backward pass leaves them, by the sample's number in the batch. All arrays are the
 * caller's. Threads that share out the samples of a batch may share it. */
struct drps_layers_vectors {
    float *inputs[DRPS_LAYERS_MOST]; /* of layer i x [samples][width of its input]; NULL: none */
    float *deltas[DRPS_LAYERS_MOST]; /* delta [samples][width of the layer]; the same */
};

/* weights [N][w] += the products of the n samples of a chunk: deltas [n][N], inputs [n][w]. What
 * the backward pass does with them, to the bit. */
void drps_layers_add_products(size_t n, size_t w, size_t N, const float *deltas,
                              const float *inputs, float *weights);

#endif
