/* Vectors and sparse rows of all ranks: sent, received and applied. */
#include "engine/cluster/sv/exchange_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/drps_clock.h"
#include "engine/cluster/drps_messages.h"

/* The gradient of samples with these slopes. */
static void make_gradient(const struct drps_exchanging *x, const struct drps_batch *b,
                          const float *slopes, struct gradient_room *room)
{
    const struct drps_model *model = &x->job.server->model;
    memset(room->grads, 0, b->rows * x->dim * sizeof(*room->grads));
    drps_model_backward(model, b, slopes, room->grads);
    if (!x->job.worker->has_touches) return;
    memset(room->touches, 0, b->rows * sizeof(*room->touches));
    drps_batch_touches(b, 0, b->samples, model->has_bias, room->touches);
}

static enum drps_message type_of(const struct drps_exchanging *x)
{
    return sends_vectors(x) ? DRPS_MESSAGE_VECTORS : DRPS_MESSAGE_SPARSE;
}

int exchange_send(struct drps_exchanging *x, const struct turn *turn, struct drps_err *err)
{
    const struct sv_message *m = &x->parts[x->rank].parts;
    const struct drps_piece piece = {x->sent->data, sv_message_bytes(m)};
    const uint64_t start = drps_clock_ns();
    int rc = 0;
    for (uint32_t i = 1; i < x->ranks && rc == 0; i++) {
        const uint32_t to = (x->rank + i) % x->ranks;
        if (!receivers_has(&x->receivers, turn->round, x->rank, to)) continue;
        const struct drps_net_send send = {.to = to,
                                           .part = x->apart ? DRPS_NET_SERVER : DRPS_NET_WORKER,
                                           .type = (uint8_t)type_of(x),
                                           .tag = turn->share,
                                           .round = turn->step,
                                           .pieces = &piece,
                                           .n = 1};
        drps_traffic_add(&x->traffic, DRPS_TRAFFIC_EXCHANGED, to, m->n, piece.bytes);
        x->parts[to].sent++;
        rc = drps_shared_buffer_send(x->sent, x->job.net, &send, x->job.wait_ms, err);
    }
    x->wait_ns += drps_clock_ns() - start;
    return rc;
}

int exchange_read(struct drps_exchanging *x, const struct drps_net_message *m, struct drps_err *err)
{
    struct part *p = &x->parts[m->from];
    p->parts = (struct sv_message){
        .dim = x->dim, .is_sparse = !sends_vectors(x), .has_touches = x->job.worker->has_touches};
    x->received += m->bytes;
    int rc = sv_message_read(&p->parts, m, err);
    if (rc == 0)
        rc = sv_message_ids(&p->parts, x->replica.rows, (size_t)x->job.plan->info.max_batch_rows,
                            p->ids, &p->n, err);
    if (rc < 0)
        (void)drps_err_context(err, "round %" PRIu64 " of rank %" PRIu32, m->round, m->from);
    return rc;
}

/* Takes what rank `from` sends for its next step; if it has not come within wait_ms, *taken is 0.
 */
static int receive_part(struct drps_exchanging *x, uint32_t from, uint32_t wait_ms,
                        struct drps_err *err)
{
    struct part *p = &x->parts[from];
    struct drps_err why = DRPS_ERR_INIT;
    const uint64_t start = drps_clock_ns();
    int rc = drps_net_receive(x->job.net, DRPS_NET_WORKER, from, wait_ms, &p->message, &why);
    x->wait_ns += drps_clock_ns() - start;
    if (rc == -ETIMEDOUT && !wait_ms) return 0;
    if (rc < 0) return drps_err_set(err, rc, "%s", why.text);
    if (p->message->type != type_of(x) || p->message->round != p->next)
        return drps_err_set(err, DRPS_E_PROTO,
                            "rank %" PRIu32 " sent message %u of round %" PRIu64
                            ", where message %u of round %" PRIu64 " was due",
                            from, p->message->type, p->message->round, type_of(x), p->next);
    p->taken = 1;
    p->next++;
    return exchange_read(x, p->message, err);
}

/* The batch of rank r that its vectors are of. */
static int batch_of(struct drps_exchanging *x, uint32_t r, void *plain, struct drps_batch *out,
                    struct drps_err *err)
{
    const struct part *p = &x->parts[r];
    if (r == x->rank && !x->chosen.options.count) {
        *out = x->batch.body;
        return 0;
    }
    int rc = drps_feed_decode_body(x->job.feed, &p->parts.body, plain, out, err);
    if (rc == 0 && (out->samples != p->parts.n || out->rows != p->n))
        rc = drps_err_set(err, DRPS_E_PROTO,
                          "%zu samples of %zu rows, with vectors of %" PRIu32 " and %zu",
                          out->samples, out->rows, p->parts.n, p->n);
    if (rc < 0) (void)drps_err_context(err, "the batch of rank %" PRIu32, r);
    return rc;
}

