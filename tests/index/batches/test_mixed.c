/* Lanes of the shuffled order: how rows are dealt to them, which batches there are, and which plans
 * have them. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "index/batches/drps_mixed.h"
#include "index/drps_index.h"
#include "index/order/drps_mix.h"
#include "index/plan/drps_batch.h"
#include "index/verify/drps_verify.h"
#include "support/batch_body.h"
#include "support/index_case.h"
#include "support/scratch.h"

/* --- parts -------------------------------------------------------------------------------------
 */

/* A stratum and a lane have one part of the users and one of the items; another lane has others. */
static void test_lanes_of_a_stratum_share_nothing(void **state)
{
    enum { RUN = 16 };
    (void)state;
    for (uint32_t lanes = 2; lanes <= DRPS_BATCH_LANES; lanes++)
        for (uint32_t u = 0; u < lanes; u++)
            for (uint32_t i = 0; i < lanes; i++) {
                const struct mix_position p = mix_position_of(lanes, u * RUN, i * RUN);
                assert_int_equal(p.lane, u);
                assert_int_equal((p.lane + p.stratum) % lanes, i);
                assert_true(p.stratum < lanes);
            }
}

/* Rows by a law of 1 / rank, as popular names have: no part has much more than another. */
static void test_parts_have_as_many_ratings(void **state)
{
    enum { ROWS = 3000 };
    (void)state;
    for (uint32_t lanes = 2; lanes <= 8; lanes *= 2) {
        double uses[8] = {0}, all = 0;
        for (uint32_t rank = 0; rank < ROWS; rank++) {
            uses[mix_part(rank, lanes)] += 1.0 / (rank + 100);
            all += 1.0 / (rank + 100);
        }
        for (uint32_t k = 0; k < lanes; k++)
            if (uses[k] * lanes < all * 0.9 || uses[k] * lanes > all * 1.1)
                fail_msg("%u lanes: part %u has %g of %g", lanes, k, uses[k], all);
    }
}

/* --- whole runs --------------------------------------------------------------------------------
 */

enum { SAMPLES = 24000, NAMES = 300, BATCH = 20, TRAINED = SAMPLES * 9 / 10 };

static void begin_of(struct case_run *c, struct scratch *s, uint32_t lanes, uint32_t names)
{
    case_begin(c, s, case_input(s, "input", CASE_RATINGS, SAMPLES, names, 5), "lmf");
    c->options.lanes = lanes;
    c->options.batch_size = BATCH;
    c->options.test_fraction = 0.1;
    c->options.memory_bytes = 64 << 20;
    c->options.force = 1;
}

static void begin(struct case_run *c, struct scratch *s, uint32_t lanes)
{
    begin_of(c, s, lanes, NAMES);
}

static void must_run(struct case_run *c)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_index_run(drps_io_os(), &c->options, &c->result, &err)) fail_msg("%s", err.text);
    case_verify(c->options.out);
}

/* What the batches of a plan are like. */
struct batches {
    uint64_t n, samples, full; /* of training */
    uint64_t strata, longest;  /* batches of a stratum */
    uint64_t marked_tests;
    uint64_t of_lane[DRPS_BATCH_LANES];
};

static void count_batch(struct batches *found, const struct drps_batch *b, uint32_t *stratum,
                        uint64_t *run)
{
    assert_true(b->stratum >= *stratum && b->lane < DRPS_BATCH_LANES);
    *run = b->stratum == *stratum ? *run + 1 : 1;
    found->strata += b->stratum != *stratum;
    *stratum = b->stratum;
    if (*run > found->longest) found->longest = *run;
    found->n++;
    found->samples += b->samples;
    found->full += b->samples == BATCH;
    found->of_lane[b->lane]++;
}

static struct batches read_batches(const char *dir)
{
    struct batches found = {0};
    struct drps_plan *plan;
    struct drps_recfile *file;
    uint32_t stratum = 0;
    uint64_t run = 0;
    assert_int_equal(drps_plan_open(drps_io_os(), dir, &plan, NULL), 0);
    assert_int_equal(drps_plan_file(plan, "data.rec", DRPS_KIND_DATA, &file, NULL), 0);
    for (uint64_t t = 0; t < drps_recfile_count(file); t++) {
        struct drps_batch b;
        size_t bytes = (size_t)drps_recfile_bytes(file, t);
        char *data = malloc(drps_recfile_run_bytes(file, t, 1));
        assert_non_null(data);
        assert_int_equal(drps_recfile_read(file, t, 1, data, NULL), 0);
        memmove(data, data + drps_recfile_offset_in_run(file, t, t), bytes);
        data = body_unpack(data, &bytes);
        assert_int_equal(drps_batch_decode(data, bytes, &b, NULL), 0);
        if (t < plan->info.batches)
            count_batch(&found, &b, &stratum, &run);
        else
            found.marked_tests += b.stratum > 0;
        free(data);
    }
    drps_recfile_close(file);
    drps_plan_close(plan);
    return found;
}

