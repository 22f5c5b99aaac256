/*
 * Rows that wait in memory for the window that uses them next: for each window the frames they are
 * in, in the order in which they came to wait. Both windows know how far apart they are, so such
 * rows need no numbers. Private to storage/relay/.
 */
#ifndef DRPS_RELAY_WAITING_H
#define DRPS_RELAY_WAITING_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

struct drps_waiting; /* opaque */

/* Empty lists, for at most `frames` frames together and `most` of a window. NULL when memory is
 * gone. */
struct drps_waiting *drps_waiting_new(uint32_t windows, uint64_t frames, uint64_t most);
void drps_waiting_free(struct drps_waiting *waiting); /* NULL-safe */

uint64_t drps_waiting_count(const struct drps_waiting *waiting, uint32_t window);
/* Append n frames to a window's list. -EINVAL: the lists would have more than `frames` together.
 * DRPS_E_CORRUPT: it would have more than `most`. */
DRPS_MUST_CHECK
int drps_waiting_add(struct drps_waiting *waiting, uint32_t window, const uint32_t *frames,
                     size_t n, struct drps_err *err);
/* Append frame i to the list of the window that is distances[i] after `window`, below one epoch, i
 * = 0 .. n - 1. Those of a whole epoch go to once_out [n] instead, in order. As drps_waiting_add().
 */
DRPS_MUST_CHECK
int drps_waiting_add_each(struct drps_waiting *waiting, uint32_t window, const uint32_t *distances,
                          const uint32_t *frames, size_t n, uint32_t *once_out, size_t *once_n_out,
                          struct drps_err *err);
/* Copy a window's list, in order, to frames_out [count]; with `clear` it is empty then. */
void drps_waiting_take(struct drps_waiting *waiting, uint32_t window, int clear,
                       uint32_t *frames_out);

#endif
