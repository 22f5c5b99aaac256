/* Resume with other options than those of the run that was broken off; what it goes on from, what
 * it takes for a result, and what it refuses. */
#include "support/plan_maker.h"

#include <errno.h>
#include <math.h>

#include "support/train_runs.h"

/* ---- Other options ---- */

/* The store, its memory and the threads may be others. */
static void test_resume_with_another_store(void **state)
{
    static const char *const stores[] = {"resident", "relay", "file"};
    struct train_job *j = job_begin("fm", 4, "resident");
    (void)state;
    for (size_t a = 0; a < 3; a++)
        for (size_t b = 0; b < 3; b++) {
            struct drps_train_options o = j->o;
            o.store = stores[a];
            job_leave_checkpoints(j, &o);
            o.store = stores[b];
            o.memory_bytes = 128 << 20;
            o.no_keep = a == b;
            assert_true(job_resume(j, o, stores[b], (long)a) > 0);
        }
    job_end(j);
}

static void note_copies(void *ctx, enum drps_log_level level, const char *text)
{
    (void)level;
    *(int *)ctx += strstr(text, "copying the rows out of") != NULL;
}

/* A store that had much memory has saved itself; less does, for any store. */
static void test_resume_with_less_memory(void **state)
{
    static const char *const stores[] = {"relay", "resident", "file"};
    struct train_job *j = job_begin("fm", 4, "relay");
    const uint64_t least = j->o.memory_bytes;
    const uint64_t had[] = {least + least / 64, 256 << 20};
    (void)state;
    for (size_t m = 0; m < 2; m++)
        for (size_t s = 0; s < 3; s++) {
            struct drps_train_options o = j->o;
            int copies = 0;
            const struct drps_log log = {DRPS_LOG_INFO, note_copies, &copies};
            o.memory_bytes = had[m];
            job_leave_checkpoints(j, &o);
            o.store = stores[s];
            o.memory_bytes = s ? 40 << 20 : least;
            o.log = &log;
            assert_true(job_resume(j, o, stores[s], (long)m) > 0);
            if (copies != 1) fail_msg("%s: rows were copied out %d times", stores[s], copies);
        }
    job_end(j);
}

/* What is not given is as it was: rate, optimizer, epochs. Another optimizer has other rows. */
static void test_resume_takes_options(void **state)
{
    struct train_job *j = job_begin("lor", 0, "resident");
    struct drps_train_options o = j->o;
    (void)state;
    o.optimizer = "ftrl";
    o.lr = 0.03f;
    o.l1 = 0.001f;
    o.checkpoint_every.unit = DRPS_CHECKPOINT_NEVER;
    job_want(j, &o);
    o.checkpoint_every.unit = DRPS_CHECKPOINT_BATCHES;
    job_leave_checkpoints(j, &o);
    struct drps_train_options bare = {.model_path = j->model, .store = "resident"};
    assert_true(job_resume(j, bare, "bare", 0) > 0);

    job_leave_checkpoints(j, &o);
    bare.resume = 1;
    bare.optimizer = "adagrad";
    train_refused(j->plan, &bare, DRPS_E_CONFIG, "ftrl");
    assert_true(path_exists(j->checkpoints));
    job_end(j);
}

static void test_resume_takes_options_of_adam(void **state)
{
    struct train_job *j = job_begin("lor", 0, "resident");
    struct drps_train_options o = j->o;
    (void)state;
    o.optimizer = "adam";
    o.lr = 0.03f;
    o.eps = 1e-3f;
    o.beta1 = 0.7f;
    o.beta2 = 0.9f;
    o.checkpoint_every.unit = DRPS_CHECKPOINT_NEVER;
    job_want(j, &o);
    o.checkpoint_every.unit = DRPS_CHECKPOINT_BATCHES;
    job_leave_checkpoints(j, &o);
    struct drps_train_options bare = {.model_path = j->model, .store = "resident"};
    assert_true(job_resume(j, bare, "bare", 0) > 0);

    job_leave_checkpoints(j, &o);
    bare.resume = 1;
    bare.optimizer = "ftrl";
    train_refused(j->plan, &bare, DRPS_E_CONFIG, "another optimizer");
    assert_true(path_exists(j->checkpoints));
    job_end(j);
}

