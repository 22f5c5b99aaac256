/* Bits are counted by an instruction that the oldest processors do not have: kernels. */
#include "index/windows/bits.h"

#include "base/kernel/drps_level.h"

DRPS_KERNEL(uint64_t, drps_bits_count, (const uint64_t *set, size_t words), (set, words))
{
    uint64_t n = 0;
    for (size_t i = 0; i < words; i++)
        n += (uint64_t)__builtin_popcountll(set[i]);
    return n;
}

DRPS_KERNEL(uint64_t, drps_bits_common, (const uint64_t *a, const uint64_t *b, size_t words),
            (a, b, words))
{
    uint64_t n = 0;
    for (size_t i = 0; i < words; i++)
        n += (uint64_t)__builtin_popcountll(a[i] & b[i]);
    return n;
}

DRPS_KERNEL(uint64_t, drps_bits_staying,
            (const uint64_t *before, const uint64_t *now, const uint64_t *after, size_t words),
            (before, now, after, words))
{
    uint64_t n = 0;
    for (size_t i = 0; i < words; i++)
        n += (uint64_t)__builtin_popcountll(before[i] & ~now[i] & after[i]);
    return n;
}

DRPS_KERNEL(uint64_t, drps_bits_add,
            (const uint32_t *at, const uint64_t *bits, size_t n, uint64_t *restrict set,
             const uint64_t *restrict other, uint64_t *restrict fresh, uint64_t *common),
            (at, bits, n, set, other, fresh, common))
{
    uint64_t rows = 0, both = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t added = bits[i] & ~set[at[i]];
        fresh[i] = added;
        rows += (uint64_t)__builtin_popcountll(added);
        both += (uint64_t)__builtin_popcountll(added & other[at[i]]);
        set[at[i]] |= added;
    }
    *common += both;
    return rows;
}

DRPS_KERNEL(void, drps_bits_before,
            (const uint64_t *restrict set, size_t words, uint32_t *restrict rank),
            (set, words, rank))
{
    uint32_t sum = 0;
    for (size_t i = 0; i < words; i++) {
        rank[i] = sum;
        sum += (uint32_t)__builtin_popcountll(set[i]);
    }
}

DRPS_KERNEL(void, drps_bits_ranks,
            (const uint64_t *restrict set, const uint32_t *restrict rank,
             const uint32_t *restrict rows, size_t n, uint32_t *restrict out),
            (set, rank, rows, n, out))
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t before = set[rows[i] / 64] & ((UINT64_C(1) << rows[i] % 64) - 1);
        out[i] = rank[rows[i] / 64] + (uint32_t)__builtin_popcountll(before);
    }
}
