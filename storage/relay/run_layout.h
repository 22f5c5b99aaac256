/*
 * How the runs of a relay store share their buffers: the size of chunks, how many runs may be live,
 * and how many chunks are read ahead and written behind. Private to storage/relay/.
 */
#ifndef DRPS_RELAY_RUN_LAYOUT_H
#define DRPS_RELAY_RUN_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "storage/drps_store.h"
#include "storage/relay/drps_moves.h"

/* A scan of all rows, which takes memory only while it lasts, borrows that of the runs. Where these
 * have too little, a part of the buffers is set aside for it: drps_run_layout_scan() bytes.
 */

/* Bytes of the buffers that are set aside for what is kept for each window; where windows are more
 * than this suffices for, it takes more of the buffers. */
enum { DRPS_RELAY_WINDOWS_LEAST = 1 << 20 };

struct drps_run_layout {
    size_t chunk_bytes;
    uint32_t runs;         /* live at a time, at most */
    uint32_t spare;        /* as of drps_runs_config */
    uint32_t ahead;        /* chunks that are read ahead */
    uint32_t behind;       /* chunks that are filled and written */
    uint32_t write_chunks; /* written by one request, at most */
    uint64_t file_chunks;  /* of the run file */
    int lends;             /* 1: a scan borrows the runs' memory */
    double cost;           /* bytes moved, or as good as moved, for each that is written once */
};

/* The cheapest layout in buffer_bytes, which also have what is kept for each window, on a disk of
 * config->seek_bytes, where an epoch has so many runs. DRPS_E_MEMORY_BUDGET when there is none. */
DRPS_MUST_CHECK
int drps_run_layout_choose(const struct drps_store_config *config, uint64_t buffer_bytes,
                           uint64_t runs, struct drps_run_layout *out, struct drps_err *err);

/* How many rows leave memory together, at least, and what follows from it. */
struct drps_spill_plan {
    uint64_t spill_rows;
    uint64_t rows_sent; /* of an epoch */
    struct drps_run_layout layout;
};

/* Choose how many rows leave together, and the layout for that many runs: more where that costs
 * less, with those that are then not merged. moves are of a store with so many frames. -ENOMEM;
 * others as of drps_run_layout_choose(). */
DRPS_MUST_CHECK
int drps_relay_plan_spills(const struct drps_store_config *config, uint64_t buffer_bytes,
                           const struct drps_moves *moves, uint64_t frames,
                           struct drps_spill_plan *out, struct drps_err *err);

/* Buffers of so many bytes have a layout for that many windows, or fewer, on any disk. */
uint64_t drps_run_layout_least(uint64_t windows, uint64_t rows, size_t row_bytes);

/* Returns the memory of a scan that borrows none. */
uint64_t drps_run_layout_scan(uint64_t rows, size_t row_bytes);

/* Returns the rows of a scan's partition that has room for them, and a bit for each, in so many
 * bytes; at least one. */
uint64_t drps_run_layout_part(uint64_t bytes, size_t row_bytes);

/* Returns the bytes of the buffers that are kept for windows. */
uint64_t drps_run_layout_windows(uint64_t windows);

#endif
