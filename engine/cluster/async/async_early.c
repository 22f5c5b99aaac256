/*
 * A server's answers to what workers of other ranks ask for ahead. A worker asks while it computes
 * the batch before, of the same share. So rows that this batch does not change are sent early, with
 * a bit for each row of the next one that says which they are; the rest follows when the gradient
 * is in, or at once if it is already. Which rows they are is seen by their frames: a row that two
 * open steps share has one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "engine/cluster/async/parts.h"
#include "net/drps_shared_buffer.h"

struct async_early {
    const struct async_job *job;
    struct async_fresh *fresh; /* of the epoch; may be NULL */
    uint64_t *marks; /* own: a bit a frame of the store, set while two batches are compared */
    size_t marks_cap;
    uint32_t *chosen;                   /* own: [part rows] frames */
    struct drps_shared_buffer **values; /* own: [ranks] both messages to a worker */
    size_t *used;                       /* own: [ranks] where the second one begins */
    uint64_t *rest; /* own: [ranks] the step of which the rest is due; NONE: of none */
};

#define NONE UINT64_MAX

enum { ALIGNED = 8 }; /* a receiver may take the second message for the first */

/* ---- Which rows ---- */

static uint32_t most_of(const struct drps_rows *rows, uint32_t most)
{
    for (size_t i = 0; i < rows->n; i++)
        if (rows->index[i] > most) most = rows->index[i];
    return most;
}

static int reserve_marks(struct async_early *e, const struct drps_rows *now,
                         const struct drps_rows *next, struct drps_err *err)
{
    const size_t before = e->marks_cap, words = most_of(now, most_of(next, 0)) / 64 + 1;
    if (drps_array_reserve(&e->marks, &e->marks_cap, words, sizeof(*e->marks)))
        return drps_err_set(err, -ENOMEM, "no memory to compare the rows of two batches");
    memset(e->marks + before, 0, (e->marks_cap - before) * sizeof(*e->marks));
    return 0;
}

static void flip_marks(struct async_early *e, const struct drps_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        e->marks[rows->index[i] / 64] ^= UINT64_C(1) << rows->index[i] % 64;
}

/* Lists the frames of `next` that `now` has, or has not (`late`), and sets the bits of those in
 * bits_out, unless that is NULL. Returns their number. */
static size_t choose(struct async_early *e, const struct drps_rows *now,
                     const struct drps_rows *next, unsigned late, uint64_t *bits_out)
{
    size_t n = 0;
    flip_marks(e, now);
    for (size_t i = 0; i < next->n; i++) {
        const uint32_t frame = next->index[i];
        if ((e->marks[frame / 64] >> frame % 64 & 1) != late) continue;
        e->chosen[n++] = frame;
        if (bits_out) bits_out[i / 64] |= UINT64_C(1) << i % 64;
    }
    flip_marks(e, now);
    return n;
}

/* ---- Messages ---- */

static int send_values(struct async_early *e, uint32_t to, uint64_t step, uint32_t more,
                       const struct drps_piece *piece, struct drps_err *err)
{
    const struct drps_net_send send = {.to = to,
                                       .part = DRPS_NET_WORKER,
                                       .type = DRPS_MESSAGE_AHEAD,
                                       .tag = to | more,
                                       .round = step,
                                       .pieces = piece,
                                       .n = 1};
    return drps_shared_buffer_send(e->values[to], e->job->o.net, &send, e->job->o.wait_ms, err);
}

/* Returns the bytes of the first n frames that were chosen. */
static size_t gather_chosen(const struct async_early *e, const struct drps_rows *next, size_t n,
                            void *out)
{
    const struct drps_rows rows = {
        .base = next->base, .stride = next->stride, .index = e->chosen, .n = n};
    return drps_async_write_rows(e->job, &rows, out);
}

/* The n rows of `next` that were chosen, whose bits are in *message, which is their marks so far:
 * puts them behind, and counts. Returns the flag of the message's tag. */
