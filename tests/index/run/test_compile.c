/* Whole runs of the compiler on small inputs: nothing is lost, nothing depends on memory, failures
 * leave nothing. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "index/drps_index.h"
#include "support/index_case.h"
#include "support/owned_io.h"
#include "support/scratch.h"

static int run(struct case_run *c, struct drps_err *err)
{
    struct owned_io o;
    owned_io_init(&o, &drps_plan_kind);
    return drps_index_run(&o.io, &c->options, &c->result, err);
}

static void must_run(struct case_run *c)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (run(c, &err)) fail_msg("%s", err.text);
    case_verify(c->options.out);
}

static const struct {
    const char *name, *algo;
    enum case_format format;
    size_t n, features;
    int binary;
} kinds[] = {
    {.name = "libsvm",
     .algo = "lor",
     .format = CASE_LIBSVM,
     .n = 3000,
     .features = 500,
     .binary = 1},
    {.name = "libsvm, regression",
     .algo = "lir",
     .format = CASE_LIBSVM,
     .n = 500,
     .features = 5000,
     .binary = 0},
    {.name = "ratings, factors",
     .algo = "lmf",
     .format = CASE_RATINGS,
     .n = 3000,
     .features = 400,
     .binary = 0},
    {.name = "ratings, fm",
     .algo = "fm",
     .format = CASE_RATINGS,
     .n = 1000,
     .features = 50,
     .binary = 0},
    {.name = "csv", .algo = "svm", .format = CASE_CSV, .n = 2000, .features = 300, .binary = 1},
    {.name = "libffm",
     .algo = "ffm",
     .format = CASE_LIBFFM,
     .n = 2000,
     .features = 300,
     .binary = 1},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static void test_run_conserves_samples(void **state)
{
    struct scratch *s = *state;
    for (size_t k = 0; k < KINDS; k++) {
        struct case_run c;
        struct case_lines want, found;
        case_begin(&c, s,
                   case_input(s, "input", kinds[k].format, kinds[k].n, kinds[k].features, 11),
                   kinds[k].algo);
        c.options.force = 1;
        must_run(&c);
        case_input_lines(c.input, 0, (float)kinds[k].binary, 1, &want);
        case_plan_lines(c.out, 0, 1, &found);
        assert_int_equal(found.n, kinds[k].n);
        if (!case_lines_equal(&want, &found)) fail_msg("%s: samples changed", kinds[k].name);
        assert_int_equal(c.result.info.samples, kinds[k].n);
        assert_int_equal(c.result.info.batches, (kinds[k].n + 63) / 64);
        assert_int_equal(folder_entries(c.out), 8);
        assert_int_equal(folder_entries(s->dir), 2); /* input and plan */
        case_lines_free(&want);
        case_lines_free(&found);
    }
}

static void test_run_bytes_do_not_depend_on_memory(void **state)
{
    static const uint64_t memory[] = {64 << 20, 100 << 20, 1 << 30};
    struct scratch *s = *state;
    for (size_t k = 0; k < KINDS; k++) {
        struct case_run c;
        char first[SCRATCH_PATH_BYTES];
        case_begin(&c, s,
                   case_input(s, "input", kinds[k].format, kinds[k].n, kinds[k].features, 12),
                   kinds[k].algo);
        (void)snprintf(first, sizeof(first), "%s", scratch_path(s, "plan-0"));
        for (size_t i = 0; i < 3; i++) {
            (void)snprintf(c.out, sizeof(c.out), "%s-%zu", scratch_path(s, "plan"), i);
            c.options.force = 1;
            c.options.memory_bytes = memory[i];
            c.options.test_fraction = 0.2;
            must_run(&c);
            if (!case_same_records(first, c.out))
                fail_msg("%s: memory %" PRIu64, kinds[k].name, memory[i]);
        }
    }
}

static void test_run_leaves_the_forecast_out_when_told(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    const char *input = case_input(s, "input", CASE_LIBSVM, 600, 300, 12);
    for (int left_out = 0; left_out < 2; left_out++) {
        case_begin(&c, s, input, "lor");
        (void)snprintf(c.out, sizeof(c.out), "%s-%d", scratch_path(s, "plan"), left_out);
        c.options.no_forecast = left_out;
        must_run(&c);
        assert_true(left_out ? c.result.forecasts == 0 : c.result.forecasts > 0);
    }
    assert_true(case_same_records(scratch_path(s, "plan-0"), scratch_path(s, "plan-1")));
}

