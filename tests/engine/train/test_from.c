/* Runs that begin with the rows of an earlier one: a checkpoint between two epochs gives what
 * resuming would, and nothing that happens on the way costs more than the run. */
#include "support/plan_maker.h"

#include <errno.h>
#include <math.h>

#include "engine/checkpoint/drps_checkpoint.h"
#include "engine/drps_engine.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/warm/drps_warm.h"
#include "support/fault_io.h"
#include "support/world.h"

enum {
    CHANGES = FAULT_PWRITE | FAULT_FSYNC | FAULT_FTRUNCATE | FAULT_FALLOCATE | FAULT_RENAME |
              FAULT_UNLINK | FAULT_MKDIR | FAULT_RMDIR | FAULT_EXCHANGE | FAULT_LINK,
};

static void say_nothing(void *ctx, enum drps_log_level level, const char *text)
{
    (void)ctx;
    (void)level;
    (void)text;
}

static const struct drps_log quiet = {DRPS_LOG_ERROR, say_nothing, NULL};

struct job {
    char *dir; /* own */
    struct drps_plan *plan;
    char *one, *two, *checkpoints; /* own: models of one epoch and of two, checkpoints of one */
    struct drps_train_result want; /* of two epochs */
};

static int exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static void fail_run(const char *what, const struct drps_err *err)
{
    fail_msg("%s: %s", what, err->text);
}

static struct drps_train_options options(const char *model)
{
    return (struct drps_train_options){.model_path = model,
                                       .epochs = 1,
                                       .seed = 5,
                                       .store = "resident",
                                       .log = &quiet,
                                       .checkpoint_every = {DRPS_CHECKPOINT_NEVER, 0}};
}

/* One epoch, whose checkpoints are kept, and two. */
static struct job *begin(const char *algo, uint32_t factors)
{
    struct job *j = calloc(1, sizeof(*j));
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    struct maker m;
    j->dir = temp_make();
    maker_init(&m, algo, strcmp(algo, "lmf") == 0 ? "squared" : "logistic", 400, 20);
    m.rank = factors;
    m.small_windows = 1;
    maker_random(&m, 500, strcmp(algo, "lmf") == 0 ? 2 : 4, 0, 7);
    maker_random(&m, 90, strcmp(algo, "lmf") == 0 ? 2 : 4, 1, 8);
    j->plan = maker_write(&m, j->dir, "plan");
    maker_free(&m);
    j->one = drps_path_join(j->dir, "one");
    j->two = drps_path_join(j->dir, "two");
    j->checkpoints = drps_path_join(j->dir, "one.checkpoint");
    struct drps_train_options o = options(j->two);
    o.epochs = 2;
    if (drps_train_run(j->plan, &o, &j->want, &err) < 0) fail_run("two epochs", &err);
    o = options(j->one);
    o.keep_checkpoints = 1;
    o.checkpoint_every.unit = DRPS_CHECKPOINT_USUAL;
    if (drps_train_run(j->plan, &o, &r, &err) < 0) fail_run("one epoch", &err);
    drps_train_result_free(&r);
    return j;
}

static void end(struct job *j)
{
    drps_train_result_free(&j->want);
    drps_plan_close(j->plan);
    temp_remove(j->dir);
    free(j->one);
    free(j->two);
    free(j->checkpoints);
    free(j);
}

/* It is the second of two epochs. */
static void check_second(const struct job *j, const struct drps_train_result *r, const char *what)
{
    if (r->content != j->want.content || r->epochs_n != 1)
        fail_msg("%s: content %016llx after %zu epochs, %016llx expected", what,
                 (unsigned long long)r->content, r->epochs_n, (unsigned long long)j->want.content);
    assert_memory_equal(&r->epochs[0].train_loss, &j->want.epochs[1].train_loss, sizeof(double));
    assert_memory_equal(&r->epochs[0].test.loss, &j->want.epochs[1].test.loss, sizeof(double));
    assert_true(r->from.all == j->plan->info.rows && r->from.rows == r->from.all && r->from.state);
}

/* ---- The same plan ---- */

