/* What a check of a plan's samples found, as text or JSON. */
#include "tools/stat/check.h"

#include <stdio.h>

#include <jansson.h>

#include "base/drps_clock.h"
#include "base/folder/drps_manifest.h"
#include "index/check/drps_check.h"

/* What is counted of features alone is null where they are not looked at. */
static int print_json(const struct drps_plan *plan, const struct drps_check *c, double seconds,
                      struct drps_err *err)
{
    const struct {
        const char *key;
        uint64_t value;
        int of_features;
    } counts[] = {
        {"samples", c->samples, 0},
        {"test_samples", c->test_samples, 0},
        {"constant_features", c->constants, 1},
        {"deciding_features", c->deciding, 1},
        {"wrong_samples", c->wrong, 1},
        {"test_copies", c->copies, 0},
        {"test_copies_of_few", c->copies_of_few, 0},
        {"copies_in_test", c->copies_in_test, 0},
    };
    json_t *j = json_object();
    drps_manifest_put(&j, "plan", json_string(plan->dir));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        drps_manifest_put(&j, counts[i].key,
                          counts[i].of_features && !c->of_features
                              ? json_null()
                              : drps_json_count(counts[i].value));
    drps_manifest_put(&j, "seconds", drps_json_real(seconds));
    drps_manifest_put(&j, "warnings", drps_manifest_remarks(&c->remarks));
    return drps_cli_json_print(j, err);
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? 100 * (double)part / (double)whole : 0;
}

static void print_text(const struct drps_plan *plan, const struct drps_check *c, double seconds)
{
    char copies[DRPS_CLI_COUNT_BYTES];
    const struct drps_algorithm *a = drps_plan_algorithm(&plan->info);
    const char *unseen = a && drps_algorithm_rates(a) ? "; features of ratings are not checked"
                                                      : "; features of documents are not checked";
    printf("plan %s: %s and %s checked in %.2f s: %s%s\n", plan->dir,
           drps_cli_counted(c->samples, "training sample"),
           drps_cli_counted(c->test_samples, "test sample"), seconds,
           c->remarks.n ? "see the warnings" : "nothing looks wrong", c->of_features ? "" : unseen);
    if (!c->test_samples) return;
    printf("  copies   %s test samples (%.1f %%) have the features and label of a training sample; "
           "of as many training samples as test samples %.1f %%, and of another test sample %.1f "
           "%%\n",
           drps_cli_grouped(c->copies, copies), share(c->copies, c->test_samples),
           share(c->copies_of_few, c->test_samples), share(c->copies_in_test, c->test_samples));
}

int stat_check_plan(struct drps_cli *cli, const struct drps_plan *plan, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    struct drps_check check;
    int rc = drps_check_plan(plan, 0, &cli->log, &check, err);
    const double seconds = drps_seconds_since(start);
    if (rc == 0 && cli->json) return print_json(plan, &check, seconds, err);
    if (rc == 0) print_text(plan, &check, seconds);
    return rc;
}
