/* Plans that go on from an earlier one: its rows keep their numbers, new ones follow, batches have
 * the new samples alone, and what does not fit the earlier plan is refused. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "index/drps_index.h"
#include "index/plan/drps_names.h"
#include "support/index_case.h"

enum { FIRST_FEATURES = 300, LATER_FEATURES = 500, SAMPLES = 1200 };

static const struct kind {
    const char *name, *algo;
    enum case_format format;
    int binary, rates;
} kinds[] = {
    {.name = "libsvm", .algo = "lor", .format = CASE_LIBSVM, .binary = 1},
    {.name = "regression", .algo = "lir", .format = CASE_LIBSVM},
    {.name = "ratings", .algo = "lmf", .format = CASE_RATINGS, .rates = 1},
    {.name = "ratings, fm", .algo = "fm", .format = CASE_RATINGS},
    {.name = "csv", .algo = "svm", .format = CASE_CSV, .binary = 1},
    {.name = "classes", .algo = "mlr", .format = CASE_LIBSVM},
    {.name = "libffm", .algo = "ffm", .format = CASE_LIBFFM, .binary = 1},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static const char *input(struct scratch *s, const char *name, const struct kind *k, size_t features,
                         uint64_t seed)
{
    return case_input(s, name, k->format, SAMPLES, features, seed);
}

/* Set up a run of drps-index whose plan is called `name`. */
static void begin(struct case_run *c, struct scratch *s, const char *name, const char *input_path,
                  const char *algo)
{
    case_begin(c, s, input_path, algo);
    (void)snprintf(c->out, sizeof(c->out), "%s", scratch_path(s, name));
    c->options.force = 1;
}

static void make_first(struct scratch *s, const struct kind *k)
{
    struct case_run c;
    begin(&c, s, "first", input(s, "first.txt", k, FIRST_FEATURES, 21), k->algo);
    case_compile(&c);
}

/* Set up a run from more data that goes on from the plan `base`. */
static void begin_later(struct case_run *c, struct scratch *s, const struct kind *k,
                        const char *name, const char *base, uint64_t seed,
                        char base_dir[SCRATCH_PATH_BYTES])
{
    begin(c, s, name, input(s, "later.txt", k, LATER_FEATURES, seed), NULL);
    (void)snprintf(base_dir, SCRATCH_PATH_BYTES, "%s", scratch_path(s, base));
    c->options.base = base_dir;
}

struct stayed {
    struct drps_names *later;
    uint64_t n;
};

static int row_stays(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                     size_t bytes, struct drps_err *err)
{
    struct stayed *s = ctx;
    uint32_t later;
    (void)field, (void)text, (void)bytes;
    if (drps_names_lookup(s->later, &key, 1, &later, err)) fail_msg("%s", err->text);
    if (later != row) fail_msg("key %016" PRIx64 " had row %u, and has %u", key, row, later);
    s->n++;
    return 0;
}

/* All features of the plan `before` have their rows in the plan `after`. */
static void rows_stay(const char *before, const char *after)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_names *names;
    struct stayed s = {.n = 0};
    if (drps_names_open(drps_io_os(), before, &names, &err) ||
        drps_names_open(drps_io_os(), after, &s.later, &err) ||
        drps_names_scan(names, row_stays, &s, &err))
        fail_msg("%s", err.text);
    assert_true(s.n > 0);
    drps_names_close(names);
    drps_names_close(s.later);
}

static void test_base_rows_stay_and_new_ones_follow(void **state)
{
    struct scratch *s = *state;
    for (size_t k = 0; k < KINDS; k++) {
        struct case_run c;
        struct case_lines want, found;
        char base[SCRATCH_PATH_BYTES], later[SCRATCH_PATH_BYTES];
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_plan *first, *plan;
        make_first(s, &kinds[k]);
        begin_later(&c, s, &kinds[k], "later", "first", 22, base);
        plan = case_plan(&c);
        assert_int_equal(drps_plan_open(drps_io_os(), base, &first, &err), 0);
        (void)snprintf(later, sizeof(later), "%s", c.out);
        rows_stay(base, later);
        case_verify(later);
        assert_string_equal(plan->info.base, first->info.id);
        assert_int_equal(plan->info.base_rows, first->info.rows);
        assert_true(plan->info.rows > first->info.rows);
        assert_int_equal(plan->info.dim, first->info.dim);
        assert_string_equal(plan->info.loss, first->info.loss);
        if (kinds[k].rates) assert_string_equal(plan->info.tables[1].name, "rows");
        case_input_lines(c.input, 0, (float)kinds[k].binary, 1, &want);
        case_plan_lines(later, 0, 1, &found);
        assert_int_equal(found.n, want.n);
        const int scaled =
            kinds[k].format == CASE_CSV; /* as the first plan's, not as the input's */
        if (!scaled && !case_lines_equal(&want, &found))
            fail_msg("%s: samples changed", kinds[k].name);
        case_lines_free(&want);
        case_lines_free(&found);
        drps_plan_close(first);
        drps_plan_close(plan);
    }
}

