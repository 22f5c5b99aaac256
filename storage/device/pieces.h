/*
 * Pieces of pinned memory through which rows get to a device and back, two for each way, so that
 * one is filled or emptied while the other one moves. Private to storage/device/.
 */
#ifndef DRPS_STORAGE_DEVICE_PIECES_H
#define DRPS_STORAGE_DEVICE_PIECES_H

#include "device/drps_device_use.h"

enum {
    PIECE_BYTES = 4 << 20, /* at most, but for a row that is larger */
    PIECE_SHARE = 32,      /* of a store's rows */
    PIECES = 2,            /* of each way */
    /* Events, from DRPS_DEVICE_EVENTS_STORE on. */
    EVENT_IN = DRPS_DEVICE_EVENTS_STORE, /* and the next: the piece may be filled again */
    EVENT_OUT = EVENT_IN + PIECES,       /* and the next: the piece is there */
    EVENT_COMPUTED = EVENT_OUT + PIECES, /* what was computed so far is done */
    EVENTS_PIECES_END
};

/* Pieces of one way. */
struct pieces {
    char *pinned[PIECES]; /* own: [piece_bytes] */
    size_t rows;          /* that a piece holds */
    uint64_t used;        /* pieces that were taken */
};

/* Returns how many rows a piece holds, of a store of so many: a small part of them. */
size_t pieces_rows(size_t row_bytes, uint64_t rows);

/* Returns the bytes of host memory of both ways. */
uint64_t pieces_memory(size_t row_bytes, uint64_t rows);

DRPS_MUST_CHECK
int pieces_open(struct drps_device_use *use, size_t row_bytes, uint64_t rows, struct pieces *out,
                struct drps_err *err);
void pieces_close(struct drps_device_use *use, struct pieces *pieces);

#endif
