/* Filters that drps-train chooses itself: --filter-target. Private to tools/train/. */
#ifndef DRPS_TOOLS_TRAIN_TARGET_H
#define DRPS_TOOLS_TRAIN_TARGET_H

#include "api/report/drps_pilots_json.h"
#include "tools/train/options.h"

/* Everything is borrowed. */
struct train_target {
    struct drps_cli *cli;
    struct train_options *options;
    const struct drps_plan *plan;
    drps_target_run *run; /* of its options, with ctx */
    void *ctx;
};

/* All ranks try and see the same; 1: this one says so. */
int train_target_is_told(const struct train_target *job);

/* Run the pilots, print what each came to, and give the options the filters that were chosen. */
DRPS_MUST_CHECK
int train_target_find(const struct train_target *job, struct drps_target *out,
                      struct drps_err *err);

#endif
