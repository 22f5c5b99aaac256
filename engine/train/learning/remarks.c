/* What is said of a run in which learning goes wrong: sentences for the user, made of the losses of
 * its epochs beside that of the best constant. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "engine/train/learning/drps_learning.h"

enum { GROWS = 3 /* epochs in a row before it is said */ };
static const double TELLING = 1e-3;  /* a share of a loss that is more than noise */
static const double CLEARLY = 1e-2;  /* one that is, between any two epochs */
static const double FAR_ABOVE = 100; /* times the constant's loss */
static const double APART = 0.6;     /* an AUC, or an accuracy, that is not chance */

static int is_above(double loss, double other)
{
    return loss > other * (1 + TELLING);
}

/* ---- Within a run ---- */

int drps_learning_check_exploded(const struct drps_train_result *r, struct drps_err *err)
{
    const double lr = (double)r->optim.lr, constant = r->constant_loss;
    if (r->epochs_n < 2 || !(lr > 0) || !(constant > 0)) return 0;
    const struct drps_epoch *e = &r->epochs[r->epochs_n - 1];
    if (!(e->train_loss > FAR_ABOVE * constant) || !(e->train_loss > e[-1].train_loss)) return 0;
    return drps_err_set(err, -ERANGE,
                        "the training loss of epoch %llu, %.4g, is %.3g times that of the best "
                        "constant, and grows: training diverged; try a smaller learning rate (it "
                        "is %g, try %g)",
                        (unsigned long long)e->epoch, e->train_loss, e->train_loss / constant, lr,
                        lr / 10);
}

/* ---- At its end ---- */

/* The epoch whose model is kept: the best, or the last one. */
static const struct drps_epoch *kept_epoch(const struct drps_train_result *r)
{
    if (r->best_epoch && r->best_epoch <= r->epochs_n) return &r->epochs[r->best_epoch - 1];
    return &r->epochs[r->epochs_n - 1];
}

/* The epoch with the least training loss. */
static const struct drps_epoch *least_epoch(const struct drps_train_result *r)
{
    const struct drps_epoch *least = &r->epochs[0];
    for (size_t i = 1; i < r->epochs_n; i++)
        if (r->epochs[i].train_loss < least->train_loss) least = &r->epochs[i];
    return least;
}

/* The loss of a model whose scores are all 0, as most begin; no less than the constant's. */
static double loss_of_zeros(const struct drps_plan_info *info)
{
    const size_t classes = drps_classes_count(info->classes);
    const double constant = info->constant_loss;
    enum drps_loss loss;
    if (!drps_loss_find(info->loss, &loss)) return constant;
    if (loss == DRPS_LOSS_LOGISTIC) return fmax(constant, log(2));
    if (loss == DRPS_LOSS_SOFTMAX) return fmax(constant, log((double)classes));
    if (loss == DRPS_LOSS_HINGE || loss == DRPS_LOSS_SQUARED_HINGE)
        return fmax(constant, classes ? (double)classes : 1);
    return constant;
}

/* Hinge losses and those of implicit feedback only ask for scores that are apart. Where scores tell
 * test samples from each other, such a model is of use whatever its loss. */
static int tells_apart(const struct drps_plan_info *info, const struct drps_epoch *e)
{
    enum drps_loss loss;
    const double auc = isnan(e->test.auc) ? e->test.accuracy : e->test.auc;
    if (!e->test.samples || !drps_loss_find(info->loss, &loss)) return 0;
    return (loss == DRPS_LOSS_HINGE || loss == DRPS_LOSS_SQUARED_HINGE || info->negatives.each) &&
           auc > APART;
}

/* A smaller rate helps where training has made the model worse than it began. */
static void remark_untaught(struct drps_train_result *r, const struct drps_log *log,
                            const struct drps_plan_info *info)
{
    const struct drps_epoch *e = least_epoch(r);
    const double lr = (double)r->optim.lr;
    char advice[128];
    if (is_above(e->train_loss, loss_of_zeros(info)))
        (void)snprintf(advice, sizeof(advice),
                       "try a smaller learning rate (it is %g, try %g), or more epochs", lr,
                       lr / 10);
    else
        (void)snprintf(advice, sizeof(advice),
                       "try more epochs, or another learning rate (it is %g)", lr);
    drps_remark(&r->remarks, log,
                "nothing was learnt: the training loss of epoch %llu, %.6f, is above that of the "
                "best constant, %.6f; %s",
                (unsigned long long)e->epoch, e->train_loss, r->constant_loss, advice);
}

