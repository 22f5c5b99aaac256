/*
 * Rows of 16 and 8 bits. With 8 bits a row is levels of -127 to 127 and the power of two that they
 * are multiplied by: the least with which the largest value by size has a level. The largest level
 * is 64 or more then, so that the levels of a rounded row are found again.
 */
#include "engine/cluster/published/drps_rowvalues.h"

#include <math.h>
#include <string.h>

#include "engine/cluster/filters/drps_half.h"

enum { LEVELS = 127, LEVEL_BITS = 7, LEAST_EXPONENT = -126, MOST_EXPONENT = 121 };
#define HALF_MOST 65504.0F

size_t drps_rowvalues_bytes(uint32_t bits, uint32_t dim)
{
    return dim * (size_t)(bits / 8) + (bits == 8);
}

static int all_finite(const float *row, uint32_t dim)
{
    int finite = 1;
    for (uint32_t k = 0; k < dim; k++)
        finite &= isfinite(row[k]) != 0;
    return finite;
}

/* ---- 8 bits ---- */

/* The exponent of a row of finite values. */
static int exponent_of(const float *row, uint32_t dim)
{
    float most = 0;
    int exponent;
    for (uint32_t k = 0; k < dim; k++)
        most = fmaxf(most, fabsf(row[k]));
    (void)frexpf(most, &exponent);
    exponent -= LEVEL_BITS;
    if (exponent < LEAST_EXPONENT) return LEAST_EXPONENT;
    /* The largest may be rounded up to 128. */
    if (exponent < MOST_EXPONENT && rintf(ldexpf(most, -exponent)) > LEVELS) exponent++;
    return exponent;
}

/* `scale` is 2 to minus the exponent. A level of 0 has no sign. */
static float level_of(float value, float scale)
{
    return fmaxf(-LEVELS, fminf(LEVELS, rintf(value * scale))) + 0.0F;
}

static void round8(float *row, uint32_t dim)
{
    const int exponent = exponent_of(row, dim);
    const float down = ldexpf(1, -exponent), up = ldexpf(1, exponent);
    for (uint32_t k = 0; k < dim; k++)
        row[k] = level_of(row[k], down) * up;
}

static void write8(const float *row, uint32_t dim, unsigned char *out)
{
    const int exponent = exponent_of(row, dim);
    const float down = ldexpf(1, -exponent);
    out[0] = (unsigned char)(exponent + LEVELS + 1);
    for (uint32_t k = 0; k < dim; k++)
        out[1 + k] = (unsigned char)(int8_t)level_of(row[k], down);
}

/* ---- Rounding ---- */

static float round_half(float value)
{
    return drps_half_to(drps_half_from(fmaxf(-HALF_MOST, fminf(HALF_MOST, value))));
}

int drps_rowvalues_round(uint32_t bits, float *row, uint32_t dim)
{
    if (!all_finite(row, dim)) return 0;
    if (bits == 8) round8(row, dim);
    for (uint32_t k = 0; k < dim && bits == 16; k++)
        row[k] = round_half(row[k]);
    return 1;
}

/* ---- Bytes ---- */

void drps_rowvalues_write(uint32_t bits, const float *row, uint32_t dim, unsigned char *out)
{
    if (bits == 8) {
        write8(row, dim, out);
    } else if (bits == 16) {
        for (uint32_t k = 0; k < dim; k++) {
            const uint16_t half = drps_half_from(row[k]);
            memcpy(out + 2 * (size_t)k, &half, sizeof(half));
        }
    } else {
        memcpy(out, row, dim * sizeof(*row));
    }
}

static void read8(const unsigned char *data, uint32_t dim, float *out)
{
    const int exponent = data[0] - LEVELS - 1;
    const float up = ldexpf(1, exponent);
    for (uint32_t k = 0; k < dim; k++)
        out[k] = (float)(int8_t)data[1 + k] * up;
}

static void read16(const unsigned char *data, uint32_t dim, float *out)
{
    for (uint32_t k = 0; k < dim; k++) {
        uint16_t half;
        memcpy(&half, data + 2 * (size_t)k, sizeof(half));
        out[k] = drps_half_to(half);
    }
}

int drps_rowvalues_read(uint32_t bits, const unsigned char *data, uint32_t dim, float *row_out)
{
    if (bits == 8)
        read8(data, dim, row_out);
    else if (bits == 16)
        read16(data, dim, row_out);
    else
        memcpy(row_out, data, dim * sizeof(*row_out));
    return bits == 32 || all_finite(row_out, dim) ? 0 : -1;
}
