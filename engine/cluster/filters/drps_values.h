/*
 * Values on their way: of 32, 16 or 8 bits. 8-bit values have a scale for each block of 64: the
 * largest of them by size becomes 127 or -127. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_FILTERS_VALUES_H
#define DRPS_ENGINE_CLUSTER_FILTERS_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

enum { DRPS_VALUES_BLOCK = 64 };

/* 1: values are sent with so many bits. */
int drps_values_bits(uint32_t bits);

/* Returns the bytes of n values of so many bits. */
size_t drps_values_bytes(uint32_t bits, size_t n);

/* Write n finite values, and put what will arrive in their place. 16-bit ones beyond 65504 arrive
 * as that. Returns the bytes written. */
size_t drps_values_encode(uint32_t bits, float *values, size_t n, void *out);

/* drps_values_bytes() of data become n values. DRPS_E_PROTO: a scale, or a 16-bit value, is no
 * finite number. */
DRPS_MUST_CHECK
int drps_values_decode(uint32_t bits, const void *data, size_t n, float *values_out,
                       struct drps_err *err);

#endif
