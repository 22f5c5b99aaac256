/*
 * The server's half of rounds, a thread of its own.
 *
 *     round t     send the parameters that the workers do not have yet
 *                 open the rows of round t + 1, send those that round t does not change
 *                 add gradients, step, close
 *
 * So values of the next round travel while workers compute. Which rows round t may change is seen
 * by their frames: a row that two open steps share has one.
 */
#include <errno.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "engine/cluster/rounds_internal.h"

/* ---- Opening ---- */

/* Open the next round's rows. The index is copied: the store's is lost when another step opens. */
static int open_round(struct drps_rounds *r, struct rounds_open *o, struct drps_err *err)
{
    struct drps_server *server = r->o.server;
    o->step = server->steps;
    int rc = drps_server_open_step(server, o->u.ids, o->u.n, err);
    if (rc < 0) return rc;
    o->rows = server->rows;
    memcpy(o->frames, server->rows.index, o->u.n * sizeof(*o->frames));
    o->rows.index = o->frames;
    o->is_open = 1;
    o->is_ahead = 0;
    return 0;
}

static void flip_marks(struct rounds_server *s, const struct rounds_open *o)
{
    for (size_t i = 0; i < o->u.n; i++)
        s->marks[o->frames[i] / 64] ^= UINT64_C(1) << o->frames[i] % 64;
}

static size_t frames_of(const struct rounds_open *o)
{
    uint32_t most = 0;
    for (size_t i = 0; i < o->u.n; i++)
        if (o->frames[i] > most) most = o->frames[i];
    return (size_t)most + 1;
}

/* Room for a mark of each frame of both rounds, all zero. */
static int reserve_marks(struct rounds_server *s, struct drps_err *err)
{
    const size_t now = frames_of(s->now), next = frames_of(s->next);
    const size_t before = s->marks_cap, words = (now > next ? now : next) / 64 + 1;
    if (drps_array_reserve(&s->marks, &s->marks_cap, words, sizeof(*s->marks)))
        return drps_err_set(err, -ENOMEM, "no memory to compare the rows of two rounds");
    memset(s->marks + before, 0, (s->marks_cap - before) * sizeof(*s->marks));
    return 0;
}

/* Find out which rows of the next round this one may change. */
static int find_late(struct drps_rounds *r, struct drps_err *err)
{
    struct rounds_server *s = &r->server;
    struct rounds_open *next = s->next;
    const int changes = s->at < r->train;
    int rc = reserve_marks(s, err);
    if (rc < 0) return rc;
    flip_marks(s, s->now);
    for (size_t i = 0; i < next->u.n; i++)
        next->late[i] =
            changes && (s->marks[next->frames[i] / 64] >> next->frames[i] % 64 & 1) != 0;
    flip_marks(s, s->now);
    return 0;
}

/* ---- Parameters ---- */

/* Which of a worker's rows: those that can go ahead; those that the round before may change, or all
 * where none went ahead; all. */
enum which_rows { ROUNDS_EARLY = 0, ROUNDS_LATE = 1, ROUNDS_ALL };

/* List the frames of these rows of a worker, and mark them. Returns their number. */
static size_t choose(const struct drps_rounds *r, const struct rounds_open *o, uint32_t worker,
                     enum which_rows which, uint64_t *marks)
{
    const uint32_t *positions = o->u.positions + o->u.part[worker];
    const uint8_t *away = rounds_lends(o) ? o->lent.use + o->u.part[worker] : NULL;
    const size_t n = o->u.part[worker + 1] - o->u.part[worker];
    size_t chosen = 0, rows = 0; /* that are pulled */
    for (size_t i = rounds_skipped(r, o, worker); i < n; i++) {
        const uint32_t position = positions[i];
        if (away && away[i]) continue;
        const size_t row = rows++;
        if (o->is_ahead && which != ROUNDS_ALL && o->late[position] != which) continue;
        if (o->has_ids) r->server.chosen[chosen] = o->ids[position];
        if (o->is_filtered) r->server.uses[chosen] = (uint32_t)(o->u.part[worker] + i);
        r->server.index[chosen++] = o->frames[position];
        if (marks) marks[row / 64] |= UINT64_C(1) << row % 64;
    }
    return chosen;
}

