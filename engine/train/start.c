/*
 * Everything that a prepared run needs is opened and started: the stage and the room on disk, the
 * windows, what reads the plan ahead, the worker, the store, and the parts of several ranks.
 */
#include "engine/train/job.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_clock.h"
#include "engine/cluster/target/drps_pilot.h"
#include "engine/model/math/drps_blas.h"
#include "engine/publish/drps_modeldir.h"
#include "storage/io/drps_probe.h"
#include "storage/kv/drps_kv.h"
#include "storage/relay/drps_relay.h"

/* ---- Folders ---- */

/* Makes the folder of the store's files, in the stage. */
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

/* ---- What the disk takes ---- */

/* An io that ends with DRPS_E_INTERRUPTED, for the time before the first step: no model is lost. */
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
    if (config->seek_bytes || config->rows * config->row_bytes < DRPS_JOB_PROBE_LEAST) return 0;
    int rc = drps_disk_measure_pace(&io, job->store_dir, config->no_uring, drps_clock_ns,
                                    &job->pace, err);
    if (rc == 0) config->seek_bytes = drps_disk_pace_seek_bytes(&job->pace);
    return rc;
}

/* Asks the disk what a read costs: blocks in a file are read through gaps of that worth, and their
 * forecast is priced with it. A small model takes what its blocks were built for. */
static int probe_reads(struct drps_job *job, struct drps_store_config *config, struct drps_err *err)
{
    const struct drps_plan_info *info = &job->plan->info;
    const struct drps_io io = stoppable_io(job);
    struct drps_disk_cost cost = {.read_seek_ns = (double)info->seek_ns,
                                  .read_bps = (double)info->transfer_bps};
    int rc = config->rows * config->row_bytes < DRPS_JOB_PROBE_LEAST
                 ? 0
                 : drps_disk_probe(&io, job->store_dir, &cost, err);
    if (rc < 0) return rc;
    job->disk.seek_seconds = cost.read_seek_ns * 1e-9;
    job->disk.bytes_per_s = cost.read_bps;
    config->seek_bytes = (uint64_t)(cost.read_seek_ns * 1e-9 * cost.read_bps);
    return 0;
}

/* ---- Windows and the store ---- */

/* Windows for the rows of a device, where the others are in memory. */
static int open_device_windows(struct drps_job *job, struct drps_err *err)
{
    const uint64_t row_bytes = job->server.row_bytes;
    const struct drps_relay_share share = {.budget_bytes = job->device.frames * row_bytes,
                                           .row_bytes = row_bytes,
                                           .waiting_bytes = row_bytes};
    const struct drps_windows_options options = {.plan = job->plan,
                                                 .dir = job->store_dir,
                                                 .share = &share,
                                                 .epochs = drps_job_epochs_left(job),
                                                 .memory_bytes = job->memory.store_bytes,
                                                 .stop = job->options->stop,
                                                 .log = job->options->log};
    return drps_windows_open(&options, &job->device_windows, &job->window_source, err);
}

/* A relay store runs windows of its own size, and batches that name rows by their slots in them. */
static int open_windows(struct drps_job *job, struct drps_store_config *config,
                        struct drps_err *err)
{
    if (job->memory.store == &drps_store_tiered) return open_device_windows(job, err);
    if (!job->memory.relay_bytes) return 0;
    const int continues = job->checkpoints.continues;
    int rc =
        continues ? drps_job_open_saved_windows(job, config, err) : probe_disk(job, config, err);
    if (rc == 0 && !continues) rc = drps_job_fit_windows(job, config, err);
    if (rc < 0) return rc;
    rc = drps_feed_use_slots(job->feed, drps_windows_dir(job->windows), err);
    if (rc < 0) return rc;
    drps_feed_go_direct(job->feed);
    const uint64_t spread = drps_windows_spread(job->windows, job->plan->info.batches);
    if (job->memory.window_steps > spread) job->memory.window_steps = spread;
    return 0;
}