static void test_betas_are_adams(void **state)
{
    static const struct {
        const char *optimizer, *says;
        float beta1, beta2;
    } cases[] = {{"adagrad", "beta1 is of the optimizer adam: leave it out", 0.9f, 0},
                 {"lbfgs", "beta2 is of the optimizer adam: leave it out", 0, 0.9f},
                 {"adam", "beta1 is 1: give a number above 0, at most 0.999999", 1, 0},
                 {"adam", "beta2 is -0.5: give a number above 0", 0, -0.5f},
                 {"adam", "beta2 is nan: give a number above 0", 0, NAN}};
    struct train_job *j = job_begin("lor", 0, "resident");
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_train_options o = j->o;
        o.optimizer = cases[i].optimizer;
        o.beta1 = cases[i].beta1;
        o.beta2 = cases[i].beta2;
        train_refused(j->plan, &o, DRPS_E_CONFIG, cases[i].says);
    }
    job_end(j);
}

/* A quasi-Newton method takes up its own options, too, and its gradients are those of its l2. */
static void test_resume_takes_options_of_lbfgs(void **state)
{
    struct train_job *j = job_begin("lor", 0, "resident");
    struct drps_train_options o = j->o;
    (void)state;
    o.optimizer = "lbfgs";
    o.pairs = 4;
    o.tolerance = 0.03f;
    o.l2 = 0.25f;
    o.epochs = 40;
    job_want(j, &o);
    assert_int_equal(j->want.newton_end, DRPS_NEWTON_CONVERGED);
    assert_true(j->want.epochs_n > 3 && j->want.epochs_n < 40);
    job_leave_checkpoints(j, &o);
    struct drps_train_options bare = {.model_path = j->model, .store = "resident"};
    assert_true(job_resume(j, bare, "bare", 0) > 0);

    static const struct {
        const char *says;
        uint32_t pairs;
        float l2;
    } cases[] = {{"another optimizer", 5, 0}, {"l2 0.25", 0, 0.5f}};
    job_leave_checkpoints(j, &o);
    for (size_t i = 0; i < 2; i++) {
        bare = (struct drps_train_options){.model_path = j->model,
                                           .resume = 1,
                                           .log = &quiet,
                                           .pairs = cases[i].pairs,
                                           .l2 = cases[i].l2};
        train_refused(j->plan, &bare, DRPS_E_CONFIG, cases[i].says);
    }
    job_end(j);
}

/* A run that has converged has nothing left to do, whatever epochs it is given. */
static void test_resume_converged(void **state)
{
    struct train_job *j = job_begin("lor", 0, "resident");
    struct drps_train_options o = j->o;
    struct drps_train_result r;
    (void)state;
    o.optimizer = "lbfgs";
    o.tolerance = 0.05f;
    o.l2 = 0.25f;
    o.epochs = 40;
    o.keep_checkpoints = 1;
    job_want(j, &o);
    train_remove(j->model);
    o.resume = 1;
    o.epochs = 60;
    train_well(j->plan, &o, &r, "converged");
    train_check_same(&r, &j->want, "converged", 0);
    assert_int_equal(r.newton_end, DRPS_NEWTON_CONVERGED);
    drps_train_result_free(&r);
    job_end(j);
}

/* Train to the end of `epochs`, and leave the checkpoints without the model. */
static void keep_checkpoints(struct train_job *j, struct drps_train_options o, uint64_t epochs)
{
    struct drps_train_result r;
    job_clear(j);
    o.epochs = epochs;
    o.keep_checkpoints = 1;
    train_well(j->plan, &o, &r, "checkpoints are kept");
    assert_true(r.first_step_seconds > 0 && r.first_step_seconds < r.seconds);
    drps_train_result_free(&r);
    assert_true(path_exists(j->checkpoints));
    train_remove(j->model);
}

/* Checkpoints that are kept let more epochs follow, as if they had been asked for at once. */
static void test_resume_more_epochs(void **state)
{
    struct train_job *j = job_begin("fm", 4, "relay");
    struct drps_train_options o = j->o;
    (void)state;
    o.checkpoint_every = (struct drps_checkpoint_every){0};
    keep_checkpoints(j, o, 1);
    assert_int_equal(job_resume(j, o, "more", 0), 2);
    job_end(j);
}

