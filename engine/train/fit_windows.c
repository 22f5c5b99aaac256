/* Windows that fit the memory: of the plan, or cut for the run. */
#include "engine/train/job.h"

#include "storage/relay/drps_relay.h"

int drps_job_try_windows(struct drps_job *job, const struct drps_store_config *config,
                         const struct drps_relay_share *share, struct drps_err *err)
{
    const struct drps_windows_options options = {.plan = job->plan,
                                                 .dir = job->store_dir,
                                                 .share = share,
                                                 .epochs = drps_job_epochs_left(job),
                                                 .memory_bytes = job->memory.store_bytes,
                                                 .stop = job->options->stop,
                                                 .log = job->options->log};
    const uint64_t two_steps = 2 * config->step.rows;
    const uint64_t rows = two_steps < config->rows ? two_steps : config->rows;
    if (drps_relay_open_bytes(share) < rows * share->row_bytes) return 0;
    int rc = drps_windows_open(&options, &job->windows, &job->window_source, err);
    if (rc < 0) return rc;
    if (drps_relay_fits(share, job->window_source.windows)) return 1;
    drps_log(job->options->log, DRPS_LOG_INFO, "%u windows are too many for the memory",
             job->window_source.windows);
    drps_windows_close(job->windows);
    job->windows = NULL;
    return 0;
}

/* The usual share, in windows for which a device has room, if there is one. */
static int try_usual(struct drps_job *job, const struct drps_store_config *config,
                     struct drps_err *err)
{
    struct drps_relay_share share;
    drps_relay_share(job->memory.relay_bytes, config->rows, config->row_bytes, config->seek_bytes,
                     &share);
    share.most_rows = config->device_frames;
    return drps_job_try_windows(job, config, &share, err);
}

int drps_job_fit_windows(struct drps_job *job, struct drps_store_config *config,
                         struct drps_err *err)
{
    const uint64_t memory = job->memory.relay_bytes;
    struct drps_relay_share share;
    int rc = try_usual(job, config, err);
    if (rc == 0 && config->seek_bytes) {
        config->seek_bytes = 0;
        rc = try_usual(job, config, err);
    }
    if (rc) return rc;
    drps_relay_share_surely(memory, config, &share);
    config->buffer_bytes = share.buffer_bytes;
    rc = drps_job_try_windows(job, config, &share, err);
    if (rc) return rc;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "%s: its steps have more rows than " DRPS_FILE_MANIFEST
                        " says: make the plan anew",
                        job->plan->dir);
}
