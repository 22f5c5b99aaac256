/* Rounds of ranks that each have all rows. */
#include "engine/cluster/sv/drps_exchange.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "base/drps_rng.h"
#include "engine/cluster/drps_messages.h"
#include "engine/cluster/sv/average.h"
#include "engine/cluster/sv/chosen.h"
#include "engine/cluster/sv/message.h"
#include "engine/cluster/sv/receivers.h"
#include "engine/cluster/sv/replica.h"
#include "engine/cluster/sv/sums.h"
#include "index/plan/codec/drps_list.h"
#include "index/plan/drps_steps.h"
#include "net/drps_allreduce.h"
#include "net/drps_shared_buffer.h"

/* What came of a rank in this round, or is of this one. */
struct part {
    struct drps_net_message *message; /* own; NULL: this rank's, or none */
    uint64_t next;                    /* the epoch's step of which its next vectors are */
    int taken;                        /* 1: it is applied now */
    struct sv_message parts;
    uint32_t *ids; /* own: [max_batch_rows] */
    size_t n;
};

struct drps_exchanging {
    struct drps_exchange_job job;
    uint32_t rank, ranks, dim;
    struct receivers receivers;
    struct replica replica;
    struct sums sums;
    struct steps *numbers; /* own: the rows of the rank's batches */
    struct steps *lists;   /* own: the rows of its server in each round; job.slots alone */
    struct chosen chosen;  /* job.select.count alone */
    uint64_t round;        /* of the run */
    int begun;             /* a round was */
    struct part *parts;    /* own: [ranks] */
    struct drps_shared_buffer *sent;
    float *grads;      /* own: [max_batch_rows][dim], of a rank at a time */
    uint32_t *touches; /* own: [max_batch_rows] */
    float *dense;      /* own: [rows][dim], then [rows] samples that touch a row; dense alone */
    struct drps_feed_share batch;
    struct drps_feed_union opened;
    uint64_t sums_done; /* all-reduces so far */
    uint64_t wait_ns;   /* in this round: sending, and waiting for others */
    uint64_t others_ns; /* in this round: gradients of others' vectors */
    uint64_t received;
    struct drps_traffic traffic;
};

static int is_vectors(const struct drps_exchanging *x)
{
    return x->job.way == DRPS_EXCHANGE_VECTORS;
}

/* ---- The rank's own batch ---- */

/* Reads the batch and its rows, and opens those of the rank's own server. */
static int open_round(struct drps_exchanging *x, uint64_t step, struct drps_err *err)
{
    struct part *own = &x->parts[x->rank];
    const uint32_t *ids;
    int rc = drps_feed_next_share(x->job.feed, &x->batch, err);
    if (rc == 0) rc = drps_feed_next_union(x->job.feed, &x->opened, err);
    if (rc == 0) rc = drps_steps_rows(x->numbers, step, x->replica.rows, &ids, &own->n, err);
    if (rc < 0) return rc;
    if (own->n != x->batch.body.rows)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s: step %" PRIu64 ": " DRPS_FILE_NUMBERS " has %zu rows, the batch "
                            "%zu",
                            x->job.plan->dir, step, own->n, x->batch.body.rows);
    memcpy(own->ids, ids, own->n * sizeof(*ids));
    return drps_server_open_step(x->job.server, x->opened.ids, x->opened.n, err);
}

/* Begins the message of this round: n rows of values, and these. */
static int begin_message(struct drps_exchanging *x, size_t n, struct drps_piece list,
                         struct drps_piece body, struct drps_err *err)
{
    struct sv_message *m = &x->parts[x->rank].parts;
    *m = (struct sv_message){.n = (uint32_t)n,
                             .dim = x->dim,
                             .is_sparse = !is_vectors(x),
                             .has_touches = x->job.worker->has_touches,
                             .list = list,
                             .body = body};
    int rc = drps_shared_buffer_renew(&x->sent, sv_message_bytes(m), err);
    if (rc == 0) sv_message_begin(m, x->sent->data);
    return rc;
}

