/*
 * Before a run makes a file: what can be refused is refused, model and optimizer are settled, the
 * files of the plan opened, and the memory is split. It needs the plan and the options of the job.
 */
#include "engine/train/job.h"

#include <math.h>
#include <string.h>

#include "engine/publish/drps_publish_stage.h"
#include "engine/train/learning/drps_learning.h"
#include "engine/train/topic/drps_topic_check.h"
#include "index/plan/drps_names.h"
#include "storage/pib/drps_evict.h"

/* ---- Options and files of the plan ---- */

static int check_pull(const struct drps_job *job, struct drps_err *err)
{
    const struct drps_plan_info *info = &job->plan->info;
    if (!info->ranks.published_slots)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s was made by an earlier version, and has no published slots: make "
                            "it anew",
                            job->plan->dir);
    if (job->options->pull.bits == 8 && info->dim == 1)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "rows of one value are not shorter in 8 bits, which share an exponent: "
                            "send parameters in 16");
    return 0;
}

static int check_async_pull(const struct drps_pull_options *o, struct drps_err *err)
{
    if (o->bits != 8 && !(o->eps > 0)) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "filters of parameters by their change, and 8 bits of a value, are of "
                        "synchronisation bsp: in other modes send 16, or leave them out");
}

static int check_copies(const struct drps_job *job, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    if (o->sync != DRPS_SCHED_SSP)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "copies of parameters are used as long as the bound of synchronisation "
                            "ssp allows, and %s has none: leave them out",
                            drps_sched_mode_name(o->sync));
    if (job->plan->info.ranks.residual_slots) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s has no residual slots, where copies of parameters are kept: make a "
                        "plan that has them",
                        job->plan->dir);
}

/* Gradients that wait over epochs, or in fewer bits. */
static int check_own_slots(const struct drps_job *job, struct drps_err *err)
{
    if (!drps_push_needs_own_slots(&job->options->push) || job->plan->info.ranks.own_slots)
        return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "in %s rows have no residual slots of their own, in which gradients wait "
                        "over epochs: make a plan where each row has one",
                        job->plan->dir);
}

static int check_filters(const struct drps_job *job, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    const struct drps_plan_info *info = &job->plan->info;
    const int is_bsp = o->sync == DRPS_SCHED_BSP;
    const int tries = o->pilot.of_filters;
    const int push = o->push.on || tries, pull = o->pull.on || tries;
    const char *what = tries ? "traffic" : push ? "gradients" : "parameters";
    int rc = o->pull_cached ? check_copies(job, err) : 0;
    if (rc < 0 || (!push && !pull)) return rc;
    if (drps_plan_circulates(info))
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "in %s rows circulate, and nothing is sent to servers: leave filters of %s out",
            job->plan->dir, what);
    if (info->ranks.workers < 2)
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "filters of %s are for what goes to other workers' servers, or comes from there: "
            "leave them out",
            what);
    if (o->pull.on && !is_bsp) rc = check_async_pull(&o->pull, err);
    if (rc == 0 && (push || is_bsp) && !info->ranks.residual_slots)
        rc = drps_err_set(err, DRPS_E_CONFIG,
                          "%s has no residual slots, which keep what is not sent of a gradient, "
                          "and copies of rows: make a plan that has them",
                          job->plan->dir);
    if (rc == 0) rc = check_own_slots(job, err);
    return rc == 0 && pull && is_bsp ? check_pull(job, err) : rc;
}

/* A server knows how stale a gradient is that has come whole, for parameters that it has sent. */
static int check_stale(const struct drps_train_options *o, struct drps_err *err)
{
    if (o->lr_stale == DRPS_STALE_SAME) return 0;
    if (o->sync == DRPS_SCHED_BSP)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a rate for stale gradients is of asp, ssp and wsp: under "
                            "synchronisation bsp none is stale, leave it out");
    if (o->exchange != DRPS_EXCHANGE_SERVERS)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a rate for stale gradients is of servers, and ranks exchange %s: "
                            "leave one of both out",
                            drps_exchange_name(o->exchange));
    if (!o->push.on && !o->pull_cached && !o->pilot.of_filters) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "a rate for stale gradients goes with whole gradients: leave filters of "
                        "gradients, copies of parameters and the target of filters out, or it");
}

static int no_exchange(const struct drps_job *job, const char *why, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CONFIG, "%s: %s: leave the exchange of %s to servers",
                        job->plan->dir, why, drps_exchange_name(job->options->exchange));
}

static int is_alone(const struct drps_job *job)
{
    return !job->options->ranks && job->plan->info.ranks.count < 2;
}

