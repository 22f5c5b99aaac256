/*
 * The worker's half of rounds: parameters come from all servers, in two messages where some came
 * ahead, and the gradient of the batch goes to them.
 */
#include <math.h>
#include <string.h>

#include "base/drps_clock.h"
#include "engine/cluster/rounds_internal.h"

/* ---- Parameters ---- */

/* What one server has sent of a round. */
struct pulled {
    size_t rows;                    /* of the batch that it sends */
    size_t share;                   /* of the batch that are its own, with those that are here */
    const uint8_t *away;            /* [share] 1: the row is here; NULL: none is */
    uint32_t common;                /* the first ones of the share, of which there are copies */
    struct drps_net_message *ahead; /* own; NULL: everything is in `rest` */
    struct drps_net_message *rest;  /* own */
    size_t ahead_rows;
    struct rounds_reader early, late; /* the rows of `ahead` and `rest` */
    size_t remote; /* number of the first one among the batch's rows of other servers */
};

static void free_pulled(struct pulled *p)
{
    drps_net_message_free(p->ahead);
    drps_net_message_free(p->rest);
}

/* Count the rows that came ahead. DRPS_E_PROTO: marks and values do not fit the batch. */
static int count_ahead(const struct drps_rounds *r, struct pulled *p, struct drps_err *err)
{
    const struct drps_net_message *m = p->ahead;
    const size_t words = rounds_mark_bytes(p->rows) / sizeof(uint64_t);
    const uint64_t *marks = m->data;
    uint64_t beyond = 0;
    if (m->bytes >= words * sizeof(*marks)) {
        for (size_t i = 0; i < words; i++)
            p->ahead_rows += (size_t)__builtin_popcountll(marks[i]);
        if (p->rows % 64) beyond = marks[words - 1] >> p->rows % 64;
    }
    const size_t head = words * sizeof(*marks);
    if (m->bytes >= head && !beyond &&
        drps_rounds_read(r, marks + words, m->bytes - head, p->ahead_rows, m->tag, &p->early) == 0)
        return 0;
    return drps_err_set(err, DRPS_E_PROTO,
                        "rank %u sent %zu bytes ahead of round %llu, which do not fit %zu rows",
                        m->from, m->bytes, (unsigned long long)m->round, p->rows);
}

static uint64_t bytes_due(const struct drps_rounds *r, const struct pulled *p, uint32_t from)
{
    if (from == r->rank) return sizeof(struct drps_message_here);
    return (p->rows - p->ahead_rows) * r->dim * sizeof(float);
}

/* Whether what is left of a server's rows has come. */
static int fits(const struct drps_rounds *r, struct pulled *p, uint32_t from)
{
    const struct drps_net_message *m = p->rest;
    if (from == r->rank) return m->bytes == bytes_due(r, p, from);
    return drps_rounds_read(r, m->data, m->bytes, p->rows - p->ahead_rows, m->tag, &p->late) == 0;
}

/* Receive what a server sends of this round; with the end, the message has a tag and no values. */
static int take_parameters(struct drps_rounds *r, uint32_t from, struct pulled *p,
                           struct drps_err *err)
{
    int rc = drps_rounds_take(r, DRPS_NET_WORKER, from, r->worker.round, &p->rest, err);
    if (rc == 0 && p->rest->type == DRPS_MESSAGE_AHEAD && from != r->rank) {
        p->ahead = p->rest;
        p->rest = NULL;
        r->worker.traffic.received_marks += rounds_mark_bytes(p->rows);
        rc = count_ahead(r, p, err);
        if (rc == 0)
            rc = drps_rounds_take(r, DRPS_NET_WORKER, from, r->worker.round, &p->rest, err);
    }
    if (rc < 0) return rc;
    struct drps_net_message *m = p->rest;
    const int ends = (m->tag & ROUNDS_END) && !p->ahead && !m->bytes;
    const uint64_t due = bytes_due(r, p, from);
    if (m->type == DRPS_MESSAGE_PARAMETERS && (ends || fits(r, p, from))) return 0;
    p->rest = NULL;
    return drps_rounds_unexpected(m, DRPS_MESSAGE_PARAMETERS, due, err);
}

