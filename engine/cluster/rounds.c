/* Bulk synchronous rounds: the server's thread, and the worker's calls. Both know from the plan
 * which rows a message holds. */
#include "engine/cluster/drps_rounds.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "engine/cluster/drps_messages.h"
#include "net/drps_shared_buffer.h"

enum {
    PARAMETERS = DRPS_MESSAGE_PARAMETERS,
    GRADIENT = DRPS_MESSAGE_GRADIENT,
    FAILED = DRPS_MESSAGE_FAILED,
    STOP = DRPS_MESSAGE_STOP,
    PAUSE = DRPS_MESSAGE_PAUSE,
    END = STOP | PAUSE, /* any of them */
};

struct drps_rounds {
    struct drps_rounds_options o;
    uint32_t rank, workers;
    uint32_t dim;
    uint64_t train, rounds; /* of an epoch */
    int touches;

    /* The worker's members. */
    uint64_t round, at; /* of the run, and within the epoch */
    struct drps_feed_share share;
    int has_share;   /* it was taken for a round that the ranks ended before */
    int wants_pause; /* gradients say so, until the next begin */
    uint32_t ended;  /* what the servers said in place of parameters */
    struct drps_rounds_bytes worker_traffic;

    /* The server's members. */
    uint64_t served, served_at;
    uint64_t trained_ns;
    uint32_t end; /* what some ranks want */
    struct drps_shared_buffer
        *values;     /* own: [max_round_uses][dim] parameters on their way out, by worker */
    uint32_t *index; /* own: [max_round_uses] */
    float *sum;      /* own: [max_round_rows][dim] */
    uint32_t *count; /* own: [max_round_rows]; of no rows without touches */
    struct drps_rounds_bytes server_traffic;
    struct drps_err server_err;
    int server_rc;
    pthread_t thread;
    int running;
};

/* ---- Sizes ---- */

static uint64_t row_bytes(const struct drps_plan_info *info)
{
    return info->dim * sizeof(float);
}

uint64_t drps_rounds_worker_bytes(const struct drps_plan_info *info)
{
    return info->max_batch_rows * row_bytes(info);
}

uint64_t drps_rounds_server_bytes(const struct drps_plan_info *info)
{
    return info->max_batch_rows * (row_bytes(info) + sizeof(uint32_t));
}

/* What goes out is sent from where it lies; what has come in is there once: a worker's parameters
 * from all servers, and a server's gradients from all workers. */
uint64_t drps_rounds_memory(const struct drps_plan_info *info, int touches)
{
    const uint64_t row = row_bytes(info), count = touches ? sizeof(uint32_t) : 0;
    const struct drps_plan_ranks *ranks = &info->ranks;
    const uint64_t arrays =
        ranks->max_round_uses * (row + sizeof(uint32_t)) + ranks->max_round_rows * (row + count);
    const uint64_t messages = info->max_batch_rows * row + ranks->max_round_uses * (row + count);
    return arrays + messages;
}

void drps_rounds_forecast(const struct drps_plan_info *info, int touches, uint64_t epochs,
                          struct drps_rounds_bytes *out)
{
    const struct drps_plan_ranks *r = &info->ranks;
    const uint64_t there = row_bytes(info);
    const uint64_t back = there + (touches ? sizeof(uint32_t) : 0);
    *out = (struct drps_rounds_bytes){
        .sent = epochs * ((r->served_rows + r->eval_served_rows) * there + r->pulled_rows * back),
        .received =
            epochs * ((r->pulled_rows + r->eval_pulled_rows) * there + r->served_rows * back),
    };
}

/* ---- Messages ---- */

static void count_sent(const struct drps_rounds *r, struct drps_rounds_bytes *bytes_of, uint32_t to,
                       uint64_t bytes)
{
    if (to != r->rank) bytes_of->sent += bytes;
}

static int send_failed(struct drps_rounds *r, enum drps_net_part part)
{
    const struct drps_net_send send = {.to = r->rank, .part = part, .type = FAILED};
    return drps_net_send(r->o.net, &send, r->o.wait_ms, NULL);
}

