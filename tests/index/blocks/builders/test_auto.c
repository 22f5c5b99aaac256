/* Builder `auto`: what must always hold, on random accesses; planted blocks; too little memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "index/blocks/builders/drps_builder.h"
#include "index/blocks/builders/pool_cost.h"
#include "support/brute_counts.h"
#include "support/lists.h"
#include "support/price.h"

static struct block_options some_options(struct random_source *rng)
{
    return (struct block_options){.cost = {.seek = 40, .row = 0.25},
                                  .sample = 1,
                                  .max_rows = 1 + (uint32_t)random_below(rng, 12),
                                  .memory_bytes = 1 << 24};
}

/* Rows of random popularity, some never touched, some like the row before. */
static struct access random_access(struct random_source *rng, uint32_t rows, uint32_t batches)
{
    struct access a = {rows, batches, must(calloc((size_t)rows + 1, sizeof(*a.start))),
                       must(calloc(rows * (size_t)batches + 1, sizeof(*a.batch)))};
    uint64_t n = 0;
    for (uint32_t row = 0; row < rows; row++) {
        const uint64_t rare = 1 + random_below(rng, 30), kind = random_below(rng, 6);
        const uint64_t like = row ? a.start[row - 1] : 0, like_end = a.start[row];
        a.start[row] = n;
        if (kind == 0) continue;
        for (uint64_t i = like; kind == 1 && i < like_end; i++)
            a.batch[n++] = a.batch[i];
        for (uint32_t b = 0; kind > 1 && b < batches; b++)
            if (random_below(rng, rare) == 0) a.batch[n++] = b;
        a.start[row + 1] = n;
    }
    a.start[rows] = n;
    return a;
}

static uint32_t touched(const struct access *a, const struct block_layout *l, size_t block)
{
    uint8_t *by = must(calloc((size_t)a->batches + 1, 1));
    uint32_t count = 0;
    for (uint32_t p = l->first[block]; p < l->first[block + 1]; p++) {
        const uint32_t row = l->order ? l->order[p] : p;
        for (uint64_t i = a->start[row]; i < a->start[row + 1]; i++) {
            count += !by[a->batch[i]];
            by[a->batch[i]] = 1;
        }
    }
    free(by);
    return count;
}

/* Every row once, in its table; limits kept. */
static void check_layout(const struct access *a, const struct block_tables *tables,
                         const struct block_options *o, const struct block_layout *l)
{
    uint8_t *seen = must(calloc((size_t)a->rows + 1, 1));
    size_t table = 0;
    assert_int_equal(l->first[0], 0);
    assert_int_equal(l->first[l->blocks], a->rows);
    for (size_t b = 0; b < l->blocks; b++) {
        const uint32_t n = l->first[b + 1] - l->first[b];
        while (l->first[b] >= tables->first[table + 1])
            table++;
        assert_true(n >= 1 && n <= o->max_rows);
        assert_true(l->first[b + 1] <= tables->first[table + 1]);
        for (uint32_t p = l->first[b]; p < l->first[b + 1]; p++) {
            const uint32_t row = l->order ? l->order[p] : p;
            assert_true(row >= tables->first[table] && row < tables->first[table + 1]);
            assert_false(seen[row]);
            seen[row] = 1;
        }
        const double weight = touched(a, l, b) * (o->cost.seek + n * o->cost.row);
        if (n > 1 && o->max_weight > 0) assert_true(weight <= o->max_weight);
    }
    free(seen);
}

static void build(struct counts *t, const struct block_tables *tables,
                  const struct block_options *o, struct block_layout *l)
{
    struct drps_err err = DRPS_ERR_INIT;
    assert_ok(drps_block_builder_find("auto")->build(t, tables, o, l, &err), &err);
}

static void assert_same(const struct access *a, const struct block_layout *x,
                        const struct block_layout *y)
{
    assert_int_equal(x->blocks, y->blocks);
    assert_memory_equal(x->first, y->first, (x->blocks + 1) * sizeof(*x->first));
    assert_int_equal(!x->order, !y->order);
    if (x->order) assert_memory_equal(x->order, y->order, a->rows * sizeof(*x->order));
}

