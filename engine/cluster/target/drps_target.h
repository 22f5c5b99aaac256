/*
 * Filters that are chosen by how far quality may change. What a run without filters would reach
 * is not known while one with filters trains; so pilots find out before: runs of a bounded number
 * of rounds, which leave nothing behind, once without filters and then with some of a ladder of
 * settings (drps_ladder.h), by bisection.
 *
 * Under bsp the choice depends on plan, options and share alone.
 */
#ifndef DRPS_ENGINE_CLUSTER_TARGET_TARGET_H
#define DRPS_ENGINE_CLUSTER_TARGET_TARGET_H

#include "engine/drps_engine.h"

/* Trains with these options, as drps_train_run() does: all ranks here, or one of them. */
typedef int drps_target_run(void *ctx, const struct drps_train_options *options,
                            struct drps_train_result *result, struct drps_err *err);

/* What is compared. */
enum drps_target_measure {
    DRPS_TARGET_TEST_LOSS,  /* the mean loss of held-out samples, after an epoch */
    DRPS_TARGET_TEST_RMSE,  /* of a squared loss: its root mean square error there */
    DRPS_TARGET_TRAIN_LOSS, /* of training samples, each before the step that used it: there are no
                               held-out samples, or the pilots end within the epoch */
    DRPS_TARGET_TRAIN_RMSE,
};

struct drps_target_pilot {
    struct drps_train_options filters; /* of which push, pull and pull_cached count */
    unsigned rung;                     /* of the ladder; 0: none are on */
    double loss;                       /* infinite: training diverged */
    int is_within;
    uint64_t bytes; /* that ranks sent to each other, evaluation included */
    double seconds;
};

enum { DRPS_TARGET_PILOTS_MOST = 5, DRPS_TARGET_ROUNDS = 1000 };

struct drps_target {
    double share;
    uint64_t rounds; /* of each pilot */
    enum drps_target_measure measure;
    struct drps_target_pilot pilots[DRPS_TARGET_PILOTS_MOST]; /* the first is without filters */
    size_t pilots_n;
    size_t chosen; /* 0: no filters are good enough */
    int resumes;   /* 1: nothing was tried, as the run goes on from a checkpoint, or is done */
};

struct drps_target_options {
    const struct drps_train_options *train; /* of the run that is to follow, without filters */
    const struct drps_plan *plan;           /* any part of it, or the whole */
    double share;    /* of the plain loss by which filters may change it; above 0, at most 1 */
    uint64_t rounds; /* of a pilot at most; 0: DRPS_TARGET_ROUNDS */
    drps_target_run *run;
    void (*on_pilot)(void *ctx, const struct drps_target *target); /* one more is done. May be NULL
                                                                    */
    void *ctx;                                                     /* of both */
};

/*
 * Run the pilots and choose. Of several machines each rank does so: they see the same losses.
 * Returns 0 or what a pilot failed with, DRPS_E_INTERRUPTED and -ERANGE of the one without filters
 * included.
 */
DRPS_MUST_CHECK
int drps_target_find(const struct drps_target_options *options, struct drps_target *out,
                     struct drps_err *err);

/* Give *o the filters that were chosen. */
void drps_target_apply(const struct drps_target *t, struct drps_train_options *o);

/* Returns the bytes and seconds of all pilots. */
uint64_t drps_target_bytes(const struct drps_target *t);
double drps_target_seconds(const struct drps_target *t);

#endif
