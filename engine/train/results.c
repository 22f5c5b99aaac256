/* What a training run says of itself: times, bytes, the forecast beside them, how each rank fared.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "engine/cluster/async/drps_async.h"
#include "engine/cluster/drps_links.h"
#include "engine/train/job.h"

/* Epochs of this run: a resumed one has those before it among its results, too. */
static uint64_t run_epochs(const struct drps_train_result *r)
{
    return r->epochs_n - (r->resumed_epoch ? r->resumed_epoch - 1 : 0);
}

enum { FORECAST_MOST_USES = 64 << 20 }; /* of blocks in an epoch: beyond, it would take seconds */

static void forecast_blocks(struct drps_job *job)
{
    const struct drps_plan_info *info = &job->plan->info;
    struct drps_train_result *r = job->result;
    const struct drps_window_options options = {.steps = info->batches + info->eval_batches,
                                                .train_steps = info->batches,
                                                .rows = info->rows,
                                                .row_bytes = job->server.row_bytes,
                                                .budget_bytes = r->store_stats.pool_bytes,
                                                .memory_bytes = job->memory.store_bytes,
                                                .log = job->options->log};
    const int in_file = r->store_stats.device.sector != 0;
    struct drps_forecast_disk disk = job->disk;
    disk.gap_bytes = r->store_stats.device.gap_bytes;
    disk.sector = r->store_stats.device.sector;
    struct drps_err err = DRPS_ERR_INIT;
    int rc = drps_forecast_pib(job->plan->io, job->plan->dir, &options, job->block_first,
                               info->blocks, &r->store_stats.pool, r->evict, in_file ? &disk : NULL,
                               &r->forecast, &r->forecast_requests, &err);
    r->has_forecast = rc == 0;
    if (rc < 0)
        drps_log(job->options->log, DRPS_LOG_WARN, "no forecast: %s",
                 err.text); /* the training is done */
}

/* Forecasts how long an epoch takes by the speeds that the plan has, if it has any. Where all rows
 * are in memory nothing moves; else what moves is what the forecast says. */
static void forecast_time(struct drps_job *job)
{
    struct drps_train_result *r = job->result;
    const struct drps_plan_info *info = &job->plan->info;
    if (job->device.use.ops) return; /* speeds are those of processors */
    const struct drps_epoch_work work = {
        .samples = drps_plan_own_samples(info, info->samples),
        .test_samples = drps_plan_own_samples(info, info->test_samples),
        .read_bytes = r->forecast.read_bytes,
        .written_bytes = r->forecast.written_bytes,
        .requests = r->forecast_requests.n ? r->forecast_requests.n : r->forecast.ios,
        .apart = job->windows ? r->forecast.read_bytes / r->store_stats.chunk_bytes : 0,
        .threads = job->options->threads};
    if (r->has_forecast ? r->forecast.feasible : drps_memory_has_all_rows(&job->memory))
        r->forecast_seconds = drps_speeds_price(&info->speeds, &work);
}

/* 1: the files of the plan lie on the disk of the store; 0: elsewhere, or nobody knows. */
static int shares_disk(const struct drps_job *job)
{
    struct stat plan, store;
    return stat(job->plan->dir, &plan) == 0 && stat(job->store_dir, &store) == 0 &&
           plan.st_dev == store.st_dev;
}

/* By the pace that was measured before the run, or else by what the plan has of the machine that
 * made it. Rows are new in the first epoch of a run; and it may go on in the middle of one, which
 * is then no epoch to measure. */
static void find_limit(struct drps_job *job)
{
    struct drps_train_result *r = job->result;
    const size_t own = (size_t)run_epochs(r);
    const int has_plan = shares_disk(job);
    const int by_plan = !drps_disk_pace_is_known(&job->pace);
    r->limit = (struct drps_epoch_limit){.pace = by_plan ? job->plan->info.speeds.pace : job->pace,
                                         .by_plan = by_plan};
    if (job->ranks || (own == 1 && r->resumed_step)) return;
    for (size_t i = r->epochs_n - own + (own > 1); i < r->epochs_n; i++) {
        const struct drps_epoch *e = &r->epochs[i];
        const struct drps_epoch_spent spent = {
            .seconds = e->seconds,
            .waited = e->stall_share * e->seconds + e->plan_wait_seconds,
            .bytes = e->read_bytes + e->written_bytes + (has_plan ? e->plan_read_bytes : 0),
            .reads = e->reads};
        drps_limit_add(&r->limit, &spent);
    }
}

