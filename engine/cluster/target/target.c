/* Pilots are run one after another, and compared. */
#include "engine/cluster/target/drps_target.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/drps_clock.h"
#include "engine/cluster/target/drps_ladder.h"
#include "engine/cluster/target/drps_pilot.h"
#include "index/plan/drps_algorithm.h"

/* One search. */
struct finding {
    const struct drps_target_options *o;
    struct drps_train_options train; /* of the pilots */
    struct drps_log log;             /* what every run says is said by the one that follows */
    struct drps_target *out;
};

/* ---- The options of pilots ---- */

static int may_copy(const struct drps_train_options *o, const struct drps_plan_info *info)
{
    const char *name = o->optimizer ? o->optimizer : drps_algorithm_find(info->algo)->optimizer;
    return strcmp(name, drps_optim_name(DRPS_OPTIM_FTRL)) != 0;
}

static void quieten(struct finding *f)
{
    if (!f->train.log) return;
    f->log = *f->train.log;
    if (f->log.level == DRPS_LOG_INFO) f->log.level = DRPS_LOG_WARN;
    f->train.log = &f->log;
}

static void begin(struct finding *f)
{
    const struct drps_target_options *o = f->o;
    struct drps_train_options *t = &f->train;
    *t = *o->train;
    t->pilot = (struct drps_train_pilot){1, o->rounds ? o->rounds : DRPS_TARGET_ROUNDS};
    t->emulate = NULL;
    t->on_epoch = NULL;
    t->on_batch = NULL;
    t->on_write = NULL;
    t->on_checkpoint = NULL;
    quieten(f);
    *f->out = (struct drps_target){.share = o->share,
                                   .rounds = drps_pilot_train_steps(t, &o->plan->info)};
}

/* The first pilot is refused where the run would be: over a model, or checkpoints, that it may not
 * replace. Those that follow know. */
static void go_on(struct drps_train_options *t)
{
    t->resume = 0;
    t->replace = 1;
}

/* ---- A pilot ---- */

static int is_squared(const struct drps_plan_info *info)
{
    return strcmp(info->loss, drps_loss_name(DRPS_LOSS_SQUARED)) == 0;
}

static enum drps_target_measure measure_of(const struct drps_plan_info *info,
                                           const struct drps_epoch *e)
{
    if (is_squared(info)) return e->test.samples ? DRPS_TARGET_TEST_RMSE : DRPS_TARGET_TRAIN_RMSE;
    return e->test.samples ? DRPS_TARGET_TEST_LOSS : DRPS_TARGET_TRAIN_LOSS;
}

/* A squared loss is half the square of the error. */
static double loss_of(enum drps_target_measure measure, const struct drps_epoch *e)
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

static uint64_t bytes_of(const struct drps_train_result *r)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < r->ranks_n; i++)
        for (int k = 0; k < DRPS_TRAFFIC_KINDS; k++)
            sum += r->ranks[i].sent[k].bytes;
    return sum;
}

/* What a pilot came to. Filters may make training diverge, which is an answer, too. */
static int judge(struct finding *f, const struct drps_train_result *r, int rc,
                 struct drps_target_pilot *p, struct drps_err *err)
{
    struct drps_target *t = f->out;
    p->bytes = bytes_of(r);
    p->loss = INFINITY;
    if (rc == -ERANGE && p->rung) {
        drps_err_clear(err);
        return 0;
    }
    if (rc < 0 || t->resumes) return rc;
    if (!r->epochs_n) return drps_err_set(err, -EINVAL, "a pilot has ended without an epoch");
    if (!p->rung) t->measure = measure_of(&f->o->plan->info, r->epochs);
    p->loss = loss_of(t->measure, r->epochs);
    return 0;
}

/* Where in a pilot it was does not matter, nor that one rank had seen it before another. */
static int is_asked_to_stop(const struct finding *f)
{
    const atomic_int *stop = f->train.stop;
    return stop && atomic_load_explicit(stop, memory_order_relaxed); /* only a flag */
}

static int interrupted(struct drps_err *err)
{
    drps_err_clear(err);
    return drps_err_set(err, DRPS_E_INTERRUPTED,
                        "interrupted while filters were tried: nothing is written");
}

static int run_pilot(struct finding *f, unsigned rung, struct drps_err *err)
{
    struct drps_target *t = f->out;
    struct drps_target_pilot *p = &t->pilots[t->pilots_n];
    const struct drps_plan_info *info = &f->o->plan->info;
    struct drps_train_result r;
    const uint64_t start = drps_clock_ns();
    drps_ladder_set(&f->train, rung, info->dim, may_copy(&f->train, info));
    *p = (struct drps_target_pilot){.rung = rung, .filters = f->train};
    int rc = f->o->run(f->o->ctx, &f->train, &r, err);
    t->resumes = rc == 0 && (r.already || r.resumed_epoch);
    rc = judge(f, &r, rc, p, err);
    drps_train_result_free(&r);
    p->seconds = drps_seconds_since(start);
    t->pilots_n += rc == 0 && !t->resumes;
    if (rc == DRPS_E_INTERRUPTED || (rc < 0 && is_asked_to_stop(f))) return interrupted(err);
    return rc;
}

static void tell(const struct finding *f)
{
    if (f->o->on_pilot) f->o->on_pilot(f->o->ctx, f->out);
}

/* ---- The search ---- */

static int search(struct finding *f, struct drps_err *err)
{
    struct drps_target *t = f->out;
    struct drps_ladder_search s =
        drps_ladder_begin(t->pilots[0].loss, t->share, drps_ladder_rungs(f->train.sync));
    unsigned rung;
    while ((rung = drps_ladder_next(&s)) != 0) {
        const int rc = run_pilot(f, rung, err);
        if (rc < 0) return rc;
        struct drps_target_pilot *p = &t->pilots[t->pilots_n - 1];
        p->is_within = drps_ladder_note(&s, rung, p->loss);
        if (p->is_within) t->chosen = t->pilots_n - 1;
        tell(f);
    }
    return 0;
}

int drps_target_find(const struct drps_target_options *options, struct drps_target *out,
                     struct drps_err *err)
{
    struct finding f = {.o = options, .out = out};
    begin(&f);
    int rc = run_pilot(&f, 0, err);
    if (rc < 0 || out->resumes) return rc;
    out->pilots[0].is_within = 1;
    tell(&f);
    go_on(&f.train);
    return search(&f, err);
}

void drps_target_apply(const struct drps_target *t, struct drps_train_options *o)
{
    const struct drps_train_options *filters = &t->pilots[t->chosen].filters;
    if (t->resumes) return;
    o->push = filters->push;
    o->pull = filters->pull;
    o->pull_cached = filters->pull_cached;
}

uint64_t drps_target_bytes(const struct drps_target *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < t->pilots_n; i++)
        sum += t->pilots[i].bytes;
    return sum;
}

double drps_target_seconds(const struct drps_target *t)
{
    double sum = 0;
    for (size_t i = 0; i < t->pilots_n; i++)
        sum += t->pilots[i].seconds;
    return sum;
}
