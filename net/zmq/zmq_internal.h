/*
 * Ranks over ZeroMQ. Each rank binds one PULL socket and connects one PUSH socket to each peer, so
 * that each peer has a queue and a bound of its own, and one that is slow or dead holds up no
 * other.
 *
 * All sockets belong to one thread, the rank's courier. It never waits for a part or a peer: credit
 * bounds what is under way, and what a socket does not take yet waits in `first`. So it can always
 * read, answer, and notice who is silent. One thing it shares: whoever sends a short message puts
 * it into the peer's PUSH socket itself if that is free, because waking the courier takes longer
 * than sending. `sending` passes the socket from one thread to the next; the courier waits for it
 * as long as a sender takes for a few short messages.
 *
 * Lock order: a peer's `sending`, then the net's lock.
 */
#ifndef DRPS_NET_ZMQ_ZMQ_INTERNAL_H
#define DRPS_NET_ZMQ_ZMQ_INTERNAL_H

#include "net/drps_link.h"
#include "net/drps_peers.h"

#include <zmq.h>

enum {
    ZMQ_ADDRESS_BYTES = DRPS_PEER_HOST_BYTES + 32,
    ZMQ_STRANGERS_MAX = 64, /* connections beside those of the peers; then none is let in */
    ZMQ_SOCKETS_BESIDE = 8, /* ZeroMQ's, beside one a peer */
};

struct zmq_peer {
    pthread_mutex_t sending; /* guards push, and the fields below that say so */
    void *push;
    char address[ZMQ_ADDRESS_BYTES]; /* where push connects to */
    char hint[160];                  /* why it may not have answered; empty: nothing is known */

    /* under the lock */
    struct net_out *first[WIRE_PARTS], **last[WIRE_PARTS];
    int greeted;          /* its HELLO has come and fits */
    uint64_t incarnation; /* as that says; 0: not known */
    int answers;          /* a frame has come that is meant for this process: it has our HELLO */

    /* under `sending`; only the courier changes the first three */
    int hello_sent, told, bye_sent; /* told: a PING after its HELLO had come */
    int blocked;                    /* the courier waits until push takes more: hands off */
    unsigned turn;                  /* part whose message goes on next */
    uint64_t sequence;              /* frames sent */
    uint64_t sent_ns;

    /* the courier's alone */
    int dead;                      /* it has been silent for too long */
    int gone;                      /* another process has taken its place */
    uint64_t credited[WIRE_PARTS]; /* credit sent */
    uint64_t credited_ns;          /* when all of it was */
    uint64_t connected_ns;
    uint64_t heard_ns;
    uint64_t again_ns; /* when a HELLO of another incarnation came; 0: none did */
    struct link link;
    uint8_t public_key[32]; /* with keys */
};

struct zmq_net {
    struct drps_net net; /* first: callers hold a pointer to it */
    pthread_mutex_t lock;
    int lock_made;
    struct zmq_peer *peers; /* own [count]; this rank's own is unused */
    uint64_t incarnation;   /* of this process */
    int secured;            /* keys are in use */
    void *context, *pull, *zap, *monitor;
    zmq_pollitem_t *items; /* own [count + 4] */
    int wake;              /* eventfd: there is something to send; -1: not open */
    int listener;          /* borrowed from pull: the TCP socket that listens; -1: there is none */
    pthread_t courier;
    int started;
    uint64_t tick_ns;  /* when the courier last looked at the clock */
    uint64_t visitors; /* the courier's: connections that listener let in, and that are open */
    int shut;          /* the courier's: listener lets none in */

    /* under the lock, set by the closing thread */
    int leaving;
    uint64_t leave_by_ns;
    char why[WIRE_TEXT_BYTES];
};

/* zmq_shared.c: a text of ZeroMQ's last failure. Always negative. */
int drps_zmq_failed(const char *doing, const char *what, struct drps_err *err);
/* What ends the job when a rank's process is not the one that began. Always negative. */
int drps_zmq_restarted(uint32_t rank, struct drps_err *err);
/* Any thread: make the courier look again. */
void drps_zmq_wake(struct zmq_net *z);

/* How often a rank says that it is there, and looks at the clock: late by little beside the limit.
 */
static inline uint32_t drps_zmq_ping_ms(const struct zmq_net *z)
{
    const uint32_t ms = z->net.o.silence_ms / 8;
    return ms < 250 ? ms : 250;
}

/* zmq_courier.c */
void *drps_zmq_courier(void *z);

/* zmq_send.c, the courier's: send what is due to peer r as far as its socket takes it. Returns
 * whether something waits for the socket. */
int drps_zmq_send(struct zmq_net *z, uint32_t r);
/* Any thread: send some of what waits for peer r, if it is short and the socket is free. 0: the
 * courier must be woken. */
int drps_zmq_send_now(struct zmq_net *z, uint32_t r);

/* zmq_receive.c, the courier's: take in what has come, a bounded number of frames. */
void drps_zmq_receive(struct zmq_net *z);

/* zmq_guard.c: who may connect. */
int drps_zmq_guard_open(struct zmq_net *z, struct drps_err *err); /* before pull is bound */
void drps_zmq_guard_answer(struct zmq_net *z); /* the courier's: decide on those that ask */
void drps_zmq_guard_count(struct zmq_net *z);  /* the courier's: count those that were refused */

#endif
