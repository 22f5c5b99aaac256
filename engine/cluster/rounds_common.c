/*
 * Common rows in rounds where every rank has a copy of them, with the optimizer's state. Their
 * parameters do not travel: workers add up their gradients of these rows by an all-reduce, in the
 * order of ranks, and each steps its copy with the sum. The server of the rows gets the sum from
 * the worker of its rank and steps them, too: stores, checkpoints and the model are those of rounds
 * without copies.
 *
 *     the worker's first batch   a server sends its common rows behind the parameters
 *     pull                       parameters of common rows are those of the copy
 *     push                       gradients of all other rows go to their servers;
 *                                common rows: all-reduce, step of the copy, and their sum to
 *                                the own server
 *
 * Gradients of some layers go as vectors, all others by the all-reduce
 * (engine/cluster/outer/drps_outer.h).
 *
 * Sums begin with 0, as a server's do, and a worker whose batch is empty adds zeros. So the bytes
 * of the model do not depend on who adds up.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "engine/cluster/rounds_internal.h"
#include "net/drps_allreduce.h"

/* ---- Opening ---- */

/* Vectors are left by the gradient; what is summed of all others lies together. */
static int open_vectors(struct drps_rounds *r, struct drps_err *err)
{
    struct rounds_common *c = &r->common;
    if (!r->o.vectors || !r->o.vectors->n) return 0;
    const struct drps_plan_info *info = &r->o.plan->info;
    const struct drps_outer_job job = {.choice = *r->o.vectors,
                                       .net = r->o.net,
                                       .worker = r->o.worker,
                                       .samples = info->max_batch_samples,
                                       .wait_ms = r->o.wait_ms};
    c->vectors = *r->o.vectors;
    c->rest = drps_array_new(drps_rounds_summed(info, &c->vectors), sizeof(*c->rest));
    if (!c->rest) return drps_err_set(err, -ENOMEM, "no memory for gradients that are summed");
    int rc = drps_outer_open(&job, &c->outer, err);
    if (rc == 0) r->o.server->model.vectors = drps_outer_keeps(c->outer);
    return rc;
}

int drps_rounds_open_common(struct drps_rounds *r, struct drps_err *err)
{
    const struct drps_plan_info *info = &r->o.plan->info;
    struct rounds_common *c = &r->common;
    if (!r->o.sums) return 0;
    c->n = drps_plan_common_rows(info);
    c->own = drps_plan_own_common_rows(info, c->n);
    if (c->n > info->max_batch_rows)
        return drps_err_set(err, DRPS_E_CORRUPT, "batches of %llu rows, and all have %u",
                            (unsigned long long)info->max_batch_rows, c->n);
    c->rows = drps_array_new(c->n, r->o.server->row_bytes);
    c->index = drps_array_new(c->n, sizeof(*c->index));
    c->of = calloc(r->ranks, sizeof(*c->of));
    c->is_sent = calloc(r->ranks, 1);
    if (!c->rows || !c->index || !c->of || !c->is_sent)
        return drps_err_set(err, -ENOMEM, "no memory for %u rows that all batches have", c->n);
    for (uint32_t i = 0; i < c->n; i++)
        c->index[i] = i;
    return open_vectors(r, err);
}

void drps_rounds_close_common(struct drps_rounds *r)
{
    struct rounds_common *c = &r->common;
    if (c->outer) r->o.server->model.vectors = NULL;
    drps_outer_close(c->outer);
    free(c->rest);
    drps_shared_buffer_release(c->sent);
    free(c->rows);
    free(c->index);
    free(c->of);
    free(c->is_sent);
}

static struct drps_rows copy_of(const struct drps_rounds *r)
{
    const struct rounds_common *c = &r->common;
    return (struct drps_rows){c->rows, r->o.server->row_bytes, c->index, c->n};
}

/* ---- Copies are made: parameters, then each state of the optimizer, a message each ---- */

static size_t vectors_of(const struct drps_rounds *r)
{
    const size_t all = r->o.server->row_bytes, each = rounds_row_bytes(&r->o.plan->info);
    return all / each + (all % each != 0);
}

