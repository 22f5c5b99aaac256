/*
 * Batches of one stratum, run at the same time. The plan says which batches that follow on each
 * other share no row but the intercept's: those of one stratum and of different lanes
 * (index/plan/drps_batch.h). As many of them as there is room for are opened together; each lane is
 * trained by one thread, batch after batch. The intercept stays as it is meanwhile
 * (drps_intercept.h; in grid order for good). So every row sees the same steps in the same order as
 * when one thread trains one batch after another, and the result is the same to the last bit.
 * Shared inside engine/.
 */
#ifndef DRPS_ENGINE_STEP_STRATUM_H
#define DRPS_ENGINE_STEP_STRATUM_H

#include <stdint.h>

#include "engine/step/drps_feed.h"
#include "engine/step/drps_server.h"
#include "engine/step/drps_worker.h"

struct drps_stratum; /* opaque */

enum { DRPS_STRATUM_BATCHES = 32 }; /* open together, at most */

struct drps_stratum_parts {
    const struct drps_plan_info *info; /* this and the rest: borrowed */
    struct drps_feed *feed;
    struct drps_server *server; /* its store keeps `batches` steps open */
    struct drps_worker *worker; /* its team does the work, with its gradients and scratch */
    size_t batches;
    /* Called for a step that hands rows over, open by itself. NULL: the plan has none. */
    int (*hand_over)(void *ctx, const struct drps_batch *step, const struct drps_rows *rows,
                     struct drps_err *err);
    void *hand_over_ctx;
};

uint64_t drps_stratum_memory(const struct drps_plan_info *info, const struct drps_server *server,
                             unsigned members, size_t batches);

DRPS_MUST_CHECK
int drps_stratum_open(const struct drps_stratum_parts *parts, struct drps_stratum **d_out,
                      struct drps_err *err);
void drps_stratum_close(struct drps_stratum *d); /* NULL-safe */

/* What one of the batches came to. */
struct drps_stratum_batch {
    size_t samples;
    double loss;     /* sum of the losses before its step */
    float intercept; /* its gradient */
};

struct drps_stratum_done {
    const struct drps_stratum_batch *batch; /* [n] in the plan's order, valid until the next run */
    size_t n;
    uint64_t plan_ns, wait_ns; /* reading batches, waiting for their rows */
};

/* Train the feed's next batches: one at least, `left` at most. One calling thread. */
DRPS_MUST_CHECK
int drps_stratum_train(struct drps_stratum *d, uint64_t left, struct drps_stratum_done *done,
                       struct drps_err *err);

#endif