/* 1: one process without ranks restores rounds that were logged, or may when it goes on. */
static int restores_all_rows(const struct drps_job *job)
{
    return is_alone(job) && (job->options->checkpoint_vectors || job->checkpoints.replays);
}

/* One process restores rounds in memory, from the rows of its whole model. */
static int check_own_log(const struct drps_job *job, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    const int is_resident =
        !o->store || strcmp(o->store, "auto") == 0 || strcmp(o->store, "resident") == 0;
    if (!restores_all_rows(job)) return 0;
    if (!is_resident)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "rounds of checkpoints of vectors are restored in memory: store %s "
                            "cannot be, take resident, or have checkpoints of rows written",
                            o->store);
    if (!drps_plan_is_matrix(&job->plan->info))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "checkpoints of vectors are of models of several scores, and %s has "
                            "one: have checkpoints of rows written",
                            job->plan->dir);
    if (drps_algorithm_has_sample_rows(drps_plan_algorithm(&job->plan->info)))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "samples of %s have rows of their own, which no vectors change: have "
                            "checkpoints of rows written instead of checkpoints of vectors",
                            job->plan->dir);
    if (o->local_steps)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "local steps apply no vectors of a whole batch: leave them out, or "
                            "have checkpoints of rows written instead of checkpoints of vectors");
    return 0;
}

/* What is logged are vectors, which ranks exchange under bsp: then all have the same rows. */
static int check_log(const struct drps_job *job, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    int rc = check_own_log(job, err);
    if (rc < 0 || !o->checkpoint_vectors) return rc;
    if (!is_alone(job) && o->exchange != DRPS_EXCHANGE_VECTORS && o->exchange != DRPS_EXCHANGE_AUTO)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "checkpoints of vectors are of ranks that exchange vectors: exchange "
                            "vectors, or have checkpoints of rows written");
    if (o->checkpoint_every.unit == DRPS_CHECKPOINT_NEVER)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "vectors are logged beside checkpoints, and there are to be none: "
                            "leave one of both out");
    return 0;
}

/* Replicas that differ are written as a whole when they meet, which the resident store can. */
static int check_replicas_that_differ(const struct drps_job *job, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    const int is_resident =
        !o->store || strcmp(o->store, "auto") == 0 || strcmp(o->store, "resident") == 0;
    if (!is_resident)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "ranks whose rows differ within an epoch have all of them in memory: "
                            "store %s cannot be, take resident",
                            o->store);
    if (o->checkpoint_vectors)
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "vectors are logged where all ranks apply the same in a round: have "
            "checkpoints of rows written, or send all vectors to all ranks at once");
    return 0;
}

/* When vectors must have come, and when replicas meet. */
static int check_meetings(const struct drps_train_options *o, int differs, struct drps_err *err)
{
    const struct drps_train_multicast *m = &o->multicast;
    if (drps_replicas_go_apart(o) && (m->average || m->rotate || m->late))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "under synchronisation %s there are no rounds, after which replicas "
                            "meet, or by which vectors have come: leave that out",
                            drps_sched_mode_name(o->sync));
    if (m->late > DRPS_LATE_MOST)
        return drps_err_set(err, DRPS_E_CONFIG, "vectors come at most %d rounds late, not %llu",
                            DRPS_LATE_MOST, (unsigned long long)m->late);
    if (m->rotate && m->late)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "replicas move to other ranks between rounds that end together, and "
                            "here vectors may come late: leave one of both out");
    if ((m->average || m->rotate) && !differs)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "where all vectors go to all ranks at once, replicas are the same: "
                            "there is nothing to average, or to rotate");
    if (m->average && m->rotate && m->rotate % m->average == 0)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "replicas that are averaged every %llu rounds are the same whenever "
                            "they were to move, every %llu: move them in between",
                            (unsigned long long)m->average, (unsigned long long)m->rotate);
    return 0;
}

/* To whom vectors go. */
static int check_multicast(const struct drps_job *job, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    const struct drps_train_multicast *m = &o->multicast;
    const uint32_t others = job->plan->info.ranks.count - 1;
    const int differs = drps_replicas_differ(o, others + 1);
    if ((differs || m->to || m->average || m->rotate || m->rule) &&
        o->exchange != DRPS_EXCHANGE_VECTORS)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "to whom vectors go, when they must have come, and when replicas meet "
                            "is of exchange of vectors: ask for that, or leave it to servers");
    if (o->sv_rule && !o->sv_count)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a rule chooses some of a batch's vectors: say how many");
    if (m->to > others)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "vectors cannot go to %u other ranks where there are %u: without the "
                            "number they go to all",
                            m->to, others);
    if (m->rule && !m->to)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a rule chooses some of the other ranks: say to how many vectors go");
    if (!(m->loss >= 0 && m->loss < 1))
        return drps_err_set(err, DRPS_E_CONFIG, "a share of %g of the links cannot be broken",
                            m->loss);
    int rc = check_meetings(o, differs, err);
    return rc == 0 && differs ? check_replicas_that_differ(job, err) : rc;
}

