/* The JSON of drps-index, when memory ends while it is made: a summary that lost a value is an
 * error, not a shorter summary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/alloc_fault.h"
#include "support/base_plans.h"
#include "api/report/drps_index_report.h"
#include "tools/index/columns.h"

enum { MOST_ALLOCATIONS = 100000 };

/* A plan for two ranks, of which all kinds of lists are told. */
static const struct drps_index_result *result_of(const char *dir)
{
    static struct drps_index_result r;
    struct drps_plan *plan;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(drps_plan_open(drps_io_os(), dir, &plan, &err), 0);
    r.info = plan->info;
    assert_int_equal(r.info.ranks.workers, 2);
    drps_plan_close(plan);
    r.forecasts = 2;
    r.forecast[0].store = r.forecast[1].store = "relay";
    return &r;
}

/* Tells of columns and prints the summary; returns what drps_index_report_json() returns and what
 * it printed, which the caller frees. Both are done without the memory of allocation k. */
static int print_without(const char *dir, const struct drps_index_result *result, long k,
                         char **text_out, int *fired_out)
{
    static const struct drps_reader_column told[] = {
        {.name = "clicked", .kind = DRPS_COLUMN_LABEL, .why = "as given"},
        {.name = "age", .kind = DRPS_COLUMN_NUMBER, .why = "as given"}};
    const struct drps_cli cli = {.log = {.level = DRPS_LOG_ERROR}};
    const struct drps_index_options options = {.out = dir};
    struct index_columns columns = {.cli = &cli};
    struct drps_index_report report = {
        .result = result,
        .options = &options,
        .has_columns = 1,
        .network = {.info = &result->info, .link_bits = DRPS_LINK_USUAL_BITS}};
    struct drps_err err = DRPS_ERR_INIT;
    size_t n = 0;
    FILE *const out = stdout;
    FILE *const text = open_memstream(text_out, &n);
    assert_non_null(text);
    stdout = text;
    alloc_fault_arm(FAULT_MEMORY, k);
    index_columns_show(&columns, told, sizeof(told) / sizeof(told[0]));
    report.columns = columns.list;
    json_t *j = drps_index_report_json(&report, &err);
    const int rc = j || !err.code ? drps_cli_json_print(j, &err) : err.code;
    *fired_out = alloc_fault_disarm();
    stdout = out;
    assert_int_equal(fclose(text), 0);
    json_decref(columns.list);
    return rc;
}

/* What differs from one run to the next is the memory that the process has had. */
static void compare(const char *found, const char *whole, long k)
{
    json_t *a = json_loads(found, 0, NULL), *b = json_loads(whole, 0, NULL);
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(json_object_del(a, "peak_rss_bytes"), 0);
    assert_int_equal(json_object_del(b, "peak_rss_bytes"), 0);
    if (!json_equal(a, b))
        fail_msg("without allocation %ld it succeeded and printed\n%s\nin place of\n%s", k, found,
                 whole);
    json_decref(a);
    json_decref(b);
}

static void test_a_lost_value_is_an_error(void **state)
{
    const char *dir = base_plan(BASE_RANKS)->plan;
    const struct drps_index_result *result = result_of(dir);
    char *whole, *text;
    int fired;
    long failed = 0;
    (void)state;
    assert_int_equal(print_without(dir, result, MOST_ALLOCATIONS, &whole, &fired), 0);
    assert_false(fired);
    assert_non_null(strstr(whole, "\"columns\""));
    assert_non_null(strstr(whole, "\"ranks\""));
    for (long k = 1; k <= MOST_ALLOCATIONS; k++) {
        const int rc = print_without(dir, result, k, &text, &fired);
        if (rc == 0) compare(text, whole, k);
        free(text);
        if (!fired) break;
        failed += rc < 0;
    }
    assert_false(fired);
    assert_true(failed > 100);
    free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_lost_value_is_an_error)};
    return cmocka_run_group_tests_name("index report, JSON", tests, NULL, NULL);
}
