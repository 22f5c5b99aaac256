/*
 * drps-index over several ranks: the plan of one process over every transport, and ranks that are
 * interrupted or cannot count end all others with their name.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "index/ranks/drps_index_ranks.h"
#include "support/index_case.h"
#include "support/lists.h"
#include "support/net_job.h"
#include "support/scratch.h"

enum { RANKS = 3 };

/* A run of each rank; what differs between them is set before it. */
struct job {
    struct loss {
        atomic_int interrupt, left;
    } loss;
    struct case_run run[NET_RANKS];
    int rc[NET_RANKS];
    struct drps_err err[NET_RANKS];
};

static struct job *job_new(struct scratch *s, const char *input, const char *builder)
{
    struct job *job = must(calloc(1, sizeof(*job)));
    for (size_t r = 0; r < NET_RANKS; r++) {
        case_begin(&job->run[r], s, input, "lor");
        job->run[r].options.blocks.by = builder;
        job->run[r].options.blocks.top_k = 3;
        job->run[r].options.blocks.seek_ns = 4000;
    }
    return job;
}

static void run_rank(struct drps_net *net, uint32_t rank, void *ctx)
{
    struct job *job = ctx;
    struct case_run *c = &job->run[rank];
    job->rc[rank] = drps_index_ranks_run_on(net, &c->options, &c->result, &job->err[rank]);
}

/* The nets are closed by the ranks. */
static void run_job(struct job *job, enum net_kind kind, uint32_t ranks)
{
    struct drps_net_options options;
    struct net_job net;
    drps_index_net_options(&options);
    options.job_id = 7;
    net_job_open(&net, kind, ranks, &options);
    net_job_run(&net, run_rank, job);
}

static void expect(const struct job *job, uint32_t rank, int rc, const char *text)
{
    if (job->rc[rank] != rc || !strstr(job->err[rank].text, text))
        fail_msg("rank %u: %d (%s), not %d (... %s ...)", rank, job->rc[rank], job->err[rank].text,
                 rc, text);
}

static const char *input(struct scratch *s)
{
    return case_input(s, "data", CASE_LIBSVM, 3000, 120, 5);
}

/* Runs one process; its plan is moved to "one". */
static void make_one(struct scratch *s, const char *path, const char *builder, double sample,
                     uint32_t prune_to, char one[SCRATCH_PATH_BYTES])
{
    struct job *job = job_new(s, path, builder);
    struct case_run *c = &job->run[0];
    c->options.blocks.sample = sample;
    c->options.blocks.prune_to = prune_to;
    (void)snprintf(one, SCRATCH_PATH_BYTES, "%s", scratch_path(s, "one"));
    c->options.out = one;
    c->options.force = 1;
    case_compile(c);
    free(job);
}

static void assert_same_plan(struct job *job, enum net_kind kind, uint32_t ranks, struct scratch *s,
                             const char *one)
{
    run_job(job, kind, ranks);
    for (uint32_t r = 0; r < ranks; r++)
        assert_ok(job->rc[r], &job->err[r]);
    if (!case_same_records(job->run[0].out, one))
        fail_msg("%s, %u ranks over %s: another plan", job->run[0].options.blocks.by, ranks,
                 net_kind_names[kind]);
    case_verify(job->run[0].out);
    assert_true(files_equal(scratch_path(s, "plan/plan.json"), scratch_path(s, "one/plan.json")));
    assert_int_equal(folder_entries(s->dir), 3); /* the data and two plans, no rank's share */
    assert_int_equal(drps_io_remove_tree(drps_io_os(), job->run[0].out, NULL), 0);
}

static void test_plan_is_that_of_one_process(void **state)
{
    static const char *const builders[] = {"topk", "pairwise", "greedy", "auto"};
    static const uint32_t ranks[] = {1, 2, 4};
    struct scratch *s = *state;
    char data[SCRATCH_PATH_BYTES], one[SCRATCH_PATH_BYTES];
    (void)snprintf(data, sizeof(data), "%s", input(s));
    for (size_t b = 0; b < 4; b++) {
        const double sample = b % 2 ? 0.5 : 1;
        make_one(s, data, builders[b], sample, 0, one);
        for (int kind = 0; kind < NET_KINDS; kind++)
            for (size_t i = 0; net_kind_there((enum net_kind)kind) && i < 3; i++) {
                struct job *job = job_new(s, data, builders[b]);
                for (size_t r = 0; r < NET_RANKS; r++)
                    job->run[r].options.blocks.sample = sample;
                assert_same_plan(job, (enum net_kind)kind, ranks[i], s, one);
                free(job);
            }
    }
}

