/*
 * Rows of a plan with lanes are numbered by range (drps_circulation.h): so what a rank has between
 * epochs is one run of numbers, whatever the number of ranks. Shared inside index/.
 */
#ifndef DRPS_INDEX_RANKS_LANE_ROWS_H
#define DRPS_INDEX_RANKS_LANE_ROWS_H

#include "index/ranks/drps_circulation.h"

struct lane_rows_job {
    const struct drps_io *io;
    const char *from; /* folder of data.rec, rows.rec and names.rec, batches marked with lanes */
    const char *to;   /* folder that gets them with the new numbers */
    const struct circulation *circulation;
    int pages;           /* blocks are pages: cut them anew where they are full */
    uint32_t block_rows; /* of a block at most, >= 1 */
    uint64_t memory_bytes;
};

/*
 * Renumber rows: the intercept stays row 0, then come range 0, range 1 ..., within a range in the
 * order of before. Range s has rows (*range_first_out)[s] to [s + 1] - 1, free() it, also after a
 * failure. Blocks end with their range: *block_first [info->blocks + 1] is replaced and stays the
 * caller's to free(), also after a failure. Sets info->blocks; the tables of users and items, whose
 * rows mix, become one, "rows". DRPS_E_CORRUPT: marks and rows do not fit. DRPS_E_MEMORY_BUDGET.
 */
DRPS_MUST_CHECK
int drps_lane_rows_make(const struct lane_rows_job *job, struct drps_plan_info *info,
                        uint32_t **block_first, uint32_t **range_first_out, struct drps_err *err);

#endif
