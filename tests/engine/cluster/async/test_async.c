/*
 * Asynchronous rounds, whole runs over inproc: every batch is executed once; in the order of the
 * plan they give the very model of one worker; losses like bulk synchronous ones; a slow worker's
 * batches are claimed; stopping; ranks that fail.
 *
 *   test_async [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/kv/drps_kv.h"
#include "support/world.h"

enum { WORKERS = WORLD_WORKERS, BATCH = 32, SMALL = 4, STEPS_MAX = 512 };

static uint64_t seed = 20240607;

static const enum drps_sched_mode modes[] = {DRPS_SCHED_ASP, DRPS_SCHED_SSP, DRPS_SCHED_WSP,
                                             DRPS_SCHED_WSP_LITERAL};
enum { MODES = sizeof(modes) / sizeof(*modes) };

/* What the workers' threads tell, and wait for. */
struct watch {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t executed[WORKERS][STEPS_MAX]; /* by share and step */
    uint64_t by[WORKERS];                  /* by the worker that did */
    uint64_t done, begun[WORKERS];
    uint64_t turn;  /* in order: the batch whose turn it is */
    uint64_t steps; /* of an epoch */
    uint64_t until; /* the slow worker waits for so many */
    uint64_t stop_after;
    atomic_int stop;
};

static void watch_begin(struct watch *watch)
{
    memset(watch, 0, sizeof(*watch));
    pthread_mutex_init(&watch->lock, NULL);
    pthread_cond_init(&watch->changed, NULL);
}

static void watch_end(struct watch *watch)
{
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->lock);
}

static void count_batch(struct watch *watch, const struct drps_train_batch *b)
{
    if (b->moment == DRPS_BATCH_DONE) {
        watch->executed[b->share][b->step % STEPS_MAX]++;
        watch->by[b->rank]++;
        watch->done++;
        if (watch->stop_after && watch->done == watch->stop_after) atomic_store(&watch->stop, 1);
    } else if (b->moment == DRPS_BATCH_BEGINS) {
        watch->begun[b->rank]++;
    }
    pthread_cond_broadcast(&watch->changed);
}

static void just_count(void *ctx, const struct drps_train_batch *b)
{
    struct watch *watch = ctx;
    pthread_mutex_lock(&watch->lock);
    count_batch(watch, b);
    pthread_mutex_unlock(&watch->lock);
}

/* A batch begins when the one before it in the plan's order is done, and the scheduler knows: so
 * whom it has a worker wait for is at a batch that comes before that worker's next one. */
static void in_order(void *ctx, const struct drps_train_batch *b)
{
    struct watch *watch = ctx;
    pthread_mutex_lock(&watch->lock);
    while (b->moment == DRPS_BATCH_BEGINS &&
           watch->turn % (watch->steps * WORKERS) != b->step * WORKERS + b->share)
        pthread_cond_wait(&watch->changed, &watch->lock);
    count_batch(watch, b);
    watch->turn += b->moment == DRPS_BATCH_DONE;
    pthread_mutex_unlock(&watch->lock);
}

/* The last rank begins its second batch when the others have done all the rest. */
static void last_is_slow(void *ctx, const struct drps_train_batch *b)
{
    struct watch *watch = ctx;
    pthread_mutex_lock(&watch->lock);
    count_batch(watch, b);
    while (b->moment == DRPS_BATCH_BEGINS && b->rank == WORKERS - 1 && watch->begun[b->rank] == 2 &&
           watch->done < watch->until)
        pthread_cond_wait(&watch->changed, &watch->lock);
    pthread_mutex_unlock(&watch->lock);
}

static uint64_t steps_of(const struct world *w)
{
    struct drps_plan *part;
    assert_int_equal(drps_plan_open_rank(drps_io_os(), w->plan, 0, &part, NULL), 0);
    const uint64_t steps = part->info.batches;
    assert_true(steps <= STEPS_MAX);
    drps_plan_close(part);
    return steps;
}

