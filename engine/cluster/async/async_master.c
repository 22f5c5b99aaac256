/*
 * The master: asks the scheduler who may start and the claims with which batch, and says so. It
 * sees no parameters: an iteration costs it two messages of no payload.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "engine/cluster/async/parts.h"
#include "sched/drps_claim.h"

struct async_master {
    const struct async_job *job;
    struct drps_sched *sched; /* own; for all epochs: it knows the workers' times */
    struct drps_claim *claim; /* own; of the epoch */
    int has_batch[DRPS_PLAN_WORKERS_MAX];
    int idle[DRPS_PLAN_WORKERS_MAX]; /* gone for the scheduler until there is a batch */
    uint32_t running;                /* workers that hold a batch */
    uint64_t releases[DRPS_PLAN_WORKERS_MAX];
    uint64_t arrived[DRPS_PLAN_WORKERS_MAX];    /* batches of the epoch, by worker, */
    uint64_t at_joining[DRPS_PLAN_WORKERS_MAX]; /* and how many these were when it joined last */
    uint64_t needs[DRPS_PLAN_WORKERS_MAX];
    uint64_t handed[DRPS_PLAN_WORKERS_MAX]; /* batches of a share that are handed out, */
    uint64_t told[DRPS_PLAN_WORKERS_MAX];   /* and of how many its own worker knows */
    unsigned arriving; /* the worker whose arrival is dealt with; DRPS_NET_ANY: none */
    int stop;          /* some rank wants to */
};

/* ---- Handing out: workers are numbered by their shares, from 0 on ---- */

static uint32_t rank_of(const struct async_master *m, unsigned worker)
{
    return m->job->shape->first_worker + worker;
}

/* What parameters must contain that are used at this label: of each worker, so many gradients of
 * the epoch, which holds all of its labels up to label - bound - 1. Its labels go up one by one
 * since it joined. */
static void set_needs(struct async_master *m, uint64_t label)
{
    const struct drps_sched_worker *workers = drps_sched_workers(m->sched);
    const uint64_t end = label > m->job->bound ? label - m->job->bound : 0;
    for (uint32_t w = 0; w < m->job->shape->workers; w++) {
        const uint64_t since = m->arrived[w] - m->at_joining[w];
        const uint64_t above = workers[w].label > end ? workers[w].label - end : 0;
        m->needs[w] = m->arrived[w] - (above < since ? above : since);
    }
}

/* Whoever has waited since its arrival, for others or for a batch, is to have what they did
 * meanwhile: it pulls anew. */
static uint32_t go_flags(const struct async_master *m, unsigned worker)
{
    if (!m->job->ahead) return 0;
    return (drps_sched_has_slack(m->sched, worker) ? ASYNC_GO_AHEAD : 0) |
           (worker == m->arriving ? 0 : ASYNC_GO_ANEW);
}

static int send_go(struct async_master *m, unsigned worker, const struct drps_claim_batch *batch,
                   struct drps_err *err)
{
    const uint32_t flags = go_flags(m, worker);
    const struct drps_piece piece = {m->needs, drps_async_needs_bytes(m->job)};
    const struct drps_net_send send = {.to = rank_of(m, worker),
                                       .part = DRPS_NET_WORKER,
                                       .type = DRPS_MESSAGE_GO,
                                       .tag = rank_of(m, batch->share) | flags,
                                       .round = batch->step,
                                       .pieces = &piece,
                                       .n = 1};
    set_needs(m, drps_sched_workers(m->sched)[worker].label + !!(flags & ASYNC_GO_AHEAD));
    return drps_net_send(m->job->o.net, &send, m->job->o.wait_ms, err);
}

/* Where gradients are filtered, a worker must know which of its batches others execute, when it
 * executes none. */
static int tell_claimed(struct async_master *m, unsigned worker, struct drps_err *err)
{
    const struct drps_net_send send = {.to = rank_of(m, worker),
                                       .part = DRPS_NET_WORKER,
                                       .type = DRPS_MESSAGE_CLAIMED,
                                       .tag = rank_of(m, worker),
                                       .round = m->handed[worker]};
    if (!m->job->filters || m->has_batch[worker] || m->told[worker] == m->handed[worker]) return 0;
    m->told[worker] = m->handed[worker];
    return drps_net_send(m->job->o.net, &send, m->job->o.wait_ms, err);
}

/* A worker executes that batch. */
static int hand_out(struct async_master *m, unsigned worker, const struct drps_claim_batch *batch,
                    struct drps_err *err)
{
    m->running++;
    m->has_batch[worker] = 1;
    m->handed[batch->share] = batch->step + 1;
    if (batch->share == worker) m->told[worker] = batch->step + 1;
    int rc = send_go(m, worker, batch, err);
    return rc == 0 ? tell_claimed(m, batch->share, err) : rc;
}

