/* Batches of a stratum trained at the same time: the bytes of one after another. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/drps_engine.h"
#include "index/drps_index.h"
#include "storage/kv/drps_kv.h"
#include "support/index_case.h"
#include "support/scratch.h"
#include "support/train_runs.h"

enum { SAMPLES = 12000, NAMES = 400, BATCH = 64, EPOCHS = 3, RANK = 8 };

/* A plan of ratings in a grid; the caller closes it. */
static struct drps_plan *make_ranked(struct scratch *s, uint32_t rank, uint32_t lanes, int no_bias)
{
    struct case_run c;
    case_begin(&c, s, case_input(s, "input", CASE_RATINGS, SAMPLES, NAMES, 8), "lmf");
    c.options.factors = rank;
    c.options.order = "grid";
    c.options.grid_users = 2;
    c.options.grid_items = 3;
    c.options.lanes = lanes;
    c.options.batch_size = BATCH;
    c.options.test_fraction = 0.1;
    c.options.no_bias = no_bias;
    c.options.force = 1;
    struct drps_plan *plan = case_plan(&c);
    assert_int_equal(plan->info.lanes, lanes > 1 ? lanes : 0);
    return plan;
}

static struct drps_plan *make_plan(struct scratch *s, uint32_t lanes, int no_bias)
{
    return make_ranked(s, RANK, lanes, no_bias);
}

static int train(struct scratch *s, const struct drps_plan *plan, struct drps_train_options o,
                 struct drps_train_result *r, struct drps_err *err)
{
    o.model_path = scratch_path(s, "model");
    o.replace = 1;
    return drps_train_run(plan, &o, r, err);
}

static struct drps_train_result must_train(struct scratch *s, const struct drps_plan *plan,
                                           struct drps_train_options o)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    if (train(s, plan, o, &r, &err)) fail_msg("%s", err.text);
    return r;
}

static void assert_same(const char *what, const struct drps_train_result *a,
                        const struct drps_train_result *b)
{
    if (a->content != b->content) fail_msg("%s: another model", what);
    assert_int_equal(a->epochs_n, b->epochs_n);
    for (size_t e = 0; e < a->epochs_n; e++) {
        assert_memory_equal(&a->epochs[e].train_loss, &b->epochs[e].train_loss, sizeof(double));
        assert_memory_equal(&a->epochs[e].test.rmse, &b->epochs[e].test.rmse, sizeof(double));
    }
}

static int has_item(const struct drps_budget *b, const char *what)
{
    for (size_t i = 0; i < b->n; i++)
        if (strcmp(b->items[i].what, what) == 0) return 1;
    return 0;
}

/* One epoch reads batches as they come, several keep them. */
static void check_options(struct scratch *s, const struct drps_plan *plan, const char *name,
                          struct drps_train_options o)
{
    static const char *const stores[] = {"resident", "relay"};
    o.one_by_one = 1;
    o.threads = 1;
    o.store = "resident";
    struct drps_train_result want = must_train(s, plan, o);
    o.one_by_one = 0;
    for (unsigned k = 0; k < 2; k++)
        for (o.threads = 1; o.threads <= 4; o.threads++) {
            char what[64];
            o.store = stores[k];
            struct drps_train_result r = must_train(s, plan, o);
            (void)snprintf(what, sizeof(what), "%s, %s, %u threads", name, o.store, o.threads);
            assert_same(what, &want, &r);
            drps_train_result_free(&r);
        }
    drps_train_result_free(&want);
}

