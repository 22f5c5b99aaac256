/*
 * All-gather. What a rank has goes in messages of at most DRPS_NET_GROUP_BYTES, of which the first
 * one begins with the number of all its bytes.
 *
 * No rank waits for ever, even with queues of one message. Each rank sends its message m to all
 * others, if it has as many, then receives message m of each that has as many, for m = 0, 1, ...
 * Suppose that all wait, and take the ranks that have done the fewest of these halves. If one waits
 * to send message m, then another has not received message m - 1, and has done less. If it waits to
 * receive message m, then another has not sent it, and has done less.
 */
#include "net/gather/drps_allgather.h"

#include <errno.h>
#include <string.h>

#include "base/drps_endian.h"
#include "net/drps_transport.h"

enum { HEAD_BYTES = 8, FIRST_BYTES = DRPS_NET_GROUP_BYTES - HEAD_BYTES };

/* A rank's side of a call. */
struct call {
    struct drps_net *net;
    const struct drps_net_allgather *g;
    uint32_t rank, count;
    uint32_t timeout_ms;
};

struct span { /* of a rank's bytes */
    size_t first, n;
};

/* The bytes that message m has of `bytes`. */
static struct span part_of(size_t bytes, size_t m)
{
    const size_t begins = m ? FIRST_BYTES + (m - 1) * (size_t)DRPS_NET_GROUP_BYTES : 0;
    const size_t first = begins < bytes ? begins : bytes, rest = bytes - first;
    const size_t most = m ? DRPS_NET_GROUP_BYTES : FIRST_BYTES;
    return (struct span){first, rest < most ? rest : most};
}

/* 1: there is a message m: the first one of all ranks, others while bytes are left. */
static int has_message(size_t bytes, size_t m)
{
    return !m || part_of(bytes, m).n;
}

static unsigned char *bytes_at(const struct call *c, uint32_t rank, struct span s)
{
    return c->g->all + rank * c->g->most + s.first;
}

static int send_to(const struct call *c, uint32_t to, size_t m, struct drps_err *err)
{
    const size_t bytes = c->g->bytes[c->rank];
    const struct span s = part_of(bytes, m);
    unsigned char head[HEAD_BYTES];
    drps_put_u64(head, bytes);
    const struct drps_piece pieces[2] = {{head, HEAD_BYTES}, {bytes_at(c, c->rank, s), s.n}};
    const struct drps_net_send send = {.to = to,
                                       .type = WIRE_ALL,
                                       .round = c->g->round,
                                       .pieces = m ? pieces + 1 : pieces,
                                       .n = m ? 1 : 2};
    return drps_net_send_part(c->net, &send, WIRE_GROUP, c->timeout_ms, err);
}

/* How many bytes the rank says that it has, if this is the first message. */
static size_t told(const struct call *c, const struct drps_net_message *m, size_t number)
{
    if (number) return c->g->bytes[m->from];
    const uint64_t bytes = m->bytes < HEAD_BYTES ? UINT64_MAX : drps_get_u64(m->data);
    return bytes > c->g->most ? SIZE_MAX : (size_t)bytes;
}

/* The message of the number is of this call, and has what is due of the rank's bytes. */
static int take(const struct call *c, const struct drps_net_message *m, size_t number,
                struct drps_err *err)
{
    const size_t head = number ? 0 : HEAD_BYTES, bytes = told(c, m, number);
    const struct span s = part_of(bytes, number);
    if (m->type != WIRE_ALL || m->round != c->g->round || bytes == SIZE_MAX ||
        m->bytes != head + s.n)
        return drps_err_set(
            err, DRPS_E_PROTO,
            "%s is in another call of the group, or sends too much: type %u, call %llu, %zu bytes, "
            "of %zu; expected %u, %llu, at most %zu",
            c->net->peers[m->from].name, m->type, (unsigned long long)m->round, m->bytes, bytes,
            WIRE_ALL, (unsigned long long)c->g->round, c->g->most);
    c->g->bytes[m->from] = bytes;
    if (s.n) memcpy(bytes_at(c, m->from, s), (const unsigned char *)m->data + head, s.n);
    return 0;
}

static int take_from(const struct call *c, uint32_t from, size_t number, struct drps_err *err)
{
    struct drps_net_message *m;
    int rc = drps_net_receive_part(c->net, WIRE_GROUP, from, c->timeout_ms, &m, err);
    if (rc == 0) rc = take(c, m, number, err);
    drps_net_message_free(m);
    return rc;
}

/* Message m of this rank to all others; the next one comes first, so that not all send to the same.
 */
static int send_all(const struct call *c, size_t m, struct drps_err *err)
{
    int rc = 0;
    if (!has_message(c->g->bytes[c->rank], m)) return 0;
    for (uint32_t k = 1; k < c->count && rc == 0; k++)
        rc = send_to(c, (c->rank + k) % c->count, m, err);
    return rc;
}

/* Message m of all others that have one; *more: some had. */
static int take_all(const struct call *c, size_t m, int *more, struct drps_err *err)
{
    int rc = 0;
    *more = has_message(c->g->bytes[c->rank], m);
    for (uint32_t r = 0; r < c->count && rc == 0; r++) {
        if (r == c->rank || (m && !has_message(c->g->bytes[r], m))) continue;
        *more = 1;
        rc = take_from(c, r, m, err);
    }
    return rc;
}

int drps_net_allgather(struct drps_net *net, const struct drps_net_allgather *gather,
                       uint32_t timeout_ms, struct drps_err *err)
{
    const struct call c = {net, gather, drps_net_rank(net), drps_net_count(net), timeout_ms};
    if (gather->most > DRPS_NET_MESSAGE_MAX || gather->bytes[c.rank] > gather->most)
        return drps_err_set(err, -EINVAL, "%zu bytes are gathered, of %zu at most",
                            gather->bytes[c.rank], gather->most);
    int rc = drps_net_group_begin(net, err), more = 1;
    if (rc < 0) return rc;
    for (size_t m = 0; more && rc == 0; m++) {
        rc = send_all(&c, m, err);
        if (rc == 0) rc = take_all(&c, m, &more, err);
    }
    drps_net_group_end(net);
    return rc;
}
