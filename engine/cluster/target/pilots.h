/* What searches by pilots have in common: the options of a pilot, and how one is run. Private to
 * engine/cluster/target/. */
#ifndef DRPS_ENGINE_CLUSTER_TARGET_PILOTS_H
#define DRPS_ENGINE_CLUSTER_TARGET_PILOTS_H

#include "engine/cluster/target/drps_target.h"

struct drps_pilots {
    struct drps_train_options train; /* of the next pilot */
    struct drps_log log;             /* what every run says is said by the one that follows */
    drps_target_run *run;            /* borrowed, as is ctx */
    void *ctx;
    const char *what; /* is tried, for the message of an interruption */
    int resumes;      /* 1: a pilot had nothing to try, as the run goes on, or is done */
};

/* Pilots of a run with these options. */
void drps_pilots_begin(struct drps_pilots *p, const struct drps_train_options *train,
                       struct drps_train_pilot pilot, const char *what, drps_target_run *run,
                       void *ctx);

/* Run one: *r is filled as drps_train_run() does, and *seconds_out, also on errors. Sets
 * p->resumes. DRPS_E_INTERRUPTED: the user asked to stop. */
DRPS_MUST_CHECK
int drps_pilots_run(struct drps_pilots *p, struct drps_train_result *r, double *seconds_out,
                    struct drps_err *err);

/* What a pilot is judged by, as its epoch has it, and the loss, or error, of that. */
enum drps_target_measure drps_pilots_measure(const struct drps_plan_info *info,
                                             const struct drps_epoch *e);
double drps_pilots_loss(enum drps_target_measure measure, const struct drps_epoch *e);

#endif
