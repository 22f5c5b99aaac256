/* The rank's own batch: what is sent of it. */
#include "engine/cluster/sv/exchange_internal.h"

#include <string.h>

#include "base/drps_rng.h"
#include "index/plan/codec/drps_list.h"

/* Begins the message of this round: n rows of values, and these. */
static int begin_message(struct drps_exchanging *x, size_t n, struct drps_piece list,
                         struct drps_piece body, struct drps_err *err)
{
    struct sv_message *m = &x->parts[x->rank].parts;
    *m = (struct sv_message){.n = (uint32_t)n,
                             .dim = x->dim,
                             .is_sparse = !sends_vectors(x),
                             .has_touches = x->job.worker->has_touches,
                             .list = list,
                             .body = body};
    int rc = drps_shared_buffer_renew(&x->sent, sv_message_bytes(m), err);
    if (rc == 0) sv_message_begin(m, x->sent->data);
    return rc;
}

/* Some of the batch's samples stand for all of them: those are the rank's batch from now on. */
static int compute_chosen(struct drps_exchanging *x, const struct turn *turn, double *loss_out,
                          struct drps_err *err)
{
    struct part *own = &x->parts[x->rank];
    struct chosen *c = &x->chosen;
    const uint64_t seed = drps_rng_at(x->job.train->seed + turn->share, turn->round);
    *loss_out = drps_worker_slopes(x->job.worker, &x->batch.body, c->slopes);
    int rc = chosen_make(c, &x->batch.body, own->ids, seed, err);
    if (rc == 0) rc = begin_message(x, c->picked.n, c->list, c->body, err);
    if (rc < 0) return rc;
    memcpy(own->parts.values, c->u, c->picked.n * x->dim * sizeof(*c->u));
    own->n = drps_list_count(c->list.data);
    memcpy(own->ids, c->rows, own->n * sizeof(*own->ids));
    return 0;
}

int exchange_compute_vectors(struct drps_exchanging *x, const struct own_record *record,
                             const struct turn *turn, double *loss_out, struct drps_err *err)
{
    const struct drps_batch *b = &x->batch.body;
    if (x->chosen.options.count) return compute_chosen(x, turn, loss_out, err);
    int rc = begin_message(x, b->samples, record->list, record->body, err);
    if (rc < 0) return rc;
    *loss_out = drps_worker_slopes(x->job.worker, b, x->parts[x->rank].parts.values);
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

int exchange_read_own(struct drps_exchanging *x, uint64_t step, struct own_record *out,
                      struct drps_err *err)
{
    struct drps_feed_record record;
    int rc = drps_steps_record(x->numbers, step, &out->list.data, &out->list.bytes, err);
    if (rc == 0) rc = drps_feed_read_record(x->job.feed, step, &record, err);
    if (rc == 0) out->body = record.body;
    return rc;
}

int exchange_compute(struct drps_exchanging *x, const struct turn *turn, double *loss_out,
                     struct drps_err *err)
{
    struct own_record record = {{NULL, 0}, {NULL, 0}};
    replica_gather(&x->replica, x->parts[x->rank].ids, x->batch.body.rows, x->job.worker->params);
    if (!sends_vectors(x)) return compute_rows(x, turn->step, loss_out, err);
    int rc = x->chosen.options.count ? 0 : exchange_read_own(x, turn->step, &record, err);
    return rc == 0 ? exchange_compute_vectors(x, &record, turn, loss_out, err) : rc;
}
