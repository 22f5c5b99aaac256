/* What the algorithms that place rows share. Private to partition/. */
#ifndef DRPS_PARTITION_PROBLEM_H
#define DRPS_PARTITION_PROBLEM_H

#include "partition/drps_partition.h"

/* Units with the sums that every algorithm needs. */
struct problem {
    const struct drps_units *units; /* borrowed */
    uint64_t *total;                /* own [U]: a_p */
    double *base_s;                 /* own [W]: the load of a machine that holds nothing */
    uint64_t bytes_max;             /* limit of `auto` */
    uint64_t seed;
};

/* An algorithm: fills owner [U]. Returns 0 or -ENOMEM. */
int drps_place_greedy(const struct problem *p, uint32_t *owner);
int drps_place_dppa(const struct problem *p, uint32_t *owner);
int drps_place_auto(const struct problem *p, uint32_t *owner);

/* What unit u adds to the load of a machine that touches it `count` times: its I/O and what it
 * serves to others, less what the machine need no longer pull. May be negative. */
static inline double held_cost(const struct problem *p, size_t u, uint32_t count)
{
    return p->units->io_s[u] + p->units->row_net_s * ((double)p->total[u] - 2 * (double)count);
}

/* Returns how many times `machine` touches unit u. */
uint32_t drps_touch_count(const struct drps_units *units, size_t u, uint32_t machine);

#endif
