/*
 * The best of all rows that come: a heap of those found so far, the worst on top. A row is better
 * with a larger score, or with an equal one and a smaller number; so the result does not depend on
 * the order in which rows come. Pure arithmetic.
 */
#ifndef DRPS_BEST_H
#define DRPS_BEST_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct drps_best {
    double score;
    uint32_t row;
};

static inline int drps_best_is_better(const struct drps_best *a, const struct drps_best *b)
{
    return a->score > b->score || (a->score == b->score && a->row < b->row);
}

/* Put `best` at place i or below. */
static inline void drps_best_sift_down(struct drps_best *heap, size_t n, size_t i,
                                       struct drps_best best)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && drps_best_is_better(&heap[child], &heap[child + 1])) child++;
        if (!drps_best_is_better(&best, &heap[child])) break;
        heap[i] = heap[child];
    }
    heap[i] = best;
}

/* Offer `best` to heap [*n], which has room for `most`, at least 1. Returns 1: it is kept. */
static inline int drps_best_offer(struct drps_best *heap, size_t *n, size_t most,
                                  struct drps_best best)
{
    if (*n == most) {
        if (!drps_best_is_better(&best, &heap[0])) return 0;
        drps_best_sift_down(heap, *n, 0, best);
        return 1;
    }
    size_t i = (*n)++;
    while (i && drps_best_is_better(&heap[(i - 1) / 2], &best)) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = best;
    return 1;
}

static inline int drps_best_by_rank(const void *a, const void *b)
{
    return drps_best_is_better((const struct drps_best *)a, (const struct drps_best *)b)
               ? -1
               : drps_best_is_better((const struct drps_best *)b, (const struct drps_best *)a);
}

/* Sort the heap, best first. Afterwards it is a sorted list and no heap. */
static inline void drps_best_sort(struct drps_best *heap, size_t n)
{
    qsort(heap, n, sizeof(*heap), drps_best_by_rank);
}

#endif
