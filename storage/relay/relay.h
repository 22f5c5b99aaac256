/*
 * The relay store: all rows of two windows are in memory, and so are rows that wait there for a
 * window that uses them soon; every other row is on disk, in a run that is read front to back as
 * windows need its rows. Private to storage/relay/.
 *
 *     window q closes    a row that is used again by window n waits for it, in its frame
 *     window q opens     frames of rows that stayed from window q - 1 are taken over, and so are
 *                        those of rows that waited; its other rows come from the queue and from
 *                        runs; rows that no window has used yet are created
 *     frames run out     the rows that wait for the windows furthest away leave together: they
 *                        become a run, sorted by window (spill.c)
 *
 * Windows are numbered on over the epochs: q = 0, 1, 2, ...; window q is number (first_window + q)
 * % K of the plan, as a run may begin in the middle of an epoch. Then the steps of window 0 before
 * config.first_step are left out, and a row is created by the first window from there on that uses
 * it. Rows on their way need no ids: those of a window come in the order in which the windows that
 * used them last closed, within one in slot order, so sorting a window's slots by the distance to
 * their last use gives that order back. The engine's thread runs the steps of window q while the
 * window thread, a thread of the store, closes q - 1 and opens q + 1. With config.open_steps it may
 * run steps of q + 1, too, before all of q are closed: rows that both use are in the same frames,
 * and q stays open until the last of its steps has closed.
 *
 * The files of this folder, in the order of an epoch:
 *
 *     relay.c            opening the store; steps, as the engine's thread opens and closes them
 *     memory_share.c     memory for rows and for buffers; run_layout.c: what the buffers become
 *     window_thread.c    the thread that moves rows between windows
 *     windows.c          opening and closing one window, with pick.c for its slots
 *     waiting.c          lists of rows that wait in memory; spill.c: which of them leave
 *     runs/              runs in one file, over storage/io
 *     moves.c            how many rows will leave, by counts alone
 *     scan*.c            all rows in placed order, for the model, or of a saved store
 *     save.c, restore.c  saving the store beside its run file, and opening it from that
 */
#ifndef DRPS_RELAY_INTERNAL_H
#define DRPS_RELAY_INTERNAL_H

#include <pthread.h>

#include "storage/drps_open_steps.h"
#include "storage/relay/drps_relay.h"
#include "storage/relay/drps_moves.h"
#include "storage/relay/pick.h"
#include "storage/relay/run_layout.h"
#include "storage/relay/runs/drps_runs.h"
#include "storage/relay/waiting.h"

/* How the store shares config->memory_bytes. */
void drps_relay_share_of(const struct drps_store_config *config, struct drps_relay_share *out);

/* Returns the least memory for which drps_relay_share_surely() is right. */
uint64_t drps_relay_sure_bytes(const struct drps_store_config *config);

enum { DRPS_RELAY_QUARTERS = 4 };

struct drps_relay_window {
    uint64_t q;
    struct drps_store_window head;
    uint32_t *frame;                /* own: [max_rows] the frame of the row of slot s */
    struct drps_use_distances next; /* own: windows until each row is used again */
};

/* The run that is being written. */
struct drps_spill {
    int begun;
    uint64_t first, next, last; /* windows whose rows it has, gets next, and may get */
};

struct drps_relay {
    const struct drps_store_ops *ops;
    struct drps_store_config config;
    struct drps_window_source source;
    struct drps_relay_share share;
    struct drps_run_layout layout;
    uint32_t first_window; /* of the plan: the one that has config.first_step */
    uint64_t left_out;     /* steps of it before that */
    uint64_t all_windows;  /* that are opened, ever: the last one ends an epoch */
    uint64_t epoch_steps;  /* of all windows */
    uint64_t windows_sum;  /* checksum of what windows are, for saves */
    int looking;           /* 1: opened to be scanned, from a save: nothing goes on. `rows`
                              and far distances of open windows are not there then */
    int linked;            /* 1: the run file was a save's, and has gotten its name here */
    char *path;            /* own: of the run file */
    struct drps_runs *runs;
    struct drps_restore *restore; /* own: while it is opened from a save, or looks at one; save.h */

