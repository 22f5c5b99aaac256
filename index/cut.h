/*
 * Cutting the steps of an epoch into windows. Private to index/.
 */
#ifndef DRPS_INDEX_CUT_H
#define DRPS_INDEX_CUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "index/drps_window.h"
#include "index/steps.h"

/* An epoch's windows: cut_steps() fills it, cut_free() releases what it owns. */
struct cut {
    uint64_t *starts; /* own, [n]: first step of each window; the last one ends with the epoch */
    size_t n, cap;
    struct drps_window_result result;
};

/* -EINVAL: the options contradict each other, or are beyond what a plan can hold. */
DRPS_MUST_CHECK
int cut_check(const struct drps_window_options *options, struct drps_err *err);

/*
 * Cut for options->budget_bytes; cut_check() has passed the options, lists holds rows.rec.
 * DRPS_E_MEMORY_BUDGET, with the number that would do, when the rows of a single step (times two)
 * exceed the budget. Memory: three quarters of a byte a row and some words a step; only the starts
 * stay.
 */
DRPS_MUST_CHECK
int cut_steps(struct steps *lists, const struct drps_window_options *options, struct cut *cut_out,
              struct drps_err *err);

/* The step behind window w, in an epoch of `steps`. */
static inline uint64_t cut_end(const struct cut *cut, size_t w, uint64_t steps)
{
    return w + 1 < cut->n ? cut->starts[w + 1] : steps;
}

void cut_free(struct cut *cut);

#endif
