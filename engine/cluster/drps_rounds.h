/*
 * Rounds: a step of several ranks, each with a worker and a server (bulk synchronous parallel). A
 * rank without rows has no server, and the worker of one without samples has batches of none.
 *
 *   server s, thread of its own                     worker i, the calling thread
 *     open the round's rows
 *     parameters of (i, t, s)   ------------->        put together: parts of servers 0, 1, ...
 *     open the next round's rows
 *     those not changed now     - - - - - - ->        gradient on the dense array
 *     add in the order of ranks  <-------------       gradient of the part of each server
 *     step once, close the rows
 *
 * Both sides know from the plan which rows a message holds: it has values alone. Sums are made in
 * the order of ranks, so that the result does not depend on timing.
 *
 * Ending: with its gradients a worker says whether its rank wants to stop, or to pause. Every
 * server hears it from all workers and answers all of them in place of the next parameters; so all
 * ranks end before the same round, the next but one: of the next, some parameters are on their way.
 * After a pause they go on with that round. Where one half of a
 * rank fails it tells the other by a message, and closing the net tells the others.
 *
 * Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_ROUNDS_H
#define DRPS_ENGINE_CLUSTER_ROUNDS_H

#include "engine/cluster/filters/drps_push.h"
#include "engine/cluster/outer/drps_outer.h"
#include "engine/cluster/handed/drps_handing.h"
#include "engine/cluster/handed/drps_lending.h"
#include "engine/cluster/published/drps_pull.h"
#include "engine/drps_engine.h"
#include "engine/step/drps_feed.h"
#include "engine/step/drps_server.h"
#include "engine/step/drps_worker.h"
#include "net/drps_net.h"

struct drps_rounds; /* opaque */

struct drps_rounds_options {
    const struct drps_plan *plan; /* the rank's part */
    struct drps_net *net;
    struct drps_feed *feed;                 /* started */
    struct drps_server *server;             /* its store is open */
    struct drps_worker *worker;             /* started */
    const struct drps_train_options *train; /* stop, on_batch */
    uint32_t wait_ms;                       /* for a message that is due */
    int ahead; /* 1: servers send what the next round uses and this one does not change; the store
                  keeps two steps open */
    int fresh; /* 1: all rows are fresh when the first round begins, and servers do not send those
                  that nobody has trained */
    int slots; /* 1: unions list slots */
    struct drps_push *push; /* gradients for other ranks are filtered so, and ranks stop between
                               epochs alone; NULL: they are not */
    struct drps_pull *pull; /* the same of parameters */
    struct drps_handing *handing; /* rows stay with workers that alone use them, and ranks stop
                                     between epochs alone; NULL: they do not */
    struct drps_lending *lending; /* with it, if the rank has rows */
    int sums; /* 1: every rank has a copy of the rows that all batches have, and ranks add up their
                 gradients: drps_rounds_sums_common() */
    const struct drps_outer_choice *vectors; /* with it: layers whose gradients go as vectors;
                                               NULL: none */
};

/* Everything in options is borrowed until close. */
DRPS_MUST_CHECK
int drps_rounds_open(const struct drps_rounds_options *options, struct drps_rounds **rounds_out,
                     struct drps_err *err);
void drps_rounds_close(struct drps_rounds *rounds); /* NULL-safe; between epochs */

/* Returns the memory of rounds: arrays, and messages that are under way. */
uint64_t drps_rounds_memory(const struct drps_plan_info *info, int touches);

/*
 * Returns 1 if ranks add up the gradients of common rows: of a net, where the options leave that to
 * the plan and it costs less than to send parameters and gradients from and to the server of these
 * rows, or where they ask for it. Then it returns the same on all ranks.
 */
int drps_rounds_sums_common(const struct drps_plan_info *info,
                            const struct drps_train_options *train);

/* Which layers' gradients go as vectors then (engine/cluster/outer/drps_outer.h): none where
 * ranks do not add up, or the options ask for sums alone. The same on all ranks. */
void drps_rounds_vectors(const struct drps_plan_info *info, const struct drps_train_options *train,
                         struct drps_outer_choice *out);

/* Returns why ranks cannot; NULL: they can. */
const char *drps_rounds_no_sums(const struct drps_plan_info *info,
                                const struct drps_train_options *train);

/* Returns the memory that it takes besides. */
uint64_t drps_rounds_common_memory(const struct drps_plan_info *info, size_t row_bytes);
/* The same of vectors; of no layers 0. */
uint64_t drps_rounds_vectors_memory(const struct drps_plan_info *info,
                                    const struct drps_outer_choice *vectors, unsigned members);

/* Returns the bytes of the largest messages to worker and server. */
uint64_t drps_rounds_worker_bytes(const struct drps_plan_info *info);
uint64_t drps_rounds_server_bytes(const struct drps_plan_info *info);

/*
 * The server's thread begins an epoch, at its round `first`: the feed's next one, and after a pause
 * the one that was paused before. End waits for the thread. After a failure of the worker, end
 * makes it stop. `rc`, `err`: how the worker's rounds went; returns what the epoch came to.
 */