static void test_a_checkpoint_between_epochs_is_gone_on_from(void **state)
{
    static const struct {
        const char *algo;
        uint32_t factors;
    } kinds[] = {{"lor", 0}, {"fm", 4}, {"lmf", 3}};
    static const char *const stores[] = {"resident", "relay", "file", "rocksdb"};
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        struct job *j = begin(kinds[k].algo, kinds[k].factors);
        for (size_t s = 0; s < 4; s++) {
            struct drps_err err = DRPS_ERR_INIT;
            struct drps_train_result r;
            struct drps_train_options o = options(j->two);
            o.store = stores[s];
            o.replace = 1;
            o.from = j->checkpoints;
            if (drps_train_run(j->plan, &o, &r, &err) < 0) fail_run(stores[s], &err);
            check_second(j, &r, stores[s]);
            drps_train_result_free(&r);
            assert_true(exists(j->checkpoints)); /* they are another run's */
        }
        end(j);
    }
}

/* A model is begun with by itself, and replaced by the run; the optimizer is new. */
static void test_a_model_goes_on(void **state)
{
    struct job *j = begin("fm", 4);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    struct drps_modeldir *md;
    struct drps_train_options o = options(j->one);
    (void)state;
    if (drps_modeldir_open(drps_io_os(), j->one, 0, &md, &err) < 0) fail_run("open", &err);
    const uint64_t before = drps_modeldir_info(md)->content;
    drps_modeldir_close(md);
    o.from = j->one;
    o.replace = 1;
    o.optimizer = "sgd";
    o.lr = 1e-30f; /* no step changes a parameter that is not almost 0 */
    if (drps_train_run(j->plan, &o, &r, &err) < 0) fail_run("from the model", &err);
    assert_int_equal(r.from.rows, j->plan->info.rows);
    assert_int_equal(r.from.state, 0);
    assert_int_equal(r.content, before);
    drps_train_result_free(&r);
    end(j);
}

/* With resume it counts where there is nothing to go on from. */
static void test_resume_comes_first(void **state)
{
    struct job *j = begin("fm", 4);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    struct drps_train_options o = options(j->two);
    (void)state;
    if (drps_io_remove_tree(drps_io_os(), j->two, &err) < 0) fail_run("remove", &err);
    o.from = j->checkpoints;
    o.resume = 1;
    o.keep_checkpoints = 1;
    o.checkpoint_every.unit = DRPS_CHECKPOINT_USUAL;
    if (drps_train_run(j->plan, &o, &r, &err) < 0) fail_run("anew", &err);
    check_second(j, &r, "anew");
    drps_train_result_free(&r);

    o.from = j->dir; /* neither a model nor checkpoints: it is not looked at */
    o.epochs = 2;
    if (drps_train_run(j->plan, &o, &r, &err) < 0) fail_run("resumed", &err);
    assert_int_equal(r.resumed_epoch, 2);
    assert_int_equal(r.from.all, 0);
    drps_train_result_free(&r);
    assert_int_equal(drps_io_remove_tree(drps_io_os(), j->two, NULL), 0);
    o.resume = 0;
    o.replace = 1;
    assert_int_equal(drps_train_run(j->plan, &o, &r, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "neither a model"));
    drps_train_result_free(&r);
    assert_false(exists(j->two));
    end(j);
}

/* The run's own checkpoints are no obstacle, and are replaced. */
static void test_own_checkpoints_are_begun_with(void **state)
{
    struct job *j = begin("fm", 4);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    struct drps_train_options o = options(j->one);
    (void)state;
    assert_int_equal(drps_io_remove_tree(drps_io_os(), j->one, NULL), 0);
    assert_int_equal(drps_train_run(j->plan, &o, &r, &err), DRPS_E_CONFIG); /* not begun with */
    drps_train_result_free(&r);
    drps_err_clear(&err);
    o.from = j->checkpoints;
    o.checkpoint_every = (struct drps_checkpoint_every){DRPS_CHECKPOINT_BATCHES, 7};
    if (drps_train_run(j->plan, &o, &r, &err) < 0) fail_run("from its own", &err);
    check_second(j, &r, "from its own");
    drps_train_result_free(&r);
    assert_false(exists(j->checkpoints));
    end(j);
}

