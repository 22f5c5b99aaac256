/*
 * A training run from options to model. Everything that can be refused is refused before a file is
 * made; everything that is made lies in the model's partial folder, which is renamed at the very
 * end or removed, but for what was trained: engine/train/export.c.
 */
#include "engine/train/job.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/publish/drps_publish_stage.h"
#include "index/plan/drps_names.h"
#include "storage/io/drps_probe.h"
#include "storage/kv/drps_kv.h"
#include "storage/relay/drps_relay.h"

enum { PROBE_LEAST = 64 << 20 }; /* bytes of rows */

/* The learning rate that is meant where none is given. */
static float default_lr(const struct drps_plan_info *info, enum drps_optim_kind kind)
{
    switch (kind) {
    case DRPS_OPTIM_ADAGRAD:
        return drps_algorithm_find(info->algo)->adagrad_lr;
    case DRPS_OPTIM_FTRL:
        return 0.1f;
    case DRPS_OPTIM_SGD:
        break;
    }
    /* SGD steps a sum over a round's samples, whose entries may all lie along one dense direction:
     * the step stays under the curvature there. */
    const double samples = info->samples ? (double)info->samples : 1;
    const double entries = 1 + (double)info->nnz / samples;
    return (float)(1 /
                   (entries * (double)(info->ranks.round_samples ? info->ranks.round_samples : 1)));
}

static float default_eps(const struct drps_plan_info *info, enum drps_optim_kind kind)
{
    return kind == DRPS_OPTIM_ADAGRAD ? drps_algorithm_find(info->algo)->adagrad_eps : 0;
}

/* ---- Before anything starts ---- */

/* The score that a model without features would settle on: where the intercept starts. */
static float best_constant(enum drps_loss loss, double label_mean)
{
    if (loss == DRPS_LOSS_SQUARED) return (float)label_mean;
    if (loss != DRPS_LOSS_LOGISTIC || fabs(label_mean) >= 1) return 0;
    return (float)log((1 + label_mean) / (1 - label_mean)); /* log-odds: labels are -1 and +1 */
}

static int init_model(const struct drps_job *job, struct drps_model *model, struct drps_err *err)
{
    const struct drps_plan_info *info = &job->plan->info;
    int rc = drps_model_init(model, info->algo, info->loss, info->rank, info->classification, err);
    if (rc < 0) return rc;
    if (model->dim != info->dim)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s: rows of %u floats do not fit algorithm %s of rank %u",
                            job->plan->dir, info->dim, info->algo, info->rank);
    model->has_bias = drps_plan_has_bias(info);
    model->fixed_bias = info->lanes > 1;
    model->bias_start = best_constant(model->loss, info->label_mean);
    model->init_scale = job->options->init_scale;
    model->seed = job->options->seed;
    return 0;
}

static int init_optim(const struct drps_job *job, struct drps_optim *optim, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    int rc = drps_optim_init(
        optim, o->optimizer ? o->optimizer : drps_algorithm_find(job->plan->info.algo)->optimizer,
        err);
    if (rc < 0) return rc;
    optim->lr = o->lr > 0 ? o->lr : default_lr(&job->plan->info, optim->kind);
    const float eps = o->eps > 0 ? o->eps : default_eps(&job->plan->info, optim->kind);
    if (eps > 0) optim->eps = eps;
    optim->l1 = o->l1;
    optim->l2 = o->l2;
    if (!(o->lr >= 0) || !isfinite(o->lr) || !(o->l1 >= 0) || !isfinite(o->l1) || !(o->l2 >= 0) ||
        !isfinite(o->l2))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "learning rate %g, l1 %g, l2 %g: give finite numbers, none negative",
                            (double)o->lr, (double)o->l1, (double)o->l2);
    return 0;
}

