/*
 * Rows that leave a window and yet stay in memory, because the window that uses them next is near
 * and frames are left over. Private to storage/relay/.
 *
 * A window of the plan has the rows that its steps use and few others, so that it costs little to
 * open; memory beyond two windows holds rows between their uses. A row that leaves window w is held
 * when its next use is at most reach[w] windows away. Both windows know this number, so held rows
 * need no names, as those in streams need none: a window's *shelf* has the frames of its rows in
 * the order in which its stream would have them.
 */
#ifndef DRPS_RELAY_HOLD_H
#define DRPS_RELAY_HOLD_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "storage/drps_store.h"
#include "storage/relay/sends.h"

/*
 * Which rows to hold (drps_hold_limit.h decides).
 *
 * memory_bytes  for a table that is gone when it returns; less makes the longest ways shorter
 * next       scratch, for source->max_rows
 * reach_out  [windows] caller-owned; 1: nothing that leaves the window is held
 * sent_out   rows of an epoch that are not held
 * sends      NULL, or an empty list: what all windows send, held rows included
 */
DRPS_MUST_CHECK
int drps_hold_plan(const struct drps_window_source *source, uint64_t frames, uint64_t memory_bytes,
                   struct drps_use_distances *next, uint32_t *reach_out, uint64_t *sent_out,
                   struct drps_sends *sends, struct drps_err *err);

/* ---- Shelves: a list of frames a window ---- */

struct drps_shelves; /* opaque */

/* For at most `frames` on all shelves together. NULL when memory is gone. */
struct drps_shelves *drps_shelves_new(uint32_t windows, uint64_t frames);
void drps_shelves_free(struct drps_shelves *shelves); /* NULL-safe */

uint64_t drps_shelves_count(const struct drps_shelves *shelves, uint32_t window);
/* -EINVAL: there are more than `frames`. */
DRPS_MUST_CHECK
int drps_shelves_add(struct drps_shelves *shelves, uint32_t window, const uint32_t *frames,
                     size_t n, struct drps_err *err);
/* All that lie there, in order: they stay, or (clear) the shelf is empty then. */
void drps_shelves_take(struct drps_shelves *shelves, uint32_t window, int clear,
                       uint32_t *frames_out);

#endif
