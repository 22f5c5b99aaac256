#include "index/forecast/drps_plan_forecast.h"

#include <errno.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/drps_size.h"
#include "base/folder/drps_manifest.h"

enum { FORECASTS_MOST = 24, MEMORY_LEAST = 64 << 20 };

int drps_plan_forecast(const struct drps_io *io, const char *dir, const struct drps_plan_info *info,
                       const uint32_t *block_first, uint64_t memory_bytes,
                       struct drps_forecast *out, size_t cap, size_t *n_out, struct drps_err *err)
{
    const struct drps_window_options options = {.steps = info->batches + info->eval_batches,
                                                .train_steps = info->batches,
                                                .rows = info->rows,
                                                .row_bytes = info->row_bytes,
                                                .memory_bytes = memory_bytes};
    return drps_forecast_curve(io, dir, &options, block_first, info->blocks, out, cap, n_out, err);
}

static json_t *one_to_json(const struct drps_forecast *f)
{
    json_t *j =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:f}", "store", f->store, "memory_bytes",
                  (json_int_t)f->memory_bytes, "windows", (json_int_t)f->windows, "read_bytes",
                  (json_int_t)f->read_bytes, "written_bytes", (json_int_t)f->written_bytes, "ios",
                  (json_int_t)f->ios, "feasible", f->feasible, "sampled", f->sampled);
    if (f->seconds.epoch > 0)
        drps_manifest_put(&j, "seconds", drps_epoch_seconds_to_json(&f->seconds));
    return j;
}

void *drps_forecast_to_json(const struct drps_forecast *list, size_t n)
{
    json_t *j = json_array();
    for (size_t i = 0; i < n; i++)
        drps_manifest_append(&j, one_to_json(&list[i]));
    return j;
}

static int make(struct drps_plan *plan, const uint32_t *block_first, struct drps_err *err)
{
    const struct drps_plan_info *info = &plan->info;
    const uint64_t wanted =
        info->memory_bytes > MEMORY_LEAST ? info->memory_bytes : (uint64_t)MEMORY_LEAST;
    const uint64_t there = drps_memory_available();
    const uint64_t memory = wanted < there ? wanted : there;
    struct drps_forecast list[FORECASTS_MOST];
    size_t n;
    int rc = drps_plan_forecast(plan->io, plan->dir, info, block_first, memory / 2, list,
                                FORECASTS_MOST, &n, err);
    if (rc < 0) return rc;
    json_t *j = drps_forecast_to_json(list, n);
    return j && json_object_set_new(plan->json, "forecast", j) == 0
               ? 0
               : drps_err_set(err, -ENOMEM, "no memory for the forecast");
}

int drps_plan_complete_forecast(struct drps_plan *plan, const struct drps_log *log,
                                struct drps_err *err)
{
    struct drps_err why = DRPS_ERR_INIT;
    uint32_t *block_first;
    if (json_object_get(plan->json, "forecast") || drps_plan_shape(&plan->info) != DRPS_PLAN_ONE)
        return 0;
    int rc = drps_plan_blocks(plan, &block_first, &why);
    if (rc == 0) rc = make(plan, block_first, &why);
    free(block_first);
    if (rc == DRPS_E_INTERRUPTED) return drps_err_set(err, rc, "%s", why.text);
    if (rc < 0) drps_log(log, DRPS_LOG_WARN, "no forecast of disk traffic: %s", why.text);
    return 0;
}
