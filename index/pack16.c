#include "index/pack16.h"

#include <string.h>

#ifdef __SSSE3__
#include <tmmintrin.h>
#endif

size_t pack16_bound(size_t n)
{
    return (n + 7) / 8 + 2 * n;
}

size_t pack16_encode(const uint16_t *numbers, size_t n, void *out)
{
    unsigned char *marks = out;
    unsigned char *at = marks + (n + 7) / 8;
    uint16_t before = 0;
    memset(marks, 0, (n + 7) / 8);
    for (size_t i = 0; i < n; i++) {
        const uint16_t d = (uint16_t)(numbers[i] - before);
        const unsigned wide = d > UINT8_MAX;
        before = numbers[i];
        marks[i / 8] |= (unsigned char)(wide << i % 8);
        at[0] = (unsigned char)d;
        if (wide) at[1] = (unsigned char)(d >> 8);
        at += 1 + wide;
    }
    return (size_t)(at - marks);
}

size_t pack16_bytes(const void *packed, size_t bytes, size_t n)
{
    const unsigned char *marks = packed;
    const size_t head = n / 8 + (n % 8 != 0);
    if (!n || n > bytes || head > bytes - n) return 0;
    if (n % 8 && marks[head - 1] >> n % 8) return 0; /* a mark without a number */
    size_t sum = head + n;
    for (size_t i = 0; i < head; i++)
        sum += (size_t)__builtin_popcount(marks[i]);
    return sum <= bytes ? sum : 0;
}

/* Numbers [from, n), of which the one before is `before`, and the first one's bytes are at `at`. */
static void decode_some(const unsigned char *marks, const unsigned char *at, size_t from, size_t n,
                        uint16_t before, uint16_t *out)
{
    for (size_t i = from; i < n; i++) {
        const unsigned wide = (unsigned)marks[i / 8] >> i % 8 & 1;
        unsigned d = at[0];
        if (wide) d |= (unsigned)at[1] << 8;
        out[i] = before = (uint16_t)(before + d);
        at += 1 + wide;
    }
}

void pack16_decode_ref(const void *packed, size_t bytes, size_t n, uint16_t *numbers_out)
{
    const unsigned char *marks = packed;
    (void)bytes;
    decode_some(marks, marks + (n + 7) / 8, 0, n, 0, numbers_out);
}

#ifdef __SSSE3__

/* clang-format off */
#define WIDE(m, k) ((m) >> (k) & 1)
#define START(m, k)                                                                                \
    ((k) + ((k) > 0 ? WIDE(m, 0) : 0) + ((k) > 1 ? WIDE(m, 1) : 0) + ((k) > 2 ? WIDE(m, 2) : 0) + \
     ((k) > 3 ? WIDE(m, 3) : 0) + ((k) > 4 ? WIDE(m, 4) : 0) + ((k) > 5 ? WIDE(m, 5) : 0) +       \
     ((k) > 6 ? WIDE(m, 6) : 0))
#define NUMBER(m, k) START(m, k), WIDE(m, k) ? START(m, k) + 1 : 0x80 /* 0x80: a zero byte */
#define SHUFFLE(m)                                                                                 \
    {NUMBER(m, 0), NUMBER(m, 1), NUMBER(m, 2), NUMBER(m, 3),                                       \
     NUMBER(m, 4), NUMBER(m, 5), NUMBER(m, 6), NUMBER(m, 7)}
#define TIMES4(X, m) X(m), X((m) + 1), X((m) + 2), X((m) + 3)
#define TIMES16(X, m) TIMES4(X, m), TIMES4(X, (m) + 4), TIMES4(X, (m) + 8), TIMES4(X, (m) + 12)
#define TIMES64(X, m) TIMES16(X, m), TIMES16(X, (m) + 16), TIMES16(X, (m) + 32), TIMES16(X, (m) + 48)
/* By the byte of marks: where the bytes of eight numbers lie. */
static const _Alignas(16) unsigned char shuffles[256][16] = {
    TIMES64(SHUFFLE, 0), TIMES64(SHUFFLE, 64), TIMES64(SHUFFLE, 128), TIMES64(SHUFFLE, 192)};
/* clang-format on */

void pack16_decode(const void *packed, size_t bytes, size_t n, uint16_t *numbers_out)
{
    const unsigned char *marks = packed, *at = marks + (n + 7) / 8, *end = marks + bytes;
    const __m128i last = _mm_set1_epi16(0x0f0e); /* copies number 7 to all */
    __m128i before = _mm_setzero_si128();
    size_t i = 0;
    for (; n - i >= 8 && end - at >= 16; i += 8) {
        const unsigned m = marks[i / 8];
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)at);
        v = _mm_shuffle_epi8(v, _mm_load_si128((const __m128i *)(const void *)shuffles[m]));
        v = _mm_add_epi16(v, _mm_slli_si128(v, 2));
        v = _mm_add_epi16(v, _mm_slli_si128(v, 4));
        v = _mm_add_epi16(v, _mm_slli_si128(v, 8));
        v = _mm_add_epi16(v, before);
        _mm_storeu_si128((__m128i *)(void *)(numbers_out + i), v);
        before = _mm_shuffle_epi8(v, last);
        at += 8 + __builtin_popcount(m);
    }
    decode_some(marks, at, i, n, i ? numbers_out[i - 1] : 0, numbers_out);
}

#else

void pack16_decode(const void *packed, size_t bytes, size_t n, uint16_t *numbers_out)
{
    pack16_decode_ref(packed, bytes, n, numbers_out);
}

#endif
