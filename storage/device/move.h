/*
 * Rows between a device's frames and places of the store below, piece by piece through pinned
 * memory: while one piece is on its way, the host fills or empties the other one. Private to
 * storage/device/.
 */
#ifndef DRPS_STORAGE_DEVICE_MOVE_H
#define DRPS_STORAGE_DEVICE_MOVE_H

#include "storage/device/pieces.h"
#include "storage/drps_store.h"

/* Events beside those of pieces. */
enum {
    EVENT_ENDED = EVENTS_PIECES_END, /* and the next: all steps of the window, by its parity */
    EVENT_LOADED = EVENT_ENDED + 2   /* and the next: all rows of the window have come */
};

struct mover {
    struct drps_device_use use;
    struct drps_device_rows rows; /* borrowed: the frames */
    size_t row_bytes;
    struct drps_rows below;   /* borrowed: of its index nothing is used */
    struct pieces in, out;    /* own; a piece has frames, then rows */
    char *staging[2][PIECES]; /* own: the same on the device, in and out */
    size_t piece_rows;
    uint64_t *order; /* own: [piece_rows] */
};

uint64_t mover_host_bytes(size_t row_bytes, uint64_t rows);

/* *m is zeroed but for below and rows, which are the caller's to set, before or after. */
DRPS_MUST_CHECK
int mover_open(struct mover *m, const struct drps_device_use *use, size_t row_bytes, uint64_t rows,
               struct drps_err *err);
void mover_close(struct mover *m); /* half-built too */

/* Bring the rows of places [n] into frames [n]. Returns when they are on their way; they are
 * there once the queue of rows that come in has done all that it was given. */
DRPS_MUST_CHECK
int mover_load(struct mover *m, const uint32_t *places, const uint32_t *frames, size_t n,
               struct drps_err *err);

/* Write rows that are in frames to their places: moved [n] has a place in the upper half of each
 * word, the frame in the lower one, in any order, which is changed. Returns when they are there.
 */
DRPS_MUST_CHECK
int mover_store(struct mover *m, uint64_t *moved, size_t n, struct drps_err *err);

#endif
