/*
 * What row stores know of the future, from the plan: which blocks each step needs (pib), or which
 * rows each window has and when they are used again (relay). The engine gives it, the stores read
 * it; nothing is predicted.
 */
#ifndef DRPS_FUTURE_H
#define DRPS_FUTURE_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

/* ---- Steps and blocks, for the block store ---- */

/* The blocks of one step, and when each is needed next. */
struct drps_step_blocks {
    const uint32_t *blocks;   /* [n] strictly increasing */
    const uint64_t *next_use; /* [n] the next step (counted from the start of training) that needs
                                 the block; UINT64_MAX: none */
    size_t n;
};

/*
 * All steps. step_blocks() is called with step = 0, 1, 2, ... by one thread of the store, which may
 * run some steps ahead of the one that is open; the arrays are borrowed until the next call.
 * Returns 0 or an error, which ends the training.
 */
struct drps_timeline {
    void *ctx;
    uint64_t steps;            /* in the whole training */
    uint64_t max_use_distance; /* most steps from a use of a block to its next one; 0: unknown */
    int (*step_blocks)(void *ctx, uint64_t step, struct drps_step_blocks *out,
                       struct drps_err *err);
};

/* ---- Windows and rows, for the relay store ---- */

/* One window of an epoch; index/plan/drps_window.h has the terms. */
struct drps_store_window {
    uint64_t first_step, steps; /* of the epoch */
    size_t n;                   /* rows */
    size_t arriving, leaving;   /* rows that the window before does not use; the one after not */
};

/*
 * The use distances of a window's rows, by slot: windows until a row is used again, or since it was
 * used last. Most are 1, so that the others alone are listed. A row with a use distance above 1 is
 * a *far* row.
 */
struct drps_use_distances {
    uint64_t *marks; /* [DRPS_DISTANCE_WORDS(n)] bit s: the row of slot s is far; from bit n on 0 */
    uint32_t *far;   /* [n_far] use distances of these rows, in slot order; room for n */
    size_t n_far;
};
#define DRPS_DISTANCE_WORDS(n) ((size_t)(n) / 64 + 2)

/*
 * The plan's windows. read() gives the head of window w < windows and, where a pointer is not NULL,
 * the placed ids of its rows [n] and their use distances to the next use and from the last one (1
 * .. windows, cyclic), into the caller's memory. One calling thread at a time; another one may ask
 * for heads alone meanwhile. Returns 0 or an error.
 */
struct drps_window_source {
    void *ctx;
    uint32_t windows;      /* of an epoch */
    uint64_t epochs;       /* that will be run, the one in which the store begins included */
    size_t max_rows;       /* of one window */
    uint64_t working_rows; /* most rows of two neighbouring windows together */
    int (*read)(void *ctx, uint32_t w, struct drps_store_window *out, uint32_t *rows,
                struct drps_use_distances *next, struct drps_use_distances *prev,
                struct drps_err *err);
};

#endif
