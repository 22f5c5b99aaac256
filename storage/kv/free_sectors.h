/*
 * Free sectors of a file, and where enough of them lie side by side.
 *
 * One bit a sector, and above the words of bits a binary tree: each node knows the longest free
 * piece below it, and those at its two ends, of which a piece across nodes is made. Marking and
 * finding take a step a level, however many small holes there are.
 */
#ifndef DRPS_STORAGE_KV_FREE_SECTORS_H
#define DRPS_STORAGE_KV_FREE_SECTORS_H

#include <stdint.h>

/* Free sectors of a node: in a row from its first one, to its last one, and anywhere. */
struct drps_free_piece {
    uint32_t front, back, longest;
};

struct drps_free_sectors {
    uint32_t sectors;
    uint64_t *used;               /* own: one bit a sector */
    uint32_t words, leaves;       /* of `used`; the next power of two */
    struct drps_free_piece *node; /* own: [leaves] node i has 2 i and 2 i + 1 below it, or words */
};

/* Returns the memory for so many sectors. */
uint64_t drps_free_sectors_bytes(uint64_t sectors);

/* All sectors are free. 0 or -ENOMEM; `v` may be destroyed whatever the result. */
int drps_free_sectors_init(struct drps_free_sectors *v, uint32_t sectors);
void drps_free_sectors_destroy(struct drps_free_sectors *v);

/* Sectors [first, first + n) are used, or free, from now on. */
void drps_free_sectors_mark(struct drps_free_sectors *v, uint32_t first, uint32_t n, int used);

/* Find the first `want` free sectors in a row behind `from`, or else from the beginning; where
 * there are none, as many as the longest piece has. Returns their number, at most `want`, and the
 * first one in *at_out; 0 when no sector is free. */
uint32_t drps_free_sectors_find(const struct drps_free_sectors *v, uint32_t from, uint32_t want,
                                uint32_t *at_out);

#endif
