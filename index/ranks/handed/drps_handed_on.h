/*
 * Which rows are handed on (index/plan/drps_handed.h), of a plan for several workers. A row is lent
 * for a run of uses, in rounds of an epoch's training, each by one worker alone and not that of its
 * own server. Lending, handing on and returning it cost its parameters and the optimizer's state; a
 * use of a row that is not lent costs its parameters twice. Of all ways to lend a row in
 * an epoch the one that moves least is taken. Private to index/.
 */
#ifndef DRPS_INDEX_RANKS_HANDED_ON_H
#define DRPS_INDEX_RANKS_HANDED_ON_H

#include "index/ranks/drps_split.h"

struct handing; /* opaque */

struct handing_job {
    const struct split_job *split;
    const char *scratch; /* folder of files that are gone when it is freed */
    uint64_t most;       /* rows that a worker keeps from round to round; UINT64_MAX: all */
    uint32_t states;     /* floats of the optimizer's state for each parameter */
};

/*
 * Decide for all rows. The job is borrowed until handing_free(), which takes NULL. Memory: 13 bytes
 * a row of the plan; with a bound 21 more, and a bit for each row of each batch.
 * DRPS_E_MEMORY_BUDGET.
 */
DRPS_MUST_CHECK
int handing_find(const struct handing_job *job, struct handing **handing_out, struct drps_err *err);
void handing_free(struct handing *handing);

/* Write handed.rec and lent.rec of one rank to the folder `to`; *out is what they say. */
DRPS_MUST_CHECK
int handing_write(struct handing *handing, uint32_t rank, const char *to,
                  struct drps_plan_handed *out, struct drps_err *err);

#endif