/* The other half of this rank, or another rank, has failed and says why itself. */
static int told_failed(struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CLOSED, "the other half of this rank has failed");
}

/* The message of `type` and `round` from a rank, of so many bytes unless it says to end. */
static int take(struct drps_rounds *r, enum drps_net_part part, uint32_t from, uint8_t type,
                uint64_t round, uint64_t bytes, struct drps_net_message **out, struct drps_err *err)
{
    int rc = drps_net_receive(r->o.net, part, from, r->o.wait_ms, out, err);
    while (rc == 0 && (*out)->type == DRPS_MESSAGE_OPENED && from == r->rank) {
        drps_net_message_free(*out); /* late: of the asynchronous rounds before */
        rc = drps_net_receive(r->o.net, part, from, r->o.wait_ms, out, err);
    }
    if (rc == -ETIMEDOUT) (void)drps_err_context(err, "round %llu", (unsigned long long)round);
    if (rc < 0) return rc;
    const struct drps_net_message *m = *out;
    if (m->type == FAILED && from == r->rank)
        rc = told_failed(err);
    else if (m->type != type || m->round != round ||
             (m->bytes != bytes && !(type == PARAMETERS && m->tag & END)))
        rc = drps_err_set(err, DRPS_E_PROTO,
                          "rank %u sent message %u of %zu bytes for round %llu where message %u of "
                          "%llu bytes for round %llu was due",
                          from, m->type, m->bytes, (unsigned long long)m->round, type,
                          (unsigned long long)bytes, (unsigned long long)round);
    if (rc == 0) return 0;
    drps_net_message_free(*out);
    *out = NULL;
    return rc;
}

/* Bytes of a gradient's message between this rank and another. */
static uint64_t gradient_bytes(const struct drps_rounds *r, uint32_t other, size_t rows)
{
    if (other == r->rank) return sizeof(struct drps_message_here);
    return rows * (r->dim * sizeof(float) + (r->touches ? sizeof(uint32_t) : 0));
}

/* Find the values and touches in `data`, the gradient of `rows` rows. */
static struct drps_message_here gradient_at(const struct drps_rounds *r, uint32_t from,
                                            const void *data, size_t rows)
{
    struct drps_message_here here = {.values = data};
    if (from == r->rank)
        memcpy(&here, data, sizeof(here));
    else
        here.touches = (const uint32_t *)data + rows * r->dim;
    return here;
}

/* ---- The server ---- */

static int send_parameters(struct drps_rounds *r, const struct drps_feed_union *u, uint32_t to,
                           struct drps_err *err)
{
    const size_t from = u->part[to], n = u->part[to + 1] - from;
    const struct drps_rows *rows = &r->o.server->rows;
    struct drps_rows part = {.base = rows->base, .stride = rows->stride, .index = r->index, .n = n};
    for (size_t i = 0; i < n; i++)
        r->index[i] = rows->index[u->positions[from + i]];
    float *values = (float *)(void *)r->values->data + from * r->dim;
    const struct drps_message_here here = {.values = values};
    drps_rows_gather(&part, r->dim, 0, n, values);
    const struct drps_piece piece =
        to == r->rank ? (struct drps_piece){&here, sizeof(here)}
                      : (struct drps_piece){here.values, n * r->dim * sizeof(float)};
    const struct drps_net_send send = {.to = to,
                                       .part = DRPS_NET_WORKER,
                                       .type = PARAMETERS,
                                       .round = r->served,
                                       .pieces = &piece,
                                       .n = 1};
    count_sent(r, &r->server_traffic, to, piece.bytes);
    return to == r->rank ? drps_net_send(r->o.net, &send, r->o.wait_ms, err)
                         : drps_shared_buffer_send(r->values, r->o.net, &send, r->o.wait_ms, err);
}

/* Tells all workers to stop or pause, in place of the next parameters. */
static int send_end(struct drps_rounds *r, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t w = 0; w < r->workers && rc == 0; w++) {
        const struct drps_net_send send = {.to = w,
                                           .part = DRPS_NET_WORKER,
                                           .type = PARAMETERS,
                                           .tag = r->end,
                                           .round = r->served};
        rc = drps_net_send(r->o.net, &send, r->o.wait_ms, err);
    }
    return rc;
}

