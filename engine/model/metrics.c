/*
 * Metrics of a stream of scores, in bounded memory. The area under the ROC curve is the share of
 * (positive, negative) pairs that the scores order rightly, ties counting half;
 * engine/model/scores.h says how the scores are kept.
 */
#include "engine/model/drps_metrics.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "engine/model/ranking/drps_ranking.h"
#include "engine/model/scores.h"

_Static_assert(2 * DRPS_SCORES_BYTES <= DRPS_METRICS_BYTES, "see drps_metrics.h");

struct drps_metrics {
    enum drps_loss loss;
    const struct drps_model *model; /* borrowed; NULL: the loss is a built-in one */
    void *scratch;                  /* own: of the model */
    int named;                      /* labels are numbers of named classes */
    size_t outputs;                 /* scores of a sample */
    uint64_t samples;
    double weight; /* of all; next, of those that are right */
    double right;
    uint64_t unordered; /* two classes: scores that are not a number, so that there is no AUC */
    uint64_t unknown;   /* named classes: labels that are none */
    double unknown_weight;
    double loss_sum;
    int ranked; /* samples are places among negatives */
    struct drps_ranked_sums places;
    int two_classes;
    struct drps_scores classes[2]; /* negatives, positives; of two classes */
};

/* What is kept for two classes. */
static struct drps_metrics *with_scores(struct drps_metrics *m)
{
    for (int i = 0; m->two_classes && i < 2; i++)
        if (drps_scores_init(&m->classes[i]) < 0) {
            drps_metrics_free(m);
            return NULL;
        }
    return m;
}

struct drps_metrics *drps_metrics_new(enum drps_loss loss, uint32_t outputs)
{
    struct drps_metrics *m = calloc(1, sizeof(*m));
    if (!m) return NULL;
    m->loss = loss;
    m->outputs = outputs;
    m->named = outputs > 1;
    m->two_classes = outputs == 1 && drps_loss_is_classification(loss);
    m->ranked = loss >= DRPS_LOSS_BPR && loss <= DRPS_LOSS_WMF;
    return with_scores(m);
}

struct drps_metrics *drps_metrics_of(const struct drps_model *model)
{
    if (model->loss != DRPS_LOSS_EXPRESSION && !model->callbacks)
        return drps_metrics_new(model->loss, model->outputs);
    struct drps_metrics *m = calloc(1, sizeof(*m));
    if (!m) return NULL;
    m->loss = DRPS_LOSS_EXPRESSION;
    m->outputs = model->outputs;
    m->model = model;
    m->named = model->classes > 1;
    m->two_classes = model->classes == 1 && model->outputs == 1;
    m->scratch = malloc(drps_model_scratch_bytes(model, 1, 1) + 1);
    if (m->scratch) return with_scores(m);
    free(m);
    return NULL;
}

void drps_metrics_free(struct drps_metrics *m)
{
    if (!m) return;
    drps_scores_destroy(&m->classes[0]);
    drps_scores_destroy(&m->classes[1]);
    free(m->scratch);
    free(m);
}

void drps_metrics_reset(struct drps_metrics *m)
{
    m->samples = m->unordered = m->unknown = 0;
    m->weight = m->right = m->unknown_weight = m->loss_sum = 0;
    m->places = (struct drps_ranked_sums){0};
    drps_scores_reset(&m->classes[0]);
    drps_scores_reset(&m->classes[1]);
}

/* Order-preserving: flip all bits of negative floats, the sign of others. -0 becomes +0 first. */
static inline uint32_t ordered(float score)
{
    uint32_t bits;
    score += 0.0f;
    memcpy(&bits, &score, sizeof(bits));
    return bits ^ (bits >> 31 ? UINT32_MAX : UINT32_C(1) << 31);
}

static double weight_of(const float *weights, size_t i)
{
    return weights ? (double)weights[i] : 1;
}

/* Returns the sum of the losses of n samples, each times its weight. */
static double loss_of(const struct drps_metrics *m, const float *scores, const float *labels,
                      const float *weights, size_t n)
{
    double sum = 0;
    if (m->model) {
        for (size_t i = 0; i < n; i++)
            sum += weight_of(weights, i) *
                   drps_model_loss(m->model, scores + i * m->outputs, labels[i], m->scratch);
        return sum;
    }
    if (weights)
        return drps_weighted_loss_sum(m->loss, scores, labels, weights, n, m->outputs, NULL);
    return m->named ? drps_class_loss_sum(m->loss, scores, labels, n, m->outputs, NULL)
                    : drps_loss_sum(m->loss, scores, labels, n, NULL);
}

