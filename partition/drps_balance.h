/*
 * Rounds balanced by entries: samples change places between the workers of a round, so that the
 * round keeps its samples and each worker its number of them. Source: "Reducing Redundant
 * Communication", section VI-A, where mini-batches are cut so that they have nearly as many
 * non-zeros; here only samples of one round move, so that the same is learned.
 */
#ifndef DRPS_PARTITION_BALANCE_H
#define DRPS_PARTITION_BALANCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

/* How many times its share of all entries the largest machine has; 1 where there are no entries. */
struct drps_largest {
    double before, after;
};

/*
 * Exchange samples, two at a time and as few as that takes, until the largest machine has at most
 * `most` times its share, or no two samples make it better.
 *
 * entries, owner  [n] of the round's samples: how many entries they have, and on which machine they
 *                 are, which is changed
 * share           [machines] of all entries: sums to 1; NULL: all alike
 * Returns 0 or -ENOMEM. Memory: 32 bytes a sample, and 8 a machine.
 */
DRPS_MUST_CHECK
int drps_round_balance(const uint32_t *entries, uint16_t *owner, size_t n, const double *share,
                       uint32_t machines, double most, struct drps_largest *largest_out,
                       struct drps_err *err);

#endif