static void add_gradient(struct drps_rounds *r, const struct drps_feed_union *u, uint32_t from,
                         const void *data)
{
    const size_t n = u->part[from + 1] - u->part[from], dim = r->dim;
    const uint32_t *positions = u->positions + u->part[from];
    const struct drps_message_here here = gradient_at(r, from, data, n);
    const float *gradient = here.values;
    const uint32_t *touches = here.touches;
    for (size_t i = 0; i < n; i++) {
        float *restrict sum = r->sum + positions[i] * dim;
        for (size_t k = 0; k < dim; k++)
            sum[k] += gradient[i * dim + k];
    }
    for (size_t i = 0; r->touches && i < n; i++)
        r->count[positions[i]] += touches[i];
}

static int add_gradients(struct drps_rounds *r, const struct drps_feed_union *u, int training,
                         struct drps_err *err)
{
    memset(r->sum, 0, training ? u->n * r->dim * sizeof(*r->sum) : 0);
    memset(r->count, 0, training && r->touches ? u->n * sizeof(*r->count) : 0);
    for (uint32_t w = 0; w < r->workers; w++) {
        struct drps_net_message *m;
        const size_t n = training ? u->part[w + 1] - u->part[w] : 0;
        int rc = take(r, DRPS_NET_SERVER, w, GRADIENT, r->served, gradient_bytes(r, w, n), &m, err);
        if (rc < 0) return rc;
        if (training) add_gradient(r, u, w, m->data);
        r->end |= m->tag & END;
        if (w != r->rank) r->server_traffic.received += m->bytes;
        drps_net_message_free(m);
    }
    return 0;
}

static int serve_round(struct drps_rounds *r, struct drps_err *err)
{
    struct drps_server *server = r->o.server;
    const int training = r->served_at < r->train;
    struct drps_feed_union u;

    int rc = drps_feed_next_union(r->o.feed, &u, err);
    if (rc == 0) rc = drps_server_open_step(server, u.ids, u.n, err);
    if (rc == 0) rc = drps_shared_buffer_renew(&r->values, r->values->bytes, err);
    for (uint32_t w = 0; w < r->workers && rc == 0; w++) /* its neighbour first */
        rc = send_parameters(r, &u, (r->rank + 1 + w) % r->workers, err);
    if (rc == 0) rc = add_gradients(r, &u, training, err);
    if (rc < 0) return rc;
    if (training)
        drps_server_step(server, &server->rows, 0, u.n, r->sum, r->touches ? r->count : NULL);
    rc = drps_server_close_step(server, training, err);
    if (training) r->trained_ns = drps_clock_ns();
    return rc;
}

static void *serve(void *rounds)
{
    struct drps_rounds *r = rounds;
    int rc = 0;
    for (; r->served_at < r->rounds && rc == 0; r->served_at++, r->served++) {
        if (r->end) {
            rc = send_end(r, &r->server_err);
            break;
        }
        rc = serve_round(r, &r->server_err);
    }
    r->server_rc = rc;
    if (rc < 0 && rc != DRPS_E_CLOSED) (void)send_failed(r, DRPS_NET_WORKER);
    return NULL;
}

/* ---- The worker ---- */

/* Receives the parameters of servers 0, 1, ... one after another. Returns 1 when all say to end. */
static int pull(struct drps_rounds *r, struct drps_err *err)
{
    char *at = (char *)r->o.worker->params;
    int agree = 1;
    for (uint32_t s = 0; s < r->workers; s++) {
        struct drps_net_message *m;
        const uint64_t bytes = r->share.shares[s] * r->dim * sizeof(float);
        const int own = s == r->rank;
        int rc = take(r, DRPS_NET_WORKER, s, PARAMETERS, r->round,
                      own ? sizeof(struct drps_message_here) : bytes, &m, err);
        if (rc < 0) return rc;
        const uint32_t end = m->tag & END;
        if (s == 0) r->ended = end;
        agree &= end == r->ended;
        if (bytes && !end)
            memcpy(at, own ? ((const struct drps_message_here *)m->data)->values : m->data, bytes);
        at += bytes;
        if (s != r->rank) r->worker_traffic.received += m->bytes;
        drps_net_message_free(m);
    }
    if (agree) return r->ended != 0;
    return drps_err_set(err, DRPS_E_PROTO, "servers disagree on whether round %llu comes next",
                        (unsigned long long)r->round);
}

