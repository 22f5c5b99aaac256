/*
 * Which of some things are sent: an increasing list of numbers, in few bits (docs/wire.md). Pure.
 * Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_FILTERS_MARKS_H
#define DRPS_ENGINE_CLUSTER_FILTERS_MARKS_H

#include <stddef.h>
#include <stdint.h>

/* Returns the most bytes that a list of numbers below `end` takes; and those of a bit for each
 * number, without a head. */
size_t drps_marks_bound(size_t end);
static inline size_t drps_marks_bitmap_bytes(size_t end)
{
    return (end + 7) / 8;
}

/* list [n] increases, and lies below `end`, which is below 2^32. Returns the bytes written. */
size_t drps_marks_encode(const uint32_t *list, size_t n, size_t end, void *out);

/* What was read. */
struct drps_marks {
    size_t n;
    size_t bytes; /* that the marks take */
    int all;      /* 1: all numbers below end, and list_out is not filled in */
};

/* list_out [end]. Returns 0, or -1: the bytes are no list of numbers below `end`. */
int drps_marks_decode(const void *data, size_t bytes, size_t end, uint32_t *list_out,
                      struct drps_marks *out);

#endif