static void note_others(void *ctx, enum drps_log_level level, const char *text)
{
    if (!strstr(text, "other options than the run began with")) return;
    assert_int_equal(level, DRPS_LOG_WARN);
    snprintf(ctx, 512, "%s", text);
}

/* Checkpoints of one epoch with these options. */
static void keep_first_epoch(struct train_job *j, struct drps_train_options o)
{
    o.model_path = j->model;
    o.replace = 1;
    o.log = &quiet;
    keep_checkpoints(j, o, 1);
}

/* One more epoch with these options; what it says of them must be `says`, and at the end of what
 * the result says; NULL: nothing. */
static void go_on(struct train_job *j, struct drps_train_options o, uint64_t epochs,
                  const char *says)
{
    struct drps_train_result r;
    char told[512] = "";
    const struct drps_log log = {DRPS_LOG_INFO, note_others, told};
    o.model_path = j->model;
    o.resume = o.replace = o.keep_checkpoints = 1;
    o.epochs = epochs;
    o.log = &log;
    train_well(j->plan, &o, &r, says ? says : "as before");
    if (says) {
        assert_non_null(strstr(told, says));
        assert_true(strlen(r.changed) >= strlen(says));
        assert_string_equal(r.changed + strlen(r.changed) - strlen(says), says);
    } else {
        assert_string_equal(told, "");
    }
    if (epochs > 4) /* of the run before */
        assert_memory_equal(r.changed, "from epoch 4, batch 1 on: lr=0.25 (before 0.125)", 48);
    drps_train_result_free(&r);
}

/* What is given and is another than before counts, is told, and stays written down. */
static void test_resume_says_other_options(void **state)
{
    struct train_job *j = job_begin("lor", 0, "resident");
    (void)state;
    keep_first_epoch(j, (struct drps_train_options){.lr = 0.125f, .l1 = 0.5f});
    go_on(j, (struct drps_train_options){0}, 2, NULL);
    go_on(j, (struct drps_train_options){.lr = 0.125f, .l1 = 0.5f}, 3, NULL);
    go_on(j, (struct drps_train_options){.lr = 0.25f}, 4,
          "from epoch 4, batch 1 on: lr=0.25 (before 0.125)");
    go_on(j, (struct drps_train_options){0}, 5, NULL);
    go_on(j,
          (struct drps_train_options){
              .asked = DRPS_ASKED_L1, .lr_decay = DRPS_DECAY_SQRT, .batch_mean = 1},
          6,
          "from epoch 6, batch 1 on: l1=0 (before 0.5), batch_mean=on (before default), "
          "lr_decay=sqrt (before default)");
    job_end(j);
}

/* Rows that no step has used yet have begun with what the first run was given. */
static void test_resume_refuses_other_fresh_rows(void **state)
{
    struct train_job *j = job_begin("fm", 4, "resident");
    (void)state;
    keep_first_epoch(j, (struct drps_train_options){.seed = 3, .init_scale = 0.25f});
    struct drps_train_options other = {
        .model_path = j->model, .resume = 1, .log = &quiet, .seed = 1, .asked = DRPS_ASKED_SEED};
    train_refused(j->plan, &other, DRPS_E_CONFIG, "with seed 3");
    other.asked = 0;
    other.init_scale = 0.5f;
    train_refused(j->plan, &other, DRPS_E_CONFIG, "within 0.25");
    go_on(j, (struct drps_train_options){.seed = 3, .asked = DRPS_ASKED_SEED, .init_scale = 0.25f},
          2, NULL);
    job_end(j);
}

/* With nothing left to do the model is written once more; there is no way back. */
static void test_resume_no_more_epochs(void **state)
{
    struct train_job *j = job_begin("fm", 4, "relay");
    struct drps_train_options o = j->o;
    (void)state;
    keep_checkpoints(j, o, JOB_EPOCHS);
    o.resume = 1;
    o.epochs = JOB_EPOCHS - 1;
    train_refused(j->plan, &o, DRPS_E_CONFIG, "no way back");
    o.epochs = JOB_EPOCHS;
    assert_int_equal(job_resume(j, o, "none left", 0), JOB_EPOCHS + 1);
    job_end(j);
}