/* What is received stands for what was sent to others. */
static void scale_gradient(const struct drps_exchanging *x, size_t n, struct gradient_room *room)
{
    const float by = receivers_scale(&x->receivers);
    for (size_t i = 0; i < n * x->dim; i++)
        room->grads[i] *= by;
    for (size_t i = 0; i < n && x->sums.has_touches; i++)
        room->touches[i] = (uint32_t)((float)room->touches[i] * by + .5F);
}

int exchange_gradient(struct drps_exchanging *x, uint32_t r, struct gradient_room *room,
                      struct drps_err *err)
{
    const struct part *p = &x->parts[r];
    struct drps_batch b;
    int rc = batch_of(x, r, room->plain, &b, err);
    if (rc < 0) return rc;
    make_gradient(x, &b, p->parts.values, room);
    const struct drps_exchange_applied applied = {
        .rank = r, .batch = &b, .ids = p->ids, .slopes = p->parts.values};
    if (x->job.applied) rc = x->job.applied(x->job.applied_ctx, &applied, err);
    if (r != x->rank && x->receivers.to < x->ranks - 1) scale_gradient(x, p->n, room);
    return rc;
}

static int add_part(struct drps_exchanging *x, uint32_t r, struct drps_err *err)
{
    const struct part *p = &x->parts[r];
    if (sends_vectors(x)) {
        const uint64_t start = drps_clock_ns();
        int rc = exchange_gradient(x, r, &x->room, err);
        x->others_ns += drps_clock_ns() - start;
        if (rc == 0) sums_add(&x->sums, p->ids, p->n, x->room.grads, x->room.touches);
        return rc;
    }
    if (p->parts.n != p->n)
        return drps_err_set(err, DRPS_E_PROTO,
                            "rank %" PRIu32 ": a gradient of %" PRIu32 " rows, and a list of %zu",
                            r, p->parts.n, p->n);
    sums_add(&x->sums, p->ids, p->n, p->parts.values, p->parts.touches);
    return 0;
}

static void forget(struct drps_exchanging *x)
{
    for (uint32_t r = 0; r < x->ranks; r++) {
        drps_net_message_free(x->parts[r].message);
        x->parts[r].message = NULL;
        x->parts[r].taken = 0;
    }
}

/* Returns whether rank r sends something for a step up to this one that has not been taken; its
 * next step is the first of these. */
static int is_due(struct drps_exchanging *x, uint32_t r, uint64_t step)
{
    const uint64_t begin = x->round - step; /* of the epoch, in rounds of the run */
    uint64_t *next = &x->parts[r].next;
    while (*next <= step && !receivers_has(&x->receivers, begin + *next, r, x->rank))
        (*next)++;
    return *next <= step;
}

/* Steps with this rank's gradient (own) and one of each other rank, as far as they have come; those
 * of steps up to `step` - `late` are waited for. */
static int apply(struct drps_exchanging *x, uint64_t step, uint64_t late, int own,
                 struct drps_err *err)
{
    int rc = 0;
    sums_begin(&x->sums);
    x->parts[x->rank].taken = own;
    for (uint32_t r = 0; r < x->ranks && rc == 0; r++) {
        struct part *p = &x->parts[r];
        if (r != x->rank && is_due(x, r, step))
            rc = receive_part(x, r, p->next + late <= step ? x->job.wait_ms : 0, err);
        if (rc == 0 && p->taken) sums_unite(&x->sums, p->ids, p->n);
    }
    sums_zero(&x->sums);
    for (uint32_t r = 0; r < x->ranks && rc == 0; r++)
        if (x->parts[r].taken) rc = add_part(x, r, err);
    forget(x);
    if (rc == 0)
        replica_step(&x->replica, x->sums.ids, x->sums.n, x->sums.grads,
                     x->sums.has_touches ? x->sums.touches : NULL);
    return rc;
}

/* Is some rank's step up to `step` - `late` still to be applied? */
static int is_behind(struct drps_exchanging *x, uint64_t step, uint64_t late)
{
    int behind = 0;
    for (uint32_t r = 0; r < x->ranks; r++)
        behind |= r != x->rank && is_due(x, r, step) && x->parts[r].next + late <= step;
    return behind;
}

void exchange_begin(struct drps_exchanging *x, uint64_t step)
{
    for (uint32_t r = 0; r < x->ranks && !x->begun; r++)
        x->parts[r].next = step;
    x->begun = 1;
}

int exchange_with_others(struct drps_exchanging *x, uint64_t step, uint64_t late,
                         struct drps_err *err)
{
    const struct turn turn = {x->rank, step, x->round};
    int rc = exchange_send(x, &turn, err);
    if (rc == 0) rc = apply(x, step, late, 1, err);
    while (rc == 0 && is_behind(x, step, late))
        rc = apply(x, step, late, 0, err);
    return rc;
}
