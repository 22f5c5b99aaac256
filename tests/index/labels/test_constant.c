/* The loss of the best constant, against a search for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/drps_rng.h"
#include "engine/model/drps_model.h"
#include "index/labels/drps_constant.h"

enum { MOST = 12 };

struct row {
    const char *name;
    enum drps_loss loss;
    double train[MOST], test[MOST]; /* labels, 99 ends */
    double want, want_test;         /* NaN: there is none */
};

static struct drps_label_sums sums_of(enum drps_loss loss, size_t classes, const double *labels)
{
    struct drps_label_sums s;
    assert_int_equal(drps_label_sums_init(&s, loss, classes, NULL), 0);
    for (size_t i = 0; i < MOST && labels[i] < 99; i++)
        drps_label_sums_add(&s, 0, (float)labels[i], 1);
    drps_label_sums_settle(&s);
    return s;
}

static void check(const char *name, const char *what, double want, double got)
{
    if ((isnan(want) && isnan(got)) || fabs(want - got) <= 1e-12) return;
    fail_msg("%s, %s: expected %.15g, found %.15g", name, what, want, got);
}

static void check_row(const struct row *r, size_t classes)
{
    struct drps_label_sums train = sums_of(r->loss, classes, r->train),
                           test = sums_of(r->loss, classes, r->test);
    check(r->name, "training", r->want, drps_constant_loss(&train, &train));
    check(r->name, "test", r->want_test, drps_constant_loss(&train, &test));
    drps_label_sums_destroy(&train);
    drps_label_sums_destroy(&test);
}

