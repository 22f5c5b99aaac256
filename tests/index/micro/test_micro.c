/*
 * Micro order: samples made by hand, whose groups and parts are known, then whole runs. A
 * sample's label is its number in the input.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "index/drps_index.h"
#include "index/micro/drps_micro.h"
#include "index/plan/drps_plan.h"
#include "index/plan/drps_plan_files.h"
#include "index/together/drps_together.h"
#include "support/index_case.h"
#include "support/owned_io.h"
#include "support/scratch.h"

/* ---- Made by hand ---- */

enum { SAMPLES = 64000, PARTS = SAMPLES / MICRO_PART, ROWS_EACH = 3, MUCH = 64 << 20 };

/* Which rows each sample has, and what came out. */
struct made {
    uint32_t rows[SAMPLES][ROWS_EACH];
    uint32_t rows_n; /* all are below */
    uint64_t seed, memory_bytes;
    const uint32_t *map;
    uint32_t line[SAMPLES]; /* numbers of samples in their new order */
    uint32_t part[SAMPLES]; /* of a sample */
    uint32_t n;
};

static int never(void *ctx, uint64_t done, struct drps_err *err)
{
    (void)ctx;
    (void)done;
    (void)err;
    return 0;
}

static int note(void *ctx, struct spool_sample *s, struct drps_err *err)
{
    struct made *m = ctx;
    const uint32_t number = (uint32_t)s->label;
    (void)err;
    assert_true(m->n < SAMPLES && number < SAMPLES);
    assert_memory_equal(s->ids, m->rows[number], sizeof(m->rows[number]));
    m->line[m->n++] = number;
    m->part[number] = (uint32_t)(s->order / (UINT64_MAX / PARTS));
    return 0;
}

/* Order the samples, in a folder as a run has it, of which only files are made that a run may
 * leave; each sample is there once. */
static void order(struct scratch *s, struct made *m)
{
    static unsigned char seen[SAMPLES];
    char dir[SCRATCH_PATH_BYTES];
    struct owned_io owned;
    const struct drps_io *io = &owned.io;
    struct drps_err err = DRPS_ERR_INIT;
    struct spool *from, *to;
    const struct spool_visitor noting = {.visit = note, .ctx = m};
    const struct micro_job job = {.io = io,
                                  .dir = dir,
                                  .map = m->map,
                                  .rows = m->rows_n,
                                  .samples = SAMPLES,
                                  .seed = m->seed,
                                  .memory_bytes = m->memory_bytes,
                                  .turn = never};
    m->n = 0;
    owned_io_init(&owned, &drps_plan_kind);
    (void)mkdir(scratch_path(s, "plan.partial"), 0777); /* they may be there */
    (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, "plan.partial/" DRPS_FILE_SCRATCH));
    (void)mkdir(dir, 0777);
    int rc = drps_spool_open(io, dir, "train", 1, MUCH, &from, &err);
    if (rc == 0) rc = drps_spool_open(io, dir, "train-groups", SPOOL_BUCKETS, MUCH, &to, &err);
    for (uint32_t i = 0; i < SAMPLES && rc == 0; i++) {
        const struct spool_sample sample = {.order = drps_rng_at(m->seed, i),
                                            .label = (float)i,
                                            .weight = 1,
                                            .n = ROWS_EACH,
                                            .ids = m->rows[i]};
        rc = drps_spool_add(from, &sample, &err);
    }
    if (rc == 0) rc = drps_spool_finish(from, &err);
    if (rc == 0) rc = drps_micro_order(&job, from, to, &err);
    if (rc == 0) rc = drps_spool_finish(to, &err);
    if (rc == 0) rc = drps_spool_drain(to, MUCH, &noting, &err);
    if (rc < 0) fail_msg("%s", err.text);
    drps_spool_close(from);
    drps_spool_close(to);
    memset(seen, 0, sizeof(seen));
    for (uint32_t i = 0; i < SAMPLES; i++)
        seen[m->line[i]]++;
    for (uint32_t i = 0; i < SAMPLES; i++)
        assert_int_equal(seen[i], 1);
}

static struct made *made_new(void)
{
    struct made *m = calloc(1, sizeof(*m));
    assert_non_null(m);
    m->seed = 7;
    m->memory_bytes = MUCH;
    return m;
}

/* Each sample has the row that all have, and a row of its own beside row `of` (number / uses, in
 * the order of arrival far apart). */
