/* How many rows may merge: as said, and as memory and time allow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "index/blocks/builders/drps_prune.h"
#include "index/blocks/builders/kept.h"
#include "index/blocks/counts/drps_counts.h"
#include "index/blocks/counts/drps_stream.h"
#include "support/lists.h"

/* The paper's example, section 4.2: of uses 20, 25, 3 and 4, a quarter is pruned: row 2. Then ties:
 * the first rows are kept. */
static void test_the_most_used_rows_are_kept(void **state)
{
    static const struct {
        const char *name;
        uint32_t uses[5], n, keep_rows, min_count;
        const char *kept; /* a digit a row */
    } cases[] = {
        {"three of the paper's four", {20, 25, 3, 4}, 4, 3, 0, "1101"},
        {"all", {20, 25, 3, 4}, 4, 0, 0, "1111"},
        {"more than there are", {20, 25, 3, 4}, 4, 9, 0, "1111"},
        {"of four batches", {20, 25, 3, 4}, 4, 0, 4, "1101"},
        {"both limits", {20, 25, 3, 4}, 4, 2, 4, "1100"},
        {"none", {20, 25, 3, 4}, 4, 0, 26, "0000"},
        {"the first of equal ones", {2, 7, 2, 2, 0}, 5, 3, 0, "11100"},
        {"rows of no batch", {0, 0, 1}, 3, 2, 0, "101"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct block_options options = {
            .sample = 1, .keep_rows = cases[i].keep_rows, .min_count = cases[i].min_count};
        uint32_t sorted[5];
        struct kept_limit limit;
        char kept[6] = "";
        memcpy(sorted, cases[i].uses, sizeof(sorted));
        for (uint32_t x = 0; x < cases[i].n; x++)
            for (uint32_t y = x + 1; y < cases[i].n; y++)
                if (sorted[y] < sorted[x]) {
                    const uint32_t swap = sorted[x];
                    sorted[x] = sorted[y];
                    sorted[y] = swap;
                }
        drps_kept_limit(sorted, cases[i].n, &options, &limit);
        for (uint32_t x = 0; x < cases[i].n; x++)
            kept[x] = drps_kept_limit_has(&limit, cases[i].uses[x]) ? '1' : '0';
        if (strcmp(kept, cases[i].kept))
            fail_msg("%s: kept %s, not %s", cases[i].name, kept, cases[i].kept);
    }
}

/* Counts that only tell how often rows are used. */
struct told {
    struct counts counts;
    uint32_t uses; /* of each */
};

static int told_counts(struct counts *t, uint32_t *out, struct drps_err *err)
{
    (void)err;
    for (uint32_t i = 0; i < t->blocks; i++)
        out[i] = ((struct told *)t)->uses;
    return 0;
}

static const struct counts_ops told_ops = {.counts = told_counts};

/* A million rows of a million batches each: 70 of them are 7e7 accesses, whose square is a million
 * times 4.9e9. Who says how many rows to keep is not limited. */
static void test_time_limits_what_is_kept(void **state)
{
    struct told t = {.counts = {.ops = &told_ops,
                                .blocks = 1000000,
                                .batches = 1000000,
                                .pair_accesses = UINT64_MAX},
                     .uses = 1000000};
    struct block_options options = {.sample = 1, .memory_bytes = UINT64_C(1) << 40};
    struct drps_err err = DRPS_ERR_INIT;
    struct prune_choice choice;
    (void)state;
    assert_ok(drps_prune_choose(&t.counts, &options, &choice, &err), &err);
    assert_int_equal(choice.asked, 1000000);
    assert_int_equal(choice.kept, 70);
    assert_true(choice.for_time);
    t.uses = 1; /* 223,606 squared are just below 5e10 */
    assert_ok(drps_prune_choose(&t.counts, &options, &choice, &err), &err);
    assert_int_equal(choice.kept, 223606);
    t.uses = 1000000;
    options.keep_rows = 999;
    assert_ok(drps_prune_choose(&t.counts, &options, &choice, &err), &err);
    assert_int_equal(choice.kept, 999);
    t.counts.pair_accesses = 50 * UINT64_C(1000000);
    assert_ok(drps_prune_choose(&t.counts, &options, &choice, &err), &err);
    assert_int_equal(choice.kept, 50);
    assert_false(choice.for_time);
    t.counts.pair_accesses = 0;
    assert_int_equal(drps_prune_choose(&t.counts, &options, &choice, &err), DRPS_E_MEMORY_BUDGET);
}

/* Whatever the memory, what is chosen is built in it.
 * Counts are in memory, or streamed with little memory themselves. */
static void test_what_is_chosen_is_built(void **state)
{
    struct random_source rng = random_begin(__func__);
    int pruned = 0, whole = 0;
    (void)state;
    for (int round = 0; round < 60; round++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct block_options options = {.cost = {.seek = 40, .row = 0.25},
                                        .top_k = 3,
                                        .sample = 1,
                                        .max_rows = UINT32_MAX,
                                        .memory_bytes = 4000 + random_below(&rng, 20000)};
        struct prune_choice choice;
        struct block_layout layout;
        struct counts *t;
        struct lists l;
        lists_random(&l, &rng, 40, 50, 20);
        const struct block_tables tables = {.first = {0, (uint32_t)l.rows}, .n = 1};
        const struct access_source from = {.io = drps_io_os(),
                                           .dir = l.dir,
                                           .rows = (uint32_t)l.rows,
                                           .batches = (uint32_t)l.steps,
                                           .share = 1,
                                           .memory_bytes = 2000 + random_below(&rng, 10000)};
        int rc = round % 2 ? drps_counts_stream(&from, 0, from.batches, &t, &err)
                           : drps_counts_make(&from, 0, from.batches, &t, &err);
        assert_ok(rc, &err);
        rc = drps_prune_choose(t, &options, &choice, &err);
        if (rc == 0) {
            assert_int_equal(choice.asked, l.rows);
            options.keep_rows = choice.kept;
            assert_ok(drps_block_builder_find("topk")->build(t, &tables, &options, &layout, &err),
                      &err);
            drps_block_layout_free(&layout);
            pruned += choice.kept < choice.asked;
            whole += choice.kept == choice.asked;
        } else {
            assert_int_equal(rc, DRPS_E_MEMORY_BUDGET);
        }
        t->ops->close(t);
        lists_free(&l);
    }
    assert_true(pruned > 5 && whole > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_most_used_rows_are_kept),
        cmocka_unit_test(test_time_limits_what_is_kept),
        cmocka_unit_test(test_what_is_chosen_is_built),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
