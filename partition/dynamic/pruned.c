/* Units of a dense net: runs of its parameters, which lose those that are pruned. */
#include "partition/dynamic/drps_dynamic.h"

#include <math.h>

size_t drps_dynamic_cut(const uint32_t *runs, size_t n, uint32_t most, uint32_t *first_out)
{
    size_t units = 0;
    if (!most) return 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t length = runs[i + 1] - runs[i], parts = (length + most - 1) / most;
        for (uint64_t part = 0; part < parts; part++, units++)
            if (first_out) first_out[units] = runs[i] + (uint32_t)(length * part / parts);
    }
    if (first_out) first_out[units] = n ? runs[n] : 0;
    return units;
}

size_t drps_dynamic_prune(const float *params, size_t n, float least, uint8_t *pruned)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        pruned[i] = pruned[i] || fabsf(params[i]) < least;
        count += pruned[i];
    }
    return count;
}

void drps_dynamic_sizes(const uint32_t *first, size_t units, const uint8_t *pruned,
                        uint32_t *size_out)
{
    for (size_t u = 0; u < units; u++) {
        size_out[u] = first[u + 1] - first[u];
        for (uint32_t i = first[u]; pruned && i < first[u + 1]; i++)
            size_out[u] -= pruned[i] != 0;
    }
}

static int has_changed(const float *change, const uint8_t *pruned, uint32_t from, uint32_t to,
                       float least)
{
    for (uint32_t i = from; i < to; i++)
        if (!(pruned && pruned[i]) && !(fabsf(change[i]) <= least)) return 1;
    return 0;
}

size_t drps_dynamic_changed(const float *change, const uint8_t *pruned, const uint32_t *first,
                            size_t units, float least, uint32_t *changed_out)
{
    size_t n = 0;
    for (size_t u = 0; u < units; u++)
        if (has_changed(change, pruned, first[u], first[u + 1], least))
            changed_out[n++] = (uint32_t)u;
    return n;
}
