/* Sums and samples of a column's numbers, compared with plain loops over all of them. */
#include "index/reader/scales/drps_numbers.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void add_all(struct drps_numbers *x, size_t n, float (*number)(size_t))
{
    struct drps_err err = DRPS_ERR_INIT;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(drps_numbers_add(x, number(i), &err), 0);
}

static float small(size_t i)
{
    return (float)(i % 5) - 1; /* a fifth of them is 0 */
}

/* Their spread is far smaller than their mean: squares that are subtracted would lose it. */
static float far_away(size_t i)
{
    return 16e6F + (float)(i % 7);
}

static float increasing(size_t i)
{
    return (float)i;
}

static void test_numbers_mean_and_variance(void **state)
{
    static const struct {
        const char *name;
        float (*number)(size_t);
        uint64_t zeros;
    } rows[] = {{"small", small, 400}, {"far away", far_away, 0}, {"increasing", increasing, 1}};
    enum { N = 2000 };
    (void)state;
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        struct drps_numbers x = {0};
        double mean = 0, variance = 0, about = 0;
        add_all(&x, N, rows[k].number);
        for (size_t i = 0; i < N; i++)
            mean += (double)rows[k].number(i) / N;
        for (size_t i = 0; i < N; i++) {
            variance += pow((double)rows[k].number(i) - mean, 2) / N;
            about += pow((double)rows[k].number(i) - 3, 2) / N;
        }
        if (x.n != N || x.zeros != rows[k].zeros || fabs(x.mean - mean) > 1e-9 * fabs(mean) ||
            fabs(drps_numbers_variance_about(&x, x.mean) - variance) > 1e-9 * variance ||
            fabs(drps_numbers_variance_about(&x, 3) - about) > 1e-9 * about || x.drawn)
            fail_msg("%s: %llu zeros, mean %.9g for %.9g, variance %.9g for %.9g", rows[k].name,
                     (unsigned long long)x.zeros, x.mean, mean,
                     drps_numbers_variance_about(&x, x.mean), variance);
        drps_numbers_destroy(&x);
    }
}

static void test_numbers_of_none(void **state)
{
    struct drps_numbers x = {0};
    (void)state;
    drps_numbers_sort(&x);
    assert_true(drps_numbers_variance_about(&x, 7) == 0);
    drps_numbers_destroy(&x);
}

/* As long as all fit, the sample is all of them. */
static void test_numbers_sample_of_few_is_all(void **state)
{
    struct drps_numbers x = {.most = 100};
    (void)state;
    add_all(&x, 100, small);
    drps_numbers_sort(&x);
    assert_int_equal(x.drawn_n, 100);
    for (size_t i = 0; i < 100; i++)
        assert_true(x.drawn[i] == (float)(i / 20) - 1);
    drps_numbers_destroy(&x);
}

/* Of numbers in increasing order early and late ones are drawn alike. A quartile of 1,000 drawn
 * ones has a standard error of .014 of all; five of these are allowed. */
static void test_numbers_sample_is_of_all(void **state)
{
    enum { N = 100000, MOST = 1000 };
    struct drps_numbers x = {.most = MOST}, again = {.most = MOST};
    (void)state;
    add_all(&x, N, increasing);
    add_all(&again, N, increasing);
    drps_numbers_sort(&x);
    drps_numbers_sort(&again);
    assert_int_equal(x.drawn_n, MOST);
    assert_memory_equal(x.drawn, again.drawn, MOST * sizeof(*x.drawn));
    for (size_t q = 1; q < 4; q++) {
        const double found = (double)x.drawn[MOST * q / 4] / N, expected = (double)q / 4;
        if (fabs(found - expected) > .07) fail_msg("quartile %zu at %g of all", q, found);
    }
    for (size_t i = 1; i < MOST; i++)
        assert_true(x.drawn[i - 1] < x.drawn[i]); /* none is drawn twice */
    drps_numbers_destroy(&x);
    drps_numbers_destroy(&again);
}

static void test_numbers_samples_share_the_room(void **state)
{
    (void)state;
    enum { ROOM = 8 << 20 };
    assert_int_equal(drps_numbers_most(1, ROOM), 16384);
    assert_int_equal(drps_numbers_most(4096, ROOM), 512);
    assert_int_equal(drps_numbers_most(32768, ROOM), 64);
    assert_int_equal(drps_numbers_most(32769, ROOM), 0);
}

/* The arrays take no more than was said, however they grow. */
static void test_numbers_sample_has_no_room_to_spare(void **state)
{
    struct drps_numbers x = {.most = 1000};
    (void)state;
    add_all(&x, 5000, increasing);
    assert_int_equal(x.drawn_cap, 1000);
    drps_numbers_destroy(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_mean_and_variance),
        cmocka_unit_test(test_numbers_of_none),
        cmocka_unit_test(test_numbers_sample_of_few_is_all),
        cmocka_unit_test(test_numbers_sample_is_of_all),
        cmocka_unit_test(test_numbers_samples_share_the_room),
        cmocka_unit_test(test_numbers_sample_has_no_room_to_spare),
    };
    return cmocka_run_group_tests_name("numbers", tests, NULL, NULL);
}
