/*
 * Asynchronous rounds: the training batches of an epoch without a barrier between them. A worker
 * starts its next batch when the scheduler says so (ASP, SSP, WSP: sched/drps_sched.h), and which
 * batch that is is decided apart from it (sched/drps_claim.h). A server steps its rows with each
 * gradient as it comes: the gradient of one batch, computed on parameters that others may have
 * stepped meanwhile.
 *
 *   master, on rank 0          worker                              server
 *     GO (share, step)  ------>
 *                                PULL (share, step)  ------------->  open steps up to this one
 *                                RECORD of another's share  <------  (the server of its rank)
 *                                parameters  <---------------------  gather its rows
 *                                gradient  ----------------------->  step its rows
 *                       <------  ARRIVE                              all shares are in: close the
 *     END  ------------------->                                      step
 *          ------------------------------------------------------->  all batches are in: the end
 *
 * Ahead. While a worker computes a batch of its own share, parameters of the share's next one are
 * on their way: it will be this worker's next batch, unless another worker claims it.
 *
 *   master                     worker                              server
 *     GO (share, step, flags) ->
 *                                ... parameters are here
 *                                AHEAD (share, step + 1)  -------->  as a PULL, at once:
 *                                computes          <---------------  rows that step does not have
 *                                gradient of step  --------------->  step them
 *                       <------  ARRIVE            <---------------  the rest of the rows
 *
 * What is handed out to whom does not depend on it. The answer is used if the next GO names that
 * batch and comes in answer to the worker's own arrival. A worker that has waited in between, for
 * others or for a batch, was to have what they did meanwhile: the GO says so, and it pulls anew.
 * It does not ask ahead during such a batch, since who waits once often waits again. A batch that
 * another worker has executed is answered without rows; and before an epoch ends every AHEAD is
 * answered, so that none is left when evaluation begins.
 *
 * What parameters contain. In all modes, the gradients of the worker's own batches, each of them:
 * rows that the batch before changes come when they are changed. With ssp and bound s, those that a
 * batch of label t is computed with contain the gradients of all workers' batches of labels up to
 * t - s - 1:
 *   - a GO has needs, so many gradients of each worker, that the pull tells every server, which
 *     waits for them: between messages of two ranks there is no order;
 *   - a worker may ask ahead for label t + 1 when the scheduler would release it for that label
 *     (drps_sched_has_slack()); the GO's needs are then those of t + 1.
 * With asp no more is promised, with wsp what its waits are for.
 *
 * Evaluation rounds stay synchronous (engine/cluster/drps_rounds.h): a barrier ends the training of
 * an epoch.
 *
 * Windows. Batches are handed out from two windows of `window_steps` steps, and a server has the
 * steps of two open. It opens steps in order, so a pull may have to wait until an earlier step is
 * complete. Nobody waits for ever: batches of window v are handed out once all batches of window
 * v - 2 are executed, so their gradients are on their way; the lowest step that is not complete is
 * open or can be opened next, and any step that is handed out lies less than two windows above it,
 * which every store has room for (drps_windows_spread() for the relay store). So a pull waits for
 * messages alone, never for a worker that is to be released.
 *
 * A store whose own thread opens what a step needs (relay) is not waited for either: the pull is
 * put aside until that thread has sent OPENED, and the server goes on with the steps that are open.
 *
 * Replicas. Where each rank has all rows nobody opens steps, and windows are those of claims alone:
 *
 *   master, on rank 0          worker                              the server's part of a rank
 *     GO (share, step)  ------>
 *                                PULL (share, step)  ------------->  of the rank that the share is
 * of RECORD, own ones too  <----------- vectors  ------------------------>  of all others: step the
 * replica
 *                       <------  ARRIVE
 *     END  ------------------->
 *                                END, so many vectors  ----------->  of all: when it has all, the
 * end
 *
 * When all ranks have ended replicas become their average (engine/cluster/sv/apart.c). What
 * parameters contain are the worker's own batches, and what has come; with wsp, what its waits are
 * for.
 *
 * Ending: with its arrival a worker says whether its rank wants to stop. The master then hands out
 * no more batches, waits for those that are out, and tells all ranks how many there were. Where one
 * part of a rank fails it tells the others by a message, and closing the net tells the other ranks.
 *
 * Source of the modes and of the two counters: docs/scheduler.md. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_ASYNC_ASYNC_H
#define DRPS_ENGINE_CLUSTER_ASYNC_ASYNC_H

#include "engine/cluster/drps_rounds.h"
#include "engine/cluster/filters/drps_slot_reader.h"
#include "engine/cluster/traffic/drps_traffic.h"
#include "engine/drps_engine.h"
#include "engine/step/drps_feed.h"
#include "engine/step/drps_server.h"
#include "engine/step/drps_worker.h"
#include "net/drps_net.h"

enum { DRPS_ASYNC_WINDOW_STEPS = 16 };

struct drps_async; /* opaque */
struct drps_exchanging;

