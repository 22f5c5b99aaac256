/*
 * Sums without rounding, which therefore do not depend on the order of what is added: parts that
 * were summed up by threads, ranks or machines add up to the bits of one sum over all.
 *
 * A sum is a number of 1,056 bits with a sign, in digits of 32, the least of 2^-512; whole numbers
 * are counted apart, since most labels and weights are such. All products of three floats fit, and
 * 2^63 of them together.
 *
 * Source: U. Kulisch, W. L. Miranker, "The arithmetic of the digital computer: a new approach",
 * SIAM Review 28 (1986): the long accumulator.
 */
#ifndef DRPS_EXACT_H
#define DRPS_EXACT_H

#include <stdint.h>

enum { DRPS_EXACT_DIGITS = 33, DRPS_EXACT_LEAST = -512 };

/* A sum. All zeros are the sum 0. It has no pointers, so that it can be copied, and sent to a
 * machine of the same byte order. */
struct drps_exact {
    int64_t whole; /* the sum of the whole numbers */
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
    enum { WHOLE = 1 << 30 };
    const int64_t whole = x > -WHOLE && x < WHOLE ? (int64_t)x : WHOLE;
    int64_t sum;
    if ((double)whole != x || __builtin_add_overflow(s->whole, whole, &sum))
        drps_exact_add_slowly(s, x);
    else
        s->whole = sum;
}

static inline void drps_exact_merge(struct drps_exact *s, const struct drps_exact *from)
{
    drps_exact_add_times(s, from, 1);
}

#endif
