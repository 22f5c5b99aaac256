/*
 * How often each worker's training batches use each row, in a scratch file that is walked row by
 * row (a struct drps_row_stream). Private to index/ranks/.
 *
 * Rows are cut into slices. Workers are counted one after another, so that counting takes one
 * number a row; a record has the rows of one slice that one worker uses, and how often. Walking
 * holds one slice.
 */
#ifndef DRPS_INDEX_RANKS_ROW_USES_H
#define DRPS_INDEX_RANKS_ROW_USES_H

#include "index/plan/drps_steps.h"
#include "index/swap/drps_swap.h"
#include "partition/drps_homes.h"

struct row_uses_job {
    const struct drps_io *io;
    const char *dir;  /* of rows.rec, and of the scratch file */
    uint64_t batches; /* those of training: batch k is worker k mod `workers`'s */
    uint64_t records; /* of rows.rec */
    uint32_t rows, workers;
    uint32_t first_machine;   /* that of worker 0: touches name machines */
    uint64_t memory_bytes;    /* for a slice; counting takes 4 bytes a row beside it */
    struct swap_ranks *ranks; /* each counts its own batches, which are all that rows.rec has, and
                                 tells the others; the least memory_bytes counts. NULL: alone */
};

struct row_uses; /* opaque; own, drps_row_uses_close() it */

/* Count. The job is borrowed. DRPS_E_CORRUPT, -ENOMEM and errors of files;
 * of several ranks DRPS_E_PROTO: one has sent what cannot be. */
DRPS_MUST_CHECK
int drps_row_uses_open(const struct row_uses_job *job, struct row_uses **out, struct drps_err *err);
void drps_row_uses_close(struct row_uses *u);

/* Visit the rows that are used, in order: `walk` of a struct drps_row_stream; ctx is the struct
 * row_uses. */
DRPS_MUST_CHECK
int drps_row_uses_walk(void *ctx, drps_row_visit visit, void *visit_ctx, struct drps_err *err);

#endif