/* Put the messages' rows to their places. */
static void merge(const struct drps_rounds *r, struct pulled *p, char *to)
{
    const size_t row = r->dim * sizeof(float);
    const uint64_t *marks = p->ahead ? p->ahead->data : NULL;
    for (size_t i = p->common, sent = 0; i < p->share; i++, to += row) {
        if (p->away && p->away[i]) continue;
        drps_fresh_next(
            marks && marks[sent / 64] >> sent % 64 & 1 ? &p->early.fresh : &p->late.fresh, to);
        sent++;
    }
}

/* The same where pulls are filtered. */
static int merge_filtered(const struct drps_rounds *r, struct pulled *p, uint32_t from, float *to,
                          struct drps_err *err)
{
    const uint64_t *marks = p->ahead ? p->ahead->data : NULL;
    for (size_t i = 0; i < p->rows; i++, to += r->dim) {
        struct rounds_reader *reader = marks && marks[i / 64] >> i % 64 & 1 ? &p->early : &p->late;
        if (drps_rounds_next_row(r, reader, p->remote + i, to) < 0)
            return drps_err_set(err, DRPS_E_PROTO,
                                "rank %u left out a row of round %llu of which there is no copy, "
                                "or whose values are no finite numbers",
                                from, (unsigned long long)r->worker.round);
    }
    return 0;
}

static int put(const struct drps_rounds *r, struct pulled *p, uint32_t from, char *to,
               struct drps_err *err)
{
    const size_t bytes = p->rows * r->dim * sizeof(float);
    if (from != r->rank && r->worker.copies)
        return merge_filtered(r, p, from, (float *)(void *)to, err);
    if (from != r->rank && (p->ahead || p->late.fresh.marks || p->away))
        merge(r, p, to);
    else if (bytes)
        memcpy(to,
               from == r->rank ? ((const struct drps_message_here *)p->rest->data)->values
                               : p->rest->data,
               bytes);
    return 0;
}

static void count_received(struct drps_rounds *r, const struct pulled *p, uint32_t from)
{
    struct drps_rounds_bytes *traffic = &r->worker.traffic;
    if (from == r->rank) return;
    traffic->received += p->rest->bytes + (p->ahead ? p->ahead->bytes : 0);
    traffic->received_marks += p->early.head_bytes + p->late.head_bytes;
    r->worker.made[from] += p->early.fresh.made + p->late.fresh.made;
}

/* The copies that the worker has of the batch's rows, if pulls are filtered. */
static int find_copies(struct drps_rounds *r, struct drps_err *err)
{
    struct rounds_worker *w = &r->worker;
    const size_t own = w->share.shares[r->rank];
    w->copies = NULL;
    if (!r->o.pull || w->at >= r->train) return 0;
    return drps_pull_next_batch(r->o.pull, w->share.body.rows - own, &w->copies, err);
}

/* The batch's parameters are there: keep copies of those that it has a slot for. */
static void keep_copies(struct drps_rounds *r)
{
    const struct rounds_worker *w = &r->worker;
    size_t own_first = 0;
    for (uint32_t s = 0; s < r->rank; s++)
        own_first += w->share.shares[s];
    if (w->copies && !w->ended)
        drps_copies_keep(w->copies, r->o.worker->params, own_first, w->share.shares[r->rank]);
}

/* Rows that are here: those of other workers come first. */
static int take_here(struct drps_rounds *r, struct drps_err *err)
{
    int rc = drps_rounds_arrive(r, err);
    if (rc == 0) drps_handing_fill(r->o.handing, r->o.worker->params);
    return rc;
}

/* How many of the rows [first, first + share) of the batch there are copies of: those of the first
 * rows of all. */
static uint32_t copied(const struct drps_rounds *r, size_t first, uint32_t share)
{
    const size_t left = first < r->common.n ? r->common.n - first : 0;
    return share < left ? share : (uint32_t)left;
}

