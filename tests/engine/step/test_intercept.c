/* An intercept that learns at the ends of strata, in lanes of the shuffled order: the same bytes
 * with any number of threads, in any store and memory, and of runs that were broken off. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/publish/drps_modeldir.h"
#include "index/drps_index.h"
#include "support/index_case.h"
#include "support/scratch.h"
#include "support/train_runs.h"

enum { SAMPLES = 4000, NAMES = 200, BATCH = 20, LANES = 3, RANK = 8, EPOCHS = 2 };

static struct drps_plan *make_plan_of(struct scratch *s, uint32_t lanes, int no_bias)
{
    struct case_run c;
    case_begin(&c, s, case_input(s, "input", CASE_RATINGS, SAMPLES, NAMES, 8), "lmf");
    c.options.factors = RANK;
    c.options.lanes = lanes;
    c.options.batch_size = BATCH;
    c.options.test_fraction = 0.1;
    c.options.no_bias = no_bias;
    c.options.force = 1;
    return case_plan(&c);
}

static struct drps_plan *make_plan(struct scratch *s, int no_bias)
{
    return make_plan_of(s, LANES, no_bias);
}

static struct drps_train_options usual(struct scratch *s)
{
    static char model[SCRATCH_PATH_BYTES];
    (void)snprintf(model, sizeof(model), "%s", scratch_path(s, "model"));
    return (struct drps_train_options){.model_path = model,
                                       .replace = 1,
                                       .epochs = EPOCHS,
                                       .lr = 0.05f,
                                       .l2 = 0.02f,
                                       .log = &quiet,
                                       .checkpoint_every = {DRPS_CHECKPOINT_NEVER, 0}};
}

static float intercept(struct scratch *s)
{
    struct drps_modeldir *md;
    const uint32_t id = 0;
    float row[1 + RANK];
    assert_int_equal(
        drps_modeldir_open(drps_io_os(), scratch_path(s, "model"), 16 << 20, &md, NULL), 0);
    assert_int_equal(drps_modeldir_gather(md, &id, 1, row, NULL), 0);
    drps_modeldir_close(md);
    return row[0];
}

/* Little memory has fewer batches open, so that strata are trained in pieces. */
static void check_stores(const struct drps_plan *plan, struct drps_train_options o,
                         const struct drps_train_result *want)
{
    static const char *const stores[] = {"resident", "relay", "file"};
    for (size_t k = 0; k < sizeof(stores) / sizeof(*stores); k++)
        for (int little = 0; little <= 1; little++)
            for (o.threads = 1; o.threads <= 3; o.threads++) {
                struct drps_train_result r;
                struct drps_err err = DRPS_ERR_INIT;
                o.store = stores[k];
                o.memory_bytes = (uint64_t)little;
                if (little) {
                    assert_int_equal(drps_train_run(plan, &o, &r, &err), DRPS_E_MEMORY_BUDGET);
                    o.memory_bytes = r.memory.used_bytes;
                }
                train_well(plan, &o, &r, o.store);
                train_check_same(&r, want, o.store, (long)o.threads + 10L * little);
                drps_train_result_free(&r);
            }
}

static void test_intercept_any_threads_and_store(void **state)
{
    static const char *const optimizers[] = {"adagrad", "sgd", "ftrl"};
    static const float rates[] = {0.05f, 0.002f, 0.05f};
    struct scratch *s = *state;
    for (size_t k = 0; k < sizeof(rates) / sizeof(*rates); k++) {
        struct drps_plan *plan = make_plan(s, 0);
        struct drps_train_options o = usual(s);
        struct drps_train_result want;
        o.optimizer = optimizers[k];
        o.lr = rates[k];
        o.threads = 1;
        o.one_by_one = 1;
        train_well(plan, &o, &want, "one by one");
        if (intercept(s) == (float)plan->info.label_mean)
            fail_msg("%s: the intercept did not learn", o.optimizer);
        o.one_by_one = 0;
        check_stores(plan, o, &want);
        drps_train_result_free(&want);
        drps_plan_close(plan);
    }
}

