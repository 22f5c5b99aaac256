/* Early stopping: which epoch is the best one by the metric that was asked for, and when there were
 * enough that are not. */
#include <math.h>
#include <string.h>

#include "engine/train/job.h"

static const char *const names[DRPS_METRICS] = {
    [DRPS_METRIC_USUAL] = "loss", [DRPS_METRIC_LOSS] = "loss",         [DRPS_METRIC_AUC] = "auc",
    [DRPS_METRIC_RMSE] = "rmse",  [DRPS_METRIC_ACCURACY] = "accuracy",
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
    default:
        return q->loss;
    }
}

/* 1: models of the plan have it. */
static int has_metric(const struct drps_plan_info *info, enum drps_metric metric)
{
    switch (metric) {
    case DRPS_METRIC_AUC:
        return info->classification && !info->classes;
    case DRPS_METRIC_ACCURACY:
        return info->classification;
    case DRPS_METRIC_RMSE:
        return strcmp(info->loss, drps_loss_name(DRPS_LOSS_SQUARED)) == 0;
    default:
        return 1;
    }
}

int drps_job_check_metric(const struct drps_job *job, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    const struct drps_plan_info *info = &job->plan->info;
    if (o->patience && !info->eval_batches)
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "patience needs test samples, and %s has none: make a plan that has some",
            job->plan->dir);
    if (has_metric(info, o->metric)) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "the metric %s is of %s, and %s has the %s loss%s: judge epochs by another",
                        names[o->metric],
                        o->metric == DRPS_METRIC_AUC    ? "two classes"
                        : o->metric == DRPS_METRIC_RMSE ? "labels that are numbers"
                                                        : "classes",
                        job->plan->dir, info->loss, info->classes ? " of several classes" : "");
}

int drps_job_check_judged(const struct drps_job *job, struct drps_err *err)
{
    const struct drps_state *s = &job->checkpoints.state;
    if (!job->checkpoints.from || !s->best_epoch ||
        strcmp(names[s->metric], names[job->options->metric]) == 0)
        return 0;
    return drps_err_set(
        err, DRPS_E_CONFIG,
        "the epochs of %s were judged by the metric %s, not %s: go on with that one",
        drps_checkpoint_dir(job->checkpoints.from), names[s->metric], names[job->options->metric]);
}

int drps_job_is_out_of_patience(const struct drps_job *job, uint64_t epoch)
{
    const uint64_t best = job->result->best_epoch, patience = job->options->patience;
    return patience && best && epoch - best >= patience;
}

int drps_job_judge(struct drps_job *job, const struct drps_epoch *epoch, struct drps_err *err)
{
    struct drps_train_result *r = job->result;
    const double score = drps_metric_score(job->options->metric, &epoch->test);
    if (isnan(score))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the test samples of %s have no %s, as all are of one class: judge "
                            "epochs by another metric",
                            job->plan->dir, names[job->options->metric]);
    if (score < job->best_score) {
        job->best_score = score;
        int rc = drps_job_export(job, epoch->epoch, err);
        if (rc == 0) r->best_epoch = epoch->epoch;
        return rc;
    }
    r->stopped_early = drps_job_is_out_of_patience(job, epoch->epoch);
    return r->stopped_early;
}
