/*
 * Which row is in which frame of a device's memory, which frames are free, and which rows wait
 * there for a window that uses them again. Windows are counted from the start of training. Private
 * to storage/device/.
 */
#ifndef DRPS_STORAGE_DEVICE_FRAMES_H
#define DRPS_STORAGE_DEVICE_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

#define FRAMES_NONE UINT32_MAX

struct frames {
    uint32_t *frame_of; /* own: [rows]; FRAMES_NONE: the row is in the store below */
    uint32_t *row_of;   /* own: [n] */
    uint32_t *next;     /* own: [n] of a list: of free frames, or of those that wait for a window */
    uint32_t *waiting;  /* own: [windows + 2] the first that waits for window w, at w % that */
    uint32_t free, n_free, n, windows;
};

/* For so many rows, frames, and windows of an epoch: no row is used again later than that. */
DRPS_MUST_CHECK
int frames_init(struct frames *f, uint64_t rows, uint32_t n, uint32_t windows,
                struct drps_err *err);
void frames_destroy(struct frames *f); /* NULL-safe; zeroed too */

uint64_t frames_memory(uint64_t rows, uint64_t n, uint64_t windows);

/* Puts a row into a free frame, of which there must be one. Returns the frame. */
uint32_t frames_put(struct frames *f, uint32_t row);

/* The row in a frame is used again in window `due`, and may leave before. */
void frames_wait(struct frames *f, uint32_t frame, uint64_t due);

/* Rows that wait for this window do not wait any longer: its turn has come. */
void frames_come_to(struct frames *f, uint64_t window);

/* Frees the frame of the row that waits for the farthest window after `window`, and returns it;
 * row_of still has its row. FRAMES_NONE: none waits. */
uint32_t frames_take_farthest(struct frames *f, uint64_t window);

#endif
