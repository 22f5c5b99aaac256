/*
 * A link: the receiving half of a connection, which puts the numbered frames of one peer together
 * to messages. No I/O and no locks. A sender sends the pieces of one message to a part in order,
 * and may mix messages to different parts. Private to net/.
 */
#ifndef DRPS_NET_LINK_H
#define DRPS_NET_LINK_H

#include "net/drps_transport.h"

struct drps_link {
    uint64_t sequence; /* of the next frame */
    struct {
        struct net_message *message; /* own: one that is not whole yet, or NULL */
        uint64_t have;               /* bytes of that message that have come */
        uint64_t begun;              /* messages begun, ever */
    } parts[WIRE_PARTS];
};

/* What the receiver has said that it takes, by part. */
struct drps_link_rules {
    const uint64_t *message_bytes; /* [WIRE_PARTS] */
    const uint64_t *taken;         /* [WIRE_PARTS] messages that the parts have taken */
    uint32_t queue_messages;
};

void drps_link_destroy(struct drps_link *link); /* accepts a zeroed struct */

/* 1: the frame is the next one; 0: it has come before; DRPS_E_PROTO: frames before it are lost. */
DRPS_MUST_CHECK
int drps_link_number(struct drps_link *link, const struct wire_head *head, struct drps_err *err);

/* Makes a frame that is a whole message into a message that keeps the frame; NULL: copy it instead.
 */
typedef struct net_message *(*drps_link_adopt)(void *frame);

/*
 * Add a frame that carries (a piece of) a message. *message_out is the caller's when it is whole,
 * else NULL. `adopt` may be NULL.
 *   DRPS_E_PROTO   messages are larger or more than the receiver takes, or pieces do not fit
 *   -ENOMEM        no memory for the message
 * After an error the link is of no further use.
 */
DRPS_MUST_CHECK
int drps_link_add(struct drps_link *link, const struct drps_link_rules *rules,
                  const struct wire_head *head, const void *payload, size_t bytes,
                  drps_link_adopt adopt, void *frame, struct net_message **message_out,
                  struct drps_err *err);

#endif
