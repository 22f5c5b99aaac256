/*
 * The block builders that count: the paper's examples, tiny cases against every partition, random
 * data against what must always hold, and the same layout whoever counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/blocks/builders/drps_builder.h"
#include "index/blocks/builders/merging.h"
#include "support/brute_counts.h"
#include "support/lists.h"
#include "support/price.h"
#include "support/recount_blocks.h"

/* ---- Cases: all costs are multiples of 1/4 microsecond, so that sums are exact ---- */

struct case_data {
    struct lists lists;
    struct access access;
    struct block_tables tables;
    struct block_options options;
};

static struct access_source source_of(const struct lists *l, uint64_t memory_bytes)
{
    return (struct access_source){.io = drps_io_os(),
                                  .dir = l->dir,
                                  .rows = (uint32_t)l->rows,
                                  .batches = (uint32_t)l->steps,
                                  .share = 1,
                                  .memory_bytes = memory_bytes};
}

static void case_load(struct case_data *c)
{
    struct drps_err err = DRPS_ERR_INIT;
    const uint32_t steps = (uint32_t)c->lists.steps, rows = (uint32_t)c->lists.rows;
    const struct access_source from = source_of(&c->lists, 1 << 24);
    assert_ok(drps_access_load(&from, 0, steps, &c->access, &err), &err);
    c->tables = (struct block_tables){.first = {0, rows}, .n = 1};
    c->options = (struct block_options){.cost = {.seek = 40, .row = 0.25},
                                        .top_k = 50,
                                        .sample = 1,
                                        .max_rows = UINT32_MAX,
                                        .memory_bytes = 1 << 24};
}

static void case_text(struct case_data *c, const char *const *text, uint64_t steps, uint64_t rows)
{
    lists_from_text(&c->lists, text, steps, steps, rows);
    case_load(c);
}

static void case_random(struct case_data *c, struct random_source *rng, uint64_t rows,
                        uint64_t steps)
{
    lists_random(&c->lists, rng, rows, steps, 3 + rows / 3);
    case_load(c);
}

static void case_end(struct case_data *c)
{
    drps_access_free(&c->access);
    lists_free(&c->lists);
}

static struct block_layout build_on(struct counts *t, const struct case_data *c, const char *name)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct block_layout layout;
    assert_ok(drps_block_builder_find(name)->build(t, &c->tables, &c->options, &layout, &err),
              &err);
    return layout;
}

static struct block_layout build(const struct case_data *c, const char *name)
{
    struct counts *t = brute_counts_open(&c->access, c->options.sample, c->options.seed);
    struct block_layout layout = build_on(t, c, name);
    t->ops->close(t);
    return layout;
}

/* "0 1|2 3|4": the blocks of a layout in their order. */
static void assert_layout(const struct block_layout *l, const char *expected)
{
    char text[512] = "";
    size_t used = 0;
    for (size_t b = 0; b < l->blocks; b++)
        for (uint32_t i = l->first[b]; i < l->first[b + 1]; i++)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u",
                                     i > l->first[b] ? " "
                                     : b             ? "|"
                                                     : "",
                                     l->order ? l->order[i] : i);
    assert_string_equal(text, expected);
}

static void assert_builds(const struct case_data *c, const char *name, const char *expected)
{
    struct block_layout layout = build(c, name);
    assert_layout(&layout, expected);
    drps_block_layout_free(&layout);
}

static double price_of(const struct case_data *c, const struct block_layout *layout)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct layout_price price;
    assert_ok(layout_price(&c->access, layout, &c->options.cost, &price, &err), &err);
    return price.blocks;
}

/* ---- Accesses ---- */

/* Row by row what the lists of the batches [first, end) say. */
static void check_access(const struct lists *l, const struct access *a, uint32_t first,
                         uint32_t end)
{
    uint64_t at = 0;
    for (uint32_t row = 0; row < l->rows; row++) {
        assert_int_equal(a->start[row], at);
        for (uint32_t s = first; s < end; s++)
            for (size_t k = 0; k < l->n[s]; k++)
                if (l->list[s][k] == row) assert_int_equal(a->batch[at++], s);
    }
    assert_int_equal(a->start[l->rows], at);
}

