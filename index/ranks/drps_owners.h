/*
 * Which server holds which rows of a plan for several workers. Shared inside index/.
 *
 * Server r owns the placed ids first[r] to first[r + 1] - 1: routing is a range check.
 * drps_owners_by_range() and drps_owners_by_counts() cut the ids as they are; drps_placement_make()
 * renumbers the rows first.
 */
#ifndef DRPS_INDEX_RANKS_OWNERS_H
#define DRPS_INDEX_RANKS_OWNERS_H

#include <stdint.h>

#include "index/plan/drps_plan.h"

struct owners {
    uint32_t servers;
    uint32_t first[DRPS_PLAN_WORKERS_MAX + 1]; /* strictly increasing; [0] = 0, [servers] = rows */
};

struct swap_ranks; /* index/swap/drps_swap.h */

struct owners_job {
    const struct drps_io *io;
    const char *dir; /* folder of rows.rec, `steps` lists of placed ids */
    uint64_t steps;
    uint64_t training; /* of the steps, those that come first: counts alone are of these */
    const uint32_t *block_first; /* [blocks + 1] */
    size_t blocks;
    const double *share; /* of each server, 1 in all; NULL: all alike */
    uint64_t memory_bytes;
    struct swap_ranks *ranks; /* each has the lists of its own batches; NULL: alone */
};

/*
 * Ranges of equal weight, where a row's share of all rows (memory, disk) and its share of all
 * accesses (AccNum: network, optimizer) count alike; accesses are counted by block and spread
 * evenly over its rows. DRPS_E_CONFIG: fewer rows than servers.
 */
DRPS_MUST_CHECK
int drps_owners_by_range(const struct owners_job *job, uint32_t servers, struct owners *out,
                         struct drps_err *err);

/*
 * Ranges of equal counts of accesses alone, row by row: how many of the steps use each. However
 * many rows a server then holds. Source: "Reducing Redundant Communication", section VI-A. Returns
 * as drps_owners_by_range(), or DRPS_E_MEMORY_BUDGET: it takes 4 bytes a row.
 */
DRPS_MUST_CHECK
int drps_owners_by_counts(const struct owners_job *job, uint32_t servers, struct owners *out,
                          struct drps_err *err);

/* The ends, [0] and [servers]; what lies between is to be filled in. DRPS_E_CONFIG: fewer rows than
 * servers. */
DRPS_MUST_CHECK
int drps_owners_begin(uint32_t rows, uint32_t servers, struct owners *out, struct drps_err *err);

/* Move boundaries (not decreasing) apart, so that everyone has a row at least. */
void drps_owners_separate(struct owners *o);

#endif
