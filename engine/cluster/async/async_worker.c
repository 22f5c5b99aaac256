/*
 * The worker: told which batch is next, it asks every server for the batch's rows, computes the
 * gradient and sends each server its part. Batches of its own share it reads in their order, past
 * those that others have executed; a batch of another share comes as a record from the server that
 * is beside that share's own worker.
 *
 * Before it computes a batch of its own share it asks ahead for the rows of the next one, if the
 * master says that it may; drps_async.h has what that changes.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_clock.h"
#include "engine/cluster/async/parts.h"
#include "engine/cluster/sv/drps_exchange.h"

struct async_worker {
    const struct async_job *job;
    uint32_t share; /* the batch under way */
    uint64_t step;
    uint64_t read; /* records of its own share that it has taken from the feed, of the epoch */
    struct drps_feed_share batch;
    struct drps_net_message *record;                      /* own: of a batch of another share */
    struct drps_net_message *from[DRPS_PLAN_WORKERS_MAX]; /* own: parameters, by server */
    struct async_ahead ahead;                             /* what it has asked for */
    uint32_t flags;                                       /* of the GO, */
    uint64_t needs[DRPS_PLAN_WORKERS_MAX];                /* and its needs */
    struct drps_shared_buffer *before;                    /* own: gradient of the batch before */
    uint64_t done;                                        /* that END counts */
    uint64_t received;                                    /* bytes of parameters of other ranks */
    struct async_cache *cache;                            /* own; NULL: no row is kept */
    struct async_push *push;                              /* own */

    uint64_t iterations, claimed, held_ns;
    uint64_t ahead_asked, ahead_used, ahead_there, ahead_bytes; /* as drps_train_rank has them */
    uint64_t wait_ns; /* for parameters, and batches of other shares */
    struct async_end fared;
};

/* ---- Messages ---- */

/* The next message that is no answer to what was asked ahead, which is taken; *out NULL: `answers`
 * is set, and no answer is due any more. */
static int receive(struct async_worker *w, int answers, uint32_t timeout_ms,
                   struct drps_net_message **out, struct drps_err *err)
{
    for (;;) {
        *out = NULL;
        if (answers && !w->ahead.due) return 0;
        int rc = drps_async_receive(w->job, DRPS_NET_WORKER, timeout_ms, out, err);
        if (rc < 0) return rc;
        if (!drps_async_ahead_take(&w->ahead, w->job, *out)) return 0;
    }
}

static int undue(struct drps_net_message *m, struct drps_err *err)
{
    int rc = drps_async_undue(m, "worker", err);
    drps_net_message_free(m);
    return rc;
}

/* Wait for the answers that are due. */
static int await_answers(struct async_worker *w, struct drps_err *err)
{
    struct drps_net_message *m;
    int rc = receive(w, 1, w->job->o.wait_ms, &m, err);
    if (rc == -ETIMEDOUT)
        (void)drps_err_context(err, "step %llu of share %u, asked for ahead",
                               (unsigned long long)w->ahead.step, w->job->rank);
    return rc == 0 && m ? undue(m, err) : rc;
}

/* ---- Which batch ---- */

static int take_end(struct async_worker *w, const struct drps_net_message *m, struct drps_err *err)
{
    if (m->bytes != sizeof(w->fared)) return drps_async_undue(m, "worker", err);
    memcpy(&w->fared, m->data, sizeof(w->fared));
    w->done = m->round;
    return m->tag & DRPS_MESSAGE_STOP ? 2 : 1;
}

static int take_go(struct async_worker *w, const struct drps_net_message *m, struct drps_err *err)
{
    const struct async_job *job = w->job;
    const uint32_t share = m->tag & ASYNC_GO_SHARE, flags = m->tag & ~(uint32_t)ASYNC_GO_SHARE;
    if (!drps_rank_trains(job->shape, job->rank) || !drps_rank_trains(job->shape, share) ||
        (flags & ~(uint32_t)(ASYNC_GO_AHEAD | ASYNC_GO_ANEW)) || (flags && !job->ahead) ||
        m->round >= job->steps || (share == job->rank && m->round < w->read) ||
        m->bytes != drps_async_needs_bytes(job))
        return drps_async_undue(m, "worker", err);
    w->share = share;
    w->step = m->round;
    w->flags = flags;
    if (m->bytes) memcpy(w->needs, m->data, m->bytes);
    return 0;
}

