/* Sending to a peer: net's own frames first, then the parts' messages in turn, a piece each. */
#ifdef DRPS_WITH_ZMQ

#include "net/zmq/zmq_internal.h"

#include <assert.h>
#include <string.h>

#include "base/drps_clock.h"

enum {
    BORROW_MIN = 16 << 10, /* shorter pieces are cheaper to copy */
    SHORT_MAX =
        256 << 10,     /* a sender's time for a checksum is shorter than waking the socket thread */
    SHORT_AT_ONCE = 8, /* messages that a sender sends before the socket thread gets the socket */
    AGAIN_MS = 500,    /* before a connection that was given up is made again */
    GREETINGS_MOST = 2, /* after the first one that a connection is given: each is two frames */
};
static_assert((uint64_t)SHORT_MAX <= WIRE_PIECE_BYTES, "a short message is one piece");
static_assert(2 * (1 + GREETINGS_MOST) < NET_ZMQ_QUEUED_PIECES, "greetings do not fill the queue");

static int takes_more(void *push)
{
    int events = 0;
    size_t n = sizeof(events);
    return zmq_getsockopt(push, ZMQ_EVENTS, &events, &n) == 0 && (events & ZMQ_POLLOUT);
}

/* Send header and payload (or none: NULL), which it takes over. 0: the socket took neither. */
static int put(struct net_zmq *z, uint32_t r, struct wire_head *head, zmq_msg_t *payload)
{
    struct net_zmq_peer *peer = &z->peers[r];
    zmq_msg_t first;
    int ok = zmq_msg_init_size(&first, WIRE_HEAD_BYTES) == 0;
    if (ok) {
        head->sequence = peer->frames->sequence;
        head->incarnation = head->type == WIRE_HELLO ? 0 : peer->frames->incarnation;
        drps_wire_encode(head, payload ? zmq_msg_data(payload) : NULL,
                         payload ? zmq_msg_size(payload) : 0, zmq_msg_data(&first));
        ok = zmq_msg_send(&first, peer->push, ZMQ_DONTWAIT | (payload ? ZMQ_SNDMORE : 0)) >= 0;
        if (!ok) (void)zmq_msg_close(&first);
    }
    /* A socket that took the first frame of a message takes the others. */
    if (ok && payload) ok = zmq_msg_send(payload, peer->push, ZMQ_DONTWAIT) >= 0;
    if (!ok) {
        if (payload) (void)zmq_msg_close(payload);
        return 0;
    }
    peer->frames->sequence++;
    peer->frames->sent_ns = drps_clock_ns();
    return 1;
}

static int put_frame(struct net_zmq *z, uint32_t r, uint8_t type, unsigned part, uint32_t tag,
                     uint64_t round, const void *payload, size_t bytes)
{
    struct wire_head head = drps_frames_head(&z->net, r, type, part, round, bytes);
    head.tag = tag;
    zmq_msg_t m;
    if (!takes_more(z->peers[r].push)) return 0;
    if (!bytes) return put(z, r, &head, NULL);
    if (zmq_msg_init_size(&m, bytes)) return 0;
    memcpy(zmq_msg_data(&m), payload, bytes);
    return put(z, r, &head, &m);
}

/* A net_frames_put. */
static int put_control(void *zmq, uint32_t r, uint8_t type, unsigned part, uint64_t round)
{
    return put_frame(zmq, r, type, part, 0, round, NULL, 0);
}

static int put_hello(struct net_zmq *z, uint32_t r)
{
    uint8_t bytes[WIRE_HELLO_BYTES];
    drps_frames_hello(&z->net, z->incarnation, bytes);
    return put_frame(z, r, WIRE_HELLO, 0, 0, 0, bytes, sizeof(bytes));
}

static void frame_sent(void *data, void *out)
{
    (void)data;
    drps_net_out_unhold(out);
}

/* The next `bytes` bytes of `out` as a frame; 0: no memory, try again later. */
static int next_frame(struct net_out *out, size_t bytes, zmq_msg_t *m)
{
    const void *from = bytes >= BORROW_MIN ? drps_net_out_here(out, bytes) : NULL;
    if (from) {
        /* ZeroMQ only reads what it is given here. */
        if (zmq_msg_init_data(m, (void *)(uintptr_t)from, bytes, frame_sent, out)) return 0;
        atomic_fetch_add_explicit(&out->holders, 1, memory_order_relaxed);
        return 1;
    }
    if (zmq_msg_init_size(m, bytes)) return 0;
    drps_net_out_copy(out, bytes, zmq_msg_data(m));
    return 1;
}

/* One piece of a message; 1 when it was sent. */
static int put_piece(struct net_zmq *z, uint32_t r, struct net_out *out)
{
    const size_t bytes = drps_net_out_next(out);
    struct wire_head head = out->head;
    zmq_msg_t m;
    if (!takes_more(z->peers[r].push)) return 0;
    if (!bytes) return put(z, r, &head, NULL);
    if (!next_frame(out, bytes, &m) || !put(z, r, &head, &m)) return 0;
    drps_net_out_move(out, bytes);
    return 1;
}

/* Take a message that has gone from the queue, and put it before `sent`. */
static void finish(struct net_zmq *z, uint32_t r, struct net_out *out, struct net_out **sent)
{
    drps_frames_sent(&z->net, &z->frames[r], out);
    out->next = *sent;
    *sent = out;
}

