/* Pilots are run one after another, and compared. */
#include "engine/cluster/target/drps_target.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "engine/cluster/target/drps_ladder.h"
#include "engine/cluster/target/drps_pilot.h"
#include "engine/cluster/target/pilots.h"
#include "index/plan/drps_algorithm.h"

/* One search. */
struct finding {
    const struct drps_target_options *o;
    struct drps_pilots pilots;
    struct drps_target *out;
};

static int may_copy(const struct drps_train_options *o, const struct drps_plan_info *info)
{
    const char *name = o->optimizer ? o->optimizer : drps_algorithm_find(info->algo)->optimizer;
    return !strcmp(name, drps_optim_name(DRPS_OPTIM_SGD)) ||
           !strcmp(name, drps_optim_name(DRPS_OPTIM_ADAGRAD));
}

static void begin(struct finding *f)
{
    const struct drps_target_options *o = f->o;
    const struct drps_train_pilot pilot = {
        .on = 1, .of_filters = 1, .rounds = o->rounds ? o->rounds : DRPS_TARGET_ROUNDS};
    drps_pilots_begin(&f->pilots, o->train, pilot, "filters", o->run, o->ctx);
    *f->out = (struct drps_target){
        .share = o->share, .rounds = drps_pilot_train_steps(&f->pilots.train, &o->plan->info)};
}

/* ---- A pilot ---- */

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
    if (!p->rung) t->measure = drps_pilots_measure(&f->o->plan->info, r->epochs);
    p->loss = drps_pilots_loss(t->measure, r->epochs);
    return 0;
}

static int run_pilot(struct finding *f, unsigned rung, struct drps_err *err)
{
    struct drps_target *t = f->out;
    struct drps_target_pilot *p = &t->pilots[t->pilots_n];
    const struct drps_plan_info *info = &f->o->plan->info;
    struct drps_train_options *train = &f->pilots.train;
    struct drps_train_result r;
    double seconds;
    drps_ladder_set(train, rung, info->dim, may_copy(train, info));
    *p = (struct drps_target_pilot){.rung = rung, .filters = *train};
    int rc = drps_pilots_run(&f->pilots, &r, &seconds, err);
    t->resumes = f->pilots.resumes;
    rc = judge(f, &r, rc, p, err);
    drps_train_result_free(&r);
    p->seconds = seconds;
    t->pilots_n += rc == 0 && !t->resumes;
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
        drps_ladder_begin(t->pilots[0].loss, t->share, drps_ladder_rungs(f->pilots.train.sync));
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
