/*
 * Ranks in one process: whole runs over inproc against one worker with batches as large as a round,
 * from every store; stopping; a rank whose part of the plan is damaged; ranks that were started
 * differently; a rank that is lost after training.
 *
 *   test_cluster [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder/drps_manifest.h"
#include "engine/cluster/drps_cluster.h"
#include "net/drps_net.h"
#include "sched/drps_timing.h"
#include "storage/kv/drps_kv.h"
#include "support/net_job.h"
#include "support/world.h"

enum { WORKERS = WORLD_WORKERS, BATCH = 32 };

static uint64_t seed = 20240607;

static struct world *world_of(const char *algo, enum case_format format)
{
    return world_begin(algo, format, BATCH, WORKERS * BATCH, seed);
}

static void check_near(double a, double b)
{
    if (isnan(a) && isnan(b)) return;
    if (!(fabs(a - b) <= 1e-5 * fabs(b))) fail_msg("%.9g is not near %.9g", a, b);
}

/* All is sent that the plan says, but for rows that nobody had trained. */
static void check_traffic(const struct drps_train_result *r)
{
    uint64_t sent = 0, received = 0;
    assert_int_equal(r->ranks_n, WORKERS);
    for (size_t i = 0; i < r->ranks_n; i++) {
        assert_int_equal(r->ranks[i].sent_bytes, r->ranks[i].forecast_sent_bytes);
        assert_int_equal(r->ranks[i].received_bytes, r->ranks[i].forecast_received_bytes);
        sent += r->ranks[i].sent_bytes;
        received += r->ranks[i].received_bytes;
    }
    assert_int_equal(sent, received);
    assert_true(sent > 0);
}

/* Ways to run rounds that give the same model. */
enum way { APART, AHEAD, AHEAD_IN_LEAST_MEMORY, WAYS };

static void set_way(const struct world *w, enum way way, struct drps_train_options *o)
{
    o->no_overlap = way == APART;
    o->memory_bytes = 0;
    if (way == AHEAD_IN_LEAST_MEMORY) o->memory_bytes = world_least_memory(w, o);
}

static void check_case(const char *algo, enum case_format format, const char *optimizer, float l2)
{
    struct world *w = world_of(algo, format);
    struct drps_train_options o = world_options(w);
    struct drps_train_result one, first = {0}, r;
    struct drps_err err = DRPS_ERR_INIT;
    o.optimizer = optimizer;
    o.l2 = l2;
    world_run_one(w, &o, &one);
    const char *stores[8] = {"resident", "relay"};
    for (size_t i = 0; drps_kv_engines()[i]; i++)
        stores[2 + i] = drps_kv_engines()[i]->name;
    for (size_t i = 0; stores[i / WAYS]; i++) {
        o.store = stores[i / WAYS];
        set_way(w, i % WAYS, &o);
        if (world_run(w, &o, &r, &err) < 0) fail_msg("%s: %s", o.store, err.text);
        assert_int_equal(r.epochs_n, 2);
        for (size_t e = 0; e < r.epochs_n; e++) {
            check_near(r.epochs[e].train_loss, one.epochs[e].train_loss);
            check_near(r.epochs[e].test.loss, one.epochs[e].test.loss);
            assert_int_equal(r.epochs[e].test.samples, one.epochs[e].test.samples);
        }
        assert_int_equal(r.rows, one.rows);
        check_traffic(&r);
        world_check_model(w, &r);
        if (i == 0)
            first.content = r.content;
        else
            assert_int_equal(r.content, first.content);
        drps_train_result_free(&r);
    }
    drps_train_result_free(&one);
    world_end(w);
}

static void test_ranks_train_as_one_worker_does(void **state)
{
    (void)state;
    check_case("lor", CASE_LIBSVM, "adagrad", 0);
    check_case("fm", CASE_LIBSVM, "ftrl", 0.01f);
    check_case("lmf", CASE_RATINGS, "sgd", 0.001f);
    check_case("ffm", CASE_LIBFFM, "adagrad", 0.001f);
    check_case("fm", CASE_LIBSVM, "adam", 0.001f);
}

