/*
 * Dense lists: gaps in blocks of eight, all of a block with the same number of bits. Eight numbers
 * of w bits are w bytes, so blocks begin at bytes. With BMI2 a block of up to 16 bits a number is
 * spread by one or two instructions (pdep) and summed up as a vector.
 */
#include <string.h>

#if defined(__BMI2__) && defined(__SSE4_1__)
#include <immintrin.h>
#define VECTORS 1
#else
#define VECTORS 0
#endif

#include "base/drps_endian.h"
#include "index/drps_batch.h"
#include "index/list.h"

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

size_t list_dense_bound(size_t n)
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

/* By the number of bits: the code of the least width that has as many. */
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
        const uint64_t lanes = ((UINT64_C(1) << width) - 1) * UINT64_C(0x0101010101010101);
        const __m128i bytes = _mm_packus_epi16(words, words);
        drps_put_u64(at, _pext_u64((uint64_t)_mm_cvtsi128_si64(bytes), lanes));
        return;
    }
    const uint64_t lanes = ((UINT64_C(1) << width) - 1) * UINT64_C(0x0001000100010001);
    drps_put_u64(at, _pext_u64((uint64_t)_mm_cvtsi128_si64(words), lanes));
    drps_put_u64(at + width / 2, _pext_u64((uint64_t)_mm_extract_epi64(words, 1), lanes));
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
    drps_put_u32(head, (uint32_t)n | LIST_DENSE);
    memset(codes, 0, (size_t)(at - codes));
    for (size_t block = 0; block < blocks_of(n);) {
        at = encode_block(list, n, block++, codes, at);
        if (fast) block = encode_fast(list, n, block, codes, &at);
    }
    return (size_t)(at - head);
}

size_t drps_list_encode_dense(const uint32_t *list, size_t n, void *out)
{
    return encode(list, n, 1, out);
}

size_t list_encode_dense_ref(const uint32_t *list, size_t n, void *out)
{
    return encode(list, n, 0, out);
}

/* ---- Decoding ---- */

struct dense {
    const unsigned char *codes, *at, *end; /* of the next block, and of what may be read */
    size_t n;
};

static int begin(struct dense *d, const void *record, size_t bytes, size_t *used_out,
                 struct drps_err *err)
{
    const unsigned char *head = record;
    const size_t n = drps_list_count(record), blocks = blocks_of(n);
    size_t used = head_of(n);
    int fits = used <= bytes;
    for (size_t b = 0; fits && b < blocks; b++)
        used += widths[code_at(head + HEAD_BYTES, b)];
    fits = fits && used <= bytes;
    if (used_out) *used_out = fits ? used : 0;
    *d = (struct dense){.codes = head + HEAD_BYTES, .end = head + bytes, .n = n};
    if (!fits)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "a dense list of %zu numbers does not fit %zu bytes", n, bytes);
    d->at = head + head_of(n);
    return 0;
}

/* One block, bit by bit; returns whether the list left 32 bits. */
static int decode_block(struct dense *d, size_t block, uint32_t *list)
{
    const size_t from = block * BLOCK, to = d->n - from < BLOCK ? d->n : from + BLOCK;
    const unsigned width = widths[code_at(d->codes, block)];
    const uint64_t mask = (UINT64_C(1) << width) - 1;
    uint64_t next = from ? (uint64_t)list[from - 1] + 1 : 0, bits = 0, overflow = 0;
    const unsigned char *at = d->at;
    unsigned held = 0;
    for (size_t i = from; i < to; i++) {
        for (; held < width; held += 8)
            bits |= (uint64_t)*at++ << held;
        next += bits & mask;
        bits >>= width;
        held -= width;
        list[i] = (uint32_t)next;
        overflow |= next >> 32;
        next++;
    }
    d->at += width;
    return overflow != 0;
}

#if VECTORS