static void test_run_seed_decides(void **state)
{
    struct scratch *s = *state;
    static const uint64_t seeds[] = {1, 1, 2};
    struct case_run c;
    case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 2000, 300, 13), "lor");
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(c.out, sizeof(c.out), "%s-%zu", scratch_path(s, "plan"), i);
        c.options.seed = seeds[i];
        must_run(&c);
    }
    assert_true(case_same_records(scratch_path(s, "plan-0"), scratch_path(s, "plan-1")));
    assert_true(
        files_equal(scratch_path(s, "plan-0/plan.json"), scratch_path(s, "plan-1/plan.json")));
    assert_false(
        files_equal(scratch_path(s, "plan-0/data.rec"), scratch_path(s, "plan-2/data.rec")));
}

static void test_run_given_order_keeps_order(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    struct case_lines want, found;
    case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 2000, 300, 14), "lor");
    c.options.order = "given";
    must_run(&c);
    case_input_lines(c.input, 0, 1, 0, &want);
    case_plan_lines(c.out, 0, 0, &found);
    assert_true(case_lines_equal(&want, &found));
    case_lines_free(&found);
    c.options.order = NULL;
    c.options.force = 1;
    must_run(&c);
    case_plan_lines(c.out, 0, 0, &found);
    size_t same = 0;
    for (size_t i = 0; i < want.n; i++)
        same += strcmp(want.line[i], found.line[i]) == 0;
    assert_true(same < want.n / 2);
    case_lines_free(&want);
    case_lines_free(&found);
}

/* Training and evaluation together are the input, less the entries that training never saw. */
static void test_run_test_fraction_splits(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    struct case_lines want, train, test;
    enum { N = 4000 };
    /* few features: all are seen in training */
    case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, N, 20, 15), "lor");
    c.options.test_fraction = 0.25;
    must_run(&c);
    case_input_lines(c.input, 0, 1, 0, &want);
    case_plan_lines(c.out, 0, 0, &train);
    case_plan_lines(c.out, 1, 0, &test);
    assert_int_equal(c.result.info.test_unseen, 0);
    assert_int_equal(train.n, c.result.info.samples);
    assert_int_equal(test.n, c.result.info.test_samples);
    if (test.n < N / 4 - 150 || test.n > N / 4 + 150)
        fail_msg("%zu of %d samples", test.n, N); /* 5 sigma */
    struct case_lines all = {.line = calloc(N, sizeof(char *)), .n = train.n + test.n};
    assert_int_equal(all.n, N);
    for (size_t i = 0; i < all.n; i++)
        all.line[i] = strdup(i < train.n ? train.line[i] : test.line[i - train.n]);
    for (struct case_lines *l = &all; l; l = l == &all ? &want : NULL)
        for (size_t i = 1; i < l->n; i++) /* insertion sort: no need of speed */
            for (size_t j = i; j && strcmp(l->line[j - 1], l->line[j]) > 0; j--) {
                char *swap = l->line[j];
                l->line[j] = l->line[j - 1];
                l->line[j - 1] = swap;
            }
    assert_true(case_lines_equal(&want, &all));
    case_lines_free(&all);
    case_lines_free(&want);
    case_lines_free(&train);
    case_lines_free(&test);
}

static void test_run_unseen_test_features_are_dropped_and_counted(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    struct case_lines found;
    case_begin(&c, s, scratch_file(s, "train", "1 1:1 2:3\n0 2:1\n", SIZE_MAX), "lor");
    (void)snprintf(c.test, sizeof(c.test), "%s",
                   scratch_file(s, "test", "1 1:5 7:2\n0 8:1 9:1\n0 2:1\n", SIZE_MAX));
    c.options.tests_n = 1;
    must_run(&c);
    assert_int_equal(c.result.info.test_unseen, 3);
    assert_int_equal(c.result.info.test_nnz, 2);
    assert_int_equal(c.result.info.test_samples, 3);
    assert_int_equal(c.result.info.nnz, 3);
    assert_int_equal(c.result.info.rows, 3);
    case_plan_lines(c.out, 1, 0, &found);
    assert_int_equal(found.n, 3);
    assert_string_equal(found.line[0], "1 1:5");
    assert_string_equal(found.line[1], "-1");
    assert_string_equal(found.line[2], "-1 2:1");
    case_lines_free(&found);
}

