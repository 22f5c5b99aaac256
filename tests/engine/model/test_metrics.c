/*
 * Metrics: the AUC against counting every pair and, of many scores, against sorting them all; and
 * the edges (ties, one class, extreme scores).
 *
 *   test_metrics [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "engine/model/drps_metrics.h"

enum { N = 3000 };

static uint64_t seed = 20240607;
static uint64_t counter;

static double uniform(double low, double high)
{
    return low + (high - low) * drps_unit_double(drps_rng_at(seed, counter++));
}

static double auc_by_pairs(const float *scores, const float *labels, size_t n)
{
    double right = 0, pairs = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            if (!(labels[i] > 0 && labels[j] < 0)) continue;
            pairs += 1;
            right += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
        }
    return right / pairs;
}

static struct drps_quality quality_of(enum drps_loss loss, const float *scores, const float *labels,
                                      size_t n)
{
    struct drps_metrics *m = drps_metrics_new(loss, 1);
    struct drps_quality q;

    assert_non_null(m);
    drps_metrics_add(m, scores, labels, NULL, n);
    drps_metrics_result(m, &q);
    drps_metrics_free(m);
    return q;
}

static float draw_score(int how, int positive)
{
    const double x = uniform(-4, 3) + (positive ? 0.7 : 0);
    switch (how) {
    case 0: /* continuous */
        return (float)x;
    case 1: /* heavily tied */
        return (float)round(x);
    case 2: /* a little beside a large intercept */
        return (float)(-7 + 0.001 * x);
    case 3: /* magnitudes from 1e-30 to 1e30 */
        return (float)(x * pow(10, uniform(-30, 30)));
    default: /* all the same */
        return 0.25f;
    }
}

static void test_auc_matches_counting_pairs(void **state)
{
    static const struct {
        const char *name;
        int how;
    } cases[] = {{"continuous", 0}, {"tied", 1}, {"intercept", 2}, {"wide", 3}, {"equal", 4}};
    static float scores[N], labels[N];

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        for (int i = 0; i < N; i++) {
            labels[i] = uniform(0, 1) < 0.3 ? 1.0f : -1.0f;
            scores[i] = draw_score(cases[c].how, labels[i] > 0);
        }
        const double expected = auc_by_pairs(scores, labels, N);
        const double found = quality_of(DRPS_LOSS_LOGISTIC, scores, labels, N).auc;
        if (!(fabs(expected - found) <= 1e-12))
            fail_msg("%s, seed %llu: expected %.12g, found %.12g", cases[c].name,
                     (unsigned long long)seed, expected, found);
    }
}

static void test_auc_orders_extreme_scores(void **state)
{
    /* in ascending order; each pair of neighbours as (negative, positive) must be ordered rightly
     */
    static const float ascending[] = {-INFINITY, -FLT_MAX, -1,      -FLT_MIN, 0,
                                      FLT_MIN,   1,        FLT_MAX, INFINITY};
    const float labels[] = {-1, 1};

    (void)state;
    for (size_t i = 0; i + 1 < sizeof(ascending) / sizeof(ascending[0]); i++) {
        const double auc = quality_of(DRPS_LOSS_HINGE, &ascending[i], labels, 2).auc;
        if (auc != 1)
            fail_msg("%g before %g: expected 1, found %g", (double)ascending[i],
                     (double)ascending[i + 1], auc);
    }
}

static void test_auc_ties_zeros_alone(void **state)
{
    static const struct {
        const char *name;
        float scores[2];
        double auc;
    } cases[] = {{"-0 and 0", {-0.0f, 0.0f}, 0.5},
                 {"0 and -0", {0.0f, -0.0f}, 0.5},
                 {"0 and the least denormal", {0, 0x1p-149f}, 1},
                 {"denormals of either sign", {-0x1p-149f, 0x1p-149f}, 1},
                 {"large denormals", {0x1p-130f, 0x1p-128f}, 1}};
    const float labels[] = {-1, 1};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const double auc = quality_of(DRPS_LOSS_LOGISTIC, cases[i].scores, labels, 2).auc;
        if (auc != cases[i].auc)
            fail_msg("%s: expected %g, found %g", cases[i].name, cases[i].auc, auc);
    }
}