/* A worker that the scheduler has released starts, or is idle: that may set others free, whose
 * number is returned. */
static int start(struct async_master *m, unsigned worker, unsigned *released, struct drps_err *err)
{
    struct drps_claim_batch batch;
    int rc = drps_claim_next(m->claim, worker, &batch, err);
    if (rc < 0) return rc;
    m->releases[worker]++;
    if (rc) return hand_out(m, worker, &batch, err);
    m->idle[worker] = 1;
    return drps_sched_gone(m->sched, worker, drps_clock_ns(), released, err);
}

/* released [DRPS_PLAN_WORKERS_MAX], n of them; those whom these set free are appended: each worker
 * is there once, since it is idle until a window ends. */
static int release(struct async_master *m, unsigned *released, int n, struct drps_err *err)
{
    for (int i = 0; i < n; i++) {
        const int more = start(m, released[i], released + n, err);
        if (more < 0) return more;
        n += more;
    }
    return 0;
}

/* There may be a batch again for those that had none. */
static int join_idle(struct async_master *m, struct drps_err *err)
{
    unsigned released[DRPS_PLAN_WORKERS_MAX];
    int was_idle[DRPS_PLAN_WORKERS_MAX], rc = 0;
    for (unsigned w = 0; w < m->job->shape->workers; w++) {
        was_idle[w] = m->idle[w];
        m->idle[w] = 0;
        if (was_idle[w]) m->at_joining[w] = m->arrived[w];
    }
    for (unsigned w = 0; w < m->job->shape->workers && rc == 0; w++) {
        if (!was_idle[w]) continue;
        rc = drps_sched_joined(m->sched, w, drps_clock_ns(), released, err);
        if (rc > 0) rc = release(m, released, rc, err);
    }
    return rc;
}

/* A worker has executed its batch. */
static int arrive(struct async_master *m, const struct drps_net_message *message,
                  struct drps_err *err)
{
    unsigned released[DRPS_PLAN_WORKERS_MAX];
    const unsigned worker = message->from - m->job->shape->first_worker;
    if (message->tag & DRPS_MESSAGE_STOP) m->stop = 1;
    if (!drps_rank_trains(m->job->shape, message->from)) return 0; /* it has but a wish */
    const int window_ended = drps_claim_done(m->claim, worker, err);
    if (window_ended < 0) return window_ended;
    m->running--;
    m->has_batch[worker] = 0;
    m->arrived[worker]++;
    int rc = tell_claimed(m, worker, err);
    if (rc < 0 || m->stop) return rc; /* nobody is released any more */
    rc = drps_sched_arrive(m->sched, worker, drps_clock_ns(), released, err);
    m->arriving = worker;
    if (rc > 0) rc = release(m, released, rc, err);
    m->arriving = DRPS_NET_ANY;
    return rc == 0 && window_ended ? join_idle(m, err) : rc;
}

/* ---- An epoch ---- */

static int new_claim(struct async_master *m, struct drps_err *err)
{
    const struct async_job *job = m->job;
    const size_t windows = (size_t)((job->steps + job->window_steps - 1) / job->window_steps);
    uint64_t *starts = drps_array_new(windows, sizeof(*starts));
    if (!starts) return drps_err_set(err, -ENOMEM, "no memory for %zu windows", windows);
    for (size_t v = 0; v < windows; v++)
        starts[v] = v * job->window_steps;
    drps_claim_free(m->claim);
    int rc = drps_claim_new(job->shape->workers, job->steps, starts, windows,
                            !job->o.train->no_claim, &m->claim, err);
    free(starts);
    return rc;
}

static int new_sched(struct async_master *m, struct drps_err *err)
{
    const struct drps_sched_config config =
        drps_async_sched(m->job->o.train, m->job->shape->workers);
    return drps_sched_new(&config, drps_clock_ns(), &m->sched, err);
}

/* At first all workers run; later all are idle, since the last epoch ended with no batch left. */
static int begin(struct async_master *m, struct drps_err *err)
{
    unsigned all[DRPS_PLAN_WORKERS_MAX];
    int rc = new_claim(m, err);
    if (rc < 0) return rc;
    memset(m->arrived, 0, sizeof(m->arrived));
    memset(m->handed, 0, sizeof(m->handed));
    memset(m->told, 0, sizeof(m->told));
    if (m->sched) return join_idle(m, err);
    for (unsigned w = 0; w < m->job->shape->workers; w++)
        all[w] = w;
    rc = new_sched(m, err);
    return rc == 0 ? release(m, all, (int)m->job->shape->workers, err) : rc;
}

