/*
 * Rows that a worker has itself under BSP, because it alone uses them for some rounds
 * (index/plan/drps_handed.h). They lie in slots, with the optimizer's state. In a round the worker
 * reads them from there, steps them as their servers would, and keeps them, sends them back, or on
 * to the worker of the next use. Which row is where when, both sides know from the plan. Shared
 * inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_HANDED_HANDING_H
#define DRPS_ENGINE_CLUSTER_HANDED_HANDING_H

#include "engine/drps_engine.h"
#include "engine/step/drps_server.h"
#include "index/plan/drps_plan.h"

struct drps_handing; /* opaque: slots, and the stream of records */

struct drps_handing_job {
    const struct drps_plan *plan;     /* the rank's part */
    const struct drps_server *server; /* its optimizer, and what a row is */
    uint64_t epochs;                  /* from the one on that begins with the first batch */
    int is_over;                      /* 1: but its training is over */
};

/* 1: rows are handed on: under synchronisation bsp, and with an optimizer for whose state, or a
 * larger one, the plan has counted that it pays. */
int drps_handing_applies(const struct drps_plan_info *info, const struct drps_train_options *train,
                         const struct drps_optim *optim);

/* Returns the memory of slots and of messages under way, at both sides. */
uint64_t drps_handing_memory(const struct drps_plan_info *info, size_t row_bytes);

/* Returns the bytes of the largest message of rows. */
uint64_t drps_handing_message_bytes(const struct drps_plan_info *info);

/* Everything in job is borrowed until close. DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int drps_handing_open(const struct drps_handing_job *job, struct drps_handing **handing_out,
                      struct drps_err *err);
void drps_handing_close(struct drps_handing *handing); /* NULL-safe */

/* Rows of an epoch between a part's worker and another rank: neither pulled nor pushed, taken from
 * that server, returned to it, and handed on to that worker. */
struct drps_handing_link {
    uint64_t used, taken, returned, handed;
};

/* Add up a part's records, to links [ranks]. DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int drps_handing_links(const struct drps_plan *part, struct drps_handing_link *links,
                       struct drps_err *err);

/* ---- A round ---- */

/*
 * The next batch, of `rows` rows, shares [ranks] of them with each server; of evaluation no row is
 * away. Valid until the next call; shares are borrowed. DRPS_E_CORRUPT.
 */
DRPS_MUST_CHECK
int drps_handing_begin(struct drps_handing *h, int training, size_t rows, const uint32_t *shares,
                       struct drps_err *err);

/* Rows of the round between this worker and a rank. */
struct drps_handing_counts {
    uint32_t used;     /* of that server, and here: neither pulled nor pushed */
    uint32_t taken;    /* come from that server */
    uint32_t returned; /* go to that server */
    uint32_t handed;   /* go to that worker */
    uint32_t arrived;  /* come from that worker */
};
const struct drps_handing_counts *drps_handing_counts(const struct drps_handing *h, uint32_t rank);

/* 1 for each row of the batch that is here; NULL: none is. */
const uint8_t *drps_handing_away(const struct drps_handing *h);

/* The rows that a server sends (taken), or that a worker sends (arrived), row_bytes each. */
void drps_handing_take(struct drps_handing *h, uint32_t server, const void *data);
void drps_handing_arrive(struct drps_handing *h, uint32_t from, const void *data);

/* Copy the parameters of rows that are here to their places in params [rows][dim]. */
void drps_handing_fill(const struct drps_handing *h, float *params);

/*
 * Step the rows that are here with their gradients, then close the gaps that these leave: of each
 * server's part of grads [rows][dim] and touches [rows] (NULL: none) the other rows come first.
 */
void drps_handing_step(struct drps_handing *h, float *grads, uint32_t *touches);

/* Copy the rows that go back to a server, or on to a worker, to `out`. Returns their bytes. */
size_t drps_handing_return(const struct drps_handing *h, uint32_t server, void *out);
size_t drps_handing_hand_on(const struct drps_handing *h, uint32_t to, void *out);

#endif