static void test_access_turns_the_lists_round(void **state)
{
    struct random_source rng = random_begin(__func__);
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct access a;
        struct lists l;
        lists_random(&l, &rng, 1 + random_below(&rng, 50), random_below(&rng, 40), 20);
        const uint32_t steps = (uint32_t)l.steps;
        struct access_source from = source_of(&l, 7);
        const uint32_t end = (uint32_t)random_below(&rng, steps + 1);
        const uint32_t first = (uint32_t)random_below(&rng, end + 1);
        int rc = drps_access_load(&from, first, end, &a, &err);
        assert_int_equal(rc, DRPS_E_MEMORY_BUDGET);
        assert_null(a.batch);
        const char *number = strstr(err.text, "(");
        assert_non_null(number);
        from.memory_bytes = strtoull(number + 1, NULL, 10);
        drps_err_clear(&err);
        assert_ok(drps_access_load(&from, first, end, &a, &err), &err);
        check_access(&l, &a, first, end);
        drps_access_free(&a);
        from.batches++;
        rc = drps_access_load(&from, first, end, &a, &err);
        assert_int_equal(rc, DRPS_E_CORRUPT);
        lists_free(&l);
    }
}

/* ---- The paper's examples ---- */

/*
 * Section 4.2: gains d(ab) > d(ac) > d(cd) > d(ef). Here with ts = 1, ta = 0 a gain is C_ij: ab are
 * together in 5 batches, ac in 4, cd in 3, ef in 2.
 */
static const char *const six[] = {"0 1", "0 1", "0 1", "0 1", "0 1", "0 2", "0 2",
                                  "0 2", "0 2", "2 3", "2 3", "2 3", "4 5", "4 5"};

/* The first round alone: limits of two rows a block leave nothing for others. */
static void test_topk_skips_what_has_merged_in_the_round(void **state)
{
    struct case_data c;
    (void)state;
    case_text(&c, six, sizeof(six) / sizeof(six[0]), 6);
    c.options.cost = (struct block_cost){.seek = 1, .row = 0};
    c.options.max_rows = 2;
    for (uint32_t k = 2; k <= 6; k++) { /* k = 2 leaves ef to the second round */
        c.options.top_k = k;
        assert_builds(&c, "topk", "0 1|2 3|4 5");
    }
    c.options.min_gain = 2; /* ef gains no more than gamma */
    assert_builds(&c, "topk", "0 1|2 3|4|5");
    case_end(&c);
}

/* What was counted of a round: counts that note their merges. */
struct noting {
    struct counts counts;
    struct counts_ops ops;
    struct counts *of;
    size_t rounds, merges[32];
};

static int noting_counts(struct counts *t, uint32_t *out, struct drps_err *err)
{
    struct counts *of = ((struct noting *)t)->of;
    return of->ops->counts(of, out, err);
}

static int noting_groups(struct counts *t, const uint8_t *group, struct drps_err *err)
{
    struct counts *of = ((struct noting *)t)->of;
    return of->ops->groups(of, group, err);
}

static int noting_pairs(struct counts *t, const uint32_t *with, size_t n, uint64_t memory_bytes,
                        struct block_pair_count **pairs_out, size_t *n_out, struct drps_err *err)
{
    struct counts *of = ((struct noting *)t)->of;
    return of->ops->pairs(of, with, n, memory_bytes, pairs_out, n_out, err);
}

static int noting_reset(struct counts *t, struct drps_err *err)
{
    struct counts *of = ((struct noting *)t)->of;
    return of->ops->reset(of, err);
}

