/*
 * Marks: how they are packed (u8), unless it is all or none of them how many there are (7 bits a
 * byte, the lowest first), and these bits, the lowest of a byte first. The gaps between numbers
 * have k bits each, behind the rest of the gap in unary, zeros and a one (Rice's code); k is what
 * makes them shortest. Where a bit for each number is shorter, it is that.
 */
#include "engine/cluster/filters/drps_marks.h"

#include <string.h>

#include "base/drps_endian.h"

enum { RICE_MOST = 31, BITMAP = 32, ALL = 33, NONE = 34 }; /* up to RICE_MOST: k */
enum { HEAD_BYTES = 6, COUNT_BITS = 32 };                  /* at most; of the number of marks */

size_t drps_marks_bound(size_t end)
{
    return HEAD_BYTES + drps_marks_bitmap_bytes(end);
}

/* ---- Writing ---- */

static uint64_t rice_bits(const uint32_t *list, size_t n, unsigned k)
{
    uint64_t bits = (uint64_t)n * (k + 1);
    uint32_t next = 0;
    for (size_t i = 0; i < n; i++) {
        bits += (list[i] - next) >> k;
        next = list[i] + 1;
    }
    return bits;
}

/* The k of the fewest bits, which are found with the next larger and smaller one of a guess. */
static unsigned best_k(const uint32_t *list, size_t n, size_t end, uint64_t *bits_out)
{
    unsigned k = 0, guess = 0;
    while (guess < RICE_MOST && (uint64_t)n << (guess + 1) <= end)
        guess++;
    *bits_out = UINT64_MAX;
    for (unsigned at = guess ? guess - 1 : 0; at <= guess + 1 && at <= RICE_MOST; at++) {
        const uint64_t bits = rice_bits(list, n, at);
        if (bits >= *bits_out) continue;
        *bits_out = bits;
        k = at;
    }
    return k;
}

/* `out` is zeroed. */
static void write_rice(const uint32_t *list, size_t n, unsigned k, unsigned char *out)
{
    uint64_t at = 0; /* the next bit */
    uint32_t next = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t gap = list[i] - next;
        next = list[i] + 1;
        at += gap >> k;
        /* The one, and the k bits: at most 32, from bit 0 to 7 of the first byte on. */
        uint64_t code = (1 | (uint64_t)(gap & ((UINT64_C(1) << k) - 1)) << 1) << at % 8;
        for (uint64_t byte = at / 8; code; code >>= 8)
            out[byte++] |= (unsigned char)code;
        at += k + 1;
    }
}

static void write_bitmap(const uint32_t *list, size_t n, unsigned char *out)
{
    for (size_t i = 0; i < n; i++)
        out[list[i] / 8] |= (unsigned char)(1U << list[i] % 8);
}

static size_t write_count(size_t n, unsigned char *out)
{
    size_t bytes = 0;
    for (; n >= 0x80; n >>= 7)
        out[bytes++] = (unsigned char)(n | 0x80);
    out[bytes++] = (unsigned char)n;
    return bytes;
}

size_t drps_marks_encode(const uint32_t *list, size_t n, size_t end, void *data)
{
    unsigned char *out = data;
    uint64_t bits;
    out[0] = n ? ALL : NONE;
    if (!n || n == end) return 1;
    const unsigned k = best_k(list, n, end, &bits);
    const size_t rice = (size_t)(bits / 8 + (bits % 8 != 0)), bitmap = drps_marks_bitmap_bytes(end);
    const size_t head = 1 + write_count(n, out + 1), body = rice < bitmap ? rice : bitmap;
    out[0] = (unsigned char)(rice < bitmap ? k : BITMAP);
    memset(out + head, 0, body);
    if (rice < bitmap)
        write_rice(list, n, k, out + head);
    else
        write_bitmap(list, n, out + head);
    return head + body;
}

/* ---- Reading ---- */

/* 64 bits from bit `at` on, those behind the end 0; at least 57 of them are there. */
static uint64_t bits_at(const unsigned char *data, size_t bytes, uint64_t at)
{
    uint64_t word = 0;
    const size_t first = (size_t)(at / 8), left = bytes - first;
    memcpy(&word, data + first, left < sizeof(word) ? left : sizeof(word));
    return word >> at % 8;
}

/* The gap at bit *at, and what follows it; UINT64_MAX: there is none. */
static uint64_t read_gap(const unsigned char *data, size_t bytes, unsigned k, uint64_t *at)
{
    const uint64_t end = (uint64_t)bytes * 8, start = *at;
    uint64_t word = 0;
    while (*at < end && !(word = bits_at(data, bytes, *at)))
        *at += 64 - *at % 8; /* all of these are zeros */
    if (*at >= end) return UINT64_MAX;
    *at += (unsigned)__builtin_ctzll(word);
    const uint64_t high = *at - start;
    if (end - *at < k + 1) return UINT64_MAX;
    const uint64_t low = bits_at(data, bytes, *at + 1) & ((UINT64_C(1) << k) - 1);
    *at += k + 1;
    return high > UINT32_MAX >> k ? UINT64_MAX : high << k | low;
}

static int read_rice(const unsigned char *data, size_t bytes, unsigned k, size_t end,
                     uint32_t *list, struct drps_marks *out)
{
    uint64_t at = 0, next = 0;
    for (size_t i = 0; i < out->n; i++) {
        const uint64_t gap = read_gap(data, bytes, k, &at);
        if (gap >= end - next) return -1;
        list[i] = (uint32_t)(next + gap);
        next += gap + 1;
    }
    out->bytes += (size_t)(at / 8 + (at % 8 != 0));
    return 0;
}

static int read_bitmap(const unsigned char *data, size_t bytes, size_t end, uint32_t *list,
                       struct drps_marks *out)
{
    const size_t all = drps_marks_bitmap_bytes(end);
    size_t n = 0;
    if (bytes < all) return -1;
    for (size_t i = 0; i < all; i++)
        for (unsigned byte = data[i]; byte; byte &= byte - 1) {
            const size_t at = 8 * i + (unsigned)__builtin_ctz(byte);
            if (at >= end || n == out->n) return -1;
            list[n++] = (uint32_t)at;
        }
    out->bytes += all;
    return n == out->n ? 0 : -1;
}

/* Returns the bytes of a number of 32 bits, 0 if there is none. */
static size_t read_count(const unsigned char *data, size_t bytes, size_t *n_out)
{
    uint64_t n = 0;
    size_t i = 0;
    for (; i < bytes && 7 * i < COUNT_BITS; i++) {
        n |= (uint64_t)(data[i] & 0x7f) << 7 * i;
        if (data[i] & 0x80) continue;
        *n_out = (size_t)n;
        return n >> COUNT_BITS ? 0 : i + 1;
    }
    return 0;
}

int drps_marks_decode(const void *data, size_t bytes, size_t end, uint32_t *list,
                      struct drps_marks *out)
{
    const unsigned char *at = data;
    const unsigned how = bytes ? at[0] : UINT32_MAX;
    *out = (struct drps_marks){.n = how == ALL ? end : 0, .bytes = 1, .all = how == ALL};
    if (how == ALL || how == NONE) return 0;
    const size_t count = bytes ? read_count(at + 1, bytes - 1, &out->n) : 0;
    if (!count || out->n > end) return -1;
    out->bytes += count;
    at += out->bytes;
    bytes -= out->bytes;
    if (how == BITMAP) return read_bitmap(at, bytes, end, list, out);
    return how <= RICE_MOST ? read_rice(at, bytes, how, end, list, out) : -1;
}