/* Take the next own record. */
static int read_next(struct async_worker *w, struct drps_err *err)
{
    w->read++;
    return drps_feed_next_share(w->job->o.feed, &w->batch, err);
}

/* Take own records of batches below `end`, which others execute. */
static int skip_to(struct async_worker *w, uint64_t end, struct drps_err *err)
{
    const int holds = w->job->filters && drps_rank_trains(w->job->shape, w->job->rank);
    int rc = 0;
    while (w->read < end && rc == 0) {
        rc = read_next(w, err);
        if (rc == 0 && holds) rc = drps_async_push_held(w->push, &w->batch, w->read - 1, err);
        if (rc == 0 && w->cache) rc = drps_async_cache_skip(w->cache, &w->batch, err);
    }
    return rc;
}

/* Others execute its batches below that of the message's step, and servers wait for what is held
 * back of their rows. */
static int take_claimed(struct async_worker *w, const struct drps_net_message *m,
                        struct drps_err *err)
{
    if (!w->job->filters || m->tag != w->job->rank || m->round <= w->read ||
        m->round > w->job->steps || m->bytes)
        return drps_async_undue(m, "worker", err);
    return skip_to(w, m->round, err);
}

/* Take a message of the master. Returns 0 for GO, for END 1, to stop 2; -EAGAIN: it was neither. */
static int take_turn(struct async_worker *w, const struct drps_net_message *m, struct drps_err *err)
{
    if (m->from == 0 && m->type == DRPS_MESSAGE_END) return take_end(w, m, err);
    if (m->from == 0 && m->type == DRPS_MESSAGE_GO) return take_go(w, m, err);
    if (m->from != 0 || m->type != DRPS_MESSAGE_CLAIMED) return drps_async_undue(m, "worker", err);
    const int rc = take_claimed(w, m, err);
    return rc == 0 ? -EAGAIN : rc;
}

/* Wait for GO or END. Returns 0, or for END 1, to stop 2. */
static int await_go(struct async_worker *w, struct drps_err *err)
{
    struct drps_net_message *m;
    int rc;
    do {
        rc = receive(w, 0, ASYNC_TURN_MS, &m, err);
        if (rc < 0) return rc;
        rc = take_turn(w, m, err);
        drps_net_message_free(m);
    } while (rc == -EAGAIN);
    return rc;
}

/* Take own records up to that of `step`. */
static int read_to(struct async_worker *w, uint64_t step, struct drps_err *err)
{
    int rc = skip_to(w, step, err);
    return rc == 0 ? read_next(w, err) : rc;
}

/* The tag of a RECORD: bytes of the shares, which follow the body. */
static int decode_record(struct async_worker *w, struct drps_err *err)
{
    const struct drps_net_message *m = w->record;
    if (w->job->o.exchange) return 0; /* whoever computes it decodes it */
    if (m->tag > m->bytes) return drps_async_undue(m, "worker", err);
    const size_t body = m->bytes - m->tag;
    const struct drps_feed_record record = {{m->data, body},
                                            {(const char *)m->data + body, m->tag}};
    return drps_feed_decode_record(w->job->o.feed, w->share, w->step, &record, &w->batch, err);
}

/* ---- Parameters ---- */

/* 1: the batch's record comes as a message, from the rank that it is of. */
static int is_record_sent(const struct async_worker *w)
{
    return w->share != w->job->rank || w->job->o.exchange;
}

/* 1: other servers' rows are asked for where no copy will do. */
static int keeps_copies(const struct async_worker *w)
{
    return w->cache && !is_record_sent(w);
}