static int check_options(const struct drps_job *job, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    const struct drps_plan_info *info = &job->plan->info;
    if (!o->model_path || !*o->model_path)
        return drps_err_set(err, DRPS_E_CONFIG, "give the model a name");
    if (!o->ranks && info->ranks.workers > 1)
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "%s is a plan for %u workers: run %u ranks here, or a rank on each machine",
            job->plan->dir, info->ranks.workers, info->ranks.workers);
    if (!o->ranks && o->sync != DRPS_SCHED_BSP)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "synchronisation %s is of several workers, and %s is a plan for one: "
                            "leave it out, or make a plan for several workers",
                            drps_sched_mode_name(o->sync), job->plan->dir);
    if (o->staleness && (o->sync == DRPS_SCHED_BSP || o->sync == DRPS_SCHED_ASP))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a staleness of %llu bounds how far workers get apart under ssp and "
                            "wsp: synchronisation %s has no such number",
                            (unsigned long long)o->staleness, drps_sched_mode_name(o->sync));
    if (o->no_claim && o->sync == DRPS_SCHED_BSP)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "under synchronisation bsp nobody claims batches: there is nothing to "
                            "forbid");
    if (!info->batches || !info->samples)
        return drps_err_set(err, DRPS_E_CONFIG, "%s has no training samples", job->plan->dir);
    if (o->threads > DRPS_TRAIN_THREADS_MAX)
        return drps_err_set(err, DRPS_E_CONFIG, "%u threads: at most %d", o->threads,
                            DRPS_TRAIN_THREADS_MAX);
    if (o->evict && drps_evict_find(o->evict, &job->result->evict) < 0)
        return drps_err_set(err, DRPS_E_CONFIG, "eviction rule %s is none of farthest, clock, lru",
                            o->evict);
    if (o->patience && !info->eval_batches)
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "patience needs held-out samples, and %s has none: make a plan that has some",
            job->plan->dir);
    if (o->epochs > UINT64_MAX / (info->batches + info->eval_batches))
        return drps_err_set(err, DRPS_E_CONFIG, "%llu epochs are too many",
                            (unsigned long long)o->epochs);
    return 0;
}

/* The model gets the plan's dictionary: that it is not there, or not the plan's, should not come
 * out after hours of training. */
static int check_names(const struct drps_job *job, struct drps_err *err)
{
    struct drps_names *names;
    if (!job->whole) return 0;
    int rc = drps_names_open(job->plan->io, job->whole->dir, &names, err);
    drps_names_close(names);
    return rc == 0 ? drps_plan_read_file(job->whole, DRPS_FILE_NAMES, NULL, NULL, err) : rc;
}

static struct drps_worker_size worker_size(const struct drps_job *job)
{
    const struct drps_plan_info *info = &job->plan->info;
    const struct drps_optim *optim = &job->server.optim;
    return (struct drps_worker_size){
        .samples = info->max_batch_samples,
        .rows = info->max_batch_rows,
        .members = job->options->threads ? job->options->threads : 1,
        .touches = optim->kind != DRPS_OPTIM_FTRL && (optim->l1 > 0 || optim->l2 > 0),
        .local_steps = job->options->local_steps,
        .sends = job->ranks,
    };
}

static struct drps_store_config store_config(struct drps_job *job, uint64_t steps)
{
    const struct drps_plan_info *info = &job->plan->info;
    job->timeline.steps = steps;
    job->timeline.reach = info->batches + info->eval_batches; /* once an epoch */
    return (struct drps_store_config){
        .io = job->plan->io,
        .block_first = job->block_first,
        .blocks = info->blocks,
        .timeline = &job->timeline,
        .epoch_steps = info->batches + info->eval_batches,
        .step = {.blocks = info->max_step_blocks,
                 .block_rows = info->max_step_block_rows,
                 .rows = info->ranks.max_round_rows},
        .prefetch_steps = job->options->prefetch_steps,
        .evict = job->result->evict,
    };
}