/* Samples of 18 ids, each up to `gap` behind the one before. */
static const char *write_wide(struct scratch *s, uint64_t gap)
{
    enum { N = 90000, EACH = 18 };
    struct random_source r = {.seed = 16};
    FILE *f = fopen(scratch_path(s, "wide"), "w");
    assert_non_null(f);
    for (int i = 0; i < N; i++) {
        uint64_t id = random_below(&r, 1000);
        (void)fprintf(f, "%d", i % 2);
        for (int j = 0; j < EACH; j++)
            (void)fprintf(f, " %" PRIu64 ":1", id += 1 + random_below(&r, gap));
        (void)fputc('\n', f);
    }
    assert_int_equal(fclose(f), 0);
    return scratch_path(s, "wide");
}

/* Too many names for the least memory, the same plan: ids that make several generations, and small
 * ones that make a single one, which is placed from a run. */
static void test_run_generations_do_not_show(void **state)
{
    static const uint64_t gaps[] = {1000000, 62000};
    struct scratch *s = *state;
    for (size_t g = 0; g < 2; g++) {
        struct case_run c;
        case_begin(&c, s, write_wide(s, gaps[g]), "lor");
        c.options.batch_size = 5000;
        c.options.test_fraction = 0.1;
        c.options.force = 1;
        for (int i = 0; i < 2; i++) {
            (void)snprintf(c.out, sizeof(c.out), "%s-%d", scratch_path(s, "plan"), i);
            c.options.memory_bytes = i ? 1 << 30 : 64 << 20;
            must_run(&c);
            assert_true(c.result.info.rows > 540000); /* 64 MiB are for 524,288 names, */
        }                                             /* and for ids below 1,048,576 */
        assert_true(case_same_records(scratch_path(s, "plan-0"), scratch_path(s, "plan-1")));
    }
}

static void test_run_block_builders(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    case_begin(&c, s, case_input(s, "input", CASE_RATINGS, 2000, 300, 17), "lmf");
    c.options.blocks.by = "none";
    must_run(&c);
    assert_int_equal(c.result.info.blocks, c.result.info.rows);
    assert_int_equal(c.result.info.max_block_rows, 1);
    c.options.blocks.by = "pattern";
    c.options.force = 1;
    must_run(&c);
    assert_true(c.result.info.blocks < c.result.info.rows / 4);
    assert_true(c.result.info.max_block_rows * c.result.info.row_bytes <=
                c.result.info.block_bytes);
    c.options.no_bias = 1;
    must_run(&c);
    assert_int_equal(c.result.info.tables_n, 2);
    assert_string_equal(c.result.info.tables[0].name, "user");
}

/* Classes have the numbers that their names' order gives, whichever comes first, in training or in
 * tests; batches have these numbers, and rows as many floats. */