/* Ask all ranks that have rows, and, for its record, the one that the batch is of. */
static int pull(struct async_worker *w, struct drps_err *err)
{
    const struct async_job *job = w->job;
    struct drps_piece pieces[2] = {{w->needs, drps_async_needs_bytes(job)}, {NULL, 0}};
    int rc = 0;
    for (uint32_t i = 0; i < job->ranks && rc == 0; i++) { /* its neighbour first */
        const uint32_t s = (job->rank + 1 + i) % job->ranks;
        const int copies = keeps_copies(w) && s != job->rank && drps_rank_serves(job->shape, s);
        pieces[1] =
            copies ? drps_async_cache_marks(w->cache, &w->batch, s) : (struct drps_piece){NULL, 0};
        const struct drps_net_send send = {.to = s,
                                           .part = DRPS_NET_SERVER,
                                           .type = DRPS_MESSAGE_PULL,
                                           .tag = w->share,
                                           .round = w->step,
                                           .pieces = pieces,
                                           .n = pieces[1].bytes ? 2 : 1};
        if (drps_rank_serves(job->shape, s) || (s == w->share && is_record_sent(w)))
            rc = drps_net_send(job->o.net, &send, job->o.wait_ms, err);
    }
    return rc;
}

/* Keeps what came for this batch, by sender. */
static int keep(struct async_worker *w, struct drps_net_message *m, struct drps_err *err)
{
    const int parameters = m->type == DRPS_MESSAGE_PARAMETERS && m->round == w->step &&
                           (m->tag & ~(uint32_t)ASYNC_FRESH) == w->share &&
                           drps_rank_serves(w->job->shape, m->from) && !w->from[m->from];
    const int record = m->type == DRPS_MESSAGE_RECORD && m->round == w->step &&
                       m->from == w->share && is_record_sent(w) && !w->record;
    if (parameters)
        w->from[m->from] = m;
    else if (record)
        w->record = m;
    return parameters || record ? 0 : undue(m, err);
}

static int collect(struct async_worker *w, struct drps_err *err)
{
    const uint32_t due = w->job->shape->servers + (is_record_sent(w) ? 1 : 0);
    for (uint32_t n = 0; n < due; n++) {
        struct drps_net_message *m;
        int rc = receive(w, 0, w->job->o.wait_ms, &m, err);
        if (rc == -ETIMEDOUT)
            (void)drps_err_context(err, "step %llu of share %u", (unsigned long long)w->step,
                                   w->share);
        if (rc == 0) rc = keep(w, m, err);
        if (rc < 0) return rc;
    }
    return 0;
}

/* Whether the batch is the one that it has asked for ahead; else the answers are of no use. */
static int is_asked(struct async_worker *w)
{
    struct async_ahead *a = &w->ahead;
    if (a->wanted && w->share == w->job->rank && w->step == a->step && !(w->flags & ASYNC_GO_ANEW))
        return 1;
    drps_async_ahead_drop(a, w->job);
    return 0;
}

/* What it has asked for ahead is what it computes with. */
static int use_ahead(struct async_worker *w, struct drps_err *err)
{
    struct async_ahead *a = &w->ahead;
    w->ahead_used++;
    w->ahead_there += !a->due;
    w->ahead_bytes += drps_async_ahead_bytes(a, w->job);
    int rc = await_answers(w, err);
    char *at = (char *)w->job->o.worker->params;
    for (uint32_t s = 0; s < w->job->shape->servers && rc == 0; s++) {
        const size_t rows = w->batch.shares[s];
        rc = drps_async_ahead_put(a, w->job, s, rows, at, err);
        at += rows * w->job->dim * sizeof(float);
    }
    drps_async_ahead_drop(a, w->job);
    return rc;
}

/* Ask for the next batch of its own share, which will be its own next one unless there are none
 * in these windows or another worker claims it. One at a time. */
static int ask_ahead(struct async_worker *w, struct drps_err *err)
{
    if (w->flags != ASYNC_GO_AHEAD || w->share != w->job->rank || w->ahead.due ||
        w->step + 1 >= w->job->steps)
        return 0;
    w->ahead_asked++;
    return drps_async_ahead_ask(&w->ahead, w->job, w->step + 1, w->needs, err);
}

static void forget(struct async_worker *w)
{
    for (uint32_t s = 0; s < w->job->shape->servers; s++) {
        drps_net_message_free(w->from[s]);
        w->from[s] = NULL;
    }
}

