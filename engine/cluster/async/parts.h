/*
 * The three parts of asynchronous rounds, each in a file and, while an epoch is trained, in a
 * thread of its own; drps_async.h has how they work together. Private to engine/cluster/async/.
 */
#ifndef DRPS_ENGINE_CLUSTER_ASYNC_PARTS_H
#define DRPS_ENGINE_CLUSTER_ASYNC_PARTS_H

#include "engine/cluster/async/drps_async.h"
#include "engine/cluster/drps_messages.h"
#include "engine/cluster/filters/drps_held.h"
#include "engine/cluster/drps_fresh.h"

/* What all parts know. */
struct async_job {
    struct drps_async_options o;
    uint32_t rank, ranks, dim;
    const struct drps_plan_ranks *shape; /* of the plan; where each rank has all rows: without
                                            servers */
    uint64_t steps;                      /* training steps of an epoch: batches of each share */
    uint64_t window_steps;               /* agreed */
    int ahead;                           /* agreed; 1: workers pull ahead */
    int has_needs;                       /* 1: ssp: a pull says what its parameters must contain, */
    uint64_t bound;                      /* as this bound has it */
    int touches;
    int half;    /* 1: parameters go to other ranks as float16 */
    int cached;  /* 1: workers keep copies of rows */
    int filters; /* 1: workers filter the gradients of their own shares' batches with o.push */
};

/* The tag of a GO: the share, and what else it says. */
enum {
    ASYNC_GO_SHARE = 0xffff,
    ASYNC_GO_AHEAD = 1 << 16, /* what the batch after this one needs is asked for meanwhile */
    ASYNC_GO_ANEW = 1 << 17,  /* what was asked for ahead is not to be used */
};

/* A flag in the tag of PARAMETERS, beside the share, and of AHEAD: rows that nobody has trained are
 * left out, as engine/cluster/drps_fresh.h has them. In AHEAD this follows the marks, and the
 * message ends with how many bytes there are before the values (u64). */
enum { ASYNC_FRESH = 1 << 17 };

/* The scheduler's configuration. */
struct drps_sched_config drps_async_sched(const struct drps_train_options *train, uint32_t workers);

/* Returns the bytes of needs, in a GO, a PULL and an AHEAD to a server: of gradients of the epoch.
 */
static inline size_t drps_async_needs_bytes(const struct async_job *job)
{
    return job->has_needs ? drps_message_needs_bytes(job->shape->workers) : 0;
}

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

/* ---- Parameters on their way to another rank (async_values.c) ---- */

static inline size_t async_row_bytes(const struct async_job *job)
{
    return job->dim * (job->half ? sizeof(uint16_t) : sizeof(float));
}

/* Write the parameters of all rows to `out`, aligned, with room for float32; returns their bytes.
 */
size_t drps_async_write_rows(const struct async_job *job, const struct drps_rows *rows, void *out);

/* Read so many rows to out [rows][dim] of float32; neither need be aligned. */
void drps_async_read_rows(const struct async_job *job, const void *data, size_t rows, void *out);

/* ---- What a worker has asked for ahead: a batch of its own share (async_ahead.c) ---- */

/* The tag of an answer: the share, and more: the rest of the rows comes with a second message. */
enum { ASYNC_AHEAD_MORE = 1 << 16 };

/* Returns the bytes of the bits that say which of so many rows a message has. */
static inline size_t drps_async_mark_bytes(size_t rows)
{
    return (rows + 63) / 64 * sizeof(uint64_t);
}

struct async_ahead {
    uint64_t step;
    uint32_t due; /* servers with rows of which an answer, or the rest of one, is due */
    int wanted;   /* 0: what they answer is dropped */
    enum { ASYNC_ANSWER_DUE, ASYNC_REST_DUE, ASYNC_ANSWERED } of[DRPS_PLAN_WORKERS_MAX];
    struct drps_net_message *from[DRPS_PLAN_WORKERS_MAX]; /* own: answers, by server, */
    struct drps_net_message *rest[DRPS_PLAN_WORKERS_MAX]; /* and their rests */
    uint64_t received; /* bytes of values of other ranks, wanted or not, so far */
};

/* Asks all servers that have rows for a batch; nothing is due, and nothing kept. needs [workers] if
 * job->has_needs. */
DRPS_MUST_CHECK
int drps_async_ahead_ask(struct async_ahead *a, const struct async_job *job, uint64_t step,
                         const uint64_t *needs, struct drps_err *err);

/* Takes a message to the worker that is an answer, and due: 1, and it is not the caller's any more;
 * else 0. */
int drps_async_ahead_take(struct async_ahead *a, const struct async_job *job,
                          struct drps_net_message *m);

/* Returns the bytes of the answers of other ranks that are here. */
uint64_t drps_async_ahead_bytes(const struct async_ahead *a, const struct async_job *job);

