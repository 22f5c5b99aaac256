/*
 * Layers whose gradient is made of vectors: of each sample an input x [w] and delta [N], the loss's
 * derivative by what the layer's matrix gives. The gradient of the matrix is the sum over samples
 * of delta x^T, so that who has these vectors can compute it (Xie et al., "Lighter-Communication
 * Distributed Machine Learning via Sufficient Factor Broadcasting", UAI 2016).
 *
 *   full N a   W [N][w]: x is a, delta of the layer's floats
 *   lstm N a   W and U side by side, [4 N][w + N]: x is a, then h of the sample before, 0 where a
 *              sequence begins; delta of the gates' sums
 *
 * The backward pass adds up the products of a chunk of samples at a time. The same chunks, added in
 * the same order to the same floats, give the same bits.
 */
#ifndef DRPS_ENGINE_MODEL_LAYERS_VECTORS_H
#define DRPS_ENGINE_MODEL_LAYERS_VECTORS_H

#include <stddef.h>

#include "index/layers/drps_layers.h"

/* Floats of x and of delta. The w N floats of the matrix's gradient begin with the layer's
 * parameters: of lstm those of W, then those of U. */
struct drps_layers_widths {
    uint32_t w, N;
};

/* Returns those of layer i; 0 and 0: its gradient is made of other things. */
struct drps_layers_widths drps_layers_vectors_of(const struct drps_layers *l, uint32_t i);

/* Where the backward pass leaves them: those of a chunk behind those of all samples before it in
 * the batch. Of a chunk of n samples there are x [n][w] and delta [n][N], in an order of the
 * layer's own; of lstm two matrices one after another in place of x: a [n], then h before [n]. All
 * arrays are the caller's. Threads that share out the samples of a batch may share it. */
struct drps_layers_vectors {
    float *inputs[DRPS_LAYERS_MOST]; /* of layer i [samples][w]; NULL: none */
    float *deltas[DRPS_LAYERS_MOST]; /* [samples][N]; the same */
};

/* grads [w N] of layer i += the products of the n samples of a chunk, as they were left. What the
 * backward pass does with them, to the bit. */
void drps_layers_add_products(const struct drps_layers *l, uint32_t i, size_t n,
                              const float *inputs, const float *deltas, float *grads);

#endif