static void test_stratum_equals_one_after_another(void **state)
{
    static const struct {
        const char *name, *optimizer;
        float lr, l1, l2;
        uint32_t lanes;
        int no_bias;
        uint64_t epochs;
    } cases[] = {
        {.name = "adagrad", .optimizer = "adagrad", .lr = 0.05f, .lanes = 4, .epochs = EPOCHS},
        {.name = "regularised",
         .optimizer = "adagrad",
         .lr = 0.05f,
         .l1 = 0.001f,
         .l2 = 0.02f,
         .lanes = 3,
         .epochs = EPOCHS},
        {.name = "sgd",
         .optimizer = "sgd",
         .lr = 0.002f,
         .l2 = 0.01f,
         .lanes = 2,
         .epochs = EPOCHS},
        {.name = "ftrl",
         .optimizer = "ftrl",
         .lr = 0.05f,
         .l1 = 0.01f,
         .l2 = 0.01f,
         .lanes = 4,
         .epochs = EPOCHS},
        {.name = "adam",
         .optimizer = "adam",
         .lr = 0.01f,
         .l1 = 0.01f,
         .l2 = 0.01f,
         .lanes = 4,
         .epochs = EPOCHS},
        {.name = "without an intercept",
         .optimizer = "adagrad",
         .lr = 0.05f,
         .lanes = 16,
         .no_bias = 1,
         .epochs = EPOCHS},
        {.name = "one epoch", .optimizer = "adagrad", .lr = 0.05f, .lanes = 4, .epochs = 1},
    };
    struct scratch *s = *state;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct drps_plan *plan = make_plan(s, cases[k].lanes, cases[k].no_bias);
        check_options(s, plan, cases[k].name,
                      (struct drps_train_options){.epochs = cases[k].epochs,
                                                  .optimizer = cases[k].optimizer,
                                                  .lr = cases[k].lr,
                                                  .l1 = cases[k].l1,
                                                  .l2 = cases[k].l2});
        drps_plan_close(plan);
    }
}

/* In a relay store of short windows a stratum has steps of several: not all open at once. */
static void test_stratum_over_short_windows(void **state)
{
    struct scratch *s = *state;
    struct drps_plan *plan = make_ranked(s, 600, 4, 0);
    struct drps_train_options o = {.epochs = 2, .store = "relay", .lr = 0.05f, .memory_bytes = 1};
    struct drps_train_result want, r;
    struct drps_err err = DRPS_ERR_INIT;
    o.threads = 3;
    assert_int_equal(train(s, plan, o, &r, &err), DRPS_E_MEMORY_BUDGET);
    o.memory_bytes = r.memory.used_bytes;
    o.threads = 1;
    o.one_by_one = 1;
    want = must_train(s, plan, o);
    assert_in_range(want.windows_n, 2 * 3 * 4, plan->info.batches);
    o.one_by_one = 0;
    for (o.threads = 1; o.threads <= 3; o.threads++) {
        r = must_train(s, plan, o);
        assert_in_range(r.windows_n, 2 * 3 * 4, plan->info.batches);
        assert_same("short windows", &want, &r);
        drps_train_result_free(&r);
    }
    drps_train_result_free(&want);
    drps_plan_close(plan);
}

/* Block stores have strata, too, in whatever memory: down to the least, where one batch is open
 * at a time. One thread has none, and any number makes its model. */
static void test_stratum_block_stores_agree(void **state)
{
    struct scratch *s = *state;
    struct drps_plan *plan = make_plan(s, 4, 0);
    struct drps_train_options o = {.epochs = 2, .store = "resident", .lr = 0.05f};
    struct drps_train_result want = must_train(s, plan, o);
    for (const struct drps_kv_ops *const *kv = drps_kv_engines(); *kv; kv++)
        for (int little = 0; little <= 1; little++)
            for (o.threads = 1; o.threads <= 3; o.threads++) {
                struct drps_err err = DRPS_ERR_INIT;
                struct drps_train_result r;
                char what[64];
                o.store = (*kv)->name;
                o.memory_bytes = (uint64_t)little;
                if (little) {
                    assert_int_equal(train(s, plan, o, &r, &err), DRPS_E_MEMORY_BUDGET);
                    o.memory_bytes = r.memory.used_bytes;
                }
                r = must_train(s, plan, o);
                (void)snprintf(what, sizeof(what), "%s, little memory %d, %u threads", o.store,
                               little, o.threads);
                assert_same(what, &want, &r);
                assert_int_equal(has_item(&r.memory, "batches of a stratum"), o.threads > 1);
                drps_train_result_free(&r);
            }
    o.memory_bytes = 0;
    o.one_by_one = 1;
    struct drps_train_result r = must_train(s, plan, o);
    assert_true(r.content != want.content); /* what all of the above would be without strata */
    drps_train_result_free(&r);
    drps_train_result_free(&want);
    drps_plan_close(plan);
}

/* Local steps are one after another anyway, and leave the intercept as it is, too. */
static void test_stratum_local_steps(void **state)
{
    struct scratch *s = *state;
    struct drps_plan *plan = make_plan(s, 2, 0);
    struct drps_train_options o = {.epochs = 2, .lr = 0.05f, .local_steps = 1, .threads = 1};
    struct drps_train_result one = must_train(s, plan, o);
    o.threads = 2;
    struct drps_train_result two = must_train(s, plan, o);
    assert_same("local steps", &one, &two);
    drps_train_result_free(&one);
    drps_train_result_free(&two);
    drps_plan_close(plan);
}

