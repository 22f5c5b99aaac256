/*
 * How far ahead the windows of an epoch hold rows that leave them: see hold.h. Counting how many
 * rows leave each window for which other, and deciding by these counts, is all here, so that a
 * forecast (index/forecast/measure.c) decides as the store does. Shared inside storage/.
 */
#ifndef DRPS_STORAGE_RELAY_HOLD_LIMIT_H
#define DRPS_STORAGE_RELAY_HOLD_LIMIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

/* Rows that leave windows, by their *way*: the windows until their next use. */
struct drps_hold_limit {
    uint32_t windows, most; /* ways up to this are counted one by one */
    uint32_t *counts;       /* own: [windows][most + 1]; 0: of longer ways */
    uint64_t *room; /* own: [windows] frames left while windows w and w + 1 are open; the caller
                       fills it */
};

/* memory_bytes: for the counts; less makes the longest ways shorter. -ENOMEM. Destroy also after a
 * failure. */
DRPS_MUST_CHECK
int drps_hold_limit_init(struct drps_hold_limit *reach, uint32_t windows, uint64_t memory_bytes);
void drps_hold_limit_destroy(struct drps_hold_limit *reach);

static inline uint32_t *drps_hold_limit_count(const struct drps_hold_limit *reach, uint32_t w,
                                              uint32_t way)
{
    return reach->counts + (size_t)w * (reach->most + 1) + (way <= reach->most ? way : 0);
}

/*
 * Which rows to hold. Short ways come first: of two rows that a frame could hold, the one that is
 * back sooner makes room sooner.
 *
 * reach      what is held takes of its room
 * reach_out  [windows] the longest way for which rows that leave the window are held; 1: none
 * Returns how many rows of an epoch that are.
 */
uint64_t drps_hold_limit_hold(struct drps_hold_limit *reach, uint32_t *reach_out);

#endif
