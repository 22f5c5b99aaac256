/* What is said of a prediction that is hardly what was wanted. Private to engine/predict/. */
#ifndef DRPS_ENGINE_PREDICT_WARNINGS_H
#define DRPS_ENGINE_PREDICT_WARNINGS_H

#include "engine/predict/drps_predict.h"
#include "engine/publish/drps_modeldata.h"

/* Warn that there was no sample. DRPS_E_CONFIG: the options measure or make something of samples.
 */
DRPS_MUST_CHECK
int drps_predict_check_samples(const struct drps_predict_options *o,
                               const struct drps_predict_result *r, struct drps_err *err);

/* At the end: warn where the model knows few features of the data, or none, or none of the labels
 * that were measured. `data` is open. */
void drps_predict_warn(const struct drps_predict_options *o, const struct drps_modeldata *data,
                       const struct drps_predict_result *r);

#endif
