/* Other ranks begin with the rows of several: they need the checkpoints of all, and the names of
 * the whole plan. */
#include "support/plan_maker.h"

#include "engine/warm/drps_warm.h"
#include "support/train_runs.h"
#include "support/world.h"

static void deal(struct world *w, uint32_t workers, const char *name)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_index_result *r = malloc(sizeof(*r));
    char out[SCRATCH_PATH_BYTES];
    (void)snprintf(out, sizeof(out), "%s", scratch_path(&w->scratch, name));
    const struct drps_index_options o = {.from_plan = w->plan,
                                         .workers = workers,
                                         .memory_bytes = 64 << 20,
                                         .out = out,
                                         .log = &quiet};
    if (drps_index_run(drps_io_os(), &o, r, &err) < 0) fail_msg("%s", err.text);
    free(r);
}

/* Train a plan for so many workers in this process. */
static int run_ranks(const char *plan, uint32_t workers, const struct drps_train_options *o,
                     struct drps_train_result *r, struct drps_err *err)
{
    struct drps_plan *one;
    const struct drps_ranks_options ranks = {
        .plan = plan, .train = o, .transport = DRPS_RANKS_INPROC, .wait_ms = 60000};
    if (workers > 1) return drps_ranks_run_local(&ranks, workers, r, err);
    if (drps_plan_open(drps_io_os(), plan, &one, err) < 0) fail_msg("%s: %s", plan, err->text);
    const int rc = drps_train_run(one, o, r, err);
    drps_plan_close(one);
    return rc;
}

/* Three ranks stop, and others go on with their rows: at the end of an epoch, or within one. */
static void check_other_ranks(long batches, uint32_t workers)
{
    struct world *w = world_begin("fm", CASE_LIBSVM, 20, 60, 3);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result whole, r;
    struct stopper stopper = {.left = batches};
    char plan[SCRATCH_PATH_BYTES], checkpoints[SCRATCH_PATH_BYTES + 16];
    struct drps_train_options o = world_options(w);
    o.log = &quiet;
    o.epochs = 5;
    o.checkpoint_every.unit = DRPS_CHECKPOINT_NEVER;
    world_train(w, &o, &whole);
    train_remove(w->model);

    o.replace = 0;
    o.checkpoint_every = (struct drps_checkpoint_every){DRPS_CHECKPOINT_BATCHES, 5};
    stop_by(&o, &stopper);
    assert_int_equal(world_run(w, &o, &r, &err), DRPS_E_INTERRUPTED);
    const size_t done = r.epochs_n;
    drps_train_result_free(&r);
    (void)snprintf(checkpoints, sizeof(checkpoints), "%s.checkpoint", w->model);
    assert_true(path_exists(scratch_path(&w->scratch, "model.checkpoint/rank-2")));

    deal(w, workers, "other");
    (void)snprintf(plan, sizeof(plan), "%s", scratch_path(&w->scratch, "other"));
    stop_by_nobody(&o);
    o.replace = 1; /* what the interrupted run has left as a model */
    o.from = checkpoints;
    o.epochs = 4 - done;
    o.resume = workers == 5; /* there is nothing of this plan to go on from */
    if (workers == 1) o.checkpoint_every.unit = DRPS_CHECKPOINT_NEVER;
    drps_err_clear(&err);
    if (workers == 2) { /* these stop, too, and the same command goes on from where they were */
        struct stopper again = {.left = 20};
        stop_by(&o, &again);
        assert_int_equal(run_ranks(plan, workers, &o, &r, &err), DRPS_E_INTERRUPTED);
        drps_train_result_free(&r);
        drps_err_clear(&err);
        stop_by_nobody(&o);
        o.resume = 1;
    }
    if (run_ranks(plan, workers, &o, &r, &err) < 0) fail_msg("other ranks: %s", err.text);
    assert_int_equal(r.resumed_epoch > 0, workers == 2);
    if (workers != 2) assert_true(r.from.rows == r.from.all && r.from.all > 100 && r.from.state);
    /* Rounds have other batches, so losses are close, not equal. An epoch that was broken off
     * begins anew with what it had learnt: so its loss lies between that of it and of the next one.
     */
    const double near = 0.1 * (whole.epochs[0].train_loss - whole.epochs[4].train_loss);
    for (size_t e = 0; e < r.epochs_n; e++) {
        const double got = r.epochs[e].train_loss;
        const double above = whole.epochs[done + e].train_loss;
        const double below = whole.epochs[done + e + 1].train_loss;
        if (got > above + near || got < below - near)
            fail_msg("%u ranks after %ld batches, epoch %zu: loss %.4f, undisturbed %.4f and %.4f",
                     workers, batches, done + e + 1, got, above, below);
    }
    assert_false(path_exists(checkpoints)); /* of ranks that are no more, too */
    drps_train_result_free(&r);
    drps_train_result_free(&whole);
    world_end(w);
}

