/*
 * A training run from options to model. Everything that can be refused is refused before a file is
 * made (prepare.c); everything that is made lies in the model's partial folder (start.c), which is
 * renamed at the very end or removed, but for what was trained (export.c).
 */
#include "engine/train/job.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_clock.h"
#include "engine/train/learning/drps_learning.h"
#include "storage/kv/drps_kv.h"

static_assert(sizeof((struct drps_train_result){0}.device) == DRPS_DEVICE_NAME_BYTES,
              "the result has the name of the device");

/* ---- Epochs ---- */

static int keep_epoch(struct drps_job *job, const struct drps_epoch *epoch, struct drps_err *err)
{
    struct drps_train_result *r = job->result;
    struct drps_epoch *grown = realloc(r->epochs, (r->epochs_n + 1) * sizeof(*grown));
    if (!grown)
        return drps_err_set(err, -ENOMEM, "no memory for the results of epoch %llu",
                            (unsigned long long)epoch->epoch);
    r->epochs = grown;
    r->epochs[r->epochs_n++] = *epoch;
    drps_watch_epoch(job->watch, epoch);
    if (job->options->on_epoch) job->options->on_epoch(job->options->ctx, epoch);
    return 0;
}

/* Whether too many epochs up to `epoch` were no better than the best one. */
static int is_out_of_patience(const struct drps_job *job, uint64_t epoch)
{
    const uint64_t best = job->result->best_epoch, patience = job->options->patience;
    return patience && best && epoch - best >= patience;
}

/* Early stopping: write what is better than all before. Returns 1 when patience has run out. */
static int judge_epoch(struct drps_job *job, const struct drps_epoch *epoch, struct drps_err *err)
{
    struct drps_train_result *r = job->result;
    const double score = drps_metric_score(job->options->metric, &epoch->test);
    if (isnan(score))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the test samples of %s have no %s, as all are of one class: judge "
                            "epochs by another metric",
                            job->plan->dir, drps_metric_name(job->options->metric));
    if (score < job->best_score) {
        job->best_score = score;
        int rc = drps_job_export(job, epoch->epoch, err);
        if (rc == 0) r->best_epoch = epoch->epoch;
        return rc;
    }
    r->stopped_early = is_out_of_patience(job, epoch->epoch);
    return r->stopped_early;
}

static int test_loss_diverged(const struct drps_job *job, uint64_t epoch, struct drps_err *err)
{
    const struct drps_err *why = &job->worker.why;
    return drps_err_set(err, -ERANGE, "the test loss of epoch %llu is no finite number: %s",
                        (unsigned long long)epoch,
                        why->code ? why->text : "try a smaller learning rate");
}

/* Training ends where it diverges: with the best epoch before, if patience has one, as the model.
 */
static int end_diverged(struct drps_job *job, uint64_t epoch, struct drps_err *err)
{
    struct drps_train_result *r = job->result;
    r->diverged_epoch = epoch;
    if (!r->best_epoch) return drps_err_context(err, "no model is written");
    if (job->whole)
        drps_log(job->options->log, DRPS_LOG_WARN, "%s; the model is that of epoch %llu", err->text,
                 (unsigned long long)r->best_epoch);
    drps_err_clear(err);
    r->stopped_early = 1;
    return 0;
}

/* Whether a run was stopped among batches of asynchronous rounds, where ranks are at none in
 * common. */
static int is_between(const struct drps_job *job, const struct drps_epoch_part *done)
{
    const uint64_t all = job->plan->info.batches * job->cluster.count;
    return job->async && done->step && drps_async_done(job->async) < all;
}

/* What was done is kept, as a checkpoint, too. */
static int interrupt(struct drps_job *job, uint64_t epoch, struct drps_err *err)
{
    const struct drps_epoch_part *done = &job->loop.stopped;
    job->result->interrupted = 1;
    job->result->steps = job->loop.stopped_at;
    drps_err_clear(err); /* not a failure */
    if (job->options->checkpoint_every.unit == DRPS_CHECKPOINT_NEVER) return 0;
    if (is_between(job, done)) return 0;
    if (epoch == 1 && !done->step) return 0;
    const int rc = drps_job_checkpoint(job, epoch, done, err);
    job->can_go_on = rc == 0;
    return rc;
}