static void test_run_numbers_classes_by_name(void **state)
{
    static const char *const want[] = {"0 2:1", "0 4:1", "1 1:1", "3 3:1"};
    static const char *const names[] = {"9", "10", "10.5", "11"};
    struct scratch *s = *state;
    struct case_run c;
    struct case_lines lines = {0};
    case_begin(&c, s, scratch_file(s, "input", "+10 1:1\n9.0 2:1\n11 3:1\n9 4:1\n", SIZE_MAX),
               "mlr");
    (void)snprintf(c.test, sizeof(c.test), "%s", scratch_file(s, "test", "10.5 3:1\n", SIZE_MAX));
    c.options.tests_n = 1;
    struct drps_plan *plan = case_plan(&c);
    assert_string_equal(c.result.classes, "9, 10, 10.5, 11");
    assert_null(c.result.info.classes);
    assert_int_equal(plan->info.dim, 4);
    assert_int_equal(plan->info.factors, 0);
    assert_int_equal(plan->info.row_bytes, 4 * 2 * sizeof(float));
    assert_int_equal(plan->info.classification, 1);
    assert_string_equal(plan->info.loss, "softmax");
    assert_int_equal(drps_classes_count(plan->info.classes), 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(drps_classes_name(plan->info.classes, i), names[i]);
    case_plan_lines(c.out, 0, 1, &lines);
    assert_int_equal(lines.n, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(lines.line[i], want[i]);
    case_lines_free(&lines);
    case_plan_lines(c.out, 1, 1, &lines);
    assert_int_equal(lines.n, 1);
    assert_string_equal(lines.line[0], "2 3:1");
    case_lines_free(&lines);
    drps_plan_close(plan);
    case_verify(c.out);
}

/* svm takes two classes that are numbers, however they are written, for signs; any others by name.
 */
static void test_run_finds_what_classes_svm_has(void **state)
{
    static const struct {
        const char *name, *text, *test, *format;
        const char *classes; /* NULL: two that are signs */
        const char *line;    /* how the first sample begins, a test's where there is one */
        const char *says;    /* the error; NULL: none */
    } cases[] = {
        {"two numbers", "4 1:1\n2.50 2:1\n25e-1 3:1\n+4.0 4:1\n", NULL, "libsvm", NULL, "-1 2:1",
         NULL},
        {"two words", "label,x\nYes,1\nno,2\nyes,3\n", NULL, "csv", NULL, "-1 ", NULL},
        {"three numbers", "4 1:1\n-2 2:1\n04 3:1\n10 4:1\n", NULL, "libsvm", "-2, 4, 10", "0 2:1",
         NULL},
        {"two names", "b 1:1\na 2:1\n1 3:1\n", NULL, "libsvm", "1, a, b", "0 3:1", NULL},
        {"two names in csv", "label,x\nb,1\nyes,2\n", NULL, "csv", "b, yes", "0 ", NULL},
        {"a test of these", "4 1:1\n2 2:1\n", "2.0 1:1\n", "libsvm", NULL, "-1 1:1", NULL},
        {"a test of names", "b 1:1\na 2:1\n", "3 1:1\n", "libsvm", "3, a, b", "0 1:1", NULL},
        {"a test of another", "4 1:1\n2 2:1\n", "3 1:1\n", "libsvm", NULL, NULL,
         "a test sample has the label 3; training has only 2 and 4"},
        {"a test with a name", "4 1:1\n2 2:1\n", "b 1:1\n", "libsvm", NULL, NULL,
         "label is not a number"},
        {"no names in ratings", "u i 1\nv i 2\n", NULL, "ratings", NULL, NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scratch *s = *state;
        struct case_run c;
        struct case_lines lines = {0};
        case_begin(&c, s, scratch_file(s, "input", cases[i].text, SIZE_MAX), "svm");
        c.options.reader.format = cases[i].format;
        c.options.force = 1;
        if (cases[i].test)
            (void)snprintf(c.test, sizeof(c.test), "%s",
                           scratch_file(s, "test", cases[i].test, SIZE_MAX));
        c.options.tests_n = cases[i].test != NULL;
        if (cases[i].says) {
            struct drps_err err = DRPS_ERR_INIT;
            const int rc = run(&c, &err);
            if (rc != DRPS_E_FORMAT || !strstr(err.text, cases[i].says))
                fail_msg("%s: %d '%s'", cases[i].name, rc, err.text);
            continue;
        }
        struct drps_plan *plan = case_plan(&c);
        if (cases[i].classes)
            assert_string_equal(c.result.classes, cases[i].classes);
        else
            assert_null(plan->info.classes);
        assert_int_equal(plan->info.dim, drps_plan_label_classes(&plan->info));
        assert_string_equal(plan->info.loss, "hinge");
        drps_plan_close(plan);
        case_verify(c.out);
        if (!cases[i].line) continue;
        case_plan_lines(c.out, cases[i].test != NULL, 1, &lines);
        if (strncmp(lines.line[0], cases[i].line, strlen(cases[i].line)) != 0)
            fail_msg("%s: expected '%s', found '%s'", cases[i].name, cases[i].line, lines.line[0]);
        case_lines_free(&lines);
    }
}

struct refusal {
    const char *name, *text, *algo;
    int rc;
    const char *says[2];
};

static void test_run_refuses_and_leaves_nothing(void **state)
{
    static const struct refusal cases[] = {
        {.name = "one class",
         .text = "1 1:1\n1 2:1\n",
         .algo = "lor",
         .rc = DRPS_E_FORMAT,
         .says = {"every training label is 1", "algorithm lir"}},
        {.name = "three labels",
         .text = "1 1:1\n2 2:1\n3 1:1\n",
         .algo = "lor",
         .rc = DRPS_E_FORMAT,
         .says = {"more than two distinct labels (1, 2, 3 first in ",
                  "input:3, ...): the algorithm lor needs exactly two; for classes use the "
                  "algorithm mlr"}},
        {.name = "three labels, behind lines without any",
         .text = "1 1:1\n\n# 7 1:1\n2 2:1\n1 2:1\n3 1:1\n4 1:1\n",
         .algo = "lor",
         .rc = DRPS_E_FORMAT,
         .says = {"input:6, ...)", NULL}},
        {.name = "one class of numbers",
         .text = "1 1:1\n1.0 2:1\n1e0 1:1\n",
         .algo = "svm",
         .rc = DRPS_E_FORMAT,
         .says = {"every training label is 1", "two classes"}},
        {.name = "a name among numbers",
         .text = "1 1:1\n2 2:1\nspam 1:1\n",
         .algo = "svm",
         .rc = DRPS_E_FORMAT,
         .says = {":3:1: label is not a number, and the first label is one", NULL}},
        {.name = "several labels of a sample",
         .text = "1,2 1:1\n2 2:1\n",
         .algo = "svm",
         .rc = DRPS_E_FORMAT,
         .says = {":1:1: label has a comma in it: several labels", NULL}},
        {.name = "several labels of a sample of classes",
         .text = "2 2:1\n1,2 1:1\n",
         .algo = "mlr",
         .rc = DRPS_E_FORMAT,
         .says = {":2:1: label has a comma in it: several labels", "csv alone"}},
        {.name = "one named class",
         .text = "spam 1:1\nspam 2:1\n",
         .algo = "svm",
         .rc = DRPS_E_FORMAT,
         .says = {"every label is spam", "svm needs two classes"}},
        {.name = "one named class",
         .text = "spam 1:1\nspam 2:1\n",
         .algo = "mlr",
         .rc = DRPS_E_FORMAT,
         .says = {"every label is spam", "mlr needs two classes"}},
        {.name = "empty file",
         .text = "",
         .algo = "lor",
         .rc = DRPS_E_FORMAT,
         .says = {"no sample", NULL}},
        {.name = "only comments",
         .text = "# nothing\n\n",
         .algo = "lor",
         .rc = DRPS_E_FORMAT,
         .says = {"no sample", NULL}},
        {.name = "bad line",
         .text = "1 1:1\n0 x:1\n",
         .algo = "lor",
         .rc = DRPS_E_FORMAT,
         .says = {"input:2:3", "not a number"}},
        {.name = "lmf on libsvm",
         .text = "1 1:1\n0 2:1\n",
         .algo = "lmf",
         .rc = DRPS_E_CONFIG,
         .says = {"algorithm lmf needs ratings", "libsvm"}},
        {.name = "unknown algorithm",
         .text = "1 1:1\n0 2:1\n",
         .algo = "xyz",
         .rc = DRPS_E_CONFIG,
         .says = {"algorithm must be one of", "xyz"}},
        {.name = "no algorithm",
         .text = "1 1:1\n0 2:1\n",
         .rc = DRPS_E_CONFIG,
         .says = {"algorithm must be one of", NULL}},
        {.name = "bytes of another format",
         .text = "\1\2\3\4\n",
         .algo = "lor",
         .rc = DRPS_E_FORMAT,
         .says = {"input", NULL}},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct case_run c;
        struct drps_err err = DRPS_ERR_INIT;
        case_begin(&c, s, scratch_file(s, "input", cases[i].text, SIZE_MAX), cases[i].algo);
        if (strcmp(cases[i].name, "bad line") == 0) c.options.reader.format = "libsvm";
        int rc = run(&c, &err);
        int fine = rc == cases[i].rc && err.code == rc;
        for (size_t k = 0; k < 2 && cases[i].says[k]; k++)
            fine = fine && strstr(err.text, cases[i].says[k]);
        if (!fine) fail_msg("%s: %d '%s'", cases[i].name, rc, err.text);
        if (folder_entries(s->dir) != 1) fail_msg("%s: something was left", cases[i].name);
    }
}

/* What options can be wrong, one at a time. */
static void test_run_refuses_options(void **state)
{
    static const struct {
        const char *name;
        int rc;
        const char *says;
    } cases[] = {
        {"order", DRPS_E_CONFIG, "the order must"},
        {"blocks", DRPS_E_CONFIG, "no block builder"},
        {"factors", DRPS_E_CONFIG, "no factors"},
        {"fraction", DRPS_E_CONFIG, "share of samples for tests"},
        {"both tests", DRPS_E_CONFIG, "exclude each other"},
        {"memory", DRPS_E_MEMORY_BUDGET, "memory limit"},
        {"no input", DRPS_E_CONFIG, "no input"},
        {"loss", DRPS_E_CONFIG, "the loss"},
        {"missing input", -ENOENT, "no-such-file"},
        {"missing test", -ENOENT, "no-such-file"},
        {"test label", DRPS_E_FORMAT, "label 3"},
        {"test of blank lines", DRPS_E_FORMAT, "test input holds no sample"},
        {"missing folder", -ENOENT, "no-such-folder"},
        {"test of another format", DRPS_E_FORMAT, "test"},
        {"nothing to train", DRPS_E_FORMAT, "no training sample has a feature"},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct case_run c;
        struct drps_err err = DRPS_ERR_INIT;
        case_begin(&c, s, scratch_file(s, "input", i == 14 ? "1\n0\n" : "1 1:1\n0 2:1\n", SIZE_MAX),
                   "lor");
        (void)snprintf(c.test, sizeof(c.test), "%s",
                       scratch_file(s, "test",
                                    i == 10   ? "3 1:1\n"
                                    : i == 11 ? "\n \n"
                                    : i == 13 ? "user,item,rating\na,b,1\n"
                                              : "",
                                    SIZE_MAX));
        struct drps_index_options *o = &c.options;
        if (i == 0) o->order = "sorted";
        if (i == 1) o->blocks.by = "large";
        if (i == 2) o->factors = 4;
        if (i == 3) o->test_fraction = 0.95;
        if (i == 4) o->test_fraction = 0.5;
        if (i == 5) o->memory_bytes = 1 << 20;
        if (i == 6) o->inputs_n = 0;
        if (i == 7) o->loss = "hinge";
        if (i == 8) (void)snprintf(c.input, sizeof(c.input), "%s/no-such-file", s->dir);
        if (i == 9) (void)snprintf(c.test, sizeof(c.test), "%s/no-such-file", s->dir);
        if (i == 12) (void)snprintf(c.out, sizeof(c.out), "%s/no-such-folder/plan", s->dir);
        if (i == 4 || (i >= 9 && i <= 11) || i == 13) o->tests_n = 1;
        if (i == 14) o->no_bias = 1;
        int rc = run(&c, &err);
        if (rc != cases[i].rc || !strstr(err.text, cases[i].says))
            fail_msg("%s: %d '%s'", cases[i].name, rc, err.text);
        if (folder_entries(s->dir) != 2) fail_msg("%s: something was left", cases[i].name);
    }
}

static void test_run_skips_bad_lines_when_told(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    struct case_lines found;
    case_begin(&c, s, scratch_file(s, "input", "1 1:1\n0 x:1\n0 2:1\nnonsense\n", SIZE_MAX), "lor");
    c.options.reader.skip_bad_lines = 1;
    c.options.reader.format = "libsvm";
    must_run(&c);
    assert_int_equal(c.result.skipped_lines, 2);
    assert_int_equal(c.result.input_lines, 4);
    case_plan_lines(c.out, 0, 1, &found);
    assert_int_equal(found.n, 2);
    assert_string_equal(found.line[0], "-1 2:1");
    assert_string_equal(found.line[1], "1 1:1");
    case_lines_free(&found);
}

static void test_run_existing_plan_is_kept(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    struct drps_err err = DRPS_ERR_INIT;
    case_begin(&c, s, scratch_file(s, "input", "1 1:1\n0 2:1\n", SIZE_MAX), "lor");
    must_run(&c);
    assert_int_equal(run(&c, &err), -EEXIST);
    case_verify(c.out);
    /* a failing replacement keeps it too */
    drps_err_clear(&err);
    (void)scratch_file(s, "input", "1 1:1\n1 2:1\n", SIZE_MAX);
    c.options.force = 1;
    assert_int_equal(run(&c, &err), DRPS_E_FORMAT);
    case_verify(c.out);
    assert_int_equal(folder_entries(s->dir), 2);
}

/* A column name that plan.json cannot hold is refused before the work, not lost. */
static void test_run_refuses_columns_that_are_not_utf8(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    struct drps_err err = DRPS_ERR_INIT;
    case_begin(&c, s,
               scratch_file(s, "input",
                            "click,gr\xf6\xdf"
                            "e,site\n1,a,b\n0,c,d\n",
                            SIZE_MAX),
               "lor");
    int rc = run(&c, &err);
    if (rc != DRPS_E_FORMAT || !strstr(err.text, "UTF-8")) fail_msg("%d '%s'", rc, err.text);
    assert_int_equal(folder_entries(s->dir), 1);
}

struct stopper {
    atomic_int flag;
    enum drps_index_phase phase; /* in which to raise it */
};

static void raise_flag(void *ctx, enum drps_index_phase phase, uint64_t done, uint64_t total)
{
    struct stopper *stopper = ctx;
    (void)done;
    (void)total;
    if (phase == stopper->phase) atomic_store(&stopper->flag, 1);
}

static void test_run_interrupt_stops(void **state)
{
    static const enum drps_index_phase phases[] = {
        DRPS_PHASE_PARSE, DRPS_PHASE_PLACE,  DRPS_PHASE_BATCH,   DRPS_PHASE_BLOCK,
        DRPS_PHASE_USES,  DRPS_PHASE_WINDOW, DRPS_PHASE_FORECAST};
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(phases) / sizeof(*phases); i++) {
        struct case_run c;
        struct drps_err err = DRPS_ERR_INIT;
        struct stopper stopper = {.phase = phases[i]};
        case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 40000, 100, 18), "lor");
        c.options.interrupt = &stopper.flag;
        c.options.progress = raise_flag;
        c.options.progress_ctx = &stopper;
        int rc = run(&c, &err);
        if (rc != DRPS_E_INTERRUPTED || !strstr(err.text, "nothing was written"))
            fail_msg("%d '%s'", rc, err.text);
        assert_int_equal(folder_entries(s->dir), 1);
    }
}

