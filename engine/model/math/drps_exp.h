/* The exponential function of losses, as vectors take it. */
#ifndef DRPS_ENGINE_MODEL_EXP_H
#define DRPS_ENGINE_MODEL_EXP_H

#include <stdint.h>
#include <string.h>

static inline float float_from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

static inline uint32_t bits_of_float(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

/*
 * exp(x) for x <= 0, within 2 ulp above 2^-126, and within half the least denormal below. The
 * polynomial is that of expf in Cephes (Moshier): exp(x) = 2^n exp(r), |r| <= ln(2) / 2, ln(2) in
 * two parts so that r is exact. 2^n is applied in two factors, since it may be denormal while each
 * of them is not.
 */
static inline float exp_negative(float x)
{
    x = x < -104.0f ? -104.0f : x;                     /* exp(-104) rounds to 0 */
    const float shifted = x * 1.44269504f + 0x1.8p23f; /* the nearest integer is in the low bits */
    const float n = shifted - 0x1.8p23f;
    const float r = x - n * 0.693359375f - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    /* Biased, hence not negative: no cast of a float, which a NaN would make undefined. */
    const uint32_t whole = bits_of_float(shifted) - 0x4b400000u + 256u, half = whole / 2;
    return p * float_from_bits((half - 1) << 23) * float_from_bits((whole - half - 1) << 23);
}

#endif
