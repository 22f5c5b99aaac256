/*
 * Which row is in which frame of a device's memory, which frames are free, and which rows wait
 * there for a window that uses them again. A row is known by its place in the store below, which is
 * a frame there. Windows are counted from the start of training. Private to storage/device/.
 */
#ifndef DRPS_STORAGE_DEVICE_FRAMES_H
#define DRPS_STORAGE_DEVICE_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

#define FRAMES_NONE UINT32_MAX

struct frames {
    uint32_t *frame_of; /* own: [places]; FRAMES_NONE: the row is in the store below alone */
    uint32_t *place_of; /* own: [n] */
    uint32_t *next;    /* own: [n] of a list: of free frames, or of those that wait for a window; or
                          the window that the frame is held for */
    uint32_t *waiting; /* own: [windows + 2] the first that waits for window w, at w % that */
    uint32_t free, n_free, n, windows;
};

/* For so many places, frames, and windows of an epoch: no row is used again later than that. */
DRPS_MUST_CHECK
int frames_init(struct frames *f, uint64_t places, uint32_t n, uint32_t windows,
                struct drps_err *err);
void frames_destroy(struct frames *f); /* NULL-safe; zeroed too */

uint64_t frames_memory(uint64_t places, uint64_t n, uint64_t windows);

/* Puts the row of a place into a free frame, of which there must be one. Returns the frame. */
uint32_t frames_put(struct frames *f, uint32_t place);

/* The row in a frame, which waits for nothing, leaves it: the frame is free. place_of still has its
 * place. */
void frames_leave(struct frames *f, uint32_t frame);

/* Returns 1 if the frame has a row. */
static inline int frames_has_row(const struct frames *f, uint32_t frame)
{
    return f->frame_of[f->place_of[frame]] == frame;
}

/* The row in a frame, which waits for nothing, is used by this window. Where two windows use it,
 * the frame is held for the later one. */
void frames_hold(struct frames *f, uint32_t frame, uint64_t window);
int frames_held_for(const struct frames *f, uint32_t frame, uint64_t window);

/* The row in a frame is used again in window `due`, and may leave before. */
void frames_wait(struct frames *f, uint32_t frame, uint64_t due);

/* Rows that wait for this window do not wait any longer: its turn has come. */
void frames_come_to(struct frames *f, uint64_t window);

/* Frees the frame of the row that waits for the farthest window after `window`, and returns it;
 * place_of still has its place. FRAMES_NONE: none waits. */
uint32_t frames_take_farthest(struct frames *f, uint64_t window);

#endif
