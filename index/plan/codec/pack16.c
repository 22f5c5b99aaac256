/*
 * Packing 16-bit numbers by their differences (drps_pack16.h): the plain codec, and vector
 * instructions where the processor has them.
 */
#include "index/plan/codec/drps_pack16.h"

#include <string.h>

#if defined(__BMI2__) && defined(__SSE4_1__)
#include <immintrin.h>
#define VECTORS 1
#else
#define VECTORS 0
#endif

#include "base/drps_endian.h"
#include "base/kernel/drps_level.h"

enum { GROUP = 4, CODE_BITS = 2, LEAST_WIDTH = 4 };

static const unsigned char widths[4] = {LEAST_WIDTH, 7, 11, 16};

#if VECTORS

/* For each byte of codes, the bits that its four numbers take. */
/* clang-format off */
#define WIDTH(c, k) (((c) >> 2 * (k) & 3) == 0 ? 4 : ((c) >> 2 * (k) & 3) == 1 ? 7 : ((c) >> 2 * (k) & 3) == 2 ? 11 : 16)
#define BITS(c) (WIDTH(c, 0) + WIDTH(c, 1) + WIDTH(c, 2) + WIDTH(c, 3))
#define TIMES4(X, c) X(c), X((c) + 1), X((c) + 2), X((c) + 3)
#define TIMES16(X, c) TIMES4(X, c), TIMES4(X, (c) + 4), TIMES4(X, (c) + 8), TIMES4(X, (c) + 12)
#define TIMES64(X, c) TIMES16(X, c), TIMES16(X, (c) + 16), TIMES16(X, (c) + 32), TIMES16(X, (c) + 48)
#define TIMES256(X) TIMES64(X, 0), TIMES64(X, 64), TIMES64(X, 128), TIMES64(X, 192)
/* clang-format on */

static const unsigned char group_bits[256] = {TIMES256(BITS)};

/* clang-format off */
#define MASK(c, k) (((UINT64_C(1) << WIDTH(c, k)) - 1) << 16 * (k))
#define MASKS(c) (MASK(c, 0) | MASK(c, 1) | MASK(c, 2) | MASK(c, 3))
/* clang-format on */

/* and where they go. */
static const uint64_t group_masks[256] = {TIMES256(MASKS)};

#endif

static size_t codes_of(size_t n)
{
    return n / GROUP + (n % GROUP != 0);
}

static unsigned code_at(const unsigned char *codes, size_t i)
{
    return (unsigned)codes[i / GROUP] >> i % GROUP * CODE_BITS & 3;
}

/* Behind the last number up to 16 bytes are written that do not count. */
DRPS_KERNEL(size_t, drps_pack16_bound, (size_t n), (n))
{
    return codes_of(n) + 2 * n + 16;
}

/* ---- Encoding ---- */

static unsigned code_of(uint16_t difference)
{
    return (unsigned)(difference >> 4 != 0) + (unsigned)(difference >> 7 != 0) +
           (unsigned)(difference >> 11 != 0);
}

/* The next bits go behind the `held` < 8 bits of the byte at `at`. */
struct writer {
    unsigned char *at;
    unsigned held;
};

/* The low `width` bits; the others are zero. */
static void put_bits(struct writer *w, uint64_t bits, unsigned width)
{
    const uint64_t before = w->held ? *w->at : 0;
    drps_put_u64(w->at, before | bits << w->held);
    drps_put_u64(w->at + 8, bits >> 1 >> (63 - w->held));
    w->held += width;
    w->at += w->held / 8;
    w->held %= 8;
}

/* Numbers [from, n), `from` a multiple of four. */
static void encode_some(const uint16_t *numbers, size_t from, size_t n, unsigned char *codes,
                        struct writer *w)
{
    uint16_t before = from ? numbers[from - 1] : 0;
    memset(codes + from / GROUP, 0, codes_of(n) - from / GROUP);
    for (size_t i = from; i < n; i++) {
        const uint16_t difference = (uint16_t)(numbers[i] - before);
        const unsigned code = code_of(difference);
        before = numbers[i];
        codes[i / GROUP] = (unsigned char)(codes[i / GROUP] | code << i % GROUP * CODE_BITS);
        put_bits(w, difference, widths[code]);
    }
}