    /* Rows in memory. Arrays of max_rows have room for DRPS_PICK_ROOM more. */
    char *rows; /* own: [frames][row_bytes] */
    size_t rows_bytes;
    uint64_t frames;
    uint64_t spill_rows;              /* that leave together, at least, when memory is full */
    uint64_t *free_frames;            /* own: bit f: frame f holds no row */
    uint64_t free_n;                  /* so many do */
    struct drps_relay_window open[2]; /* window q at q % 2 */
    struct drps_waiting *waiting;     /* own: frames of rows that wait, by their next window */
    uint32_t *order;                  /* own: [max_rows] slots, or frames, in the order of use */
    uint32_t *picked;                 /* own: [max_rows] slots, or frames, of those that move */
    uint32_t *leaving;                /* own: [max_rows] frames of rows that leave for one window */
    struct drps_spill spill;
    uint64_t spilled;               /* rows that left memory to runs, ever */
    uint32_t *ids;                  /* own: [max_rows] of the window being opened */
    struct drps_use_distances prev; /* own: windows since the last use of each of its rows */
    uint32_t *counts;               /* own: [K + 2] of rows, by distance */
    uint32_t (*parts)[DRPS_RELAY_QUARTERS]; /* own: [K + 2] the same of each quarter of them */
    struct drps_picker picker;

    /* The engine's thread. Steps of windows current .. entered - 1, at most two, may be open. */
    struct drps_open_steps steps;
    uint64_t current, entered;
    uint64_t end; /* the step after the last of window entered - 1 */
    uint64_t begin[2],
        left_open[2]; /* of window q at q % 2: its first step, and steps not closed */
    uint32_t *index;  /* own: [index_cap] */
    size_t index_cap;

    /* Between the two. */
    pthread_mutex_t lock;
    pthread_cond_t wake, news;
    pthread_t window_thread;
    int alive, started;
    uint64_t ready; /* windows opened by the window thread, ever */
    uint64_t asked; /* windows that steps have come to, ever: for statistics */
    uint64_t left;  /* windows that the engine's thread has finished, ever */
    int idle, stopping;
    int still; /* 1: the window thread is to stay idle */
    int tell;  /* the engine's thread was told to come back: config.opened() */
    struct drps_err failure;
    struct drps_store_stats stats;
    struct drps_window_stats *window_stats; /* own: [K] */

    /* The window thread. */
    uint64_t closing; /* windows closed, ever: the next one to close */
};

static inline uint32_t drps_relay_number(const struct drps_relay *st, uint64_t q)
{
    return (uint32_t)((st->first_window + q) % st->source.windows);
}

static inline int drps_relay_is_free(const struct drps_relay *st, uint64_t frame)
{
    return (int)(st->free_frames[frame / 64] >> frame % 64 & 1);
}

/* ---- The window thread's two moves ---- */

DRPS_MUST_CHECK
int drps_relay_open_window(struct drps_relay *st, uint64_t q, struct drps_err *err);
DRPS_MUST_CHECK
int drps_relay_close_window(struct drps_relay *st, uint64_t q, struct drps_err *err);

/* Before window q opens: let rows leave until n frames are free. */
DRPS_MUST_CHECK
int drps_relay_make_room(struct drps_relay *st, uint64_t q, uint64_t n, struct drps_err *err);
/* End the run that is being written, if there is one: all of what left memory can be read then. */
DRPS_MUST_CHECK
int drps_relay_end_run(struct drps_relay *st, struct drps_err *err);
void drps_relay_free_frames(struct drps_relay *st, const uint32_t *frames, size_t n);

DRPS_MUST_CHECK
int drps_window_thread_start(struct drps_relay *st, struct drps_err *err);
void drps_window_thread_stop(struct drps_relay *st);

/* Wait until the window thread is idle, and keep it so until drps_relay_go_on(), which is called
 * also after a failure. The engine's thread may use the window thread's memory meanwhile. */
DRPS_MUST_CHECK
int drps_relay_stand_still(struct drps_relay *st, struct drps_err *err);
void drps_relay_go_on(struct drps_relay *st);

/* Set room for scans of config.scan_bytes a row aside on the disk. */
DRPS_MUST_CHECK
int drps_relay_reserve_scan(const struct drps_relay *st, struct drps_err *err);
/* Visit the first `bytes` of all rows in placed order, while the window thread is idle; 0: all.
 * Room for more than was set aside is taken at first, and given back at the end. Whatever fails,
 * runs are as they were before, unless the disk cannot read them. */
DRPS_MUST_CHECK
int drps_relay_scan(struct drps_relay *st, size_t bytes, drps_row_visit visit, void *ctx,
                    struct drps_err *err);

#endif
