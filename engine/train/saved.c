/*
 * Going on from a checkpoint in which a relay store has saved itself. Such a store can go on where
 * memory and disk are shared as they were. For any other store, or with less memory, its rows are
 * copied out first, into the run's own folder, which takes a part of the memory that the store had.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_size.h"
#include "engine/checkpoint/drps_checkpoint_files.h"
#include "engine/publish/drps_model_files.h"
#include "engine/train/job.h"

/* ---- Windows as they were ---- */

int drps_job_open_saved_windows(struct drps_job *job, struct drps_store_config *config,
                                struct drps_err *err)
{
    const struct drps_relay_saved *saved = &job->checkpoints.saved;
    struct drps_relay_share share;
    config->memory_bytes = saved->memory_bytes;
    config->seek_bytes = saved->seek_bytes;
    config->buffer_bytes = saved->buffer_bytes;
    config->chunk_bytes = saved->chunk_bytes;
    drps_relay_share(saved->memory_bytes, config->rows, config->row_bytes, saved->seek_bytes,
                     &share);
    if (saved->buffer_bytes) drps_relay_share_surely(saved->memory_bytes, config, &share);
    int rc = drps_job_try_windows(job, config, &share, err);
    if (rc < 0) return rc;
    if (rc && job->window_source.windows == saved->windows) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s has %llu windows of rows, the plan makes others of the same memory: "
                        "start anew",
                        drps_checkpoint_store(job->checkpoints.from),
                        (unsigned long long)saved->windows);
}

/* ---- Rows copied out ---- */

static int make_copy(struct drps_job *job, struct drps_err *err)
{
    char *root = drps_path_join(job->store_dir, DRPS_MODEL_SAVED);
    if (!root) return drps_err_set(err, -ENOMEM, "no memory to read a checkpoint");
    int rc = drps_checkpoints_init(&job->checkpoints.copy, job->plan->io, root, 0, err);
    free(root);
    return rc;
}

static int copy_rows(struct drps_job *job, const struct drps_store_config *config,
                     struct drps_err *err)
{
    struct drps_checkpoint_writer *w;
    uint64_t bytes;
    json_t *manifest = json_object();
    int rc = manifest ? make_copy(job, err) : drps_err_set(err, -ENOMEM, "no memory to copy rows");
    if (rc == 0)
        rc = drps_checkpoint_begin(&job->checkpoints.copy, 1, config->rows, config->row_bytes, &w,
                                   err);
    if (rc == 0) {
        rc = drps_relay_scan_saved(config, 0, drps_checkpoint_add, w, err);
        if (rc == 0)
            rc = drps_checkpoint_commit(w, manifest, &bytes, err);
        else
            drps_checkpoint_abort(w);
    }
    json_decref(manifest);
    return rc;
}

/* The windows that were cut to read the rows make room for the run's own. */
static void remove_windows(struct drps_job *job)
{
    static const char *const names[] = {DRPS_FILE_WINDOWS, DRPS_FILE_SLOTS, "runs", "scan"};
    const struct drps_io *io = job->plan->io;
    drps_windows_close(job->windows);
    job->windows = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char *path = drps_path_join(job->store_dir, names[i]);
        if (path) (void)io->ops->unlink(io->ctx, path);
        free(path);
    }
}

/* Memory while the run's own store is not open, and no model is written. */
static uint64_t room(const struct drps_job *job)
{
    const struct drps_memory *m = &job->memory;
    const uint64_t others = m->budget.used_bytes - m->store_bytes - m->export_bytes;
    return m->budget.limit_bytes > others ? m->budget.limit_bytes - others : 0;
}

static int check_memory(const struct drps_job *job, const struct drps_store_config *old,
                        struct drps_err *err)
{
    const uint64_t need = drps_relay_scan_saved_memory(old);
    char had[32], needs[32], has[32];
    if (need <= room(job)) return 0;
    return drps_err_set(
        err, DRPS_E_MEMORY_BUDGET,
        "%s was written by a store with %s of memory, and reading its rows takes %s; %s are left "
        "for that: raise the memory limit by the difference, for this run alone, or have "
        "checkpoints written with all rows",
        old->saved_dir, drps_size_format(old->memory_bytes, had, sizeof(had)),
        drps_size_format(need, needs, sizeof(needs)),
        drps_size_format(room(job), has, sizeof(has)));
}

static int copy_out(struct drps_job *job, const struct drps_store_config *config,
                    struct drps_err *err)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    struct drps_store_config old = *config;
    old.dir = job->store_dir;
    old.saved_dir = drps_checkpoint_store(c->from);
    old.open_steps = 1;
    old.device_frames = 0; /* its windows were cut without a device */
    int rc = drps_job_open_saved_windows(job, &old, err);
    if (rc < 0) return rc;
    old.windows = &job->window_source;
    rc = check_memory(job, &old, err);
    if (rc == 0) rc = copy_rows(job, &old, err);
    remove_windows(job);
    if (rc < 0) return rc;
    drps_checkpoint_close(c->from);
    c->from = NULL;
    return drps_checkpoint_open(&c->copy, 1, &c->from, err);
}

/* ---- Which of both ---- */

int drps_job_look_at_saved(struct drps_job *job, const struct drps_store_config *config,
                           struct drps_err *err)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    const struct drps_memory *m = &job->memory;
    const char *dir = c->from ? drps_checkpoint_store(c->from) : NULL;
    if (!dir) return 0;
    int rc = drps_relay_saved_about(job->plan->io, dir, &c->saved, err);
    if (rc < 0) return rc;
    if (c->saved.rows != config->rows || c->saved.row_bytes != config->row_bytes ||
        c->saved.epoch_step != c->state.part.step)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s contradicts %s", dir,
                            drps_checkpoint_path(c->from));
    c->continues = m->store == &drps_store_relay && c->saved.memory_bytes <= m->store_bytes;
    c->copies = !c->continues;
    return 0;
}

uint64_t drps_job_copy_space(const struct drps_job *job, uint64_t beside)
{
    const struct drps_relay_saved *saved = &job->checkpoints.saved;
    const uint64_t rows = saved->rows * saved->row_bytes;
    const uint64_t scan = rows + saved->rows * 2 * sizeof(uint32_t); /* while they are copied */
    if (job->checkpoints.replays)
        return job->checkpoints.state.rows * job->checkpoints.state.row_bytes;
    if (!job->checkpoints.copies) return 0;
    return rows + (scan > beside ? scan - beside : 0);
}

int drps_job_use_saved(struct drps_job *job, const struct drps_store_config *config,
                       struct drps_err *err)
{
    if (!job->checkpoints.copies) return 0;
    drps_log(job->options->log, DRPS_LOG_INFO, "copying the rows out of %s",
             drps_checkpoint_store(job->checkpoints.from));
    return copy_out(job, config, err);
}

void drps_job_remember_saves(struct drps_job *job)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    c->saves[0] = (struct drps_job_save){.number = c->from_number, .save = DRPS_STORE_RESTORED};
    c->saves[1] = (struct drps_job_save){.number = c->from_number - 1, .save = DRPS_STORE_OLDER};
    if (c->from_number == 1) job->server.ops->forget(job->server.store, DRPS_STORE_OLDER);
}