static int end_epoch(struct drps_job *job, uint64_t epoch, struct drps_err *err)
{
    static const struct drps_epoch_part nothing = {0};
    int due;
    int rc = drps_job_due_after(job, epoch, &due, err);
    return rc == 0 && due ? drps_job_checkpoint(job, epoch + 1, &nothing, err) : rc;
}

/* A quasi-Newton method decides on its next pass. Returns 1 if there is to be none. */
static int end_pass(struct drps_job *job, struct drps_epoch *epoch, struct drps_err *err)
{
    const struct drps_plan_info *info = &job->plan->info;
    const double weight = drps_plan_weight_of(info, info->samples);
    const uint64_t start = drps_clock_ns();
    struct drps_store_stats before, after;
    job->server.ops->stats(job->server.store, &before);
    drps_newton_sums_begin(job->newton);
    int rc = drps_server_scan(&job->server, 0, drps_newton_sums_add, job->newton, err);
    if (rc < 0) return rc;
    job->server.ops->stats(job->server.store, &after);
    epoch->read_bytes += after.io.read_bytes - before.io.read_bytes;
    epoch->written_bytes += after.io.written_bytes - before.io.written_bytes;
    epoch->seconds += drps_seconds_since(start);
    epoch->newton = drps_newton_decide(job->newton, epoch->train_loss * weight);
    epoch->is_newton = 1;
    if (epoch->epoch == 1 && !isfinite(epoch->newton.objective + epoch->newton.gradient_norm))
        return drps_err_set(err, -ERANGE,
                            "where training begins the objective is %g and the gradient's norm %g: "
                            "scale the data's values",
                            epoch->newton.objective, epoch->newton.gradient_norm);
    job->result->newton_end = drps_newton_state(job->newton)->end;
    job->result->stopped_early = job->result->newton_end != DRPS_NEWTON_GOES_ON;
    return job->result->stopped_early;
}

/* The epoch's loss is the objective at its end, a document. */
static int measure_topics(struct drps_job *job, struct drps_epoch *epoch, struct drps_err *err)
{
    const double objective = drps_topic_objective(job->topic);
    epoch->train_loss = objective / (double)job->plan->info.samples;
    if (isfinite(objective)) return 0;
    return drps_err_set(err, -ERANGE,
                        "after epoch %llu the objective is no finite number: scale the data's "
                        "values",
                        (unsigned long long)epoch->epoch);
}

/* Runs an epoch. Returns 0, or 1 if it was the last one. */
static int run_epoch(struct drps_job *job, uint64_t e, const struct drps_epoch_part *begin,
                     struct drps_err *err)
{
    struct drps_epoch epoch;
    drps_job_arm(job, e);
    if (job->options->lr_decay > DRPS_DECAY_CONSTANT) /* else a store's thread may read it: ftrl */
        job->server.optim.lr =
            drps_decay_rate(job->options->lr_decay, job->asked.lr, e, job->options->epochs);
    int rc = drps_epoch_run(&job->loop, e, begin, &epoch, err);
    if (rc == DRPS_E_INTERRUPTED) {
        rc = interrupt(job, e, err);
        return rc < 0 ? rc : 1;
    }
    if (rc == 0 && job->topic) rc = measure_topics(job, &epoch, err);
    const int ends = rc == 0 && job->newton ? end_pass(job, &epoch, err) : 0;
    if (rc == 0) rc = ends < 0 ? ends : keep_epoch(job, &epoch, err);
    const int goes_back = epoch.is_newton && !epoch.newton.accepted;
    if (rc == 0 && job->loop.eval_steps && !goes_back && !isfinite(epoch.test.loss))
        rc = test_loss_diverged(job, e, err);
    if (rc == 0) rc = drps_learning_check_exploded(job->result, err);
    if (rc == 0 && job->options->patience) rc = judge_epoch(job, &epoch, err);
    const int more = rc >= 0 ? end_epoch(job, e, err) : 0;
    return more < 0 ? more : rc == 0 ? ends : rc;
}

