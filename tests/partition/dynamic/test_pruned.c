/* Units of a dense net: how runs are cut, what is pruned, and which units a sample has changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "partition/dynamic/drps_dynamic.h"

/* Runs of 7, 0, 3 and 4 parameters in units of at most 3. */
static void test_runs_are_cut_evenly(void **state)
{
    (void)state;
    static const uint32_t runs[] = {0, 7, 7, 10, 14};
    static const uint32_t want[] = {0, 2, 4, 7, 10, 12, 14};
    uint32_t first[7];
    assert_int_equal(drps_dynamic_cut(runs, 4, 3, NULL), 6);
    assert_int_equal(drps_dynamic_cut(runs, 4, 3, first), 6);
    assert_memory_equal(first, want, sizeof(want));
    assert_int_equal(drps_dynamic_cut(runs, 4, UINT32_MAX, NULL), 3); /* a run is a unit */
    assert_int_equal(drps_dynamic_cut(runs, 4, 1, NULL), 14);
}

static void test_nothing_to_cut(void **state)
{
    (void)state;
    static const uint32_t runs[] = {0, UINT32_MAX};
    uint32_t first = 7;
    assert_int_equal(drps_dynamic_cut(runs, 1, 0, NULL), 0);
    assert_int_equal(drps_dynamic_cut(runs, 0, 5, &first), 0);
    assert_int_equal(first, 0);
    assert_int_equal(drps_dynamic_cut(runs, 1, 1u << 31, NULL), 2); /* no sum overflows */
}

static void test_pruned_stays_pruned(void **state)
{
    (void)state;
    static const uint32_t first[] = {0, 2, 5};
    static const uint8_t want[] = {1, 0, 1, 0, 0};
    float params[] = {.1f, -.5f, -.2f, .25f, 3};
    uint8_t pruned[5] = {0};
    uint32_t size[2];
    assert_int_equal(drps_dynamic_prune(params, 5, .25f, pruned), 2); /* .25 is not below it */
    assert_memory_equal(pruned, want, sizeof(want));
    drps_dynamic_sizes(first, 2, pruned, size);
    assert_int_equal(size[0], 1);
    assert_int_equal(size[1], 2);
    params[0] = 9; /* large again: pruned all the same */
    assert_int_equal(drps_dynamic_prune(params, 5, 0, pruned), 2);
    drps_dynamic_sizes(first, 2, NULL, size);
    assert_int_equal(size[0], 2);
    assert_int_equal(size[1], 3);
}

static void test_what_has_changed(void **state)
{
    (void)state;
    static const uint32_t first[] = {0, 2, 4, 6, 7, 8};
    static const float change[] = {.1f, -.1f, 0, -.2f, .5f, 0, NAN, INFINITY};
    static const uint8_t pruned[] = {0, 0, 0, 0, 1, 0, 0, 1};
    uint32_t changed[5];
    /* A unit whose only large change is of a pruned parameter has not changed. */
    assert_int_equal(drps_dynamic_changed(change, pruned, first, 5, .1f, changed), 2);
    assert_int_equal(changed[0], 1);
    assert_int_equal(changed[1], 3);
    assert_int_equal(drps_dynamic_changed(change, NULL, first, 5, .1f, changed), 4);
    assert_int_equal(changed[1], 2);
    assert_int_equal(changed[3], 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_are_cut_evenly),
        cmocka_unit_test(test_nothing_to_cut),
        cmocka_unit_test(test_pruned_stays_pruned),
        cmocka_unit_test(test_what_has_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