/* Model, optimizer, files of the plan and the split of memory. */
static int prepare(struct drps_job *job, struct drps_store_config *config, struct drps_err *err)
{
    const struct drps_plan_info *info = &job->plan->info;
    struct drps_model model;
    struct drps_optim optim;

    int rc = check_options(job, err);
    if (rc == 0 && job->ranks) rc = drps_cluster_init(&job->cluster, job->plan, job->options, err);
    if (rc == 0) rc = init_model(job, &model, err);
    if (rc == 0) rc = init_optim(job, &optim, err);
    if (rc == 0) rc = drps_publish_engine(job->options->model_store, &job->model_kv, err);
    if (rc == 0) rc = check_names(job, err);
    if (rc < 0) return rc;
    drps_server_init(&job->server, &model, &optim);
    job->server.first_row = info->ranks.first_row;
    rc = drps_feed_open(job->plan, model.has_bias, &job->feed, err);
    if (rc == 0 && drps_memory_wants_blocks(job->options->store)) {
        rc = drps_plan_blocks(job->plan, &job->block_first, err);
        if (rc == 0) rc = drps_uses_open(job->plan, &job->uses, err);
    }
    if (rc < 0) return rc;

    const struct drps_worker_size size = worker_size(job);
    *config = store_config(job, job->options->epochs * (info->batches + info->eval_batches));
    drps_server_configure(&job->server, config, info->rows);
    const struct drps_memory_parts parts = {.plan = job->plan,
                                            .options = job->options,
                                            .server = &job->server,
                                            .feed = job->feed,
                                            .uses = job->uses,
                                            .worker = &size,
                                            .config = config};
    rc = drps_memory_split(&job->memory, &parts, err);
    job->result->memory = job->memory.budget;
    return rc;
}

static void describe(const struct drps_job *job)
{
    struct drps_train_result *r = job->result;
    const char *store = job->memory.kv ? job->memory.kv->name : job->memory.store->name;
    strncpy(r->store, store, sizeof(r->store) - 1); /* zeroed before, as is the next */
    strncpy(r->model_store, job->model_kv->name, sizeof(r->model_store) - 1);
    r->optim = job->server.optim;
    r->rows = (job->whole ? job->whole : job->plan)->info.rows;
    r->model_bytes = r->rows * job->server.model.dim * sizeof(float);
    r->row_bytes = job->server.row_bytes;
}

/* ---- Starting ---- */

/* The folder of the store's files, in the stage. */
static int make_store_dir(struct drps_job *job, struct drps_err *err)
{
    job->store_dir = drps_path_join(job->stage.dir, DRPS_MODEL_STORE);
    if (!job->store_dir) return drps_err_set(err, -ENOMEM, "no memory for the row store");
    int rc = job->plan->io->ops->mkdir(job->plan->io->ctx, job->store_dir, 0777);
    if (rc < 0)
        return drps_err_set(err, rc, "cannot create the folder %s: %s", job->store_dir,
                            drps_err_name(rc));
    return 0;
}

/* For what comes before the first step, where there is no model to keep yet. */
static struct drps_io stoppable_io(const struct drps_job *job)
{
    const struct drps_io *io = job->plan->io;
    return (struct drps_io){.ops = io->ops, .ctx = io->ctx, .stop = job->options->stop};
}

/* How the disk takes requests decides how memory is shared; a small model is not worth asking. */
static int probe_disk(struct drps_job *job, struct drps_store_config *config, struct drps_err *err)
{
    const struct drps_io io = stoppable_io(job);
    config->seek_bytes = job->options->seek_bytes;
    if (config->seek_bytes || config->rows * config->row_bytes < PROBE_LEAST) return 0;
    return drps_disk_seek_bytes(&io, job->store_dir, config->no_uring, &config->seek_bytes, err);
}

/* What blocks in a file read through, and what their forecast is priced with: for a small model
 * what its blocks were built for. */
static int probe_reads(struct drps_job *job, struct drps_store_config *config, struct drps_err *err)
{
    const struct drps_plan_info *info = &job->plan->info;
    const struct drps_io io = stoppable_io(job);
    struct drps_disk_cost cost = {.read_seek_ns = (double)info->seek_ns,
                                  .read_bps = (double)info->transfer_bps};
    int rc = config->rows * config->row_bytes < PROBE_LEAST
                 ? 0
                 : drps_disk_probe(&io, job->store_dir, &cost, err);
    if (rc < 0) return rc;
    job->disk.seek_seconds = cost.read_seek_ns * 1e-9;
    job->disk.bytes_per_s = cost.read_bps;
    config->seek_bytes = (uint64_t)(cost.read_seek_ns * 1e-9 * cost.read_bps);
    return 0;
}

