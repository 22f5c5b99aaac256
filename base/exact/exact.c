/* Adds up doubles digit by digit (drps_exact.h). */
#include "base/exact/drps_exact.h"

#include <math.h>
#include <string.h>

enum {
    DIGIT_BITS = 32,
    ZERO = -DRPS_EXACT_LEAST / DIGIT_BITS, /* the digit of 2^0 */
    CARRY_AFTER = 1 << 29,
    MANTISSA_BITS = 52,
};
#define DIGIT_MASK UINT32_MAX

/* Bring all digits but the last, which has the sign, to 0 .. 2^32 - 1. */
static void carry(struct drps_exact *s)
{
    for (int i = 0; i + 1 < DRPS_EXACT_DIGITS; i++) {
        s->digit[i + 1] += s->digit[i] >> DIGIT_BITS; /* rounds down */
        s->digit[i] &= DIGIT_MASK;
    }
    s->added = 0;
}

/* Add n 2^exponent, or take it away. Each digit gets less than 2^32. */
static void add_bits(struct drps_exact *s, unsigned __int128 n, int exponent, int negative)
{
    int bit = exponent - DRPS_EXACT_LEAST;
    if (bit < 0) {
        n = bit > -128 ? n >> -bit : 0;
        bit = 0;
    }
    const int off = bit % DIGIT_BITS;
    int i = bit / DIGIT_BITS;
    if (++s->added == CARRY_AFTER) carry(s);
    /* The first digit takes what fits beside the offset. */
    uint64_t part = (uint64_t)(n & (DIGIT_MASK >> off)) << off;
    for (n >>= DIGIT_BITS - off; i < DRPS_EXACT_DIGITS; i++) {
        s->digit[i] += negative ? -(int64_t)part : (int64_t)part;
        if (!n) return;
        part = (uint64_t)(n & DIGIT_MASK);
        n >>= DIGIT_BITS;
    }
}

/* Split x into n 2^exponent; returns n. */
static uint64_t split(double x, int *exponent, int *negative)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    const int biased = (int)(bits >> MANTISSA_BITS & 0x7ff);
    const uint64_t fraction = bits & (((uint64_t)1 << MANTISSA_BITS) - 1);
    *negative = bits >> 63 != 0;
    *exponent = (biased ? biased : 1) - 1023 - MANTISSA_BITS;
    return biased ? fraction | (uint64_t)1 << MANTISSA_BITS : fraction;
}

void drps_exact_add_slowly(struct drps_exact *s, double x)
{
    int exponent, negative;
    const uint64_t n = split(x, &exponent, &negative);
    add_bits(s, n, exponent, negative);
}

static uint64_t size_of(int64_t x)
{
    return x < 0 ? -(uint64_t)x : (uint64_t)x;
}

/* Move the units to the digits, and carry. */
static void settle(struct drps_exact *s)
{
    const int negative = s->units < 0;
    const unsigned __int128 n = (unsigned __int128)s->units;
    add_bits(s, negative ? -n : n, DRPS_EXACT_UNIT, negative);
    s->units = 0;
    carry(s);
}

void drps_exact_add_times(struct drps_exact *s, const struct drps_exact *from, double factor)
{
    struct drps_exact f = *from;
    int exponent, negative;
    const uint64_t n = split(factor, &exponent, &negative);
    settle(&f);
    for (int i = 0; i < DRPS_EXACT_DIGITS; i++)
        if (f.digit[i])
            add_bits(s, (unsigned __int128)size_of(f.digit[i]) * n,
                     exponent + DRPS_EXACT_LEAST + DIGIT_BITS * i, (f.digit[i] < 0) ^ negative);
}

int drps_exact_is_sound(const struct drps_exact *s)
{
    const int64_t most = INT64_C(1) << 62;
    for (int i = 0; i < DRPS_EXACT_DIGITS; i++)
        if (s->digit[i] > most || s->digit[i] < -most) return 0;
    return s->added < CARRY_AFTER;
}

double drps_exact_value(const struct drps_exact *s)
{
    struct drps_exact v = *s;
    int top = DRPS_EXACT_DIGITS - 1, negative;
    uint64_t below = 0;
    settle(&v);
    negative = v.digit[top] < 0;
    for (int i = 0; negative && i <= top; i++)
        v.digit[i] = -v.digit[i];
    if (negative) carry(&v);
    while (top > 2 && !v.digit[top])
        top--;
    for (int i = 0; i < top - 2; i++)
        below |= (uint64_t)v.digit[i];
    /* The last digit alone may have more than 32 bits. What is below decides where it is a tie. */
    const unsigned __int128 n = (unsigned __int128)(uint64_t)v.digit[top] << 2 * DIGIT_BITS |
                                (uint64_t)v.digit[top - 1] << DIGIT_BITS |
                                (uint64_t)v.digit[top - 2] | (below != 0);
    const double size = ldexp((double)n, DIGIT_BITS * (top - 2) + DRPS_EXACT_LEAST);
    return negative ? -size : size;
}