static void test_auc_is_nan_without_two_classes(void **state)
{
    const float scores[] = {1, 2, 3}, positive[] = {1, 1, 1}, negative[] = {-1, -1, -1};

    (void)state;
    assert_true(isnan(quality_of(DRPS_LOSS_LOGISTIC, scores, positive, 3).auc));
    assert_true(isnan(quality_of(DRPS_LOSS_LOGISTIC, scores, negative, 3).auc));
    assert_true(isnan(quality_of(DRPS_LOSS_LOGISTIC, scores, negative, 0).auc));
}

static void test_metrics_do_not_hide_nan_scores(void **state)
{
    const float scores[] = {1, NAN, -1}, labels[] = {1, 1, -1};
    const struct drps_quality q = quality_of(DRPS_LOSS_LOGISTIC, scores, labels, 3);

    (void)state;
    assert_true(isnan(q.auc));
    assert_true(isnan(q.loss));
}

static void test_metrics_losses_of_extreme_scores_stay_finite(void **state)
{
    const float scores[] = {-1e4f, 1e4f, FLT_MAX}, labels[] = {1, -1, 1};
    const struct drps_quality q = quality_of(DRPS_LOSS_LOGISTIC, scores, labels, 3);

    (void)state;
    assert_true(fabs(q.loss - 2e4 / 3) < 1e-2); /* two losses of 1e4 each, one of 0 */
}

static void test_metrics_accuracy_counts_signs(void **state)
{
    const float scores[] = {1, -1, 0, 0, 2}, labels[] = {1, 1, 1, -1, -1}; /* score 0 means -1 */
    const struct drps_quality q = quality_of(DRPS_LOSS_HINGE, scores, labels, 5);

    (void)state;
    assert_int_equal(q.samples, 5);
    assert_true(fabs(q.accuracy - 2.0 / 5) < 1e-15);
    assert_true(fabs(q.loss - (0 + 2 + 1 + 1 + 3) / 5.0) < 1e-15);
    assert_true(isnan(q.rmse));
}

static void test_metrics_regression_gives_rmse(void **state)
{
    const float scores[] = {1, 2, 3}, labels[] = {2, 4, 1}; /* errors 1, 2, 2 */
    const struct drps_quality q = quality_of(DRPS_LOSS_SQUARED, scores, labels, 3);

    (void)state;
    assert_true(fabs(q.rmse - sqrt(3)) < 1e-15);
    assert_true(fabs(q.loss - 1.5) < 1e-15);
    assert_true(isnan(q.auc) && isnan(q.accuracy));
}

static void test_metrics_without_samples_are_nan(void **state)
{
    static const enum drps_loss losses[] = {DRPS_LOSS_SQUARED, DRPS_LOSS_HINGE};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct drps_quality q = quality_of(losses[i], NULL, NULL, 0);
        assert_int_equal(q.samples, 0);
        assert_true(isnan(q.loss) && isnan(q.auc) && isnan(q.accuracy) && isnan(q.rmse));
    }
}

static void test_metrics_reset_forgets(void **state)
{
    const float scores[] = {1, 2}, labels[] = {1, -1};

    (void)state;
    for (unsigned loss = 0; loss < 4; loss++) {
        struct drps_metrics *m = drps_metrics_new((enum drps_loss)loss, 1);
        struct drps_quality before, after;
        assert_non_null(m);
        drps_metrics_add(m, scores, labels, NULL, 2);
        drps_metrics_result(m, &before);
        drps_metrics_reset(m);
        for (int i = 0; i < 2; i++)
            drps_metrics_add(m, &scores[i], &labels[i], NULL, 1); /* in parts, too */
        drps_metrics_result(m, &after);
        assert_int_equal(after.samples, 2);
        assert_true(fabs(after.loss - before.loss) <= 1e-15);
        assert_true(after.auc == before.auc || isnan(before.auc));
        drps_metrics_free(m);
    }
    drps_metrics_free(NULL);
}

