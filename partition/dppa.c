/*
 * The compression and partition paper, Algorithm 2: the machine with the least traffic takes, of
 * the rows that its own data touches, the one that raises its traffic least.
 *
 * Traffic is counted in rows moved, batch by batch (a_pi), which is what the network carries: a
 * machine begins with all that its worker touches, and unit p changes that by a_p - 2 a_pi. By sets
 * it is counted as the paper does, a unit once for the machine and once for all others: p takes one
 * off where nobody else touches it, and changes nothing otherwise. Both depend on the machine
 * alone, so that its units can be sorted once. A machine with nothing left of its own data drops
 * out; units that no data touches go to whoever holds fewest bytes. Disks are not considered.
 */
#include "partition/lists.h"

#include <errno.h>
#include <stdlib.h>

static double added_traffic(const struct problem *p, size_t u, uint32_t count)
{
    const int alone = p->units->starts[u + 1] - p->units->starts[u] == 1;
    if (p->by_sets) return alone ? -1 : 0;
    return (double)p->total[u] - 2 * (double)count;
}

/* The machine with the least traffic that has units of its own data left, and the cheapest of them;
 * NULL: none has. */
static const struct keyed *next_unit(struct machine_lists *l, uint32_t machines,
                                     const double *traffic, const uint32_t *owner, uint32_t *m_out)
{
    const struct keyed *unit = NULL;
    for (uint32_t m = 0; m < machines; m++) {
        const struct keyed *first = machine_lists_next(l, m, owner, machines);
        if (!first || (unit && traffic[m] >= traffic[*m_out])) continue;
        unit = first;
        *m_out = m;
    }
    return unit;
}

static void place_touched(const struct problem *p, struct machine_lists *l, double *traffic,
                          uint32_t *owner)
{
    const struct drps_units *units = p->units;
    const struct keyed *unit;
    uint32_t m = 0;
    for (size_t t = 0; t < units->starts[units->n]; t++)
        traffic[units->touches[t].machine] += p->by_sets ? 1 : units->touches[t].count;
    for (size_t u = 0; u < units->n; u++)
        owner[u] = units->machines; /* not yet placed */
    while ((unit = next_unit(l, units->machines, traffic, owner, &m))) {
        owner[unit->item] = m;
        traffic[m] += added_traffic(p, unit->item, drps_touch_count(units, unit->item, m));
    }
}

static void place_untouched(const struct drps_units *units, uint64_t *bytes, uint32_t *owner)
{
    for (size_t u = 0; u < units->n; u++)
        if (owner[u] < units->machines) bytes[owner[u]] += units->bytes[u];
    for (size_t u = 0; u < units->n; u++) {
        if (owner[u] < units->machines) continue;
        owner[u] = 0;
        for (uint32_t m = 1; m < units->machines; m++)
            if (bytes[m] < bytes[owner[u]]) owner[u] = m;
        bytes[owner[u]] += units->bytes[u];
    }
}

int drps_place_dppa(const struct problem *p, uint32_t *owner)
{
    struct machine_lists lists;
    double *traffic = calloc(p->units->machines, sizeof(*traffic));
    uint64_t *bytes = calloc(p->units->machines, sizeof(*bytes));
    int rc = drps_machine_lists_init(&lists, p, added_traffic);
    if (!traffic || !bytes) rc = -ENOMEM;
    if (rc == 0) {
        place_touched(p, &lists, traffic, owner);
        place_untouched(p->units, bytes, owner);
    }
    drps_machine_lists_free(&lists);
    free(traffic);
    free(bytes);
    return rc;
}