static void share_rows(struct made *m, uint32_t uses)
{
    const uint32_t shared = SAMPLES / uses;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        const uint32_t row = i % shared; /* the last samples make some rows used once more */
        m->rows[i][0] = 0;
        m->rows[i][1] = 1 + (i < shared * uses ? row : shared + i);
        m->rows[i][2] = 1 + shared + SAMPLES + i;
    }
    m->rows_n = 1 + shared + 2 * SAMPLES;
}

/* Returns in how many parts the samples of the row are that were made so. */
static unsigned parts_of(const struct made *m, uint32_t uses, uint32_t row)
{
    unsigned char in[PARTS + 1] = {0};
    unsigned n = 0;
    for (uint32_t u = 0; u < uses; u++)
        in[m->part[u * (SAMPLES / uses) + row]] = 1;
    for (unsigned w = 0; w <= PARTS; w++)
        n += in[w];
    return n;
}

static void test_micro_groups_share_a_rare_row(void **state)
{
    static const struct {
        uint32_t uses;
        unsigned most; /* parts of a row; 0: it is not rare, and is in nearly all that it can */
    } cases[] = {{2, 1},  {4, 1},  {5, 2},  {16, 1},  {32, 1},
                 {33, 3}, {64, 2}, {65, 0}, {100, 0}, {290, 0}};
    struct made *m = made_new();
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const uint32_t uses = cases[c].uses;
        unsigned sum = 0;
        share_rows(m, uses);
        order(*state, m);
        for (uint32_t row = 0; row < SAMPLES / uses; row++) {
            const unsigned n = parts_of(m, uses, row);
            if (cases[c].most && n > cases[c].most)
                fail_msg("a row of %u samples is in %u parts", uses, n);
            sum += n;
        }
        const double mean = (double)sum / (double)(SAMPLES / uses);
        if (!cases[c].most && mean < 0.9 * PARTS)
            fail_msg("a row of %u samples is in only %g parts", uses, mean);
    }
    free(m);
}

/* Samples share a row of a lower class, and have different ones of a higher class, each of which is
 * in as many such clusters. All samples of a cluster go with the same one of these. */
static void test_micro_clusters_stay_together(void **state)
{
    static const struct {
        uint32_t uses, other; /* of the shared row, of a higher one */
    } cases[] = {{2, 32}, {8, 32}, {2, 8}};
    struct made *m = made_new();
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const uint32_t uses = cases[c].uses, clusters = SAMPLES / uses;
        const uint32_t others = clusters / cases[c].other; /* for each sample of a cluster */
        const unsigned groups = (uses * cases[c].other + MICRO_GROUP - 1) / MICRO_GROUP;
        for (uint32_t i = 0; i < SAMPLES; i++) {
            m->rows[i][0] = 0;
            m->rows[i][1] = 1 + i % clusters;
            m->rows[i][2] = 1 + clusters + i / clusters * others + i % others;
        }
        m->rows_n = 1 + clusters + uses * others;
        order(*state, m);
        for (uint32_t i = 0; i < SAMPLES; i++)
            if (m->part[i] != m->part[i % clusters])
                fail_msg("%u samples share row %u: parts %u and %u", uses, m->rows[i][1],
                         m->part[i], m->part[i % clusters]);
        for (uint32_t row = 0; row < others; row++) {
            unsigned char in[PARTS + 1] = {0};
            unsigned n = 0;
            for (uint32_t i = row; i < clusters; i += others)
                in[m->part[i]] = 1;
            for (unsigned w = 0; w <= PARTS; w++)
                n += in[w];
            if (n > groups)
                fail_msg("clusters of %u with row %u are in %u parts, not %u", uses, row, n,
                         groups);
        }
    }
    free(m);
}

static void test_micro_parts_are_shuffled(void **state)
{
    struct made *m = made_new();
    unsigned size[PARTS + 1] = {0}, beside = 0, ascending = 0;
    share_rows(m, 32);
    order(*state, m);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        size[m->part[m->line[i]]]++;
        if (!i) continue;
        assert_true(m->part[m->line[i]] >= m->part[m->line[i - 1]]);
        beside += m->rows[m->line[i]][1] == m->rows[m->line[i - 1]][1];
        ascending += m->line[i] > m->line[i - 1];
    }
    assert_int_equal(size[PARTS], 0);
    for (unsigned w = 0; w < PARTS; w++) /* 125 groups are expected; 6 standard deviations */
        if (size[w] < MICRO_PART / 2 || size[w] > MICRO_PART * 3 / 2)
            fail_msg("part %u has %u samples", w, size[w]);
    assert_true(beside < SAMPLES / 50); /* 31 of 3999 are expected */
    assert_in_range(ascending, SAMPLES * 4 / 10, SAMPLES * 6 / 10);
    free(m);
}