static const char *name_of(enum drps_sched_mode mode)
{
    return drps_sched_mode_name(mode);
}

/* ---- Results ---- */

static void check_once(const struct watch *watch, uint64_t steps, uint64_t epochs)
{
    for (unsigned i = 0; i < WORKERS; i++)
        for (uint64_t t = 0; t < STEPS_MAX; t++)
            if (watch->executed[i][t] != (t < steps ? epochs : 0))
                fail_msg("batch %llu of share %u was executed %llu times in %llu epochs",
                         (unsigned long long)t, i, (unsigned long long)watch->executed[i][t],
                         (unsigned long long)epochs);
}

static void check_counters(const struct watch *watch, const struct drps_train_result *r, int claims)
{
    uint64_t claimed = 0;
    assert_int_equal(r->ranks_n, WORKERS);
    for (size_t i = 0; i < WORKERS; i++) {
        assert_int_equal(r->ranks[i].iterations, watch->by[i]);
        assert_true(r->ranks[i].lag_mean >= 0);
        assert_true(r->ranks[i].lag_mean <= (double)r->ranks[i].lag_max);
        claimed += r->ranks[i].claimed;
        uint64_t stale = 0;
        for (size_t b = 0; b < DRPS_SCHED_STALE_BINS; b++)
            stale += r->ranks[i].stale[b];
        assert_int_equal(stale, r->ranks[i].iterations);
        assert_true(r->ranks[i].stale_mean <= (double)r->ranks[i].stale_max);
    }
    if (!claims) assert_int_equal(claimed, 0);
}

/* Stale gradients learn nearly what fresh ones do, and smaller steps learn more an epoch. */
static void check_like(const struct drps_train_result *r, const struct drps_train_result *bsp)
{
    assert_int_equal(r->epochs_n, bsp->epochs_n);
    for (size_t e = 0; e < r->epochs_n; e++) {
        assert_int_equal(r->epochs[e].test.samples, bsp->epochs[e].test.samples);
        assert_true(isfinite(r->epochs[e].train_loss));
    }
    const double a = r->epochs[r->epochs_n - 1].train_loss;
    const double b = bsp->epochs[bsp->epochs_n - 1].train_loss;
    if (!(a <= 1.05 * b)) fail_msg("train loss %g, bulk synchronous %g", a, b);
}

static void check_mode(const struct world *w, enum drps_sched_mode mode, int no_claim,
                       const struct drps_train_result *bsp)
{
    struct drps_train_options o = world_options(w);
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    struct watch watch;
    watch_begin(&watch);
    o.sync = mode;
    o.no_claim = no_claim;
    o.on_batch = just_count;
    o.ctx = &watch;
    if (world_run(w, &o, &r, &err) < 0) fail_msg("%s: %s", name_of(mode), err.text);
    check_once(&watch, steps_of(w), 2);
    check_counters(&watch, &r, !no_claim);
    check_like(&r, bsp);
    world_check_model(w, &r);
    drps_train_result_free(&r);
    watch_end(&watch);
}

static void test_every_batch_is_executed_once(void **state)
{
    (void)state;
    struct world *w = world_begin("lor", CASE_LIBSVM, SMALL, BATCH, seed); /* several windows */
    struct drps_train_options o = world_options(w);
    struct drps_train_result bsp;
    struct watch watch;
    watch_begin(&watch);
    o.on_batch = just_count;
    o.ctx = &watch;
    world_train(w, &o, &bsp);
    check_once(&watch, steps_of(w), 2);
    watch_end(&watch);
    for (size_t m = 0; m < MODES; m++)
        for (int no_claim = 0; no_claim < 2; no_claim++)
            check_mode(w, modes[m], no_claim, &bsp);
    drps_train_result_free(&bsp);
    world_end(w);
}

/* ---- In the order of the plan ---- */

