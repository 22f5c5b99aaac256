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

struct drps_delta_options {
    const struct drps_io *io;
    const char *from, *model; /* folders of two models */
    const char *path;         /* of the file to write; "-": standard output */
    int replace;              /* a file of this name */
    uint64_t memory_bytes;    /* at most, a few MiB at least */
};

struct drps_delta {
    uint64_t changed, fresh; /* rows that differ, and that `from` does not have */
    uint64_t bytes;          /* of the file */
};

/* Write it. Rows are read in the order of the dictionary, as many at a time as there is memory for;
 * each time both models' rows are gone through once. DRPS_E_CONFIG: the same feature has not the
 * same name in both, or they have other rows; DRPS_E_CORRUPT; DRPS_E_MEMORY_BUDGET. On failure
 * there is no file. */
DRPS_MUST_CHECK
int drps_delta_write(const struct drps_delta_options *o, struct drps_delta *out,
                     struct drps_err *err);

/* Refuse what drps_delta_write() would, as far as it can be known from `from` alone. DRPS_E_CONFIG:
 * it is no model, or the path is not good. */
DRPS_MUST_CHECK
int drps_delta_check(const struct drps_delta_options *o, struct drps_err *err);

#endif
