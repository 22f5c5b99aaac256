/* Calibrations are those of their definitions: the largest likelihood, the least squares; they are
 * written and read again; damaged ones are refused; curves count what is there. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/drps_rng.h"
#include "engine/calibrate/drps_calibration.h"

enum { MOST = 200 };

/* n points whose larger label is more frequent the larger the score is, with noise. */
static size_t make_points(struct drps_score_point *p, size_t n, uint64_t seed, double weight)
{
    for (size_t i = 0; i < n; i++) {
        const double share = drps_unit_double(drps_rng_at(seed, i));
        p[i].score = -3 + 6 * (float)i / (float)n;
        p[i].positive = weight * floor(4 * share * (double)i / (double)n + 0.5);
        p[i].negative = weight * (1 + floor(3 * (1 - share)));
    }
    return n;
}

static struct drps_calibration fit(enum drps_calibration_kind kind,
                                   const struct drps_score_point *p, size_t n)
{
    struct drps_calibration c;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_calibration_fit(kind, p, n, &c, &err) < 0) fail_msg("%s", err.text);
    return c;
}

/* ---- Platt ---- */

/* The negative log-likelihood with the targets of Platt (1999), section 2.2. */
static double likelihood(const struct drps_score_point *p, size_t n, double a, double b)
{
    double positive = 0, negative = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        positive += p[i].positive;
        negative += p[i].negative;
    }
    const double high = (positive + 1) / (positive + 2), low = 1 / (negative + 2);
    for (size_t i = 0; i < n; i++) {
        const double q = 1 / (1 + exp(a * (double)p[i].score + b));
        sum -= p[i].positive * (high * log(q) + (1 - high) * log(1 - q));
        sum -= p[i].negative * (low * log(q) + (1 - low) * log(1 - q));
    }
    return sum;
}

static void test_platt_has_the_largest_likelihood(void **state)
{
    static const double shifts[][2] = {{1e-3, 0}, {-1e-3, 0}, {0, 1e-3}, {0, -1e-3}};
    struct drps_score_point p[MOST];
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        const size_t n = make_points(p, 10 + seed * 7, seed, 1);
        struct drps_calibration c = fit(DRPS_CALIBRATION_PLATT, p, n);
        const double best = likelihood(p, n, c.a, c.b);
        for (size_t k = 0; k < 4; k++)
            if (likelihood(p, n, c.a + shifts[k][0], c.b + shifts[k][1]) <= best)
                fail_msg("seed %llu: a %g, b %g is not the best", (unsigned long long)seed, c.a,
                         c.b);
        assert_true(c.a < 0); /* larger scores, larger probabilities */
        assert_true(fabs(drps_calibration_apply(&c, 0.5) - 1 / (1 + exp(c.a * 0.5 + c.b))) < 1e-12);
        drps_calibration_free(&c);
    }
}

static void test_platt_of_labels_that_scores_tell_apart_is_finite(void **state)
{
    static const struct drps_score_point p[] = {{-1, 50, 0}, {1, 0, 50}};
    (void)state;
    struct drps_calibration c = fit(DRPS_CALIBRATION_PLATT, p, 2);
    assert_true(isfinite(c.a) && isfinite(c.b));
    assert_true(fabs(drps_calibration_apply(&c, 1) - 51.0 / 52) < 1e-6); /* the target */
    drps_calibration_free(&c);
}

/* ---- Isotonic ---- */

/* The least squares at point i: the largest over a <= i of the least over b >= i of the mean of a
 * to b (Barlow and others, 1972, theorem 1.4). */
static double isotonic_ref(const struct drps_score_point *p, size_t n, size_t i)
{
    double best = -1;
    for (size_t a = 0; a <= i; a++) {
        double least = 2, positive = 0, all = 0;
        for (size_t b = a; b < n; b++) {
            positive += p[b].positive;
            all += p[b].positive + p[b].negative;
            if (b >= i && positive / all < least) least = positive / all;
        }
        if (least > best) best = least;
    }
    return best;
}

