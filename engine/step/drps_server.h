/*
 * The server of a step: holds the rows in a store, creates fresh ones, copies a step's parameters
 * out (pull) and steps the rows with the workers' summed gradients (push). With several ranks, the
 * threads that answer workers (engine/cluster/rounds.c, engine/cluster/async/async_server.c) call
 * it. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_STEP_SERVER_H
#define DRPS_ENGINE_STEP_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "engine/model/drps_model.h"
#include "engine/model/drps_optim.h"
#include "engine/newton/drps_newton.h"
#include "engine/step/drps_intercept.h"
#include "engine/topic/drps_topic.h"
#include "index/plan/drps_plan.h"
#include "storage/drps_store.h"

/* Rows of an earlier run: rows first .. first + n - 1 of the store into rows_out, row_bytes apart.
 * Any thread. */
typedef int (*drps_saved_rows)(void *ctx, uint64_t first, size_t n, void *rows_out,
                               struct drps_err *err);

struct drps_server {
    struct drps_model model;
    struct drps_optim optim;
    size_t row_bytes;
    uint64_t first_row; /* placed id of the store's row 0; 0 unless set after init */
    /* Where rows circulate, set after init: what the plan's part holds (row 0 is the intercept),
     * and which rows of the store are the rank's own, the first of which is first_row. Else NULL.
     */
    const struct drps_plan_ranks *holds;
    struct drps_row_range own;
    struct drps_newton *newton; /* borrowed, set after init; NULL: no quasi-Newton method */
    struct drps_topic *topic;   /* borrowed, set after init; NULL: no topic model */
    const void *intercept; /* row 0 where it is not fresh, on ranks that do not own it; or NULL */
    drps_saved_rows saved; /* where rows come from that are used first; NULL: they are fresh */
    void *saved_ctx;
    const struct drps_store_ops *ops;
    struct drps_store *store; /* own */
    uint64_t steps;           /* opened since the start of training: the store's step numbers */
    struct drps_rows rows;    /* of the step opened last */
    struct drps_intercept intercept_due; /* its step, between two batches of a stratum */
};

/* What a topic model takes from model and optimizer, of one rank. */
static inline struct drps_topic_options drps_topic_options_of(const struct drps_model *model,
                                                              const struct drps_optim *optim,
                                                              unsigned members)
{
    return (struct drps_topic_options){.topics = model->factors,
                                       .l1 = (double)optim->l1,
                                       .rho = (double)optim->l2,
                                       .members = members};
}

/* Rows as `model` and `optim` need them. */
void drps_server_init(struct drps_server *server, const struct drps_model *model,
                      const struct drps_optim *optim);

/* Returns how many of the rows that all batches have the store has: its first ones. */
uint32_t drps_server_common_rows(const struct drps_server *server);

/* Rows first .. first + n - 1 of the store as they are before training, row_bytes apart: the same
 * bytes for the same placed ids, whenever and wherever they are needed. */
void drps_server_fresh(const struct drps_server *server, uint64_t first, size_t n, void *rows_out);

/* Returns the bytes of a row that scans show where not all of it is needed: in which its parameters
 * are; a quasi-Newton method needs all of it after each pass. */
size_t drps_server_scan_bytes(const struct drps_server *server);

/* Visit the rank's own rows as the store's scan() does, their numbers counted from 0. */
DRPS_MUST_CHECK
int drps_server_scan(const struct drps_server *server, size_t bytes, drps_row_visit visit,
                     void *ctx, struct drps_err *err);

/* The same, parameters alone: of each row only the first model.dim floats count. */
DRPS_MUST_CHECK
int drps_server_scan_parameters(const struct drps_server *server, drps_row_visit visit, void *ctx,
                                struct drps_err *err);

/*
 * Open the store. `config` says where and with how much; rows, row_bytes and init are filled in
 * here. The server must stay where it is until drps_server_close().
 */
DRPS_MUST_CHECK
int drps_server_open(struct drps_server *server, const struct drps_store_ops *ops,
                     struct drps_store_config *config, uint64_t rows, struct drps_err *err);
void drps_server_close(struct drps_server *server); /* NULL-safe; half-built too */

/* rows, row_bytes and init of `config`, also for asking a store what it needs. */
void drps_server_configure(struct drps_server *server, struct drps_store_config *config,
                           uint64_t rows);

/* The rows of the next step, in memory until it is closed. One calling thread. Errors as the
 * store's step_open(), -EAGAIN among them. */
DRPS_MUST_CHECK
int drps_server_open_step(struct drps_server *server, const uint32_t *ids, size_t n,
                          struct drps_err *err);

/* Close the step opened last. */
DRPS_MUST_CHECK
int drps_server_close_step(struct drps_server *server, int changed, struct drps_err *err);

/* Close one of several open steps, by the store's number of it. */
DRPS_MUST_CHECK
int drps_server_close_one(struct drps_server *server, uint64_t step, int changed,
                          struct drps_err *err);

/* Parameters of rows [first, last) of the open step into params [m][dim]. Several threads, disjoint
 * ranges. */
void drps_server_pull(const struct drps_server *server, size_t first, size_t last, float *params);

/* Gradients of a batch, or of parts of it: [m][dim] each, and how many samples touch each row. */
struct drps_gradients {
    float *const *grads;      /* [n] */
    uint32_t *const *touches; /* [n]; NULL when the optimizer needs none */
    unsigned n;
};

/*
 * Put the sum over all into the array number `into`, rows [first, last); always added in the order
 * given. Several threads, disjoint ranges: each had best sum into the array that it filled, which
 * lies in its cache and which it fills again.
 */
void drps_gradients_sum(uint32_t dim, size_t first, size_t last, const struct drps_gradients *g,
                        unsigned into);

/* Sum as drps_gradients_sum() does, and step rows [first, last) with the sum. */
void drps_server_push(struct drps_server *server, size_t first, size_t last,
                      const struct drps_gradients *g, unsigned into);

/* The step of drps_server_push() alone, on the rows of any open step. Of a topic model `grads` are
 * changes, and `first` is 0: drps_topic_change_rows(). */
void drps_server_step(const struct drps_server *server, const struct drps_rows *rows, size_t first,
                      size_t last, const float *grads, const uint32_t *touches);

#endif
