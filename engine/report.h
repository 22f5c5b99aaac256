/* What a training run leaves in its model's manifest. Private to engine/. */
#ifndef DRPS_REPORT_H
#define DRPS_REPORT_H

#include <jansson.h>

#include "engine/drps_engine.h"

/* NULL when memory is gone. */
json_t *drps_report_json(const struct drps_train_options *options,
                         const struct drps_train_result *result);

#endif
