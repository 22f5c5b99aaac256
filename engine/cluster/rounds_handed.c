/*
 * Messages of rows that are handed on: between the server of a row and the worker that has it for
 * some rounds, and from worker to worker. A worker sends what others need before its gradient goes
 * to its own server: so it is there before anything else of that rank in the next round.
 */
#include <string.h>

#include "engine/cluster/rounds_internal.h"

/* ---- Messages ---- */

static int send_rows(struct drps_rounds *r, const struct drps_net_send *send,
                     struct drps_shared_buffer *buffer, struct drps_traffic *sent,
                     struct drps_err *err)
{
    const size_t bytes = send->pieces->bytes;
    rounds_count_sent(r, sent, DRPS_TRAFFIC_HANDED, send->to, bytes / r->o.server->row_bytes,
                      bytes);
    return drps_shared_buffer_send(buffer, r->o.net, send, r->o.wait_ms, err);
}

/* The rows that another rank is to send to a part of this one, in the round. */
static int take_rows(struct drps_rounds *r, enum drps_net_part part, uint32_t from, uint64_t round,
                     uint32_t rows, struct drps_net_message **out, struct drps_err *err)
{
    const uint64_t bytes = rows * (uint64_t)r->o.server->row_bytes;
    int rc = drps_rounds_take(r, part, from, round, out, err);
    if (rc < 0) return rc;
    if ((*out)->type == DRPS_MESSAGE_LENT && (*out)->bytes == bytes) return 0;
    rc = drps_rounds_unexpected(*out, DRPS_MESSAGE_LENT, bytes, err);
    *out = NULL;
    return rc;
}

void drps_rounds_forecast_handed(const struct drps_plan_info *info, int touches, uint64_t row_bytes,
                                 uint64_t epochs, struct drps_rounds_bytes *out)
{
    const struct drps_plan_handed *h = &info->ranks.handed;
    const uint64_t there = rounds_row_bytes(info);
    const uint64_t back = there + (touches ? sizeof(uint32_t) : 0);
    out->sent -= epochs * (h->away * there + h->used * back);
    out->sent += epochs * (h->given + h->returned + h->handed) * row_bytes;
    out->received -= epochs * (h->used * there + h->away * back);
    out->received += epochs * (h->taken + h->regained + h->arrived) * row_bytes;
}

/* ---- The worker: rows that come ---- */

/* What a worker has handed on after the round before. Of its rank nothing else can be next that
 * this worker waits for. */
static int take_handed(struct drps_rounds *r, uint32_t from, struct drps_net_message **out,
                       struct drps_err *err)
{
    struct drps_net_message **early = &r->worker.early[from];
    int rc =
        *early ? 0 : drps_net_receive(r->o.net, DRPS_NET_WORKER, from, r->o.wait_ms, early, err);
    *out = *early;
    *early = NULL;
    return rc;
}

static int arrive_from(struct drps_rounds *r, uint32_t from, uint32_t rows, struct drps_err *err)
{
    const uint64_t bytes = rows * (uint64_t)r->o.server->row_bytes;
    struct drps_net_message *m;
    int rc = take_handed(r, from, &m, err);
    if (rc < 0) return rc;
    if (m->type != DRPS_MESSAGE_HANDED || m->bytes != bytes || m->round + 1 != r->worker.round)
        return drps_rounds_unexpected(m, DRPS_MESSAGE_HANDED, bytes, err);
    drps_handing_arrive(r->o.handing, from, m->data);
    r->worker.traffic.received += m->bytes;
    drps_net_message_free(m);
    return 0;
}

int drps_rounds_arrive(struct drps_rounds *r, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t w = 0; w < r->ranks && rc == 0; w++) {
        const uint32_t rows = drps_handing_counts(r->o.handing, w)->arrived;
        if (rows) rc = arrive_from(r, w, rows, err);
    }
    return rc;
}

int drps_rounds_take_lent(struct drps_rounds *r, uint32_t server, struct drps_err *err)
{
    const uint32_t rows = r->o.handing ? drps_handing_counts(r->o.handing, server)->taken : 0;
    struct drps_net_message *m;
    if (!rows) return 0;
    int rc = take_rows(r, DRPS_NET_WORKER, server, r->worker.round, rows, &m, err);
    if (rc < 0) return rc;
    drps_handing_take(r->o.handing, server, m->data);
    r->worker.traffic.received += m->bytes;
    drps_net_message_free(m);
    return 0;
}

/* ---- The worker: rows that go ---- */

/* Room for the rows that leave in this round. */
static int begin_out(struct drps_rounds *r, struct drps_err *err)
{
    size_t rows = 0;
    for (uint32_t i = 0; i < r->ranks; i++) {
        const struct drps_handing_counts *c = drps_handing_counts(r->o.handing, i);
        rows += (size_t)c->returned + c->handed;
    }
    r->worker.handed_bytes = 0;
    return drps_shared_buffer_renew(&r->worker.handed, rows * r->o.server->row_bytes, err);
}