/* The gradient of samples with these slopes. */
static void make_gradient(struct drps_exchanging *x, const struct drps_batch *b,
                          const float *slopes)
{
    const struct drps_model *model = &x->job.server->model;
    memset(x->grads, 0, b->rows * x->dim * sizeof(*x->grads));
    drps_model_backward(model, b, slopes, x->grads);
    if (!x->job.worker->has_touches) return;
    memset(x->touches, 0, b->rows * sizeof(*x->touches));
    drps_batch_touches(b, 0, b->samples, model->has_bias, x->touches);
}

/* Some of the batch's samples stand for all of them: those are the rank's batch from now on. */
static int compute_chosen(struct drps_exchanging *x, double *loss_out, struct drps_err *err)
{
    struct part *own = &x->parts[x->rank];
    struct chosen *c = &x->chosen;
    struct drps_worker *w = x->job.worker;
    const uint64_t seed = drps_rng_at(x->job.seed + x->rank, x->round);
    drps_worker_score(w, &x->batch.body);
    *loss_out = drps_model_slopes(w->model, &x->batch.body, w->scores, c->slopes);
    int rc = chosen_make(c, &x->batch.body, own->ids, seed, err);
    if (rc == 0) rc = begin_message(x, c->picked.n, c->list, c->body, err);
    if (rc < 0) return rc;
    memcpy(own->parts.values, c->u, c->picked.n * x->dim * sizeof(*c->u));
    own->n = drps_list_count(c->list.data);
    memcpy(own->ids, c->rows, own->n * sizeof(*own->ids));
    return 0;
}

static int compute_vectors(struct drps_exchanging *x, uint64_t step, double *loss_out,
                           struct drps_err *err)
{
    const struct drps_batch *b = &x->batch.body;
    struct drps_worker *w = x->job.worker;
    struct drps_feed_record record;
    struct drps_piece list;
    int rc = drps_steps_record(x->numbers, step, &list.data, &list.bytes, err);
    if (rc == 0) rc = drps_feed_read_record(x->job.feed, step, &record, err);
    if (rc == 0) rc = begin_message(x, b->samples, list, record.body, err);
    if (rc < 0) return rc;
    drps_worker_score(w, b);
    *loss_out = drps_model_slopes(w->model, b, w->scores, x->parts[x->rank].parts.values);
    return 0;
}

static int compute_rows(struct drps_exchanging *x, uint64_t step, double *loss_out,
                        struct drps_err *err)
{
    const size_t rows = x->batch.body.rows;
    struct drps_worker *w = x->job.worker;
    struct drps_piece list;
    *loss_out = drps_worker_gradient(w, &x->batch.body);
    if (x->job.way == DRPS_EXCHANGE_DENSE) return 0;
    int rc = drps_steps_record(x->numbers, step, &list.data, &list.bytes, err);
    if (rc == 0) rc = begin_message(x, rows, list, (struct drps_piece){NULL, 0}, err);
    if (rc < 0) return rc;
    const struct sv_message *m = &x->parts[x->rank].parts;
    memcpy(m->values, w->grads[0], rows * x->dim * sizeof(*m->values));
    if (w->has_touches) memcpy(m->touches, w->touches[0], rows * sizeof(*m->touches));
    return 0;
}

/* Computes what is sent, and the sum of the losses. */
static int compute(struct drps_exchanging *x, uint64_t step, double *loss_out, struct drps_err *err)
{
    replica_gather(&x->replica, x->parts[x->rank].ids, x->batch.body.rows, x->job.worker->params);
    return !is_vectors(x)            ? compute_rows(x, step, loss_out, err)
           : x->job.select.count > 0 ? compute_chosen(x, loss_out, err)
                                     : compute_vectors(x, step, loss_out, err);
}

/* ---- Vectors and sparse rows ---- */

static enum drps_message type_of(const struct drps_exchanging *x)
{
    return is_vectors(x) ? DRPS_MESSAGE_VECTORS : DRPS_MESSAGE_SPARSE;
}

