/* What drps-index may write, for drps_stage_begin(): the files of a plan, and those that are there
 * while it is made. */
#include "index/plan/drps_plan.h"

#define MANIFEST "plan.json"

/* clang-format off */
#define FILE(pattern) {.name = (pattern)}
#define SCRATCH(pattern) {.name = (pattern), .unfinished = 1}

/* The files of a plan, of the part of a rank, and of a folder from which they are renumbered. */
#define PLAN                                                                                       \
    FILE(MANIFEST), FILE("data.rec"), FILE("rows.rec"), FILE("names.rec"), FILE("blocks.rec"),     \
    FILE("uses.rec"), FILE("windows.rec"), FILE("slots.rec"), FILE("shares.rec"),                  \
    FILE("positions.rec"), SCRATCH("uses.tmp"), SCRATCH("windows.rows.tmp"),                       \
    SCRATCH("windows.next.tmp"), SCRATCH("windows.prev.tmp")
/* clang-format on */

static const struct drps_owned part[] = {PLAN, FILE(NULL)};

static const struct drps_owned scratch[] = {
    PLAN,
    {.name = "laid", .inside = part},
    FILE("train-#"), /* spools: as parsed, */
    FILE("test-#"),
    FILE("train-cells-#"), /* in the cells of a grid, */
    FILE("test-cells-#"),
    FILE("train-line-#"), /* in order of arrival, */
    FILE("test-line-#"),
    FILE("train-placed-#"), /* placed on workers */
    FILE("test-placed-#"),
    FILE("names-#.run"), /* the dictionary: its generations, */
    FILE("place.run"),   /* external sorting, */
    FILE("key.run"),
    FILE("id.run"),
    FILE("map"), /* provisional ids to placed ones */
    FILE(NULL),
};

static const struct drps_owned plan[] = {
    PLAN,
    {.name = "rank-#", .inside = part},
    {.name = "scratch", .inside = scratch, .unfinished = 1},
    FILE(NULL),
};

const struct drps_stage_kind drps_plan_kind = {
    .manifest = MANIFEST, .kind = "drps-plan", .version = DRPS_PLAN_VERSION, .owned = plan};