static __m128i sum_up(__m128i v, __m128i before)
{
    v = _mm_add_epi32(v, _mm_set1_epi32(1));
    v = _mm_add_epi32(v, _mm_slli_si128(v, 4));
    v = _mm_add_epi32(v, _mm_slli_si128(v, 8));
    return _mm_add_epi32(v, _mm_shuffle_epi32(before, 0xff));
}

/* Whole blocks of at most 16 bits a number, after the first. Returns where it stopped; *wraps is
 * set when a sum is not larger than the one before it. */
static size_t decode_fast(struct dense *d, size_t block, uint32_t *list, int *wraps)
{
    const __m128i sign = _mm_set1_epi32(INT32_MIN);
    __m128i before = _mm_set1_epi32((int)list[block * BLOCK - 1]), rising = _mm_set1_epi32(-1);
    for (; (block + 1) * BLOCK <= d->n && d->end - d->at >= 2 * BLOCK; block++) {
        const unsigned width = widths[code_at(d->codes, block)];
        __m128i low, high;
        if (width <= 8) {
            const uint64_t lanes = ((UINT64_C(1) << width) - 1) * UINT64_C(0x0101010101010101);
            const __m128i v = _mm_cvtsi64_si128((long long)_pdep_u64(drps_get_u64(d->at), lanes));
            low = _mm_cvtepu8_epi32(v);
            high = _mm_cvtepu8_epi32(_mm_srli_si128(v, 4));
        } else if (width <= 16) {
            const uint64_t lanes = ((UINT64_C(1) << width) - 1) * UINT64_C(0x0001000100010001);
            const unsigned char *half = d->at + width / 2; /* an even number of bits */
            low = _mm_cvtepu16_epi32(
                _mm_cvtsi64_si128((long long)_pdep_u64(drps_get_u64(d->at), lanes)));
            high = _mm_cvtepu16_epi32(
                _mm_cvtsi64_si128((long long)_pdep_u64(drps_get_u64(half), lanes)));
        } else {
            break;
        }
        low = sum_up(low, before);
        high = sum_up(high, low);
        const __m128i left_of_low = _mm_alignr_epi8(low, before, 12);
        const __m128i left_of_high = _mm_alignr_epi8(high, low, 12);
        rising = _mm_and_si128(
            rising, _mm_cmpgt_epi32(_mm_xor_si128(low, sign), _mm_xor_si128(left_of_low, sign)));
        rising = _mm_and_si128(
            rising, _mm_cmpgt_epi32(_mm_xor_si128(high, sign), _mm_xor_si128(left_of_high, sign)));
        _mm_storeu_si128((__m128i *)(void *)(list + block * BLOCK), low);
        _mm_storeu_si128((__m128i *)(void *)(list + block * BLOCK + 4), high);
        before = high;
        d->at += width;
    }
    *wraps |= _mm_movemask_epi8(rising) != 0xffff;
    return block;
}

#else

static size_t decode_fast(struct dense *d, size_t block, uint32_t *list, int *wraps)
{
    (void)d;
    (void)list;
    (void)wraps;
    return block;
}

#endif

static int decode(const void *record, size_t bytes, int fast, uint32_t *list_out, size_t *used_out,
                  struct drps_err *err)
{
    struct dense d;
    int wraps = 0;
    int rc = begin(&d, record, bytes, used_out, err);
    if (rc < 0) return rc;
    for (size_t block = 0; block < blocks_of(d.n);) {
        wraps |= decode_block(&d, block, list_out);
        block++;
        if (fast && block < blocks_of(d.n)) block = decode_fast(&d, block, list_out, &wraps);
    }
    return wraps ? drps_err_set(err, DRPS_E_CORRUPT, "a dense list of %zu numbers leaves 32 bits",
                                d.n)
                 : 0;
}

int list_dense_decode(const void *record, size_t bytes, uint32_t *list_out, size_t *used_out,
                      struct drps_err *err)
{
    return decode(record, bytes, 1, list_out, used_out, err);
}

int list_dense_decode_ref(const void *record, size_t bytes, uint32_t *list_out, size_t *used_out,
                          struct drps_err *err)
{
    return decode(record, bytes, 0, list_out, used_out, err);
}
