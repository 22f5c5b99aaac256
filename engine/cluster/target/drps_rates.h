/*
 * A learning rate that is chosen by pilots (drps_target.h): of a share of the batches, with the
 * usual rate first, then with one three times as large and one a third of it, and on from the
 * better one as long as that makes the loss smaller. Where training diverges with the usual rate,
 * tenths of it are tried until one does not, and the search goes on from there. A pilot sees the
 * beginning of training alone: for many epochs a smaller rate, or one that decays, may end lower.
 *
 * Under bsp the choice depends on plan and options alone.
 */
#ifndef DRPS_ENGINE_CLUSTER_TARGET_RATES_H
#define DRPS_ENGINE_CLUSTER_TARGET_RATES_H

#include "engine/cluster/target/drps_target.h"

/* A pilot has this share of the training batches, but not fewer than so many. */
enum {
    DRPS_RATES_MOST = 14,
    DRPS_RATES_LEAPS = 8, /* tenths of the usual rate, at most */
    DRPS_RATES_ROUNDS = 1000,
    DRPS_RATES_SHARE = 20 /* 1 / share */
};

struct drps_rate {
    float lr;    /* of two digits: as text it is the same number */
    double loss; /* infinite: training diverged */
    double seconds;
};

struct drps_rates {
    uint64_t rounds; /* of each pilot */
    enum drps_target_measure measure;
    struct drps_rate tried[DRPS_RATES_MOST]; /* the first is the usual rate */
    size_t tried_n;
    size_t chosen;
    int resumes; /* 1: nothing was tried, as the run goes on from a checkpoint, or is done */
};

struct drps_rates_options {
    const struct drps_train_options *train; /* of the run that is to follow */
    const struct drps_plan *plan;           /* any part of it, or the whole */
    uint64_t rounds;                        /* of a pilot at most; 0: as above */
    drps_target_run *run;
    void (*on_pilot)(void *ctx, const struct drps_rates *rates); /* one more is done. May be NULL */
    void *ctx;                                                   /* of both */
};

/* Run the pilots and choose. Of several machines each rank does so: they see the same losses.
 * Returns 0 or what a pilot failed with, DRPS_E_INTERRUPTED included; -ERANGE: training diverged
 * with all rates, and why if the loss is a text; DRPS_E_CONFIG: the optimizer has no rate. */
DRPS_MUST_CHECK
int drps_rates_find(const struct drps_rates_options *options, struct drps_rates *out,
                    struct drps_err *err);

/* Write a rate as an option takes it: what is read from it again is the same number. */
enum { DRPS_RATE_BYTES = 32 };
const char *drps_rate_text(float lr, char text[DRPS_RATE_BYTES]);

#endif