/* Samples of named classes. */
static void add_named(struct drps_metrics *m, const float *scores, const float *labels,
                      const float *weights, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float *of_sample = scores + i * m->outputs;
        const double weight = weight_of(weights, i);
        if (!(labels[i] >= 0 && labels[i] < (float)m->outputs)) {
            m->unknown++;
            m->unknown_weight += weight;
            continue;
        }
        m->loss_sum += weight * loss_of(m, of_sample, &labels[i], NULL, 1);
        if (drps_softmax_best(of_sample, m->outputs) == (size_t)labels[i]) m->right += weight;
    }
}

/* Samples of two classes. What weighs nothing makes no pairs. */
static void add_two(struct drps_metrics *m, const float *scores, const float *labels,
                    const float *weights, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int positive = labels[i] > 0;
        if ((scores[i] > 0) == positive) m->right += weight_of(weights, i);
        if (weights && !(weights[i] > 0)) continue;
        if (isnan(scores[i]))
            m->unordered++;
        else if (weights)
            drps_scores_add_weighted(&m->classes[positive], ordered(scores[i]), weights[i]);
        else
            drps_scores_add(&m->classes[positive], ordered(scores[i]));
    }
}

void drps_metrics_add(struct drps_metrics *m, const float *scores, const float *labels,
                      const float *weights, size_t n)
{
    m->samples += n;
    for (size_t i = 0; weights && i < n; i++)
        m->weight += (double)weights[i];
    if (!weights) m->weight += (double)n;
    if (m->named) {
        add_named(m, scores, labels, weights, n);
        return;
    }
    if (m->ranked) {
        m->loss_sum += drps_ranked_add(&m->places, scores, weights, n);
        return;
    }
    m->loss_sum += loss_of(m, scores, labels, weights, n);
    if (m->two_classes) add_two(m, scores, labels, weights, n);
}

int drps_metrics_is_finite(const struct drps_metrics *m)
{
    return isfinite(m->loss_sum);
}

void drps_metrics_result(struct drps_metrics *m, struct drps_quality *out)
{
    const double n = m->weight, known = m->weight - m->unknown_weight, none = (double)NAN;

    *out = (struct drps_quality){
        .samples = m->samples,
        .unknown = m->unknown,
        .loss = m->samples > m->unknown && known > 0 ? m->loss_sum / known : none,
        .auc = none,
        .accuracy = none,
        .rmse = none,
        .recall = none,
        .ndcg = none,
    };
    if (!(n > 0)) return;
    if (m->ranked) {
        out->auc = m->places.auc / n;
        out->recall = m->places.recall / n;
        out->ndcg = m->places.ndcg / n;
    } else if (m->named) {
        out->accuracy = m->right / n;
    } else if (m->two_classes) {
        if (!m->unordered) out->auc = drps_scores_in_order(&m->classes[0], &m->classes[1]);
        out->accuracy = m->right / n;
    } else if (m->loss == DRPS_LOSS_SQUARED) {
        out->rmse = sqrt(2 * m->loss_sum / n); /* the squared loss is half the square */
    }
}

/* ---- Scores by label ---- */

_Static_assert(DRPS_METRICS_POINTS == 2 * DRPS_SCORES_MOST, "see drps_metrics.h");

/* The middle of a cell's values. */
static float score_of(const struct drps_score_cell *c)
{
    const uint64_t wide = (UINT64_C(1) << c->width) - 1;
    const uint32_t value = (uint32_t)(c->last - wide / 2);
    const uint32_t bits = value ^ (value >> 31 ? UINT32_C(1) << 31 : UINT32_MAX);
    float score;
    memcpy(&score, &bits, sizeof(score));
    return score > FLT_MAX ? FLT_MAX : score < -FLT_MAX ? -FLT_MAX : score;
}

static int by_score(const void *a, const void *b)
{
    const struct drps_score_point *x = a, *y = b;
    return x->score < y->score ? -1 : x->score > y->score;
}

/* Returns how many are left of sorted points when equal scores are one. */
static size_t join_points(struct drps_score_point *points, size_t n)
{
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        if (used && !(points[i].score > points[used - 1].score)) {
            points[used - 1].negative += points[i].negative;
            points[used - 1].positive += points[i].positive;
        } else {
            points[used++] = points[i];
        }
    }
    return used;
}