/* Parts that were counted elsewhere give what one would have counted. */
static void check_merged(enum drps_loss loss)
{
    float scores[N], labels[N];
    struct drps_metrics *part = drps_metrics_new(loss, 1), *sum = drps_metrics_new(loss, 1);
    char *data = malloc(drps_metrics_bound(part) + 1);
    struct drps_quality whole, merged;
    size_t bytes = 0;
    for (size_t i = 0; i < N; i++) {
        scores[i] = (float)uniform(-3, 3);
        labels[i] = uniform(0, 1) < 0.3 ? 1.0f : -1.0f;
    }
    whole = quality_of(loss, scores, labels, N);
    for (size_t first = 0; first < N; first += N / 3) {
        drps_metrics_reset(part);
        drps_metrics_add(part, scores + first, labels + first, NULL, N / 3);
        bytes = drps_metrics_encode(part, data);
        assert_true(bytes <= drps_metrics_bound(part));
        assert_int_equal(drps_metrics_merge(sum, data, bytes, NULL), 0);
    }
    drps_metrics_result(sum, &merged);
    assert_int_equal(merged.samples, N);
    assert_true(fabs(merged.loss - whole.loss) < 1e-12 * fabs(whole.loss));
    if (loss != DRPS_LOSS_SQUARED) {
        assert_true(fabs(merged.auc - whole.auc) < 1e-15);
        assert_true(fabs(merged.accuracy - whole.accuracy) < 1e-15);
    }
    data[bytes] = 0;
    assert_int_equal(drps_metrics_merge(sum, data, bytes + 1, NULL), DRPS_E_PROTO);
    assert_int_equal(drps_metrics_merge(sum, data, bytes - 1, NULL), DRPS_E_PROTO);
    assert_int_equal(drps_metrics_merge(sum, data, 8, NULL), DRPS_E_PROTO);
    drps_metrics_free(part);
    drps_metrics_free(sum);
    free(data);
}

static void test_metrics_merge_parts(void **state)
{
    (void)state;
    check_merged(DRPS_LOSS_LOGISTIC);
    check_merged(DRPS_LOSS_SQUARED);
}

/* Of named classes: the first of the largest scores counts; a label that is no class has no loss
 * and is wrong; parts add up. */
static void test_metrics_of_named_classes(void **state)
{
    enum { CLASSES = 3, SAMPLES = 5 };
    const float scores[SAMPLES * CLASSES] = {2, 0, 0, 0, 1, 1, 0, 1, 1, 0, 0, 5, 1, 2, 3};
    const float labels[SAMPLES] = {0, 1, 2, -1, 3};
    struct drps_metrics *m = drps_metrics_new(DRPS_LOSS_SOFTMAX, CLASSES);
    struct drps_metrics *sum = drps_metrics_new(DRPS_LOSS_SOFTMAX, CLASSES);
    struct drps_quality q, merged;
    char data[64];

    (void)state;
    assert_true(m && sum && drps_metrics_bound(m) <= sizeof(data));
    drps_metrics_add(m, scores, labels, NULL, SAMPLES);
    drps_metrics_result(m, &q);
    const double losses = log(exp(2) + 2) - 2 + 2 * (log(1 + 2 * exp(1)) - 1);
    assert_int_equal(q.samples, SAMPLES);
    assert_int_equal(q.unknown, 2);
    assert_true(fabs(q.loss - losses / 3) < 1e-6);
    assert_true(fabs(q.accuracy - 2.0 / SAMPLES) < 1e-15);
    assert_true(isnan(q.auc) && isnan(q.rmse));
    for (size_t i = 0; i < SAMPLES; i++) {
        drps_metrics_reset(m);
        drps_metrics_add(m, scores + i * CLASSES, labels + i, NULL, 1);
        const size_t bytes = drps_metrics_encode(m, data);
        assert_int_equal(drps_metrics_merge(sum, data, bytes, NULL), 0);
    }
    drps_metrics_result(sum, &merged);
    assert_int_equal(merged.unknown, 2);
    assert_true(fabs(merged.loss - q.loss) < 1e-15 && merged.accuracy == q.accuracy);
    drps_metrics_reset(m);
    drps_metrics_add(m, scores, labels + 3, NULL, 1);
    drps_metrics_result(m, &q);
    assert_true(isnan(q.loss) && q.accuracy == 0);
    drps_metrics_free(m);
    drps_metrics_free(sum);
}

