/* Units by rising cost, for each machine (lists.h). */
#include "partition/lists.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

void drps_machine_lists_free(struct machine_lists *l)
{
    free(l->starts);
    free(l->units);
    free(l->next);
}

int drps_machine_lists_init(struct machine_lists *l, const struct problem *p, unit_cost cost)
{
    const struct drps_units *units = p->units;
    uint32_t machines = units->machines;
    struct keyed *spare = drps_array_new(units->n, sizeof(*spare));
    *l = (struct machine_lists){.starts = calloc((size_t)machines + 1, sizeof(*l->starts)),
                                .units = drps_array_new(units->starts[units->n], sizeof(*l->units)),
                                .next = calloc(machines, sizeof(*l->next))};
    int rc = spare && l->starts && l->units && l->next ? 0 : -ENOMEM;
    for (size_t t = 0; rc == 0 && t < units->starts[units->n]; t++)
        l->starts[units->touches[t].machine + 1]++;
    for (uint32_t m = 0; rc == 0 && m < machines; m++) {
        l->starts[m + 1] += l->starts[m];
        l->next[m] = l->starts[m];
    }
    for (size_t u = 0; rc == 0 && u < units->n; u++) {
        for (size_t t = units->starts[u]; t < units->starts[u + 1]; t++) {
            const struct drps_touch *touch = &units->touches[t];
            l->units[l->next[touch->machine]++] =
                (struct keyed){key_of(cost(p, u, touch->count)), (uint32_t)u};
        }
    }
    for (uint32_t m = 0; rc == 0 && m < machines; m++) {
        drps_keyed_sort(l->units + l->starts[m], spare, l->starts[m + 1] - l->starts[m]);
        l->next[m] = l->starts[m];
    }
    free(spare);
    return rc;
}
