/*
 * DRPS, Algorithms 2 and 3: a matrix of each unit's cost on each machine (disk and network);
 * repeatedly the machine with the least cost so far takes the unassigned unit that is cheapest
 * there.
 *
 * A unit's cost on a machine is its I/O and what it serves to others: io + net * (a_p - a_pi).
 * Where a machine does not touch a unit that is the same on every machine, so that one sorted list
 * of all units for "untouched", and a sorted list a machine of those it touches, stand for the
 * matrix. The next unit of a machine is the cheaper of the two lists' first unassigned ones.
 */
#include "partition/lists.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

static double matrix_cost(const struct problem *p, size_t u, uint32_t count)
{
    return p->units->io_s[u] + p->units->row_net_s * (double)(p->total[u] - count);
}

/* All units by rising cost where untouched; NULL: no memory. */
static struct keyed *untouched_list(const struct problem *p)
{
    size_t n = p->units->n;
    struct keyed *all = drps_array_new(n, 2 * sizeof(*all)); /* upper half: scratch */
    for (size_t u = 0; all && u < n; u++)
        all[u] = (struct keyed){key_of(matrix_cost(p, u, 0)), (uint32_t)u};
    if (all) drps_keyed_sort(all, all + n, n);
    return all;
}

static void assign(const struct problem *p, struct machine_lists *touched,
                   const struct keyed *untouched, double *cost, uint32_t *owner)
{
    const struct drps_units *units = p->units;
    uint32_t machines = units->machines;
    for (size_t u = 0; u < units->n; u++)
        owner[u] = machines; /* not yet assigned */
    for (size_t done = 0, first = 0; done < units->n; done++) {
        uint32_t m = 0;
        for (uint32_t i = 1; i < machines; i++)
            if (cost[i] < cost[m]) m = i;
        while (owner[untouched[first].item] != machines)
            first++;
        const struct keyed *mine = machine_lists_next(touched, m, owner, machines);
        if (!mine || mine->key > untouched[first].key) mine = &untouched[first];
        owner[mine->item] = m;
        cost[m] += matrix_cost(p, mine->item, drps_touch_count(units, mine->item, m));
    }
}

int drps_place_greedy(const struct problem *p, uint32_t *owner)
{
    struct machine_lists touched;
    double *cost = calloc(p->units->machines, sizeof(*cost));
    struct keyed *untouched = untouched_list(p);
    int rc = drps_machine_lists_init(&touched, p, matrix_cost);
    if (!cost || !untouched) rc = -ENOMEM;
    if (rc == 0) assign(p, &touched, untouched, cost, owner);
    drps_machine_lists_free(&touched);
    free(untouched);
    free(cost);
    return rc;
}
