/*
 * The steps of one rank where rows circulate (drps_circulation.h): the batches of its lanes, and
 * between strata the steps that hand ranges over. Private to index/.
 *
 * A range of many rows is handed over in several steps, so that no step is much larger than a
 * batch.
 */
#ifndef DRPS_INDEX_RANKS_CIRCULATE_H
#define DRPS_INDEX_RANKS_CIRCULATE_H

#include "index/ranks/drps_circulation.h"

struct circulate_job {
    const struct drps_io *io;
    const char *from; /* folder of data.rec and rows.rec, all batches, numbered by range */
    const struct drps_plan_info *info; /* of all of it */
    const struct circulation *circulation;
    const uint32_t *range_first; /* [ranges + 1] of drps_lane_rows_make() */
    uint64_t memory_bytes;
};

/* Returns the rows of the largest step of any rank, the intercept included: of a batch, or of a
 * hand-over, which has as many as the largest batch, or 64 KiB of rows. */
uint64_t drps_circulate_most_rows(const struct circulate_job *job);

/* DRPS_E_CONFIG: a rank would have no rows. */
DRPS_MUST_CHECK
int drps_circulate_check(const struct circulate_job *job, struct drps_err *err);

/* Returns the first row of rank `rank`; of rank `workers` the number of rows. */
uint32_t drps_circulate_first_row(const struct circulate_job *job, uint32_t rank);

/*
 * Write data.rec and rows.rec of one rank to the folder `to`. Fill in, of `out`, the info of the
 * part: batches, eval_batches, rows, and what its `ranks` say of this rank. *plain_out is how many
 * rows rounds would move between ranks: those of this rank's batches, there and, in training, back.
 */
DRPS_MUST_CHECK
int drps_circulate_rank(const struct circulate_job *job, uint32_t rank, const char *to,
                        struct drps_plan_info *out, uint64_t *plain_out, struct drps_err *err);

#endif
