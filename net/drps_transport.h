/*
 * What the transports share: messages under way, each rank's inbox, and who may send how much.
 * Private to net/: inproc.c and zmq/ begin their structs with struct drps_net, and net.c and
 * message.c do what they have in common.
 *
 * Credit: a rank counts the messages that it has handed to its transport for each part of each
 * peer (sent), and the peer tells how many of them its part has taken (credit). A sender waits
 * while sent - credit = queue_messages. So transports and inboxes never have to refuse a message,
 * and never wait.
 *
 * Locks: one a rank (zmq), or one for all ranks of the process (inproc). No callback of the caller
 * and no copy of a payload happens under it.
 */
#ifndef DRPS_NET_TRANSPORT_H
#define DRPS_NET_TRANSPORT_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "net/drps_net.h"
#include "net/drps_wire.h"

enum { DRPS_NET_NAME_BYTES = 320 };

/* A received message. `pub` is what callers see, and comes first. */
struct net_message {
    struct drps_net_message pub;
    struct net_message *next;
    size_t bytes; /* of all of this */
    uint8_t part;
    void (*release)(struct net_message *); /* before the message is freed; NULL: nothing to do */
    _Alignas(16) unsigned char room[];     /* the payload, or what the transport keeps of it */
};

/* Returns a zeroed message with `room` bytes: pub.data points to them and pub.bytes is their
 * number. NULL: no memory. */
struct net_message *drps_net_message_new(uint64_t room);

/* A message to be sent. Its payload is copied in `message` or lies with the caller until done(). */
struct net_out {
    struct net_out *next;
    struct wire_head head;
    struct net_message *message; /* own, or NULL */
    void (*done)(void *ctx);     /* NULL where `message` holds a copy */
    void *ctx;
    _Atomic unsigned holders; /* the queue, and every frame that points into the payload */
    size_t piece, piece_at;   /* what is sent next; head.offset counts the bytes before */
    size_t n;
    struct drps_piece pieces[]; /* [n] */
};

/* What becomes of a payload whose sender has given done(). */
enum net_payload {
    NET_COPIES,  /* nothing: it is copied */
    NET_BORROWS, /* it stays with the sender until the last piece is sent */
    NET_LENDS,   /* of one piece, it stays with the sender until the receiver frees the message */
};

/* Returns the message to send, of `bytes` bytes. NULL: no memory. */
struct net_out *drps_net_out_new(const struct drps_net_send *send, uint64_t bytes,
                                 enum net_payload payload);
/* Returns the message to deliver in this process; from here on `out` belongs to the message that it
 * lends, or is gone. */
struct net_message *drps_net_out_deliver(struct net_out *out);
/* Bytes of the next piece of a message, at most WIRE_PIECE_BYTES; 0: the message is empty, or has
 * gone. */
size_t drps_net_out_next(const struct net_out *out);
/* Where the next `bytes` bytes lie, which are not more than there are; NULL: not in one place. */
const void *drps_net_out_here(const struct net_out *out, size_t bytes);
void drps_net_out_copy(const struct net_out *out, size_t bytes, void *to);
void drps_net_out_move(struct net_out *out, size_t bytes); /* they have gone */
/* Let go of a message; the last holder frees it and calls done(). Any thread, no lock held. */
void drps_net_out_unhold(struct net_out *out);

/* What a rank knows of another one, or of itself. */
struct net_peer {
    char name[DRPS_NET_NAME_BYTES];     /* "rank 2 (host:port)" */
    uint64_t message_bytes[WIRE_PARTS]; /* what its parts take */
    uint64_t sent[WIRE_PARTS], credit[WIRE_PARTS];
    uint64_t taken[WIRE_PARTS]; /* messages of the peer that parts of this rank have taken */
    int left;                   /* 1: it has closed its end */
    int lost;                   /* 1: it died, gave up or broke the protocol when it was needed */
    struct drps_net_peer_stats stats;
};

