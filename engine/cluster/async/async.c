/* The threads of asynchronous rounds, and how they end together. */
#include "engine/cluster/async/drps_async.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cluster/async/parts.h"
#include "engine/cluster/sv/drps_exchange.h"
#include "engine/cluster/target/drps_pilot.h"

/* A part with a thread of its own, and what its epoch came to. */
struct part_thread {
    pthread_t thread;
    int running, rc;
    struct drps_err err;
};

struct drps_async {
    struct async_job job;
    struct drps_plan_ranks shape; /* job.shape */
    struct async_worker *worker;  /* own, as are the next two */
    struct async_server *server;  /* NULL: nobody serves rows */
    struct async_master *master;  /* NULL above rank 0 */
    struct part_thread serving, scheduling;
    int stopped; /* END said so */
};

void drps_async_opened(void *listener)
{
    const struct drps_async_listener *to = listener;
    const struct drps_net_send send = {
        .to = drps_net_rank(to->net), .part = DRPS_NET_SERVER, .type = DRPS_MESSAGE_OPENED};
    const int rc = drps_net_send(to->net, &send, to->wait_ms, NULL);
    (void)rc; /* that fails when the net has failed, which the server hears itself */
}

/* ---- Sizes ---- */

/* Parameters of a batch for the worker of each rank. */
static uint64_t outgoing_bytes(const struct drps_plan_info *info)
{
    return info->ranks.count * drps_async_part_rows(info) * info->dim * sizeof(float);
}

/* The ring of open steps, with row numbers while rows may be fresh, and how stale each batch's
 * gradient is; parameters on their way out,
 * for each worker; a batch of another share where it is read, where it is received, where it is
 * unpacked, and on its way to two others. What a worker has received, of two batches, counts with
 * rounds. */
uint64_t drps_async_memory(const struct drps_plan_info *info, uint64_t window_steps)
{
    const uint64_t step =
        info->ranks.max_round_uses * 2 * sizeof(uint32_t) + (info->ranks.count + 8) * 33;
    return 2 * window_steps * step + outgoing_bytes(info) + 5 * drps_feed_record_bytes(info);
}

/* Parameters of one batch more on their way, which of its rows they are and what is known of them,
 * a pull more that is put aside, and a gradient that the rank's own server still reads. */
uint64_t drps_async_ahead_memory(const struct drps_plan_info *info)
{
    enum { A_RANK = 4 * sizeof(uint64_t) };
    const uint64_t gradient =
        (info->max_batch_rows + 1) * (info->dim * sizeof(float) + sizeof(uint32_t));
    const uint64_t rows = drps_async_part_rows(info);
    return outgoing_bytes(info) +
           info->ranks.count * (2 * drps_async_mark_bytes(rows) + 24 + A_RANK) +
           rows * sizeof(uint32_t) + gradient;
}

/* A message that a server reads, what was held back, and which steps' it is that are not open. */
uint64_t drps_async_filters_memory(const struct drps_plan_info *info, int touches,
                                   uint64_t window_steps)
{
    const struct drps_push_shape most = drps_push_most(info, touches);
    const uint64_t bound = drps_push_bound(&most), reader = drps_push_reader_memory(&most);
    const uint64_t rows = drps_async_part_rows(info) + 1;
    if (bound > UINT64_MAX / 4 || reader > UINT64_MAX / 4) return UINT64_MAX;
    return bound + reader + rows * (info->dim * sizeof(float) + 3 * sizeof(uint32_t)) +
           info->ranks.count * 4 * window_steps * sizeof(void *);
}

/* ---- Opening ---- */

/* What a rank has room for. */
struct room {
    uint64_t window_steps, ahead;
};

/* Windows must be the same for all, and all pull ahead or none: the least that any rank has room
 * for. */
static int agree(struct async_job *job, struct drps_err *err)
{
    const struct room mine = {job->o.window_steps, (uint64_t)job->o.ahead};
    struct room *all = calloc(job->ranks, sizeof(*all)), least = mine;
    if (!all) return drps_err_set(err, -ENOMEM, "no memory for %u ranks", job->ranks);
    int rc = drps_net_gather(job->o.net, &mine, sizeof(mine), all, job->o.wait_ms, err);
    for (uint32_t r = 0; r < job->ranks && rc == 0; r++) {
        if (all[r].window_steps < least.window_steps) least.window_steps = all[r].window_steps;
        if (!all[r].ahead) least.ahead = 0;
    }
    job->window_steps = least.window_steps;
    job->ahead = (int)least.ahead;
    free(all);
    if (rc == 0 && !job->window_steps)
        return drps_err_set(err, DRPS_E_PROTO, "a rank has room for no steps");
    return rc;
}

static int open_parts(struct drps_async *a, struct drps_err *err)
{
    int rc = agree(&a->job, err);
    if (rc == 0) rc = drps_async_worker_new(&a->job, &a->worker, err);
    if (rc == 0 && !a->job.o.exchange) rc = drps_async_server_new(&a->job, &a->server, err);
    if (rc == 0 && a->job.rank == 0) rc = drps_async_master_new(&a->job, &a->master, err);
    return rc;
}

