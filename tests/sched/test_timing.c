/* Iteration times: models against their definition, traces, and what is said of bad ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "sched/drps_timing.h"
#include "support/scratch.h"

enum { WORKERS = 4, ITERATIONS = 20000 };

static struct drps_timing *must_open(const char *spec)
{
    struct drps_timing *t;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_timing_open(drps_io_os(), spec, &t, &err) < 0) fail_msg("%s: %s", spec, err.text);
    return t;
}

/* Seconds of one model: bounds of every time, how many are longer than 1.05 means, and the mean. */
static void test_models_keep_to_their_definition(void **state)
{
    static const struct {
        const char *name;
        unsigned worker;
        double least, most, long_share, mean, mean_error;
    } cases[] = {
        {.name = "homogeneous:0.02", .least = .019, .most = .021, .mean = .02, .mean_error = .0001},
        {.name = "straggler:0.02",
         .least = .057,
         .most = .063,
         .long_share = 1,
         .mean = .06,
         .mean_error = .0003},
        {.name = "straggler:0.02:7",
         .worker = 1,
         .least = .019,
         .most = .021,
         .mean = .02,
         .mean_error = .0001},
        {.name = "pauses:0.02:5",
         .worker = 2,
         .least = .019,
         .most = .21,
         .long_share = .04,
         .mean = .02 * (.96 + .04 * 7.5),
         .mean_error = .0006},
        /* alpha 2: beyond 1.05 means are 1 / 2.1^2 of all; no variance, so a wide error */
        {.name = "tail:0.02",
         .worker = 3,
         .least = .01,
         .most = 1e9,
         .long_share = 1 / (2.1 * 2.1),
         .mean = .02,
         .mean_error = .002},
        {.name = "tail=3:0.02",
         .worker = 3,
         .least = .02 * 2 / 3,
         .most = 1e9,
         .long_share = 1 / (1.575 * 1.575 * 1.575),
         .mean = .02,
         .mean_error = .0006},
    };
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct drps_timing *t = must_open(cases[c].name);
        double sum = 0, longer = 0;
        for (uint64_t i = 0; i < ITERATIONS; i++) {
            const double s = (double)drps_timing_ns(t, cases[c].worker, i) * 1e-9;
            if (!(s >= cases[c].least - 1e-9 && s <= cases[c].most))
                fail_msg("%s: time %zu is %g s", cases[c].name, (size_t)i, s);
            sum += s;
            longer += s > .021;
        }
        /* 20000 draws: a share of .23 varies by .003 */
        if (fabs(longer / ITERATIONS - cases[c].long_share) > .01)
            fail_msg("%s: a share of %g is long", cases[c].name, longer / ITERATIONS);
        if (fabs(sum / ITERATIONS - cases[c].mean) > cases[c].mean_error)
            fail_msg("%s: mean %g", cases[c].name, sum / ITERATIONS);
        assert_int_equal(drps_timing_mean_ns(t), 20000000);
        drps_timing_close(t);
    }
}

static void test_times_depend_on_seed_worker_and_iteration_alone(void **state)
{
    struct drps_timing *a = must_open("pauses:0.1:3"), *b = must_open("pauses:0.1:3"),
                       *other = must_open("pauses:0.1:4");
    size_t by_seed = 0, by_worker = 0;
    (void)state;
    for (uint64_t i = 0; i < 100; i++) {
        const uint64_t backwards = 99 - i;
        (void)drps_timing_ns(b, 1, backwards);
        assert_int_equal(drps_timing_ns(a, 1, i), drps_timing_ns(b, 1, i));
        by_seed += drps_timing_ns(a, 1, i) != drps_timing_ns(other, 1, i);
        by_worker += drps_timing_ns(a, 1, i) != drps_timing_ns(a, 2, i);
    }
    assert_int_equal(by_seed, 100);
    assert_int_equal(by_worker, 100);
    drps_timing_close(a);
    drps_timing_close(b);
    drps_timing_close(other);
}