static void test_isotonic_is_of_least_squares(void **state)
{
    struct drps_score_point p[MOST];
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        const size_t n = make_points(p, 20 + seed * 9, seed, 1);
        double positive = 0, negative = 0;
        for (size_t i = 0; i < n; i++) {
            positive += p[i].positive;
            negative += p[i].negative;
        }
        struct drps_calibration c = fit(DRPS_CALIBRATION_ISOTONIC, p, n);
        for (size_t i = 0; i < n; i++) {
            const double due = fmin(fmax(isotonic_ref(p, n, i), 1 / (negative + 2)),
                                    (positive + 1) / (positive + 2));
            const double is = drps_calibration_apply(&c, (double)p[i].score);
            if (fabs(is - due) > 1e-9)
                fail_msg("seed %llu, point %zu: %g instead of %g", (unsigned long long)seed, i, is,
                         due);
        }
        drps_calibration_free(&c);
    }
}

static void test_isotonic_is_a_line_between_steps(void **state)
{
    static const struct drps_score_point p[] = {{0, 3, 1}, {2, 1, 3}};
    (void)state;
    struct drps_calibration c = fit(DRPS_CALIBRATION_ISOTONIC, p, 2);
    assert_true(fabs(drps_calibration_apply(&c, -9) - 0.25) < 1e-12);
    assert_true(fabs(drps_calibration_apply(&c, 1) - 0.5) < 1e-12);
    assert_true(fabs(drps_calibration_apply(&c, 9) - 0.75) < 1e-12);
    drps_calibration_free(&c);
}

static void test_isotonic_has_few_steps(void **state)
{
    enum { MANY = 50000 };
    struct drps_score_point *p = calloc(MANY, sizeof(*p));
    (void)state;
    assert_non_null(p);
    for (size_t i = 0; i < MANY; i++) /* no point violates the order */
        p[i] = (struct drps_score_point){
            .score = (float)i, .negative = MANY - (double)i, .positive = (double)i};
    struct drps_calibration c = fit(DRPS_CALIBRATION_ISOTONIC, p, MANY);
    assert_in_range(c.n, DRPS_CALIBRATION_STEPS, 2 * DRPS_CALIBRATION_STEPS);
    for (double score = 0; score < MANY; score += 997)
        assert_true(fabs(drps_calibration_apply(&c, score) - score / MANY) < 2e-3);
    drps_calibration_free(&c);
    free(p);
}

/* All groups but the last are full before the points end, whose weights do not change the sum. */
static void test_isotonic_ends_with_tiny_weights(void **state)
{
    enum { FULL = 2 * DRPS_CALIBRATION_STEPS, MANY = FULL + 5 };
    struct drps_score_point *p = calloc(MANY, sizeof(*p));
    (void)state;
    assert_non_null(p);
    for (size_t i = 0; i < MANY; i++) { /* no point violates the order */
        const double weight = i < FULL ? 1 : 1e-30, share = (double)(i + 1) / MANY;
        p[i] = (struct drps_score_point){
            .score = (float)i, .negative = weight * (1 - share), .positive = weight * share};
    }
    struct drps_calibration c = fit(DRPS_CALIBRATION_ISOTONIC, p, MANY);
    assert_int_equal(c.n, 2 * DRPS_CALIBRATION_STEPS);
    assert_true(c.scores[c.n - 1] == MANY - 1);
    drps_calibration_free(&c);
    free(p);
}

/* Shares of the weight are rounded, and points that weigh next to nothing do not end groups. */
static void test_isotonic_has_few_steps_of_tiny_weights(void **state)
{
    enum { MANY = 3000 };
    struct drps_score_point *p = calloc(MANY, sizeof(*p));
    (void)state;
    assert_non_null(p);
    for (uint64_t k = 1; k < DRPS_CALIBRATION_STEPS; k++) { /* they lie where a group may end */
        const double share = 0.7 * (double)k / DRPS_CALIBRATION_STEPS;
        for (size_t i = 0; i < MANY; i++) {
            const double weight = i == 0 ? share : i < MANY - 1 ? 1e-30 : 0.7 - share;
            p[i] = (struct drps_score_point){.score = (float)i};
            *(i + 1 < MANY ? &p[i].negative : &p[i].positive) = weight;
            p[i].positive += 1e-33 * (double)i; /* no point violates the order */
        }
        struct drps_calibration c = fit(DRPS_CALIBRATION_ISOTONIC, p, MANY);
        assert_in_range(c.n, 1, 2 * DRPS_CALIBRATION_STEPS);
        drps_calibration_free(&c);
    }
    free(p);
}

