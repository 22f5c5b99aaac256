/* A block of queries meets all items. Private to engine/recommend/. */
#ifndef DRPS_ENGINE_RECOMMEND_SCORE_H
#define DRPS_ENGINE_RECOMMEND_SCORE_H

#include <stdatomic.h>
#include <stdint.h>

#include "engine/recommend/items.h"
#include "engine/recommend/math/drps_products.h"
#include "engine/recommend/queries.h"

struct drps_scores; /* opaque: threads and their room for products */

struct drps_scores_options {
    unsigned threads;
    size_t d;
    drps_product product;
    const atomic_int *stop; /* may be NULL */
    /* Told after each block of items how many pairs have been scored since the last time; may be
     * NULL. */
    void (*on_pairs)(void *ctx, uint64_t pairs);
    void *ctx;
};

uint64_t drps_scores_memory(size_t d, unsigned threads);
DRPS_MUST_CHECK
int drps_scores_open(const struct drps_scores_options *options, struct drps_scores **s_out,
                     struct drps_err *err);
void drps_scores_close(struct drps_scores *s); /* NULL-safe */

/* Find the best items of each query: one pass over the items. DRPS_E_INTERRUPTED, and what reading
 * items finds. */
DRPS_MUST_CHECK
int drps_scores_run(struct drps_scores *s, struct drps_queries *q, struct drps_items *items,
                    struct drps_err *err);

uint64_t drps_scores_exact(const struct drps_scores *s); /* scores computed in double so far */
double drps_scores_seconds(const struct drps_scores *s); /* in products and looking at them */

#endif
