/*
 * The forecast in seconds, where the machine was measured: its disk before the run, its arithmetic
 * on the batches of the first part, once they are there.
 */
#include "index/run/run.h"

#include <string.h>

#include "storage/relay/drps_relay.h"

/* Reads of an epoch of a relay store with that memory, in the chunks that it would take on this
 * disk; 0 of other stores. */
static uint64_t chunk_reads(const struct drps_plan_info *info, const struct drps_forecast *f)
{
    const struct drps_window_source windows = {.windows = (uint32_t)f->windows};
    const struct drps_store_config config = {.rows = info->rows,
                                             .row_bytes = (size_t)info->row_bytes,
                                             .step.rows = info->ranks.max_round_rows,
                                             .seek_bytes =
                                                 drps_disk_pace_seek_bytes(&info->speeds.pace),
                                             .windows = &windows};
    if (strcmp(f->store, "relay") != 0 || !f->windows || !f->read_bytes) return 0;
    const uint64_t frames = f->memory_bytes / info->row_bytes;
    const uint64_t chunk =
        drps_relay_forecast_chunk(&config, frames, f->read_bytes / info->row_bytes);
    return (f->read_bytes + chunk - 1) / chunk;
}

static void price(const struct drps_plan_info *info, struct drps_forecast *f)
{
    const struct drps_epoch_work work = {.samples = drps_plan_own_samples(info, info->samples),
                                         .test_samples =
                                             drps_plan_own_samples(info, info->test_samples),
                                         .read_bytes = f->read_bytes,
                                         .written_bytes = f->written_bytes,
                                         .requests = f->ios,
                                         .apart = chunk_reads(info, f)};
    if (f->feasible) f->seconds = drps_speeds_price(&info->speeds, &work);
}

static void price_part(struct part *part, const struct drps_speeds *speeds)
{
    part->info.speeds = *speeds;
    for (size_t i = 0; i < part->forecasts; i++)
        price(&part->info, &part->forecast[i]);
}

static int measure(struct index_run *r, struct drps_speeds *speeds, struct drps_err *err)
{
    const struct drps_plan first = {.io = r->io,
                                    .dir = r->parts[r->own_first].dir,
                                    .info = r->parts[r->own_first].info,
                                    .fields = r->fields};
    return r->options.arithmetic(&first, r->options.memory_bytes, speeds, err);
}

/* Fills in the seconds of the forecast. A run goes on without them where arithmetic cannot be
 * measured: a warning says why. */
int drps_run_price(struct index_run *r, struct drps_err *err)
{
    struct drps_speeds speeds = r->info->speeds;
    struct drps_err why = DRPS_ERR_INIT;
    r->info->speeds = (struct drps_speeds){0};
    if (!r->options.blocks.calibrate || !r->options.arithmetic) return 0;
    int rc = measure(r, &speeds, &why);
    if (rc == DRPS_E_INTERRUPTED) return drps_err_set(err, rc, "%s", why.text);
    if (rc != 0) {
        drps_log(r->options.log, DRPS_LOG_WARN, "no forecast of time: %s",
                 rc < 0 ? why.text : "arithmetic cannot be measured on this plan");
        return 0;
    }
    drps_log(r->options.log, DRPS_LOG_INFO,
             "one thread trains %.0f samples a second, and scores %.0f, with all rows in memory",
             1e9 / speeds.sample_ns, 1e9 / speeds.test_sample_ns);
    r->info->speeds = speeds;
    for (uint32_t i = r->own_first; i < r->own_end; i++)
        price_part(&r->parts[i], &speeds);
    return 0;
}
