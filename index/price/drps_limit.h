/*
 * The least time that an epoch could have taken, beside what it took. The disk moves what the epoch
 * moved at its pace, and arithmetic goes on beside it: the longer of the two is the limit.
 *
 * Arithmetic is taken as the time in which training waited neither for rows nor for the plan. That
 * is more than arithmetic alone takes where others have the processors, too, so that the limit
 * is then set too high. Row lists that a run has cut itself are left out where the plan is on
 * another disk: then it is some bytes a row too low.
 */
#ifndef DRPS_INDEX_PRICE_LIMIT_H
#define DRPS_INDEX_PRICE_LIMIT_H

#include <stdint.h>

#include "index/price/drps_speeds.h"
#include "storage/io/drps_pace.h"

/* What an epoch took, and moved. */
struct drps_epoch_spent {
    double seconds;
    double waited;         /* of these */
    uint64_t bytes, reads; /* both ways together; requests to read rows */
};

/* Means over epochs; all 0: there was none, or the disk was not measured. */
struct drps_epoch_limit {
    struct drps_disk_pace pace;
    int by_plan; /* 1: the plan has it, of the machine that made it; 0: measured before the run */
    uint64_t epochs;
    struct drps_epoch_seconds least; /* `epoch` is the longer of the two others */
    double measured;
};

/* Adds an epoch to the means. Does nothing where the pace is not known. */
void drps_limit_add(struct drps_epoch_limit *limit, const struct drps_epoch_spent *spent);

/* Returns the share of the limit's speed that was reached, 0 to 1; 0 where nothing is known. More
 * than 1 is not: then the disk was faster than it was measured to be. */
double drps_limit_reached(const struct drps_epoch_limit *limit);

/* A new json_t object: "compute", "disk", "epoch", "measured", "reached", "epochs",
 * "bytes_per_s", "request_seconds" and "by_plan"; NULL: no memory. */
void *drps_limit_to_json(const struct drps_epoch_limit *limit);

#endif
