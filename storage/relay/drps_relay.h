/* What a relay store makes of its memory and of a disk: for those who cut windows for it. */
#ifndef DRPS_STORAGE_RELAY_RELAY_H
#define DRPS_STORAGE_RELAY_RELAY_H

#include <stddef.h>
#include <stdint.h>

#include "storage/drps_store.h"

/* How a relay store shares memory_bytes. */
struct drps_relay_share {
    uint64_t budget_bytes; /* frames and what is kept for each of them */
    uint64_t row_bytes;    /* a frame of two open windows and what is kept for it */
    uint64_t held_bytes;   /* a frame beyond these, likewise */
    uint64_t buffer_bytes; /* chunks being filled, written and read ahead; some words a window */
    uint64_t scan_bytes;   /* taken only while all rows are visited */
    int coarse;            /* 1: windows are to take all of budget_bytes */
};
void drps_relay_share(uint64_t memory_bytes, uint64_t rows, size_t row_bytes, uint64_t seek_bytes,
                      struct drps_relay_share *out);

/*
 * The same with as little for buffers as is sure to do: in what is left windows can be cut that the
 * buffers have room for, however small their steps are, on any disk. That is so for memory_bytes
 * from what memory_need() asks for. Of config: rows, row_bytes, epoch_steps and step.rows.
 */
void drps_relay_share_surely(uint64_t memory_bytes, const struct drps_store_config *config,
                             struct drps_relay_share *out);

/* 1: the buffers have room for so many windows. */
int drps_relay_fits(const struct drps_relay_share *share, uint32_t windows);

/* The share of a store that has memory for so many rows, with windows of the usual part: what
 * drps_relay_frames() makes of it is `frames`, or a little more where windows do not fill theirs.
 */
void drps_relay_share_frames(uint64_t frames, uint64_t rows, uint64_t step_rows, size_t row_bytes,
                             struct drps_relay_share *out);

/* Rows in memory of a store of `rows` whose two largest windows have working_rows together. */
uint64_t drps_relay_frames(const struct drps_relay_share *share, uint64_t working_rows,
                           uint64_t rows);

/* Compile windows for so many bytes of rows of share->row_bytes: a part of the budget, because what
 * they leave holds rows that steps use again soon; but enough for the rows of two steps, and all of
 * it when all rows fit. Never more than the budget: where that is too little for two steps,
 * compiling says so. */
uint64_t drps_relay_window_bytes(const struct drps_relay_share *share, uint64_t rows,
                                 uint64_t step_rows);

/* The largest chunk that pays on a disk that would move seek_bytes in the time of one more request.
 */
uint64_t drps_relay_chunk(uint64_t seek_bytes);

#endif
