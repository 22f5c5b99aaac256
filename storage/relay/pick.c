/* Picking numbers with AVX2, or a number at a time where the processor has none; pick.h. */
#include "storage/relay/pick.h"

#include "base/kernel/drps_level.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

DRPS_KERNEL(void, drps_picker_init, (struct drps_picker * p), (p))
{
    for (unsigned bits = 0; bits < 256; bits++) {
        unsigned n = 0;
        for (unsigned k = 0; k < 8; k++)
            p->picked[bits][k] = 0;
        for (unsigned k = 0; k < 8; k++) {
            p->before[bits][k] = (uint8_t)n;
            p->picked[bits][n] = (uint8_t)k; /* overwritten unless the bit is set */
            n += bits >> k & 1;
        }
    }
}

/* The 64 bits from s on; those from n on are 0. */
static uint64_t word_at(const uint64_t *marks, size_t n, size_t s, int of)
{
    const uint64_t word = of ? marks[s / 64] : ~marks[s / 64];
    return n - s < 64 ? word & ((UINT64_C(1) << (n - s)) - 1) : word;
}

#ifdef __AVX2__

/* Eight bytes as eight numbers. */
static __m256i widen(const uint8_t eight[8])
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)eight));
}

static __m256i load(const uint32_t *at)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

static void store(uint32_t *at, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)at, v);
}

DRPS_KERNEL(size_t, drps_pick,
            (const struct drps_picker *p, const uint64_t *marks, size_t n, int of,
             const uint32_t *from, uint32_t *to),
            (p, marks, n, of, from, to))
{
    size_t k = 0;
    for (size_t s = 0; s < n; s += 64) {
        uint64_t word = word_at(marks, n, s, of);
        for (size_t i = s; word; i += 8, word >>= 8) {
            const unsigned bits = word & 255;
            store(to + k, _mm256_permutevar8x32_epi32(load(from + i), widen(p->picked[bits])));
            k += (size_t)__builtin_popcount(bits);
        }
    }
    return k;
}

DRPS_KERNEL(size_t, drps_pick_positions,
            (const struct drps_picker *p, const uint64_t *marks, size_t n, int of, uint32_t *to),
            (p, marks, n, of, to))
{
    size_t k = 0;
    for (size_t s = 0; s < n; s += 64) {
        uint64_t word = word_at(marks, n, s, of);
        for (size_t i = s; word; i += 8, word >>= 8) {
            const unsigned bits = word & 255;
            store(to + k, _mm256_add_epi32(widen(p->picked[bits]), _mm256_set1_epi32((int)i)));
            k += (size_t)__builtin_popcount(bits);
        }
    }
    return k;
}

DRPS_KERNEL(void, drps_pick_spread,
            (const struct drps_picker *p, const uint64_t *marks, size_t n, int of,
             const uint32_t *from, uint32_t *to),
            (p, marks, n, of, from, to))
{
    for (size_t s = 0; s < n; s += 64) {
        uint64_t word = word_at(marks, n, s, of);
        for (size_t i = s; word; i += 8, word >>= 8) {
            const unsigned bits = word & 255;
            store(to + i, _mm256_permutevar8x32_epi32(load(from), widen(p->before[bits])));
            from += __builtin_popcount(bits);
        }
    }
}

#else

DRPS_KERNEL(size_t, drps_pick,
            (const struct drps_picker *p, const uint64_t *marks, size_t n, int of,
             const uint32_t *from, uint32_t *to),
            (p, marks, n, of, from, to))
{
    size_t k = 0;
    (void)p;
    for (size_t s = 0; s < n; s += 64) {
        uint64_t word = word_at(marks, n, s, of);
        for (size_t i = s; word; i++, word >>= 1) {
            to[k] = from[i];
            k += word & 1;
        }
    }
    return k;
}

DRPS_KERNEL(size_t, drps_pick_positions,
            (const struct drps_picker *p, const uint64_t *marks, size_t n, int of, uint32_t *to),
            (p, marks, n, of, to))
{
    size_t k = 0;
    (void)p;
    for (size_t s = 0; s < n; s += 64) {
        uint64_t word = word_at(marks, n, s, of);
        for (size_t i = s; word; i++, word >>= 1) {
            to[k] = (uint32_t)i;
            k += word & 1;
        }
    }
    return k;
}

DRPS_KERNEL(void, drps_pick_spread,
            (const struct drps_picker *p, const uint64_t *marks, size_t n, int of,
             const uint32_t *from, uint32_t *to),
            (p, marks, n, of, from, to))
{
    (void)p;
    for (size_t s = 0; s < n; s += 64) {
        uint64_t word = word_at(marks, n, s, of);
        for (size_t i = s; word; i++, word >>= 1) {
            to[i] = *from;
            from += word & 1;
        }
    }
}

#endif