/* Nearly all batches are full, of each lane as many, and a stratum has enough for all lanes. */
static void test_batches_are_full_and_marked(void **state)
{
    struct scratch *s = *state;
    for (uint32_t lanes = 2; lanes <= 8; lanes *= 2) {
        struct case_run c;
        begin(&c, s, lanes);
        must_run(&c);
        assert_int_equal(c.result.info.lanes, lanes);
        const struct batches found = read_batches(c.out);
        assert_int_equal(found.samples, c.result.info.samples);
        assert_int_equal(found.marked_tests, 0);
        assert_true(found.n - found.full <= (uint64_t)lanes * lanes);
        assert_true(found.longest <= DRPS_MIXED_BATCHES + lanes);
        assert_true(found.strata <= found.n / (DRPS_MIXED_BATCHES - lanes) + lanes);
        for (uint32_t k = 0; k < lanes; k++)
            assert_in_range(found.of_lane[k] * lanes, found.n * 6 / 10, found.n * 14 / 10);
    }
}

/* The samples are those of a plan without lanes, of training and of evaluation. */
static void test_samples_are_conserved(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    struct case_lines want[2], found;
    begin(&c, s, 1);
    must_run(&c);
    for (int test = 0; test < 2; test++)
        case_plan_lines(c.out, test, 1, &want[test]);
    c.options.lanes = 3;
    must_run(&c);
    for (int test = 0; test < 2; test++) {
        case_plan_lines(c.out, test, 1, &found);
        assert_true(case_lines_equal(&want[test], &found));
        case_lines_free(&want[test]);
        case_lines_free(&found);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Samples hardly move in the random order: half of an epoch has nearly the same ones. */
static void test_order_stays_shuffled(void **state)
{
    enum { LANES = 4, WAITING = LANES * DRPS_MIXED_BATCHES * BATCH };
    struct scratch *s = *state;
    struct case_run c;
    struct case_lines plain, mixed;
    begin(&c, s, 1);
    c.options.test_fraction = 0;
    must_run(&c);
    case_plan_lines(c.out, 0, 0, &plain);
    c.options.lanes = LANES;
    must_run(&c);
    case_plan_lines(c.out, 0, 0, &mixed);
    assert_int_equal(plain.n, mixed.n);
    const size_t half = plain.n / 2;
    qsort(plain.line, half + WAITING, sizeof(*plain.line), by_text);
    for (size_t i = 0; i < half; i++)
        assert_non_null(
            bsearch(&mixed.line[i], plain.line, half + WAITING, sizeof(*plain.line), by_text));
    case_lines_free(&plain);
    case_lines_free(&mixed);
}

static void test_lanes_are_for_whom_asks(void **state)
{
    static const struct {
        const char *name, *order;
        uint32_t lanes, factors, names;
        uint64_t batch, want;
    } cases[] = {
        {.name = "nobody asked", .want = 4},
        {.name = "few batches", .batch = 50, .want = 0},
        {.name = "samples as given", .order = "given", .want = 0},
        {.name = "one lane is none", .lanes = 1, .want = 0},
        {.name = "the order named", .order = "shuffled", .lanes = 3, .want = 3},
        {.name = "a grid", .order = "grid", .want = 0},
        {.name = "rows that do not fit", .factors = 4096, .names = 2000, .lanes = 2, .want = 2},
    };
    struct scratch *s = *state;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct case_run c;
        begin_of(&c, s, cases[k].lanes, cases[k].names ? cases[k].names : NAMES);
        c.options.order = cases[k].order;
        c.options.factors = cases[k].factors;
        if (cases[k].batch) c.options.batch_size = cases[k].batch;
        must_run(&c);
        if (c.result.info.lanes != cases[k].want)
            fail_msg("%s: %" PRIu64 " lanes", cases[k].name, (uint64_t)c.result.info.lanes);
    }
}

/* Samples that wait would take more than their share of the memory: no lanes then, and no error. */
static void test_usual_lanes_need_memory(void **state)
{
    enum { MANY = 240000, LARGE_BATCH = 400 };
    struct scratch *s = *state;
    const char *input = case_input(s, "input", CASE_RATINGS, MANY, NAMES, 5);
    for (uint64_t much = 0; much <= 1; much++) {
        struct case_run c;
        case_begin(&c, s, input, "lmf");
        c.options.batch_size = LARGE_BATCH;
        c.options.memory_bytes = much ? 128 << 20 : 64 << 20;
        c.options.force = 1;
        must_run(&c);
        assert_int_equal(c.result.info.lanes, much ? 4 : 0);
    }
}

static void deal(struct scratch *s, const char *from, uint32_t workers, const char *to,
                 uint64_t lanes)
{
    struct case_run c;
    char source[SCRATCH_PATH_BYTES];
    case_begin(&c, s, "-", "lmf");
    (void)snprintf(source, sizeof(source), "%s", scratch_path(s, from));
    (void)snprintf(c.out, sizeof(c.out), "%s", scratch_path(s, to));
    c.options = (struct drps_index_options){.from_plan = source,
                                            .workers = workers,
                                            .memory_bytes = 64 << 20,
                                            .out = c.out,
                                            .log = c.options.log};
    must_run(&c);
    assert_int_equal(c.result.info.lanes, lanes);
}

/* A finished plan that is dealt to several workers loses its lanes, as rounds have none; its
 * samples stay. */
static void test_lanes_are_left_out_of_rounds(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    struct case_lines want, found;
    begin(&c, s, 3);
    must_run(&c);
    deal(s, "plan", 1, "alone", 3);
    assert_true(case_same_records(scratch_path(s, "plan"), scratch_path(s, "alone")));
    deal(s, "plan", 2, "dealt", 0);
    deal(s, "dealt", 1, "collected", 0);
    assert_int_equal(read_batches(scratch_path(s, "collected")).strata, 0);
    case_plan_lines(scratch_path(s, "plan"), 0, 0, &want);
    case_plan_lines(scratch_path(s, "collected"), 0, 0, &found);
    assert_true(want.n > 0 && case_lines_equal(&want, &found));
    case_lines_free(&want);
    case_lines_free(&found);
}

/* In the order of the input nothing is dealt to lanes: such a plan is damaged. */
static void test_lanes_of_another_order_are_refused(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    struct drps_plan *plan;
    struct drps_err err = DRPS_ERR_INIT;
    begin(&c, s, 2);
    must_run(&c);
    assert_int_equal(drps_plan_open(drps_io_os(), c.out, &plan, NULL), 0);
    (void)snprintf(plan->info.order, sizeof(plan->info.order), "given");
    assert_int_equal(drps_plan_save(drps_io_os(), c.out, &plan->info, plan->fields, NULL, NULL), 0);
    drps_plan_close(plan);
    assert_int_equal(drps_plan_open(drps_io_os(), c.out, &plan, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "lanes"));
}

/* Lanes that only plan.json has: training would do without an intercept that learns. */
static void test_lanes_without_marks_are_found(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    struct drps_plan *plan;
    struct drps_findings found = {0};
    begin(&c, s, 1);
    must_run(&c);
    assert_int_equal(drps_plan_open(drps_io_os(), c.out, &plan, NULL), 0);
    plan->info.lanes = 2;
    assert_int_equal(drps_plan_save(drps_io_os(), c.out, &plan->info, plan->fields, NULL, NULL), 0);
    drps_plan_close(plan);
    assert_int_equal(drps_plan_open(drps_io_os(), c.out, &plan, NULL), 0);
    assert_int_equal(drps_plan_verify(plan, &found, NULL), 0);
    drps_plan_close(plan);
    assert_true(found.problems > 0);
    assert_non_null(strstr(found.kept[0].text, "of 2 lanes"));
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lanes_of_a_stratum_share_nothing),
        cmocka_unit_test(test_parts_have_as_many_ratings),
        SCRATCH_TEST(test_batches_are_full_and_marked),
        SCRATCH_TEST(test_samples_are_conserved),
        SCRATCH_TEST(test_order_stays_shuffled),
        SCRATCH_TEST(test_lanes_are_for_whom_asks),
        SCRATCH_TEST(test_usual_lanes_need_memory),
        SCRATCH_TEST(test_lanes_are_left_out_of_rounds),
        SCRATCH_TEST(test_lanes_of_another_order_are_refused),
        SCRATCH_TEST(test_lanes_without_marks_are_found),
    };
    return cmocka_run_group_tests_name("mixed lanes", tests, NULL, NULL);
}
