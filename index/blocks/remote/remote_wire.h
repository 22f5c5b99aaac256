/*
 * Messages between the process that asks and its shards: a head, then `bytes` of payload.
 * Little-endian; arrays are used in place.
 *
 *   0  4   question: op; answer: 0, or a code of drps_err.h (as i32), the payload being its text
 *   4  4   zero
 *   8  8   question: salt, or bytes that pairs or lists may take; answer: pairs
 *          there are, or batches of all lists;
 *          ready: the bytes of memory that accesses take, doubled, and 1 if they are read from disk
 *   16 8   bytes of payload
 *
 * Each shard answers each question, in order; those that do not need the answer to a merge may be
 * sent before it has come. Before the first question it says that it is ready; before that, it may
 * be sent the row lists of its batches (REMOTE_SHARE, remote_split.c), which a forked shard reads
 * for itself.
 */
#ifndef DRPS_INDEX_BLOCKS_REMOTE_REMOTE_WIRE_H
#define DRPS_INDEX_BLOCKS_REMOTE_REMOTE_WIRE_H

#include <stdint.h>
#include <string.h>

#include "base/drps_endian.h"
#include "index/blocks/counts/drps_counts.h"
#include "index/blocks/remote/drps_remote.h"

/*           payload of the question               payload of the answer */
enum remote_op {
    REMOTE_COUNTS = 1, /*                                  count u32 [blocks] */
    REMOTE_SIGNATURES, /*                                  signature u64 [blocks] */
    REMOTE_MINHASH,    /*                                  least u32 [blocks] */
    REMOTE_COCOUNTS,   /* pairs [n <= REMOTE_PAIRS]          count u32 [n] */
    REMOTE_GROUPS,     /* group u8 [blocks] */
    REMOTE_PAIRS_ALL,  /*                                  pairs with counts, sorted */
    REMOTE_PAIRS_WITH, /* with u32 [n]                     the same */
    REMOTE_PAIR_WORK,  /*                                  u64 */
    REMOTE_MERGE,      /* pairs [n <= blocks / 2] */
    REMOTE_RESET,      /* */
    REMOTE_LISTS, /* row u32 [n]                      count u32 [n], batches u32 of row after row */
    REMOTE_OPS,
    REMOTE_SHARE = 64, /* no question: struct remote_share */
    REMOTE_LIST        /* one a batch of the share: its record of rows.rec; value: the batch */
};

enum { REMOTE_HEAD_BYTES = 24, REMOTE_PAIRS = 1 << 16, REMOTE_SHARE_BYTES = 32 };

_Static_assert(sizeof(struct block_pair) == 8, "sent in place");
_Static_assert(sizeof(struct block_pair_count) == 12, "sent in place");

struct remote_head {
    int32_t what;
    uint64_t value, bytes;
};

static inline void remote_head_put(uint8_t *at, const struct remote_head *h)
{
    drps_put_u32(at, (uint32_t)h->what);
    drps_put_u32(at + 4, 0);
    drps_put_u64(at + 8, h->value);
    drps_put_u64(at + 16, h->bytes);
}

static inline struct remote_head remote_head_get(const uint8_t *at)
{
    return (struct remote_head){(int32_t)drps_get_u32(at), drps_get_u64(at + 8),
                                drps_get_u64(at + 16)};
}

/* u32 rows, batches, first, end; u64 seed; the bits of an IEEE double, share: of the epoch with so
 * many batches, it gets the run [first, end); share and seed as in struct access_source. */
struct remote_share {
    uint32_t rows, batches, first, end;
    uint64_t seed;
    double share;
};

static inline void remote_share_put(uint8_t *at, const struct remote_share *s)
{
    uint64_t bits;
    memcpy(&bits, &s->share, sizeof(bits));
    drps_put_u32(at, s->rows);
    drps_put_u32(at + 4, s->batches);
    drps_put_u32(at + 8, s->first);
    drps_put_u32(at + 12, s->end);
    drps_put_u64(at + 16, s->seed);
    drps_put_u64(at + 24, bits);
}

static inline struct remote_share remote_share_get(const uint8_t *at)
{
    const uint64_t bits = drps_get_u64(at + 24);
    struct remote_share s = {drps_get_u32(at),      drps_get_u32(at + 4),  drps_get_u32(at + 8),
                             drps_get_u32(at + 12), drps_get_u64(at + 16), 0};
    memcpy(&s.share, &bits, sizeof(bits));
    return s;
}

/* A head with its payload. Short messages take one call of the link. */
static inline int remote_send(struct drps_remote_link *l, unsigned peer,
                              const struct remote_head *h, const void *payload,
                              struct drps_err *err)
{
    uint8_t message[512];
    const int whole = h->bytes <= sizeof(message) - REMOTE_HEAD_BYTES;
    remote_head_put(message, h);
    if (whole && h->bytes) memcpy(message + REMOTE_HEAD_BYTES, payload, (size_t)h->bytes);
    int rc =
        l->ops->send(l, peer, message, REMOTE_HEAD_BYTES + (whole ? (size_t)h->bytes : 0), err);
    return rc < 0 || whole ? rc : l->ops->send(l, peer, payload, (size_t)h->bytes, err);
}

#endif