/* What a server is to send: not the rows that are here. `first`: its first row of the batch. */
static struct pulled begin_pulled(const struct drps_rounds *r, uint32_t server, size_t first)
{
    const uint32_t share = r->worker.share.shares[server];
    const uint32_t here = r->o.handing ? drps_handing_counts(r->o.handing, server)->used : 0;
    const uint8_t *away = here ? drps_handing_away(r->o.handing) + first : NULL;
    const uint32_t common = copied(r, first, share);
    return (struct pulled){
        .rows = share - here - common, .share = share, .away = away, .common = common};
}

/* Receives the parameters of servers 0, 1, ... one after another. Returns 1 when all say to end. */
static int pull(struct drps_rounds *r, struct drps_err *err)
{
    struct rounds_worker *w = &r->worker;
    float *params = r->o.worker->params;
    size_t at = 0;
    int agree = 1, first = 1;
    size_t remote = 0;
    for (uint32_t s = 0; s < r->ranks; s++) {
        struct pulled p = begin_pulled(r, s, at);
        p.remote = remote;
        if (!rounds_linked(r, r->rank, s)) continue; /* it has no rows of the batch */
        if (s != r->rank) remote += p.rows;
        int rc = take_parameters(r, s, &p, err);
        if (rc == 0) {
            const uint32_t end = p.rest->tag & ROUNDS_END;
            w->heard |= p.rest->tag >> DRPS_MESSAGE_WANTS_SHIFT & ROUNDS_END;
            if (first) w->ended = end;
            first = 0;
            agree &= end == w->ended;
            if (!end) rc = put(r, &p, s, (char *)(params + (at + p.common) * r->dim), err);
            count_received(r, &p, s);
            if (!end && rc == 0) rc = drps_rounds_take_lent(r, s, err);
            if (!end && rc == 0) rc = drps_rounds_take_common(r, s, at, p.common, err);
        }
        free_pulled(&p);
        if (rc < 0) return rc;
        at += p.share;
    }
    if (agree) keep_copies(r);
    if (agree && !w->ended && r->common.n) drps_rounds_put_common(r);
    if (agree && !w->ended && r->o.handing) return take_here(r, err);
    if (agree) return w->ended != 0;
    return drps_err_set(err, DRPS_E_PROTO, "servers disagree on whether round %llu comes next",
                        (unsigned long long)w->round);
}

/* The worker's batch of the next round. What was taken before a pause is still to be trained. */
static int take_share(struct drps_rounds *r, struct drps_err *err)
{
    if (r->worker.has_share) return 0;
    struct drps_feed_share *share = &r->worker.share;
    int rc = drps_feed_next_share(r->o.feed, share, err);
    if (rc == 0 && r->o.handing)
        rc = drps_handing_begin(r->o.handing, r->worker.at < r->train, share->body.rows,
                                share->shares, err);
    if (rc == 0) rc = drps_rounds_check_common(r, err);
    r->worker.has_share = rc == 0;
    return rc;
}

/* ---- Gradients ---- */

static int wants_to_stop(const struct drps_rounds *r)
{
    const int keeps =
        r->o.push || r->o.pull || r->o.handing; /* until an epoch's training is over */
    const atomic_int *stop = keeps && !r->o.train->pilot.on ? NULL : r->o.train->stop;
    return stop && atomic_load_explicit(stop, memory_order_relaxed); /* only a flag */
}

/* What this rank wants after the round. A loss that is no finite number ends training on all. */
static uint32_t wishes(const struct drps_rounds *r, double loss)
{
    return r->worker.heard | (r->worker.wants_pause ? DRPS_MESSAGE_PAUSE : 0) |
           (wants_to_stop(r) || !isfinite(loss) ? DRPS_MESSAGE_STOP : 0);
}

/* Send a server of another rank the gradient of its n rows, from row `first` of the batch on, but
 * for what is held back. */