static int noting_merge(struct counts *t, const struct block_pair *pairs, size_t n,
                        struct drps_err *err)
{
    struct noting *note = (struct noting *)t;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(pairs[i].a != pairs[j].a && pairs[i].a != pairs[j].b &&
                        pairs[i].b != pairs[j].a && pairs[i].b != pairs[j].b);
    assert_true(note->rounds < 32);
    note->merges[note->rounds++] = n;
    return note->of->ops->merge(note->of, pairs, n, err);
}

static struct block_layout build_noting(const struct case_data *c, const char *name,
                                        struct noting *note)
{
    *note = (struct noting){.of = brute_counts_open(&c->access, 1, 0)};
    note->ops.counts = noting_counts;
    note->ops.groups = noting_groups;
    note->ops.pairs = noting_pairs;
    note->ops.merge = noting_merge;
    note->ops.reset = noting_reset;
    note->counts = (struct counts){
        .ops = &note->ops, .blocks = note->of->blocks, .batches = note->of->batches};
    struct block_layout layout = build_on(&note->counts, c, name);
    note->of->ops->close(note->of);
    return layout;
}

static void test_topk_merges_k_pairs_a_round(void **state)
{
    static const struct {
        const char *builder;
        uint32_t k;
        size_t rounds, merges[4];
    } cases[] = {
        {"topk", 2, 2, {2, 1}},         {"topk", 3, 1, {3}},
        {"topk", 50, 1, {3}},           {"topk", 1, 3, {1, 1, 1}},
        {"pairwise", 50, 3, {1, 1, 1}},
    };
    struct case_data c;
    (void)state;
    case_text(&c, six, sizeof(six) / sizeof(six[0]), 6);
    c.options.cost = (struct block_cost){.seek = 1, .row = 0};
    c.options.max_rows = 2;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct noting note;
        c.options.top_k = cases[i].k;
        struct block_layout layout = build_noting(&c, cases[i].builder, &note);
        assert_layout(&layout, "0 1|2 3|4 5");
        assert_int_equal(note.rounds, cases[i].rounds);
        for (size_t r = 0; r < note.rounds; r++)
            assert_int_equal(note.merges[r], cases[i].merges[r]);
        drps_block_layout_free(&layout);
    }
    case_end(&c);
}

/* Without that limit the next round sees what the first has made: {abcd}. */
static void test_rounds_go_on_with_what_was_made(void **state)
{
    struct noting note;
    struct case_data c;
    (void)state;
    case_text(&c, six, sizeof(six) / sizeof(six[0]), 6);
    c.options.cost = (struct block_cost){.seek = 1, .row = 0};
    struct block_layout layout = build_noting(&c, "topk", &note);
    assert_layout(&layout, "0 1 2 3|4 5");
    assert_int_equal(note.rounds, 2);
    assert_int_equal(note.merges[0], 3);
    assert_int_equal(note.merges[1], 1);
    drps_block_layout_free(&layout);
    case_end(&c);
}

/* What a batch reads, block by block. */
static void naive_io(const struct access *a, const struct block_layout *l, uint32_t gap_rows,
                     struct layout_io *io)
{
    *io = (struct layout_io){0};
    for (uint32_t batch = 0; batch < a->batches; batch++) {
        int64_t reached = -1; /* the end of the last run */
        for (size_t b = 0; b < l->blocks; b++) {
            int touched = 0;
            for (uint32_t position = l->first[b]; position < l->first[b + 1]; position++) {
                const uint32_t row = l->order ? l->order[position] : position;
                for (uint64_t i = a->start[row]; i < a->start[row + 1]; i++)
                    touched |= a->batch[i] == batch;
            }
            if (!touched) continue;
            const int joins = reached >= 0 && l->first[b] - reached <= (int64_t)gap_rows;
            io->blocks++;
            io->block_rows += l->first[b + 1] - l->first[b];
            io->requests += (uint64_t)!joins;
            io->rows += l->first[b + 1] - (joins ? (uint64_t)reached : l->first[b]);
            reached = l->first[b + 1];
        }
    }
}

