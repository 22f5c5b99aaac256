/* Receiving from all peers: every frame is checked before a byte of it counts. */
#ifdef DRPS_WITH_ZMQ

#include "net/zmq/zmq_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/drps_clock.h"

enum { FRAMES_AT_ONCE = 64 };

/* ---- Messages that keep ZeroMQ's memory ---- */

static void release(struct net_message *m)
{
    (void)zmq_msg_close((zmq_msg_t *)(void *)m->room);
}

static struct net_message *adopt(void *frame)
{
    void *data = zmq_msg_data(frame);
    const size_t bytes = zmq_msg_size(frame);
    if (bytes == 0 || (uintptr_t)data % 8) return NULL;
    struct net_message *m = drps_net_message_new(sizeof(zmq_msg_t));
    if (!m) return NULL;
    zmq_msg_t *kept = (zmq_msg_t *)(void *)m->room;
    (void)zmq_msg_init(kept);
    if (zmq_msg_move(kept, frame)) {
        drps_net_message_free(&m->pub);
        return NULL;
    }
    m->release = release;
    m->pub.data = zmq_msg_data(kept);
    m->pub.bytes = bytes;
    return m;
}

static void count(struct net_zmq *z, uint64_t *counter)
{
    pthread_mutex_lock(&z->lock);
    ++*counter;
    pthread_mutex_unlock(&z->lock);
}

static void set_hint(struct net_zmq *z, uint32_t r, const char *hint)
{
    pthread_mutex_lock(&z->lock);
    (void)snprintf(z->frames[r].hint, sizeof(z->frames[r].hint), "%s", hint);
    pthread_mutex_unlock(&z->lock);
}

/* The sender is a peer and, with keys, the one whose key it has. */
static int is_peer(const struct net_zmq *z, uint32_t from, const char *user)
{
    char rank[16];
    if (from >= z->net.o.count || from == z->net.o.rank) return 0;
    (void)snprintf(rank, sizeof(rank), "%u", from);
    return !z->secured || (user && strcmp(user, rank) == 0);
}

/* Another version, or a frame that is none. Only one of this job's ranks is worth a message. */
static void refuse(struct net_zmq *z, int rc, const struct wire_head *h, const char *user,
                   struct drps_err *err)
{
    if (rc == DRPS_E_VERSION && h->job_id == z->net.o.job_id && is_peer(z, h->from, user) &&
        !z->frames[h->from].greeted)
        drps_frames_lose(&z->net, h->from, err);
    else
        count(z, &z->net.stats.malformed);
}

/* 1: from a peer, of this job, to this process. */
static int is_ours(struct net_zmq *z, const struct wire_head *h, const char *user)
{
    if (!is_peer(z, h->from, user) || h->to != z->net.o.rank) return 0;
    if (h->job_id != z->net.o.job_id) {
        set_hint(z, h->from, "a process of another job answers as this rank");
        return 0;
    }
    const struct net_frames *peer = &z->frames[h->from];
    if (h->type == WIRE_HELLO) return 1;
    if (h->incarnation == z->incarnation) return peer->greeted;
    if (h->incarnation == 0) return peer->greeted && !peer->answers; /* it gives up at the start */
    if (!peer->greeted) /* it will notice, end, and greet when it is started again */
        set_hint(z, h->from, "it is still in a run with an earlier process of this rank");
    return 0;
}

/* A HELLO after the first one: it was sent again, or another process says that it is this rank.
 * Which of the two is the rank is seen by who falls silent. */
static void greet_again(struct net_zmq *z, uint32_t r, const void *payload, size_t bytes)
{
    struct net_zmq_peer *peer = &z->peers[r];
    struct wire_hello hello;
    if (drps_wire_hello_decode(payload, bytes, &hello, NULL) < 0)
        count(z, &z->net.stats.malformed);
    else if (hello.incarnation == peer->frames->incarnation) {
        if (!peer->frames->answers)
            peer->frames->heard_ns = drps_clock_ns(); /* it waits to be greeted */
        count(z, &z->net.stats.replayed);
    } else
        peer->again_ns = drps_clock_ns();
}

static void set_answers(struct net_zmq *z, uint32_t r)
{
    pthread_mutex_lock(&z->lock);
    z->frames[r].answers = 1;
    pthread_cond_broadcast(&z->net.changed);
    pthread_mutex_unlock(&z->lock);
}

static void handle(struct net_zmq *z, zmq_msg_t *first, zmq_msg_t *payload)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct wire_head h;
    const char *user = zmq_msg_gets(first, "User-Id");
    const int rc = drps_wire_decode(zmq_msg_data(first), zmq_msg_size(first), zmq_msg_data(payload),
                                    zmq_msg_size(payload), &h, &err);
    if (rc < 0) {
        refuse(z, rc, &h, user, &err);
        return;
    }
    if (!is_ours(z, &h, user)) {
        count(z, &z->net.stats.malformed);
        return;
    }
    struct net_frames *f = &z->frames[h.from];
    if (h.type == WIRE_HELLO && f->greeted) {
        greet_again(z, h.from, zmq_msg_data(payload), zmq_msg_size(payload));
        return;
    }
    const int next = drps_link_number(&f->link, &h, &err);
    if (next < 0) drps_frames_lose(&z->net, h.from, &err);
    if (next == 0) count(z, &z->net.stats.replayed);
    if (next != 1) return;
    f->heard_ns = drps_clock_ns();
    if (h.incarnation && !f->answers) set_answers(z, h.from);
    drps_frames_take(&z->net, f, &h, zmq_msg_data(payload), zmq_msg_size(payload), adopt, payload);
}

/* The frames beyond header and payload, which no rank sends. Returns how many there were. */
static int drop_rest(void *pull, zmq_msg_t *last)
{
    int n = 0;
    for (int more = zmq_msg_more(last); more; n++) {
        zmq_msg_t m;
        (void)zmq_msg_init(&m);
        more = zmq_msg_recv(&m, pull, ZMQ_DONTWAIT) >= 0 && zmq_msg_more(&m);
        (void)zmq_msg_close(&m);
    }
    return n;
}

static int receive_one(struct net_zmq *z)
{
    zmq_msg_t first, payload;
    (void)zmq_msg_init(&first);
    (void)zmq_msg_init(&payload);
    const int came = zmq_msg_recv(&first, z->pull, ZMQ_DONTWAIT) >= 0;
    if (came) {
        int ok = 1;
        if (zmq_msg_more(&first)) ok = zmq_msg_recv(&payload, z->pull, ZMQ_DONTWAIT) >= 0;
        if (ok && zmq_msg_more(&payload)) ok = drop_rest(z->pull, &payload) == 0;
        if (ok)
            handle(z, &first, &payload);
        else
            count(z, &z->net.stats.malformed);
    }
    (void)zmq_msg_close(&first);
    (void)zmq_msg_close(&payload);
    return came;
}

void drps_zmq_receive(struct net_zmq *z)
{
    for (int i = 0; i < FRAMES_AT_ONCE && receive_one(z);)
        i++;
}

#endif
