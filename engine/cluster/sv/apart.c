/*
 * Ranks without rounds. The worker's turn: a batch, of this rank's share or of another's, whose
 * record comes as a message; its vectors are computed with the replica as it is then, applied, and
 * sent. Meanwhile another thread applies what others send, as it comes. A lock guards the rows of
 * the replica, and is held only while some of them are read or stepped: gradients are made without
 * it, and nobody sends under it. So that thread waits for no other rank, and whoever sends to this
 * one waits at most until it has taken what is in its queue.
 *
 * Each gradient is stepped by itself. What others have sent counts for whatever is computed after
 * it has come. A rank's vectors come in the order in which it has sent them, so that the message
 * that ends its epoch comes after them, and says how many they were.
 */
#include "engine/cluster/sv/exchange_internal.h"

#include <inttypes.h>

#include "base/drps_clock.h"
#include "engine/cluster/drps_messages.h"

static void lock(struct drps_exchanging *x)
{
    (void)pthread_mutex_lock(&x->lock); /* cannot fail: a plain lock that its holder never takes */
}

static void unlock(struct drps_exchanging *x)
{
    (void)pthread_mutex_unlock(&x->lock); /* cannot fail: this thread holds it */
}

/* Steps the replica with the gradient that rank r's part says. */
static int apply(struct drps_exchanging *x, uint32_t r, struct gradient_room *room,
                 struct drps_err *err)
{
    const struct part *p = &x->parts[r];
    int rc = exchange_gradient(x, r, room, err);
    if (rc < 0) return rc;
    lock(x);
    replica_step(&x->replica, p->ids, p->n, room->grads,
                 x->job.worker->has_touches ? room->touches : NULL);
    unlock(x);
    return 0;
}

/* ---- The worker's turn ---- */

/* The batch of a record, to x->batch and this rank's part. */
static int open_turn(struct drps_exchanging *x, const struct drps_net_message *m,
                     struct own_record *record, struct drps_err *err)
{
    struct part *own = &x->parts[x->rank];
    struct sv_message parts = {.dim = x->dim};
    int rc = sv_message_read(&parts, m, err);
    if (rc == 0)
        rc = sv_message_ids(&parts, x->replica.rows, (size_t)x->job.plan->info.max_batch_rows,
                            own->ids, &own->n, err);
    if (rc == 0)
        rc = drps_feed_decode_body(x->job.feed, &parts.body, x->room.plain, &x->batch.body, err);
    if (rc == 0 && x->batch.body.rows != own->n)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%zu rows are listed, and the batch has %zu", own->n,
                          x->batch.body.rows);
    if (rc < 0) (void)drps_err_context(err, "step %" PRIu64 " of rank %" PRIu32, m->round, m->from);
    *record = (struct own_record){parts.list, parts.body};
    return rc;
}

/* Computes the batch, and applies it. */
static int compute_turn(struct drps_exchanging *x, const struct own_record *record,
                        const struct turn *turn, double *loss_out, struct drps_err *err)
{
    const struct part *own = &x->parts[x->rank];
    lock(x);
    replica_gather(&x->replica, own->ids, own->n, x->job.worker->params);
    unlock(x);
    int rc = exchange_compute_vectors(x, record, turn, loss_out, err);
    return rc == 0 ? apply(x, x->rank, &x->room, err) : rc;
}

int drps_exchange_turn(struct drps_exchanging *x, const struct drps_net_message *record,
                       uint32_t share, struct drps_round *out, struct drps_err *err)
{
    const struct turn turn = {share, record->round, x->round + record->round};
    struct drps_worker *w = x->job.worker;
    struct own_record pieces;
    const uint64_t start = drps_clock_ns(), counted = w->gather_ns + w->compute_ns;
    int rc = open_turn(x, record, &pieces, err);
    out->batch = &x->batch.body;
    if (rc < 0) return rc;
    const uint64_t ready = drps_clock_ns();
    out->plan_ns += ready - start;
    rc = compute_turn(x, &pieces, &turn, &out->loss, err);
    out->compute_ns = drps_clock_ns() - ready;
    w->compute_ns += out->compute_ns - (w->gather_ns + w->compute_ns - counted);
    if (rc == 0) rc = exchange_send(x, &turn, err);
    out->wait_ns += x->wait_ns;
    x->wait_ns = 0;
    return rc;
}

