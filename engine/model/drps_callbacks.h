/*
 * A loss that a program computes itself, in place of the plan's: two functions, as in the paper.
 * They are given to drps_train_run() (struct drps_train_options) with a plan of linear scores:
 * algorithms lir, lor, svm, mlr, or expr without `own`. The plan says what labels are and J, the
 * scores of a sample; the model that is written says the plan's loss, and drps-predict makes of
 * scores what that asks for. Checkpoints do not hold callbacks: who resumes gives them again.
 *
 * Source: Xie et al., "Orpheus", section 3.1.
 */
#ifndef DRPS_ENGINE_MODEL_CALLBACKS_H
#define DRPS_ENGINE_MODEL_CALLBACKS_H

#include <stddef.h>

/* Both are called on several threads at once, and of several ranks in one process: what ctx points
 * to is not changed, or has a lock. Equal arguments give equal results. */
struct drps_callbacks {
    void *ctx;
    /*
     * Sufficient vectors of n samples.
     *
     * scores [n][J]   W*x of each sample, the intercept included
     * labels [n]      numbers; -1 or +1; or numbers of classes, 0 to J - 1
     * u      [n][J]   to fill in: derivatives of each sample's loss by its scores; NULL: only the
     *                 loss is asked for
     * Returns the sum of the losses. One that is no finite number ends the run.
     */
    double (*compute_svg)(void *ctx, size_t n, size_t outputs, const float *scores,
                          const float *labels, float *u);
    /*
     * What a sample's vectors u [J] and x do to a row with the value x in it: to be added to grad
     * [J], which the optimizer takes. NULL: grad += x * u, the gradient of W*x. The intercept is a
     * row of value 1.
     */
    void (*compute_update)(void *ctx, size_t outputs, const float *u, float x, float *grad);
};

#endif