struct begun {
    char text[256]; /* names of the phases that began */
};

static void note_begun(void *ctx, enum drps_index_phase phase, uint64_t done, uint64_t total)
{
    struct begun *b = ctx;
    const size_t n = strlen(b->text);
    (void)total;
    if (!done)
        (void)snprintf(b->text + n, sizeof(b->text) - n, "%s ", drps_index_phase_name(phase));
}

static void test_run_phases_that_apply_run_in_order(void **state)
{
    static const struct {
        const char *name, *algo, *order;
        enum case_format format;
        uint32_t workers;
        int no_forecast;
        const char *phases;
    } cases[] = {
        {.name = "one worker",
         .algo = "lor",
         .format = CASE_LIBSVM,
         .workers = 1,
         .no_forecast = 0,
         .phases = "parse place batch block uses window forecast "},
        {.name = "no forecast",
         .algo = "lor",
         .format = CASE_LIBSVM,
         .workers = 1,
         .no_forecast = 1,
         .phases = "parse place batch block uses window "},
        {.name = "workers",
         .algo = "lor",
         .format = CASE_LIBSVM,
         .workers = 2,
         .no_forecast = 0,
         .phases = "parse place batch block split window forecast "},
        {.name = "grid",
         .algo = "lmf",
         .order = "grid",
         .format = CASE_RATINGS,
         .workers = 1,
         .no_forecast = 0,
         .phases = "parse place order batch block uses window forecast "},
        {.name = "all",
         .algo = "lmf",
         .order = "grid",
         .format = CASE_RATINGS,
         .workers = 2,
         .no_forecast = 0,
         .phases = "parse place order batch block split window forecast "},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct case_run c;
        struct drps_err err = DRPS_ERR_INIT;
        struct begun begun = {{0}};
        case_begin(&c, s, case_input(s, "input", cases[i].format, 1000, 100, 19), cases[i].algo);
        c.options.order = cases[i].order;
        c.options.workers = cases[i].workers;
        c.options.no_forecast = cases[i].no_forecast;
        c.options.force = 1;
        c.options.progress = note_begun;
        c.options.progress_ctx = &begun;
        if (run(&c, &err)) fail_msg("%s: %s", cases[i].name, err.text);
        if (strcmp(begun.text, cases[i].phases) != 0)
            fail_msg("%s: %s, not %s", cases[i].name, begun.text, cases[i].phases);
        for (unsigned p = 0; p < DRPS_INDEX_PHASES; p++)
            if (!strstr(begun.text, drps_index_phase_name(p)) != !(c.result.phase_seconds[p] > 0))
                fail_msg("%s: %s took %f s", cases[i].name, drps_index_phase_name(p),
                         c.result.phase_seconds[p]);
    }
}

