/*
 * One run of drps-index, and the phases that have files of their own; compile.c calls them in
 * order. A phase takes what those before it have put into the run, and fills in more of `info`.
 * Private to index/run/.
 */
#ifndef DRPS_INDEX_RUN_RUN_H
#define DRPS_INDEX_RUN_RUN_H

#include <stdint.h>

#include "base/folder/drps_stage.h"
#include "index/drps_index.h"
#include "index/plan/drps_algorithm.h"
#include "index/run/parts.h"
#include "index/samples/drps_allot.h"
#include "index/samples/drps_parse.h"

/* One run: everything that the phases hand on. */
struct run {
    const struct drps_io *io;
    struct drps_index_options options; /* with defaults filled in */
    struct drps_stage stage;
    char *scratch;
    char *laid;            /* where rows in blocks go: the plan, or scratch to be placed from */
    const char *batch_dir; /* where batches are made: there, or scratch if blocks renumber rows */
    struct parsed parsed;
    struct drps_plan_info *info;
    struct drps_index_result *result;
    struct part *parts; /* own: [parts_n], one a worker */
    uint32_t parts_n;
    struct allotment train, test; /* of workers; rounds are 0 where batches are dealt in turn */
};

/* ---- Options (run_options.c) ---- */

/* DRPS_E_CONFIG, DRPS_E_MEMORY_BUDGET: an option is out of its range, or two exclude each other.
 * Defaults that need no data are filled in. */
DRPS_MUST_CHECK
int run_check_options(struct drps_index_options *o, struct drps_err *err);

int run_places_samples(const struct drps_index_options *o); /* or deals them in turn */

/* ---- Phases ---- */

/* Samples are brought into their final order and cut: data.rec, rows.rec (run_batches.c). */
DRPS_MUST_CHECK
int run_make_batches(struct run *r, struct drps_err *err);

/* Rows get their blocks and, with several workers, owners: one part a worker (run_blocks.c). */
DRPS_MUST_CHECK
int run_make_blocks(struct run *r, struct drps_err *err);

/* Of each part (run_blocks.c). */
DRPS_MUST_CHECK
int run_make_windows(struct run *r, struct drps_err *err);
DRPS_MUST_CHECK
int run_forecast(struct run *r, struct drps_err *err);

#endif