/* Replicas are of models whose gradient is a sum of outer products. */
static int check_exchange(const struct drps_job *job, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    const struct drps_plan_info *info = &job->plan->info;
    if (o->sv_count && o->exchange != DRPS_EXCHANGE_VECTORS)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "vectors are chosen where vectors are exchanged: exchange vectors, or "
                            "choose none");
    int rc = check_multicast(job, err);
    if (rc < 0 || o->exchange == DRPS_EXCHANGE_SERVERS) return rc;
    if (info->ranks.count < 2) return no_exchange(job, "a plan for one worker", err);
    if (!drps_plan_is_matrix(info))
        return no_exchange(job, "samples of its model have not several scores", err);
    if (o->exchange == DRPS_EXCHANGE_VECTORS &&
        drps_algorithm_has_sample_rows(drps_plan_algorithm(info)))
        return no_exchange(job, "rows of samples are no outer products of vectors", err);
    if (o->sync == DRPS_SCHED_SSP || (o->sync != DRPS_SCHED_BSP && !drps_replicas_go_apart(o)))
        return no_exchange(
            job,
            "ranks that each have all rows are of synchronisation bsp, and those that "
            "exchange vectors of ssp (by how late these may come), asp and wsp, too",
            err);
    if (!drps_ranks_are_alike(&info->ranks))
        return no_exchange(job, "not every rank is a worker and a server", err);
    if (drps_cluster_exchange_bytes(info) > DRPS_NET_MESSAGE_MAX)
        return no_exchange(job, "what a rank would send at a time is too large", err);
    if (info->ranks.handed.slots && !o->no_hand_on)
        return no_exchange(job, "its rows are handed on", err);
    if (o->push.on || o->pull.on || o->pilot.of_filters)
        return no_exchange(job, "filters are for what goes to servers, or comes from there", err);
    return 0;
}

static int check_common(const struct drps_job *job, struct drps_err *err)
{
    const enum drps_common_exchange way = job->options->common;
    const char *why = drps_rounds_no_sums(&job->plan->info, job->options);
    if ((way != DRPS_COMMON_SUMS && way != DRPS_COMMON_VECTORS) || !why) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s: %s: leave the exchange of a net's own parameters to servers",
                        job->plan->dir, why);
}

static int check_options(const struct drps_job *job, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    const struct drps_plan_info *info = &job->plan->info;
    char ranks[DRPS_PLAN_RANKS_TEXT_BYTES];
    if (!o->model_path || !*o->model_path)
        return drps_err_set(err, DRPS_E_CONFIG, "give the model a name");
    if (!o->ranks && info->ranks.count > 1)
        return drps_err_set(
            err, DRPS_E_CONFIG, "%s is a plan for %s: run %u ranks here, or a rank on each machine",
            job->plan->dir, drps_plan_ranks_text(&info->ranks, ranks), info->ranks.count);
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
    if (drps_sched_is_tuned(&o->wsp) && !drps_sched_has_waits(o->sync))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "weights of waiting are of wsp, which chooses whom to wait for: "
                            "synchronisation %s chooses nobody, leave them out",
                            drps_sched_mode_name(o->sync));
    if (o->no_claim && o->sync == DRPS_SCHED_BSP)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "under synchronisation bsp nobody claims batches: there is nothing to "
                            "forbid");
    int rc = drps_topic_check(job->plan, o, err);
    if (rc == 0) rc = check_stale(o, err);
    if (rc == 0) rc = check_filters(job, err);
    if (rc == 0) rc = check_exchange(job, err);
    if (rc == 0) rc = check_common(job, err);
    if (rc == 0) rc = check_log(job, err);
    if (rc < 0) return rc;
    if (!info->batches || !info->samples)
        return drps_err_set(err, DRPS_E_CONFIG, "%s has no training samples", job->plan->dir);
    if (o->threads > DRPS_TRAIN_THREADS_MAX)
        return drps_err_set(err, DRPS_E_CONFIG, "%u threads: at most %d", o->threads,
                            DRPS_TRAIN_THREADS_MAX);
    if (o->evict && drps_evict_find(o->evict, &job->result->evict) < 0)
        return drps_err_set(err, DRPS_E_CONFIG, "eviction rule %s is none of farthest, clock, lru",
                            o->evict);
    rc = drps_learning_check_metric(job->plan, o, err);
    if (rc < 0) return rc;
    if (o->epochs > UINT64_MAX / (info->batches + info->eval_batches))
        return drps_err_set(err, DRPS_E_CONFIG, "%llu epochs are too many",
                            (unsigned long long)o->epochs);
    return 0;
}

