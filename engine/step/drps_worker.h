/*
 * The worker of a step: one batch's dense copy of the parameters, and the gradients and scores
 * computed on it by a team of threads. With several ranks, the worker of a rank
 * (engine/cluster/rounds.c, engine/cluster/async/async_worker.c) asks servers for parameters and
 * calls this one to compute. Shared inside engine/.
 *
 * A training step of a team of N: rows are pulled in pieces, given out in turn, since the first
 * rows of a batch are the frequent ones that lie in caches; each member computes the gradient of
 * its N-th of the samples into an array of its own; then the arrays are added in the members' order
 * while each pushes the rows it has pulled. The result depends on N, not on timing. Of a
 * quasi-Newton method the parts of a batch do not depend on N, and so the result does not, either.
 */
#ifndef DRPS_ENGINE_STEP_WORKER_H
#define DRPS_ENGINE_STEP_WORKER_H

#include <stddef.h>
#include <stdint.h>

#include "engine/drps_engine.h"
#include "engine/model/drps_model.h"
#include "engine/step/drps_server.h"
#include "engine/step/emulate.h"
#include "engine/step/local_steps.h"
#include "engine/step/team/drps_team.h"
#include "net/drps_shared_buffer.h"

enum { DRPS_WORKER_PARTS = 8 }; /* of a batch, at most, whose gradients are summed apart */

/* What the arrays below must hold. */
struct drps_worker_size {
    size_t samples, rows; /* of the largest batch */
    unsigned members;
    int touches; /* the optimizer needs them */
    int local_steps;
    int sends;     /* gradients go to servers: see drps_worker_renew() */
    int one_array; /* all members share the first array of gradients: a topic model */
    int slopes;    /* those of each sample are kept: of models with several scores */
};

struct drps_worker {
    const struct drps_model *model; /* borrowed: the server's */
    struct drps_team *team;         /* own */
    struct drps_worker_size size;
    char *arena; /* own: all arrays below */
    size_t arena_bytes;
    float *params; /* [rows + 1][dim]: local steps may hold a row twice */
    float *scores; /* [samples][drps_model_score_floats()] */
    float *slopes; /* [samples][outputs] that the last gradient is made of; size.slopes */
    int has_touches;
    float *grads[DRPS_TRAIN_THREADS_MAX];      /* [members] of [rows + 1][dim] */
    uint32_t *touches[DRPS_TRAIN_THREADS_MAX]; /* [members] of [rows + 1]; has_touches */
    struct drps_shared_buffer *sent; /* own: grads[0] and touches[0]; size.sends, once renewed */
    void *scratch[DRPS_TRAIN_THREADS_MAX]; /* [members] */
    double loss[DRPS_TRAIN_THREADS_MAX];   /* [members] sums */
    double part_loss[DRPS_WORKER_PARTS];   /* quasi-Newton: sums */
    struct drps_local local;               /* local steps: on arrays of its own */

    /* The step under way. */
    struct drps_server *server;
    const struct drps_batch *batch;
    struct drps_err why; /* of the first batch whose loss was no finite number, if the loss is a
                            text and says so */
    uint64_t gather_ns, compute_ns; /* by member 0's clock, since the start */
    struct drps_emulate emulate;    /* the caller sets it after the start; zero: none */
};

DRPS_MUST_CHECK
int drps_worker_start(struct drps_worker *worker, struct drps_server *server,
                      const struct drps_worker_size *size, struct drps_err *err);
void drps_worker_stop(struct drps_worker *worker); /* NULL-safe; half-built too */

uint64_t drps_worker_memory(const struct drps_server *server, const struct drps_worker_size *size);

/* One step on the server's open rows. Returns the sum of the losses before it. */
double drps_worker_train(struct drps_worker *worker, const struct drps_batch *batch);

/* Samples [*first_out, *last_out) of the last batch, whose gradient the member has computed; these
 * were added in the members' order. */
void drps_worker_share(const struct drps_worker *worker, unsigned member, size_t *first_out,
                       size_t *last_out);

/* worker->scores[0 .. samples) of the server's open rows. */
void drps_worker_predict(struct drps_worker *worker, const struct drps_batch *batch);

/* Give grads[0] and touches[0] another buffer if messages still read theirs (worker->sent): before
 * the next gradient, where these are sent from where they lie. */
DRPS_MUST_CHECK
int drps_worker_renew(struct drps_worker *worker, struct drps_err *err);

/*
 * Compute the gradient alone, where a network lies between worker and server. The caller has put
 * the batch's parameters into worker->params. Afterwards worker->grads[0] and, if there are any,
 * worker->touches[0] hold the sums over the batch. Returns the sum of the losses.
 */
double drps_worker_gradient(struct drps_worker *worker, const struct drps_batch *batch);

/* The slopes of the batch's losses by its scores at worker->params, to slopes_out
 * [samples][outputs]: of a model of several classes. Returns the sum of the losses. */
double drps_worker_slopes(struct drps_worker *worker, const struct drps_batch *batch,
                          float *slopes_out);

/* worker->scores[0 .. samples) of worker->params. */
void drps_worker_score(struct drps_worker *worker, const struct drps_batch *batch);

/* After a test loss of worker->scores that is no finite number: worker->why, unless it says
 * something already. Returns its new code, 0 if there is nothing new to say. */
int drps_worker_explain(struct drps_worker *worker, const struct drps_batch *batch);

#endif
