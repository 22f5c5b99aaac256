/* What is wrong with labels, as far as their counts say: all are the same, or a class is missing.
 * That two classes are wanted and training has one is an error, which parsing has found. */
#include "index/run/run.h"

static void remark_numbers(struct index_run *r, const struct drps_label_sums *train)
{
    if (train->loss != DRPS_LOSS_SQUARED || train->squares > 0) return;
    drps_remark(&r->result->remarks, r->options.log,
                "every training label is %g: there is nothing else to learn (check the label "
                "column)",
                train->origin);
}

static void remark_two_classes(struct index_run *r, const struct drps_label_sums *test)
{
    const struct drps_plan_info *info = r->info;
    const int all = test->positive >= test->n;
    if (!(test->n > 0) || (!all && test->positive > 0)) return;
    drps_remark(&r->result->remarks, r->options.log,
                "every test label is %g: without a sample of the other class there is no AUC, and "
                "the accuracy says little; take other samples for tests",
                (double)(all ? info->label_positive : info->label_negative));
}

static void remark_named(struct index_run *r, const struct drps_label_sums *train,
                         const struct drps_label_sums *test)
{
    size_t present = 0, last = 0, untrained = 0, first = 0;
    for (size_t c = 0; c < train->classes; c++) {
        const int trained = train->of_class[c] > 0;
        present += (size_t)trained;
        if (trained) last = c;
        if (trained || !(test->of_class[c] > 0)) continue;
        if (!untrained++) first = c;
    }
    if (present == 1)
        drps_remark(&r->result->remarks, r->options.log,
                    "every training sample is of class %s: there is nothing to tell apart (check "
                    "the label column)",
                    drps_classes_name(r->classes, last));
    if (untrained)
        drps_remark(&r->result->remarks, r->options.log,
                    "%zu of %zu classes, first %s, are of test samples alone: no training sample "
                    "shows what they are, and such test samples will be taken for others",
                    untrained, train->classes, drps_classes_name(r->classes, first));
}

void drps_run_remark_labels(struct index_run *r, const struct drps_label_sums *train,
                            const struct drps_label_sums *test)
{
    if (!(train->n > 0)) return;
    if (train->classes)
        remark_named(r, train, test);
    else if (drps_loss_is_classification(train->loss))
        remark_two_classes(r, test);
    else
        remark_numbers(r, train);
}
