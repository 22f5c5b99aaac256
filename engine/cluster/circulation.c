/* Ranges are put together step by step in a buffer, which is sent when the range is whole, and
 * taken apart likewise. */
#include "engine/cluster/drps_circulation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_clock.h"
#include "engine/cluster/drps_messages.h"
#include "net/drps_shared_buffer.h"

struct drps_circulation {
    struct drps_circulation_options o;
    uint32_t before, after; /* the ranks that ranges go to, and come from */
    size_t first;           /* row of a step that is handed over first: behind the intercept */
    size_t row_bytes, parameter_bytes; /* of a row, and of its parameters alone */
    size_t range_bytes;
    struct drps_shared_buffer *out; /* own: the range that is put together */
    size_t out_used;
    struct drps_net_message *in; /* own: the one that is taken apart; NULL: none */
    size_t in_used;
    uint64_t sent, received; /* ranges */
    struct drps_circulation_stats stats;
    struct drps_traffic traffic;
};

/* ---- Sizes ---- */

uint64_t drps_circulation_message_bytes(const struct drps_plan_info *info)
{
    return info->ranks.max_range_rows * drps_optim_row_floats_most(info->dim) * sizeof(float);
}

uint32_t drps_circulation_queue(const struct drps_plan_info *info)
{
    return (uint32_t)(info->grid_users * info->grid_items);
}

/* Out, in, and the one that is being copied. */
uint64_t drps_circulation_memory(const struct drps_plan_info *info, uint64_t row_bytes)
{
    return (2 * drps_circulation_queue(info) + 1) * info->ranks.max_range_rows * row_bytes;
}

void drps_circulation_forecast(const struct drps_plan_info *info, uint64_t row_bytes,
                               uint64_t epochs, struct drps_circulation_stats *out)
{
    const struct drps_plan_ranks *r = &info->ranks;
    const uint64_t parameters = info->dim * sizeof(float);
    *out = (struct drps_circulation_stats){
        .sent_bytes = epochs * (r->served_rows * row_bytes + r->eval_served_rows * parameters),
        .received_bytes = epochs * (r->pulled_rows * row_bytes + r->eval_pulled_rows * parameters)};
}

/* ---- Departing ---- */

static int send_range(struct drps_circulation *c, struct drps_err *err)
{
    const struct drps_piece piece = {c->out->data, c->out_used};
    const struct drps_net_send send = {.to = c->before,
                                       .part = DRPS_NET_WORKER,
                                       .type = DRPS_MESSAGE_RANGE,
                                       .round = c->sent++,
                                       .pieces = &piece,
                                       .n = 1};
    const uint64_t start = drps_clock_ns();
    int rc = drps_shared_buffer_send(c->out, c->o.net, &send, c->o.wait_ms, err);
    c->stats.wait_ns += drps_clock_ns() - start;
    c->stats.sent_bytes += c->out_used;
    c->out_used = 0;
    return rc;
}

static int depart(struct drps_circulation *c, const struct drps_rows *rows, size_t row_bytes,
                  int last, struct drps_err *err)
{
    const size_t bytes = (rows->n - c->first) * row_bytes;
    if (bytes > c->range_bytes - c->out_used)
        return drps_err_set(
            err, DRPS_E_CORRUPT, "%s: a range has more than the %llu rows of the largest one",
            c->o.plan->dir, (unsigned long long)c->o.plan->info.ranks.max_range_rows);
    int rc = c->out_used ? 0 : drps_shared_buffer_renew(&c->out, c->range_bytes, err);
    if (rc < 0) return rc;
    for (size_t i = c->first; i < rows->n; i++, c->out_used += row_bytes)
        memcpy(c->out->data + c->out_used, drps_row_at(rows, i), row_bytes);
    drps_traffic_add(&c->traffic, DRPS_TRAFFIC_HANDED, c->before, rows->n - c->first, bytes);
    return last ? send_range(c, err) : 0;
}

/* ---- Arriving ---- */

static int wrong(const struct drps_circulation *c, const char *what, struct drps_err *err)
{
    return drps_err_set(
        err, DRPS_E_PROTO,
        "rank %u sent message %u (number %llu, %zu bytes) where range %llu was due: "
        "%s",
        c->in->from, c->in->type, (unsigned long long)c->in->round, c->in->bytes,
        (unsigned long long)c->received, what);
}

static int receive_range(struct drps_circulation *c, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    int rc = drps_net_receive(c->o.net, DRPS_NET_WORKER, c->after, c->o.wait_ms, &c->in, err);
    c->stats.wait_ns += drps_clock_ns() - start;
    c->in_used = 0;
    if (rc == -ETIMEDOUT)
        (void)drps_err_context(err, "range %llu", (unsigned long long)c->received);
    if (rc < 0) return rc;
    c->stats.received_bytes += c->in->bytes;
    if (c->in->type == DRPS_MESSAGE_RANGE && c->in->round == c->received) return 0;
    return wrong(c, "it is another message", err);
}

static int arrive(struct drps_circulation *c, const struct drps_rows *rows, size_t row_bytes,
                  int last, struct drps_err *err)
{
    const size_t bytes = (rows->n - c->first) * row_bytes;
    int rc = c->in ? 0 : receive_range(c, err);
    if (rc < 0) return rc;
    const size_t left = c->in->bytes - c->in_used;
    if (last ? bytes != left : bytes >= left) return wrong(c, "it is of another size", err);
    for (size_t i = c->first; i < rows->n; i++, c->in_used += row_bytes)
        memcpy(drps_row_at(rows, i), (const char *)c->in->data + c->in_used, row_bytes);
    if (!last) return 0;
    drps_net_message_free(c->in);
    c->in = NULL;
    c->received++;
    return 0;
}

int drps_circulation_step(struct drps_circulation *c, const struct drps_batch *step,
                          const struct drps_rows *rows, struct drps_err *err)
{
    const int last = (step->hand_over & DRPS_HANDS_LAST) != 0;
    const size_t bytes =
        step->hand_over & DRPS_HANDS_PARAMETERS ? c->parameter_bytes : c->row_bytes;
    return step->hand_over & DRPS_DEPARTS ? depart(c, rows, bytes, last, err)
                                          : arrive(c, rows, bytes, last, err);
}

/* ---- Opening ---- */

int drps_circulation_open(const struct drps_circulation_options *options,
                          struct drps_circulation **c_out, struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &options->plan->info.ranks;
    struct drps_circulation *c = calloc(1, sizeof(*c));
    *c_out = c;
    if (!c) return drps_err_set(err, -ENOMEM, "no memory for rows that circulate");
    c->o = *options;
    c->before = (ranks->rank + ranks->count - 1) % ranks->count;
    c->after = (ranks->rank + 1) % ranks->count;
    c->first = options->server->model.has_bias ? 1 : 0;
    c->row_bytes = options->server->row_bytes;
    c->parameter_bytes = options->server->model.dim * sizeof(float);
    c->range_bytes = (size_t)ranks->max_range_rows * c->row_bytes;
    return 0;
}

void drps_circulation_close(struct drps_circulation *c)
{
    if (!c) return;
    drps_shared_buffer_release(c->out);
    drps_net_message_free(c->in);
    free(c);
}

void drps_circulation_stats(const struct drps_circulation *c, struct drps_circulation_stats *out)
{
    *out = c->stats;
}

void drps_circulation_traffic(const struct drps_circulation *c, struct drps_traffic *sum)
{
    drps_traffic_merge(sum, &c->traffic);
}
