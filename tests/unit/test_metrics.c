/*
 * Metrics: the histogram's AUC against counting every pair, and the edges (ties, one class, extreme
 * scores).
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
#include "engine/drps_metrics.h"

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
    struct drps_metrics *m = drps_metrics_new(loss);
    struct drps_quality q;

    assert_non_null(m);
    drps_metrics_add(m, scores, labels, n);
    drps_metrics_result(m, &q);
    drps_metrics_free(m);
    return q;
}

/* Scores that have at most 9 bits of mantissa after the first: the histogram is exact for them. */
static float coarse(double x)
{
    int e;
    const double f = frexp(x, &e);
    return (float)ldexp(round(f * 1024), e - 10);
}

static float draw_score(int how, int positive)
{
    const double x = uniform(-4, 3) + (positive ? 0.7 : 0);
    switch (how) {
    case 0: /* continuous */
        return (float)x;
    case 1: /* heavily tied */
        return (float)round(x);
    case 2:
        return coarse(x);
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
        double slack; /* exact where bins separate all scores; else half of the pairs that share a
                         bin of 0.2 % */
    } cases[] = {{"continuous", 0, 1e-4},
                 {"tied", 1, 1e-12},
                 {"coarse", 2, 1e-12},
                 {"wide", 3, 1e-4},
                 {"equal", 4, 1e-12}};
    static float scores[N], labels[N];

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        for (int i = 0; i < N; i++) {
            labels[i] = uniform(0, 1) < 0.3 ? 1.0f : -1.0f;
            scores[i] = draw_score(cases[c].how, labels[i] > 0);
        }
        const double expected = auc_by_pairs(scores, labels, N);
        const double found = quality_of(DRPS_LOSS_LOGISTIC, scores, labels, N).auc;
        if (!(fabs(expected - found) <= cases[c].slack))
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

static void test_auc_ties_zeros_and_small_denormals(void **state)
{
    static const struct {
        const char *name;
        float scores[2];
        double auc;
    } cases[] = {
        {"-0 and 0", {-0.0f, 0.0f}, 0.5},
        {"0 and -0", {0.0f, -0.0f}, 0.5},
        {"0 and the least denormal", {0, 0x1p-149f}, 0.5}, /* one bin: below its resolution */
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
        struct drps_metrics *m = drps_metrics_new((enum drps_loss)loss);
        struct drps_quality before, after;
        assert_non_null(m);
        drps_metrics_add(m, scores, labels, 2);
        drps_metrics_result(m, &before);
        drps_metrics_reset(m);
        for (int i = 0; i < 2; i++)
            drps_metrics_add(m, &scores[i], &labels[i], 1); /* in parts, too */
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
    struct drps_metrics *part = drps_metrics_new(loss), *sum = drps_metrics_new(loss);
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
        drps_metrics_add(part, scores + first, labels + first, N / 3);
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
    assert_int_equal(drps_metrics_merge(sum, data, bytes + 1, NULL), DRPS_E_PROTO);
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_auc_matches_counting_pairs),
        cmocka_unit_test(test_auc_orders_extreme_scores),
        cmocka_unit_test(test_auc_ties_zeros_and_small_denormals),
        cmocka_unit_test(test_auc_is_nan_without_two_classes),
        cmocka_unit_test(test_metrics_do_not_hide_nan_scores),
        cmocka_unit_test(test_metrics_losses_of_extreme_scores_stay_finite),
        cmocka_unit_test(test_metrics_accuracy_counts_signs),
        cmocka_unit_test(test_metrics_regression_gives_rmse),
        cmocka_unit_test(test_metrics_without_samples_are_nan),
        cmocka_unit_test(test_metrics_reset_forgets),
        cmocka_unit_test(test_metrics_merge_parts),
    };

    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
