/* What a worker has asked its servers for ahead. Each of them answers with one message or two; what
 * is not wanted any more is dropped as it comes. */
#include <string.h>

#include "engine/cluster/async/parts.h"

int drps_async_ahead_ask(struct async_ahead *a, const struct async_job *job, uint64_t step,
                         const uint64_t *needs, struct drps_err *err)
{
    const struct drps_piece piece = {needs, drps_async_needs_bytes(job)};
    int rc = 0;
    a->step = step;
    a->due = job->shape->servers;
    a->wanted = 1;
    memset(a->of, 0, sizeof(a->of));                       /* ASYNC_ANSWER_DUE */
    for (uint32_t i = 0; i < job->ranks && rc == 0; i++) { /* its neighbour first */
        const uint32_t s = (job->rank + 1 + i) % job->ranks;
        if (!drps_rank_serves(job->shape, s)) continue;
        const struct drps_net_send send = {.to = s,
                                           .part = DRPS_NET_SERVER,
                                           .type = DRPS_MESSAGE_AHEAD,
                                           .tag = job->rank,
                                           .round = step,
                                           .pieces = &piece,
                                           .n = 1};
        rc = drps_net_send(job->o.net, &send, job->o.wait_ms, err);
    }
    return rc;
}

/* Returns the bytes before the values of a message that leaves rows out; 0: it is too short. */
static size_t fresh_head(const struct drps_net_message *m)
{
    uint64_t head;
    if (m->bytes < sizeof(head)) return 0;
    memcpy(&head, (const char *)m->data + m->bytes - sizeof(head), sizeof(head));
    return head <= m->bytes - sizeof(head) ? (size_t)head : 0;
}

/* Returns the bytes of the values in an answer's first message, whatever the number of rows is that
 * it has marks for: so many words of marks as fill it with the values that they have bits for. More
 * words always come to more bytes. */
static size_t value_bytes(const struct drps_net_message *m, const struct async_job *job)
{
    const uint64_t *marks = m->data;
    size_t bytes = 0, words = 0;
    if (m->tag & ASYNC_FRESH) return fresh_head(m) ? m->bytes - sizeof(*marks) - fresh_head(m) : 0;
    while ((words + 1) * sizeof(*marks) + bytes <= m->bytes)
        bytes += (size_t)__builtin_popcountll(marks[words++]) * async_row_bytes(job);
    return m->bytes - words * sizeof(*marks);
}

int drps_async_ahead_take(struct async_ahead *a, const struct async_job *job,
                          struct drps_net_message *m)
{
    const int more = (m->tag & ASYNC_AHEAD_MORE) != 0, rest = a->of[m->from] == ASYNC_REST_DUE;
    if (m->type != DRPS_MESSAGE_AHEAD ||
        (m->tag & ~(uint32_t)(ASYNC_AHEAD_MORE | ASYNC_FRESH)) != job->rank ||
        m->round != a->step || !a->due || !drps_rank_serves(job->shape, m->from) ||
        a->of[m->from] == ASYNC_ANSWERED || (more && rest))
        return 0;
    if (m->from != job->rank) a->received += rest ? m->bytes : value_bytes(m, job);
    a->of[m->from] = more ? ASYNC_REST_DUE : ASYNC_ANSWERED;
    a->due -= !more;
    if (!a->wanted)
        drps_net_message_free(m);
    else if (rest)
        a->rest[m->from] = m;
    else
        a->from[m->from] = m;
    return 1;
}

void drps_async_ahead_drop(struct async_ahead *a, const struct async_job *job)
{
    a->wanted = 0;
    for (uint32_t s = 0; s < job->shape->servers; s++) {
        drps_net_message_free(a->from[s]);
        drps_net_message_free(a->rest[s]);
        a->from[s] = a->rest[s] = NULL;
    }
}

uint64_t drps_async_ahead_bytes(const struct async_ahead *a, const struct async_job *job)
{
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < job->shape->servers; s++) {
        if (s == job->rank) continue;
        bytes += (a->from[s] ? a->from[s]->bytes : 0) + (a->rest[s] ? a->rest[s]->bytes : 0);
    }
    return bytes;
}

/* Finds the rows of the first message. Returns whether its bits, its values and the rest's fit. */
static int read_early(const struct async_job *job, const struct drps_net_message *m,
                      const struct drps_net_message *rest, size_t rows,
                      struct drps_fresh_reader *out)
{
    const size_t marks = drps_async_mark_bytes(rows), row_bytes = async_row_bytes(job);
    const uint64_t *bits = m->data;
    const int fresh = (m->tag & ASYNC_FRESH) != 0;
    const size_t last = fresh ? sizeof(uint64_t) : 0;
    size_t n = 0;
    if (m->bytes < marks + last) return 0;
    for (size_t i = 0; i < marks / sizeof(*bits); i++)
        n += (size_t)__builtin_popcountll(bits[i]);
    if (rows % 64 && bits[rows / 64] >> rows % 64) return 0;
    if (drps_fresh_read(job->o.worker->model, (const char *)m->data + marks,
                        m->bytes - marks - last, n, row_bytes, fresh, out) < 0)
        return 0;
    return (rest ? rest->bytes : 0) == (rows - n) * row_bytes &&
           (!fresh || fresh_head(m) == marks + out->head_bytes);
}

/* From the rank's own server there is an address. */
static int put_here(const struct drps_net_message *m, size_t bytes, char *to, struct drps_err *err)
{
    struct drps_message_here here;
    if (m->bytes != sizeof(here)) return drps_async_undue(m, "worker", err);
    memcpy(&here, m->data, sizeof(here));
    if (bytes) memcpy(to, here.values, bytes);
    return 0;
}

int drps_async_ahead_put(const struct async_ahead *a, const struct async_job *job, uint32_t server,
                         size_t rows, char *to, struct drps_err *err)
{
    const struct drps_net_message *m = a->from[server], *more = a->rest[server];
    const size_t row = async_row_bytes(job), params = job->dim * sizeof(float);
    if (server == job->rank) return put_here(m, rows * params, to, err);
    struct drps_fresh_reader early;
    if (!read_early(job, m, more, rows, &early)) return drps_async_undue(m, "worker", err);
    const uint64_t *marks = m->data;
    const char *rest = more ? more->data : NULL;
    for (size_t i = 0; i < rows; i++, to += params) {
        const int is_early = (int)(marks[i / 64] >> i % 64 & 1);
        const void *from = is_early ? (const void *)drps_fresh_value(&early) : rest;
        if (from)
            drps_async_read_rows(job, from, 1, to);
        else
            drps_fresh_make(&early, to);
        if (!is_early) rest += row;
    }
    return 0;
}
