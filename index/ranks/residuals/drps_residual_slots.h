/*
 * Residual slots of a rank's worker (index/plan/drps_residuals.h): rows of other servers that its
 * batches use twice or more in an epoch have one. Where the slots suffice, a row's slot is its
 * number among these rows. Else slots are reassigned: the row that is used again latest gives its
 * slot up. Private to index/.
 */
#ifndef DRPS_INDEX_RANKS_RESIDUALS_RESIDUAL_SLOTS_H
#define DRPS_INDEX_RANKS_RESIDUALS_RESIDUAL_SLOTS_H

#include "index/ranks/drps_split.h"

/*
 * Write residuals.rec of one rank to the folder `to`, for at most `most` slots, and the records of
 * training to `all` (NULL: nowhere) as well; *slots_out is how many slots it needs, at least 1.
 * Memory: 8 bytes a row of the plan, and where the slots do not suffice 20 more, and a bit for each
 * row of each of the worker's batches. DRPS_E_MEMORY_BUDGET.
 */
DRPS_MUST_CHECK
int drps_residual_slots_make(const struct split_job *job, uint32_t rank, uint64_t most,
                             const char *to, struct drps_recwriter *all, uint64_t *slots_out,
                             struct drps_err *err);

#endif