/* One versus the rest: the loss is the sum of the hinges, the accuracy that of the largest score.
 */
static void test_metrics_of_hinges(void **state)
{
    const float scores[] = {2, -2, 0, 0.5f, 0, -3}, labels[] = {0, 1};
    struct drps_metrics *m = drps_metrics_new(DRPS_LOSS_HINGE, 3);
    struct drps_quality q;

    (void)state;
    assert_non_null(m);
    drps_metrics_add(m, scores, labels, NULL, 2);
    drps_metrics_result(m, &q);
    assert_true(fabs(q.loss - (1 + 2.5) / 2) < 1e-6);
    assert_true(q.accuracy == 0.5 && isnan(q.auc));
    drps_metrics_free(m);
}

/* ---- Many scores ---- */

enum { MANY = 1500000 };
static float many_scores[MANY], many_labels[MANY];
static uint64_t many_sorted[MANY]; /* ordered score, then 1 for a positive */

/* A normal variate, about. */
static double bell(void)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += uniform(0, 1);
    return sum;
}

static float float_of(uint64_t bits)
{
    const uint32_t b = (uint32_t)bits;
    float f;
    memcpy(&f, &b, sizeof(f));
    return f;
}

static double positive_share(const char *how)
{
    return strcmp(how, "few positives") == 0 ? 0.002 : 0.3;
}

/* `at` of n: some distributions drift. */
static float draw_many(const char *how, int positive, double at)
{
    const double logit = -2.5 + bell() + (positive ? 0.8 : 0);
    const uint64_t random = drps_rng_at(seed, counter++);
    const int rare = uniform(0, 1) < 0.5;
    if (strcmp(how, "intercept") == 0) return (float)(-7 + 0.003 * bell() + 0.002 * positive);
    if (strcmp(how, "tied") == 0) return (float)(round(logit * 20) / 20);
    if (strcmp(how, "two clusters") == 0)
        return (float)((rare ? -7 : 9) + 0.5 * bell() + 0.4 * positive);
    if (strcmp(how, "exponents") == 0) return float_of(random % 0x7f800000 | (random >> 63) << 31);
    if (strcmp(how, "equal") == 0) return -7.25f;
    /* Half of the samples lie side by side, the others anywhere: no number of leading bits, the
       same for all, tells both apart. */
    if (strcmp(how, "cluster in exponents") == 0)
        return rare ? float_of(random % 0x7f000000)
                    : float_of(0x40000000 + random % 60000 + (positive ? 60000 : 0));
    /* The samples that lie anywhere come first; a few of them lie where the others will. */
    if (strcmp(how, "cluster after exponents") == 0)
        return at < 0.2 && random % 5000 ? float_of((random >> 13) % 0x7f000000)
               : at < 0.2                ? float_of(0x40000000 + (random >> 13) % 120000)
                          : float_of(0x40000000 + random % 60000 + (positive ? 60000 : 0));
    /* Each part of the samples in a narrower interval, so that wide cells lie around all later
     * ones. */
    if (strcmp(how, "narrowing") == 0)
        return float_of(0x20000000 + (random % (UINT64_C(1) << (30 - (int)(at * 14)))) +
                        (positive ? 1000 : 0));
    if (strcmp(how, "ties in between") == 0 && rare) return -2.0f;
    return (float)logit; /* also "few positives" */
}

