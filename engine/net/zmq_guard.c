/*
 * Who may connect. ZeroMQ asks for each connection whether its key is welcome (ZAP, ZeroMQ's RFC
 * 27); the answer names the rank that the key belongs to, and ZeroMQ attaches it to every frame as
 * "User-Id". A monitor tells of connections that got no further than that.
 */
#ifdef DRPS_WITH_ZMQ

#include "engine/net/zmq_internal.h"

#include <stdio.h>
#include <string.h>

#define ZAP_ADDRESS "inproc://zeromq.zap.01" /* fixed by the protocol */
#define MONITOR_ADDRESS "inproc://drps-monitor"

enum {
    ZAP_FRAMES = 7,
    ZAP_FRAME_BYTES = 256,
    REFUSED = ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
              ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL
};

int drps_zmq_guard_open(struct zmq_net *z, struct drps_err *err)
{
    if (z->secured) {
        z->zap = zmq_socket(z->context, ZMQ_REP);
        if (!z->zap || zmq_bind(z->zap, ZAP_ADDRESS))
            return drps_zmq_failed("open", ZAP_ADDRESS, err);
    }
    if (zmq_socket_monitor(z->pull, MONITOR_ADDRESS, REFUSED))
        return drps_zmq_failed("monitor", "the receiving socket", err);
    z->monitor = zmq_socket(z->context, ZMQ_PAIR);
    if (!z->monitor || zmq_connect(z->monitor, MONITOR_ADDRESS))
        return drps_zmq_failed("connect", MONITOR_ADDRESS, err);
    return 0;
}

struct zap_request { /* version, id, domain, address, routing id, mechanism, key */
    char frames[ZAP_FRAMES][ZAP_FRAME_BYTES];
    size_t bytes[ZAP_FRAMES];
};

/* 1: a whole request; frames of a wrong number or size make it one that is refused. */
static int read_request(void *zap, struct zap_request *q)
{
    memset(q, 0, sizeof(*q));
    for (unsigned i = 0;; i++) {
        char over[ZAP_FRAME_BYTES];
        int more = 0;
        size_t size = sizeof(more);
        const int n =
            zmq_recv(zap, i < ZAP_FRAMES ? q->frames[i] : over, ZAP_FRAME_BYTES, ZMQ_DONTWAIT);
        if (n < 0) return 0;
        if (i < ZAP_FRAMES) q->bytes[i] = (size_t)n;
        if (zmq_getsockopt(zap, ZMQ_RCVMORE, &more, &size) || !more) return 1;
    }
}

/* The rank of the key, or the count of ranks. */
static uint32_t rank_of(const struct zmq_net *z, const struct zap_request *q)
{
    uint32_t r = 0;
    if (q->bytes[5] != 5 || memcmp(q->frames[5], "CURVE", 5) != 0 ||
        q->bytes[6] != sizeof(z->peers[0].public_key))
        return z->net.o.count;
    while (r < z->net.o.count &&
           (r == z->net.o.rank || memcmp(q->frames[6], z->peers[r].public_key, q->bytes[6]) != 0))
        r++;
    return r;
}

void drps_zmq_guard_answer(struct zmq_net *z)
{
    struct zap_request q;
    while (z->zap && read_request(z->zap, &q)) {
        const uint32_t r = rank_of(z, &q);
        const int ok = r < z->net.o.count;
        const size_t id_bytes = q.bytes[1] < ZAP_FRAME_BYTES ? q.bytes[1] : ZAP_FRAME_BYTES;
        char user[16] = "";
        if (ok) (void)snprintf(user, sizeof(user), "%u", r);
        /* An answer that does not get through refuses the connection, too. */
        (void)zmq_send(z->zap, "1.0", 3, ZMQ_SNDMORE | ZMQ_DONTWAIT);
        (void)zmq_send(z->zap, q.frames[1], id_bytes, ZMQ_SNDMORE | ZMQ_DONTWAIT);
        (void)zmq_send(z->zap, ok ? "200" : "400", 3, ZMQ_SNDMORE | ZMQ_DONTWAIT);
        (void)zmq_send(z->zap, ok ? "OK" : "NO", 2, ZMQ_SNDMORE | ZMQ_DONTWAIT);
        (void)zmq_send(z->zap, user, strlen(user), ZMQ_SNDMORE | ZMQ_DONTWAIT);
        (void)zmq_send(z->zap, "", 0, ZMQ_DONTWAIT);
    }
}

void drps_zmq_guard_count(struct zmq_net *z)
{
    char event[16], address[ZAP_FRAME_BYTES]; /* each event: number and value, then the address */
    while (zmq_recv(z->monitor, event, sizeof(event), ZMQ_DONTWAIT) >= 0) {
        (void)zmq_recv(z->monitor, address, sizeof(address), ZMQ_DONTWAIT);
        pthread_mutex_lock(&z->lock);
        z->net.stats.strangers++;
        pthread_mutex_unlock(&z->lock);
    }
}

#endif
