/*
 * The header of every frame on the wire, and its checks. docs/wire.md has the table.
 *
 * A message is cut into frames of at most WIRE_PIECE_BYTES of payload; each has a header of
 * WIRE_HEAD_BYTES, little-endian.
 *
 * Every process that opens a net draws a number, its incarnation, and says it in its HELLO. All
 * frames but HELLO carry the incarnation that they are meant for: so a rank that was restarted is
 * told apart from the process before it, and whoever does not see the messages between ranks cannot
 * put one in.
 *
 * Bytes 0 to 17 (magic, version, job, sender) are the same in every version, so that a version
 * that is not understood can be reported with its sender.
 */
#ifndef DRPS_NET_WIRE_H
#define DRPS_NET_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "net/drps_net.h"

enum {
    WIRE_VERSION = 2,
    WIRE_HEAD_BYTES = 72,
    WIRE_PIECE_BYTES = 1 << 20,
    WIRE_GROUP = DRPS_NET_PARTS, /* the part that calls of a group talk to */
    WIRE_PARTS,
    WIRE_TEXT_BYTES = 512, /* most of the text of a BYE */
    WIRE_BYE_STAYS = 1,    /* tag of a BYE whose sender would fail again */
};

/* Frames of net's own; they carry round, tag and part as said, else 0. */
enum wire_type {
    WIRE_HELLO = 1, /* payload: struct wire_hello; the first frame of a sender, number 0 */
    WIRE_PING,      /* nothing: the sender is alive */
    WIRE_CREDIT,    /* part; round: messages to it that the sender of this has taken so far */
    WIRE_BYE,    /* the last frame, answered by a BYE; payload: why the sender gave up, if it did */
    WIRE_GATHER, /* group messages; round: which call of the group */
    WIRE_BROADCAST,
    WIRE_SUM, /* of drps_net_allreduce(); round: the caller's; tag: a mix of what is summed */
    WIRE_ALL, /* of drps_net_allgather(); round: the caller's */
    WIRE_TYPES,
};

struct wire_head {
    uint8_t type; /* enum wire_type, or the caller's from DRPS_NET_TYPE_FIRST on */
    uint8_t part; /* below WIRE_PARTS */
    uint16_t from, to;
    uint32_t tag;
    uint64_t job_id;
    uint64_t sequence; /* frames of this sender to this receiver before this one */
    uint64_t round;
    uint64_t message_bytes; /* payload of the whole message */
    uint64_t offset;        /* of this frame's payload in it */
    uint64_t incarnation;   /* of the receiver; 0 where the sender does not know it: in a HELLO, and
                               in a BYE before the receiver's HELLO came */
};

struct wire_hello {
    uint32_t count;
    uint32_t queue_messages;
    uint64_t incarnation; /* of the sender, not 0 */
    uint64_t message_bytes[DRPS_NET_PARTS];
    uint8_t plan_hash[DRPS_NET_HASH_BYTES];
};
enum { WIRE_HELLO_BYTES = 16 + 8 * DRPS_NET_PARTS + DRPS_NET_HASH_BYTES };

/* 1: a type of frame that never becomes a message. */
static inline int drps_wire_is_control(uint8_t type)
{
    return type < WIRE_GATHER;
}

/* Encode a header. The payload is read for its checksum alone. */
void drps_wire_encode(const struct wire_head *head, const void *payload, size_t bytes,
                      uint8_t out[WIRE_HEAD_BYTES]);

/*
 * Check and decode a frame of any bytes: sizes, magic, version, checksum, type, part, lengths.
 *   DRPS_E_FORMAT   not a header, or damaged
 *   DRPS_E_VERSION  another version: head_out->from and ->job_id are set, nothing is verified
 *   DRPS_E_PROTO    a header whose fields do not fit together
 */
DRPS_MUST_CHECK
int drps_wire_decode(const void *head, size_t head_bytes, const void *payload, size_t bytes,
                     struct wire_head *head_out, struct drps_err *err);

/* The payload of a HELLO. DRPS_E_PROTO: it is of another size, or makes no sense. */
void drps_wire_hello_encode(const struct wire_hello *hello, uint8_t out[WIRE_HELLO_BYTES]);
DRPS_MUST_CHECK
int drps_wire_hello_decode(const void *payload, size_t bytes, struct wire_hello *hello_out,
                           struct drps_err *err);

#endif