static double pool_price(const struct access *a, const struct block_layout *l,
                         const struct block_cost *cost, uint64_t pool_rows, uint64_t *step_rows_out)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct pool_uses uses;
    struct pool_misses misses;
    assert_ok(drps_pool_uses_list(a, l->order, l->first, l->blocks, &uses, &err), &err);
    assert_ok(drps_pool_simulate(&uses, pool_rows, &misses, &err), &err);
    *step_rows_out = uses.step_rows;
    drps_pool_uses_free(&uses);
    return (double)misses.blocks * cost->seek + (double)misses.rows * cost->row;
}

/* A pool of an eighth of the rows, or of what the largest batch needs of `given`, misses no more.
 */
static void check_pool(const struct access *a, const struct block_cost *cost,
                       const struct block_layout *l, const struct block_layout *given)
{
    uint64_t pool_rows = a->rows / 8, step_rows;
    double before = pool_price(a, given, cost, pool_rows, &step_rows);
    if (step_rows > pool_rows) {
        pool_rows = step_rows;
        before = pool_price(a, given, cost, pool_rows, &step_rows);
    }
    assert_true(pool_price(a, l, cost, pool_rows, &step_rows) <= before * (1 + 1e-12));
}

static void check_prices(const struct access *a, const struct block_tables *tables,
                         const struct block_options *o, const struct block_layout *l)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct block_layout given;
    struct layout_price price, given_price;
    const double scan = a->batches * (o->cost.seek + a->rows * o->cost.row);
    assert_ok(drps_block_builder_find("pattern")->build(NULL, tables, o, &given, &err), &err);
    assert_ok(layout_price(a, l, &o->cost, &price, &err), &err);
    assert_ok(layout_price(a, &given, &o->cost, &given_price, &err), &err);
    assert_true(price.blocks <= given_price.blocks * (1 + 1e-12)); /* sums in another order */
    assert_true(price.io <= scan);
    if (tables->n == 1) check_pool(a, &o->cost, l, &given); /* that is one part */
    drps_block_layout_free(&given);
}

static void test_auto_keeps_its_promises_on_random_accesses(void **state)
{
    struct random_source rng = random_begin(__func__);
    (void)state;
    for (int turn = 0; turn < 60; turn++) {
        struct drps_err err = DRPS_ERR_INIT;
        const uint32_t rows = (uint32_t)random_below(&rng, 90);
        const uint32_t batches = (uint32_t)random_below(&rng, 60);
        struct access a = random_access(&rng, rows, batches);
        struct block_options o = some_options(&rng);
        struct block_tables tables = {{0, rows / 3, rows}, 2};
        struct block_layout l, again;
        struct counts *t, *brute;
        if (turn % 3 == 0) o.max_weight = 400 + (double)random_below(&rng, 2000);
        if (turn % 4 == 1) tables = (struct block_tables){{0, rows}, 1};
        assert_ok(drps_counts_open(&a, 1, 0, &t, &err), &err);
        brute = brute_counts_open(&a, 1, 0);
        build(t, &tables, &o, &l);
        check_layout(&a, &tables, &o, &l);
        if (o.max_weight <= 0) check_prices(&a, &tables, &o, &l);
        build(t, &tables, &o, &again);
        assert_same(&a, &l, &again);
        drps_block_layout_free(&again);
        build(brute, &tables, &o, &again); /* whoever counts */
        assert_same(&a, &l, &again);
        drps_block_layout_free(&again);
        drps_block_layout_free(&l);
        t->ops->close(t);
        brute->ops->close(brute);
        drps_access_free(&a);
    }
}

