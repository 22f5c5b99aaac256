/*
 * Metrics of a stream of scores, in bounded memory. The area under the ROC curve is the share of
 * (positive, negative) pairs that the scores order rightly, ties counting half;
 * engine/model/scores.h says how the scores are kept.
 */
#include "engine/model/drps_metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/scores.h"

_Static_assert(2 * DRPS_SCORES_BYTES <= DRPS_METRICS_BYTES, "see drps_metrics.h");

struct drps_metrics {
    enum drps_loss loss;
    const struct drps_model *model; /* borrowed; NULL: the loss is a built-in one */
    void *scratch;                  /* own: of the model */
    int named;                      /* labels are numbers of named classes */
    size_t outputs;                 /* scores of a sample */
    uint64_t samples;
    uint64_t right;
    uint64_t unordered; /* two classes: scores that are not a number, so that there is no AUC */
    uint64_t unknown;   /* named classes: labels that are none */
    double loss_sum;
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
    m->samples = m->right = m->unordered = m->unknown = 0;
    m->loss_sum = 0;
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

/* Of n samples. */
static double loss_of(const struct drps_metrics *m, const float *scores, const float *labels,
                      size_t n)
{
    double sum = 0;
    if (m->model) {
        for (size_t i = 0; i < n; i++)
            sum += drps_model_loss(m->model, scores + i * m->outputs, labels[i], m->scratch);
        return sum;
    }
    return m->named ? drps_class_loss_sum(m->loss, scores, labels, n, m->outputs, NULL)
                    : drps_loss_sum(m->loss, scores, labels, n, NULL);
}

/* Samples of named classes. */
static void add_named(struct drps_metrics *m, const float *scores, const float *labels, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float *of_sample = scores + i * m->outputs;
        if (!(labels[i] >= 0 && labels[i] < (float)m->outputs)) {
            m->unknown++;
            continue;
        }
        m->loss_sum += loss_of(m, of_sample, &labels[i], 1);
        m->right += drps_softmax_best(of_sample, m->outputs) == (size_t)labels[i];
    }
}

void drps_metrics_add(struct drps_metrics *m, const float *scores, const float *labels, size_t n)
{
    m->samples += n;
    if (m->named) {
        add_named(m, scores, labels, n);
        return;
    }
    m->loss_sum += loss_of(m, scores, labels, n);
    if (!m->two_classes) return;
    for (size_t i = 0; i < n; i++) {
        const int positive = labels[i] > 0;
        m->right += (scores[i] > 0) == positive;
        if (isnan(scores[i]))
            m->unordered++;
        else
            drps_scores_add(&m->classes[positive], ordered(scores[i]));
    }
}

int drps_metrics_is_finite(const struct drps_metrics *m)
{
    return isfinite(m->loss_sum);
}

void drps_metrics_result(struct drps_metrics *m, struct drps_quality *out)
{
    const double n = (double)m->samples, none = (double)NAN;

    *out = (struct drps_quality){
        .samples = m->samples,
        .unknown = m->unknown,
        .loss = m->samples > m->unknown ? m->loss_sum / (double)(m->samples - m->unknown) : none,
        .auc = none,
        .accuracy = none,
        .rmse = none,
    };
    if (!m->samples) return;
    if (m->named) {
        out->accuracy = (double)m->right / n;
    } else if (m->two_classes) {
        if (!m->unordered) out->auc = drps_scores_in_order(&m->classes[0], &m->classes[1]);
        out->accuracy = (double)m->right / n;
    } else if (m->loss == DRPS_LOSS_SQUARED) {
        out->rmse = sqrt(2 * m->loss_sum / n); /* the squared loss is half the square */
    }
}

/* ---- From one process to another ---- */

struct head {
    uint64_t samples, right;
    uint64_t odd; /* scores that are unordered, or labels that are unknown: never both */
    double loss_sum;
};

size_t drps_metrics_bound(const struct drps_metrics *m)
{
    return sizeof(struct head) + (m->two_classes ? 2 * DRPS_SCORES_BOUND : 0);
}

size_t drps_metrics_encode(struct drps_metrics *m, void *out)
{
    const struct head head = {m->samples, m->right, m->unordered + m->unknown, m->loss_sum};
    char *at = out;
    memcpy(at, &head, sizeof(head));
    at += sizeof(head);
    for (int i = 0; m->two_classes && i < 2; i++)
        at += drps_scores_encode(&m->classes[i], at);
    return (size_t)(at - (char *)out);
}

int drps_metrics_merge(struct drps_metrics *m, const void *data, size_t bytes, struct drps_err *err)
{
    struct head head;
    const char *at = data;
    size_t left = bytes;
    int rc = 0;
    if (bytes < sizeof(head)) return drps_err_set(err, DRPS_E_PROTO, "metrics of %zu bytes", bytes);
    memcpy(&head, at, sizeof(head));
    at += sizeof(head);
    left -= sizeof(head);
    for (int i = 0; rc == 0 && m->two_classes && i < 2; i++)
        rc = drps_scores_merge(&m->classes[i], &at, &left, err);
    if (rc == 0 && left) rc = drps_err_set(err, DRPS_E_PROTO, "metrics of %zu bytes", bytes);
    if (rc < 0) return rc;
    m->samples += head.samples;
    m->right += head.right;
    *(m->two_classes ? &m->unordered : &m->unknown) += head.odd;
    m->loss_sum += head.loss_sum;
    return 0;
}
