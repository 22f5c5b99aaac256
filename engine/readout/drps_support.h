/*
 * What a plan's training samples say of a model's weights: how many samples have the feature, and
 * how well they fix the weight. Shared with tools/.
 *
 * The standard error of a weight is 1 / sqrt(I), with I the sum over all training samples of
 * weight x^2 times the second derivative of the loss by the score, at the model's parameters: p (1
 * - p) of logistic losses and, class by class, of softmax; 1 over the mean squared residual of the
 * squared loss. That is the diagonal of the observed information (Efron and Hinkley, Biometrika
 * 1978): other weights are held as they are, so it is too small where features go together. It does
 * not count l1 and l2. Of fm and lmf it is of the weight alone.
 */
#ifndef DRPS_ENGINE_READOUT_SUPPORT_H
#define DRPS_ENGINE_READOUT_SUPPORT_H

#include "engine/readout/drps_top_weights.h"

/* How well training samples fix the intercept: a standard error for each of w->lists. */
struct drps_support {
    uint64_t samples;
    double *errors; /* own: [lists]; NaN: not known */
};

/* Returns the memory that drps_support_measure() takes beside the weights. */
uint64_t drps_support_memory(const struct drps_plan_info *plan, const struct drps_model *model,
                             const struct drps_top_choice *choice);

/*
 * Fill in `samples` and `error` of all weights of `w`, which were found with `choice`. Reads the
 * plan's training batches once, and the model's rows as these do. DRPS_E_CONFIG: the model is not
 * of this plan, or the plan is one of several workers. Free out->errors in either case.
 */
DRPS_MUST_CHECK
int drps_support_measure(struct drps_readout *r, const struct drps_plan *plan,
                         const struct drps_top_choice *choice, struct drps_top_weights *w,
                         struct drps_support *out, struct drps_err *err);

#endif