/* Groups of rows that are always used together, far apart, among rows of no batch. */
static void test_auto_finds_planted_blocks(void **state)
{
    enum { GROUPS = 24, EACH = 8, ROWS = GROUPS * EACH + 20, BATCHES = 60, USES = 10 };
    struct random_source rng = random_begin(__func__);
    struct access a = {ROWS, BATCHES, must(calloc(ROWS + 1, sizeof(*a.start))),
                       must(calloc(ROWS * USES, sizeof(*a.batch)))};
    struct block_tables tables = {{0, ROWS}, 1};
    struct block_options o = {
        .cost = {40, 0.25}, .sample = 1, .max_rows = EACH, .memory_bytes = 1 << 24};
    uint32_t uses[GROUPS][USES];
    struct drps_err err = DRPS_ERR_INIT;
    struct block_layout l;
    struct counts *t;
    (void)state;
    for (int g = 0; g < GROUPS; g++) /* of each six batches, one */
        for (uint32_t i = 0; i < USES; i++)
            uses[g][i] = i * (BATCHES / USES) + (uint32_t)random_below(&rng, BATCHES / USES);
    for (uint32_t row = 0; row < ROWS; row++) {
        a.start[row + 1] = a.start[row] + (row < GROUPS * EACH ? USES : 0);
        if (row < GROUPS * EACH)
            memcpy(a.batch + a.start[row], uses[row % GROUPS], sizeof(uses[0]));
    }
    assert_ok(drps_counts_open(&a, 1, 0, &t, &err), &err);
    build(t, &tables, &o, &l);
    check_layout(&a, &tables, &o, &l);
    for (size_t b = 0; b < l.blocks; b++) {
        const int used = touched(&a, &l, b) > 0;
        assert_int_equal(used, b < GROUPS); /* rows of no batch come last */
        assert_int_equal(touched(&a, &l, b), used ? USES : 0);
        if (used) assert_int_equal(l.first[b + 1] - l.first[b], EACH);
    }
    drps_block_layout_free(&l);
    t->ops->close(t);
    drps_access_free(&a);
}

/*
 * A page of rows that every batch uses two of, and of each the others that mostly come with it, a
 * page too: to merge each with its own saves accesses by Eq. 1, but the first page stays in a pool,
 * which has no room for many.
 */
static void test_auto_leaves_rows_together_that_a_pool_holds(void **state)
{
    enum { PAGE = 9, ROWS = PAGE + PAGE * PAGE, BATCHES = 300 };
    struct random_source rng = random_begin(__func__);
    struct access a = {ROWS, BATCHES, must(calloc(ROWS + 1, sizeof(*a.start))),
                       must(calloc((size_t)ROWS * BATCHES, sizeof(*a.batch)))};
    struct block_tables tables = {{0, ROWS}, 1};
    struct block_options o = {
        .cost = {40, 0.25}, .sample = 1, .max_rows = PAGE, .memory_bytes = 1 << 24};
    uint8_t with[BATCHES][PAGE] = {{0}}; /* 1: the row alone; 2: and its others */
    struct drps_err err = DRPS_ERR_INIT;
    struct block_layout l;
    struct counts *t;
    uint64_t n = 0;
    (void)state;
    for (uint32_t b = 0; b < BATCHES; b++)
        for (uint32_t i = 0; i < 2; i++)
            with[b][random_below(&rng, PAGE)] = random_below(&rng, 100) < 62 ? 2 : 1;
    for (uint32_t row = 0; row < ROWS; row++) {
        const uint32_t of = row < PAGE ? row : row / PAGE - 1;
        const int least = row < PAGE   ? 1
                          : row % PAGE ? 2
                                       : 3; /* 3: never, so that pages are full */
        for (uint32_t b = 0; b < BATCHES; b++)
            if (with[b][of] >= least) a.batch[n++] = b;
        a.start[row + 1] = n;
    }
    assert_ok(drps_counts_open(&a, 1, 0, &t, &err), &err);
    build(t, &tables, &o, &l);
    check_layout(&a, &tables, &o, &l);
    check_prices(&a, &tables, &o, &l);
    drps_block_layout_free(&l);
    t->ops->close(t);
    drps_access_free(&a);
}

