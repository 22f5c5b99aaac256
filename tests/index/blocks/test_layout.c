/* Whole plans with each block builder: the same samples, rows renumbered, blocks that add up. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/drps_endian.h"
#include "index/plan/codec/list_internal.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_plan.h"
#include "support/index_case.h"
#include "support/lists.h"
#include "support/scratch.h"

static const char *const builders[] = {"none",   "pattern", "pairwise",  "topk",
                                       "greedy", "id",      "frequency", "random"};
enum { BUILDERS = sizeof(builders) / sizeof(builders[0]) };

static void must_run(struct case_run *c)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_index_run(drps_io_os(), &c->options, &c->result, &err) < 0)
        fail_msg("%s: %s", c->options.blocks.by, err.text);
}

/* A plan by builder b, in "plan-b". */
static void build(struct case_run *c, struct scratch *s, const char *input, const char *algo,
                  uint32_t batch_size, int b)
{
    case_begin(c, s, input, algo);
    c->options.blocks.by = builders[b];
    c->options.batch_size = batch_size;
    c->options.test_fraction = 0.1;
    (void)snprintf(c->out, sizeof(c->out), "%s-%d", scratch_path(s, "plan"), b);
    must_run(c);
    case_verify(c->out);
}

static void check_same_samples(struct scratch *s, const char *input, const char *algo,
                               uint32_t batch_size)
{
    struct case_lines want[2] = {{0}};
    struct case_run c;
    for (int b = 0; b < BUILDERS; b++) {
        build(&c, s, input, algo, batch_size, b);
        for (int evaluation = 0; evaluation < 2; evaluation++) {
            struct case_lines got = {0};
            case_plan_lines(c.out, evaluation, 0, b ? &got : &want[evaluation]);
            assert_true(want[evaluation].n > 0);
            if (b && !case_lines_equal(&got, &want[evaluation]))
                fail_msg("--blocks %s: other samples, or in another order", builders[b]);
            case_lines_free(&got);
        }
    }
    case_lines_free(&want[0]);
    case_lines_free(&want[1]);
}

static void test_layout_keeps_the_samples(void **state)
{
    struct scratch *s = *state;
    check_same_samples(s, case_input(s, "input", CASE_LIBSVM, 600, 300, 3), "lor", 20);
}

static void test_layout_keeps_the_samples_of_names(void **state)
{
    struct scratch *s = *state;
    check_same_samples(s, case_input(s, "input", CASE_CSV, 600, 200, 4), "fm", 20);
}

static void test_layout_keeps_the_samples_of_two_tables(void **state)
{
    struct scratch *s = *state;
    check_same_samples(s, case_input(s, "input", CASE_RATINGS, 900, 150, 5), "lmf", 20);
}

static void check_dense_lists(const char *dir)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_plan *plan;
    struct drps_recfile *lists;
    assert_ok(drps_plan_open(drps_io_os(), dir, &plan, &err), &err);
    assert_ok(drps_plan_file(plan, "rows.rec", DRPS_KIND_ROWS, &lists, &err), &err);
    assert_true(plan->info.batches >= 3 && plan->info.max_batch_nnz >= 1 << 12);
    for (uint64_t s = 0; s < plan->info.batches; s++) {
        char *run = malloc(drps_recfile_run_bytes(lists, s, 1));
        assert_non_null(run);
        assert_ok(drps_recfile_read(lists, s, 1, run, &err), &err);
        assert_true(drps_get_u32(run + drps_recfile_offset_in_run(lists, s, s)) & DRPS_LIST_DENSE);
        free(run);
    }
    drps_recfile_close(lists);
    drps_plan_close(plan);
}

/* Two threads share them when they are renumbered. Whoever wrote them, row lists are packed alike.
 */
static void test_layout_keeps_the_samples_of_large_batches(void **state)
{
    struct scratch *s = *state;
    char dir[SCRATCH_PATH_BYTES + 8];
    check_same_samples(s, case_input(s, "input", CASE_LIBSVM, 6000, 300, 6), "lor", 1500);
    for (int b = 0; b < BUILDERS; b++) {
        (void)snprintf(dir, sizeof(dir), "%s-%d", scratch_path(s, "plan"), b);
        check_dense_lists(dir);
    }
}

