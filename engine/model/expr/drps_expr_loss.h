/*
 * Losses that are texts, of the samples of a batch: scores and labels to a sum of losses and
 * derivatives. Shapes as in engine/model/drps_model.h.
 */
#ifndef DRPS_ENGINE_MODEL_EXPR_LOSS_H
#define DRPS_ENGINE_MODEL_EXPR_LOSS_H

#include "index/expr/drps_expr.h"
#include "index/plan/drps_batch.h"

/* Returns the bytes of room, aligned for doubles, that the next two work in. */
size_t drps_expr_room_bytes(const struct drps_expr *e, size_t outputs);

/*
 * Returns the sum of the losses of samples [first, last), which, like derivatives, are multiplied
 * by their weights: NaN where one, or a derivative, is not finite. slopes [last - first][J] get the
 * derivatives by scores; what those by rows of samples are is added, times `share`, to grads
 * [m][J]. Both may be NULL; `params` too, where no sample has a row.
 */
double drps_expr_loss(const struct drps_expr *e, size_t outputs, const struct drps_batch *b,
                      size_t first, size_t last, const float *params, const float *scores,
                      float share, float *slopes, float *grads, void *room);

/* Says of the first sample of the batch that is not finite (`trains`: or a derivative of which is
 * not) which it is, and why: returns err's code, 0 if all are finite. */
int drps_expr_explain(const struct drps_expr *e, size_t outputs, const struct drps_batch *b,
                      const float *params, const float *scores, int trains, void *room,
                      struct drps_err *err);

#endif