void drps_job_forecast(struct drps_job *job)
{
    struct drps_train_result *r = job->result;
    if (!run_epochs(r) || r->interrupted) return;
    if (job->memory.kv && r->store_stats.blocks_needed / run_epochs(r) <= FORECAST_MOST_USES)
        forecast_blocks(job);
    if (job->windows) {
        find_limit(job);
        drps_windows_forecast(job->windows, &r->store_stats, job->server.row_bytes, &r->forecast);
        r->has_forecast = 1;
    }
    forecast_time(job);
}

void drps_job_measure(struct drps_job *job)
{
    struct drps_train_result *r = job->result;
    struct drps_process_io now;
    drps_process_io_now(&now);
    r->process_io =
        (struct drps_process_io){.read_bytes = now.read_bytes - job->io_before.read_bytes,
                                 .written_bytes = now.written_bytes - job->io_before.written_bytes};
    r->phases.export = (double)job->export_ns * 1e-9;
    r->peak_rss_bytes = drps_memory_peak();
    r->seconds = drps_seconds_since(job->begin_ns);
}

/* Counts window by window; they are left out when memory is gone, since the training is done. */
static void collect_windows(struct drps_job *job)
{
    struct drps_train_result *r = job->result;
    if (!job->server.store || !job->windows) return;
    r->windows = calloc(job->window_source.windows, sizeof(*r->windows));
    if (!r->windows) return;
    r->windows_n = job->window_source.windows;
    job->server.ops->window_stats(job->server.store, r->windows);
}

/* What may be asked for at any time between two steps. */
static void count(struct drps_job *job)
{
    struct drps_train_result *r = job->result;
    struct drps_feed_stats feed;
    if (job->server.store) job->server.ops->stats(job->server.store, &r->store_stats);
    if (job->feed) {
        drps_feed_stats(job->feed, &feed);
        r->plan_read_bytes = feed.read_bytes;
        r->plan_wait_seconds = (double)feed.wait_ns * 1e-9;
    }
    r->phases = (struct drps_phases){
        .plan = (double)job->loop.plan_ns * 1e-9,
        .wait_store = (double)job->loop.wait_ns * 1e-9,
        .gather = (double)job->worker.gather_ns * 1e-9,
        .compute = (double)job->worker.compute_ns * 1e-9,
        .step = (double)job->loop.step_ns * 1e-9,
        .evaluate = (double)job->loop.evaluate_ns * 1e-9,
        .hand_over = (double)job->loop.hand_ns * 1e-9,
        .export = (double)job->export_ns * 1e-9,
    };
}

void drps_job_watch(void *ctx, const struct drps_train_progress *progress)
{
    struct drps_job *job = ctx;
    count(job);
    drps_watch_counts(job->watch, job->result, job->ranks ? job->cluster.net : NULL);
    drps_watch_progress(job->watch, progress, (double)job->server.optim.lr);
}

void drps_job_collect(struct drps_job *job)
{
    struct drps_train_result *r = job->result;
    count(job);
    collect_windows(job);
    if (job->log)
        drps_round_log_counts(job->log, &r->checkpoints.rounds, &r->checkpoints.log_bytes);
    r->first_step_seconds =
        job->loop.first_ns ? (double)(job->loop.first_ns - job->begin_ns) * 1e-9 : NAN;
    r->emulated = job->worker.emulate.done;
    drps_job_measure(job);
}

/* Returns the seconds in which this rank waited for ranges. */
static double count_circulated(const struct drps_job *job, struct drps_rounds_bytes *done,
                               struct drps_rounds_bytes *planned)
{
    struct drps_circulation_stats was, said;
    drps_circulation_stats(job->circulation, &was);
    drps_circulation_forecast(&job->plan->info, job->server.row_bytes, run_epochs(job->result),
                              &said);
    *done = (struct drps_rounds_bytes){.sent = was.sent_bytes, .received = was.received_bytes};
    *planned = (struct drps_rounds_bytes){.sent = said.sent_bytes, .received = said.received_bytes};
    return (double)was.wait_ns * 1e-9;
}

static void count_exchanged(const struct drps_job *job, struct drps_rounds_bytes *out)
{
    struct drps_traffic sent = {0};
    out->received = drps_exchange_traffic(job->exchange, &sent);
    out->sent = sent.kinds[DRPS_TRAFFIC_EXCHANGED].bytes;
}

