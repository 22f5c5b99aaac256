/* What machines need of units: the edges of their samples, added up. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "partition/drps_partition.h"
#include "partition/dynamic/drps_dynamic.h"

static int check(const struct drps_correlation *c, const uint32_t *owner, uint32_t machines,
                 struct drps_err *err)
{
    if (!machines || machines > DRPS_MACHINES_MAX)
        return drps_err_set(err, DRPS_E_CONFIG, "demands of %" PRIu32 " machines: 1 to %d",
                            machines, DRPS_MACHINES_MAX);
    for (size_t d = 0; d < c->n; d++)
        if (owner[d] >= machines)
            return drps_err_set(err, -EINVAL,
                                "sample %zu is on machine %" PRIu32 ", there are %" PRIu32, d,
                                owner[d], machines);
    return 0;
}

/* Samples by rising machine: counting sort. */
static void sort_samples(const uint32_t *owner, size_t n, uint32_t machines, size_t *next,
                         size_t *order)
{
    for (uint32_t m = 0; m <= machines; m++)
        next[m] = 0;
    for (size_t d = 0; d < n; d++)
        next[owner[d] + 1]++;
    for (uint32_t m = 0; m < machines; m++)
        next[m + 1] += next[m];
    for (size_t d = 0; d < n; d++)
        order[next[owner[d]]++] = d;
}

struct adding {
    const struct drps_correlation *c;
    const uint32_t *owner, *size;
    const size_t *order; /* [N] samples by rising machine */
    uint32_t *last;      /* [U] the machine last seen, and 1 */
    int once;
};

static void forget(const struct adding *a)
{
    for (uint32_t u = 0; u < a->c->units; u++)
        a->last[u] = 0;
}

/* How many machines need each unit, into starts[u + 1]. */
static void count_machines(const struct adding *a, size_t *starts)
{
    forget(a);
    for (uint32_t u = 0; u <= a->c->units; u++)
        starts[u] = 0;
    for (size_t i = 0; i < a->c->n; i++) {
        const size_t d = a->order[i];
        for (size_t e = a->c->starts[d]; e < a->c->starts[d + 1]; e++) {
            const uint32_t u = a->c->unit[e];
            if (!a->size[u] || a->last[u] == a->owner[d] + 1) continue;
            a->last[u] = a->owner[d] + 1;
            starts[u + 1]++;
        }
    }
    for (uint32_t u = 0; u < a->c->units; u++)
        starts[u + 1] += starts[u];
}

/* Fills in the demands; next [U] is where a unit's next machine goes. With `once` an amount is the
 * chance that no sample needs the unit, until all are seen. */
static void add_edges(const struct adding *a, const size_t *starts, size_t *next,
                      struct drps_demand *demand)
{
    forget(a);
    for (uint32_t u = 0; u < a->c->units; u++)
        next[u] = starts[u];
    for (size_t i = 0; i < a->c->n; i++) {
        const size_t d = a->order[i];
        for (size_t e = a->c->starts[d]; e < a->c->starts[d + 1]; e++) {
            const uint32_t u = a->c->unit[e];
            if (!a->size[u]) continue;
            if (a->last[u] != a->owner[d] + 1)
                demand[next[u]++] = (struct drps_demand){a->owner[d], a->once ? 1 : 0};
            a->last[u] = a->owner[d] + 1;
            double *amount = &demand[next[u] - 1].amount;
            *amount = a->once ? *amount * (1 - a->c->weight[e]) : *amount + a->c->weight[e];
        }
    }
    for (uint32_t u = 0; u < a->c->units; u++)
        for (size_t t = starts[u]; t < starts[u + 1]; t++) {
            const double of_one = a->once ? 1 - demand[t].amount : demand[t].amount;
            demand[t].amount = of_one * a->size[u];
        }
}

int drps_demands_new(const struct drps_correlation *c, const uint32_t *owner, const uint32_t *size,
                     uint32_t machines, int once, struct drps_demands *out, struct drps_err *err)
{
    *out = (struct drps_demands){.n = c->units, .machines = machines, .size = size};
    int rc = check(c, owner, machines, err);
    if (rc < 0) return rc;
    size_t *order = drps_array_new(c->n, sizeof(*order));
    size_t *of_machine = drps_array_new((size_t)machines + 1, sizeof(*of_machine));
    size_t *next = drps_array_new(c->units, sizeof(*next));
    uint32_t *last = drps_array_new(c->units, sizeof(*last));
    const struct adding a = {c, owner, size, order, last, once};
    out->starts = drps_array_new((size_t)c->units + 1, sizeof(*out->starts));
    rc = order && of_machine && next && last && out->starts ? 0 : -ENOMEM;
    if (rc == 0) {
        sort_samples(owner, c->n, machines, of_machine, order);
        count_machines(&a, out->starts);
        out->demand = drps_array_new(out->starts[c->units], sizeof(*out->demand));
        if (!out->demand) rc = -ENOMEM;
    }
    if (rc == 0)
        add_edges(&a, out->starts, next, out->demand);
    else
        drps_err_set(err, rc, "demands of %" PRIu32 " units", c->units);
    free(order);
    free(of_machine);
    free(next);
    free(last);
    if (rc < 0) drps_demands_destroy(out);
    return rc;
}

void drps_demands_destroy(struct drps_demands *d)
{
    free(d->starts);
    free(d->demand);
    *d = (struct drps_demands){0};
}