static void test_price_reads_what_the_batches_need(void **state)
{
    struct random_source rng = random_begin(__func__);
    (void)state;
    for (int turn = 0; turn < 40; turn++) {
        struct drps_err err = DRPS_ERR_INIT;
        const uint32_t gap = turn % 8 == 7 ? UINT32_MAX : (uint32_t)random_below(&rng, 6);
        struct layout_io io, expected;
        struct case_data c;
        case_random(&c, &rng, 50, 25);
        struct block_layout layout = build(&c, turn % 2 ? "greedy" : "random");
        assert_ok(layout_io(&c.access, &layout, gap, &io, &err), &err);
        naive_io(&c.access, &layout, gap, &expected);
        assert_int_equal(io.blocks, expected.blocks);
        assert_int_equal(io.block_rows, expected.block_rows);
        assert_int_equal(io.requests, expected.requests);
        assert_int_equal(io.rows, expected.rows);
        drps_block_layout_free(&layout);
        case_end(&c);
    }
}

/* Fig. 1: two rows that four batches touch together: 8 ts + 8 ta becomes 4 ts + 8 ta. */
static void test_price_of_the_papers_figure_1(void **state)
{
    static const char *const text[] = {"0 1", "0 1", "0 1", "0 1"};
    static const char *const builders[] = {"pairwise", "topk", "greedy"};
    struct case_data c;
    (void)state;
    case_text(&c, text, 4, 2);
    c.options.cost = (struct block_cost){.seek = 100, .row = 3};
    struct block_layout single = build(&c, "none");
    assert_true(price_of(&c, &single) == 8 * 100 + 8 * 3);
    for (size_t i = 0; i < 3; i++) {
        struct block_layout layout = build(&c, builders[i]);
        assert_layout(&layout, "0 1");
        assert_true(price_of(&c, &layout) == 4 * 100 + 8 * 3);
        drps_block_layout_free(&layout);
    }
    drps_block_layout_free(&single);
    case_end(&c);
}

/* ---- Random cases ---- */

static const char *const counting[] = {"pairwise", "topk", "greedy"};
enum { COUNTING = 3 };

static double cost_of(const struct merging *m, uint32_t count, uint32_t size)
{
    return count * (m->options->cost.seek + size * m->options->cost.row);
}

/* Eq. 3 is the difference of Eq. 1 and 2, whatever has merged before. */
static void test_gain_is_the_fall_of_the_cost(void **state)
{
    struct random_source rng = random_begin(__func__);
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct case_data c;
        struct merging m;
        case_random(&c, &rng, 2 + random_below(&rng, 20), random_below(&rng, 30));
        struct counts *t = brute_counts_open(&c.access, 1, 0);
        assert_ok(drps_merging_begin(&m, t, &c.tables, &c.options, &err), &err);
        for (int i = 0; i < 20; i++) {
            const uint32_t b = 1 + (uint32_t)random_below(&rng, m.rows - 1);
            const uint32_t a = (uint32_t)random_below(&rng, b);
            struct block_pair pair = {a, b};
            uint32_t both;
            if (!m.size[a] || !m.size[b]) continue;
            assert_ok(t->ops->cocounts(t, &pair, 1, &both, &err), &err);
            const double gain = drps_merging_gain(&m, a, b, both);
            const double before =
                cost_of(&m, m.count[a], m.size[a]) + cost_of(&m, m.count[b], m.size[b]);
            drps_merging_merge(&m, &(struct candidate){.a = a, .b = b, .both = both});
            assert_ok(drps_merging_round(&m, &pair, 1, &err), &err);
            assert_true(before - cost_of(&m, m.count[a], m.size[a]) == gain);
        }
        uint32_t *count = must(calloc(m.rows, sizeof(*count)));
        assert_ok(t->ops->counts(t, count, &err), &err);
        assert_memory_equal(count, m.count, m.rows * sizeof(*count));
        free(count);
        drps_merging_end(&m);
        t->ops->close(t);
        case_end(&c);
    }
}

