/* The least time of epochs, from what they took and moved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include <jansson.h>

#include "index/price/drps_limit.h"

/* Bytes go at 1 GB/s, and a read takes 10 us more. */
static const struct drps_disk_pace some = {.bps = 1e9, .request_ns = 10000};

static int is_near(double got, double expected)
{
    return fabs(got - expected) < 1e-9;
}

static void test_the_limit_is_the_longer_of_disk_and_arithmetic(void **state)
{
    static const struct {
        const char *name;
        struct drps_epoch_spent spent;
        double disk, compute, epoch, reached;
    } cases[] = {
        {"nothing waits", {4, 0, 1000000000, 0}, 1, 4, 4, 1},
        {"the disk is slower", {4, 3, 2000000000, 100000}, 3, 1, 3, .75},
        {"arithmetic is slower", {4, 2, 1000000000, 0}, 1, 2, 2, .5},
        {"reads alone", {4, 4, 0, 200000}, 2, 0, 2, .5},
        {"faster than measured", {4, 4, 8000000000, 0}, 8, 0, 8, 1},
        {"clocks that disagree", {4, 4.5, 1000000000, 0}, 1, 0, 1, .25},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_epoch_limit l = {.pace = some};
        drps_limit_add(&l, &cases[i].spent);
        if (l.epochs != 1 || !is_near(l.least.disk, cases[i].disk) ||
            !is_near(l.least.compute, cases[i].compute) ||
            !is_near(l.least.epoch, cases[i].epoch) || !is_near(l.measured, 4) ||
            !is_near(drps_limit_reached(&l), cases[i].reached))
            fail_msg("%s: disk %g, computing %g, epoch %g of %g, reached %g", cases[i].name,
                     l.least.disk, l.least.compute, l.least.epoch, l.measured,
                     drps_limit_reached(&l));
    }
}

/* The longer of the means, not the mean of the longer ones. */
static void test_the_limit_of_epochs_is_of_their_means(void **state)
{
    const struct drps_epoch_spent spent[] = {{4, 3, 3000000000, 0}, {6, 1, 1000000000, 0}};
    struct drps_epoch_limit l = {.pace = some};
    (void)state;
    drps_limit_add(&l, &spent[0]);
    drps_limit_add(&l, &spent[1]);
    assert_int_equal(l.epochs, 2);
    assert_true(is_near(l.least.disk, 2) && is_near(l.least.compute, 3));
    assert_true(is_near(l.least.epoch, 3) && is_near(l.measured, 5));
    assert_true(is_near(drps_limit_reached(&l), .6));
}

static void test_without_a_pace_there_is_no_limit(void **state)
{
    const struct drps_epoch_spent spent = {4, 3, 3000000000, 10};
    struct drps_epoch_limit l = {0};
    (void)state;
    drps_limit_add(&l, &spent);
    assert_true(l.epochs == 0 && drps_limit_reached(&l) == 0);
}

static void test_json_has_what_is_documented(void **state)
{
    static const struct {
        const char *key;
        double value;
    } members[] = {
        {"compute", 1},   {"disk", 3},   {"epoch", 3},         {"measured", 4},
        {"reached", .75}, {"epochs", 1}, {"bytes_per_s", 1e9}, {"request_seconds", 1e-5}};
    const struct drps_epoch_spent spent = {4, 3, 2000000000, 100000};
    struct drps_epoch_limit l = {.pace = some, .by_plan = 1};
    (void)state;
    drps_limit_add(&l, &spent);
    json_t *j = drps_limit_to_json(&l);
    assert_non_null(j);
    assert_int_equal(json_object_size(j), sizeof(members) / sizeof(*members) + 1);
    assert_true(json_is_true(json_object_get(j, "by_plan")));
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
        const double got = json_number_value(json_object_get(j, members[i].key));
        if (!is_near(got, members[i].value)) fail_msg("%s: %g", members[i].key, got);
    }
    json_decref(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_limit_is_the_longer_of_disk_and_arithmetic),
        cmocka_unit_test(test_the_limit_of_epochs_is_of_their_means),
        cmocka_unit_test(test_without_a_pace_there_is_no_limit),
        cmocka_unit_test(test_json_has_what_is_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
