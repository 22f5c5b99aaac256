/*
 * "Accelerating Distributed Machine Learning with Model Compression and Graph Partition": what a
 * placement of samples and rows moves, by the paper's algorithms, by a multilevel graph partitioner
 * (METIS, where the build has it) and by drps's own. Figures 6 and 7.
 *
 *   bench_compress libsvm FILE | random N:M:EDGES   BINS MACHINES METHOD...
 *
 * random: N samples of EDGES features each, of M, all alike. BINS: features are hashed into so many
 * before anything else; 0: they are not. METHOD is random, metis, auto, or dppa:ALPHA:SAMPLE[:BETA]
 * [:sets|:rows], ALPHA and SAMPLE a number, or 0 for auto and n/k. BETA is of the longest sample.
 *
 * A line a method, with tabs: method, rows pulled an epoch where each counts once a machine (Eq. 1
 * without the maximum), what the busiest machine pulls and serves of it (Eq. 1), rows pulled where
 * each counts once a batch of 100, the busiest link of that over the average, samples of the
 * machine with most over the average, seconds of the processor.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"
#include "bench/data.h"
#include "bench/papers/metis.h"
#include "partition/dppa/drps_dppa.h"

enum { SEED = 1, BATCH = 100 };

/* A placement. */
struct placed {
    uint32_t *samples, *rows; /* own [N], [R] machines */
};

/* ---- Data ---- */

static void make_random(struct data *d, const char *what)
{
    unsigned long long n, m, edges, x = 0;
    uint64_t *keys;
    if (sscanf(what, "%llu:%llu:%llu", &n, &m, &edges) != 3 || edges > m) {
        fprintf(stderr, "bench_compress: '%s' is not N:M:EDGES\n", what);
        exit(2);
    }
    keys = must(drps_array_new(edges, sizeof(*keys)));
    for (uint64_t s = 0; s < n; s++) {
        for (size_t k = 0; k < edges;) {
            keys[k] = drps_rng_at(SEED, x++) % m;
            size_t i = 0;
            while (keys[i] != keys[k])
                i++;
            k += i == k; /* distinct */
        }
        data_add(d, keys, edges);
    }
    free(keys);
}

static void hash_features(struct drps_sample_set *set, uint32_t bins)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (!bins) return;
    size_t *starts = must(drps_array_new(set->n + 1, sizeof(*starts)));
    uint32_t *features = must(drps_array_new(set->starts[set->n], sizeof(*features)));
    ok(drps_samples_hash_features(set, bins, SEED, starts, features, &err), &err);
    *set = (struct drps_sample_set){set->n, bins, starts, features}; /* freed with the process */
}

/* ---- Units of one row each, given the samples ---- */

static struct drps_units units_of(const struct drps_sample_set *set, const uint32_t *samples,
                                  uint32_t machines)
{
    const struct drps_unit_costs costs = {.row_bytes = 1, .row_net_s = 1};
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t *first = must(drps_array_new((size_t)set->features_n + 1, sizeof(*first)));
    uint32_t *uses = must(calloc((size_t)set->features_n + 1, sizeof(*uses)));
    struct drps_units_maker *maker;
    struct drps_units units;
    for (uint32_t r = 0; r <= set->features_n; r++)
        first[r] = r;
    ok(drps_units_new(first, set->features_n, uses, 0, &costs, machines, &maker, &err), &err);
    ok(drps_samples_batches(set, samples, machines, BATCH, SEED, drps_units_add, maker, &err),
       &err);
    ok(drps_units_finish(maker, &units, &err), &err);
    drps_units_maker_free(maker);
    free(first);
    free(uses);
    return units;
}

/* ---- Ways to place ---- */

static void place_random(const struct drps_sample_set *set, uint32_t machines, struct placed *p)
{
    const struct drps_samples_options o = {
        .algo = "hash", .machines = machines, .batch_size = BATCH, .seed = SEED};
    struct drps_err err = DRPS_ERR_INIT;
    ok(drps_samples_place(set, &o, p->samples, &err), &err);
    for (uint32_t r = 0; r < set->features_n; r++)
        p->rows[r] = (uint32_t)(drps_rng_at(SEED + 1, r) % machines);
}

static void place_auto(const struct drps_sample_set *set, uint32_t machines, struct placed *p)
{
    const struct drps_samples_options o = {
        .algo = "auto", .machines = machines, .batch_size = BATCH, .seed = SEED};
    const struct drps_homes_options homes = {.machines = machines};
    struct drps_err err = DRPS_ERR_INIT;
    uint16_t *home = must(calloc((size_t)set->features_n + 1, sizeof(*home)));
    struct drps_home_load *load = must(drps_array_new(machines, sizeof(*load)));
    ok(drps_samples_place(set, &o, p->samples, &err), &err);
    struct drps_units units = units_of(set, p->samples, machines);
    const struct drps_row_stream stream = {set->features_n, data_walk_rows, &units};
    ok(drps_homes_place(&stream, &homes, home, load, &err), &err);
    for (uint32_t r = 0; r < set->features_n; r++)
        p->rows[r] = home[r];
    drps_units_destroy(&units);
    free(home);
    free(load);
}