/* What the plan says about its blocks, recounted from its row lists. */
static void recount(const char *dir, struct drps_plan_info *got)
{
    struct drps_plan *plan;
    struct drps_recfile *f;
    uint32_t *first;
    struct drps_err err = DRPS_ERR_INIT;

    assert_int_equal(drps_plan_open(drps_io_os(), dir, &plan, &err), 0);
    const struct drps_plan_info *info = &plan->info;
    const uint64_t gap = info->seek_ns * info->transfer_bps / info->row_bytes / 1000000000;
    assert_int_equal(drps_plan_blocks(plan, &first, &err), 0);
    assert_int_equal(drps_plan_file(plan, "rows.rec", DRPS_KIND_ROWS, &f, &err), 0);
    *got = (struct drps_plan_info){0};
    for (uint64_t i = 0; i < drps_recfile_count(f); i++) {
        void *record = malloc(drps_recfile_run_bytes(f, i, 1));
        assert_int_equal(drps_recfile_read(f, i, 1, record, &err), 0);
        const uint32_t n = drps_list_count(record);
        uint32_t *rows = malloc((n + 1) * sizeof(*rows));
        assert_int_equal(drps_list_decode(record, drps_recfile_bytes(f, i), rows, NULL, &err), 0);
        got->row_uses += n;
        uint64_t end = 0;
        for (uint64_t b = 0; b < info->blocks; b++) {
            int used = 0;
            for (uint32_t k = 0; k < n; k++)
                used |= rows[k] >= first[b] && rows[k] < first[b + 1];
            if (!used) continue;
            got->block_uses++;
            got->block_use_rows += first[b + 1] - first[b];
            if (end && first[b] - end <= gap) {
                got->run_rows += first[b + 1] - end;
            } else {
                got->runs++;
                got->run_rows += first[b + 1] - first[b];
            }
            end = first[b + 1];
        }
        free(rows);
        free(record);
    }
    free(first);
    drps_recfile_close(f);
    drps_plan_close(plan);
}

static void test_layout_says_what_blocks_cost(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    const char *input = case_input(s, "input", CASE_LIBSVM, 400, 250, 6);
    for (int b = 0; b < BUILDERS; b++) {
        struct drps_plan_info want;
        case_begin(&c, s, input, "fm");
        c.options.blocks.by = builders[b];
        c.options.batch_size = 20;
        c.options.force = 1;
        c.options.blocks.seek_ns = 3000;
        c.options.blocks.transfer_bps = 200000000; /* gaps of 4 rows of 136 bytes */
        must_run(&c);
        recount(c.out, &want);
        assert_true(want.block_uses > 0 && want.runs < want.block_uses);
        assert_int_equal(c.result.info.row_uses, want.row_uses);
        assert_int_equal(c.result.info.block_uses, want.block_uses);
        assert_int_equal(c.result.info.block_use_rows, want.block_use_rows);
        assert_int_equal(c.result.info.runs, want.runs);
        assert_int_equal(c.result.info.run_rows, want.run_rows);
    }
}

static double cost(const struct drps_plan_info *i)
{
    return (double)i->block_uses * (double)i->seek_ns +
           (double)i->block_use_rows * (double)i->row_bytes * 1e9 / (double)i->transfer_bps;
}

static void test_layout_merging_saves(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    double got[BUILDERS];
    const char *input = case_input(s, "input", CASE_LIBSVM, 600, 300, 7);
    for (int b = 0; b < BUILDERS; b++) {
        build(&c, s, input, "lor", 20, b);
        got[b] = cost(&c.result.info);
    }
    assert_true(got[2] < got[0]); /* pairwise costs less than one row a block */
    assert_true(got[3] < got[0]);
    assert_true(got[4] < got[0]);
}

static void test_layout_is_the_same_with_shards(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    const char *input = case_input(s, "input", CASE_LIBSVM, 600, 300, 10);
    static const char *const counting[] = {"topk", "greedy", "frequency"};
    for (size_t b = 0; b < sizeof(counting) / sizeof(counting[0]); b++) {
        for (unsigned shards = 1; shards <= 3; shards += 2) {
            case_begin(&c, s, input, "lor");
            c.options.blocks.by = counting[b];
            c.options.blocks.shards = shards;
            c.options.batch_size = 20;
            c.options.force = 1;
            (void)snprintf(c.out, sizeof(c.out), "%s-%u", scratch_path(s, "plan"), shards);
            must_run(&c);
        }
        assert_true(case_same_records(scratch_path(s, "plan-1"), scratch_path(s, "plan-3")));
    }
}