/* A drps_saved_rows. */
static int read_saved(void *checkpoint, uint64_t first, size_t n, void *rows_out,
                      struct drps_err *err)
{
    return drps_checkpoint_read(checkpoint, first, n, rows_out, err);
}

/* Where rows circulate all ranks have the intercept of rank 0, if that is an earlier run's. */
static int share_intercept(struct drps_job *job, struct drps_err *err)
{
    const struct drps_server *server = &job->server;
    if (!server->holds || !server->saved || !server->model.has_bias) return 0;
    job->intercept = calloc(1, server->row_bytes);
    if (!job->intercept) return drps_err_set(err, -ENOMEM, "no memory for the intercept");
    int rc = job->cluster.rank ? 0 : server->saved(server->saved_ctx, 0, 1, job->intercept, err);
    if (rc == 0)
        rc = drps_net_broadcast(job->cluster.net, 0, job->intercept, server->row_bytes,
                                job->cluster.wait_ms, err);
    job->server.intercept = job->intercept;
    return rc;
}

/* The worker that takes the place of the processor's. */
static int open_device_worker(struct drps_job *job, struct drps_err *err)
{
    const struct drps_device_worker_parts parts = {.use = &job->device.use,
                                                   .server = &job->server,
                                                   .info = &job->plan->info,
                                                   .keep_bytes = job->device.keep_bytes,
                                                   .keep_host_bytes =
                                                       job->memory.device_keep_bytes};
    return job->device.use.ops ? drps_device_worker_open(&parts, &job->device_worker, err) : 0;
}

static int open_store(struct drps_job *job, struct drps_store_config *config, struct drps_err *err)
{
    config->dir = job->store_dir;
    if (job->checkpoints.continues)
        config->saved_dir = drps_checkpoint_store(job->checkpoints.from);
    else
        config->memory_bytes = job->memory.store_bytes;
    config->kv = job->memory.kv;
    config->device = &job->device.use;
    config->windows = job->windows || job->device_windows ? &job->window_source : NULL;
    config->first_step = drps_job_first_step(job);
    drps_job_mark_rows(job, config);
    job->server.saved_ctx = job->rows ? job->rows : job->checkpoints.from;
    job->server.saved = job->server.saved_ctx && !config->saved_dir ? read_saved : NULL;
    int rc = share_intercept(job, err);
    config->open_steps = job->memory.window_steps ? (unsigned)(2 * job->memory.window_steps) : 1;
    if (job->memory.stratum_batches) config->open_steps = (unsigned)job->memory.stratum_batches;
    if (job->memory.rounds_ahead) config->open_steps = 2;
    if (job->memory.window_steps) {
        job->listener = (struct drps_async_listener){job->cluster.net, job->cluster.wait_ms};
        config->opened = drps_async_opened;
        config->opened_ctx = &job->listener;
    }
    if (rc == 0 && job->memory.kv && job->memory.kv->training_only)
        rc = probe_reads(job, config, err);
    if (job->uses && rc == 0)
        rc = drps_uses_start(job->uses, drps_job_first_step(job), drps_job_epochs_left(job),
                             job->memory.buffer_bytes, &job->timeline, err);
    if (rc == 0)
        rc = drps_server_open(&job->server, job->memory.store, config, job->plan->info.rows, err);
    if (rc == -ENOSPC || rc == -EDQUOT) drps_job_say_space(job, config, err);
    if (rc == 0 && job->checkpoints.continues) drps_job_remember_saves(job);
    return rc;
}

/* ---- Parts that train ---- */

static int hand_over(void *ctx, const struct drps_batch *step, const struct drps_rows *rows,
                     struct drps_err *err)
{
    struct drps_job *job = ctx;
    const uint64_t start = drps_clock_ns();
    int rc = drps_circulation_step(job->circulation, step, rows, err);
    job->loop.hand_ns += drps_clock_ns() - start;
    return rc;
}

