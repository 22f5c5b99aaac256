/*
 * DPPA: data and parameter partition, as printed in the compression and partition paper
 * (Algorithms 1 and 2, sections 3.3 and 4.2). `drps_rows_place()` has Algorithm 2 under the name
 * dppa; here are Algorithm 1, the other order (parameters first) and traffic as the paper counts
 * it.
 *
 * Letters: N samples, R rows (the paper's parameters), W machines (its k), D the samples not yet
 * assigned, D_i and P_i the samples and rows of machine i, delta(D_i) the rows that D_i touches,
 * f(D_i) how many these are.
 */
#ifndef DRPS_PARTITION_DPPA_H
#define DRPS_PARTITION_DPPA_H

#include "partition/drps_partition.h"

#define DRPS_DPPA_ADAPTIVE UINT32_MAX
#define DRPS_DPPA_PRINTED UINT32_MAX

struct drps_dppa_options {
    uint32_t machines; /* W, 1 .. DRPS_MACHINES_MAX */
    /* At most so many samples of S are taken together; 0: 1. DRPS_DPPA_ADAPTIVE: the most for which
     * S has no more such subsets than there are rows (1 at least), so that this takes no more time
     * than placing the rows, N R^2 (Theorem 4.3). The paper adapts alpha and gives no formula. */
    uint32_t alpha;
    /* |S|; 0: 32. DRPS_DPPA_PRINTED: each unassigned sample is in S with probability N / (W |D|),
     * and an S of more than 2 N / W is drawn again. */
    uint32_t sample;
    /* How many rows a sample is worth; 0: one more than the longest sample has, with which every
     * turn of the loop takes some. */
    double beta;
    int by_entries; /* which part is the smallest. 0: by samples, as printed; 1: by their features
                     */
    int by_sets;    /* rows first: how Algorithm 2 counts the samples (struct drps_rows_options) */
    uint64_t seed;
    /* After each turn: `placed` samples have a machine. NULL, or 0 to go on, or an error, which is
     * returned. */
    int (*turn)(void *ctx, uint64_t placed, struct drps_err *err);
    void *turn_ctx;
};

/* What was done. */
struct drps_dppa_report {
    uint32_t alpha; /* as used */
    double beta;
    uint64_t turns;
    uint64_t fruitless; /* turns of the loop that assigned nothing */
    uint64_t forced;    /* samples taken after 100 fruitless turns in a row, although they are not
                           worth what they bring: the paper's loop would go on for ever */
};

/*
 * Algorithm 1: repeatedly the smallest part D_i takes, of a random S of the unassigned samples, the
 * subset S' of at most alpha that minimises f(D_i + S') - beta |D_i + S'|, if that is below 0.
 * Every subset is looked at, but for those that cannot be better than the best one yet. Of equal
 * ones the first is taken, in the order of its samples' numbers.
 *
 * owner_out  [N] caller-owned
 * No machine gets more than the average and alpha samples (of weight 1, or their features).
 * Memory: W R / 8 bytes, 16 a sample and 4 a row.
 * Returns 0 or
 *   DRPS_E_CONFIG  numbers out of range, or more than a thousand million subsets a turn
 *   -EINVAL        a set that contradicts its comments
 *   -ENOMEM, or what turn() returned
 */
DRPS_MUST_CHECK
int drps_dppa_samples(const struct drps_sample_set *set, const struct drps_dppa_options *o,
                      uint32_t *owner_out, struct drps_dppa_report *report_out,
                      struct drps_err *err);

/*
 * Parameters first: Algorithm 1 places the rows (f: how many samples a part touches), then
 * Algorithm 2 the samples, each with the roles of the two exchanged: "the data vertex and the
 * parameter vertex in the correlation graph is symmetric". Nothing keeps the numbers of
 * samples even: by sets, one machine may get nearly all of them.
 *
 * row_owner_out [R], sample_owner_out [N] caller-owned
 * Returns as drps_dppa_samples().
 */
DRPS_MUST_CHECK
int drps_dppa_rows_first(const struct drps_sample_set *set, const struct drps_dppa_options *o,
                         uint32_t *row_owner_out, uint32_t *sample_owner_out,
                         struct drps_dppa_report *report_out, struct drps_err *err);

/* What a machine moves by sets (section 3.3): each row once, however often it is used. */
struct drps_set_traffic {
    uint64_t pulled; /* f(D_i, P \ P_i): rows of others that its samples touch */
    uint64_t served; /* f(D \ D_i, P_i): rows of its own that others' samples touch */
};

/*
 * Count the traffic of a placement of units that are one row each.
 *
 * owner     [units->n]
 * load_out  [units->machines] caller-owned
 * Returns the largest traffic of a machine: what Eq. (1) minimises.
 */
uint64_t drps_dppa_traffic(const struct drps_units *units, const uint32_t *owner,
                           struct drps_set_traffic *load_out);

#endif
