/* Plans run by row stores, beside the plain array that is right. */
#ifndef DRPS_TESTS_SUPPORT_STORE_RUN_H
#define DRPS_TESTS_SUPPORT_STORE_RUN_H

#include "support/store_plan.h"

/* A config for a plan, without dir, memory and engine. */
struct drps_store_config plan_config(const struct plan *p);

/* The plan's fresh rows: its config's init. */
int plan_init_rows(void *plan, uint64_t first, size_t n, void *rows_out, struct drps_err *err);

/* The least memory of `ops` for this config. */
uint64_t plan_least_memory(const struct drps_store_ops *ops,
                           const struct drps_store_config *config);

/* A store beside the plain array that it is compared with. */
struct plan_store {
    const struct plan *p;
    const struct drps_store_ops *ops;
    struct drps_store *st; /* own */
    char *model;           /* own: all rows */
    size_t next;           /* the plan's step that is run next */

    uint64_t mark_rows; /* as config; 0: changes are not followed */
    char *kept;         /* own: all rows as of the last kept changes */
    char *changed;      /* own: [rows] 1: by a step since */

    size_t first;     /* the plan's step that is the store's step 0 */
    char *begin;      /* own: all rows before it; NULL: fresh ones */
    uint64_t *blocks; /* own: the next uses of one step's blocks */
    struct drps_timeline timeline;
    struct drps_window_source windows;
};

/* plan_close() is yours unless it fails. What differs fails the test; errors are the store's. */
int plan_open(struct plan_store *r, const struct plan *p, const struct drps_store_ops *ops,
              const struct drps_store_config *config, struct drps_err *err);
void plan_close(struct plan_store *r);

/* Keep the rows that a scan shows, and close the store. */
int plan_leave(struct plan_store *r, struct drps_err *err);

/* After plan_leave(), open a store that begins with the next step and the rows that were kept. The
 * config's windows and timeline are replaced by the plan's. */
int plan_reopen(struct plan_store *r, const struct drps_store_ops *ops,
                const struct drps_store_config *config, struct drps_err *err);

/* Run the next step, comparing every row that it shows. */
int plan_step(struct plan_store *r, struct drps_err *err);

/* Run the steps before `end`, with scans between some of them: of whole rows and of parts, and some
 * that end early. */
int plan_steps(struct plan_store *r, size_t end, struct drps_err *err);

/* Compare a scan of so many bytes a row. */
int plan_scan(const struct plan_store *r, size_t bytes, struct drps_err *err);

/* Run all steps so, and compare all rows at the end. Returns the first error of the store. */
int plan_run(const struct plan *p, const struct drps_store_ops *ops,
             const struct drps_store_config *config, struct drps_store_stats *stats_out,
             struct drps_err *err);

/* Run all steps with an init whose first call fails, then with one whose second call fails, and so
 * on until none does: each of these runs must end with that failure. The folder is made here. */
void plan_check_failing_init(const struct plan *p, const struct drps_store_ops *ops,
                             const struct drps_store_config *config);

/*
 * Run all steps with up to config->open_steps open at a time, opened in order and closed in random
 * order, between which the rows of open steps are changed and compared with the model.
 * *overlaps_out: steps that opened while another was open; *refused_out: that had to wait for
 * another one to close (-EAGAIN).
 */
int plan_run_overlapping(const struct plan *p, const struct drps_store_ops *ops,
                         const struct drps_store_config *config, size_t *overlaps_out,
                         size_t *refused_out, struct drps_err *err);

#endif
