/*
 * Keys and names as bytes of a stream, little-endian:
 *
 *     a key    u64 key | u32 count | u16 segments | u16 first time | with strings its name
 *     a name   u64 key | u32 row | with strings its name
 *     its name u32 check | u16 field | u32 bytes | text
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_endian.h"
#include "base/drps_rng.h"
#include "index/dictionary/dealt/dealt.h"

enum { FIXED_MOST = DEALT_KEY_BYTES + DEALT_STRING_BYTES };

uint32_t drps_dict_owner(uint64_t key, uint32_t count)
{
    return (uint32_t)((unsigned __int128)drps_mix64(key) * count >> 64);
}

/* ---- Streams ---- */

int drps_dealt_end(struct swap *s, struct swap_ranks *ranks, uint64_t *sent_out,
                   struct drps_err *err)
{
    const uint64_t before = ranks->sent_bytes;
    const int rc = drps_swap_end(s, err);
    *sent_out = ranks->sent_bytes - before;
    return rc;
}

/* ---- Writing ---- */

static size_t fixed_bytes(enum dealt_kind kind)
{
    return kind == DEALT_KEYS ? DEALT_KEY_BYTES : DEALT_NAMED_BYTES;
}

int drps_dealt_put(struct swap *s, uint32_t to, enum dealt_kind kind, const struct dealt_record *r,
                   struct drps_err *err)
{
    unsigned char bytes[FIXED_MOST];
    size_t n = fixed_bytes(kind);
    drps_put_u64(bytes, r->k.key);
    if (kind == DEALT_KEYS) {
        drps_put_u32(bytes + 8, r->k.count);
        drps_put_u16(bytes + 12, (uint16_t)r->k.mask);
        drps_put_u16(bytes + 14, (uint16_t)r->k.first);
    } else {
        drps_put_u32(bytes + 8, r->row);
    }
    if (!r->k.text) return drps_swap_put(s, to, bytes, n, err);
    if (r->k.bytes > DEALT_NAME_MOST)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a feature name has %zu bytes: on several machines it may have %d",
                            r->k.bytes, DEALT_NAME_MOST);
    drps_put_u32(bytes + n, r->k.check);
    drps_put_u16(bytes + n + 4, (uint16_t)r->k.field);
    drps_put_u32(bytes + n + 6, (uint32_t)r->k.bytes);
    int rc = drps_swap_put(s, to, bytes, n + DEALT_STRING_BYTES, err);
    return rc == 0 ? drps_swap_put(s, to, r->k.text, r->k.bytes, err) : rc;
}

/* ---- Reading ---- */

static int take_name(struct swap *s, uint32_t from, const unsigned char *bytes, struct dict_key *k,
                     char **text_io, size_t *cap_io, struct drps_err *err)
{
    k->check = drps_get_u32(bytes);
    k->field = drps_get_u16(bytes + 4);
    k->bytes = drps_get_u32(bytes + 6);
    if (k->bytes > DEALT_NAME_MOST) return drps_swap_fault(from, "a name that is too long", err);
    if (drps_array_reserve(text_io, cap_io, k->bytes, 1))
        return drps_err_set(err, -ENOMEM, "no memory for a name of %zu bytes", k->bytes);
    k->text = *text_io;
    return drps_swap_take(s, from, *text_io, k->bytes, err);
}

int drps_dealt_take(struct swap *s, uint32_t from, enum dealt_kind kind, int strings,
                    struct dealt_record *r, char **text_io, size_t *cap_io, struct drps_err *err)
{
    unsigned char bytes[FIXED_MOST];
    const size_t n = fixed_bytes(kind);
    int rc = drps_swap_take(s, from, bytes, n + (strings ? DEALT_STRING_BYTES : 0), err);
    if (rc < 0) return rc;
    *r = (struct dealt_record){.k.key = drps_get_u64(bytes)};
    if (kind == DEALT_KEYS) {
        r->k.count = drps_get_u32(bytes + 8);
        r->k.mask = drps_get_u16(bytes + 12);
        r->k.first = drps_get_u16(bytes + 14);
        if (!r->k.count != !r->k.mask) return drps_swap_fault(from, "a key without uses", err);
    } else {
        r->row = drps_get_u32(bytes + 8);
    }
    return strings ? take_name(s, from, bytes + n, &r->k, text_io, cap_io, err) : 0;
}
