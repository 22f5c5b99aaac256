/*
 * Whole runs of ranks of which some have no rows, and some no samples: under bsp the model of as
 * many workers with a server each, from every store, also when it is broken off and goes on; what
 * asynchronous rounds execute; rows that other ranks begin with.
 *
 *   test_servers [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/drps_timing.h"
#include "support/train_runs.h"
#include "support/world.h"

enum { WORKERS = WORLD_WORKERS, BATCH = 20 };

static uint64_t seed = 20261123;

static const struct world_ranks shapes[] = {
    {WORKERS, 1, 0, WORKERS}, {WORKERS, 2, 0, WORKERS},     {WORKERS, WORKERS, 0, WORKERS},
    {WORKERS, 5, 0, 5},       {WORKERS, 2, 1, WORKERS + 2}, {WORKERS, 4, 1, WORKERS + 4}};
enum { SHAPES = sizeof(shapes) / sizeof(*shapes) };

static struct drps_train_options options(const struct world *w)
{
    struct drps_train_options o = world_options(w);
    o.log = &quiet;
    o.checkpoint_every.unit = DRPS_CHECKPOINT_NEVER;
    o.memory_bytes = UINT64_C(1) << 30; /* of all ranks together */
    return o;
}

/* What the plan says of the links of a rank, together. */
static uint64_t forecast_of_links(const struct drps_train_result *r, size_t rank)
{
    uint64_t sum = 0;
    for (size_t k = 0; k < r->ranks_n; k++)
        sum += r->links.forecast[rank * r->ranks_n + k];
    return sum;
}

/* What some ranks send others receive; in rounds it is what the plan says. */
static void check_traffic(const struct drps_train_result *r, const struct world_ranks *s,
                          int rounds)
{
    uint64_t sent = 0, received = 0;
    assert_int_equal(r->ranks_n, s->ranks);
    for (size_t i = 0; i < r->ranks_n; i++) {
        if (rounds) assert_int_equal(r->ranks[i].sent_bytes, r->ranks[i].forecast_sent_bytes);
        if (rounds)
            assert_int_equal(r->ranks[i].received_bytes, r->ranks[i].forecast_received_bytes);
        assert_int_equal(forecast_of_links(r, i), r->ranks[i].forecast_sent_bytes);
        sent += r->ranks[i].sent_bytes;
        received += r->ranks[i].received_bytes;
    }
    assert_int_equal(sent, received);
}

/* ---- The same model ---- */

static void check_models(const char *algo, enum case_format format)
{
    static const char *const stores[] = {"resident", "relay", "file"};
    struct world *w = world_begin(algo, format, BATCH, WORKERS * BATCH, seed);
    struct drps_train_options o = options(w);
    struct drps_train_result want, r;
    char from[SCRATCH_PATH_BYTES];
    (void)snprintf(from, sizeof(from), "%s", w->plan);
    world_train(w, &o, &want);
    for (size_t k = 0; k < SHAPES; k++) {
        world_deal(w, from, &shapes[k]);
        for (size_t s = 0; s < 3; s++) {
            o.store = stores[s];
            o.no_overlap = (int)((k + s) % 2);
            o.no_fresh = (int)((k + s) / 2 % 2); /* the plan does not know of fresh rows */
            world_train(w, &o, &r);
            train_check_same(&r, &want, stores[s], (long)k);
            check_traffic(&r, &shapes[k], o.no_fresh);
            world_check_model(w, &r);
            drps_train_result_free(&r);
        }
    }
    drps_train_result_free(&want);
    world_end(w);
}

static void test_the_model_does_not_depend_on_the_servers(void **state)
{
    (void)state;
    check_models("lor", CASE_LIBSVM);
    check_models("fm", CASE_LIBSVM);
    check_models("lmf", CASE_RATINGS);
}

/* One worker with several servers trains as alone. */
static void test_one_worker_with_servers(void **state)
{
    static const struct world_ranks of_one[] = {{1, 3, 0, 3}, {1, 2, 1, 3}, {1, 1, 1, 2}};
    static const enum drps_sched_mode modes[] = {DRPS_SCHED_BSP, DRPS_SCHED_ASP, DRPS_SCHED_WSP};
    struct world *w = world_begin("fm", CASE_LIBSVM, BATCH, BATCH, seed);
    struct drps_train_options o = options(w);
    struct drps_train_result want, r;
    (void)state;
    world_run_one(w, &o, &want);
    for (size_t k = 0; k < 3; k++) {
        world_deal(w, w->one, &of_one[k]);
        for (size_t m = 0; m < 3; m++) {
            o.sync = modes[m];
            o.store = m == 1 ? "relay" : "resident";
            world_train(w, &o, &r);
            train_check_same(&r, &want, "one worker", (long)(10 * k + m));
            drps_train_result_free(&r);
        }
    }
    drps_train_result_free(&want);
    world_end(w);
}

