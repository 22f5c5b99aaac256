/*
 * Losses of implicit feedback: of a user u, an item p that the user has chosen, and items n that
 * were drawn against it. With scores s of the user's pairs, as matrix factorization has them:
 *
 *   bpr   mean over n of log(1 + exp(-(s_p - s_n)))
 *   warp  w (1 - s_p + s_n) of the first n, in the order of the draws, with s_n > s_p - 1; 0 where
 *         there is none. After t draws w = log(max(1, floor((items - 1) / t))), as the rank of p is
 *         estimated to be that
 *   wmf   (y (1 - s_p)^2 + mean over n of s_n^2) / 2; the label y is p's confidence over the weight
 *         of all negatives
 *
 * Times the sample's weight. A user's bias says nothing in bpr and warp, and has no gradient there.
 *
 * Shapes: S samples, m rows of D = 1 + factors floats, a bias first. A batch is as in
 * index/plan/drps_batch.h; its fields are roles (drps_algorithm_draws()), in any order.
 *
 * Sources: Rendle, Freudenthaler, Gantner and Schmidt-Thieme (UAI 2009), Eq. 8 without its prior;
 * Weston, Bengio and Usunier (IJCAI 2011), Algorithm 1, whose sum over ranks we replace by the
 * logarithm, and whose draws end with those of the plan; Hu, Koren and Volinsky (ICDM 2008), Eq. 3,
 * with drawn items in place of all, and biases.
 */
#ifndef DRPS_ENGINE_MODEL_RANKING_H
#define DRPS_ENGINE_MODEL_RANKING_H

#include <stddef.h>
#include <stdint.h>

#include "index/plan/drps_algorithm.h"
#include "index/plan/drps_batch.h"

struct drps_ranking {
    enum drps_loss loss; /* bpr, warp, wmf */
    size_t factors;
    uint64_t items; /* warp: of the model */
};

/* What a pass leaves of a sample: floats of it. The place is how many negatives score higher,
 * where those that score the same count half, and those that are no number whole. */
enum { DRPS_RANKED_LOSS, DRPS_RANKED_PLACE, DRPS_RANKED_NEGATIVES, DRPS_RANKED };

/*
 * Samples [first, last) of a batch: ranked [S][DRPS_RANKED] gets what they come to, without their
 * weights, and grads [m][D], unless it is NULL, the derivatives, times `share`, added. Returns the
 * sum of the losses times the weights; NaN: a sample has no user, no positive or no negative.
 */
double drps_ranking_pass(const struct drps_ranking *r, const struct drps_batch *b, size_t first,
                         size_t last, float share, const float *params, float *grads,
                         float *ranked);
/* Its plain twin, for tests. */
double drps_ranking_pass_ref(const struct drps_ranking *r, const struct drps_batch *b, size_t first,
                             size_t last, float share, const float *params, float *grads,
                             float *ranked);

/* ---- Quality: quality.c ---- */

/* The first items that count. */
enum { DRPS_RANKED_CUT = 10 };

/* Sums over samples, times their weights, of how p is placed among its n + 1 candidates. */
struct drps_ranked_sums {
    double auc;    /* 1 - place / n: the share of the negatives that score lower */
    double recall; /* 1 if p is among the first DRPS_RANKED_CUT */
    double ndcg;   /* then 1 / log2(2 + place) */
};

/* Add S samples; weights [S], or NULL: all 1. Returns the sum of their losses. */
double drps_ranked_add(struct drps_ranked_sums *sums, const float *ranked, const float *weights,
                       size_t samples);

#endif
