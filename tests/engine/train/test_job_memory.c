/*
 * Whole trainings in which memory, or threads, run out: at each allocation once (with a sanitizer,
 * at one in so many). Each ends with that error and a text and leaves nothing that is no whole
 * model or whole folder of what was trained; or it can do without, and its model is the same. The
 * same for what is done with a model afterwards. The sanitised build sees that nothing leaks.
 */
#include "support/plan_maker.h"

#include <errno.h>

#include "engine/drps_engine.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/predict/drps_predict.h"
#include "index/verify/drps_verify.h"
#include "engine/publish/drps_publish.h"
#include "storage/kv/drps_kv.h"
#include "support/alloc_fault.h"
#include "support/scratch.h"

struct fixture {
    struct scratch *s;
    struct maker m;
    struct drps_plan *plan;
    struct drps_train_options train;
    struct drps_publish_options publish;
    struct drps_predict_options predict;
    char *input;      /* own */
    uint64_t content; /* of the model, whatever failed on the way to it; 0: not known yet */
};

static void begin(struct fixture *f, struct scratch *s)
{
    memset(f, 0, sizeof(*f));
    f->s = s;
    maker_init(&f->m, "fm", "logistic", 400, 10);
    f->m.rank = 4;
    f->m.small_windows = 1;
    maker_random(&f->m, 60, 3, 0, 11);
    maker_random(&f->m, 20, 3, 1, 12);
    f->plan = maker_write(&f->m, s->dir, "plan");
    f->train = (struct drps_train_options){.epochs = 2};
}

static void end(struct fixture *f)
{
    drps_plan_close(f->plan);
    maker_free(&f->m);
}

/* ---- At each call once ---- */

typedef int (*work)(struct fixture *f, struct drps_err *err);

/* `run` with each call failing in turn, until none does. `check`, if any, looks at what a failed
 * run has left, and clears it away. */
static void each_call(struct fixture *f, const char *name, enum alloc_fault kind, work run,
                      void (*check)(struct fixture *f))
{
    const int want = kind == FAULT_MEMORY ? -ENOMEM : -EAGAIN;
    const long step = kind == FAULT_MEMORY ? DRPS_TEST_ONE_IN : 1;
    struct random_source random = random_begin(name);
    long k = 1 + (long)random_below(&random, (uint64_t)step);
    for (int fired = 1; fired; k += step) {
        struct drps_err err = DRPS_ERR_INIT;
        alloc_fault_arm(kind, k);
        const int rc = run(f, &err);
        fired = alloc_fault_disarm();
        if (!fired && rc) fail_msg("%s: no fault, but %d (%s)", name, rc, err.text);
        if (rc && ((rc != want && alloc_fault_where()) || err.code != rc || !err.text[0]))
            fail_msg("%s: call %ld (%#zx): %d '%s'", name, k, alloc_fault_where(), rc, err.text);
        if (check) check(f);
    }
    print_message("%s: %ld calls\n", name, k - step);
}

/* ---- Training ---- */

static int run_train(struct fixture *f, struct drps_err *err)
{
    struct drps_train_result r;
    f->train.model_path = scratch_path(f->s, "model");
    const int rc = drps_train_run(f->plan, &f->train, &r, err);
    if (rc == 0 && f->content && r.content != f->content)
        fail_msg("call at %#zx: another model", alloc_fault_where());
    if (rc == 0) f->content = r.content;
    drps_train_result_free(&r);
    return rc;
}

static int verify_model(struct fixture *f, struct drps_err *err)
{
    struct drps_modeldir *md;
    int rc = drps_modeldir_open(drps_io_os(), scratch_path(f->s, "model"), 16 << 20, &md, err);
    if (rc == 0) rc = drps_modeldir_verify(md, NULL, err);
    drps_modeldir_close(md);
    return rc;
}

