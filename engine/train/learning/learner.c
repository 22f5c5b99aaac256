/* Model and optimizer of a run, as plan and options settle them: what is meant where nothing is
 * said, and what does not go together. */
#include <math.h>
#include <string.h>

#include "engine/train/learning/drps_learning.h"
#include "engine/train/newton/drps_newton_check.h"
#include "engine/train/topic/drps_topic_check.h"

/* Samples of a full step: of all workers together, or where they step one by one, of a batch. */
static double step_samples(const struct drps_plan_info *info, int one_by_one)
{
    const uint64_t n = one_by_one ? info->batch_size : info->ranks.round_samples;
    return n ? (double)n : 1;
}

/* What these samples weigh in the mean, but no less than the heaviest alone. */
static double step_weight(const struct drps_plan_info *info)
{
    const double samples = info->samples ? (double)info->samples : 1;
    const double mean = info->weights.most > 0 ? info->weights.sum / samples : 1;
    return fmax(step_samples(info, 0) * mean, info->weights.most);
}

/* 1: the batches of different workers step on their own. */
static int steps_one_by_one(const struct drps_plan_info *info, const struct drps_train_options *o)
{
    return drps_plan_circulates(info) || o->sync != DRPS_SCHED_BSP;
}

/* Most entries are 1: categories, and words that are there. Features are rare then, and what each
 * may do in its first step is bounded by eps, so that one sample does not decide: docs/quality.md.
 * Other values may be small, and eps, which their squares are added to, not small beside them. */
static int has_ones(const struct drps_plan_info *info)
{
    static const double most = 0.75;
    return info->ones >= most;
}

/* The learning rate that is meant where none is given. */
static float default_lr(const struct drps_plan_info *info, enum drps_optim_kind kind, int mean)
{
    const struct drps_algorithm *a = drps_plan_algorithm(info);
    switch (kind) {
    case DRPS_OPTIM_ADAGRAD:
        return has_ones(info) && a->ones_lr > 0 ? a->ones_lr : a->adagrad_lr;
    case DRPS_OPTIM_FTRL:
        return 0.1f;
    case DRPS_OPTIM_ADAM:
        return 0.001f;
    case DRPS_OPTIM_SGD:
        break;
    default: /* quasi-Newton, alternating: no rate */
        return 0;
    }
    /* SGD steps a sum over a round's samples, whose entries may all lie along one dense direction:
     * the step stays under the curvature there. */
    const double samples = info->samples ? (double)info->samples : 1;
    const double entries = 1 + (double)info->nnz / samples;
    return (float)(1 / (entries * (mean ? 1 : step_weight(info))));
}

static float default_eps(const struct drps_plan_info *info, enum drps_optim_kind kind)
{
    const struct drps_algorithm *a = drps_plan_algorithm(info);
    if (kind != DRPS_OPTIM_ADAGRAD) return 0;
    return has_ones(info) && a->ones_eps > 0 ? a->ones_eps : a->adagrad_eps;
}

/* The score that a model without features would settle on: where the intercept starts. */
static float best_constant(enum drps_loss loss, double label_mean)
{
    if (loss == DRPS_LOSS_SQUARED) return (float)label_mean;
    if (loss != DRPS_LOSS_LOGISTIC || fabs(label_mean) >= 1) return 0;
    return (float)log((1 + label_mean) / (1 - label_mean)); /* log-odds: labels are -1 and +1 */
}