static int open_stratum(struct drps_job *job, struct drps_err *err)
{
    const struct drps_stratum_parts parts = {.info = &job->plan->info,
                                             .feed = job->feed,
                                             .server = &job->server,
                                             .worker = &job->worker,
                                             .batches = job->memory.stratum_batches,
                                             .hand_over = hand_over,
                                             .hand_over_ctx = job};
    return drps_stratum_open(&parts, &job->stratum, err);
}

static int open_circulation(struct drps_job *job, struct drps_err *err)
{
    const struct drps_circulation_options options = {.plan = job->plan,
                                                     .net = job->cluster.net,
                                                     .server = &job->server,
                                                     .wait_ms = job->cluster.wait_ms};
    return drps_circulation_open(&options, &job->circulation, err);
}

/* All rows are as the seed makes them, and the first epoch is the first to step them. */
static int has_fresh_rows(const struct drps_job *job)
{
    const int begins = job->checkpoints.state.epoch <= 1 && !drps_job_first_step(job);
    const int made = !job->options->from && !job->server.saved_ctx && !job->checkpoints.continues;
    return begins && made && !job->options->no_fresh;
}

/* Training batches are those of rounds, in which servers and workers take turns. */
static int are_rounds(const struct drps_job *job)
{
    return !job->memory.window_steps && job->way == DRPS_EXCHANGE_SERVERS;
}

static int open_push(struct drps_job *job, struct drps_err *err)
{
    const struct drps_push_job push = {.plan = job->plan,
                                       .options = &job->options->push,
                                       .touches = job->worker.has_touches,
                                       .epoch = job->checkpoints.state.epoch,
                                       .first = drps_job_first_step(job),
                                       .epochs = drps_job_epochs_left(job),
                                       .seed = job->options->seed};
    const struct drps_checkpoint *from = job->checkpoints.from;
    int rc = job->options->push.on ? drps_push_open(&push, &job->push, err) : 0;
    if (rc < 0 || !from || !job->push || !drps_checkpoint_held(from)->slots) return rc;
    return drps_checkpoint_read_held(from, drps_push_slots(job->push), err);
}

static int open_pull(struct drps_job *job, struct drps_err *err)
{
    const struct drps_pull_job pull = {.plan = job->plan,
                                       .options = &job->options->pull,
                                       .epoch = job->checkpoints.state.epoch,
                                       .first = drps_job_first_step(job),
                                       .epochs = drps_job_epochs_left(job)};
    if (!job->options->pull.on || job->options->sync != DRPS_SCHED_BSP) return 0;
    return drps_pull_open(&pull, &job->pull, err);
}

/* Says why rows that the plan hands on are not. */
static void tell_plain(const struct drps_job *job)
{
    const struct drps_train_options *o = job->options;
    const uint64_t states = job->plan->info.ranks.handed.states;
    if (job->cluster.rank || !job->plan->info.ranks.handed.slots || o->no_hand_on) return;
    if (o->sync != DRPS_SCHED_BSP)
        drps_log(o->log, DRPS_LOG_INFO,
                 "rows are handed on under synchronisation bsp alone, and go to their servers");
    else
        drps_log(o->log, DRPS_LOG_WARN,
                 "rows are not handed on: the plan has counted what that brings with the state of "
                 "%s, and %s has more; make a plan for it",
                 drps_plan_states_name(states), drps_optim_name(job->server.optim.kind));
}

/* Some ways to train begin with an epoch's first batch: `what` says which one, and how else the run
 * can go on. */
static int check_begins(const struct drps_job *job, const char *what, const char *else_how,
                        struct drps_err *err)
{
    const uint64_t first = drps_job_first_step(job);
    if (!first || first >= job->plan->info.batches) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "the checkpoint lies inside an epoch, at its batch %llu, and %s from the "
                        "beginning of one: go on %s",
                        (unsigned long long)first, what, else_how);
}

