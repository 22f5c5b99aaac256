/*
 * The hold limits of an epoch's windows: up to which use distance rows that leave a window stay in
 * memory (hold.h). Counting how many rows leave each window for which other, and choosing the
 * limits by these counts, is all here, so that a forecast (index/forecast/measure.c) chooses as the
 * store does.
 */
#ifndef DRPS_STORAGE_RELAY_HOLD_LIMIT_H
#define DRPS_STORAGE_RELAY_HOLD_LIMIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

/* How many rows leave each window, by use distance: the windows until their next use. */
struct drps_hold_limit {
    uint32_t windows, most; /* use distances up to `most` are counted one by one */
    uint32_t *counts;       /* own: [windows][most + 1]; element 0 has all longer distances */
    uint64_t *room; /* own: [windows] frames left while windows w and w + 1 are open; the caller
                       fills it */
};

/* No rows yet. memory_bytes bounds the counts: less of it makes `most` smaller. 0 or -ENOMEM;
 * drps_hold_limit_destroy() is yours in both cases. */
DRPS_MUST_CHECK
int drps_hold_limit_init(struct drps_hold_limit *hold, uint32_t windows, uint64_t memory_bytes);
void drps_hold_limit_destroy(struct drps_hold_limit *hold);

/* Returns the number of rows that leave window w for the one `distance` later, 2 .. windows. */
static inline uint32_t *drps_hold_limit_count(const struct drps_hold_limit *hold, uint32_t w,
                                              uint32_t distance)
{
    return hold->counts + (size_t)w * (hold->most + 1) + (distance <= hold->most ? distance : 0);
}

/*
 * Choose the hold limits. Short use distances come first: of two rows that a frame could hold, the
 * one that is used sooner makes room sooner.
 *
 * hold        rows that are held take of its room
 * limits_out  [windows] caller-owned: the longest use distance for which rows that leave the window
 *             are held; 1 if none are
 * Returns how many rows of an epoch are held.
 */
uint64_t drps_hold_limit_hold(struct drps_hold_limit *hold, uint32_t *limits_out);

#endif