/* ---- Homes of rows ---- */

/* Rows with homes: plans are whole and train, and the links of those that hold rows are even,
 * unless some hold as many rows as they may and pull none. */
static void test_homes_among_servers(void **state)
{
    static const struct world_ranks some[] = {
        {WORKERS, 2, 0, WORKERS}, {WORKERS, 5, 0, 5}, {WORKERS, 2, 1, WORKERS + 2}};
    static const char *const samples[] = {"dealt", "placed"};
    (void)state;
    for (size_t k = 0; k < 6; k++) {
        const struct world_ranks *s = &some[k / 2];
        struct world *w = world_begin_sized("lor", CASE_LIBSVM, 2000, 3000, BATCH, BATCH, seed);
        struct drps_train_options o = options(w);
        o.no_fresh = 1; /* the plan does not know of fresh rows */
        struct drps_train_result r;
        struct case_run run;
        case_begin(&run, &w->scratch, case_input(&w->scratch, "in", CASE_LIBSVM, 2000, 3000, seed),
                   "lor");
        (void)snprintf(run.out, sizeof(run.out), "%s", w->plan);
        run.options.workers = s->workers;
        run.options.servers = s->servers;
        run.options.separate = s->separate;
        run.options.batch_size = BATCH;
        run.options.partition = "auto";
        run.options.samples = samples[k % 2];
        run.options.force = 1;
        case_compile(&run);
        case_verify(w->plan);
        double sum = 0, most = 0;
        for (uint32_t m = 0; m < s->servers; m++) {
            const struct drps_index_rank *rank = &run.result.ranks[m];
            const double link = (double)(rank->pulled_rows + rank->served_rows);
            sum += link;
            most = link > most ? link : most;
        }
        if (most > 1.05 * sum / s->servers && s->servers <= WORKERS)
            fail_msg("case %zu: a link of %g times the average", k, most * s->servers / sum);
        w->workers = s->ranks;
        world_train(w, &o, &r);
        check_traffic(&r, s, 1);
        drps_train_result_free(&r);
        world_end(w);
    }
}

/* ---- Broken off ---- */

static void stop_and_go_on(const struct world *w, struct drps_train_options o, uint32_t rank,
                           long batches, const struct drps_train_result *want)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    struct stopper s = {.rank = rank, .left = batches};
    stop_by(&o, &s);
    const int rc = world_run(w, &o, &r, &err);
    drps_train_result_free(&r);
    if (rc != DRPS_E_INTERRUPTED) fail_msg("rank %u stops: %s", rank, err.text);
    stop_by_nobody(&o);
    o.resume = 1;
    world_train(w, &o, &r);
    assert_true(r.resumed_epoch > 0);
    train_check_same(&r, want, "gone on", rank);
    drps_train_result_free(&r);
}

/* Checkpoints by any rank's wish, and a stop in the second epoch. Every store goes on from the
 * checkpoints of the one before. */
static void test_they_go_on_where_they_were(void **state)
{
    static const char *const stores[] = {"resident", "relay", "file"};
    struct world *w = world_begin("fm", CASE_LIBSVM, BATCH, WORKERS * BATCH, seed);
    struct drps_train_options o = options(w);
    struct drps_train_result want;
    char from[SCRATCH_PATH_BYTES];
    (void)state;
    (void)snprintf(from, sizeof(from), "%s", w->plan);
    world_train(w, &o, &want);
    o.checkpoint_every = (struct drps_checkpoint_every){DRPS_CHECKPOINT_BATCHES, 4};
    o.checkpoint_part_bytes = 256;
    for (size_t k = 0; k < SHAPES; k++) {
        world_deal(w, from, &shapes[k]);
        for (uint32_t rank = 0; rank < shapes[k].ranks; rank++) {
            o.store = stores[rank % 3];
            stop_and_go_on(w, o, rank, 14 + (long)rank, &want);
        }
    }
    drps_train_result_free(&want);
    world_end(w);
}

/* Other ranks begin with all rows that these have left. */
static void test_others_begin_with_their_rows(void **state)
{
    struct world *w = world_begin("fm", CASE_LIBSVM, BATCH, WORKERS * BATCH, seed);
    struct drps_train_options o = options(w);
    struct drps_train_result r;
    char from[SCRATCH_PATH_BYTES], kept[SCRATCH_PATH_BYTES];
    (void)state;
    (void)snprintf(from, sizeof(from), "%s", w->plan);
    for (size_t k = 0; k < SHAPES; k++) {
        world_deal(w, from, &shapes[k]);
        o.from = NULL;
        o.keep_checkpoints = 1;
        world_train(w, &o, &r);
        drps_train_result_free(&r);
        (void)snprintf(kept, sizeof(kept), "%s", scratch_path(&w->scratch, "kept"));
        assert_int_equal(rename(scratch_path(&w->scratch, "model.checkpoint"), kept), 0);
        world_deal(w, w->plan, &shapes[(k + 1) % SHAPES]);
        o.from = kept;
        o.keep_checkpoints = 0;
        world_train(w, &o, &r);
        assert_true(r.from.rows == r.from.all && r.from.all > 100 && r.from.state);
        drps_train_result_free(&r);
        train_remove(kept);
    }
    world_end(w);
}