static int send_round(struct drps_exchanging *x, uint64_t step, struct drps_err *err)
{
    const struct sv_message *m = &x->parts[x->rank].parts;
    const struct drps_piece piece = {x->sent->data, sv_message_bytes(m)};
    const uint64_t start = drps_clock_ns();
    int rc = 0;
    for (uint32_t i = 1; i < x->ranks && rc == 0; i++) {
        const uint32_t to = (x->rank + i) % x->ranks;
        if (!receivers_has(&x->receivers, x->round, x->rank, to)) continue;
        const struct drps_net_send send = {.to = to,
                                           .part = DRPS_NET_WORKER,
                                           .type = (uint8_t)type_of(x),
                                           .round = step,
                                           .pieces = &piece,
                                           .n = 1};
        drps_traffic_add(&x->traffic, DRPS_TRAFFIC_EXCHANGED, to, m->n, piece.bytes);
        rc = drps_shared_buffer_send(x->sent, x->job.net, &send, x->job.wait_ms, err);
    }
    x->wait_ns += drps_clock_ns() - start;
    return rc;
}

/* Takes what rank `from` sends for its next step; if it has not come within wait_ms, *taken is 0.
 */
static int receive_part(struct drps_exchanging *x, uint32_t from, uint32_t wait_ms,
                        struct drps_err *err)
{
    struct part *p = &x->parts[from];
    struct drps_err why = DRPS_ERR_INIT;
    p->parts = (struct sv_message){
        .dim = x->dim, .is_sparse = !is_vectors(x), .has_touches = x->job.worker->has_touches};
    const uint64_t start = drps_clock_ns();
    int rc = drps_net_receive(x->job.net, DRPS_NET_WORKER, from, wait_ms, &p->message, &why);
    x->wait_ns += drps_clock_ns() - start;
    if (rc == -ETIMEDOUT && !wait_ms) return 0;
    if (rc < 0) return drps_err_set(err, rc, "%s", why.text);
    x->received += p->message->bytes;
    if (p->message->type != type_of(x) || p->message->round != p->next)
        return drps_err_set(err, DRPS_E_PROTO,
                            "rank %" PRIu32 " sent message %u of round %" PRIu64
                            ", where message %u of round %" PRIu64 " was due",
                            from, p->message->type, p->message->round, type_of(x), p->next);
    rc = sv_message_read(&p->parts, p->message, err);
    if (rc == 0)
        rc = sv_message_ids(&p->parts, x->replica.rows, (size_t)x->job.plan->info.max_batch_rows,
                            p->ids, &p->n, err);
    if (rc < 0) return drps_err_context(err, "round %" PRIu64 " of rank %" PRIu32, p->next, from);
    p->taken = 1;
    p->next++;
    return 0;
}

/* The batch of rank r that its vectors are of. */
static int batch_of(struct drps_exchanging *x, uint32_t r, struct drps_batch *out,
                    struct drps_err *err)
{
    const struct part *p = &x->parts[r];
    *out = x->batch.body;
    if (r == x->rank && !x->job.select.count) return 0;
    int rc = drps_feed_decode_body(x->job.feed, &p->parts.body, out, err);
    if (rc == 0 && (out->samples != p->parts.n || out->rows != p->n))
        rc = drps_err_set(err, DRPS_E_PROTO,
                          "%zu samples of %zu rows, with vectors of %" PRIu32 " and %zu",
                          out->samples, out->rows, p->parts.n, p->n);
    if (rc < 0) (void)drps_err_context(err, "the batch of rank %" PRIu32, r);
    return rc;
}

/* The gradient of rank r's batch to x->grads and x->touches. */
static int gradient_of(struct drps_exchanging *x, uint32_t r, struct drps_err *err)
{
    const struct part *p = &x->parts[r];
    struct drps_batch b;
    int rc = batch_of(x, r, &b, err);
    if (rc < 0) return rc;
    make_gradient(x, &b, p->parts.values);
    const struct drps_exchange_applied applied = {
        .rank = r, .batch = &b, .ids = p->ids, .slopes = p->parts.values};
    return x->job.applied ? x->job.applied(x->job.applied_ctx, &applied, err) : 0;
}

/* What is received stands for what was sent to others. */
static void scale_gradient(struct drps_exchanging *x, size_t n)
{
    const float by = receivers_scale(&x->receivers);
    for (size_t i = 0; i < n * x->dim; i++)
        x->grads[i] *= by;
    for (size_t i = 0; i < n && x->sums.has_touches; i++)
        x->touches[i] = (uint32_t)((float)x->touches[i] * by + .5F);
}

