/* What all transports do alike: options, credit, inboxes, waiting, closing. drps_transport.h has
 * the state. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/drps_transport.h"

enum {
    DEFAULT_MESSAGE = 64 << 10,
    DEFAULT_QUEUE = 8,
    DEFAULT_SILENCE = 10000,
    DEFAULT_START = 60000,
    DEFAULT_CUT = 5000,
    AGAIN_MS = 1500
};

static const char *const part_names[WIRE_PARTS] = {"worker", "server", "master", "group"};

int drps_net_options_check(struct drps_net_options *o, struct drps_err *err)
{
    if (o->count < 1 || o->count > DRPS_NET_RANKS_MAX)
        return drps_err_set(err, -EINVAL, "%u ranks: 1 to %d are possible", o->count,
                            DRPS_NET_RANKS_MAX);
    if (o->rank >= o->count)
        return drps_err_set(err, -EINVAL, "rank %u of %u: ranks count from 0", o->rank, o->count);
    if (!o->queue_messages) o->queue_messages = DEFAULT_QUEUE;
    if (!o->silence_ms) o->silence_ms = DEFAULT_SILENCE;
    if (!o->start_ms) o->start_ms = DEFAULT_START;
    if (o->queue_messages > 1024 || o->silence_ms < 100)
        return drps_err_set(err, -EINVAL,
                            "queue_messages %u (at most 1024) or silence_ms %u (at least 100)",
                            o->queue_messages, o->silence_ms);
    for (size_t i = 0; i < DRPS_NET_PARTS; i++) {
        if (!o->message_bytes[i]) o->message_bytes[i] = DEFAULT_MESSAGE;
        if (o->message_bytes[i] > DRPS_NET_MESSAGE_MAX)
            return drps_err_set(err, -EINVAL, "messages of %llu bytes: at most %llu",
                                (unsigned long long)o->message_bytes[i],
                                (unsigned long long)DRPS_NET_MESSAGE_MAX);
    }
    return 0;
}

/*
 * TCP sends again after pauses that double, so that a link which was cut for some time may need as
 * long again until something goes through, and AGAIN_MS for the first pause and for finding the
 * address anew. Before the cut a rank need not have been heard of for a moment: an eighth.
 */
uint32_t drps_net_silence_ms(uint32_t cut_ms)
{
    const uint64_t cut = cut_ms ? cut_ms : DEFAULT_CUT;
    return (uint32_t)((2 * cut + AGAIN_MS) * 8 / 7);
}

static void init_peer(struct net_peer *peer, const struct drps_net_options *o, uint32_t rank)
{
    (void)snprintf(peer->name, sizeof(peer->name), "rank %u", rank);
    for (size_t i = 0; i < DRPS_NET_PARTS; i++)
        peer->message_bytes[i] = o->message_bytes[i]; /* until it has said otherwise */
    peer->message_bytes[WIRE_GROUP] = DRPS_NET_GROUP_BYTES;
}

int drps_net_init(struct drps_net *net, const struct net_ops *ops, const struct drps_net_options *o,
                  pthread_mutex_t *lock, struct drps_err *err)
{
    net->o = *o;
    net->lost = net->needed = DRPS_NET_ANY;
    net->peers = calloc(o->count, sizeof(*net->peers));
    if (!net->peers) return drps_err_set(err, -ENOMEM, "no memory for %u peers", o->count);
    for (uint32_t r = 0; r < o->count; r++)
        init_peer(&net->peers[r], o, r);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&net->changed, &attr);
    for (size_t i = 0; i < WIRE_PARTS; i++) {
        net->inbox[i].last = &net->inbox[i].first;
        pthread_cond_init(&net->inbox[i].came, &attr);
    }
    pthread_condattr_destroy(&attr);
    net->lock = lock;
    net->ops = ops; /* from here on drps_net_destroy() has all of it to undo */
    return 0;
}

void drps_net_destroy(struct drps_net *net)
{
    for (size_t i = 0; i < WIRE_PARTS; i++)
        for (struct net_message *m = net->inbox[i].first, *next; m; m = next) {
            next = m->next;
            drps_net_message_free(&m->pub);
        }
    if (net->ops) {
        pthread_cond_destroy(&net->changed);
        for (size_t i = 0; i < WIRE_PARTS; i++)
            pthread_cond_destroy(&net->inbox[i].came);
    }
    free(net->peers);
}

uint32_t drps_net_rank(const struct drps_net *net)
{
    return net->o.rank;
}

uint32_t drps_net_count(const struct drps_net *net)
{
    return net->o.count;
}