/* Rows are handed on from the first batch of an epoch on. */
static int open_handing(struct drps_job *job, struct drps_err *err)
{
    const uint64_t first = drps_job_first_step(job), epochs = drps_job_epochs_left(job);
    const int is_over = first >= job->plan->info.batches;
    const struct drps_lending_job lending = {job->plan, epochs, is_over};
    const struct drps_handing_job handing = {job->plan, &job->server, epochs, is_over};
    if (!drps_handing_applies(&job->plan->info, job->options, &job->server.optim)) {
        tell_plain(job);
        return 0;
    }
    int rc = check_begins(job, "rows are handed on", "without handing rows on", err);
    if (rc == 0) rc = drps_handing_open(&handing, &job->handing, err);
    if (rc == 0) rc = drps_lending_open(&lending, &job->lending, err);
    return rc;
}

/* Copies of a net's own parameters stay alike where all ranks get the same bits of the same
 * vectors: elsewhere gradients are summed. */
static int settle_vectors(struct drps_job *job, struct drps_outer_choice *vectors,
                          struct drps_err *err)
{
    const uint64_t kind = drps_blas_kind();
    uint64_t common;
    drps_rounds_vectors(&job->plan->info, job->options, vectors);
    if (!vectors->n) return 0;
    int rc = drps_cluster_common(&job->cluster, &kind, 1, &common, err);
    if (rc < 0 || common) return rc;
    if (job->options->common == DRPS_COMMON_VECTORS)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "ranks compute products of matrices with different kernels of "
                            "OpenBLAS, so that those of vectors would differ: exchange sums, or "
                            "set OPENBLAS_CORETYPE to the same on all machines");
    vectors->n = 0;
    return 0;
}

/* How gradients of a net's own parameters go. */
static int settle_common(struct drps_job *job, struct drps_err *err)
{
    const struct drps_plan_info *info = &job->plan->info;
    struct drps_train_common *found = &job->result->common;
    found->way = DRPS_COMMON_SERVERS;
    if (!info->net[0] || job->options->sync != DRPS_SCHED_BSP) return 0;
    found->floats = job->server.model.layers.floats;
    int rc = settle_vectors(job, &found->vectors, err);
    if (drps_rounds_sums_common(info, job->options))
        found->way = found->vectors.n ? DRPS_COMMON_VECTORS : DRPS_COMMON_SUMS;
    return rc;
}

static int open_rounds(struct drps_job *job, struct drps_err *err)
{
    if (drps_plan_circulates(&job->plan->info)) return open_circulation(job, err);
    int rc = settle_common(job, err);
    if (rc == 0) rc = open_push(job, err);
    if (rc == 0) rc = open_pull(job, err);
    if (rc == 0) rc = open_handing(job, err);
    if (rc < 0) return rc;
    const struct drps_rounds_options options = {
        .plan = job->plan,
        .net = job->cluster.net,
        .feed = job->feed,
        .server = &job->server,
        .worker = &job->worker,
        .train = job->options,
        .wait_ms = job->cluster.wait_ms,
        .ahead = job->memory.rounds_ahead,
        .fresh = has_fresh_rows(job) && are_rounds(job),
        .slots = job->windows != NULL,
        .push = job->push,
        .pull = job->pull,
        .handing = job->handing,
        .lending = job->lending,
        .sums = drps_rounds_sums_common(&job->plan->info, job->options),
        .vectors = &job->result->common.vectors};
    return drps_rounds_open(&options, &job->rounds, err);
}

