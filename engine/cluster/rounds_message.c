/* Messages of rounds are taken as their senders sent them; one that was not due is an error. */
#include "engine/cluster/rounds_internal.h"

#include <errno.h>

/* The other half of this rank, or another rank, has failed and says why itself. */
static int told_failed(struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CLOSED, "the other half of this rank has failed");
}

static int of_another_round(const struct drps_net_message *m, uint64_t round, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_PROTO,
                        "rank %u sent message %u for round %llu where one for round %llu was due",
                        m->from, m->type, (unsigned long long)m->round, (unsigned long long)round);
}

/* A message that is not taken where it comes: late, of the asynchronous rounds before, or rows of
 * another worker, which this one keeps until they are due. */
static int is_aside(const struct drps_rounds *r, enum drps_net_part part, uint32_t from,
                    const struct drps_net_message *m)
{
    return (m->type == DRPS_MESSAGE_OPENED && from == r->rank) ||
           (m->type == DRPS_MESSAGE_HANDED && part == DRPS_NET_WORKER && r->o.handing);
}

static int put_aside(struct drps_rounds *r, struct drps_net_message *m, struct drps_err *err)
{
    struct drps_net_message **early =
        m->type == DRPS_MESSAGE_HANDED ? &r->worker.early[m->from] : NULL;
    if (early && !*early && m->round + 1 == r->worker.round) {
        *early = m;
        return 0;
    }
    if (early) return drps_rounds_unexpected(m, DRPS_MESSAGE_PARAMETERS, 0, err);
    drps_net_message_free(m);
    return 0;
}

int drps_rounds_take(struct drps_rounds *r, enum drps_net_part part, uint32_t from, uint64_t round,
                     struct drps_net_message **out, struct drps_err *err)
{
    int rc = drps_net_receive(r->o.net, part, from, r->o.wait_ms, out, err);
    while (rc == 0 && is_aside(r, part, from, *out)) {
        rc = put_aside(r, *out, err);
        *out = NULL;
        if (rc == 0) rc = drps_net_receive(r->o.net, part, from, r->o.wait_ms, out, err);
    }
    if (rc == -ETIMEDOUT) (void)drps_err_context(err, "round %llu", (unsigned long long)round);
    if (rc < 0) return rc;
    if ((*out)->type == DRPS_MESSAGE_FAILED && from == r->rank)
        rc = told_failed(err);
    else if ((*out)->round != round)
        rc = of_another_round(*out, round, err);
    if (rc == 0) return 0;
    drps_net_message_free(*out);
    *out = NULL;
    return rc;
}

int drps_rounds_unexpected(struct drps_net_message *m, uint8_t type, uint64_t bytes,
                           struct drps_err *err)
{
    const int rc = drps_err_set(
        err, DRPS_E_PROTO,
        "rank %u sent message %u of %zu bytes for round %llu where message %u of %llu "
        "bytes was due",
        m->from, m->type, m->bytes, (unsigned long long)m->round, type, (unsigned long long)bytes);
    drps_net_message_free(m);
    return rc;
}

void drps_rounds_tell_failed(struct drps_rounds *r, enum drps_net_part part)
{
    const struct drps_net_send send = {.to = r->rank, .part = part, .type = DRPS_MESSAGE_FAILED};
    const int rc = drps_net_send(r->o.net, &send, r->o.wait_ms, NULL);
    (void)rc; /* else the net is closing, which tells it, too */
}

uint64_t drps_rounds_gradient_bytes(const struct drps_rounds *r, uint32_t other, size_t rows)
{
    if (other == r->rank) return sizeof(struct drps_message_here);
    return rows * (r->dim * sizeof(float) + (r->touches ? sizeof(uint32_t) : 0));
}
