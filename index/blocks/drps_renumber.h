/*
 * Giving rows new numbers after batches were made: placed ids follow the block builder's order.
 * Shared inside index/.
 */
#ifndef DRPS_INDEX_BLOCKS_RENUMBER_H
#define DRPS_INDEX_BLOCKS_RENUMBER_H

#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"
#include "index/plan/drps_plan.h"

/*
 * Copy data.rec, rows.rec and names.rec from `from` to `to`, row r becoming new_id[r] (a
 * permutation of the plan's rows). Samples keep their order, a sample's entries that of their rows,
 * batches their rows; only how rows are numbered changes. Memory: some MiB and five times the
 * largest batch; two threads share the batches where a second one takes at most 16 MiB more.
 */
DRPS_MUST_CHECK
int drps_renumber_rows(const struct drps_io *io, const char *from, const char *to,
                       const struct drps_plan_info *info, const uint32_t *new_id,
                       struct drps_err *err);

/* The same of files that hold so many batches; `names` 0: there is no names.rec. */
DRPS_MUST_CHECK
int drps_renumber_some(const struct drps_io *io, const char *from, const char *to,
                       const struct drps_plan_info *info, uint64_t steps, int names,
                       const uint32_t *new_id, struct drps_err *err);

#endif
