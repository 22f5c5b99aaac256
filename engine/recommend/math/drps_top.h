/*
 * The best items of one query, in a heap (base/drps_best.h). Pure arithmetic. Shared inside
 * engine/recommend/ and api/.
 */
#ifndef DRPS_ENGINE_RECOMMEND_MATH_TOP_H
#define DRPS_ENGINE_RECOMMEND_MATH_TOP_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_best.h"

/* What is looked for. All is borrowed. */
struct drps_top {
    const float *vector; /* [d] */
    size_t d;
    double error; /* of a product with an item whose norm is 1, at most */
    double base;  /* is added to each inner product */
    double floor; /* a product without error below this is no better than the worst; begin with
                     -infinity */
    const uint32_t *seen; /* [seen_n] rows that are left out, increasing */
    size_t seen_n;
    struct drps_best *heap; /* [most] */
    size_t most, n;         /* n of them are there; most is at least 1 */
};

/* Items whose products with the vector are known. */
struct drps_top_items {
    const float *vectors;  /* [n][d] */
    const uint32_t *rows;  /* [n] */
    const float *products; /* [n] in floats, drps_product_error() off at most */
    size_t n;
    double norm; /* of the longest vector */
};

/* The score that counts: base and the inner product, in double. */
double drps_top_score(const struct drps_top *t, const float *vector);

/* Keep the best of what is there and of these items. Returns how many scores it computed. */
uint64_t drps_top_look(struct drps_top *t, const struct drps_top_items *items);

/* Sort the heap, best first; it is none afterwards. */
void drps_top_sort(struct drps_top *t);

#endif