static int compare_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double auc_by_sorting(size_t n)
{
    double right = 0, below = 0, above = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        const float score = many_scores[i] + 0.0f;
        memcpy(&bits, &score, sizeof(bits));
        bits ^= bits >> 31 ? UINT32_MAX : UINT32_C(1) << 31;
        many_sorted[i] = (uint64_t)bits << 1 | (many_labels[i] > 0);
    }
    qsort(many_sorted, n, sizeof(many_sorted[0]), compare_u64);
    for (size_t i = 0, end; i < n; i = end) {
        double count[2] = {0};
        for (end = i; end < n && many_sorted[end] >> 1 == many_sorted[i] >> 1; end++)
            count[many_sorted[end] & 1]++;
        right += count[1] * (below + 0.5 * count[0]);
        below += count[0];
        above += count[1];
    }
    return right / (below * above);
}

static void draw_samples(const char *how, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int positive = i < 2 ? (int)i : uniform(0, 1) < positive_share(how);
        many_labels[i] = positive ? 1.0f : -1.0f;
        many_scores[i] = draw_many(how, positive, (double)i / (double)n);
    }
}

/* Samples dealt to `ranks`, batch by batch, and added up as the first of them does. The first one
 * has no more than `first` batches, unless that is 0. */
static double auc_of_ranks(size_t n, size_t ranks, size_t first)
{
    enum { BATCH = 1000 };
    struct drps_metrics *sum = NULL;
    struct drps_quality q;
    void *data = NULL;
    for (size_t r = 0; r < ranks; r++) {
        struct drps_metrics *m = drps_metrics_new(DRPS_LOSS_LOGISTIC, 1);
        assert_non_null(m);
        for (size_t at = 0, b = 0; at < n; at += BATCH, b++) {
            const size_t whose = !first ? b % ranks : b < first ? 0 : 1 + b % (ranks - 1);
            if (whose == r)
                drps_metrics_add(m, many_scores + at, many_labels + at, NULL,
                                 n - at < BATCH ? n - at : BATCH);
        }
        if (!sum) {
            sum = m;
            data = malloc(drps_metrics_bound(m));
            assert_non_null(data);
            continue;
        }
        const size_t bytes = drps_metrics_encode(m, data);
        assert_true(bytes <= drps_metrics_bound(m));
        assert_int_equal(drps_metrics_merge(sum, data, bytes, NULL), 0);
        drps_metrics_free(m);
    }
    drps_metrics_result(sum, &q);
    drps_metrics_free(sum);
    free(data);
    assert_int_equal(q.samples, n);
    return q.auc;
}

/* Any number of ranks gives the same bits where a distribution is marked `same`. */
static void test_auc_of_many_is_within_a_thousandth(void **state)
{
    static const struct {
        const char *how;
        int same;
    } cases[] = {{"logits", 1},
                 {"intercept", 1},
                 {"tied", 1},
                 {"two clusters", 1},
                 {"exponents", 1},
                 {"equal", 1},
                 {"few positives", 1},
                 {"ties in between", 1},
                 {"cluster in exponents", 0},
                 {"cluster after exponents", 0},
                 {"narrowing", 0}};
    static const size_t sizes[] = {2, 100, 65536, 500000, MANY};
    const size_t sizes_n = DRPS_TEST_ONE_IN > 1 ? 4 : 5;

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
        for (size_t s = 0; s < sizes_n; s++) {
            const size_t n = sizes[s];
            draw_samples(cases[c].how, n);
            const double expected = auc_by_sorting(n), one = auc_of_ranks(n, 1, 0);
            const double three = auc_of_ranks(n, 3, 0), uneven = auc_of_ranks(n, 4, 1);
            const double slack = n <= 108544 ? 0 : 0.00098;
            if (getenv("DRPS_TEST_TELL"))
                printf("%s, %zu: %.9f, off by %.2g and %.2g\n", cases[c].how, n, expected,
                       one - expected, three - expected);
            if (!(fabs(one - expected) <= slack) || !(fabs(three - expected) <= slack) ||
                !(fabs(uneven - expected) <= slack) ||
                (cases[c].same && (one != three || one != uneven)))
                fail_msg("%s, %zu samples, seed %llu: expected %.9f, found %.17g, of three ranks "
                         "%.17g, of uneven ones %.17g",
                         cases[c].how, n, (unsigned long long)seed, expected, one, three, uneven);
        }
}

