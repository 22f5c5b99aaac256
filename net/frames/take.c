/* Frames that have come: greetings, credit, goodbyes, and pieces of messages. */
#include "net/frames/drps_frames.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void drps_frames_lose(struct drps_net *net, uint32_t r, struct drps_err *why)
{
    (void)drps_err_context(why, "%s", net->peers[r].name);
    pthread_mutex_lock(net->lock);
    drps_net_lost(net, r, why);
    pthread_mutex_unlock(net->lock);
}

void drps_frames_too_silent(struct drps_net *net, uint32_t r)
{
    struct drps_err err = DRPS_ERR_INIT;
    (void)drps_err_set(&err, DRPS_E_PEER,
                       "%s is dead or cut off: nothing was heard of it for %u ms; see its output",
                       net->peers[r].name, net->o.silence_ms);
    drps_net_lost(net, r, &err);
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

static int greet(struct drps_net *net, struct net_frames *f, uint32_t r, const void *payload,
                 size_t bytes, struct drps_err *err)
{
    struct wire_hello hello;
    const int rc = check_hello(&net->o, payload, bytes, &hello, err);
    if (rc < 0) return rc;
    pthread_mutex_lock(net->lock);
    f->greeted = 1;
    f->incarnation = hello.incarnation;
    memcpy(net->peers[r].message_bytes, hello.message_bytes, sizeof(hello.message_bytes));
    pthread_cond_broadcast(&net->changed);
    pthread_mutex_unlock(net->lock);
    return 0;
}

static int take_credit(struct drps_net *net, const struct wire_head *h, struct drps_err *err)
{
    struct net_peer *peer = &net->peers[h->from];
    int rc = 0;
    pthread_mutex_lock(net->lock);
    if (h->round < peer->credit[h->part] || h->round > peer->sent[h->part])
        rc = drps_err_set(err, DRPS_E_PROTO, "credit for %llu of %llu messages",
                          (unsigned long long)h->round, (unsigned long long)peer->sent[h->part]);
    else
        peer->credit[h->part] = h->round;
    pthread_cond_broadcast(&net->changed);
    pthread_mutex_unlock(net->lock);
    return rc;
}

static void take_bye(struct drps_net *net, const struct wire_head *h, const char *payload,
                     size_t bytes)
{
    char why[WIRE_TEXT_BYTES];
    size_t n = bytes < sizeof(why) - 1 ? bytes : sizeof(why) - 1;
    for (size_t i = 0; i < n; i++) /* it ends up on a terminal */
        why[i] = isprint((unsigned char)payload[i]) ? payload[i] : '?';
    why[n] = '\0';
    pthread_mutex_lock(net->lock);
    drps_net_left(net, h->from, why, h->tag == WIRE_BYE_STAYS);
    pthread_mutex_unlock(net->lock);
}

static int take_piece(struct drps_net *net, struct net_frames *f, const struct wire_head *h,
                      const void *payload, size_t bytes, drps_link_adopt adopt, void *frame,
                      struct drps_err *err)
{
    struct net_peer *peer = &net->peers[h->from];
    uint64_t taken[WIRE_PARTS], limits[WIRE_PARTS];
    const struct drps_link_rules rules = {limits, taken, net->o.queue_messages};
    struct net_message *m;
    memcpy(limits, net->o.message_bytes, sizeof(net->o.message_bytes));
    limits[WIRE_GROUP] = DRPS_NET_GROUP_BYTES;
    pthread_mutex_lock(net->lock);
    memcpy(taken, peer->taken, sizeof(taken));
    pthread_mutex_unlock(net->lock);
    const int rc = drps_link_add(&f->link, &rules, h, payload, bytes, adopt, frame, &m, err);
    if (rc < 0 || !m) return rc;
    pthread_mutex_lock(net->lock);
    drps_net_deliver(net, m);
    pthread_mutex_unlock(net->lock);
    return 0;
}

void drps_frames_take(struct drps_net *net, struct net_frames *f, const struct wire_head *h,
                      const void *payload, size_t bytes, drps_link_adopt adopt, void *frame)
{
    struct drps_err err = DRPS_ERR_INIT;
    int rc = 0;
    switch (h->type) {
    case WIRE_HELLO:
        rc = greet(net, f, h->from, payload, bytes, &err);
        break;
    case WIRE_PING:
        break;
    case WIRE_CREDIT:
        rc = take_credit(net, h, &err);
        break;
    case WIRE_BYE:
        take_bye(net, h, payload, bytes);
        break;
    default:
        rc = take_piece(net, f, h, payload, bytes, adopt, frame, &err);
    }
    if (rc < 0) drps_frames_lose(net, h->from, &err);
}
