/*
 * The worker: told which batch is next, it asks every server for the batch's rows, computes the
 * gradient and sends each server its part. Batches of its own share it reads in their order, past
 * those that others have executed; a batch of another share comes as a record from the server that
 * is beside that share's own worker.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_clock.h"
#include "engine/cluster/async/parts.h"

struct async_worker {
    const struct async_job *job;
    uint32_t share; /* the batch under way */
    uint64_t step;
    uint64_t read; /* records of its own share that it has taken from the feed, of the epoch */
    struct drps_feed_share batch;
    struct drps_net_message *record;                      /* own: of a batch of another share */
    struct drps_net_message *from[DRPS_PLAN_WORKERS_MAX]; /* own: parameters, by server */
    uint64_t done;                                        /* that END counts */
    uint64_t received;                                    /* bytes of parameters of other ranks */
    struct drps_traffic traffic;

    uint64_t iterations, claimed, held_ns;
    uint64_t wait_ns; /* for parameters, and batches of other shares */
    struct async_end fared;
};

/* ---- Messages ---- */

static int send_to(const struct async_worker *w, uint32_t to, enum drps_net_part part, uint8_t type,
                   uint32_t tag, struct drps_err *err)
{
    const struct drps_net_send send = {
        .to = to, .part = part, .type = type, .tag = tag, .round = w->step};
    return drps_net_send(w->job->o.net, &send, w->job->o.wait_ms, err);
}

/* ---- Which batch ---- */

static int take_end(struct async_worker *w, const struct drps_net_message *m, struct drps_err *err)
{
    if (m->bytes != sizeof(w->fared)) return drps_async_undue(m, "worker", err);
    memcpy(&w->fared, m->data, sizeof(w->fared));
    w->done = m->round;
    return m->tag & DRPS_MESSAGE_STOP ? 2 : 1;
}

/* Wait for GO or END. Returns 0, or for END 1, to stop 2. */
static int await_go(struct async_worker *w, struct drps_err *err)
{
    struct drps_net_message *m;
    int rc = drps_async_receive(w->job, DRPS_NET_WORKER, ASYNC_TURN_MS, &m, err);
    if (rc < 0) return rc;
    if (m->from == 0 && m->type == DRPS_MESSAGE_END) {
        rc = take_end(w, m, err);
    } else if (m->from == 0 && m->type == DRPS_MESSAGE_GO &&
               drps_rank_trains(w->job->shape, m->tag) && m->round < w->job->steps &&
               (m->tag != w->job->rank || m->round >= w->read)) {
        w->share = m->tag;
        w->step = m->round;
    } else {
        rc = drps_async_undue(m, "worker", err);
    }
    drps_net_message_free(m);
    return rc;
}

/* Take own records up to that of `step`. */
static int read_to(struct async_worker *w, uint64_t step, struct drps_err *err)
{
    int rc = 0;
    while (w->read <= step && rc == 0) {
        rc = drps_feed_next_share(w->job->o.feed, &w->batch, err);
        w->read++;
    }
    return rc;
}

/* The tag of a RECORD: bytes of the shares, which follow the body. */
static int decode_record(struct async_worker *w, struct drps_err *err)
{
    const struct drps_net_message *m = w->record;
    if (m->tag > m->bytes) return drps_async_undue(m, "worker", err);
    const size_t body = m->bytes - m->tag;
    const struct drps_feed_record record = {{m->data, body},
                                            {(const char *)m->data + body, m->tag}};
    return drps_feed_decode_record(w->job->o.feed, w->share, w->step, &record, &w->batch, err);
}

/* ---- Parameters ---- */

/* 1: the batch's record comes from another rank. */
static int is_claimed(const struct async_worker *w)
{
    return w->share != w->job->rank;
}

/* Ask all ranks that have rows, and, for its record, the one that the batch is of. */
static int pull(const struct async_worker *w, struct drps_err *err)
{
    const struct async_job *job = w->job;
    int rc = 0;
    for (uint32_t i = 0; i < job->ranks && rc == 0; i++) { /* its neighbour first */
        const uint32_t s = (job->rank + 1 + i) % job->ranks;
        if (drps_rank_serves(job->shape, s) || (s == w->share && is_claimed(w)))
            rc = send_to(w, s, DRPS_NET_SERVER, DRPS_MESSAGE_PULL, w->share, err);
    }
    return rc;
}