/* Adds up the bytes of parameters and gradients of all rounds, without marks. */
static void count_bytes(const struct drps_job *job, struct drps_rounds_bytes *out)
{
    struct drps_rounds_bytes more = {0};
    drps_rounds_bytes(job->rounds, out);
    if (job->async) drps_async_bytes(job->async, &more);
    if (job->exchange) count_exchanged(job, &more);
    out->sent += more.sent - out->sent_marks;
    out->received += more.received - out->received_marks;
}

/* What the plan says of the bytes of rounds. It does not know which messages leave fresh rows out:
 * servers and workers have counted these, all of the first epoch. */
static void forecast_bytes(const struct drps_job *job, const struct drps_rounds_fresh *fresh,
                           struct drps_rounds_bytes *out)
{
    const struct drps_plan_info *info = &job->plan->info;
    const uint64_t row = info->dim * sizeof(float);
    drps_rounds_forecast(info, job->worker.has_touches, run_epochs(job->result), out);
    if (!run_epochs(job->result)) return;
    out->sent -= fresh->left_out * row;
    for (uint32_t s = 0; s < info->ranks.count; s++)
        out->received -= fresh->made[s] * row;
}

/* What averages and rotation let the rank at this place send. */
static uint64_t meeting_bytes(const struct drps_job *job, uint32_t place)
{
    const uint64_t epochs = run_epochs(job->result);
    return drps_exchange_meeting_bytes(&job->plan->info, job->server.row_bytes, job->options,
                                       job->result->epochs_n - epochs, epochs, place);
}

/* The same where each rank has all rows: rounds are those of evaluation alone. */
static void forecast_exchanged(const struct drps_job *job, struct drps_rounds_bytes *out)
{
    const struct drps_plan_info *info = &job->plan->info;
    const uint64_t row = info->dim * sizeof(float), epochs = run_epochs(job->result);
    const uint64_t received =
        drps_exchange_received(info, job->way, &job->exchange_bytes, &job->all_exchange_bytes);
    const uint32_t rank = info->ranks.rank,
                   before = (rank + info->ranks.count - 1) % info->ranks.count;
    out->sent = epochs * (info->ranks.eval_served_rows * row + job->exchange_bytes.of[job->way]) +
                meeting_bytes(job, rank);
    out->received =
        epochs * (info->ranks.eval_pulled_rows * row + received) + meeting_bytes(job, before);
}

static void add_emulated(struct drps_train_emulated *sum, const struct drps_train_emulated *e)
{
    sum->iterations += e->iterations;
    sum->overruns += e->overruns;
    sum->emulated_ns += e->emulated_ns;
    sum->computed_ns += e->computed_ns;
    sum->late_ns += e->late_ns;
}

/* What this rank has sent, by kind and by receiver. */
static void add_traffic(const struct drps_job *job, struct drps_traffic *sum)
{
    if (job->circulation) drps_circulation_traffic(job->circulation, sum);
    if (job->rounds) drps_rounds_traffic(job->rounds, sum);
    if (job->async) drps_async_traffic(job->async, sum);
    if (job->exchange) (void)drps_exchange_traffic(job->exchange, sum);
}

/* Where the time of this rank went: its worker's, and its server's where the worker waited for it.
 */
static void count_times(const struct drps_job *job, struct drps_train_rank *mine)
{
    const struct drps_train_result *r = job->result;
    struct drps_rounds_times t = {0};
    if (job->rounds) drps_rounds_times(job->rounds, &t);
    mine->network_seconds = (double)t.network_ns * 1e-9;
    mine->store_seconds = (double)t.store_ns * 1e-9;
    mine->compute_seconds = r->phases.compute;
    mine->reduce_seconds = (double)t.reduce_ns * 1e-9;
    mine->broadcast_seconds = (double)t.broadcast_ns * 1e-9;
    if (job->async) mine->store_seconds = (double)r->store_stats.stall_ns * 1e-9;
    if (!job->circulation) return;
    mine->network_seconds = mine->waiting_seconds;
    mine->store_seconds = r->phases.wait_store;
}

/* The table of bytes from rank to rank. What the plan says of it is left out where the plan cannot
 * be read any more, since the training is done. */
