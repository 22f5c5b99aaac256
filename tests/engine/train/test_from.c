/* Runs that begin with the rows of an earlier one: a checkpoint between two epochs gives what
 * resuming would, and nothing that happens on the way costs more than the run. */
#include "support/plan_maker.h"

#include <errno.h>

#include "engine/publish/drps_modeldir.h"
#include "support/fault_io.h"
#include "support/train_runs.h"

struct job {
    struct scratch s;
    struct drps_plan *plan;
    char one[SCRATCH_PATH_BYTES], two[SCRATCH_PATH_BYTES]; /* models of one epoch and of two */
    char checkpoints[SCRATCH_PATH_BYTES];                  /* of one epoch */
    struct drps_train_result want;                         /* of two epochs */
};

static void set_path(struct scratch *s, const char *name, char path[SCRATCH_PATH_BYTES])
{
    (void)snprintf(path, SCRATCH_PATH_BYTES, "%s", scratch_path(s, name));
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
    struct drps_train_result r;
    assert_non_null(j);
    scratch_begin(&j->s);
    j->plan = train_plan(&j->s, algo, factors);
    set_path(&j->s, "one", j->one);
    set_path(&j->s, "two", j->two);
    set_path(&j->s, "one.checkpoint", j->checkpoints);
    struct drps_train_options o = options(j->two);
    o.epochs = 2;
    train_well(j->plan, &o, &j->want, "two epochs");
    o = options(j->one);
    o.keep_checkpoints = 1;
    o.checkpoint_every.unit = DRPS_CHECKPOINT_USUAL;
    train_well(j->plan, &o, &r, "one epoch");
    drps_train_result_free(&r);
    return j;
}

static void end(struct job *j)
{
    drps_train_result_free(&j->want);
    drps_plan_close(j->plan);
    scratch_end(&j->s);
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
            struct drps_train_result r;
            struct drps_train_options o = options(j->two);
            o.store = stores[s];
            o.replace = 1;
            o.from = j->checkpoints;
            train_well(j->plan, &o, &r, stores[s]);
            check_second(j, &r, stores[s]);
            drps_train_result_free(&r);
            assert_true(path_exists(j->checkpoints)); /* they are another run's */
        }
        end(j);
    }
}

/* A model beside which its checkpoints lie goes on as these do, unless it is to be without. */
static void test_a_model_has_its_state_beside_it(void **state)
{
    struct job *j = begin("fm", 4);
    struct drps_train_result r;
    struct drps_train_options o = options(j->two);
    (void)state;
    o.replace = 1;
    o.from = j->one;
    train_well(j->plan, &o, &r, "from the model");
    check_second(j, &r, "from the model");
    drps_train_result_free(&r);
    o.no_state = 1;
    train_well(j->plan, &o, &r, "without state");
    assert_true(r.from.rows == r.from.all && !r.from.state && r.content != j->want.content);
    drps_train_result_free(&r);
    o.from = j->checkpoints;
    train_well(j->plan, &o, &r, "checkpoints without state");
    assert_true(r.from.rows == r.from.all && !r.from.state && r.content != j->want.content);
    drps_train_result_free(&r);
    end(j);
}

static void record(void *ctx, enum drps_log_level level, const char *text)
{
    (void)level;
    if (strstr(text, "begins without")) (void)snprintf(ctx, 256, "%s", text);
}

/* Checkpoints beside a model that are of other parameters are no state of it. */
static void test_state_of_another_model_is_not_taken(void **state)
{
    struct job *j = begin("fm", 4);
    struct drps_train_result r;
    char said[256] = "", beside[SCRATCH_PATH_BYTES];
    const struct drps_log log = {.level = DRPS_LOG_INFO, .sink = record, .ctx = said};
    struct drps_train_options o = options(j->s.dir);
    (void)state;
    set_path(&j->s, "two.checkpoint", beside);
    assert_int_equal(rename(j->checkpoints, beside), 0);
    o = options(j->one);
    o.log = &log;
    o.replace = 1;
    o.from = j->two;
    train_well(j->plan, &o, &r, "from the other model");
    assert_true(r.from.rows == r.from.all && !r.from.state);
    if (!strstr(said, "parameters are those of another epoch or run")) fail_msg("said: '%s'", said);
    drps_train_result_free(&r);
    end(j);
}

/* The model that a run replaces may be the one that it begins with, with its state. */
static void test_a_model_and_its_state_are_replaced(void **state)
{
    struct job *j = begin("fm", 4);
    struct drps_train_result r;
    struct drps_train_options o = options(j->one);
    (void)state;
    o.from = j->one;
    o.replace = 1;
    o.keep_checkpoints = 1;
    o.checkpoint_every.unit = DRPS_CHECKPOINT_USUAL;
    train_well(j->plan, &o, &r, "in place");
    check_second(j, &r, "in place");
    drps_train_result_free(&r);
    o.from = j->one;
    train_well(j->plan, &o, &r, "once more");
    assert_true(r.from.state);
    drps_train_result_free(&r);
    end(j);
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
    if (drps_modeldir_open(drps_io_os(), j->one, 0, &md, &err) < 0) fail_msg("%s", err.text);
    const uint64_t before = drps_modeldir_info(md)->content;
    drps_modeldir_close(md);
    o.from = j->one;
    o.replace = 1;
    o.optimizer = "sgd";
    o.lr = 1e-30f; /* no step changes a parameter that is not almost 0 */
    train_well(j->plan, &o, &r, "from the model");
    assert_int_equal(r.from.rows, j->plan->info.rows);
    assert_int_equal(r.from.state, 0);
    assert_int_equal(r.content, before);
    drps_train_result_free(&r);
    end(j);
}