static int add_part(struct drps_exchanging *x, uint32_t r, struct drps_err *err)
{
    const struct part *p = &x->parts[r];
    if (is_vectors(x)) {
        const uint64_t start = drps_clock_ns();
        int rc = gradient_of(x, r, err);
        x->others_ns += drps_clock_ns() - start;
        if (rc < 0) return rc;
        if (r != x->rank && x->receivers.to < x->ranks - 1) scale_gradient(x, p->n);
        sums_add(&x->sums, p->ids, p->n, x->grads, x->touches);
        return 0;
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

/* The first round may be within an epoch: nothing is due of those before it. */
static void begin(struct drps_exchanging *x, uint64_t step)
{
    for (uint32_t r = 0; r < x->ranks && !x->begun; r++)
        x->parts[r].next = step;
    x->begun = 1;
}

/* Do replicas meet after this round, which is the epoch's last one or not? */
static int is_average_due(const struct drps_exchanging *x, int last)
{
    const struct drps_train_multicast *m = &x->job.multicast;
    return drps_multicast_differs(m, x->ranks) &&
           (last || (m->average && (x->round + 1) % m->average == 0));
}

static int is_last(const struct drps_exchanging *x, uint64_t step)
{
    return step + 1 == x->job.plan->info.batches;
}

static int exchange_parts(struct drps_exchanging *x, uint64_t step, struct drps_err *err)
{
    const uint64_t late = is_average_due(x, is_last(x, step)) ? 0 : x->job.multicast.late;
    int rc = send_round(x, step, err);
    if (rc == 0) rc = apply(x, step, late, 1, err);
    while (rc == 0 && is_behind(x, step, late))
        rc = apply(x, step, late, 0, err);
    return rc;
}

/* ---- Replicas meet ---- */

static void count_sent(struct drps_exchanging *x, uint64_t bytes, uint64_t received)
{
    drps_traffic_add(&x->traffic, DRPS_TRAFFIC_EXCHANGED, (x->rank + 1) % x->ranks, x->replica.rows,
                     bytes);
    x->received += received;
}

static int meet(struct drps_exchanging *x, int last, struct drps_err *err)
{
    const struct drps_train_multicast *m = &x->job.multicast;
    const uint32_t before = (x->rank + x->ranks - 1) % x->ranks;
    const uint64_t rows = x->replica.rows;
    const size_t bytes = x->replica.row_bytes;
    const uint64_t start = drps_clock_ns();
    int rc = 0;
    if (is_average_due(x, last)) {
        rc = replica_average(&x->replica, x->job.net, &x->sums_done, x->job.wait_ms, err);
        count_sent(x, replica_average_bytes(rows, bytes, x->ranks, x->rank),
                   replica_average_bytes(rows, bytes, x->ranks, before));
    } else if (m->rotate && (x->round + 1) % m->rotate == 0) {
        rc = replica_rotate(&x->replica, x->job.net, x->job.wait_ms, err);
        count_sent(x, rows * bytes, rows * bytes);
    }
    x->wait_ns += drps_clock_ns() - start;
    return rc;
}

/* ---- Dense ---- */

/* The rows that some rank touches, from the sums of all. */
static void find_touched(struct drps_exchanging *x)
{
    const float *counts = x->dense + x->replica.rows * x->dim;
    struct sums *s = &x->sums;
    s->n = 0;
    for (uint64_t row = 0; row < x->replica.rows && s->n < s->most; row++) {
        if (!(counts[row] > 0)) continue;
        memcpy(s->grads + s->n * x->dim, x->dense + row * x->dim, x->dim * sizeof(*s->grads));
        if (s->has_touches) s->touches[s->n] = (uint32_t)counts[row];
        s->ids[s->n++] = (uint32_t)row;
    }
}

static int sum_dense(struct drps_exchanging *x, struct drps_err *err)
{
    const struct part *own = &x->parts[x->rank];
    const struct drps_worker *w = x->job.worker;
    const size_t n = (size_t)x->replica.rows * (x->dim + 1);
    float *counts = x->dense + x->replica.rows * x->dim;
    memset(x->dense, 0, n * sizeof(*x->dense));
    for (size_t i = 0; i < own->n; i++) {
        memcpy(x->dense + (size_t)own->ids[i] * x->dim, w->grads[0] + i * x->dim,
               x->dim * sizeof(*x->dense));
        counts[own->ids[i]] = w->has_touches ? (float)w->touches[0][i] : 1;
    }
    const struct drps_net_allreduce sum = {.values = x->dense,
                                           .n = n,
                                           .type = DRPS_NET_FLOAT32,
                                           .way = DRPS_NET_RING,
                                           .round = x->sums_done++};
    const uint64_t start = drps_clock_ns();
    int rc = drps_net_allreduce(x->job.net, &sum, x->job.wait_ms, err);
    x->wait_ns += drps_clock_ns() - start;
    if (rc < 0) return rc;
    const uint64_t bytes =
        drps_net_allreduce_bytes(DRPS_NET_RING, x->ranks, x->rank, n, DRPS_NET_FLOAT32);
    drps_traffic_add(&x->traffic, DRPS_TRAFFIC_EXCHANGED, (x->rank + 1) % x->ranks, x->replica.rows,
                     bytes);
    x->received += drps_net_allreduce_bytes(
        DRPS_NET_RING, x->ranks, (x->rank + x->ranks - 1) % x->ranks, n, DRPS_NET_FLOAT32);
    find_touched(x);
    replica_step(&x->replica, x->sums.ids, x->sums.n, x->sums.grads,
                 x->sums.has_touches ? x->sums.touches : NULL);
    return 0;
}

/* ---- A round ---- */

/* Copies the rows that this rank's server has opened to its store. */
static int give_own(struct drps_exchanging *x, uint64_t step, struct drps_err *err)
{
    struct drps_server *server = x->job.server;
    const uint32_t *ids = x->opened.ids;
    size_t n = x->opened.n;
    int rc = x->lists ? drps_steps_rows(x->lists, step, x->job.plan->info.rows, &ids, &n, err) : 0;
    if (rc == 0 && n != x->opened.n)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: step %" PRIu64 " has %zu rows, and %zu slots",
                          x->job.plan->dir, step, n, x->opened.n);
    if (rc < 0) return rc;
    replica_give(&x->replica, server->first_row, ids, n, &server->rows);
    return drps_server_close_step(server, 1, err);
}

/* Copies all rows of this rank's server to its store: those that no round of its own has opened
 * since have changed, too. */
static int give_all(struct drps_exchanging *x, struct drps_err *err)
{
    struct drps_server *server = x->job.server;
    const uint64_t rows = x->job.plan->info.rows;
    const size_t most = (size_t)x->job.plan->info.max_batch_rows;
    uint32_t *ids = x->parts[x->rank].ids;
    int rc = 0;
    for (uint64_t first = 0; first < rows && rc == 0; first += most) {
        const size_t n = rows - first < most ? (size_t)(rows - first) : most;
        for (size_t i = 0; i < n; i++)
            ids[i] = (uint32_t)(first + i);
        rc = drps_server_open_step(server, ids, n, err);
        if (rc < 0) return rc;
        replica_give(&x->replica, server->first_row, ids, n, &server->rows);
        rc = drps_server_close_step(server, 1, err);
    }
    return rc;
}

static int end_epoch(struct drps_exchanging *x, struct drps_err *err)
{
    for (uint32_t r = 0; r < x->ranks; r++)
        x->parts[r].next = 0;
    return drps_multicast_differs(&x->job.multicast, x->ranks) ? give_all(x, err) : 0;
}

int drps_exchange_work(struct drps_exchanging *x, uint64_t step, struct drps_round *out,
                       struct drps_err *err)
{
    struct drps_worker *w = x->job.worker;
    const uint64_t start = drps_clock_ns(), counted = w->gather_ns + w->compute_ns;
    const int last = is_last(x, step);
    *out = (struct drps_round){.batch = &x->batch.body};
    begin(x, step);
    int rc = open_round(x, step, err);
    if (rc < 0) return rc;
    const uint64_t ready = drps_clock_ns();
    out->plan_ns = ready - start;
    rc = compute(x, step, &out->loss, err);
    out->compute_ns = drps_clock_ns() - ready;
    if (rc == 0)
        rc = x->job.way == DRPS_EXCHANGE_DENSE ? sum_dense(x, err) : exchange_parts(x, step, err);
    if (rc == 0) rc = meet(x, last, err);
    out->compute_ns += x->others_ns;
    out->wait_ns = x->wait_ns;
    x->others_ns = x->wait_ns = 0;
    w->compute_ns += out->compute_ns - (w->gather_ns + w->compute_ns - counted);
    if (rc < 0) return rc;
    x->round++;
    rc = give_own(x, step, err);
    return rc == 0 && last ? end_epoch(x, err) : rc;
}

uint64_t drps_exchange_traffic(const struct drps_exchanging *x, struct drps_traffic *sum)
{
    drps_traffic_merge(sum, &x->traffic);
    return x->received;
}

void *drps_exchange_left(struct drps_exchanging *x)
{
    return x->chosen.error;
}

const void *drps_exchange_replica(const struct drps_exchanging *x)
{
    return x->replica.data;
}

/* ---- Opening ---- */

struct drps_select_options drps_exchange_selection(const struct drps_train_options *options)
{
    static const enum drps_select_rule rules[] = {[DRPS_SV_JMCSS] = DRPS_SELECT_JMCSS,
                                                  [DRPS_SV_RANDOM] = DRPS_SELECT_RANDOM,
                                                  [DRPS_SV_PROJECT] = DRPS_SELECT_PROJECT};
    return (struct drps_select_options){.rule = rules[options->sv_rule],
                                        .count = options->sv_count};
}

uint64_t drps_exchange_rows(const struct drps_plan_info *info)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < info->tables_n; i++)
        rows += info->tables[i].rows;
    return rows;
}

