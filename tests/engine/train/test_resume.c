/* Checkpoints and resume: a run of one worker that ends at any instant, and goes on from its
 * checkpoint, ends with the model of a run that was not disturbed, bit for bit. */
#include "support/plan_maker.h"

#include <errno.h>

#include "storage/kv/drps_kv.h"
#include "support/fault_io.h"
#include "support/train_runs.h"

enum {
    LAST_CHANGES = 60, /* of files, with which the model is made and all else removed */
};

/* ---- Any instant ---- */

/* Breaks off at each step-th change of a file, and ends the job. */
static void check_every_instant(struct train_job *j, long step)
{
    long resumed = 0, k = 1;
    for (job_clear(j); !train_until(j->plan, &j->o, k); job_clear(j)) {
        resumed += job_resume(j, j->o, j->o.store, k) > 0;
        k += step;
    }
    assert_true(k > 100);
    assert_true(resumed > 0);
    job_end(j);
}

static void test_resume_resident(void **state)
{
    (void)state;
    check_every_instant(job_begin("lor", 0, "resident"), DRPS_TEST_ONE_IN > 1 ? 41 : 11);
}

static void test_resume_with_patience(void **state)
{
    struct train_job *j = job_begin("fm", 4, "resident");
    (void)state;
    j->o.patience = 1;
    j->o.lr = 1.0f; /* overfits soon */
    job_want(j, &j->o);
    check_every_instant(j, DRPS_TEST_ONE_IN > 1 ? 43 : 19);
}

static struct train_job *begin_lbfgs(const char *store)
{
    struct train_job *j = job_begin("lor", 0, store);
    j->o.optimizer = "lbfgs";
    j->o.pairs = 3;
    j->o.l2 = 0.5f;
    j->o.epochs = 6;
    j->o.memory_bytes = strcmp(store, "relay") == 0 ? 40 << 20 : 0;
    job_want(j, &j->o);
    return j;
}

/* Also within a pass: rows are as the pass has left them, and its loss so far counts. */
static void test_resume_lbfgs(void **state)
{
    (void)state;
    check_every_instant(begin_lbfgs("resident"), DRPS_TEST_ONE_IN > 1 ? 83 : 37);
    check_every_instant(begin_lbfgs("relay"), DRPS_TEST_ONE_IN > 1 ? 83 : 37);
}

/* The sums over documents lie beside the rows; the model does not depend on threads. */
static void test_resume_topics(void **state)
{
    struct train_job *j = job_begin("topic", 3, "resident");
    (void)state;
    j->o.threads = 3; /* j->want had one */
    check_every_instant(j, DRPS_TEST_ONE_IN > 1 ? 83 : 37);
    check_every_instant(job_begin("topic", 3, "relay"), DRPS_TEST_ONE_IN > 1 ? 83 : 37);
}

static void test_topics_and_other_models_differ(void **state)
{
    struct train_job *j = job_begin("lor", 0, "resident");
    (void)state;
    j->o.optimizer = "alternating";
    train_refused(j->plan, &j->o, DRPS_E_CONFIG, "is for topics");
    job_end(j);
}

static void test_resume_relay(void **state)
{
    (void)state;
    check_every_instant(job_begin("fm", 4, "relay"), DRPS_TEST_ONE_IN > 1 ? 43 : 19);
    check_every_instant(job_begin("lmf", 3, "relay"), DRPS_TEST_ONE_IN > 1 ? 43 : 19);
}

static void test_resume_blocks(void **state)
{
    (void)state;
    for (const struct drps_kv_ops *const *kv = drps_kv_engines(); *kv; kv++)
        check_every_instant(job_begin("fm", 4, (*kv)->name), DRPS_TEST_ONE_IN > 1 ? 83 : 37);
}

/* Goes on from a checkpoint of rows, long enough for some in which the store saves itself: until
 * the end, rows that it has not changed are read from the first one. */
static void check_long_run(const char *store)
{
    struct train_job *j = job_begin("fm", 4, store);
    j->o.epochs = 9;
    job_want(j, &j->o);
    struct drps_train_options rows = j->o;
    rows.checkpoint_rows = 1;
    job_leave_checkpoints(j, &rows);
    assert_true(job_resume(j, j->o, store, 0) > 0);
    job_end(j);
}

