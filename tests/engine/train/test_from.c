/* Runs that begin with the rows of an earlier one: a checkpoint between two epochs gives what
 * resuming would, and nothing that happens on the way costs more than the run. */
#include "support/plan_maker.h"

#include <errno.h>

#include "engine/checkpoint/drps_checkpoint.h"
#include "engine/drps_engine.h"
#include "engine/publish/drps_modeldir.h"
#include "support/fault_io.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_checkpoint_between_epochs_is_gone_on_from),
        cmocka_unit_test(test_a_model_goes_on),
        cmocka_unit_test(test_resume_comes_first),
        cmocka_unit_test(test_own_checkpoints_are_begun_with),
        cmocka_unit_test(test_killed_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