/* The worker's batch of the next round. What was taken before a pause is still to be trained. */
static int take_share(struct drps_rounds *r, struct drps_err *err)
{
    if (r->has_share) return 0;
    int rc = drps_feed_next_share(r->o.feed, &r->share, err);
    r->has_share = rc == 0;
    return rc;
}

static int wants_to_stop(const struct drps_rounds *r)
{
    const atomic_int *stop = r->o.train->stop;
    return stop && atomic_load_explicit(stop, memory_order_relaxed); /* only a flag */
}

/* What this rank wants after the round. A loss that is no finite number ends training on all. */
static uint32_t wishes(const struct drps_rounds *r, double loss)
{
    return (r->wants_pause ? PAUSE : 0) | (wants_to_stop(r) || !isfinite(loss) ? STOP : 0);
}

/* Sends each server its part of the gradient; after an evaluation round, that it is over. */
static int push(struct drps_rounds *r, int training, double loss, struct drps_err *err)
{
    const struct drps_worker *worker = r->o.worker;
    const uint32_t tag = wishes(r, loss);
    size_t first = 0;
    for (uint32_t s = 0; s < r->workers; s++) {
        const size_t n = training ? r->share.shares[s] : 0;
        const struct drps_message_here here = {.values = worker->grads[0] + first * r->dim,
                                               .touches =
                                                   r->touches ? worker->touches[0] + first : NULL};
        const struct drps_piece own = {&here, sizeof(here)};
        const struct drps_piece pieces[2] = {
            {here.values, n * r->dim * sizeof(float)},
            {here.touches, r->touches ? n * sizeof(uint32_t) : 0},
        };
        const struct drps_net_send send = {.to = s,
                                           .part = DRPS_NET_SERVER,
                                           .type = GRADIENT,
                                           .tag = tag,
                                           .round = r->round,
                                           .pieces = s == r->rank ? &own : pieces,
                                           .n = r->touches && s != r->rank ? 2 : 1};
        int rc = s == r->rank
                     ? drps_net_send(r->o.net, &send, r->o.wait_ms, err)
                     : drps_shared_buffer_send(worker->sent, r->o.net, &send, r->o.wait_ms, err);
        if (rc < 0) return rc;
        count_sent(r, &r->worker_traffic, s, gradient_bytes(r, s, n));
        first += n;
    }
    return 0;
}

static void tell_hook(const struct drps_rounds *r, enum drps_batch_moment moment)
{
    const struct drps_train_options *train = r->o.train;
    const struct drps_train_batch batch = {
        .rank = r->rank, .share = r->rank, .step = r->at, .moment = moment};
    if (train->on_batch && r->at < r->train) train->on_batch(train->ctx, &batch);
}

int drps_rounds_work(struct drps_rounds *r, struct drps_round *out, struct drps_err *err)
{
    const int training = r->at < r->train;
    if (!r->has_share) tell_hook(r, DRPS_BATCH_BEGINS);
    const uint64_t start = drps_clock_ns();
    *out = (struct drps_round){.batch = &r->share.body};
    int rc = take_share(r, err);
    const uint64_t read = drps_clock_ns();
    if (rc == 0) rc = pull(r, err);
    if (rc == 0) rc = drps_worker_renew(r->o.worker, err);
    if (rc) return rc;
    r->has_share = 0;
    const uint64_t pulled = drps_clock_ns();
    tell_hook(r, DRPS_BATCH_PULLED);
    const uint64_t ready = drps_clock_ns();
    if (training)
        out->loss = drps_worker_gradient(r->o.worker, &r->share.body);
    else
        drps_worker_score(r->o.worker, &r->share.body);
    out->plan_ns = read - start;
    out->wait_ns = pulled - read;
    out->compute_ns = drps_clock_ns() - ready;
    rc = push(r, training, out->loss, err);
    tell_hook(r, DRPS_BATCH_DONE);
    r->at++;
    r->round++;
    return rc;
}

