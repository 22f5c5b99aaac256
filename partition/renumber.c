/* Placement as a renumbering: units sorted by (machine, cold, old ids), by counting. */
#include "partition/drps_partition.h"

#include <errno.h>
#include <stdlib.h>

int drps_rows_renumber(const struct drps_units *units, const uint32_t *owner,
                       uint32_t *new_first_out, uint32_t *machine_first_out, struct drps_err *err)
{
    /* The rows of machine m: hot ones begin at next[2 m], the others at next[2 m + 1]. */
    uint32_t *next = calloc(2 * (size_t)units->machines + 1, sizeof(*next));
    if (!next)
        return drps_err_set(err, -ENOMEM, "no memory to renumber for %u machines", units->machines);
    for (size_t u = 0; u < units->n; u++)
        next[2 * (size_t)owner[u] + !units->hot[u] + 1] += units->first[u + 1] - units->first[u];
    for (size_t i = 0; i < 2 * (size_t)units->machines; i++)
        next[i + 1] += next[i];
    for (size_t m = 0; m <= units->machines; m++)
        machine_first_out[m] = next[2 * m];
    for (size_t u = 0; u < units->n; u++) {
        uint32_t *next_id = &next[2 * (size_t)owner[u] + !units->hot[u]];
        new_first_out[u] = *next_id;
        *next_id += units->first[u + 1] - units->first[u];
    }
    free(next);
    return 0;
}
