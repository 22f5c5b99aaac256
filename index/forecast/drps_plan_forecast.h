/* The forecast that plan.json keeps of a plan. It is made with the plan, or, where it was left for
 * later, when somebody asks for it. */
#ifndef DRPS_INDEX_FORECAST_PLAN_FORECAST_H
#define DRPS_INDEX_FORECAST_PLAN_FORECAST_H

#include "base/drps_log.h"
#include "index/plan/drps_plan.h"
#include "index/plan/drps_window.h"

/*
 * Make the forecast of the plan, or part, in `dir`, whose blocks have the rows block_first
 * [info->blocks + 1]; out has room for `cap` entries, *n_out are filled. Row lists and uses of
 * blocks must be there, windows need not. What it says does not depend on memory_bytes, which it
 * may use, unless these are too few to count all sizes in one pass.
 */
DRPS_MUST_CHECK
int drps_plan_forecast(const struct drps_io *io, const char *dir, const struct drps_plan_info *info,
                       const uint32_t *block_first, uint64_t memory_bytes,
                       struct drps_forecast *out, size_t cap, size_t *n_out, struct drps_err *err);

/* A new json_t list, as plan.json has it; NULL: no memory. */
void *drps_forecast_to_json(const struct drps_forecast *list, size_t n);

/*
 * Give an open plan the forecast that was left for later, as the member "forecast" of plan->json.
 * Nothing is written. A plan that has one, that was told to have none, or that is for several
 * workers stays as it is. It takes as long as in the run that made the plan, and as much memory,
 * but no more than half of what is available. Where it cannot be made, as where files of the plan
 * are damaged, the plan has none, which is told as a warning. DRPS_E_INTERRUPTED alone is returned.
 */
DRPS_MUST_CHECK
int drps_plan_complete_forecast(struct drps_plan *plan, const struct drps_log *log,
                                struct drps_err *err);

#endif
