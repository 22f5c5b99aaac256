/* Calibrated predictions: a model's calibration applied to scores, made anew, and looked at.
 * Private to engine/predict/. */
#ifndef DRPS_ENGINE_PREDICT_CALIBRATE_H
#define DRPS_ENGINE_PREDICT_CALIBRATE_H

#include "engine/predict/drps_predict.h"
#include "engine/publish/drps_modeldir.h"

/* The calibration that scores go through: the model's, unless options say otherwise; NULL: none. */
const struct drps_calibration *drps_calibration_in_effect(const struct drps_predict_options *o,
                                                          const struct drps_modeldir_info *info);

/* DRPS_E_CONFIG: the options want what this model has not. */
DRPS_MUST_CHECK
int drps_calibrate_check(const struct drps_predict_options *o,
                         const struct drps_modeldir_info *info, struct drps_err *err);

/* Scores [n]: the log-odds of the probabilities that `c` makes of them take their place. */
void drps_calibrate_scores(const struct drps_calibration *c, float *scores, size_t n);

/* All samples are in `metrics`: fit what is wanted, keep it in the model, and fill in result->curve
 * and result->before. */
DRPS_MUST_CHECK
int drps_calibrate_finish(const struct drps_io *io, const struct drps_predict_options *o,
                          const struct drps_modeldir_info *info, struct drps_metrics *metrics,
                          struct drps_predict_result *result, struct drps_err *err);

/* Take the model's calibration out, which needs no data. */
DRPS_MUST_CHECK
int drps_calibrate_remove(const struct drps_io *io, const struct drps_predict_options *o,
                          struct drps_predict_result *result, struct drps_err *err);

#endif
