/* The socket thread: it owns a rank's sockets, and waits for them and for messages to send. */
#ifdef DRPS_WITH_ZMQ

#include "net/zmq/zmq_internal.h"

#include <unistd.h>

#include "base/drps_clock.h"

enum { PINGS_MISSED = 4 };

/* Lock held: peer r knows that this rank leaves, and everything before; or never will. */
static int has_parted(const struct net_zmq *z, uint32_t r)
{
    const struct net_zmq_peer *peer = &z->peers[r];
    if (peer->dead || (peer->gone && peer->bye_sent)) return 1;
    return peer->bye_sent && (z->net.peers[r].left || !peer->frames->greeted);
}

/* Lock held. 1: nothing is left to do, or it is too late. */
static int may_go(const struct net_zmq *z)
{
    if (!z->leaving) return 0;
    uint32_t r = 0;
    while (r < z->net.o.count && (r == z->net.o.rank || has_parted(z, r)))
        r++;
    return r == z->net.o.count || drps_clock_ns() >= z->leave_by_ns;
}

/* Another process has greeted as rank r, and the one before has missed some of its PINGs. A rank
 * that goes on is none that was restarted, whoever says so. */
static int was_restarted(const struct net_zmq *z, struct net_zmq_peer *peer, uint64_t now)
{
    const uint64_t ping_ns = drps_frames_ping_ms(&z->net) * UINT64_C(1000000);
    if (!peer->again_ns) return 0;
    if (now - peer->frames->heard_ns > PINGS_MISSED * ping_ns) return 1;
    if (now - peer->again_ns > 2 * PINGS_MISSED * ping_ns) peer->again_ns = 0;
    return 0;
}

static void restarted(struct net_zmq *z, uint32_t r)
{
    struct drps_err err = DRPS_ERR_INIT;
    (void)drps_err_set(&err, DRPS_E_PEER, "rank %u was restarted: start all anew", r);
    z->peers[r].gone = 1;
    drps_net_lost(&z->net, r, &err);
}

/* Who has been silent for too long? Not after this process itself was stopped for a while. */
static void look_at_clock(struct net_zmq *z)
{
    const uint64_t now = drps_clock_ns(), silence_ns = z->net.o.silence_ms * UINT64_C(1000000);
    const int slept = now - z->tick_ns > silence_ns / 2;
    z->tick_ns = now;
    pthread_mutex_lock(&z->lock);
    for (uint32_t r = 0; r < z->net.o.count; r++) {
        struct net_zmq_peer *peer = &z->peers[r];
        if (!peer->frames->greeted || peer->dead || z->net.peers[r].left) continue;
        if (slept) peer->frames->heard_ns = now;
        if (peer->gone) continue;
        if (was_restarted(z, peer, now))
            restarted(z, r);
        else if (now - peer->frames->heard_ns > silence_ns) {
            peer->dead = 1;
            drps_frames_too_silent(&z->net, r);
        }
    }
    pthread_mutex_unlock(&z->lock);
}

/* The caller may know of a rank's end: then nothing will come from there. */
static void ask_who_is_lost(struct net_zmq *z)
{
    struct drps_err err = DRPS_ERR_INIT;
    const uint64_t now = drps_clock_ns();
    if (!z->net.o.lost || now - z->asked_ns < drps_frames_ping_ms(&z->net) * UINT64_C(1000000))
        return;
    z->asked_ns = now;
    const uint32_t r = z->net.o.lost(z->net.o.lost_ctx);
    if (r >= z->net.o.count || r == z->net.o.rank || z->peers[r].dead) return;
    (void)drps_err_set(&err, DRPS_E_PEER, "the process of %s has ended", z->net.peers[r].name);
    pthread_mutex_lock(&z->lock);
    z->peers[r].dead = 1;
    drps_net_lost(&z->net, r, &err);
    pthread_mutex_unlock(&z->lock);
}

static size_t add_item(struct net_zmq *z, size_t n, void *socket, int fd, int events)
{
    z->items[n] = (zmq_pollitem_t){.socket = socket, .fd = fd, .events = (short)events};
    return n + 1;
}

/* Send to all; then wait until there is something to do. */
static void send_and_wait(struct net_zmq *z)
{
    size_t n = add_item(z, 0, NULL, z->wake, ZMQ_POLLIN);
    n = add_item(z, n, z->pull, 0, ZMQ_POLLIN);
    n = add_item(z, n, z->monitor, 0, ZMQ_POLLIN);
    if (z->zap) n = add_item(z, n, z->zap, 0, ZMQ_POLLIN);
    for (uint32_t r = 0; r < z->net.o.count; r++)
        if (r != z->net.o.rank && drps_zmq_send(z, r))
            n = add_item(z, n, z->peers[r].push, 0, ZMQ_POLLOUT);
    pthread_mutex_lock(&z->lock);
    const long wait_ms = may_go(z) ? 0 : (z->leaving ? 10 : drps_frames_ping_ms(&z->net));
    pthread_mutex_unlock(&z->lock);
    if (zmq_poll(z->items, (int)n, wait_ms) > 0 && z->items[0].revents) {
        uint64_t wakes;
        (void)!read(z->wake, &wakes, sizeof(wakes)); /* non-blocking; only to clear it */
    }
}

void *drps_zmq_thread_main(void *arg)
{
    struct net_zmq *z = arg;
    z->tick_ns = drps_clock_ns();
    for (int go = 0; !go;) {
        send_and_wait(z);
        drps_zmq_guard_answer(z);
        drps_zmq_guard_count(z);
        drps_zmq_receive(z);
        look_at_clock(z);
        ask_who_is_lost(z);
        pthread_mutex_lock(&z->lock);
        go = may_go(z);
        pthread_mutex_unlock(&z->lock);
    }
    return NULL;
}

#endif
