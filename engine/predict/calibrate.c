/* Calibrated predictions. A calibration makes probabilities of scores; their log-odds replace the
 * scores before anything looks at them. So metrics are those of the probabilities that are
 * written. */
#include "engine/predict/calibrate.h"

#include <math.h>
#include <stdlib.h>

static int wants(const struct drps_predict_options *o)
{
    return o->calibrate || o->curve_bins;
}

const struct drps_calibration *drps_calibration_in_effect(const struct drps_predict_options *o,
                                                          const struct drps_modeldir_info *info)
{
    return info->calibration.kind && !o->uncalibrated && !o->calibrate ? &info->calibration : NULL;
}

static int has_log_odds(const struct drps_model *model)
{
    return model->loss == DRPS_LOSS_LOGISTIC;
}

static int has_margins(const struct drps_model *model)
{
    return model->loss == DRPS_LOSS_HINGE || model->loss == DRPS_LOSS_SQUARED_HINGE;
}

int drps_calibrate_check(const struct drps_predict_options *o,
                         const struct drps_modeldir_info *info, struct drps_err *err)
{
    const struct drps_model *model = &info->model;
    if (!wants(o)) return 0;
    if (o->explain || o->value || o->probabilities)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "calibration goes with scores alone: ask for explanations, values and "
                            "probabilities of classes without it");
    if (model->outputs > 1 || info->classes || !(has_log_odds(model) || has_margins(model)))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s has no score that a probability of two labels can be made of: "
                            "algorithm %s, %s loss",
                            o->model, drps_algo_name(model->algo), drps_loss_name(model->loss));
    if (has_margins(model) && !o->calibrate && !drps_calibration_in_effect(o, info))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "scores of %s are margins, no probabilities: calibrate it first",
                            o->model);
    return 0;
}

/* The log-odds of a probability; those of 0 and 1 are what a double has nearest to them. */
static double log_odds(double p)
{
    const double least = 1e-15;
    const double inside = fmin(fmax(p, least), 1 - least);
    return log(inside / (1 - inside));
}

void drps_calibrate_scores(const struct drps_calibration *c, float *scores, size_t n)
{
    for (size_t i = 0; i < n; i++)
        scores[i] = c->kind == DRPS_CALIBRATION_PLATT
                        ? (float)-(c->a * (double)scores[i] + c->b)
                        : (float)log_odds(drps_calibration_apply(c, (double)scores[i]));
}

/* Refuses too few samples: their probabilities would be wrong, and nothing would show it
 * afterwards. */
static int check_enough(const char *model, const struct drps_score_point *points, size_t n,
                        struct drps_err *err)
{
    double larger = 0, smaller = 0;
    for (size_t i = 0; i < n; i++) {
        larger += points[i].positive;
        smaller += points[i].negative;
    }
    if (larger + smaller >= DRPS_CALIBRATION_SAMPLES_LEAST &&
        larger >= DRPS_CALIBRATION_LABEL_LEAST && smaller >= DRPS_CALIBRATION_LABEL_LEAST)
        return 0;
    return drps_err_set(
        err, DRPS_E_CONFIG,
        "the calibration of %s stays as it was: a new one needs at least %d samples, %d "
        "of each label: the data have %.9g of the larger label and %.9g of the "
        "smaller one",
        model, DRPS_CALIBRATION_SAMPLES_LEAST, DRPS_CALIBRATION_LABEL_LEAST, larger, smaller);
}

static int make(const struct drps_io *io, const struct drps_predict_options *o,
                const struct drps_modeldir_info *info, const struct drps_score_point *points,
                size_t n, struct drps_calibration *made, struct drps_predict_result *result,
                struct drps_err *err)
{
    const enum drps_calibration_kind kind = o->calibrate - 1;
    int rc = kind ? check_enough(o->model, points, n, err) : 0;
    if (rc == 0) rc = drps_calibration_fit(kind, points, n, made, err);
    if (rc == 0) rc = drps_modeldir_calibrate(io, o->model, info->content, made, err);
    if (rc < 0) return rc;
    result->replaced = info->calibration.kind;
    result->replaced_samples = info->calibration.samples;
    return 0;
}

int drps_calibrate_finish(const struct drps_io *io, const struct drps_predict_options *o,
                          const struct drps_modeldir_info *info, struct drps_metrics *metrics,
                          struct drps_predict_result *result, struct drps_err *err)
{
    const size_t bins = o->curve_bins ? o->curve_bins : DRPS_CALIBRATION_BINS;
    struct drps_calibration made = {.kind = DRPS_CALIBRATION_NONE};
    struct drps_score_point *points;
    size_t n;
    if (!wants(o)) return 0;
    int rc = drps_metrics_points(metrics, &points, &n, err);
    if (rc == 0 && o->calibrate > 1 && has_log_odds(&info->model))
        rc = drps_calibration_measure(NULL, points, n, bins, &result->before, err);
    if (rc == 0 && o->calibrate) rc = make(io, o, info, points, n, &made, result, err);
    if (rc == 0 && (has_log_odds(&info->model) || !o->calibrate || made.kind))
        rc = drps_calibration_measure(&made, points, n, bins, &result->curve, err);
    drps_calibration_free(&made);
    free(points);
    return rc;
}

int drps_calibrate_remove(const struct drps_io *io, const struct drps_predict_options *o,
                          struct drps_predict_result *result, struct drps_err *err)
{
    struct drps_calibration none = {.kind = DRPS_CALIBRATION_NONE};
    struct drps_modeldir *md;
    int rc = drps_modeldir_open(io, o->model, 0, &md, err);
    if (rc == 0) rc = make(io, o, drps_modeldir_info(md), NULL, 0, &none, result, err);
    drps_modeldir_close(md);
    return rc;
}