static int push_filtered(struct drps_rounds *r, uint32_t s, size_t first, size_t n, uint32_t tag,
                         struct drps_err *err)
{
    struct rounds_worker *w = &r->worker;
    const struct drps_worker *worker = r->o.worker;
    unsigned char *data = w->filtered->data + w->filtered_bytes;
    const struct drps_piece piece = {data,
                                     drps_push_write(r->o.push, s, first, n, worker->grads[0],
                                                     r->touches ? worker->touches[0] : NULL, data)};
    const struct drps_net_send send = {.to = s,
                                       .part = DRPS_NET_SERVER,
                                       .type = DRPS_MESSAGE_FILTERED,
                                       .tag = tag,
                                       .round = w->round,
                                       .pieces = &piece,
                                       .n = 1};
    w->filtered_bytes += piece.bytes;
    rounds_count_sent(r, &w->sent, DRPS_TRAFFIC_PUSHED, s, n, piece.bytes);
    return drps_shared_buffer_send(w->filtered, r->o.net, &send, r->o.wait_ms, err);
}

/* Add to the gradient what was held back of its rows before. */
static int begin_filtered(struct drps_rounds *r, size_t own_first, struct drps_err *err)
{
    struct rounds_worker *w = &r->worker;
    w->filtered_bytes = 0;
    int rc = drps_shared_buffer_renew(&w->filtered, w->filtered->bytes, err);
    if (rc < 0) return rc;
    return drps_push_begin(r->o.push, r->o.worker->grads[0], w->share.body.rows, own_first,
                           w->share.shares[r->rank], err);
}

/* Send a server the gradient of its n rows, from row `first` of the batch on. */
static int push_to(struct drps_rounds *r, uint32_t s, size_t first, size_t n, uint32_t tag,
                   struct drps_err *err)
{
    const struct drps_worker *worker = r->o.worker;
    const struct drps_message_here here = {.values = worker->grads[0] + first * r->dim,
                                           .touches =
                                               r->touches ? worker->touches[0] + first : NULL,
                                           .common = drps_rounds_own_sums(r)};
    const struct drps_piece own = {&here, sizeof(here)};
    const struct drps_piece pieces[2] = {
        {here.values, n * r->dim * sizeof(float)},
        {here.touches, r->touches ? n * sizeof(uint32_t) : 0},
    };
    const struct drps_net_send send = {.to = s,
                                       .part = DRPS_NET_SERVER,
                                       .type = DRPS_MESSAGE_GRADIENT,
                                       .tag = tag,
                                       .round = r->worker.round,
                                       .pieces = s == r->rank ? &own : pieces,
                                       .n = r->touches && s != r->rank ? 2 : 1};
    rounds_count_sent(r, &r->worker.sent, DRPS_TRAFFIC_PUSHED, s, n,
                      drps_rounds_gradient_bytes(r, s, n));
    return s == r->rank ? drps_net_send(r->o.net, &send, r->o.wait_ms, err)
                        : drps_shared_buffer_send(worker->sent, r->o.net, &send, r->o.wait_ms, err);
}

/* Other ranks' gradients of common rows are waited for, which counts as the network's time, and as
 * that of the step; products of their vectors are computed, as gradients are. All servers have got
 * theirs before: they do not wait for a worker that waits for a rank that breaks down. */
static int sum_common(struct drps_rounds *r, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    int rc = drps_rounds_sum_common(r, err);
    const uint64_t took = drps_clock_ns() - start - r->worker.products_ns;
    r->worker.times.network_ns += took;
    r->worker.times.reduce_ns += took;
    r->worker.summed_ns += took;
    return rc;
}

/* Sends each server its part of the gradient, the neighbour's first, so that not all ranks send to
 * the same one, and the own one last; after an evaluation round, that it is over. Where the own
 * server has common rows it gets their sums, else it goes on while they are made. */