static int run_epochs(struct drps_job *job, struct drps_err *err)
{
    static const struct drps_epoch_part nothing = {0};
    const struct drps_state *from = &job->checkpoints.state;
    uint64_t e = from->epoch;
    job->result->newton_end = from->newton.end;
    if (is_out_of_patience(job, e - 1) || from->newton.end != DRPS_NEWTON_GOES_ON) {
        job->result->stopped_early = 1; /* as the run has that left the checkpoint at its end */
        return 0;
    }
    int rc = e <= job->options->epochs ? run_epoch(job, e, &from->part, err) : 0;
    while (rc == 0 && e < job->options->epochs)
        rc = run_epoch(job, ++e, &nothing, err);
    if (rc == -ERANGE) return end_diverged(job, e, err);
    return rc < 0 ? rc : 0;
}

/* Writes the last epoch, or what an interruption left of one. With patience the best epoch is
 * written already, unless none was better than nothing; a run that ended before its first step has
 * nothing. */
static int export_last(struct drps_job *job, struct drps_err *err)
{
    struct drps_train_result *r = job->result;
    const int unfinished = r->interrupted && r->steps;
    if (r->best_epoch || (r->interrupted && !r->epochs_n && !r->steps)) return 0;
    r->best_epoch = unfinished ? 0 : r->epochs_n;
    drps_watch_phase(job->watch, DRPS_WATCH_WRITES);
    return drps_job_export(job, r->epochs_n + (unfinished ? 1 : 0), err);
}

/* ---- The run ---- */

static void describe(const struct drps_job *job)
{
    struct drps_train_result *r = job->result;
    const char *store = job->memory.kv ? job->memory.kv->name : job->memory.store->name;
    strncpy(r->store, store, sizeof(r->store) - 1); /* zeroed before, as is the next */
    strncpy(r->model_store, job->model_kv->name, sizeof(r->model_store) - 1);
    memcpy(r->device, job->device.about.name, sizeof(r->device));
    r->device_emulated = job->device.use.ops && job->device.use.ops->emulated;
    r->optim = job->asked;
    r->rows = (job->whole ? job->whole : job->plan)->info.rows;
    r->model_bytes = r->rows * job->server.model.dim * sizeof(float);
    r->row_bytes = job->server.row_bytes;
    r->constant_loss = job->plan->info.constant_loss;
    r->test_constant_loss = job->plan->info.test_constant_loss;
    r->has_perplexity = job->plan->info.sequences.most > 0;
}

/* Closes what training read from: the forecast and the manifest get its memory. */
static void stop_reading(struct drps_job *job)
{
    drps_device_worker_close(job->device_worker); /* before the rows that it steps go */
    job->device_worker = NULL;
    drps_server_close(&job->server); /* before the timeline that its thread reads */
    drps_uses_close(job->uses);
    drps_batch_cache_close(job->batch_cache);
    drps_feed_close(job->feed);
    job->uses = NULL;
    job->batch_cache = NULL;
    job->feed = NULL;
}

/* The model was whole before: what killed ranks have left goes, their stages too, when the one that
 * takes their place ends. All hold theirs before rank 0 clears up what nobody holds. */
static int clear_up(struct drps_job *job, struct drps_err *err)
{
    int rc = job->whole ? 0 : drps_job_begin_stage(job, err);
    if (rc == 0 && job->ranks) rc = drps_cluster_finish(&job->cluster, err);
    if (rc == 0) drps_job_clear(job);
    return rc == 0 ? drps_job_write_delta(job, err) : rc;
}

/* A run that goes on from a checkpoint, or is done, needs no pilot, as all ranks know. */
static int leave_pilot(struct drps_job *job, struct drps_err *err)
{
    if (job->checkpoints.from) job->result->resumed_epoch = job->checkpoints.state.epoch;
    return job->ranks ? drps_cluster_finish(&job->cluster, err) : 0;
}