void drps_rounds_pause(struct drps_rounds *r)
{
    r->wants_pause = 1;
}

int drps_rounds_stopped(const struct drps_rounds *r)
{
    return (r->ended & STOP) != 0;
}

/* ---- Epochs ---- */

int drps_rounds_begin(struct drps_rounds *r, uint64_t first, struct drps_err *err)
{
    r->at = r->served_at = first;
    r->trained_ns = 0;
    r->wants_pause = 0;
    r->end &= STOP;
    drps_err_clear(&r->server_err);
    int rc = pthread_create(&r->thread, NULL, serve, r);
    if (rc) return drps_err_set(err, -rc, "no thread for the server: %s", strerror(rc));
    r->running = 1;
    return 0;
}

int drps_rounds_end(struct drps_rounds *r, int rc, struct drps_err *err)
{
    if (rc < 0 && rc != DRPS_E_CLOSED) (void)send_failed(r, DRPS_NET_SERVER);
    if (r->running) (void)pthread_join(r->thread, NULL);
    r->running = 0;
    if (r->server_rc >= 0 || r->server_rc == DRPS_E_CLOSED || (rc < 0 && rc != DRPS_E_CLOSED))
        return rc;
    drps_err_clear(err); /* the server says what it was */
    return drps_err_set(err, r->server_rc, "%s", r->server_err.text);
}

uint64_t drps_rounds_trained_ns(const struct drps_rounds *r)
{
    return r->trained_ns;
}

/* ---- Opening ---- */

/* Bytes of all values that go out; SIZE_MAX, which is refused, where they cannot be counted. */
static size_t values_bytes(const struct drps_plan_info *info)
{
    size_t bytes;
    const int overflow =
        __builtin_mul_overflow(info->ranks.max_round_uses, row_bytes(info), &bytes);
    return overflow ? SIZE_MAX : bytes;
}

int drps_rounds_open(const struct drps_rounds_options *options, struct drps_rounds **rounds_out,
                     struct drps_err *err)
{
    const struct drps_plan_info *info = &options->plan->info;
    *rounds_out = NULL;
    struct drps_rounds *r = calloc(1, sizeof(*r));
    if (!r) return drps_err_set(err, -ENOMEM, "no memory for rounds");
    r->o = *options;
    r->rank = info->ranks.rank;
    r->workers = info->ranks.workers;
    r->dim = info->dim;
    r->train = info->batches;
    r->rounds = info->batches + info->eval_batches;
    r->touches = options->worker->has_touches;
    const uint64_t uses = info->ranks.max_round_uses, rows = info->ranks.max_round_rows;
    r->index = drps_array_new(uses, sizeof(*r->index));
    r->sum = drps_array_new(rows, r->dim * sizeof(*r->sum));
    r->count = drps_array_new(r->touches ? rows : 0, sizeof(*r->count));
    int rc = drps_shared_buffer_renew(&r->values, values_bytes(info), err);
    if (rc == 0 && (!r->index || !r->sum || !r->count))
        rc = drps_err_set(err, -ENOMEM, "no memory for the rows of a round");
    if (rc < 0) {
        drps_rounds_close(r);
        return rc;
    }
    *rounds_out = r;
    return 0;
}

void drps_rounds_close(struct drps_rounds *r)
{
    if (!r) return;
    drps_shared_buffer_release(r->values);
    free(r->index);
    free(r->sum);
    free(r->count);
    free(r);
}

void drps_rounds_bytes(const struct drps_rounds *r, struct drps_rounds_bytes *out)
{
    *out = (struct drps_rounds_bytes){
        .sent = r->worker_traffic.sent + r->server_traffic.sent,
        .received = r->worker_traffic.received + r->server_traffic.received,
    };
}
