/*
 * The records that runs save of themselves. Private to storage/relay/runs/. In this order:
 *
 *     sizes      what the runs were opened with, and how many of the others there are
 *     pinned     a bit a chunk of the file: an older save names it
 *     runs       entries of some runs each: the queue, then the runs, the oldest one first
 *     chunks     entries of some chunks each: runs in turn, of each its chunks in order
 */
#ifndef DRPS_STORAGE_RELAY_RUNS_RUNS_SAVED_H
#define DRPS_STORAGE_RELAY_RUNS_RUNS_SAVED_H

#include "storage/relay/runs/drps_runs.h"

enum { DRPS_RUNS_ENTRIES = 4096 }; /* of a record */

struct drps_runs_sizes {
    uint64_t row_bytes, chunk_bytes, file_chunks, runs; /* as in drps_runs_config */
    uint64_t chunks, cursor;                            /* of the chunk map */
    uint64_t saved;                                     /* runs, the queue is one */
    uint64_t listed;                                    /* chunks of them */
};

struct drps_runs_saved_run {
    uint64_t window, left; /* as in drps_run */
    uint32_t at, level;
    uint32_t chunks, zero;
};

struct drps_runs_saved_chunk {
    uint64_t sum, need; /* as in the chunk map */
    uint32_t chunk, bytes;
};

/* Bytes of a record with a bit a chunk. */
static inline size_t drps_runs_bits_bytes(uint64_t chunks)
{
    return (size_t)(chunks / 64 + 1) * sizeof(uint64_t);
}

/* Entries of the next record, of which `left` are to come. */
static inline size_t drps_runs_entries(uint64_t left)
{
    return left < DRPS_RUNS_ENTRIES ? (size_t)left : DRPS_RUNS_ENTRIES;
}

#endif