/* Rows of a round, of all ranks together. */
static uint64_t most_rows(const struct drps_plan_info *info)
{
    const uint64_t uses = info->ranks.count * info->max_batch_rows;
    const uint64_t rows = drps_exchange_rows(info);
    return uses < rows ? uses : rows;
}

uint64_t drps_exchange_memory(const struct drps_plan_info *info, size_t row_bytes, int touches,
                              enum drps_exchange way, const struct drps_select_options *select)
{
    const uint64_t rows = drps_exchange_rows(info), count = info->ranks.count;
    const uint64_t a_row = info->dim * sizeof(float) + (touches ? sizeof(uint32_t) : 0);
    const uint64_t lists = count * info->max_batch_rows * sizeof(uint32_t);
    const uint64_t sums = most_rows(info) * (a_row + 2 * sizeof(uint32_t));
    const uint64_t messages = (2 * count + 2) * drps_cluster_exchange_bytes(info);
    const uint64_t dense = rows * (info->dim + 1) * sizeof(float);
    return rows * row_bytes + lists + sums + info->max_batch_rows * a_row + info->max_body_bytes +
           (way == DRPS_EXCHANGE_DENSE ? dense : messages) + chosen_memory(info, select, rows);
}

static int allocate(struct drps_exchanging *x, struct drps_err *err)
{
    const struct drps_plan_info *info = &x->job.plan->info;
    const size_t rows = (size_t)info->max_batch_rows;
    const size_t dense =
        x->job.way == DRPS_EXCHANGE_DENSE ? (size_t)drps_exchange_rows(info) * (x->dim + 1) : 0;
    int missing = 0;
    x->parts = calloc(x->ranks, sizeof(*x->parts));
    for (uint32_t r = 0; x->parts && r < x->ranks; r++) {
        x->parts[r].ids = drps_array_new(rows, sizeof(*x->parts[r].ids));
        missing |= !x->parts[r].ids;
    }
    x->grads = drps_array_new(rows, x->dim * sizeof(*x->grads));
    x->touches = drps_array_new(rows, sizeof(*x->touches));
    x->dense = drps_array_new(dense, sizeof(*x->dense));
    if (missing || !x->parts || !x->grads || !x->touches || !x->dense)
        return drps_err_set(err, -ENOMEM, "no memory for the gradients of a round");
    return 0;
}

