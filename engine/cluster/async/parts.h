/*
 * The three parts of asynchronous rounds, each in a file and, while an epoch is trained, in a
 * thread of its own; drps_async.h has how they work together. Private to engine/cluster/async/.
 */
#ifndef DRPS_ENGINE_CLUSTER_ASYNC_PARTS_H
#define DRPS_ENGINE_CLUSTER_ASYNC_PARTS_H

#include "engine/cluster/async/drps_async.h"
#include "engine/cluster/drps_messages.h"

/* What all parts know. */
struct async_job {
    struct drps_async_options o;
    uint32_t rank, ranks, dim;
    const struct drps_plan_ranks *shape; /* of the plan */
    uint64_t steps;                      /* training steps of an epoch: batches of each share */
    uint64_t window_steps;               /* agreed */
    int touches;
};

/* What an END carries beside how many batches were executed (its round): the scheduler's counters
 * of the worker that it is sent to. */
struct async_end {
    uint64_t releases, lag_sum, lag_max;
    uint64_t stale_sum, stale_max, stale[DRPS_SCHED_STALE_BINS];
};

/* 1: the server of this rank has rows; else it sends batches of its own worker alone. */
static inline int async_serves(const struct async_job *job)
{
    return drps_rank_serves(job->shape, job->rank);
}

/* Text of a failure that another part of this rank tells itself. */
DRPS_MUST_CHECK
int drps_async_told_failed(struct drps_err *err);

/* Tell a part of this rank that another one has failed. */
void drps_async_tell_failed(const struct async_job *job, enum drps_net_part part);

/*
 * The next message to a part, of any rank; DRPS_E_CLOSED when another part of this rank has failed.
 * A worker without a batch, and a server, may hear nothing for as long as others take: it is the
 * master that notices when no batch is done in time (ASYNC_TURN_MS).
 */
enum { ASYNC_TURN_MS = 24 * 3600 * 1000 };
DRPS_MUST_CHECK
int drps_async_receive(const struct async_job *job, enum drps_net_part part, uint32_t timeout_ms,
                       struct drps_net_message **out, struct drps_err *err);

/* DRPS_E_PROTO: the message was not due. */
DRPS_MUST_CHECK
int drps_async_undue(const struct drps_net_message *m, const char *to, struct drps_err *err);

/* Returns the bytes of a gradient of so many rows between this rank and another. */
uint64_t drps_async_gradient_bytes(const struct async_job *job, uint32_t other, size_t rows);

/* Most rows of a batch that are one server's. */
uint64_t drps_async_part_rows(const struct drps_plan_info *info);

/* ---- The worker, in the calling thread ---- */

struct async_worker; /* opaque */

DRPS_MUST_CHECK
int drps_async_worker_new(const struct async_job *job, struct async_worker **out,
                          struct drps_err *err);
void drps_async_worker_free(struct async_worker *w); /* NULL-safe */
void drps_async_worker_begin(struct async_worker *w);
/* 0; 1: END, all batches are done; 2: END, to stop. */
DRPS_MUST_CHECK
int drps_async_worker_step(struct async_worker *w, struct drps_round *out, struct drps_err *err);
/* Batches that END counts. */
uint64_t drps_async_worker_done(const struct async_worker *w);
/* Values from other ranks; what went to them is added to *sum. */
uint64_t drps_async_worker_received(const struct async_worker *w);
void drps_async_worker_traffic(const struct async_worker *w, struct drps_traffic *sum);
void drps_async_worker_report(const struct async_worker *w, struct drps_train_rank *out);

/* ---- The server ---- */

struct async_server; /* opaque */

DRPS_MUST_CHECK
int drps_async_server_new(const struct async_job *job, struct async_server **out,
                          struct drps_err *err);
void drps_async_server_free(struct async_server *s); /* NULL-safe */
/* Serve an epoch. */
DRPS_MUST_CHECK
int drps_async_server_run(struct async_server *s, struct drps_err *err);
uint64_t drps_async_server_received(const struct async_server *s);
void drps_async_server_traffic(const struct async_server *s, struct drps_traffic *sum);

/* ---- The master, on rank 0 ---- */

struct async_master; /* opaque */

DRPS_MUST_CHECK
int drps_async_master_new(const struct async_job *job, struct async_master **out,
                          struct drps_err *err);
void drps_async_master_free(struct async_master *m); /* NULL-safe */
/* Hand out the batches of an epoch. */
DRPS_MUST_CHECK
int drps_async_master_run(struct async_master *m, struct drps_err *err);

#endif
