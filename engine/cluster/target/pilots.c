/* Pilots are runs of which nothing stays; they are run one after another. */
#include "engine/cluster/target/pilots.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/drps_clock.h"
#include "index/plan/drps_algorithm.h"

/* ---- The options of pilots ---- */

static void quieten(struct drps_pilots *p)
{
    if (!p->train.log) return;
    p->log = *p->train.log;
    if (p->log.level == DRPS_LOG_INFO) p->log.level = DRPS_LOG_WARN;
    p->train.log = &p->log;
}

void drps_pilots_begin(struct drps_pilots *p, const struct drps_train_options *train,
                       struct drps_train_pilot pilot, const char *what, drps_target_run *run,
                       void *ctx)
{
    *p = (struct drps_pilots){.train = *train, .run = run, .ctx = ctx, .what = what};
    p->train.pilot = pilot;
    p->train.emulate = NULL;
    p->train.on_epoch = NULL;
    p->train.on_batch = NULL;
    p->train.on_write = NULL;
    p->train.on_checkpoint = NULL;
    quieten(p);
}

/* The first pilot is refused where the run would be: over a model, or checkpoints, that it may not
 * replace. Those that follow know. */
static void go_on(struct drps_train_options *t)
{
    t->resume = 0;
    t->replace = 1;
}

/* ---- A pilot ---- */

/* Where in a pilot it was does not matter, nor that one rank had seen it before another. */
static int is_asked_to_stop(const struct drps_pilots *p)
{
    const atomic_int *stop = p->train.stop;
    return stop && atomic_load_explicit(stop, memory_order_relaxed); /* only a flag */
}

int drps_pilots_run(struct drps_pilots *p, struct drps_train_result *r, double *seconds_out,
                    struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    int rc = p->run(p->ctx, &p->train, r, err);
    *seconds_out = drps_seconds_since(start);
    p->resumes = rc == 0 && (r->already || r->resumed_epoch);
    if (rc == 0 && !p->resumes) go_on(&p->train);
    if (rc == DRPS_E_INTERRUPTED || (rc < 0 && is_asked_to_stop(p))) {
        drps_err_clear(err);
        return drps_err_set(err, DRPS_E_INTERRUPTED,
                            "interrupted while %s were tried: nothing is written", p->what);
    }
    if (rc == 0 && !p->resumes && !r->epochs_n)
        return drps_err_set(err, -EINVAL, "a pilot has ended without an epoch");
    return rc;
}

/* ---- What it came to ---- */

static int is_squared(const struct drps_plan_info *info)
{
    return strcmp(info->loss, drps_loss_name(DRPS_LOSS_SQUARED)) == 0;
}

enum drps_target_measure drps_pilots_measure(const struct drps_plan_info *info,
                                             const struct drps_epoch *e)
{
    if (is_squared(info)) return e->test.samples ? DRPS_TARGET_TEST_RMSE : DRPS_TARGET_TRAIN_RMSE;
    return e->test.samples ? DRPS_TARGET_TEST_LOSS : DRPS_TARGET_TRAIN_LOSS;
}

/* A squared loss is half the square of the error. */
double drps_pilots_loss(enum drps_target_measure measure, const struct drps_epoch *e)
{
    switch (measure) {
    case DRPS_TARGET_TEST_LOSS:
        return e->test.loss;
    case DRPS_TARGET_TEST_RMSE:
        return e->test.rmse;
    case DRPS_TARGET_TRAIN_LOSS:
        return e->train_loss;
    case DRPS_TARGET_TRAIN_RMSE:
        return sqrt(2 * e->train_loss);
    }
    return NAN;
}
