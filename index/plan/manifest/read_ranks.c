/* What plan.json says of several workers. */
#include <jansson.h>

#include "base/folder/drps_manifest.h"
#include "index/plan/manifest/members.h"
#include "index/plan/manifest/read.h"

static int get_held(const json_t *cluster, const char *path, struct drps_plan_ranks *ranks,
                    struct drps_err *err)
{
    const json_t *held = json_object_get(cluster, "held");
    int rc =
        held ? drps_manifest_get_count(cluster, "max_range_rows", path, &ranks->max_range_rows, err)
             : 0;
    if (rc == 0 && json_array_size(held) > DRPS_PLAN_RANGES)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: %zu ranges are held; at most %d are known",
                            path, json_array_size(held), DRPS_PLAN_RANGES);
    for (; ranks->held_n < json_array_size(held) && rc == 0; ranks->held_n++) {
        struct drps_row_range *range = &ranks->held[ranks->held_n];
        const json_t *entry = json_array_get(held, ranks->held_n);
        rc = drps_manifest_get_count(entry, "first", path, &range->first, err);
        if (rc == 0) rc = drps_manifest_get_count(entry, "rows", path, &range->rows, err);
    }
    return rc;
}

static int get_handed(const json_t *cluster, const char *path, struct drps_plan_handed *handed,
                      struct drps_err *err)
{
    const json_t *j = json_object_get(cluster, "handed_on");
    int rc = 0;
    if (!j) return 0;
#define GET(name)                                                                                  \
    if (rc == 0) rc = drps_manifest_get_count(j, #name, path, &handed->name, err);
    PLAN_HANDED_NUMBERS(GET)
#undef GET
    return rc;
}

/* How many workers and servers there are, and on which ranks: where it is not said, as many, on the
 * same. */
static int get_shape(const json_t *j, const char *path, struct drps_plan_ranks *ranks,
                     struct drps_err *err)
{
    const int said = json_object_get(j, "servers") != NULL;
    uint32_t servers = ranks->workers, first = 0;
    int rc = said ? drps_manifest_get_u32(j, "servers", path, &servers, err) : 0;
    if (rc == 0 && said) rc = drps_manifest_get_u32(j, "first_worker", path, &first, err);
    const struct drps_bound bounds[] = {
        {"workers", ranks->workers, said ? 1 : 2, DRPS_PLAN_WORKERS_MAX, "a cluster"},
        {"servers", servers, 1, DRPS_PLAN_WORKERS_MAX, "a cluster"},
        {"first_worker", first, first ? servers : 0, servers, "the servers"},
        {"first_worker", first, 0, DRPS_PLAN_WORKERS_MAX - (uint64_t)ranks->workers, "a cluster"},
    };
    if (rc == 0) rc = drps_manifest_check(bounds, said ? 4 : 1, path, err);
    if (rc < 0) return rc;
    const struct drps_plan_ranks shape = drps_plan_ranks_of(ranks->workers, servers, first > 0);
    ranks->count = shape.count;
    ranks->servers = shape.servers;
    ranks->first_worker = shape.first_worker;
    return 0;
}

int drps_plan_read_ranks(struct drps_plan *plan, const char *path, struct drps_err *err)
{
    struct drps_plan_info *info = &plan->info;
    struct drps_plan_ranks *ranks = &info->ranks;
    const json_t *j = json_object_get(plan->json, "cluster");
    int rc = 0;

    *ranks = drps_plan_ranks_of(1, 1, 0);
    ranks->round_samples = info->max_batch_samples;
    ranks->max_round_rows = info->max_batch_rows;
    if (!j) return 0;
#define GET(name)                                                                                  \
    rc = GET_NUMBER(ranks->name)(j, #name, path, &ranks->name, err);                               \
    if (rc < 0) return rc;
    PLAN_RANK_NUMBERS(GET)
#undef GET
#define GET(name, member)                                                                          \
    rc = drps_manifest_get_count(j, member, path, &ranks->name, err);                              \
    if (rc < 0) return rc;
    PLAN_RANK_TEST_NUMBERS(GET)
#undef GET
    rc = drps_manifest_get_text(j, "whole", path, ranks->whole, sizeof(ranks->whole), err);
    if (rc == 0 && json_object_get(j, "rank"))
        rc = drps_manifest_get_u32(j, "rank", path, &ranks->rank, err);
    if (rc == 0 && json_object_get(j, "residual_slots"))
        rc = drps_manifest_get_count(j, "residual_slots", path, &ranks->residual_slots, err);
    ranks->own_slots = json_is_true(json_object_get(j, "own_slots"));
    if (rc == 0 && json_object_get(j, "published_slots"))
        rc = drps_manifest_get_count(j, "published_slots", path, &ranks->published_slots, err);
    if (rc == 0) rc = get_handed(j, path, &ranks->handed, err);
    if (rc == 0) rc = get_held(j, path, ranks, err);
    if (rc < 0) return rc;
    rc = get_shape(j, path, ranks, err);
    if (rc < 0 || !json_object_get(j, "rank")) return rc;
    const struct drps_bound rank = {"rank", ranks->rank, 0, ranks->count - (uint64_t)1,
                                    "the number of ranks"};
    return drps_manifest_check(&rank, 1, path, err);
}