static int open_exchange(struct drps_job *job, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    const struct drps_exchange_job exchange = {
        .plan = job->plan,
        .net = job->cluster.net,
        .feed = job->feed,
        .server = &job->server,
        .worker = &job->worker,
        .way = job->way,
        .train = o,
        .first_round =
            drps_job_round(job, job->checkpoints.state.epoch, job->checkpoints.state.part.step),
        .slots = job->windows != NULL,
        .wait_ms = job->cluster.wait_ms,
        .applied = job->log ? drps_round_log_take : NULL,
        .applied_ctx = job->log};
    const struct drps_checkpoint *from = job->checkpoints.from;
    if (job->way == DRPS_EXCHANGE_SERVERS) return 0;
    int rc = drps_exchange_open(&exchange, &job->exchange, err);
    if (rc < 0 || !from || !drps_exchange_left(job->exchange)) return rc;
    return drps_checkpoint_read_held(from, drps_exchange_left(job->exchange), err);
}

static int open_async(struct drps_job *job, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    const struct drps_async_options options = {
        .plan = job->plan,
        .net = job->cluster.net,
        .feed = job->feed,
        .server = &job->server,
        .worker = &job->worker,
        .train = o,
        .window_steps = job->exchange ? DRPS_ASYNC_WINDOW_STEPS : job->memory.window_steps,
        .ahead = job->memory.async_ahead,
        .wait_ms = job->cluster.wait_ms,
        .push = job->push,
        .exchange = job->exchange,
        .half = o->pull.on && o->pull.bits == 16,
        .cached = o->pull_cached,
        .fresh = has_fresh_rows(job) && !o->pull.on && !o->pull_cached,
        .slots = job->windows != NULL,
        .batches = {.first = drps_job_first_step(job), .epochs = drps_job_epochs_left(job)}};
    if (!job->memory.window_steps && !drps_replicas_go_apart(o)) return 0;
    int rc = check_begins(job, "batches are handed out", "under synchronisation bsp", err);
    if (rc == 0) rc = drps_async_open(&options, &job->async, err);
    if (rc == 0) job->result->claim_steps = drps_async_window_steps(job->async);
    return rc;
}

/* Workers are slowed down, by their numbers; a rank without samples has none. */
static struct drps_emulate emulation_of(const struct drps_job *job)
{
    const struct drps_plan_ranks *ranks = &job->plan->info.ranks;
    if (!job->ranks) return (struct drps_emulate){.timing = job->options->emulate};
    if (!drps_rank_trains(ranks, ranks->rank)) return (struct drps_emulate){0};
    return (struct drps_emulate){.timing = job->options->emulate,
                                 .worker = ranks->rank - ranks->first_worker};
}

/* Training stops, and is cut by checkpoints, between epochs alone. Rounds of a pilot, of which
 * nothing is to stay, stop at once. */
static int has_whole_epochs(const struct drps_job *job)
{
    return job->exchange || job->circulation || job->push || job->pull || job->handing ||
           (job->ranks && job->options->pilot.on);
}

/* Before the store is open, as its rows need it. */
static int open_newton(struct drps_job *job, struct drps_err *err)
{
    const struct drps_model *model = &job->server.model;
    const struct drps_state *from = job->checkpoints.from ? &job->checkpoints.state : NULL;
    if (!drps_optim_is_newton(job->server.optim.kind)) return 0;
    int rc = drps_newton_open(&job->server.optim, job->plan->info.rows, model->dim, model->has_bias,
                              from ? &from->newton : NULL, &job->newton, err);
    job->server.newton = job->newton;
    return rc;
}

/* The sums go on where a checkpoint has them. */
static int open_topic(struct drps_job *job, struct drps_err *err)
{
    const struct drps_checkpoint *from = job->checkpoints.from;
    const struct drps_plan_ranks *ranks = &job->plan->info.ranks;
    struct drps_topic_options options =
        drps_topic_options_of(&job->server.model, &job->server.optim, job->worker_size.members);
    if (job->server.optim.kind != DRPS_OPTIM_ALTERNATING) return 0;
    if (job->ranks) {
        options.workers = ranks->workers;
        options.worker = drps_rank_trains(ranks, ranks->rank) ? ranks->rank - ranks->first_worker
                                                              : ranks->workers;
    }
    int rc = drps_topic_open(&options, &job->topic, err);
    job->server.topic = job->topic;
    if (rc == 0 && from) {
        rc = drps_checkpoint_read_held(from, drps_topic_state(job->topic), err);
        if (rc == 0) rc = drps_topic_restore(job->topic, drps_checkpoint_path(from), err);
    }
    return rc;
}

