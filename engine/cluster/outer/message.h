/*
 * What a rank sends all others in a round: the vectors of its batch's samples, u32 and float32
 * throughout.
 *
 *   samples  u32, of the batch
 *   chunks   u32, that they were computed in, then a u32 each: its samples, at least 1, and in the
 *            highest bit whether it is the first one of a thread, whose gradient is summed apart:
 *            of 1 to DRPS_TRAIN_THREADS_MAX threads
 *   of each layer its inputs [samples][w], then its deltas [samples][N], chunk by chunk as the
 *            backward pass leaves them (engine/model/layers/drps_layers_vectors.h), each as
 *     count  u32: 0xffffffff: all floats follow; else how many do
 *     marks  only then: a bit for each float, from the lowest of the first u32 on: 1: it follows;
 *            0: it is 0. Bits behind the last float are 0
 *     floats
 *
 * Private to engine/cluster/outer/.
 */
#ifndef DRPS_ENGINE_CLUSTER_OUTER_MESSAGE_H
#define DRPS_ENGINE_CLUSTER_OUTER_MESSAGE_H

#include "engine/cluster/outer/drps_outer.h"

#define OUTER_BEGINS (UINT32_C(1) << 31) /* in a chunk */
#define OUTER_SAMPLES_MOST (OUTER_BEGINS - 1)

/* A matrix of a message; borrowed from it. */
struct outer_matrix {
    size_t n;              /* floats that it has */
    const uint32_t *marks; /* NULL: all of them are in `floats` */
    const float *floats;
};

struct outer_message {
    uint32_t samples, chunks_n;
    const uint32_t *chunks; /* [chunks_n] borrowed, as are matrices */
    struct outer_matrix inputs[DRPS_LAYERS_MOST], deltas[DRPS_LAYERS_MOST]; /* [layers chosen] */
};

/* Returns the most bytes of a message of so many samples or fewer. */
uint64_t outer_message_most(const struct drps_outer_choice *c, uint64_t samples);

/* Write a message to `out`, aligned for u32, which has room for the most: of chunks, and of
 * matrices with all their floats. Zeros are left out where that takes fewer bytes. Returns its
 * bytes. */
size_t outer_message_write(const struct drps_outer_choice *c, const struct outer_message *m,
                           void *out);

/* Point *out into a message, aligned for u32, of at most `most` samples. DRPS_E_PROTO: it is none
 * of this choice. Floats may be any. */
DRPS_MUST_CHECK
int outer_message_read(const struct drps_outer_choice *c, uint64_t most, const void *data,
                       size_t bytes, struct outer_message *out, struct drps_err *err);

/* Returns all floats of a matrix: where they lie, or in `room` [n]. */
const float *outer_matrix_floats(const struct outer_matrix *m, float *room);

#endif