/* ---- Asynchronous rounds ---- */

/* All batches are executed, by workers alone; and some asked for ahead, by these from servers. */
static void check_executed(const struct drps_train_result *r, const struct world_ranks *s,
                           uint64_t batches, int ahead)
{
    uint64_t sum = 0, asked = 0;
    const uint32_t first = s->separate ? s->servers : 0;
    for (uint32_t k = 0; k < s->ranks; k++) {
        const int trains = k >= first && k < first + s->workers;
        sum += r->ranks[k].iterations;
        asked += r->ranks[k].ahead_asked;
        if (!trains) assert_int_equal(r->ranks[k].iterations, 0);
        if (!trains) assert_int_equal(r->ranks[k].ahead_asked, 0);
        if (k >= s->servers) assert_int_equal(r->ranks[k].sent[DRPS_TRAFFIC_AHEAD].rows, 0);
    }
    assert_int_equal(sum, batches);
    assert_int_equal(asked > 0, ahead);
}

static void test_asynchronous_rounds(void **state)
{
    static const enum drps_sched_mode modes[] = {DRPS_SCHED_ASP, DRPS_SCHED_SSP, DRPS_SCHED_WSP};
    static const char *const stores[] = {"resident", "relay", "file"};
    struct world *w = world_begin("lor", CASE_LIBSVM, BATCH, WORKERS * BATCH, seed);
    struct drps_train_options o = options(w);
    char from[SCRATCH_PATH_BYTES];
    struct drps_plan *plan;
    (void)state;
    (void)snprintf(from, sizeof(from), "%s", w->plan);
    assert_int_equal(drps_plan_open(drps_io_os(), from, &plan, NULL), 0);
    const uint64_t batches = o.epochs * plan->info.batches * WORKERS;
    drps_plan_close(plan);
    for (size_t k = 0; k < SHAPES; k++) {
        world_deal(w, from, &shapes[k]);
        for (size_t m = 0; m < 6; m++) {
            struct drps_train_result r;
            o.sync = modes[m % 3];
            o.store = stores[(k + m) % 3];
            o.no_overlap = m / 3 == 1;
            world_train(w, &o, &r);
            check_executed(&r, &shapes[k], batches, !o.no_overlap);
            check_traffic(&r, &shapes[k], 0);
            world_check_model(w, &r);
            drps_train_result_free(&r);
        }
    }
    world_end(w);
}

/* Workers are slowed down by their own numbers, and ranks without samples not at all. */
static void test_emulated_workers(void **state)
{
    static const struct world_ranks apart = {WORKERS, 2, 1, WORKERS + 2};
    struct world *w = world_begin("lor", CASE_LIBSVM, BATCH, WORKERS * BATCH, seed);
    struct drps_train_options o = options(w);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_timing *timing;
    struct drps_train_result r;
    char from[SCRATCH_PATH_BYTES];
    uint64_t iterations = 0, ns = 0;
    (void)state;
    (void)snprintf(from, sizeof(from), "%s", w->plan);
    if (drps_timing_open(drps_io_os(), "straggler:0.001", &timing, &err) < 0)
        fail_msg("%s", err.text);
    world_deal(w, from, &apart);
    o.emulate = timing;
    world_train(w, &o, &r);
    for (uint32_t k = 0; k < apart.ranks; k++) {
        if (k < apart.servers) assert_int_equal(r.ranks[k].emulated.iterations, 0);
        for (uint64_t i = 0; i < r.ranks[k].emulated.iterations; i++)
            ns += drps_timing_ns(timing, k - apart.servers, i);
        iterations += r.ranks[k].emulated.iterations;
    }
    assert_true(iterations > 0);
    assert_int_equal(r.emulated.iterations, iterations);
    assert_int_equal(r.emulated.emulated_ns, ns);
    drps_train_result_free(&r);
    drps_timing_close(timing);
    world_end(w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_model_does_not_depend_on_the_servers),
        cmocka_unit_test(test_one_worker_with_servers),
        cmocka_unit_test(test_homes_among_servers),
        cmocka_unit_test(test_they_go_on_where_they_were),
        cmocka_unit_test(test_others_begin_with_their_rows),
        cmocka_unit_test(test_asynchronous_rounds),
        cmocka_unit_test(test_emulated_workers),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