/* Callbacks are of scores that are sums of a sample's rows, and of nothing else. */
static int check_callbacks(const struct drps_plan *plan, const struct drps_train_options *o,
                           struct drps_model *model, struct drps_err *err)
{
    const struct drps_callbacks *calls = o->callbacks;
    const struct drps_algorithm *a = drps_plan_algorithm(&plan->info);
    if (!calls) return 0;
    if (!calls->compute_svg)
        return drps_err_set(err, DRPS_E_CONFIG, "callbacks without compute_svg");
    if ((a->predictor != DRPS_PREDICTOR_LINEAR && a->predictor != DRPS_PREDICTOR_MATRIX) ||
        drps_algorithm_has_sample_rows(a))
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "callbacks are for linear scores of features, and %s is a plan for %s%s", plan->dir,
            a->name, drps_algorithm_has_sample_rows(a) ? " with rows of samples" : "");
    model->callbacks = calls;
    return 0;
}

int drps_learning_model(const struct drps_plan *plan, const struct drps_train_options *o,
                        struct drps_model *model, struct drps_err *err)
{
    const struct drps_plan_info *info = &plan->info;
    const struct drps_model_terms terms = {.algo = info->algo,
                                           .loss = info->loss,
                                           .expression = info->expression,
                                           .net = info->net,
                                           .factors = info->factors,
                                           .outputs = info->outputs,
                                           .classes = drps_plan_label_classes(info)};
    int rc = drps_model_settle(model, &terms, err);
    if (rc == 0)
        rc = drps_model_set_fields(model, drps_plan_row_fields(info), info->normalized, err);
    if (rc == 0) rc = check_callbacks(plan, o, model, err);
    if (rc == 0 && model->layers.n && o->local_steps)
        rc = drps_err_set(err, DRPS_E_CONFIG,
                          "local steps step after each sample, and each sample changes all "
                          "parameters of a net: leave them out");
    if (rc < 0) return rc;
    if (model->dim != info->dim)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s: rows of %u floats do not fit algorithm %s with %u factors",
                            plan->dir, info->dim, info->algo, info->factors);
    drps_model_set_items(model, info->negatives.items);
    model->has_bias = drps_plan_common_rows(info) > 0;
    model->fixed_bias = info->lanes > 1 && info->grid_users;
    model->late_bias = info->lanes > 1 && !info->grid_users && !o->local_steps;
    model->bias_start = best_constant(model->loss, info->label_mean);
    model->init_scale = o->init_scale;
    model->seed = o->seed;
    if (o->batch_mean) model->mean_of = steps_one_by_one(&plan->info, o) ? 1 : info->ranks.workers;
    return 0;
}

/* Whether the optimizer steps as the options want it to. */
static int check_steps(const struct drps_train_options *o, const struct drps_optim *optim,
                       struct drps_err *err)
{
    const char *name = drps_optim_name(optim->kind);
    const int decays = o->lr_decay > DRPS_DECAY_CONSTANT;
    if (decays && optim->kind == DRPS_OPTIM_FTRL)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the rate of ftrl does not decay (it falls by itself): leave the decay "
                            "of the learning rate out, or take sgd, adagrad or adam");
    if (decays && !drps_optim_steps_batches(optim->kind))
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "the optimizer %s has no learning rate that could decay: leave the decay "
            "of the learning rate out, or take sgd, adagrad or adam",
            name);
    if (o->lr_stale && optim->kind > DRPS_OPTIM_ADAGRAD)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a rate for stale gradients is of sgd and adagrad, whose steps are a "
                            "rate times a gradient, and not of %s: leave it out",
                            name);
    if (decays && o->checkpoint_vectors)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "checkpoints of vectors are replayed with one learning rate: leave the "
                            "decay of the learning rate out, or have checkpoints of rows written");
    if (o->batch_mean && (!drps_optim_steps_batches(optim->kind) || o->local_steps))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "there is no mean over a batch where %s: leave it out",
                            o->local_steps ? "local steps step after each sample"
                                           : "the optimizer does not step after batches");
    return 0;
}

/* What steps the rows. Of a mean over a batch each sample's share of l1 and l2 is one of it; ftrl
 * does not count them by samples. */
