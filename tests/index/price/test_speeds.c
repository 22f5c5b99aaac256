/* Seconds of an epoch from measured speeds, and these as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include <jansson.h>

#include "index/price/drps_speeds.h"

/* A request costs 1 us to read and 2 to write; bytes go at 1 GB/s and at half of that. */
static const struct drps_speeds some = {.read_request_ns = 1000,
                                        .write_request_ns = 2000,
                                        .read_bps = 1e9,
                                        .write_bps = 5e8,
                                        .sample_ns = 500,
                                        .test_sample_ns = 100};

static void test_an_epoch_takes_the_longer_of_both(void **state)
{
    static const struct {
        const char *name;
        struct drps_epoch_work work;
        struct drps_epoch_seconds want;
    } cases[] = {
        {"in memory", {.samples = 2000000, .test_samples = 1000000}, {1.1, 0, 1.1}},
        {"two threads", {.samples = 2000000, .threads = 2}, {.5, 0, .5}},
        {"reads alone", {.read_bytes = 1000000000, .requests = 1000}, {0, 1.001, 1.001}},
        {"writes alone", {.written_bytes = 1000000000, .requests = 1000}, {0, 2.002, 2.002}},
        {"requests follow bytes", /* 3/4 of them read */
         {.read_bytes = 3000000, .written_bytes = 1000000, .requests = 4000},
         {0, .003 + .002 + .003 + .002, .01}},
        {"the disk is slower",
         {.samples = 2000000, .read_bytes = 2000000000, .requests = 0},
         {1, 2, 2}},
        {"computing is slower", {.samples = 8000000, .read_bytes = 2000000000}, {4, 2, 4}},
        {"nothing", {0}, {0, 0, 0}},
        {"reads apart, without a pace",
         {.read_bytes = 1000000000, .requests = 1000, .apart = 5000},
         {0, 1.001, 1.001}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct drps_epoch_seconds s = drps_speeds_price(&some, &cases[i].work);
        const struct drps_epoch_seconds *w = &cases[i].want;
        if (fabs(s.compute - w->compute) > 1e-9 || fabs(s.disk - w->disk) > 1e-9 ||
            fabs(s.epoch - w->epoch) > 1e-9)
            fail_msg("%s: %g, %g, %g; expected %g, %g, %g", cases[i].name, s.compute, s.disk,
                     s.epoch, w->compute, w->disk, w->epoch);
    }
}

/* A byte takes 1 ns and a read 10 us more. */
static struct drps_speeds with_pace(void)
{
    struct drps_speeds speeds = some;
    speeds.pace = (struct drps_disk_pace){.bps = 1e9, .request_ns = 10000};
    return speeds;
}

static void test_reads_apart_go_at_the_pace(void **state)
{
    const struct drps_speeds speeds = with_pace();
    struct drps_epoch_work work = {
        .read_bytes = 2000000000, .written_bytes = 1000000000, .requests = 1000, .apart = 50000};
    (void)state;
    assert_true(fabs(drps_speeds_price(&speeds, &work).disk - 3.5) < 1e-9);
    work.apart = 0; /* another store */
    assert_true(fabs(drps_speeds_price(&speeds, &work).disk - (2 + 2 + .002 / 3 + .002 / 3)) <
                1e-9);
}

static void test_without_speeds_there_is_no_time(void **state)
{
    const struct drps_speeds none = {0};
    const struct drps_epoch_work work = {.samples = 5, .read_bytes = 7, .requests = 1};
    const struct drps_epoch_seconds s = drps_speeds_price(&none, &work);
    (void)state;
    assert_true(s.compute == 0 && s.disk == 0 && s.epoch == 0);
}

static void test_speeds_come_back(void **state)
{
    struct drps_speeds read;
    json_t *j = drps_speeds_to_json(&some);
    (void)state;
    assert_int_equal(drps_speeds_from_json(j, "here", &read, NULL), 0);
    assert_memory_equal(&read, &some, sizeof(some));
    json_decref(j);
    const struct drps_speeds paced = with_pace();
    j = drps_speeds_to_json(&paced);
    assert_int_equal(drps_speeds_from_json(j, "here", &read, NULL), 0);
    assert_memory_equal(&read, &paced, sizeof(paced));
    json_decref(j);
    assert_int_equal(drps_speeds_from_json(NULL, "here", &read, NULL), 0); /* an older plan */
    assert_false(drps_speeds_are_known(&read));
}

static void test_speeds_that_are_none_are_refused(void **state)
{
    static const char *const keys[] = {"read_request_ns",   "write_request_ns", "read_bytes_per_s",
                                       "write_bytes_per_s", "sample_ns",        "test_sample_ns",
                                       "paced_bytes_per_s", "paced_read_ns"};
    const struct drps_speeds paced = with_pace();
    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        for (int bad = 0; bad < 4; bad++) {
            struct drps_err err = DRPS_ERR_INIT;
            struct drps_speeds read;
            json_t *j = drps_speeds_to_json(&paced);
            if (bad == 0 && strcmp(keys[i], "paced_read_ns") == 0) bad = 1; /* it may be 0 */
            if (bad == 3) assert_int_equal(json_object_del(j, keys[i]), 0);
            if (bad < 3)
                (void)json_object_set_new(j, keys[i],
                                          json_real(bad == 0   ? 0
                                                    : bad == 1 ? -5
                                                               : 1e30));
            if (drps_speeds_from_json(j, "here", &read, &err) != DRPS_E_CORRUPT ||
                !strstr(err.text, keys[i]))
                fail_msg("%s, %d: '%s'", keys[i], bad, err.text);
            json_decref(j);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_epoch_takes_the_longer_of_both),
        cmocka_unit_test(test_reads_apart_go_at_the_pace),
        cmocka_unit_test(test_without_speeds_there_is_no_time),
        cmocka_unit_test(test_speeds_come_back),
        cmocka_unit_test(test_speeds_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