/* `sending` held: messages as far as the socket takes them. 0: some wait. */
static int put_messages(struct net_zmq *z, uint32_t r, struct net_out **sent)
{
    int longer;
    for (struct net_out *out;
         (out = drps_frames_next(&z->net, &z->frames[r], UINT64_MAX, &longer));) {
        if (!put_piece(z, r, out)) return 0;
        if (out->head.offset == out->head.message_bytes) finish(z, r, out, sent);
    }
    return 1;
}

/* Hand over some short messages, past long ones: the socket thread may wait for `sending`. */
static int put_short(struct net_zmq *z, uint32_t r, struct net_out **sent)
{
    uint64_t most = SHORT_MAX; /* bytes of all */
    int longer;
    for (unsigned i = 0; i < SHORT_AT_ONCE; i++) {
        struct net_out *out = drps_frames_next(&z->net, &z->frames[r], most, &longer);
        if (!out) return !longer;
        if (!put_piece(z, r, out)) return 0;
        most -= out->head.message_bytes;
        finish(z, r, out, sent);
    }
    return 0;
}

/* No lock held: what is called then is the callers'. */
static void unhold_all(struct net_out *sent)
{
    for (struct net_out *next; sent; sent = next) {
        next = sent->next;
        drps_net_out_unhold(sent);
    }
}

int drps_zmq_send_now(struct net_zmq *z, uint32_t r)
{
    struct net_zmq_peer *peer = &z->peers[r];
    struct net_out *sent = NULL;
    if (pthread_mutex_trylock(&peer->sending)) return 0;
    const int gone =
        peer->hello_sent && !peer->bye_sent && !peer->blocked && put_short(z, r, &sent);
    const int waits = peer->blocked; /* the socket thread will go on by itself */
    pthread_mutex_unlock(&peer->sending);
    unhold_all(sent);
    return gone || waits;
}

/* Who leaves first may be answered before this rank has a reason to leave: the text is then empty.
 */
static int put_bye(struct net_zmq *z, uint32_t r)
{
    char why[WIRE_TEXT_BYTES];
    pthread_mutex_lock(&z->lock);
    memcpy(why, z->why, sizeof(why));
    const uint32_t tag = z->why_stays ? WIRE_BYE_STAYS : 0;
    pthread_mutex_unlock(&z->lock);
    return put_frame(z, r, WIRE_BYE, 0, tag, 0, why, strlen(why));
}

/*
 * ZeroMQ gives a connection up for good when something else answers at the address, for instance a
 * job without keys that is about to end. Until the peer answers, a connection is given fewer frames
 * than its queue has room for: if it takes no more it is gone, and these frames are lost. The old
 * connection ends before the new one begins: over two at a time, frames would overtake each other.
 */
static void connect_again(struct net_zmq_peer *peer)
{
    const uint64_t now = drps_clock_ns();
    if (now - peer->connected_ns < AGAIN_MS * UINT64_C(1000000)) return;
    if (takes_more(peer->push) && peer->greetings <= GREETINGS_MOST) return;
    (void)zmq_disconnect(peer->push, peer->address); /* an error: it has ended already */
    if (zmq_connect(peer->push, peer->address)) return;
    peer->connected_ns = now;
    peer->greetings = 0;
    peer->hello_sent = peer->told = 0;
    peer->frames->sequence = 0;
}

/* A peer that has greeted this process and does not answer has no greeting of it: a process of that
 * rank that was there before has got it. */
static void greet_anew(struct net_zmq_peer *peer)
{
    if (!peer->told || drps_clock_ns() - peer->frames->sent_ns < AGAIN_MS * UINT64_C(1000000))
        return;
    peer->greetings++;
    if (peer->greetings > GREETINGS_MOST) return; /* it is due to connect again */
    peer->hello_sent = peer->told = 0;
    peer->frames->sequence = 0;
}

/* `sending` held, the socket thread's: all that is due. Returns whether something waits for the
 * socket.
 */
static int send_due(struct net_zmq *z, uint32_t r, struct net_out **sent)
{
    struct net_zmq_peer *peer = &z->peers[r];
    pthread_mutex_lock(&z->lock);
    const int leaving = z->leaving, left = z->net.peers[r].left;
    const int greeted = peer->frames->greeted, answers = peer->frames->answers;
    pthread_mutex_unlock(&z->lock);
    if (peer->bye_sent) return 0;
    if (!answers) connect_again(peer);
    if (!answers && greeted) greet_anew(peer);
    if (!peer->hello_sent) peer->hello_sent = put_hello(z, r);
    if (!peer->hello_sent) return 1;
    if (greeted && !peer->told) peer->told = put_control(z, r, WIRE_PING, 0, 0);
    if (answers && !left &&
        (!drps_frames_credit(&z->net, r, peer->frames, put_control, z) ||
         !put_messages(z, r, sent)))
        return 1;
    if (leaving || left) { /* a BYE is answered by one: then both know that nothing is lost */
        peer->bye_sent = put_bye(z, r);
        return !peer->bye_sent;
    }
    const uint64_t ping_ns = drps_frames_ping_ms(&z->net) * UINT64_C(1000000);
    if (answers && drps_clock_ns() - peer->frames->sent_ns >= ping_ns)
        (void)put_control(z, r, WIRE_PING, 0, 0); /* no room: it will be heard of anyway */
    return 0;
}

int drps_zmq_send(struct net_zmq *z, uint32_t r)
{
    struct net_zmq_peer *peer = &z->peers[r];
    struct net_out *sent = NULL;
    pthread_mutex_lock(&peer->sending);
    const int blocked = send_due(z, r, &sent);
    peer->blocked = blocked;
    pthread_mutex_unlock(&peer->sending);
    unhold_all(sent);
    return blocked;
}

#endif
