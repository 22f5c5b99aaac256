/* Headers to bytes and back, with every check that needs no state. docs/wire.md has the table. */
#include "net/drps_wire.h"

#include <string.h>

#include "base/drps_checksum.h"
#include "base/drps_endian.h"

static const uint8_t magic[4] = {'D', 'R', 'P', 'W'};

enum { /* byte offsets */
       AT_MAGIC = 0,
       AT_VERSION = 4, /* u16 */
       AT_TYPE = 6,
       AT_PART = 7,
       AT_JOB = 8,
       AT_FROM = 16, /* u16 */
       AT_TO = 18,   /* u16 */
       AT_TAG = 20,
       AT_SEQUENCE = 24,
       AT_ROUND = 32,
       AT_MESSAGE_BYTES = 40,
       AT_OFFSET = 48,
       AT_INCARNATION = 56,
       AT_CHECKSUM = 64, /* XXH3 of bytes 0 to 63 and the payload */
};

_Static_assert(AT_CHECKSUM + 8 == WIRE_HEAD_BYTES, "the checksum ends the header");
_Static_assert(DRPS_NET_RANKS_MAX <= UINT16_MAX, "ranks have 16 bits");

static uint64_t checksum(const uint8_t *head, const void *payload, size_t bytes)
{
    const struct drps_piece pieces[] = {{head, AT_CHECKSUM}, {payload, bytes}};
    return drps_checksum_pieces(pieces, bytes ? 2 : 1);
}

void drps_wire_encode(const struct wire_head *head, const void *payload, size_t bytes,
                      uint8_t out[WIRE_HEAD_BYTES])
{
    memcpy(out + AT_MAGIC, magic, sizeof(magic));
    drps_put_u16(out + AT_VERSION, WIRE_VERSION);
    out[AT_TYPE] = head->type;
    out[AT_PART] = head->part;
    drps_put_u64(out + AT_JOB, head->job_id);
    drps_put_u16(out + AT_FROM, head->from);
    drps_put_u16(out + AT_TO, head->to);
    drps_put_u32(out + AT_TAG, head->tag);
    drps_put_u64(out + AT_SEQUENCE, head->sequence);
    drps_put_u64(out + AT_ROUND, head->round);
    drps_put_u64(out + AT_MESSAGE_BYTES, head->message_bytes);
    drps_put_u64(out + AT_OFFSET, head->offset);
    drps_put_u64(out + AT_INCARNATION, head->incarnation);
    drps_put_u64(out + AT_CHECKSUM, checksum(out, payload, bytes));
}

/* Lengths and kinds; nothing here depends on who receives. */
static int check(const struct wire_head *h, size_t bytes, struct drps_err *err)
{
    if (h->type == 0 || (h->type >= WIRE_TYPES && h->type < DRPS_NET_TYPE_FIRST))
        return drps_err_set(err, DRPS_E_PROTO, "frame of unknown type %u", h->type);
    if (h->part >= WIRE_PARTS)
        return drps_err_set(err, DRPS_E_PROTO, "frame for unknown part %u", h->part);
    if (bytes > WIRE_PIECE_BYTES || h->message_bytes > DRPS_NET_MESSAGE_MAX ||
        h->offset > h->message_bytes || bytes > h->message_bytes - h->offset)
        return drps_err_set(err, DRPS_E_PROTO,
                            "frame of %zu bytes at %llu of a message of %llu bytes", bytes,
                            (unsigned long long)h->offset, (unsigned long long)h->message_bytes);
    if (bytes == 0 && h->message_bytes > 0)
        return drps_err_set(err, DRPS_E_PROTO, "empty frame of a message that is not");
    if (drps_wire_is_control(h->type) && bytes != h->message_bytes)
        return drps_err_set(err, DRPS_E_PROTO, "control frame in pieces");
    if (h->type == WIRE_HELLO && (h->sequence || h->incarnation))
        return drps_err_set(err, DRPS_E_PROTO, "greeting as frame %llu",
                            (unsigned long long)h->sequence);
    if (h->type != WIRE_HELLO && h->type != WIRE_BYE && !h->incarnation)
        return drps_err_set(err, DRPS_E_PROTO, "frame of type %u for no process", h->type);
    if (!drps_wire_is_control(h->type) &&
        (h->type < DRPS_NET_TYPE_FIRST) != (h->part == WIRE_GROUP))
        return drps_err_set(err, DRPS_E_PROTO, "frame of type %u for part %u", h->type, h->part);
    return 0;
}