/* Of numbers and two classes, by hand. */
static void test_constant_of_numbers_and_signs(void **state)
{
    (void)state;
    const struct row rows[] = {
        /* mean 3, variance 2; the test labels are 4 and 6: (1 + 9) / 2 / 2 */
        {"squared", DRPS_LOSS_SQUARED, {1, 2, 3, 4, 5, 99}, {4, 6, 99}, 1, 2.5},
        {"squared, far from 0", DRPS_LOSS_SQUARED, {-16e6 + 1, -16e6 + 3, 99}, {99}, 0.5, NAN},
        {"squared, all alike", DRPS_LOSS_SQUARED, {7, 7, 99}, {7, 99}, 0, 0},
        /* one in four is +1 */
        {"logistic",
         DRPS_LOSS_LOGISTIC,
         {-1, 1, -1, -1, 99},
         {1, -1, 99},
         -.25 * log(.25) - .75 * log(.75),
         -.5 * log(.25) - .5 * log(.75)},
        {"logistic, one class", DRPS_LOSS_LOGISTIC, {-1, -1, 99}, {1, 99}, 0, NAN},
        {"hinge", DRPS_LOSS_HINGE, {-1, 1, -1, -1, 99}, {1, 1, -1, 1, 99}, .5, 1.5},
        {"hinge, halves", DRPS_LOSS_HINGE, {-1, 1, 99}, {1, 99}, 1, 1},
        /* score -1/2: (1/4 (3/2)^2 + 3/4 (1/2)^2 */
        {"squared hinge", DRPS_LOSS_SQUARED_HINGE, {-1, 1, -1, -1, 99}, {1, 99}, .75, 2.25},
        /* confidences of 2 and 4: all scores 0 */
        {"wmf", DRPS_LOSS_WMF, {2, 4, 99}, {1, 99}, 1.5, .5},
        {"bpr", DRPS_LOSS_BPR, {1, 1, 99}, {1, 99}, log(2), log(2)},
        {"no samples", DRPS_LOSS_LOGISTIC, {99}, {1, 99}, NAN, NAN},
        {"no constant", DRPS_LOSS_CODING, {1, 99}, {1, 99}, NAN, NAN},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_row(&rows[i], 0);
}

static void test_constant_of_named_classes(void **state)
{
    (void)state;
    const struct row rows[] = {
        {"softmax",
         DRPS_LOSS_SOFTMAX,
         {0, 1, 2, 2, 99},
         {2, 0, 99},
         -.5 * log(.25) - .5 * log(.5),
         -.5 * log(.5) - .5 * log(.25)},
        {"softmax, a class of test samples alone",
         DRPS_LOSS_SOFTMAX,
         {0, 1, 99},
         {2, 99},
         log(2),
         NAN},
        /* class 0 and 1: -1, half a sample each; class 2: 0, a score of none */
        {"hinges", DRPS_LOSS_HINGE, {0, 1, 2, 2, 99}, {0, 0, 99}, .5 + .5 + 1, 2 + 0 + 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_row(&rows[i], 3);
}

/* No score is better, by a search over many. */
static void test_no_constant_is_better(void **state)
{
    (void)state;
    static const double labels[] = {-1, 1, 1, -1, 1, 1, 1, 99, 99, 99, 99, 99};
    for (int loss = DRPS_LOSS_SQUARED; loss <= DRPS_LOSS_SQUARED_HINGE; loss++) {
        struct drps_label_sums s = sums_of((enum drps_loss)loss, 0, labels);
        double best = INFINITY;
        for (int k = -3000; k <= 3000; k++) {
            double sum = 0;
            for (size_t i = 0; i < 7; i++)
                sum +=
                    drps_loss_value((enum drps_loss)loss, (float)k * 1e-3f, (float)labels[i], NULL);
            best = fmin(best, sum / 7);
        }
        if (fabs(best - drps_constant_loss(&s, &s)) > 1e-6)
            fail_msg("%s: a search finds %.9g, not %.9g", drps_loss_name((enum drps_loss)loss),
                     best, drps_constant_loss(&s, &s));
        drps_label_sums_destroy(&s);
    }
}

/* The first negative is a violator, whose rank is taken to be that of all other items. */
static void test_constant_of_warp_is_of_the_items(void **state)
{
    (void)state;
    static const double labels[] = {1, 1, 99};
    struct drps_label_sums s = sums_of(DRPS_LOSS_WARP, 0, labels);
    s.items = 2;
    check("warp", "two items", 0, drps_constant_loss(&s, &s));
    s.items = 11;
    check("warp", "eleven items", log(10), drps_constant_loss(&s, &s));
}

static void test_weights_count_as_samples(void **state)
{
    (void)state;
    struct drps_label_sums twice, heavy;
    assert_int_equal(drps_label_sums_init(&twice, DRPS_LOSS_SQUARED, 0, NULL), 0);
    assert_int_equal(drps_label_sums_init(&heavy, DRPS_LOSS_SQUARED, 0, NULL), 0);
    drps_label_sums_add(&twice, 0, 1, 1);
    drps_label_sums_add(&twice, 0, 4, 1);
    drps_label_sums_add(&twice, 0, 4, 1);
    drps_label_sums_add(&heavy, 0, 1, 1);
    drps_label_sums_add(&heavy, 0, 4, 2);
    drps_label_sums_settle(&twice);
    drps_label_sums_settle(&heavy);
    check("weights", "loss", drps_constant_loss(&twice, &twice),
          drps_constant_loss(&heavy, &heavy));
}

static int same_sums(const struct drps_label_sums *a, const struct drps_label_sums *b)
{
    return a->n == b->n && a->sum == b->sum && a->squares == b->squares &&
           a->positive == b->positive && a->origin == b->origin &&
           (!a->classes ||
            memcmp(a->of_class, b->of_class, a->classes * sizeof(*a->of_class)) == 0);
}

/* Whoever counts which batch, and in which order they are added up: the bits are the same. */
static void test_label_sums_of_parts_are_those_of_the_whole(void **state)
{
    enum { BATCHES = 40, SAMPLES = 25, PARTS = 4, CLASSES = 3 };
    (void)state;
    for (size_t classes = 0; classes <= CLASSES; classes += CLASSES)
        for (uint32_t parts = 1; parts <= PARTS; parts++) {
            struct drps_label_sums whole, part[PARTS], sum;
            assert_int_equal(drps_label_sums_init(&whole, DRPS_LOSS_SQUARED, classes, NULL), 0);
            assert_int_equal(drps_label_sums_init(&sum, DRPS_LOSS_SQUARED, classes, NULL), 0);
            for (uint32_t p = 0; p < parts; p++)
                assert_int_equal(drps_label_sums_init(&part[p], DRPS_LOSS_SQUARED, classes, NULL),
                                 0);
            for (uint64_t i = 0; i < BATCHES * SAMPLES; i++) {
                const float label = classes ? (float)(drps_rng_at(1, i) % classes)
                                            : 1e3f * (float)drps_unit_double(drps_rng_at(2, i));
                const float weight = 1e-3f + (float)drps_unit_double(drps_rng_at(3, i));
                const uint64_t batch = i / SAMPLES;
                drps_label_sums_add(&whole, batch, label, weight);
                drps_label_sums_add(&part[batch % parts], batch, label, weight);
            }
            for (uint32_t p = parts; p-- > 0;)
                drps_label_sums_merge(&sum, &part[p]);
            drps_label_sums_settle(&whole);
            drps_label_sums_settle(&sum);
            if (!same_sums(&whole, &sum))
                fail_msg("%u parts: sums %.17g, %.17g, expected %.17g, %.17g", parts, sum.sum,
                         sum.squares, whole.sum, whole.squares);
            assert_true(whole.n > 0 && (classes || whole.squares > 0));
            drps_label_sums_destroy(&whole);
            drps_label_sums_destroy(&sum);
            for (uint32_t p = 0; p < parts; p++)
                drps_label_sums_destroy(&part[p]);
        }
}

/* Squares of labels far from 0, times weights that are no powers of two, have more digits than a
 * double: what they differ by is left of them. */
static void test_variance_far_from_zero_keeps_its_digits(void **state)
{
    (void)state;
    struct drps_label_sums s;
    assert_int_equal(drps_label_sums_init(&s, DRPS_LOSS_SQUARED, 0, NULL), 0);
    drps_label_sums_add(&s, 0, -16e6F + 1, 0.1F);
    drps_label_sums_add(&s, 0, -16e6F + 3, 0.1F);
    drps_label_sums_settle(&s);
    check("far from 0", "loss", 0.5, drps_constant_loss(&s, &s));
    drps_label_sums_destroy(&s);
}

/* The loss may be any function of the scores. */
static void test_expressions_have_no_known_constant(void **state)
{
    (void)state;
    const struct row of_numbers = {"numbers", DRPS_LOSS_EXPRESSION, {1, 2, 4, 99}, {3, 99}, NAN,
                                   NAN};
    const struct row of_classes = {"classes", DRPS_LOSS_EXPRESSION, {0, 1, 2, 1, 99}, {0, 99}, NAN,
                                   NAN};
    check_row(&of_numbers, 0);
    check_row(&of_classes, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant_of_numbers_and_signs),
        cmocka_unit_test(test_constant_of_named_classes),
        cmocka_unit_test(test_no_constant_is_better),
        cmocka_unit_test(test_constant_of_warp_is_of_the_items),
        cmocka_unit_test(test_weights_count_as_samples),
        cmocka_unit_test(test_variance_far_from_zero_keeps_its_digits),
        cmocka_unit_test(test_label_sums_of_parts_are_those_of_the_whole),
        cmocka_unit_test(test_expressions_have_no_known_constant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
