/*
 * Losses and their derivatives, for one sample in double and for runs of samples in vectors.
 *
 * The logistic loss of z = label * score is written with e = exp(-|z|) <= 1, so that no finite
 * score overflows: loss = max(-z, 0) + log1p(e);   slope = -label * (z < 0 ? 1 : e) / (1 + e)
 */
#include "engine/model/kernels.h"

#include <math.h>

#include "base/kernel/drps_level.h"
#include "engine/model/math/drps_exp.h"

DRPS_KERNEL(double, drps_loss_value,
            (enum drps_loss loss, float score, float label, float *slope_out),
            (loss, score, label, slope_out))
{
    const double y = (double)label, s = (double)score, z = y * s;
    double value = 0, slope = 0;

    switch (loss) {
    case DRPS_LOSS_SQUARED:
        slope = s - y;
        value = 0.5 * slope * slope;
        break;
    case DRPS_LOSS_LOGISTIC: {
        const double e = exp(-fabs(z));
        value = (z < 0 ? -z : 0) + log1p(e);
        slope = -y * (z < 0 ? 1 : e) / (1 + e);
        break;
    }
    case DRPS_LOSS_HINGE:
        value = z < 1 ? 1 - z : 0;
        slope = z < 1 ? -y : 0;
        break;
    case DRPS_LOSS_SQUARED_HINGE:
        value = z < 1 ? (1 - z) * (1 - z) : 0;
        slope = z < 1 ? -2 * y * (1 - z) : 0;
        break;
    case DRPS_LOSS_CODING: /* the score is what a document adds to the objective */
        value = s;
        break;
    case DRPS_LOSS_SOFTMAX:    /* of no single score: engine/model/softmax.c */
    case DRPS_LOSS_EXPRESSION: /* engine/model/expr/ */
    case DRPS_LOSS_BPR:        /* engine/model/ranking/ */
    case DRPS_LOSS_WARP:
    case DRPS_LOSS_WMF:
        value = slope = (double)NAN;
        break;
    }
    if (isnan(z)) value = slope = (double)NAN; /* comparisons would hide it */
    if (slope_out) *slope_out = (float)slope;
    return value;
}

/*
 * log(1 + e) for 0 <= e <= 1, within 3 ulp: 2 atanh(t) with t = e / (2 + e) <= 1/3. The polynomial
 * interpolates (2 atanh(t) / t - 2) / t^2 in the Chebyshev nodes of t^2 in [0, 1/9]; its relative
 * error is below 1.6e-8.
 */
static inline float log1p_unit(float e)
{
    const float t = e / (2.0f + e);
    const float u = t * t;
    float q = 0.2685195124317347f;
    q = q * u + 0.2823653198959282f;
    q = q * u + 0.40007565497957687f;
    q = q * u + 0.6666664026987601f;
    return t * (2.0f + u * q);
}

enum { RUN = 64 }; /* samples whose losses are summed together */

static void logistic(const float *restrict scores, const float *restrict labels, size_t n,
                     float *restrict losses, float *restrict slopes)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        const float z = labels[i] * scores[i];
        const float e = exp_negative(-fabsf(z));
        losses[i] = (z < 0 ? -z : 0.0f) + log1p_unit(e);
        slopes[i] = -labels[i] * (z < 0 ? 1.0f : e) / (1.0f + e);
    }
}

static double sum(const float *losses, size_t n)
{
    double a[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t k = 0; k < 8; k++)
            a[k] += (double)losses[i + k];
    for (; i < n; i++)
        a[0] += (double)losses[i];
    return ((a[0] + a[4]) + (a[1] + a[5])) + ((a[2] + a[6]) + (a[3] + a[7]));
}

