/*
 * Filtered gradients in asynchronous rounds, whole runs over inproc: in the order of the plan,
 * filters that hold nothing back give the very model of one worker; lossy ones train, whoever
 * executes the batches; nothing is held back when an epoch's training is over; ranks stop between
 * epochs. Parameters in fewer bits, and copies of them.
 *
 *   test_async_filters [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/world.h"

enum { WORKERS = WORLD_WORKERS, BATCH = 32, SMALL = 4 };

static uint64_t seed = 20240607;

static const enum drps_sched_mode modes[] = {DRPS_SCHED_ASP, DRPS_SCHED_SSP, DRPS_SCHED_WSP,
                                             DRPS_SCHED_WSP_LITERAL};
enum { MODES = sizeof(modes) / sizeof(*modes) };

static const struct drps_push_options exact[] = {{.on = 1}, {.on = 1, .bits = 32, .chance = 1}};
static const struct drps_push_options waiting[] = {
    {.on = 1, .flush = UINT32_MAX},
    {.on = 1, .bits = 8, .top = .1, .flush = UINT32_MAX},
    {.on = 1, .bits = 8, .top = .1, .flush = 2, .whole_bits = 8},
};
static const struct drps_push_options lossy[] = {
    {.on = 1, .bits = 8, .top = .1},
    {.on = 1, .bits = 16, .phi = .05, .decay = 1, .chance = .5},
};

/* What the workers' threads tell, and wait for. */
struct watch {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t turn, steps; /* in order: the batch whose turn it is; steps of an epoch */
    uint64_t done, until; /* the slow worker waits for so many */
    uint64_t begun[WORKERS];
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

/* A batch begins when the one before it in the plan's order is done. */
static void in_order(void *ctx, const struct drps_train_batch *b)
{
    struct watch *watch = ctx;
    pthread_mutex_lock(&watch->lock);
    while (b->moment == DRPS_BATCH_BEGINS &&
           watch->turn % (watch->steps * WORKERS) != b->step * WORKERS + b->share)
        pthread_cond_wait(&watch->changed, &watch->lock);
    watch->turn += b->moment == DRPS_BATCH_DONE;
    pthread_cond_broadcast(&watch->changed);
    pthread_mutex_unlock(&watch->lock);
}

/* The last rank begins its third batch when the others have done what they can meanwhile: it has
 * held back some of its first ones, whose rows' later uses others execute. */
static void last_is_slow(void *ctx, const struct drps_train_batch *b)
{
    struct watch *watch = ctx;
    pthread_mutex_lock(&watch->lock);
    watch->begun[b->rank] += b->moment == DRPS_BATCH_BEGINS;
    watch->done += b->moment == DRPS_BATCH_DONE;
    pthread_cond_broadcast(&watch->changed);
    while (b->moment == DRPS_BATCH_BEGINS && b->rank == WORKERS - 1 && watch->begun[b->rank] == 3 &&
           watch->done < watch->until)
        pthread_cond_wait(&watch->changed, &watch->lock);
    pthread_mutex_unlock(&watch->lock);
}

static uint64_t steps_of(const struct world *w)
{
    struct drps_plan *part;
    assert_int_equal(drps_plan_open_rank(drps_io_os(), w->plan, 0, &part, NULL), 0);
    const uint64_t steps = part->info.batches;
    drps_plan_close(part);
    return steps;
}

static struct drps_push_counts counts_of(const struct drps_train_result *r)
{
    struct drps_push_counts sum = {0};
    for (size_t i = 0; i < r->ranks_n; i++) {
        sum.plain_bytes += r->ranks[i].push.plain_bytes;
        sum.sent_bytes += r->ranks[i].push.sent_bytes;
        sum.left_rows += r->ranks[i].push.left_rows;
        assert_int_equal(r->ranks[i].push.sent_bytes, r->ranks[i].sent[DRPS_TRAFFIC_PUSHED].bytes);
    }
    return sum;
}

/* ---- Filters that hold nothing back ---- */

static void check_exact(const char *algo, enum case_format format, uint64_t batch, uint64_t slots,
                        const char *optimizer, float l2)
{
    const int waits = slots == WORLD_EACH;
    struct world *w = world_begin_residuals(algo, format, batch, slots, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result plain, r;
    struct watch watch;
    o.optimizer = optimizer;
    o.l2 = l2;
    o.lr = 0.01f;
    o.no_claim = 1;
    o.no_overlap = 1;
    o.on_batch = in_order;
    o.ctx = &watch;
    for (size_t m = 0; m < MODES; m++) {
        for (size_t i = 0; i < (waits ? 2 : 3); i++) {
            watch_begin(&watch);
            watch.steps = steps_of(w);
            o.sync = modes[m];
            o.push = !i ? (struct drps_push_options){0} : waits ? waiting[0] : exact[i - 1];
            world_train(w, &o, i ? &r : &plain);
            watch_end(&watch);
            if (!i) continue;
            assert_int_equal(r.content, plain.content);
            assert_true(counts_of(&r).plain_bytes > 0);
            drps_train_result_free(&r);
        }
        drps_train_result_free(&plain);
    }
    world_end(w);
}

static void test_filters_that_hold_nothing_back_change_nothing(void **state)
{
    (void)state;
    check_exact("lor", CASE_LIBSVM, SMALL, 60, "adagrad", 0);
    check_exact("fm", CASE_LIBSVM, BATCH, 60, "adagrad", 0.001f);
    check_exact("lmf", CASE_RATINGS, BATCH, 60, "sgd", 0);
    check_exact("fm", CASE_LIBSVM, BATCH, WORLD_EACH, "adagrad", 0);
    check_exact("net", CASE_LIBFFM, BATCH, UINT64_MAX, "adagrad", 0.001f);
}

static void check_in_order(const char *algo, enum case_format format, uint64_t slots,
                           const struct drps_push_options *push, size_t pushes)
{
    static const char *const stores[] = {"resident", "relay"};
    struct world *w = world_begin_residuals(algo, format, BATCH, slots, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result r;
    struct watch watch;
    o.sync = DRPS_SCHED_SSP;
    o.no_claim = o.no_overlap = 1;
    o.on_batch = in_order;
    o.ctx = &watch;
    for (size_t f = 0; f < pushes; f++) {
        uint64_t content = 0;
        o.push = push[f];
        for (size_t i = 0; i < 2; i++) {
            watch_begin(&watch);
            watch.steps = steps_of(w);
            o.store = stores[i];
            world_train(w, &o, &r);
            if (i) assert_int_equal(r.content, content);
            content = r.content;
            assert_true(counts_of(&r).sent_bytes < counts_of(&r).plain_bytes);
            assert_int_equal(counts_of(&r).left_rows > 0, o.push.whole_bits > 0);
            drps_train_result_free(&r);
            watch_end(&watch);
        }
    }
    world_end(w);
}

/* In order the same is held back in each run, whatever the store. */
static void test_in_order_filters_give_one_model(void **state)
{
    (void)state;
    check_in_order("fm", CASE_LIBSVM, 60, lossy, 2);
    check_in_order("fm", CASE_LIBSVM, WORLD_EACH, waiting + 1, 2);
    check_in_order("net", CASE_LIBFFM, WORLD_EACH, waiting + 1, 2);
}

/* ---- Rows that nobody has trained ---- */

static uint64_t fresh_rows(const struct drps_train_result *r)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < r->ranks_n; i++)
        rows += r->ranks[i].sent[DRPS_TRAFFIC_FRESH].rows;
    return rows;
}

/* In order, what is made and not sent is what would have been sent, to the bit. */
static void check_fresh(const char *algo, enum case_format cs, const char *store)
{
    struct world *w = world_begin_residuals(algo, cs, BATCH, UINT64_MAX, seed);
    struct drps_train_options o = world_options(w);
    struct watch watch;
    o.no_claim = o.no_overlap = 1;
    o.store = store;
    o.on_batch = in_order;
    o.ctx = &watch;
    for (size_t m = 0; m < MODES; m++) {
        struct drps_train_result r;
        uint64_t content = 0;
        o.sync = modes[m];
        for (int fresh = 0; fresh < 2; fresh++) {
            watch_begin(&watch);
            watch.steps = steps_of(w);
            o.no_fresh = !fresh;
            world_train(w, &o, &r);
            watch_end(&watch);
            assert_int_equal(fresh_rows(&r) > 0, fresh);
            if (fresh) assert_int_equal(r.content, content);
            content = r.content;
            drps_train_result_free(&r);
        }
    }
    world_end(w);
}

static void test_fresh_rows_change_nothing(void **state)
{
    (void)state;
    check_fresh("lor", CASE_LIBSVM, "resident");
    check_fresh("fm", CASE_LIBSVM, "relay");
    check_fresh("lmf", CASE_RATINGS, "resident");
}

/* ---- Claims ---- */

/* An epoch ends only when each server has all that was held back of claimed batches. */
static void check_claims(const struct world *w, enum drps_sched_mode mode, const char *store,
                         const struct drps_push_options *push, double loss)
{
    struct drps_train_options o = world_options(w);
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    struct watch watch;
    const uint64_t steps = steps_of(w), windows = 2 * 16;
    watch_begin(&watch);
    watch.until = WORKERS * (steps < windows ? steps : windows) - 1;
    o.sync = mode;
    o.staleness = mode == DRPS_SCHED_ASP ? 0 : 2 * WORKERS * steps; /* it must not bind */
    o.store = store;
    o.push = *push;
    o.on_batch = last_is_slow;
    o.ctx = &watch;
    if (world_run(w, &o, &r, &err) < 0) fail_msg("%s: %s", drps_sched_mode_name(mode), err.text);
    assert_true(r.ranks[0].claimed + r.ranks[1].claimed > 0);
    assert_true(counts_of(&r).sent_bytes < counts_of(&r).plain_bytes);
    assert_int_equal(counts_of(&r).left_rows, 0);
    if (!(fabs(r.epochs[1].test.loss / loss - 1) < .1))
        fail_msg("test loss %g, without filters %g", r.epochs[1].test.loss, loss);
    world_check_model(w, &r);
    drps_train_result_free(&r);
    watch_end(&watch);
}

static void test_batches_that_others_execute(void **state)
{
    static const enum drps_sched_mode claiming[] = {DRPS_SCHED_ASP, DRPS_SCHED_SSP, DRPS_SCHED_WSP};
    struct world *w = world_begin_residuals("fm", CASE_LIBSVM, 8, 60, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result plain;
    (void)state;
    o.sync = DRPS_SCHED_ASP;
    world_train(w, &o, &plain);
    for (size_t m = 0; m < sizeof(claiming) / sizeof(*claiming); m++)
        for (size_t f = 0; f < sizeof(lossy) / sizeof(*lossy); f++)
            check_claims(w, claiming[m], f ? "relay" : "resident", &lossy[f],
                         plain.epochs[1].test.loss);
    world_end(w);
    w = world_begin_residuals("fm", CASE_LIBSVM, 8, WORLD_EACH, seed);
    for (size_t m = 0; m < sizeof(claiming) / sizeof(*claiming); m++)
        check_claims(w, claiming[m], "resident", &waiting[1], plain.epochs[1].test.loss);
    drps_train_result_free(&plain);
    world_end(w);
}

/* ---- Ranks without rows, and without samples ---- */

static void test_unequal_numbers_of_servers_and_workers(void **state)
{
    static const struct world_ranks cases[] = {
        {.workers = 2, .servers = 1, .separate = 1, .ranks = 3},
        {.workers = 3, .servers = 2, .separate = 0, .ranks = 3},
        {.workers = 2, .servers = 3, .separate = 0, .ranks = 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct world *w = world_begin_residuals("lor", CASE_LIBSVM, 8, i ? 40 : WORLD_EACH, seed);
        struct drps_train_options o = world_options(w);
        struct drps_train_result r;
        char from[SCRATCH_PATH_BYTES];
        (void)snprintf(from, sizeof(from), "%s", w->plan);
        world_deal(w, from, &cases[i]);
        o.sync = DRPS_SCHED_SSP;
        o.push = i ? lossy[0] : waiting[1];
        for (int cached = 0; cached < 2; cached++) {
            o.pull_cached = cached;
            world_train(w, &o, &r);
            assert_true(counts_of(&r).sent_bytes < counts_of(&r).plain_bytes);
            world_check_model(w, &r);
            drps_train_result_free(&r);
        }
        world_end(w);
    }
}

/* ---- Parameters in fewer bits ---- */

/* Bytes and rows of parameters that were sent in training: evaluation pulls all rows as they are.
 */
static struct drps_traffic_sum pulled(const struct drps_train_result *r, uint64_t eval_rows,
                                      uint64_t row_bytes)
{
    struct drps_traffic_sum sum = {0, 0};
    for (size_t i = 0; i < r->ranks_n; i++) {
        const struct drps_traffic_sum *sent = r->ranks[i].sent;
        sum.rows += sent[DRPS_TRAFFIC_PULLED].rows + sent[DRPS_TRAFFIC_AHEAD].rows;
        sum.bytes += sent[DRPS_TRAFFIC_PULLED].bytes + sent[DRPS_TRAFFIC_AHEAD].bytes;
    }
    sum.rows -= eval_rows;
    sum.bytes -= eval_rows * row_bytes;
    return sum;
}

static uint64_t eval_rows_of(const struct world *w, uint64_t *row_bytes_out)
{
    uint64_t rows = 0;
    for (uint32_t r = 0; r < WORKERS; r++) {
        struct drps_plan *part;
        assert_int_equal(drps_plan_open_rank(drps_io_os(), w->plan, r, &part, NULL), 0);
        rows += part->info.ranks.eval_served_rows;
        *row_bytes_out = part->info.dim * sizeof(float);
        drps_plan_close(part);
    }
    return rows;
}

static void check_bits(const struct world *w, struct drps_train_options o, double loss)
{
    struct drps_train_result r;
    uint64_t row;
    const uint64_t eval_rows = eval_rows_of(w, &row) * o.epochs;
    o.pull = (struct drps_pull_options){.on = 1, .bits = 16};
    world_train(w, &o, &r);
    const struct drps_traffic_sum sum = pulled(&r, eval_rows, row);
    const uint64_t roots = o.pull_cached ? sum.rows : 0; /* a byte a row, but not of claimed ones */
    assert_true(sum.rows > 0);
    assert_true(sum.bytes >= sum.rows * row / 2 && sum.bytes <= sum.rows * row / 2 + roots);
    if (!(fabs(r.epochs[1].test.loss / loss - 1) < .1))
        fail_msg("test loss %g, with 32 bits %g", r.epochs[1].test.loss, loss);
    drps_train_result_free(&r);
}

static void test_parameters_of_16_bits(void **state)
{
    struct world *w = world_begin_residuals("fm", CASE_LIBSVM, 8, UINT64_MAX, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result plain;
    (void)state;
    o.sync = DRPS_SCHED_SSP;
    o.staleness = 4;
    world_train(w, &o, &plain);
    for (o.no_overlap = 0; o.no_overlap < 2; o.no_overlap++)
        check_bits(w, o, plain.epochs[1].test.loss);
    o.pull_cached = 1;
    check_bits(w, o, plain.epochs[1].test.loss);
    o.push = lossy[0];
    check_bits(w, o, plain.epochs[1].test.loss);
    drps_train_result_free(&plain);
    world_end(w);
}

/* ---- Stopping ---- */

static void stop_after_some(void *ctx, const struct drps_train_batch *b)
{
    struct watch *watch = ctx;
    pthread_mutex_lock(&watch->lock);
    watch->done += b->moment == DRPS_BATCH_DONE;
    if (watch->done == watch->until) atomic_store(&watch->stop, 1);
    pthread_mutex_unlock(&watch->lock);
}

static uint64_t cached_rows(const struct drps_train_result *r)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < r->ranks_n; i++)
        rows += r->ranks[i].sent[DRPS_TRAFFIC_CACHED].rows;
    return rows;
}

/* What is interrupted ends with its epoch, and goes on with its filters, bits and copies. */
static void test_ranks_stop_between_epochs(void **state)
{
    struct world *w = world_begin_residuals("fm", CASE_LIBSVM, 8, 60, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    struct watch watch;
    (void)state;
    watch_begin(&watch);
    watch.until = 5;
    o.epochs = 3;
    o.sync = DRPS_SCHED_SSP;
    o.push = lossy[0];
    o.pull = (struct drps_pull_options){.on = 1, .bits = 16};
    o.pull_cached = 1;
    o.on_batch = stop_after_some;
    o.ctx = &watch;
    o.stop = &watch.stop;
    assert_int_equal(world_run(w, &o, &r, &err), DRPS_E_INTERRUPTED);
    assert_int_equal(r.epochs_n, 1);
    assert_int_equal(r.steps, 0);
    drps_train_result_free(&r);
    o.on_batch = NULL;
    o.stop = NULL;
    o.push = (struct drps_push_options){0};
    o.pull = (struct drps_pull_options){0};
    o.pull_cached = 0;
    o.sync = DRPS_SCHED_BSP; /* the run's own is taken, with all else */
    o.resume = 1;
    world_train(w, &o, &r);
    assert_true(cached_rows(&r) > 0);
    const uint64_t row = (uint64_t)r.model_bytes / r.rows;
    assert_true(r.ranks[0].sent[DRPS_TRAFFIC_PULLED].bytes <
                r.ranks[0].sent[DRPS_TRAFFIC_PULLED].rows * row);
    assert_int_equal(r.resumed_epoch, 2);
    assert_true(r.ranks[0].iterations > 0);
    assert_true(counts_of(&r).sent_bytes < counts_of(&r).plain_bytes);
    drps_train_result_free(&r);
    watch_end(&watch);
    world_end(w);
}

/* ---- Refused ---- */

static void check_refused(const struct world *w, const struct drps_train_options *o,
                          const char *why)
{
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(world_run(w, o, &r, &err), DRPS_E_CONFIG);
    if (!strstr(err.text, why)) fail_msg("%s", err.text);
    assert_false(path_exists(w->model));
    drps_train_result_free(&r);
}

static void test_what_cannot_be_is_refused(void **state)
{
    struct world *w = world_begin_residuals("lor", CASE_LIBSVM, BATCH, UINT64_MAX, seed);
    struct drps_train_options o = world_options(w);
    (void)state;
    o.pull_cached = 1;
    for (size_t m = 0; m < MODES; m++) {
        o.sync = modes[m];
        if (modes[m] != DRPS_SCHED_SSP) check_refused(w, &o, "has none: leave them out");
    }
    o.sync = DRPS_SCHED_BSP;
    check_refused(w, &o, "has none: leave them out");
    o.sync = DRPS_SCHED_SSP;
    o.optimizer = "ftrl";
    check_refused(w, &o, "with another optimizer than sgd and adagrad");
    o = world_options(w);
    o.sync = DRPS_SCHED_ASP;
    o.pull = (struct drps_pull_options){.on = 1, .bits = 8};
    check_refused(w, &o, "8 bits of a value, are of synchronisation bsp");
    o.pull = (struct drps_pull_options){.on = 1, .bits = 16, .eps = 1};
    check_refused(w, &o, "filters of parameters by their change");
    world_end(w);
    w = world_begin_residuals("lor", CASE_LIBSVM, BATCH, 0, seed);
    o = world_options(w);
    o.sync = DRPS_SCHED_SSP;
    o.pull_cached = 1;
    check_refused(w, &o, "residual slots, where copies");
    world_end(w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filters_that_hold_nothing_back_change_nothing),
        cmocka_unit_test(test_in_order_filters_give_one_model),
        cmocka_unit_test(test_fresh_rows_change_nothing),
        cmocka_unit_test(test_batches_that_others_execute),
        cmocka_unit_test(test_unequal_numbers_of_servers_and_workers),
        cmocka_unit_test(test_parameters_of_16_bits),
        cmocka_unit_test(test_ranks_stop_between_epochs),
        cmocka_unit_test(test_what_cannot_be_is_refused),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