static int gather_links(struct drps_job *job, const struct drps_traffic *sent,
                        const struct drps_rounds_fresh *fresh, struct drps_err *err)
{
    const struct drps_plan_info *info = &job->plan->info;
    uint64_t exchanged[DRPS_PLAN_WORKERS_MAX];
    if (job->exchange) drps_exchange_to(&info->ranks, job->way, &job->exchange_bytes, exchanged);
    const struct drps_links_job links = {.touches = job->worker.has_touches,
                                         .hands_on = job->handing != NULL,
                                         .row_bytes = job->server.row_bytes,
                                         .epochs = run_epochs(job->result),
                                         .exchanged = job->exchange ? exchanged : NULL};
    struct drps_err why = DRPS_ERR_INIT;
    struct drps_links_mine *mine = calloc(1, sizeof(*mine));
    if (!mine) return drps_err_set(err, -ENOMEM, "no memory for the bytes between ranks");
    memcpy(mine->sent, sent->to, sizeof(mine->sent));
    if (drps_links_forecast(job->plan, &links, mine, &why) < 0)
        drps_log(job->options->log, DRPS_LOG_WARN, "no forecast from rank to rank: %s", why.text);
    if (job->exchange)
        mine->to[(info->ranks.rank + 1) % info->ranks.count] +=
            meeting_bytes(job, info->ranks.rank);
    if (job->rounds) drps_rounds_forecast_links(job->rounds, links.epochs, mine->to, mine->from);
    for (uint32_t s = 0; s < info->ranks.count; s++)
        if (mine->from[s]) mine->from[s] -= fresh->made[s] * info->dim * sizeof(float);
    const int rc = drps_links_gather(&job->cluster, mine, &job->result->links, err);
    free(mine);
    return rc;
}

static void count_push(const struct drps_push *push, struct drps_push_counts *out)
{
    struct drps_push_kept left;
    drps_push_kept(push, &left);
    *out = *drps_push_counts(push);
    out->left_rows = left.rows;
    out->left_sum = left.sum;
}

int drps_job_collect_ranks(struct drps_job *job, struct drps_err *err)
{
    struct drps_train_result *r = job->result;
    const struct drps_phases *p = &r->phases;
    const double seconds =
        p->plan + p->wait_store + p->gather + p->compute + p->step + p->evaluate + p->hand_over;
    double waited = p->wait_store;
    struct drps_rounds_bytes done, planned;
    struct drps_rounds_fresh fresh = {0};
    struct drps_traffic sent = {0};
    add_traffic(job, &sent);
    if (job->circulation) {
        waited = count_circulated(job, &done, &planned);
    } else {
        count_bytes(job, &done);
        drps_rounds_fresh(job->rounds, &fresh);
        forecast_bytes(job, &fresh, &planned);
        if (job->exchange) forecast_exchanged(job, &planned);
        const struct drps_rounds_seen seen = drps_rounds_seen(job->rounds);
        if (drps_rounds_sums_common(&job->plan->info, job->options))
            drps_rounds_forecast_common(&job->plan->info, job->worker.has_touches,
                                        job->server.row_bytes, run_epochs(r), &r->common.vectors,
                                        &seen, &planned);
        if (job->handing)
            drps_rounds_forecast_handed(&job->plan->info, job->worker.has_touches,
                                        job->server.row_bytes, run_epochs(r), &planned);
    }
    struct drps_train_rank mine = {
        .sent_bytes = done.sent,
        .received_bytes = done.received,
        .forecast_sent_bytes = planned.sent,
        .forecast_received_bytes = planned.received,
        .other_sent_bytes = drps_cluster_sent(&job->cluster) - done.sent,
        .peak_rss_bytes = r->peak_rss_bytes,
        .read_bytes = r->store_stats.io.read_bytes,
        .written_bytes = r->store_stats.io.written_bytes,
        .waiting_seconds = waited,
        .waiting_share = seconds > 0 ? waited / seconds : 0,
        .emulated = r->emulated,
    };
    memcpy(mine.sent, sent.kinds, sizeof(mine.sent));
    count_times(job, &mine);
    if (job->push) count_push(job->push, &mine.push);
    if (job->pull) mine.pull = *drps_pull_counts_of(job->pull);
    if (job->async) drps_async_report(job->async, &mine);
    r->ranks_n = job->cluster.count;
    int rc = drps_cluster_report(&job->cluster, &mine, &r->ranks, err);
    if (rc == 0) rc = gather_links(job, &sent, &fresh, err);
    for (size_t i = 0; rc == 0 && i < r->ranks_n; i++)
        if (i != job->cluster.rank) add_emulated(&r->emulated, &r->ranks[i].emulated);
    return rc;
}
