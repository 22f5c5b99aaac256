/* Values are chosen by size, and by chance; the least of the largest is found by counting. */
#include "engine/cluster/filters/drps_choose.h"

#include <math.h>
#include <string.h>

#include "base/drps_rng.h"

double drps_push_threshold(const struct drps_push_options *o, uint64_t t)
{
    return o->phi / (1 + o->decay * log((double)t));
}

/* The size of a value as a number that is ordered as sizes are. */
static uint32_t size_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits & 0x7fffffff;
}

enum { DIGIT_BITS = 11, DIGITS = 3 }; /* of 31 bits */

/* The size of which `most` values, 1 to n, are as large or larger, at least: digit by digit, the
 * highest first. */
static uint32_t least_of_largest(const float *h, size_t n, size_t most)
{
    uint32_t prefix = 0;
    for (int digit = DIGITS - 1; digit >= 0; digit--) {
        uint32_t count[1 << DIGIT_BITS] = {0}, value = (1 << DIGIT_BITS) - 1;
        const int shift = digit * DIGIT_BITS;
        for (size_t i = 0; i < n; i++) {
            const uint64_t size = size_of(h[i]);
            if (size >> shift >> DIGIT_BITS == prefix)
                count[size >> shift & ((1 << DIGIT_BITS) - 1)]++;
        }
        for (; count[value] < most; value--)
            most -= count[value];
        prefix = prefix << DIGIT_BITS | value;
    }
    return prefix;
}

static uint32_t top_size(const struct drps_push_choice *choice, const float *h, size_t n)
{
    if (!(choice->top > 0 && choice->top < 1) || !n) return 0;
    return least_of_largest(h, n, (size_t)ceil(choice->top * (double)n));
}

static int is_held(const struct drps_push_choice *choice, float value, size_t i)
{
    if (!((double)fabsf(value) < choice->threshold)) return 0;
    return choice->chance >= 1 || drps_unit_double(drps_rng_at(choice->seed, i)) < choice->chance;
}

size_t drps_push_choose(const struct drps_push_choice *choice, const float *h, size_t n,
                        uint32_t *kept_out, struct drps_push_counts *counts)
{
    const uint32_t top = top_size(choice, h, n);
    uint64_t zero = 0, below = 0, beyond = 0;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t size = size_of(h[i]);
        if (!size)
            zero++;
        else if (is_held(choice, h[i], i))
            below++;
        else if (size < top)
            beyond++;
        else
            kept_out[kept++] = (uint32_t)i;
    }
    counts->values += n;
    counts->zero += zero;
    counts->below += below;
    counts->beyond += beyond;
    return kept;
}
