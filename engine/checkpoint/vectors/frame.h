/*
 * Frames, of which a log consists. The first one says whose log it is; each other one is a round.
 *
 *   0   u32  magic            4   u32  kind
 *   8   u64  round            16  u64  offset of the frame in the file
 *   24  u64  synced: bytes of the file that were durable before the frame was written
 *   32  u64  bytes of the payload
 *   40  u64  ns that applying the round took
 *   48  u64  checksum of the payload
 *   56  u64  checksum of the 56 bytes before
 *   64       payload, then zeros up to a multiple of 8
 *
 * Private to engine/checkpoint/vectors/.
 */
#ifndef DRPS_VECTORS_FRAME_H
#define DRPS_VECTORS_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum { FRAME_HEAD_BYTES = 64, FRAME_UNIT = 8 };

enum frame_kind {
    FRAME_BEGIN = 1, /* round: the checkpoint's; payload: rows u64, row bytes u64, dim u64 */
    FRAME_VECTORS,
    FRAME_ROWS,
    FRAME_KINDS
};

struct frame {
    uint32_t kind;
    uint64_t round, offset, synced, bytes, apply_ns, checksum;
};

static inline uint64_t frame_padded(uint64_t payload_bytes)
{
    return (payload_bytes + FRAME_UNIT - 1) / FRAME_UNIT * FRAME_UNIT;
}

void frame_encode(const struct frame *f, unsigned char head[FRAME_HEAD_BYTES]);

/* Returns 1 when it is a frame of that offset. */
int frame_decode(const unsigned char head[FRAME_HEAD_BYTES], uint64_t offset, struct frame *out);

#endif
