/*
 * Filtered pulls of a rank under BSP: its server's published values and its worker's copies, and
 * the plan's records that say which row has which slot. A copy is nobody's any more when an epoch's
 * training is over, and a run that goes on begins with an epoch: so there is nothing to save.
 *
 * The server's thread and the worker's may each use their half at the same time. Shared inside
 * engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_PUBLISHED_PULL_H
#define DRPS_ENGINE_CLUSTER_PUBLISHED_PULL_H

#include "engine/cluster/published/drps_copies.h"
#include "engine/cluster/published/drps_published.h"
#include "engine/step/drps_feed.h"
#include "index/plan/codec/drps_published.h"

struct drps_pull; /* opaque */

struct drps_pull_job {
    const struct drps_plan *plan;            /* the rank's part; borrowed */
    const struct drps_pull_options *options; /* copied */
    uint64_t epoch, first; /* where training begins: the epoch, from 1, and the step of it */
    uint64_t epochs;       /* from that one on */
};

/* Returns the memory of both halves. */
uint64_t drps_pull_memory(const struct drps_plan_info *info);

/* DRPS_E_CONFIG: the plan has no published slots. */
DRPS_MUST_CHECK
int drps_pull_open(const struct drps_pull_job *job, struct drps_pull **pull_out,
                   struct drps_err *err);
void drps_pull_close(struct drps_pull *pull); /* NULL-safe */

const struct drps_pull_options *drps_pull_options_of(const struct drps_pull *pull);

/* ---- The server ---- */

struct drps_published *drps_pull_published(struct drps_pull *pull);

/* The slots of the next training round's rows, which are `u`, to *rows: its arrays have room for
 * the largest round. DRPS_E_CORRUPT: a worker is to keep a copy of a row that has no slot. */
DRPS_MUST_CHECK
int drps_pull_next_round(struct drps_pull *pull, const struct drps_feed_union *u,
                         struct drps_published_rows *rows, struct drps_err *err);

/* A training round was stepped. Returns the threshold of it. */
double drps_pull_threshold(struct drps_pull *pull);

/* What it came to so far, to be added to. */
struct drps_pull_counts *drps_pull_counts_of(struct drps_pull *pull);

/* ---- The worker ---- */

/* Its copies, as of the next training batch, which has so many rows of other servers. */
DRPS_MUST_CHECK
int drps_pull_next_batch(struct drps_pull *pull, size_t rows, struct drps_copies **out,
                         struct drps_err *err);

#endif
