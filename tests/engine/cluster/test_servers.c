/*
 * Whole runs of ranks of which some have no rows, and some no samples: under bsp the model of as
 * many workers with a server each, from every store, also when it is broken off and goes on; what
 * asynchronous rounds execute; rows that other ranks begin with; the plans' own checks.
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

#include "base/record/drps_recfile.h"
#include "engine/step/drps_feed.h"
#include "index/plan/codec/drps_list.h"
#include "index/verify/drps_verify.h"
#include "sched/drps_timing.h"
#include "support/train_runs.h"
#include "support/world.h"

enum { WORKERS = WORLD_WORKERS, BATCH = 20 };

static uint64_t seed = 20261123;

struct shape {
    uint32_t workers, servers;
    int separate;
    uint32_t ranks;
};
static const struct shape shapes[] = {{WORKERS, 1, 0, WORKERS},       {WORKERS, 2, 0, WORKERS},
                                      {WORKERS, WORKERS, 0, WORKERS}, {WORKERS, 5, 0, 5},
                                      {WORKERS, 2, 1, WORKERS + 2},   {WORKERS, 4, 1, WORKERS + 4}};
enum { SHAPES = sizeof(shapes) / sizeof(*shapes) };

/* Deal a plan's batches to these ranks; all of what was made is checked. Returns the new plan's
 * folder, valid as scratch_path()'s. */
static const char *deal(struct world *w, const char *from, const struct shape *s)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_index_result *r = malloc(sizeof(*r));
    char out[SCRATCH_PATH_BYTES], name[64];
    (void)snprintf(name, sizeof(name), "%u-%u-%d", s->workers, s->servers, s->separate);
    (void)snprintf(out, sizeof(out), "%s", scratch_path(&w->scratch, name));
    const struct drps_index_options o = {.from_plan = from,
                                         .workers = s->workers,
                                         .servers = s->servers,
                                         .separate = s->separate,
                                         .memory_bytes = 64 << 20,
                                         .out = out,
                                         .force = 1,
                                         .log = &quiet};
    if (drps_index_run(drps_io_os(), &o, r, &err) < 0) fail_msg("%s: %s", name, err.text);
    assert_int_equal(r->info.ranks.count, s->ranks);
    for (uint32_t k = 0; k < s->ranks; k++)
        assert_int_equal(r->ranks[k].rows > 0, k < s->servers);
    case_verify(out);
    free(r);
    return scratch_path(&w->scratch, name);
}

/* Make the world that of a shape. */
static void turn_to(struct world *w, const char *from, const struct shape *s)
{
    char plan[SCRATCH_PATH_BYTES];
    (void)snprintf(plan, sizeof(plan), "%s", deal(w, from, s));
    (void)snprintf(w->plan, sizeof(w->plan), "%s", plan);
    w->workers = s->ranks;
}

static struct drps_train_options options(const struct world *w)
{
    struct drps_train_options o = world_options(w);
    o.log = &quiet;
    o.checkpoint_every.unit = DRPS_CHECKPOINT_NEVER;
    o.memory_bytes = UINT64_C(1) << 30; /* of all ranks together */
    return o;
}