static void copy_parameters(const struct drps_rounds *r, const struct rounds_open *o, size_t n,
                            float *values)
{
    struct drps_rows part = {
        .base = o->rows.base, .stride = o->rows.stride, .index = r->server.index, .n = n};
    drps_rows_gather(&part, r->dim, 0, n, values);
}

static size_t round_up(size_t bytes)
{
    return (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
}

/* Put the parameters of the n rows that were chosen for another rank to data, but for fresh ones.
 * Returns their bytes; *tag_out is the message's. */
static size_t put_parameters(struct drps_rounds *r, const struct rounds_open *o, uint32_t to,
                             size_t n, unsigned char *data, uint32_t *tag_out)
{
    struct rounds_server *s = &r->server;
    const enum drps_traffic_kind kind = o == s->now ? DRPS_TRAFFIC_PULLED : DRPS_TRAFFIC_AHEAD;
    const size_t row = r->dim * sizeof(float);
    size_t sent = n;
    if (o->is_filtered) return drps_rounds_put_published(r, o, to, n, data, tag_out);
    const size_t head =
        o->has_ids ? drps_fresh_pack(s->fresh, s->chosen, s->index, &sent, row, data) : 0;
    const size_t bytes = sent * row;
    copy_parameters(r, o, sent, (float *)(void *)(data + head));
    rounds_count_sent(r, &s->sent, kind, to, sent, bytes);
    rounds_count_sent(r, &s->sent, DRPS_TRAFFIC_FRESH, to, n - sent, 0);
    rounds_count_sent(r, &s->sent, DRPS_TRAFFIC_MARKS, to, 0, head);
    *tag_out = head ? DRPS_MESSAGE_FRESH : 0;
    return head + bytes;
}

/* What is left of the parameters of this round; *at: bytes of the buffer that are in use. */
static int send_parameters(struct drps_rounds *r, uint32_t to, size_t *at, struct drps_err *err)
{
    struct rounds_server *s = &r->server;
    const struct rounds_open *o = s->now;
    unsigned char *data = s->values->data + *at;
    const struct drps_message_here here = {.values = (float *)(void *)data};
    const size_t n = choose(r, o, to, to == r->rank ? ROUNDS_ALL : ROUNDS_LATE, NULL);
    struct drps_piece piece = {data, n * r->dim * sizeof(float)};
    uint32_t tag = 0;
    if (to == r->rank)
        copy_parameters(r, o, n, (float *)(void *)data);
    else
        piece.bytes = put_parameters(r, o, to, n, data, &tag);
    *at += round_up(piece.bytes);
    if (to == r->rank) piece = (struct drps_piece){&here, sizeof(here)};
    const struct drps_net_send send = {.to = to,
                                       .part = DRPS_NET_WORKER,
                                       .type = DRPS_MESSAGE_PARAMETERS,
                                       .tag = tag | s->tells << DRPS_MESSAGE_WANTS_SHIFT,
                                       .round = s->round,
                                       .pieces = &piece,
                                       .n = 1};
    return to == r->rank ? drps_net_send(r->o.net, &send, r->o.wait_ms, err)
                         : drps_shared_buffer_send(s->values, r->o.net, &send, r->o.wait_ms, err);
}

/* Parameters of the next round that this one does not change, to a worker of another rank. */
static int send_ahead(struct drps_rounds *r, uint32_t to, size_t *at, struct drps_err *err)
{
    struct rounds_server *s = &r->server;
    const struct rounds_open *o = s->next;
    const size_t marks = rounds_mark_bytes(rounds_plain(r, o, to));
    unsigned char *data = s->ahead->data + *at;
    memset(data, 0, marks);
    uint32_t tag;
    const size_t n = choose(r, o, to, ROUNDS_EARLY, (uint64_t *)(void *)data);
    const struct drps_piece piece = {data, marks + put_parameters(r, o, to, n, data + marks, &tag)};
    *at += round_up(piece.bytes);
    const struct drps_net_send send = {.to = to,
                                       .part = DRPS_NET_WORKER,
                                       .type = DRPS_MESSAGE_AHEAD,
                                       .tag = tag,
                                       .round = s->round + 1,
                                       .pieces = &piece,
                                       .n = 1};
    rounds_count_sent(r, &s->sent, DRPS_TRAFFIC_MARKS, to, 0, marks);
    return drps_shared_buffer_send(s->ahead, r->o.net, &send, r->o.wait_ms, err);
}

static int send_all(struct drps_rounds *r, struct drps_err *err)
{
    size_t at = 0;
    int rc = drps_shared_buffer_renew(&r->server.values, r->server.values->bytes, err);
    if (rc == 0 && rounds_lends(r->server.now)) rc = drps_rounds_begin_lending(r, err);
    for (uint32_t i = 0; i < r->ranks && rc == 0; i++) { /* its neighbour first */
        const uint32_t w = (r->rank + 1 + i) % r->ranks;
        if (!rounds_linked(r, w, r->rank)) continue;
        rc = send_parameters(r, w, &at, err);
        if (rc == 0) rc = drps_rounds_lend(r, w, err);
        if (rc == 0) rc = drps_rounds_send_common(r, w, err);
    }
    drps_rounds_end_sending(r);
    return rc;
}

/* Open the next round while this one goes on, and send of it what can be sent. -EAGAIN: the store
 * opens it only after this one has closed. */
static int open_ahead(struct drps_rounds *r, struct drps_err *err)
{
    struct rounds_server *s = &r->server;
    size_t at = 0;
    int rc = open_round(r, s->next, err);
    if (rc == 0) rc = find_late(r, err);
    if (rc == 0) rc = drps_shared_buffer_renew(&s->ahead, s->ahead->bytes, err);
    if (rc < 0) return rc;
    s->next->is_ahead = 1;
    for (uint32_t i = 0; i + 1 < r->ranks && rc == 0; i++) {
        const uint32_t w = (r->rank + 1 + i) % r->ranks;
        if (rounds_linked(r, w, r->rank)) rc = send_ahead(r, w, &at, err);
    }
    return rc;
}

/* Tells all workers to stop or pause, in place of the next parameters. */
static int send_end(struct drps_rounds *r, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t w = 0; w < r->ranks && rc == 0; w++) {
        const struct drps_net_send send = {.to = w,
                                           .part = DRPS_NET_WORKER,
                                           .type = DRPS_MESSAGE_PARAMETERS,
                                           .tag = r->server.end,
                                           .round = r->server.round};
        if (rounds_linked(r, w, r->rank)) rc = drps_net_send(r->o.net, &send, r->o.wait_ms, err);
    }
    return rc;
}