static void test_base_bytes_do_not_depend_on_memory(void **state)
{
    static const uint64_t memory[] = {64 << 20, 1 << 30};
    struct scratch *s = *state;
    for (size_t k = 0; k < KINDS; k++) {
        char base[SCRATCH_PATH_BYTES], out[2][SCRATCH_PATH_BYTES];
        make_first(s, &kinds[k]);
        for (size_t i = 0; i < 2; i++) {
            struct case_run c;
            begin_later(&c, s, &kinds[k], i ? "later-1" : "later-0", "first", 22, base);
            c.options.memory_bytes = memory[i];
            c.options.test_fraction = 0.2;
            case_compile(&c);
            case_verify(c.out);
            (void)snprintf(out[i], sizeof(out[i]), "%s", c.out);
        }
        if (!case_same_records(out[0], out[1])) fail_msg("%s", kinds[k].name);
    }
}

/* Day after day: rows of all days before stay. */
static void test_base_of_a_base(void **state)
{
    static const char *const names[] = {"first", "second", "third", "fourth"};
    struct scratch *s = *state;
    for (size_t k = 0; k < KINDS; k++) {
        char base[SCRATCH_PATH_BYTES], paths[4][SCRATCH_PATH_BYTES];
        make_first(s, &kinds[k]);
        for (size_t i = 0; i < 4; i++)
            (void)snprintf(paths[i], sizeof(paths[i]), "%s", scratch_path(s, names[i]));
        for (size_t i = 1; i < 4; i++) {
            struct case_run c;
            begin_later(&c, s, &kinds[k], names[i], names[i - 1], 30 + i, base);
            case_compile(&c);
            case_verify(c.out);
            for (size_t j = 0; j < i; j++)
                rows_stay(paths[j], paths[i]);
        }
    }
}

/* Test samples may have features that only the base has been trained on. */
static void test_base_features_are_seen(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    char base[SCRATCH_PATH_BYTES];
    make_first(s, &kinds[0]);
    begin_later(&c, s, &kinds[0], "later", "first", 23, base);
    (void)snprintf(c.input, sizeof(c.input), "%s", input(s, "few.txt", &kinds[0], 5, 24));
    (void)snprintf(c.test, sizeof(c.test), "%s", scratch_path(s, "first.txt"));
    c.options.tests_n = 1;
    case_compile(&c);
    case_verify(c.out);
    assert_int_equal(c.result.info.test_unseen, 0);
    assert_int_equal(c.result.info.rows, c.result.info.base_rows);
}

/* A day may have samples of one label alone, which is still the label that it was. */
static void test_base_settles_labels(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    char base[SCRATCH_PATH_BYTES];
    make_first(s, &kinds[0]);
    begin_later(&c, s, &kinds[0], "later", "first", 23, base);
    FILE *f = fopen(scratch_path(s, "one.txt"), "w");
    assert_non_null(f);
    for (int i = 0; i < 200; i++)
        (void)fprintf(f, "1 %d:1\n", i % 50 + 1);
    assert_int_equal(fclose(f), 0);
    (void)snprintf(c.input, sizeof(c.input), "%s", scratch_path(s, "one.txt"));
    c.options.class_weights = "balanced";
    struct drps_plan *plan = case_plan(&c);
    assert_true(plan->info.classification && plan->info.label_positive == 1 &&
                plan->info.label_negative == 0 && plan->info.label_mean == 1);
    drps_plan_close(plan);
}

/* ---- Several workers ---- */

static void test_base_with_workers(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    char base[SCRATCH_PATH_BYTES], before[SCRATCH_PATH_BYTES];
    begin(&c, s, "first", input(s, "first.txt", &kinds[2], FIRST_FEATURES, 21), "lmf");
    c.options.workers = 3;
    c.options.partition = "auto"; /* rows of users and items mix */
    case_compile(&c);
    (void)snprintf(before, sizeof(before), "%s", c.out);
    for (uint32_t workers = 1; workers < 4; workers++) {
        begin_later(&c, s, &kinds[2], "later", "first", 22, base);
        c.options.workers = workers;
        struct drps_plan *plan = case_plan(&c);
        case_verify(c.out);
        rows_stay(before, c.out);
        assert_int_equal(plan->info.ranks.count, workers);
        drps_plan_close(plan);
    }
    struct case_run dealt; /* what is dealt anew goes on from the same plan */
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_plan *plan;
    char later[SCRATCH_PATH_BYTES];
    (void)snprintf(later, sizeof(later), "%s", c.out);
    begin(&dealt, s, "dealt", "", NULL);
    dealt.options.inputs_n = 0;
    dealt.options.from_plan = later;
    dealt.options.workers = 2;
    plan = case_plan(&dealt);
    assert_int_equal(plan->info.base_rows, c.result.info.base_rows);
    assert_true(plan->info.base[0]);
    drps_plan_close(plan);
    assert_int_equal(drps_plan_open_rank(drps_io_os(), later, 1, &plan, &err), 0);
    assert_true(plan->info.base[0]);
    drps_plan_close(plan);
}

/* ---- Refusals ---- */