static void test_a_trace_is_used_over_and_over(void **state)
{
    static const uint64_t want[WORKERS][5] = {
        {500000000, 1000000, 500000000, 1000000, 500000000},
        {2000000000, 2000000000, 2000000000, 2000000000, 2000000000},
        {3000000, 4000000, 5000000, 3000000, 4000000},
        {500000000, 1000000, 500000000, 1000000, 500000000},
    };
    const char *path = scratch_file(
        *state, "trace", "# seconds\n\n .5 1e-3 \r\n2\n\t.003\t.004 .005 \n\n", SIZE_MAX);
    struct drps_timing *t = must_open(path);
    for (unsigned w = 0; w < WORKERS; w++)
        for (uint64_t i = 0; i < 5; i++)
            assert_int_equal(drps_timing_ns(t, w, i), want[w][i]);
    assert_int_equal(drps_timing_mean_ns(t), 2513000000 / 6);
    drps_timing_close(t);
}

static void test_a_bad_trace_is_named_with_its_line(void **state)
{
    static const struct {
        const char *name, *text, *error;
    } cases[] = {
        {"nothing", "", "bad: no times: expected a line of seconds for every worker"},
        {"comments alone", "# none\n\n", "bad: no times"},
        {"a word", "1 2\n# x\n3 fast 4\n", "bad:3: 'fast' at column 3: expected seconds, above 0"},
        {"zero", "0\n", "bad:1: '0' at column 1"},
        {"negative", "1\n1 -2", "bad:2: '-2' at column 3"},
        {"not a number", "nan\n", "bad:1: 'nan'"},
        {"infinite", "1 inf\n", "bad:1: 'inf'"},
        {"too long", "1000001\n", "bad:1: '1000001'"},
        {"commas", "1,2\n", "bad:1: '1,2' at column 1"},
        {"a unit", "30ms\n", "bad:1: '30ms'"},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct drps_timing *t;
        struct drps_err err = DRPS_ERR_INIT;
        const char *path = scratch_file(*state, "bad", cases[c].text, SIZE_MAX);
        const int rc = drps_timing_open(drps_io_os(), path, &t, &err);
        if (rc != DRPS_E_FORMAT || t || !strstr(err.text, cases[c].error))
            fail_msg("%s: %d: %s", cases[c].name, rc, err.text);
    }
    struct drps_timing *t;
    const char *path = scratch_file(*state, "bad", "1 2\0003\n", 6);
    assert_int_equal(drps_timing_open(drps_io_os(), path, &t, NULL), DRPS_E_FORMAT);
}

static void test_a_bad_spec_says_what_was_expected(void **state)
{
    static const struct {
        const char *spec;
        int code;
        const char *error;
    } cases[] = {
        {"pauses:", DRPS_E_CONFIG, "expected MODEL:SECONDS[:SEED], for instance pauses:0.03:1"},
        {"tail:0", DRPS_E_CONFIG, "'tail:0': expected"},
        {"tail:-1", DRPS_E_CONFIG, "expected"},
        {"tail:2e6", DRPS_E_CONFIG, "at most 1e6"},
        {"tail:1s", DRPS_E_CONFIG, "expected"},
        {"tail:1:", DRPS_E_CONFIG, "expected"},
        {"tail:1:-1", DRPS_E_CONFIG, "expected"},
        {"tail:1:99999999999999999999", DRPS_E_CONFIG, "expected"},
        {"tail:1:2:3", DRPS_E_CONFIG, "expected"},
        {"tail=1:0.1", -ENOENT, "nor a trace"},
        {"homogeneous", -ENOENT, "neither homogeneous, straggler, pauses or tail with :SECONDS"},
        {"homogen:1", -ENOENT, "nor a trace"},
    };
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct drps_timing *t;
        struct drps_err err = DRPS_ERR_INIT;
        const int rc = drps_timing_open(drps_io_os(), cases[c].spec, &t, &err);
        if (rc != cases[c].code || t || !strstr(err.text, cases[c].error))
            fail_msg("%s: %d: %s", cases[c].spec, rc, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_keep_to_their_definition),
        cmocka_unit_test(test_times_depend_on_seed_worker_and_iteration_alone),
        cmocka_unit_test_setup_teardown(test_a_trace_is_used_over_and_over, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_a_bad_trace_is_named_with_its_line, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test(test_a_bad_spec_says_what_was_expected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