/* Which rows each rank's server has; they must be all. */
static int find_ranges(const struct drps_exchanging *x, struct drps_row_range *own,
                       struct drps_err *err)
{
    const struct drps_row_range mine = {x->job.server->first_row, x->job.plan->info.rows};
    uint64_t end = 0;
    int rc = drps_net_gather(x->job.net, &mine, sizeof(mine), own, x->job.wait_ms, err);
    for (uint32_t r = 0; r < x->ranks && rc == 0; r++) {
        if (own[r].first != end || own[r].rows > x->replica.rows - end)
            rc = drps_err_set(err, DRPS_E_PROTO, "the rows of rank %" PRIu32 " begin with %" PRIu64,
                              r, own[r].first);
        end += own[r].rows;
    }
    if (rc == 0 && end != x->replica.rows)
        rc = drps_err_set(err, DRPS_E_PROTO, "ranks have %" PRIu64 " of %" PRIu64 " rows", end,
                          x->replica.rows);
    return rc;
}

static int open_all(struct drps_exchanging *x, struct drps_err *err)
{
    const struct drps_plan *plan = x->job.plan;
    const struct drps_plan_info *info = &plan->info;
    struct drps_row_range *own = calloc(x->ranks, sizeof(*own));
    if (!own) return drps_err_set(err, -ENOMEM, "no memory for %" PRIu32 " ranks", x->ranks);
    int rc = allocate(x, err);
    if (rc == 0)
        rc = sums_open(&x->sums, (size_t)most_rows(info), x->dim, x->job.worker->has_touches, err);
    if (rc == 0) rc = replica_open(&x->replica, x->job.server, drps_exchange_rows(info), err);
    if (rc == 0)
        rc = drps_steps_open(plan->io, plan->dir, DRPS_FILE_NUMBERS, DRPS_KIND_NUMBERS,
                             info->batches + info->eval_batches, 1 << 18, &x->numbers, err);
    if (rc == 0 && x->job.slots)
        rc = drps_steps_open(plan->io, plan->dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS,
                             info->batches + info->eval_batches, 1 << 18, &x->lists, err);
    if (rc == 0 && x->job.select.count)
        rc = chosen_open(&x->chosen, info, &x->job.select, x->replica.rows, err);
    if (rc == 0) rc = find_ranges(x, own, err);
    if (rc == 0) rc = replica_fill(&x->replica, x->job.net, own, x->job.wait_ms, err);
    free(own);
    return rc;
}

