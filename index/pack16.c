#include "index/pack16.h"

#include <string.h>

#if defined(__BMI2__) && defined(__SSE4_1__)
#include <immintrin.h>
#define VECTORS 1
#else
#define VECTORS 0
#endif

#include "base/drps_endian.h"

enum { GROUP = 4, CODE_BITS = 2, LEAST_WIDTH = 4 };

static const unsigned char widths[4] = {LEAST_WIDTH, 7, 11, 16};

/* Of a byte of codes: the bits that its four numbers take. */
/* clang-format off */
#define WIDTH(c, k) (((c) >> 2 * (k) & 3) == 0 ? 4 : ((c) >> 2 * (k) & 3) == 1 ? 7 : ((c) >> 2 * (k) & 3) == 2 ? 11 : 16)
#define BITS(c) (WIDTH(c, 0) + WIDTH(c, 1) + WIDTH(c, 2) + WIDTH(c, 3))
#define TIMES4(X, c) X(c), X((c) + 1), X((c) + 2), X((c) + 3)
#define TIMES16(X, c) TIMES4(X, c), TIMES4(X, (c) + 4), TIMES4(X, (c) + 8), TIMES4(X, (c) + 12)
#define TIMES64(X, c) TIMES16(X, c), TIMES16(X, (c) + 16), TIMES16(X, (c) + 32), TIMES16(X, (c) + 48)
#define TIMES256(X) TIMES64(X, 0), TIMES64(X, 64), TIMES64(X, 128), TIMES64(X, 192)
/* clang-format on */

static const unsigned char group_bits[256] = {TIMES256(BITS)};

#if VECTORS

/* clang-format off */
#define LANE(c, k) (((UINT64_C(1) << WIDTH(c, k)) - 1) << 16 * (k))
#define LANES(c) (LANE(c, 0) | LANE(c, 1) | LANE(c, 2) | LANE(c, 3))
/* clang-format on */

/* Of a byte of codes: where the bits of its four numbers go. */
static const uint64_t group_lanes[256] = {TIMES256(LANES)};

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
size_t pack16_bound(size_t n)
{
    return codes_of(n) + 2 * n + 16;
}

/* ---- Encoding ---- */

static unsigned code_of(uint16_t difference)
{
    return (unsigned)(difference >> 4 != 0) + (unsigned)(difference >> 7 != 0) +
           (unsigned)(difference >> 11 != 0);
}

/* Where the next bits go: behind `held` < 8 bits of the byte at `at`. */
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

size_t pack16_encode_ref(const uint16_t *numbers, size_t n, void *out)
{
    struct writer w = {.at = (unsigned char *)out + codes_of(n)};
    encode_some(numbers, 0, n, out, &w);
    return ended(&w, out);
}

#if VECTORS

/* Four differences and their codes, a lane of 16 bits each; returns the byte of codes. */
static unsigned char put_group(struct writer *w, uint64_t differences, uint64_t codes)
{
    const unsigned char code = (unsigned char)_pext_u64(codes, UINT64_C(0x0003000300030003));
    put_bits(w, _pext_u64(differences, group_lanes[code]), group_bits[code]);
    return code;
}

/* -1 in the lanes where a difference is at most `most`, else 0. */
static __m128i at_most(__m128i differences, int most)
{
    return _mm_cmpeq_epi16(_mm_subs_epu16(differences, _mm_set1_epi16((short)most)),
                           _mm_setzero_si128());
}

size_t pack16_encode(const uint16_t *numbers, size_t n, void *out)
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

size_t pack16_encode(const uint16_t *numbers, size_t n, void *out)
{
    return pack16_encode_ref(numbers, n, out);
}

#endif

/* ---- Decoding ---- */

size_t pack16_bytes(const void *packed, size_t bytes, size_t n)
{
    const unsigned char *codes = packed;
    const size_t head = codes_of(n);
    const unsigned missing = (unsigned)(head * GROUP - n); /* numbers, of the last group */
    uint64_t bits = 0;
    if (!n || head > bytes) return 0;
    if (missing && codes[head - 1] >> (GROUP - missing) * CODE_BITS) return 0;
    for (size_t i = 0; i < head; i++)
        bits += group_bits[codes[i]];
    bits -= missing * LEAST_WIDTH;
    const uint64_t sum = head + (bits + 7) / 8;
    return sum <= bytes ? (size_t)sum : 0;
}

/* Numbers [from, n), of which the one before is `before`, and the first one's bits begin at bit
 * `at` behind the codes. */
static void decode_some(const unsigned char *packed, uint64_t at, size_t from, size_t n,
                        uint16_t before, uint16_t *out)
{
    const unsigned char *bytes = packed + codes_of(n) + at / 8;
    unsigned held = 0;
    uint64_t bits = 0;
    if (from < n && at % 8) {
        bits = (uint64_t)*bytes++ >> at % 8;
        held = 8 - (unsigned)(at % 8);
    }
    for (size_t i = from; i < n; i++) {
        const unsigned width = widths[code_at(packed, i)];
        for (; held < width; held += 8)
            bits |= (uint64_t)*bytes++ << held;
        out[i] = before = (uint16_t)(before + (bits & ((1u << width) - 1)));
        bits >>= width;
        held -= width;
    }
}

void pack16_decode_ref(const void *packed, size_t bytes, size_t n, uint16_t *numbers_out)
{
    (void)bytes;
    decode_some(packed, 0, 0, n, 0, numbers_out);
}

#if VECTORS

/* The four numbers whose bits begin at bit `at`: nine bytes from there on may be read. */
static uint64_t spread(const unsigned char *bytes, uint64_t at, unsigned codes)
{
    const unsigned char *from = bytes + at / 8;
    const unsigned shift = (unsigned)(at % 8);
    const uint64_t bits = drps_get_u64(from) >> shift | (uint64_t)from[8] << 1 << (63 - shift);
    return _pdep_u64(bits, group_lanes[codes]);
}

void pack16_decode(const void *packed, size_t bytes, size_t n, uint16_t *numbers_out)
{
    enum { READ = 8 + 9 }; /* bytes from that of the first bit on, for two groups */
    const unsigned char *codes = packed, *from = codes + codes_of(n);
    const uint64_t most = bytes - codes_of(n);
    const __m128i last = _mm_set1_epi16(0x0f0e); /* copies number 7 to all */
    __m128i before = _mm_setzero_si128();
    uint64_t at = 0;
    size_t i = 0;
    for (; n - i >= 8 && most >= at / 8 + READ; i += 8) {
        const unsigned low = codes[i / GROUP], high = codes[i / GROUP + 1];
        __m128i v = _mm_set_epi64x((long long)spread(from, at + group_bits[low], high),
                                   (long long)spread(from, at, low));
        v = _mm_add_epi16(v, _mm_slli_si128(v, 2));
        v = _mm_add_epi16(v, _mm_slli_si128(v, 4));
        v = _mm_add_epi16(v, _mm_slli_si128(v, 8));
        v = _mm_add_epi16(v, before);
        _mm_storeu_si128((__m128i *)(void *)(numbers_out + i), v);
        before = _mm_shuffle_epi8(v, last);
        at += group_bits[low] + group_bits[high];
    }
    decode_some(packed, at, i, n, i ? numbers_out[i - 1] : 0, numbers_out);
}

#else

void pack16_decode(const void *packed, size_t bytes, size_t n, uint16_t *numbers_out)
{
    pack16_decode_ref(packed, bytes, n, numbers_out);
}

#endif
