/* What the algorithms that place rows share. Private to partition/. */
#ifndef DRPS_PARTITION_PROBLEM_H
#define DRPS_PARTITION_PROBLEM_H

#include "partition/drps_partition.h"

/* Units with the sums that every algorithm needs. */
struct problem {
    const struct drps_units *units; /* borrowed */
    uint64_t *total;                /* own [U]: a_p */
    uint64_t seed;
    int by_sets;
};

/* An algorithm: fills owner [U]. Returns 0 or -ENOMEM. */
int drps_place_greedy(const struct problem *p, uint32_t *owner);
int drps_place_dppa(const struct problem *p, uint32_t *owner);

/* Returns how many times `machine` touches unit u. */
uint32_t drps_touch_count(const struct drps_units *units, size_t u, uint32_t machine);

#endif