int drps_train_check(const struct drps_plan *plan, const struct drps_train_options *options,
                     struct drps_err *err)
{
    struct drps_train_result result = {0};
    const struct drps_job job = {.plan = plan, .options = options, .result = &result};
    struct drps_model model;
    struct drps_optim optim;
    int rc = check_options(&job, err);
    if (rc == 0) rc = drps_learning_model(plan, options, &model, err);
    return rc == 0 ? drps_learning_optim(plan, options, &model, &optim, err) : rc;
}

/* Checks the plan's dictionary, which the model gets: that it is missing or another one should not
 * come out after hours of training. */
static int check_names(const struct drps_job *job, struct drps_err *err)
{
    struct drps_names *names;
    if (!job->whole) return 0;
    int rc = drps_names_open(job->plan->io, job->whole->dir, &names, err);
    drps_names_close(names);
    return rc == 0 ? drps_plan_read_file(job->whole, DRPS_FILE_NAMES, NULL, NULL, err) : rc;
}

/* ---- Sizes, and the split of memory ---- */

static struct drps_worker_size worker_size(const struct drps_job *job)
{
    const struct drps_plan_info *info = &job->plan->info;
    const struct drps_optim *optim = &job->server.optim;
    const int trains = drps_rank_trains(&info->ranks, info->ranks.rank) || !job->ranks;
    return (struct drps_worker_size){
        .samples = trains ? info->max_batch_samples : 0,
        .rows = trains ? info->max_batch_rows : 0,
        .members = job->options->threads ? job->options->threads : 1,
        .touches = drps_optim_counts_touches(optim->kind) && (optim->l1 > 0 || optim->l2 > 0),
        .local_steps = job->options->local_steps,
        .sends = job->ranks && !drps_plan_circulates(info),
        .one_array = optim->kind == DRPS_OPTIM_ALTERNATING,
        .slopes = job->options->checkpoint_vectors && is_alone(job),
    };
}

static struct drps_store_config store_config(struct drps_job *job, uint64_t steps)
{
    const struct drps_plan_info *info = &job->plan->info;
    job->timeline.steps = steps;
    job->timeline.max_use_distance = info->batches + info->eval_batches; /* once an epoch */
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

int drps_job_prepare_parts(struct drps_job *job, struct drps_store_config *config,
                           struct drps_memory_parts *parts, struct drps_err *err)
{
    const struct drps_plan_info *info = &job->plan->info;
    struct drps_model model;

    int rc = drps_memory_check_store(job->options->store, err);
    if (rc == 0) rc = drps_learning_model(job->plan, job->options, &model, err);
    if (rc == 0) rc = drps_learning_optim(job->plan, job->options, &model, &job->asked, err);
    if (rc < 0) return rc;
    const struct drps_optim optim = drps_learning_steps(job->plan, job->options, &job->asked);
    drps_server_init(&job->server, &model, &optim);
    job->server.first_row = info->ranks.first_row;
    if (info->ranks.held_n) job->server.holds = &info->ranks;
    job->server.own = drps_plan_own_rows(info);
    rc = drps_feed_open(job->plan, drps_model_common_rows(&model), &job->feed, err);
    if (rc == 0 && info->rows && drps_memory_wants_blocks(job->options->store)) {
        rc = drps_plan_blocks(job->plan, &job->block_first, err);
        if (rc == 0) rc = drps_uses_open(job->plan, &job->uses, err);
    }
    if (rc < 0) return rc;

    rc = drps_on_device_open(job->plan, job->options, &job->server, &job->device, err);
    if (rc < 0) return rc;

