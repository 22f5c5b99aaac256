/* The row lists of a share of the samples against samples picked one by one from the plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "index/blocks/sampled.h"
#include "index/walk/drps_walk.h"
#include "support/fault_io.h"
#include "support/index_case.h"
#include "support/lists.h"

enum { SAMPLES = 500, FEATURES = 60, BATCH = 20 };

/* The rows of the batch that is being picked, and the lists that they are compared with. */
struct picked {
    uint8_t in[FEATURES + 10];
    uint64_t samples, lists, chosen;
    struct steps *found;
};

static void compare(struct picked *p, uint64_t rows)
{
    struct drps_err err = DRPS_ERR_INIT;
    const uint32_t *list;
    size_t n, at = 0;
    assert_ok(drps_steps_rows(p->found, p->lists++, rows, &list, &n, &err), &err);
    for (uint32_t row = 0; row < rows; row++) {
        if (!p->in[row]) continue;
        assert_true(at < n);
        assert_int_equal(list[at++], row);
    }
    assert_int_equal(at, n);
    memset(p->in, 0, sizeof(p->in));
    p->samples = 0;
}

/* Samples of the batch, numbered from `number` on. */
static void pick(struct picked *p, const struct drps_plan_info *info, const struct drps_batch *b,
                 const uint32_t *rows, uint64_t number, double share, uint64_t seed)
{
    for (size_t s = 0; s < b->samples; s++) {
        if (!((double)drps_mix64(drps_mix64(number + s) ^ seed) < share * 0x1p64)) continue;
        p->chosen++;
        p->in[0] |= (uint8_t)drps_plan_common_rows(info);
        for (size_t j = drps_batch_start(b, s); j < drps_batch_start(b, s + 1); j++)
            p->in[rows[drps_batch_local(b, j)]] = 1;
        if (++p->samples == info->batch_size) compare(p, info->rows);
    }
}

static void check(struct scratch *scratch, int no_bias, double share)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct picked p = {0};
    struct drps_walk w;
    struct case_run c;
    uint64_t number = 0;
    case_begin(&c, scratch, case_input(scratch, "in", CASE_LIBSVM, SAMPLES, FEATURES, 7), "lor");
    c.options.no_bias = no_bias;
    c.options.batch_size = BATCH;
    c.options.force = 1;
    struct drps_plan *plan = case_plan(&c);
    const struct drps_plan_info *info = &plan->info;
    const char *dir = scratch_path(scratch, "lists");
    const struct blocks_job job = {
        .io = drps_io_os(), .from = plan->dir, .options = {.sample = share, .seed = 3}};
    assert_ok(drps_sampled_lists(&job, info, dir, &err), &err);
    assert_ok(drps_steps_open(drps_io_os(), dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS, info->batches, 1,
                              &p.found, &err),
              &err);
    assert_ok(drps_walk_open(&w, plan, &err), &err);
    for (uint64_t step = 0; step < info->batches; step++) {
        const uint32_t *rows;
        struct drps_batch b;
        assert_ok(drps_walk_read(&w, step, &b, &rows, &err), &err);
        pick(&p, info, &b, rows, number, share, 3);
        number += b.samples;
    }
    if (p.samples) compare(&p, info->rows);
    assert_in_range(p.chosen, (uint64_t)(share * SAMPLES / 2), (uint64_t)(share * SAMPLES * 2));
    while (p.lists < info->batches)
        compare(&p, info->rows); /* the rest are empty */
    drps_walk_close(&w);
    drps_steps_close(p.found);
    drps_plan_close(plan);
    assert_ok(drps_io_remove_tree(drps_io_os(), dir, &err), &err);
}

static void test_lists_are_those_of_the_chosen_samples(void **state)
{
    struct scratch scratch;
    (void)state;
    scratch_begin(&scratch);
    check(&scratch, 0, 0.3);
    check(&scratch, 1, 0.9);
    check(&scratch, 0, 0.02);
    scratch_end(&scratch);
}

/* A share of the samples is counted for blocks, and its folder is gone; all of them are the batches
 * as they are. */
static void test_blocks_are_built_from_a_share(void **state)
{
    uint64_t blocks[3];
    static const double shares[] = {0, 1, 0.1};
    struct scratch scratch;
    (void)state;
    scratch_begin(&scratch);
    for (int i = 0; i < 3; i++) {
        struct case_run c;
        case_begin(&c, &scratch, case_input(&scratch, "in", CASE_LIBSVM, SAMPLES, FEATURES, 7),
                   "lor");
        c.options.batch_size = BATCH;
        c.options.blocks.by = "topk";
        c.options.blocks.sample = shares[i];
        c.options.blocks.sample_samples = i > 0;
        c.options.blocks.min_gain_us = 300;
        c.options.force = 1;
        case_compile(&c);
        case_verify(c.out);
        blocks[i] = c.result.info.blocks;
    }
    assert_int_equal(blocks[0], blocks[1]);
    assert_true(blocks[2] != blocks[0]);
    scratch_end(&scratch);
}

/* A run that fails while blocks are built leaves nothing, wherever it fails. */
static void test_a_failure_leaves_nothing(void **state)
{
    struct scratch scratch;
    int fired = 1;
    (void)state;
    scratch_begin(&scratch);
    for (long k = 1; fired; k++) {
        struct case_run c;
        struct drps_err err = DRPS_ERR_INIT;
        struct fault_io *f = fault_io_new(drps_io_os());
        case_begin(&c, &scratch, case_input(&scratch, "in", CASE_LIBSVM, 200, 40, 7), "lor");
        c.options.batch_size = BATCH;
        c.options.blocks.by = "topk";
        c.options.blocks.sample = 0.5;
        c.options.blocks.sample_samples = 1;
        fault_io_arm(f, FAULT_PREAD | FAULT_PWRITE | FAULT_MKDIR, k, 0, FAULT_ERROR, -EIO);
        const int rc = drps_index_run(&f->io, &c.options, &c.result, &err);
        fired = atomic_load(&f->fired);
        if (rc < 0 && folder_entries(scratch.dir) != 1) fail_msg("after call %ld: %s", k, err.text);
        assert_true(fired || rc == 0);
        fault_io_free(f);
    }
    scratch_end(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_are_those_of_the_chosen_samples),
        cmocka_unit_test(test_blocks_are_built_from_a_share),
        cmocka_unit_test(test_a_failure_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
