/* Weights of samples and of classes in whole runs: what batches and plan.json have of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "index/drps_index.h"
#include "support/index_case.h"
#include "support/scratch.h"

struct weight_case {
    const char *name, *algo, *format;
    const char *text, *weights, *test; /* weights, test: NULL: none */
    const char *class_weights;
    const char *train, *tests;        /* lines, sorted, as "line|line" */
    double sum, test_sum, most, mean; /* of plan.json; most 0: it has no weights */
    const char *error;                /* the run fails, and says so */
};

static void check_lines(const struct weight_case *c, const char *dir, int evaluation)
{
    const char *want = evaluation ? c->tests : c->train;
    struct case_lines lines = {0};
    char found[1024];
    size_t n = 0;
    case_plan_lines(dir, evaluation, 1, &lines);
    found[0] = '\0';
    for (size_t i = 0; i < lines.n; i++)
        n += (size_t)snprintf(found + n, sizeof(found) - n, "%s%s", i ? "|" : "", lines.line[i]);
    if (strcmp(found, want) != 0) fail_msg("%s: expected %s, found %s", c->name, want, found);
    case_lines_free(&lines);
}

static void check_case(struct scratch *s, const struct weight_case *c)
{
    struct case_run run;
    struct drps_err err = DRPS_ERR_INIT;
    char weights[SCRATCH_PATH_BYTES];
    const char *const weights_list[] = {weights};
    case_begin(&run, s, scratch_file(s, "input", c->text, SIZE_MAX), c->algo);
    run.options.reader.format = c->format;
    run.options.class_weights = c->class_weights;
    run.options.force = 1;
    if (c->weights)
        (void)snprintf(weights, sizeof(weights), "%s",
                       scratch_file(s, "weights", c->weights, SIZE_MAX));
    run.options.weights = weights_list;
    run.options.weights_n = c->weights != NULL;
    if (c->test)
        (void)snprintf(run.test, sizeof(run.test), "%s",
                       scratch_file(s, "test", c->test, SIZE_MAX));
    run.options.tests_n = c->test != NULL;
    if (c->error) {
        const int rc = drps_index_run(drps_io_os(), &run.options, &run.result, &err);
        if (rc == 0 || !strstr(err.text, c->error))
            fail_msg("%s: expected '%s', found '%s' (%d)", c->name, c->error, err.text, rc);
        return;
    }
    struct drps_plan *plan = case_plan(&run);
    const struct drps_plan_info *i = &plan->info;
    check_lines(c, run.out, 0);
    if (c->test) check_lines(c, run.out, 1);
    if (fabs(i->weights.sum - c->sum) > 1e-6 || fabs(i->weights.test_sum - c->test_sum) > 1e-6 ||
        fabs(i->weights.most - c->most) > 1e-6 || fabs(i->label_mean - c->mean) > 1e-6)
        fail_msg("%s: expected %g, %g, %g, mean %g, found %g, %g, %g, mean %g", c->name, c->sum,
                 c->test_sum, c->most, c->mean, i->weights.sum, i->weights.test_sum,
                 i->weights.most, i->label_mean);
    drps_plan_close(plan);
    case_verify(run.out);
}

static void check_cases(void **state, const struct weight_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check_case(*state, &cases[i]);
}

