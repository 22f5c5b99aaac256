/* What drps-index may write, for drps_stage_begin(): the files of a plan, and those that are there
 * while it is made. */
#include "base/monitor/drps_monitor_out.h"
#include "index/plan/drps_plan.h"

/* clang-format off */
#define FILE(pattern) {.name = (pattern)}
#define SCRATCH(pattern) {.name = (pattern), .unfinished = 1}

/* The files of a plan, of the part of a rank, and of a folder from which they are renumbered. */
#define PLAN                                                                                       \
    FILE(DRPS_FILE_MANIFEST), FILE(DRPS_FILE_DATA), FILE(DRPS_FILE_ROWS),                          \
    FILE(DRPS_FILE_NAMES), FILE(DRPS_FILE_BLOCKS), FILE(DRPS_FILE_USES),                           \
    FILE(DRPS_FILE_WINDOWS), FILE(DRPS_FILE_SLOTS), FILE(DRPS_FILE_SHARES),                        \
    FILE(DRPS_FILE_POSITIONS), FILE(DRPS_FILE_RESIDUALS), FILE(DRPS_FILE_HANDED),                  \
    FILE(DRPS_FILE_LENT), SCRATCH(DRPS_FILE_USES_TMP), SCRATCH(DRPS_FILE_ROW_USES_TMP),            \
    SCRATCH(DRPS_FILE_RESIDUALS_TMP), FILE(DRPS_FILE_PUBLISHED), FILE(DRPS_FILE_NUMBERS), SCRATCH(DRPS_FILE_PUBLISHED_TMP), SCRATCH(DRPS_FILE_HANDED_NEXT_TMP),                          \
    SCRATCH(DRPS_FILE_HANDED_FATES_TMP),                                                           \
    SCRATCH(DRPS_FILE_WINDOW_ROWS_TMP), SCRATCH(DRPS_FILE_WINDOW_NEXT_TMP),                        \
    SCRATCH(DRPS_FILE_WINDOW_PREV_TMP)
/* clang-format on */

static const struct drps_owned part[] = {PLAN, FILE(NULL)};

static const struct drps_owned scratch[] = {
    PLAN,
    {.name = DRPS_FILE_LAID, .inside = part},
    {.name = DRPS_FILE_PLACED, .inside = part},
    {.name = DRPS_FILE_GATHERED, .inside = part},
    {.name = DRPS_FILE_SAMPLED, .inside = part},
    FILE("train-#"), /* spools: as parsed, */
    FILE("test-#"),
    FILE("train-cells-#"), /* in the cells of a grid, */
    FILE("test-cells-#"),
    FILE("train-groups-#"), /* in micro order, */
    FILE("train-line-#"),   /* in order of arrival, */
    FILE("test-line-#"),
    FILE("train-drawn-#"), /* with negatives, */
    FILE("test-drawn-#"),
    FILE("train-placed-#"), /* placed on workers */
    FILE("test-placed-#"),
    FILE("train-dealt-#"), /* of several machines */
    FILE("test-dealt-#"),
    FILE("from-#"), /* from other machines */
    FILE("places.run"),
    FILE("coming.run"),
    FILE("owned.rec"),
    FILE("names-#.run"), /* the dictionary: its generations, */
    FILE("place.run"),   /* external sorting, */
    FILE("choices.run"),
    FILE("key.run"),
    FILE("id.run"),
    FILE("micro-rows.run"),
    FILE("micro-clusters.run"),
    FILE("micro-joined.run"),
    FILE("micro-groups.run"),
    FILE("micro-parts.run"),
    FILE("map"), /* provisional ids to placed ones */
    FILE(NULL),
};

static const struct drps_owned plan[] = {
    PLAN,
    {.name = DRPS_FILE_RANK "#", .inside = part},
    SCRATCH(DRPS_MONITOR_FILE),
    SCRATCH(DRPS_MONITOR_FILE_NEXT),
    {.name = DRPS_FILE_SCRATCH, .inside = scratch, .unfinished = 1},
    FILE(NULL),
};

const struct drps_stage_kind drps_plan_kind = {.manifest = DRPS_FILE_MANIFEST,
                                               .kind = "drps-plan",
                                               .version = DRPS_PLAN_VERSION,
                                               .owned = plan};