static void place_dppa(const struct drps_sample_set *set, uint32_t machines, const char *how,
                       struct placed *p)
{
    struct drps_dppa_options o = {.machines = machines, .seed = SEED};
    struct drps_rows_options rows = {.algo = "dppa"};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_dppa_report report;
    struct drps_placement placement;
    size_t longest = 0;
    double beta = 0;
    const int n = sscanf(how, "dppa:%u:%u:%lf", &o.alpha, &o.sample, &beta);
    if (n < 2) {
        fprintf(stderr, "bench_compress: '%s' is not dppa:ALPHA:SAMPLE\n", how);
        exit(2);
    }
    if (!o.alpha) o.alpha = DRPS_DPPA_ADAPTIVE;
    if (!o.sample) o.sample = DRPS_DPPA_PRINTED;
    for (size_t s = 0; s < set->n; s++)
        if (set->starts[s + 1] - set->starts[s] > longest)
            longest = set->starts[s + 1] - set->starts[s];
    o.beta = beta * (double)longest;
    o.by_sets = rows.by_sets = strstr(how, ":sets") != NULL;
    if (strstr(how, ":rows")) {
        ok(drps_dppa_rows_first(set, &o, p->rows, p->samples, &report, &err), &err);
        return;
    }
    ok(drps_dppa_samples(set, &o, p->samples, &report, &err), &err);
    struct drps_units units = units_of(set, p->samples, machines);
    ok(drps_rows_place(&units, &rows, &placement, &err), &err);
    memcpy(p->rows, placement.owner, units.n * sizeof(*p->rows));
    drps_placement_destroy(&placement);
    drps_units_destroy(&units);
}

/* Returns 0 if this build cannot. */
static int place(const struct drps_sample_set *set, uint32_t machines, const char *method,
                 struct placed *p)
{
    if (strcmp(method, "random") == 0) {
        place_random(set, machines, p);
    } else if (strcmp(method, "auto") == 0) {
        place_auto(set, machines, p);
    } else if (strcmp(method, "metis") == 0) {
        return metis_place(set, NULL, machines, p->samples, p->rows);
    } else {
        place_dppa(set, machines, method, p);
    }
    return 1;
}

/* ---- What it comes to ---- */

static void measure(const struct drps_sample_set *set, uint32_t machines, const char *method,
                    const struct placed *p, double seconds)
{
    struct drps_units units = units_of(set, p->samples, machines);
    struct drps_set_traffic *sets = must(drps_array_new(machines, sizeof(*sets)));
    uint64_t *link = must(calloc(machines, sizeof(*link)));
    uint64_t *samples = must(calloc(machines, sizeof(*samples)));
    uint64_t by_sets = 0, remote = 0, busiest = 0, most = 0;
    const uint64_t busiest_set = drps_dppa_traffic(&units, p->rows, sets);
    for (size_t r = 0; r < units.n; r++)
        for (size_t t = units.starts[r]; t < units.starts[r + 1]; t++) {
            const struct drps_touch *touch = &units.touches[t];
            if (touch->machine == p->rows[r]) continue;
            remote += touch->count;
            link[touch->machine] += touch->count;
            link[p->rows[r]] += touch->count;
        }
    for (size_t s = 0; s < set->n; s++)
        samples[p->samples[s]]++;
    for (uint32_t m = 0; m < machines; m++) {
        by_sets += sets[m].pulled;
        if (link[m] > busiest) busiest = link[m];
        if (samples[m] > most) most = samples[m];
    }
    printf("%s\t%llu\t%llu\t%llu\t%.2f\t%.2f\t%.1f\n", method, (unsigned long long)by_sets,
           (unsigned long long)busiest_set, (unsigned long long)remote,
           remote ? (double)busiest * machines / (2 * (double)remote) : 1.0,
           (double)most * machines / (double)set->n, seconds);
    fflush(stdout);
    drps_units_destroy(&units);
    free(sets);
    free(link);
    free(samples);
}

int main(int argc, char **argv)
{
    struct data d = {0};
    if (argc < 6) {
        fprintf(stderr, "usage: bench_compress libsvm FILE | random N:M:EDGES   BINS MACHINES "
                        "METHOD...\n");
        return 2;
    }
    if (strcmp(argv[1], "random") == 0)
        make_random(&d, argv[2]);
    else
        data_read(&d, argv[1], argv[2]);
    struct drps_sample_set set = {d.n, d.features_n, d.starts, d.features};
    hash_features(&set, (uint32_t)strtoul(argv[3], NULL, 10));
    const uint32_t machines = (uint32_t)strtoul(argv[4], NULL, 10);
    for (int i = 5; i < argc; i++) {
        struct placed p = {must(calloc(set.n + 1, sizeof(*p.samples))),
                           must(calloc((size_t)set.features_n + 1, sizeof(*p.rows)))};
        const clock_t start = clock();
        if (place(&set, machines, argv[i], &p))
            measure(&set, machines, argv[i], &p, (double)(clock() - start) / CLOCKS_PER_SEC);
        free(p.samples);
        free(p.rows);
    }
    data_free(&d);
    return 0;
}
