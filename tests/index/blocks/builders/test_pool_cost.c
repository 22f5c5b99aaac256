/* What `auto` judges layouts by, and orders and merges rows for: pools, finer orders, stretches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "index/blocks/builders/pool_cost.h"
#include "index/blocks/builders/refine.h"
#include "index/blocks/counts/drps_stretches.h"
#include "support/lists.h"

/* Each row in about one of so many batches. */
static struct access random_access(struct random_source *rng, uint32_t rows, uint32_t batches,
                                   uint32_t rare)
{
    struct access a = {rows, batches, must(calloc((size_t)rows + 1, sizeof(*a.start))),
                       must(calloc(rows * (size_t)batches + 1, sizeof(*a.batch)))};
    uint64_t n = 0;
    for (uint32_t row = 0; row < rows; row++) {
        const uint32_t own = 1 + (uint32_t)random_below(rng, rare);
        for (uint32_t b = 0; b < batches; b++)
            if (random_below(rng, own) == 0) a.batch[n++] = b;
        a.start[row + 1] = n;
    }
    return a;
}

static int uses(const struct access *a, uint32_t row, uint32_t batch)
{
    for (uint64_t i = a->start[row]; i < a->start[row + 1]; i++)
        if (a->batch[i] == batch) return 1;
    return 0;
}

/* How many batches from `now` on, epoch after epoch, until the row is used. */
static uint32_t distance(const struct access *a, uint32_t row, uint32_t now)
{
    for (uint32_t d = 1; d <= a->batches; d++)
        if (uses(a, row, (now + d) % a->batches)) return d;
    return UINT32_MAX;
}

/* Misses of the second epoch, one row a block: after each batch, who is needed last goes. */
static uint64_t naive_misses(const struct access *a, uint64_t pool_rows)
{
    uint8_t *kept = must(calloc((size_t)a->rows + 1, 1));
    uint64_t misses = 0, n = 0;
    for (uint32_t step = 0; step < 2 * a->batches; step++) {
        const uint32_t now = step % a->batches;
        if (step == a->batches) misses = 0;
        for (uint32_t row = 0; row < a->rows; row++)
            if (uses(a, row, now) && !kept[row]) {
                kept[row] = 1;
                misses++;
                n++;
            }
        for (;;) {
            uint32_t last = UINT32_MAX;
            for (uint32_t row = 0; row < a->rows; row++)
                if (kept[row] && !uses(a, row, now) &&
                    (last == UINT32_MAX || distance(a, row, now) > distance(a, last, now)))
                    last = row;
            if (n <= pool_rows || last == UINT32_MAX) break;
            kept[last] = 0;
            n--;
        }
    }
    free(kept);
    return misses;
}

static void test_pool_misses_what_beladys_rule_misses(void **state)
{
    struct random_source rng = random_begin(__func__);
    (void)state;
    for (int turn = 0; turn < 60; turn++) {
        const uint32_t rows = (uint32_t)random_below(&rng, 40);
        const uint32_t batches = 1 + (uint32_t)random_below(&rng, turn % 10 ? 20 : 150);
        struct access a = random_access(&rng, rows, batches, 12);
        uint32_t *first = must(calloc((size_t)rows + 1, sizeof(*first)));
        struct drps_err err = DRPS_ERR_INIT;
        struct pool_uses uses;
        struct pool_misses misses;
        for (uint32_t row = 0; row <= rows; row++)
            first[row] = row;
        assert_ok(drps_pool_uses_list(&a, NULL, first, rows, &uses, &err), &err);
        assert_int_equal(uses.uses, a.start[rows]);
        assert_int_equal(uses.use_rows, uses.uses);
        for (uint64_t pool = 0; pool <= rows + 1; pool += 1 + pool / 3) {
            assert_ok(drps_pool_simulate(&uses, pool, &misses, &err), &err);
            assert_int_equal(misses.blocks, naive_misses(&a, pool));
            assert_int_equal(misses.rows, misses.blocks);
        }
        drps_pool_uses_free(&uses);
        free(first);
        drps_access_free(&a);
    }
}