/* What others share does not matter to samples without a rare row: any part will do. */
static void test_micro_deals_samples_without_rare_rows(void **state)
{
    struct made *m = made_new();
    unsigned size[PARTS + 1] = {0};
    for (uint32_t i = 0; i < SAMPLES; i++)
        for (uint32_t k = 0; k < ROWS_EACH; k++)
            m->rows[i][k] = k;
    m->rows_n = ROWS_EACH;
    order(*state, m);
    for (uint32_t i = 0; i < 4000; i++)
        size[m->part[i]]++;
    for (unsigned w = 0; w < PARTS; w++)
        assert_in_range(size[w], 150, 350);
    free(m);
}

static void test_micro_order_is_the_same_for_any_memory(void **state)
{
    /* Sorts in memory; sorts that spill; and rows counted in many walks. */
    static const uint64_t memory[] = {MUCH, 100000, 2000};
    struct made *m = made_new(), *first = made_new();
    for (uint32_t i = 0; i < SAMPLES; i++)
        for (uint32_t k = 0; k < ROWS_EACH; k++)
            m->rows[i][k] = (uint32_t)(drps_rng_at(k, i) % (k ? 20000 : 2000));
    m->rows_n = 20000;
    for (size_t k = 0; k < sizeof(memory) / sizeof(memory[0]); k++) {
        m->memory_bytes = memory[k];
        order(*state, m);
        if (!k) *first = *m;
        if (memcmp(m->line, first->line, sizeof(m->line)) != 0)
            fail_msg("another order in %" PRIu64 " bytes", memory[k]);
    }
    m->seed = 8;
    order(*state, m);
    unsigned same = 0;
    for (uint32_t i = 0; i < SAMPLES; i++)
        same += m->part[i] == first->part[i];
    assert_true(same < SAMPLES / 8); /* a 16th is expected */
    free(m);
    free(first);
}

static void test_micro_looks_at_placed_rows(void **state)
{
    struct made *m = made_new(), *plain = made_new();
    uint32_t *map;
    share_rows(plain, 32);
    order(*state, plain);
    *m = *plain;
    map = calloc(m->rows_n, sizeof(*map));
    assert_non_null(map);
    for (uint32_t i = 0; i < m->rows_n; i++)
        map[i] = m->rows_n - 1 - i;
    for (uint32_t i = 0; i < SAMPLES; i++)
        for (uint32_t k = 0; k < ROWS_EACH; k++)
            m->rows[i][k] = map[m->rows[i][k]];
    m->map = map;
    order(*state, m);
    assert_memory_equal(m->line, plain->line, sizeof(m->line));
    free(map);
    free(m);
    free(plain);
}

/* ---- Whole runs ---- */

enum { LINES = 20000, FEATURES = 5000 };

static void begin(struct case_run *c, struct scratch *s, const char *algo)
{
    const int rates = strcmp(algo, "lmf") == 0;
    case_begin(c, s, case_input(s, "input", rates ? CASE_RATINGS : CASE_LIBSVM, LINES, FEATURES, 5),
               algo);
    c->options.order = "micro";
    c->options.force = 1;
}

static void compile_to(struct case_run *c, struct scratch *s, const char *name)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct owned_io owned;
    owned_io_init(&owned, &drps_plan_kind);
    (void)snprintf(c->out, sizeof(c->out), "%s", scratch_path(s, name));
    if (drps_index_run(&owned.io, &c->options, &c->result, &err)) fail_msg("%s", err.text);
    case_verify(c->out);
}

static int lines_differ(const char *a, const char *b, int evaluation, int sort)
{
    struct case_lines x, y;
    case_plan_lines(a, evaluation, sort, &x);
    case_plan_lines(b, evaluation, sort, &y);
    const int differ = !case_lines_equal(&x, &y);
    case_lines_free(&x);
    case_lines_free(&y);
    return differ;
}