DRPS_MUST_CHECK
int drps_rounds_begin(struct drps_rounds *rounds, uint64_t first, struct drps_err *err);
DRPS_MUST_CHECK
int drps_rounds_end(struct drps_rounds *rounds, int rc, struct drps_err *err);

/* A round of the worker. */
struct drps_round {
    const struct drps_batch *batch; /* valid until the next round */
    double loss;      /* sum over the samples of a training round; of an evaluation round
                         worker->scores are theirs */
    uint64_t plan_ns; /* waiting for the batch */
    uint64_t wait_ns; /* waiting for parameters, and putting them together */
    uint64_t compute_ns;
};

/* The worker's part of the next round. Returns 0, or 1 when all ranks end before it: they stop, or
 * pause. */
DRPS_MUST_CHECK
int drps_rounds_work(struct drps_rounds *rounds, struct drps_round *out, struct drps_err *err);

/* The worker, between two rounds: all ranks shall end after the next two, or, where this one has no
 * samples, three, unless the epoch is over before. One rank's call is enough. */
void drps_rounds_pause(struct drps_rounds *rounds);

/* After work has returned 1. Returns 1 if some rank wants to stop, 0 if it is a pause alone. */
int drps_rounds_stopped(const struct drps_rounds *rounds);

/* Returns the clock when this rank's server had stepped its rows in the last training round, or,
 * without a server, when its worker had sent its gradient; after end. */
uint64_t drps_rounds_trained_ns(const struct drps_rounds *rounds);

/* Parameters and gradients, to and from other ranks, and of these the marks that say which
 * parameters were sent ahead. */
struct drps_rounds_bytes {
    uint64_t sent, received;
    uint64_t sent_marks, received_marks;
};
/* What was sent and received so far; between epochs. */
void drps_rounds_bytes(const struct drps_rounds *rounds, struct drps_rounds_bytes *out);

/* Between epochs: add what was sent so far to *sum, by kind and by receiver. */
struct drps_traffic;
void drps_rounds_traffic(const struct drps_rounds *rounds, struct drps_traffic *sum);

/* Where the time went so far: of all rounds, and of those of training alone. */
struct drps_rounds_times {
    uint64_t network_ns;   /* the worker waited for parameters, less the next */
    uint64_t store_ns;     /* the server waited for its store, and the worker for the server */
    uint64_t compute_ns;   /* training: gradients, */
    uint64_t reduce_ns;    /* from a gradient that is sent until the server has stepped its rows, */
    uint64_t broadcast_ns; /* and from then on until the next parameters are there */
};
/* Between epochs. */
void drps_rounds_times(const struct drps_rounds *rounds, struct drps_rounds_times *out);

/* Rows whose parameters were left out of messages so far, as nobody had trained them. */
struct drps_rounds_fresh {
    uint64_t left_out;                    /* by the server of this rank */
    uint64_t made[DRPS_PLAN_WORKERS_MAX]; /* by the server of each, for the worker of this one */
};
/* Between epochs. */
void drps_rounds_fresh(const struct drps_rounds *rounds, struct drps_rounds_fresh *out);

/* What the plan says of the bytes, without marks, for so many whole epochs, were all rows sent. */
void drps_rounds_forecast(const struct drps_plan_info *info, int touches, uint64_t epochs,
                          struct drps_rounds_bytes *out);

/* Returns how many sums of all documents each rank has: of a topic model; else 0. */
size_t drps_rounds_sums_n(const struct drps_plan_info *info);

/* Add the bytes of what ranks add to them in so many whole epochs, which go to the next rank. */
void drps_rounds_forecast_sums(const struct drps_plan_info *info, uint64_t epochs,
                               struct drps_rounds_bytes *out);

/* What the plan does not say of common rows, counted where ranks add up their gradients: batches so
 * far without any row, which have no common rows either, of this rank, and of all others together,
 * [1] of training, [0] of evaluation; and bytes of vectors, to each other rank, and of all of them.
 * Between epochs. */
struct drps_rounds_seen {
    uint64_t own_empty[2], others_empty[2];
    struct drps_outer_bytes vectors;
};
struct drps_rounds_seen drps_rounds_seen(const struct drps_rounds *rounds);

/* Correct that by the common rows, where ranks add up their gradients, but for those of `vectors`.
 * `seen`: NULL before training, as if all batches had rows and no vector had zeros; else vectors
 * count as they were sent. The links' numbers, to [ranks] and from [ranks], are what this rank's
 * worker sends each other rank, and what the server of that one sends it; after training. */
void drps_rounds_forecast_common(const struct drps_plan_info *info, int touches, uint64_t row_bytes,
                                 uint64_t epochs, const struct drps_outer_choice *vectors,
                                 const struct drps_rounds_seen *seen,
                                 struct drps_rounds_bytes *out);
void drps_rounds_forecast_links(const struct drps_rounds *rounds, uint64_t epochs, uint64_t *to,
                                uint64_t *from);

/* Correct that by the rows that are handed on, of row_bytes each with their state. */
void drps_rounds_forecast_handed(const struct drps_plan_info *info, int touches, uint64_t row_bytes,
                                 uint64_t epochs, struct drps_rounds_bytes *out);

#endif