static uint32_t table_of(const struct block_tables *tables, uint32_t row)
{
    uint32_t t = 0;
    while (row >= tables->first[t + 1])
        t++;
    return t;
}

/* Eq. 1 by counting every block's batches in the lists. */
static double recount(const struct case_data *c, const struct block_layout *l)
{
    double sum = 0;
    for (size_t b = 0; b < l->blocks; b++)
        for (uint64_t s = 0; s < c->lists.steps; s++) {
            int touched = 0;
            for (uint32_t i = l->first[b]; i < l->first[b + 1]; i++)
                for (size_t k = 0; k < c->lists.n[s]; k++)
                    touched |= c->lists.list[s][k] == (l->order ? l->order[i] : i);
            if (touched)
                sum += c->options.cost.seek + (l->first[b + 1] - l->first[b]) * c->options.cost.row;
        }
    return sum;
}

/* Blocks hold every row once, keep within tables and limits, and lie by smallest row. */
static void check_layout(const struct case_data *c, const struct block_layout *l)
{
    const uint32_t rows = (uint32_t)c->lists.rows;
    uint8_t *seen = must(calloc(rows + 1, 1));
    assert_int_equal(l->first[0], 0);
    assert_int_equal(l->first[l->blocks], rows);
    for (size_t b = 0; b < l->blocks; b++) {
        const uint32_t *row = l->order + l->first[b];
        const uint32_t n = l->first[b + 1] - l->first[b];
        assert_true(l->first[b + 1] > l->first[b] && n <= c->options.max_rows);
        assert_true(b == 0 || l->order[l->first[b - 1]] < row[0]);
        for (uint32_t i = 0; i < n; i++) {
            const uint64_t used = c->access.start[row[i] + 1] - c->access.start[row[i]];
            assert_true(row[i] < rows && !seen[row[i]]++);
            assert_true(i == 0 || row[i - 1] < row[i]);
            assert_int_equal(table_of(&c->tables, row[i]), table_of(&c->tables, row[0]));
            if (n > 1) assert_true(used >= c->options.min_count && used > 0);
        }
    }
    free(seen);
}

static void random_options(struct case_data *c, struct random_source *rng)
{
    const uint32_t rows = (uint32_t)c->lists.rows;
    const uint32_t cut = (uint32_t)random_below(rng, rows + 1);
    c->tables = (struct block_tables){.first = {0, rows}, .n = 1};
    if (random_below(rng, 2))
        c->tables = (struct block_tables){.first = {0, cut, cut, rows}, .n = 3};
    c->options.top_k = 1 + (uint32_t)random_below(rng, 5);
    c->options.min_gain = (double)random_below(rng, 3) * 10;
    c->options.min_count = (uint32_t)random_below(rng, 4);
    c->options.max_rows = random_below(rng, 2) ? UINT32_MAX : 1 + (uint32_t)random_below(rng, 6);
    c->options.max_weight = random_below(rng, 2) ? 0 : 40 * (1 + (double)random_below(rng, 20));
}

static void test_layouts_partition_the_rows(void **state)
{
    struct random_source rng = random_begin(__func__);
    (void)state;
    for (int round = 0; round < 60; round++) {
        struct case_data c;
        case_random(&c, &rng, 1 + random_below(&rng, 40), random_below(&rng, 60));
        random_options(&c, &rng);
        struct block_layout single = build(&c, "none");
        const double cost = price_of(&c, &single);
        assert_true(cost == recount(&c, &single));
        for (size_t i = 0; i < COUNTING; i++) {
            struct block_layout layout = build(&c, counting[i]);
            check_layout(&c, &layout);
            const double merged = price_of(&c, &layout);
            assert_true(merged == recount(&c, &layout));
            const double merges = (double)(single.blocks - layout.blocks);
            assert_true(merged <= cost - merges * c.options.min_gain);
            drps_block_layout_free(&layout);
        }
        drps_block_layout_free(&single);
        case_end(&c);
    }
}

