/* How a training run went, with what pilots found before it. Shared with tools/. */
#ifndef DRPS_API_TRAIN_REPORT_H
#define DRPS_API_TRAIN_REPORT_H

#include "api/report/drps_pilots_json.h"
#include "api/settings/drps_train_settings.h"

/* What pilots have found, where the settings ask for it. */
struct drps_found {
    struct drps_rates rates;
    struct drps_target target;
};

/* The report that model.json has, too, and what stands beside it there; and what pilots came to, if
 * there were any. NULL: memory is gone. */
json_t *drps_train_json(const struct drps_train_settings *o, const struct drps_plan_info *plan,
                        const struct drps_train_result *r, const struct drps_found *found);

#endif
