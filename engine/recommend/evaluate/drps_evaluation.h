/*
 * How good recommendations are, on ratings that training has not seen: held-out items of each user.
 *
 *
 * Of a user with R held-out items, whose best N items, without those seen, have the hits at ranks
 * r_1 < r_2 < ... < r_h:
 *
 *   precision  h / N                          recall  h / R
 *   NDCG       (sum over k of 1 / log2(1 + r_k)) / (sum for r = 1 to min(N, R) of 1 / log2(1 + r))
 *   MAP        (sum over k of k / r_k) / min(N, R)
 *
 * Each is a mean over users who have a held-out item. Of an item that a user has several times one
 * counts. An item that the user has seen cannot be recommended, and does not count; one that the
 * model does not have is never found, and counts.
 *
 * Source: Jarvelin and Kekalainen (TOIS 2002) for the discounted gain, of gains 0 and 1.
 */
#ifndef DRPS_ENGINE_RECOMMEND_EVALUATION_H
#define DRPS_ENGINE_RECOMMEND_EVALUATION_H

#include <stdint.h>

/* Means over users; NaN without any. */
struct drps_evaluation {
    uint64_t users;   /* with a held-out item */
    uint64_t items;   /* theirs, together */
    uint64_t missing; /* of these, which the model does not have */
    double precision, recall, ndcg, map;
};

#endif
