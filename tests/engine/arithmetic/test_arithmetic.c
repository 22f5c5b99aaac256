/* Arithmetic is measured on plans for one worker and for several, of each kind of model; where it
 * cannot be, nothing is said. How fast it is, no test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/arithmetic/drps_arithmetic.h"
#include "support/world.h"

enum { MEMORY = 64 << 20 };

/* What is measured of a plan's first part, as drps-index has it: without its manifest. */
static int measure(const struct drps_plan *part, uint64_t memory, struct drps_speeds *out)
{
    const struct drps_plan bare = {.io = part->io, .dir = part->dir, .info = part->info};
    struct drps_err err = DRPS_ERR_INIT;
    *out = (struct drps_speeds){0};
    const int rc = drps_arithmetic_measure(&bare, memory, out, &err);
    if (rc < 0) fail_msg("%s", err.text);
    return rc;
}

static void test_both_speeds_are_measured(void **state)
{
    static const struct {
        const char *algo;
        enum case_format format;
    } cases[] = {{"fm", CASE_LIBSVM}, {"lmf", CASE_RATINGS}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct world *w = world_begin(cases[i].algo, cases[i].format, 32, 32, 5);
        for (int several = 0; several < 2; several++) {
            struct drps_speeds speeds;
            struct drps_plan *part;
            assert_int_equal(several ? drps_plan_open_rank(drps_io_os(), w->plan, 0, &part, NULL)
                                     : drps_plan_open(drps_io_os(), w->one, &part, NULL),
                             0);
            assert_int_equal(measure(part, MEMORY, &speeds), 0);
            assert_true(speeds.sample_ns > 0 && speeds.test_sample_ns > 0);
            assert_true(speeds.sample_ns < 1e9 && speeds.test_sample_ns < 1e9);
            assert_true(speeds.read_bps == 0); /* the disk is another's to measure */
            drps_plan_close(part);
        }
        world_end(w);
    }
}

static void test_too_little_memory_measures_nothing(void **state)
{
    struct world *w = world_begin("fm", CASE_LIBSVM, 32, 32, 5);
    struct drps_speeds speeds;
    struct drps_plan *plan;
    (void)state;
    assert_int_equal(drps_plan_open(drps_io_os(), w->one, &plan, NULL), 0);
    assert_int_equal(measure(plan, 1000, &speeds), 1);
    assert_true(speeds.sample_ns == 0);
    drps_plan_close(plan);
    world_end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_speeds_are_measured),
        cmocka_unit_test(test_too_little_memory_measures_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