/*
 * The flag is raised by the n-th read or write of a phase, and counts those that follow. Fields
 * below are of the run's thread and the two of the forecast, which are beside it while windows are
 * made: atomic.
 */
struct stopping_io {
    struct drps_io io;
    struct drps_io_ops ops;
    enum drps_index_phase phase; /* in which to raise it */
    atomic_int now, flag;        /* the phase; the flag */
    atomic_long left, after;     /* calls until it is raised, and since */
};

static void count_transfer(struct stopping_io *s)
{
    if (atomic_load(&s->flag))
        atomic_fetch_add(&s->after, 1);
    else if (atomic_load(&s->now) == (int)s->phase && atomic_fetch_sub(&s->left, 1) == 1)
        atomic_store(&s->flag, 1);
}

static ssize_t stopping_pread(void *ctx, int fd, void *buf, size_t n, uint64_t offset)
{
    count_transfer(ctx);
    return drps_io_os()->ops->pread(drps_io_os()->ctx, fd, buf, n, offset);
}

static ssize_t stopping_pwrite(void *ctx, int fd, const void *buf, size_t n, uint64_t offset)
{
    count_transfer(ctx);
    return drps_io_os()->ops->pwrite(drps_io_os()->ctx, fd, buf, n, offset);
}

static void note_phase(void *ctx, enum drps_index_phase phase, uint64_t done, uint64_t total)
{
    struct stopping_io *s = ctx;
    (void)done;
    (void)total;
    atomic_store(&s->now, (int)phase);
}

