/*
 * Checkpoints of vectors: a run that logs what its ranks apply in each round, beside checkpoints of
 * rows that are written when the logs have become as large. Each rank logs on its own; checkpoints
 * are written by all together. One process without ranks logs its steps, and has all rows in its
 * store.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "engine/publish/drps_model_files.h"
#include "engine/train/job.h"

enum { SYNC_SECONDS = 10 }; /* where the options do not say */

/* ---- Replaying ---- */

/* The rounds have said all that the state lacks. */
static int take_replay(struct drps_job *job, const struct drps_round_replay *r,
                       struct drps_err *err)
{
    struct drps_state *s = &job->checkpoints.state;
    for (uint64_t e = 1; e < s->epoch; e++)
        if (s->done[e - 1].epoch != e)
            return drps_err_set(err, DRPS_E_CORRUPT, "%s: the log has no results of epoch %" PRIu64,
                                drps_checkpoint_dir(job->checkpoints.from), e);
    s->part.samples = r->last.samples;
    s->part.loss = r->last.loss;
    s->part.ns = r->last.ns;
    return s->part.samples <= job->plan->info.samples
               ? 0
               : drps_err_set(err, DRPS_E_CORRUPT, "%s: the log contradicts its plan",
                              drps_checkpoint_dir(job->checkpoints.from));
}

/* Writes the rows as a checkpoint of the run's own, which takes the place of `from`. */
static int put_copy(struct drps_job *job, const struct drps_store_config *config,
                    const void *matrix, struct drps_err *err)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    struct drps_checkpoint_writer *w;
    uint64_t bytes;
    char *root = drps_path_join(job->store_dir, DRPS_MODEL_SAVED);
    json_t *manifest = json_object();
    int rc = root && manifest ? drps_checkpoints_init(&c->copy, job->plan->io, root, 0, err)
                              : drps_err_set(err, -ENOMEM, "no memory to restore a round");
    if (rc == 0) rc = drps_checkpoint_begin(&c->copy, 1, config->rows, config->row_bytes, &w, err);
    if (rc == 0) {
        rc = drps_checkpoint_add(w, 0, (size_t)config->rows, matrix, err);
        if (rc == 0)
            rc = drps_checkpoint_commit(w, manifest, &bytes, err);
        else
            drps_checkpoint_abort(w);
    }
    json_decref(manifest);
    free(root);
    if (rc < 0) return rc;
    drps_checkpoint_close(c->from);
    c->from = NULL;
    return drps_checkpoint_open(&c->copy, 1, &c->from, err);
}

int drps_job_replay(struct drps_job *job, const struct drps_store_config *config,
                    struct drps_err *err)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    struct drps_round_replay r = {.server = &job->server,
                                  .touches = job->worker_size.touches,
                                  .rows = config->rows,
                                  .batches = job->plan->info.batches,
                                  .done = c->state.done,
                                  .epochs = c->state.epoch - 1};
    if (!c->replays) return 0;
    void *matrix = drps_array_new((size_t)config->rows, config->row_bytes);
    if (!matrix) return drps_err_set(err, -ENOMEM, "no memory to restore a round");
    int rc = drps_round_replay(&r, job->plan->io, c->from, c->round, matrix, err);
    if (rc == 0) rc = take_replay(job, &r, err);
    if (rc == 0) rc = put_copy(job, config, matrix, err);
    free(matrix);
    return rc;
}

/* ---- Logging ---- */

uint32_t drps_job_logged_batches(const struct drps_job *job)
{
    return job->ranks ? job->plan->info.ranks.count : job->worker_size.members;
}

int drps_job_new_log(struct drps_job *job, struct drps_err *err)
{
    const struct drps_round_log_job log = {.info = &job->plan->info,
                                           .server = &job->server,
                                           .batches = drps_job_logged_batches(job),
                                           .least_bytes = job->options->checkpoint_log_bytes,
                                           .background = !job->options->no_overlap};
    return job->options->checkpoint_vectors ? drps_round_log_new(&log, &job->log, err) : 0;
}

/* What is logged from now on would not follow on what is durable. */
static void give_up(struct drps_job *job, const struct drps_err *why)
{
    drps_round_log_close(job->log);
    job->result->checkpoints.failed++;
    drps_log(job->options->log, DRPS_LOG_WARN,
             "vectors are not logged until the next checkpoint, training goes on: %s", why->text);
}

