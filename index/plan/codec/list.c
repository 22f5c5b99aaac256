/*
 * Packed lists of 32-bit numbers: lengths in front (two bits each), then 1 to 4 bytes a number.
 * Decoding has no branch a number: a length is looked up, four bytes are loaded and masked. With
 * SSSE3 it is four numbers at a time: the byte with their lengths finds the shuffle that spreads
 * their bytes over a vector. (The layout is known as stream vbyte: Lemire, Kurz, Rupp 2018.)
 */
#include <string.h>

#ifdef __SSSE3__
#include <tmmintrin.h>
#endif

#include "base/drps_endian.h"
#include "base/kernel/drps_level.h"
#include "index/plan/codec/drps_list.h"
#include "index/plan/codec/list_internal.h"

static const uint32_t masks[4] = {0xff, 0xffff, 0xffffff, 0xffffffff};

/* Dense lists have whole blocks: short ones with wide gaps take more so. */
DRPS_KERNEL(size_t, drps_list_encode_bound, (size_t n), (n))
{
    const size_t plain = 4 + (n + 3) / 4 + 4 * n + 4, dense = drps_list_dense_bound(n);
    return plain > dense ? plain : dense;
}

static int is_dense(const void *record, size_t bytes)
{
    return bytes >= 4 && drps_get_u32(record) & DRPS_LIST_DENSE;
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

DRPS_KERNEL(size_t, drps_list_encode, (const uint32_t *list, size_t n, void *out), (list, n, out))
{
    return encode(list, n, 1, out);
}

DRPS_KERNEL(size_t, drps_numbers_encode, (const uint32_t *numbers, size_t n, void *out),
            (numbers, n, out))
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

/* A record being decoded. */
struct cursor {
    const unsigned char *lengths; /* of number i, and */
    const unsigned char *at;      /* its bytes */
    const unsigned char *end;     /* of what may be read */
    uint32_t n;
    uint32_t i; /* next number; until the last few a multiple of 4 */
};

static int begin(struct cursor *c, const void *record, size_t bytes, size_t *used_out,
                 struct drps_err *err)
{
    const unsigned char *head = record;
    size_t used = 0;
    uint32_t n = bytes >= 4 ? drps_get_u32(record) : 0;

    *c = (struct cursor){0};
    if (bytes >= 4 && !(n & DRPS_LIST_DENSE)) used = checked_bytes(head, bytes, n);
    if (used_out) *used_out = used;
    if (!used)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "a packed list of %u numbers does not fit %zu bytes", n, bytes);
    *c = (struct cursor){.lengths = head + 4, .end = head + bytes, .n = n};
    c->at = c->lengths + ((size_t)n + 3) / 4;
    return 0;
}

/* The numbers from c->i up to `end`, a multiple of 4 or all; returns whether a list left 32 bits.
 */
static int decode_some(struct cursor *c, uint32_t end, int gaps, uint32_t *out)
{
    const unsigned char *lengths = c->lengths;
    const unsigned char *at = c->at;
    uint64_t next = c->i ? (uint64_t)out[c->i - 1] + 1 : 0; /* 64 bits: may not wrap into range */
    uint64_t overflow = 0;
    uint32_t i = c->i;
    for (; end - i >= 4; i += 4) {
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
    for (unsigned shift = 0; i < end; i++, shift += 2) {
        unsigned length = *lengths >> shift & 3;
        uint32_t v = drps_get_u32(at) & masks[length];
        at += length + 1;
        out[i] = gaps ? (uint32_t)(next += v) : v;
        overflow |= next >> 32;
        next++;
    }
    c->lengths = lengths;
    c->at = at;
    c->i = i;
    return overflow != 0;
}

#ifdef __SSSE3__

/* clang-format off */
#define LENGTH(b, k) (((b) >> 2 * (k) & 3) + 1)
#define START(b, k)                                                                                \
    (((k) > 0 ? LENGTH(b, 0) : 0) + ((k) > 1 ? LENGTH(b, 1) : 0) + ((k) > 2 ? LENGTH(b, 2) : 0))
#define BYTE(b, k, j) ((j) < LENGTH(b, k) ? START(b, k) + (j) : 0x80) /* 0x80: a zero byte */
#define NUMBER(b, k) BYTE(b, k, 0), BYTE(b, k, 1), BYTE(b, k, 2), BYTE(b, k, 3)
#define SHUFFLE(b) {NUMBER(b, 0), NUMBER(b, 1), NUMBER(b, 2), NUMBER(b, 3)}
#define SUM(b) (START(b, 3) + LENGTH(b, 3))
#define TIMES4(X, b) X(b), X((b) + 1), X((b) + 2), X((b) + 3)
#define TIMES16(X, b) TIMES4(X, b), TIMES4(X, (b) + 4), TIMES4(X, (b) + 8), TIMES4(X, (b) + 12)
#define TIMES64(X, b) TIMES16(X, b), TIMES16(X, (b) + 16), TIMES16(X, (b) + 32), TIMES16(X, (b) + 48)
/* For each byte of lengths, where the bytes of four numbers lie, and how many there are. */
static const _Alignas(16) unsigned char shuffles[256][16] = {
    TIMES64(SHUFFLE, 0), TIMES64(SHUFFLE, 64), TIMES64(SHUFFLE, 128), TIMES64(SHUFFLE, 192)};
static const unsigned char sums[256] = {
    TIMES64(SUM, 0), TIMES64(SUM, 64), TIMES64(SUM, 128), TIMES64(SUM, 192)};
/* clang-format on */

/* The bytes of four numbers, of which 16 may be read, as a vector. */
static inline __m128i load_four(const unsigned char *at, unsigned b)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
    return _mm_shuffle_epi8(bytes, _mm_load_si128((const __m128i *)(const void *)shuffles[b]));
}

