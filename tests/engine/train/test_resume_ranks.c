/* Resume of several ranks: all stop before the same round and leave a checkpoint each, and go on
 * from the newest one that all have. */
#include "support/plan_maker.h"

#include "engine/train/verify/drps_verify.h"
#include "support/train_runs.h"
#include "support/world.h"

/* A plan for three ranks, and options that write checkpoints. */
static struct world *begin(uint64_t seed, struct drps_train_options *o,
                           struct drps_train_result *want)
{
    struct world *w = world_begin("fm", CASE_LIBSVM, 20, 60, seed);
    *o = world_options(w);
    o->log = &quiet;
    o->checkpoint_every.unit = DRPS_CHECKPOINT_NEVER;
    o->checkpoint_part_bytes = 256; /* many parts, of which most do not change in a batch */
    world_train(w, o, want);
    o->checkpoint_every = (struct drps_checkpoint_every){DRPS_CHECKPOINT_BATCHES, 4};
    return w;
}

static void end(struct world *w, struct drps_train_result *want)
{
    drps_train_result_free(want);
    world_end(w);
}

/* Returns 1 if it has stopped; 0: it came to its end before. */
static int stop_at(const struct world *w, struct drps_train_options o, struct stopper s)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    stop_by(&o, &s);
    const int rc = world_run(w, &o, &r, &err);
    drps_train_result_free(&r);
    if (rc < 0 && rc != DRPS_E_INTERRUPTED) fail_msg("until it is stopped: %s", err.text);
    return rc < 0;
}

static void go_on(const struct world *w, struct drps_train_options o,
                  const struct drps_train_result *want, const char *what, long k)
{
    struct drps_train_result r;
    o.resume = 1;
    world_train(w, &o, &r);
    assert_true(r.resumed_epoch > 0);
    train_check_same(&r, want, what, k);
    drps_train_result_free(&r);
}

static void test_ranks_go_on(void **state)
{
    static const char *const stores[] = {"resident", "relay", "file"};
    const long step = DRPS_TEST_ONE_IN > 1 ? 11 : 3;
    struct drps_train_options o;
    struct drps_train_result want;
    struct world *w = begin(3, &o, &want);
    (void)state;
    for (size_t s = 0; s < 3; s++)
        for (long at = 1; at < 30; at += step) {
            o.store = stores[s];
            if (!stop_at(w, o, (struct stopper){.rank = (uint32_t)(at % 3), .left = at})) continue;
            o.store = stores[(s + (size_t)at) % 3];
            go_on(w, o, &want, stores[s], at);
        }
    end(w, &want);
}

/* One rank has lost its newest checkpoint: all go on from the one before. */
static void test_ranks_take_what_all_have(void **state)
{
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    char name[64];
    struct drps_train_options o;
    struct drps_train_result want;
    struct world *w = begin(4, &o, &want);
    (void)state;
    assert_true(stop_at(w, o, (struct stopper){.rank = 0, .left = 13}));
    assert_true(train_checkpoints(scratch_path(&w->scratch, "model.checkpoint"), 2, numbers) >= 2);
    (void)snprintf(name, sizeof(name), "model.checkpoint/rank-2/%llu",
                   (unsigned long long)numbers[0]);
    train_remove(scratch_path(&w->scratch, name));
    go_on(w, o, &want, "the one before", 0);
    end(w, &want);
}

/* The ranks of a folder whose checkpoints are missing are problems, by name; those of other
 * machines are not. */
static void test_verify_names_a_missing_rank(void **state)
{
    static const struct {
        const char *gone[2], *says;
    } cases[] = {{{NULL, NULL}, NULL},
                 {{"model.checkpoint/rank-1"}, "rank-1 holds no checkpoint"},
                 {{"model.checkpoint/rank-1", "model.checkpoint/rank-2"}, NULL},
                 {{"model.checkpoint/rank-0"}, NULL},
                 {{"model.checkpoint/rank-0", "model.checkpoint/rank-1"}, NULL}};
    struct drps_train_options o;
    struct drps_train_result want;
    struct world *w = begin(4, &o, &want);
    char root[SCRATCH_PATH_BYTES];
    (void)state;
    (void)snprintf(root, sizeof(root), "%s", scratch_path(&w->scratch, "model.checkpoint"));
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_findings found = {0};
        struct drps_err err = DRPS_ERR_INIT;
        train_remove(root);
        assert_true(stop_at(w, o, (struct stopper){.rank = 0, .left = 13}));
        for (size_t k = 0; k < 2 && cases[i].gone[k]; k++) {
            assert_true(path_exists(scratch_path(&w->scratch, cases[i].gone[k])));
            train_remove(scratch_path(&w->scratch, cases[i].gone[k]));
        }
        if (drps_checkpoints_verify(drps_io_os(), root, &found, &err) < 0)
            fail_msg("case %zu: %s", i, err.text);
        assert_int_equal(found.problems, cases[i].says != NULL);
        if (cases[i].says) assert_non_null(strstr(found.kept[0].text, cases[i].says));
    }
    end(w, &want);
}

/* The model is whole, and a rank was killed before it had removed what it leaves: that goes. */
static void test_ranks_clear_up(void **state)
{
    static const char *const left[] = {"model.checkpoint", "model.checkpoint/rank-2",
                                       "model.rank-2.partial"};
    struct drps_train_options o;
    struct drps_train_result want, r;
    struct world *w = begin(3, &o, &want);
    (void)state;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(mkdir(scratch_path(&w->scratch, left[i]), 0777), 0);
    (void)scratch_file(&w->scratch, "model.rank-2.partial/lock", "", 0);
    o.resume = 1;
    o.replace = 0;
    world_train(w, &o, &r);
    assert_true(r.already);
    assert_int_equal(r.content, want.content);
    for (size_t i = 0; i < 3; i++)
        if (path_exists(scratch_path(&w->scratch, left[i]))) fail_msg("%s stays", left[i]);
    drps_train_result_free(&r);
    end(w, &want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_go_on),
        cmocka_unit_test(test_ranks_take_what_all_have),
        cmocka_unit_test(test_verify_names_a_missing_rank),
        cmocka_unit_test(test_ranks_clear_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
