/*
 * What transports that send frames do alike, whatever carries a frame: greeting, messages in
 * pieces, credit, goodbye, and waiting at the start until all ranks have answered. drps_wire.h has
 * the frames. Private to net/.
 *
 * take.c is for frames that have come, give.c for those that go, start.c for the wait.
 */
#ifndef DRPS_NET_FRAMES_FRAMES_H
#define DRPS_NET_FRAMES_FRAMES_H

#include "net/drps_link.h"
#include "net/drps_transport.h"

/* What a rank knows of a peer's frames. Each transport says which thread sends and which receives.
 */
struct net_frames {
    /* under the net's lock */
    struct net_out *first[WIRE_PARTS], **last[WIRE_PARTS]; /* messages that wait to be sent */
    int greeted;                                           /* its HELLO has come and fits */
    uint64_t incarnation;                                  /* as that says; 0: not known */
    int answers;    /* a frame has come that is meant for this process: it has our HELLO */
    char hint[160]; /* why it may not have answered; empty: nothing is known */

    /* who sends */
    unsigned turn;     /* part whose message goes on next */
    uint64_t sequence; /* frames sent */
    uint64_t sent_ns;
    uint64_t credited[WIRE_PARTS]; /* credit sent */
    uint64_t credited_ns;          /* when all of it was */

    /* who receives */
    uint64_t heard_ns;
    struct drps_link link;
};

/* Of `count` peers. NULL: no memory. */
struct net_frames *drps_frames_new(uint32_t count);
/* Give back messages that were not sent, too. NULL-safe. */
void drps_frames_free(struct net_frames *frames, uint32_t count);

/* How often a rank says that it is there, and looks at the clock: late by little beside the limit
 * of silence. */
static inline uint32_t drps_frames_ping_ms(const struct drps_net *net)
{
    const uint32_t ms = net->o.silence_ms / 8;
    return ms < 250 ? ms : 250;
}

/* ---- What goes; no lock held but where it is said ---- */

/* Lock held: a message waits to be sent to its receiver. */
void drps_frames_add(struct net_frames *f, struct net_out *out);

/* The message of at most `most` bytes that goes on next, parts in turn; NULL: there is none, and
 * *longer says whether others wait. Only who sends removes messages. */
struct net_out *drps_frames_next(struct drps_net *net, struct net_frames *f, uint64_t most,
                                 int *longer);
/* The last piece of a message has gone: take it from the queue. The caller unholds it. */
void drps_frames_sent(struct drps_net *net, struct net_frames *f, struct net_out *out);

/* The header of a frame of net's own to rank r. */
struct wire_head drps_frames_head(const struct drps_net *net, uint32_t r, uint8_t type,
                                  unsigned part, uint64_t round, uint64_t bytes);
/* The payload of this rank's HELLO. */
void drps_frames_hello(const struct drps_net *net, uint64_t incarnation,
                       uint8_t out[WIRE_HELLO_BYTES]);

/* Sends a frame of net's own without payload to rank r; 0: it cannot go now. */
typedef int (*net_frames_put)(void *ctx, uint32_t r, uint8_t type, unsigned part, uint64_t round);

/* Send credit to rank r: for several messages at a time, in time for the sender not to wait, and
 * all of it now and then, for a sender that wants to use the whole queue. 0: some cannot go now. */
int drps_frames_credit(struct drps_net *net, uint32_t r, struct net_frames *f, net_frames_put put,
                       void *ctx);

/* ---- What has come; no lock held ---- */

/* A frame of rank h->from that is the next one. What breaks the rules loses that rank. `adopt` and
 * `frame` as drps_link_add() takes them. */
void drps_frames_take(struct drps_net *net, struct net_frames *f, const struct wire_head *h,
                      const void *payload, size_t bytes, drps_link_adopt adopt, void *frame);

/* Rank r is lost for this reason, before which its name is put. */
void drps_frames_lose(struct drps_net *net, uint32_t r, struct drps_err *why);

/* Lock held: nothing was heard of rank r for too long. */
void drps_frames_too_silent(struct drps_net *net, uint32_t r);

/* ---- The start ---- */

/*
 * Wait until all ranks have answered. `hint` ends the text of a start that came too late, "" for
 * none. Errors of drps_net_open_zmq().
 */
DRPS_MUST_CHECK
int drps_frames_wait(struct drps_net *net, const struct net_frames *frames, const char *hint,
                     struct drps_err *err);

#endif