static void look_for_disk(void *ctx, enum drps_log_level level, const char *text)
{
    (void)level;
    if (strstr(text, "they stay on disk")) atomic_store((atomic_int *)ctx, 1);
}

/* So little that its accesses stay on disk, but for those of the most used rows. */
static void test_rank_with_little_memory_streams(void **state)
{
    struct scratch *s = *state;
    atomic_int streamed = 0;
    const struct drps_log log = {DRPS_LOG_INFO, look_for_disk, &streamed};
    char data[SCRATCH_PATH_BYTES], one[SCRATCH_PATH_BYTES];
    (void)snprintf(data, sizeof(data), "%s", input(s));
    make_one(s, data, "topk", 1, 8, one);
    struct job *job = job_new(s, data, "topk");
    for (size_t r = 0; r < NET_RANKS; r++)
        job->run[r].options.blocks.prune_to = 8;
    job->run[0].options.log = &log;
    job->run[1].options.memory_bytes = 16000;
    assert_same_plan(job, NET_INPROC, RANKS, s, one);
    assert_int_equal(atomic_load(&streamed), 1);
    free(job);
}

static void assert_no_plan(struct job *job, struct scratch *s)
{
    assert_int_equal(folder_entries(s->dir), 1); /* the data */
    free(job);
}

static void test_rank_that_cannot_count_is_named(void **state)
{
    struct scratch *s = *state;
    for (int kind = 0; kind < NET_KINDS; kind++) {
        if (!net_kind_there((enum net_kind)kind)) continue;
        struct job *job = job_new(s, input(s), "topk");
        job->run[1].options.memory_bytes = 800; /* not even to stream */
        run_job(job, (enum net_kind)kind, RANKS);
        expect(job, 0, DRPS_E_MEMORY_BUDGET, "rank 1: ");
        expect(job, 1, DRPS_E_MEMORY_BUDGET, "bytes");
        assert_no_plan(job, s);

        job = job_new(s, input(s), "topk");
        job->run[2].options.out = "/nowhere/plan";
        run_job(job, (enum net_kind)kind, RANKS);
        expect(job, 0, DRPS_E_PEER_FAILED, "rank 2 ");
        expect(job, 0, DRPS_E_PEER_FAILED, "/nowhere/plan.rank-2.partial");
        expect(job, 1, DRPS_E_PEER_FAILED, "gave up");
        expect(job, 2, -ENOENT, "/nowhere/plan.rank-2.partial");
        assert_no_plan(job, s);
    }
}

/* A folder in the way of rank 0's own share. */
static void test_rank_0_that_cannot_count_fails(void **state)
{
    struct scratch *s = *state;
    struct job *job = job_new(s, input(s), "greedy");
    const char *path = scratch_path(s, "plan.rank-0.partial");
    assert_int_equal(drps_io_os()->ops->mkdir(drps_io_os()->ctx, path, 0777), 0);
    scratch_file(s, "plan.rank-0.partial/mine", "", 0);
    run_job(job, NET_INPROC, RANKS);
    expect(job, 0, -EEXIST, "plan.rank-0.partial is in the way");
    expect(job, 1, DRPS_E_PEER_FAILED, "gave up: ");
    expect(job, 2, DRPS_E_PEER_FAILED, "gave up: ");
    assert_int_equal(drps_io_remove_tree(drps_io_os(), path, NULL), 0);
    assert_no_plan(job, s);
}

static void test_interrupted_rank_ends_all(void **state)
{
    const atomic_int now = 1;
    struct scratch *s = *state;
    for (int kind = 0; kind < NET_KINDS; kind++)
        for (uint32_t who = 0; net_kind_there((enum net_kind)kind) && who < RANKS; who++) {
            struct job *job = job_new(s, input(s), "greedy");
            char name[16];
            (void)snprintf(name, sizeof(name), "rank %u ", who);
            job->run[who].options.interrupt = &now;
            run_job(job, (enum net_kind)kind, RANKS);
            for (uint32_t r = 0; r < RANKS; r++) {
                expect(job, r, r == who ? DRPS_E_INTERRUPTED : DRPS_E_PEER, "interrupted");
                if (r != who) expect(job, r, DRPS_E_PEER, name);
            }
            assert_no_plan(job, s);
        }
}