struct drps_async_options {
    const struct drps_plan *plan; /* the rank's part */
    struct drps_net *net;
    struct drps_feed *feed;                 /* started */
    struct drps_server *server;             /* its store is open, for 2 * window_steps open steps */
    struct drps_worker *worker;             /* started */
    const struct drps_train_options *train; /* sync, staleness, no_claim, stop, on_batch */
    uint64_t window_steps;  /* that this rank has room for, at least 1; the least of all ranks is
                               taken */
    int ahead;              /* 1: workers pull ahead, if all ranks say so */
    uint32_t wait_ms;       /* for a message that is due */
    struct drps_push *push; /* gradients for other ranks are filtered so, and ranks stop between
                               epochs alone; NULL: they are not */
    struct drps_exchanging *exchange; /* each rank has all rows: workers exchange vectors, nobody
                                         serves rows, and ranks stop between epochs alone; NULL:
                                         servers have them */
    int half;                         /* 1: parameters go to other ranks as float16 */
    int cached;                       /* 1: ssp, sgd or adagrad: workers keep copies of rows */
    int fresh; /* 1: all rows are fresh when the first epoch begins, and servers do not send those
                  that nobody has trained; not with half or cached */
    int slots; /* 1: unions list slots */
    struct drps_slot_range batches; /* of the run: what copies are kept for */
};

/* Whom this rank's store tells that it has opened what a step needs: the rank's server. */
struct drps_async_listener {
    struct drps_net *net;
    uint32_t wait_ms; /* as in the options; a queue has room for all that a rank sends its own
                         server, so that the store's thread waits only where that has failed */
};
void drps_async_opened(void *listener); /* the store's opened() */

/* Called by all ranks together. Everything in options is borrowed until close. */
DRPS_MUST_CHECK
int drps_async_open(const struct drps_async_options *options, struct drps_async **async_out,
                    struct drps_err *err);
void drps_async_close(struct drps_async *async); /* NULL-safe; between epochs */

/* Returns the bytes that asynchronous rounds with windows of so many steps take beside rounds. */
uint64_t drps_async_memory(const struct drps_plan_info *info, uint64_t window_steps);

/* Returns the bytes that they take more when workers pull ahead. */
uint64_t drps_async_ahead_memory(const struct drps_plan_info *info);

/* Returns the bytes that they take more when gradients are filtered, beside drps_push_memory(). */
uint64_t drps_async_filters_memory(const struct drps_plan_info *info, int touches,
                                   uint64_t window_steps);

/* Returns the bytes that they take more when workers keep copies of rows, with such a bound. */
uint64_t drps_async_cache_memory(const struct drps_plan_info *info, uint64_t bound);

/* 1: workers pull ahead, as agreed. */
int drps_async_is_ahead(const struct drps_async *async);

/*
 * The training of an epoch: begin starts the threads of server and master; end waits for them, and
 * then for all ranks. `rc`, `err`: how the worker's batches went. end returns what the epoch came
 * to: 0; 1: all ranks have stopped; or the first failure of this rank.
 */
DRPS_MUST_CHECK
int drps_async_begin(struct drps_async *async, struct drps_err *err);
DRPS_MUST_CHECK
int drps_async_end(struct drps_async *async, int rc, struct drps_err *err);

/* The worker's next batch; wait_ns of the round counts waiting for the scheduler, too. Returns 0,
 * or 1 when there are no more. */
DRPS_MUST_CHECK
int drps_async_work(struct drps_async *async, struct drps_round *out, struct drps_err *err);

/* Returns how many steps a window has, as agreed. */
uint64_t drps_async_window_steps(const struct drps_async *async);

/* Batches of the epoch that all ranks together have executed; after end. */
uint64_t drps_async_done(const struct drps_async *async);

/* Between epochs: parameters and gradients, to and from other ranks. */
void drps_async_bytes(const struct drps_async *async, struct drps_rounds_bytes *out);

/* Between epochs: add what was sent so far to *sum, by kind and by receiver. */
void drps_async_traffic(const struct drps_async *async, struct drps_traffic *sum);

/* How this rank's worker fared so far: the fields of struct drps_train_rank that are of
 * asynchronous rounds. Between epochs. */
void drps_async_report(const struct drps_async *async, struct drps_train_rank *out);

#endif
