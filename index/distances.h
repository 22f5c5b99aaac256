/*
 * Packed distances: numbers from 1 on of which many are 1. Private to index/.
 *
 *     u32 n, a bit a number (1: it is larger than 1, first number in the low bit; n bits in bytes),
 *     then packed numbers (drps_batch.h): those larger than 1, minus 2
 *
 * Many of a window's rows stay: they cost a bit each.
 */
#ifndef DRPS_INDEX_DISTANCES_H
#define DRPS_INDEX_DISTANCES_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

size_t distances_encode_bound(size_t n);
/* n numbers from 1 on, which are overwritten; returns bytes written. */
size_t distances_encode(uint32_t *distances, size_t n, void *out);

/*
 * distances_out has room for drps_list_count(record). *far_out: how many exceed 1, *used_out: bytes
 * consumed. DRPS_E_CORRUPT when malformed, or one exceeds `most`.
 */
DRPS_MUST_CHECK
int distances_decode(const void *record, size_t bytes, uint32_t most, uint32_t *distances_out,
                     size_t *far_out, size_t *used_out, struct drps_err *err);

#endif