/* Far more ranks than cores, and than the bits of a word; in asynchronous rounds, too. */
static void test_many_ranks(void **state)
{
    enum { MANY = 100, SMALL = 4 };
    struct world *w =
        world_begin_workers(MANY, "lor", CASE_LIBSVM, SMALL, (uint64_t)MANY * SMALL, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result one, r;
    uint64_t iterations = 0;
    (void)state;
    o.lr = 0.01f;
    o.epochs = 1;
    world_run_one(w, &o, &one);
    o.memory_bytes = (uint64_t)MANY * 48 << 20; /* each counts on a process of its own */
    world_train(w, &o, &r);
    for (size_t e = 0; e < r.epochs_n; e++) {
        check_near(r.epochs[e].train_loss, one.epochs[e].train_loss);
        check_near(r.epochs[e].test.loss, one.epochs[e].test.loss);
    }
    drps_train_result_free(&r);

    o.sync = DRPS_SCHED_WSP;
    world_train(w, &o, &r);
    assert_int_equal(r.ranks_n, MANY);
    for (size_t k = 0; k < r.ranks_n; k++)
        iterations += r.ranks[k].iterations;
    assert_int_equal(iterations, o.epochs * MANY * 2); /* 720 samples: two rounds */
    world_check_model(w, &r);
    drps_train_result_free(&r);
    drps_train_result_free(&one);
    world_end(w);
}

static void test_patience_stops_all_ranks(void **state)
{
    struct world *w = world_of("lor", CASE_LIBSVM);
    struct drps_train_options o = world_options(w);
    struct drps_train_result one, r;
    (void)state;
    o.epochs = 40;
    o.patience = 2;
    o.lr = 0.3f;
    world_run_one(w, &o, &one);
    world_train(w, &o, &r);
    assert_true(one.stopped_early);
    assert_true(r.stopped_early);
    assert_int_equal(r.best_epoch, one.best_epoch);
    world_check_model(w, &r);
    drps_train_result_free(&one);
    drps_train_result_free(&r);
    world_end(w);
}

/* The user stops it in the second epoch: all ranks stop before the same round, and the model so far
 * is there. */
static atomic_int stop;

static void stop_now(void *ctx, const struct drps_epoch *epoch)
{
    (void)ctx;
    (void)epoch;
    atomic_store(&stop, 1);
}

static void test_stopping_keeps_the_model_so_far(void **state)
{
    struct world *w = world_of("lor", CASE_LIBSVM);
    struct drps_train_options o = world_options(w);
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    o.epochs = 50;
    o.on_epoch = stop_now;
    o.stop = &stop;
    atomic_store(&stop, 0);
    assert_int_equal(world_run(w, &o, &r, &err), DRPS_E_INTERRUPTED);
    assert_true(r.interrupted);
    assert_true(r.epochs_n < 50);
    world_check_model(w, &r);
    drps_train_result_free(&r);
    world_end(w);
}

/* ---- Emulated computation ---- */

static void check_emulated(const struct drps_train_result *r, const struct drps_timing *timing,
                           uint32_t workers)
{
    uint64_t iterations = 0, all_ns = 0, longest_ns = 0;
    for (uint32_t k = 0; k < workers; k++) {
        const uint64_t n = r->ranks_n ? r->ranks[k].emulated.iterations : r->emulated.iterations;
        uint64_t sum_ns = 0;
        for (uint64_t i = 0; i < n; i++)
            sum_ns += drps_timing_ns(timing, k, i);
        iterations += n;
        all_ns += sum_ns;
        longest_ns = sum_ns > longest_ns ? sum_ns : longest_ns;
    }
    assert_true(iterations > 0 && iterations == r->emulated.iterations);
    if (all_ns != r->emulated.emulated_ns)
        fail_msg("%u ranks: %llu ns, expected %llu", workers,
                 (unsigned long long)r->emulated.emulated_ns, (unsigned long long)all_ns);
    assert_true(r->emulated.overruns <= iterations);
    assert_true(r->emulated.computed_ns <= all_ns + r->emulated.late_ns);
    /* rank 0 is the straggler; its gathering and pushing, which overlap the wait, count apart */
    assert_true(r->phases.compute * 1e9 >= (double)longest_ns / 2);
    assert_true(r->seconds * 1e9 >= (double)longest_ns);
}

static void test_emulated_rounds_change_no_bit(void **state)
{
    struct world *w = world_of("fm", CASE_LIBSVM);
    struct drps_train_options plain = world_options(w), emulated = plain;
    struct drps_train_result want, r;
    struct drps_timing *timing;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    if (drps_timing_open(drps_io_os(), "straggler:0.002", &timing, &err) < 0)
        fail_msg("%s", err.text);
    emulated.emulate = timing;

    world_run_one(w, &plain, &want);
    world_run_one(w, &emulated, &r);
    assert_true(r.content == want.content);
    assert_int_equal(want.emulated.iterations, 0);
    check_emulated(&r, timing, 1);
    drps_train_result_free(&want);
    drps_train_result_free(&r);

    world_train(w, &plain, &want);
    world_train(w, &emulated, &r);
    assert_true(r.content == want.content);
    for (size_t e = 0; e < 2; e++) {
        assert_true(r.epochs[e].train_loss == want.epochs[e].train_loss);
        assert_true(r.epochs[e].test.loss == want.epochs[e].test.loss);
    }
    check_emulated(&r, timing, WORKERS);
    drps_train_result_free(&want);
    drps_train_result_free(&r);
    drps_timing_close(timing);
    world_end(w);
}

/* The time of training ends when the last rank is done, not when rank 0 is: here rank 2 takes a
 * quarter of a second over the last batch that it has in an epoch. */
static void write_trace(const char *path, const struct world *w)
{
    struct drps_plan *part;
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(drps_plan_open_rank(drps_io_os(), w->plan, 0, &part, NULL), 0);
    for (int rank = 0; rank < WORKERS; rank++)
        for (uint64_t k = 1; k <= part->info.batches; k++)
            fprintf(f, "%s%s", rank == 2 && k == part->info.batches ? "0.25" : "0.0001",
                    k == part->info.batches ? "\n" : " ");
    drps_plan_close(part);
    assert_int_equal(fclose(f), 0);
}

static void test_the_rate_counts_until_the_last_rank_is_done(void **state)
{
    struct world *w = world_of("lor", CASE_LIBSVM);
    struct drps_train_options o = world_options(w);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_timing *trace;
    const char *path = scratch_path(&w->scratch, "trace");
    (void)state;
    write_trace(path, w);
    if (drps_timing_open(drps_io_os(), path, &trace, &err) < 0) fail_msg("%s", err.text);
    o.emulate = trace;
    for (int async = 0; async < 2; async++) {
        struct drps_train_result r;
        o.sync = async ? DRPS_SCHED_ASP : DRPS_SCHED_BSP;
        o.no_claim = async;
        world_train(w, &o, &r);
        assert_int_equal(r.epochs_n, 2);
        for (size_t e = 0; e < r.epochs_n; e++) {
            const double most = (900 - (double)r.epochs[e].test.samples) / 0.25;
            if (!(r.epochs[e].samples_per_s > 0 && r.epochs[e].samples_per_s <= most))
                fail_msg("%s, epoch %zu: %g samples/s, at most %g are possible",
                         drps_sched_mode_name(o.sync), e, r.epochs[e].samples_per_s, most);
        }
        drps_train_result_free(&r);
    }
    drps_timing_close(trace);
    world_end(w);
}

/* ---- What goes wrong ---- */

static void test_a_rank_that_fails_ends_all(void **state)
{
    static const char *const files[] = {"data.rec", "rows.rec", "shares.rec", "positions.rec"};
    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        struct world *w = world_of("lor", CASE_LIBSVM);
        const struct drps_train_options o = world_options(w);
        struct drps_train_result r;
        struct drps_err err = DRPS_ERR_INIT;
        world_damage(w, files[i]);
        const int rc = world_run(w, &o, &r, &err);
        assert_true(rc == DRPS_E_PEER_FAILED || rc == DRPS_E_CORRUPT);
        if (!strstr(err.text, files[i])) fail_msg("%s is damaged: %s", files[i], err.text);
        assert_false(path_exists(w->model));
        drps_train_result_free(&r);
        world_end(w);
    }
}

