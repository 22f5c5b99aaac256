/*
 * Pilots on plans, as threads: they train the first rounds of the run and no more, in every
 * synchronisation and from every store, leave nothing and touch nothing, stop at once, and end
 * where there is something to go on from. The choice is the same each time, and trains as its
 * options do. What cannot be filtered is refused.
 *
 *   test_pilot [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cluster/target/drps_ladder.h"
#include "engine/cluster/target/drps_target.h"
#include "support/world.h"

enum { BATCH = 8, SLOTS = 60, ROUNDS = 11, STRONG = 7, DIM = 5 };

static uint64_t seed = 20261124;

/* ---- Rounds of a pilot ---- */

struct counted {
    atomic_uint batches, beyond; /* of these, after the last round of a pilot */
};

static void count_batch(void *ctx, const struct drps_train_batch *batch)
{
    struct counted *c = ctx;
    if (batch->moment != DRPS_BATCH_DONE) return;
    atomic_fetch_add(&c->batches, 1);
    if (batch->step >= ROUNDS) atomic_fetch_add(&c->beyond, 1);
}

static struct drps_train_options pilot_options(const struct world *w, enum drps_sched_mode sync,
                                               unsigned rung)
{
    struct drps_train_options o = world_options(w);
    o.sync = sync;
    o.pilot = (struct drps_train_pilot){.on = 1, .of_filters = 1, .rounds = ROUNDS};
    o.patience = 1;
    o.keep_checkpoints = 1;
    o.checkpoint_every = (struct drps_checkpoint_every){DRPS_CHECKPOINT_BATCHES, 1};
    drps_ladder_set(&o, rung, DIM, 1);
    return o;
}

/* Returns the progressive loss. */
static double check_cut(const struct world *w, enum drps_sched_mode sync, unsigned rung,
                        const char *store)
{
    struct drps_train_options o = pilot_options(w, sync, rung);
    struct drps_train_result r;
    struct counted c = {0};
    o.on_batch = count_batch;
    o.ctx = &c;
    o.store = store;
    const size_t entries = folder_entries(w->scratch.dir);
    world_train(w, &o, &r);
    assert_int_equal(folder_entries(w->scratch.dir), entries);
    assert_int_equal(atomic_load(&c.batches), ROUNDS * WORLD_WORKERS);
    assert_int_equal(atomic_load(&c.beyond), 0);
    assert_int_equal(r.epochs_n, 1);
    assert_int_equal(r.epochs[0].test.samples, 0);
    assert_false(r.published || r.interrupted || r.kept);
    const double loss = r.epochs[0].train_loss;
    assert_true(isfinite(loss));
    drps_train_result_free(&r);
    return loss;
}

static int same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

static void test_pilots_are_cut(void **state)
{
    struct world *w = world_begin_residuals("fm", CASE_LIBSVM, BATCH, SLOTS, seed);
    (void)state;
    for (unsigned rung = 0; rung <= STRONG; rung += STRONG) {
        const double loss = check_cut(w, DRPS_SCHED_BSP, rung, "resident");
        assert_true(same_bits(loss, check_cut(w, DRPS_SCHED_BSP, rung, "relay")));
        assert_true(same_bits(loss, check_cut(w, DRPS_SCHED_BSP, rung, "resident")));
        for (int sync = DRPS_SCHED_BSP + 1; sync <= DRPS_SCHED_WSP_LITERAL; sync++)
            (void)check_cut(w, (enum drps_sched_mode)sync, rung, rung ? "relay" : "resident");
    }
    world_end(w);
}

/* A pilot of an epoch has the numbers of a run of one. */
static void test_pilots_of_an_epoch(void **state)
{
    struct world *w = world_begin_residuals("fm", CASE_LIBSVM, BATCH, SLOTS, seed);
    (void)state;
    for (unsigned rung = 0; rung <= STRONG; rung += STRONG) {
        struct drps_train_options o = pilot_options(w, DRPS_SCHED_BSP, rung);
        struct drps_train_result pilot, run;
        o.pilot.rounds = 1000;
        world_train(w, &o, &pilot);
        o.pilot = (struct drps_train_pilot){0};
        o.keep_checkpoints = 0;
        o.epochs = 1;
        world_train(w, &o, &run);
        world_check_model(w, &run);
        assert_int_equal(pilot.epochs_n, 1);
        assert_true(same_bits(pilot.epochs[0].train_loss, run.epochs[0].train_loss));
        assert_int_equal(pilot.epochs[0].test.samples, run.epochs[0].test.samples);
        for (size_t i = 0; i < run.ranks_n; i++)
            assert_int_equal(pilot.ranks[i].sent_bytes, run.ranks[i].sent_bytes);
        drps_train_result_free(&pilot);
        drps_train_result_free(&run);
    }
    world_end(w);
}

