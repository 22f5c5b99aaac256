/* The numbers of plan.json against each other. Private to index/plan/manifest/. */
#ifndef DRPS_INDEX_PLAN_MANIFEST_CHECK_H
#define DRPS_INDEX_PLAN_MANIFEST_CHECK_H

#include "base/drps_err.h"
#include "index/plan/drps_plan.h"

/*
 * Bound every number of a plan, so that whoever sizes memory by them may multiply them: a count of
 * samples, entries or uses of rows stays below 2^44, one of rows below 2^32, a row below 2^20
 * bytes. `path` is that of plan.json, for the message. DRPS_E_CORRUPT names the number.
 */
DRPS_MUST_CHECK
int drps_plan_check_numbers(const struct drps_plan_info *info, const char *path,
                            struct drps_err *err);

/* Entries that a sample may have: their rows are distinct, but where entries of a row may have
 * several fields. */
uint64_t drps_plan_entries_most(const struct drps_plan_info *i, uint64_t rows);

#endif
