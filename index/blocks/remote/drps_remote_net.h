/* A link between counting ranks, over a net: the asking side, on rank 0, or a counter's, whose one
 * peer is rank 0. Shared inside index/. docs/wire.md has the messages. */
#ifndef DRPS_INDEX_BLOCKS_REMOTE_REMOTE_NET_H
#define DRPS_INDEX_BLOCKS_REMOTE_REMOTE_NET_H

#include "index/blocks/remote/drps_remote_counts.h"
#include "net/drps_net.h"

/*
 * A counter may have REMOTE_NET_QUEUE answers on their way that nobody takes yet: more than the 64
 * of merges, which are asked for without waiting (drps_remote_count()).
 */
enum { REMOTE_NET_QUEUE = 128, REMOTE_NET_BYTES = 16 << 10 }; /* messages, bytes of one */

struct remote_net {
    struct drps_remote_link link; /* with these: */
    struct drps_remote_link_ops ops;
    struct drps_net *net;    /* borrowed */
    enum drps_net_part here; /* the master asks, servers answer */
    struct {
        struct drps_net_message *message; /* own: NULL, or not all of it is taken */
        size_t taken;
    } peer[DRPS_REMOTE_PEERS_MAX];
    uint64_t waited_ns; /* in send and receive */
};

/* `asks` 1: the peers are all ranks, at most DRPS_REMOTE_PEERS_MAX; 0: rank 0. `close` is the
 * link's; NULL: nothing is done there. */
void drps_remote_net_init(struct remote_net *n, struct drps_net *net, int asks,
                          const atomic_int *stop, void (*close)(struct drps_remote_link *l));
void drps_remote_net_destroy(struct remote_net *n);

/* Tell a peer that nothing will follow: it receives DRPS_E_CLOSED. */
int drps_remote_net_end(struct remote_net *n, unsigned peer, struct drps_err *err);

/* After that: tell a counter that the plan is made, and wait to be told. A failure of rank 0 comes
 * as any rank's, with its name. */
int drps_remote_net_done(struct remote_net *n, unsigned peer, struct drps_err *err);
DRPS_MUST_CHECK
int drps_remote_net_await_done(struct remote_net *n, struct drps_err *err);

#endif