/* The squared losses of n samples; they are summed in eight strands, which fixes the order. */
static double squared(const float *restrict scores, const float *restrict labels, size_t n,
                      float *restrict slopes)
{
    double a[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t k = 0; k < 8; k++) {
            const double slope = (double)scores[i + k] - (double)labels[i + k];
            slopes[i + k] = (float)slope;
            a[k] += 0.5 * slope * slope;
        }
    for (; i < n; i++) {
        const double slope = (double)scores[i] - (double)labels[i];
        slopes[i] = (float)slope;
        a[0] += 0.5 * slope * slope;
    }
    return ((a[0] + a[4]) + (a[1] + a[5])) + ((a[2] + a[6]) + (a[3] + a[7]));
}

DRPS_KERNEL(double, drps_class_loss_sum,
            (enum drps_loss loss, const float *scores, const float *labels, size_t n,
             size_t outputs, float *slopes),
            (loss, scores, labels, n, outputs, slopes))
{
    return loss == DRPS_LOSS_SOFTMAX ? drps_softmax_sum(scores, labels, n, outputs, slopes)
                                     : drps_hinges_sum(loss, scores, labels, n, outputs, slopes);
}

DRPS_KERNEL(double, drps_loss_sum,
            (enum drps_loss loss, const float *scores, const float *labels, size_t n,
             float *slopes),
            (loss, scores, labels, n, slopes))
{
    float losses[RUN], unused[RUN];
    double total = 0;

    for (size_t i = 0; i < n; i += RUN) {
        const size_t run = n - i < RUN ? n - i : RUN;
        float *slope = slopes ? slopes + i : unused;
        if (loss == DRPS_LOSS_LOGISTIC) {
            logistic(scores + i, labels + i, run, losses, slope);
            total += sum(losses, run);
        } else if (loss == DRPS_LOSS_SQUARED) {
            total += squared(scores + i, labels + i, run, slope);
        } else {
            for (size_t k = 0; k < run; k++)
                total += drps_loss_value(loss, scores[i + k], labels[i + k], &slope[k]);
        }
    }
    return total;
}

/* ---- With weights ---- */

/* The weighted sum of n losses; slopes, which are there, become those of what is summed. */
static double weigh(const double *losses, const float *weights, size_t n, size_t outputs,
                    float *slopes)
{
    double total = 0;
    for (size_t i = 0; i < n; i++) {
        total += (double)weights[i] * losses[i];
        for (size_t c = 0; slopes && c < outputs; c++)
            slopes[i * outputs + c] *= weights[i];
    }
    return total;
}

/* Losses and slopes of at most RUN samples, each by itself. */
static void losses_of(enum drps_loss loss, const float *scores, const float *labels, size_t n,
                      size_t outputs, double *losses, float *slopes)
{
    float of_run[RUN], unused[RUN];
    if (outputs == 1 && loss == DRPS_LOSS_LOGISTIC) {
        logistic(scores, labels, n, of_run, slopes ? slopes : unused);
        for (size_t i = 0; i < n; i++)
            losses[i] = (double)of_run[i];
        return;
    }
    for (size_t i = 0; i < n; i++)
        losses[i] = outputs == 1
                        ? drps_loss_value(loss, scores[i], labels[i], slopes ? slopes + i : NULL)
                        : drps_class_loss_sum(loss, scores + i * outputs, labels + i, 1, outputs,
                                              slopes ? slopes + i * outputs : NULL);
}

DRPS_KERNEL(double, drps_weighted_loss_sum,
            (enum drps_loss loss, const float *scores, const float *labels, const float *weights,
             size_t n, size_t outputs, float *slopes),
            (loss, scores, labels, weights, n, outputs, slopes))
{
    double losses[RUN], total = 0;
    for (size_t i = 0; i < n; i += RUN) {
        const size_t run = n - i < RUN ? n - i : RUN;
        float *of_run = slopes ? slopes + i * outputs : NULL;
        losses_of(loss, scores + i * outputs, labels + i, run, outputs, losses, of_run);
        total += weigh(losses, weights + i, run, outputs, of_run);
    }
    return total;
}
