/*
 * How many rows a relay store writes in an epoch, and reads again: a simulation of which rows leave
 * its memory (spill.c), by counts alone. So a forecast (index/forecast/measure.c) tells what the
 * store does.
 */
#ifndef DRPS_STORAGE_RELAY_MOVES_H
#define DRPS_STORAGE_RELAY_MOVES_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "storage/drps_store.h"

/* Shares of the frames that may leave together: large ones make few runs, small ones let rows wait
 * longer. */
enum { DRPS_RELAY_SPILL_SMALL = 8, DRPS_RELAY_SPILL_LARGE = 4 };

/* How many rows leave each window, by use distance: the windows until their next use. */
struct drps_moves {
    uint32_t windows, most; /* use distances up to `most` are counted one by one */
    uint32_t *counts;       /* own: [windows][most + 1]; element 0 has all longer distances */
    uint64_t *room; /* own: [windows] frames left while windows w and w + 1 are open; the caller
                       fills it */
};

/* No rows yet. memory_bytes bounds the counts: less of it makes `most` smaller. 0 or -ENOMEM;
 * drps_moves_destroy() is yours in both cases. */
DRPS_MUST_CHECK
int drps_moves_init(struct drps_moves *m, uint32_t windows, uint64_t memory_bytes);
void drps_moves_destroy(struct drps_moves *m);

/* Returns the number of rows that leave window w for the one `distance` later, 2 .. windows. */
static inline uint32_t *drps_moves_count(const struct drps_moves *m, uint32_t w, uint32_t distance)
{
    return m->counts + (size_t)w * (m->most + 1) + (distance <= m->most ? distance : 0);
}

/* Count those of a source's windows, and set their room, for so many frames. `next` is scratch,
 * with room for source->max_rows. Returns what source->read() does. */
DRPS_MUST_CHECK
int drps_moves_read(struct drps_moves *m, const struct drps_window_source *source, uint64_t frames,
                    struct drps_use_distances *next, struct drps_err *err);

/*
 * Simulate an epoch after the first. Rows of distances longer than `most` count as written.
 *
 * frames    of the store; 0 if all rows fit, and nothing is written
 * share     as of drps_relay_spill_rows()
 * rows_out  how many rows an epoch writes, those that are merged not counted twice
 * Returns 0 or -ENOMEM.
 */
DRPS_MUST_CHECK
int drps_moves_written(const struct drps_moves *m, uint64_t frames, unsigned share,
                       uint64_t *rows_out);

/* Returns how many rows leave together, at least, when memory is full: one part of `share` of the
 * frames. They become a run. */
static inline uint64_t drps_relay_spill_rows(uint64_t frames, unsigned share)
{
    return frames / share + 1;
}

/* 1: with so few free frames, rows that are used once an epoch leave at once. */
static inline int drps_relay_queues(uint64_t free_frames, uint64_t frames)
{
    enum { FREE_SHARE = 4 };
    return free_frames < frames / FREE_SHARE;
}

#endif