/* A file system without second names: checkpoints have the dictionary as well. */
static void test_names_are_copied_without_links(void **state)
{
    struct job *j = begin("fm", 4);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    struct drps_plan plan = *j->plan;
    struct fault_io *f = fault_io_new(drps_io_os());
    struct drps_train_options o = options(j->one);
    struct stat st;
    char path[512];
    (void)state;
    plan.io = &f->io;
    fault_io_arm(f, FAULT_LINK, 1, 1, FAULT_ERROR, -EXDEV);
    o.replace = 1;
    o.keep_checkpoints = 1;
    o.checkpoint_every = (struct drps_checkpoint_every){DRPS_CHECKPOINT_BATCHES, 9};
    if (drps_train_run(&plan, &o, &r, &err) < 0) fail_run("one epoch", &err);
    assert_true(atomic_load(&f->fired) && r.checkpoints.n > 1 && !r.checkpoints.failed);
    (void)snprintf(path, sizeof(path), "%s/rank-0/%llu/names.rec", j->checkpoints,
                   (unsigned long long)r.checkpoints.n + 1); /* one was there before */
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_nlink, 1);
    drps_train_result_free(&r);
    fault_io_free(f);
    o = options(j->two);
    o.replace = 1;
    o.from = j->checkpoints;
    if (drps_train_run(j->plan, &o, &r, &err) < 0) fail_run("from copies", &err);
    check_second(j, &r, "from copies");
    drps_train_result_free(&r);
    end(j);
}

/* ---- Kills ---- */

/* Until the k-th change of a file fails, and all that follow. Returns 1 if the run came to its end.
 */
static int run_until(const struct job *j, const struct drps_train_options *o, long k)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    struct drps_plan plan = *j->plan;
    struct fault_io *f = fault_io_new(drps_io_os());
    plan.io = &f->io;
    fault_io_arm(f, CHANGES, k, 1, k % 2 ? FAULT_ERROR : FAULT_TORN, -EIO);
    const int rc = drps_train_run(&plan, o, &r, &err);
    const int fired = atomic_load(&f->fired);
    drps_train_result_free(&r);
    fault_io_free(f);
    if (!fired && rc < 0) fail_run("no fault", &err);
    return !fired;
}

static void check_killed(const struct job *j, long step)
{
    long k = 1;
    char *checkpoints;
    assert_true(asprintf(&checkpoints, "%s.checkpoint", j->two) > 0);
    for (;; k += step) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_train_result r;
        struct drps_train_options o = options(j->two);
        o.from = j->checkpoints;
        o.replace = 1;
        o.store = k % 4 < 2 ? "resident" : "relay";
        o.checkpoint_every = (struct drps_checkpoint_every){DRPS_CHECKPOINT_BATCHES, 9};
        if (run_until(j, &o, k)) break;
        if (drps_io_remove_tree(drps_io_os(), j->two, NULL) < 0) fail_msg("cannot remove");
        o.resume = 1; /* from a checkpoint of its own, or else from those that it began with */
        if (drps_train_run(j->plan, &o, &r, &err) < 0) fail_run("after a kill", &err);
        if (!r.already && (r.content != j->want.content || r.epochs_n != 1))
            fail_msg("killed at change %ld: content %016llx", k, (unsigned long long)r.content);
        drps_train_result_free(&r);
        assert_false(exists(checkpoints));
        assert_true(exists(j->checkpoints));
    }
    assert_true(k > 60);
    free(checkpoints);
}

static void test_killed_anywhere(void **state)
{
    struct job *j = begin("fm", 4);
    (void)state;
    check_killed(j, DRPS_TEST_ONE_IN > 1 ? 41 : 7);
    end(j);
}

/* ---- Other ranks ---- */

static int exists_in(struct scratch *s, const char *name)
{
    return exists(scratch_path(s, name));
}

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
    if (drps_index_run(drps_io_os(), &o, r, &err) < 0) fail_run("deal", &err);
    free(r);
}

