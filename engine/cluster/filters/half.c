/* Float16 by integer arithmetic: exponents differ by 112, mantissas by 13 bits. */
#include "engine/cluster/filters/drps_half.h"

#include <math.h>
#include <string.h>

enum { EXPONENT_BITS = 13, BIAS = 112 };

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Added to 0.5, the unit of which is the least float16, a small value is rounded by the addition.
 */
static uint32_t small_half(uint32_t size)
{
    return bits_of(float_of(size) + 0.5F) - bits_of(0.5F);
}

uint16_t drps_half_from(float value)
{
    const uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    const uint32_t infinite = bits_of(INFINITY), odd = size >> EXPONENT_BITS & 1;
    uint32_t half;
    if (size > infinite)
        half = 0x7e00; /* not a number */
    else if (size >= bits_of(65520.0F))
        half = 0x7c00;
    else if (size < bits_of(0x1p-14F))
        half = small_half(size);
    else
        half = (size + 0xfff + odd - ((uint32_t)BIAS << 23)) >> EXPONENT_BITS;
    return (uint16_t)(sign | half);
}

float drps_half_to(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, size = half & 0x7fff;
    if (size < 0x0400) return float_of(sign | bits_of((float)size * 0x1p-24F));
    const uint32_t bias = size < 0x7c00 ? BIAS : 2 * BIAS; /* else infinite, or not a number */
    return float_of(sign | ((size << EXPONENT_BITS) + (bias << 23)));
}