int drps_exchange_open(const struct drps_exchange_job *job, struct drps_exchanging **out,
                       struct drps_err *err)
{
    struct drps_exchanging *x = calloc(1, sizeof(*x));
    *out = NULL;
    if (!x) return drps_err_set(err, -ENOMEM, "no memory for replicas");
    x->job = *job;
    x->rank = job->plan->info.ranks.rank;
    x->ranks = job->plan->info.ranks.count;
    x->dim = job->plan->info.dim;
    x->round = job->first_round;
    x->receivers = (struct receivers){.ranks = x->ranks,
                                      .to = job->multicast.to ? job->multicast.to : x->ranks - 1,
                                      .rule = job->multicast.rule,
                                      .loss = job->multicast.loss,
                                      .seed = job->seed};
    int rc = open_all(x, err);
    if (rc < 0) {
        drps_exchange_close(x);
        return rc;
    }
    *out = x;
    return 0;
}

void drps_exchange_close(struct drps_exchanging *x)
{
    if (!x) return;
    for (uint32_t r = 0; x->parts && r < x->ranks; r++) {
        drps_net_message_free(x->parts[r].message);
        free(x->parts[r].ids);
    }
    drps_steps_close(x->numbers);
    drps_steps_close(x->lists);
    chosen_close(&x->chosen);
    drps_shared_buffer_release(x->sent);
    replica_close(&x->replica);
    sums_close(&x->sums);
    free(x->parts);
    free(x->grads);
    free(x->touches);
    free(x->dense);
    free(x);
}