int drps_metrics_points(struct drps_metrics *m, struct drps_score_point **points_out, size_t *n_out,
                        struct drps_err *err)
{
    size_t n = 0;
    for (int k = 0; m->two_classes && k < 2; k++)
        drps_scores_sort_in(&m->classes[k]);
    *n_out = 0;
    *points_out = drps_array_new(m->classes[0].n + m->classes[1].n, sizeof(**points_out));
    if (!*points_out) return drps_err_set(err, -ENOMEM, "no memory for scores by label");
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < m->classes[k].n; i++) {
            const struct drps_score_cell *c = &m->classes[k].cells[i];
            (*points_out)[n++] = (struct drps_score_point){
                .score = score_of(c), .negative = k ? 0 : c->count, .positive = k ? c->count : 0};
        }
    qsort(*points_out, n, sizeof(**points_out), by_score);
    *n_out = join_points(*points_out, n);
    return 0;
}

/* ---- From one process to another ---- */

struct head {
    uint64_t samples;
    uint64_t odd; /* scores that are unordered, or labels that are unknown: never both */
    double weight, right, unknown_weight, loss_sum;
};

size_t drps_metrics_bound(const struct drps_metrics *m)
{
    return sizeof(struct head) + (m->two_classes ? 2 * DRPS_SCORES_BOUND : 0) +
           (m->ranked ? sizeof(m->places) : 0);
}

size_t drps_metrics_encode(struct drps_metrics *m, void *out)
{
    const struct head head = {.samples = m->samples,
                              .odd = m->unordered + m->unknown,
                              .weight = m->weight,
                              .right = m->right,
                              .unknown_weight = m->unknown_weight,
                              .loss_sum = m->loss_sum};
    char *at = out;
    memcpy(at, &head, sizeof(head));
    at += sizeof(head);
    for (int i = 0; m->two_classes && i < 2; i++)
        at += drps_scores_encode(&m->classes[i], at);
    if (m->ranked) {
        memcpy(at, &m->places, sizeof(m->places));
        at += sizeof(m->places);
    }
    return (size_t)(at - (char *)out);
}

/* Each is a mean of numbers up to 1, times the weights; sums are rounded in different orders. */
static int is_share(double sum, double weight)
{
    return sum >= 0 && sum <= weight * (1 + 1e-9);
}

static int take_places(struct drps_ranked_sums *out, double weight, const char **at, size_t *left,
                       struct drps_err *err)
{
    if (*left < sizeof(*out))
        return drps_err_set(err, DRPS_E_PROTO, "metrics that end with %zu bytes", *left);
    memcpy(out, *at, sizeof(*out));
    *at += sizeof(*out);
    *left -= sizeof(*out);
    if (is_share(out->auc, weight) && is_share(out->recall, weight) && is_share(out->ndcg, weight))
        return 0;
    return drps_err_set(err, DRPS_E_PROTO, "metrics of places that make no sense");
}

int drps_metrics_merge(struct drps_metrics *m, const void *data, size_t bytes, struct drps_err *err)
{
    struct head head;
    struct drps_ranked_sums places = {0};
    const char *at = data;
    size_t left = bytes;
    int rc = 0;
    if (bytes < sizeof(head)) return drps_err_set(err, DRPS_E_PROTO, "metrics of %zu bytes", bytes);
    memcpy(&head, at, sizeof(head));
    if (!(head.weight >= head.right && head.right >= 0 && head.weight >= head.unknown_weight &&
          head.unknown_weight >= 0 && isfinite(head.weight)))
        return drps_err_set(err, DRPS_E_PROTO, "metrics with weights that make no sense");
    at += sizeof(head);
    left -= sizeof(head);
    for (int i = 0; rc == 0 && m->two_classes && i < 2; i++)
        rc = drps_scores_merge(&m->classes[i], &at, &left, err);
    if (rc == 0 && m->ranked) rc = take_places(&places, head.weight, &at, &left, err);
    if (rc == 0 && left) rc = drps_err_set(err, DRPS_E_PROTO, "metrics of %zu bytes", bytes);
    if (rc < 0) return rc;
    m->samples += head.samples;
    m->weight += head.weight;
    m->right += head.right;
    m->unknown_weight += head.unknown_weight;
    *(m->two_classes ? &m->unordered : &m->unknown) += head.odd;
    m->loss_sum += head.loss_sum;
    m->places.auc += places.auc;
    m->places.recall += places.recall;
    m->places.ndcg += places.ndcg;
    return 0;
}
