/*
 * The scores of one class, counted by value in bounded memory, so that two such counts tell which
 * share of all pairs is in order. Private to engine/model/.
 *
 * A score counts 1, or its sample's weight; a pair counts the product of the two. Counts are
 * doubles: exact up to 2^53 where all scores count 1.
 *
 * A score's value is its float in an order-preserving form of 32 bits. A cell counts the values of
 * a binary interval: 2^width of them, aligned to that. Up to DRPS_SCORES_MOST distinct values there
 * is a cell for each, of width 0, and all is exact. Beyond that, values that share all but their
 * lowest bits (`level` of them, as few as let the cells fit) are joined, unless more than the share
 * 1 / DRPS_SCORES_COARSE of all scores is among them. Inside of these intervals, halves are joined
 * with the whole where the three together have at most 1 / DRPS_SCORES_FINE of all scores, and
 * cells stay inside of wider ones (a q-digest: Shrivastava and others, "Medians and beyond", SenSys
 * 2004).
 *
 * The bound on the error. Each whole that was not joined with its halves is heavier than
 * 1 / DRPS_SCORES_FINE together with them, and a cell belongs to at most two of these families:
 * there are fewer than 2 * DRPS_SCORES_FINE, with two halves each. So there are fewer than 2^(32 -
 * level) + 4 * DRPS_SCORES_FINE cells, DRPS_SCORES_MOST with level 19, which is never exceeded. Of
 * a class, at most one cell of each width above 0 has a given value, and at most one of these was
 * made of a whole interval that was light (of each process, if several were added up): together
 * they have at most the share 19 / DRPS_SCORES_FINE + 1 / DRPS_SCORES_COARSE of the class. A pair
 * is in doubt only when the cell of one is inside of the other's. It counts half, and may be that
 * of either class, so the area is wrong by at most 19 / DRPS_SCORES_FINE + 1 / DRPS_SCORES_COARSE =
 * .00098, whatever the scores.
 *
 * Cells do not depend on the order of the scores, but inside of intervals that are too heavy to be
 * joined, and but for how sums of weights are rounded.
 */
#ifndef DRPS_ENGINE_MODEL_SCORES_H
#define DRPS_ENGINE_MODEL_SCORES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/drps_err.h"

enum {
    DRPS_SCORES_MOST = 106 * 1024, /* cells */
    DRPS_SCORES_FINE = 25088,
    DRPS_SCORES_COARSE = 4608,
    DRPS_SCORES_WAITING = 24 * 1024, /* values that wait to be sorted; half as many with weights */
};

struct drps_score_cell {
    uint32_t last;  /* the largest of its values */
    uint32_t width; /* bits: it has 2^width values */
    double count;
};

struct drps_scores {
    struct drps_score_cell *cells; /* own: [MOST + WAITING], by (last, width) */
    uint64_t *waiting; /* own: [WAITING / 2] value << 32 | bits of the weight; or, without
                          weights, [WAITING] values of 32 bits */
    size_t n, waiting_n;
    int weighted; /* what waits has weights */
    unsigned level;
    double total; /* those that wait are not in it */
};

/* Bytes that the two arrays take. */
#define DRPS_SCORES_BYTES                                                                          \
    ((DRPS_SCORES_MOST + DRPS_SCORES_WAITING) * sizeof(struct drps_score_cell) +                   \
     DRPS_SCORES_WAITING / 2 * sizeof(uint64_t))

/* 0 or -ENOMEM; may be destroyed in either case. */
DRPS_MUST_CHECK
int drps_scores_init(struct drps_scores *s);
void drps_scores_destroy(struct drps_scores *s);
void drps_scores_reset(struct drps_scores *s);

/* Move the values that wait to the cells; none with weights wait then. */
void drps_scores_sort_in(struct drps_scores *s);

/* Count one score, in the form above; no NaN has one. */
static inline void drps_scores_add(struct drps_scores *s, uint32_t value)
{
    if (s->waiting_n == DRPS_SCORES_WAITING || s->weighted) drps_scores_sort_in(s);
    memcpy((uint32_t *)(void *)s->waiting + s->waiting_n++, &value, sizeof(value));
}

/* Count one score `weight` times, which is finite and above 0. */
static inline void drps_scores_add_weighted(struct drps_scores *s, uint32_t value, float weight)
{
    uint32_t bits;
    if (s->waiting_n == DRPS_SCORES_WAITING / 2 || !s->weighted) drps_scores_sort_in(s);
    memcpy(&bits, &weight, sizeof(bits));
    s->weighted = 1;
    s->waiting[s->waiting_n++] = (uint64_t)value << 32 | bits;
}

/* Returns the share of pairs in which the score of `low` is less than that of `high`, ties counting
 * half; NaN when either is empty. Values that wait are moved to the cells first. */
double drps_scores_in_order(struct drps_scores *low, struct drps_scores *high);

/* What was counted, for drps_scores_merge() elsewhere. Returns the bytes used, at most
 * DRPS_SCORES_BOUND. */
#define DRPS_SCORES_BOUND (16 + DRPS_SCORES_MOST * sizeof(struct drps_score_cell))
size_t drps_scores_encode(struct drps_scores *s, void *out);

/* Add what *data has first; *data and *bytes go behind it. DRPS_E_PROTO when it is no such thing.
 */
DRPS_MUST_CHECK
int drps_scores_merge(struct drps_scores *s, const char **data, size_t *bytes,
                      struct drps_err *err);

#endif