/* A model, or a folder to make it of, or neither; then only the plan is there again. */
static void check_train(struct fixture *f)
{
    struct drps_err err = DRPS_ERR_INIT;
    const char *model = scratch_path(f->s, "model"), *kept = scratch_path(f->s, "model.trained");
    if (path_exists(kept) && !path_exists(model)) {
        const struct drps_publish_options o = {.folder = kept, .model_path = model};
        struct drps_publish_result r;
        if (drps_publish_run(drps_io_os(), &o, &r, &err) < 0) fail_msg("%s", err.text);
    }
    if (path_exists(model) && verify_model(f, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(drps_io_remove_tree(drps_io_os(), model, NULL), 0);
    /* It may be left beside the model, with a warning: there was no memory to remove it. */
    assert_int_equal(drps_io_remove_tree(drps_io_os(), kept, NULL), 0);
    assert_int_equal(folder_entries(f->s->dir), 1);
}

static const char *const stores[] = {"resident", "relay", "file", "rocksdb", "leveldb"};

static int store_there(const char *store)
{
    if (strcmp(store, "resident") == 0 || strcmp(store, "relay") == 0) return 1;
    for (const struct drps_kv_ops *const *kv = drps_kv_engines(); *kv; kv++)
        if (strcmp((*kv)->name, store) == 0) return 1;
    return 0;
}

static void train_without(struct scratch *s, enum alloc_fault kind)
{
    for (size_t i = 0; i < sizeof(stores) / sizeof(*stores); i++) {
        struct fixture f;
        struct drps_train_needs needs;
        struct drps_err err = DRPS_ERR_INIT;
        if (!store_there(stores[i])) continue;
        begin(&f, s);
        f.train.store = stores[i];
        f.train.threads = kind == FAULT_THREAD ? 3 : 1;
        f.train.patience = i == 0; /* two files of parameters */
        assert_int_equal(drps_train_needs(f.plan, &f.train, &needs, NULL), 0);
        f.train.memory_bytes = needs.least_bytes;
        if (run_train(&f, &err) < 0) fail_msg("%s", err.text);
        check_train(&f);
        each_call(&f, stores[i], kind, run_train, check_train);
        end(&f);
        scratch_end(s);
        scratch_begin(s);
    }
}

static void test_train_without_memory(void **state)
{
    train_without(*state, FAULT_MEMORY);
}

static void test_train_without_threads(void **state)
{
    train_without(*state, FAULT_THREAD);
}

/* ---- What is done with a plan and a model ---- */

static int verify_plan(struct fixture *f, struct drps_err *err)
{
    struct drps_plan *plan;
    int rc = drps_plan_open(drps_io_os(), f->m.dir, &plan, err);
    if (rc == 0) rc = drps_plan_verify(plan, NULL, err);
    drps_plan_close(plan);
    return rc;
}

static int predict(struct fixture *f, struct drps_err *err)
{
    struct drps_predict_result r;
    const char *input = f->input;
    const struct drps_predict_options o = {.model = scratch_path(f->s, "model"),
                                           .inputs = &input,
                                           .inputs_n = 1,
                                           .output = scratch_path(f->s, "scores"),
                                           .replace = 1,
                                           .metrics = 1,
                                           .memory_bytes = 64 << 20};
    return drps_predict_run(drps_io_os(), &o, &r, err);
}

static void test_use_without_memory(void **state)
{
    struct fixture f;
    struct drps_err err = DRPS_ERR_INIT;
    begin(&f, *state);
    f.input = strdup(scratch_file(f.s, "input", "1 5:1 8:0.5 11:1\n-1 14:1 17:1\n", SIZE_MAX));
    each_call(&f, "verify the plan", FAULT_MEMORY, verify_plan, NULL);
    if (run_train(&f, &err) < 0) fail_msg("%s", err.text);
    each_call(&f, "verify the model", FAULT_MEMORY, verify_model, NULL);
    each_call(&f, "predict", FAULT_MEMORY, predict, NULL);
    each_call(&f, "predict", FAULT_THREAD, predict, NULL);
    free(f.input);
    end(&f);
}

#define SCRATCH_TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_train_without_memory),
        SCRATCH_TEST(test_train_without_threads),
        SCRATCH_TEST(test_use_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
