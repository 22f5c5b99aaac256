/*
 * Packed values: where a batch has at most 16 different ones, each takes 1, 2 or 4 bits. Features
 * that were 1 are 1 or -1 once they are hashed, and 2 or -2 where two of a sample share a bin.
 *
 *   | 4           how many different values there are, k, 1 to 16
 *   | 4           bits of a number: 1 for k up to 2, 2 up to 4, else 4
 *   | 4 k         the values, float32, in the order in which they come first; padded to 8
 *   | n bits / 8  for each of n values its number among them, from the low bits on; the rest of the
 *                 last byte is zero
 */
#ifndef DRPS_INDEX_PLAN_CODEC_LEVELS_H
#define DRPS_INDEX_PLAN_CODEC_LEVELS_H

#include <stddef.h>

enum { DRPS_LEVELS_MOST = 16 };

/* No n values take more bytes. */
size_t drps_levels_bound(size_t n);

/* Pack values [n] to `out`, which has drps_levels_bound(n) bytes. Returns how many it took; 0:
 * there are no values, or more than 16 different ones. */
size_t drps_levels_encode(const float *values, size_t n, unsigned char *out);

/* Unpack n values from `data` [bytes], 4-byte aligned, into values [n]; NULL: only look. Returns
 * how many bytes they took; 0: they are not n packed values. */
size_t drps_levels_decode(const void *data, size_t bytes, size_t n, float *values);

#endif