/* What another process says is checked before it is added: each byte's damage is refused, or leaves
 * counts that can be gone on with. */
static void test_metrics_refuse_damaged_parts(void **state)
{
    static const struct {
        const char *name;
        size_t at; /* behind the head of 48 bytes: cells, level; last, width, count, ... */
        uint64_t value;
        size_t bytes;
    } cases[] = {{"more cells than there are", 48, 5, 8},
                 {"very many cells", 48, UINT64_MAX / 16 + 2, 8},
                 {"a level that is too high", 56, 20, 8},
                 {"a cell wider than the level", 68, 3, 4},
                 {"an empty cell", 72, 0, 8},
                 {"a cell out of order", 64, UINT32_MAX, 4},
                 {"a count that is no number", 72, UINT64_MAX, 8},
                 {"an infinite count", 72, UINT64_C(0x7ff0) << 48, 8},
                 {"a count below 0", 72, UINT64_C(0xbff0) << 48, 8},
                 {"a weight that is no number", 16, UINT64_MAX, 8},
                 {"an infinite weight", 16, UINT64_C(0x7ff0) << 48, 8},
                 {"more that is right than there is", 24, UINT64_C(0x4050) << 48, 8},
                 {"more that is unknown than there is", 32, UINT64_C(0x4050) << 48, 8}};
    const float scores[] = {1, 2, 3, 1, 2, 3}, labels[] = {-1, -1, -1, 1, 1, 1};
    struct drps_metrics *part = drps_metrics_new(DRPS_LOSS_LOGISTIC, 1);
    struct drps_metrics *sum = drps_metrics_new(DRPS_LOSS_LOGISTIC, 1);
    char *data = malloc(drps_metrics_bound(part));

    (void)state;
    drps_metrics_add(part, scores, labels, NULL, 6);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const size_t bytes = drps_metrics_encode(part, data);
        memcpy(data + cases[i].at, &cases[i].value, cases[i].bytes);
        const int rc = drps_metrics_merge(sum, data, bytes, NULL);
        if (rc != DRPS_E_PROTO) fail_msg("%s: returned %d", cases[i].name, rc);
    }
    free(data);
    drps_metrics_free(part);
    drps_metrics_free(sum);
}

/* ---- Weights ---- */

static struct drps_quality weighted_quality(enum drps_loss loss, uint32_t outputs,
                                            const float *scores, const float *labels,
                                            const float *weights, size_t n)
{
    struct drps_metrics *m = drps_metrics_new(loss, outputs);
    struct drps_quality q;
    assert_non_null(m);
    drps_metrics_add(m, scores, labels, weights, n);
    drps_metrics_result(m, &q);
    drps_metrics_free(m);
    return q;
}

/* By hand: positives of score 3 and 1 weigh 2 and 1, negatives of 2, 1 and 0 weigh 1, 4 and 0.5. Of
 * 3 * 5.5 = 16.5 pairs 2 * 5.5 + 1 * 0.5 are in order, and 1 * 4 tied: (11.5 + 2) / 16.5. What
 * scores above 0 is called positive: right are 2 + 1 + 0.5 of 8.5. */