/* Signed, and of another kind than its parts: the model would be described as what it is not. */
static void say_of_whole(const struct world *w, const char *key, json_t *value)
{
    char path[SCRATCH_PATH_BYTES + 16];
    struct drps_err err = DRPS_ERR_INIT;
    json_error_t at;
    (void)snprintf(path, sizeof(path), "%s/plan.json", w->plan);
    json_t *j = json_load_file(path, 0, &at);
    assert_non_null(j);
    assert_int_equal(json_object_del(j, "checksum"), 0);
    assert_int_equal(json_object_set_new(j, key, value), 0);
    if (drps_manifest_write(drps_io_os(), path, j, &err) < 0) fail_msg("%s", err.text);
    json_decref(j);
}

static void test_a_whole_that_is_of_another_model_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct world *w = world_of("lor", CASE_LIBSVM);
        const struct drps_train_options o = world_options(w);
        struct drps_train_result r;
        struct drps_err err = DRPS_ERR_INIT;
        if (i == 0) say_of_whole(w, "loss", json_string("hinge"));
        if (i == 1) say_of_whole(w, "algo", json_string("svm"));
        assert_int_equal(world_run(w, &o, &r, &err), DRPS_E_CORRUPT);
        if (!strstr(err.text, "disagree on what the model is")) fail_msg("%s", err.text);
        assert_false(path_exists(w->model));
        drps_train_result_free(&r);
        world_end(w);
    }
}