/* When all have counted, a folder gets in the way of the plan. */
static void block_plan(void *ctx, enum drps_log_level level, const char *text)
{
    struct scratch *s = ctx;
    (void)level;
    if (!strstr(text, "ranks counted")) return;
    const char *path = scratch_path(s, "plan");
    assert_int_equal(drps_io_os()->ops->mkdir(drps_io_os()->ctx, path, 0777), 0);
    scratch_file(s, "plan/mine", "", 0);
}

static void test_rank_0_that_fails_after_the_counting_fails_all(void **state)
{
    struct scratch *s = *state;
    const struct drps_log log = {DRPS_LOG_INFO, block_plan, s};
    for (int kind = 0; kind < NET_KINDS; kind++) {
        if (!net_kind_there((enum net_kind)kind)) continue;
        struct job *job = job_new(s, input(s), "topk");
        job->run[0].options.log = &log;
        run_job(job, (enum net_kind)kind, RANKS);
        assert_true(job->rc[0] < 0);
        for (uint32_t r = 1; r < RANKS; r++) {
            expect(job, r, DRPS_E_PEER_FAILED, "rank 0 ");
            expect(job, r, DRPS_E_PEER_FAILED, job->err[0].text);
        }
        assert_int_equal(drps_io_remove_tree(drps_io_os(), scratch_path(s, "plan"), NULL), 0);
        assert_no_plan(job, s);
    }
}

/* When all have counted, rank 2 is interrupted, and rank 0 goes on once it has left. */
static void lose_rank_2(void *ctx, enum drps_log_level level, const char *text)
{
    struct loss *loss = ctx;
    (void)level;
    if (!strstr(text, "ranks counted")) return;
    atomic_store(&loss->interrupt, 1);
    while (!atomic_load(&loss->left))
        (void)sched_yield();
}

static void run_and_tell(struct drps_net *net, uint32_t rank, void *ctx)
{
    struct job *job = ctx;
    run_rank(net, rank, job);
    if (rank == 2) atomic_store(&job->loss.left, 1);
}

/* The plan is made without it, and who waits for the plan is told so. */
static void test_rank_lost_after_the_counting_fails_alone(void **state)
{
    struct scratch *s = *state;
    for (int kind = 0; kind < NET_KINDS; kind++) {
        if (!net_kind_there((enum net_kind)kind)) continue;
        struct drps_net_options options;
        struct net_job net;
        struct job *job = job_new(s, input(s), "topk");
        const struct drps_log log = {DRPS_LOG_INFO, lose_rank_2, &job->loss};
        job->run[0].options.log = &log;
        job->run[2].options.interrupt = &job->loss.interrupt;
        drps_index_net_options(&options);
        options.job_id = 7;
        net_job_open(&net, (enum net_kind)kind, RANKS, &options);
        net_job_run(&net, run_and_tell, job);
        expect(job, 0, 0, "");
        expect(job, 1, 0, "");
        expect(job, 2, DRPS_E_INTERRUPTED, "interrupted");
        case_verify(job->run[0].out);
        assert_int_equal(drps_io_remove_tree(drps_io_os(), job->run[0].out, NULL), 0);
        assert_no_plan(job, s);
    }
}

/* Whatever ends the run on rank 0 ends those who wait to count. */
static void test_mistakes_end_all(void **state)
{
    struct scratch *s = *state;
    for (int i = 0; i < 3; i++) {
        struct job *job = job_new(s, input(s), i == 0 ? "pattern" : "topk");
        if (i == 1) job->run[0].options.blocks.shards = 2;
        if (i == 2) job->run[0].inputs[0] = "/nowhere/data";
        run_job(job, NET_INPROC, RANKS);
        expect(job, 0, i < 2 ? DRPS_E_CONFIG : -ENOENT,
               i == 0   ? "block builder pattern counts nothing"
               : i == 1 ? "shards are processes of one machine"
                        : "/nowhere/data");
        expect(job, 1, DRPS_E_PEER_FAILED, "gave up: ");
        expect(job, 2, DRPS_E_PEER_FAILED, "gave up: ");
        assert_no_plan(job, s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_plan_is_that_of_one_process, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_rank_with_little_memory_streams, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_rank_that_cannot_count_is_named, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_rank_0_that_cannot_count_fails, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_rank_0_that_fails_after_the_counting_fails_all,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_interrupted_rank_ends_all, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_rank_lost_after_the_counting_fails_alone,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_mistakes_end_all, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
