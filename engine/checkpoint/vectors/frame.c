#include "engine/checkpoint/vectors/frame.h"

#include "base/drps_checksum.h"
#include "base/drps_endian.h"

static const uint32_t magic = 'V' | 'L' << 8 | 'O' << 16 | 'G' << 24;

void frame_encode(const struct frame *f, unsigned char head[FRAME_HEAD_BYTES])
{
    drps_put_u32(head, magic);
    drps_put_u32(head + 4, f->kind);
    drps_put_u64(head + 8, f->round);
    drps_put_u64(head + 16, f->offset);
    drps_put_u64(head + 24, f->synced);
    drps_put_u64(head + 32, f->bytes);
    drps_put_u64(head + 40, f->apply_ns);
    drps_put_u64(head + 48, f->checksum);
    drps_put_u64(head + 56, drps_checksum(head, 56));
}

int frame_decode(const unsigned char head[FRAME_HEAD_BYTES], uint64_t offset, struct frame *out)
{
    *out = (struct frame){drps_get_u32(head + 4),  drps_get_u64(head + 8),  drps_get_u64(head + 16),
                          drps_get_u64(head + 24), drps_get_u64(head + 32), drps_get_u64(head + 40),
                          drps_get_u64(head + 48)};
    return drps_get_u32(head) == magic && drps_get_u64(head + 56) == drps_checksum(head, 56) &&
           out->offset == offset && out->kind >= FRAME_BEGIN && out->kind < FRAME_KINDS;
}
