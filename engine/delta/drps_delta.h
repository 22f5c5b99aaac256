/*
 * What has changed from one model to another: a text of the rows whose parameters differ, and of
 * those that are new, to bring up to date a copy of the model that lies elsewhere.
 *
 *     # drps-delta 1
 *     # model NEW content 0123456789abcdef rows 8980
 *     # base OLD content fedcba9876543210 rows 5896
 *     # dim 9
 *     17<TAB>0.25<TAB>-0.125 ...
 *     # end: changed 4000, new 3084
 *
 * A line a row, in the order of the dictionary's keys: the name, then dim numbers with all digits
 * that a float has. A name is the feature's number, or "field=text", in which control characters
 * and backslashes are \xHH. The intercept is called (intercept), and comes first. The last line
 * says that nothing is missing. Rows of OLD that NEW does not have are not told. Shared inside
 * engine/.
 */
#ifndef DRPS_ENGINE_DELTA_H
#define DRPS_ENGINE_DELTA_H

#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"
#include "index/plan/drps_plan.h"

struct drps_delta_options {
    const struct drps_io *io;
    const char *from, *model; /* folders of two models */
    const char *plan;         /* the folder of the plan of `model` */
    const char *path;         /* of the file to write; "-": standard output */
    int replace;              /* a file of this name */
    uint64_t memory_bytes;    /* of the whole process; 0: half of what it may use, at most 1 GiB */
    uint64_t same_rows;       /* rows that have the same numbers in both; drps_delta_check() sets it
                               */
};

struct drps_delta {
    uint64_t changed, fresh; /* rows that differ, and that `from` does not have */
    uint64_t bytes;          /* of the file */
};

/* Write it. Both models are read once, in order, and the dictionary as often as names do not fit
 * the memory. DRPS_E_CORRUPT; DRPS_E_MEMORY_BUDGET. On failure there is no file. */
DRPS_MUST_CHECK
int drps_delta_write(const struct drps_delta_options *o, struct drps_delta *out,
                     struct drps_err *err);

/* Returns 1 where a file of this name exists and begins as a delta does, so that a delta may
 * replace it. */
int drps_delta_is_one(const struct drps_io *io, const char *path);

/* Before training: find o->same_rows, and refuse early what drps_delta_write() would refuse, as far
 * as it is known. `plan` is the whole plan of the model to be trained. DRPS_E_CONFIG: `from` is no
 * model of this plan or of one that it goes on from, or the path cannot be used. -EEXIST. */
DRPS_MUST_CHECK
int drps_delta_check(struct drps_delta_options *o, const struct drps_plan_info *plan,
                     struct drps_err *err);

#endif