static void test_layout_prunes_to_the_most_used(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    uint64_t blocks[3];
    const char *input = case_input(s, "input", CASE_LIBSVM, 600, 300, 11);
    static const uint32_t kept[] = {1, 50, 1000};
    for (int i = 0; i < 3; i++) {
        case_begin(&c, s, input, "lor");
        c.options.blocks.by = "topk";
        c.options.blocks.prune_to = kept[i];
        c.options.batch_size = 20;
        c.options.force = 1;
        must_run(&c);
        blocks[i] = c.result.info.blocks;
    }
    assert_int_equal(blocks[0], c.result.info.rows); /* one row has nobody to merge with */
    assert_true(blocks[1] < blocks[0] && blocks[1] >= blocks[0] - 50);
    assert_true(blocks[2] < blocks[1]);
}

static void test_layout_prunes_to_a_share(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    uint64_t blocks[2], rows = 0;
    const char *input = case_input(s, "input", CASE_LIBSVM, 600, 300, 11);
    for (int i = 0; i < 2; i++) {
        case_begin(&c, s, input, "lor");
        c.options.blocks.by = "topk";
        if (i)
            c.options.blocks.prune_to = (uint32_t)round(0.25 * (double)rows);
        else
            c.options.blocks.keep_share = 0.25;
        c.options.batch_size = 20;
        c.options.force = 1;
        must_run(&c);
        blocks[i] = c.result.info.blocks;
        rows = c.result.info.rows;
    }
    assert_int_equal(blocks[0], blocks[1]);
    assert_true(blocks[0] < rows);
}

static void test_layout_refuses(void **state)
{
    static const struct {
        struct drps_blocks_options blocks;
        int rc;
        const char *says;
    } cases[] = {
        {{.by = "large"}, DRPS_E_CONFIG, "no block builder large"},
        {{.by = "topk", .sample = 1.5}, DRPS_E_CONFIG, "share of batches"},
        {{.by = "topk", .prune = 3, .prune_to = 100},
         DRPS_E_CONFIG,
         "to prune all but so many rows"},
        {{.prune_to = 100}, DRPS_E_CONFIG, "pattern prunes no rows"},
        {{.by = "auto", .prune = 3}, DRPS_E_CONFIG, "auto prunes no rows"},
        {{.by = "frequency", .keep_share = 0.1}, DRPS_E_CONFIG, "frequency prunes no rows"},
        {{.sample = 0.1, .sample_samples = 1}, DRPS_E_CONFIG, "pattern counts nothing"},
        {{.by = "topk", .shards = 1000}, DRPS_E_CONFIG, "the shards"},
        {{.calibrate = "/nowhere/at/all"}, -ENOENT, "/nowhere/at/all"},
        {{.calibrate = ".", .seek_ns = 1}, DRPS_E_CONFIG, "to measure the disk"},
    };
    struct scratch *s = *state;
    struct case_run c;
    const char *input = case_input(s, "input", CASE_LIBSVM, 100, 50, 8);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        case_begin(&c, s, input, "lor");
        c.options.blocks = cases[i].blocks;
        assert_int_equal(drps_index_run(drps_io_os(), &c.options, &c.result, &err), cases[i].rc);
        if (!strstr(err.text, cases[i].says)) fail_msg("case %zu: %s", i, err.text);
        assert_int_equal(access(c.out, F_OK), -1);
    }
}

static void test_layout_calibrates(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 100, 50, 9), "lor");
    c.options.blocks.calibrate = scratch_path(s, ".");
    must_run(&c);
    assert_true(c.result.info.seek_ns > 0);
    assert_true(c.result.info.transfer_bps > 1000000);
    assert_int_equal(folder_entries(s->dir), 2); /* input and plan */
}

static int fails_to_measure(const struct drps_plan *plan, uint64_t memory_bytes,
                            struct drps_speeds *speeds, struct drps_err *err)
{
    (void)memory_bytes;
    speeds->sample_ns = 3;
    return drps_err_set(err, -EIO, "%s is not to be had", plan->dir);
}

