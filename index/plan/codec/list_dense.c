/*
 * Dense lists: gaps in blocks of eight, all of a block with the same number of bits. Eight numbers
 * of w bits are w bytes, so blocks begin at bytes. With BMI2 a block of up to 16 bits a number is
 * spread by two instructions (pdep), and summed up by two products or as a vector.
 */
#include <string.h>

#if defined(__BMI2__) && defined(__SSE4_1__)
#include <immintrin.h>
#define VECTORS 1
#else
#define VECTORS 0
#endif

#include "base/drps_endian.h"
#include "base/kernel/drps_level.h"
#include "index/plan/codec/drps_list.h"
#include "index/plan/codec/list_internal.h"

enum { BLOCK = 8, HEAD_BYTES = 4, CODES = 16, WIDEST = 32 };

static const unsigned char widths[CODES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32};

static size_t blocks_of(size_t n)
{
    return n / BLOCK + (n % BLOCK != 0);
}

static size_t head_of(size_t n)
{
    return HEAD_BYTES + (blocks_of(n) + 1) / 2;
}

static unsigned code_at(const unsigned char *codes, size_t block)
{
    return (unsigned)codes[block / 2] >> block % 2 * 4 & 15;
}

/* ---- Encoding ---- */

DRPS_KERNEL(size_t, drps_list_dense_bound, (size_t n), (n))
{
    return head_of(n) + blocks_of(n) * WIDEST;
}

/* The gaps of the numbers [from, to), 0 behind them; returns the code of their width. */
static unsigned block_gaps(const uint32_t *list, size_t from, size_t to, uint32_t *gaps)
{
    uint32_t all = 0;
    unsigned code = 0;
    for (size_t i = from; i < from + BLOCK; i++) {
        const uint32_t gap = i >= to ? 0 : i ? list[i] - list[i - 1] - 1 : list[i];
        gaps[i - from] = gap;
        all |= gap;
    }
    while (widths[code] < WIDEST && all >> widths[code])
        code++;
    return code;
}

/* Gaps of `width` bits each, one after the other. */
static unsigned char *put_bits(const uint32_t *gaps, unsigned width, unsigned char *at)
{
    uint64_t bits = 0;
    unsigned held = 0;
    for (int i = 0; i < BLOCK; i++) {
        bits |= (uint64_t)gaps[i] << held;
        for (held += width; held >= 8; held -= 8, bits >>= 8)
            *at++ = (unsigned char)bits;
    }
    return at;
}

static unsigned char *encode_block(const uint32_t *list, size_t n, size_t block,
                                   unsigned char *codes, unsigned char *at)
{
    uint32_t gaps[BLOCK];
    const unsigned code = block_gaps(list, block * BLOCK, n, gaps);
    codes[block / 2] |= (unsigned char)(code << block % 2 * 4);
    return put_bits(gaps, widths[code], at);
}

#if VECTORS

/* For each number of bits, the code of the least width that has as many. */
static const unsigned char codes_of[WIDEST + 1] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  9,
                                                   10, 10, 11, 11, 12, 12, 13, 13, 13, 13, 14,
                                                   14, 14, 14, 15, 15, 15, 15, 15, 15, 15, 15};

static unsigned bits_of(__m128i low, __m128i high)
{
    const __m128i all = _mm_or_si128(low, high);
    const uint64_t two = (uint64_t)_mm_cvtsi128_si64(all) | (uint64_t)_mm_extract_epi64(all, 1);
    const uint32_t one = (uint32_t)(two | two >> 32);
    return one ? 32u - (unsigned)__builtin_clz(one) : 0;
}

/* Eight numbers of up to 16 bits; there is room for as many bytes beyond them. */
static void put_short(__m128i low, __m128i high, unsigned width, unsigned char *at)
{
    const __m128i words = _mm_packus_epi32(low, high);
    if (width <= 8) {
        const uint64_t masks = ((UINT64_C(1) << width) - 1) * UINT64_C(0x0101010101010101);
        const __m128i bytes = _mm_packus_epi16(words, words);
        drps_put_u64(at, _pext_u64((uint64_t)_mm_cvtsi128_si64(bytes), masks));
        return;
    }
    const uint64_t masks = ((UINT64_C(1) << width) - 1) * UINT64_C(0x0001000100010001);
    drps_put_u64(at, _pext_u64((uint64_t)_mm_cvtsi128_si64(words), masks));
    drps_put_u64(at + width / 2, _pext_u64((uint64_t)_mm_extract_epi64(words, 1), masks));
}