static size_t ended(const struct writer *w, const unsigned char *begin)
{
    return (size_t)(w->at - begin) + (w->held != 0);
}

DRPS_KERNEL(size_t, drps_pack16_encode_ref, (const uint16_t *numbers, size_t n, void *out),
            (numbers, n, out))
{
    struct writer w = {.at = (unsigned char *)out + codes_of(n)};
    encode_some(numbers, 0, n, out, &w);
    return ended(&w, out);
}

#if VECTORS

/* Append four differences and their codes, vector elements of 16 bits each; returns the byte of
 * codes. */
static unsigned char put_group(struct writer *w, uint64_t differences, uint64_t codes)
{
    const unsigned char code = (unsigned char)_pext_u64(codes, UINT64_C(0x0003000300030003));
    put_bits(w, _pext_u64(differences, group_masks[code]), group_bits[code]);
    return code;
}

/* -1 in the vector elements where a difference is at most `most`, else 0. */
static __m128i at_most(__m128i differences, int most)
{
    return _mm_cmpeq_epi16(_mm_subs_epu16(differences, _mm_set1_epi16((short)most)),
                           _mm_setzero_si128());
}

DRPS_KERNEL(size_t, drps_pack16_encode, (const uint16_t *numbers, size_t n, void *out),
            (numbers, n, out))
{
    unsigned char *codes = out;
    struct writer w = {.at = codes + codes_of(n)};
    __m128i before = _mm_setzero_si128();
    size_t i = 0;
    for (; n - i >= 8; i += 8) {
        const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(numbers + i));
        const __m128i d = _mm_sub_epi16(v, _mm_alignr_epi8(v, before, 14));
        __m128i c = _mm_add_epi16(_mm_set1_epi16(3), at_most(d, (1 << 4) - 1));
        c = _mm_add_epi16(c, at_most(d, (1 << 7) - 1));
        c = _mm_add_epi16(c, at_most(d, (1 << 11) - 1));
        before = v;
        codes[i / GROUP] =
            put_group(&w, (uint64_t)_mm_cvtsi128_si64(d), (uint64_t)_mm_cvtsi128_si64(c));
        codes[i / GROUP + 1] =
            put_group(&w, (uint64_t)_mm_extract_epi64(d, 1), (uint64_t)_mm_extract_epi64(c, 1));
    }
    encode_some(numbers, i, n, codes, &w);
    return ended(&w, out);
}

#else

DRPS_KERNEL(size_t, drps_pack16_encode, (const uint16_t *numbers, size_t n, void *out),
            (numbers, n, out))
{
    return drps_pack16_encode_ref(numbers, n, out);
}

#endif

/* ---- Decoding ---- */

/* Packed numbers on their way to `out`. */
struct reader {
    const unsigned char *codes, *bytes; /* of the numbers, and where their bits begin */
    uint64_t bits, at;                  /* that there are, and the next number's first one */
    size_t i, n;                        /* the next number */
    uint16_t before, largest;           /* number i - 1, and the largest so far */
    uint16_t *out;
};

/* Decode numbers up to the n-th, while there are bits. */
static void decode_some(struct reader *r)
{
    for (; r->i < r->n; r->i++) {
        const unsigned width = widths[code_at(r->codes, r->i)];
        if (r->bits - r->at < width) return;
        const unsigned char *from = r->bytes + r->at / 8;
        uint32_t bits = *from;
        for (unsigned held = 8; held < r->at % 8 + width; held += 8)
            bits |= (uint32_t)from[held / 8] << held;
        r->before = (uint16_t)(r->before + (bits >> r->at % 8 & ((1u << width) - 1)));
        r->largest = r->before > r->largest ? r->before : r->largest;
        r->out[r->i] = r->before;
        r->at += width;
    }
}

#if VECTORS

