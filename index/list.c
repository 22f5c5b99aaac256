/*
 * Packed lists of 32-bit numbers: lengths in front (two bits each), then 1 to 4 bytes a number.
 * Decoding has no branch a number: a length is looked up, four bytes are loaded and masked. (The
 * layout is known as stream vbyte: Lemire, Kurz, Rupp 2018.)
 */
#include <string.h>

#include "base/drps_endian.h"
#include "index/drps_batch.h"

static const uint32_t masks[4] = {0xff, 0xffff, 0xffffff, 0xffffffff};

size_t drps_list_encode_bound(size_t n)
{
    return 4 + (n + 3) / 4 + 4 * n + 4;
}

uint32_t drps_list_count(const void *record)
{
    return drps_get_u32(record);
}

static unsigned length_of(uint32_t v)
{
    return v < 1u << 8 ? 0 : v < 1u << 16 ? 1 : v < 1u << 24 ? 2 : 3;
}

/* Ends with up to 3 zero bytes so that the decoder's four-byte loads stay inside of the record. */
static size_t encode(const uint32_t *numbers, size_t n, int gaps, unsigned char *out)
{
    unsigned char *lengths = out + 4;
    unsigned char *at = lengths + (n + 3) / 4;
    uint32_t next = 0;

    drps_put_u32(out, (uint32_t)n);
    memset(lengths, 0, (n + 3) / 4);
    for (size_t i = 0; i < n; i++) {
        uint32_t v = gaps ? numbers[i] - next : numbers[i];
        next = numbers[i] + 1;
        unsigned length = length_of(v);
        lengths[i / 4] = (unsigned char)(lengths[i / 4] | length << (i % 4 * 2));
        drps_put_u32(at, v);
        at += length + 1;
    }
    memset(at, 0, 3);
    return (size_t)(at + 3 - out);
}

size_t drps_list_encode(const uint32_t *list, size_t n, void *out)
{
    return encode(list, n, 1, out);
}

size_t drps_numbers_encode(const uint32_t *numbers, size_t n, void *out)
{
    return encode(numbers, n, 0, out);
}

/* Bytes that n numbers take, from their lengths; 0 when the record is too short. */
static size_t checked_bytes(const unsigned char *record, size_t bytes, uint32_t n)
{
    size_t head = 4 + ((size_t)n + 3) / 4;
    size_t sum = head + n + 3;
    if (bytes < sum) return 0;
    for (size_t i = 4; i < head; i++) {
        unsigned b = record[i];
        sum += (b & 3) + (b >> 2 & 3) + (b >> 4 & 3) + (b >> 6);
    }
    return sum <= bytes ? sum : 0;
}

static int decode(const void *record, size_t bytes, int gaps, uint32_t *out, size_t *used_out,
                  struct drps_err *err)
{
    const unsigned char *head = record;
    size_t used = 0;
    uint32_t n = bytes >= 4 ? drps_get_u32(record) : 0;

    if (bytes >= 4) used = checked_bytes(head, bytes, n);
    if (used_out) *used_out = used;
    if (!used)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "a packed list of %u numbers does not fit %zu bytes", n, bytes);
    const unsigned char *lengths = head + 4;
    const unsigned char *at = lengths + ((size_t)n + 3) / 4;
    uint64_t next = 0; /* 64 bits: it may not wrap back into range */
    uint64_t overflow = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        unsigned b = *lengths++;
        unsigned l0 = b & 3;
        unsigned l1 = b >> 2 & 3;
        unsigned l2 = b >> 4 & 3;
        unsigned l3 = b >> 6;
        uint32_t v0 = drps_get_u32(at) & masks[l0];
        uint32_t v1 = drps_get_u32(at + l0 + 1) & masks[l1];
        uint32_t v2 = drps_get_u32(at + l0 + l1 + 2) & masks[l2];
        uint32_t v3 = drps_get_u32(at + l0 + l1 + l2 + 3) & masks[l3];
        at += l0 + l1 + l2 + l3 + 4;
        if (gaps) {
            out[i] = (uint32_t)(next += v0);
            out[i + 1] = (uint32_t)(next += (uint64_t)v1 + 1);
            out[i + 2] = (uint32_t)(next += (uint64_t)v2 + 1);
            out[i + 3] = (uint32_t)(next += (uint64_t)v3 + 1);
            overflow |= next >> 32;
            next++;
        } else {
            out[i] = v0;
            out[i + 1] = v1;
            out[i + 2] = v2;
            out[i + 3] = v3;
        }
    }
    for (unsigned shift = 0; i < n; i++, shift += 2) {
        unsigned length = *lengths >> shift & 3;
        uint32_t v = drps_get_u32(at) & masks[length];
        at += length + 1;
        out[i] = gaps ? (uint32_t)(next += v) : v;
        overflow |= next >> 32;
        next++;
    }
    if (overflow)
        return drps_err_set(err, DRPS_E_CORRUPT, "a packed list of %u numbers leaves 32 bits", n);
    return 0;
}

int drps_list_decode(const void *record, size_t bytes, uint32_t *list_out, size_t *used_out,
                     struct drps_err *err)
{
    return decode(record, bytes, 1, list_out, used_out, err);
}

int drps_numbers_decode(const void *record, size_t bytes, uint32_t *numbers_out, size_t *used_out,
                        struct drps_err *err)
{
    return decode(record, bytes, 0, numbers_out, used_out, err);
}
