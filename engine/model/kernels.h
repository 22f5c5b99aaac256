/*
 * What the sources of engine/model share: the forward and backward passes of the predictors.
 *
 * Shapes as in engine/model/drps_model.h. A forward pass fills scores [s] for s in [first, last). A
 * backward pass takes slopes [last - first], the loss's derivative by the score of sample first +
 * i, and adds to grads; the intercept is the caller's. The twins in ref.c share no code with these.
 */
#ifndef DRPS_MODEL_KERNELS_H
#define DRPS_MODEL_KERNELS_H

#include "base/kernel/drps_vector_floats.h"
#include "engine/model/drps_model.h"

enum {
    DRPS_LINEAR_CHUNK =
        512, /* samples between forward and backward: the scores stay in L1, their rows in L2 */
    DRPS_MAX_CHUNK = DRPS_SEQUENCE_MOST, /* the largest of those with one score a sample */
    DRPS_FFM_CHUNK = 1,                  /* since a sample's rows are as large as L1 */
    DRPS_MATRIX_CHUNK = 32,              /* small, since slopes are as many as scores */
    DRPS_FM_CHUNK =
        32, /* small, since the sums of a chunk and the rows that it touched should stay in L1 */
};

/* `wide` and `valued` are constants wherever this is hot. */
DRPS_INLINE size_t drps_local_at(const struct drps_batch *b, int wide, size_t j)
{
    return wide ? b->local32[j] : b->local16[j];
}

DRPS_INLINE float drps_value_at(const struct drps_batch *b, int valued, size_t j)
{
    return valued ? b->values[j] : 1.0f;
}

/*
 * Instantiate `body(wide, valued, ...)` for the batch's four possible forms. A macro, since each
 * branch must see constants.
 */
#define DRPS_BY_FORM(b, body, ...)                                                                 \
    do {                                                                                           \
        if ((b)->local32 && (b)->values)                                                           \
            body(1, 1, __VA_ARGS__);                                                               \
        else if ((b)->local32)                                                                     \
            body(1, 0, __VA_ARGS__);                                                               \
        else if ((b)->values)                                                                      \
            body(0, 1, __VA_ARGS__);                                                               \
        else                                                                                       \
            body(0, 0, __VA_ARGS__);                                                               \
    } while (0)

/* scores[s] = bias + sum of x * params[l * dim]. */
void drps_linear_forward(const struct drps_batch *b, size_t dim, float bias, size_t first,
                         size_t last, const float *params, float *scores);
/* grads[l * dim] += slope * x. */
void drps_linear_backward(const struct drps_batch *b, size_t dim, size_t first, size_t last,
                          const float *slopes, float *grads);

/* sums [last - first][factors] is filled for the backward pass: sample i's sum of x * factors. */
void drps_fm_forward(const struct drps_batch *b, size_t factors, float bias, size_t first,
                     size_t last, const float *params, float *scores, float *sums);
void drps_fm_backward(const struct drps_batch *b, size_t factors, size_t first, size_t last,
                      const float *slopes, const float *params, const float *sums, float *grads);

/* scores [s][outputs], slopes [last - first][outputs]; bias [outputs], or NULL. */
void drps_matrix_forward(const struct drps_batch *b, size_t outputs, const float *bias,
                         size_t first, size_t last, const float *params, float *scores);
void drps_matrix_backward(const struct drps_batch *b, size_t outputs, size_t first, size_t last,
                          const float *slopes, float *grads);
/* grads [outputs] += slopes [samples][outputs] of each sample. */
void drps_matrix_bias_backward(size_t outputs, size_t samples, const float *slopes, float *grads);

void drps_mf_forward(const struct drps_batch *b, size_t factors, float bias, size_t first,
                     size_t last, const float *params, float *scores);
void drps_mf_backward(const struct drps_batch *b, size_t factors, size_t first, size_t last,
                      const float *slopes, const float *params, float *grads);

#endif