/* 1: windows were opened, and fit; 0: they did not, with this share of the memory. */
static int try_windows(struct drps_job *job, const struct drps_store_config *config,
                       const struct drps_relay_share *share, struct drps_err *err)
{
    const struct drps_windows_options options = {.plan = job->plan,
                                                 .dir = job->store_dir,
                                                 .share = share,
                                                 .epochs = job->options->epochs,
                                                 .memory_bytes = job->memory.store_bytes,
                                                 .stop = job->options->stop,
                                                 .log = job->options->log};
    const uint64_t two_steps = 2 * config->step.rows;
    const uint64_t rows = two_steps < config->rows ? two_steps : config->rows;
    if (share->budget_bytes < rows * share->row_bytes) return 0;
    int rc = drps_windows_open(&options, &job->windows, &job->window_source, err);
    if (rc < 0) return rc;
    if (drps_relay_fits(share, job->window_source.windows)) return 1;
    drps_log(job->options->log, DRPS_LOG_INFO, "%u windows are too many for the memory",
             job->window_source.windows);
    drps_windows_close(job->windows);
    job->windows = NULL;
    return 0;
}

/* With buffers as suit the disk, where memory is short as suit any, and at last with as little for
 * them as is sure to do: drps_memory_split() asked for that. */
static int fit_windows(struct drps_job *job, struct drps_store_config *config, struct drps_err *err)
{
    const uint64_t memory = job->memory.store_bytes;
    struct drps_relay_share share;
    drps_relay_share(memory, config->rows, config->row_bytes, config->seek_bytes, &share);
    int rc = try_windows(job, config, &share, err);
    if (rc == 0 && config->seek_bytes) {
        config->seek_bytes = 0;
        drps_relay_share(memory, config->rows, config->row_bytes, 0, &share);
        rc = try_windows(job, config, &share, err);
    }
    if (rc) return rc;
    drps_relay_share_surely(memory, config, &share);
    config->buffer_bytes = share.buffer_bytes;
    rc = try_windows(job, config, &share, err);
    if (rc) return rc;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "%s: its steps have more rows than " DRPS_FILE_MANIFEST
                        " says: make the plan anew",
                        job->plan->dir);
}

/* A relay store runs windows of its own size, and batches that name rows by their slots in them. */
static int open_windows(struct drps_job *job, struct drps_store_config *config,
                        struct drps_err *err)
{
    if (job->memory.store != &drps_store_relay) return 0;
    int rc = probe_disk(job, config, err);
    if (rc == 0) rc = fit_windows(job, config, err);
    if (rc < 0) return rc;
    rc = drps_feed_use_slots(job->feed, drps_windows_dir(job->windows), err);
    if (rc < 0) return rc;
    drps_feed_go_direct(job->feed);
    const uint64_t spread = drps_windows_spread(job->windows, job->plan->info.batches);
    if (job->memory.window_steps > spread) job->memory.window_steps = spread;
    return 0;
}

static int open_store(struct drps_job *job, struct drps_store_config *config, struct drps_err *err)
{
    int rc = 0;
    config->dir = job->store_dir;
    config->memory_bytes = job->memory.store_bytes;
    config->kv = job->memory.kv;
    config->windows = job->windows ? &job->window_source : NULL;
    config->open_steps = job->memory.window_steps ? (unsigned)(2 * job->memory.window_steps) : 1;
    if (job->memory.stratum_batches) config->open_steps = (unsigned)job->memory.stratum_batches;
    if (job->memory.window_steps) {
        job->listener = (struct drps_async_listener){job->cluster.net, job->cluster.wait_ms};
        config->opened = drps_async_opened;
        config->opened_ctx = &job->listener;
    }
    if (job->memory.kv && job->memory.kv->training_only) rc = probe_reads(job, config, err);
    if (job->uses && rc == 0)
        rc = drps_uses_start(job->uses, job->options->epochs, job->memory.buffer_bytes,
                             &job->timeline, err);
    if (rc == 0)
        rc = drps_server_open(&job->server, job->memory.store, config, job->plan->info.rows, err);
    if (rc == -ENOSPC || rc == -EDQUOT) drps_job_say_space(job, config, err);
    return rc;
}