static void test_metrics_golden_weights(void **state)
{
    const float scores[] = {3, 2, 1, 1, 0}, labels[] = {1, -1, 1, -1, -1};
    const float weights[] = {2, 1, 1, 4, 0.5f};
    (void)state;
    const struct drps_quality q =
        weighted_quality(DRPS_LOSS_LOGISTIC, 1, scores, labels, weights, 5);
    assert_int_equal(q.samples, 5);
    assert_true(fabs(q.auc - 13.5 / 16.5) < 1e-15);
    assert_true(fabs(q.accuracy - 3.5 / 8.5) < 1e-15);
    const double losses =
        2 * log1p(exp(-3)) + log1p(exp(2)) + log1p(exp(-1)) + 4 * log1p(exp(1)) + 0.5 * log(2);
    assert_true(fabs(q.loss - losses / 8.5) < 1e-6);
    const struct drps_quality r =
        weighted_quality(DRPS_LOSS_SQUARED, 1, scores, labels, weights, 5);
    assert_true(fabs(r.rmse - sqrt((2 * 4 + 9 + 0 + 4 * 4 + 0.5) / 8.5)) < 1e-7);
}

/* n copies of a sample count as one of weight n does, in every metric; weight 0 counts nothing. */
static void check_copies(enum drps_loss loss, uint32_t outputs)
{
    enum { SAMPLES = 400, MOST = 5, CLASSES = 3 };
    float scores[SAMPLES * CLASSES], labels[SAMPLES], weights[SAMPLES];
    float *copies = malloc(sizeof(scores) * MOST), *copied = malloc(sizeof(labels) * MOST);
    size_t n = 0;
    assert_true(copies && copied && outputs <= CLASSES);
    for (size_t i = 0; i < SAMPLES; i++) {
        const size_t times = (size_t)uniform(0, MOST);
        for (size_t c = 0; c < outputs; c++)
            scores[i * outputs + c] = (float)round(uniform(-3, 3) * 8) / 8;
        labels[i] = outputs > 1           ? (float)floor(uniform(0, CLASSES + 0.2))
                    : uniform(0, 1) < 0.4 ? 1.0f
                                          : -1.0f;
        weights[i] = (float)times;
        for (size_t k = 0; k < times; k++, n++) {
            memcpy(copies + n * outputs, scores + i * outputs, outputs * sizeof(*scores));
            copied[n] = labels[i];
        }
    }
    const struct drps_quality want = weighted_quality(loss, outputs, copies, copied, NULL, n);
    const struct drps_quality got =
        weighted_quality(loss, outputs, scores, labels, weights, SAMPLES);
    const double pairs[][2] = {{want.loss, got.loss},
                               {want.auc, got.auc},
                               {want.accuracy, got.accuracy},
                               {want.rmse, got.rmse}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (!(fabs(pairs[i][0] - pairs[i][1]) <= 1e-6 * fabs(pairs[i][0])) &&
            !(isnan(pairs[i][0]) && isnan(pairs[i][1])))
            fail_msg("loss %d, metric %zu, seed %llu: copies give %.12g, weights %.12g", (int)loss,
                     i, (unsigned long long)seed, pairs[i][0], pairs[i][1]);
    free(copies);
    free(copied);
}

static void test_metrics_weights_are_copies(void **state)
{
    (void)state;
    check_copies(DRPS_LOSS_LOGISTIC, 1);
    check_copies(DRPS_LOSS_HINGE, 1);
    check_copies(DRPS_LOSS_SQUARED_HINGE, 1);
    check_copies(DRPS_LOSS_SQUARED, 1);
    check_copies(DRPS_LOSS_SOFTMAX, 3);
    check_copies(DRPS_LOSS_HINGE, 3);
}

/* Weighted samples and others, in parts that are added up, and beyond the scores that are exact. */
static void test_metrics_weights_of_many(void **state)
{
    enum { SAMPLES = 400000, BATCH = 1000 };
    float *weights = malloc(SAMPLES * sizeof(*weights)), ones[BATCH];
    struct drps_metrics *whole = drps_metrics_new(DRPS_LOSS_LOGISTIC, 1);
    struct drps_metrics *sum = drps_metrics_new(DRPS_LOSS_LOGISTIC, 1);
    struct drps_metrics *part = drps_metrics_new(DRPS_LOSS_LOGISTIC, 1);
    void *data = malloc(drps_metrics_bound(part));
    struct drps_quality q, merged;
    double below = 0, right = 0, all[2] = {0};
    (void)state;
    assert_true(weights && whole && sum && part && data);
    draw_samples("logits", SAMPLES);
    for (size_t i = 0; i < BATCH; i++)
        ones[i] = 1;
    for (size_t i = 0; i < SAMPLES; i++)
        weights[i] = i / BATCH % 2 ? (float)uniform(0, 4) : 1; /* every other batch has some */
    for (size_t at = 0; at < SAMPLES; at += BATCH) {
        const float *w = at / BATCH % 2 ? weights + at : at / BATCH % 4 ? ones : NULL;
        drps_metrics_add(whole, many_scores + at, many_labels + at, w, BATCH);
        drps_metrics_add(at / BATCH % 3 ? part : sum, many_scores + at, many_labels + at, w, BATCH);
    }
    const size_t bytes = drps_metrics_encode(part, data);
    assert_int_equal(drps_metrics_merge(sum, data, bytes, NULL), 0);
    drps_metrics_result(whole, &q);
    drps_metrics_result(sum, &merged);
    /* Scores are distinct but for some: what ties would change is far below what is allowed. */
    for (size_t i = 0; i < SAMPLES; i++) {
        uint32_t bits;
        const float score = many_scores[i] + 0.0f;
        memcpy(&bits, &score, sizeof(bits));
        bits ^= bits >> 31 ? UINT32_MAX : UINT32_C(1) << 31;
        many_sorted[i] = (uint64_t)bits << 32 | (uint32_t)i;
    }
    qsort(many_sorted, SAMPLES, sizeof(many_sorted[0]), compare_u64);
    for (size_t k = 0; k < SAMPLES; k++) {
        const size_t i = (uint32_t)many_sorted[k];
        const int positive = many_labels[i] > 0;
        all[positive] += (double)weights[i];
        if (positive) right += below * (double)weights[i];
        if (!positive) below += (double)weights[i];
    }
    assert_true(fabs(q.auc - right / (all[0] * all[1])) < 0.00098);
    assert_true(fabs(merged.auc - q.auc) < 0.00098);
    assert_true(fabs(merged.accuracy - q.accuracy) < 1e-12);
    assert_true(fabs(merged.loss - q.loss) < 1e-12);
    free(weights);
    free(data);
    drps_metrics_free(whole);
    drps_metrics_free(sum);
    drps_metrics_free(part);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_auc_matches_counting_pairs),
        cmocka_unit_test(test_auc_orders_extreme_scores),
        cmocka_unit_test(test_auc_ties_zeros_alone),
        cmocka_unit_test(test_auc_is_nan_without_two_classes),
        cmocka_unit_test(test_metrics_do_not_hide_nan_scores),
        cmocka_unit_test(test_metrics_losses_of_extreme_scores_stay_finite),
        cmocka_unit_test(test_metrics_accuracy_counts_signs),
        cmocka_unit_test(test_metrics_regression_gives_rmse),
        cmocka_unit_test(test_metrics_without_samples_are_nan),
        cmocka_unit_test(test_metrics_reset_forgets),
        cmocka_unit_test(test_metrics_merge_parts),
        cmocka_unit_test(test_metrics_of_named_classes),
        cmocka_unit_test(test_metrics_of_hinges),
        cmocka_unit_test(test_metrics_golden_weights),
        cmocka_unit_test(test_metrics_weights_are_copies),
        cmocka_unit_test(test_metrics_weights_of_many),
        cmocka_unit_test(test_metrics_refuse_damaged_parts),
        cmocka_unit_test(test_auc_of_many_is_within_a_thousandth),
    };

    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