    const int logs = job->options->checkpoint_vectors;
    job->worker_size = worker_size(job);
    *config = store_config(job, job->options->epochs * (info->batches + info->eval_batches));
    config->device_frames = job->device.frames;
    drps_server_configure(&job->server, config, info->rows);
    *parts = (struct drps_memory_parts){.plan = job->plan,
                                        .options = job->options,
                                        .server = &job->server,
                                        .feed = job->feed,
                                        .uses = job->uses,
                                        .worker = &job->worker_size,
                                        .way = job->way,
                                        .logged = logs ? drps_job_logged_batches(job) : 0,
                                        .device_keep_most = job->device.keep_host_most,
                                        .device_host_bytes = job->device.host_bytes,
                                        .replays = restores_all_rows(job),
                                        .config = config};
    return 0;
}

/* Choose how gradients are exchanged, as all ranks do; where they have no room for all rows: by
 * servers. */
static int settle_way(struct drps_job *job, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    struct drps_train_exchange *found = &job->result->exchange;
    struct drps_exchange_bytes *all = &job->all_exchange_bytes;
    struct drps_train_options all_sent = *o;
    job->way = o->exchange == DRPS_EXCHANGE_AUTO ? DRPS_EXCHANGE_SERVERS : o->exchange;
    if (o->exchange == DRPS_EXCHANGE_SERVERS) return 0;
    all_sent.sv_count = 0;
    const uint64_t room =
        drps_exchange_memory(&job->plan->info, job->server.row_bytes, job->worker_size.touches,
                             DRPS_EXCHANGE_VECTORS, &all_sent);
    const int fits = room <= o->memory_bytes / 2 || !o->memory_bytes;
    int rc =
        drps_exchange_forecast(job->plan, job->worker_size.touches, o, &job->exchange_bytes, err);
    *all = job->exchange_bytes;
    if (rc == 0)
        rc = drps_exchange_choose(&job->cluster, fits, all, &found->fewest, &found->fits, err);
    if (rc < 0) return rc;
    memcpy(found->forecast_bytes, all->of, sizeof(found->forecast_bytes));
    if (o->exchange == DRPS_EXCHANGE_AUTO && found->fits) job->way = found->fewest;
    found->way = job->way;
    found->chosen = o->exchange == DRPS_EXCHANGE_AUTO;
    if (o->checkpoint_vectors && job->way != DRPS_EXCHANGE_VECTORS)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s sends the fewest bytes by exchange of %s, and checkpoints of "
                            "vectors are of exchange of vectors: ask for that, or have checkpoints "
                            "of rows written",
                            job->plan->dir, drps_exchange_name(job->way));
    return 0;
}

/* Small batches without lanes are shared out by samples: threads then wait for each other, and take
 * rows from each other's caches. */
static void remark_threads(struct drps_job *job)
{
    enum { SMALL_BATCH = 2000 /* ratings */ };
    const struct drps_plan_info *info = &job->plan->info;
    const struct drps_train_options *o = job->options;
    const struct drps_algorithm *a = drps_algorithm_find(info->algo);
    if (o->threads < 2 || info->lanes > 1 || info->ranks.count > 1 || o->emulate || !a) return;
    if (!drps_algorithm_rates(a) || drps_algorithm_draws(a)) return;
    if (info->max_batch_samples > SMALL_BATCH) return;
    drps_remark(&job->result->remarks, o->log,
                "%u threads take longer than one for batches of %llu ratings in a plan without "
                "lanes: train with one thread or, in shuffled order, make a plan with lanes",
                o->threads, (unsigned long long)info->max_batch_samples);
}

int drps_job_prepare(struct drps_job *job, struct drps_store_config *config, struct drps_err *err)
{
    struct drps_memory_parts parts;
    int rc = check_options(job, err);
    if (rc == 0 && job->ranks) rc = drps_cluster_init(&job->cluster, job->plan, job->options, err);
    if (rc == 0) rc = drps_job_find_checkpoint(job, err);
    if (rc == 0) rc = check_options(job, err); /* with what it has settled */
    if (rc == 0) rc = drps_job_check_delta(job, err);
    if (rc == 0) rc = drps_publish_engine(job->options->model_store, &job->model_kv, err);
    if (rc == 0) rc = check_names(job, err);
    if (rc == 0) rc = drps_job_prepare_parts(job, config, &parts, err);
    if (rc == 0) rc = settle_way(job, err);
    parts.way = job->way;
    if (rc == 0) rc = drps_job_check_rows(job, err);
    if (drps_optim_has_matrix(job->server.optim.kind)) /* which is in no checkpoint */
        job->settled.checkpoint_every.unit = DRPS_CHECKPOINT_NEVER;
    if (rc == 0) rc = drps_job_open_from(job, err);
    if (rc < 0) return rc;
    rc = drps_memory_split(&job->memory, &parts, err);
    job->result->memory = job->memory.budget;
    if (rc == 0) remark_threads(job);
    return rc;
}