/* Puts the rows that another rank's server has sent to where they belong: [rows][dim]. */
static int put_rows(struct async_worker *w, const struct drps_net_message *m, size_t rows, char *to,
                    struct drps_err *err)
{
    const struct async_job *job = w->job;
    const size_t params = job->dim * sizeof(float);
    const int fresh = (m->tag & ASYNC_FRESH) != 0;
    struct drps_fresh_reader reader;
    if (keeps_copies(w)) {
        const int rc = drps_async_cache_put(w->cache, &w->batch, m, job->o.worker->params, err);
        if (rc == 0) w->received += m->bytes - drps_async_needs_bytes(job);
        return rc;
    }
    if (drps_fresh_read(job->o.worker->model, m->data, m->bytes, rows, async_row_bytes(job), fresh,
                        &reader) < 0)
        return drps_async_undue(m, "worker", err);
    w->received += m->bytes - reader.head_bytes;
    if (!fresh) drps_async_read_rows(job, m->data, rows, to);
    for (size_t i = 0; i < rows && fresh; i++, to += params)
        drps_fresh_next(&reader, to);
    return 0;
}

/* Receives the parameters of servers 0, 1, ... one after another. */
static int put_together(struct async_worker *w, struct drps_err *err)
{
    const struct async_job *job = w->job;
    char *at = (char *)job->o.worker->params;
    for (uint32_t s = 0; s < job->shape->servers; s++) {
        const struct drps_net_message *m = w->from[s];
        const size_t rows = w->batch.shares[s], bytes = rows * job->dim * sizeof(float);
        if (s != job->rank) {
            const int rc = put_rows(w, m, rows, at, err);
            if (rc < 0) return rc;
        } else if (m->bytes != sizeof(struct drps_message_here)) {
            return drps_async_undue(m, "worker", err);
        } else if (bytes) {
            memcpy(at, ((const struct drps_message_here *)m->data)->values, bytes);
        }
        at += bytes;
    }
    return 0;
}

/* ---- Gradients ---- */

/* Find room for the next gradient. The rank's own server reads gradients where they are. When it
 * has answered for a batch asked for ahead, it may still read that of the batch before, but none
 * before that one: it has taken those. */
static int renew(struct async_worker *w, struct drps_err *err)
{
    struct drps_worker *worker = w->job->o.worker;
    struct drps_shared_buffer *before = w->before;
    if (w->job->ahead) {
        w->before = worker->sent;
        worker->sent = before;
    }
    return drps_worker_renew(worker, err);
}

/* A loss that is no finite number ends training on all ranks. */
static int arrive(const struct async_worker *w, double loss, struct drps_err *err)
{
    const int whole_epochs = w->job->filters || w->job->o.exchange;
    const atomic_int *stop = whole_epochs ? NULL : w->job->o.train->stop;
    const int wants_to_stop =
        stop && atomic_load_explicit(stop, memory_order_relaxed); /* only a flag */
    const struct drps_net_send send = {.part = DRPS_NET_MASTER,
                                       .type = DRPS_MESSAGE_ARRIVE,
                                       .tag =
                                           wants_to_stop || !isfinite(loss) ? DRPS_MESSAGE_STOP : 0,
                                       .round = w->step};
    return drps_net_send(w->job->o.net, &send, w->job->o.wait_ms, err);
}

/* ---- A batch ---- */

static void tell_hook(const struct async_worker *w, enum drps_batch_moment moment)
{
    const struct drps_train_options *train = w->job->o.train;
    const struct drps_train_batch batch = {
        .rank = w->job->rank, .share = w->share, .step = w->step, .moment = moment};
    if (train->on_batch) train->on_batch(train->ctx, &batch);
}

/* Read the own batch; *out says how long it took. */
static int read_own(struct async_worker *w, struct drps_round *out, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    int rc = read_to(w, w->step, err);
    out->plan_ns = drps_clock_ns() - start;
    return rc;
}

