/*
 * Parameters first, and traffic by sets (drps_dppa.h). The graph is turned round: rows become what
 * is placed first, and the samples that have a row its features.
 */
#include "partition/dppa/drps_dppa.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

/* ---- The graph turned round ---- */

struct turned {
    size_t *starts;    /* own [R + 1] */
    uint32_t *samples; /* own: of each row */
};

static int turn_round(const struct drps_sample_set *set, struct turned *t)
{
    const size_t rows = set->features_n, entries = set->starts[set->n];
    t->starts = calloc(rows + 2, sizeof(*t->starts));
    t->samples = drps_array_new(entries, sizeof(*t->samples));
    if (!t->starts || !t->samples) return -ENOMEM;
    for (size_t i = 0; i < entries; i++)
        t->starts[set->features[i] + 2]++; /* two on: filling moves them one back */
    for (size_t r = 2; r <= rows; r++)
        t->starts[r] += t->starts[r - 1];
    for (size_t s = 0; s < set->n; s++)
        for (size_t i = set->starts[s]; i < set->starts[s + 1]; i++)
            t->samples[t->starts[set->features[i] + 1]++] = (uint32_t)s;
    return 0;
}

/* ---- Samples as units, which the machines that have their rows touch ---- */

static int units_of_samples(const struct drps_sample_set *set, const uint32_t *row_owner,
                            uint32_t machines, struct drps_units *u)
{
    uint32_t *count = calloc(machines, sizeof(*count));
    size_t touches = 0;
    *u = (struct drps_units){.n = set->n, .machines = machines, .row_net_s = 1};
    u->first = drps_array_new(set->n + 1, sizeof(*u->first));
    u->bytes = drps_array_new(set->n + 1, sizeof(*u->bytes));
    u->io_s = calloc(set->n + 1, sizeof(*u->io_s));
    u->hot = calloc(set->n + 1, sizeof(*u->hot));
    u->starts = calloc(set->n + 1, sizeof(*u->starts));
    u->touches = drps_array_new(set->starts[set->n], sizeof(*u->touches)); /* at most */
    const int ok = count && u->first && u->bytes && u->io_s && u->hot && u->starts && u->touches;
    for (size_t s = 0; ok && s < set->n; s++) {
        u->first[s] = (uint32_t)s;
        u->bytes[s] = 1;
        for (size_t i = set->starts[s]; i < set->starts[s + 1]; i++)
            count[row_owner[set->features[i]]]++;
        for (uint32_t m = 0; m < machines; m++)
            if (count[m]) u->touches[touches++] = (struct drps_touch){m, count[m]};
        memset(count, 0, machines * sizeof(*count));
        u->starts[s + 1] = touches;
    }
    if (ok) u->first[set->n] = (uint32_t)set->n;
    free(count);
    return ok ? 0 : -ENOMEM;
}

static int place_samples(const struct drps_sample_set *set, const struct drps_dppa_options *o,
                         const uint32_t *row_owner, uint32_t *owner, struct drps_err *err)
{
    const struct drps_rows_options rows = {.algo = "dppa", .by_sets = o->by_sets};
    struct drps_units units;
    struct drps_placement p;
    int rc = units_of_samples(set, row_owner, o->machines, &units);
    if (rc < 0)
        drps_err_set(err, rc, "no memory to place %zu samples on %u machines", set->n, o->machines);
    else
        rc = drps_rows_place(&units, &rows, &p, err);
    if (rc == 0) {
        memcpy(owner, p.owner, set->n * sizeof(*owner));
        drps_placement_destroy(&p);
    }
    drps_units_destroy(&units);
    return rc;
}

int drps_dppa_rows_first(const struct drps_sample_set *set, const struct drps_dppa_options *o,
                         uint32_t *row_owner_out, uint32_t *sample_owner_out,
                         struct drps_dppa_report *report_out, struct drps_err *err)
{
    struct turned t = {0};
    *report_out = (struct drps_dppa_report){0};
    int rc = drps_sample_set_check(set, err);
    if (rc < 0) return rc;
    rc = turn_round(set, &t);
    if (rc < 0) drps_err_set(err, rc, "no memory for the samples of %u rows", set->features_n);
    const struct drps_sample_set rows = {set->features_n, (uint32_t)set->n, t.starts, t.samples};
    if (rc == 0) rc = drps_dppa_samples(&rows, o, row_owner_out, report_out, err);
    if (rc == 0) rc = place_samples(set, o, row_owner_out, sample_owner_out, err);
    free(t.starts);
    free(t.samples);
    return rc;
}

/* ---- Traffic ---- */

uint64_t drps_dppa_traffic(const struct drps_units *units, const uint32_t *owner,
                           struct drps_set_traffic *load_out)
{
    uint64_t most = 0;
    memset(load_out, 0, units->machines * sizeof(*load_out));
    for (size_t u = 0; u < units->n; u++) {
        int others = 0;
        for (size_t t = units->starts[u]; t < units->starts[u + 1]; t++) {
            const uint32_t m = units->touches[t].machine;
            if (m == owner[u]) continue;
            load_out[m].pulled++;
            others = 1;
        }
        load_out[owner[u]].served += (uint64_t)others;
    }
    for (uint32_t m = 0; m < units->machines; m++)
        if (load_out[m].pulled + load_out[m].served > most)
            most = load_out[m].pulled + load_out[m].served;
    return most;
}
