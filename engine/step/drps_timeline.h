/*
 * The known future for a block store: the plan's uses.rec, repeated for every epoch. Private to
 * engine/.
 */
#ifndef DRPS_ENGINE_STEP_TIMELINE_H
#define DRPS_ENGINE_STEP_TIMELINE_H

#include "index/plan/drps_plan.h"
#include "storage/drps_store.h"

struct drps_uses; /* opaque: the open file and its stream */

/* Open the plan's uses.rec. The plan is borrowed. */
DRPS_MUST_CHECK
int drps_uses_open(const struct drps_plan *plan, struct drps_uses **uses_out, struct drps_err *err);
void drps_uses_close(struct drps_uses *uses); /* NULL-safe; after the store that reads from it */

uint64_t drps_uses_memory(const struct drps_uses *uses, uint64_t buffer_bytes);

/* Begin to read ahead, for so many epochs, of which the first one begins with its step `first`:
 * that is step 0 of the timeline. *timeline_out borrows `uses`. -EINVAL: an epoch has no such step.
 */
DRPS_MUST_CHECK
int drps_uses_start(struct drps_uses *uses, uint64_t first, uint64_t epochs, uint64_t buffer_bytes,
                    struct drps_timeline *timeline_out, struct drps_err *err);

#endif