/* A merged block is no heavier than allowed. */
static void test_weight_stays_below_its_limit(void **state)
{
    static const char *const text[] = {"0 1 2 3", "0 1 2 3", "0 1", "2 3"};
    struct case_data c;
    (void)state;
    case_text(&c, text, 4, 4);
    c.options.cost = (struct block_cost){.seek = 100, .row = 1};
    assert_builds(&c, "greedy", "0 1 2 3");
    for (size_t i = 0; i < COUNTING; i++) {
        c.options.max_weight = 3 * 102; /* two rows in three batches just fit */
        assert_builds(&c, counting[i], "0 1|2 3");
        c.options.max_weight = 3 * 102 - 1;
        assert_builds(&c, counting[i], "0|1|2|3");
    }
    case_end(&c);
}

static int layouts_equal(const struct block_layout *a, const struct block_layout *b)
{
    return a->blocks == b->blocks && a->first[a->blocks] == b->first[b->blocks] &&
           memcmp(a->first, b->first, (a->blocks + 1) * sizeof(*a->first)) == 0 &&
           memcmp(a->order, b->order, a->first[a->blocks] * sizeof(*a->order)) == 0;
}

/* The memory that a builder asks for when it is given next to none. */
static uint64_t least_memory(const struct case_data *c, const char *name)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct block_options options = c->options;
    struct block_layout layout;
    struct counts *t = brute_counts_open(&c->access, 1, 0);
    options.memory_bytes = 1;
    int rc = drps_block_builder_find(name)->build(t, &c->tables, &options, &layout, &err);
    assert_int_equal(rc, DRPS_E_MEMORY_BUDGET);
    drps_block_layout_free(&layout);
    t->ops->close(t);
    const char *number = strchr(err.text, '(');
    assert_non_null(number);
    return strtoull(number + 1, NULL, 10);
}

/* Builders keep few candidates a block instead of counting all pairs in each round, the fewer the
 * less memory there is: the merges must be the same. */
static void test_merging_builds_what_recounting_builds(void **state)
{
    struct random_source rng = random_begin(__func__);
    (void)state;
    for (int round = 0; round < 100; round++) {
        struct block_layout recounted;
        struct case_data c;
        case_random(&c, &rng, 1 + random_below(&rng, 60), random_below(&rng, 80));
        random_options(&c, &rng);
        if (round % 2) c.options.keep_rows = 1 + (uint32_t)random_below(&rng, c.lists.rows);
        for (size_t i = 0; i < COUNTING; i++) {
            const uint32_t k = strcmp(counting[i], "topk") ? 1 : c.options.top_k;
            assert_int_equal(recount_blocks(&c.access, &c.tables, &c.options, k, &recounted), 0);
            const uint64_t least = least_memory(&c, counting[i]);
            for (uint64_t more = 0; more <= 1 << 20; more = 4 * more + random_below(&rng, 999)) {
                c.options.memory_bytes = least + more;
                struct block_layout layout = build(&c, counting[i]);
                assert_true(layouts_equal(&layout, &recounted));
                drps_block_layout_free(&layout);
            }
            c.options.memory_bytes = 1 << 24;
            drps_block_layout_free(&recounted);
        }
        case_end(&c);
    }
}

/* ---- Against every partition ---- */

