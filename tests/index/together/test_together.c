/*
 * A plan of several machines, each with inputs of its own, against the plan of one machine with all
 * inputs: the same bytes in every file, whatever the transport. Ranks that fail, or were started
 * with other options, end all others and leave nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "index/drps_index.h"
#include "index/together/drps_together_run.h"
#include "support/index_case.h"
#include "support/lists.h"
#include "support/net_job.h"
#include "support/scratch.h"

enum { MOST = 4 };

/* What is compiled: the same by one machine and by several. */
struct wish {
    const char *algo, *order, *partition, *samples, *blocks;
    enum case_format format;
    double test_fraction;
    uint64_t batch_size;
    size_t samples_of[MOST]; /* that each input has */
};

struct job {
    const struct wish *wish;
    struct scratch *scratch;
    uint32_t ranks;
    int one_disk; /* 1: all make the same folder */
    int force;
    const struct drps_io *io; /* NULL: the system's */
    uint64_t seed_of[MOST];
    char input[MOST][SCRATCH_PATH_BYTES], out[MOST][SCRATCH_PATH_BYTES];
    int rc[MOST];
    struct drps_err err[MOST];
};

static void fill(const struct wish *w, struct drps_index_options *o)
{
    *o = (struct drps_index_options){.algo = w->algo,
                                     .order = w->order,
                                     .partition = w->partition,
                                     .samples = w->samples,
                                     .blocks = {.by = w->blocks},
                                     .test_fraction = w->test_fraction,
                                     .batch_size = w->batch_size,
                                     .memory_bytes = 64 << 20,
                                     .seed = 5};
    if (w->format == CASE_CSV) o->reader.csv_scale = "none"; /* else that of the first input */
}

static void make_inputs(struct job *job)
{
    for (uint32_t r = 0; r < job->ranks; r++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "input-%u", r);
        (void)snprintf(job->input[r], SCRATCH_PATH_BYTES, "%s",
                       case_input(job->scratch, name, job->wish->format, job->wish->samples_of[r],
                                  300, 7 + r));
        (void)snprintf(name, sizeof(name), job->one_disk ? "plan" : "plan-%u", r);
        (void)snprintf(job->out[r], SCRATCH_PATH_BYTES, "%s", scratch_path(job->scratch, name));
        job->seed_of[r] = 5;
    }
}

static void run_one(struct job *job, char out[SCRATCH_PATH_BYTES])
{
    const char *inputs[MOST];
    struct drps_index_options o;
    struct drps_index_result *result = must(malloc(sizeof(*result)));
    struct drps_err err = DRPS_ERR_INIT;
    for (uint32_t r = 0; r < job->ranks; r++)
        inputs[r] = job->input[r];
    fill(job->wish, &o);
    o.inputs = inputs;
    o.inputs_n = job->ranks;
    o.workers = job->ranks;
    (void)snprintf(out, SCRATCH_PATH_BYTES, "%s", scratch_path(job->scratch, "one"));
    o.out = out;
    assert_ok(drps_index_run(drps_io_os(), &o, result, &err), &err);
    free(result);
}

static void run_rank(struct drps_net *net, uint32_t rank, void *ctx)
{
    struct job *job = ctx;
    const char *inputs[1] = {job->input[rank]};
    struct drps_index_options o;
    struct drps_index_result *result = malloc(sizeof(*result));
    NET_CHECK(result);
    fill(job->wish, &o);
    o.inputs = inputs;
    o.inputs_n = 1;
    o.out = job->out[rank];
    o.seed = job->seed_of[rank];
    o.force = job->force;
    job->rc[rank] = drps_together_run_on(net, job->io, &o, result, &job->err[rank]);
    free(result);
}

static void run_ranks(struct job *job, enum net_kind kind)
{
    struct drps_net_options options;
    struct net_job net;
    drps_together_net_options(&options);
    options.job_id = 9;
    net_job_open(&net, kind, job->ranks, &options);
    net_job_run(&net, run_rank, job);
}

static void expect_same(const char *a_dir, const char *b_dir, const char *name)
{
    char a[SCRATCH_PATH_BYTES], b[SCRATCH_PATH_BYTES];
    NET_CHECK((size_t)snprintf(a, sizeof(a), "%s/%s", a_dir, name) < sizeof(a));
    NET_CHECK((size_t)snprintf(b, sizeof(b), "%s/%s", b_dir, name) < sizeof(b));
    if (!files_equal(a, b)) fail_msg("%s and %s differ", a, b);
}

