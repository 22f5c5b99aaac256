/*
 * 16-bit numbers packed by their differences, for the entries of a batch body. Shared inside
 * index/.
 *
 *     two bits a number (first number in the low bits, four numbers a byte): how many bits its
 *     difference from the number before it (the first: from 0) modulo 2^16 takes, 4, 7, 11 or 16;
 *     then the differences, one behind the other, from the low bit of a byte on
 *
 * The indices of a sample are in order and close together: of CTR-like data 37 in 100 differences
 * take 4 bits, 25 in 100 7, 33 in 100 11. Decoding has no branch a number; with BMI2 it is four
 * numbers at a time: the byte with their widths finds the mask that spreads their bits (pdep).
 */
#ifndef DRPS_INDEX_PLAN_CODEC_PACK16_H
#define DRPS_INDEX_PLAN_CODEC_PACK16_H

#include <stddef.h>
#include <stdint.h>

size_t drps_pack16_bound(size_t n);
size_t drps_pack16_encode(const uint16_t *numbers, size_t n, void *out); /* returns bytes written */

/* n numbers, and the largest of them; returns the bytes that they take of the `bytes` there are. 0:
 * they do not fit, or n is 0. */
size_t drps_pack16_decode(const void *packed, size_t bytes, size_t n, uint16_t *numbers_out,
                          uint16_t *largest_out);
/* The plain twins, without vector instructions, that tests compare with. */
size_t drps_pack16_encode_ref(const uint16_t *numbers, size_t n, void *out);
size_t drps_pack16_decode_ref(const void *packed, size_t bytes, size_t n, uint16_t *numbers_out,
                              uint16_t *largest_out);

#endif
