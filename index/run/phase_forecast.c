/*
 * The phase that forecasts the I/O of an epoch of each part, for each store and several sizes of
 * memory (index/forecast/). It needs row lists and block uses, but no windows: it cuts its own.
 */
#include "index/forecast/drps_plan_forecast.h"
#include "index/run/run.h"

int drps_run_forecasts_later(const struct index_run *r)
{
    const struct drps_index_options *o = &r->options;
    return o->forecast_later && !o->no_forecast && !o->blocks.calibrate && r->parts_n == 1 &&
           drps_parts_fit(r->info, o->memory_bytes);
}

int drps_phase_forecast(struct index_run *r, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t i = r->own_first; i < r->own_end && rc == 0; i++) {
        struct part *part = &r->parts[i];
        rc = drps_plan_forecast(r->io, part->dir, &part->info, part->block_first,
                                r->options.memory_bytes / 2, part->forecast, DRPS_FORECASTS,
                                &part->forecasts, err);
    }
    return rc;
}