/* ---- Both ---- */

/* Weights are known up to a factor: small ones do not draw probabilities to the middle. */
static void test_small_weights_are_no_few_samples(void **state)
{
    struct drps_score_point p[MOST];
    (void)state;
    for (size_t i = 0; i < MOST; i++) {
        p[i] = (struct drps_score_point){.score = (float)i - MOST / 2 + 0.5f};
        *((i < MOST / 2) != (i % 10 == 0) ? &p[i].negative : &p[i].positive) = 1e-3;
    }
    for (enum drps_calibration_kind k = DRPS_CALIBRATION_PLATT; k <= DRPS_CALIBRATION_ISOTONIC;
         k++) {
        struct drps_calibration c = fit(k, p, MOST);
        assert_true(drps_calibration_apply(&c, MOST) > 0.85);
        assert_true(drps_calibration_apply(&c, -MOST) < 0.15);
        drps_calibration_free(&c);
    }
}

static void test_one_label_is_refused(void **state)
{
    static const struct drps_score_point p[] = {{0, 3, 0}, {2, 1, 0}};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_calibration c;
    (void)state;
    assert_int_equal(drps_calibration_fit(DRPS_CALIBRATION_PLATT, p, 2, &c, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "smaller"));
    drps_calibration_free(&c);
}

static struct drps_calibration read_back(json_t *member, int rc_due)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_calibration c;
    json_t *j = json_pack("{s:o}", "calibration", member);
    const int rc = drps_calibration_get(j, "model.json", &c, &err);
    if (rc != rc_due) fail_msg("%d instead of %d: %s", rc, rc_due, err.text);
    json_decref(j);
    return c;
}

static void test_calibrations_are_read_as_they_were_written(void **state)
{
    struct drps_score_point p[MOST];
    const size_t n = make_points(p, MOST, 3, 1);
    (void)state;
    for (int kind = DRPS_CALIBRATION_PLATT; kind <= DRPS_CALIBRATION_ISOTONIC; kind++) {
        struct drps_calibration c = fit((enum drps_calibration_kind)kind, p, n);
        struct drps_calibration back = read_back(drps_calibration_to_json(&c), 0);
        assert_int_equal(back.kind, kind);
        assert_true(back.samples == c.samples);
        for (double score = -4; score < 4; score += 0.1)
            assert_true(drps_calibration_apply(&back, score) == drps_calibration_apply(&c, score));
        drps_calibration_free(&back);
        drps_calibration_free(&c);
    }
}

static void test_damaged_calibrations_are_refused(void **state)
{
    static const char *const texts[] = {
        "{\"method\": \"magic\", \"samples\": 3.0}",
        "{\"method\": \"none\", \"samples\": 3.0}",
        "{\"samples\": 3.0, \"a\": 1.0, \"b\": 1.0}",
        "{\"method\": \"platt\", \"samples\": 3.0, \"a\": 1.0}",
        "{\"method\": \"platt\", \"samples\": 3.0, \"a\": \"x\", \"b\": 0.0}",
        "{\"method\": \"platt\", \"samples\": -3.0, \"a\": 1.0, \"b\": 0.0}",
        "{\"method\": \"platt\", \"samples\": 0.0, \"a\": 1.0, \"b\": 0.0}",
        "{\"method\": \"platt\", \"samples\": 3.0, \"a\": -1e31, \"b\": 0.0}",
        "{\"method\": \"platt\", \"samples\": 3.0, \"a\": 1.0, \"b\": 1e31}",
        "{\"method\": \"isotonic\", \"samples\": 3.0, \"scores\": [1, 1e39], "
        "\"probabilities\": [0, 1]}",
        "{\"method\": \"isotonic\", \"samples\": 3.0}",
        "{\"method\": \"isotonic\", \"samples\": 3.0, \"scores\": [], \"probabilities\": []}",
        "{\"method\": \"isotonic\", \"samples\": 3.0, \"scores\": [1, 2], \"probabilities\": [0]}",
        "{\"method\": \"isotonic\", \"samples\": 3.0, \"scores\": [2, 2], \"probabilities\": [0, "
        "1]}",
        "{\"method\": \"isotonic\", \"samples\": 3.0, \"scores\": [1, 2], \"probabilities\": [1, "
        "0]}",
        "{\"method\": \"isotonic\", \"samples\": 3.0, \"scores\": [1, 2], \"probabilities\": [0, "
        "2]}",
        "{\"method\": \"isotonic\", \"samples\": 3.0, \"scores\": [1, 2], \"probabilities\": [-1, "
        "1]}",
        "{\"method\": \"isotonic\", \"samples\": 3.0, \"scores\": [1, \"x\"], \"probabilities\": "
        "[0, 1]}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct drps_calibration c =
            read_back(json_loads(texts[i], JSON_DECODE_ANY, NULL), DRPS_E_CORRUPT);
        drps_calibration_free(&c);
    }
}