static void numbers_fast(struct cursor *c, uint32_t *out)
{
    const unsigned char *lengths = c->lengths;
    const unsigned char *at = c->at;
    uint32_t i = c->i;
    for (; c->n - i >= 4 && c->end - at >= 16; i += 4) {
        unsigned b = *lengths++;
        _mm_storeu_si128((__m128i *)(void *)(out + i), load_four(at, b));
        at += sums[b];
    }
    c->lengths = lengths;
    c->at = at;
    c->i = i;
}

/*
 * Each gap plus 1, summed up. A sum that leaves 32 bits is not larger than the one before it, the
 * largest gap's included: so wrapping is found by comparing neighbours. The numbers before c->i,
 * at least one, are there.
 */
static int list_fast(struct cursor *c, uint32_t *out)
{
    const __m128i one = _mm_set1_epi32(1), sign = _mm_set1_epi32(INT32_MIN);
    const unsigned char *lengths = c->lengths;
    const unsigned char *at = c->at;
    uint32_t i = c->i;
    __m128i before = _mm_set1_epi32((int)out[i - 1]);
    __m128i rising = _mm_set1_epi32(-1);
    for (; c->n - i >= 4 && c->end - at >= 16; i += 4) {
        unsigned b = *lengths++;
        __m128i v = _mm_add_epi32(load_four(at, b), one);
        v = _mm_add_epi32(v, _mm_slli_si128(v, 4));
        v = _mm_add_epi32(v, _mm_slli_si128(v, 8));
        v = _mm_add_epi32(v, _mm_shuffle_epi32(before, 0xff));
        __m128i left = _mm_alignr_epi8(v, before, 12);
        rising = _mm_and_si128(rising,
                               _mm_cmpgt_epi32(_mm_xor_si128(v, sign), _mm_xor_si128(left, sign)));
        _mm_storeu_si128((__m128i *)(void *)(out + i), v);
        before = v;
        at += sums[b];
    }
    c->lengths = lengths;
    c->at = at;
    c->i = i;
    return _mm_movemask_epi8(rising) != 0xffff;
}

#endif

static int wrapped(const struct cursor *c, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT, "a packed list of %u numbers leaves 32 bits", c->n);
}

DRPS_KERNEL(int, drps_list_decode,
            (const void *record, size_t bytes, uint32_t *list_out, size_t *used_out,
             struct drps_err *err),
            (record, bytes, list_out, used_out, err))
{
    struct cursor c;
    int wraps = 0;
    if (is_dense(record, bytes))
        return drps_list_dense_decode(record, bytes, list_out, used_out, err);
    int rc = begin(&c, record, bytes, used_out, err);
    if (rc < 0) return rc;
#ifdef __SSSE3__
    if (c.n >= 8) {
        wraps = decode_some(&c, 4, 1, list_out);
        wraps |= list_fast(&c, list_out);
    }
#endif
    wraps |= decode_some(&c, c.n, 1, list_out);
    return wraps ? wrapped(&c, err) : 0;
}

DRPS_KERNEL(int, drps_numbers_decode,
            (const void *record, size_t bytes, uint32_t *numbers_out, size_t *used_out,
             struct drps_err *err),
            (record, bytes, numbers_out, used_out, err))
{
    struct cursor c;
    int rc = begin(&c, record, bytes, used_out, err);
    if (rc < 0) return rc;
#ifdef __SSSE3__
    numbers_fast(&c, numbers_out);
#endif
    (void)decode_some(&c, c.n, 0, numbers_out); /* numbers cannot wrap */
    return 0;
}

DRPS_KERNEL(int, drps_list_decode_ref,
            (const void *record, size_t bytes, uint32_t *list_out, size_t *used_out,
             struct drps_err *err),
            (record, bytes, list_out, used_out, err))
{
    struct cursor c;
    if (is_dense(record, bytes))
        return drps_list_dense_decode_ref(record, bytes, list_out, used_out, err);
    int rc = begin(&c, record, bytes, used_out, err);
    if (rc < 0) return rc;
    return decode_some(&c, c.n, 1, list_out) ? wrapped(&c, err) : 0;
}

DRPS_KERNEL(int, drps_numbers_decode_ref,
            (const void *record, size_t bytes, uint32_t *numbers_out, size_t *used_out,
             struct drps_err *err),
            (record, bytes, numbers_out, used_out, err))
{
    struct cursor c;
    int rc = begin(&c, record, bytes, used_out, err);
    if (rc < 0) return rc;
    (void)decode_some(&c, c.n, 0, numbers_out); /* numbers cannot wrap */
    return 0;
}