static uint32_t put_chosen(struct async_early *e, uint32_t to, uint64_t step,
                           const struct drps_rows *next, size_t n, struct drps_piece *message,
                           struct drps_traffic *sent)
{
    const uint64_t *bits = message->data;
    unsigned char *at = e->values[to]->data + message->bytes;
    struct drps_rows rows = *next;
    const size_t fresh = drps_async_fresh_write(e->fresh, step, to, bits, &rows, at);
    const size_t left = fresh ? rows.n : n;
    const size_t bytes =
        fresh ? drps_async_write_rows(e->job, &rows, at + fresh) : gather_chosen(e, next, n, at);
    const uint64_t head = message->bytes + fresh, last = fresh ? sizeof(head) : 0;
    memcpy(at + fresh + bytes, &head, last);
    message->bytes = head + bytes + last;
    drps_traffic_add(sent, DRPS_TRAFFIC_AHEAD, to, left, bytes);
    drps_traffic_add(sent, DRPS_TRAFFIC_FRESH, to, n - left, 0);
    drps_traffic_add(sent, DRPS_TRAFFIC_MARKS, to, 0, head + last);
    return fresh ? ASYNC_FRESH : 0;
}

int drps_async_early_send(struct async_early *e, uint32_t to, uint64_t step,
                          const struct drps_rows *now, const struct drps_rows *next,
                          struct drps_traffic *sent, struct drps_err *err)
{
    const size_t marks = drps_async_mark_bytes(next->n), row = e->job->dim * sizeof(float);
    int rc = drps_shared_buffer_renew(&e->values[to], 2 * marks + next->n * row + 3 * ALIGNED, err);
    if (rc == 0) rc = reserve_marks(e, now, next, err);
    if (rc < 0) return rc;
    unsigned char *data = e->values[to]->data;
    struct drps_piece piece = {data, marks};
    memset(data, 0, marks);
    const size_t n = choose(e, now, next, 0, (uint64_t *)(void *)data);
    const uint32_t more = n < next->n ? ASYNC_AHEAD_MORE : 0;
    const uint32_t fresh = put_chosen(e, to, step, next, n, &piece, sent);
    e->used[to] = (piece.bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
    e->rest[to] = more ? step : NONE;
    return send_values(e, to, step, more | fresh, &piece, err);
}

int drps_async_early_rest(struct async_early *e, uint32_t to, const struct drps_rows *now,
                          const struct drps_rows *next, struct drps_traffic *sent,
                          struct drps_err *err)
{
    const uint64_t step = e->rest[to];
    unsigned char *data = e->values[to]->data + e->used[to];
    const size_t n = next ? choose(e, now, next, 1, NULL) : 0;
    const struct drps_piece piece = {data, n ? gather_chosen(e, next, n, data) : 0};
    e->rest[to] = NONE;
    drps_traffic_add(sent, DRPS_TRAFFIC_AHEAD, to, n, piece.bytes);
    return send_values(e, to, step, 0, &piece, err);
}

int drps_async_early_is_due(const struct async_early *e, uint32_t to)
{
    return e->rest[to] != NONE;
}

uint64_t drps_async_early_step(const struct async_early *e, uint32_t to)
{
    return e->rest[to];
}

/* ---- Opening ---- */

void drps_async_early_begin(struct async_early *e, struct async_fresh *fresh)
{
    e->fresh = fresh;
    for (uint32_t r = 0; r < e->job->ranks; r++)
        e->rest[r] = NONE;
}

int drps_async_early_new(const struct async_job *job, struct async_early **out,
                         struct drps_err *err)
{
    const size_t ranks = job->ranks;
    struct async_early *e = *out = calloc(1, sizeof(*e));
    if (!e) return drps_err_set(err, -ENOMEM, "no memory for parameters that are sent ahead");
    e->job = job;
    e->chosen =
        drps_array_new((size_t)drps_async_part_rows(&job->o.plan->info), sizeof(*e->chosen));
    e->values = calloc(ranks, sizeof(struct drps_shared_buffer *));
    e->used = calloc(ranks, sizeof(*e->used));
    e->rest = calloc(ranks, sizeof(*e->rest));
    if (!e->chosen || !e->values || !e->used || !e->rest)
        return drps_err_set(err, -ENOMEM, "no memory for parameters that are sent ahead");
    drps_async_early_begin(e, NULL);
    return 0;
}

void drps_async_early_free(struct async_early *e)
{
    if (!e) return;
    for (uint32_t r = 0; e->values && r < e->job->ranks; r++)
        drps_shared_buffer_release(e->values[r]);
    free(e->marks);
    free(e->chosen);
    free(e->values);
    free(e->used);
    free(e->rest);
    free(e);
}