static void test_a_loss_without_end_ends_all(void **state)
{
    struct world *w = world_of("lmf", CASE_RATINGS);
    struct drps_train_options o = world_options(w);
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
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

/* Under a rate that is too large the losses grow from the start, until one is no number: with
 * patience rank 0 has the first epoch by then. */
static void test_patience_keeps_its_best_epoch_when_ranks_diverge(void **state)
{
    static const enum drps_sched_mode modes[] = {DRPS_SCHED_BSP, DRPS_SCHED_ASP, DRPS_SCHED_WSP};
    static const char *const stores[] = {"resident", "relay"};
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct world *w = world_of("lir", CASE_LIBSVM);
        struct drps_train_options o = world_options(w);
        struct drps_train_result r, first;
        struct drps_err err = DRPS_ERR_INIT;
        o.optimizer = "sgd";
        o.lr = i % 3 ? 0.1f : 0.02f; /* a step is of one batch, or of a round's */
        o.epochs = 500;
        o.patience = 500;
        o.sync = modes[i % 3];
        o.store = stores[i / 3];
        if (world_run(w, &o, &r, &err) < 0)
            fail_msg("%s, %s: %s", drps_sched_mode_name(o.sync), o.store, err.text);
        assert_true(r.best_epoch >= 1);
        if (!(r.diverged_epoch > r.best_epoch && r.diverged_epoch < 500))
            fail_msg("%s: diverged in epoch %llu", drps_sched_mode_name(o.sync),
                     (unsigned long long)r.diverged_epoch);
        assert_true(r.published);
        world_check_model(w, &r);
        if (o.sync == DRPS_SCHED_BSP) {
            o.epochs = r.best_epoch;
            o.patience = 0;
            o.replace = 1;
            world_train(w, &o, &first);
            assert_true(first.content == r.content);
            drps_train_result_free(&first);
        }
        drps_train_result_free(&r);
        world_end(w);
    }
}

/* Ranks in threads of the test, each with options of its own. */
struct member {
    struct drps_plan *whole, *part;
    struct drps_train_options train;
    struct drps_train_ranks ranks;
    struct drps_train_result result;
    struct drps_err err;
    int rc;
};

static void *run_member(void *member)
{
    struct member *m = member;
    m->train.ranks = &m->ranks;
    m->rc = drps_train_run(m->part, &m->train, &m->result, &m->err);
    drps_net_close(m->ranks.net, 1000, m->rc < 0 ? &m->err : NULL);
    return NULL;
}

