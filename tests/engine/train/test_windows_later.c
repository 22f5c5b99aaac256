/* Plans whose windows are left for the runs that need them: nothing else in them differs, and store
 * relay trains the same model from them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/drps_engine.h"
#include "index/plan/drps_plan.h"
#include "support/index_case.h"
#include "support/scratch.h"
#include "support/train_runs.h"

/* Makes the plan `name`, which is whole. */
static struct drps_plan *make(struct case_run *c, struct scratch *s, const char *name, int later)
{
    (void)snprintf(c->out, sizeof(c->out), "%s", scratch_path(s, name));
    c->options.windows_later = later;
    struct drps_plan *plan = case_plan(c);
    case_verify(c->out);
    return plan;
}

static int has_file(const struct drps_plan *plan, const char *name)
{
    char path[SCRATCH_PATH_BYTES + 16];
    (void)snprintf(path, sizeof(path), "%s/%s", plan->dir, name);
    return access(path, F_OK) == 0;
}

static void check_windows(const struct drps_plan *plan, int there)
{
    assert_int_equal(plan->info.windows_later, !there);
    assert_int_equal(plan->info.windows > 0, there);
    assert_int_equal(has_file(plan, "windows.rec"), there);
    assert_int_equal(has_file(plan, "slots.rec"), there);
}

static void train(const struct drps_plan *plan, struct scratch *s, struct drps_train_result *out)
{
    const struct drps_train_options o = {.model_path = scratch_path(s, "model"),
                                         .epochs = 2,
                                         .seed = 5,
                                         .store = "relay",
                                         .replace = 1,
                                         .log = &quiet,
                                         .checkpoint_every = {DRPS_CHECKPOINT_NEVER, 0}};
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_train_run(plan, &o, out, &err) < 0) fail_msg("%s", err.text);
    assert_true(out->windows_n > 0);
}

static void test_only_windows_are_left_out(void **state)
{
    static const struct {
        const char *algo, *order;
        enum case_format format;
        double test_fraction;
    } cases[] = {{"lor", NULL, CASE_LIBSVM, 0.2}, {"lmf", "grid", CASE_RATINGS, 0}};
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct case_run c;
        struct drps_train_result with, without;
        case_begin(&c, s, case_input(s, "input", cases[i].format, 2000, 3000, 31), cases[i].algo);
        c.options.order = cases[i].order;
        c.options.test_fraction = cases[i].test_fraction;
        c.options.force = 1;
        struct drps_plan *now = make(&c, s, "now", 0), *later = make(&c, s, "later", 1);
        check_windows(now, 1);
        check_windows(later, 0);
        assert_true(case_same_records(now->dir, later->dir));
        assert_int_equal(later->info.working_set_rows, later->info.rows);
        train(now, s, &with);
        train(later, s, &without);
        assert_int_equal(with.content, without.content);
        drps_train_result_free(&with);
        drps_train_result_free(&without);
        drps_plan_close(now);
        drps_plan_close(later);
    }
}

/* 4096 factors: with 64 MiB there is room for some hundred rows. That a batch has more of them, so
 * that windows have to, leaves no room for all. */
static void test_windows_are_not_left_where_rows_do_not_fit(void **state)
{
    static const struct {
        size_t features;
        uint64_t batch_size;
        int windows;
    } cases[] = {{100, 0, 0}, {3000, 0, 1}, {3000, 1000, 1}};
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct case_run c;
        case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 1000, cases[i].features, 32), "fm");
        c.options.factors = 4096;
        c.options.memory_bytes = 64 << 20;
        c.options.force = 1;
        if (cases[i].batch_size) c.options.batch_size = cases[i].batch_size;
        struct drps_plan *plan = make(&c, s, "plan", 1);
        check_windows(plan, cases[i].windows);
        drps_plan_close(plan);
    }
}

/* Checks windows of each of the plan's two parts. */
static void check_parts(const struct drps_plan *whole, int there)
{
    for (uint32_t rank = 0; rank < 2; rank++) {
        char dir[DRPS_PLAN_PATH_BYTES];
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_plan *part;
        assert_int_equal(drps_plan_rank_dir(whole->dir, rank, dir, &err), 0);
        if (drps_plan_open(drps_io_os(), dir, &part, &err) < 0) fail_msg("%s", err.text);
        check_windows(part, there);
        drps_plan_close(part);
    }
}

/* Each part has windows or not, by itself; the whole says of all that there are none. */
static void test_parts_without_windows(void **state)
{
    static const struct {
        const char *algo;
        uint32_t factors;
        int windows;
    } cases[] = {{"lor", 0, 0}, {"fm", 4096, 1}};
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct case_run c;
        case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 2000, 6000, 33), cases[i].algo);
        c.options.workers = 2;
        c.options.factors = cases[i].factors;
        c.options.memory_bytes = 64 << 20;
        c.options.force = 1;
        struct drps_plan *whole = make(&c, s, "ranks", 1);
        assert_int_equal(whole->info.windows > 0, cases[i].windows);
        assert_int_equal(whole->info.windows_later, !cases[i].windows);
        check_parts(whole, cases[i].windows);
        drps_plan_close(whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_only_windows_are_left_out, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_windows_are_not_left_where_rows_do_not_fit,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_parts_without_windows, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