/* As world_run(), of a plan for so many workers. */
static int run_ranks(const char *plan, uint32_t workers, const struct drps_train_options *o,
                     struct drps_train_result *r, struct drps_err *err)
{
    struct drps_plan *one;
    const struct drps_ranks_options ranks = {
        .plan = plan, .train = o, .transport = DRPS_RANKS_INPROC, .wait_ms = 60000};
    if (workers > 1) return drps_ranks_run_local(&ranks, workers, r, err);
    if (drps_plan_open(drps_io_os(), plan, &one, err) < 0) fail_run(plan, err);
    const int rc = drps_train_run(one, o, r, err);
    drps_plan_close(one);
    return rc;
}

struct stopper {
    atomic_int stop;
    long left; /* batches of rank 0 until it stops */
};

static void stop_at(void *ctx, const struct drps_train_batch *batch)
{
    struct stopper *s = ctx;
    if (batch->rank == 0 && batch->moment == DRPS_BATCH_PULLED && --s->left == 0)
        atomic_store(&s->stop, 1);
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
    if (world_run(w, &o, &whole, &err) < 0) fail_run("undisturbed", &err);
    if (drps_io_remove_tree(drps_io_os(), w->model, &err) < 0) fail_run("remove", &err);

    o.replace = 0;
    o.checkpoint_every = (struct drps_checkpoint_every){DRPS_CHECKPOINT_BATCHES, 5};
    o.stop = &stopper.stop;
    o.on_batch = stop_at;
    o.ctx = &stopper;
    assert_int_equal(world_run(w, &o, &r, &err), DRPS_E_INTERRUPTED);
    const size_t done = r.epochs_n;
    drps_train_result_free(&r);
    (void)snprintf(checkpoints, sizeof(checkpoints), "%s.checkpoint", w->model);
    assert_true(exists_in(&w->scratch, "model.checkpoint/rank-2"));

    deal(w, workers, "other");
    (void)snprintf(plan, sizeof(plan), "%s", scratch_path(&w->scratch, "other"));
    o.stop = NULL;
    o.on_batch = NULL;
    o.replace = 1; /* what the interrupted run has left as a model */
    o.from = checkpoints;
    o.epochs = 4 - done;
    o.resume = workers == 5; /* there is nothing of this plan to go on from */
    if (workers == 1) o.checkpoint_every.unit = DRPS_CHECKPOINT_NEVER;
    drps_err_clear(&err);
    if (workers == 2) { /* these stop, too, and the same command goes on from where they were */
        struct stopper again = {.left = 20};
        o.stop = &again.stop;
        o.on_batch = stop_at;
        o.ctx = &again;
        assert_int_equal(run_ranks(plan, workers, &o, &r, &err), DRPS_E_INTERRUPTED);
        drps_train_result_free(&r);
        drps_err_clear(&err);
        o.stop = NULL;
        o.on_batch = NULL;
        o.resume = 1;
    }
    if (run_ranks(plan, workers, &o, &r, &err) < 0) fail_run("other ranks", &err);
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
    assert_false(exists(checkpoints)); /* of ranks that are no more, too */
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
    if (world_run(w, &o, &r, &err) < 0) fail_run("three ranks", &err);
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
    if (world_run(w, &o, &r, &err) < 0) fail_run("three ranks", &err);
    drps_train_result_free(&r);
    (void)snprintf(alone, sizeof(alone), "%s", scratch_path(&w->scratch, "alone"));
    assert_int_equal(mkdir(alone, 0777), 0);
    assert_int_equal(rename(scratch_path(&w->scratch, "several/rank-1"),
                            scratch_path(&w->scratch, "alone/rank-1")),
                     0);
    if (drps_plan_open_rank(drps_io_os(), alone, 1, &part, &err) < 0) fail_run("part", &err);
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
        cmocka_unit_test(test_a_checkpoint_between_epochs_is_gone_on_from),
        cmocka_unit_test(test_a_model_goes_on),
        cmocka_unit_test(test_resume_comes_first),
        cmocka_unit_test(test_own_checkpoints_are_begun_with),
        cmocka_unit_test(test_names_are_copied_without_links),
        cmocka_unit_test(test_killed_anywhere),
        cmocka_unit_test(test_other_ranks_go_on),
        cmocka_unit_test(test_all_ranks_are_needed),
        cmocka_unit_test(test_ranks_need_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
