/* Degrees of a plan's features and samples, against counts of its lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "index/degrees/drps_degrees.h"
#include "support/index_case.h"

static struct drps_degrees degrees_of(struct scratch *s, const char *text, const char *algo,
                                      const char *loss)
{
    struct case_run run;
    struct drps_degrees d;
    struct drps_err err = DRPS_ERR_INIT;
    case_begin(&run, s, scratch_file(s, "in", text, strlen(text)), algo);
    run.options.loss = loss;
    struct drps_plan *plan = case_plan(&run);
    if (drps_degrees_count(plan, &d, &err) < 0) fail_msg("%s", err.text);
    drps_plan_close(plan);
    return d;
}

/* Feature 1 is in all of five samples, 2 in two, 3 in one; samples have 3, 2, 1, 1 and 1. */
static const char lines[] = "0 1:1 2:1 3:2\n1 1:1 2:3\n0 1:1\n1 1:2\n1 1:1\n";

static void check(const struct drps_degrees *d)
{
    assert_int_equal(d->edges, 8);
    assert_int_equal(d->features.n, 3);
    assert_int_equal(d->features.most, 5);
    assert_int_equal(d->features.median, 2);
    assert_int_equal(d->features.p90, 5);
    assert_int_equal(d->features.in_range[0], 0);
    assert_int_equal(d->features.in_range[1], 1); /* 1 */
    assert_int_equal(d->features.in_range[2], 1); /* 2 and 3 */
    assert_int_equal(d->features.in_range[3], 1); /* 4 to 7 */
    assert_int_equal(d->samples.n, 5);
    assert_int_equal(d->samples.most, 3);
    assert_int_equal(d->samples.median, 1);
    assert_int_equal(d->samples.p90, 3);
    assert_int_equal(d->samples.in_range[1], 3);
    assert_int_equal(d->samples.in_range[2], 2);
}

static void test_degrees_are_those_of_the_lines(void **state)
{
    const struct drps_degrees d = degrees_of(*state, lines, "lor", NULL);
    check(&d);
}

static void test_no_features_have_no_degrees(void **state)
{
    const struct drps_degrees d = degrees_of(*state, "0\n1\n", "lor", NULL);
    assert_int_equal(d.features.n, 0);
    assert_int_equal(d.features.median, 0);
    assert_int_equal(d.features.p90, 0);
    assert_int_equal(d.samples.n, 2);
    assert_int_equal(d.samples.median, 0);
}

/* Rows that samples have of their own are no features, and no edges lead to them. */
static void test_rows_of_samples_are_not_counted(void **state)
{
    const struct drps_degrees d = degrees_of(*state, lines, "expr", "squared(y, w*x + own)");
    check(&d);
}

static void test_ranges_are_powers_of_two(void **state)
{
    (void)state;
    assert_int_equal(drps_degree_range_first(0), 0);
    assert_int_equal(drps_degree_range_first(1), 1);
    assert_int_equal(drps_degree_range_first(2), 2);
    assert_int_equal(drps_degree_range_first(5), 16);
}

static void test_plans_of_several_workers_are_refused(void **state)
{
    struct scratch *s = *state;
    struct case_run run;
    struct drps_degrees d;
    struct drps_err err = DRPS_ERR_INIT;
    case_begin(&run, s, case_input(s, "in", CASE_LIBSVM, 300, 50, 1), "lor");
    run.options.workers = 2;
    struct drps_plan *plan = case_plan(&run);
    assert_int_equal(drps_degrees_count(plan, &d, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "several workers"));
    drps_plan_close(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_degrees_are_those_of_the_lines, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_rows_of_samples_are_not_counted, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_no_features_have_no_degrees, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test(test_ranges_are_powers_of_two),
        cmocka_unit_test_setup_teardown(test_plans_of_several_workers_are_refused, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
