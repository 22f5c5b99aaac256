/*
 * The state of a run between two steps, beside its rows: what a checkpoint's manifest says. Shared
 * inside engine/.
 */
#ifndef DRPS_ENGINE_CHECKPOINT_STATE_H
#define DRPS_ENGINE_CHECKPOINT_STATE_H

#include <jansson.h>

#include "engine/drps_engine.h"
#include "engine/newton/drps_newton.h"
#include "engine/step/drps_intercept.h"

/* What is done of an epoch, between two of its training steps or after the last. */
struct drps_epoch_part {
    uint64_t step;    /* training steps that are done */
    uint64_t samples; /* of these; of several ranks those of this one, as is the next */
    double loss;      /* their sum */
    uint64_t ns;      /* that it took so far */
    struct drps_intercept intercept; /* its step that is due */
};

struct drps_state {
    /* Which rows these are. */
    char plan_id[DRPS_PLAN_ID_BYTES]; /* of the rank's part */
    uint64_t rows, row_bytes;

    /* How they were trained. */
    struct drps_optim optim;
    enum drps_sched_mode sync;
    uint64_t epochs, patience, staleness;
    int local_steps, no_claim, batch_mean;
    enum drps_metric metric;
    enum drps_decay lr_decay;
    struct drps_sched_tuning wsp;
    enum drps_stale lr_stale;
    struct drps_push_options push;
    struct drps_pull_options pull;
    int pull_cached;
    uint64_t seed; /* of rows that no step has used: as options, and so is the next */
    float init_scale;

    /* How far. */
    uint64_t epoch; /* under way, from 1; or the one after the last */
    struct drps_epoch_part part;
    uint64_t best_epoch, best_content;      /* 0, 0: none yet, or no patience */
    double best_score;                      /* by the metric, less is better; infinite: none yet */
    struct drps_newton_state newton;        /* of a quasi-Newton method */
    struct drps_epoch *done;                /* own: [epoch - 1] */
    char changed[DRPS_TRAIN_CHANGED_BYTES]; /* as in drps_train_result */
};

/* Returns an object, own; NULL when memory is gone. */
json_t *drps_state_to_json(const struct drps_state *s);

/* Read one that a file holds, checked on its own: what depends on the plan is the caller's to
 * check. DRPS_E_CORRUPT names `path` and the member. */
DRPS_MUST_CHECK
int drps_state_from_json(const json_t *j, const char *path, struct drps_state *out,
                         struct drps_err *err);
void drps_state_destroy(struct drps_state *s); /* zeroed too */

/* Say in which options of learning `now` differs from `before`, as "lr=0.05 (before 0.1), l2=1
 * (before 0)"; empty where it does in none. *out is own: free() it, also on errors. -ENOMEM. */
DRPS_MUST_CHECK
int drps_state_changes(const struct drps_state *before, const struct drps_state *now, char **out,
                       struct drps_err *err);

#endif
