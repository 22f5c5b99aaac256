/* Quality on held-out samples, in bounded memory. A sample of weight n counts as n of weight 1 do.
 */
#ifndef DRPS_ENGINE_MODEL_METRICS_H
#define DRPS_ENGINE_MODEL_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/model/drps_model.h"

struct drps_metrics; /* opaque */

struct drps_quality {
    uint64_t samples; /* whatever they weigh */
    uint64_t unknown; /* of these, whose label is none of the model's named classes: they have no
                         loss, and count as wrong */
    double loss;      /* mean; NaN without samples */
    double auc;       /* two classes; NaN otherwise, with one class only, or with a NaN score.
                         Exact with up to 108,544 distinct scores a class, else at most .001 off */
    double accuracy;  /* classification: score > 0 means +1, or the class of the largest score; NaN
                         otherwise */
    double rmse;      /* regression; NaN otherwise */
    /* Implicit feedback; NaN otherwise. Each test sample ranks its item among its negatives, and
     * the first ten places count (engine/model/ranking/drps_ranking.h). `auc` is then the share of
     * the negatives that score lower. */
    double recall, ndcg;
};

/* Of samples with so many scores each. DRPS_METRICS_BYTES for two classes
 * (engine/model/scores.h), little otherwise. NULL when memory
 * is gone.
 */
enum { DRPS_METRICS_BYTES = (4 << 20) + (1 << 18) };
struct drps_metrics *drps_metrics_new(enum drps_loss loss, uint32_t outputs);
/* The same of a model, whose loss may be a text or callbacks; it is borrowed while *m is used. */
struct drps_metrics *drps_metrics_of(const struct drps_model *model);
void drps_metrics_free(struct drps_metrics *m); /* NULL-safe */
void drps_metrics_reset(struct drps_metrics *m);
/* scores [n][outputs], of implicit feedback [n][DRPS_RANKED]; weights [n], finite and not below 0,
 * or NULL: all 1. */
void drps_metrics_add(struct drps_metrics *m, const float *scores, const float *labels,
                      const float *weights, size_t n);
/* 0: the sum of the losses so far is no finite number. */
int drps_metrics_is_finite(const struct drps_metrics *m);
void drps_metrics_result(struct drps_metrics *m, struct drps_quality *out);

/* Samples of two classes with one score, or with scores that are hardly apart: their weights by
 * label. */
struct drps_score_point {
    float score;
    double negative, positive;
};
/* The most points, and their bytes while they are made. */
enum { DRPS_METRICS_POINTS = 2 * 106 * 1024 };
#define DRPS_METRICS_POINTS_BYTES (DRPS_METRICS_POINTS * sizeof(struct drps_score_point))

/*
 * All scores so far, increasing, as points [*n_out], own. Each distinct score is one, as long as
 * there are no more than 108,544 a class; else scores of narrow intervals are joined to the middle
 * of theirs. None where labels are not of two classes. -ENOMEM.
 */
DRPS_MUST_CHECK
int drps_metrics_points(struct drps_metrics *m, struct drps_score_point **points_out, size_t *n_out,
                        struct drps_err *err);

/* What was counted, for drps_metrics_merge() elsewhere: out has room for drps_metrics_bound()
 * bytes, as many as are used are returned. */
size_t drps_metrics_bound(const struct drps_metrics *m);
size_t drps_metrics_encode(struct drps_metrics *m, void *out);

/* Add it. DRPS_E_PROTO when it is no such thing. */
DRPS_MUST_CHECK
int drps_metrics_merge(struct drps_metrics *m, const void *data, size_t bytes,
                       struct drps_err *err);

#endif
