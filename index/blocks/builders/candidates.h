/*
 * Merges that a builder could make, best first. Private to index/blocks/builders/.
 *
 * The order is total, so that builders are deterministic: greater gain first, then the smaller a,
 * then the smaller b.
 */
#ifndef DRPS_INDEX_BLOCKS_BUILDERS_CANDIDATES_H
#define DRPS_INDEX_BLOCKS_BUILDERS_CANDIDATES_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

struct candidate {
    double gain;   /* microseconds */
    uint32_t a, b; /* blocks, a < b */
    uint32_t both; /* C_ab */
    uint32_t time; /* rounds of merges made before it was counted */
};

static inline int candidate_before(const struct candidate *x, const struct candidate *y)
{
    if (x->gain != y->gain) return x->gain > y->gain;
    if (x->a != y->a) return x->a < y->a;
    return x->b < y->b;
}

/* A heap. Zero it first; drps_candidates_free() it. */
struct candidates {
    struct candidate *list; /* own: [n] list[0] is the best */
    size_t n, cap;
};

DRPS_MUST_CHECK
int drps_candidates_push(struct candidates *h, const struct candidate *c, struct drps_err *err);

/* Takes the best out of n > 0. */
struct candidate drps_candidates_pop(struct candidates *h);

/* Makes a heap of the list again, whatever has happened to it. */
void drps_candidates_order(struct candidates *h);

void drps_candidates_free(struct candidates *h);

#endif