/* A transport. */
struct net_ops {
    enum net_payload payload; /* where the payload of a message lies meanwhile */
    /* Take a message to another rank over; its credit has been checked. Lock held. */
    void (*carry)(struct drps_net *net, struct net_out *out);
    /* What was carried may go to rank `to`. No lock held; NULL: carry() has done all. */
    void (*flush)(struct drps_net *net, uint32_t to);
    /* peers[from].taken[part] has grown: let the sender know. Lock held. */
    void (*took)(struct drps_net *net, uint32_t from, unsigned part);
    /* Deliver what was sent, say goodbye, and free everything. No caller is inside any more, and
     * none comes. */
    void (*leave)(struct drps_net *net, uint32_t linger_ms, const struct drps_err *why);
};

/* A part's messages that have come, and who waits for one. */
struct net_inbox {
    struct net_message *first, **last;
    pthread_cond_t came;
    unsigned waiting; /* threads */
    uint32_t from;    /* whose message the only one of them waits for; of several DRPS_NET_ANY */
};

/* The beginning of each transport's own struct. */
struct drps_net {
    const struct net_ops *ops;
    struct drps_net_options o; /* defaults filled in */
    pthread_mutex_t *lock;     /* borrowed from the transport; guards all below */
    pthread_cond_t changed;    /* credit, failure, closing */
    struct net_inbox inbox[WIRE_PARTS];
    struct net_peer *peers; /* own [count] */
    struct drps_net_stats stats;
    struct drps_err failure; /* what ended the job */
    uint32_t lost;           /* the rank whose loss that was; DRPS_NET_ANY: none */
    uint32_t needed;         /* the rank whose loss ends it; DRPS_NET_ANY: every rank's does */
    int closing;
    unsigned callers;     /* threads inside a call */
    _Atomic int in_group; /* 1: a thread is in a call of the group; it has the next one to itself */
    uint64_t group_calls;
};

/* Fill in defaults; -EINVAL names the option that is out of range. */
DRPS_MUST_CHECK
int drps_net_options_check(struct drps_net_options *o, struct drps_err *err);

/* Make everything but what the transport owns. drps_net_destroy() accepts a zeroed struct. */
DRPS_MUST_CHECK
int drps_net_init(struct drps_net *net, const struct net_ops *ops, const struct drps_net_options *o,
                  pthread_mutex_t *lock, struct drps_err *err);
void drps_net_destroy(struct drps_net *net);

/* So many milliseconds from now, as pthread_cond_timedwait() on these conditions takes it. */
struct timespec drps_net_deadline(uint32_t ms);

/* ---- What has come, for a transport to say; lock held ---- */

void drps_net_deliver(struct drps_net *net, struct net_message *message); /* takes it over */
void drps_net_fail(struct drps_net *net, const struct drps_err *why);     /* the first one stays */
/* why "": in good order; stays: what it was would fail again. */
void drps_net_left(struct drps_net *net, uint32_t rank, const char *why, int stays);
void drps_net_lost(struct drps_net *net, uint32_t rank, const struct drps_err *why); /* fails if it
                                                                                      is needed */

/* drps_net_send() and drps_net_receive(), for the group's part too. */
DRPS_MUST_CHECK
int drps_net_send_part(struct drps_net *net, const struct drps_net_send *send, unsigned part,
                       uint32_t timeout_ms, struct drps_err *err);
DRPS_MUST_CHECK
int drps_net_receive_part(struct drps_net *net, unsigned part, uint32_t from, uint32_t timeout_ms,
                          struct drps_net_message **message_out, struct drps_err *err);

/* ---- The group's part: group.c has this, for calls of a group in other files too ---- */

/* What every message of one call carries. */
struct net_call {
    uint8_t type;
    uint32_t tag;
    uint64_t round;
};

/* -EBUSY: another thread is in a call of the group. Else drps_net_group_end() follows. */
DRPS_MUST_CHECK
int drps_net_group_begin(struct drps_net *net, struct drps_err *err);
void drps_net_group_end(struct drps_net *net);

DRPS_MUST_CHECK
int drps_net_group_send(struct drps_net *net, const struct net_call *call, uint32_t to,
                        const void *data, size_t bytes, uint32_t timeout_ms, struct drps_err *err);

/* The next message of rank `from`; *message_out is the caller's to free. DRPS_E_PROTO: it is not of
 * `call`, or not of `bytes` bytes. */
DRPS_MUST_CHECK
int drps_net_group_receive(struct drps_net *net, const struct net_call *call, uint32_t from,
                           size_t bytes, uint32_t timeout_ms, struct drps_net_message **message_out,
                           struct drps_err *err);

#endif
