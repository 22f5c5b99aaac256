/*
 * The partitions that place units: blocks, and the rows that are used most one by one
 * (partition/drps_partition.h). Private to index/ranks/.
 */
#ifndef DRPS_INDEX_RANKS_UNITS_H
#define DRPS_INDEX_RANKS_UNITS_H

#include "index/ranks/drps_placement.h"

/* Returns the most bytes that placing units takes, beside what the new numbers do. */
uint64_t drps_units_bytes(const struct placement_job *job, const struct drps_plan_info *info);

/*
 * Number rows by the servers of their units: of a server, hot rows first, then what is left of
 * blocks. Sets
 *   new_id  [info->rows] the new number of each row
 *   block   [info->rows] for each new row a number that differs where blocks differ, and from that
 *           of hot rows; of pages, the same for all that are not hot
 *   out->first
 */
DRPS_MUST_CHECK
int drps_units_number(const struct placement_job *job, const struct drps_plan_info *info,
                      const uint32_t *block_first, uint32_t *new_id, uint32_t *block,
                      struct owners *out, struct drps_err *err);

#endif
