/*
 * Saving a relay store, and opening one from what was saved. Private to storage/relay/.
 *
 * Rows that lie in the run file are on disk already. So a save writes the rest, which is in memory,
 * and names the chunks of the file that runs have; these are pinned, which means that they stay as
 * they are while training goes on and writes others. The folder of a save has
 *
 *     runs         a second name of the run file
 *     relay.rec    records: what the store was opened with; where it is; what runs there are
 *                  (runs_save.c); which frames are free; the frames of both open windows' rows and
 *                  of the rows that wait for each window; the rows in frames that are not free, in
 *                  the order of frames
 *
 * A store that is opened from it has every row in the same frame, or at the same place of a run,
 * and goes on as if nothing had happened. Nothing of that is believed before it was checked: a
 * chunk is in one list at most, a frame is free or is used once, and rows that both windows have
 * are in the same frames.
 *
 * A saved store that is only looked at, to scan it, keeps no frames in memory. It notes which row
 * each frame has, and reads the rows in the order of frames.
 */
#ifndef DRPS_RELAY_SAVE_H
#define DRPS_RELAY_SAVE_H

#include "storage/relay/relay.h"

enum { DRPS_SAVED_VERSION = 4, DRPS_SAVED_RECORD_BYTES = 256 << 10 /* of rows, or a row */ };

/* What a store was opened with: what follows `scan_bytes` must be the same to go on from it. */
struct drps_saved_shape {
    uint64_t version;
    uint64_t memory_bytes, buffer_bytes, seek_bytes, config_chunk_bytes, scan_bytes;
    uint64_t rows, row_bytes, frames;
    uint64_t windows, windows_sum; /* checksum of their heads and use distances */
    uint64_t chunk_bytes, runs;
};

/* Where it is. Windows are numbered as in relay.h. */
struct drps_saved_place {
    uint64_t epoch_step;   /* the next step */
    uint64_t first_window; /* of the plan: the first one that the store has opened */
    uint64_t closing, current, ready;
};

/* What is known of a save while a store is opened from it. */
struct drps_restore {
    struct drps_saved saved; /* own */
    struct drps_saved_shape shape;
    struct drps_saved_place place;
    uint32_t window; /* of the plan: the one that has the next step */
    uint64_t done;   /* steps of it before that */

    /* Of a store that is looked at. */
    uint32_t *ids;      /* own: [frames] the placed id of the row in each */
    uint64_t in_frames; /* rows in frames */
};

/* Returns how many rows a record has. */
static inline size_t drps_saved_record_rows(const struct drps_relay *st)
{
    const size_t rows = DRPS_SAVED_RECORD_BYTES / st->config.row_bytes;
    return rows ? rows : 1;
}

void drps_saved_describe(const struct drps_relay *st, struct drps_saved_shape *out);

/* While the window thread is idle: write the folder's files, and pin the chunks that they name.
 * Returns the number of the save. -ENOTSUP: the folder's file system cannot have a second name of
 * the run file. A failure leaves files in the folder. */
DRPS_MUST_CHECK
int drps_relay_save(struct drps_relay *st, const char *dir, struct drps_err *err);

/* ---- Opening a store from st->config.saved_dir ---- */

/* Read its shape and its place; st->restore, which drps_relay_restore_end() frees, has them then.
 */
DRPS_MUST_CHECK
int drps_relay_restore_begin(struct drps_relay *st, struct drps_err *err);
/* st->first_window and st->left_out are those of config.first_step: they become those of the store
 * that was saved. */
void drps_relay_restore_first(struct drps_relay *st);
/* Before anything is changed: go to its place. DRPS_E_CONFIG unless the store has the shape that
 * was saved. */
DRPS_MUST_CHECK
int drps_relay_restore_place(struct drps_relay *st, struct drps_err *err);
/* Once runs are open: read the rest. */
DRPS_MUST_CHECK
int drps_relay_restore_rows(struct drps_relay *st, struct drps_err *err);
/* Receives the row of a frame. */
typedef int (*drps_saved_visit)(void *ctx, uint64_t frame, const char *row, struct drps_err *err);

/* Read the rows in frames, in the order of frames: the last records, once. */
DRPS_MUST_CHECK
int drps_relay_restore_visit(struct drps_relay *st, drps_saved_visit visit, void *ctx,
                             struct drps_err *err);
void drps_relay_restore_end(struct drps_relay *st); /* nothing is being restored: no harm */

/* Give a file a second name. -ENOTSUP: the file system cannot, or the names are on different ones.
 */
DRPS_MUST_CHECK
int drps_relay_link(const struct drps_io *io, const char *from, const char *to,
                    struct drps_err *err);

#endif
