/*
 * Runs that go on on a device from what the processor has left. Argument: the library of kernels;
 * without a device that it can open the test is skipped.
 */
#include "support/plan_maker.h"

#include "support/on_device.h"
#include "support/train_runs.h"

enum {
    STEPS = 7000, /* of an epoch: the usual buffers are too small for a window each */
    ENTRIES = 8,
    FEATURES = 8000,
    DEVICE_BYTES = 96 << 10 /* room for the rows of some steps */
};

static const char *library; /* that main() was given; NULL: the one that is installed */

static struct drps_plan *make_plan(struct scratch *s)
{
    struct maker m;
    maker_init(&m, "fm", "logistic", FEATURES, 1);
    m.rank = 4;
    m.small_windows = 1;
    maker_random(&m, STEPS / 2, ENTRIES, 0, 7);
    maker_random(&m, STEPS / 2, ENTRIES, 1, 8);
    struct drps_plan *plan = maker_write(&m, scratch_path(s, "."), "plan");
    maker_free(&m);
    return plan;
}

/* A relay store with as little memory as it takes leaves checkpoints: it has saved itself. */
static void begin(struct train_job *j)
{
    struct drps_err err = DRPS_ERR_INIT;
    scratch_begin(&j->s);
    j->plan = make_plan(&j->s);
    (void)snprintf(j->model, sizeof(j->model), "%s", scratch_path(&j->s, "model"));
    (void)snprintf(j->checkpoints, sizeof(j->checkpoints), "%s",
                   scratch_path(&j->s, "model.checkpoint"));
    j->o = (struct drps_train_options){.model_path = j->model,
                                       .epochs = 1,
                                       .store = "relay",
                                       .memory_bytes = 1,
                                       .log = &quiet,
                                       .checkpoint_every = {DRPS_CHECKPOINT_BATCHES, 7}};
    assert_int_equal(drps_train_run(j->plan, &j->o, &j->want, &err), DRPS_E_MEMORY_BUDGET);
    j->o.memory_bytes = j->want.memory.used_bytes;
    job_leave_checkpoints(j, &j->o);
}

/* Stops a run when it has copied the rows, and cuts windows of its own. */
struct watch {
    int copies;
    int cuts; /* since then: of the windows in which the rows lie, and the run's */
    atomic_int stop;
};

static void watch_log(void *ctx, enum drps_log_level level, const char *text)
{
    struct watch *w = ctx;
    (void)level;
    w->copies += strstr(text, "copying the rows out of") != NULL;
    w->cuts += w->copies && strstr(text, "cutting windows");
    if (w->cuts == 2) atomic_store(&w->stop, 1);
}

/* The windows in which the rows were saved are those of the processor's run, however few rows the
 * device has room for. */
static void test_windows_of_a_saved_store_are_cut_without_a_device(void **state)
{
    struct train_job j = {.plan = NULL};
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    struct watch watch = {.copies = 0};
    const struct drps_log log = {DRPS_LOG_INFO, watch_log, &watch};
    (void)state;
    begin(&j);
    j.o.resume = 1;
    j.o.store = "auto";
    j.o.memory_bytes = 0;
    j.o.device = DRPS_TRAIN_CUDA;
    j.o.device_library = library;
    j.o.device_memory_bytes = DEVICE_BYTES;
    j.o.log = &log;
    j.o.stop = &watch.stop;
    const int rc = drps_train_run(j.plan, &j.o, &r, &err);
    if (rc != DRPS_E_INTERRUPTED || watch.copies != 1 || watch.cuts != 2)
        fail_msg("%d, copied %d times, cut %d times: %s", rc, watch.copies, watch.cuts, err.text);
    drps_train_result_free(&r);
    drps_train_result_free(&j.want);
    drps_plan_close(j.plan);
    scratch_end(&j.s);
}

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_of_a_saved_store_are_cut_without_a_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    struct drps_device_use use;
    library = argc > 1 ? argv[1] : NULL;
    return run_on_device(argc, argv, &use, all_tests);
}
