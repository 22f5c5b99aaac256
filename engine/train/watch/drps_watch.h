/*
 * The numbers of a training run that others watch while it runs (base/monitor/): what they are, and
 * how they come of a run's counters. docs/metrics.md has the table of all. Where nobody asked for
 * them there is no watch, and every function takes NULL.
 */
#ifndef DRPS_ENGINE_TRAIN_WATCH_H
#define DRPS_ENGINE_TRAIN_WATCH_H

#include "engine/drps_engine.h"
#include "net/drps_net.h"

struct drps_watch; /* opaque */

/* What a run does, as drps_train_phase says it. */
enum drps_watch_phase {
    DRPS_WATCH_PREPARES,
    DRPS_WATCH_TRAINS,
    DRPS_WATCH_EVALUATES,
    DRPS_WATCH_WRITES, /* parameters, and the model */
    DRPS_WATCH_ENDS,   /* nothing any more */
    DRPS_WATCH_PHASES
};

/*
 * Open what options->metrics asks for; *out NULL: nothing. `rank` of `ranks` are the label and what
 * names the places. Nothing is known of the run yet. Errors as drps_monitor_out_open().
 */
DRPS_MUST_CHECK
int drps_watch_open(const struct drps_train_options *options, uint32_t rank, uint32_t ranks,
                    struct drps_watch **out, struct drps_err *err);
void drps_watch_close(struct drps_watch *w); /* the last state is written */

/* The memory is divided, and stores are chosen. */
DRPS_MUST_CHECK
int drps_watch_begin(struct drps_watch *w, const struct drps_train_result *result,
                     struct drps_err *err);

/* Write a file in the folder in which the run works, too, if that is asked for; and leave it,
 * before the folder goes or gets its name. */
DRPS_MUST_CHECK
int drps_watch_enter_folder(struct drps_watch *w, const char *dir, struct drps_err *err);
void drps_watch_leave_folder(struct drps_watch *w);

/* ---- By the thread that trains ---- */

void drps_watch_phase(struct drps_watch *w, enum drps_watch_phase phase);
void drps_watch_progress(struct drps_watch *w, const struct drps_train_progress *p, double lr);
void drps_watch_epoch(struct drps_watch *w, const struct drps_epoch *epoch);

/* Counters as they are now: of the store, the plan's files, phases and checkpoints; and of the net,
 * if `net` is not NULL. */
void drps_watch_counts(struct drps_watch *w, const struct drps_train_result *now,
                       struct drps_net *net);

#endif
