/* Receiving from all peers: every frame is checked before a byte of it counts. */
#ifdef DRPS_WITH_ZMQ

#include "net/zmq/zmq_internal.h"

#include <ctype.h>
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

static void fail(struct net_zmq *z, uint32_t r, struct drps_err *err)
{
    (void)drps_err_context(err, "%s", z->net.peers[r].name);
    pthread_mutex_lock(&z->lock);
    drps_net_lost(&z->net, r, err);
    pthread_mutex_unlock(&z->lock);
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
    (void)snprintf(z->peers[r].hint, sizeof(z->peers[r].hint), "%s", hint);
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

static void hash_text(const uint8_t *hash, char out[17])
{
    for (size_t i = 0; i < 8; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

static int check_hello(const struct drps_net_options *o, const void *payload, size_t bytes,
                       struct wire_hello *hello, struct drps_err *err)
{
    char theirs[17], ours[17];
    const int rc = drps_wire_hello_decode(payload, bytes, hello, err);
    if (rc < 0) return rc;
    if (hello->count != o->count)
        return drps_err_set(err, DRPS_E_CONFIG, "expects %u ranks, this rank %u", hello->count,
                            o->count);
    if (memcmp(hello->plan_hash, o->plan_hash, sizeof(hello->plan_hash)) != 0) {
        hash_text(hello->plan_hash, theirs);
        hash_text(o->plan_hash, ours);
        return drps_err_set(err, DRPS_E_CONFIG,
                            "has another plan: its hash begins with %s, here with %s; give all "
                            "ranks the same plan",
                            theirs, ours);
    }
    if (hello->queue_messages != o->queue_messages)
        return drps_err_set(err, DRPS_E_CONFIG, "has queues of %u messages, this rank of %u",
                            hello->queue_messages, o->queue_messages);
    return 0;
}

static void greet(struct net_zmq *z, uint32_t r, const void *payload, size_t bytes)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct wire_hello hello;
    if (check_hello(&z->net.o, payload, bytes, &hello, &err) < 0) {
        fail(z, r, &err);
        return;
    }
    pthread_mutex_lock(&z->lock);
    z->peers[r].greeted = 1;
    z->peers[r].incarnation = hello.incarnation;
    memcpy(z->net.peers[r].message_bytes, hello.message_bytes, sizeof(hello.message_bytes));
    pthread_cond_broadcast(&z->net.changed);
    pthread_mutex_unlock(&z->lock);
}

static int take_credit(struct net_zmq *z, const struct wire_head *h, struct drps_err *err)
{
    struct net_peer *peer = &z->net.peers[h->from];
    int rc = 0;
    pthread_mutex_lock(&z->lock);
    if (h->round < peer->credit[h->part] || h->round > peer->sent[h->part])
        rc = drps_err_set(err, DRPS_E_PROTO, "credit for %llu of %llu messages",
                          (unsigned long long)h->round, (unsigned long long)peer->sent[h->part]);
    else
        peer->credit[h->part] = h->round;
    pthread_cond_broadcast(&z->net.changed);
    pthread_mutex_unlock(&z->lock);
    return rc;
}

static void take_bye(struct net_zmq *z, const struct wire_head *h, const char *payload,
                     size_t bytes)
{
    char why[WIRE_TEXT_BYTES];
    size_t n = bytes < sizeof(why) - 1 ? bytes : sizeof(why) - 1;
    for (size_t i = 0; i < n; i++) /* it ends up on a terminal */
        why[i] = isprint((unsigned char)payload[i]) ? payload[i] : '?';
    why[n] = '\0';
    pthread_mutex_lock(&z->lock);
    drps_net_left(&z->net, h->from, why, h->tag == WIRE_BYE_STAYS);
    pthread_mutex_unlock(&z->lock);
}

static int take_piece(struct net_zmq *z, const struct wire_head *h, zmq_msg_t *payload,
                      struct drps_err *err)
{
    struct net_peer *peer = &z->net.peers[h->from];
    uint64_t taken[WIRE_PARTS], limits[WIRE_PARTS];
    const struct drps_link_rules rules = {limits, taken, z->net.o.queue_messages};
    struct net_message *m;
    memcpy(limits, z->net.o.message_bytes, sizeof(z->net.o.message_bytes));
    limits[WIRE_GROUP] = DRPS_NET_GROUP_BYTES;
    pthread_mutex_lock(&z->lock);
    memcpy(taken, peer->taken, sizeof(taken));
    pthread_mutex_unlock(&z->lock);
    const int rc = drps_link_add(&z->peers[h->from].link, &rules, h, zmq_msg_data(payload),
                                 zmq_msg_size(payload), adopt, payload, &m, err);
    if (rc < 0 || !m) return rc;
    pthread_mutex_lock(&z->lock);
    drps_net_deliver(&z->net, m);
    pthread_mutex_unlock(&z->lock);
    return 0;
}

static void dispatch(struct net_zmq *z, const struct wire_head *h, zmq_msg_t *payload)
{
    struct drps_err err = DRPS_ERR_INIT;
    switch (h->type) {
    case WIRE_HELLO:
        greet(z, h->from, zmq_msg_data(payload), zmq_msg_size(payload));
        break;
    case WIRE_PING:
        break;
    case WIRE_CREDIT:
        if (take_credit(z, h, &err) < 0) fail(z, h->from, &err);
        break;
    case WIRE_BYE:
        take_bye(z, h, zmq_msg_data(payload), zmq_msg_size(payload));
        break;
    default:
        if (take_piece(z, h, payload, &err) < 0) fail(z, h->from, &err);
    }
}

/* Another version, or a frame that is none. Only one of this job's ranks is worth a message. */
static void refuse(struct net_zmq *z, int rc, const struct wire_head *h, const char *user,
                   struct drps_err *err)
{
    if (rc == DRPS_E_VERSION && h->job_id == z->net.o.job_id && is_peer(z, h->from, user) &&
        !z->peers[h->from].greeted)
        fail(z, h->from, err);
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
    const struct net_zmq_peer *peer = &z->peers[h->from];
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
    else if (hello.incarnation == peer->incarnation) {
        if (!peer->answers) peer->heard_ns = drps_clock_ns(); /* it waits to be greeted */
        count(z, &z->net.stats.replayed);
    } else
        peer->again_ns = drps_clock_ns();
}

static void set_answers(struct net_zmq *z, uint32_t r)
{
    pthread_mutex_lock(&z->lock);
    z->peers[r].answers = 1;
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
    if (h.type == WIRE_HELLO && z->peers[h.from].greeted) {
        greet_again(z, h.from, zmq_msg_data(payload), zmq_msg_size(payload));
        return;
    }
    const int next = drps_link_number(&z->peers[h.from].link, &h, &err);
    if (next < 0) fail(z, h.from, &err);
    if (next == 0) count(z, &z->net.stats.replayed);
    if (next != 1) return;
    z->peers[h.from].heard_ns = drps_clock_ns();
    if (h.incarnation && !z->peers[h.from].answers) set_answers(z, h.from);
    dispatch(z, &h, payload);
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