/* The least cost over all ways to put rows [row, rows) into `blocks` blocks or new ones. */
static double least_cost(const struct case_data *c, uint32_t *block, uint32_t row, uint32_t blocks)
{
    const uint32_t rows = (uint32_t)c->lists.rows;
    double best = INFINITY;
    if (row == rows) {
        double sum = 0;
        for (uint32_t b = 0; b < blocks; b++) {
            uint32_t size = 0;
            for (uint32_t r = 0; r < rows; r++)
                size += block[r] == b;
            for (uint64_t s = 0; s < c->lists.steps; s++) {
                int touched = 0;
                for (size_t k = 0; k < c->lists.n[s]; k++)
                    touched |= block[c->lists.list[s][k]] == b;
                if (touched) sum += c->options.cost.seek + size * c->options.cost.row;
            }
        }
        return sum;
    }
    for (block[row] = 0; block[row] <= blocks; block[row]++) {
        const double cost = least_cost(c, block, row + 1, blocks + (block[row] == blocks));
        if (cost < best) best = cost;
    }
    return best;
}

static void test_tiny_cases_against_every_partition(void **state)
{
    struct random_source rng = random_begin(__func__);
    double found = 0, best = 0;
    (void)state;
    for (int round = 0; round < 40; round++) {
        struct case_data c;
        uint32_t block[8];
        case_random(&c, &rng, 1 + random_below(&rng, 7), random_below(&rng, 12));
        c.options.cost.row = 0.25 * (double)(1 + random_below(&rng, 80));
        const double least = least_cost(&c, block, 0, 0);
        for (size_t i = 0; i < COUNTING; i++) {
            struct block_layout layout = build(&c, counting[i]);
            const double cost = price_of(&c, &layout);
            assert_true(cost >= least);
            found += cost;
            best += least;
            drps_block_layout_free(&layout);
        }
        case_end(&c);
    }
    assert_true(found <= 1.05 * best); /* 1 to 1.004 in 40 runs */
}

/* ---- Refusals ---- */

static void test_refused_options(void **state)
{
    static const char *const text[] = {"0 1"};
    struct drps_err err = DRPS_ERR_INIT;
    struct block_layout layout;
    struct case_data c;
    (void)state;
    case_text(&c, text, 1, 2);
    struct counts *t = brute_counts_open(&c.access, 1, 0);
    c.options.top_k = 0;
    int rc = drps_block_builder_find("topk")->build(t, &c.tables, &c.options, &layout, &err);
    assert_int_equal(rc, DRPS_E_CONFIG);
    drps_block_layout_free(&layout);
    t->ops->close(t);
    case_end(&c);
}

/* ---- Stopping ---- */

/* Counts that raise the flag with its `left`-th question. */
struct stopping {
    struct counts counts;
    struct counts *of;
    atomic_int flag;
    int left, after; /* questions before it, and from it on */
};

static struct counts *question(struct counts *t)
{
    struct stopping *s = (struct stopping *)t;
    if (--s->left <= 0) {
        atomic_store(&s->flag, 1);
        s->after++;
    }
    return s->of;
}

#define STOPPING(op, parameters, ...)                                                              \
    static int stopping_##op parameters                                                            \
    {                                                                                              \
        struct counts *of = question(t);                                                           \
        return of->ops->op(of, __VA_ARGS__);                                                       \
    }
STOPPING(counts, (struct counts * t, uint32_t *out, struct drps_err *err), out, err)
STOPPING(signatures, (struct counts * t, uint64_t *out, struct drps_err *err), out, err)
STOPPING(minhash, (struct counts * t, uint64_t salt, uint32_t *out, struct drps_err *err), salt,
         out, err)
STOPPING(cocounts,
         (struct counts * t, const struct block_pair *pairs, size_t n, uint32_t *out,
          struct drps_err *err),
         pairs, n, out, err)
STOPPING(pairs,
         (struct counts * t, const uint32_t *with, size_t n, uint64_t memory,
          struct block_pair_count **out, size_t *n_out, struct drps_err *err),
         with, n, memory, out, n_out, err)
STOPPING(groups, (struct counts * t, const uint8_t *group, struct drps_err *err), group, err)
STOPPING(merge, (struct counts * t, const struct block_pair *pairs, size_t n, struct drps_err *err),
         pairs, n, err)
