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

#include "base/folder/drps_manifest.h"
#include "base/record/drps_recfile.h"
#include "engine/checkpoint/drps_checkpoint_files.h"
#include "index/drps_index.h"
#include "index/plan/drps_plan_files.h"
#include "support/batch_body.h"
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
    return train_intercept(scratch_path(s, "model"), 1 + RANK);
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
    static const char *const optimizers[] = {"adagrad", "sgd", "ftrl", "adam"};
    static const float rates[] = {0.05f, 0.002f, 0.05f, 0.01f};
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

/* A part of an epoch, as where a rate is looked for: it ends among batches of a stratum. */
static void test_intercept_of_a_pilot(void **state)
{
    struct scratch *s = *state;
    struct drps_plan *plan = make_plan(s, 0);
    struct drps_train_options o = usual(s);
    struct drps_train_result want, r;
    o.pilot = (struct drps_train_pilot){.on = 1, .rounds = 77};
    o.one_by_one = 1;
    train_well(plan, &o, &want, "one by one");
    assert_int_equal(want.epochs_n, 1);
    o.one_by_one = 0;
    for (o.threads = 1; o.threads <= 3; o.threads++) {
        train_well(plan, &o, &r, "in lanes");
        assert_true(r.epochs->train_loss == want.epochs->train_loss);
        drps_train_result_free(&r);
    }
    drps_train_result_free(&want);
    drps_plan_close(plan);
}

/* Steps of samples are made by one thread, so the intercept learns from each. */
static void test_intercept_of_local_steps(void **state)
{
    struct scratch *s = *state;
    struct drps_plan *plan = make_plan(s, 0);
    struct drps_train_options o = usual(s);
    struct drps_train_result want, r;
    o.local_steps = 1;
    train_well(plan, &o, &want, "one thread");
    assert_true(intercept(s) != (float)plan->info.label_mean);
    o.threads = 2;
    train_well(plan, &o, &r, "two threads");
    train_check_same(&r, &want, "local steps", 2);
    drps_train_result_free(&r);
    drps_train_result_free(&want);
    drps_plan_close(plan);
}

/* Write data.rec anew, where the first entry of the first batch has the intercept. */
static void name_the_intercept(const char *dir)
{
    char path[SCRATCH_PATH_BYTES + 16];
    struct drps_recfile *f;
    struct drps_recwriter *w;
    struct drps_piece records[512];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, DRPS_FILE_DATA);
    assert_int_equal(drps_recfile_open(drps_io_os(), path, DRPS_KIND_DATA, &f, NULL), 0);
    const size_t n = (size_t)drps_recfile_count(f);
    assert_in_range(n, 1, 512);
    for (size_t i = 0; i < n; i++) {
        void *record = calloc(1, (size_t)drps_recfile_run_bytes(f, i, 1) + 8);
        assert_int_equal(drps_recfile_read(f, i, 1, record, NULL), 0);
        records[i] = (struct drps_piece){record, (size_t)drps_recfile_bytes(f, i)};
    }
    drps_recfile_close(f);
    struct drps_batch b;
    records[0].data = body_unpack((void *)records[0].data, &records[0].bytes);
    assert_int_equal(drps_batch_decode(records[0].data, records[0].bytes, &b, NULL), 0);
    assert_true(b.stratum && b.local16);
    ((uint16_t *)b.local16)[0] = 0;
    assert_int_equal(drps_recwriter_open(drps_io_os(), path, DRPS_KIND_DATA, &w, NULL), 0);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(drps_recwriter_add(w, &records[i], 1, NULL), 0);
        free((void *)records[i].data);
    }
    assert_int_equal(drps_recwriter_finish(w, NULL), 0);
    drps_recwriter_close(w);
}

static void test_entries_of_the_intercept_are_refused(void **state)
{
    struct scratch *s = *state;
    struct drps_plan *plan = make_plan(s, 0);
    char dir[SCRATCH_PATH_BYTES];
    (void)snprintf(dir, sizeof(dir), "%s", plan->dir);
    name_the_intercept(dir);
    assert_int_equal(drps_plan_save(drps_io_os(), dir, &plan->info, plan->fields, NULL, NULL), 0);
    drps_plan_close(plan);
    assert_int_equal(drps_plan_open(drps_io_os(), dir, &plan, NULL), 0);
    struct drps_train_options o = usual(s);
    for (o.one_by_one = 0; o.one_by_one <= 1; o.one_by_one++)
        train_refused(plan, &o, DRPS_E_CORRUPT, "an entry has the intercept");
    drps_plan_close(plan);
}

static void count_contradictions(void *ctx, enum drps_log_level level, const char *text)
{
    (void)level;
    *(size_t *)ctx += strstr(text, "contradicts its plan") != NULL;
}

/* Checkpoints that say that a step of the intercept is due, where none can be, are left out. */
static void test_steps_that_cannot_be_due_are_refused(void **state)
{
    static const struct {
        const char *name;
        uint32_t lanes;
        int no_bias;
        json_int_t batches;
    } cases[] = {
        {"a plan without lanes", 1, 0, 1},
        {"a plan without an intercept", LANES, 1, 1},
        {"of more batches than were trained", LANES, 0, 1 << 20},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_plan *plan = make_plan_of(s, cases[i].lanes, cases[i].no_bias);
        struct drps_train_options o = usual(s);
        uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
        char root[SCRATCH_PATH_BYTES], path[SCRATCH_PATH_BYTES + 64];
        o.checkpoint_every = (struct drps_checkpoint_every){DRPS_CHECKPOINT_BATCHES, 7};
        print_message("%s\n", cases[i].name);
        assert_int_equal(train_until(plan, &o, 200), 0);
        (void)snprintf(root, sizeof(root), "%s", scratch_path(s, "model.checkpoint"));
        const size_t n = train_checkpoints(root, 0, numbers);
        assert_true(n > 0);
        for (size_t k = 0; k < n; k++) {
            json_t *j;
            (void)snprintf(path, sizeof(path), "%s/rank-0/%llu/%s", root,
                           (unsigned long long)numbers[k], DRPS_CHECKPOINT_MANIFEST);
            assert_int_equal(drps_manifest_read(drps_io_os(), path, DRPS_CHECKPOINT_KIND,
                                                DRPS_CHECKPOINT_VERSION, &j, NULL),
                             0);
            json_t *due = json_pack("{s:i, s:I, s:f}", "stratum", 1, "batches", cases[i].batches,
                                    "gradient", 1.0);
            assert_int_equal(json_object_set_new(j, "intercept", due), 0);
            assert_int_equal(drps_manifest_write(drps_io_os(), path, j, NULL), 0);
            json_decref(j);
        }
        size_t told = 0;
        const struct drps_log log = {DRPS_LOG_WARN, count_contradictions, &told};
        struct drps_train_result r;
        o.resume = 1;
        o.log = &log;
        train_well(plan, &o, &r, cases[i].name);
        assert_int_equal(told, n);
        drps_train_result_free(&r);
        train_remove(root);
        train_remove(scratch_path(s, "model"));
        drps_plan_close(plan);
    }
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
        SCRATCH_TEST(test_intercept_of_a_pilot),
        SCRATCH_TEST(test_intercept_of_local_steps),
        SCRATCH_TEST(test_entries_of_the_intercept_are_refused),
        SCRATCH_TEST(test_steps_that_cannot_be_due_are_refused),
        SCRATCH_TEST(test_threads_without_lanes_are_warned_of),
    };
    return cmocka_run_group_tests_name("intercept", tests, NULL, NULL);
}