/* A prepared run of a pilot: nothing is exported, and nothing that was there before is touched. */
static int run_pilot(struct drps_job *job, struct drps_store_config *config, struct drps_err *err)
{
    int rc = job->ranks ? drps_cluster_agree(&job->cluster, job->options, &job->asked, err) : 0;
    if (rc < 0) return rc;
    describe(job);
    rc = drps_watch_begin(job->watch, job->result, err);
    if (rc == 0) rc = drps_job_start(job, config, err);
    if (rc == 0) rc = run_epochs(job, err);
    drps_job_collect(job);
    if (rc == 0 && job->ranks) rc = drps_job_collect_ranks(job, err);
    stop_reading(job);
    return rc == 0 && job->ranks ? drps_cluster_finish(&job->cluster, err) : rc;
}

/* Vectors are logged beside a checkpoint: that which the run goes on from, or a new one. */
static int begin_log(struct drps_job *job, struct drps_err *err)
{
    const struct drps_state *from = &job->checkpoints.state;
    int rc = drps_job_begin_log(job, err);
    return rc == 1 ? drps_job_checkpoint(job, from->epoch, &from->part, err) : rc;
}

/* Warns where the last checkpoint is of a later epoch than the model, as it may be with
 * patience. */
static void remark_kept_state(const struct drps_job *job)
{
    const struct drps_train_result *r = job->result;
    const unsigned long long best = r->best_epoch;
    if (!job->options->keep_checkpoints || r->interrupted || !best || best >= r->epochs_n) return;
    drps_log(job->options->log, DRPS_LOG_WARN,
             "the model is that of epoch %llu, and %s has the optimizer's state of epoch %zu: "
             "training that begins with the model will begin without state; to have both, train "
             "%llu epoch%s without patience",
             best, job->checkpoints.place.root, r->epochs_n, best, best == 1 ? "" : "s");
}

/* Logs what a user should know of the run, now that it has ended. */
static void remark(const struct drps_job *job)
{
    if (!job->whole) return;
    drps_learning_remark(job->result, &job->plan->info, job->options);
    remark_kept_state(job);
    drps_job_remark_failed(job);
}

static int open_watch(struct drps_job *job, struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &job->plan->info.ranks;
    return job->ranks ? drps_watch_open(job->options, ranks->rank, ranks->count, &job->watch, err)
                      : drps_watch_open(job->options, 0, 1, &job->watch, err);
}

static int run(struct drps_job *job, struct drps_err *err)
{
    const int is_pilot = job->options->pilot.on;
    struct drps_store_config config;
    int rc = open_watch(job, err);
    if (rc == 0) rc = drps_job_prepare(job, &config, err);
    if (rc == 0 && is_pilot && (job->result->already || job->checkpoints.from))
        return leave_pilot(job, err);
    if (rc == 0 && is_pilot) return run_pilot(job, &config, err);
    if (rc == 0 && job->result->already) return clear_up(job, err);
    if (rc == 0 && job->ranks)
        rc = drps_cluster_agree(&job->cluster, job->options, &job->asked, err);
    if (rc < 0) return rc;
    describe(job);
    rc = drps_watch_begin(job->watch, job->result, err);
    if (rc == 0) rc = drps_job_start(job, &config, err);
    if (rc == 0) rc = drps_job_take_up(job, err);
    if (rc == 0) rc = begin_log(job, err);
    if (rc == 0) rc = run_epochs(job, err);
    if (rc == 0) rc = export_last(job, err);
    if (rc == 0) remark(job);
    drps_job_collect(job);
    if (rc == 0 && job->ranks) rc = drps_job_collect_ranks(job, err);
    stop_reading(job);
    if (rc == 0) drps_job_forecast(job);
    rc = drps_job_conclude(job, rc, err);
    if (rc == 0 && job->ranks) rc = drps_cluster_finish(&job->cluster, err);
    if (rc == 0 && !job->result->interrupted) drps_job_clear(job);
    return rc == 0 ? drps_job_write_delta(job, err) : rc;
}

/* Those who watch see what it came to. */
static void end_watch(struct drps_job *job)
{
    job->result->phases.export = (double)job->export_ns * 1e-9;
    drps_watch_counts(job->watch, job->result, job->ranks ? job->cluster.net : NULL);
    drps_watch_close(job->watch);
}

