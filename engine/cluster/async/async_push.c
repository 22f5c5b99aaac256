/*
 * How a worker sends gradients. Those of its own share's batches may be filtered
 * (engine/cluster/filters/): what is held back waits for the row's next use in a batch of this
 * share. A batch of another share goes whole, as its rows' slots are with that share's worker. And
 * where another worker executes a batch of this share, its rows that give up their slots there have
 * to be sent: each other server waits for that before it closes the step.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/cluster/async/parts.h"

struct async_push {
    const struct async_job *job;
    struct drps_shared_buffer *out; /* own: filtered gradients on their way; NULL: none is */
    size_t out_bytes;               /* of it that are in use */
    unsigned char *held;            /* own: what is held back of one server's rows */
    struct drps_traffic sent;
};

/* The rows of a batch that one server has. */
struct part {
    uint32_t server;
    size_t first, n;
};

/* ---- Gradients ---- */

static int send_to(const struct async_job *job, struct drps_shared_buffer *buffer,
                   const struct drps_net_send *send, struct drps_err *err)
{
    return buffer ? drps_shared_buffer_send(buffer, job->o.net, send, job->o.wait_ms, err)
                  : drps_net_send(job->o.net, send, job->o.wait_ms, err);
}

static struct drps_net_send message(uint32_t server, uint8_t type, uint32_t share, uint64_t step)
{
    return (struct drps_net_send){
        .to = server, .part = DRPS_NET_SERVER, .type = type, .tag = share, .round = step};
}

/* To the rank's own server, which reads it where it is. */
static int push_here(const struct async_job *job, const struct drps_message_here *here,
                     uint32_t share, uint64_t step, struct drps_err *err)
{
    const struct drps_piece piece = {here, sizeof(*here)};
    struct drps_net_send send = message(job->rank, DRPS_MESSAGE_GRADIENT, share, step);
    send.pieces = &piece;
    send.n = 1;
    return send_to(job, NULL, &send, err);
}

static int push_whole(struct async_push *p, const struct part *part,
                      const struct drps_message_here *here, uint32_t share, uint64_t step,
                      struct drps_err *err)
{
    const struct async_job *job = p->job;
    const struct drps_piece there[2] = {
        {here->values, part->n * job->dim * sizeof(float)},
        {here->touches, job->touches ? part->n * sizeof(uint32_t) : 0},
    };
    const uint64_t bytes = drps_async_gradient_bytes(job, part->server, part->n);
    struct drps_net_send send = message(part->server, DRPS_MESSAGE_GRADIENT, share, step);
    send.pieces = there;
    send.n = job->touches ? 2 : 1;
    drps_traffic_add(&p->sent, DRPS_TRAFFIC_PUSHED, part->server, part->n, bytes);
    if (job->filters) drps_push_count_whole(job->o.push, bytes);
    return send_to(job, job->o.worker->sent, &send, err);
}

static int push_filtered(struct async_push *p, const struct part *part, uint64_t step,
                         struct drps_err *err)
{
    const struct async_job *job = p->job;
    const struct drps_worker *worker = job->o.worker;
    unsigned char *data = p->out->data + p->out_bytes;
    const struct drps_piece piece = {
        data, drps_push_write(job->o.push, part->server, part->first, part->n, worker->grads[0],
                              job->touches ? worker->touches[0] : NULL, data)};
    struct drps_net_send send = message(part->server, DRPS_MESSAGE_FILTERED, job->rank, step);
    send.pieces = &piece;
    send.n = 1;
    p->out_bytes += piece.bytes;
    drps_traffic_add(&p->sent, DRPS_TRAFFIC_PUSHED, part->server, part->n, piece.bytes);
    return send_to(job, p->out, &send, err);
}