void drps_net_deliver(struct drps_net *net, struct net_message *m)
{
    struct drps_net_peer_stats *stats = &net->peers[m->pub.from].stats;
    struct net_inbox *inbox = &net->inbox[m->part];
    stats->received_messages++;
    stats->received_bytes += m->pub.bytes;
    m->next = NULL;
    *inbox->last = m;
    inbox->last = &m->next;
    if (inbox->from == DRPS_NET_ANY || inbox->from == m->pub.from) /* others sleep on */
        pthread_cond_broadcast(&inbox->came);
}

/* Make every wait end, or look again. Lock held. */
static void wake_all(struct drps_net *net)
{
    pthread_cond_broadcast(&net->changed);
    for (size_t i = 0; i < WIRE_PARTS; i++)
        pthread_cond_broadcast(&net->inbox[i].came);
}

void drps_net_fail(struct drps_net *net, const struct drps_err *why)
{
    if (!net->failure.code) net->failure = *why;
    wake_all(net);
}

void drps_net_lost(struct drps_net *net, uint32_t rank, const struct drps_err *why)
{
    if (net->needed != DRPS_NET_ANY && net->needed != rank) {
        net->peers[rank].left = 1;
        wake_all(net);
        return;
    }
    net->peers[rank].lost = 1;
    if (!net->failure.code) net->lost = rank;
    drps_net_fail(net, why);
}

void drps_net_stop(struct drps_net *net)
{
    struct drps_err why = DRPS_ERR_INIT;
    (void)drps_err_set(&why, DRPS_E_INTERRUPTED, "interrupted");
    pthread_mutex_lock(net->lock);
    drps_net_fail(net, &why);
    pthread_mutex_unlock(net->lock);
}

void drps_net_need(struct drps_net *net, uint32_t rank)
{
    pthread_mutex_lock(net->lock);
    net->needed = rank;
    if (net->lost != DRPS_NET_ANY && net->lost != rank) {
        for (uint32_t r = 0; r < net->o.count; r++)
            if (net->peers[r].lost) net->peers[r].left = 1;
        net->lost = DRPS_NET_ANY;
        drps_err_clear(&net->failure);
    }
    pthread_mutex_unlock(net->lock);
}

int drps_net_is_missing(struct drps_net *net, uint32_t rank)
{
    pthread_mutex_lock(net->lock);
    const int missing = net->peers[rank].left && net->needed != DRPS_NET_ANY && net->needed != rank;
    pthread_mutex_unlock(net->lock);
    return missing;
}

void drps_net_left(struct drps_net *net, uint32_t rank, const char *why, int stays)
{
    struct net_peer *peer = &net->peers[rank];
    peer->left = 1;
    if (why[0]) {
        struct drps_err err = DRPS_ERR_INIT;
        (void)drps_err_set(&err, stays ? DRPS_E_PEER_FAILED : DRPS_E_PEER, "%s gave up: %s",
                           peer->name, why);
        drps_net_lost(net, rank, &err);
    }
    wake_all(net);
}

struct timespec drps_net_deadline(uint32_t ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

static void enter(struct drps_net *net)
{
    pthread_mutex_lock(net->lock);
    net->callers++;
}

static void leave(struct drps_net *net)
{
    net->callers--;
    if (net->closing) pthread_cond_broadcast(&net->changed);
    pthread_mutex_unlock(net->lock);
}

/* The failure that ends every wait, if there is one. */
static int ended(const struct drps_net *net, struct drps_err *err)
{
    if (net->failure.code) return drps_err_set(err, net->failure.code, "%s", net->failure.text);
    if (net->closing) return drps_err_set(err, DRPS_E_CLOSED, "this end is being closed");
    return 0;
}

static int has_left(const struct net_peer *peer, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_PEER, "%s has left the job", peer->name);
}

/* Lock held: wait until peer `to` has room for one more message to `part`. */
static int wait_for_room(struct drps_net *net, uint32_t to, unsigned part, uint32_t timeout_ms,
                         struct drps_err *err)
{
    const struct timespec deadline = drps_net_deadline(timeout_ms);
    const struct net_peer *peer = &net->peers[to];
    int late = 0;
    for (;;) {
        const int rc = ended(net, err);
        if (rc < 0) return rc;
        if (peer->left) return has_left(peer, err);
        if (peer->sent[part] - peer->credit[part] < net->o.queue_messages) return 0;
        if (late)
            return drps_err_set(err, -ETIMEDOUT, "the %s of %s took none of %u messages for %u ms",
                                part_names[part], peer->name, net->o.queue_messages, timeout_ms);
        late = pthread_cond_timedwait(&net->changed, net->lock, &deadline) == ETIMEDOUT;
    }
}

