/* Values of 32, 16 and 8 bits. Whoever writes them reads them back by the same arithmetic, so that
 * what was rounded away is known exactly. */
#include "engine/cluster/filters/drps_values.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/cluster/filters/drps_half.h"

enum { LEVELS = 127 };
#define HALF_MOST 65504.0F

int drps_values_bits(uint32_t bits)
{
    return bits == 8 || bits == 16 || bits == 32;
}

size_t drps_values_bytes(uint32_t bits, size_t n)
{
    const size_t blocks = (n + DRPS_VALUES_BLOCK - 1) / DRPS_VALUES_BLOCK;
    return n * (bits / 8) + (bits == 8 ? blocks * sizeof(float) : 0);
}

/* ---- 16 bits ---- */

static void encode16(float *values, size_t n, unsigned char *out)
{
    for (size_t i = 0; i < n; i++) {
        const float v = fmaxf(-HALF_MOST, fminf(HALF_MOST, values[i]));
        const uint16_t half = drps_half_from(v);
        memcpy(out + 2 * i, &half, sizeof(half));
        values[i] = drps_half_to(half);
    }
}

/* Returns whether all are finite. */
static int decode16(const unsigned char *data, size_t n, float *out)
{
    int finite = 1;
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, data + 2 * i, sizeof(half));
        out[i] = drps_half_to(half);
        finite &= (half & 0x7c00) != 0x7c00;
    }
    return finite;
}

/* ---- 8 bits: of each block the scale, then its values ---- */

static void spread(const int8_t *restrict levels, float scale, size_t n, float *restrict out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)levels[i] * scale;
}

/* The largest size of n values that are finite numbers: sizes are ordered as their bits are. */
static float largest(const float *values, size_t n)
{
    uint32_t most = 0;
    float size;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, values + i, sizeof(bits));
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    memcpy(&size, &most, sizeof(size));
    return size;
}

/* Added and taken away again, it leaves the nearest whole number of a small one, as lrintf() does.
 */
#define ROUNDING 0x1.8p23F

/* Values too small for a scale that is a normal number become 0. */
static void encode8_block(float *restrict values, size_t n, unsigned char *restrict out)
{
    int8_t levels[DRPS_VALUES_BLOCK] = {0};
    const float most = largest(values, n), scale = most / LEVELS >= FLT_MIN ? most / LEVELS : 0;
    for (size_t i = 0; scale > 0 && i < n; i++)
        levels[i] = (int8_t)(int)(values[i] / scale + ROUNDING - ROUNDING);
    memcpy(out, &scale, sizeof(scale));
    memcpy(out + sizeof(scale), levels, n);
    spread(levels, scale, n, values);
}

static size_t block_at(size_t i, size_t n)
{
    return n - i < DRPS_VALUES_BLOCK ? n - i : DRPS_VALUES_BLOCK;
}

static void encode8(float *values, size_t n, unsigned char *out)
{
    for (size_t i = 0; i < n; i += DRPS_VALUES_BLOCK) {
        encode8_block(values + i, block_at(i, n), out);
        out += sizeof(float) + block_at(i, n);
    }
}

/* Returns whether all scales are finite. */
static int decode8(const unsigned char *data, size_t n, float *out)
{
    int finite = 1;
    for (size_t i = 0; i < n; i += DRPS_VALUES_BLOCK) {
        int8_t levels[DRPS_VALUES_BLOCK];
        float scale;
        memcpy(&scale, data, sizeof(scale));
        memcpy(levels, data + sizeof(scale), block_at(i, n));
        finite &= isfinite(scale) != 0;
        spread(levels, scale, block_at(i, n), out + i);
        data += sizeof(scale) + block_at(i, n);
    }
    return finite;
}

/* ---- All ---- */

size_t drps_values_encode(uint32_t bits, float *values, size_t n, void *out)
{
    if (bits == 8)
        encode8(values, n, out);
    else if (bits == 16)
        encode16(values, n, out);
    else if (n)
        memcpy(out, values, n * sizeof(*values));
    return drps_values_bytes(bits, n);
}

int drps_values_decode(uint32_t bits, const void *data, size_t n, float *values_out,
                       struct drps_err *err)
{
    int finite = 1;
    if (bits == 8)
        finite = decode8(data, n, values_out);
    else if (bits == 16)
        finite = decode16(data, n, values_out);
    else if (n)
        memcpy(values_out, data, n * sizeof(*values_out));
    if (finite) return 0;
    return drps_err_set(err, DRPS_E_PROTO, "%u-bit values that are no finite numbers", bits);
}
