/*
 * 16-bit numbers packed by their differences, for the entries of a batch body. Private to index/.
 *
 *     a bit a number (first number in the low bit, n bits in bytes): its difference from the number
 *     before it (the first: from 0) modulo 2^16 takes two bytes, not one; then the differences,
 *     little-endian
 *
 * The indices of a sample are in order and close together: 7 in 10 differences take a byte.
 * Decoding has no branch a number; with SSSE3 it is eight numbers at a time: the byte with their
 * bits finds the shuffle that spreads their bytes over a vector.
 */
#ifndef DRPS_INDEX_PACK16_H
#define DRPS_INDEX_PACK16_H

#include <stddef.h>
#include <stdint.h>

size_t pack16_bound(size_t n);
size_t pack16_encode(const uint16_t *numbers, size_t n, void *out); /* returns bytes written */

/* Bytes that n packed numbers take of the `bytes` there are; 0: they do not fit, or n is 0. */
size_t pack16_bytes(const void *packed, size_t bytes, size_t n);
/* n numbers, of which pack16_bytes() was asked. */
void pack16_decode(const void *packed, size_t bytes, size_t n, uint16_t *numbers_out);
/* The same without vector instructions: the reference for tests. */
void pack16_decode_ref(const void *packed, size_t bytes, size_t n, uint16_t *numbers_out);

#endif