/* Rows 0, 1 | 2 | 3, 4, 5: batch 0 uses 0 and 1, batch 1 uses 2, batch 2 uses 1 and 4. */
static void test_pool_counts_blocks_and_their_rows(void **state)
{
    uint64_t start[] = {0, 1, 3, 4, 4, 5, 5};
    uint32_t batch[] = {0, 0, 2, 1, 2}, first[] = {0, 2, 3, 6};
    const struct access a = {6, 3, start, batch};
    const struct {
        const char *name;
        uint64_t pool, misses, rows;
    } cases[] = {
        {"no room but for the batch", 0, 3, 6}, /* block 0 stays from the last to the first */
        {"room for two small blocks", 3, 2, 4},
        {"all stay", 6, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct pool_uses uses;
        struct pool_misses misses;
        assert_ok(drps_pool_uses_list(&a, NULL, first, 3, &uses, &err), &err);
        assert_int_equal(uses.uses, 4);
        assert_int_equal(uses.use_rows, 2 + 1 + 3 + 2);
        assert_int_equal(uses.step_rows, 5);
        assert_ok(drps_pool_simulate(&uses, cases[i].pool, &misses, &err), &err);
        drps_pool_uses_free(&uses);
        if (misses.blocks != cases[i].misses || misses.rows != cases[i].rows)
            fail_msg("%s: %lu misses of %lu rows, not %lu of %lu", cases[i].name,
                     (unsigned long)misses.blocks, (unsigned long)misses.rows,
                     (unsigned long)cases[i].misses, (unsigned long)cases[i].rows);
    }
}

/* Rows named by an order, and the same rows copied in that order. */
static void test_pool_lists_uses_in_any_order(void **state)
{
    struct random_source rng = random_begin(__func__);
    (void)state;
    for (int turn = 0; turn < 40; turn++) {
        const uint32_t rows = 1 + (uint32_t)random_below(&rng, 60);
        struct access a = random_access(&rng, rows, 1 + (uint32_t)random_below(&rng, 90), 60);
        struct access copy = {rows, a.batches, must(calloc((size_t)rows + 1, sizeof(*copy.start))),
                              must(calloc(a.start[rows] + 1, sizeof(*copy.batch)))};
        uint32_t *order = must(calloc(rows, sizeof(*order)));
        uint32_t *first = must(calloc((size_t)rows + 1, sizeof(*first)));
        struct drps_err err = DRPS_ERR_INIT;
        struct pool_uses named, copied;
        size_t blocks = 0;
        for (uint32_t i = 0; i < rows; i++) { /* a random one of those before moves here */
            const uint32_t k = (uint32_t)random_below(&rng, i + 1);
            order[i] = order[k];
            order[k] = i;
        }
        for (uint32_t i = 0; i < rows; i++) {
            const uint64_t from = a.start[order[i]], n = a.start[order[i] + 1] - from;
            memcpy(copy.batch + copy.start[i], a.batch + from, n * sizeof(*copy.batch));
            copy.start[i + 1] = copy.start[i] + n;
            if (i == 0 || random_below(&rng, 3) == 0) first[blocks++] = i;
        }
        first[blocks] = rows;
        assert_ok(drps_pool_uses_list(&a, order, first, blocks, &named, &err), &err);
        assert_ok(drps_pool_uses_list(&copy, NULL, first, blocks, &copied, &err), &err);
        assert_int_equal(named.uses, copied.uses);
        assert_int_equal(named.use_rows, copied.use_rows);
        assert_int_equal(named.step_rows, copied.step_rows);
        assert_memory_equal(named.block, copied.block, named.uses * sizeof(*named.block));
        assert_memory_equal(named.next, copied.next, named.uses * sizeof(*named.next));
        assert_memory_equal(named.start, copied.start, (a.batches + 1) * sizeof(*named.start));
        drps_pool_uses_free(&named);
        drps_pool_uses_free(&copied);
        free(order);
        free(first);
        drps_access_free(&a);
        drps_access_free(&copy);
    }
}

static void test_stays_follow_the_batches(void **state)
{
    uint64_t start[] = {0, 4, 4, 6};
    uint32_t batch[] = {0, 7, 8, 39, 32, 33};
    /* 40 batches; 5 stretches of 8: 40 to 44; 2 of 32: 45 and 46 */
    static const uint32_t expected[] = {0, 7, 8, 39, 40, 41, 44, 45, 46, 32, 33, 44, 46};
    static const uint64_t expected_start[] = {0, 9, 9, 13};
    const struct access a = {3, 40, start, batch};
    struct drps_err err = DRPS_ERR_INIT;
    struct access longer;
    (void)state;
    assert_ok(drps_stretches_add(&a, &longer, &err), &err);
    assert_int_equal(longer.batches, 47);
    assert_memory_equal(longer.start, expected_start, sizeof(expected_start));
    assert_memory_equal(longer.batch, expected, sizeof(expected));
    drps_access_free(&longer);
}

/* Rows used in two batches, one of each half; all share one of four patterns of 16 segments. */
static void test_refined_rows_of_one_time_are_neighbours(void **state)
{
    enum { ROWS = 640, PAGE = 10, BATCHES = 256, TIMES = 16 };
    uint64_t start[ROWS + 1];
    uint32_t batch[2 * ROWS], order[ROWS];
    const struct access a = {ROWS, BATCHES, start, batch};
    struct drps_err err = DRPS_ERR_INIT;
    int moved;
    (void)state;
    for (uint32_t row = 0; row <= ROWS; row++)
        start[row] = 2 * row;
    for (uint32_t row = 0; row < ROWS; row++) { /* quarters of 4 batches, mixed up */
        batch[2 * row] = row % TIMES / 4 * 4 + row / TIMES % 4;
        batch[2 * row + 1] = 128 + row % 4 * 4 + row / TIMES % 4;
    }
    assert_ok(drps_refine_order(&a, PAGE, order, &moved, &err), &err);
    assert_true(moved);
    for (uint32_t i = 0; i < ROWS;
         i++) { /* 40 rows of each pair of quarters, the first ones first */
        const uint32_t *b = batch + 2 * (size_t)order[i];
        assert_int_equal(b[0] / 4, i / 160);
        assert_int_equal((b[1] - 128) / 4, i / 40 % 4);
    }
    assert_ok(drps_refine_order(&a, ROWS, order, &moved, &err), &err); /* less than two pages */
    assert_false(moved);
    for (uint32_t i = 0; i < ROWS; i++)
        assert_int_equal(order[i], i);
}

struct plain_keyed {
    uint64_t key;
    uint32_t row;
};

static int plain_before(const void *x, const void *y)
{
    const struct plain_keyed *a = x, *b = y;
    if (a->key != b->key) return a->key > b->key ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

/* Rows of equal patterns at so many segments, by quarters of these. */
static void plain_refine(const struct access *a, struct plain_keyed *rows, uint32_t n,
                         uint64_t segments, uint32_t least)
{
    if (segments * 4 > a->batches) return;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t last = UINT64_MAX;
        unsigned rank = 0;
        rows[i].key = 0;
        for (uint64_t u = a->start[rows[i].row]; u < a->start[rows[i].row + 1]; u++) {
            const uint64_t quarter = a->batch[u] * segments * 4 / a->batches;
            if (last != UINT64_MAX && quarter / 4 != last) rank++;
            last = quarter / 4;
            rows[i].key |= UINT64_C(1) << (63 - 4 * rank - quarter % 4);
        }
    }
    qsort(rows, n, sizeof(*rows), plain_before);
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && rows[end].key == rows[i].key; end++)
            continue;
        if (end - i >= least && __builtin_popcountll(rows[i].key) <= 16)
            plain_refine(a, rows + i, end - i, segments * 4, least);
    }
}

