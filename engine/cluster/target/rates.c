/* Rates are tried from the usual one on, in the direction in which the loss falls; where training
 * diverges with that one, from the first smaller one with which it does not. */
#include "engine/cluster/target/drps_rates.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/cluster/target/drps_pilot.h"
#include "engine/cluster/target/pilots.h"

static const double STEP = 3, LEAP = 10; /* from a rate to the next; while all diverge */

/* One search. */
struct finding {
    const struct drps_rates_options *o;
    struct drps_pilots pilots;
    struct drps_rates *out;
    size_t first;        /* of the rates tried, with which training does not diverge */
    struct drps_err why; /* what the first that diverged said */
};

const char *drps_rate_text(float lr, char text[DRPS_RATE_BYTES])
{
    (void)snprintf(text, DRPS_RATE_BYTES, "%.2g", (double)lr);
    return text;
}

/* The nearest rate of two digits. */
static float rounded(double rate)
{
    char text[DRPS_RATE_BYTES];
    return strtof(drps_rate_text((float)rate, text), NULL);
}

/* Batches of a pilot: an epoch where more than servers and workers take part in it, as a part of it
 * has no end there. */
static uint64_t rounds_of(const struct drps_rates_options *o)
{
    const struct drps_plan_info *info = &o->plan->info;
    const uint64_t share = info->batches / DRPS_RATES_SHARE;
    if (drps_plan_circulates(info) || (info->lanes && info->grid_users) ||
        o->train->exchange != DRPS_EXCHANGE_SERVERS || info->ranks.handed.slots)
        return 0;
    if (o->rounds) return o->rounds;
    return share > DRPS_RATES_ROUNDS ? share : DRPS_RATES_ROUNDS;
}

/* One pilot. Training that diverges is an answer, too. */
static int try_rate(struct finding *f, float lr, struct drps_err *err)
{
    struct drps_rates *rates = f->out;
    struct drps_rate *tried = &rates->tried[rates->tried_n];
    struct drps_train_result r;
    f->pilots.train.lr = lr;
    *tried = (struct drps_rate){.lr = lr, .loss = INFINITY};
    int rc = drps_pilots_run(&f->pilots, &r, &tried->seconds, err);
    rates->resumes = f->pilots.resumes;
    if (rc == -ERANGE) {
        if (!rates->tried_n && err) f->why = *err;
        drps_err_clear(err);
        rc = 0;
    } else if (rc == 0 && !rates->resumes) {
        rates->measure = drps_pilots_measure(&f->o->plan->info, r.epochs);
        tried->loss = drps_pilots_loss(rates->measure, r.epochs);
    }
    drps_train_result_free(&r);
    if (rc < 0 || rates->resumes) return rc;
    if (tried->loss < rates->tried[rates->chosen].loss) rates->chosen = rates->tried_n;
    rates->tried_n++;
    if (f->o->on_pilot) f->o->on_pilot(f->o->ctx, rates);
    return 0;
}

/* Go on from the first rate, by steps of `factor`, as long as each is better than all before. */
static int climb(struct finding *f, double factor, struct drps_err *err)
{
    struct drps_rates *rates = f->out;
    double rate = (double)rates->tried[f->first].lr;
    int rc = 0;
    do {
        rate *= factor;
        rc = try_rate(f, rounded(rate), err);
    } while (rc == 0 && rates->chosen == rates->tried_n - 1 && rates->tried_n < DRPS_RATES_MOST);
    return rc;
}

/* Go down, from a first rate with which training diverges, to one with which it does not. */
static int descend(struct finding *f, struct drps_err *err)
{
    struct drps_rates *rates = f->out;
    double rate = (double)rates->tried[0].lr;
    int rc = 0;
    while (rc == 0 && !isfinite(rates->tried[rates->chosen].loss) &&
           rates->tried_n <= DRPS_RATES_LEAPS) {
        rate /= LEAP;
        rc = try_rate(f, rounded(rate), err);
    }
    f->first = rates->chosen;
    return rc;
}

/* A loss that is a text may have reasons of its own. */
static int all_diverged(const struct finding *f, struct drps_err *err)
{
    const struct drps_rates *r = f->out;
    if (f->o->plan->info.expression[0])
        return drps_err_set(err, -ERANGE,
                            "training diverges with all learning rates that were tried, %g to %g; "
                            "with the first: %s",
                            (double)r->tried[0].lr, (double)r->tried[r->tried_n - 1].lr,
                            f->why.text);
    return drps_err_set(err, -ERANGE,
                        "training diverges with all learning rates that were tried, down to %g: "
                        "scale the data's values",
                        (double)r->tried[r->tried_n - 1].lr);
}

int drps_rates_find(const struct drps_rates_options *options, struct drps_rates *out,
                    struct drps_err *err)
{
    struct finding f = {.o = options, .out = out};
    const struct drps_train_pilot pilot = {.on = 1, .rounds = rounds_of(options)};
    float usual;
    drps_pilots_begin(&f.pilots, options->train, pilot, "rates", options->run, options->ctx);
    *out = (struct drps_rates){.rounds =
                                   drps_pilot_train_steps(&f.pilots.train, &options->plan->info)};
    int rc = drps_train_rate(options->plan, options->train, &usual, err);
    if (rc == 0) rc = try_rate(&f, rounded((double)usual), err);
    if (rc < 0 || out->resumes) return rc;
    rc = descend(&f, err);
    if (rc < 0) return rc;
    if (!isfinite(out->tried[out->chosen].loss)) return all_diverged(&f, err);
    rc = climb(&f, STEP, err);
    if (rc == 0 && out->chosen == f.first && out->tried_n < DRPS_RATES_MOST)
        rc = climb(&f, 1 / STEP, err);
    return rc;
}
