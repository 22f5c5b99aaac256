/*
 * Who may connect. ZeroMQ asks for each connection whether its key is welcome (ZAP, ZeroMQ's RFC
 * 27); the answer names the rank that the key belongs to, and ZeroMQ attaches it to every frame as
 * "User-Id". A monitor tells of connections that come, that end, and that got no further than that.
 *
 * A connection has two seconds to say who it is, and may hold an unfinished frame and an open file
 * until then. So that those who only hold connections cost the job neither its memory nor its
 * files, no more than some are let in at a time: the listening socket drops what asks for more, by
 * a filter that drops everything, until some have gone. Whoever is connected notices nothing.
 */
#ifdef DRPS_WITH_ZMQ

#include "net/zmq/zmq_internal.h"

#include <linux/filter.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define ZAP_ADDRESS "inproc://zeromq.zap.01" /* fixed by the protocol */
#define MONITOR_ADDRESS "inproc://drps-monitor"

enum {
    ZAP_FRAMES = 7,
    ZAP_FRAME_BYTES = 256,
    FEWER = NET_ZMQ_STRANGERS_MAX / 2, /* until so many strangers are left none is let in */
    REFUSED = ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
              ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL
};

int drps_zmq_guard_open(struct net_zmq *z, struct drps_err *err)
{
    if (z->secured) {
        z->zap = zmq_socket(z->context, ZMQ_REP);
        if (!z->zap || zmq_bind(z->zap, ZAP_ADDRESS))
            return drps_zmq_failed("open", ZAP_ADDRESS, err);
    }
    if (zmq_socket_monitor(z->pull, MONITOR_ADDRESS,
                           REFUSED | ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED))
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
static uint32_t rank_of(const struct net_zmq *z, const struct zap_request *q)
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

void drps_zmq_guard_answer(struct net_zmq *z)
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

/* 1: whoever asks is not heard, until 0. */
static int shut(const struct net_zmq *z, int on)
{
    struct sock_filter drop[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
    const struct sock_fprog filter = {1, drop};
    const int none = 0;
    return on ? setsockopt(z->listener, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter))
              : setsockopt(z->listener, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none));
}

/* Not too many at a time. A Unix socket is open to this user alone, and has no need of it. */
static void limit_visitors(struct net_zmq *z)
{
    const uint64_t most = z->net.o.count + (z->shut ? FEWER : NET_ZMQ_STRANGERS_MAX);
    const int crowded = z->visitors >= most;
    if (z->listener >= 0 && crowded != z->shut && shut(z, crowded) == 0) z->shut = crowded;
}

void drps_zmq_guard_count(struct net_zmq *z)
{
    char event[16], address[ZAP_FRAME_BYTES]; /* each event: number and value, then the address */
    uint64_t refused = 0;
    while (zmq_recv(z->monitor, event, sizeof(event), ZMQ_DONTWAIT) >= 0) {
        uint16_t what;
        memcpy(&what, event, sizeof(what));
        (void)zmq_recv(z->monitor, address, sizeof(address), ZMQ_DONTWAIT);
        if (what == ZMQ_EVENT_ACCEPTED)
            z->visitors++;
        else if (what == ZMQ_EVENT_DISCONNECTED)
            z->visitors -= z->visitors > 0;
        else
            refused++;
        limit_visitors(z);
    }
    if (!refused) return;
    pthread_mutex_lock(&z->lock);
    z->net.stats.strangers += refused;
    pthread_mutex_unlock(&z->lock);
}

#endif