static void test_no_intercept(void **state)
{
    struct scratch *s = *state;
    struct drps_plan *plan = make_plan(s, 1);
    struct drps_train_options o = usual(s);
    struct drps_train_result want, r;
    o.one_by_one = 1;
    train_well(plan, &o, &want, "one by one");
    o.one_by_one = 0;
    o.threads = 2;
    train_well(plan, &o, &r, "two threads");
    train_check_same(&r, &want, "no intercept", 2);
    drps_train_result_free(&r);
    drps_train_result_free(&want);
    drps_plan_close(plan);
}

/* The step is one of the mean of batches: with the rate of sgd that batches stand, their sum would
 * diverge. */
static void test_intercept_steps_are_of_one_batch(void **state)
{
    struct scratch *s = *state;
    struct drps_plan *plan = make_plan(s, 0);
    struct drps_train_options o = usual(s);
    struct drps_train_result r;
    o.optimizer = "sgd";
    o.lr = 0.02f; /* times 32 batches of 20 samples it is far above 2 */
    o.l2 = 0;
    train_well(plan, &o, &r, "sgd");
    assert_true(fabs((double)intercept(s) - plan->info.label_mean) < 0.5);
    drps_train_result_free(&r);
    drps_plan_close(plan);
}

/* Broken off at changes of files, checkpoints are among batches of a stratum, too: the step that is
 * due is in them. */
static void test_intercept_resumes(void **state)
{
    struct scratch *s = *state;
    struct drps_plan *plan = make_plan(s, 0);
    struct drps_train_options o = usual(s);
    struct drps_train_result want, r;
    long resumed = 0, k = 1;
    for (int one_by_one = 0; one_by_one <= 1; one_by_one++) {
        o.one_by_one = one_by_one;
        o.resume = 0;
        train_well(plan, &o, &want, "undisturbed");
        o.checkpoint_every = (struct drps_checkpoint_every){DRPS_CHECKPOINT_BATCHES, 7};
        for (k = 1; !train_until(plan, &o, k); k += 211) {
            struct drps_train_options on = o;
            on.resume = 1;
            train_well(plan, &on, &r, "resumed");
            train_check_same(&r, &want, "broken off at", k);
            resumed += r.resumed_epoch > 0;
            drps_train_result_free(&r);
            train_remove(scratch_path(s, "model"));
        }
        drps_train_result_free(&want);
    }
    assert_true(resumed > 0);
    drps_plan_close(plan);
}

/* Threads that only cost time are told of: small batches without lanes. */
static void test_threads_without_lanes_are_warned_of(void **state)
{
    struct scratch *s = *state;
    for (uint32_t lanes = 1; lanes <= 2; lanes++)
        for (unsigned threads = 1; threads <= 2; threads++) {
            struct drps_plan *plan = make_plan_of(s, lanes, 0);
            struct drps_train_options o = usual(s);
            struct drps_train_result r;
            int told = 0;
            o.threads = threads;
            train_well(plan, &o, &r, "threads");
            for (size_t i = 0; i < r.remarks.n; i++)
                told += strstr(r.remarks.text[i], "2 threads take longer than one") != NULL;
            if (told != (lanes == 1 && threads == 2))
                fail_msg("%u lanes, %u threads: %d warnings", lanes, threads, told);
            drps_train_result_free(&r);
            drps_plan_close(plan);
        }
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_intercept_any_threads_and_store),
        SCRATCH_TEST(test_no_intercept),
        SCRATCH_TEST(test_intercept_steps_are_of_one_batch),
        SCRATCH_TEST(test_intercept_resumes),
        SCRATCH_TEST(test_threads_without_lanes_are_warned_of),
    };
    return cmocka_run_group_tests_name("intercept", tests, NULL, NULL);
}
