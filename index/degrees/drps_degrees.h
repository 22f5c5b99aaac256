/*
 * How sparse a plan's training samples are: how many samples have each feature, and how many
 * features each sample has. These are the degrees of the two sides of the graph that has an edge
 * where a sample has a feature (Duan and Wu, "Accelerating distributed machine learning with model
 * compression and graph partition", Fig. 2).
 *
 * Costs: data.rec and rows.rec are read once. Memory: 4 bytes a row, a batch, and 2 MiB.
 */
#ifndef DRPS_INDEX_DEGREES_DEGREES_H
#define DRPS_INDEX_DEGREES_DEGREES_H

#include "index/plan/drps_plan.h"

/* Ranges of degrees: [0] is 0, [i] is 2^(i-1) .. 2^i - 1. */
enum { DRPS_DEGREE_RANGES = 34 };

/* The degrees of one side of the graph: of the features, or of the samples. */
struct drps_degree_counts {
    uint64_t n, most;
    uint64_t median, p90, p99; /* exact below DRPS_DEGREES_EXACT, else the lower end of a range */
    uint64_t in_range[DRPS_DEGREE_RANGES];
};
enum { DRPS_DEGREES_EXACT = 1 << 17 };

struct drps_degrees {
    uint64_t edges; /* entries of training samples */
    struct drps_degree_counts features, samples;
};

/* DRPS_E_CONFIG: the plan is dealt to several workers; DRPS_E_CORRUPT, -ENOMEM. Rows of samples are
 * no features, nor is the intercept. */
DRPS_MUST_CHECK
int drps_degrees_count(const struct drps_plan *plan, struct drps_degrees *out,
                       struct drps_err *err);

/* The first degree of a range. */
static inline uint64_t drps_degree_range_first(unsigned range)
{
    return range ? UINT64_C(1) << (range - 1) : 0;
}

#endif
