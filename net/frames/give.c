/* Frames that go: which message is next, what net says of its own, and credit. */
#include "net/frames/drps_frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/drps_clock.h"

struct net_frames *drps_frames_new(uint32_t count)
{
    struct net_frames *frames = calloc(count, sizeof(*frames));
    for (uint32_t r = 0; frames && r < count; r++)
        for (size_t i = 0; i < WIRE_PARTS; i++)
            frames[r].last[i] = &frames[r].first[i];
    return frames;
}

static void drop_unsent(struct net_frames *f)
{
    for (size_t i = 0; i < WIRE_PARTS; i++)
        for (struct net_out *out = f->first[i], *next; out; out = next) {
            next = out->next;
            drps_net_out_unhold(out);
        }
}

void drps_frames_free(struct net_frames *frames, uint32_t count)
{
    for (uint32_t r = 0; frames && r < count; r++) {
        drop_unsent(&frames[r]);
        drps_link_destroy(&frames[r].link);
    }
    free(frames);
}

void drps_frames_add(struct net_frames *f, struct net_out *out)
{
    out->next = NULL;
    *f->last[out->head.part] = out;
    f->last[out->head.part] = &out->next;
}

struct net_out *drps_frames_next(struct drps_net *net, struct net_frames *f, uint64_t most,
                                 int *longer)
{
    struct net_out *out = NULL;
    *longer = 0;
    pthread_mutex_lock(net->lock);
    for (unsigned i = 1; i <= WIRE_PARTS && !out; i++) {
        const unsigned part = (f->turn + i) % WIRE_PARTS;
        struct net_out *first = f->first[part];
        if (first && first->head.message_bytes > most) {
            *longer = 1;
        } else if (first) {
            f->turn = part;
            out = first;
        }
    }
    pthread_mutex_unlock(net->lock);
    return out;
}

void drps_frames_sent(struct drps_net *net, struct net_frames *f, struct net_out *out)
{
    const unsigned part = out->head.part;
    pthread_mutex_lock(net->lock);
    f->first[part] = out->next;
    if (!out->next) f->last[part] = &f->first[part];
    pthread_mutex_unlock(net->lock);
}

struct wire_head drps_frames_head(const struct drps_net *net, uint32_t r, uint8_t type,
                                  unsigned part, uint64_t round, uint64_t bytes)
{
    return (struct wire_head){.type = type,
                              .part = (uint8_t)part,
                              .from = (uint16_t)net->o.rank,
                              .to = (uint16_t)r,
                              .job_id = net->o.job_id,
                              .round = round,
                              .message_bytes = bytes};
}

void drps_frames_hello(const struct drps_net *net, uint64_t incarnation,
                       uint8_t out[WIRE_HELLO_BYTES])
{
    const struct drps_net_options *o = &net->o;
    struct wire_hello hello = {
        .count = o->count, .queue_messages = o->queue_messages, .incarnation = incarnation};
    memcpy(hello.message_bytes, o->message_bytes, sizeof(hello.message_bytes));
    memcpy(hello.plan_hash, o->plan_hash, sizeof(hello.plan_hash));
    drps_wire_hello_encode(&hello, out);
}

int drps_frames_credit(struct drps_net *net, uint32_t r, struct net_frames *f, net_frames_put put,
                       void *ctx)
{
    const uint64_t now = drps_clock_ns();
    const int all = now - f->credited_ns >= drps_frames_ping_ms(net) * UINT64_C(1000000);
    const uint64_t batch = all ? 1 : (net->o.queue_messages + 1) / 2;
    uint64_t taken[WIRE_PARTS];
    pthread_mutex_lock(net->lock);
    memcpy(taken, net->peers[r].taken, sizeof(taken));
    pthread_mutex_unlock(net->lock);
    for (unsigned part = 0; part < WIRE_PARTS; part++) {
        if (taken[part] - f->credited[part] < batch) continue;
        if (!put(ctx, r, WIRE_CREDIT, part, taken[part])) return 0;
        f->credited[part] = taken[part];
    }
    if (all) f->credited_ns = now;
    return 1;
}
