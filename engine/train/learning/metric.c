/* What tells which epoch is the best one. */
#include <string.h>

#include "engine/train/learning/drps_learning.h"

static const char *const names[DRPS_METRICS] = {
    [DRPS_METRIC_USUAL] = "loss",        [DRPS_METRIC_LOSS] = "loss",
    [DRPS_METRIC_AUC] = "auc",           [DRPS_METRIC_RMSE] = "rmse",
    [DRPS_METRIC_ACCURACY] = "accuracy", [DRPS_METRIC_RECALL] = "recall@10",
    [DRPS_METRIC_NDCG] = "ndcg@10",
};

const char *drps_metric_name(enum drps_metric metric)
{
    return names[metric];
}

int drps_metric_find(const char *name, enum drps_metric *out)
{
    for (int i = DRPS_METRIC_LOSS; i < DRPS_METRICS; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (enum drps_metric)i;
            return 1;
        }
    return 0;
}

double drps_metric_score(enum drps_metric metric, const struct drps_quality *q)
{
    switch (metric) {
    case DRPS_METRIC_AUC:
        return -q->auc;
    case DRPS_METRIC_ACCURACY:
        return -q->accuracy;
    case DRPS_METRIC_RMSE:
        return q->rmse;
    case DRPS_METRIC_RECALL:
        return -q->recall;
    case DRPS_METRIC_NDCG:
        return -q->ndcg;
    default:
        return q->loss;
    }
}

/* 1: models of the plan have it. */
static int has_metric(const struct drps_plan_info *info, enum drps_metric metric)
{
    const int ranks = info->negatives.each > 0;
    switch (metric) {
    case DRPS_METRIC_RECALL:
    case DRPS_METRIC_NDCG:
        return ranks;
    case DRPS_METRIC_AUC:
        return ranks || (info->classification && !info->classes && !info->outputs);
    case DRPS_METRIC_ACCURACY:
        return info->classification && !info->outputs;
    case DRPS_METRIC_RMSE:
        return strcmp(info->loss, drps_loss_name(DRPS_LOSS_SQUARED)) == 0;
    default:
        return 1;
    }
}

int drps_learning_check_metric(const struct drps_plan *plan, const struct drps_train_options *o,
                               struct drps_err *err)
{
    const struct drps_plan_info *info = &plan->info;
    if (o->patience && !info->eval_batches)
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "patience needs test samples, and %s has none: make a plan that has some", plan->dir);
    if (has_metric(info, o->metric)) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "the metric %s is of %s, and %s has the %s loss%s: judge epochs by another",
                        names[o->metric],
                        o->metric == DRPS_METRIC_AUC      ? "two classes"
                        : o->metric >= DRPS_METRIC_RECALL ? "implicit feedback"
                        : o->metric == DRPS_METRIC_RMSE   ? "labels that are numbers"
                                                          : "classes",
                        plan->dir, info->loss, info->classes ? " of several classes" : "");
}