static void remark_unlike(struct drps_train_result *r, const struct drps_log *log,
                          const struct drps_epoch *e)
{
    drps_remark(&r->remarks, log,
                "the model of epoch %llu is worse than none on test samples: their loss, %.6f, is "
                "above that of the best constant, %.6f, while that of training samples, %.6f, is "
                "not; what it learnt holds for these alone: try fewer epochs, patience, or an l2 "
                "regularisation",
                (unsigned long long)e->epoch, e->test.loss, r->test_constant_loss, e->train_loss);
}

/* Warns where the model is no better than one score for all samples. Returns 1 if nothing was
 * learnt, in no epoch. */
static int remark_constant(struct drps_train_result *r, const struct drps_plan_info *info,
                           const struct drps_log *log)
{
    const struct drps_epoch *e = kept_epoch(r);
    const int has_test = e->test.samples && isfinite(r->test_constant_loss);
    const int learnt = !is_above(least_epoch(r)->train_loss, r->constant_loss);
    if (isnan(r->constant_loss) || tells_apart(info, e)) return 0;
    if (has_test && !is_above(e->test.loss, r->test_constant_loss)) return 0;
    if (!learnt)
        remark_untaught(r, log, info);
    else if (has_test && !is_above(e->train_loss, r->constant_loss))
        remark_unlike(r, log, e);
    return !learnt;
}

static double train_loss_of(const struct drps_epoch *e)
{
    return e->train_loss;
}

static double test_loss_of(const struct drps_epoch *e)
{
    return e->test.loss;
}

/* Returns in how many epochs in a row, up to the last, the loss has grown: 0 where that is few, or
 * little. */
static size_t grown_for(const struct drps_train_result *r,
                        double (*loss)(const struct drps_epoch *))
{
    size_t n = 0;
    while (n + 1 < r->epochs_n &&
           loss(&r->epochs[r->epochs_n - 1 - n]) > loss(&r->epochs[r->epochs_n - 2 - n]))
        n++;
    if (n < GROWS) return 0;
    return is_above(loss(&r->epochs[r->epochs_n - 1]), loss(&r->epochs[r->epochs_n - 1 - n])) ? n
                                                                                              : 0;
}

/* The epoch with the least test loss. */
static const struct drps_epoch *least_test_epoch(const struct drps_train_result *r)
{
    const struct drps_epoch *least = &r->epochs[0];
    for (size_t i = 1; i < r->epochs_n; i++)
        if (r->epochs[i].test.loss < least->test.loss) least = &r->epochs[i];
    return least;
}

/* Warns where an epoch before the last had a smaller test loss. */
static void remark_overfitted(struct drps_train_result *r, const struct drps_log *log)
{
    const struct drps_epoch *last = &r->epochs[r->epochs_n - 1], *best = least_test_epoch(r);
    const double more = last->test.loss - best->test.loss;
    if (!(more > CLEARLY * fabs(best->test.loss)) && !grown_for(r, test_loss_of)) return;
    drps_remark(&r->remarks, log,
                "the test loss was least in epoch %llu, %.6f, and is %.6f in epoch %llu, the "
                "last: train for fewer epochs, or with patience, which keeps the best one",
                (unsigned long long)best->epoch, best->test.loss, last->test.loss,
                (unsigned long long)last->epoch);
}

static void remark_growth(struct drps_train_result *r, const struct drps_train_options *o,
                          int learnt)
{
    const struct drps_log *log = o->log;
    const struct drps_epoch *last = &r->epochs[r->epochs_n - 1];
    const double lr = (double)r->optim.lr;
    const size_t train = grown_for(r, train_loss_of);
    if (train)
        drps_remark(&r->remarks, log,
                    "the training loss has grown for %zu epochs, from %.6f to %.6f: try a smaller "
                    "learning rate (it is %g, try %g)",
                    train, last[-(ptrdiff_t)train].train_loss, last->train_loss, lr, lr / 10);
    else if (learnt && !o->patience)
        remark_overfitted(r, log);
}

/* Methods without a rate end by themselves, and their losses are those of points that were tried.
 */
void drps_learning_remark(struct drps_train_result *r, const struct drps_plan_info *info,
                          const struct drps_train_options *options)
{
    if (!r->epochs_n || !(r->optim.lr > 0)) return;
    const int learnt = !remark_constant(r, info, options->log);
    remark_growth(r, options, learnt);
}
