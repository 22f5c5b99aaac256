/* A line through made-up trials, and seconds by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "storage/io/drps_pace.h"

enum { UNITS = 3 };
static const uint32_t units[UNITS] = {4 << 10, 16 << 10, 64 << 10};

static int is_near(double got, double expected)
{
    return fabs(got - expected) <= 1e-6 * fabs(expected) + 1e-6; /* sums of a few doubles */
}

static void test_fit_finds_the_line_that_trials_lie_on(void **state)
{
    static const struct {
        const char *name;
        double request_ns, bps;
        uint64_t seek_bytes;
    } cases[] = {
        {"solid state", 9000, 1.3e9, 11700},
        {"seeks", 4e6, 150e6, 600000},
        {"free requests", 0, 2e9, 4096},
        {"slow requests", 1e9, 1e9, 4 << 20},
    };
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct drps_disk_trial trials[UNITS];
        struct drps_disk_pace pace;
        for (int i = 0; i < UNITS; i++)
            trials[i] = (struct drps_disk_trial){units[i], cases[c].request_ns +
                                                               2e9 * units[i] / cases[c].bps};
        drps_disk_pace_fit(trials, UNITS, &pace);
        const double off = fabs(pace.request_ns - cases[c].request_ns);
        if (!is_near(pace.bps, cases[c].bps) || off > 1e-6 * trials[0].ns)
            fail_msg("%s: %g bytes a second and %g ns a read", cases[c].name, pace.bps,
                     pace.request_ns);
        const uint64_t seek = drps_disk_pace_seek_bytes(&pace);
        if (seek + 1 < cases[c].seek_bytes || seek > cases[c].seek_bytes + 1)
            fail_msg("%s: a read is worth %llu bytes", cases[c].name, (unsigned long long)seek);
    }
}

/* Errors count as shares: twice the time of the smallest trial moves the line as far as twice that
 * of the largest one. */
static void test_fit_weighs_trials_by_their_own_size(void **state)
{
    const double byte_ns = 0.5, request_ns = 10000;
    struct drps_disk_trial trials[UNITS];
    struct drps_disk_pace pace;
    (void)state;
    for (int i = 0; i < UNITS; i++)
        trials[i] = (struct drps_disk_trial){units[i], request_ns + 2 * byte_ns * units[i]};
    trials[2].ns *= 1.1;
    drps_disk_pace_fit(trials, UNITS, &pace);
    const double small = pace.request_ns + 2e9 * units[0] / pace.bps;
    assert_true(fabs(small / trials[0].ns - 1) < 0.02);
}

static void test_fit_makes_no_negative_costs(void **state)
{
    static const struct {
        const char *name;
        double ns[UNITS];
        int is_free; /* a request */
    } cases[] = {
        {"large reads are slow for their bytes", {1000, 16000, 200000}, 1},
        {"all take as long", {50000, 50000, 50000}, 0},
        {"large reads are faster", {90000, 60000, 50000}, 0},
    };
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct drps_disk_trial trials[UNITS];
        struct drps_disk_pace pace;
        for (int i = 0; i < UNITS; i++)
            trials[i] = (struct drps_disk_trial){units[i], cases[c].ns[i]};
        drps_disk_pace_fit(trials, UNITS, &pace);
        if (!isfinite(pace.bps) || !(pace.bps > 0) || !isfinite(pace.request_ns) ||
            pace.request_ns < 0 || (pace.request_ns == 0) != cases[c].is_free)
            fail_msg("%s: %g bytes a second and %g ns a read", cases[c].name, pace.bps,
                     pace.request_ns);
        assert_true(drps_disk_pace_is_known(&pace));
    }
}

static void test_seconds_are_those_of_bytes_and_of_reads(void **state)
{
    const struct drps_disk_pace pace = {.bps = 1e9, .request_ns = 10000}, none = {0};
    (void)state;
    assert_true(is_near(drps_disk_pace_seconds(&pace, 3000000000, 0), 3));
    assert_true(is_near(drps_disk_pace_seconds(&pace, 3000000000, 50000), 3.5));
    assert_false(drps_disk_pace_is_known(&none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fit_finds_the_line_that_trials_lie_on),
        cmocka_unit_test(test_fit_weighs_trials_by_their_own_size),
        cmocka_unit_test(test_fit_makes_no_negative_costs),
        cmocka_unit_test(test_seconds_are_those_of_bytes_and_of_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