static void test_resume_long_runs(void **state)
{
    (void)state;
    check_long_run("relay");
    for (const struct drps_kv_ops *const *kv = drps_kv_engines(); *kv; kv++)
        check_long_run((*kv)->name);
}

/* ---- The end ---- */

/* Every instant from the making of the model on: what was kept for the case that it fails is not
 * needed when it was made by another run. */
static void test_resume_at_the_end(void **state)
{
    struct train_job *j = job_begin("lor", 0, "resident");
    (void)state;
    job_clear(j);
    const long all = train_changes(j->plan, &j->o);
    for (long k = all - LAST_CHANGES; k <= all; k++) {
        job_clear(j);
        assert_false(train_until(j->plan, &j->o, k));
        (void)job_resume(j, j->o, "at the end", k);
    }
    job_end(j);
}

/* What an earlier run has kept is another one's, and stays. */
static void test_resume_leaves_what_others_kept(void **state)
{
    struct train_job *j = job_begin("lor", 0, "resident");
    struct drps_train_result r;
    struct drps_train_options o = j->o;
    (void)state;
    o.epochs = 1;
    job_clear(j);
    const long all = train_changes(j->plan, &o);
    for (long k = all - LAST_CHANGES; !path_exists(scratch_path(&j->s, "model.trained")); k++) {
        assert_true(k < all); /* it fails to make the model */
        job_clear(j);
        (void)train_until(j->plan, &o, k);
    }
    o.epochs = JOB_EPOCHS;
    o.resume = 1;
    train_well(j->plan, &o, &r, "resumed");
    train_check_same(&r, &j->want, "others kept", 0);
    drps_train_result_free(&r);
    assert_true(path_exists(scratch_path(&j->s, "model.trained/trained.json")));
    assert_true(path_exists(scratch_path(&j->s, "model.trained/params.bin")));
    job_end(j);
}

/* A run that was out of patience is so when its end is done once more. */
static void test_resume_out_of_patience(void **state)
{
    struct train_job *j = job_begin("fm", 4, "resident");
    struct drps_train_options o = j->o;
    (void)state;
    o.epochs = 40;
    o.patience = 2;
    o.lr = 1.0f; /* overfits soon */
    o.keep_checkpoints = 1;
    job_want(j, &o);
    assert_true(j->want.stopped_early);
    train_remove(j->model);
    o.keep_checkpoints = 0;
    assert_int_equal(job_resume(j, o, "out of patience", 0), j->want.epochs_n + 1);
    job_end(j);
}

/* ---- No room ---- */

/* A checkpoint that cannot be written is told of; training goes on, and the model is right. */
static void test_no_room_is_a_warning(void **state)
{
    struct train_job *j = job_begin("fm", 4, "resident");
    uint64_t failed = 0;
    (void)state;
    for (long k = 1, fired = 1; k < 4000 && fired; k += 13) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_train_result r;
        struct drps_plan plan = *j->plan;
        struct fault_io *f = fault_io_new(drps_io_os());
        job_clear(j);
        plan.io = &f->io;
        fault_io_arm(f, FAULT_PWRITE | FAULT_FALLOCATE | FAULT_MKDIR | FAULT_FSYNC | FAULT_RENAME,
                     k, 0, FAULT_ERROR, -ENOSPC);
        const int rc = drps_train_run(&plan, &j->o, &r, &err);
        fired = atomic_load(&f->fired);
        failed += r.checkpoints.failed;
        if (rc == 0) train_check_same(&r, &j->want, "no room", k);
        drps_train_result_free(&r);
        fault_io_free(f);
    }
    assert_true(failed > 0);
    job_end(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume_resident),
        cmocka_unit_test(test_resume_with_patience),
        cmocka_unit_test(test_resume_lbfgs),
        cmocka_unit_test(test_resume_topics),
        cmocka_unit_test(test_topics_and_other_models_differ),
        cmocka_unit_test(test_resume_relay),
        cmocka_unit_test(test_resume_blocks),
        cmocka_unit_test(test_resume_long_runs),
        cmocka_unit_test(test_resume_at_the_end),
        cmocka_unit_test(test_resume_leaves_what_others_kept),
        cmocka_unit_test(test_resume_out_of_patience),
        cmocka_unit_test(test_no_room_is_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
