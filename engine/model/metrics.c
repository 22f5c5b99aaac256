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
    uint64_t samples;
    uint64_t right;
    uint64_t unordered; /* scores that are not a number: no AUC then */
    double loss_sum;
    int classification;
    struct drps_scores classes[2]; /* negatives, positives; of classification */
};

struct drps_metrics *drps_metrics_new(enum drps_loss loss)
{
    struct drps_metrics *m = calloc(1, sizeof(*m));

    if (!m) return NULL;
    m->loss = loss;
    m->classification = drps_loss_is_classification(loss);
    for (int i = 0; m->classification && i < 2; i++)
        if (drps_scores_init(&m->classes[i]) < 0) {
            drps_metrics_free(m);
            return NULL;
        }
    return m;
}

void drps_metrics_free(struct drps_metrics *m)
{
    if (!m) return;
    drps_scores_destroy(&m->classes[0]);
    drps_scores_destroy(&m->classes[1]);
    free(m);
}

void drps_metrics_reset(struct drps_metrics *m)
{
    m->samples = m->right = m->unordered = 0;
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

void drps_metrics_add(struct drps_metrics *m, const float *scores, const float *labels, size_t n)
{
    m->samples += n;
    m->loss_sum += drps_loss_sum(m->loss, scores, labels, n, NULL);
    if (!m->classification) return;
    for (size_t i = 0; i < n; i++) {
        const int positive = labels[i] > 0;
        m->right += (scores[i] > 0) == positive;
        if (isnan(scores[i]))
            m->unordered++;
        else
            drps_scores_add(&m->classes[positive], ordered(scores[i]));
    }
}

void drps_metrics_result(struct drps_metrics *m, struct drps_quality *out)
{
    const double n = (double)m->samples, none = (double)NAN;

    *out = (struct drps_quality){
        .samples = m->samples,
        .loss = m->samples ? m->loss_sum / n : none,
        .auc = none,
        .accuracy = none,
        .rmse = none,
    };
    if (!m->samples) return;
    if (m->classification) {
        if (!m->unordered) out->auc = drps_scores_in_order(&m->classes[0], &m->classes[1]);
        out->accuracy = (double)m->right / n;
    } else {
        out->rmse = sqrt(2 * m->loss_sum / n); /* the squared loss is half the square */
    }
}

/* ---- From one process to another ---- */

struct head {
    uint64_t samples, right, unordered;
    double loss_sum;
};

size_t drps_metrics_bound(const struct drps_metrics *m)
{
    return sizeof(struct head) + (m->classification ? 2 * DRPS_SCORES_BOUND : 0);
}

size_t drps_metrics_encode(struct drps_metrics *m, void *out)
{
    const struct head head = {m->samples, m->right, m->unordered, m->loss_sum};
    char *at = out;
    memcpy(at, &head, sizeof(head));
    at += sizeof(head);
    for (int i = 0; m->classification && i < 2; i++)
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
    for (int i = 0; rc == 0 && m->classification && i < 2; i++)
        rc = drps_scores_merge(&m->classes[i], &at, &left, err);
    if (rc == 0 && left) rc = drps_err_set(err, DRPS_E_PROTO, "metrics of %zu bytes", bytes);
    if (rc < 0) return rc;
    m->samples += head.samples;
    m->right += head.right;
    m->unordered += head.unordered;
    m->loss_sum += head.loss_sum;
    return 0;
}