/* ---- What is no result ---- */

/* A model is there, but the run that was to write another one was killed before its first
 * checkpoint: it is not the result. */
static void test_resume_takes_no_older_model(void **state)
{
    struct train_job *j = job_begin("lor", 0, "resident");
    struct drps_train_options o = j->o;
    (void)state;
    assert_int_equal(mkdir(scratch_path(&j->s, "model.partial"), 0777), 0);
    o.resume = 1;
    o.replace = 0;
    train_refused(j->plan, &o, -EEXIST, "");
    assert_false(path_exists(scratch_path(&j->s, "model.partial")));
    job_end(j);
}

static void stop_soon(void *ctx, const struct drps_epoch *epoch)
{
    (void)epoch;
    atomic_store((atomic_int *)ctx, 1);
}

/* A model is there, but it is what a stopped run had so far. */
static void test_resume_takes_no_unfinished_model(void **state)
{
    struct train_job *j = job_begin("lor", 0, "resident");
    struct drps_train_result r;
    struct drps_train_options o = j->o;
    atomic_int stop = 0;
    (void)state;
    o.stop = &stop;
    o.on_epoch = stop_soon;
    o.ctx = &stop;
    o.checkpoint_every.unit = DRPS_CHECKPOINT_NEVER;
    train_refused(j->plan, &o, DRPS_E_INTERRUPTED, "");
    o.stop = NULL;
    o.on_epoch = NULL;
    o.resume = 1;
    o.replace = 0;
    train_refused(j->plan, &o, -EEXIST, "");
    o.replace = 1;
    train_well(j->plan, &o, &r, "anew");
    assert_false(r.already);
    train_check_same(&r, &j->want, "anew", 0);
    drps_train_result_free(&r);
    job_end(j);
}

/* ---- Refusals ---- */

/* A run that starts anew replaces a checkpoint when it may, and has something better. */
static void test_a_checkpoint_is_not_lost(void **state)
{
    struct train_job *j = job_begin("lor", 0, "resident");
    struct drps_train_result r;
    struct drps_train_options o = j->o;
    (void)state;
    job_leave_checkpoints(j, &o);
    o.replace = 0;
    train_refused(j->plan, &o, DRPS_E_CONFIG, "resume");
    assert_true(path_exists(j->checkpoints));
    o.replace = 1;
    train_well(j->plan, &o, &r, "anew");
    assert_int_equal(r.resumed_epoch, 0);
    train_check_same(&r, &j->want, "anew", 0);
    drps_train_result_free(&r);
    assert_false(path_exists(j->checkpoints));
    job_end(j);
}

static void test_resume_refuses_another_plan(void **state)
{
    struct train_job *j = job_begin("lor", 0, "resident");
    struct drps_train_options o = j->o;
    struct drps_plan other = *j->plan;
    (void)state;
    job_leave_checkpoints(j, &o);
    o.resume = 1;
    other.info.id[0] ^= 1;
    train_refused(&other, &o, DRPS_E_CONFIG, "train the plan that it is of");
    assert_true(path_exists(j->checkpoints));
    job_end(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume_with_another_store),
        cmocka_unit_test(test_resume_with_less_memory),
        cmocka_unit_test(test_resume_takes_options),
        cmocka_unit_test(test_resume_takes_options_of_adam),
        cmocka_unit_test(test_betas_are_adams),
        cmocka_unit_test(test_resume_takes_options_of_lbfgs),
        cmocka_unit_test(test_resume_converged),
        cmocka_unit_test(test_resume_more_epochs),
        cmocka_unit_test(test_resume_says_other_options),
        cmocka_unit_test(test_resume_refuses_other_fresh_rows),
        cmocka_unit_test(test_resume_no_more_epochs),
        cmocka_unit_test(test_resume_takes_no_older_model),
        cmocka_unit_test(test_resume_takes_no_unfinished_model),
        cmocka_unit_test(test_a_checkpoint_is_not_lost),
        cmocka_unit_test(test_resume_refuses_another_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
