/*
 * Published slots of a rank's server (index/plan/codec/drps_published.h), found from the residual
 * slots of all workers. Private to index/.
 */
#ifndef DRPS_INDEX_RANKS_PUBLISHED_PUBLISHED_SLOTS_H
#define DRPS_INDEX_RANKS_PUBLISHED_PUBLISHED_SLOTS_H

#include "index/plan/drps_steps.h"
#include "index/ranks/drps_split.h"

struct published_job {
    const struct split_job *split;
    struct steps_scratch *records; /* of residuals.rec, those of training: of the first worker, then
                                      of the others; turned */
    const uint64_t *slots;         /* [ranks] residual slots of each rank's worker */
    uint32_t always;               /* so many rows from 0 on are sent in each round */
};

/*
 * Write published.rec of one rank, whose rows.rec is there, to the folder `to`; *slots_out is how
 * many slots it needs, at least 1. Memory: 6 bytes a row of the rank, and a bit a residual slot of
 * all workers. DRPS_E_MEMORY_BUDGET.
 */
DRPS_MUST_CHECK
int drps_published_slots_make(const struct published_job *job, uint32_t rank, const char *to,
                              uint64_t *slots_out, struct drps_err *err);

#endif