/* ---- Nothing is left ---- */

static int run_world(void *ctx, const struct drps_train_options *o, struct drps_train_result *r,
                     struct drps_err *err)
{
    return world_run(ctx, o, r, err);
}

static int find(struct world *w, const struct drps_train_options *o, struct drps_target *out,
                struct drps_err *err)
{
    struct drps_plan *plan;
    if (drps_plan_open(drps_io_os(), w->plan, &plan, err) < 0) fail_msg("%s", err->text);
    const struct drps_target_options options = {
        .train = o, .plan = plan, .share = 0.02, .run = run_world, .ctx = w};
    const int rc = drps_target_find(&options, out, err);
    drps_plan_close(plan);
    return rc;
}

static void must_find(struct world *w, const struct drps_train_options *o, struct drps_target *out)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (find(w, o, out, &err) < 0) fail_msg("%s", err.text);
}

static void check_same_pilots(const struct drps_target *a, const struct drps_target *b)
{
    assert_int_equal(a->pilots_n, b->pilots_n);
    assert_int_equal(a->chosen, b->chosen);
    for (size_t i = 0; i < a->pilots_n; i++) {
        assert_int_equal(a->pilots[i].rung, b->pilots[i].rung);
        assert_int_equal(a->pilots[i].bytes, b->pilots[i].bytes);
        assert_true(same_bits(a->pilots[i].loss, b->pilots[i].loss));
    }
}

static void test_the_choice(void **state)
{
    struct world *w = world_begin_residuals("fm", CASE_LIBSVM, BATCH, SLOTS, seed);
    struct drps_train_options o = world_options(w), by_hand = world_options(w);
    struct drps_train_result r;
    struct drps_target first, again;
    (void)state;
    o.replace = 0;
    const size_t entries = folder_entries(w->scratch.dir);
    must_find(w, &o, &first);
    assert_int_equal(folder_entries(w->scratch.dir), entries);
    must_find(w, &o, &again);
    check_same_pilots(&first, &again);
    assert_true(first.pilots_n == 5 && first.pilots[1].bytes < first.pilots[0].bytes);
    drps_target_apply(&first, &o);
    world_train(w, &o, &r);
    const uint64_t content = r.content;
    drps_train_result_free(&r);
    by_hand.push = first.pilots[first.chosen].filters.push;
    by_hand.pull = first.pilots[first.chosen].filters.pull;
    world_train(w, &by_hand, &r);
    assert_int_equal(r.content, content);
    /* There is a model now: it is refused to replace it, or it stays. */
    struct drps_train_options over = world_options(w);
    struct drps_err err = DRPS_ERR_INIT;
    over.replace = 0;
    assert_int_equal(find(w, &over, &again, &err), -EEXIST);
    over.replace = 1;
    must_find(w, &over, &again);
    check_same_pilots(&first, &again);
    world_check_model(w, &r);
    drps_train_result_free(&r);
    world_end(w);
}

/* ---- Stopping ---- */

static atomic_int stop;

static void stop_now(void *ctx, const struct drps_train_progress *p)
{
    (void)ctx;
    (void)p;
    atomic_store(&stop, 1);
}

static void test_stops_at_once(void **state)
{
    struct world *w = world_begin_residuals("fm", CASE_LIBSVM, 1, SLOTS, seed);
    (void)state;
    for (unsigned rung = 0; rung <= STRONG; rung += STRONG) {
        struct drps_train_options o = pilot_options(w, DRPS_SCHED_BSP, rung);
        struct drps_train_result r;
        struct drps_err err = DRPS_ERR_INIT;
        o.pilot.rounds = 0;
        o.on_progress = stop_now;
        o.stop = &stop;
        o.ctx = w;
        atomic_store(&stop, 0);
        const size_t entries = folder_entries(w->scratch.dir);
        assert_int_equal(world_run(w, &o, &r, &err), DRPS_E_INTERRUPTED);
        assert_non_null(strstr(err.text, "nothing is written"));
        assert_int_equal(r.epochs_n, 0);
        assert_int_equal(folder_entries(w->scratch.dir), entries);
        drps_train_result_free(&r);
        /* The one that follows does not begin. */
        assert_int_equal(world_run(w, &o, &r, &err), DRPS_E_INTERRUPTED);
        assert_int_equal(r.steps, 0);
        drps_train_result_free(&r);
    }
    world_end(w);
}