int drps_async_open(const struct drps_async_options *options, struct drps_async **async_out,
                    struct drps_err *err)
{
    const struct drps_plan_info *info = &options->plan->info;
    *async_out = NULL;
    struct drps_async *a = calloc(1, sizeof(*a));
    if (!a) return drps_err_set(err, -ENOMEM, "no memory for asynchronous rounds");
    a->shape = info->ranks;
    if (options->exchange) a->shape.servers = 0;
    a->job = (struct async_job){
        .o = *options,
        .rank = info->ranks.rank,
        .ranks = info->ranks.count,
        .shape = &a->shape,
        .dim = info->dim,
        .steps = drps_pilot_train_steps(options->train, info),
        .has_needs = options->train->sync == DRPS_SCHED_SSP,
        .bound = drps_async_sched(options->train, info->ranks.workers).bound,
        .touches = options->worker->has_touches,
        .filters = options->push != NULL,
        .half = options->half,
        .cached = options->cached,
    };
    int rc = open_parts(a, err);
    if (rc < 0) {
        drps_async_close(a);
        return rc;
    }
    *async_out = a;
    return 0;
}

void drps_async_close(struct drps_async *a)
{
    if (!a) return;
    drps_async_worker_free(a->worker);
    drps_async_server_free(a->server);
    drps_async_master_free(a->master);
    free(a);
}

/* ---- Epochs ---- */

/* Takes what comes to the rank's server, where that has no rows of its own. */
static int take_exchanged(struct drps_async *a, struct drps_err *err)
{
    int rc = 0;
    while (rc == 0) {
        struct drps_net_message *m;
        rc = drps_async_receive(&a->job, DRPS_NET_SERVER, ASYNC_TURN_MS, &m, err);
        if (rc < 0) return rc;
        rc = drps_exchange_take(a->job.o.exchange, m, err);
        drps_net_message_free(m);
    }
    return rc < 0 ? rc : 0;
}

static void *serve(void *async)
{
    struct drps_async *a = async;
    a->serving.rc = a->server ? drps_async_server_run(a->server, &a->serving.err)
                              : take_exchanged(a, &a->serving.err);
    if (a->serving.rc < 0) drps_async_tell_failed(&a->job, DRPS_NET_WORKER);
    return NULL;
}

static void *schedule(void *async)
{
    struct drps_async *a = async;
    a->scheduling.rc = drps_async_master_run(a->master, &a->scheduling.err);
    if (a->scheduling.rc < 0) drps_async_tell_failed(&a->job, DRPS_NET_WORKER);
    return NULL;
}

static int start_thread(struct part_thread *t, void *(*run)(void *), struct drps_async *a,
                        struct drps_err *err)
{
    *t = (struct part_thread){.rc = 0};
    const int rc = pthread_create(&t->thread, NULL, run, a);
    if (rc) return drps_err_set(err, -rc, "no thread for asynchronous rounds: %s", strerror(rc));
    t->running = 1;
    return 0;
}

static void join_thread(struct part_thread *t)
{
    if (t->running) (void)pthread_join(t->thread, NULL); /* cannot fail for a thread of ours */
    t->running = 0;
}

int drps_async_begin(struct drps_async *a, struct drps_err *err)
{
    drps_async_worker_begin(a->worker);
    a->stopped = 0;
    int rc = start_thread(&a->serving, serve, a, err);
    if (rc == 0 && a->master) rc = start_thread(&a->scheduling, schedule, a, err);
    return rc;
}

int drps_async_work(struct drps_async *a, struct drps_round *out, struct drps_err *err)
{
    const int rc = drps_async_worker_step(a->worker, out, err);
    if (rc == 2) a->stopped = 1;
    return rc > 0 ? 1 : rc;
}

/* The part that failed of itself says why. */
static int outcome(const struct part_thread *t, int rc, struct drps_err *err)
{
    if (t->rc >= 0 || t->rc == DRPS_E_CLOSED || (rc < 0 && rc != DRPS_E_CLOSED)) return rc;
    drps_err_clear(err);
    return drps_err_set(err, t->rc, "%s", t->err.text);
}

int drps_async_end(struct drps_async *a, int rc, struct drps_err *err)
{
    if (rc < 0 && a->serving.running) drps_async_tell_failed(&a->job, DRPS_NET_SERVER);
    if (rc < 0 && a->scheduling.running) drps_async_tell_failed(&a->job, DRPS_NET_MASTER);
    join_thread(&a->serving);
    join_thread(&a->scheduling);
    rc = outcome(&a->serving, rc, err);
    rc = outcome(&a->scheduling, rc, err);
    if (rc < 0) return rc;
    /* Messages of the evaluation must not come to those who still wait for END. */
    rc = drps_net_barrier(a->job.o.net, a->job.o.wait_ms, err);
    if (rc == 0 && a->job.o.exchange && !a->stopped) rc = drps_exchange_end(a->job.o.exchange, err);
    return rc < 0 ? rc : a->stopped;
}

uint64_t drps_async_window_steps(const struct drps_async *a)
{
    return a->job.window_steps;
}

int drps_async_is_ahead(const struct drps_async *a)
{
    return a->job.ahead;
}

uint64_t drps_async_done(const struct drps_async *a)
{
    return drps_async_worker_done(a->worker);
}

void drps_async_bytes(const struct drps_async *a, struct drps_rounds_bytes *out)
{
    struct drps_traffic sent = {0};
    drps_async_traffic(a, &sent);
    *out = (struct drps_rounds_bytes){.sent = drps_traffic_values(&sent),
                                      .received = drps_async_worker_received(a->worker)};
    if (a->server) out->received += drps_async_server_received(a->server);
}

void drps_async_traffic(const struct drps_async *a, struct drps_traffic *sum)
{
    drps_async_worker_traffic(a->worker, sum);
    if (a->server) drps_async_server_traffic(a->server, sum);
}

void drps_async_report(const struct drps_async *a, struct drps_train_rank *out)
{
    drps_async_worker_report(a->worker, out);
}