static void test_micro_run_moves_training_samples_alone(void **state)
{
    static const char *const algos[] = {"lor", "lmf"};
    struct scratch *s = *state;
    for (size_t i = 0; i < 2; i++) {
        struct case_run c;
        char shuffled[SCRATCH_PATH_BYTES];
        begin(&c, s, algos[i]);
        c.options.test_fraction = 0.2;
        c.options.order = "shuffled";
        compile_to(&c, s, "shuffled");
        (void)snprintf(shuffled, sizeof(shuffled), "%s", c.out);
        c.options.order = "micro";
        compile_to(&c, s, "micro");
        assert_string_equal(c.result.info.order, "micro");
        if (lines_differ(shuffled, c.out, 0, 1)) fail_msg("%s: samples changed", algos[i]);
        if (!lines_differ(shuffled, c.out, 0, 0)) fail_msg("%s: the order did not", algos[i]);
        if (lines_differ(shuffled, c.out, 1, 0)) fail_msg("%s: tests changed", algos[i]);
    }
}

static void test_micro_run_depends_on_the_seed_alone(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    begin(&c, s, "lor");
    for (int i = 0; i < 3; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "plan-%d", i);
        c.options.memory_bytes = i == 1 ? 1 << 30 : 64 << 20;
        c.options.seed = i == 2 ? 2 : 1;
        compile_to(&c, s, name);
    }
    assert_true(case_same_records(scratch_path(s, "plan-0"), scratch_path(s, "plan-1")));
    assert_false(case_same_records(scratch_path(s, "plan-0"), scratch_path(s, "plan-2")));
}

/* Batches of several workers, dealt or placed, and those that follow a base with replayed samples,
 * hold the same samples as in shuffled order. */
static void test_micro_run_goes_with_workers_and_a_base(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    char base[SCRATCH_PATH_BYTES];
    static const char *const samples[] = {"dealt", "placed"};
    for (size_t i = 0; i < 2; i++) {
        struct case_lines want, found;
        begin(&c, s, "lor");
        c.options.workers = 2;
        c.options.samples = samples[i];
        c.options.partition = i ? "auto" : "range";
        compile_to(&c, s, "of-two");
        struct case_run one;
        begin(&one, s, "lor");
        one.options = (struct drps_index_options){
            .from_plan = c.out, .force = 1, .memory_bytes = 64 << 20, .workers = 1};
        one.options.out = one.out;
        compile_to(&one, s, "of-one");
        assert_string_equal(one.result.info.order, "micro");
        case_input_lines(c.input, 0, 1, 1, &want);
        case_plan_lines(one.out, 0, 1, &found);
        if (!case_lines_equal(&want, &found)) fail_msg("%s: samples changed", samples[i]);
        case_lines_free(&want);
        case_lines_free(&found);
    }
    begin(&c, s, "lor");
    compile_to(&c, s, "base");
    (void)snprintf(base, sizeof(base), "%s", c.out);
    c.options.base = base;
    c.options.replay = 0.5;
    compile_to(&c, s, "micro");
    assert_true(c.result.replayed > 0);
    c.options.order = "shuffled";
    compile_to(&c, s, "shuffled");
    assert_false(lines_differ(scratch_path(s, "micro"), c.out, 0, 1));
    assert_true(lines_differ(scratch_path(s, "micro"), c.out, 0, 0));
}

static void expect_refusal(struct case_run *c, const char *text)
{
    struct drps_err err = DRPS_ERR_INIT;
    const int rc = drps_index_run(drps_io_os(), &c->options, &c->result, &err);
    if (rc != DRPS_E_CONFIG || !strstr(err.text, text))
        fail_msg("%d, %s; expected %s", rc, err.text, text);
    assert_false(path_exists(c->options.out));
}

static void test_micro_order_is_refused(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    struct swap_ranks ranks = {.count = 2};
    begin(&c, s, "bpr");
    expect_refusal(&c, "the order micro groups the samples that are read, and for bpr");
    begin(&c, s, "lor");
    c.options.ranks = &ranks;
    expect_refusal(&c, "the order micro: several machines cannot make that together");
    begin(&c, s, "lor");
    c.options.grid_users = c.options.grid_items = 2;
    expect_refusal(&c, "groups of a grid are for the order grid only");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_micro_groups_share_a_rare_row),
        TEST(test_micro_clusters_stay_together),
        TEST(test_micro_parts_are_shuffled),
        TEST(test_micro_deals_samples_without_rare_rows),
        TEST(test_micro_order_is_the_same_for_any_memory),
        TEST(test_micro_looks_at_placed_rows),
        TEST(test_micro_run_moves_training_samples_alone),
        TEST(test_micro_run_depends_on_the_seed_alone),
        TEST(test_micro_run_goes_with_workers_and_a_base),
        TEST(test_micro_order_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
