/* How much memory a run needs, found without training: for drps_train_needs(). */
#include <errno.h>
#include <stdlib.h>

#include "engine/drps_engine.h"
#include "engine/train/job.h"
#include "storage/relay/drps_relay.h"

/* The bytes of rows, as the plan counts them, that a relay store holds with so much memory. */
static uint64_t held_rows_bytes(const struct drps_job *job, const struct drps_store_config *config)
{
    const struct drps_plan_info *info = &job->plan->info;
    struct drps_relay_share share;
    drps_relay_share(job->memory.relay_bytes, config->rows, config->row_bytes, config->seek_bytes,
                     &share);
    const uint64_t rows = share.row_bytes ? share.budget_bytes / share.row_bytes : 0;
    return (rows < info->rows ? rows : info->rows) * info->row_bytes;
}

static int find_needs(struct drps_job *job, struct drps_train_needs *out, struct drps_err *err)
{
    struct drps_store_config config;
    struct drps_memory_parts parts;
    int rc = drps_job_prepare_parts(job, &config, &parts, err);
    if (rc == 0) rc = drps_memory_needs(&parts, &out->least_bytes, &out->all_rows_bytes, err);
    if (rc < 0) return rc;
    const int split = drps_memory_split(&job->memory, &parts, NULL);
    if (split < 0 && split != DRPS_E_MEMORY_BUDGET) return split;
    out->fits = split == 0;
    out->keeps_all_rows = split == 0 && drps_memory_has_all_rows(&job->memory);
    if (split == 0 && job->memory.relay_bytes) out->held_rows_bytes = held_rows_bytes(job, &config);
    return 0;
}

int drps_train_needs(const struct drps_plan *plan, const struct drps_train_options *options,
                     struct drps_train_needs *out, struct drps_err *err)
{
    struct drps_train_options o = *options;
    struct drps_train_result unused = {0};
    struct drps_err unread = DRPS_ERR_INIT;

    *out = (struct drps_train_needs){0};
    if (!o.epochs) o.epochs = 1;
    struct drps_job *job = calloc(1, sizeof(*job));
    if (!job) return drps_err_set(err, -ENOMEM, "no memory to look at the plan");
    job->plan = plan;
    job->ranks = plan->info.ranks.count > 1;
    job->options = &o;
    job->result = &unused;
    int rc = find_needs(job, out, err ? err : &unread);
    drps_on_device_close(&job->device);
    drps_uses_close(job->uses);
    drps_feed_close(job->feed);
    free(job->block_first);
    free(job);
    return rc;
}
