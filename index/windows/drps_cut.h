/*
 * Cutting the steps of an epoch into windows. Shared inside index/.
 */
#ifndef DRPS_INDEX_WINDOWS_CUT_H
#define DRPS_INDEX_WINDOWS_CUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "index/plan/drps_steps.h"
#include "index/plan/drps_window.h"

/* What is known before cutting. */
struct cut_extent {
    uint64_t step_rows; /* most rows of a step */
    uint64_t touched;   /* rows that any step touches */
    uint64_t uses;      /* of rows, by the steps of an epoch */
};

/* An epoch's windows: drps_cut_steps() and drps_cut_sizes() fill it, drps_cut_free() releases what
 * it owns. */
struct cut {
    uint64_t *starts; /* own, [n]: first step of each window; the last one ends with the epoch */
    uint64_t *pairs;  /* own, [n]: rows of each window and the next one together */
    size_t n, starts_cap, pairs_cap;
    struct drps_window_result result;
};

/* -EINVAL: the options contradict each other, or are beyond what a plan can hold. */
DRPS_MUST_CHECK
int drps_cut_check(const struct drps_window_options *options, struct drps_err *err);

/* Memory: a bit a row. drps_cut_check() has passed the options, lists holds rows.rec; so below. */
DRPS_MUST_CHECK
int drps_cut_survey(struct steps *lists, const struct drps_window_options *options,
                    struct cut_extent *out, struct drps_err *err);

/*
 * Cut for options->budget_bytes. DRPS_E_MEMORY_BUDGET, with the number that would do, when the rows
 * of a single step (times two) exceed the budget. Memory: three quarters of a byte a row and some
 * words a step; only starts and pairs stay.
 */
DRPS_MUST_CHECK
int drps_cut_steps(struct steps *lists, const struct drps_window_options *options,
                   struct cut *cut_out, struct drps_err *err);

/*
 * Cut for windows of which two have sizes[0 .. n) rows; cuts_out[i] has no windows where two steps
 * do not fit. As many at a time as options->memory_bytes allows (the budget is not used), at least
 * one. Free all of cuts_out, also after a failure.
 */
DRPS_MUST_CHECK
int drps_cut_sizes(struct steps *lists, const struct drps_window_options *options,
                   const struct cut_extent *extent, const uint64_t *sizes, size_t n,
                   struct cut *cuts_out, struct drps_err *err);

/* Returns the step behind window w, in an epoch of `steps`. */
static inline uint64_t cut_end(const struct cut *cut, size_t w, uint64_t steps)
{
    return w + 1 < cut->n ? cut->starts[w + 1] : steps;
}

void drps_cut_free(struct cut *cut);

#endif