static int payload_bytes(const struct drps_net *net, const struct drps_net_send *send,
                         unsigned part, uint64_t *bytes_out, struct drps_err *err)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < send->n; i++)
        if (__builtin_add_overflow(bytes, send->pieces[i].bytes, &bytes)) bytes = UINT64_MAX;
    const struct net_peer *peer = &net->peers[send->to];
    *bytes_out = bytes;
    if (bytes > peer->message_bytes[part])
        return drps_err_set(err, -EMSGSIZE,
                            "message of %llu bytes to the %s of %s, which takes at most %llu",
                            (unsigned long long)bytes, part_names[part], peer->name,
                            (unsigned long long)peer->message_bytes[part]);
    return 0;
}

static void address(struct net_out *out, const struct drps_net *net,
                    const struct drps_net_send *send, unsigned part, uint64_t bytes)
{
    out->head = (struct wire_head){.type = send->type,
                                   .part = (uint8_t)part,
                                   .from = (uint16_t)net->o.rank,
                                   .to = (uint16_t)send->to,
                                   .tag = send->tag,
                                   .job_id = net->o.job_id,
                                   .round = send->round,
                                   .message_bytes = bytes};
    if (!out->message) return;
    out->message->part = (uint8_t)part;
    out->message->pub.from = net->o.rank;
    out->message->pub.type = send->type;
    out->message->pub.tag = send->tag;
    out->message->pub.round = send->round;
}

int drps_net_send_part(struct drps_net *net, const struct drps_net_send *send, unsigned part,
                       uint32_t timeout_ms, struct drps_err *err)
{
    uint64_t bytes;
    int rc = payload_bytes(net, send, part, &bytes, err);
    if (rc < 0) return rc;
    struct net_out *out =
        drps_net_out_new(send, bytes, send->to == net->o.rank ? NET_COPIES : net->ops->payload);
    if (!out)
        return drps_err_set(err, -ENOMEM, "no memory to send %llu bytes",
                            (unsigned long long)bytes);
    const int copied = !out->done;
    address(out, net, send, part, bytes);

    struct net_peer *peer = &net->peers[send->to];
    enter(net);
    rc = wait_for_room(net, send->to, part, timeout_ms, err);
    if (rc == 0) {
        peer->sent[part]++;
        peer->stats.sent_messages++;
        peer->stats.sent_bytes += bytes;
        net->ops->carry(net, out);
        if (net->ops->flush) {
            pthread_mutex_unlock(net->lock); /* still inside: the net is not closed meanwhile */
            net->ops->flush(net, send->to);
            pthread_mutex_lock(net->lock);
        }
    }
    leave(net);
    if (rc < 0) {
        out->done = NULL; /* the payload stays the caller's */
        drps_net_out_unhold(out);
    } else if (copied && send->done) {
        send->done(send->ctx);
    }
    return rc;
}

int drps_net_send(struct drps_net *net, const struct drps_net_send *send, uint32_t timeout_ms,
                  struct drps_err *err)
{
    if (send->to >= net->o.count || (unsigned)send->part >= DRPS_NET_PARTS ||
        send->type < DRPS_NET_TYPE_FIRST)
        return drps_err_set(err, -EINVAL, "message of type %u to part %u of rank %u", send->type,
                            (unsigned)send->part, send->to);
    return drps_net_send_part(net, send, send->part, timeout_ms, err);
}

/* Lock held: unlink the first message to `part` from `from`; NULL: there is none. */
static struct net_message *take(struct drps_net *net, unsigned part, uint32_t from)
{
    struct net_inbox *inbox = &net->inbox[part];
    for (struct net_message **at = &inbox->first; *at; at = &(*at)->next) {
        struct net_message *m = *at;
        if (from != DRPS_NET_ANY && m->pub.from != from) continue;
        *at = m->next;
        if (!*at) inbox->last = at;
        net->peers[m->pub.from].taken[part]++;
        net->ops->took(net, m->pub.from, part);
        return m;
    }
    return NULL;
}

/* 1: nothing can come any more from the ranks that are waited for. Lock held. */
static int nobody_left(const struct drps_net *net, uint32_t from, struct drps_err *err)
{
    for (uint32_t r = 0; r < net->o.count; r++)
        if ((from == DRPS_NET_ANY || from == r) && net->peers[r].left)
            return has_left(&net->peers[r], err);
    return 0;
}