/* ---- Going on ---- */

static void test_resumed_runs_have_no_pilots(void **state)
{
    struct world *w = world_begin_residuals("fm", CASE_LIBSVM, BATCH, SLOTS, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result whole, r;
    struct drps_target target;
    (void)state;
    drps_ladder_set(&o, STRONG, DIM, 0);
    world_train(w, &o, &whole);
    o.epochs = 1;
    o.keep_checkpoints = 1;
    world_train(w, &o, &r);
    drps_train_result_free(&r);
    drps_ladder_set(&o, 0, DIM, 0);
    o.epochs = 2;
    o.keep_checkpoints = 0;
    o.resume = 1;
    must_find(w, &o, &target);
    assert_true(target.resumes);
    assert_int_equal(target.pilots_n, 0);
    drps_target_apply(&target, &o);
    world_train(w, &o, &r);
    assert_int_equal(r.resumed_epoch, 2);
    assert_int_equal(r.content, whole.content);
    drps_train_result_free(&r);
    /* All is done: that is no reason to try either. */
    o.replace = 0;
    must_find(w, &o, &target);
    assert_true(target.resumes);
    drps_train_result_free(&whole);
    world_end(w);
}

/* Pilots of a run that begins over leave the checkpoints of the one before as they are. */
static void test_checkpoints_stay(void **state)
{
    struct world *w = world_begin_residuals("fm", CASE_LIBSVM, BATCH, SLOTS, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result whole, r;
    struct drps_target target;
    (void)state;
    world_train(w, &o, &whole);
    o.epochs = 1;
    o.keep_checkpoints = 1;
    world_train(w, &o, &r);
    drps_train_result_free(&r);
    must_find(w, &o, &target);
    assert_false(target.resumes);
    assert_int_equal(target.pilots_n, 5);
    o.epochs = 2;
    o.keep_checkpoints = 0;
    o.resume = 1;
    world_train(w, &o, &r);
    assert_int_equal(r.resumed_epoch, 2);
    assert_int_equal(r.content, whole.content);
    drps_train_result_free(&r);
    drps_train_result_free(&whole);
    world_end(w);
}

/* ---- Refused ---- */

static void check_says(const struct drps_err *err, const char *why)
{
    assert_int_equal(err->code, DRPS_E_CONFIG);
    if (!strstr(err->text, why)) fail_msg("'%s' does not say '%s'", err->text, why);
}

static void test_refusals(void **state)
{
    struct world *w = world_begin("fm", CASE_LIBSVM, BATCH, 3 * BATCH, seed);
    struct drps_train_options o = world_options(w);
    struct drps_target target;
    struct drps_err none = DRPS_ERR_INIT, one = DRPS_ERR_INIT;
    struct drps_plan *plan;
    (void)state;
    for (int sync = DRPS_SCHED_BSP; sync <= DRPS_SCHED_WSP_LITERAL; sync++) {
        o.sync = (enum drps_sched_mode)sync;
        drps_err_clear(&none);
        assert_int_equal(find(w, &o, &target, &none), DRPS_E_CONFIG);
        check_says(&none, "no residual slots");
    }
    o.sync = DRPS_SCHED_BSP;
    if (drps_plan_open(drps_io_os(), w->one, &plan, &one) < 0) fail_msg("%s", one.text);
    o.pilot = (struct drps_train_pilot){.on = 1, .of_filters = 1};
    assert_int_equal(drps_train_check(plan, &o, &one), DRPS_E_CONFIG);
    check_says(&one, "filters of traffic are for what goes to other workers");
    drps_plan_close(plan);
    assert_false(path_exists(w->model));
    world_end(w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pilots_are_cut),
        cmocka_unit_test(test_pilots_of_an_epoch),
        cmocka_unit_test(test_the_choice),
        cmocka_unit_test(test_stops_at_once),
        cmocka_unit_test(test_resumed_runs_have_no_pilots),
        cmocka_unit_test(test_checkpoints_stay),
        cmocka_unit_test(test_refusals),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