/* Keeps what came for this batch, by sender. */
static int keep(struct async_worker *w, struct drps_net_message *m, struct drps_err *err)
{
    const int parameters = m->type == DRPS_MESSAGE_PARAMETERS && m->round == w->step &&
                           m->tag == w->share && drps_rank_serves(w->job->shape, m->from) &&
                           !w->from[m->from];
    const int record = m->type == DRPS_MESSAGE_RECORD && m->round == w->step &&
                       m->from == w->share && is_claimed(w) && !w->record;
    if (parameters)
        w->from[m->from] = m;
    else if (record)
        w->record = m;
    if (parameters || record) return 0;
    int rc = drps_async_undue(m, "worker", err);
    drps_net_message_free(m);
    return rc;
}

static int collect(struct async_worker *w, struct drps_err *err)
{
    const uint32_t due = w->job->shape->servers + (is_claimed(w) ? 1 : 0);
    for (uint32_t n = 0; n < due; n++) {
        struct drps_net_message *m;
        int rc = drps_async_receive(w->job, DRPS_NET_WORKER, w->job->o.wait_ms, &m, err);
        if (rc == -ETIMEDOUT)
            (void)drps_err_context(err, "step %llu of share %u", (unsigned long long)w->step,
                                   w->share);
        if (rc == 0) rc = keep(w, m, err);
        if (rc < 0) return rc;
    }
    return 0;
}

static void forget(struct async_worker *w)
{
    for (uint32_t s = 0; s < w->job->shape->servers; s++) {
        drps_net_message_free(w->from[s]);
        w->from[s] = NULL;
    }
}

/* Receives the parameters of servers 0, 1, ... one after another. */
static int put_together(struct async_worker *w, struct drps_err *err)
{
    const struct async_job *job = w->job;
    char *at = (char *)job->o.worker->params;
    for (uint32_t s = 0; s < job->shape->servers; s++) {
        const struct drps_net_message *m = w->from[s];
        const size_t bytes = w->batch.shares[s] * job->dim * sizeof(float);
        const int own = s == job->rank;
        if (m->bytes != (own ? sizeof(struct drps_message_here) : bytes))
            return drps_async_undue(m, "worker", err);
        if (bytes)
            memcpy(at, own ? ((const struct drps_message_here *)m->data)->values : m->data, bytes);
        at += bytes;
        if (!own) w->received += m->bytes;
    }
    return 0;
}

/* ---- Gradients ---- */

static int push(struct async_worker *w, struct drps_err *err)
{
    const struct async_job *job = w->job;
    const struct drps_worker *worker = job->o.worker;
    size_t first = 0;
    for (uint32_t s = 0; s < job->shape->servers; s++) {
        const size_t n = w->batch.shares[s];
        const int own = s == job->rank;
        const struct drps_message_here here = {.values = worker->grads[0] + first * job->dim,
                                               .touches = job->touches ? worker->touches[0] + first
                                                                       : NULL};
        const struct drps_piece there[2] = {
            {here.values, n * job->dim * sizeof(float)},
            {here.touches, job->touches ? n * sizeof(uint32_t) : 0},
        };
        const struct drps_piece to_own = {&here, sizeof(here)};
        const struct drps_net_send send = {.to = s,
                                           .part = DRPS_NET_SERVER,
                                           .type = DRPS_MESSAGE_GRADIENT,
                                           .tag = w->share,
                                           .round = w->step,
                                           .pieces = own ? &to_own : there,
                                           .n = job->touches && !own ? 2 : 1};
        int rc =
            own ? drps_net_send(job->o.net, &send, job->o.wait_ms, err)
                : drps_shared_buffer_send(worker->sent, job->o.net, &send, job->o.wait_ms, err);
        if (rc < 0) return rc;
        if (!own)
            drps_traffic_add(&w->traffic, DRPS_TRAFFIC_PUSHED, s, n,
                             drps_async_gradient_bytes(job, s, n));
        first += n;
    }
    return 0;
}

/* A loss that is no finite number ends training on all ranks. */
static int arrive(const struct async_worker *w, double loss, struct drps_err *err)
{
    const atomic_int *stop = w->job->o.train->stop;
    const int wants_to_stop =
        stop && atomic_load_explicit(stop, memory_order_relaxed); /* only a flag */
    return send_to(w, 0, DRPS_NET_MASTER, DRPS_MESSAGE_ARRIVE,
                   wants_to_stop || !isfinite(loss) ? DRPS_MESSAGE_STOP : 0, err);
}