/* Puts the rows that a server has answered with to where they belong: [rows][dim]. DRPS_E_PROTO:
 * they are not so many. */
DRPS_MUST_CHECK
int drps_async_ahead_put(const struct async_ahead *a, const struct async_job *job, uint32_t server,
                         size_t rows, char *to, struct drps_err *err);

/* The answers are not wanted any more. */
void drps_async_ahead_drop(struct async_ahead *a, const struct async_job *job);

/* ---- Rows that nobody has trained (async_fresh.c), at a server ---- */

struct async_fresh; /* opaque; NULL: no row is left out */

/* *out is NULL where all rows are sent. `span`: steps that are open at a time. */
DRPS_MUST_CHECK
int drps_async_fresh_new(const struct async_job *job, uint64_t span, struct async_fresh **out,
                         struct drps_err *err);
void drps_async_fresh_free(struct async_fresh *f); /* NULL-safe; half-built too */

/* A step is opened; its union is this one. */
DRPS_MUST_CHECK
int drps_async_fresh_open(struct async_fresh *f, uint64_t step, const struct drps_feed_union *u,
                          struct drps_err *err);

/* The rows of a share's batch of an open step are stepped. */
void drps_async_fresh_step(struct async_fresh *f, uint64_t step, uint32_t share);

/* Begin a message of those rows for which `marks` has a bit, or all if it is NULL: *rows, all of
 * the share's batch, becomes those whose values follow. Returns the bytes that are written to
 * `out`, or 0 where all follow, and *rows stays. */
size_t drps_async_fresh_write(struct async_fresh *f, uint64_t step, uint32_t share,
                              const uint64_t *marks, struct drps_rows *rows, void *out);

/* ---- Copies of rows that a worker keeps (async_cache.c), and answers for it (async_answer.c) ----
 */

/* 1: the mean of a row's sums of squares comes with it. */
static inline int async_has_squares(const struct async_job *job)
{
    return job->o.server->optim.kind == DRPS_OPTIM_ADAGRAD;
}

/* Returns the bytes of so many rows in an answer to a worker that keeps copies. */
static inline size_t drps_async_wanted_bytes(const struct async_job *job, size_t rows)
{
    return rows * (async_row_bytes(job) + (async_has_squares(job) ? 1 : 0));
}

/* 1: a pull of this rank is answered so: for a batch of its own share, by another rank's server. */
static inline int async_keeps_copies(const struct async_job *job, uint32_t from, uint32_t share)
{
    return job->cached && from == share && from != job->rank;
}

struct async_cache; /* opaque */

/* *out is NULL where no copies are kept; the functions without an error take NULL. */
DRPS_MUST_CHECK
int drps_async_cache_new(const struct async_job *job, struct async_cache **out,
                         struct drps_err *err);
void drps_async_cache_free(struct async_cache *c);
void drps_async_cache_begin(struct async_cache *c); /* an epoch: there are no copies */

/* The next batch of the rank's own share: put the rows of which it has copies that are new enough
 * to params [rows][dim] of the batch; the others are to be asked for. */
DRPS_MUST_CHECK
int drps_async_cache_look(struct async_cache *c, const struct drps_feed_share *batch,
                          const uint64_t *needs, float *params, struct drps_err *err);

/* What a pull of that batch says after its needs: a bit for each row that it asks for; nothing: all
 * rows. Once a server. */
struct drps_piece drps_async_cache_marks(struct async_cache *c, const struct drps_feed_share *batch,
                                         uint32_t server);

/* The answer of another rank's server. DRPS_E_PROTO. */
DRPS_MUST_CHECK
int drps_async_cache_put(struct async_cache *c, const struct drps_feed_share *batch,
                         const struct drps_net_message *m, float *params, struct drps_err *err);

/* The batch's gradients, before they are filtered: they are in the copies from now on. */
void drps_async_cache_step(struct async_cache *c, const struct drps_feed_share *batch,
                           const float *grads);

/* Another worker executes the next batch of the own share. */
DRPS_MUST_CHECK
int drps_async_cache_skip(struct async_cache *c, const struct drps_feed_share *batch,
                          struct drps_err *err);
void drps_async_cache_traffic(const struct async_cache *c, struct drps_traffic *sum);

struct async_answer; /* opaque */

/* *out is NULL where no copies are kept. */
DRPS_MUST_CHECK
int drps_async_answer_new(const struct async_job *job, struct async_answer **out,
                          struct drps_err *err);
void drps_async_answer_free(struct async_answer *a); /* NULL-safe; half-built too */

/* 1: the pull's marks are of so many rows. */
int drps_async_answer_fits(const struct async_job *job, const struct drps_net_message *m,
                           size_t rows);

/* Write the answer to a pull that fits; in [workers]: gradients that are in. Returns its bytes, and
 * how many rows it has. */
