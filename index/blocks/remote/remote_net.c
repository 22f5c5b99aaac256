/*
 * The link between counting ranks over a net (drps_remote_net.h): bytes in order, cut into
 * messages.
 */
#include "index/blocks/remote/drps_remote_net.h"

#include <errno.h>
#include <string.h>

#include "base/drps_clock.h"

enum { LOOK_MS = 100 }; /* how often waiting looks at `stop` */
enum { TYPE_BYTES = DRPS_NET_TYPE_FIRST, TYPE_END, TYPE_DONE };

static int stopped(const struct remote_net *n, struct drps_err *err)
{
    if (!n->link.stop || !atomic_load_explicit(n->link.stop, memory_order_relaxed)) return 0;
    return drps_err_set(err, DRPS_E_INTERRUPTED, "interrupted while counting with other ranks");
}

/* After a wait that ended with rc: 0 if it is to go on. */
static int look_up(const struct remote_net *n, int rc, const struct drps_err *why,
                   struct drps_err *err)
{
    return rc == -ETIMEDOUT ? stopped(n, err) : drps_err_set(err, rc, "%s", why->text);
}

static int send_message(struct remote_net *n, unsigned peer, uint8_t type, const void *bytes,
                        size_t size, struct drps_err *err)
{
    const struct drps_piece piece = {bytes, size};
    const struct drps_net_send send = {.to = peer,
                                       .part = n->here == DRPS_NET_MASTER ? DRPS_NET_SERVER
                                                                          : DRPS_NET_MASTER,
                                       .type = type,
                                       .pieces = &piece,
                                       .n = size ? 1 : 0};
    const uint64_t begin = drps_clock_ns();
    int rc = stopped(n, err); /* whoever was interrupted has no answer to give */
    while (rc == 0) {
        struct drps_err why = DRPS_ERR_INIT;
        int sent = drps_net_send(n->net, &send, LOOK_MS, &why);
        if (sent == 0) break;
        rc = look_up(n, sent, &why, err);
    }
    n->waited_ns += drps_clock_ns() - begin;
    return rc;
}

static int net_send(struct drps_remote_link *l, unsigned peer, const void *bytes, size_t size,
                    struct drps_err *err)
{
    struct remote_net *n = (struct remote_net *)l;
    int rc = 0;
    for (const char *at = bytes; size && rc == 0;) {
        const size_t piece = size < REMOTE_NET_BYTES ? size : REMOTE_NET_BYTES;
        rc = send_message(n, peer, TYPE_BYTES, at, piece, err);
        at += piece;
        size -= piece;
    }
    return rc;
}

int drps_remote_net_end(struct remote_net *n, unsigned peer, struct drps_err *err)
{
    return send_message(n, peer, TYPE_END, NULL, 0, err);
}

/* The next message of a peer; the end stays there, to be met again. */
static int next_message(struct remote_net *n, unsigned peer, struct drps_err *err)
{
    const uint64_t begin = drps_clock_ns();
    struct drps_net_message *message = NULL;
    int rc = 0;
    drps_net_message_free(n->peer[peer].message);
    n->peer[peer].message = NULL;
    n->peer[peer].taken = 0;
    while (rc == 0 && !message) {
        struct drps_err why = DRPS_ERR_INIT;
        int got = drps_net_receive(n->net, n->here, peer, LOOK_MS, &message, &why);
        if (got < 0) rc = look_up(n, got, &why, err);
    }
    n->peer[peer].message = message;
    n->waited_ns += drps_clock_ns() - begin;
    return rc;
}

static int net_receive(struct drps_remote_link *l, unsigned peer, void *bytes, size_t size,
                       struct drps_err *err)
{
    struct remote_net *n = (struct remote_net *)l;
    for (char *at = bytes; size;) {
        const struct drps_net_message *m = n->peer[peer].message;
        if (m && m->type == TYPE_END)
            return drps_err_set(err, DRPS_E_CLOSED, "rank %u has ended the conversation", peer);
        if (m && m->type != TYPE_BYTES)
            return drps_err_set(err, DRPS_E_PROTO, "rank %u sent a message of type %u", peer,
                                m->type);
        if (!m || n->peer[peer].taken == m->bytes) {
            int rc = next_message(n, peer, err);
            if (rc < 0) return rc;
            continue;
        }
        const size_t left = m->bytes - n->peer[peer].taken, part = left < size ? left : size;
        memcpy(at, (const char *)m->data + n->peer[peer].taken, part);
        n->peer[peer].taken += part;
        at += part;
        size -= part;
    }
    return 0;
}

int drps_remote_net_done(struct remote_net *n, unsigned peer, struct drps_err *err)
{
    return send_message(n, peer, TYPE_DONE, NULL, 0, err);
}

int drps_remote_net_await_done(struct remote_net *n, struct drps_err *err)
{
    int rc = next_message(n, 0, err);
    if (rc < 0 || n->peer[0].message->type == TYPE_DONE) return rc;
    return drps_err_set(err, DRPS_E_PROTO, "rank 0 sent a message of type %u after the end",
                        n->peer[0].message->type);
}

static void close_nothing(struct drps_remote_link *l)
{
    (void)l;
}

void drps_remote_net_init(struct remote_net *n, struct drps_net *net, int asks,
                          const atomic_int *stop, void (*close)(struct drps_remote_link *l))
{
    const unsigned peers = asks ? drps_net_count(net) : 1;
    *n = (struct remote_net){.net = net, .here = asks ? DRPS_NET_MASTER : DRPS_NET_SERVER};
    n->ops = (struct drps_remote_link_ops){net_send, net_receive, close ? close : close_nothing};
    n->link = (struct drps_remote_link){.ops = &n->ops,
                                        .peers = peers,
                                        .ranks = 1,
                                        .memory_bytes = UINT64_C(2) * peers * REMOTE_NET_QUEUE *
                                                        REMOTE_NET_BYTES, /* in and out */
                                        .stop = stop};
}

void drps_remote_net_destroy(struct remote_net *n)
{
    for (unsigned i = 0; i < n->link.peers; i++)
        drps_net_message_free(n->peer[i].message);
}