static int cannot_say(const struct drps_plan *plan, uint64_t memory_bytes,
                      struct drps_speeds *speeds, struct drps_err *err)
{
    (void)plan, (void)memory_bytes, (void)err;
    speeds->sample_ns = 3;
    return 1;
}

static int a_microsecond_each(const struct drps_plan *plan, uint64_t memory_bytes,
                              struct drps_speeds *speeds, struct drps_err *err)
{
    (void)err;
    assert_true(plan->info.batches > 0 && memory_bytes > 0 && speeds->read_bps > 0);
    speeds->sample_ns = 1000;
    speeds->test_sample_ns = 500;
    return 0;
}

/* Time is forecast where disk and arithmetic were measured, in the plan as in the result; of
 * several workers that of the slowest. */
static void check_time(const struct case_run *c, uint32_t workers)
{
    struct drps_plan *plan;
    assert_int_equal(drps_plan_open(drps_io_os(), c->out, &plan, NULL), 0);
    assert_true(plan->info.speeds.sample_ns == 1000 && plan->info.speeds.write_bps > 0);
    assert_true(drps_disk_pace_is_known(&plan->info.speeds.pace));
    assert_true(c->result.forecasts > 0);
    for (size_t i = 0; i < c->result.forecasts; i++) {
        const struct drps_forecast *f = &c->result.forecast[i];
        const double all =
            ((double)plan->info.samples + .5 * (double)plan->info.test_samples) * 1e-6;
        if (!f->feasible) continue;
        assert_true(f->seconds.compute > .99 * all / workers &&
                    f->seconds.compute < 1.01 * all / workers);
        assert_true((f->seconds.disk > 0) == (f->read_bytes + f->written_bytes > 0));
        assert_true(f->seconds.epoch >= f->seconds.disk && f->seconds.epoch >= f->seconds.compute);
    }
    drps_plan_close(plan);
}

static void test_time_is_forecast_where_speeds_are_measured(void **state)
{
    struct scratch *s = *state;
    (void)state;
    for (uint32_t workers = 1; workers <= 3; workers += 2) {
        struct case_run c;
        case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 1000, 300, 9), "lor");
        c.options.blocks.calibrate = scratch_path(s, ".");
        c.options.arithmetic = a_microsecond_each;
        c.options.test_fraction = .2;
        c.options.workers = workers;
        c.options.force = 1;
        must_run(&c);
        check_time(&c, workers);
    }
}

/* Nor does it end the run. */
static void test_without_speeds_no_time_is_said(void **state)
{
    static const struct {
        const char *name;
        int calibrates;
        int (*arithmetic)(const struct drps_plan *, uint64_t, struct drps_speeds *,
                          struct drps_err *);
    } cases[] = {{"the disk is not measured", 0, a_microsecond_each},
                 {"arithmetic is not", 1, NULL},
                 {"it fails", 1, fails_to_measure},
                 {"it cannot be", 1, cannot_say}};
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct case_run c;
        struct drps_plan *plan;
        case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 100, 50, 9), "lor");
        if (cases[i].calibrates) c.options.blocks.calibrate = scratch_path(s, ".");
        c.options.arithmetic = cases[i].arithmetic;
        c.options.force = 1;
        must_run(&c);
        assert_int_equal(drps_plan_open(drps_io_os(), c.out, &plan, NULL), 0);
        if (drps_speeds_are_known(&plan->info.speeds) || c.result.forecast[0].seconds.epoch > 0)
            fail_msg("%s, and there is a time", cases[i].name);
        drps_plan_close(plan);
    }
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_layout_keeps_the_samples),
        SCRATCH_TEST(test_layout_keeps_the_samples_of_names),
        SCRATCH_TEST(test_layout_keeps_the_samples_of_two_tables),
        SCRATCH_TEST(test_layout_keeps_the_samples_of_large_batches),
        SCRATCH_TEST(test_layout_says_what_blocks_cost),
        SCRATCH_TEST(test_layout_merging_saves),
        SCRATCH_TEST(test_layout_is_the_same_with_shards),
        SCRATCH_TEST(test_layout_prunes_to_the_most_used),
        SCRATCH_TEST(test_layout_prunes_to_a_share),
        SCRATCH_TEST(test_layout_refuses),
        SCRATCH_TEST(test_layout_calibrates),
        SCRATCH_TEST(test_time_is_forecast_where_speeds_are_measured),
        SCRATCH_TEST(test_without_speeds_no_time_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
