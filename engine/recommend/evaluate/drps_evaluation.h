/*
 * How good recommendations are, on ratings that training has not seen: held-out items of each user.
 *
 * A user has R held-out items and gets a list of the N best items that were not seen. The h
 * held-out items on the list have the ranks r_1 < r_2 < ... < r_h. Then:
 *
 *   precision  h / N                          recall  h / R
 *   NDCG       (sum over k of 1 / log2(1 + r_k)) / (sum for r = 1 to min(N, R) of 1 / log2(1 + r))
 *   MAP        (sum over k of k / r_k) / min(N, R)
 *
 * Each is a mean over users who have a held-out item. An item that a user has several times counts
 * once. A held-out item that the user has seen cannot be recommended, and does not count. One that
 * the model does not have is never found, and counts.
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