static int push(struct drps_rounds *r, int training, double loss, struct drps_err *err)
{
    const uint32_t tag = wishes(r, loss);
    const uint32_t *shares = r->worker.share.shares;
    size_t first = 0;
    int rc = 0;
    for (uint32_t s = 0; s <= r->rank; s++)
        first += shares[s];
    const int filters = r->o.push && training;
    if (filters) rc = begin_filtered(r, first - shares[r->rank], err);
    if (r->o.handing && training) rc = drps_rounds_hand_on(r, err);
    for (uint32_t i = 0; i < r->ranks && rc == 0; i++) {
        const uint32_t s = (r->rank + 1 + i) % r->ranks;
        if (s == 0) first = 0;
        if (s == r->rank && training && r->common.own) rc = sum_common(r, err);
        if (rc < 0 || !rounds_linked(r, r->rank, s)) continue; /* it has no rows of the batch */
        const uint32_t here = r->o.handing ? drps_handing_counts(r->o.handing, s)->used : 0;
        const uint32_t common = copied(r, first, shares[s]);
        const size_t n = training ? shares[s] - here - common : 0;
        rc = filters && s != r->rank ? push_filtered(r, s, first, n, tag, err)
                                     : push_to(r, s, first + common, n, tag, err);
        if (rc == 0) rc = drps_rounds_return(r, s, err);
        first += shares[s];
    }
    if (rc == 0 && training && r->common.n && !r->common.own) rc = sum_common(r, err);
    return rc;
}

/* ---- Rounds ---- */

static void tell_hook(const struct drps_rounds *r, enum drps_batch_moment moment)
{
    const struct drps_train_options *train = r->o.train;
    const struct drps_train_batch batch = {
        .rank = r->rank, .share = r->rank, .step = r->worker.at, .moment = moment};
    if (train->on_batch && r->worker.at < r->train) train->on_batch(train->ctx, &batch);
}

/* The next parameters are waited for less long then. */
static int add_sums(struct drps_rounds *r, struct drps_round *out, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    int rc = drps_rounds_add_sums(r, err);
    const uint64_t took = drps_clock_ns() - start;
    r->worker.times.network_ns += took;
    out->wait_ns += took;
    return rc;
}

int drps_rounds_work(struct drps_rounds *r, struct drps_round *out, struct drps_err *err)
{
    struct rounds_worker *w = &r->worker;
    const int training = w->at < r->train;
    if (!w->has_share) tell_hook(r, DRPS_BATCH_BEGINS);
    const uint64_t start = drps_clock_ns();
    *out = (struct drps_round){.batch = &w->share.body};
    int rc = take_share(r, err);
    const uint64_t read = drps_clock_ns();
    if (rc == 0) rc = find_copies(r, err);
    if (rc == 0) rc = pull(r, err);
    if (rc == 0) rc = drps_worker_renew(r->o.worker, err);
    if (rc) return rc;
    w->has_share = 0;
    const uint64_t pulled = drps_clock_ns();
    drps_rounds_count_wait(r, read, pulled);
    tell_hook(r, DRPS_BATCH_PULLED);
    const uint64_t ready = drps_clock_ns();
    if (training)
        out->loss = drps_worker_gradient(r->o.worker, &w->share.body);
    else
        drps_worker_score(r->o.worker, &w->share.body);
    if (training && r->o.handing)
        drps_handing_step(r->o.handing, r->o.worker->grads[0],
                          r->touches ? r->o.worker->touches[0] : NULL);
    out->plan_ns = read - start;
    out->wait_ns = pulled - read;
    out->compute_ns = drps_clock_ns() - ready;
    w->summed_ns = w->products_ns = 0;
    rc = push(r, training, out->loss, err);
    out->wait_ns += w->summed_ns;
    out->compute_ns += w->products_ns;
    if (training) {
        w->times.compute_ns += out->compute_ns;
        w->trained_ns = w->pushed_ns = drps_clock_ns();
    }
    if (rc == 0 && training && r->o.server->topic) rc = add_sums(r, out, err);
    tell_hook(r, DRPS_BATCH_DONE);
    w->at++;
    w->round++;
    return rc;
}

void drps_rounds_pause(struct drps_rounds *r)
{
    r->worker.wants_pause = 1;
}

int drps_rounds_stopped(const struct drps_rounds *r)
{
    return (r->worker.ended & DRPS_MESSAGE_STOP) != 0;
}