static int nothing_came(const struct drps_net *net, unsigned part, uint32_t from,
                        struct drps_err *err)
{
    return drps_err_set(err, -ETIMEDOUT, "nothing came from %s for the %s",
                        from == DRPS_NET_ANY ? "any rank" : net->peers[from].name,
                        part_names[part]);
}

/* Lock held: sleep until something may have come. 1: the deadline was first. */
static int wait_for_message(struct drps_net *net, unsigned part, uint32_t from,
                            const struct timespec *deadline)
{
    struct net_inbox *inbox = &net->inbox[part];
    inbox->from = inbox->waiting++ ? DRPS_NET_ANY : from;
    const int rc = pthread_cond_timedwait(&inbox->came, net->lock, deadline);
    inbox->waiting--;
    return rc == ETIMEDOUT;
}

static int receive(struct drps_net *net, unsigned part, uint32_t from,
                   const struct timespec *deadline, struct drps_net_message **message_out,
                   struct drps_err *err)
{
    struct net_message *m = NULL;
    int rc = 0, late = 0;
    enter(net);
    for (;;) {
        rc = ended(net, err);
        if (rc == 0) m = take(net, part, from);
        if (rc == 0 && !m) rc = nobody_left(net, from, err);
        if (rc == 0 && !m && late) rc = nothing_came(net, part, from, err);
        if (m || rc < 0) break;
        late = wait_for_message(net, part, from, deadline);
    }
    leave(net);
    *message_out = m ? &m->pub : NULL;
    return rc;
}

int drps_net_receive_part(struct drps_net *net, unsigned part, uint32_t from, uint32_t timeout_ms,
                          struct drps_net_message **message_out, struct drps_err *err)
{
    const struct timespec deadline = drps_net_deadline(timeout_ms);
    struct drps_err late = DRPS_ERR_INIT;
    int rc = receive(net, part, from, &deadline, message_out, &late);
    if (rc == -ETIMEDOUT) return drps_err_set(err, rc, "%s within %u ms", late.text, timeout_ms);
    return rc < 0 ? drps_err_set(err, rc, "%s", late.text) : 0;
}

static int receive_check(const struct drps_net *net, enum drps_net_part part, uint32_t from,
                         struct drps_err *err)
{
    if ((unsigned)part < DRPS_NET_PARTS && (from < net->o.count || from == DRPS_NET_ANY)) return 0;
    return drps_err_set(err, -EINVAL, "receiving for part %u from rank %u", (unsigned)part, from);
}

int drps_net_receive(struct drps_net *net, enum drps_net_part part, uint32_t from,
                     uint32_t timeout_ms, struct drps_net_message **message_out,
                     struct drps_err *err)
{
    *message_out = NULL;
    int rc = receive_check(net, part, from, err);
    return rc == 0 ? drps_net_receive_part(net, part, from, timeout_ms, message_out, err) : rc;
}

int drps_net_receive_until(struct drps_net *net, enum drps_net_part part, uint32_t from,
                           uint64_t until_ns, struct drps_net_message **message_out,
                           struct drps_err *err)
{
    const struct timespec deadline = {.tv_sec = (time_t)(until_ns / 1000000000),
                                      .tv_nsec = (long)(until_ns % 1000000000)};
    *message_out = NULL;
    int rc = receive_check(net, part, from, err);
    return rc == 0 ? receive(net, part, from, &deadline, message_out, err) : rc;
}

void drps_net_close(struct drps_net *net, uint32_t linger_ms, const struct drps_err *why)
{
    if (!net) return;
    pthread_mutex_lock(net->lock);
    net->closing = 1;
    wake_all(net);
    while (net->callers)
        pthread_cond_wait(&net->changed, net->lock);
    pthread_mutex_unlock(net->lock);
    net->ops->leave(net, linger_ms, why);
}

void drps_net_peer_stats(struct drps_net *net, uint32_t rank, struct drps_net_peer_stats *out)
{
    pthread_mutex_lock(net->lock);
    *out = net->peers[rank].stats;
    pthread_mutex_unlock(net->lock);
}

void drps_net_stats(struct drps_net *net, struct drps_net_stats *out)
{
    pthread_mutex_lock(net->lock);
    *out = net->stats;
    pthread_mutex_unlock(net->lock);
}

void drps_net_tell_strangers(struct drps_net *net, const struct drps_log *log)
{
    struct drps_net_stats stats;
    drps_net_stats(net, &stats);
    if (stats.strangers || stats.malformed)
        drps_log(
            log, DRPS_LOG_INFO,
            "rank %u: %llu connections of strangers were refused or ended before they said who "
            "they are, and %llu frames were dropped",
            net->o.rank, (unsigned long long)stats.strangers, (unsigned long long)stats.malformed);
}