/* Get the batch's rows and samples. */
static int fetch(struct async_worker *w, struct drps_round *out, struct drps_err *err)
{
    const int own = !is_record_sent(w), ahead = is_asked(w), copies = keeps_copies(w);
    int rc = copies ? read_own(w, out, err) : 0; /* which rows these are must be known */
    if (rc == 0 && copies)
        rc = drps_async_cache_look(w->cache, &w->batch, w->needs, w->job->o.worker->params, err);
    if (rc == 0 && !ahead) rc = pull(w, err);
    if (rc == 0 && own && !copies) rc = read_own(w, out, err);
    if (rc == 0) rc = ahead ? use_ahead(w, err) : collect(w, err);
    if (rc == 0 && !own) rc = decode_record(w, err);
    if (rc == 0 && !ahead) rc = put_together(w, err);
    forget(w);
    if (rc == 0) rc = ask_ahead(w, err);
    return rc == 0 ? renew(w, err) : rc;
}

/* Computes the batch, and sends what it says to where rows are. */
static int compute(struct async_worker *w, struct drps_round *out, struct drps_err *err)
{
    if (w->job->o.exchange)
        return drps_exchange_turn(w->job->o.exchange, w->record, w->share, out, err);
    const uint64_t ready = drps_clock_ns();
    out->loss = drps_worker_gradient(w->job->o.worker, &w->batch.body);
    out->compute_ns = drps_clock_ns() - ready;
    if (keeps_copies(w)) drps_async_cache_step(w->cache, &w->batch, w->job->o.worker->grads[0]);
    return drps_async_push(w->push, &w->batch, w->share, w->step, err);
}

/* What others have executed of its share is skipped, so that the feed is where evaluation begins.
 * Answers that are due come before that, too: servers answer all before they end. */
static int finish(struct async_worker *w, int rc, struct drps_err *err)
{
    if (rc < 0) return rc;
    drps_async_ahead_drop(&w->ahead, w->job);
    int failed = await_answers(w, err);
    if (failed == 0 && w->job->o.exchange) failed = drps_exchange_last(w->job->o.exchange, err);
    if (failed == 0 && rc == 1) failed = skip_to(w, w->job->steps, err);
    return failed < 0 ? failed : rc;
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
    rc = compute(w, out, err);
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
    int rc = drps_async_cache_new(job, &(*out)->cache, err);
    return rc == 0 ? drps_async_push_new(job, &(*out)->push, err) : rc;
}

void drps_async_worker_free(struct async_worker *w)
{
    if (!w) return;
    forget(w);
    drps_async_ahead_drop(&w->ahead, w->job);
    drps_net_message_free(w->record);
    drps_shared_buffer_release(w->before);
    drps_async_push_free(w->push);
    drps_async_cache_free(w->cache);
    free(w);
}

void drps_async_worker_begin(struct async_worker *w)
{
    w->read = 0;
    w->done = 0;
    drps_async_cache_begin(w->cache);
}

uint64_t drps_async_worker_done(const struct async_worker *w)
{
    return w->done;
}

uint64_t drps_async_worker_received(const struct async_worker *w)
{
    return w->received + w->ahead.received;
}

void drps_async_worker_traffic(const struct async_worker *w, struct drps_traffic *sum)
{
    drps_async_push_traffic(w->push, sum);
    drps_async_cache_traffic(w->cache, sum);
}

void drps_async_worker_report(const struct async_worker *w, struct drps_train_rank *out)
{
    out->iterations = w->iterations;
    out->claimed = w->claimed;
    out->ahead_asked = w->ahead_asked;
    out->ahead_used = w->ahead_used;
    out->ahead_there = w->ahead_there;
    out->ahead_bytes = w->ahead_bytes;
    out->held_seconds = (double)w->held_ns * 1e-9;
    out->network_seconds += (double)w->wait_ns * 1e-9;
    out->lag_mean = w->fared.releases ? (double)w->fared.lag_sum / (double)w->fared.releases : 0;
    out->lag_max = w->fared.lag_max;
    out->stale_mean = w->iterations ? (double)w->fared.stale_sum / (double)w->iterations : 0;
    out->stale_max = w->fared.stale_max;
    memcpy(out->stale, w->fared.stale, sizeof(out->stale));
}
