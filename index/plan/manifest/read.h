/* Reading plan.json, a part each. Private to index/plan/manifest/. */
#ifndef DRPS_INDEX_PLAN_MANIFEST_READ_H
#define DRPS_INDEX_PLAN_MANIFEST_READ_H

#include "index/plan/drps_plan.h"

/* Reads a number into a field of 32 or 64 bits. */
#define GET_NUMBER(field)                                                                          \
    _Generic((field), uint32_t : drps_manifest_get_u32, uint64_t : drps_manifest_get_count)

/* Fills plan->info and plan->fields from plan->json, and checks them. `path` is for messages. */
DRPS_MUST_CHECK
int drps_plan_read_info(struct drps_plan *plan, const char *path, struct drps_err *err);

/* Fills plan->info.ranks: of a plan for one worker too, once its batches are known. */
DRPS_MUST_CHECK
int drps_plan_read_ranks(struct drps_plan *plan, const char *path, struct drps_err *err);

#endif
