/* Radix sort: keys of real sets have few distinct upper digits, and digits that are all equal are
 * skipped. */
#include "partition/order.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, PASSES = (64 + DIGIT_BITS - 1) / DIGIT_BITS };

static size_t digit(uint64_t key, int pass)
{
    return (size_t)(key >> (pass * DIGIT_BITS)) & (DIGITS - 1);
}

void drps_keyed_sort(struct keyed *pairs, struct keyed *spare, size_t n)
{
    uint64_t varies = 0; /* bits in which keys differ */
    struct keyed *from = pairs, *to = spare;
    for (size_t i = 1; i < n; i++)
        varies |= pairs[i].key ^ pairs[0].key;
    for (int pass = 0; pass < PASSES; pass++) {
        size_t at[DIGITS] = {0}, sum = 0;
        if (digit(varies, pass) == 0) continue;
        for (size_t i = 0; i < n; i++)
            at[digit(from[i].key, pass)]++;
        for (size_t d = 0; d < DIGITS; d++) {
            size_t count = at[d];
            at[d] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++)
            to[at[digit(from[i].key, pass)]++] = from[i];
        struct keyed *swap = from;
        from = to;
        to = swap;
    }
    if (from != pairs) memcpy(pairs, from, n * sizeof(*pairs));
}
