/*
 * Held rows: they leave a window and yet stay in memory, because the window that uses them next is
 * near and frames are left over. Private to storage/relay/.
 *
 * A window of the plan has the rows that its steps use and few others, so that it costs little to
 * open; memory beyond two windows holds rows between their uses. A row that leaves window w is held
 * when its use distance is at most the window's hold limit. Both windows know this number, so held
 * rows need no ids, as those in streams need none: each window has a list of the frames of the rows
 * held for it, in the order in which its stream would have them.
 */
#ifndef DRPS_RELAY_HOLD_H
#define DRPS_RELAY_HOLD_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "storage/drps_store.h"
#include "storage/relay/sends.h"

/*
 * Read all windows and choose their hold limits (drps_hold_limit.h).
 *
 * frames        of the store, those of two open windows included
 * memory_bytes  for a table that is gone when it returns; less makes long use distances count as
 * one next          scratch, with room for source->max_rows limits_out    [windows] caller-owned;
 * 1: nothing that leaves the window is held sent_out      rows of an epoch that leave windows and
 * are not held sends         NULL, or an empty list that gets what all windows send, held rows
 * included Returns 0, -ENOMEM, or what source->read() says.
 */
DRPS_MUST_CHECK
int drps_hold_plan(const struct drps_window_source *source, uint64_t frames, uint64_t memory_bytes,
                   struct drps_use_distances *next, uint32_t *limits_out, uint64_t *sent_out,
                   struct drps_sends *sends, struct drps_err *err);

/* ---- The lists: frames of the rows held for each window ---- */

struct drps_held_rows; /* opaque */

/* Empty lists, for at most `frames` frames together. NULL when memory is gone. */
struct drps_held_rows *drps_held_rows_new(uint32_t windows, uint64_t frames);
void drps_held_rows_free(struct drps_held_rows *held); /* NULL-safe */

uint64_t drps_held_rows_count(const struct drps_held_rows *held, uint32_t window);
/* Append n frames to a window's list. -EINVAL: the lists would have more than `frames` together. */
DRPS_MUST_CHECK
int drps_held_rows_add(struct drps_held_rows *held, uint32_t window, const uint32_t *frames,
                       size_t n, struct drps_err *err);
/* Copy a window's list, in order, to frames_out [count]; with `clear` it is empty then. */
void drps_held_rows_take(struct drps_held_rows *held, uint32_t window, int clear,
                         uint32_t *frames_out);

#endif