static void test_curves_count_what_is_there(void **state)
{
    /* Log-odds of 0.2, 0.2, 0.5 and 0.8. */
    static const struct drps_score_point p[] = {
        {-1.3862943611f, 6, 2}, {0, 1, 3}, {1.3862943611f, 0, 4}};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_calibration_curve curve;
    (void)state;
    if (drps_calibration_measure(NULL, p, 3, 2, &curve, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(curve.n, 2);
    assert_true(fabs(curve.bins[0].predicted - 0.2) < 1e-6);
    assert_true(fabs(curve.bins[0].observed - 0.25) < 1e-6);
    assert_true(fabs(curve.bins[1].predicted - 0.65) < 1e-6);
    assert_true(fabs(curve.bins[1].observed - 7.0 / 8) < 1e-6);
    assert_true(fabs(curve.bins[1].least - 0.5) < 1e-6 && fabs(curve.bins[1].most - 0.8) < 1e-6);
    assert_true(curve.bins[0].weight == 8 && curve.bins[1].weight == 8);
    assert_true(fabs(curve.error - (0.05 + 0.225) / 2) < 1e-6);
    const double loss = -(6 * log(0.8) + 2 * log(0.2) + 4 * log(0.5) + 4 * log(0.8)) / 16;
    assert_true(fabs(curve.loss - loss) < 1e-6);
    free(curve.bins);
}

static void test_metrics_give_each_score_by_label(void **state)
{
    enum { N = 3000, DISTINCT = 100 };
    struct drps_metrics *m = drps_metrics_new(DRPS_LOSS_LOGISTIC, 1);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_score_point *points;
    double due[DISTINCT][2] = {{0}};
    size_t n;
    (void)state;
    assert_non_null(m);
    for (size_t i = 0; i < N; i++) {
        const size_t k = drps_rng_at(5, i) % DISTINCT;
        const int positive = drps_unit_double(drps_rng_at(6, i)) < 0.3;
        const float score = ((float)k - 50) / 8, label = positive ? 1 : -1;
        const float weight = (float)(i % 3); /* some weigh nothing */
        drps_metrics_add(m, &score, &label, &weight, 1);
        due[k][positive] += (double)weight;
    }
    if (drps_metrics_points(m, &points, &n, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(n, DISTINCT);
    for (size_t k = 0; k < n; k++)
        assert_true(points[k].score == ((float)k - 50) / 8 && points[k].negative == due[k][0] &&
                    points[k].positive == due[k][1]);
    free(points);
    drps_metrics_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_platt_has_the_largest_likelihood),
        cmocka_unit_test(test_platt_of_labels_that_scores_tell_apart_is_finite),
        cmocka_unit_test(test_isotonic_is_of_least_squares),
        cmocka_unit_test(test_isotonic_is_a_line_between_steps),
        cmocka_unit_test(test_isotonic_has_few_steps),
        cmocka_unit_test(test_isotonic_ends_with_tiny_weights),
        cmocka_unit_test(test_isotonic_has_few_steps_of_tiny_weights),
        cmocka_unit_test(test_small_weights_are_no_few_samples),
        cmocka_unit_test(test_one_label_is_refused),
        cmocka_unit_test(test_calibrations_are_read_as_they_were_written),
        cmocka_unit_test(test_damaged_calibrations_are_refused),
        cmocka_unit_test(test_curves_count_what_is_there),
        cmocka_unit_test(test_metrics_give_each_score_by_label),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
