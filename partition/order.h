/* Sorting numbers by a key. Private to partition/. */
#ifndef DRPS_PARTITION_ORDER_H
#define DRPS_PARTITION_ORDER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct keyed {
    uint64_t key;
    uint32_t item;
};

/* Sort n pairs by rising key; equal keys keep their order. spare [n] is scratch. */
void drps_keyed_sort(struct keyed *pairs, struct keyed *spare, size_t n);

/* Returns a key that rises with v, which is no NaN. */
static inline uint64_t key_of(double v)
{
    uint64_t bits;
    v += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &v, sizeof(bits));
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

#endif