static void plain_order(const struct access *a, uint32_t page_rows, uint32_t *order)
{
    struct plain_keyed *rows = must(calloc((size_t)a->rows + 1, sizeof(*rows)));
    for (uint32_t row = 0; row < a->rows; row++) {
        rows[row].row = row;
        for (uint64_t u = a->start[row]; u < a->start[row + 1]; u++)
            rows[row].key |= UINT64_C(1) << (uint64_t)a->batch[u] * 16 / a->batches;
    }
    for (uint32_t i = 0, end; i < a->rows; i = end) {
        for (end = i + 1; end < a->rows && rows[end].key == rows[i].key; end++)
            continue;
        if (end - i >= 2 * page_rows) plain_refine(a, rows + i, end - i, 16, 2 * page_rows);
    }
    for (uint32_t i = 0; i < a->rows; i++)
        order[i] = rows[i].row;
    free(rows);
}

static void test_refined_rows_are_those_of_the_plain_rule(void **state)
{
    struct random_source rng = random_begin(__func__);
    int moves = 0;
    (void)state;
    for (int turn = 0; turn < 30; turn++) {
        const uint32_t rows = 500 + (uint32_t)random_below(&rng, 2500);
        const uint32_t batches = 1 + (uint32_t)random_below(&rng, 100);
        const uint32_t page = 1 + (uint32_t)random_below(&rng, 6);
        struct access a = random_access(&rng, rows, batches, turn % 2 ? 12 : 400);
        uint32_t *order = must(calloc((size_t)rows + 1, sizeof(*order)));
        uint32_t *plain = must(calloc((size_t)rows + 1, sizeof(*plain)));
        struct drps_err err = DRPS_ERR_INIT;
        int moved;
        a.batches *= turn % 2 ? 16 : 1; /* rows of one segment: long runs */
        plain_order(&a, page, plain);
        assert_ok(drps_refine_order(&a, page, order, &moved, &err), &err);
        assert_memory_equal(order, plain, rows * sizeof(*order));
        moves += moved;
        free(order);
        free(plain);
        drps_access_free(&a);
    }
    if (moves < 8) fail_msg("%d of 30 orders differ from the given one", moves);
}