static void test_other_ranks_go_on(void **state)
{
    static const uint32_t workers[] = {2, 1, 5, 3};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        check_other_ranks(10, workers[i]);
        check_other_ranks(30, workers[i]);
    }
}

/* A folder that lacks a rank's checkpoints is refused by all. */
static void test_all_ranks_are_needed(void **state)
{
    struct world *w = world_begin("fm", CASE_LIBSVM, 20, 60, 3);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    char checkpoints[SCRATCH_PATH_BYTES + 16];
    struct drps_train_options o = world_options(w);
    (void)state;
    o.log = &quiet;
    o.keep_checkpoints = 1;
    world_train(w, &o, &r);
    drps_train_result_free(&r);
    (void)snprintf(checkpoints, sizeof(checkpoints), "%s", scratch_path(&w->scratch, "kept"));
    assert_int_equal(rename(scratch_path(&w->scratch, "model.checkpoint"), checkpoints), 0);
    assert_int_equal(
        drps_io_remove_tree(drps_io_os(), scratch_path(&w->scratch, "kept/rank-1"), NULL), 0);
    o.from = checkpoints;
    assert_true(world_run(w, &o, &r, &err) < 0); /* rank 0 may hear it of another one */
    assert_non_null(strstr(err.text, "no rank-1: bring those of all ranks together"));
    drps_train_result_free(&r);
    world_end(w);
}

/* Ranks above 0 need the names of the whole plan. */
static void test_ranks_need_names(void **state)
{
    struct world *w = world_begin("fm", CASE_LIBSVM, 20, 60, 3);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    struct drps_plan *part;
    char alone[SCRATCH_PATH_BYTES];
    struct drps_warm *warm;
    struct drps_train_options o = world_options(w);
    (void)state;
    o.log = &quiet;
    world_train(w, &o, &r);
    drps_train_result_free(&r);
    (void)snprintf(alone, sizeof(alone), "%s", scratch_path(&w->scratch, "alone"));
    assert_int_equal(mkdir(alone, 0777), 0);
    assert_int_equal(rename(scratch_path(&w->scratch, "several/rank-1"),
                            scratch_path(&w->scratch, "alone/rank-1")),
                     0);
    if (drps_plan_open_rank(drps_io_os(), alone, 1, &part, &err) < 0) fail_msg("%s", err.text);
    const struct drps_warm_options wo = {.io = drps_io_os(), .from = w->model, .part = part};
    assert_int_equal(drps_warm_open(&wo, &warm, &err), DRPS_E_NOT_FOUND);
    assert_non_null(strstr(err.text, "this rank needs plan.json and names.rec"));
    assert_non_null(strstr(err.text, alone));
    drps_plan_close(part);
    world_end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_ranks_go_on),
        cmocka_unit_test(test_all_ranks_are_needed),
        cmocka_unit_test(test_ranks_need_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