static float intercept(struct scratch *s)
{
    return train_intercept(scratch_path(s, "model"), 1 + RANK);
}

static void test_stratum_intercept_is_the_mean(void **state)
{
    struct scratch *s = *state;
    for (uint32_t lanes = 1; lanes <= 2; lanes++)
        for (int local_steps = 0; local_steps <= 1; local_steps++) {
            struct drps_plan *plan = make_plan(s, lanes, 0);
            const float mean = (float)plan->info.label_mean;
            struct drps_train_result r = must_train(
                s, plan,
                (struct drps_train_options){.epochs = 1, .lr = 0.05f, .local_steps = local_steps});
            if ((intercept(s) == mean) != (lanes > 1))
                fail_msg("%u lanes, local steps %d: %g, mean %g", lanes, local_steps,
                         (double)intercept(s), (double)mean);
            drps_train_result_free(&r);
            drps_plan_close(plan);
        }
}

static void test_stratum_diverging_loss_is_an_error(void **state)
{
    struct scratch *s = *state;
    struct drps_plan *plan = make_plan(s, 4, 0);
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_train_options o = {.epochs = 5, .optimizer = "sgd", .lr = 1e6f, .threads = 2};
    assert_int_equal(train(s, plan, o, &r, &err), -ERANGE);
    assert_non_null(strstr(err.text, "diverged"));
    drps_train_result_free(&r);
    drps_plan_close(plan);
}

/* plan.json promises what arrays are made for. */
static void test_stratum_larger_records_are_refused(void **state)
{
    struct scratch *s = *state;
    for (int list = 0; list <= 1; list++) {
        struct drps_plan *plan = make_plan(s, 4, 0);
        struct drps_train_result r;
        struct drps_err err = DRPS_ERR_INIT;
        if (list)
            plan->info.max_batch_rows = plan->info.ranks.max_round_rows = 8;
        else
            plan->info.max_body_bytes = 64;
        const struct drps_train_options o = {.epochs = 1, .lr = 0.05f, .threads = 2};
        assert_int_equal(train(s, plan, o, &r, &err), DRPS_E_CORRUPT);
        if (!strstr(err.text, list ? "plan.json" : "the largest 64 when unpacked"))
            fail_msg("%s", err.text);
        drps_train_result_free(&r);
        drps_plan_close(plan);
    }
}

/* Stopped before its first step, and told in an epoch to stop after it. */
struct stopping {
    atomic_int stop;
};

static void stop_now(void *ctx, const struct drps_epoch *e)
{
    struct stopping *st = ctx;
    (void)e;
    atomic_store(&st->stop, 1);
}

static void test_stratum_stops(void **state)
{
    struct scratch *s = *state;
    struct drps_plan *plan = make_plan(s, 4, 0);
    struct stopping st = {1};
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_options o = {
        .epochs = EPOCHS, .threads = 2, .stop = &st.stop, .on_epoch = stop_now, .ctx = &st};
    assert_int_equal(train(s, plan, o, &r, &err), DRPS_E_INTERRUPTED);
    assert_int_equal(r.epochs_n, 0);
    assert_int_equal(r.steps, 0);
    drps_train_result_free(&r);
    st.stop = 0;
    assert_int_equal(train(s, plan, o, &r, &err), DRPS_E_INTERRUPTED);
    assert_int_equal(r.epochs_n, 1);
    assert_int_equal(r.steps, 0);
    drps_train_result_free(&r);
    drps_plan_close(plan);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_stratum_equals_one_after_another),
        SCRATCH_TEST(test_stratum_over_short_windows),
        SCRATCH_TEST(test_stratum_block_stores_agree),
        SCRATCH_TEST(test_stratum_local_steps),
        SCRATCH_TEST(test_stratum_intercept_is_the_mean),
        SCRATCH_TEST(test_stratum_diverging_loss_is_an_error),
        SCRATCH_TEST(test_stratum_larger_records_are_refused),
        SCRATCH_TEST(test_stratum_stops),
    };
    return cmocka_run_group_tests_name("stratum", tests, NULL, NULL);
}