/* Ranks that write no model have a stage of their own, which is never committed, beside it. */
static int begin_stage(struct drps_job *job, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    char *path = NULL;
    if (!job->whole && asprintf(&path, "%s.rank-%u", o->model_path, job->cluster.rank) < 0)
        return drps_err_set(err, -ENOMEM, "no memory for a path");
    int rc = drps_stage_begin(&job->stage, job->plan->io, path ? path : o->model_path,
                              &drps_modeldir_kind, o->replace && !path, err);
    free(path);
    return rc;
}

static int open_stratum(struct drps_job *job, struct drps_err *err)
{
    const struct drps_stratum_parts parts = {.info = &job->plan->info,
                                             .feed = job->feed,
                                             .server = &job->server,
                                             .worker = &job->worker,
                                             .batches = job->memory.stratum_batches};
    return drps_stratum_open(&parts, &job->stratum, err);
}

static int open_rounds(struct drps_job *job, struct drps_err *err)
{
    const struct drps_rounds_options options = {.plan = job->plan,
                                                .net = job->cluster.net,
                                                .feed = job->feed,
                                                .server = &job->server,
                                                .worker = &job->worker,
                                                .train = job->options,
                                                .wait_ms = job->cluster.wait_ms};
    return drps_rounds_open(&options, &job->rounds, err);
}

static int open_async(struct drps_job *job, struct drps_err *err)
{
    const struct drps_async_options options = {.plan = job->plan,
                                               .net = job->cluster.net,
                                               .feed = job->feed,
                                               .server = &job->server,
                                               .worker = &job->worker,
                                               .train = job->options,
                                               .window_steps = job->memory.window_steps,
                                               .wait_ms = job->cluster.wait_ms};
    if (!job->memory.window_steps) return 0;
    int rc = drps_async_open(&options, &job->async, err);
    if (rc == 0) job->result->claim_steps = drps_async_window_steps(job->async);
    return rc;
}

static int start(struct drps_job *job, struct drps_store_config *config, struct drps_err *err)
{
    const struct drps_worker_size size = worker_size(job);
    int rc = begin_stage(job, err);
    if (rc == 0) rc = make_store_dir(job, err);
    if (rc == 0) rc = drps_job_check_space(job, config, 0, err);
    if (rc == 0) rc = drps_job_begin_export(job, err);
    if (rc == 0) rc = open_windows(job, config, err);
    if (rc == 0)
        rc = drps_feed_start(job->feed, job->options->epochs, job->memory.buffer_bytes,
                             job->memory.keep_plan, err);
    if (rc == 0 && job->memory.keep_decoded)
        rc = drps_batch_cache_open(&job->plan->info, job->feed, &job->batch_cache, err);
    if (rc == 0) rc = drps_worker_start(&job->worker, &job->server, &size, err);
    job->worker.emulate = (struct drps_emulate){
        .timing = job->options->emulate, .worker = job->ranks ? job->plan->info.ranks.rank : 0};
    if (rc == 0 && job->plan->info.eval_batches) {
        job->metrics = drps_metrics_new(job->server.model.loss);
        if (!job->metrics) rc = drps_err_set(err, -ENOMEM, "no memory for the metrics");
    }
    if (rc == 0) rc = open_store(job, config, err);
    if (rc == 0) rc = drps_job_check_space(job, config, 1, err);
    if (rc == 0 && job->memory.stratum_batches) rc = open_stratum(job, err);
    if (rc == 0 && job->ranks) rc = open_rounds(job, err);
    if (rc == 0 && job->ranks) rc = open_async(job, err);
    job->loop = (struct drps_epoch_loop){
        .options = job->options,
        .feed = job->feed,
        .batch_cache = job->batch_cache,
        .server = &job->server,
        .worker = &job->worker,
        .metrics = job->metrics,
        .stratum = job->stratum,
        .rounds = job->rounds,
        .async = job->async,
        .cluster = job->ranks ? &job->cluster : NULL,
        .train_steps = job->plan->info.batches,
        .eval_steps = job->plan->info.eval_batches,
    };
    return rc;
}

