/* A forecast that is left for later where all rows fit: the plan is the same otherwise, and who
 * asks gets the one that would have been made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "api/drps.h"
#include "index/forecast/drps_plan_forecast.h"
#include "index/plan/drps_plan.h"
#include "support/index_case.h"
#include "support/scratch.h"

static const json_t *forecast_of(const struct drps_plan *plan)
{
    return json_object_get(plan->json, "forecast");
}

static struct drps_plan *completed(struct drps_plan *plan)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_plan_complete_forecast(plan, NULL, &err) < 0) fail_msg("%s", err.text);
    return plan;
}

/* Makes the plan `name` with or without a forecast for later. */
static struct drps_plan *make(struct case_run *c, struct scratch *s, const char *name, int later)
{
    (void)snprintf(c->out, sizeof(c->out), "%s", scratch_path(s, name));
    c->options.forecast_later = later;
    struct drps_plan *plan = case_plan(c);
    case_verify(c->out);
    return plan;
}

/* Whether the library's description of a plan has a forecast. */
static int is_described(const char *dir)
{
    struct drps_err err = DRPS_ERR_INIT;
    char *text;
    if (drps_describe(dir, &text, &err) < 0) fail_msg("%s", err.text);
    json_t *j = json_loads(text, 0, NULL);
    const int has = json_array_size(json_object_get(j, "forecast")) > 0;
    json_decref(j);
    drps_free(text);
    return has;
}

static void test_forecast_later_is_the_one_that_was_left_out(void **state)
{
    static const struct {
        const char *name, *algo, *order;
        enum case_format format;
        double test_fraction;
    } cases[] = {
        {"clicks", "lor", NULL, CASE_LIBSVM, 0.2},   {"numbers", "lir", "given", CASE_LIBSVM, 0},
        {"ratings", "lmf", NULL, CASE_RATINGS, 0.1}, {"a grid", "lmf", "grid", CASE_RATINGS, 0},
        {"fields", "ffm", NULL, CASE_LIBFFM, 0},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct case_run c;
        case_begin(&c, s, case_input(s, "input", cases[i].format, 2000, 3000, 21), cases[i].algo);
        c.options.order = cases[i].order;
        c.options.test_fraction = cases[i].test_fraction;
        c.options.force = 1;
        struct drps_plan *now = make(&c, s, "now", 0);
        assert_true(c.result.forecasts > 0 && c.result.phase_seconds[DRPS_PHASE_FORECAST] > 0);
        struct drps_plan *later = make(&c, s, "later", 1);
        assert_true(c.result.forecasts == 0 && c.result.phase_seconds[DRPS_PHASE_FORECAST] == 0);

        assert_null(forecast_of(later));
        assert_true(case_same_records(scratch_path(s, "now"), scratch_path(s, "later")));
        assert_string_equal(now->info.id, later->info.id);
        assert_true(json_array_size(forecast_of(now)) > 0);
        assert_true(is_described(scratch_path(s, "later")));
        (void)completed(later);
        if (!json_equal((json_t *)forecast_of(now), (json_t *)forecast_of(later)))
            fail_msg("%s: another forecast", cases[i].name);
        drps_plan_close(now);
        drps_plan_close(later);
    }
}

/* 4096 factors: with 64 MiB there is room for some hundred rows. */
static void test_forecast_is_not_left_where_rows_do_not_fit(void **state)
{
    struct scratch *s = *state;
    static const struct {
        size_t features;
        int is_left;
    } cases[] = {{100, 1}, {3000, 0}};
    for (size_t i = 0; i < 2; i++) {
        struct case_run c;
        case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 1000, cases[i].features, 22), "fm");
        c.options.factors = 4096;
        c.options.memory_bytes = 64 << 20;
        c.options.force = 1;
        struct drps_plan *plan = make(&c, s, "plan", 1);
        assert_int_equal(!forecast_of(plan), cases[i].is_left);
        assert_int_equal(c.result.forecasts == 0, cases[i].is_left);
        drps_plan_close(plan);
    }
}

static void test_forecast_that_is_there_stays(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 500, 100, 23), "lor");
    struct drps_plan *plan = make(&c, s, "made", 0);
    const json_t *made = forecast_of(plan);
    assert_ptr_equal(forecast_of(completed(plan)), made);
    drps_plan_close(plan);

    c.options.no_forecast = 1; /* was told to have none */
    plan = completed(make(&c, s, "none", 1));
    assert_true(json_is_array(forecast_of(plan)) && json_array_size(forecast_of(plan)) == 0);
    drps_plan_close(plan);

    c.options.no_forecast = 0;
    c.options.workers = 2; /* the whole has none, its parts have */
    plan = completed(make(&c, s, "ranks", 0));
    assert_null(forecast_of(plan));
    drps_plan_close(plan);
}

/* Seconds are as the disk was when the plan was made; parts are read by their ranks. */
static void test_forecast_is_not_left_with_calibration_or_by_workers(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 500, 100, 25), "lor");
    c.options.blocks.calibrate = s->dir;
    drps_plan_close(make(&c, s, "calibrated", 1));
    assert_true(c.result.forecasts > 0);
    c.options.blocks.calibrate = NULL;
    drps_plan_close(make(&c, s, "one", 1));
    assert_true(c.result.forecasts == 0);
    c.options.workers = 2;
    drps_plan_close(make(&c, s, "two", 1));
    assert_true(c.result.forecasts > 0);
}

static void keep_text(void *ctx, enum drps_log_level level, const char *text)
{
    assert_int_equal(level, DRPS_LOG_WARN);
    (void)snprintf(ctx, sizeof(((struct drps_err *)0)->text), "%s", text);
}

/* A plan that lacks a file is shown without a forecast, and the file is named. */
static void test_a_broken_plan_has_no_forecast(void **state)
{
    static const char *const names[] = {"blocks.rec", "uses.rec", "rows.rec"};
    struct scratch *s = *state;
    for (size_t i = 0; i < 3; i++) {
        struct case_run c;
        struct drps_err err = DRPS_ERR_INIT;
        case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 500, 100, 24), "lor");
        c.options.force = 1;
        struct drps_plan *plan = make(&c, s, "plan", 1);
        char path[SCRATCH_PATH_BYTES + 16];
        (void)snprintf(path, sizeof(path), "%s/%s", c.out, names[i]);
        assert_int_equal(remove(path), 0);
        char told[sizeof(((struct drps_err *)0)->text)] = "";
        const struct drps_log log = {DRPS_LOG_WARN, keep_text, told};
        assert_int_equal(drps_plan_complete_forecast(plan, &log, &err), 0);
        if (!strstr(told, names[i])) fail_msg("%s: %s", names[i], told);
        assert_null(forecast_of(plan));
        drps_plan_close(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_forecast_later_is_the_one_that_was_left_out,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_forecast_is_not_left_where_rows_do_not_fit,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_forecast_that_is_there_stays, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_forecast_is_not_left_with_calibration_or_by_workers,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_a_broken_plan_has_no_forecast, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
