/* What predicting and recommending into files came to, as JSON. Shared with tools/. */
#ifndef DRPS_API_FILES_JSON_H
#define DRPS_API_FILES_JSON_H

#include <jansson.h>

#include "engine/predict/drps_predict.h"
#include "engine/recommend/drps_recommend.h"

/* NULL when memory is gone. */
json_t *drps_predict_json(const struct drps_predict_options *o,
                          const struct drps_predict_result *r);
json_t *drps_recommend_json(const struct drps_recommend_options *o,
                            const struct drps_recommend_result *r);

#endif
