/* Why an epoch moved more than the forecast said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/forecast_text.h"

static void test_forecast_reason_names_what_moved_more(void **state)
{
    static const struct {
        const char *name;
        struct forecast_relay relay;
        uint64_t forecast_bytes, bytes;
        const char *text;
    } rows[] = {
        {"as forecast", {.windows = 90, .groups = 34, .tails = 80}, 1000, 1100, ""},
        {"less", {.windows = 90, .groups = 34, .tails = 80}, 1000, 10, ""},
        {"groups",
         {.windows = 90, .groups = 34, .tails = 80},
         1000,
         1101,
         ": 34 groups of windows move rows twice; more memory avoids that"},
        {"shared chunks",
         {.windows = 90, .tails = 20},
         1000,
         2000,
         ": 90 windows share 20 chunks in memory, and write some before they are full; more memory "
         "avoids that"},
        {"a chunk a window", {.windows = 90, .tails = 90}, 1000, 2000, ""},
        {"another store", {0}, 1000, 2000, ""},
        {"nothing", {0}, 0, 0, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[FORECAST_REASON];
        print_message("%s\n", rows[i].name);
        assert_string_equal(
            forecast_reason(&rows[i].relay, rows[i].forecast_bytes, rows[i].bytes, text),
            rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forecast_reason_names_what_moved_more),
    };
    return cmocka_run_group_tests_name("forecast_text", tests, NULL, NULL);
}
