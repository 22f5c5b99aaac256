/*
 * Samples that stay with their files: each worker's batches have those of its own files, in the
 * order of all, cut evenly. Labels say which sample it is: its file and its line there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "index/walk/drps_walk.h"
#include "support/index_case.h"
#include "support/scratch.h"

enum { WORKERS = 3, FILES = 6, TESTS = 2, OF_FILE = 10000, BATCH = 25 };

/* Files of very different sizes; the last ones are for evaluation. */
static const unsigned lines_of[FILES + WORKERS] = {200, 10, 3, 90, 150, 40, 30, 40, 50};

struct kept_case {
    const char *name, *order, *partition;
    size_t tests; /* files of evaluation */
    double test_fraction;
    const uint32_t *inputs_of;
};

static const uint32_t uneven[WORKERS] = {1, 4, 1};

static void write_files(struct scratch *s, char paths[FILES + WORKERS][SCRATCH_PATH_BYTES])
{
    for (unsigned f = 0; f < FILES + WORKERS; f++) {
        char name[16], *text = malloc(64 * (size_t)lines_of[f]);
        size_t n = 0;
        assert_non_null(text);
        for (unsigned i = 0; i < lines_of[f]; i++)
            n += (size_t)snprintf(text + n, 64, "%u %u:1 %u:1\n", f * OF_FILE + i, i % 37,
                                  40 + (i * 7 + f) % 29);
        (void)snprintf(name, sizeof(name), "%u", f);
        (void)snprintf(paths[f], SCRATCH_PATH_BYTES, "%s", scratch_file(s, name, text, n));
        free(text);
    }
}

/* Returns the worker that has an input, by hand. */
static uint32_t worker_of(const struct kept_case *c, unsigned file)
{
    if (file >= FILES) return (file - FILES) / (uint32_t)(c->tests / WORKERS);
    return c->inputs_of ? (uint32_t)(file > 0) + (file > 4) : file / (FILES / WORKERS);
}

/* Checks the batches of training, or of evaluation: batch k is worker k mod WORKERS's. */
static uint64_t check_batches(const struct kept_case *c, struct drps_walk *w, uint64_t first,
                              uint64_t n, int kept)
{
    uint64_t samples = 0, least[WORKERS], most[WORKERS] = {0};
    float before[WORKERS] = {0};
    struct drps_err err = DRPS_ERR_INIT;
    memset(least, 0xff, sizeof(least));
    for (uint64_t k = 0; k < n; k++) {
        const uint32_t *rows;
        struct drps_batch b;
        const uint32_t worker = (uint32_t)(k % WORKERS);
        if (drps_walk_read(w, first + k, &b, &rows, &err) < 0) fail_msg("%s", err.text);
        for (size_t i = 0; i < b.samples; i++) {
            const unsigned file = (unsigned)b.labels[i] / OF_FILE;
            if (kept && worker_of(c, file) != worker)
                fail_msg("%s: batch %llu has a sample of file %u", c->name, (unsigned long long)k,
                         file);
            if (kept && strcmp(c->order, "given") == 0 && b.labels[i] < before[worker])
                fail_msg("%s: batch %llu is out of order", c->name, (unsigned long long)k);
            before[worker] = b.labels[i];
        }
        samples += b.samples;
        if (b.samples < least[worker]) least[worker] = b.samples;
        if (b.samples > most[worker]) most[worker] = b.samples;
        assert_true(b.samples <= BATCH);
    }
    for (uint32_t r = 0; kept && n && r < WORKERS; r++)
        if (most[r] > least[r] + 1)
            fail_msg("%s: worker %u has batches of %llu to %llu samples", c->name, r,
                     (unsigned long long)least[r], (unsigned long long)most[r]);
    return samples;
}

static void begin(struct scratch *s, const struct kept_case *c,
                  char paths[FILES + WORKERS][SCRATCH_PATH_BYTES],
                  const char *inputs[FILES + WORKERS], struct case_run *run)
{
    for (unsigned f = 0; f < FILES + WORKERS; f++)
        inputs[f] = paths[f];
    case_begin(run, s, paths[0], "lir");
    run->options.inputs = inputs;
    run->options.inputs_n = FILES;
    run->options.tests = inputs + FILES;
    run->options.tests_n = c->tests;
    run->options.test_fraction = c->test_fraction;
    run->options.order = c->order;
    run->options.workers = WORKERS;
    run->options.samples = "kept";
    run->options.inputs_of = c->inputs_of;
    run->options.partition = c->partition;
    run->options.batch_size = BATCH;
}

