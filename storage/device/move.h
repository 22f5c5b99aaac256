/*
 * Rows between a device's frames and the store below, piece by piece through pinned memory: while
 * one piece is on its way, the host fills or empties the other one. Private to storage/device/.
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
    const struct drps_store_ops *below_ops;
    struct drps_store *below; /* borrowed: any of its rows may be opened at any time */
    uint64_t below_steps;     /* opened there */
    struct pieces in, out;    /* own; a piece has frames, then rows */
    char *staging[2][PIECES]; /* own: the same on the device, in and out */
    size_t piece_rows;
    uint32_t *ids;   /* own: [piece_rows] */
    uint64_t *order; /* own: [2][piece_rows] */
    uint64_t rows_in, rows_out;
};

uint64_t mover_host_bytes(size_t row_bytes, uint64_t rows);

/* below_ops, below and rows are the caller's to set. */
DRPS_MUST_CHECK
int mover_open(struct mover *m, const struct drps_device_use *use, size_t row_bytes, uint64_t rows,
               struct drps_err *err);
void mover_close(struct mover *m); /* half-built too */

/* Bring rows ids [n], increasing, into frames [n]. Returns when they are on their way; they are
 * there once the queue of rows that come in has done all that it was given. */
DRPS_MUST_CHECK
int mover_load(struct mover *m, const uint32_t *ids, const uint32_t *frames, size_t n,
               struct drps_err *err);

/* Write the rows that are in frames to the store below: moved [n] has an id in the upper half of
 * each word, the frame in the lower one, in any order, and is changed. Returns when they are there.
 */
DRPS_MUST_CHECK
int mover_store(struct mover *m, uint64_t *moved, size_t n, struct drps_err *err);

/* Show the rows in frames [n], as they are in the memory of the device, in pieces; first is an
 * index into frames. */
DRPS_MUST_CHECK
int mover_read(struct mover *m, const uint32_t *frames, size_t n, drps_row_visit visit, void *ctx,
               struct drps_err *err);

#endif
