/*
 * Do the windows of a plan and its slots follow from its row lists, do the rounds of a rank fit its
 * batches and row lists, and do lanes share no row? Private to index/plan/.
 */
#ifndef DRPS_INDEX_PLAN_VERIFY_H
#define DRPS_INDEX_PLAN_VERIFY_H

#include "base/drps_err.h"
#include "base/drps_io.h"
#include "index/plan/drps_plan.h"

/*
 * Check dir/windows.rec and dir/slots.rec against dir/rows.rec and the counts of info.
 * DRPS_E_CORRUPT names the file and the record. Memory: buffers, 12 bytes a row of the largest
 * window, and 8 bytes a row, at most 64 MiB.
 */
DRPS_MUST_CHECK
int drps_verify_windows(const struct drps_io *io, const char *dir,
                        const struct drps_plan_info *info, struct drps_err *err);

/*
 * Check dir/shares.rec and dir/positions.rec of a rank against dir/data.rec and dir/rows.rec.
 */
DRPS_MUST_CHECK
int drps_verify_rounds(const struct drps_io *io, const char *dir, const struct drps_plan_info *info,
                       struct drps_err *err);

/*
 * Check the strata and lanes of dir/data.rec against dir/rows.rec: batches of one stratum and
 * different lanes share no row but the intercept's. Memory: buffers, and 8 bytes a row, at most 64
 * MiB.
 */
DRPS_MUST_CHECK
int drps_verify_lanes(const struct drps_io *io, const char *dir, const struct drps_plan_info *info,
                      struct drps_err *err);

#endif