void drps_job_log_after(struct drps_job *job, uint64_t number, const struct drps_state *state)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    struct drps_err why = DRPS_ERR_INIT;
    c->synced_round = drps_job_round(job, state->epoch, state->part.step);
    c->synced_ns = drps_clock_ns();
    c->told_round = c->synced_round;
    if (drps_round_log_open(job->log, &c->place, number, c->synced_round, &why) < 0)
        give_up(job, &why);
}

int drps_job_begin_log(struct drps_job *job, struct drps_err *err)
{
    const struct drps_job_checkpoints *c = &job->checkpoints;
    uint64_t without = 1;
    if (!job->log) return 0;
    if (c->logged) {
        drps_job_log_after(job, c->from_number, &c->state);
        without = !drps_round_log_is_open(job->log);
    }
    int rc = job->ranks ? drps_cluster_least(&job->cluster, &without, err) : 0;
    return rc < 0 ? rc : without != 0;
}

/* Rounds up to this one are durable, which is told as a checkpoint is. */
static void tell(struct drps_job *job, uint64_t round)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    const uint64_t batches = job->plan->info.batches;
    if (round <= c->told_round || !job->options->on_checkpoint) return;
    const uint64_t epoch = (round - 1) / batches + 1;
    const struct drps_train_cut cut = {
        .number = c->newest, .epoch = epoch, .step = round - (epoch - 1) * batches};
    c->told_round = round;
    job->options->on_checkpoint(job->options->ctx, &cut);
}

void drps_job_sync_log(struct drps_job *job)
{
    struct drps_err why = DRPS_ERR_INIT;
    const uint64_t start = drps_clock_ns();
    if (drps_round_log_sync(job->log, &why) < 0) give_up(job, &why);
    job->result->checkpoints.seconds += drps_seconds_since(start);
}

/* What was flushed before is durable then. */
static void flush(struct drps_job *job, uint64_t round)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    struct drps_err why = DRPS_ERR_INIT;
    const uint64_t start = drps_clock_ns();
    if (drps_round_log_flush(job->log, &why) < 0) give_up(job, &why);
    job->result->checkpoints.seconds += drps_seconds_since(start);
    if (drps_round_log_is_open(job->log)) tell(job, c->synced_round);
    c->synced_round = round;
    c->synced_ns = drps_clock_ns();
}

static int is_sync_due(const struct drps_job *job, uint64_t round)
{
    const struct drps_job_checkpoints *c = &job->checkpoints;
    const struct drps_checkpoint_every *every = &job->options->checkpoint_every;
    const uint64_t rounds = round - c->synced_round, second = UINT64_C(1000000000);
    switch (every->unit) {
    case DRPS_CHECKPOINT_BATCHES:
        return rounds >= every->n;
    case DRPS_CHECKPOINT_EPOCHS:
        return rounds / job->plan->info.batches >= every->n;
    case DRPS_CHECKPOINT_SECONDS:
        return (drps_clock_ns() - c->synced_ns) / second >= every->n;
    default:
        return (drps_clock_ns() - c->synced_ns) / second >= SYNC_SECONDS;
    }
}

/* Logs the round. The frames of the resident store are row numbers: its rows lie one behind another
 * from where those of a step have their base. */
static int log_round(struct drps_job *job, uint64_t round, const struct drps_round_note *note,
                     struct drps_err *err)
{
    const struct drps_rows *rows = &job->server.rows;
    if (job->exchange)
        return drps_round_log_end(job->log, round, drps_exchange_replica(job->exchange), note, err);
    int rc = drps_round_log_take_step(job->log, &job->worker, rows->index, err);
    return rc == 0 ? drps_round_log_end(job->log, round, rows->base, note, err) : rc;
}

int drps_job_end_round(void *ctx, uint64_t epoch, const struct drps_epoch_part *done,
                       struct drps_err *err)
{
    struct drps_job *job = ctx;
    struct drps_err why = DRPS_ERR_INIT;
    const struct drps_train_result *r = job->result;
    const uint64_t round = drps_job_round(job, epoch, done->step);
    const struct drps_round_note note = {
        .samples = done->samples,
        .loss = done->loss,
        .ns = done->ns,
        .done = done->step == 1 && r->epochs_n ? &r->epochs[r->epochs_n - 1] : NULL};
    (void)err; /* a log that cannot be written ends no run */
    if (log_round(job, round, &note, &why) < 0) give_up(job, &why);
    if (is_sync_due(job, round)) flush(job, round);
    /* After an epoch's last round it waits until the epoch is evaluated. */
    return done->step < job->plan->info.batches && drps_round_log_due(job->log);
}