/* Returns the floats that a row has of vector v: of the last one there may be less. */
static uint32_t width_of(const struct drps_rounds *r, size_t v)
{
    const size_t left = r->o.server->row_bytes / sizeof(float) - v * r->dim;
    return left < r->dim ? (uint32_t)left : r->dim;
}

/* Where the rows' vector number v begins. */
static struct drps_rows shifted(const struct drps_rounds *r, struct drps_rows rows, size_t v)
{
    rows.base = (char *)rows.base + v * r->dim * sizeof(float);
    return rows;
}

/* Put the server's common rows into the buffer that all workers get. */
static int fill_sent(struct drps_rounds *r, struct drps_err *err)
{
    struct rounds_common *c = &r->common;
    const struct rounds_open *now = r->server.now;
    const size_t vectors = vectors_of(r), floats = c->own * (size_t)r->dim;
    int rc = drps_shared_buffer_renew(&c->sent, c->own * r->o.server->row_bytes, err);
    if (rc < 0) return rc;
    for (size_t v = 0; v < vectors; v++) {
        const struct drps_rows rows = shifted(r, now->rows, v);
        drps_rows_gather(&rows, width_of(r, v), 0, c->own,
                         (float *)(void *)c->sent->data + v * floats);
    }
    return 0;
}

int drps_rounds_send_common(struct drps_rounds *r, uint32_t to, struct drps_err *err)
{
    struct rounds_common *c = &r->common;
    const size_t most = c->own * rounds_row_bytes(&r->o.plan->info);
    const int is_empty = c->own && !rounds_skipped(r, r->server.now, to);
    int rc = 0;
    if (is_empty && to != r->rank) c->seen.others_empty[r->server.at < r->train]++;
    if (!c->own || is_empty || c->is_sent[to]) return 0;
    if (!c->sent) rc = fill_sent(r, err);
    for (size_t v = 0; v < vectors_of(r) && rc == 0; v++) {
        const size_t bytes = c->own * width_of(r, v) * sizeof(float);
        const struct drps_piece piece = {c->sent->data + v * most, bytes};
        const struct drps_net_send send = {.to = to,
                                           .part = DRPS_NET_WORKER,
                                           .type = DRPS_MESSAGE_COMMON,
                                           .round = r->server.round,
                                           .pieces = &piece,
                                           .n = 1};
        rounds_count_sent(r, &r->server.sent, DRPS_TRAFFIC_PULLED, to, v ? 0 : c->own, bytes);
        rc = drps_shared_buffer_send(c->sent, r->o.net, &send, r->o.wait_ms, err);
    }
    c->is_sent[to] = 1;
    return rc;
}

void drps_rounds_end_sending(struct drps_rounds *r)
{
    drps_shared_buffer_release(r->common.sent);
    r->common.sent = NULL;
}

static int take_vector(struct drps_rounds *r, uint32_t server, uint32_t first, uint32_t n, size_t v,
                       struct drps_err *err)
{
    const size_t row = width_of(r, v) * sizeof(float);
    const struct drps_rows rows = shifted(r, copy_of(r), v);
    struct drps_net_message *m;
    int rc = drps_rounds_take(r, DRPS_NET_WORKER, server, r->worker.round, &m, err);
    if (rc < 0) return rc;
    if (m->type != DRPS_MESSAGE_COMMON || m->bytes != n * row)
        return drps_rounds_unexpected(m, DRPS_MESSAGE_COMMON, n * row, err);
    for (uint32_t i = 0; i < n; i++)
        memcpy(drps_row_at(&rows, first + i), (const char *)m->data + i * row, row);
    if (server != r->rank) r->worker.traffic.received += m->bytes;
    drps_net_message_free(m);
    return 0;
}

int drps_rounds_take_common(struct drps_rounds *r, uint32_t server, size_t first, uint32_t n,
                            struct drps_err *err)
{
    struct rounds_common *c = &r->common;
    int rc = 0;
    if (!n || c->of[server]) return 0;
    for (size_t v = 0; v < vectors_of(r) && rc == 0; v++)
        rc = take_vector(r, server, (uint32_t)first, n, v, err);
    if (rc == 0) c->of[server] = n;
    return rc;
}

/* ---- The worker ---- */