static void run_members(const struct world *w, struct member *m)
{
    struct drps_net *nets[WORKERS];
    struct drps_net_options net;
    pthread_t threads[WORKERS];
    for (uint32_t r = 0; r < WORKERS; r++)
        assert_int_equal(drps_plan_open_rank(drps_io_os(), w->plan, r, &m[r].part, NULL), 0);
    assert_int_equal(drps_plan_open(drps_io_os(), w->plan, &m[0].whole, NULL), 0);
    drps_train_net_options(m[0].part, &net);
    assert_int_equal(drps_net_open_inproc(&net, nets, NULL), 0);
    for (uint32_t r = 0; r < WORKERS; r++) {
        m[r].ranks = (struct drps_train_ranks){
            .net = nets[r], .whole = m[0].whole && !r ? m[0].whole : NULL, .wait_ms = 60000};
        assert_int_equal(pthread_create(&threads[r], NULL, run_member, &m[r]), 0);
    }
    for (uint32_t r = 0; r < WORKERS; r++) {
        (void)pthread_join(threads[r], NULL);
        drps_train_result_free(&m[r].result);
        drps_plan_close(m[r].part);
    }
    drps_plan_close(m[0].whole);
}

static void test_other_options_are_named_on_every_rank(void **state)
{
    static const struct {
        const char *text;
        float lr;
        uint64_t epochs;
        const char *optimizer;
        enum drps_sched_mode sync;
        float beta2; /* of adam, on all ranks */
    } others[] = {
        {"rank 2 was started with learning rate 0.125, rank 0 with 0.25", 0.125f, 2, "adagrad", 0,
         0},
        {"rank 2 was started with epochs 3, rank 0 with 2", 0.25f, 3, "adagrad", 0, 0},
        {"rank 2 was started with another optimizer", 0.25f, 2, "ftrl", 0, 0},
        {"rank 2 was started with beta2 0.75, rank 0 with 0.999", 0.25f, 2, "adam", 0, 0.75f},
        {"rank 2 was started with another synchronisation", 0.25f, 2, "adagrad", DRPS_SCHED_ASP, 0},
    };
    struct world *w = world_of("lor", CASE_LIBSVM);
    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        struct member m[WORKERS];
        memset(m, 0, sizeof(m));
        for (uint32_t r = 0; r < WORKERS; r++) {
            m[r].train = world_options(w);
            m[r].train.lr = r == 2 ? others[i].lr : 0.25f;
            m[r].train.epochs = r == 2 ? others[i].epochs : 2;
            m[r].train.optimizer = r == 2 || others[i].beta2 > 0 ? others[i].optimizer : "adagrad";
            m[r].train.beta2 = r == 2 ? others[i].beta2 : 0;
            m[r].train.sync = r == 2 ? others[i].sync : DRPS_SCHED_BSP;
        }
        run_members(w, m);
        for (uint32_t r = 0; r < WORKERS; r++) {
            assert_int_equal(m[r].rc, DRPS_E_CONFIG);
            if (!strstr(m[r].err.text, others[i].text)) fail_msg("rank %u: %s", r, m[r].err.text);
        }
    }
    assert_false(path_exists(w->model));
    world_end(w);
}

/* ---- A number that all have ---- */

struct numbers {
    uint64_t mine[WORKERS][4];
    uint64_t common[WORKERS];
};

static void find_common(struct drps_net *net, uint32_t rank, void *ctx)
{
    struct numbers *n = ctx;
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_cluster c = {
        .net = net, .rank = rank, .count = WORKERS, .wait_ms = NET_WAIT_MS};
    NET_OK(drps_cluster_common(&c, n->mine[rank], 4, &n->common[rank], &err));
}

