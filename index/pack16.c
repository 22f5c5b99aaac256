#include "index/pack16.h"

#if defined(__BMI2__) && defined(__SSE4_1__)
#include <immintrin.h>
#define VECTORS 1
#else
#define VECTORS 0
#endif

#include "base/drps_endian.h"

enum { GROUP = 4, CODE_BITS = 2, LEAST_WIDTH = 4 };

static const unsigned char widths[4] = {LEAST_WIDTH, 7, 11, 16};

static size_t codes_of(size_t n)
{
    return n / GROUP + (n % GROUP != 0);
}

static unsigned code_at(const unsigned char *codes, size_t i)
{
    return (unsigned)codes[i / GROUP] >> i % GROUP * CODE_BITS & 3;
}

/* Behind the last number up to eight bytes are written that do not count. */
size_t pack16_bound(size_t n)
{
    return codes_of(n) + 2 * n + sizeof(uint64_t);
}

/* ---- Encoding ---- */

static unsigned code_of(uint16_t difference)
{
    return (unsigned)(difference >> 4 != 0) + (unsigned)(difference >> 7 != 0) +
           (unsigned)(difference >> 11 != 0);
}

/* Which code comes can hardly be predicted: no branch on it. */
size_t pack16_encode(const uint16_t *numbers, size_t n, void *out)
{
    unsigned char *codes = out;
    unsigned char *at = codes + codes_of(n);
    uint16_t before = 0;
    uint64_t bits = 0;
    unsigned held = 0, group = 0;
    for (size_t i = 0; i < n; i++) {
        const uint16_t difference = (uint16_t)(numbers[i] - before);
        const unsigned code = code_of(difference);
        before = numbers[i];
        group |= code << i % GROUP * CODE_BITS;
        codes[i / GROUP] = (unsigned char)group;
        if (i % GROUP == GROUP - 1) group = 0;
        bits |= (uint64_t)difference << held;
        held += widths[code];
        drps_put_u64(at, bits);
        at += held / 8;
        bits >>= held / 8 * 8;
        held %= 8;
    }
    return (size_t)(at - codes) + (held != 0);
}

/* ---- Decoding ---- */

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

/* clang-format off */
#define LANE(c, k) (((UINT64_C(1) << WIDTH(c, k)) - 1) << 16 * (k))
#define LANES(c) (LANE(c, 0) | LANE(c, 1) | LANE(c, 2) | LANE(c, 3))
/* clang-format on */

/* Of a byte of codes: where the bits of its four numbers go. */
static const uint64_t group_lanes[256] = {TIMES256(LANES)};

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