/* ---- Running ---- */

static int keep_epoch(struct drps_job *job, const struct drps_epoch *epoch, struct drps_err *err)
{
    struct drps_train_result *r = job->result;
    struct drps_epoch *grown = realloc(r->epochs, (r->epochs_n + 1) * sizeof(*grown));
    if (!grown)
        return drps_err_set(err, -ENOMEM, "no memory for the results of epoch %llu",
                            (unsigned long long)epoch->epoch);
    r->epochs = grown;
    r->epochs[r->epochs_n++] = *epoch;
    if (job->options->on_epoch) job->options->on_epoch(job->options->ctx, epoch);
    return 0;
}

/* Early stopping: write what is better than all before. Returns 1 when patience has run out. */
static int judge_epoch(struct drps_job *job, const struct drps_epoch *epoch, double *best_loss,
                       struct drps_err *err)
{
    struct drps_train_result *r = job->result;
    if (epoch->test.loss < *best_loss) {
        *best_loss = epoch->test.loss;
        int rc = drps_job_export(job, epoch->epoch, err);
        if (rc == 0) r->best_epoch = epoch->epoch;
        return rc;
    }
    r->stopped_early = epoch->epoch - r->best_epoch >= job->options->patience;
    return r->stopped_early;
}

static int test_loss_diverged(uint64_t epoch, struct drps_err *err)
{
    return drps_err_set(
        err, -ERANGE,
        "the held-out loss of epoch %llu is no finite number: try a smaller learning rate",
        (unsigned long long)epoch);
}

/* Training ends where it diverges: with the best epoch before, if patience has one, as the model.
 */
static int end_diverged(struct drps_job *job, uint64_t epoch, struct drps_err *err)
{
    struct drps_train_result *r = job->result;
    r->diverged_epoch = epoch;
    if (!r->best_epoch) return -ERANGE;
    if (job->whole)
        drps_log(job->options->log, DRPS_LOG_WARN, "%s; the model is that of epoch %llu", err->text,
                 (unsigned long long)r->best_epoch);
    drps_err_clear(err);
    r->stopped_early = 1;
    return 0;
}

/* 0; 1: that was the last one. */
static int run_epoch(struct drps_job *job, uint64_t e, double *best_loss, struct drps_err *err)
{
    struct drps_epoch epoch;
    int rc = drps_epoch_run(&job->loop, e, &epoch, err);
    if (rc == DRPS_E_INTERRUPTED) {
        job->result->interrupted = 1;
        job->result->steps = job->loop.stopped_at;
        drps_err_clear(err);
        return 1; /* not a failure: what was done is kept */
    }
    if (rc == 0) rc = keep_epoch(job, &epoch, err);
    if (rc == 0 && job->plan->info.eval_batches && !isfinite(epoch.test.loss))
        rc = test_loss_diverged(e, err);
    if (rc == 0 && job->options->patience) rc = judge_epoch(job, &epoch, best_loss, err);
    return rc;
}

static int run_epochs(struct drps_job *job, struct drps_err *err)
{
    double best_loss = INFINITY;
    uint64_t e = 0;
    int rc = 0;
    while (rc == 0 && e < job->options->epochs)
        rc = run_epoch(job, ++e, &best_loss, err);
    if (rc == -ERANGE) return end_diverged(job, e, err);
    return rc < 0 ? rc : 0;
}

/* With patience the best epoch is written already, unless none was better than nothing. Of a run
 * that ended before its first step there is nothing to write. */
