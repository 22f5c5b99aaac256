/*
 * The phase that forecasts the I/O of an epoch of each part, for each store and several sizes of
 * memory (index/forecast/). It needs row lists and block uses, but no windows: it cuts its own.
 */
#include "index/run/run.h"

int drps_phase_forecast(struct index_run *r, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t i = r->own_first; i < r->own_end && rc == 0; i++) {
        struct part *part = &r->parts[i];
        const struct drps_window_options options = drps_part_windows(part, &r->options);
        rc = drps_forecast_curve(r->io, part->dir, &options, part->block_first, part->info.blocks,
                                 part->forecast, DRPS_FORECASTS, &part->forecasts, err);
    }
    return rc;
}