/* Every file of the plan, and of the folder of each rank. */
static void expect_plan(const struct job *job, const char *one)
{
    static const char *const files[] = {"plan.json",     "data.rec",    "rows.rec",
                                        "shares.rec",    "blocks.rec",  "uses.rec",
                                        "positions.rec", "windows.rec", "slots.rec"};
    expect_same(one, job->out[0], "plan.json");
    expect_same(one, job->out[0], "names.rec");
    for (uint32_t r = 0; r < job->ranks; r++) {
        for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
            char name[64];
            (void)snprintf(name, sizeof(name), "rank-%u/%s", r, files[f]);
            expect_same(one, job->out[r], name);
        }
        expect_same(one, job->out[r], "plan.json");
    }
}

static void compare(struct scratch *s, const struct wish *wish, uint32_t ranks, enum net_kind kind,
                    int one_disk)
{
    char one[SCRATCH_PATH_BYTES];
    struct job *job = must(calloc(1, sizeof(*job)));
    *job = (struct job){.wish = wish, .scratch = s, .ranks = ranks, .one_disk = one_disk};
    print_message("%s, %s, partition %s, samples %s, %u ranks\n", wish->algo, wish->order,
                  wish->partition, wish->samples, ranks);
    make_inputs(job);
    run_one(job, one);
    run_ranks(job, kind);
    for (uint32_t r = 0; r < ranks; r++)
        if (job->rc[r]) fail_msg("rank %u of %u: %s", r, ranks, job->err[r].text);
    expect_plan(job, one);
    assert_int_equal(folder_entries(s->dir), ranks + 1 + (one_disk ? 1 : ranks));
    assert_int_equal(drps_io_remove_tree(drps_io_os(), one, NULL), 0);
    for (uint32_t r = 0; r < ranks; r++)
        assert_int_equal(drps_io_remove_tree(drps_io_os(), job->input[r], NULL), 0);
    for (uint32_t r = 0; r < (one_disk ? 1 : ranks); r++)
        assert_int_equal(drps_io_remove_tree(drps_io_os(), job->out[r], NULL), 0);
    free(job);
}

static const struct wish wishes[] = {
    {"lor", "shuffled", "auto", "dealt", "pattern", CASE_LIBSVM, 0.2, 50, {900, 1200, 700, 40}},
    {"lor", "given", "range", "dealt", "none", CASE_LIBSVM, 0.1, 33, {100, 7, 501, 300}},
    {"fm", "shuffled", "range", "dealt", "pattern", CASE_CSV, 0.3, 20, {400, 300, 200, 500}},
    {"lmf", "shuffled", "auto", "dealt", "pattern", CASE_RATINGS, 0.1, 64, {900, 1200, 700, 40}},
    {"ffm", "shuffled", "auto", "dealt", "pattern", CASE_LIBFFM, 0.1, 10, {90, 120, 70, 40}},
    {"lor", "shuffled", "auto", "kept", "pattern", CASE_LIBSVM, 0.2, 50, {900, 1200, 700, 40}},
    {"lor", "given", "range", "kept", "pattern", CASE_LIBSVM, 0, 50, {900, 1200, 700, 40}},
    {"lmf", "shuffled", "auto", "kept", "pattern", CASE_RATINGS, 0.1, 64, {9, 120, 700, 40}},
};
enum { WISHES = sizeof(wishes) / sizeof(wishes[0]) };

static void test_plan_is_that_of_one_machine(void **state)
{
    for (size_t i = 0; i < WISHES; i++)
        for (uint32_t ranks = 2; ranks <= MOST; ranks++)
            compare(*state, &wishes[i], ranks, NET_INPROC, (int)(ranks + i) % 2);
}

static void test_plan_is_that_of_one_machine_over_any_transport(void **state)
{
    for (int kind = 1; kind < NET_KINDS; kind++)
        if (net_kind_there((enum net_kind)kind))
            compare(*state, &wishes[0], 3, (enum net_kind)kind, kind % 2);
}

