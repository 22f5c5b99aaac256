/*
 * The passes of a net (index/layers/drps_layers.h has what layers compute) over samples of one
 * gathered batch: forward, and backward from the scores' slopes. Pure arithmetic; products of
 * matrices are OpenBLAS's where the build has it.
 *
 * Shapes, as in engine/model/drps_model.h: params [m][D], D = 1 + K floats a row: a feature's
 * weight, then its K factors. The first l->floats floats of params are the net's own, in the first
 * rows of the batch, which no entry has: J intercepts, then the layers' parameters, of which layer
 * i has those from layers[i].first on. grads has the same shape. scores [s][J] is indexed by the
 * sample's number in the batch, slopes [last - first][J] is not.
 */
#ifndef DRPS_ENGINE_MODEL_LAYERS_PASS_H
#define DRPS_ENGINE_MODEL_LAYERS_PASS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/model/layers/drps_layers_vectors.h"
#include "index/layers/drps_layers.h"
#include "index/plan/drps_batch.h"

/* Returns how many samples go through both passes together at most. */
size_t drps_layers_chunk(const struct drps_layers *l);
/* Returns where the chunk ends that begins with sample `first`, of those before `last`: where a
 * sequence begins, if the net has any and one begins among so many samples. */
size_t drps_layers_end(const struct drps_layers *l, const struct drps_batch *b, size_t first,
                       size_t last);
/* Returns sample s, or the next one that begins a sequence if the net has any: threads divide a
 * batch there. It may be the number of samples. */
size_t drps_layers_cut(const struct drps_layers *l, const struct drps_batch *b, size_t s);

/* Which floats dropout leaves out: it depends on these, the layer, the sample's number in the batch
 * and the float's place alone, so that it is the same for any number of threads. */
struct drps_dropout {
    int trains;    /* 0: none are left out */
    uint64_t seed; /* another one for each step */
};

/* Returns the bytes of scratch, aligned for doubles, of at most `samples` samples together, which
 * the backward pass has to get as the forward pass left it. */
size_t drps_layers_scratch_bytes(const struct drps_layers *l, size_t samples);

/* scores of samples [first, last), at most drps_layers_chunk() of them. Sample `first` begins a
 * sequence whatever its mark. */
void drps_layers_forward(const struct drps_layers *l, const struct drps_batch *b, size_t first,
                         size_t last, const float *params, const struct drps_dropout *dropout,
                         float *scores, void *scratch);

/* Adds to grads the gradient of layers and features, after drps_layers_forward() of the same
 * samples and parameters; that of the intercepts is the caller's. `vectors`: what is left of
 * full and lstm layers besides; NULL: nothing is. */
void drps_layers_backward(const struct drps_layers *l, const struct drps_batch *b, size_t first,
                          size_t last, const float *slopes, const float *params,
                          const struct drps_dropout *dropout,
                          const struct drps_layers_vectors *vectors, void *scratch, float *grads);

/* The twin: the score of class c of sample s, without dropout, by the definitions, in double, which
 * shares no code with the passes. It may be slow. Sequences are those of the whole batch. */
double drps_layers_score_ref(const struct drps_layers *l, const struct drps_batch *b, size_t s,
                             size_t c, const float *params);

#endif