/* ---- Gradients, and the wishes that come with them ---- */

/* Wishes that come with the gradients of round t end the ranks before round t + 2: of t + 1 some
 * parameters may be there already. */
static void note_wishes(struct rounds_server *s, uint32_t wishes)
{
    if (wishes && !s->end) s->end_round = s->round + 2;
    s->end |= wishes;
}

/* Those of a rank without samples are told to the workers, with the next parameters: every server
 * hears of them from all workers, in one round. */
static void take_wishes(struct drps_rounds *r, uint32_t from, uint32_t wishes)
{
    if (drps_rank_trains(r->shape, from))
        note_wishes(&r->server, wishes);
    else
        r->server.tells |= wishes;
}

static int ends_here(const struct rounds_server *s)
{
    return s->end && s->round >= s->end_round;
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

static void add_gradient(struct drps_rounds *r, uint32_t from, const struct drps_message_here *here)
{
    struct rounds_server *s = &r->server;
    const struct drps_feed_union *u = &s->now->u;
    const size_t n = rounds_plain(r, s->now, from), dim = r->dim;
    const uint32_t *positions = u->positions + u->part[from] + rounds_skipped(r, s->now, from);
    const float *gradient = here->values;
    const uint32_t *touches = here->touches;
    for (size_t i = 0; i < n; i++) {
        float *restrict sum = s->sum + positions[i] * dim;
        for (size_t k = 0; k < dim; k++)
            sum[k] += gradient[i * dim + k];
    }
    for (size_t i = 0; r->touches && i < n; i++)
        s->count[positions[i]] += touches[i];
}

/* The sums of common rows, which all ranks have made together. A round of no rows has none. */
static void add_common(struct drps_rounds *r, const struct drps_message_here *here)
{
    const struct rounds_common *c = &r->common;
    if (c->own && r->server.now->u.n)
        memcpy(r->server.sum, here->common, c->own * (size_t)r->dim * sizeof(*here->common));
}

/* Find the gradient of `rows` rows in a message, or make it of a filtered one. */
static int read_gradient(struct drps_rounds *r, const struct drps_net_message *m, size_t rows,
                         struct drps_message_here *out, struct drps_err *err)
{
    const struct drps_push_shape shape = {rows, r->dim, r->touches};
    *out = (struct drps_message_here){.values = NULL};
    if (m->type != DRPS_MESSAGE_FILTERED) {
        *out = gradient_at(r, m->from, m->data, rows);
        return 0;
    }
    int rc = drps_push_decode(r->server.reader, &shape, m->data, m->bytes, &out->values,
                              &out->touches, err);
    return rc < 0
               ? drps_err_context(err, "rank %u, round %llu", m->from, (unsigned long long)m->round)
               : 0;
}

/* A training round's gradients of other ranks may be filtered, if this rank filters its own. */
static int is_due(const struct drps_rounds *r, const struct drps_net_message *m, int training,
                  uint64_t bytes)
{
    if (m->type == DRPS_MESSAGE_FILTERED) return r->server.reader && training && m->from != r->rank;
    return m->type == DRPS_MESSAGE_GRADIENT && m->bytes == bytes;
}

static int add_gradients(struct drps_rounds *r, int training, struct drps_err *err)
{
    struct rounds_server *s = &r->server;
    const struct drps_feed_union *u = &s->now->u;
    memset(s->sum, 0, training ? u->n * r->dim * sizeof(*s->sum) : 0);
    memset(s->count, 0, training && r->touches ? u->n * sizeof(*s->count) : 0);
    for (uint32_t w = 0; w < r->ranks; w++) {
        if (!rounds_linked(r, w, r->rank)) continue;
        struct drps_net_message *m;
        const size_t n = training ? rounds_plain(r, s->now, w) : 0;
        const uint64_t bytes = drps_rounds_gradient_bytes(r, w, n);
        int rc = drps_rounds_take(r, DRPS_NET_SERVER, w, s->round, &m, err);
        if (rc < 0) return rc;
        if (!is_due(r, m, training, bytes))
            return drps_rounds_unexpected(m, DRPS_MESSAGE_GRADIENT, bytes, err);
        struct drps_message_here here;
        if (training) rc = read_gradient(r, m, n, &here, err);
        if (training && rc == 0 && rounds_lends(s->now))
            drps_rounds_add_plain(r, w, &here);
        else if (training && rc == 0)
            add_gradient(r, w, &here);
        if (training && rc == 0 && w == r->rank) add_common(r, &here);
        take_wishes(r, w, m->tag & ROUNDS_END);
        if (w != r->rank) s->traffic.received += m->bytes;
        drps_net_message_free(m);
        if (rc == 0) rc = drps_rounds_regain(r, w, err);
        if (rc < 0) return rc;
    }
    return 0;
}

/* ---- Rounds ---- */

/* The lists of a round of the epoch; while rows may be fresh, which these are, and where pulls are
 * filtered, who has copies. */
static int list_round(struct drps_rounds *r, struct rounds_open *o, uint64_t ahead,
                      struct drps_err *err)
{
    const struct rounds_server *s = &r->server;
    int rc = drps_feed_next_union(r->o.feed, &o->u, err);
    o->lent.is_of_round = 0;
    if (rc == 0 && r->o.lending && s->at + ahead < r->train)
        rc = drps_lending_next(r->o.lending, &o->u, &o->lent, err);
    o->has_ids = rc == 0 && s->fresh && s->round + ahead < r->train;
    o->is_filtered = rc == 0 && r->o.pull && s->at + ahead < r->train;
    if (o->has_ids) rc = drps_fresh_list(s->fresh, s->at + ahead, &o->u, o->ids, err);
    if (rc == 0 && o->is_filtered) rc = drps_pull_next_round(r->o.pull, &o->u, &o->published, err);
    return rc;
}

/* Whether the next round is of this epoch, and certain: nobody wants to end before it. */
static int may_open_ahead(const struct drps_rounds *r)
{
    return r->o.ahead && !r->server.end && r->server.at + 1 < r->rounds;
}

static void begin_round(struct rounds_server *s)
{
    struct rounds_open *now = s->next;
    s->next = s->now;
    s->now = now;
    s->next->is_open = s->next->is_ahead = 0;
}

/* The lists of the next round, and its rows unless the store opens them later. */
static int prepare_next(struct drps_rounds *r, struct drps_err *err)
{
    int rc = list_round(r, r->server.next, 1, err);
    r->server.next->is_listed = rc == 0;
    if (rc == 0) rc = open_ahead(r, err);
    return rc == -EAGAIN ? 0 : rc;
}

static int open_now(struct drps_rounds *r, struct drps_err *err)
{
    struct rounds_open *now = r->server.now;
    int rc = 0;
    if (!now->is_listed) rc = list_round(r, now, 0, err);
    now->is_listed = 0;
    return rc == 0 && !now->is_open ? open_round(r, now, err) : rc;
}

static int serve_round(struct drps_rounds *r, struct drps_err *err)
{
    struct rounds_server *s = &r->server;
    struct drps_server *server = r->o.server;
    const int training = s->at < r->train;

    begin_round(s);
    const uint64_t begun = drps_clock_ns();
    int rc = open_now(r, err);
    s->store_ns += drps_clock_ns() - begun;
    if (rc == 0) rc = send_all(r, err);
    if (rc == 0 && may_open_ahead(r)) rc = prepare_next(r, err);
    if (rc == 0) rc = add_gradients(r, training, err);
    if (rc < 0) return rc;
    if (training && rounds_lends(s->now))
        drps_rounds_step_plain(r);
    else if (training)
        drps_server_step(server, &s->now->rows, 0, s->now->u.n, s->sum,
                         r->touches ? s->count : NULL);
    if (training && server->topic) rc = drps_rounds_tell_stepped(r, err);
    if (rc < 0) return rc;
    if (s->now->is_filtered) drps_rounds_publish(r);
    if (s->now->has_ids) drps_fresh_step(s->fresh, s->now->ids, s->now->u.n);
    const uint64_t stepped = drps_clock_ns();
    rc = drps_server_close_one(server, s->now->step, training, err);
    const uint64_t closed = drps_clock_ns();
    s->store_ns += closed - stepped;
    if (training) s->trained_ns = closed;
    return rc;
}

void *drps_rounds_serve(void *rounds)
{
    struct drps_rounds *r = rounds;
    struct rounds_server *s = &r->server;
    int rc = 0;
    for (; s->at < r->rounds && rc == 0; s->at++, s->round++) {
        if (ends_here(s)) {
            rc = send_end(r, &s->err);
            break;
        }
        rc = serve_round(r, &s->err);
    }
    s->rc = rc;
    if (rc < 0 && rc != DRPS_E_CLOSED) drps_rounds_tell_failed(r, DRPS_NET_WORKER);
    return NULL;
}
