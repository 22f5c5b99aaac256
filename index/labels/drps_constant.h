/*
 * The loss of the best constant: the mean loss where all samples get one score, or one score for
 * each class, that is best for the training samples. It follows from the labels alone, and is what
 * a model must be better than to have learnt something.
 *
 *   squared            the labels' mean            (variance + difference of means squared) / 2
 *   logistic, softmax  log-odds, log of the shares   the (cross) entropy of the classes' shares
 *   hinge              +1 or -1, as most labels are; of named classes for each, one versus the rest
 *   squared hinge      2 p - 1, where p is the share of the class
 *   bpr                any: a user's items all score the same     log 2
 */
#ifndef DRPS_INDEX_LABELS_CONSTANT_H
#define DRPS_INDEX_LABELS_CONSTANT_H

#include <stddef.h>

#include "base/drps_err.h"
#include "base/exact/drps_exact.h"
#include "index/plan/drps_algorithm.h"

/* What is counted of labels. It is summed up without rounding: the order of the samples, and which
 * of several sums counts which of them, do not matter. Rounded numbers are there once settled. */
struct drps_label_sums {
    enum drps_loss loss;
    struct drps_exact weights, labels, squared; /* sums of w, w y and w y^2 */
    struct drps_exact positives;                /* of w of samples of +1 */
    struct drps_exact *of_classes;              /* own: [classes] of w of each named class */
    size_t classes;
    double origin;    /* the label of the first sample, */
    uint64_t first;   /* and the batch that this is in; UINT64_MAX: there is none */
    uint64_t items;   /* warp: that there are to be drawn; set by the caller */
    double n;         /* weights of all samples */
    double sum;       /* of w (y - origin), */
    double squares;   /* and of w (y - origin)^2 */
    double positive;  /* two classes: weights of the samples of +1 */
    double *of_class; /* own: [classes] the same of each named class; NULL: none are named */
};

/* Labels for this loss; `classes` have names (0: none have). -ENOMEM. */
DRPS_MUST_CHECK
int drps_label_sums_init(struct drps_label_sums *s, enum drps_loss loss, size_t classes,
                         struct drps_err *err);
void drps_label_sums_destroy(struct drps_label_sums *s); /* NULL-safe */

/* Count a label, as batches store it: a number, -1 or +1, or the number of a class. Label and
 * weight are floats. Batches come in any order, the samples of one in theirs. */
void drps_label_sums_add(struct drps_label_sums *s, uint64_t batch, float label, float weight);

/* Add what others counted, of the same loss and classes. */
void drps_label_sums_merge(struct drps_label_sums *s, const struct drps_label_sums *from);

/* All are counted: round the sums. */
void drps_label_sums_settle(struct drps_label_sums *s);

/* Returns the mean label, of sums that are settled. */
double drps_label_sums_mean(const struct drps_label_sums *s);

/* Both are settled. Returns the mean loss over the samples of `of` with the constant that is best
 * for those of `train`; of implicit feedback, with all scores 0 (bpr and warp have the same with
 * any constant). NaN: there are no samples, the loss has no such constant, or a class of `of` is
 * not in `train`, so that no share of it is known. */
double drps_constant_loss(const struct drps_label_sums *train, const struct drps_label_sums *of);

#endif