/* What is written before the store is opened. */
static int begin_files(struct drps_job *job, struct drps_store_config *config, struct drps_err *err)
{
    int rc = drps_job_begin_export(job, err);
    if (rc == 0) rc = drps_job_use_saved(job, config, err);
    if (rc == 0) rc = drps_job_replay(job, config, err);
    if (rc == 0) rc = drps_job_make_rows(job, err);
    if (rc == 0) rc = open_windows(job, config, err);
    if (rc == -ENOSPC || rc == -EDQUOT) drps_job_say_space(job, config, err);
    return rc;
}

int drps_job_start(struct drps_job *job, struct drps_store_config *config, struct drps_err *err)
{
    int rc = drps_job_begin_stage(job, err);
    if (rc == 0) rc = drps_watch_enter_folder(job->watch, job->stage.dir, err);
    if (rc == 0) rc = make_store_dir(job, err);
    if (rc == 0) rc = drps_job_look_at_saved(job, config, err);
    if (rc == 0) rc = drps_job_check_space(job, config, 0, err);
    if (rc == 0) rc = begin_files(job, config, err);
    if (rc == 0)
        rc = drps_feed_start(job->feed, drps_job_first_step(job), drps_job_epochs_left(job),
                             job->memory.buffer_bytes, job->memory.keep_plan, err);
    if (rc == 0 && job->memory.keep_decoded)
        rc = drps_batch_cache_open(&job->plan->info, job->feed, &job->batch_cache, err);
    if (rc == 0) rc = drps_worker_start(&job->worker, &job->server, &job->worker_size, err);
    job->worker.emulate = emulation_of(job);
    if (rc == 0 && job->plan->info.eval_batches) {
        job->metrics = drps_metrics_of(&job->server.model);
        if (!job->metrics) rc = drps_err_set(err, -ENOMEM, "no memory for the metrics");
    }
    if (rc == 0) rc = open_newton(job, err);
    if (rc == 0) rc = open_topic(job, err);
    if (rc == 0) rc = open_store(job, config, err);
    if (rc == 0) rc = open_device_worker(job, err);
    if (rc == 0) rc = drps_job_check_space(job, config, 1, err);
    if (rc == 0 && job->memory.stratum_batches) rc = open_stratum(job, err);
    if (rc == 0 && job->ranks) rc = open_rounds(job, err);
    if (rc == 0) rc = drps_job_new_log(job, err);
    if (rc == 0 && job->ranks) rc = open_exchange(job, err);
    if (rc == 0 && job->ranks) rc = open_async(job, err);
    job->loop = (struct drps_epoch_loop){
        .options = job->options,
        .info = &job->plan->info,
        .feed = job->feed,
        .batch_cache = job->batch_cache,
        .server = &job->server,
        .worker = &job->worker,
        .device = job->device_worker,
        .metrics = job->metrics,
        .stratum = job->stratum,
        .rounds = job->rounds,
        .circulation = job->circulation,
        .whole_epochs = has_whole_epochs(job),
        .async = job->async,
        .exchange = job->exchange,
        .cluster = job->ranks ? &job->cluster : NULL,
        /* There is no cut inside an epoch of these. */
        .pause = job->async || (has_whole_epochs(job) && !job->log) ? NULL : drps_job_checkpoint,
        .pause_ctx = job,
        .watch = job->watch ? drps_job_watch : NULL,
        .end_round = job->log ? drps_job_end_round : NULL,
        .train_steps = drps_pilot_train_steps(job->options, &job->plan->info),
        .eval_steps = drps_pilot_eval_steps(job->options, &job->plan->info),
    };
    return rc;
}
