/* The report of a training run, with the names of its classes and what pilots found before it. */
#include "api/report/drps_train_report.h"

#include "base/folder/drps_manifest.h"
#include "engine/train/drps_report.h"

json_t *drps_train_json(const struct drps_train_settings *o, const struct drps_plan_info *plan,
                        const struct drps_train_result *r, const struct drps_found *found)
{
    json_t *j = drps_report_json(&o->train, r);
    if (plan->classes) drps_manifest_put(&j, "classes", drps_classes_to_json(plan->classes));
    if (o->chooses_rate) drps_manifest_put(&j, "auto", drps_rates_json(&found->rates));
    if (o->filter_target > 0)
        drps_manifest_put(&j, "filter_target", drps_target_json(&found->target));
    return j;
}
