/* A quasi-Newton method is refused where it cannot work, before anything is computed. */
#include "engine/train/newton/drps_newton_check.h"

#include <math.h>

static int check_model(const struct drps_plan *plan, const struct drps_model *model,
                       const char *name, struct drps_err *err)
{
    const enum drps_scoring predictor =
        drps_algorithm_of(drps_algorithm(model->algo), &model->expr)->predictor;
    const char *kink = drps_expr_kink(&model->expr);
    if (model->loss == DRPS_LOSS_HINGE || model->loss == DRPS_LOSS_SQUARED_HINGE)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s needs a loss with a curvature, and %s has kinks or flat parts: "
                            "train %s with adagrad, or take lor in place of svm",
                            name, drps_loss_name(model->loss), plan->dir);
    if (kink)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s needs a loss with a curvature, and %s in the loss of %s has kinks: "
                            "train it with adagrad",
                            name, kink, plan->dir);
    if (predictor != DRPS_PREDICTOR_LINEAR && predictor != DRPS_PREDICTOR_MATRIX)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s is for linear models, and %s is a plan for %s: train it with "
                            "adagrad",
                            name, plan->dir, plan->info.algo);
    return 0;
}

/* Options that say how batches step rows, and those of several ranks. */
static int check_options(const struct drps_plan *plan, const struct drps_train_options *o,
                         const char *name, struct drps_err *err)
{
    const struct {
        int given;
        const char *what, *why;
    } options[] = {
        {o->lr > 0, "a learning rate does", "it finds the length of its steps itself"},
        {o->eps > 0, "eps does", "that is adagrad's"},
        {o->l1 > 0, "l1 does", "its objective must be smooth: take l2, or ftrl for sparse weights"},
        {o->local_steps, "local steps do", "it steps once in a pass over all samples"},
        {o->patience > 0, "patience does", "it ends by itself: give a tolerance"},
        {o->one_by_one || plan->info.lanes > 1, "lanes do", "it has one order of batches"},
        {o->checkpoint_vectors, "checkpoints of vectors do", "it steps once in a pass"},
    };
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
        if (options[i].given)
            return drps_err_set(err, DRPS_E_CONFIG, "%s not go with %s: %s", options[i].what, name,
                                options[i].why);
    if (o->ranks || plan->info.ranks.count > 1)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s runs on one rank, and %s is a plan for %u: make a plan for one "
                            "worker, or train with adagrad",
                            name, plan->dir, plan->info.ranks.count);
    return 0;
}

/* A matrix is not in checkpoints. */
static int check_checkpoints(const struct drps_train_options *o, const char *name,
                             struct drps_err *err)
{
    const int every = o->checkpoint_every.unit != DRPS_CHECKPOINT_USUAL &&
                      o->checkpoint_every.unit != DRPS_CHECKPOINT_NEVER;
    if (!every && !o->resume && !o->keep_checkpoints) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s keeps a matrix that checkpoints do not have: train without them, or "
                        "with lbfgs",
                        name);
}

static int check_pairs(const struct drps_train_options *o, const struct drps_optim *optim,
                       struct drps_err *err)
{
    const int is_lbfgs = optim->kind == DRPS_OPTIM_LBFGS;
    const int is_newton = drps_optim_is_newton(optim->kind);
    if (o->pairs && !is_lbfgs)
        return drps_err_set(err, DRPS_E_CONFIG, "only lbfgs remembers pairs, and %s does not",
                            drps_optim_name(optim->kind));
    if (o->pairs > DRPS_OPTIM_PAIRS_MOST)
        return drps_err_set(err, DRPS_E_CONFIG, "%u pairs: at most %d", o->pairs,
                            DRPS_OPTIM_PAIRS_MOST);
    if (o->tolerance == 0 && !isnan(o->tolerance)) return 0;
    if (!is_newton)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a tolerance is of quasi-Newton methods (lbfgs), and %s ends after its "
                            "epochs",
                            drps_optim_name(optim->kind));
    if (o->tolerance > 0 && o->tolerance < 1) return 0;
    return drps_err_set(err, DRPS_E_CONFIG, "a tolerance of %g: give a number between 0 and 1",
                        (double)o->tolerance);
}

int drps_newton_settle(const struct drps_plan *plan, const struct drps_train_options *o,
                       const struct drps_model *model, struct drps_optim *optim,
                       struct drps_err *err)
{
    const char *name = drps_optim_name(optim->kind);
    int rc = check_pairs(o, optim, err);
    if (rc < 0 || !drps_optim_is_newton(optim->kind)) return rc;
    if (rc == 0) rc = check_model(plan, model, name, err);
    if (rc == 0) rc = check_options(plan, o, name, err);
    if (rc == 0 && drps_optim_has_matrix(optim->kind)) rc = check_checkpoints(o, name, err);
    if (rc < 0) return rc;
    if (o->pairs) optim->pairs = o->pairs;
    if (o->tolerance > 0) optim->tolerance = o->tolerance;
    if (drps_newton_memory(optim, plan->info.rows, model->dim) != UINT64_MAX) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s keeps a matrix of %llu x %llu values, which is more than any memory: "
                        "train with lbfgs",
                        name, (unsigned long long)(plan->info.rows * model->dim),
                        (unsigned long long)(plan->info.rows * model->dim));
}