static void check_in_order(const struct world *w, struct drps_train_options o,
                           enum drps_sched_mode mode, uint64_t content)
{
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    struct watch watch;
    watch_begin(&watch);
    watch.steps = steps_of(w);
    o.sync = mode;
    o.no_claim = 1;
    o.no_overlap = 1;
    o.on_batch = in_order;
    o.ctx = &watch;
    if (world_run(w, &o, &r, &err) < 0) fail_msg("%s: %s", name_of(mode), err.text);
    check_once(&watch, watch.steps, 2);
    if (r.content != content)
        fail_msg("%s gives %llx, one worker %llx", name_of(mode), (unsigned long long)r.content,
                 (unsigned long long)content);
    drps_train_result_free(&r);
    watch_end(&watch);
}

static void check_case(const char *algo, enum case_format format, uint64_t batch,
                       const char *optimizer, float l2)
{
    struct world *w = world_begin(algo, format, batch, batch, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result one;
    o.optimizer = optimizer;
    o.l2 = l2;
    o.lr = 0.01f;
    world_run_one(w, &o, &one);
    for (size_t m = 0; m < MODES; m++)
        check_in_order(w, o, modes[m], one.content);
    drps_train_result_free(&one);
    world_end(w);
}

/* Batch k is worker k mod N's in step k / N, so the plan for one worker has the same batches. */
static void test_in_order_they_give_the_model_of_one_worker(void **state)
{
    (void)state;
    check_case("lor", CASE_LIBSVM, SMALL, "adagrad", 0);
    check_case("fm", CASE_LIBSVM, BATCH, "ftrl", 0.01f);
    check_case("lmf", CASE_RATINGS, BATCH, "sgd", 0.001f);
    check_case("fm", CASE_LIBSVM, BATCH, "adam", 0.01f);
}

/* ---- Stores on disk ---- */

static void check_modes(const struct world *w, struct drps_train_options o, uint64_t least_steps)
{
    for (size_t m = 0; m < MODES; m++) {
        struct drps_train_result r;
        struct drps_err err = DRPS_ERR_INIT;
        struct watch watch;
        watch_begin(&watch);
        o.sync = modes[m];
        o.on_batch = just_count;
        o.ctx = &watch;
        if (world_run(w, &o, &r, &err) < 0)
            fail_msg("%s, %s: %s", o.store, name_of(modes[m]), err.text);
        assert_string_equal(r.store, o.store);
        if (strcmp(o.store, "relay") == 0) assert_true(r.windows_n > 2);
        assert_in_range(r.claim_steps, least_steps, 16);
        check_once(&watch, steps_of(w), 2);
        world_check_model(w, &r);
        drps_train_result_free(&r);
        watch_end(&watch);
    }
}

/* Stores train in as little memory as they take, and in some more, which makes windows longer. */
static void check_store(const struct world *w, const char *store, uint64_t content)
{
    struct drps_train_options o = world_options(w);
    o.lr = 0.01f;
    o.store = store;
    o.sync = DRPS_SCHED_SSP;
    const uint64_t least = world_least_memory(w, &o);
    for (uint64_t steps = 1; steps <= 2; steps++) {
        o.memory_bytes = least + (steps - 1) * WORKERS * 128 * 1024;
        check_in_order(w, o, DRPS_SCHED_SSP, content);
        check_modes(w, o, steps);
    }
    o.memory_bytes = least;
    o.seek_bytes = 1 << 20; /* the least is enough on any disk */
    check_in_order(w, o, DRPS_SCHED_SSP, content);
}

static void test_stores_on_disk(void **state)
{
    struct world *w = world_begin_sized("fm", CASE_LIBSVM, 6000, 100000, 8, 8, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result one;
    (void)state;
    o.lr = 0.01f;
    world_run_one(w, &o, &one);
    check_store(w, "relay", one.content);
    for (size_t i = 0; drps_kv_engines()[i]; i++)
        check_store(w, drps_kv_engines()[i]->name, one.content);
    drps_train_result_free(&one);
    world_end(w);
}

/* ---- Claims ---- */

static void check_claims(enum drps_sched_mode mode)
{
    struct world *w = world_begin("lor", CASE_LIBSVM, BATCH, BATCH, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    struct watch watch;
    const uint64_t steps = steps_of(w);
    watch_begin(&watch);
    watch.until = WORKERS * steps - 1;
    o.epochs = 1;
    o.sync = mode;
    o.staleness = mode == DRPS_SCHED_ASP ? 0 : WORKERS * steps; /* it must not bind */
    o.on_batch = last_is_slow;
    o.ctx = &watch;
    if (world_run(w, &o, &r, &err) < 0) fail_msg("%s: %s", name_of(mode), err.text);
    check_once(&watch, steps, 1);
    check_counters(&watch, &r, 1);
    /* two unless it comes so late that others have claimed them */
    const uint64_t slow = r.ranks[WORKERS - 1].iterations;
    assert_true(slow <= 2);
    assert_int_equal(r.ranks[0].iterations + r.ranks[1].iterations, WORKERS * steps - slow);
    assert_true(r.ranks[0].claimed + r.ranks[1].claimed >= steps - 2);
    drps_train_result_free(&r);
    watch_end(&watch);
    world_end(w);
}

static void test_a_slow_workers_batches_are_claimed(void **state)
{
    (void)state;
    check_claims(DRPS_SCHED_ASP);
    check_claims(DRPS_SCHED_SSP);
    check_claims(DRPS_SCHED_WSP);
}

/* ---- Ending early ---- */

static void test_stopping_keeps_the_model_so_far(void **state)
{
    (void)state;
    struct world *w = world_begin("lor", CASE_LIBSVM, SMALL, BATCH, seed);
    const uint64_t steps = steps_of(w);
    for (size_t m = 0; m < MODES; m++) {
        struct drps_train_options o = world_options(w);
        struct drps_train_result r;
        struct drps_err err = DRPS_ERR_INIT;
        struct watch watch;
        watch_begin(&watch);
        o.epochs = 50;
        o.sync = modes[m];
        o.on_batch = just_count;
        o.ctx = &watch;
        o.stop = &watch.stop;
        watch.stop_after = WORKERS * steps + 17; /* in the second epoch */
        assert_int_equal(world_run(w, &o, &r, &err), DRPS_E_INTERRUPTED);
        assert_true(r.interrupted);
        assert_int_equal(r.epochs_n, 1);
        assert_int_equal(r.steps, (watch.done - WORKERS * steps + WORKERS - 1) / WORKERS);
        assert_true(watch.done < watch.stop_after + 2 * WORKERS);
        world_check_model(w, &r);
        drps_train_result_free(&r);
        watch_end(&watch);
    }
    world_end(w);
}

/* Batches are handed out from the beginning of an epoch: what was stopped in its middle, in rounds,
 * goes on in rounds. */
static void test_the_middle_of_an_epoch_is_refused(void **state)
{
    struct world *w = world_begin("lor", CASE_LIBSVM, SMALL, BATCH, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    struct watch watch;
    (void)state;
    watch_begin(&watch);
    o.on_batch = just_count;
    o.ctx = &watch;
    o.stop = &watch.stop;
    watch.stop_after = 2 * WORKERS;
    assert_int_equal(world_run(w, &o, &r, &err), DRPS_E_INTERRUPTED);
    assert_true(r.steps > 0 && r.steps < steps_of(w));
    drps_train_result_free(&r);
    watch_end(&watch);
    for (size_t m = 0; m < MODES; m++) {
        o = world_options(w);
        o.resume = 1;
        o.sync = modes[m];
        err = (struct drps_err)DRPS_ERR_INIT;
        const int rc = world_run(w, &o, &r, &err);
        assert_true(rc == DRPS_E_CONFIG || rc == DRPS_E_PEER_FAILED);
        if (!strstr(err.text, "inside an epoch")) fail_msg("%s", err.text);
        drps_train_result_free(&r);
    }
    o.sync = DRPS_SCHED_BSP;
    world_train(w, &o, &r);
    assert_int_equal(r.resumed_epoch, 1);
    drps_train_result_free(&r);
    world_end(w);
}

static void test_a_rank_that_fails_ends_all(void **state)
{
    static const char *const files[] = {"data.rec", "rows.rec", "shares.rec", "positions.rec"};
    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        struct world *w = world_begin("lor", CASE_LIBSVM, BATCH, BATCH, seed);
        world_damage(w, files[i]);
        for (size_t m = 0; m < MODES; m++) {
            struct drps_train_options o = world_options(w);
            struct drps_train_result r;
            struct drps_err err = DRPS_ERR_INIT;
            o.sync = modes[m];
            const int rc = world_run(w, &o, &r, &err);
            assert_true(rc == DRPS_E_PEER_FAILED || rc == DRPS_E_CORRUPT);
            if (!strstr(err.text, files[i])) fail_msg("%s is damaged: %s", files[i], err.text);
            if (!strstr(err.text, "rank 1") && !strstr(err.text, "rank-1"))
                fail_msg("rank 1 is not named: %s", err.text);
            assert_false(path_exists(w->model));
            drps_train_result_free(&r);
        }
        world_end(w);
    }
}

static void test_a_loss_without_end_ends_all(void **state)
{
    struct world *w = world_begin("lmf", CASE_RATINGS, BATCH, BATCH, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    o.sync = DRPS_SCHED_ASP;
    o.optimizer = "sgd";
    o.lr = 1e6f;
    o.epochs = 20;
    const int rc = world_run(w, &o, &r, &err);
    assert_true(rc == DRPS_E_PEER_FAILED || rc == -ERANGE);
    assert_non_null(strstr(err.text, "try a smaller learning rate"));
    assert_false(path_exists(w->model));
    drps_train_result_free(&r);
    world_end(w);
}

static void test_options_that_do_not_fit_are_refused(void **state)
{
    static const struct {
        enum drps_sched_mode sync;
        uint64_t staleness;
        int no_claim;
        const char *text;
    } bad[] = {
        {DRPS_SCHED_ASP, 2, 0, "a staleness of 2 bounds"},
        {DRPS_SCHED_BSP, 2, 0, "a staleness of 2 bounds"},
        {DRPS_SCHED_BSP, 0, 1, "nobody claims batches"},
    };
    struct world *w = world_begin("lor", CASE_LIBSVM, BATCH, BATCH, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result r;
    struct drps_plan *one;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        o.sync = bad[i].sync;
        o.staleness = bad[i].staleness;
        o.no_claim = bad[i].no_claim;
        const int rc = world_run(w, &o, &r, &err);
        assert_true(rc == DRPS_E_CONFIG || rc == DRPS_E_PEER_FAILED);
        if (!strstr(err.text, bad[i].text)) fail_msg("%s: %s", bad[i].text, err.text);
        drps_train_result_free(&r);
    }
    struct drps_err err = DRPS_ERR_INIT;
    o = world_options(w);
    o.sync = DRPS_SCHED_SSP;
    assert_int_equal(drps_plan_open(drps_io_os(), w->one, &one, NULL), 0);
    assert_int_equal(drps_train_run(one, &o, &r, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "synchronisation ssp is of several workers"));
    drps_train_result_free(&r);
    drps_plan_close(one);
    assert_false(path_exists(w->model));
    world_end(w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_batch_is_executed_once),
        cmocka_unit_test(test_in_order_they_give_the_model_of_one_worker),
        cmocka_unit_test(test_stores_on_disk),
        cmocka_unit_test(test_a_slow_workers_batches_are_claimed),
        cmocka_unit_test(test_stopping_keeps_the_model_so_far),
        cmocka_unit_test(test_the_middle_of_an_epoch_is_refused),
        cmocka_unit_test(test_a_rank_that_fails_ends_all),
        cmocka_unit_test(test_a_loss_without_end_ends_all),
        cmocka_unit_test(test_options_that_do_not_fit_are_refused),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
