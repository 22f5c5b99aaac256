/*
 * A block of queries: users, or items whose similar ones are wanted, with what they have seen and
 * the best items found for them. A source fills it. Private to engine/recommend/.
 *
 * Shapes: Q queries of the block, D floats a row of the model (a bias, then factors), N items for
 * each.
 */
#ifndef DRPS_ENGINE_RECOMMEND_QUERIES_H
#define DRPS_ENGINE_RECOMMEND_QUERIES_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "engine/recommend/math/drps_top.h"

struct drps_queries {
    size_t cap, n; /* Q at most, and now */
    size_t d, most;
    float *vectors;          /* own: [Q][d] of a user 1 and the factors, so that the product with an
                                item's row has its bias */
    double *base;            /* own: [Q] */
    double *floor;           /* own: [Q] of struct drps_top, as is the next */
    double *error;           /* own: [Q] once drps_queries_ready() was called */
    uint64_t *ids;           /* own: [Q] the source's */
    struct drps_best *heaps; /* own: [Q][most] */
    size_t *found;           /* own: [Q] of them */
    size_t *seen_starts;     /* own: [Q + 1] */
    uint32_t *seen;          /* own: [seen_cap] rows, increasing for each query */
    size_t seen_cap, seen_n; /* rows behind seen_starts[n] are of the query that comes next */
};

uint64_t drps_queries_memory(size_t d, size_t most, size_t cap, size_t seen_cap);
/* -ENOMEM. Destroy it in either case. */
DRPS_MUST_CHECK
int drps_queries_init(struct drps_queries *q, size_t d, size_t most, size_t cap, size_t seen_cap,
                      struct drps_err *err);
void drps_queries_destroy(struct drps_queries *q); /* zeroed too */

/* Empty the block; what has been seen by the query that comes next stays. */
void drps_queries_clear(struct drps_queries *q);

/* The query that comes next has seen a row. Returns 1, or 0: there is no room. */
int drps_queries_saw(struct drps_queries *q, uint32_t row);

/* The query that comes next is complete: its vector [n] is set. There must be room. */
void drps_queries_add(struct drps_queries *q, uint64_t id, double base);

/* The block is complete: what to look for can be asked for. */
void drps_queries_ready(struct drps_queries *q);

/* What to look for for query i, with what was found so far. */
struct drps_top drps_queries_top(const struct drps_queries *q, size_t i);
/* It has gone on. */
void drps_queries_found(struct drps_queries *q, size_t i, const struct drps_top *top);

/* Where queries come from. */
struct drps_query_source {
    void *ctx;
    /* Fill a block that is clear; none added: there are no more. */
    int (*fill)(void *ctx, struct drps_queries *q, struct drps_err *err);
    /* A query's name, borrowed until the next call. */
    int (*name)(void *ctx, uint64_t id, const char **text_out, size_t *n_out, struct drps_err *err);
};

#endif
