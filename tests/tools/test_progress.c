/* Texts of progress lines: how long work still takes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/progress.h"

static void test_progress_time_has_units(void **state)
{
    static const struct {
        double seconds;
        const char *text;
    } rows[] = {
        {0, "0.0 s"},    {0.44, "0.4 s"}, {9.9, "9.9 s"},   {9.96, "10 s"},
        {119, "119 s"},  {120, "2 min"},  {1800, "30 min"}, {7200, "2.0 h"},
        {9000, "2.5 h"}, {-1, "?"},       {INFINITY, "?"},  {NAN, "?"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[PROGRESS_TEXT];
        assert_string_equal(progress_time(rows[i].seconds, text), rows[i].text);
    }
}

static void test_progress_left_goes_by_the_pace_so_far(void **state)
{
    (void)state;
    assert_true(fabs(progress_left(25, 100, 2) - 6) < 1e-12);
    assert_true(progress_left(100, 100, 2) == 0);
    assert_true(isnan(progress_left(0, 100, 2)));
    assert_true(isnan(progress_left(101, 100, 2))); /* the whole was not what it seemed */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_progress_time_has_units),
        cmocka_unit_test(test_progress_left_goes_by_the_pace_so_far),
    };
    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