int drps_rounds_check_common(const struct drps_rounds *r, struct drps_err *err)
{
    const size_t rows = r->worker.share.body.rows;
    if (!rows || rows >= r->common.n) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: a batch of %zu rows, and all batches have %u",
                        r->o.plan->dir, rows, r->common.n);
}

void drps_rounds_put_common(struct drps_rounds *r)
{
    const struct drps_rows rows = copy_of(r);
    if (!r->worker.share.body.rows) {
        r->common.seen.own_empty[r->worker.at < r->train]++;
        return;
    }
    drps_rows_gather(&rows, r->dim, 0, r->common.n, r->o.worker->params);
    r->common.is_there = 1;
}

static void count_sum(struct drps_rounds *r, size_t n)
{
    for (uint32_t p = 0; p < r->ranks; p++) {
        if (p == r->rank) continue;
        const uint64_t bytes =
            drps_net_allreduce_bytes_to(r->ranks, r->rank, p, n, DRPS_NET_FLOAT32);
        rounds_count_sent(r, &r->worker.sent, DRPS_TRAFFIC_SUMS, p, 0, bytes);
        r->worker.traffic.received += bytes; /* as many come back */
    }
}

/* All-reduce of n values. */
static int sum_values(struct drps_rounds *r, float *values, size_t n, struct drps_err *err)
{
    const struct drps_net_allreduce sum = {.values = values,
                                           .n = n,
                                           .type = DRPS_NET_FLOAT32,
                                           .way = DRPS_NET_IN_ORDER,
                                           .round = r->worker.round};
    const int rc = drps_net_allreduce(r->o.net, &sum, r->o.wait_ms, err);
    if (rc == 0) count_sum(r, n);
    return rc;
}

static int exchange_vectors(struct drps_rounds *r, struct drps_err *err)
{
    struct drps_outer_bytes *before = &r->common.seen.vectors;
    const int rc = drps_outer_exchange(r->common.outer, r->worker.round, err);
    const struct drps_outer_bytes now = drps_outer_bytes(r->common.outer);
    for (uint32_t p = 0; p < r->ranks && rc == 0; p++)
        rounds_count_sent(r, &r->worker.sent, DRPS_TRAFFIC_VECTORS, p, 0, now.each - before->each);
    r->worker.traffic.received += now.received - before->received;
    *before = now;
    return rc;
}

/* Vectors of some layers, sums of all the rest. */
static int sum_apart(struct drps_rounds *r, float *grads, size_t n, struct drps_err *err)
{
    struct rounds_common *c = &r->common;
    int rc = exchange_vectors(r, err);
    if (rc < 0) return rc;
    const size_t rest = drps_outer_move_rest(&c->vectors, n, grads, c->rest, DRPS_OUTER_OUT);
    rc = sum_values(r, c->rest, rest, err);
    if (rc < 0) return rc;
    (void)drps_outer_move_rest(&c->vectors, n, grads, c->rest, DRPS_OUTER_BACK);
    const uint64_t start = drps_clock_ns();
    drps_outer_add(c->outer);
    r->worker.products_ns = drps_clock_ns() - start;
    return 0;
}

int drps_rounds_sum_common(struct drps_rounds *r, struct drps_err *err)
{
    struct rounds_common *c = &r->common;
    const struct drps_server *server = r->o.server;
    const struct drps_rows rows = copy_of(r);
    float *grads = r->o.worker->grads[0];
    const size_t n = c->n * (size_t)r->dim;
    if (!r->worker.share.body.rows) memset(grads, 0, n * sizeof(*grads));
    const int rc = c->outer ? sum_apart(r, grads, n, err) : sum_values(r, grads, n, err);
    if (rc < 0) return drps_err_context(err, "gradients of the rows that all batches have");
    if (c->is_there) drps_optim_step(&server->optim, r->dim, &rows, 0, c->n, grads, NULL, c->n);
    return 0;
}

const float *drps_rounds_own_sums(const struct drps_rounds *r)
{
    const struct rounds_common *c = &r->common;
    if (!c->own) return NULL;
    return r->o.worker->grads[0] + r->o.plan->info.ranks.first_row * r->dim;
}

struct drps_rounds_seen drps_rounds_seen(const struct drps_rounds *r)
{
    return r->common.seen;
}