/* Whole blocks after the first. Returns where it stopped. */
static size_t encode_fast(const uint32_t *list, size_t n, size_t block, unsigned char *codes,
                          unsigned char **at_inout)
{
    const __m128i one = _mm_set1_epi32(1);
    unsigned char *at = *at_inout;
    for (; (block + 1) * BLOCK <= n; block++) {
        const uint32_t *from = list + block * BLOCK;
        const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)from);
        const __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(from + 4));
        const __m128i left = _mm_loadu_si128((const __m128i *)(const void *)(from - 1));
        const __m128i middle = _mm_loadu_si128((const __m128i *)(const void *)(from + 3));
        const __m128i low_gaps = _mm_sub_epi32(_mm_sub_epi32(low, left), one);
        const __m128i high_gaps = _mm_sub_epi32(_mm_sub_epi32(high, middle), one);
        const unsigned code = codes_of[bits_of(low_gaps, high_gaps)], width = widths[code];
        if (width > 16) {
            at = encode_block(list, n, block, codes, at);
            continue;
        }
        codes[block / 2] |= (unsigned char)(code << block % 2 * 4);
        put_short(low_gaps, high_gaps, width, at);
        at += width;
    }
    *at_inout = at;
    return block;
}

#else

static size_t encode_fast(const uint32_t *list, size_t n, size_t block, unsigned char *codes,
                          unsigned char **at_inout)
{
    (void)list;
    (void)n;
    (void)codes;
    (void)at_inout;
    return block;
}

#endif

static size_t encode(const uint32_t *list, size_t n, int fast, unsigned char *head)
{
    unsigned char *codes = head + HEAD_BYTES, *at = head + head_of(n);
    drps_put_u32(head, (uint32_t)n | DRPS_LIST_DENSE);
    memset(codes, 0, (size_t)(at - codes));
    for (size_t block = 0; block < blocks_of(n);) {
        at = encode_block(list, n, block++, codes, at);
        if (fast) block = encode_fast(list, n, block, codes, &at);
    }
    return (size_t)(at - head);
}

DRPS_KERNEL(size_t, drps_list_encode_dense, (const uint32_t *list, size_t n, void *out),
            (list, n, out))
{
    return encode(list, n, 1, out);
}

DRPS_KERNEL(size_t, drps_list_encode_dense_ref, (const uint32_t *list, size_t n, void *out),
            (list, n, out))
{
    return encode(list, n, 0, out);
}

/* ---- Decoding ---- */

struct dense {
    const unsigned char *codes, *at, *end; /* of the next block, and of what may be read */
    size_t n;
    uint64_t next; /* what a gap of 0 stands for; 64 bits: more than a list may have */
};

/* One block, bit by bit; returns whether its bytes are there. */
static int decode_block(struct dense *d, size_t block, uint32_t *list)
{
    const size_t from = block * BLOCK, to = d->n - from < BLOCK ? d->n : from + BLOCK;
    const unsigned width = widths[code_at(d->codes, block)];
    const uint64_t mask = (UINT64_C(1) << width) - 1;
    const unsigned char *at = d->at;
    uint64_t bits = 0;
    unsigned held = 0;
    if ((size_t)(d->end - at) < width) return 0;
    for (size_t i = from; i < to; i++) {
        for (; held < width; held += 8)
            bits |= (uint64_t)*at++ << held;
        d->next += bits & mask;
        bits >>= width;
        held -= width;
        list[i] = (uint32_t)d->next++;
    }
    d->at += width;
    return 1;
}

#if VECTORS

enum {
    NARROW = 12,    /* bits, of which eight gaps sum up to at most 16 */
    WORD_CODE = 12, /* the code of 16 bits */
    AHEAD = 16,     /* blocks: L1 does not hold all that is written */
};

/* For each code, where the bits of four gaps go, a vector element of 16 bits each, and where in its
 * block the second four begin. */
struct spread {
    uint64_t masks;
    uint8_t half, shift; /* bytes, and bits */
    uint8_t width;
};
/* clang-format off */
#define MASKS(w) (((UINT64_C(1) << (w)) - 1) * UINT64_C(0x0001000100010001))
#define SPREAD(w) {MASKS(w), (w) / 2, (w) % 2 * 4, w}
static const struct spread spreads[WORD_CODE + 1] = {
    SPREAD(0), SPREAD(1), SPREAD(2), SPREAD(3), SPREAD(4), SPREAD(5), SPREAD(6), SPREAD(7), SPREAD(8),
    SPREAD(10), SPREAD(12), SPREAD(14), SPREAD(16)};
/* clang-format on */

static inline __m128i words(uint64_t four)
{
    return _mm_cvtepu16_epi32(_mm_cvtsi64_si128((long long)four));
}

/* Add up each vector element and those before it. */
static inline __m128i sums(__m128i v)
{
    v = _mm_add_epi32(v, _mm_slli_si128(v, 4));
    return _mm_add_epi32(v, _mm_slli_si128(v, 8));
}