/* What some ranks send others receive; in rounds it is what the plan says. */
static void check_traffic(const struct drps_train_result *r, const struct shape *s, int rounds)
{
    uint64_t sent = 0, received = 0;
    assert_int_equal(r->ranks_n, s->ranks);
    for (size_t i = 0; i < r->ranks_n; i++) {
        if (rounds) assert_int_equal(r->ranks[i].sent_bytes, r->ranks[i].forecast_sent_bytes);
        if (rounds)
            assert_int_equal(r->ranks[i].received_bytes, r->ranks[i].forecast_received_bytes);
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
        turn_to(w, from, &shapes[k]);
        for (size_t s = 0; s < 3; s++) {
            o.store = stores[s];
            o.no_overlap = (int)((k + s) % 2);
            world_train(w, &o, &r);
            train_check_same(&r, &want, stores[s], (long)k);
            check_traffic(&r, &shapes[k], 1);
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
    static const struct shape of_one[] = {{1, 3, 0, 3}, {1, 2, 1, 3}, {1, 1, 1, 2}};
    static const enum drps_sched_mode modes[] = {DRPS_SCHED_BSP, DRPS_SCHED_ASP, DRPS_SCHED_WSP};
    struct world *w = world_begin("fm", CASE_LIBSVM, BATCH, BATCH, seed);
    struct drps_train_options o = options(w);
    struct drps_train_result want, r;
    (void)state;
    world_run_one(w, &o, &want);
    for (size_t k = 0; k < 3; k++) {
        turn_to(w, w->one, &of_one[k]);
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
    static const struct shape some[] = {
        {WORKERS, 2, 0, WORKERS}, {WORKERS, 5, 0, 5}, {WORKERS, 2, 1, WORKERS + 2}};
    static const char *const samples[] = {"dealt", "placed"};
    (void)state;
    for (size_t k = 0; k < 6; k++) {
        const struct shape *s = &some[k / 2];
        struct world *w = world_begin_sized("lor", CASE_LIBSVM, 2000, 3000, BATCH, BATCH, seed);
        struct drps_train_options o = options(w);
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
        turn_to(w, from, &shapes[k]);
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
        turn_to(w, from, &shapes[k]);
        o.from = NULL;
        o.keep_checkpoints = 1;
        world_train(w, &o, &r);
        drps_train_result_free(&r);
        (void)snprintf(kept, sizeof(kept), "%s", scratch_path(&w->scratch, "kept"));
        assert_int_equal(rename(scratch_path(&w->scratch, "model.checkpoint"), kept), 0);
        turn_to(w, w->plan, &shapes[(k + 1) % SHAPES]);
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

/* All batches are executed, by workers alone. */
static void check_executed(const struct drps_train_result *r, const struct shape *s,
                           uint64_t batches)
{
    uint64_t sum = 0;
    const uint32_t first = s->separate ? s->servers : 0;
    for (uint32_t k = 0; k < s->ranks; k++) {
        sum += r->ranks[k].iterations;
        if (k < first || k >= first + s->workers) assert_int_equal(r->ranks[k].iterations, 0);
    }
    assert_int_equal(sum, batches);
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
        turn_to(w, from, &shapes[k]);
        for (size_t m = 0; m < 3; m++) {
            struct drps_train_result r;
            o.sync = modes[m];
            o.store = stores[(k + m) % 3];
            world_train(w, &o, &r);
            check_executed(&r, &shapes[k], batches);
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
    static const struct shape apart = {WORKERS, 2, 1, WORKERS + 2};
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
    turn_to(w, from, &apart);
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

/* ---- Plans that contradict themselves ---- */

/* A rank gets another one's file: as many records of the same kind, all of them whole. */
static void swap_file(const struct world *w, const char *name, uint32_t to, uint32_t from)
{
    char path[SCRATCH_PATH_BYTES + 64];
    size_t n;
    (void)snprintf(path, sizeof(path), "%s/rank-%u/%s", w->plan, from, name);
    char *data = scratch_read(path, &n);
    (void)snprintf(path, sizeof(path), "%s/rank-%u/%s", w->plan, to, name);
    scratch_write(path, data, n);
    free(data);
}

/* Samples on a rank without any, rows on one without any, and rows of a worker that has no batch:
 * training refuses each, and so does whoever verifies the plan. */
static void test_plans_that_contradict_their_ranks(void **state)
{
    static const struct {
        struct shape shape;
        const char *file;
        uint32_t to, from;
        int unread; /* a rank without rows opens none: its lists are nobody's */
    } cases[] = {{{2, 1, 1, 3}, "data.rec", 0, 1, 0},     {{2, 1, 1, 3}, "shares.rec", 1, 0, 0},
                 {{3, 2, 0, 3}, "rows.rec", 2, 1, 1},     {{3, 2, 0, 3}, "positions.rec", 2, 1, 1},
                 {{1, 3, 0, 3}, "data.rec", 2, 0, 0},     {{2, 1, 1, 3}, "positions.rec", 0, 1, 0},
                 {{3, 1, 0, 3}, "positions.rec", 0, 2, 0}};
    struct world *w = world_begin("lor", CASE_LIBSVM, BATCH, WORKERS * BATCH, seed);
    struct drps_train_options o = options(w);
    char from[SCRATCH_PATH_BYTES];
    (void)state;
    (void)snprintf(from, sizeof(from), "%s", w->plan);
    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_train_result r;
        struct drps_plan *plan;
        turn_to(w, from, &cases[k].shape);
        swap_file(w, cases[k].file, cases[k].to, cases[k].from);
        if ((world_run(w, &o, &r, &err) >= 0) != cases[k].unread)
            fail_msg("case %zu: %s", k, err.text);
        drps_train_result_free(&r);
        drps_err_clear(&err);
        assert_int_equal(drps_plan_open(drps_io_os(), w->plan, &plan, NULL), 0);
        if (drps_plan_verify(plan, NULL, &err) >= 0) fail_msg("case %zu is whole", k);
        drps_plan_close(plan);
    }
    world_end(w);
}

/* Lists of a rank's record, one after another as they are packed. */
struct packed_lists {
    struct drps_piece piece[8];
    uint32_t n;
};

static struct packed_lists take_apart(const struct drps_piece *record, uint32_t n)
{
    struct packed_lists l = {.n = n};
    uint32_t unused[4096];
    size_t at = 0, used;
    for (uint32_t i = 0; i < n; i++, at += used) {
        const char *list = (const char *)record->data + at;
        assert_int_equal(drps_list_decode(list, record->bytes - at, unused, &used, NULL), 0);
        l.piece[i] = (struct drps_piece){list, used};
    }
    return l;
}

/* A server's lists of two workers change places, in every round. */
static void swap_lists(const struct world *w, uint32_t server, uint32_t a, uint32_t b)
{
    char path[SCRATCH_PATH_BYTES + 64], to[SCRATCH_PATH_BYTES + 72];
    struct drps_recfile *f;
    struct drps_recwriter *out;
    (void)snprintf(path, sizeof(path), "%s/rank-%u/positions.rec", w->plan, server);
    (void)snprintf(to, sizeof(to), "%s.new", path);
    assert_int_equal(drps_recfile_open(drps_io_os(), path, DRPS_KIND_POSITIONS, &f, NULL), 0);
    assert_int_equal(drps_recwriter_open(drps_io_os(), to, DRPS_KIND_POSITIONS, &out, NULL), 0);
    for (uint64_t i = 0; i < drps_recfile_count(f); i++) {
        char *data = calloc(1, (size_t)drps_recfile_run_bytes(f, i, 1) + 8);
        assert_int_equal(drps_recfile_read(f, i, 1, data, NULL), 0);
        const struct drps_piece record = {data, (size_t)drps_recfile_bytes(f, i)};
        struct packed_lists l = take_apart(&record, w->workers);
        const struct drps_piece was = l.piece[a];
        l.piece[a] = l.piece[b];
        l.piece[b] = was;
        assert_int_equal(drps_recwriter_add(out, l.piece, l.n, NULL), 0);
        free(data);
    }
    assert_int_equal(drps_recwriter_finish(out, NULL), 0);
    drps_recwriter_close(out);
    drps_recfile_close(f);
    assert_int_equal(rename(to, path), 0);
}

/* What a rank reads of its own part: 0, or the error of its batch or of its rows. */
static int read_round(const struct world *w, uint32_t rank, struct drps_err *err)
{
    struct drps_plan *part;
    struct drps_feed *feed;
    struct drps_feed_share share;
    struct drps_feed_union u;
    assert_int_equal(drps_plan_open_rank(drps_io_os(), w->plan, rank, &part, err), 0);
    assert_int_equal(drps_feed_open(part, 1, &feed, err), 0);
    assert_int_equal(drps_feed_start(feed, 0, 1, 1 << 16, 0, err), 0);
    int rc = drps_feed_next_share(feed, &share, err);
    if (rc == 0) rc = drps_feed_next_union(feed, &u, err);
    drps_feed_close(feed);
    drps_plan_close(part);
    return rc;
}

/* Files that fit each other, but not what ranks are: a batch of a rank without samples; rows at a
 * rank without any; rows of a worker that there is not. */
static void test_ranks_read_what_they_may_have(void **state)
{
    static const struct shape apart = {2, 1, 1, 3}, beside = {3, 1, 0, 3};
    struct world *w = world_begin("lor", CASE_LIBSVM, BATCH, WORKERS * BATCH, seed);
    struct drps_err err = DRPS_ERR_INIT;
    char from[SCRATCH_PATH_BYTES];
    struct drps_plan *plan;
    (void)state;
    (void)snprintf(from, sizeof(from), "%s", w->plan);
    turn_to(w, from, &apart);
    assert_int_equal(read_round(w, 0, &err), 0);
    swap_lists(w, 0, 0, 1);
    assert_int_equal(read_round(w, 0, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "of the batch of rank 0, at most 0"));
    drps_err_clear(&err);

    turn_to(w, from, &apart);
    swap_file(w, "data.rec", 0, 1);
    swap_file(w, "shares.rec", 0, 1);
    assert_int_equal(read_round(w, 0, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "samples on rank 0, without any"));
    drps_err_clear(&err);
    assert_int_equal(drps_plan_open(drps_io_os(), w->plan, &plan, NULL), 0);
    struct drps_findings found = {0};
    assert_int_equal(drps_plan_verify(plan, &found, &err), 0);
    assert_true(found.problems > 0);
    int says = 0;
    for (uint64_t i = 0; i < found.problems && i < DRPS_FINDINGS_KEPT; i++)
        says |= strstr(found.kept[i].text, "on a rank without samples") != NULL;
    assert_true(says);
    drps_plan_close(plan);

    static const struct shape all = {3, 3, 0, 3};
    char other[SCRATCH_PATH_BYTES];
    turn_to(w, from, &all);
    (void)snprintf(other, sizeof(other), "%s", w->plan);
    turn_to(w, from, &beside);
    struct world of_all = *w;
    (void)snprintf(of_all.plan, sizeof(of_all.plan), "%s", other);
    char path[SCRATCH_PATH_BYTES + 64];
    size_t n;
    (void)snprintf(path, sizeof(path), "%s/rank-0/shares.rec", of_all.plan);
    char *data = scratch_read(path, &n);
    (void)snprintf(path, sizeof(path), "%s/rank-0/shares.rec", w->plan);
    scratch_write(path, data, n);
    free(data);
    assert_int_equal(read_round(w, 0, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "which has none"));
    world_end(w);
}

/* Plans of the same batches and rows for other ranks are other plans. */
static void test_plans_have_names_of_their_own(void **state)
{
    static const struct shape some[] = {{1, 3, 0, 3}, {2, 3, 0, 3}, {3, 3, 0, 3}};
    char id[3][DRPS_PLAN_ID_BYTES];
    struct world *w = world_begin("lor", CASE_LIBSVM, BATCH, WORKERS * BATCH, seed);
    char from[SCRATCH_PATH_BYTES];
    (void)state;
    (void)snprintf(from, sizeof(from), "%s", w->plan);
    for (size_t k = 0; k < 3; k++) {
        struct drps_plan *plan;
        turn_to(w, from, &some[k]);
        assert_int_equal(drps_plan_open(drps_io_os(), w->plan, &plan, NULL), 0);
        memcpy(id[k], plan->info.id, sizeof(id[k]));
        drps_plan_close(plan);
        for (size_t i = 0; i < k; i++)
            assert_string_not_equal(id[i], id[k]);
    }
    world_end(w);
}

/* ---- Memory ---- */

/* A rank without rows takes what one batch takes, whatever the store and however many rows there
 * are; one without samples less than one with both. */
static void test_what_they_need(void **state)
{
    static const char *const stores[] = {"auto", "resident", "relay", "file"};
    static const struct shape apart = {WORKERS, 2, 1, WORKERS + 2};
    struct world *w = world_begin_sized("fm", CASE_LIBSVM, 900, 20000, 200, 200, seed);
    struct drps_plan *whole, *server, *worker;
    char from[SCRATCH_PATH_BYTES];
    (void)state;
    (void)snprintf(from, sizeof(from), "%s", w->plan);
    assert_int_equal(drps_plan_open_rank(drps_io_os(), from, 0, &whole, NULL), 0);
    turn_to(w, from, &apart);
    assert_int_equal(drps_plan_open_rank(drps_io_os(), w->plan, 0, &server, NULL), 0);
    assert_int_equal(drps_plan_open_rank(drps_io_os(), w->plan, 2, &worker, NULL), 0);
    for (size_t s = 0; s < 4; s++) {
        const struct drps_train_options o = {.memory_bytes = 1 << 30, .store = stores[s]};
        struct drps_train_needs both, rows, none;
        assert_int_equal(drps_train_needs(whole, &o, &both, NULL), 0);
        assert_int_equal(drps_train_needs(server, &o, &rows, NULL), 0);
        assert_int_equal(drps_train_needs(worker, &o, &none, NULL), 0);
        assert_true(none.fits && none.keeps_all_rows);
        assert_true(none.least_bytes < both.least_bytes);
        if (s > 1) assert_true(rows.least_bytes < both.least_bytes + (2 << 20));
    }
    drps_plan_close(whole);
    drps_plan_close(server);
    drps_plan_close(worker);
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
        cmocka_unit_test(test_plans_that_contradict_their_ranks),
        cmocka_unit_test(test_ranks_read_what_they_may_have),
        cmocka_unit_test(test_plans_have_names_of_their_own),
        cmocka_unit_test(test_what_they_need),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