/* Add to the gradient what was held back of its rows before. */
static int begin_filtered(struct async_push *p, const struct drps_feed_share *batch,
                          size_t own_first, struct drps_err *err)
{
    const struct async_job *job = p->job;
    p->out_bytes = 0;
    int rc = drps_shared_buffer_renew(&p->out, p->out->bytes, err);
    if (rc < 0) return rc;
    return drps_push_begin(job->o.push, job->o.worker->grads[0], batch->body.rows, own_first,
                           batch->shares[job->rank], err);
}

/* Returns how many rows of the batch lie before those of this rank. */
static size_t rows_before_own(const struct async_job *job, const struct drps_feed_share *batch)
{
    size_t first = 0;
    for (uint32_t s = 0; s < job->rank; s++)
        first += batch->shares[s];
    return first;
}

int drps_async_push(struct async_push *p, const struct drps_feed_share *batch, uint32_t share,
                    uint64_t step, struct drps_err *err)
{
    const struct async_job *job = p->job;
    const struct drps_worker *worker = job->o.worker;
    const int filters = job->filters && share == job->rank;
    struct part part = {0, 0, 0};
    int rc = filters ? begin_filtered(p, batch, rows_before_own(job, batch), err) : 0;
    for (; part.server < job->shape->servers && rc == 0; part.server++) {
        part.n = batch->shares[part.server];
        const struct drps_message_here here = {
            .values = worker->grads[0] + part.first * job->dim,
            .touches = job->touches ? worker->touches[0] + part.first : NULL};
        if (part.server == job->rank)
            rc = push_here(job, &here, share, step, err);
        else
            rc = filters ? push_filtered(p, &part, step, err)
                         : push_whole(p, &part, &here, share, step, err);
        part.first += part.n;
    }
    return rc;
}

/* ---- Batches that others execute ---- */

static int push_held(struct async_push *p, const struct part *part, uint64_t step,
                     struct drps_err *err)
{
    const struct async_job *job = p->job;
    const struct drps_piece piece = {
        p->held, drps_push_write_held(job->o.push, part->first, part->n, p->held)};
    struct drps_net_send send = message(part->server, DRPS_MESSAGE_HELD, job->rank, step);
    send.pieces = &piece;
    send.n = 1;
    drps_traffic_add(&p->sent, DRPS_TRAFFIC_PUSHED, part->server, 0, piece.bytes);
    return send_to(job, NULL, &send, err);
}

int drps_async_push_held(struct async_push *p, const struct drps_feed_share *batch, uint64_t step,
                         struct drps_err *err)
{
    const struct async_job *job = p->job;
    struct part part = {0, 0, 0};
    int rc = drps_push_skip(job->o.push, batch->body.rows, rows_before_own(job, batch),
                            batch->shares[job->rank], err);
    for (; part.server < job->shape->servers && rc == 0; part.server++) {
        part.n = batch->shares[part.server];
        if (part.server != job->rank) rc = push_held(p, &part, step, err);
        part.first += part.n;
    }
    return rc;
}

/* ---- The rest ---- */

static int open_filters(struct async_push *p, struct drps_err *err)
{
    const struct async_job *job = p->job;
    const struct drps_plan_info *info = &job->o.plan->info;
    const struct drps_push_shape most = drps_push_most(info, job->touches);
    if (!job->filters) return 0;
    p->held = malloc((size_t)drps_push_bound(&most));
    if (!p->held) return drps_err_set(err, -ENOMEM, "no memory for what is held back");
    return drps_shared_buffer_renew(&p->out, drps_push_messages_bytes(info, job->touches), err);
}

int drps_async_push_new(const struct async_job *job, struct async_push **out, struct drps_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out) return drps_err_set(err, -ENOMEM, "no memory for gradients on their way");
    (*out)->job = job;
    return open_filters(*out, err);
}

void drps_async_push_free(struct async_push *p)
{
    if (!p) return;
    drps_shared_buffer_release(p->out);
    free(p->held);
    free(p);
}

void drps_async_push_traffic(const struct async_push *p, struct drps_traffic *sum)
{
    drps_traffic_merge(sum, &p->sent);
}