static void test_run_weights_of_samples(void **state)
{
    static const struct weight_case cases[] = {
        {"a file", "lor", "libsvm", "1 1:1\n0 2:1\n1 3:1\n", "2\n0.5\n1\n", NULL, NULL,
         "-1*0.5 2:1|1 3:1|1*2 1:1", "", 3.5, 0, 2, 2.5 / 3.5, NULL},
        {"tests of weight 1", "lir", "libsvm", "1 1:1\n4 1:2\n", "1\n3\n", "5 1:1\n6 1:1\n", NULL,
         "1 1:1|4*3 1:2", "5 1:1|6 1:1", 4, 2, 3, 13.0 / 4, NULL},
        {"all are 1", "lor", "libsvm", "1 1:1\n0 2:1\n", "1\n1.0\n", NULL, NULL, "-1 2:1|1 1:1", "",
         0, 0, 0, 0, NULL},
        {"one is left out", "lor", "libsvm", "1 1:1\n0 2:1\n1 3:1\n", "1\n1\n0\n", NULL, NULL,
         "-1 2:1|1 1:1", "", 0, 0, 0, 0, NULL},
        {"all are left out", "lor", "libsvm", "1 1:1\n", "0\n", NULL, NULL, NULL, NULL, 0, 0, 0, 0,
         "the input holds no sample of a weight above 0"},
        {"of topics", "topic", "libsvm", "1 1:1\n", "2\n", NULL, NULL, NULL, NULL, 0, 0, 0, 0,
         "the algorithm topic takes no weights"},
    };
    check_cases(state, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Balanced: all / (classes x those of the class), by what training samples weigh. */
static void test_run_weights_of_classes(void **state)
{
    static const struct weight_case cases[] = {
        {"balanced: 3 and 1 of 4", "lor", "libsvm", "1 1:1\n0 2:1\n0 3:1\n0 4:1\n", NULL, NULL,
         "balanced", "-1*0.666666687 2:1|-1*0.666666687 3:1|-1*0.666666687 4:1|1*2 1:1", "", 4, 0,
         2, 0, NULL},
        {"they were balanced", "lor", "libsvm", "1 1:1\n0 2:1\n", NULL, NULL, "balanced",
         "-1 2:1|1 1:1", "", 0, 0, 0, 0, NULL},
        {"balanced by weight: 2 and 6 of 8", "lor", "libsvm", "1 1:1\n0 2:1\n0 3:1\n", "2\n5\n1\n",
         NULL, "balanced", "-1*0.666666687 3:1|-1*3.33333349 2:1|1*4 1:1", "", 8, 0, 4, 0, NULL},
        {"tests neither count nor change", "lor", "libsvm", "1 1:1\n0 2:1\n0 2:1\n0 2:1\n", NULL,
         "1 1:1\n1 1:1\n", "balanced",
         "-1*0.666666687 2:1|-1*0.666666687 2:1|-1*0.666666687 2:1|1*2 1:1", "1 1:1|1 1:1", 4, 2, 2,
         0, NULL},
        {"of names: 2, 1 and 1 of 4", "mlr", "libsvm", "b 1:1\na 2:1\nb 3:1\nc 4:1\n", NULL, NULL,
         "balanced", "0*1.33333337 2:1|1*0.666666687 1:1|1*0.666666687 3:1|2*1.33333337 4:1", "", 4,
         0, 4.0 / 3, 0, NULL},
        {"a class of tests alone", "mlr", "libsvm", "b 1:1\na 2:1\nb 3:1\n", NULL, "c 1:1\n",
         "balanced", "0*1.5 2:1|1*0.75 1:1|1*0.75 3:1", "2 1:1", 3, 1, 1.5, 0, NULL},
        {"named numbers", "svm", "libsvm", "1 1:1\n-1 2:1\n-1 3:1\n", "1\n2\n3\n", NULL, "+1.0=10",
         "-1*2 2:1|-1*3 3:1|1*10 1:1", "", 15, 0, 10, 5.0 / 15, NULL},
        {"two named numbers of fm", "fm", "libsvm", "2 1:1\n7 2:1\n", NULL, NULL, "2=3,7=0.5",
         "-1*3 1:1|1*0.5 2:1", "", 3.5, 0, 3, -2.5 / 3.5, NULL},
        {"named classes", "mlr", "libsvm", "b 1:1\na=1 2:1\nc 3:1\n", NULL, NULL, "a=1=4,c=2",
         "0*4 2:1|1 1:1|2*2 3:1", "", 7, 0, 4, 0, NULL},
        {"no such name", "mlr", "libsvm", "b 1:1\na 2:1\n", NULL, NULL, "d=4", NULL, NULL, 0, 0, 0,
         0, "no label is 'd'; the classes are: a, b"},
        {"no such number", "lor", "libsvm", "1 1:1\n-1 2:1\n", NULL, NULL, "0=4", NULL, NULL, 0, 0,
         0, 0, "no label is '0'; the labels are -1 and 1"},
        {"no number", "lor", "libsvm", "1 1:1\n-1 2:1\n", NULL, NULL, "1=x", NULL, NULL, 0, 0, 0, 0,
         "'1=x' is not NAME=W"},
        {"no weight", "lor", "libsvm", "1 1:1\n-1 2:1\n", NULL, NULL, "1=2,-1", NULL, NULL, 0, 0, 0,
         0, "'-1' is not NAME=W"},
        {"zero", "lor", "libsvm", "1 1:1\n-1 2:1\n", NULL, NULL, "1=0", NULL, NULL, 0, 0, 0, 0,
         "a number W above 0"},
        {"infinite", "lor", "libsvm", "1 1:1\n-1 2:1\n", NULL, NULL, "1=inf", NULL, NULL, 0, 0, 0,
         0, "a number W above 0"},
        {"beyond a float", "lor", "libsvm", "1 1:1\n-1 2:1\n", "1e20\n1\n", NULL, "1=1e20", NULL,
         NULL, 0, 0, 0, 0, "a float cannot hold their product"},
        {"regression", "lir", "libsvm", "1 1:1\n-1 2:1\n", NULL, NULL, "balanced", NULL, NULL, 0, 0,
         0, 0, "class weights need labels that are classes"},
    };
    check_cases(state, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Labels that are words: their names are those of the data. */
static void test_run_weights_of_words(void **state)
{
    struct case_run c;
    struct case_lines lines = {0};
    case_begin(&c, *state, scratch_file(*state, "input", "label,x\nyes,a\nno,b\nno,c\n", SIZE_MAX),
               "lor");
    c.options.class_weights = "yes=8";
    struct drps_plan *plan = case_plan(&c);
    assert_true(plan->info.weights.most == 8 && plan->info.weights.sum == 10);
    drps_plan_close(plan);
    case_plan_lines(c.out, 0, 1, &lines);
    assert_true(lines.n == 3 && strncmp(lines.line[2], "1*8 ", 4) == 0);
    case_lines_free(&lines);
}

/* Weights of 1 leave the bytes that there are without any. */
static void test_run_weights_of_one_change_no_byte(void **state)
{
    enum { SAMPLES = 2000 };
    struct scratch *s = *state;
    static char ones[2 * SAMPLES + 1];
    char weights[SCRATCH_PATH_BYTES], plain[SCRATCH_PATH_BYTES];
    const char *const list[] = {weights};
    struct case_run c;
    for (size_t i = 0; i < SAMPLES; i++)
        memcpy(ones + 2 * i, "1\n", 2);
    (void)snprintf(weights, sizeof(weights), "%s", scratch_file(s, "weights", ones, SIZE_MAX));
    case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, SAMPLES, 300, 7), "lor");
    case_compile(&c);
    (void)snprintf(plain, sizeof(plain), "%s", c.out);
    (void)snprintf(c.out, sizeof(c.out), "%s", scratch_path(s, "weighted"));
    c.options.weights = list;
    c.options.weights_n = 1;
    struct drps_plan *plan = case_plan(&c);
    struct drps_plan *before;
    assert_int_equal(drps_plan_open(drps_io_os(), plain, &before, NULL), 0);
    assert_true(case_same_records(plain, c.out));
    assert_string_equal(plan->info.id, before->info.id);
    assert_true(plan->info.weights.most == 0);
    drps_plan_close(before);
    drps_plan_close(plan);
}

/* Every way through the compiler: each sample keeps its weight, which its first feature tells. */
static void test_run_weights_stay_with_their_samples(void **state)
{
    enum { SAMPLES = 3000 };
    static const struct {
        const char *name, *algo, *order, *blocks, *partition;
        uint32_t workers, lanes;
        uint64_t memory_bytes;
    } ways[] = {
        {"shuffled", "lmf", NULL, NULL, NULL, 1, 0, 0},
        {"little memory", "fm", NULL, NULL, NULL, 1, 0, 64 << 20},
        {"given, blocks that renumber", "fm", "given", "topk", NULL, 1, 0, 0},
        {"a grid", "lmf", "grid", NULL, NULL, 1, 0, 0},
        {"lanes", "lmf", "grid", NULL, NULL, 1, 4, 0},
        {"ranks", "lmf", NULL, NULL, "auto", 3, 0, 0},
        {"ranks that deal", "fm", NULL, NULL, "hash", 3, 0, 0},
        {"circulating", "lmf", "grid", NULL, NULL, 2, 2, 0},
    };
    struct scratch *s = *state;
    static char text[SAMPLES * 40];
    size_t n = 0;
    double sum = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        const double weight = 1 + (double)(i % 7) / 4;
        sum += weight;
        n += (size_t)snprintf(text + n, sizeof(text) - n, "u%zu\ti%zu\t%zu\t%g\n", i % 61,
                              i * i % 97, i % 5 + 1, weight);
    }
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct case_run c;
        case_begin(&c, s, scratch_file(s, "input", text, n), ways[i].algo);
        c.options.reader.weight = "4";
        c.options.order = ways[i].order;
        c.options.blocks.by = ways[i].blocks;
        c.options.partition = ways[i].partition;
        c.options.workers = ways[i].workers;
        c.options.lanes = ways[i].lanes;
        c.options.memory_bytes = ways[i].memory_bytes;
        c.options.batch_size = 50;
        c.options.force = 1;
        struct drps_plan *plan = case_plan(&c);
        if (fabs(plan->info.weights.sum - sum) > 1e-6 || plan->info.weights.most != 2.5)
            fail_msg("%s: weights sum to %g, at most %g", ways[i].name, plan->info.weights.sum,
                     plan->info.weights.most);
        drps_plan_close(plan);
        case_verify(c.out); /* the batches' sums are those of plan.json */
        if (ways[i].workers > 1) continue;
        struct case_lines lines = {0};
        case_plan_lines(c.out, 0, 0, &lines);
        assert_int_equal(lines.n, SAMPLES);
        double kinds[5][7] = {{0}}; /* samples by label and weight, as they were written */
        for (size_t k = 0; k < lines.n; k++) {
            double label = 0, weight = 1;
            assert_true(sscanf(lines.line[k], "%lf*%lf", &label, &weight) >= 1);
            kinds[(int)label - 1][(int)((weight - 1) * 4)]++;
        }
        for (size_t k = 0; k < SAMPLES; k++)
            kinds[k % 5][k % 7]--;
        for (size_t k = 0; k < 35; k++)
            if (kinds[k / 7][k % 7] != 0)
                fail_msg("%s: label %zu, weight %zu", ways[i].name, k / 7 + 1, k % 7);
        case_lines_free(&lines);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_run_weights_of_samples, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_run_weights_of_classes, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_run_weights_of_words, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_run_weights_of_one_change_no_byte, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_run_weights_stay_with_their_samples, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
