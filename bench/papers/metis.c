/* METIS (metis.h). */
#include "bench/papers/metis.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef WITH_METIS
#include <metis.h>

#include "base/drps_alloc.h"
#include "bench/data.h"

enum { SEED = 1 };

int metis_place(const struct drps_sample_set *set, const uint32_t *size, uint32_t machines,
                uint32_t *samples, uint32_t *rows)
{
    const size_t n = set->n + set->features_n, entries = set->starts[set->n];
    idx_t vertices = (idx_t)n, constraints = 2, parts = (idx_t)machines, cut;
    idx_t *starts = must(calloc(n + 2, sizeof(*starts)));
    idx_t *edges = must(drps_array_new(2 * entries, sizeof(*edges)));
    idx_t *heavy = must(drps_array_new(2 * entries, sizeof(*heavy)));
    idx_t *weights = must(calloc(2 * n, sizeof(*weights)));
    idx_t *part = must(calloc(n, sizeof(*part)));
    idx_t options[METIS_NOPTIONS];
    for (size_t i = 0; i < entries; i++)
        starts[set->n + set->features[i] + 2]++;
    for (size_t s = 0; s < set->n; s++)
        starts[s + 2] = (idx_t)(set->starts[s + 1] - set->starts[s]);
    for (size_t v = 2; v <= n + 1; v++)
        starts[v] += starts[v - 1];
    for (size_t s = 0; s < set->n; s++)
        for (size_t i = set->starts[s]; i < set->starts[s + 1]; i++) {
            const size_t row = set->n + set->features[i];
            const idx_t weight = size ? (idx_t)size[set->features[i]] : 1;
            heavy[starts[s + 1]] = heavy[starts[row + 1]] = weight;
            edges[starts[s + 1]++] = (idx_t)row;
            edges[starts[row + 1]++] = (idx_t)s;
        }
    for (size_t v = 0; v < n; v++)
        weights[2 * v + (v >= set->n)] = v < set->n || !size ? 1 : (idx_t)size[v - set->n];
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = SEED;
    if (METIS_PartGraphKway(&vertices, &constraints, starts, edges, weights, NULL, heavy, &parts,
                            NULL, NULL, options, &cut, part) != METIS_OK) {
        fprintf(stderr, "bench: METIS failed\n");
        exit(1);
    }
    for (size_t v = 0; v < n; v++)
        *(v < set->n ? &samples[v] : &rows[v - set->n]) = (uint32_t)part[v];
    free(starts);
    free(edges);
    free(heavy);
    free(weights);
    free(part);
    return 1;
}
#else
int metis_place(const struct drps_sample_set *set, const uint32_t *size, uint32_t machines,
                uint32_t *samples, uint32_t *rows)
{
    (void)set, (void)size, (void)machines, (void)samples, (void)rows;
    fprintf(stderr, "bench: SKIPPED metis: this build has no METIS (Debian: libmetis-dev)\n");
    return 0;
}
#endif
