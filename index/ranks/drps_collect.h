/*
 * A finished plan taken apart again: all batches in one order, with placed ids, and all blocks, as
 * they were before they were split by rank. So a plan for another number of workers needs no text.
 *
 * Round t of N workers becomes the batches t * N to t * N + N - 1; batches without samples, which
 * fill up rounds, are left out. Rows keep their numbers. Shared inside index/.
 */
#ifndef DRPS_INDEX_RANKS_COLLECT_H
#define DRPS_INDEX_RANKS_COLLECT_H

#include <stddef.h>
#include <stdint.h>

#include "index/plan/drps_plan.h"

struct collect_job {
    const struct drps_io *io;
    const struct drps_plan *plan; /* the whole, of one worker or several */
    const char *to;               /* folder that gets data.rec, rows.rec and names.rec */
    int unmarked;                 /* batches lose their strata and lanes */
    uint64_t memory_bytes;
};

/*
 * Write the three files; *batches_out and *eval_batches_out of them. Every record is checked;
 * DRPS_E_CORRUPT, DRPS_E_NOT_FOUND: the plan is damaged, or the part of a rank is not there.
 * DRPS_E_MEMORY_BUDGET: three buffers of 64 KiB for each worker do not fit a half of the memory.
 */
DRPS_MUST_CHECK
int drps_collect_batches(const struct collect_job *job, uint64_t *batches_out,
                         uint64_t *eval_batches_out, struct drps_err *err);

/* Block b has the rows first_out[b] to first_out[b + 1] - 1 [blocks + 1]; free() it, also after a
 * failure. Where two ranks' ranges meet, blocks are cut. */
DRPS_MUST_CHECK
int drps_collect_blocks(const struct drps_plan *plan, uint32_t **first_out, uint64_t *blocks_out,
                        struct drps_err *err);

#endif
