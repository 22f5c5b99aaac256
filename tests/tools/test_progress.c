/* Texts of progress lines: how far work is, how long it still takes, and how fast it goes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/drps_progress.h"

static void test_progress_time_has_units(void **state)
{
    static const struct {
        double seconds;
        const char *text;
    } rows[] = {
        {0, "0 s"},     {0.44, "0 s"},    {9.9, "10 s"},   {119, "119 s"},
        {120, "2 min"}, {1800, "30 min"}, {7200, "2.0 h"}, {9000, "2.5 h"},
        {-1, "?"},      {INFINITY, "?"},  {NAN, "?"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[DRPS_PROGRESS_TIME];
        assert_string_equal(drps_progress_time(rows[i].seconds, text), rows[i].text);
    }
}

static void test_progress_left_goes_by_the_rate_so_far(void **state)
{
    struct drps_progress p = {.done = 25, .total = 100, .seconds = 2};
    (void)state;
    assert_true(fabs(drps_progress_left(&p) - 6) < 1e-12);
    p.done = 100;
    assert_true(drps_progress_left(&p) == 0);
    p.done = 0;
    assert_true(isnan(drps_progress_left(&p)));
    p.done = 101; /* the whole was not what it seemed */
    assert_true(isnan(drps_progress_left(&p)));
}

static void test_progress_text_says_share_time_and_rate(void **state)
{
    static const struct {
        struct drps_progress work;
        const char *text;
    } cases[] = {
        {{"batches", "samples", 450000, 1000000, 2, NULL},
         "batches: 45 % of 1,000,000 samples, 2 s left, 225,000/s"},
        {{"epoch 1 of 3", "samples", 500, 1000, 2, "10 s of all"},
         "epoch 1 of 3: 50 % of 1,000 samples, 2 s left, 10 s of all, 250/s"},
        {{"text", DRPS_PROGRESS_BYTES, 1 << 20, 4 << 20, 3600, NULL},
         "text: 25 % of 4.0 MiB, 3.0 h left, 291 B/s"},
        {{"text", DRPS_PROGRESS_BYTES, 3 << 20, 6 << 20, 300, NULL},
         "text: 50 % of 6.0 MiB, 5 min left, 10.2 KiB/s"},
        {{"blocks", DRPS_PROGRESS_BYTES, 3 << 20, 0, 3, NULL}, "blocks: 3.0 MiB in 3 s, 1.0 MiB/s"},
        {{"text", "samples", 1234, 0, 2, NULL}, "text: 1,234 samples in 2 s, 617/s"},
        {{"text", "samples", 7, 5, 1, NULL}, "text: 7 samples in 1 s, 7/s"}, /* it grew */
        {{"rows", "samples", 0, 0, 12, NULL}, "rows: 12 s"},
        {{"rows", "samples", 9, 20, 1e-7, NULL}, "rows: 0 s"}, /* no rate yet */
        {{"rows", "samples", 9, 20, 0, NULL}, "rows: 0 s"},
    };
    char text[DRPS_PROGRESS_TEXT];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_string_equal(drps_progress_text(&cases[i].work, text), cases[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_progress_time_has_units),
        cmocka_unit_test(test_progress_left_goes_by_the_rate_so_far),
        cmocka_unit_test(test_progress_text_says_share_time_and_rate),
    };
    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