static void test_auto_says_what_little_memory_leaves_out(void **state)
{
    struct random_source rng = random_begin(__func__);
    struct access a = random_access(&rng, 200, 40);
    struct block_tables tables = {{0, 200}, 1};
    struct block_options o = {.cost = {40, 0.25}, .sample = 1, .max_rows = 8};
    struct drps_err err = DRPS_ERR_INIT;
    struct block_layout l;
    struct counts *t;
    enum { PAGES, MERGED, COMPARED } last = PAGES, now;
    unsigned seen = 0;
    (void)state;
    assert_ok(drps_counts_open(&a, 1, 0, &t, &err), &err);
    for (o.memory_bytes = 1000; o.memory_bytes < 1 << 20; o.memory_bytes += o.memory_bytes / 64) {
        int rc = drps_block_builder_find("auto")->build(t, &tables, &o, &l, &err);
        assert_ok(rc, &err);
        check_layout(&a, &tables, &o, &l);
        check_prices(&a, &tables, &o, &l);
        now = strstr(l.note, "stay where they are") ? PAGES
              : strstr(l.note, "not each compared") ? MERGED
                                                    : COMPARED;
        assert_int_equal(now == COMPARED, !l.note[0]);
        assert_true(now >= last); /* more memory does not do less */
        last = now;
        seen |= 1u << now;
        drps_err_clear(&err);
        drps_block_layout_free(&l);
    }
    assert_int_equal(seen, 1u << PAGES | 1u << MERGED | 1u << COMPARED);
    t->ops->close(t);
    drps_access_free(&a);
}

/* Runs of rows that are used in the same two of 16 segments, too many to merge, in many parts. */
static struct access large_access(struct random_source *rng)
{
    enum { ROWS = 540000, USES = 8, BATCHES = 512, RUN = 1000, SEGMENT = BATCHES / 16 };
    struct access a = {ROWS, BATCHES, must(calloc(ROWS + 1, sizeof(*a.start))),
                       must(calloc((size_t)ROWS * USES, sizeof(*a.batch)))};
    uint32_t segment[2] = {0, 0};
    for (uint32_t row = 0; row < ROWS; row++) {
        if (row % RUN == 0) {
            segment[0] = (uint32_t)random_below(rng, 15);
            segment[1] = segment[0] + 1 + (uint32_t)random_below(rng, 15 - segment[0]);
        }
        for (uint32_t i = 0; i < USES; i++) /* increasing: four of each segment, one of 8 batches */
            a.batch[row * USES + i] = segment[i / 4] * SEGMENT + i % 4 * (SEGMENT / 4) +
                                      (uint32_t)random_below(rng, 1 + row % 5);
        a.start[row + 1] = (row + 1) * USES;
    }
    return a;
}

static void test_auto_is_the_same_with_any_number_of_threads(void **state)
{
    struct random_source rng = random_begin(__func__);
    struct access a = large_access(&rng);
    const struct block_tables tables = {{0, a.rows / 3, a.rows}, 2};
    struct block_options o = {
        .cost = {40, 0.25}, .sample = 1, .max_rows = 30, .memory_bytes = UINT64_C(1) << 30};
    struct drps_err err = DRPS_ERR_INIT;
    struct block_layout alone, l;
    struct counts *t;
    (void)state;
    assert_ok(drps_counts_open(&a, 1, 0, &t, &err), &err);
    build(t, &tables, &o, &alone);
    assert_true(alone.order != NULL); /* some part was worth ordering */
    check_layout(&a, &tables, &o, &alone);
    for (o.threads = 2; o.threads < 12; o.threads += 3) {
        build(t, &tables, &o, &l);
        assert_same(&a, &alone, &l);
        drps_block_layout_free(&l);
    }
    drps_block_layout_free(&alone);
    t->ops->close(t);
    drps_access_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_auto_keeps_its_promises_on_random_accesses),
        cmocka_unit_test(test_auto_finds_planted_blocks),
        cmocka_unit_test(test_auto_leaves_rows_together_that_a_pool_holds),
        cmocka_unit_test(test_auto_is_the_same_with_any_number_of_threads),
        cmocka_unit_test(test_auto_says_what_little_memory_leaves_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
