/*
 * Packed distances: numbers from 1 to `most`, the windows of an epoch, of which many are 1. Private
 * to index/.
 *
 *     u32 n, a bit a number (1: it is larger than 1, first number in the low bit; n bits in bytes),
 *     u32 how many these are; of each two bits (four a byte, first one in the low bits) that say
 *     what it is: 0 `most`, which has no bits more, or how many bits it takes minus 2: 1 and 2
 *     three and six eighths of (rounded, at least 1), 3 all that `most` - 2 takes; these bits one
 *     behind the other, from the low bit of a byte on
 *
 * Many of a window's rows stay: they cost a bit each. Of the others many are used soon, and many by
 * this window alone.
 */
#ifndef DRPS_INDEX_PLAN_CODEC_DISTANCES_H
#define DRPS_INDEX_PLAN_CODEC_DISTANCES_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

size_t drps_distances_encode_bound(size_t n);
/* n numbers from 1 to most; returns bytes written. */
size_t drps_distances_encode(const uint32_t *distances, size_t n, uint32_t most, void *out);

/* What codes of numbers up to `most` say, a byte of them, four numbers, at once. */
struct distances_table {
    uint32_t most;
    uint8_t width[4];    /* of a code */
    uint8_t bits[256];   /* that the four take; 0 for all if one of 14 bits and more is possible */
    uint64_t masks[256]; /* four of 16 bits: as many ones as it has bits */
    uint64_t bases[256]; /* what is added to these */
};
void drps_distances_table_init(struct distances_table *t, uint32_t most);

/*
 * The table is of the `most` with which they were encoded. DRPS_E_CORRUPT when malformed, or a
 * number exceeds it. *far_out: how many exceed 1, *used_out: bytes consumed.
 *
 * drps_distances_decode: distances_out has room for drps_list_count(record).
 *
 * drps_distances_decode_far: as in struct drps_use_distances. Marks from bit `at` on, below which
 * bits are kept
 * (`at` 0: there are none), up to the end of the word behind the last one; far_out has room for
 * drps_list_count(record), of which only the numbers above 1 are written.
 */
DRPS_MUST_CHECK
int drps_distances_decode(const void *record, size_t bytes, const struct distances_table *table,
                          uint32_t *distances_out, size_t *far_out, size_t *used_out,
                          struct drps_err *err);
DRPS_MUST_CHECK
int drps_distances_decode_far(const void *record, size_t bytes, const struct distances_table *table,
                              uint64_t *marks, size_t at, uint32_t *numbers_out, size_t *far_out,
                              size_t *used_out, struct drps_err *err);

#endif
