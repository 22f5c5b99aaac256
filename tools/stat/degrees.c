/* Degrees of features and samples, as text or JSON. */
#include "tools/stat/degrees.h"

#include <stdio.h>

#include <jansson.h>

#include "base/folder/drps_manifest.h"
#include "index/degrees/drps_degrees.h"

static double mean(const struct drps_degrees *d, const struct drps_degree_counts *c)
{
    return c->n ? (double)d->edges / (double)c->n : 0;
}

static unsigned ranges(const struct drps_degrees *d)
{
    unsigned n = DRPS_DEGREE_RANGES;
    while (n && !d->features.in_range[n - 1] && !d->samples.in_range[n - 1])
        n--;
    return n;
}

static json_t *counts_json(const struct drps_degrees *d, const struct drps_degree_counts *c)
{
    json_t *j = json_object(), *list = json_array();
    for (unsigned r = 0; r < ranges(d); r++)
        drps_manifest_append(&list, json_pack("{s:o, s:o}", "from",
                                              drps_json_count(drps_degree_range_first(r)), "count",
                                              drps_json_count(c->in_range[r])));
    drps_manifest_put(&j, "count", drps_json_count(c->n));
    drps_manifest_put(&j, "mean", drps_json_real(mean(d, c)));
    drps_manifest_put(&j, "median", drps_json_count(c->median));
    drps_manifest_put(&j, "p90", drps_json_count(c->p90));
    drps_manifest_put(&j, "p99", drps_json_count(c->p99));
    drps_manifest_put(&j, "most", drps_json_count(c->most));
    drps_manifest_put(&j, "ranges", list);
    return j;
}

static int print_json(const struct drps_plan *plan, const struct drps_degrees *d,
                      struct drps_err *err)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "plan", json_string(plan->dir));
    drps_manifest_put(&j, "edges", drps_json_count(d->edges));
    drps_manifest_put(&j, "features", counts_json(d, &d->features));
    drps_manifest_put(&j, "samples", counts_json(d, &d->samples));
    return drps_cli_json_print(j, err);
}

static void print_side(const char *what, const char *of, const struct drps_degrees *d,
                       const struct drps_degree_counts *c)
{
    char n[DRPS_CLI_COUNT_BYTES], median[DRPS_CLI_COUNT_BYTES], p90[DRPS_CLI_COUNT_BYTES],
        p99[DRPS_CLI_COUNT_BYTES], most[DRPS_CLI_COUNT_BYTES];
    printf("  %-8s %s; %s: mean %.1f, median %s, of 90 %% at most %s, of 99 %% %s, the most %s\n",
           what, drps_cli_grouped(c->n, n), of, mean(d, c), drps_cli_grouped(c->median, median),
           drps_cli_grouped(c->p90, p90), drps_cli_grouped(c->p99, p99),
           drps_cli_grouped(c->most, most));
}

static void print_range(const struct drps_degrees *d, unsigned r)
{
    char text[64], first[DRPS_CLI_COUNT_BYTES], last[DRPS_CLI_COUNT_BYTES];
    char features[DRPS_CLI_COUNT_BYTES], samples[DRPS_CLI_COUNT_BYTES];
    const uint64_t from = drps_degree_range_first(r), to = drps_degree_range_first(r + 1) - 1;
    if (from >= to)
        (void)snprintf(text, sizeof(text), "%s", drps_cli_grouped(from, first));
    else
        (void)snprintf(text, sizeof(text), "%s to %s", drps_cli_grouped(from, first),
                       drps_cli_grouped(to, last));
    printf("  %-25s %15s %15s\n", text, drps_cli_grouped(d->features.in_range[r], features),
           drps_cli_grouped(d->samples.in_range[r], samples));
}

static void print_text(const struct drps_plan *plan, const struct drps_degrees *d)
{
    char edges[DRPS_CLI_COUNT_BYTES];
    const double cells = (double)d->features.n * (double)d->samples.n;
    printf("plan %s: training samples have %s features together, %.3g %% of all pairs of a sample and a feature\n",
           plan->dir, drps_cli_grouped(d->edges, edges),
           cells > 0 ? 100 * (double)d->edges / cells : 0);
    print_side("features", "samples that have one", d, &d->features);
    print_side("samples", "features of one", d, &d->samples);
    printf("\n  %-25s %15s %15s\n", "degree", "features", "samples");
    for (unsigned r = 0; r < ranges(d); r++)
        print_range(d, r);
}

int stat_print_degrees(struct drps_cli *cli, const struct drps_plan *plan, struct drps_err *err)
{
    struct drps_degrees d;
    int rc = drps_degrees_count(plan, &d, err);
    if (rc == 0 && cli->json) return print_json(plan, &d, err);
    if (rc == 0) print_text(plan, &d);
    return rc;
}