static int send_out(struct drps_rounds *r, enum drps_net_part part, uint32_t to, size_t bytes,
                    struct drps_err *err)
{
    struct rounds_worker *w = &r->worker;
    const struct drps_piece piece = {w->handed->data + w->handed_bytes, bytes};
    const struct drps_net_send send = {.to = to,
                                       .part = (uint8_t)part,
                                       .type = part == DRPS_NET_SERVER ? DRPS_MESSAGE_LENT
                                                                       : DRPS_MESSAGE_HANDED,
                                       .round = w->round,
                                       .pieces = &piece,
                                       .n = 1};
    w->handed_bytes += bytes;
    return send_rows(r, &send, w->handed, &w->sent, err);
}

int drps_rounds_hand_on(struct drps_rounds *r, struct drps_err *err)
{
    struct rounds_worker *w = &r->worker;
    int rc = begin_out(r, err);
    for (uint32_t i = 0; i + 1 < r->ranks && rc == 0; i++) { /* its neighbour first */
        const uint32_t to = (r->rank + 1 + i) % r->ranks;
        if (!drps_handing_counts(r->o.handing, to)->handed) continue;
        const size_t bytes =
            drps_handing_hand_on(r->o.handing, to, w->handed->data + w->handed_bytes);
        rc = send_out(r, DRPS_NET_WORKER, to, bytes, err);
    }
    return rc;
}

int drps_rounds_return(struct drps_rounds *r, uint32_t server, struct drps_err *err)
{
    struct rounds_worker *w = &r->worker;
    if (!r->o.handing || !drps_handing_counts(r->o.handing, server)->returned) return 0;
    const size_t bytes =
        drps_handing_return(r->o.handing, server, w->handed->data + w->handed_bytes);
    return send_out(r, DRPS_NET_SERVER, server, bytes, err);
}

/* ---- The server ---- */

static void *row_of(const struct rounds_open *o, size_t use)
{
    return drps_row_at(&o->rows, o->u.positions[use]);
}

/* Room for the rows that leave in this round. */
int drps_rounds_begin_lending(struct drps_rounds *r, struct drps_err *err)
{
    struct rounds_server *s = &r->server;
    size_t rows = 0;
    for (uint32_t w = 0; w < r->ranks; w++)
        rows += s->now->lent.given[w];
    s->lent_bytes = 0;
    return drps_shared_buffer_renew(&s->lent, rows * r->o.server->row_bytes, err);
}

int drps_rounds_lend(struct drps_rounds *r, uint32_t to, struct drps_err *err)
{
    struct rounds_server *s = &r->server;
    const struct rounds_open *o = s->now;
    const size_t row = r->o.server->row_bytes;
    if (!rounds_lends(o) || !o->lent.given[to]) return 0;
    unsigned char *data = s->lent->data + s->lent_bytes;
    const struct drps_piece piece = {data, o->lent.given[to] * row};
    for (size_t i = o->u.part[to]; i < o->u.part[to + 1]; i++) {
        if (!(o->lent.use[i] & DRPS_LENT_GIVEN)) continue;
        memcpy(data, row_of(o, i), row);
        data += row;
    }
    s->lent_bytes += piece.bytes;
    const struct drps_net_send send = {.to = to,
                                       .part = DRPS_NET_WORKER,
                                       .type = DRPS_MESSAGE_LENT,
                                       .round = s->round,
                                       .pieces = &piece,
                                       .n = 1};
    return send_rows(r, &send, s->lent, &s->sent, err);
}

int drps_rounds_regain(struct drps_rounds *r, uint32_t from, struct drps_err *err)
{
    struct rounds_server *s = &r->server;
    const struct rounds_open *o = s->now;
    const size_t row = r->o.server->row_bytes;
    struct drps_net_message *m;
    if (!rounds_lends(o) || !o->lent.returned[from]) return 0;
    int rc = take_rows(r, DRPS_NET_SERVER, from, s->round, o->lent.returned[from], &m, err);
    if (rc < 0) return rc;
    const unsigned char *data = m->data;
    for (size_t i = o->u.part[from]; i < o->u.part[from + 1]; i++) {
        if (!(o->lent.use[i] & DRPS_LENT_RETURNED)) continue;
        memcpy(row_of(o, i), data, row);
        data += row;
    }
    s->traffic.received += m->bytes;
    drps_net_message_free(m);
    return 0;
}

void drps_rounds_add_plain(struct drps_rounds *r, uint32_t from,
                           const struct drps_message_here *here)
{
    struct rounds_server *s = &r->server;
    const struct rounds_open *o = s->now;
    const float *gradient = here->values;
    const uint32_t *touches = here->touches;
    for (size_t i = o->u.part[from]; i < o->u.part[from + 1]; i++) {
        if (o->lent.use[i]) continue;
        float *restrict sum = s->sum + o->u.positions[i] * (size_t)r->dim;
        for (size_t k = 0; k < r->dim; k++)
            sum[k] += gradient[k];
        gradient += r->dim;
        if (r->touches) s->count[o->u.positions[i]] += *touches++;
    }
}

void drps_rounds_step_plain(struct drps_rounds *r)
{
    const struct rounds_server *s = &r->server;
    const struct rounds_open *o = s->now;
    const uint32_t *count = r->touches ? s->count : NULL;
    for (size_t i = 0; i < o->u.n;) {
        size_t end = i;
        while (end < o->u.n && o->lent.away[end] == o->lent.away[i])
            end++;
        if (!o->lent.away[i]) drps_server_step(r->o.server, &o->rows, i, end, s->sum, count);
        i = end;
    }
}
