/*
 * The memory budget: which part took how much of it. Parts take before they allocate, so that a
 * budget that is too small is refused at the start, with the breakdown, and not by the kernel in
 * the middle.
 */
#ifndef DRPS_BUDGET_H
#define DRPS_BUDGET_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

enum { DRPS_BUDGET_ITEMS = 32 };

/* Who took what. Fields are for reading. */
struct drps_budget {
    uint64_t limit_bytes;
    uint64_t used_bytes;
    size_t n;
    struct {
        const char *what; /* borrowed: a literal */
        uint64_t bytes;
    } items[DRPS_BUDGET_ITEMS];
};

void drps_budget_init(struct drps_budget *b, uint64_t limit_bytes);

/* Take `bytes` for `what` (a literal, borrowed for good). DRPS_E_MEMORY_BUDGET: they are not left;
 * the text has the whole breakdown and the limit that would do. */
DRPS_MUST_CHECK
int drps_budget_take(struct drps_budget *b, const char *what, uint64_t bytes, struct drps_err *err);

/* Take `bytes` for `what`, even where they are not left. The item that is taken last is then
 * refused, with the whole breakdown. */
void drps_budget_note(struct drps_budget *b, const char *what, uint64_t bytes);

/* Returns the bytes that are left. */
uint64_t drps_budget_left(const struct drps_budget *b);

#endif