static void refused(struct case_run *c, int code, const char *says)
{
    struct drps_err err = DRPS_ERR_INIT;
    const int rc = drps_index_run(drps_io_os(), &c->options, &c->result, &err);
    if (rc != code || !strstr(err.text, says))
        fail_msg("'%s' and %d expected, found %d: %s", says, code, rc, err.text);
}

static void test_base_refuses_what_renumbers_rows(void **state)
{
    static const struct {
        const char *order, *blocks, *partition, *says;
        uint32_t workers;
    } cases[] = {{.order = "grid", .says = "order grid"},
                 {.blocks = "auto", .says = "block builder"},
                 {.blocks = "id", .says = "block builder"},
                 {.partition = "auto", .workers = 2, .says = "this partition"},
                 {.partition = "hash", .workers = 2, .says = "this partition"}};
    struct scratch *s = *state;
    make_first(s, &kinds[2]);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct case_run c;
        char base[SCRATCH_PATH_BYTES];
        begin_later(&c, s, &kinds[2], "later", "first", 22, base);
        c.options.order = cases[i].order;
        c.options.blocks.by = cases[i].blocks;
        c.options.partition = cases[i].partition;
        c.options.workers = cases[i].workers;
        refused(&c, DRPS_E_CONFIG, cases[i].says);
    }
}

static void write_lines(const char *path, const char *lines)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(lines, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void test_base_refuses_data_that_do_not_fit(void **state)
{
    static const struct {
        const char *name, *algo, *first, *later, *says;
        int code;
    } cases[] = {
        {"another label", "lor", "0 1:1\n1 2:1\n", "1 1:1\n2 2:1\n", "label 2; ", DRPS_E_FORMAT},
        {"another class", "mlr", "a 1:1\nb 2:1\n", "b 1:1\nc 2:1\n", "the label c is none of the 2",
         DRPS_E_FORMAT},
        {"another field", "ffm", "0 0:1:1 1:2:1\n1 0:3:1\n", "1 2:1:1\n", "the field 2",
         DRPS_E_FORMAT},
        {"another column", "lor", "label,a\n0,x\n1,y\n", "label,b\n0,x\n1,y\n", "", DRPS_E_CONFIG},
        {"one column more", "lor", "label,a\n0,x\n1,y\n", "label,a,b\n0,x,2\n1,y,3\n",
         "number 2 is '(none)' there", DRPS_E_CONFIG},
        {"another format", "lor", "0 1:1\n1 2:1\n", "label,a\n0,x\n1,y\n", "", DRPS_E_FORMAT},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct case_run c;
        char base[SCRATCH_PATH_BYTES];
        write_lines(scratch_path(s, "a.txt"), cases[i].first);
        begin(&c, s, "first", scratch_path(s, "a.txt"), cases[i].algo);
        case_compile(&c);
        begin_later(&c, s, &kinds[0], "later", "first", 1, base);
        write_lines(scratch_path(s, "b.txt"), cases[i].later);
        (void)snprintf(c.input, sizeof(c.input), "%s", scratch_path(s, "b.txt"));
        struct drps_err err = DRPS_ERR_INIT;
        const int rc = drps_index_run(drps_io_os(), &c.options, &c.result, &err);
        if (rc != cases[i].code || !strstr(err.text, cases[i].says))
            fail_msg("%s: %d: %s", cases[i].name, rc, err.text);
    }
}

static void test_base_refuses_plans_that_cannot_be_one(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    char base[SCRATCH_PATH_BYTES];
    begin(&c, s, "first", input(s, "first.txt", &kinds[0], 50, 21), "topic");
    c.options.factors = 3;
    case_compile(&c);
    begin_later(&c, s, &kinds[0], "later", "first", 22, base);
    refused(&c, DRPS_E_CONFIG, "a row of its own");

    begin(&c, s, "first", input(s, "first.txt", &kinds[0], 50, 21), "lor");
    c.options.workers = 2;
    case_compile(&c);
    begin_later(&c, s, &kinds[0], "later", "first/rank-1", 22, base);
    refused(&c, DRPS_E_CONFIG, "the part of one rank");

    make_first(s, &kinds[0]);
    FILE *f = fopen(scratch_path(s, "first/names.rec"), "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, 400, SEEK_SET), 0);
    (void)fputs("damaged", f);
    assert_int_equal(fclose(f), 0);
    begin_later(&c, s, &kinds[0], "later", "first", 22, base);
    refused(&c, DRPS_E_CORRUPT, "names.rec");
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_base_rows_stay_and_new_ones_follow),
        SCRATCH_TEST(test_base_bytes_do_not_depend_on_memory),
        SCRATCH_TEST(test_base_of_a_base),
        SCRATCH_TEST(test_base_features_are_seen),
        SCRATCH_TEST(test_base_settles_labels),
        SCRATCH_TEST(test_base_with_workers),
        SCRATCH_TEST(test_base_refuses_what_renumbers_rows),
        SCRATCH_TEST(test_base_refuses_data_that_do_not_fit),
        SCRATCH_TEST(test_base_refuses_plans_that_cannot_be_one),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