/* From the phase that makes batches on, nothing but files is read: whichever transfer it is that
 * comes with the flag, none follows but what another thread has begun. */
static void stop_everywhere(struct scratch *dir, enum drps_index_phase phase, const char *blocks)
{
    char input[256];
    int rc = DRPS_E_INTERRUPTED, stopped = 0;
    (void)snprintf(input, sizeof(input), "%s", case_input(dir, "input", CASE_LIBSVM, 2000, 60, 18));
    for (long at = 1; rc == DRPS_E_INTERRUPTED; at += 1 + at / 2) {
        struct drps_err err = DRPS_ERR_INIT;
        struct case_run c;
        /* the table of calls is the system's but for two, which need no context of it */
        struct stopping_io s = {.ops = *drps_io_os()->ops, .phase = phase, .left = at};
        s.ops.pread = stopping_pread;
        s.ops.pwrite = stopping_pwrite;
        s.io = (struct drps_io){.ops = &s.ops, .ctx = &s};
        case_begin(&c, dir, input, "lor");
        c.options.blocks.by = blocks;
        c.options.no_forecast = phase == DRPS_PHASE_WINDOW;
        c.options.interrupt = &s.flag;
        c.options.progress = note_phase;
        c.options.progress_ctx = &s;
        rc = drps_index_run(&s.io, &c.options, &c.result, &err);
        if (rc < 0 && rc != DRPS_E_INTERRUPTED) fail_msg("%d '%s'", rc, err.text);
        if (rc == 0) assert_int_equal(s.after, 0); /* at most the last one came with the flag */
        if (rc < 0 && (s.after > 2 || !strstr(err.text, "nothing was written")))
            fail_msg("%s, phase %d: %ld transfers after the %ld-th, '%s'", blocks, (int)phase,
                     (long)s.after, at, err.text);
        assert_int_equal(folder_entries(dir->dir), rc == 0 ? 2 : 1);
        stopped += rc < 0;
    }
    assert_true(stopped > 3);
}

