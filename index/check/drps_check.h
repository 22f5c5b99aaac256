/*
 * Is a data set fit to be learnt from? What looks wrong in the samples of a finished plan, with
 * what to do: features that are the same in all samples, a feature that alone decides the label,
 * test samples that are in training, too.
 *
 * Batches are read once, or once a slice of the rows where counts of all do not fit the memory; all
 * counts are exact.
 */
#ifndef DRPS_INDEX_CHECK_H
#define DRPS_INDEX_CHECK_H

#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_log.h"
#include "base/drps_remarks.h"
#include "index/plan/drps_plan.h"

enum { DRPS_CHECK_LEAST = 30 }; /* samples of each class, below which nothing is said of features */

struct drps_check {
    int of_features; /* 0: samples are ratings or documents: features say nothing by themselves */
    uint64_t constants; /* features with the same value in every training sample */
    /*
     * Features that alone decide the label: of two classes, one that is there in the samples of one
     * class and not in those of the other, or whose values of one are all larger, but for wrong
     * samples, at most a hundredth of those of the smaller class; of more classes, where there are
     * such features for all but one class, each told from all others; of numbers, one whose
     * correlation with the label is at least .9999, either way.
     */
    uint64_t deciding;
    uint64_t wrong; /* samples that the best of these gets wrong; 0 of numbers */
    /* Test samples with features, of those that training has, values and label as a training
     * sample; the same with one of as many training samples as there are test samples; and with
     * another test sample. Data of few features has such by chance, then these two are alike. */
    uint64_t copies, copies_of_few, copies_in_test;
    uint64_t samples, test_samples;
    unsigned passes;
    struct drps_remarks remarks; /* sentences on what looks wrong */
};

enum { DRPS_CHECK_MEMORY = 256 << 20 };

/*
 * Check a plan for one worker with about so many bytes of memory (0: DRPS_CHECK_MEMORY), beside
 * what a batch takes. What looks wrong is logged as warnings, too. Returns 0, also then;
 * DRPS_E_CONFIG: the plan is for several workers; -ENOMEM; errors of reading; DRPS_E_INTERRUPTED.
 */
DRPS_MUST_CHECK
int drps_check_plan(const struct drps_plan *plan, uint64_t memory_bytes, const struct drps_log *log,
                    struct drps_check *out, struct drps_err *err);

#endif
