/*
 * The partition `auto`: every row gets a home of its own (partition/drps_homes.h), whatever block
 * it lies in. Private to index/ranks/.
 */
#ifndef DRPS_INDEX_RANKS_HOMES_H
#define DRPS_INDEX_RANKS_HOMES_H

#include "index/ranks/drps_placement.h"

/* Returns the bytes that finding homes takes, beside what the new numbers do. */
uint64_t drps_homes_bytes(const struct placement_job *job, const struct drps_plan_info *info);

/*
 * Number rows by their homes: a server's rows keep their order. Sets
 *   new_id  [info->rows] the new number of each row
 *   block   [info->rows] which block of block_first each new row was in; of pages, the same for all
 *   out->first
 */
DRPS_MUST_CHECK
int drps_homes_number(const struct placement_job *job, const struct drps_plan_info *info,
                      const uint32_t *block_first, uint32_t *new_id, uint32_t *block,
                      struct owners *out, struct drps_err *err);

#endif