/* ---- A batch ---- */

static void tell_hook(const struct async_worker *w, enum drps_batch_moment moment)
{
    const struct drps_train_options *train = w->job->o.train;
    const struct drps_train_batch batch = {
        .rank = w->job->rank, .share = w->share, .step = w->step, .moment = moment};
    if (train->on_batch) train->on_batch(train->ctx, &batch);
}

/* Get the batch's rows and samples; *out says how long each took. */
static int fetch(struct async_worker *w, struct drps_round *out, struct drps_err *err)
{
    const int own = w->share == w->job->rank;
    int rc = pull(w, err);
    const uint64_t asked = drps_clock_ns();
    if (rc == 0 && own) rc = read_to(w, w->step, err);
    const uint64_t read = drps_clock_ns();
    if (rc == 0) rc = collect(w, err);
    if (rc == 0 && !own) rc = decode_record(w, err);
    if (rc == 0) rc = put_together(w, err);
    forget(w);
    if (rc == 0) rc = drps_worker_renew(w->job->o.worker, err);
    out->plan_ns = read - asked;
    return rc;
}

/* What others have executed of its share is skipped, so that the feed is where evaluation begins.
 */
static int finish(struct async_worker *w, int rc, struct drps_err *err)
{
    const int skipped = rc == 1 ? read_to(w, w->job->steps - 1, err) : 0;
    return skipped < 0 ? skipped : rc;
}

int drps_async_worker_step(struct async_worker *w, struct drps_round *out, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    *out = (struct drps_round){.batch = &w->batch.body};
    drps_net_message_free(w->record); /* of the batch before */
    w->record = NULL;
    int rc = await_go(w, err);
    if (rc) return finish(w, rc, err);
    const uint64_t released = drps_clock_ns();
    w->held_ns += released - start;
    tell_hook(w, DRPS_BATCH_BEGINS);
    rc = fetch(w, out, err);
    if (rc < 0) return rc;
    const uint64_t fetched = drps_clock_ns();
    w->wait_ns += fetched - released - out->plan_ns;
    out->wait_ns = fetched - start - out->plan_ns;
    tell_hook(w, DRPS_BATCH_PULLED);
    const uint64_t ready = drps_clock_ns();
    out->loss = drps_worker_gradient(w->job->o.worker, &w->batch.body);
    out->compute_ns = drps_clock_ns() - ready;
    rc = push(w, err);
    if (rc < 0) return rc;
    w->iterations++;
    w->claimed += w->share != w->job->rank;
    rc = arrive(w, out->loss, err);
    tell_hook(w, DRPS_BATCH_DONE);
    return rc;
}

/* ---- The rest ---- */

int drps_async_worker_new(const struct async_job *job, struct async_worker **out,
                          struct drps_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out) return drps_err_set(err, -ENOMEM, "no memory for asynchronous rounds");
    (*out)->job = job;
    return 0;
}

void drps_async_worker_free(struct async_worker *w)
{
    if (!w) return;
    forget(w);
    drps_net_message_free(w->record);
    free(w);
}

void drps_async_worker_begin(struct async_worker *w)
{
    w->read = 0;
    w->done = 0;
}

uint64_t drps_async_worker_done(const struct async_worker *w)
{
    return w->done;
}

uint64_t drps_async_worker_received(const struct async_worker *w)
{
    return w->received;
}

void drps_async_worker_traffic(const struct async_worker *w, struct drps_traffic *sum)
{
    drps_traffic_merge(sum, &w->traffic);
}

void drps_async_worker_report(const struct async_worker *w, struct drps_train_rank *out)
{
    out->iterations = w->iterations;
    out->claimed = w->claimed;
    out->held_seconds = (double)w->held_ns * 1e-9;
    out->network_seconds += (double)w->wait_ns * 1e-9;
    out->lag_mean = w->fared.releases ? (double)w->fared.lag_sum / (double)w->fared.releases : 0;
    out->lag_max = w->fared.lag_max;
    out->stale_mean = w->iterations ? (double)w->fared.stale_sum / (double)w->iterations : 0;
    out->stale_max = w->fared.stale_max;
    memcpy(out->stale, w->fared.stale, sizeof(out->stale));
}
