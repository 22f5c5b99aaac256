/*
 * The steps of an epoch, over parts that the caller opened and closes. Private to engine/train/.
 */
#ifndef DRPS_ENGINE_TRAIN_EPOCH_H
#define DRPS_ENGINE_TRAIN_EPOCH_H

#include <stdint.h>

#include "engine/checkpoint/drps_state.h"
#include "engine/cluster/async/drps_async.h"
#include "engine/cluster/drps_circulation.h"
#include "engine/cluster/drps_cluster.h"
#include "engine/cluster/drps_rounds.h"
#include "engine/cluster/sv/drps_exchange.h"
#include "engine/drps_engine.h"
#include "engine/step/drps_batch_cache.h"
#include "engine/step/drps_feed.h"
#include "engine/step/drps_server.h"
#include "engine/step/drps_stratum.h"
#include "engine/step/device/drps_device_worker.h"
#include "engine/step/drps_worker.h"

/* One for all epochs of a run: the times add up. Everything it points to is borrowed. */
struct drps_epoch_loop {
    const struct drps_train_options *options; /* epochs, stop, on_progress, ctx */
    const struct drps_plan_info *info;        /* of the plan */
    struct drps_feed *feed;                   /* started */
    struct drps_batch_cache *batch_cache; /* of the feed's batches; NULL: they are decoded anew */
    struct drps_server *server;           /* its store is open */
    struct drps_worker *worker;           /* started */
    struct drps_device_worker *device;    /* computes in place of the worker; NULL: it does */
    struct drps_metrics *metrics;         /* NULL without evaluation steps */
    struct drps_stratum *stratum;         /* trains several steps at a time; NULL: one by one */
    struct drps_rounds *rounds;           /* several ranks; NULL: the steps are this process's */
    struct drps_circulation *circulation; /* several ranks, between which rows circulate; or NULL */
    int whole_epochs;                     /* 1: several ranks stop between epochs alone */
    struct drps_async *async;             /* trains the steps; NULL: rounds do */
    struct drps_exchanging *exchange;     /* trains them; NULL: rounds do */
    const struct drps_cluster *cluster;   /* several ranks; NULL: one */
    uint64_t train_steps, eval_steps;     /* of an epoch */

    /* Called between two steps, once so many training steps of the epoch are done or the clock is
     * past that time, with what is done; of several ranks by all of them before the same round, at
     * the first that comes to it. It sets the next step and time; its own time does not count.
     * NULL: never. An error ends the epoch. */
    int (*pause)(void *ctx, uint64_t epoch, const struct drps_epoch_part *done,
                 struct drps_err *err);
    void *pause_ctx;
    /* Where vectors are logged: called after each training round, or step of one process, with what
     * is done, as by pause(), whose ctx it gets. Returns 1, on all ranks, where a pause is due now;
     * no other is. NULL: never. */
    int (*end_round)(void *ctx, uint64_t epoch, const struct drps_epoch_part *done,
                     struct drps_err *err);
    uint64_t pause_step, pause_ns; /* UINT64_MAX: none */
    /* Called like on_progress, and when an epoch is done, with pause_ctx; NULL: never. */
    void (*watch)(void *ctx, const struct drps_train_progress *progress);

    uint64_t plan_ns, wait_ns, step_ns, evaluate_ns,
        hand_ns;                    /* time by phase, beside the worker's */
    uint64_t stopped_at;            /* steps done of the epoch that was stopped */
    struct drps_epoch_part stopped; /* the same, for a checkpoint */
    uint64_t progress_ns;           /* when progress was last told */
    uint64_t first_ns;              /* when the first step was done; 0: none is */
};

/*
 * Train and evaluate one epoch (number `epoch`, from 1) into *out, from where `begin` says on: the
 * feed is there, too. DRPS_E_INTERRUPTED with loop->stopped set when the user stopped it between
 * two steps; -ERANGE when the loss is no number.
 */
DRPS_MUST_CHECK
int drps_epoch_run(struct drps_epoch_loop *loop, uint64_t epoch,
                   const struct drps_epoch_part *begin, struct drps_epoch *out,
                   struct drps_err *err);

#endif