STOPPING(pair_work, (struct counts * t, uint64_t *out, struct drps_err *err), out, err)
STOPPING(reset, (struct counts * t, struct drps_err *err), err)

STOPPING(lists,
         (struct counts * t, const uint32_t *rows, size_t n, uint64_t memory, struct access *out,
          struct drps_err *err),
         rows, n, memory, out, err)

static const struct counts_ops stopping_ops = {
    .counts = stopping_counts,
    .signatures = stopping_signatures,
    .minhash = stopping_minhash,
    .cocounts = stopping_cocounts,
    .groups = stopping_groups,
    .pairs = stopping_pairs,
    .merge = stopping_merge,
    .pair_work = stopping_pair_work,
    .reset = stopping_reset,
    .lists = stopping_lists,
};

/* Whatever question it is that comes with the flag, no builder asks many more. */
static void test_builders_stop_when_told(void **state)
{
    static const char *const builders[] = {"pairwise", "topk", "greedy", "auto"};
    enum { MOST_AFTER = 4 }; /* some questions take no time, and look at no flag */
    struct random_source rng = random_begin(__func__);
    struct case_data c;
    (void)state;
    case_random(&c, &rng, 40, 30);
    for (size_t b = 0; b < sizeof(builders) / sizeof(builders[0]); b++) {
        int rc = DRPS_E_INTERRUPTED, stopped = 0;
        for (int at = 1; rc == DRPS_E_INTERRUPTED; at++) {
            struct drps_err err = DRPS_ERR_INIT;
            struct stopping s = {.left = at};
            struct block_layout layout;
            assert_ok(drps_counts_open(&c.access, 1, 0, &s.of, &err), &err);
            s.counts = (struct counts){
                .ops = &stopping_ops, .blocks = s.of->blocks, .batches = s.of->batches};
            s.of->stop = &s.flag;
            rc = drps_block_builder_find(builders[b])
                     ->build(&s.counts, &c.tables, &c.options, &layout, &err);
            if (rc == DRPS_E_INTERRUPTED)
                stopped++;
            else if (rc < 0)
                fail_msg("%s: %s", builders[b], err.text);
            if (s.after > MOST_AFTER)
                fail_msg("%s asks %d questions more after %d", builders[b], s.after, at);
            drps_block_layout_free(&layout);
            s.of->ops->close(s.of);
        }
        assert_true(stopped >= (strcmp(builders[b], "auto") ? 4 : 3)); /* it asks less */
    }
    case_end(&c);
}

static void test_loading_stops_when_told(void **state)
{
    struct random_source rng = random_begin(__func__);
    struct drps_err err = DRPS_ERR_INIT;
    const atomic_int stop = 1;
    struct access a;
    struct lists l;
    (void)state;
    lists_random(&l, &rng, 30, 20, 10);
    struct access_source from = source_of(&l, 1 << 20);
    from.stop = &stop;
    assert_int_equal(drps_access_load(&from, 0, from.batches, &a, &err), DRPS_E_INTERRUPTED);
    assert_null(a.batch);
    lists_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_access_turns_the_lists_round),
        cmocka_unit_test(test_topk_skips_what_has_merged_in_the_round),
        cmocka_unit_test(test_topk_merges_k_pairs_a_round),
        cmocka_unit_test(test_rounds_go_on_with_what_was_made),
        cmocka_unit_test(test_price_of_the_papers_figure_1),
        cmocka_unit_test(test_price_reads_what_the_batches_need),
        cmocka_unit_test(test_gain_is_the_fall_of_the_cost),
        cmocka_unit_test(test_layouts_partition_the_rows),
        cmocka_unit_test(test_weight_stays_below_its_limit),
        cmocka_unit_test(test_merging_builds_what_recounting_builds),
        cmocka_unit_test(test_tiny_cases_against_every_partition),
        cmocka_unit_test(test_refused_options),
        cmocka_unit_test(test_builders_stop_when_told),
        cmocka_unit_test(test_loading_stops_when_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
