/*
 * An intercept that learns at the ends of strata. Batches of one stratum that different threads
 * train share no row but the intercept's. Where it learns late (drps_model.late_bias), all of them
 * read it as it is; then it takes one step, with the mean of their gradients, which are added in
 * the plan's order. So it does not depend on the number of threads. Of other models all functions
 * do nothing. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_STEP_INTERCEPT_H
#define DRPS_ENGINE_STEP_INTERCEPT_H

#include <stdint.h>

#include "storage/drps_store.h"

struct drps_server;

/* The step that is due, between two batches. All 0: none is. */
struct drps_intercept {
    uint32_t stratum; /* of the batches trained since the last step */
    uint32_t batches; /* how many these are */
    double gradient;  /* their sum */
};

/* Before batches of a stratum are trained: takes the step that is due if those before were of
 * another one. `rows` are of an open step. */
void drps_intercept_begin(struct drps_server *server, const struct drps_rows *rows,
                          uint32_t stratum);

/* Adds a batch of that stratum: the first of its gradients. */
void drps_intercept_add(struct drps_server *server, uint32_t stratum, float gradient);

/* Takes the step that is due, if any: after the last batch of an epoch. */
void drps_intercept_end(struct drps_server *server, const struct drps_rows *rows);

#endif