size_t drps_async_answer_write(const struct async_answer *a, const struct drps_net_message *m,
                               const struct drps_rows *rows, const uint64_t *in, void *out,
                               size_t *rows_out);

/* ---- Gradients on their way (async_push.c) ---- */

struct async_push; /* opaque */

DRPS_MUST_CHECK
int drps_async_push_new(const struct async_job *job, struct async_push **out, struct drps_err *err);
void drps_async_push_free(struct async_push *p); /* NULL-safe; half-built too */

/* Sends each server its part of the gradient that the job's worker holds. */
DRPS_MUST_CHECK
int drps_async_push(struct async_push *p, const struct drps_feed_share *batch, uint32_t share,
                    uint64_t step, struct drps_err *err);

/* Another worker executes this batch of the rank's own share: sends each other server what was held
 * back of rows that are not held back any longer. With filters alone. */
DRPS_MUST_CHECK
int drps_async_push_held(struct async_push *p, const struct drps_feed_share *batch, uint64_t step,
                         struct drps_err *err);
void drps_async_push_traffic(const struct async_push *p, struct drps_traffic *sum);

/* ---- Gradients that have come (async_gradient.c) ---- */

struct async_gradients; /* opaque */

DRPS_MUST_CHECK
int drps_async_gradients_new(const struct async_job *job, struct async_gradients **out,
                             struct drps_err *err);
void drps_async_gradients_free(struct async_gradients *g); /* NULL-safe; half-built too */

/* 1: the message is of the type in which the gradient of its batch comes from its sender. */
int drps_async_gradient_is_due(const struct async_job *job, const struct drps_net_message *m);

/* 1: when a batch of `share` was executed by `from`, its own worker sends what it held back. */
int drps_async_held_is_due(const struct async_job *job, uint32_t from, uint32_t share);

/* Finds the values and touches of a gradient of so many rows; valid until the next call, at most as
 * long as the message. DRPS_E_PROTO. */
DRPS_MUST_CHECK
int drps_async_gradient_read(const struct async_gradients *g, const struct drps_net_message *m,
                             size_t rows, struct drps_message_here *out, struct drps_err *err);

/* What was held back: of which rows, all of a batch's `rows`. */
struct async_held {
    struct drps_rows rows;
    const float *values;
    const uint32_t *touches; /* zeros: the batch's gradient says how many */
    int begins;              /* 1: the first of them is the first of the batch's */
};
DRPS_MUST_CHECK
int drps_async_held_read(struct async_gradients *g, const struct drps_net_message *m,
                         const struct drps_rows *rows, struct async_held *out,
                         struct drps_err *err);

/* ---- How stale they are (async_stale.c) ---- */

struct async_stale; /* opaque */

/* *out is NULL where the rate of a gradient does not depend on that; the others take NULL. */
DRPS_MUST_CHECK
int drps_async_stale_new(const struct async_job *job, uint64_t span, struct async_stale **out,
                         struct drps_err *err);
void drps_async_stale_free(struct async_stale *s); /* half-built, too */

/* A worker gets what it has pulled, while so many gradients of other workers are in. */
void drps_async_stale_show(struct async_stale *s, const struct drps_net_message *pull,
                           uint64_t of_others);

/* Returns what the rate is divided by for a gradient that comes when so many of other workers are
 * in. */
float drps_async_stale_divisor(const struct async_stale *s, const struct drps_net_message *gradient,
                               uint64_t of_others);

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

/* ---- A server's answers to what is asked for ahead (async_early.c) ---- */

struct async_early; /* opaque */

DRPS_MUST_CHECK
int drps_async_early_new(const struct async_job *job, struct async_early **out,
                         struct drps_err *err);
void drps_async_early_free(struct async_early *e); /* NULL-safe */
/* `fresh` is borrowed until the epoch ends. */
void drps_async_early_begin(struct async_early *e, struct async_fresh *fresh);

/* Sends worker `to` the rows `next` of its batch of this step, or those that are not of `now`, the
 * rows that change before it is that batch's turn: then the rest is due. Both are open. What
 * is sent is added to *sent. */
DRPS_MUST_CHECK
int drps_async_early_send(struct async_early *e, uint32_t to, uint64_t step,
                          const struct drps_rows *now, const struct drps_rows *next,
                          struct drps_traffic *sent, struct drps_err *err);

/* Sends the rest that is due; `next` NULL: no rows, as nobody wants them. */
DRPS_MUST_CHECK
int drps_async_early_rest(struct async_early *e, uint32_t to, const struct drps_rows *now,
                          const struct drps_rows *next, struct drps_traffic *sent,
                          struct drps_err *err);

/* 1: the rest of what was sent to `to` is due, and of which step. */
int drps_async_early_is_due(const struct async_early *e, uint32_t to);
uint64_t drps_async_early_step(const struct async_early *e, uint32_t to);

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
