/*
 * All-gather of messages that differ in size: each rank has some bytes, and afterwards those of
 * all. A rank sends its own to each of the others, so that of P ranks it sends P - 1 times what it
 * has.
 *
 * This is a call of a group, as those of drps_net.h: one thread of a rank makes them all. Its
 * messages go to the group's part and have at most DRPS_NET_GROUP_BYTES; messages to other parts
 * may be under way. No queue is too short: see allgather.c.
 */
#ifndef DRPS_NET_ALLGATHER_H
#define DRPS_NET_ALLGATHER_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "net/drps_net.h"

struct drps_net_allgather {
    unsigned char *all; /* [ranks][most] what rank r has begins at r * most; the caller fills in its
                           own */
    size_t *bytes;      /* [ranks] how much each has, at most `most`; the same */
    size_t most;        /* the same on all ranks; at most DRPS_NET_MESSAGE_MAX */
    uint64_t round;     /* which one it is, as the caller counts: another for each */
};

/*
 * timeout_ms bounds each message's wait. Bytes of others are what they sent: nothing but their
 * number is checked.
 *   -EINVAL        `most` is too large, or this rank has more
 *   -EBUSY         another thread of this rank is in a call of the group
 *   DRPS_E_PROTO   a rank is in another call of the group, or sends more than `most`
 *   DRPS_E_PEER    a rank has left or was lost: the text names it
 *   -ETIMEDOUT and the others of drps_net_receive()
 * After -EINVAL and -EBUSY nothing has been sent. After any other error messages may be left over,
 * so that no call of the group can follow: close the net.
 */
DRPS_MUST_CHECK
int drps_net_allgather(struct drps_net *net, const struct drps_net_allgather *gather,
                       uint32_t timeout_ms, struct drps_err *err);

#endif
