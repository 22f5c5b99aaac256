/*
 * Sums without rounding, which therefore do not depend on the order of what is added: parts that
 * were summed up by threads, ranks or machines add up to the bits of one sum over all.
 *
 * A sum is a number of 1,056 bits with a sign, in digits of 32, the least of 2^-512. Multiples of
 * 2^-48 below 2^15 are counted apart, since most labels, their squares and weights are such. All
 * products of three floats fit, and 2^63 of them together.
 *
 * Source: U. Kulisch, W. L. Miranker, "The arithmetic of the digital computer: a new approach",
 * SIAM Review 28 (1986): the long accumulator.
 */
#ifndef DRPS_EXACT_H
#define DRPS_EXACT_H

#include <stdint.h>

enum { DRPS_EXACT_DIGITS = 33, DRPS_EXACT_LEAST = -512, DRPS_EXACT_UNIT = -48 };

/* A sum. All zeros are the sum 0. It has no pointers, so that it can be copied, and sent to a
 * machine of the same byte order. */
struct drps_exact {
    __int128 units; /* the sum of the multiples of 2^-48; never full: each has 63 bits */
    /* The sum of all else: digit i is worth 2^(32 i - 512). A digit may be negative, or have more
     * than 32 bits, until it is carried. */
    int64_t digit[DRPS_EXACT_DIGITS];
    uint32_t added; /* how often something was added to the digits since they were carried */
};

/* Add a finite number whose magnitude is below 2^480. Its bits below 2^-512 are dropped. */
void drps_exact_add_slowly(struct drps_exact *s, double x);

/* Add `from` times a factor; the product has the bounds of drps_exact_add_slowly(). */
void drps_exact_add_times(struct drps_exact *s, const struct drps_exact *from, double factor);

/* Returns 1 if the sum can be merged. A sum that comes from elsewhere must be checked by this
 * first: else digits may overflow. */
int drps_exact_is_sound(const struct drps_exact *s);

/* Returns the double that is nearest to the sum. */
double drps_exact_value(const struct drps_exact *s);

static inline void drps_exact_add(struct drps_exact *s, double x)
{
    const double times = x * 0x1p48;
    const int64_t units = times > -0x1p63 && times < 0x1p63 ? (int64_t)times : 0;
    if ((double)units == times)
        s->units += units;
    else
        drps_exact_add_slowly(s, x);
}

static inline void drps_exact_merge(struct drps_exact *s, const struct drps_exact *from)
{
    drps_exact_add_times(s, from, 1);
}

#endif