static void test_the_largest_number_that_all_have(void **state)
{
    static const struct {
        const char *name;
        uint64_t mine[WORKERS][4], common;
    } cases[] = {
        {.name = "none has any", .common = 0},
        {.name = "one has none", .mine = {{7, 6}, {7, 6}, {0}}, .common = 0},
        {.name = "the same", .mine = {{7, 6}, {7, 6}, {7, 6}}, .common = 7},
        {.name = "in any order", .mine = {{7, 6}, {0, 6, 0, 7}, {6, 5, 7}}, .common = 7},
        {.name = "the largest is one's alone", .mine = {{8, 7}, {7, 6}, {7, 6}}, .common = 7},
        {.name = "the last one lacks it", .mine = {{8, 7}, {8, 7}, {7, 6}}, .common = 7},
        {.name = "only the smallest", .mine = {{9, 8, 7, 1}, {6, 5, 1}, {4, 3, 1, 2}}, .common = 1},
        {.name = "nothing in common", .mine = {{9, 8}, {8, 7}, {9, 7}}, .common = 0},
        {.name = "large ones",
         .mine = {{UINT64_MAX, 1}, {1, UINT64_MAX}, {2, UINT64_MAX}},
         .common = UINT64_MAX},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct drps_net_options options = {.message_bytes = {64, 64, 64}};
        struct net_job job;
        struct numbers n;
        memcpy(n.mine, cases[i].mine, sizeof(n.mine));
        net_job_open(&job, NET_INPROC, WORKERS, &options);
        net_job_run(&job, find_common, &n);
        net_job_close(&job);
        for (uint32_t r = 0; r < WORKERS; r++)
            if (n.common[r] != cases[i].common)
                fail_msg("%s: rank %u found %llu, expected %llu", cases[i].name, r,
                         (unsigned long long)n.common[r], (unsigned long long)cases[i].common);
    }
}

static void test_so_many_numbers_are_not_compared(void **state)
{
    static const size_t wrong[] = {0, DRPS_CLUSTER_COMMON_MOST + 1, SIZE_MAX};
    const uint64_t mine[1] = {5};
    const struct drps_cluster c = {.count = WORKERS};
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        uint64_t common = 5;
        struct drps_err err = DRPS_ERR_INIT;
        assert_int_equal(drps_cluster_common(&c, mine, wrong[i], &common, &err), -EINVAL);
        assert_int_equal(common, 0);
    }
}

static void report_and_finish(struct drps_net *net, uint32_t rank, void *ctx)
{
    const struct drps_cluster c = {.net = net, .rank = rank, .count = WORKERS};
    const struct drps_train_rank mine = {.sent_bytes = rank + 1};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_rank *all;
    (void)ctx;
    if (!net) return; /* it was lost */
    NET_OK(drps_cluster_report(&c, &mine, &all, &err));
    for (uint32_t r = 0; r < WORKERS; r++)
        NET_CHECK(all[r].sent_bytes == (r == 1 ? 0 : r + 1));
    free(all);
    NET_OK(drps_cluster_finish(&c, &err));
}

/* Rank 0 has all rows by then, and goes on to the model. */
static void test_a_rank_that_is_lost_after_training_ends_nothing(void **state)
{
    const struct drps_err why = {.code = -EIO, .text = "a bad disk"};
    struct net_job job;
    (void)state;
    net_job_open(&job, NET_INPROC, WORKERS, &(struct drps_net_options){0});
    drps_net_close(job.nets[1], 0, &why);
    job.nets[1] = NULL;
    net_job_run(&job, report_and_finish, NULL);
    net_job_close(&job);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_train_as_one_worker_does),
        cmocka_unit_test(test_many_ranks),
        cmocka_unit_test(test_patience_stops_all_ranks),
        cmocka_unit_test(test_stopping_keeps_the_model_so_far),
        cmocka_unit_test(test_emulated_rounds_change_no_bit),
        cmocka_unit_test(test_the_rate_counts_until_the_last_rank_is_done),
        cmocka_unit_test(test_a_rank_that_fails_ends_all),
        cmocka_unit_test(test_a_whole_that_is_of_another_model_is_refused),
        cmocka_unit_test(test_a_loss_without_end_ends_all),
        cmocka_unit_test(test_patience_keeps_its_best_epoch_when_ranks_diverge),
        cmocka_unit_test(test_other_options_are_named_on_every_rank),
        cmocka_unit_test(test_the_largest_number_that_all_have),
        cmocka_unit_test(test_so_many_numbers_are_not_compared),
        cmocka_unit_test(test_a_rank_that_is_lost_after_training_ends_nothing),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