static void test_refined_rows_stay_in_their_pattern(void **state)
{
    struct random_source rng = random_begin(__func__);
    (void)state;
    for (int turn = 0; turn < 40; turn++) {
        const uint32_t rows = (uint32_t)random_below(&rng, 200);
        const uint32_t batches = 1 + (uint32_t)random_below(&rng, 100);
        struct access a = random_access(&rng, rows, batches, 60);
        uint32_t *order = must(calloc((size_t)rows + 1, sizeof(*order)));
        uint8_t *seen = must(calloc((size_t)rows + 1, 1));
        struct drps_err err = DRPS_ERR_INIT;
        int moved, found = 0;
        assert_ok(drps_refine_order(&a, 1 + (uint32_t)turn % 3, order, &moved, &err), &err);
        for (uint32_t i = 0; i < rows; i++) {
            uint32_t patterns[2] = {0, 0};
            assert_true(order[i] < rows && !seen[order[i]]);
            seen[order[i]] = 1;
            found |= order[i] != i;
            for (int k = 0; k < 2; k++)
                for (uint64_t u = a.start[k ? order[i] : i]; u < a.start[(k ? order[i] : i) + 1];
                     u++)
                    patterns[k] |= 1u << (uint64_t)a.batch[u] * 16 / batches;
            assert_int_equal(patterns[0], patterns[1]);
        }
        assert_int_equal(!moved, !found);
        free(order);
        free(seen);
        drps_access_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool_misses_what_beladys_rule_misses),
        cmocka_unit_test(test_pool_counts_blocks_and_their_rows),
        cmocka_unit_test(test_pool_lists_uses_in_any_order),
        cmocka_unit_test(test_stays_follow_the_batches),
        cmocka_unit_test(test_refined_rows_of_one_time_are_neighbours),
        cmocka_unit_test(test_refined_rows_are_those_of_the_plain_rule),
        cmocka_unit_test(test_refined_rows_stay_in_their_pattern),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
