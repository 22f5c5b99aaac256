/*
 * Rows in tiers: those of two neighbouring windows are in frames of a device's memory, and all are
 * in a store below. A thread of the store's own brings the rows of the next window while this one
 * is trained. Which these are the plan's windows say (index/plan/drps_window.h); nothing is
 * guessed. Private to storage/device/.
 *
 * While window w is open, the thread fetches window w + 1. It may take the frames of rows that no
 * one of the two has: these were used in window w - 1 at the latest, whose steps are all given to
 * the device by then, and an event tells when they are computed.
 *
 * The store below is one of two kinds:
 *
 *     resident   a row has its place there for good. So rows stay on the device beyond their window
 *                while there is room, and are written below when they leave: those first that are
 *                used again last. Steps name rows by their ids, which are their places
 *     relay      a window is one step of it, and a row has a place while a window that uses it is
 *                open there; otherwise it may be on disk. So the rows of a window that the next one
 *                does not use are written below as soon as the window has ended, and its step is
 *                closed. Steps name rows by their slots in the window, whose places the step below
 *                has told
 *
 * The files: tiered.c opens the store, and runs its steps and scans; fetch.c is the thread;
 * tiers_memory.c counts memory; frames.c knows what is where, and move.c moves it.
 */
#ifndef DRPS_STORAGE_DEVICE_TIERED_H
#define DRPS_STORAGE_DEVICE_TIERED_H

#include <pthread.h>

#include "storage/device/frames.h"
#include "storage/device/move.h"
#include "storage/drps_open_steps.h"

enum { WINDOWS_HELD = 2 };

/* A window that is being fetched, or is open. */
struct window {
    size_t n;
    uint32_t *places;               /* own: [max_rows] of its rows, by slot */
    struct drps_use_distances next; /* own arrays; above a resident store alone */
    uint64_t last_step;             /* of the epoch */
};

struct tiered {
    const struct drps_store_ops *ops;
    struct drps_device_use use; /* of the thread that trains */
    const struct drps_store_ops *below_ops;
    struct drps_store *below; /* own */
    /* What relay below reads: windows of one step, each of which is a window of `source`. */
    struct drps_window_source below_source;
    char *memory; /* own: the frames */
    uint64_t n_rows, epoch_step, epoch_steps;
    size_t row_bytes;
    struct frames frames;
    struct mover mover;
    const struct drps_window_source *source;
    uint32_t first_window; /* of the epoch, with which the store begins */
    uint64_t all_windows;  /* that are opened, ever: the last one ends an epoch */
    struct window windows[WINDOWS_HELD];
    uint32_t *slots;             /* own: [max_rows] 0, 1, 2, ...; above relay alone */
    uint32_t *coming, *arriving; /* own: [max_rows] places of rows that come, and their frames */
    uint64_t *leaving;           /* own: [max_rows] */
    uint32_t *index;             /* own: [max_rows] frames of the open step */
    struct drps_open_steps steps;
    uint64_t window, opened; /* the window of the step opened last; windows opened */
    uint64_t stall_ns, stalled;
    uint64_t *waited_ns; /* own: [windows] for each of the epoch; above relay alone */
    size_t fetch_n, fetch_came, fetch_left; /* rows of the window fetched last; that moved for it */

    pthread_t thread;
    int has_thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    uint64_t ready, wanted;    /* windows that are fetched, and that may be */
    uint64_t kept, came, left; /* rows of windows that were there already; that came and left */
    int stop, rc;
    struct drps_err failure;
};

/* 1: the store below is relay. */
static inline int tiered_has_disk(const struct tiered *st)
{
    return st->below_ops->by_slot;
}

static inline struct window *tiered_window(struct tiered *st, uint64_t number)
{
    return &st->windows[number % WINDOWS_HELD];
}

/* The number in its epoch of the window that is opened so many windows after the first. */
static inline uint32_t tiered_of_epoch(const struct tiered *st, uint64_t number)
{
    return (uint32_t)((st->first_window + number) % st->source->windows);
}

/* ---- The thread ---- */

DRPS_MUST_CHECK
int tiered_start(struct tiered *st, struct drps_err *err);
void tiered_stop(struct tiered *st);

/* So many windows may be fetched; more than there are is all. */
void tiered_want(struct tiered *st, uint64_t windows);

/* Wait until so many windows are fetched, or all. Returns the error of the thread, if it has one.
 */
DRPS_MUST_CHECK
int tiered_wait(struct tiered *st, uint64_t windows, struct drps_err *err);

/* Write the rows of all frames to the store below, where all are as of the last closed step then.
 * Nothing is fetched meanwhile. */
DRPS_MUST_CHECK
int tiered_bring_down(struct tiered *st, struct drps_err *err);

/* ---- Memory ---- */

/* The members memory_need of both kinds. */
int tiered_memory_need(const struct drps_store_config *config, uint64_t *least_out,
                       uint64_t *most_out, struct drps_err *err);
int tiered_disk_memory_need(const struct drps_store_config *config, uint64_t *least_out,
                            uint64_t *most_out, struct drps_err *err);

#endif