int drps_exchange_last(struct drps_exchanging *x, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t r = 0; r < x->ranks && rc == 0; r++) {
        const struct drps_net_send send = {
            .to = r, .part = DRPS_NET_SERVER, .type = DRPS_MESSAGE_END, .round = x->parts[r].sent};
        rc = drps_net_send(x->job.net, &send, x->job.wait_ms, err);
    }
    return rc;
}

/* ---- What comes ---- */

static int undue(const struct drps_net_message *m, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_PROTO,
                        "rank %" PRIu32 " sent message %u of %zu bytes, step %" PRIu64
                        " of share %" PRIu32 ", which was not due",
                        m->from, m->type, m->bytes, m->round, m->tag);
}

/* Sends a batch of this rank's share to whoever computes it: a message as of vectors, without any.
 */
static int lend(struct drps_exchanging *x, const struct drps_net_message *m, struct drps_err *err)
{
    struct own_record record;
    int rc = exchange_read_own(x, m->round, &record, err);
    if (rc < 0) return rc;
    struct sv_message parts = {.dim = x->dim, .list = record.list, .body = record.body};
    rc = drps_shared_buffer_renew(&x->lending, sv_message_bytes(&parts), err);
    if (rc < 0) return rc;
    sv_message_begin(&parts, x->lending->data);
    const struct drps_piece piece = {x->lending->data, sv_message_bytes(&parts)};
    const struct drps_net_send send = {.to = m->from,
                                       .part = DRPS_NET_WORKER,
                                       .type = DRPS_MESSAGE_RECORD,
                                       .tag = x->rank,
                                       .round = m->round,
                                       .pieces = &piece,
                                       .n = 1};
    if (m->from != x->rank)
        drps_traffic_add(&x->lent, DRPS_TRAFFIC_BATCHES, m->from, 0, piece.bytes);
    return drps_shared_buffer_send(x->lending, x->job.net, &send, x->job.wait_ms, err);
}

/* Another rank's vectors of a batch. */
static int take_vectors(struct drps_exchanging *x, const struct drps_net_message *m,
                        struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    x->parts[m->from].next++;
    int rc = exchange_read(x, m, err);
    if (rc == 0) rc = apply(x, m->from, &x->taking, err);
    x->others_ns += drps_clock_ns() - start;
    return rc;
}

/* All vectors of a rank have come. Returns 1 if those of all ranks have. */
static int take_end(struct drps_exchanging *x, const struct drps_net_message *m,
                    struct drps_err *err)
{
    int all = 1;
    if (m->round != x->parts[m->from].next)
        return drps_err_set(err, DRPS_E_PROTO,
                            "rank %" PRIu32 " has sent vectors of %" PRIu64 " batches, and %" PRIu64
                            " have come",
                            m->from, m->round, x->parts[m->from].next);
    x->parts[m->from].last = 1;
    for (uint32_t r = 0; r < x->ranks; r++)
        all &= x->parts[r].last;
    return all;
}

int drps_exchange_take(struct drps_exchanging *x, const struct drps_net_message *m,
                       struct drps_err *err)
{
    const int of_batch = m->round < x->job.plan->info.batches && m->tag < x->ranks;
    if (x->parts[m->from].last) return undue(m, err);
    if (m->type == DRPS_MESSAGE_END) return take_end(x, m, err);
    if (m->type == DRPS_MESSAGE_VECTORS && of_batch && m->from != x->rank)
        return take_vectors(x, m, err);
    if (m->type == DRPS_MESSAGE_PULL && of_batch && m->tag == x->rank) return lend(x, m, err);
    return undue(m, err);
}

/* ---- The end of an epoch ---- */

/* What the rank's server would open in each step is not needed. */
static int skip_unions(struct drps_exchanging *x, struct drps_err *err)
{
    int rc = 0;
    for (uint64_t t = 0; t < x->job.plan->info.batches && rc == 0; t++)
        rc = drps_feed_next_union(x->job.feed, &x->opened, err);
    return rc;
}

int drps_exchange_end(struct drps_exchanging *x, struct drps_err *err)
{
    int rc = skip_unions(x, err);
    for (uint32_t r = 0; r < x->ranks; r++)
        x->parts[r].last = 0;
    if (rc == 0) rc = exchange_meet(x, 1, err);
    if (rc < 0) return rc;
    x->job.worker->compute_ns += x->others_ns;
    x->others_ns = x->wait_ns = 0;
    x->round += x->job.plan->info.batches;
    return exchange_end_epoch(x, err);
}
