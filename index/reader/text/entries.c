/*
 * Plain entries by vectors (drps_entries.h). Of 64 bytes at a time the colons, blanks and digits
 * are found at once, as bits of words, and whether they alternate as in "id:value " is a matter of
 * a few operations on these. So where an entry ends does not wait for the one before it, and ids
 * become numbers four at a time.
 */
#include "index/reader/text/drps_entries.h"

#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#define VECTORS 1
#else
#define VECTORS 0
#endif

#include "base/kernel/drps_level.h"

#if VECTORS

enum {
    BLOCK = 64,
    GROUP = 4,                             /* ids that become numbers at once */
    MOST = (BLOCK / 4 / GROUP + 1) * GROUP /* entries of a block: "1:1 " is the shortest */
};
_Static_assert((int)GROUP <= (int)DRPS_ENTRIES_SLACK, "a group may end behind the last entry");

/* Bit i is of byte i. Digits from 1 to 9 are `values`. */
struct marks {
    uint64_t colons, blanks, digits, values;
};

static inline uint64_t bits(__m256i found)
{
    return (uint32_t)_mm256_movemask_epi8(found);
}

static inline __m256i equal(__m256i x, char c)
{
    return _mm256_cmpeq_epi8(x, _mm256_set1_epi8(c));
}

static inline struct marks mark_half(const char *p)
{
    const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)p);
    /* Signed: bytes from 128 on are below '0'. */
    const __m256i to_9 = _mm256_cmpgt_epi8(_mm256_set1_epi8('9' + 1), x);
    const __m256i from_0 = _mm256_cmpgt_epi8(x, _mm256_set1_epi8('0' - 1));
    const __m256i from_1 = _mm256_cmpgt_epi8(x, _mm256_set1_epi8('0'));
    return (struct marks){.colons = bits(equal(x, ':')),
                          .blanks = bits(_mm256_or_si256(equal(x, ' '), equal(x, '\t'))),
                          .digits = bits(_mm256_and_si256(from_0, to_9)),
                          .values = bits(_mm256_and_si256(from_1, to_9))};
}

static inline struct marks mark(const char *p)
{
    const struct marks low = mark_half(p), high = mark_half(p + BLOCK / 2);
    return (struct marks){.colons = low.colons | high.colons << BLOCK / 2,
                          .blanks = low.blanks | high.blanks << BLOCK / 2,
                          .digits = low.digits | high.digits << BLOCK / 2,
                          .values = low.values | high.values << BLOCK / 2};
}

/* Digits that have 8 digits before them: an id ends no later. */
static inline uint64_t ninth(uint64_t digits)
{
    uint64_t run = digits & digits << 1; /* of 2 */
    run &= run << 2;                     /* of 4 */
    run &= run << 4;                     /* of 8 */
    return digits & run << 1;
}

/* The colons of the entries at p that are plain, with nothing else before or between them. */
static inline uint64_t plain_colons(const char *p, const char *end)
{
    const struct marks m = mark(p);
    const uint64_t last = end - p < BLOCK ? UINT64_C(1) << (end - p) : 0; /* as good as a blank */
    const uint64_t behind = end - p < BLOCK ? UINT64_MAX << 1 << (end - p) : 0;
    const uint64_t blanks = m.blanks | last, other = ~(m.colons | blanks | m.digits) | behind;
    const uint64_t wrong = other | (blanks ^ m.colons << 2) | (m.colons << 1 & ~m.values) |
                           (m.colons & ~(m.digits << 1)) | ninth(m.digits);
    const uint64_t before = (wrong & -wrong) - 1; /* the first that is wrong; all if none is */
    return m.colons & before >> 2;                /* the blank, too, is before it */
}

/* Make ids of texts of 8 bytes, digits with zero bytes before them. */
static inline __m256i numbers(__m256i texts)
{
    const __m256i digits = _mm256_subs_epu8(texts, _mm256_set1_epi8('0'));
    const __m256i pairs = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(1 << 8 | 10));
    const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(1 << 16 | 100));
    const __m256i upper = _mm256_mul_epu32(fours, _mm256_set1_epi32(10000));
    return _mm256_add_epi64(upper, _mm256_srli_epi64(fours, 32));
}

/* The entries of a block, as text: ids at the end of 8 bytes, values. */
struct texts {
    uint64_t ids[MOST];
    unsigned char values[MOST];
};

static inline void convert(const struct texts *t, size_t n, uint64_t *ids, float *values)
{
    for (size_t i = 0; i < n; i += GROUP) {
        int four;
        memcpy(&four, t->values + i, sizeof(four));
        const __m128i digits =
            _mm_sub_epi32(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four)), _mm_set1_epi32('0'));
        const __m256i texts = _mm256_loadu_si256((const __m256i *)(const void *)(t->ids + i));
        _mm256_storeu_si256((__m256i *)(void *)(ids + i), numbers(texts));
        _mm_storeu_ps(values + i, _mm_cvtepi32_ps(digits));
    }
}

#endif

DRPS_KERNEL(size_t, drps_entries_plain, (char **p, const char *end, uint64_t *ids, float *values),
            (p, end, ids, values))
{
    size_t n = 0;
#if VECTORS
    struct texts t;
    char *at = *p;
    memset(&t, 0, sizeof(t)); /* what is behind the last entry is converted, too */
    while (at < end) {
        uint64_t colons = plain_colons(at, end), begin = 0;
        size_t taken = 0;
        if (!colons) break;
        for (; colons; colons &= colons - 1) {
            const uint64_t colon = (uint64_t)__builtin_ctzll(colons);
            uint64_t text;
            memcpy(&text, at + begin, sizeof(text));
            t.ids[taken] = text << (8 * (begin - colon) & 63); /* 8 less the digits, in bits */
            t.values[taken++] = (unsigned char)at[colon + 1];
            begin = colon + 3;
        }
        convert(&t, taken, ids + n, values + n);
        n += taken;
        at += begin;
    }
    *p += (at < end ? at : end) - *p;
#else
    (void)p;
    (void)end;
    (void)ids;
    (void)values;
#endif
    return n;
}

DRPS_KERNEL(int, drps_entries_increase, (const uint64_t *ids, size_t n), (ids, n))
{
    int wrong = 0;
    for (size_t i = 1; i < n; i++)
        wrong |= ids[i] <= ids[i - 1];
    return !wrong;
}