/* The plan of one worker that has the same batches. */
static struct drps_plan *plan_of_one(struct scratch *s, struct case_run *of)
{
    struct case_run one;
    case_begin(&one, s, of->input, "lir");
    one.options = (struct drps_index_options){.from_plan = of->out,
                                              .out = scratch_path(s, "one"),
                                              .force = 1,
                                              .memory_bytes = 64 << 20,
                                              .workers = 1};
    (void)snprintf(one.out, sizeof(one.out), "%s", one.options.out);
    return case_plan(&one);
}

static void test_kept_samples_are_of_the_workers_files(void **state)
{
    static const struct kept_case cases[] = {
        {"given", "given", "range", 0, 0, NULL},
        {"shuffled", "shuffled", "range", 0, 0, NULL},
        {"as many test files for each", "given", "range", WORKERS, 0, NULL},
        {"test files that are too few", "given", "range", TESTS, 0, NULL},
        {"a share for tests", "shuffled", "range", 0, 0.3, NULL},
        {"uneven", "given", "range", 0, 0, uneven},
        {"auto", "shuffled", "auto", WORKERS, 0, NULL},
        {"hash", "shuffled", "hash", TESTS, 0, NULL},
        {"greedy", "shuffled", "greedy", 0, 0.3, NULL},
        {"dppa", "given", "dppa", 0, 0, uneven},
    };
    struct scratch *s = *state;
    char paths[FILES + WORKERS][SCRATCH_PATH_BYTES];
    const char *inputs[FILES + WORKERS];
    write_files(s, paths);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct kept_case *c = &cases[i];
        struct case_run run;
        struct drps_walk w = {0};
        struct drps_err err = DRPS_ERR_INIT;
        begin(s, c, paths, inputs, &run);
        run.options.force = 1;
        case_compile(&run);
        case_verify(run.out);
        struct drps_plan *plan = plan_of_one(s, &run);
        const uint64_t batches = plan->info.batches;
        const int tests_kept = c->tests % WORKERS == 0;
        assert_int_equal(drps_walk_open(&w, plan, &err), 0);
        const uint64_t trained = check_batches(c, &w, 0, batches, 1);
        const uint64_t tested = check_batches(c, &w, batches, plan->info.eval_batches, tests_kept);
        uint64_t all = 0;
        for (size_t f = 0; f < FILES + c->tests; f++)
            all += lines_of[f];
        assert_int_equal(trained + tested, all);
        assert_int_equal(trained, run.result.info.samples);
        assert_true((tested > 0) == (c->tests > 0 || c->test_fraction > 0));
        drps_walk_close(&w);
        drps_plan_close(plan);
    }
}

static void test_kept_of_one_worker_is_dealt(void **state)
{
    static const struct kept_case c = {"one", "shuffled", NULL, 0, 0.2, NULL};
    struct scratch *s = *state;
    char paths[FILES + WORKERS][SCRATCH_PATH_BYTES], dealt[SCRATCH_PATH_BYTES];
    const char *inputs[FILES + WORKERS];
    struct case_run run;
    write_files(s, paths);
    begin(s, &c, paths, inputs, &run);
    (void)snprintf(dealt, sizeof(dealt), "%s", scratch_path(s, "dealt"));
    run.options.workers = 1;
    case_compile(&run);
    run.options.samples = "dealt";
    run.options.out = dealt;
    case_compile(&run);
    assert_true(case_same_records(run.out, dealt));
}

static void assert_refused(struct case_run *run, const char *text)
{
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(drps_index_run(drps_io_os(), &run->options, &run->result, &err),
                     DRPS_E_CONFIG);
    if (!strstr(err.text, text)) fail_msg("'%s' expected in '%s'", text, err.text);
}

static void test_kept_is_refused_where_files_do_not_say_it(void **state)
{
    static const struct kept_case c = {"refused", "shuffled", "range", 0, 0, NULL};
    static const uint32_t too_few[WORKERS] = {1, 2, 2};
    struct scratch *s = *state;
    char paths[FILES + WORKERS][SCRATCH_PATH_BYTES];
    const char *inputs[FILES + WORKERS];
    struct case_run run;
    write_files(s, paths);
    begin(s, &c, paths, inputs, &run);
    run.options.inputs_n = FILES - 1;
    assert_refused(&run, "5 files for 3 workers");
    run.options.inputs_n = FILES;
    run.options.inputs_of = too_few;
    assert_refused(&run, "6 files for 3 workers");
    run.options.inputs_of = NULL;
    run.options.algo = "lmf";
    run.options.order = "grid";
    assert_refused(&run, "in the order grid samples go to cells");
    run.options.algo = "bpr";
    run.options.order = "shuffled";
    assert_refused(&run, "negatives are drawn from all items");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kept_samples_are_of_the_workers_files, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_kept_of_one_worker_is_dealt, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_kept_is_refused_where_files_do_not_say_it,
                                        scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
