/*
 * Residual slots of a rank's worker (index/plan/drps_residuals.h): rows of other servers that its
 * batches use twice or more in an epoch have one. Where the slots suffice, a row's slot is its
 * number among these rows. Else slots are reassigned: the row that is used again latest gives its
 * slot up. Where each row is to have a slot of its own, rows that are used once have one, too.
 * Private to index/.
 */
#ifndef DRPS_INDEX_RANKS_RESIDUALS_RESIDUAL_SLOTS_H
#define DRPS_INDEX_RANKS_RESIDUALS_RESIDUAL_SLOTS_H

#include "index/ranks/drps_split.h"

/* How many slots there may be. */
struct drps_residual_wish {
    uint64_t most;
    int own; /* 1: each row that is used has one of its own; `most` is UINT64_MAX */
};

/*
 * Write residuals.rec of one rank to the folder `to`, for the slots of `wish`, and the records of
 * training to `all` (NULL: nowhere) as well; *slots_out is how many slots it needs, at least 1.
 * Memory: 8 bytes a row of the plan, and where the slots do not suffice 20 more, and a bit for each
 * row of each of the worker's batches. DRPS_E_MEMORY_BUDGET.
 */
DRPS_MUST_CHECK
int drps_residual_slots_make(const struct split_job *job, uint32_t rank,
                             const struct drps_residual_wish *wish, const char *to,
                             struct drps_recwriter *all, uint64_t *slots_out, struct drps_err *err);

#endif
