/* What drps-train says while it trains, or makes a model. Private to tools/train/. */
#ifndef DRPS_TOOLS_TRAIN_PROGRESS_H
#define DRPS_TOOLS_TRAIN_PROGRESS_H

#include <stdint.h>

#include "engine/cluster/drps_attempts.h"
#include "engine/drps_engine.h"
#include "tools/drps_cli.h"

/* Everything is borrowed. */
struct train_progress {
    struct drps_cli *cli;
    const struct drps_plan_info *plan; /* NULL: no plan is trained */
    struct drps_attempt *attempt;      /* that this process is; NULL: there are no others */

    /* Private to progress.c. */
    int epochs;          /* lines printed */
    const char *writing; /* what is being written, NULL before; since writing_ns */
    uint64_t writing_ns;
};

/* Let training print a line an epoch, show how far it is, and tell the attempt of checkpoints. *p
 * lives until training has ended. */
void train_progress_follow(struct train_progress *p, struct drps_train_options *options);

/* For struct drps_publish_options; ctx is the progress. */
void train_progress_publishing(void *ctx, uint64_t bytes, uint64_t all_bytes);

#endif
