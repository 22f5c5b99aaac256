/* The forecast as a table, and why an epoch moved more than it said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/drps_forecast_text.h"

static void test_forecast_reason_names_what_moved_more(void **state)
{
    static const struct {
        const char *name;
        uint64_t merged_bytes;
        uint64_t forecast_bytes, bytes;
        const char *text;
    } rows[] = {
        {.name = "as forecast",
         .merged_bytes = 1,
         .forecast_bytes = 1000,
         .bytes = 1100,
         .text = ""},
        {.name = "less", .merged_bytes = 1, .forecast_bytes = 1000, .bytes = 10, .text = ""},
        {.name = "merged",
         .merged_bytes = 1,
         .forecast_bytes = 1000,
         .bytes = 1101,
         .text = ": rows on disk are merged, which moves them twice; more memory avoids that"},
        {.name = "another store", .forecast_bytes = 1000, .bytes = 2000, .text = ""},
        {.name = "nothing", .forecast_bytes = 0, .bytes = 0, .text = ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[FORECAST_REASON];
        print_message("%s\n", rows[i].name);
        assert_string_equal(
            forecast_reason(rows[i].merged_bytes, rows[i].forecast_bytes, rows[i].bytes, text),
            rows[i].text);
    }
}

static char *table_of(const char *json)
{
    char *text = NULL;
    size_t bytes;
    json_t *list = json_loads(json, 0, NULL);
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(list);
    assert_non_null(out);
    forecast_print(out, list);
    assert_int_equal(fclose(out), 0);
    json_decref(list);
    return text;
}

#define STORE(name, memory, fits)                                                                  \
    "{\"store\":\"" name "\",\"memory_bytes\":" memory ",\"feasible\":" fits                       \
    ",\"sampled\":0.25,\"read_bytes\":1024,\"written_bytes\":-1,\"ios\":3}"

static void test_forecast_table_names_stores_as_training_does(void **state)
{
    char *text = table_of("[" STORE("pib", "2048", "true") "," STORE(
        "pib", "1024", "false") "," STORE("pib", "512", "false") "]");
    (void)state;
    assert_non_null(strstr(text, "  blocks       2.0 KiB     1.0 KiB           -           3\n"));
    assert_non_null(strstr(text, "  blocks       1.0 KiB   one batch does not fit\n"));
    assert_null(strstr(text, "512")); /* less memory does not fit either */
    assert_null(strstr(text, "pib"));
    assert_non_null(strstr(text, "(blocks: --store file, rocksdb or leveldb; counted on 25 % of"));
    free(text);
    text = table_of("[]");
    assert_string_equal(text, "");
    free(text);
}

/* Seconds have columns where a plan has them, "-" in a line without. */
static void test_forecast_table_has_seconds_if_there_are_any(void **state)
{
    char *text = table_of("[{\"store\":\"resident\",\"memory_bytes\":2048,\"feasible\":true,"
                          "\"read_bytes\":0,\"written_bytes\":0,\"ios\":0,\"seconds\":"
                          "{\"compute\":1.5,\"disk\":0.25,\"epoch\":1.5}}]");
    (void)state;
    assert_non_null(strstr(text, "I/Os arithmetic s    disk s   epoch s\n"));
    assert_non_null(strstr(text, "           0         1.50      0.25      1.50\n"));
    free(text);
    text = table_of("[" STORE("pib", "2048", "true") "]");
    assert_null(strstr(text, "epoch s"));
    assert_null(strstr(text, "seconds"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forecast_table_names_stores_as_training_does),
        cmocka_unit_test(test_forecast_table_has_seconds_if_there_are_any),
        cmocka_unit_test(test_forecast_reason_names_what_moved_more),
    };
    return cmocka_run_group_tests_name("forecast_text", tests, NULL, NULL);
}
