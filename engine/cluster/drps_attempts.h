/*
 * Attempts at the same work, each in a process of its own, until one comes to an end that is worth
 * nothing to try again. What an attempt holds (memory, sockets, locks, threads) ends with its
 * process, however that ends; so the next one begins as the first did, and goes on from the
 * checkpoints on disk.
 */
#ifndef DRPS_ENGINE_CLUSTER_ATTEMPTS_H
#define DRPS_ENGINE_CLUSTER_ATTEMPTS_H

#include <stdatomic.h>

#include "base/drps_err.h"
#include "base/drps_log.h"
#include "engine/drps_engine.h"

struct drps_attempt; /* opaque: of an attempt's process, and shared with the one that watches */

struct drps_attempts_options {
    const char *name; /* of the attempt's process, as messages have it: "rank 0" */
    /* An attempt, in its process; returns its exit status. */
    int (*run)(void *ctx, struct drps_attempt *attempt);
    void *ctx;
    int again;              /* the exit status that asks for another attempt */
    const atomic_int *stop; /* non-zero: there is no other; shared with the attempts' processes */
    const struct drps_log *log;
};

/*
 * Run attempts until one ends with another status than `again`, which becomes *status_out. One that
 * is killed by a signal is tried again, too. After three in a row that end without a checkpoint
 * newer than they began with, *status_out is `again`, and the last one's error is logged. Before
 * there are threads; each process ends with this one, which has no other children. An attempt
 * begins when all processes of the one before have ended.
 */
DRPS_MUST_CHECK
int drps_attempts_run(const struct drps_attempts_options *options, int *status_out,
                      struct drps_err *err);

/* ---- In the attempt's process ---- */

int drps_attempt_is_first(const struct drps_attempt *attempt);

/* 1: an attempt has gone on from a checkpoint, or has written one. */
int drps_attempt_has_checkpoint(const struct drps_attempt *attempt);

/* Where the next attempt will go on: a run's on_checkpoint has said so. */
void drps_attempt_reached(struct drps_attempt *attempt, const struct drps_train_cut *cut);

/* Why it ends with the status `again`. */
void drps_attempt_failed(struct drps_attempt *attempt, const struct drps_err *why);

#endif