static int export_last(struct drps_job *job, struct drps_err *err)
{
    struct drps_train_result *r = job->result;
    const int unfinished = r->interrupted && r->steps;
    if (r->best_epoch || (r->interrupted && !r->epochs_n && !r->steps)) return 0;
    r->best_epoch = unfinished ? 0 : r->epochs_n;
    return drps_job_export(job, r->epochs_n + (unfinished ? 1 : 0), err);
}

/* The forecast and the manifest get the memory that training had. */
static void stop_reading(struct drps_job *job)
{
    drps_server_close(&job->server); /* before the timeline that its thread reads */
    drps_uses_close(job->uses);
    drps_batch_cache_close(job->batch_cache);
    drps_feed_close(job->feed);
    job->uses = NULL;
    job->batch_cache = NULL;
    job->feed = NULL;
}

static int run(struct drps_job *job, struct drps_err *err)
{
    struct drps_store_config config;
    int rc = prepare(job, &config, err);
    if (rc == 0 && job->ranks)
        rc = drps_cluster_agree(&job->cluster, job->options, &job->server.optim, err);
    if (rc < 0) return rc;
    describe(job);
    rc = start(job, &config, err);
    if (rc == 0) rc = run_epochs(job, err);
    if (rc == 0) rc = export_last(job, err);
    drps_job_collect(job);
    if (rc == 0 && job->ranks) rc = drps_job_collect_ranks(job, err);
    stop_reading(job);
    if (rc == 0) drps_job_forecast(job);
    rc = drps_job_conclude(job, rc, err);
    return rc == 0 && job->ranks ? drps_cluster_finish(&job->cluster, err) : rc;
}

static void finish(struct drps_job *job)
{
    stop_reading(job);
    drps_rounds_close(job->rounds);
    drps_async_close(job->async);
    drps_stratum_close(job->stratum);
    drps_worker_stop(&job->worker);
    drps_metrics_free(job->metrics);
    drps_windows_close(job->windows);
    drps_stage_abort(&job->stage); /* nothing to do once committed */
    drps_trained_end(&job->trained);
    free(job->store_dir);
    free(job->block_first);
}

/* Ctrl-C is no failure, but no success either. */
static int interrupted(const struct drps_train_options *o, const struct drps_train_result *r,
                       int has_model, struct drps_err *err)
{
    const unsigned long long steps = r->steps;
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
                        "interrupted after %zu epochs and %llu steps; the model so far is %s",
                        r->epochs_n, steps, has_model ? o->model_path : "at rank 0");
}

int drps_train_run(const struct drps_plan *plan, const struct drps_train_options *options,
                   struct drps_train_result *result, struct drps_err *err)
{
    struct drps_train_options o = *options;
    struct drps_err unread = DRPS_ERR_INIT;

    if (!err) err = &unread;
    memset(result, 0, sizeof(*result));
    if (!o.epochs) o.epochs = 1;
    struct drps_job *job = calloc(1, sizeof(*job));
    if (!job) return drps_err_set(err, -ENOMEM, "no memory to train");
    job->plan = plan;
    job->ranks = o.ranks != NULL;
    job->whole = o.ranks ? o.ranks->whole : plan;
    job->options = &o;
    job->result = result;
    job->stage.lock_fd = -1;
    job->disk = drps_forecast_usual_disk;
    job->begin_ns = drps_clock_ns();
    drps_process_io_now(&job->io_before);
    int rc = run(job, err);
    finish(job);
    drps_job_measure(job);
    const int has_model = job->whole != NULL;
    free(job);
    return rc == 0 && result->interrupted ? interrupted(&o, result, has_model, err) : rc;
}

void drps_train_result_free(struct drps_train_result *result)
{
    if (!result) return;
    free(result->epochs);
    free(result->windows);
    free(result->ranks);
    free(result->kept);
    result->kept = NULL;
    result->ranks = NULL;
    result->ranks_n = 0;
    result->epochs = NULL;
    result->epochs_n = 0;
    result->windows = NULL;
    result->windows_n = 0;
}
