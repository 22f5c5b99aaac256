/*
 * What a relay store makes of its memory and of a disk, for those who cut windows for it. These are
 * pure functions of sizes; storage/relay/relay.h has the store's idea, and how the files of this
 * folder work together.
 */
#ifndef DRPS_STORAGE_RELAY_RELAY_H
#define DRPS_STORAGE_RELAY_RELAY_H

#include <stddef.h>
#include <stdint.h>

#include "storage/drps_store.h"
#include "storage/relay/drps_moves.h"

/* How a relay store shares memory_bytes: budget_bytes and buffer_bytes together. */
struct drps_relay_share {
    uint64_t budget_bytes;  /* frames and what is kept for each of them */
    uint64_t row_bytes;     /* a frame of two open windows and what is kept for it */
    uint64_t waiting_bytes; /* a frame beyond these, and what is kept for it */
    uint64_t buffer_bytes;  /* chunks being filled, written and read ahead, which are lent while all
                               rows are visited; what each window needs */
    uint64_t chunks_least;  /* of these, for chunks and visits */
    int coarse;             /* 1: windows are to take all of budget_bytes */
    uint64_t most_rows;     /* of two windows, as elsewhere is room for no more; 0: any */
};

/* The usual share, for `rows` rows of row_bytes on a disk of seek_bytes (0: unknown). budget_bytes
 * is 0 where memory_bytes do not suffice for the rest. */
void drps_relay_share(uint64_t memory_bytes, uint64_t rows, size_t row_bytes, uint64_t seek_bytes,
                      struct drps_relay_share *out);

/*
 * The share with as little for buffers as is sure to do: in what is left windows can be cut that
 * the buffers have room for, however small their steps are, on any disk. That holds from the memory
 * on that memory_need() asks for. Of config, rows, row_bytes, epoch_steps, step.rows and
 * device_frames are used.
 */
void drps_relay_share_surely(uint64_t memory_bytes, const struct drps_store_config *config,
                             struct drps_relay_share *out);

/* 1: the buffers have room for so many windows; 0: they do not. */
int drps_relay_fits(const struct drps_relay_share *share, uint32_t windows);

/* The share of a store that has memory for so many rows, with windows of the usual part: what
 * drps_relay_frames() makes of it is `frames`, or a little more where windows do not fill theirs.
 */
void drps_relay_share_frames(uint64_t frames, uint64_t rows, uint64_t step_rows, size_t row_bytes,
                             struct drps_relay_share *out);

/* Frames of a store of `rows` rows, two neighbouring windows of which have working_rows at most. */
uint64_t drps_relay_frames(const struct drps_relay_share *share, uint64_t working_rows,
                           uint64_t rows);

/* Returns the bytes that the rows of two windows may take: of budget_bytes, those of most_rows at
 * most. */
uint64_t drps_relay_open_bytes(const struct drps_relay_share *share);

/* Returns the most bytes by which the file of runs is larger than all rows: room for chunks that
 * are not full, of which each run that the buffers have room for has two. */
uint64_t drps_relay_file_more(const struct drps_relay_share *share, uint64_t rows,
                              size_t row_bytes);

/* Compile windows for so many bytes of rows of share->row_bytes: a part of the budget, because in
 * what they leave rows wait that steps use again soon; but enough for the rows of two steps, and
 * all of it when all rows fit. Never more than drps_relay_open_bytes(): where that is too little
 * for two steps, compiling says so. */
uint64_t drps_relay_window_bytes(const struct drps_relay_share *share, uint64_t rows,
                                 uint64_t step_rows);

/* Returns the largest chunk that pays on a disk that would move seek_bytes in the time of one more
 * request. */
uint64_t drps_relay_chunk(uint64_t seek_bytes);

/*
 * Returns the bytes of the chunks that a store would read and write which has frames for so many
 * rows, and writes rows_sent an epoch: of the usual share, or the least where that has no layout.
 * Of config, rows, row_bytes, step.rows, seek_bytes and windows->windows are used.
 */
uint64_t drps_relay_forecast_chunk(const struct drps_store_config *config, uint64_t frames,
                                   uint64_t rows_sent);

/*
 * Counts the rows that a store sends in an epoch which has frames for so many rows: of the usual
 * share, on a disk without seeks. `share` is that of drps_relay_share_frames(). Of config, rows,
 * row_bytes and windows->windows are used. -ENOMEM.
 */
DRPS_MUST_CHECK
int drps_relay_forecast_sent(const struct drps_store_config *config,
                             const struct drps_relay_share *share, const struct drps_moves *moves,
                             uint64_t frames, uint64_t *rows_out);

/* ---- Saved stores ---- */

/* What a store was opened with that was saved, as in drps_store_config, and before which step. */
struct drps_relay_saved {
    uint64_t rows, row_bytes;
    uint64_t memory_bytes, buffer_bytes, seek_bytes, chunk_bytes, scan_bytes;
    uint64_t windows;    /* of the epoch */
    uint64_t epoch_step; /* config.first_step of a store that goes on from it */
};

/* Read that from the folder of a save. DRPS_E_CORRUPT, DRPS_E_VERSION, -ENOENT ... */
DRPS_MUST_CHECK
int drps_relay_saved_about(const struct drps_io *io, const char *dir, struct drps_relay_saved *out,
                           struct drps_err *err);

/* Read all of a saved store, to know that it can be read: in memory for its largest record and
 * chunk. DRPS_E_CORRUPT names the file; DRPS_E_INTERRUPTED by io->stop. */
DRPS_MUST_CHECK
int drps_relay_verify_saved(const struct drps_io *io, const char *dir, struct drps_err *err);

/*
 * Visit all rows of config->saved_dir, as ops->scan() does, without a store that goes on from it.
 * config as for opening the store from that folder; first_step and the number of epochs are not
 * looked at. Rows in frames are read as they were written, in the order of frames, and not kept: so
 * it takes drps_relay_scan_saved_memory() and not config->memory_bytes; and room in config->dir, an
 * empty folder, for all rows. The saved folder stays as it is. Errors as of open and scan.
 */
DRPS_MUST_CHECK
int drps_relay_scan_saved(const struct drps_store_config *config, size_t bytes,
                          drps_row_visit visit, void *ctx, struct drps_err *err);

/* Returns the memory that this takes, with what config->windows read a window into. */
uint64_t drps_relay_scan_saved_memory(const struct drps_store_config *config);

#endif