/* The plan of rank 0's samples and rank 2's, although rank 1 has none. */
static void test_a_rank_may_have_an_empty_file(void **state)
{
    static const enum case_format formats[] = {CASE_LIBSVM, CASE_CSV, CASE_RATINGS};
    for (size_t i = 0; i < 3; i++) {
        const struct wish wish = {.algo = "svm",
                                  .order = "shuffled",
                                  .partition = "auto",
                                  .samples = i ? "dealt" : "kept",
                                  .blocks = "pattern",
                                  .format = formats[i],
                                  .batch_size = 20,
                                  .samples_of = {300, 0, 100}};
        char one[SCRATCH_PATH_BYTES];
        struct scratch *s = *state;
        struct job *job = must(calloc(1, sizeof(*job)));
        *job = (struct job){.wish = &wish, .scratch = s, .ranks = 3, .one_disk = 1};
        make_inputs(job);
        scratch_write(job->input[1], "", 0);
        if (formats[i] == CASE_RATINGS)
            for (uint32_t r = 0; r < 3; r += 2)
                scratch_write(job->input[r], "u1\ti1\t1\nu2\ti2\t0\nu3\ti1\t1\n", 24);
        run_one(job, one);
        run_ranks(job, NET_INPROC);
        for (uint32_t r = 0; r < 3; r++)
            if (job->rc[r]) fail_msg("rank %u: %s", r, job->err[r].text);
        expect_plan(job, one);
        assert_int_equal(drps_io_remove_tree(drps_io_os(), one, NULL), 0);
        assert_int_equal(drps_io_remove_tree(drps_io_os(), job->out[0], NULL), 0);
        free(job);
    }
}

/* ---- Failures ---- */

static void expect_failure(struct scratch *s, struct job *job, const char *text)
{
    run_ranks(job, NET_INPROC);
    for (uint32_t r = 0; r < job->ranks; r++)
        if (job->rc[r] == 0 || !strstr(job->err[r].text, text))
            fail_msg("rank %u: %d, %s; expected %s", r, job->rc[r], job->err[r].text, text);
    assert_int_equal(folder_entries(s->dir), job->ranks); /* the inputs */
}

static void test_a_bad_line_ends_all(void **state)
{
    struct scratch *s = *state;
    struct job *job = must(calloc(1, sizeof(*job)));
    *job = (struct job){.wish = &wishes[0], .scratch = s, .ranks = 3};
    make_inputs(job);
    scratch_write(job->input[1], "1 1:1\n0 2:x\n", 12);
    expect_failure(s, job, "input-1:2");
    free(job);
}

static void test_other_options_are_refused(void **state)
{
    struct scratch *s = *state;
    struct job *job = must(calloc(1, sizeof(*job)));
    *job = (struct job){.wish = &wishes[0], .scratch = s, .ranks = 3};
    make_inputs(job);
    job->seed_of[2] = 6;
    expect_failure(s, job, "rank 2 was started with other options");
    free(job);
}

static void test_a_plan_that_is_there_stays(void **state)
{
    struct scratch *s = *state;
    struct job *job = must(calloc(1, sizeof(*job)));
    *job = (struct job){.wish = &wishes[0], .scratch = s, .ranks = 2};
    make_inputs(job);
    scratch_write(job->out[1], "mine", 4);
    run_ranks(job, NET_INPROC);
    assert_int_equal(job->rc[1], -EEXIST);
    assert_true(job->rc[0] < 0);
    assert_int_equal(folder_entries(s->dir), 3);
    free(job);
}

static int fail_join(void *ctx, const char *from, const char *to)
{
    const size_t n = strlen(from);
    if (n > 7 && strcmp(from + n - 7, ".rank-2") == 0) return -ENOSPC;
    return drps_io_os()->ops->rename(ctx, from, to);
}

static void test_a_rank_that_cannot_name_its_folder_leaves_no_plan(void **state)
{
    struct scratch *s = *state;
    struct drps_io_ops ops = *drps_io_os()->ops;
    const struct drps_io io = {.ops = &ops, .ctx = drps_io_os()->ctx};
    struct job *job = must(calloc(1, sizeof(*job)));
    *job = (struct job){.wish = &wishes[0], .scratch = s, .ranks = 3, .io = &io};
    ops.rename = fail_join;
    make_inputs(job);
    expect_failure(s, job, "cannot move");
    free(job);
}

static void test_the_same_plan_is_replaced_on_disks_of_their_own(void **state)
{
    struct scratch *s = *state;
    struct job *job = must(calloc(1, sizeof(*job)));
    *job = (struct job){.wish = &wishes[0], .scratch = s, .ranks = 3, .force = 1};
    make_inputs(job);
    for (int i = 0; i < 2; i++) {
        run_ranks(job, NET_INPROC);
        for (uint32_t r = 0; r < job->ranks; r++)
            if (job->rc[r]) fail_msg("run %d, rank %u: %s", i, r, job->err[r].text);
        assert_int_equal(folder_entries(s->dir), 6); /* inputs and plans */
    }
    free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_plan_is_that_of_one_machine, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_plan_is_that_of_one_machine_over_any_transport,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_a_rank_may_have_an_empty_file, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_a_bad_line_ends_all, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_other_options_are_refused, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_a_plan_that_is_there_stays, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_a_rank_that_cannot_name_its_folder_leaves_no_plan,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_the_same_plan_is_replaced_on_disks_of_their_own,
                                        scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
