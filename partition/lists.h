/* For every machine, the units that its data touches, cheapest first. Private to partition/. */
#ifndef DRPS_PARTITION_LISTS_H
#define DRPS_PARTITION_LISTS_H

#include "partition/order.h"
#include "partition/problem.h"

struct machine_lists {
    size_t *starts;      /* own [W + 1] */
    struct keyed *units; /* own [T]: of machine m from starts[m], by rising key */
    size_t *next;        /* own [W]: the first unit of each machine that may be unassigned */
};

/* The cost of unit u on a machine that touches it `count` times. */
typedef double (*unit_cost)(const struct problem *p, size_t u, uint32_t count);

/* Equal costs stay in the order of units. Returns 0 or -ENOMEM; drps_machine_lists_free() either
 * way. */
int drps_machine_lists_init(struct machine_lists *l, const struct problem *p, unit_cost cost);
void drps_machine_lists_free(struct machine_lists *l);

/* Returns the cheapest unit of m's list whose owner is still `nobody`; NULL: none is left. */
static inline const struct keyed *machine_lists_next(struct machine_lists *l, uint32_t m,
                                                     const uint32_t *owner, uint32_t nobody)
{
    while (l->next[m] < l->starts[m + 1] && owner[l->units[l->next[m]].item] != nobody)
        l->next[m]++;
    return l->next[m] < l->starts[m + 1] ? &l->units[l->next[m]] : NULL;
}

#endif
