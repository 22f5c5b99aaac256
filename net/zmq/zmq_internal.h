/*
 * The transport over ZeroMQ. Each rank binds one PULL socket and connects one PUSH socket to each
 * peer, so that each peer has a queue and a bound of its own, and one that is slow or dead holds up
 * no other.
 *
 * All sockets belong to one thread, the rank's socket thread. It never waits for a part or a peer:
 * credit bounds what is under way, and what a socket does not take yet waits in `first`. So it can
 * always read, answer, and notice who is silent. One thing it shares: whoever sends a short message
 * puts it into the peer's PUSH socket itself if that is free, because waking the socket thread
 * takes longer than sending. `sending` passes the socket from one thread to the next; the socket
 * thread waits for it as long as a sender takes for a few short messages.
 *
 * Lock order: a peer's `sending`, then the net's lock.
 *
 * zmq.c opens and closes a rank's end, zmq_thread.c is the socket thread, which calls zmq_send.c
 * and zmq_receive.c; zmq_guard.c decides who may connect. Names of ours begin with net_zmq or
 * drps_zmq, as zmq_ is ZeroMQ's.
 */
#ifndef DRPS_NET_ZMQ_ZMQ_INTERNAL_H
#define DRPS_NET_ZMQ_ZMQ_INTERNAL_H

#include "net/drps_peers.h"
#include "net/frames/drps_frames.h"

#include <zmq.h>

enum {
    NET_ZMQ_ADDRESS_BYTES = DRPS_PEER_HOST_BYTES + 32,
    NET_ZMQ_STRANGERS_MAX = 64, /* connections beside those of the peers; then none is let in */
    NET_ZMQ_QUEUED_PIECES = 8,  /* of WIRE_PIECE_BYTES, in each socket's queue */
    NET_ZMQ_SOCKETS_BESIDE = 8, /* ZeroMQ's, beside one a peer */
    NET_ZMQ_IO_THREADS_MAX = 8, /* that encrypt */
};

/* A peer. Which thread may touch a field, and under which lock, the comments between them say. */
struct net_zmq_peer {
    pthread_mutex_t sending; /* guards push, and the fields below that say so */
    void *push;
    char address[NET_ZMQ_ADDRESS_BYTES]; /* where push connects to */
    struct net_frames *frames; /* of the net's; what who sends may touch is under `sending` */

    /* under `sending`; only the socket thread changes the first three */
    int hello_sent, told, bye_sent; /* told: a PING after its HELLO had come */
    int blocked;                    /* the socket thread waits until push takes more: hands off */

    /* the socket thread's alone, as what who receives may touch */
    int dead; /* it has been silent for too long */
    int gone; /* another process now runs as this rank */
    uint64_t connected_ns;
    unsigned greetings;     /* after the first one since then */
    uint64_t again_ns;      /* when a HELLO of another incarnation came; 0: none did */
    uint8_t public_key[32]; /* with keys */
};

/* This rank's end. */
struct net_zmq {
    struct drps_net net; /* first: callers hold a pointer to it */
    pthread_mutex_t lock;
    int lock_made;
    struct net_zmq_peer *peers; /* own [count]; this rank's own is unused */
    struct net_frames *frames;  /* own [count] */
    uint64_t incarnation;       /* of this process */
    int secured;                /* keys are in use */
    void *context, *pull, *zap, *monitor;
    zmq_pollitem_t *items; /* own [count + 4] */
    int wake;              /* eventfd: there is something to send; -1: not open */
    int listener;          /* borrowed from pull: the TCP socket that listens; -1: there is none */
    pthread_t thread;
    int started;
    uint64_t tick_ns;  /* when the socket thread last looked at the clock */
    uint64_t asked_ns; /* and when it last asked the caller which rank is lost */
    uint64_t
        visitors; /* the socket thread's: connections that listener let in, and that are open */
    int shut;     /* the socket thread's: listener lets none in */

    /* under the lock, set by the closing thread */
    int leaving;
    uint64_t leave_by_ns;
    char why[WIRE_TEXT_BYTES];
    int why_stays;
};

/* zmq_shared.c: a text of ZeroMQ's last failure. Always negative. */
int drps_zmq_failed(const char *doing, const char *what, struct drps_err *err);
/* Any thread: make the socket thread look again. */
void drps_zmq_wake(struct net_zmq *z);

/* zmq_thread.c */
void *drps_zmq_thread_main(void *z);

/* zmq_send.c, the socket thread's: send what is due to peer r as far as its socket takes it.
 * Returns whether something waits for the socket. */
int drps_zmq_send(struct net_zmq *z, uint32_t r);
/* Any thread: send some of what waits for peer r, if it is short and the socket is free. 0: the
 * socket thread must be woken. */
int drps_zmq_send_now(struct net_zmq *z, uint32_t r);

/* zmq_receive.c, the socket thread's: take in what has come, a bounded number of frames. */
void drps_zmq_receive(struct net_zmq *z);

/* zmq_guard.c: who may connect. */
int drps_zmq_guard_open(struct net_zmq *z, struct drps_err *err); /* before pull is bound */
void drps_zmq_guard_answer(struct net_zmq *z); /* the socket thread's: decide on those that ask */
void drps_zmq_guard_count(
    struct net_zmq *z); /* the socket thread's: count those that were refused */

#endif