int drps_wire_decode(const void *head, size_t head_bytes, const void *payload, size_t bytes,
                     struct wire_head *head_out, struct drps_err *err)
{
    const uint8_t *at = head;
    memset(head_out, 0, sizeof(*head_out));
    if (head_bytes < AT_TO || memcmp(at + AT_MAGIC, magic, sizeof(magic)) != 0)
        return drps_err_set(err, DRPS_E_FORMAT, "not a frame of drps");
    struct wire_head h = {.job_id = drps_get_u64(at + AT_JOB), .from = drps_get_u16(at + AT_FROM)};
    if (drps_get_u16(at + AT_VERSION) != WIRE_VERSION) {
        *head_out = h;
        return drps_err_set(err, DRPS_E_VERSION,
                            "speaks version %u of the protocol, this program version %u: use the "
                            "same drps on all machines",
                            drps_get_u16(at + AT_VERSION), WIRE_VERSION);
    }
    if (head_bytes != WIRE_HEAD_BYTES)
        return drps_err_set(err, DRPS_E_FORMAT, "frame header of %zu bytes", head_bytes);
    if (drps_get_u64(at + AT_CHECKSUM) != checksum(at, payload, bytes))
        return drps_err_set(err, DRPS_E_FORMAT, "frame with a wrong checksum");
    h.type = at[AT_TYPE];
    h.part = at[AT_PART];
    h.to = drps_get_u16(at + AT_TO);
    h.tag = drps_get_u32(at + AT_TAG);
    h.sequence = drps_get_u64(at + AT_SEQUENCE);
    h.round = drps_get_u64(at + AT_ROUND);
    h.message_bytes = drps_get_u64(at + AT_MESSAGE_BYTES);
    h.offset = drps_get_u64(at + AT_OFFSET);
    h.incarnation = drps_get_u64(at + AT_INCARNATION);
    const int rc = check(&h, bytes, err);
    if (rc < 0) return rc;
    *head_out = h;
    return 0;
}

void drps_wire_hello_encode(const struct wire_hello *hello, uint8_t out[WIRE_HELLO_BYTES])
{
    drps_put_u32(out, hello->count);
    drps_put_u32(out + 4, hello->queue_messages);
    drps_put_u64(out + 8, hello->incarnation);
    for (size_t i = 0; i < DRPS_NET_PARTS; i++)
        drps_put_u64(out + 16 + 8 * i, hello->message_bytes[i]);
    memcpy(out + 16 + 8 * DRPS_NET_PARTS, hello->plan_hash, DRPS_NET_HASH_BYTES);
}

int drps_wire_hello_decode(const void *payload, size_t bytes, struct wire_hello *hello_out,
                           struct drps_err *err)
{
    const uint8_t *at = payload;
    if (bytes != WIRE_HELLO_BYTES)
        return drps_err_set(err, DRPS_E_PROTO, "greeting of %zu bytes, expected %d", bytes,
                            WIRE_HELLO_BYTES);
    hello_out->count = drps_get_u32(at);
    hello_out->queue_messages = drps_get_u32(at + 4);
    hello_out->incarnation = drps_get_u64(at + 8);
    if (!hello_out->incarnation) return drps_err_set(err, DRPS_E_PROTO, "greeting of no process");
    for (size_t i = 0; i < DRPS_NET_PARTS; i++) {
        hello_out->message_bytes[i] = drps_get_u64(at + 16 + 8 * i);
        if (hello_out->message_bytes[i] > DRPS_NET_MESSAGE_MAX)
            return drps_err_set(err, DRPS_E_PROTO, "takes messages of %llu bytes",
                                (unsigned long long)hello_out->message_bytes[i]);
    }
    memcpy(hello_out->plan_hash, at + 16 + 8 * DRPS_NET_PARTS, DRPS_NET_HASH_BYTES);
    return 0;
}
