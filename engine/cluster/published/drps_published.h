/*
 * What a server has published of rows of which workers keep copies: the values that it sent last,
 * rounded, and a bit for each worker whose copy has these values. A row is published anew when it
 * has changed enough since, by the rule of drps_pull_options; then no copy has its values. Where no
 * copy has, the present values count as published as soon as they are sent. Rows stay exact at
 * their server.
 *
 * Rows are named by published slots (index/plan/codec/drps_published.h). One thread. Shared inside
 * engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_PUBLISHED_PUBLISHED_H
#define DRPS_ENGINE_CLUSTER_PUBLISHED_PUBLISHED_H

#include "engine/drps_engine.h"

/* Returns psi / (1 + d ln t) for training round t, from 1. */
double drps_published_threshold(const struct drps_pull_options *o, uint64_t t);

struct drps_published; /* opaque */

/* NULL: no memory. No worker has a copy. */
struct drps_published *drps_published_new(const struct drps_pull_options *options, uint64_t slots,
                                          uint32_t dim, uint32_t workers);
void drps_published_free(struct drps_published *p); /* NULL-safe */

/* Returns the memory of so many slots. */
uint64_t drps_published_bytes(uint64_t slots, uint32_t dim, uint32_t workers);

/* 1: the worker's copy is what is published. */
int drps_published_has(const struct drps_published *p, uint32_t slot, uint32_t worker);

/* The worker is sent the row: returns what is published, which is `row` [dim] rounded, if no copy
 * is as published. `keeps`: the worker has a copy from now on, else none. Valid until the next
 * call. */
const float *drps_published_send(struct drps_published *p, uint32_t slot, uint32_t worker,
                                 int keeps, const float *row);

/* The worker uses its copy, which is as published, and keeps it or not. Returns 1 if the row has
 * changed since, by too little; 0: not, or by less than its values are rounded. */
int drps_published_leave_out(struct drps_published *p, uint32_t slot, uint32_t worker, int keeps);

/* The row, which has the slot, was stepped. */
void drps_published_step(struct drps_published *p, uint32_t slot, const float *row,
                         double threshold);

#endif