static void test_run_stops_at_any_transfer(void **state)
{
    static const char *const builders[] = {"pattern", "topk"}; /* as placed; renumbered */
    static const enum drps_index_phase phases[] = {
        DRPS_PHASE_BATCH, DRPS_PHASE_BLOCK, DRPS_PHASE_USES,
        DRPS_PHASE_WINDOW, /* and uses beside */
        DRPS_PHASE_FORECAST /* and the windows beside */};
    for (size_t i = 0; i < sizeof(phases) / sizeof(*phases); i++)
        for (size_t b = 0; b < sizeof(builders) / sizeof(*builders); b++) {
            if (phases[i] == DRPS_PHASE_BLOCK && b == 0) continue; /* nothing is read or written */
            scratch_teardown(state);
            scratch_setup(state);
            stop_everywhere(*state, phases[i], builders[b]);
        }
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_run_conserves_samples),
        SCRATCH_TEST(test_run_bytes_do_not_depend_on_memory),
        SCRATCH_TEST(test_run_leaves_the_forecast_out_when_told),
        SCRATCH_TEST(test_run_seed_decides),
        SCRATCH_TEST(test_run_given_order_keeps_order),
        SCRATCH_TEST(test_run_test_fraction_splits),
        SCRATCH_TEST(test_run_unseen_test_features_are_dropped_and_counted),
        SCRATCH_TEST(test_run_generations_do_not_show),
        SCRATCH_TEST(test_run_block_builders),
        SCRATCH_TEST(test_run_numbers_classes_by_name),
        SCRATCH_TEST(test_run_finds_what_classes_svm_has),
        SCRATCH_TEST(test_run_refuses_and_leaves_nothing),
        SCRATCH_TEST(test_run_refuses_options),
        SCRATCH_TEST(test_run_skips_bad_lines_when_told),
        SCRATCH_TEST(test_run_existing_plan_is_kept),
        SCRATCH_TEST(test_run_refuses_columns_that_are_not_utf8),
        SCRATCH_TEST(test_run_interrupt_stops),
        SCRATCH_TEST(test_run_phases_that_apply_run_in_order),
        SCRATCH_TEST(test_run_stops_at_any_transfer),
    };
    return cmocka_run_group_tests_name("compile", tests, NULL, NULL);
}