static void finish(struct drps_job *job)
{
    stop_reading(job);
    drps_rounds_close(job->rounds);
    drps_push_close(job->push);
    drps_pull_close(job->pull);
    drps_handing_close(job->handing);
    drps_lending_close(job->lending);
    drps_circulation_close(job->circulation);
    drps_newton_close(job->newton);
    drps_topic_close(job->topic);
    drps_async_close(job->async);
    drps_exchange_close(job->exchange);
    drps_round_log_free(job->log);
    drps_stratum_close(job->stratum);
    drps_on_device_close(&job->device);
    drps_worker_stop(&job->worker);
    drps_metrics_free(job->metrics);
    drps_windows_close(job->windows);
    drps_windows_close(job->device_windows);
    end_watch(job);                /* before the folder goes in which it writes */
    drps_stage_abort(&job->stage); /* nothing to do once committed */
    drps_trained_end(&job->trained);
    drps_job_close_checkpoints(job); /* after the store that reads from one */
    drps_job_close_rows(job);
    free(job->store_dir);
    free(job->block_first);
    free(job->intercept);
}

/* The error that an interrupted run returns: it did not fail, but is not complete either. */
static int interrupted(const struct drps_train_options *o, const struct drps_train_result *r,
                       int has_model, int goes_on, struct drps_err *err)
{
    const unsigned long long steps = r->steps;
    if (o->pilot.on)
        return drps_err_set(err, DRPS_E_INTERRUPTED, "interrupted in a pilot: nothing is written");
    if (!r->epochs_n && !r->steps)
        return drps_err_set(err, DRPS_E_INTERRUPTED,
                            "interrupted before the first step was done: nothing is written");
    if (r->kept)
        return drps_err_set(err, DRPS_E_INTERRUPTED,
                            "interrupted after 0 epochs and %llu steps: %s stays as it was, as "
                            "less than an epoch does not replace a model; what was trained is kept "
                            "in %s and can be put in its place",
                            steps, o->model_path, r->kept);
    return drps_err_set(err, DRPS_E_INTERRUPTED,
                        "interrupted after %zu epochs and %llu steps; the model so far is %s%s",
                        r->epochs_n, steps, has_model ? o->model_path : "at rank 0",
                        goes_on ? ": to go on, resume it with the same command" : "");
}

/* What would leave something behind is off. */
static void settle_pilot(struct drps_train_options *o)
{
    o->checkpoint_every = (struct drps_checkpoint_every){.unit = DRPS_CHECKPOINT_NEVER};
    o->keep_checkpoints = 0;
    o->patience = 0;
}

int drps_train_run(const struct drps_plan *plan, const struct drps_train_options *options,
                   struct drps_train_result *result, struct drps_err *err)
{
    const struct drps_train_options *o = options;
    struct drps_err unread = DRPS_ERR_INIT;

    if (!err) err = &unread;
    memset(result, 0, sizeof(*result));
    struct drps_job *job = calloc(1, sizeof(*job));
    if (!job) return drps_err_set(err, -ENOMEM, "no memory to train");
    job->plan = plan;
    job->ranks = o->ranks != NULL;
    job->whole = o->ranks ? o->ranks->whole : plan;
    job->settled = *options;
    if (o->pilot.on) settle_pilot(&job->settled);
    job->options = &job->settled;
    job->result = result;
    job->stage.lock_fd = -1;
    job->disk = drps_forecast_usual_disk;
    job->begin_ns = drps_clock_ns();
    drps_process_io_now(&job->io_before);
    int rc = run(job, err);
    finish(job);
    drps_job_measure(job);
    const int has_model = job->whole != NULL, goes_on = job->can_go_on;
    free(job);
    return rc == 0 && result->interrupted ? interrupted(o, result, has_model, goes_on, err) : rc;
}

void drps_train_result_free(struct drps_train_result *result)
{
    if (!result) return;
    free(result->epochs);
    free(result->windows);
    free(result->ranks);
    free(result->links.sent);
    free(result->links.forecast);
    free(result->kept);
    result->kept = NULL;
    result->ranks = NULL;
    result->ranks_n = 0;
    result->links = (struct drps_train_links){0};
    result->epochs = NULL;
    result->epochs_n = 0;
    result->windows = NULL;
    result->windows_n = 0;
}