struct drps_optim drps_learning_steps(const struct drps_plan *plan,
                                      const struct drps_train_options *o,
                                      const struct drps_optim *asked)
{
    struct drps_optim optim = *asked;
    if (!o->batch_mean || !drps_optim_counts_touches(optim.kind)) return optim;
    const double samples = step_samples(&plan->info, steps_one_by_one(&plan->info, o));
    optim.l1 = (float)((double)optim.l1 / samples);
    optim.l2 = (float)((double)optim.l2 / samples);
    return optim;
}

/* A beta that is given, or what the optimizer has. */
static int set_beta(float given, const char *which, int is_adam, float *beta, struct drps_err *err)
{
    if (given == 0) return 0;
    if (!is_adam)
        return drps_err_set(err, DRPS_E_CONFIG, "%s is of the optimizer adam: leave it out", which);
    if (!(given > 0) || given > DRPS_OPTIM_BETAS_MOST)
        return drps_err_set(err, DRPS_E_CONFIG, "%s is %g: give a number above 0, at most %.6f",
                            which, (double)given, (double)DRPS_OPTIM_BETAS_MOST);
    *beta = given;
    return 0;
}

static int set_betas(const struct drps_train_options *o, struct drps_optim *optim,
                     struct drps_err *err)
{
    const int is_adam = optim->kind == DRPS_OPTIM_ADAM;
    int rc = set_beta(o->beta1, "beta1", is_adam, &optim->beta1, err);
    return rc == 0 ? set_beta(o->beta2, "beta2", is_adam, &optim->beta2, err) : rc;
}

int drps_learning_optim(const struct drps_plan *plan, const struct drps_train_options *o,
                        const struct drps_model *model, struct drps_optim *optim,
                        struct drps_err *err)
{
    int rc = drps_optim_init(
        optim, o->optimizer ? o->optimizer : drps_algorithm_find(plan->info.algo)->optimizer, err);
    if (rc == 0) rc = drps_newton_settle(plan, o, model, optim, err);
    if (rc == 0) rc = drps_topic_check_optimizer(plan, optim, err);
    if (rc < 0) return rc;
    optim->lr = o->lr > 0 ? o->lr : default_lr(&plan->info, optim->kind, o->batch_mean);
    const float eps = o->eps > 0 ? o->eps : default_eps(&plan->info, optim->kind);
    if (eps > 0) optim->eps = eps;
    optim->l1 = o->l1;
    optim->l1_all = drps_plan_is_matrix(&plan->info);
    optim->l2 = o->l2;
    if (optim->kind == DRPS_OPTIM_ALTERNATING && optim->l2 == 0) optim->l2 = DRPS_TOPIC_RHO;
    if (!(o->lr >= 0) || !isfinite(o->lr) || !(o->l1 >= 0) || !isfinite(o->l1) || !(o->l2 >= 0) ||
        !isfinite(o->l2))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "learning rate %g, l1 %g, l2 %g: give finite numbers, none negative",
                            (double)o->lr, (double)o->l1, (double)o->l2);
    rc = set_betas(o, optim, err);
    if (rc == 0) rc = check_steps(o, optim, err);
    if (rc < 0) return rc;
    if (o->pull_cached && optim->kind > DRPS_OPTIM_ADAGRAD)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "copies of parameters cannot be stepped with another optimizer than "
                            "sgd and adagrad: leave them out, or train with one of these");
    return 0;
}

int drps_train_rate(const struct drps_plan *plan, const struct drps_train_options *options,
                    float *lr_out, struct drps_err *err)
{
    struct drps_model model;
    struct drps_optim optim;
    int rc = drps_learning_model(plan, options, &model, err);
    *lr_out = 0;
    if (rc == 0) rc = drps_learning_optim(plan, options, &model, &optim, err);
    if (rc < 0) return rc;
    *lr_out = optim.lr;
    if (drps_optim_steps_batches(optim.kind)) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "the optimizer %s has no learning rate: leave the choice of rates out",
                        drps_optim_name(optim.kind));
}