/*
 * Eight numbers from `next` on, where a gap of 0 would be; returns where one behind them would be.
 * 16 bytes from `at` on may be read. Of narrow gaps a product sums up four vector elements at once;
 * wider ones would carry from element to element.
 */
static inline uint64_t decode_eight(const struct spread *s, const unsigned char *at, uint64_t next,
                                    uint32_t *out)
{
    const __m128i from = _mm_add_epi32(_mm_set1_epi32((int)next), _mm_set_epi32(3, 2, 1, 0));
    const uint64_t low = _pdep_u64(drps_get_u64(at), s->masks);
    const uint64_t high = _pdep_u64(drps_get_u64(at + s->half) >> s->shift, s->masks);
    __m128i low_sums, high_sums;
    if (__builtin_expect(s->width <= NARROW, 1)) {
        const uint64_t ones = UINT64_C(0x0001000100010001);
        const uint64_t four = low * ones, eight = (high + (four >> 48)) * ones;
        low_sums = words(four);
        high_sums = words(eight);
        next += eight >> 48;
    } else {
        low_sums = sums(words(low));
        high_sums = _mm_add_epi32(sums(words(high)), _mm_shuffle_epi32(low_sums, 0xff));
        next += (uint32_t)_mm_extract_epi32(high_sums, 3);
    }
    _mm_storeu_si128((__m128i *)(void *)out, _mm_add_epi32(from, low_sums));
    _mm_storeu_si128((__m128i *)(void *)(out + 4),
                     _mm_add_epi32(_mm_add_epi32(from, _mm_set1_epi32(4)), high_sums));
    return next + BLOCK;
}

/* Pairs of whole blocks of at most 16 bits a gap. Returns where it stopped. */
static size_t decode_fast(struct dense *d, size_t block, uint32_t *list)
{
    const unsigned char *at = d->at;
    uint64_t next = d->next;
    if (block % 2) return block; /* codes are read two at a time */
    for (; (block + 2) * BLOCK <= d->n && d->end - at >= 4 * BLOCK; block += 2) {
        const unsigned codes = d->codes[block / 2], first = codes & 15, second = codes >> 4;
        if (first > WORD_CODE || second > WORD_CODE) break;
        __builtin_prefetch(list + (block + AHEAD) * BLOCK, 1);
        next = decode_eight(&spreads[first], at, next, list + block * BLOCK);
        at += spreads[first].width;
        next = decode_eight(&spreads[second], at, next, list + (block + 1) * BLOCK);
        at += spreads[second].width;
    }
    d->at = at;
    d->next = next;
    return block;
}

#else

static size_t decode_fast(struct dense *d, size_t block, uint32_t *list)
{
    (void)d;
    (void)list;
    return block;
}

#endif

/* All blocks; returns whether their bytes are there. */
static int decode_blocks(struct dense *d, int fast, uint32_t *list)
{
    const size_t blocks = blocks_of(d->n);
    for (size_t block = 0; block < blocks;) {
        if (fast) block = decode_fast(d, block, list);
        if (block < blocks && !decode_block(d, block++, list)) return 0;
    }
    return 1;
}

/* Numbers increase, so that none leaves 32 bits if the last one does not. */
static int decode(const void *record, size_t bytes, int fast, uint32_t *list_out, size_t *used_out,
                  struct drps_err *err)
{
    const unsigned char *head = record;
    const size_t n = drps_list_count(record), begin = head_of(n);
    struct dense d = {.codes = head + HEAD_BYTES, .end = head + bytes, .n = n};
    if (used_out) *used_out = 0;
    if (begin <= bytes) d.at = head + begin;
    if (!d.at || !decode_blocks(&d, fast, list_out))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "a dense list of %zu numbers does not fit %zu bytes", n, bytes);
    if (used_out) *used_out = (size_t)(d.at - head);
    return d.next <= UINT64_C(1) << 32
               ? 0
               : drps_err_set(err, DRPS_E_CORRUPT, "a dense list of %zu numbers leaves 32 bits", n);
}

DRPS_KERNEL(int, drps_list_dense_decode,
            (const void *record, size_t bytes, uint32_t *list_out, size_t *used_out,
             struct drps_err *err),
            (record, bytes, list_out, used_out, err))
{
    return decode(record, bytes, 1, list_out, used_out, err);
}

DRPS_KERNEL(int, drps_list_dense_decode_ref,
            (const void *record, size_t bytes, uint32_t *list_out, size_t *used_out,
             struct drps_err *err),
            (record, bytes, list_out, used_out, err))
{
    return decode(record, bytes, 0, list_out, used_out, err);
}