/* The four numbers whose bits begin at bit `at`: nine bytes from there on may be read. Few reach
 * into the ninth. */
static inline uint64_t spread(const unsigned char *bytes, uint64_t at, unsigned codes)
{
    const unsigned char *from = bytes + at / 8;
    const unsigned shift = (unsigned)(at % 8);
    uint64_t bits = drps_get_u64(from) >> shift;
    if (__builtin_expect(group_bits[codes] > 57, 0)) bits |= (uint64_t)from[8] << 1 << (63 - shift);
    return _pdep_u64(bits, group_masks[codes]);
}

static uint16_t largest_of(__m128i v)
{
    const __m128i all = _mm_set1_epi16(-1); /* there is an instruction for the smallest */
    return (uint16_t)~_mm_extract_epi16(_mm_minpos_epu16(_mm_xor_si128(v, all)), 0);
}

/* Eight at a time. */
static void decode_fast(struct reader *r)
{
    enum {
        READ = 8 * (8 + 9), /* bits from that byte on that the first one is in, for two groups */
        AHEAD = 256,        /* numbers: L1 does not hold them all, nor does this processor's L2 */
    };
    const unsigned char *codes = r->codes;
    const __m128i last = _mm_set1_epi16(0x0f0e); /* copies number 7 to all */
    __m128i before = _mm_setzero_si128(), largest = before;
    uint64_t at = 0;
    size_t i = 0;
    for (; r->n - i >= 8 && r->bits >= at + READ; i += 8) {
        const unsigned low = codes[i / GROUP], high = codes[i / GROUP + 1];
        __builtin_prefetch(r->out + i + AHEAD, 1);
        __m128i v = _mm_set_epi64x((long long)spread(r->bytes, at + group_bits[low], high),
                                   (long long)spread(r->bytes, at, low));
        v = _mm_add_epi16(v, _mm_slli_si128(v, 2));
        v = _mm_add_epi16(v, _mm_slli_si128(v, 4));
        v = _mm_add_epi16(v, _mm_slli_si128(v, 8));
        v = _mm_add_epi16(v, before);
        _mm_storeu_si128((__m128i *)(void *)(r->out + i), v);
        largest = _mm_max_epu16(largest, v);
        before = _mm_shuffle_epi8(v, last);
        at += group_bits[low] + group_bits[high];
    }
    r->i = i;
    r->at = at;
    r->before = (uint16_t)_mm_extract_epi16(before, 0);
    r->largest = largest_of(largest);
}

#else

static void decode_fast(struct reader *r)
{
    (void)r;
}

#endif

static size_t decode(const void *packed, size_t bytes, size_t n, int fast, uint16_t *numbers_out,
                     uint16_t *largest_out)
{
    const unsigned char *codes = packed;
    const size_t head = codes_of(n);
    const unsigned missing = (unsigned)(head * GROUP - n); /* numbers, of the last group */
    *largest_out = 0;
    if (!n || head > bytes) return 0;
    if (missing && codes[head - 1] >> (GROUP - missing) * CODE_BITS) return 0;
    struct reader r = {.codes = codes,
                       .bytes = codes + head,
                       .bits = (bytes - head) * (uint64_t)8,
                       .n = n,
                       .out = numbers_out};
    if (fast) decode_fast(&r);
    decode_some(&r);
    *largest_out = r.largest;
    return r.i == n ? head + (size_t)((r.at + 7) / 8) : 0;
}

DRPS_KERNEL(size_t, drps_pack16_decode,
            (const void *packed, size_t bytes, size_t n, uint16_t *numbers_out,
             uint16_t *largest_out),
            (packed, bytes, n, numbers_out, largest_out))
{
    return decode(packed, bytes, n, 1, numbers_out, largest_out);
}

DRPS_KERNEL(size_t, drps_pack16_decode_ref,
            (const void *packed, size_t bytes, size_t n, uint16_t *numbers_out,
             uint16_t *largest_out),
            (packed, bytes, n, numbers_out, largest_out))
{
    return decode(packed, bytes, n, 0, numbers_out, largest_out);
}