/* With resume, what a run is to begin with counts where there is nothing to go on from. */
static void test_resume_comes_first(void **state)
{
    struct job *j = begin("fm", 4);
    struct drps_train_result r;
    struct drps_train_options o = options(j->two);
    (void)state;
    train_remove(j->two);
    o.from = j->checkpoints;
    o.resume = 1;
    o.keep_checkpoints = 1;
    o.checkpoint_every.unit = DRPS_CHECKPOINT_USUAL;
    train_well(j->plan, &o, &r, "anew");
    check_second(j, &r, "anew");
    drps_train_result_free(&r);

    o.from = j->s.dir; /* neither a model nor checkpoints: it is not looked at */
    o.epochs = 2;
    train_well(j->plan, &o, &r, "resumed");
    assert_int_equal(r.resumed_epoch, 2);
    assert_int_equal(r.from.all, 0);
    drps_train_result_free(&r);
    train_remove(j->two);
    o.resume = 0;
    o.replace = 1;
    train_refused(j->plan, &o, DRPS_E_CONFIG, "neither a model");
    assert_false(path_exists(j->two));
    end(j);
}

/* The run's own checkpoints are no obstacle, and are replaced. */
static void test_own_checkpoints_are_begun_with(void **state)
{
    struct job *j = begin("fm", 4);
    struct drps_train_result r;
    struct drps_train_options o = options(j->one);
    (void)state;
    train_remove(j->one);
    train_refused(j->plan, &o, DRPS_E_CONFIG, "resume"); /* they are not begun with */
    o.from = j->checkpoints;
    o.checkpoint_every = (struct drps_checkpoint_every){DRPS_CHECKPOINT_BATCHES, 7};
    train_well(j->plan, &o, &r, "from its own");
    check_second(j, &r, "from its own");
    drps_train_result_free(&r);
    assert_false(path_exists(j->checkpoints));
    end(j);
}

/* A file system without second names: checkpoints have the dictionary as well. */
static void test_names_are_copied_without_links(void **state)
{
    struct job *j = begin("fm", 4);
    struct drps_train_result r;
    struct drps_plan plan = *j->plan;
    struct fault_io *f = fault_io_new(drps_io_os());
    struct drps_train_options o = options(j->one);
    struct stat st;
    char name[64];
    (void)state;
    plan.io = &f->io;
    fault_io_arm(f, FAULT_LINK, 1, 1, FAULT_ERROR, -EXDEV);
    o.replace = 1;
    o.keep_checkpoints = 1;
    o.checkpoint_every = (struct drps_checkpoint_every){DRPS_CHECKPOINT_BATCHES, 9};
    train_well(&plan, &o, &r, "one epoch");
    assert_true(atomic_load(&f->fired) && r.checkpoints.n > 1 && !r.checkpoints.failed);
    (void)snprintf(name, sizeof(name), "one.checkpoint/rank-0/%llu/names.rec",
                   (unsigned long long)r.checkpoints.n + 1); /* one was there before */
    assert_int_equal(stat(scratch_path(&j->s, name), &st), 0);
    assert_int_equal(st.st_nlink, 1);
    drps_train_result_free(&r);
    fault_io_free(f);
    o = options(j->two);
    o.replace = 1;
    o.from = j->checkpoints;
    train_well(j->plan, &o, &r, "from copies");
    check_second(j, &r, "from copies");
    drps_train_result_free(&r);
    end(j);
}

/* ---- Kills ---- */

static void test_killed_anywhere(void **state)
{
    const long step = DRPS_TEST_ONE_IN > 1 ? 41 : 7;
    struct job *j = begin("fm", 4);
    struct drps_train_options o = options(j->two);
    struct drps_train_result r;
    long k;
    (void)state;
    o.from = j->checkpoints;
    o.checkpoint_every = (struct drps_checkpoint_every){DRPS_CHECKPOINT_BATCHES, 9};
    for (k = 1;; k += step) {
        o.replace = 1;
        o.resume = 0;
        o.store = k % 4 < 2 ? "resident" : "relay";
        if (train_until(j->plan, &o, k)) break;
        train_remove(j->two);
        o.resume = 1; /* from a checkpoint of its own, or else from those that it began with */
        train_well(j->plan, &o, &r, "after a kill");
        if (!r.already && (r.content != j->want.content || r.epochs_n != 1))
            fail_msg("killed at change %ld: content %016llx", k, (unsigned long long)r.content);
        drps_train_result_free(&r);
        assert_false(path_exists(scratch_path(&j->s, "two.checkpoint")));
        assert_true(path_exists(j->checkpoints));
    }
    assert_true(k > 60);
    end(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_checkpoint_between_epochs_is_gone_on_from),
        cmocka_unit_test(test_a_model_has_its_state_beside_it),
        cmocka_unit_test(test_state_of_another_model_is_not_taken),
        cmocka_unit_test(test_a_model_and_its_state_are_replaced),
        cmocka_unit_test(test_a_model_goes_on),
        cmocka_unit_test(test_resume_comes_first),
        cmocka_unit_test(test_own_checkpoints_are_begun_with),
        cmocka_unit_test(test_names_are_copied_without_links),
        cmocka_unit_test(test_killed_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