/* How the worker of a rank fared; where there is none, zeros. */
static struct async_end fared_of(const struct async_master *m, uint32_t rank)
{
    const uint32_t w = rank - m->job->shape->first_worker;
    if (!drps_rank_trains(m->job->shape, rank)) return (struct async_end){0};
    const struct drps_sched_worker *worker = &drps_sched_workers(m->sched)[w];
    struct async_end fared = {.releases = m->releases[w],
                              .lag_sum = worker->lag_sum,
                              .lag_max = worker->lag_max,
                              .stale_sum = worker->stale_sum,
                              .stale_max = worker->stale_max};
    memcpy(fared.stale, worker->stale, sizeof(fared.stale));
    return fared;
}

static int end(struct async_master *m, struct drps_err *err)
{
    const uint64_t done = m->job->steps * m->job->shape->workers - drps_claim_left(m->claim);
    int rc = 0;
    for (uint32_t r = 0; r < m->job->ranks && rc == 0; r++) {
        const struct async_end fared = fared_of(m, r);
        const struct drps_piece piece = {&fared, sizeof(fared)};
        struct drps_net_send send = {.to = r,
                                     .part = DRPS_NET_WORKER,
                                     .type = DRPS_MESSAGE_END,
                                     .tag = m->stop ? DRPS_MESSAGE_STOP : 0,
                                     .round = done,
                                     .pieces = &piece,
                                     .n = 1};
        rc = drps_net_send(m->job->o.net, &send, m->job->o.wait_ms, err);
        send.part = DRPS_NET_SERVER;
        send.n = 0;
        if (rc == 0 && !m->job->o.exchange) /* else workers say so */
            rc = drps_net_send(m->job->o.net, &send, m->job->o.wait_ms, err);
    }
    return rc;
}

/* The error of an epoch in which nobody has arrived for too long. */
static int nobody_came(const struct async_master *m, struct drps_err *err)
{
    char text[256] = "";
    for (uint32_t w = 0; w < m->job->shape->workers; w++) {
        const size_t used = strlen(text);
        if (!m->has_batch[w]) continue;
        (void)snprintf(text + used, sizeof(text) - used, "%s%u", used ? ", " : "",
                       rank_of(m, w)); /* or cut */
    }
    return drps_err_set(err, -ETIMEDOUT,
                        "no batch was done within %u ms; one is under way on rank %s",
                        m->job->o.wait_ms, text);
}

/* The next arrival; *out NULL: a wait of the scheduler ends first. */
static int await(struct async_master *m, struct drps_net_message **out, struct drps_err *err)
{
    const struct async_job *job = m->job;
    const uint64_t limit = drps_clock_ns() + (uint64_t)job->o.wait_ms * 1000000;
    const uint64_t deadline = m->stop ? DRPS_SCHED_NEVER : drps_sched_deadline(m->sched);
    struct drps_err why = DRPS_ERR_INIT;
    int rc = drps_net_receive_until(job->o.net, DRPS_NET_MASTER, DRPS_NET_ANY,
                                    deadline < limit ? deadline : limit, out, &why);
    if (rc == -ETIMEDOUT) return deadline < limit ? 0 : nobody_came(m, err);
    return rc < 0 ? drps_err_set(err, rc, "%s", why.text) : 0;
}

static int next_event(struct async_master *m, struct drps_err *err)
{
    unsigned released[DRPS_PLAN_WORKERS_MAX];
    struct drps_net_message *message = NULL;
    int rc = await(m, &message, err);
    if (rc < 0) return rc;
    if (!message)
        return release(m, released, drps_sched_tick(m->sched, drps_clock_ns(), released), err);
    if (message->type == DRPS_MESSAGE_ARRIVE)
        rc = arrive(m, message, err);
    else if (message->type == DRPS_MESSAGE_FAILED && message->from == m->job->rank)
        rc = drps_async_told_failed(err);
    else
        rc = drps_async_undue(message, "master", err);
    drps_net_message_free(message);
    return rc;
}

int drps_async_master_run(struct async_master *m, struct drps_err *err)
{
    int rc = begin(m, err);
    while (rc == 0 && m->running)
        rc = next_event(m, err);
    if (rc == 0 && !m->stop && drps_claim_left(m->claim))
        rc = drps_err_set(err, -EINVAL, "%llu batches are left, and nobody runs",
                          (unsigned long long)drps_claim_left(m->claim));
    return rc == 0 ? end(m, err) : rc;
}

/* ---- Opening ---- */

int drps_async_master_new(const struct async_job *job, struct async_master **out,
                          struct drps_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out) return drps_err_set(err, -ENOMEM, "no memory for the scheduler");
    (*out)->job = job;
    (*out)->arriving = DRPS_NET_ANY;
    return 0;
}

void drps_async_master_free(struct async_master *m)
{
    if (!m) return;
    drps_claim_free(m->claim);
    drps_sched_free(m->sched);
    free(m);
}
