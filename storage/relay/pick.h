/*
 * Picking numbers out of an array by a bit each, and putting them back. Which rows of a window are
 * far is as good as random, so nothing here branches on the bits. With AVX2 eight numbers are moved
 * at a time. Private to storage/relay/.
 */
#ifndef DRPS_RELAY_PICK_H
#define DRPS_RELAY_PICK_H

#include <stddef.h>
#include <stdint.h>

enum { DRPS_PICK_ROOM = 64 }; /* numbers beyond the last one that arrays have room for */

/* For each value of eight bits: which numbers they pick, and how many bits are set before each. */
struct drps_picker {
    uint8_t picked[256][8], before[256][8];
};
void drps_picker_init(struct drps_picker *p);

/*
 * `marks` [n] bits, in words of which the last one ends with zeros; `of` 1: the numbers whose bit
 * is set, 0: those whose bit is not. Every array has room for DRPS_PICK_ROOM more numbers, which
 * are read or written and mean nothing.
 */

/* Copy the picked numbers of from [n] to `to`, in order. Returns how many they are. */
size_t drps_pick(const struct drps_picker *p, const uint64_t *marks, size_t n, int of,
                 const uint32_t *from, uint32_t *to);
/* Write the positions of the picked numbers, 0 .. n - 1, to `to`. Returns how many they are. */
size_t drps_pick_positions(const struct drps_picker *p, const uint64_t *marks, size_t n, int of,
                           uint32_t *to);
/* Copy from[0], from[1], ... to the positions in to [n] that are picked; what is at the other
 * positions is undefined. */
void drps_pick_spread(const struct drps_picker *p, const uint64_t *marks, size_t n, int of,
                      const uint32_t *from, uint32_t *to);

#endif
