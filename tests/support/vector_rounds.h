/*
 * A matrix that is trained by rounds of vectors, and what it was after each: for tests of what logs
 * them. Each round has batches of three ranks, which are applied as AdaGrad would, in their order.
 */
#ifndef DRPS_TESTS_VECTOR_ROUNDS_H
#define DRPS_TESTS_VECTOR_ROUNDS_H

#include "engine/checkpoint/vectors/drps_vector_log.h"
#include "support/random_vectors.h"

enum { ROUND_BATCHES = 3, ROUNDS_MOST = 64 };

struct vector_rounds {
    struct drps_matrix_shape shape; /* row_bytes: dim parameters, dim sums of squares */
    uint32_t samples, nnz;          /* of a batch */
    uint64_t seed;
    uint64_t first, last;                  /* rounds that are known; `first` is the beginning */
    char *matrix;                          /* own: after the last round */
    char *after[ROUNDS_MOST];              /* own: [round - first] */
    struct own_vectors own[ROUND_BATCHES]; /* the batches of the last round */
    struct drps_vectors batches[ROUND_BATCHES];
    uint32_t sources[ROUND_BATCHES];
    struct drps_vector_round round;
};

void vector_rounds_begin(struct vector_rounds *v, uint32_t rows, uint32_t dim, uint32_t samples,
                         uint32_t nnz, uint64_t first);
void vector_rounds_end(struct vector_rounds *v);

/* Compute and apply the next round: v->round, v->matrix. */
void vector_rounds_next(struct vector_rounds *v);

/* Forget what came after `round`; the next rounds are others. */
void vector_rounds_go_back(struct vector_rounds *v, uint64_t round);

/* A drps_vector_apply; ctx is the struct vector_rounds. */
int vector_rounds_apply(void *ctx, const struct drps_vector_round *round, void *matrix,
                        struct drps_err *err);

size_t vector_rounds_bytes(const struct vector_rounds *v); /* of the matrix */
const char *vector_rounds_after(const struct vector_rounds *v, uint64_t round);

#endif
