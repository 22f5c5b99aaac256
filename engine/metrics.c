/*
 * Metrics of a stream of scores, in bounded memory. The area under the ROC curve is the share of
 * (positive, negative) pairs that the scores order rightly, ties counting half. Scores are counted
 * by the first 18 bits of their order-preserving form (sign, exponent, 9 bits of mantissa), so that
 * two scores tie when they agree to about 0.2 %: pairs inside one bin are the only ones that can be
 * counted wrongly, and by half a pair each.
 */
#include "engine/drps_metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BIN_BITS = 18, BINS = 1 << BIN_BITS };

struct drps_metrics {
    enum drps_loss loss;
    uint64_t samples;
    uint64_t right;
    uint64_t unordered; /* scores that are not a number: no AUC then */
    double loss_sum;
    uint64_t (*bins)[2]; /* [BINS] negatives, positives; NULL for regression */
};

struct drps_metrics *drps_metrics_new(enum drps_loss loss)
{
    struct drps_metrics *m = calloc(1, sizeof(*m));

    if (!m) return NULL;
    m->loss = loss;
    if (drps_loss_is_classification(loss)) {
        m->bins = calloc(BINS, sizeof(*m->bins));
        if (!m->bins) {
            free(m);
            return NULL;
        }
    }
    return m;
}

void drps_metrics_free(struct drps_metrics *m)
{
    if (!m) return;
    free(m->bins);
    free(m);
}

void drps_metrics_reset(struct drps_metrics *m)
{
    m->samples = m->right = m->unordered = 0;
    m->loss_sum = 0;
    if (m->bins) memset(m->bins, 0, BINS * sizeof(*m->bins));
}

/* Order-preserving: flip all bits of negative floats, the sign of others. -0 becomes +0 first. */
static inline uint32_t bin_of(float score)
{
    uint32_t bits;
    score += 0.0f;
    memcpy(&bits, &score, sizeof(bits));
    bits ^= bits >> 31 ? UINT32_MAX : UINT32_C(1) << 31;
    return bits >> (32 - BIN_BITS);
}

void drps_metrics_add(struct drps_metrics *m, const float *scores, const float *labels, size_t n)
{
    m->samples += n;
    m->loss_sum += drps_loss_sum(m->loss, scores, labels, n, NULL);
    if (!m->bins) return;
    for (size_t i = 0; i < n; i++) {
        const int positive = labels[i] > 0;
        m->right += (scores[i] > 0) == positive;
        m->unordered += isnan(scores[i]) != 0;
        m->bins[bin_of(scores[i])][positive]++;
    }
}

static double auc(const struct drps_metrics *m)
{
    uint64_t below = 0, positives = 0; /* negatives and positives in lower bins */
    double pairs = 0;

    for (size_t i = 0; i < BINS; i++) {
        const uint64_t negative = m->bins[i][0], positive = m->bins[i][1];
        pairs += (double)positive * ((double)below + 0.5 * (double)negative);
        below += negative;
        positives += positive;
    }
    if (m->unordered || !below || !positives) return (double)NAN;
    return pairs / ((double)positives * (double)below);
}

void drps_metrics_result(const struct drps_metrics *m, struct drps_quality *out)
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
    if (m->bins) {
        out->auc = auc(m);
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
struct bin {
    uint64_t number, counts[2];
};

size_t drps_metrics_bound(const struct drps_metrics *m)
{
    return sizeof(struct head) + (m->bins ? BINS * sizeof(struct bin) : 0);
}

size_t drps_metrics_encode(const struct drps_metrics *m, void *out)
{
    const struct head head = {m->samples, m->right, m->unordered, m->loss_sum};
    char *at = out;
    memcpy(at, &head, sizeof(head));
    at += sizeof(head);
    for (size_t i = 0; m->bins && i < BINS; i++) {
        const struct bin bin = {i, {m->bins[i][0], m->bins[i][1]}};
        if (!bin.counts[0] && !bin.counts[1]) continue;
        memcpy(at, &bin, sizeof(bin));
        at += sizeof(bin);
    }
    return (size_t)(at - (char *)out);
}

int drps_metrics_merge(struct drps_metrics *m, const void *data, size_t bytes, struct drps_err *err)
{
    struct head head;
    const char *at = data;
    const size_t bins = bytes >= sizeof(head) ? (bytes - sizeof(head)) / sizeof(struct bin) : 0;
    if (bytes != sizeof(head) + bins * sizeof(struct bin) || (bins && !m->bins))
        return drps_err_set(err, DRPS_E_PROTO, "metrics of %zu bytes", bytes);
    memcpy(&head, at, sizeof(head));
    m->samples += head.samples;
    m->right += head.right;
    m->unordered += head.unordered;
    m->loss_sum += head.loss_sum;
    at += sizeof(head);
    for (size_t i = 0; i < bins; i++, at += sizeof(struct bin)) {
        struct bin bin;
        memcpy(&bin, at, sizeof(bin));
        if (bin.number >= BINS)
            return drps_err_set(err, DRPS_E_PROTO, "metrics have a bin %llu of %d",
                                (unsigned long long)bin.number, (int)BINS);
        m->bins[bin.number][0] += bin.counts[0];
        m->bins[bin.number][1] += bin.counts[1];
    }
    return 0;
}
