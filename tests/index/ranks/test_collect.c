/* Plans made of plans: the same batches for another number of workers, as text would give them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "index/drps_index.h"
#include "support/fault_io.h"
#include "support/index_case.h"

/* Make `name` of the input, or (from) of another plan. */
static int make(struct scratch *s, const char *algo, const char *input, const char *from,
                uint32_t workers, const char *partition, const char *name, struct drps_err *err)
{
    struct case_run run;
    char source[SCRATCH_PATH_BYTES];
    case_begin(&run, s, input, algo);
    (void)snprintf(run.out, sizeof(run.out), "%s", scratch_path(s, name));
    run.options.workers = workers;
    run.options.partition = partition;
    run.options.batch_size = 30;
    run.options.factors = strcmp(algo, "lor") == 0 ? 0 : 3;
    run.options.test_fraction = 0.2;
    if (from) {
        (void)snprintf(source, sizeof(source), "%s", scratch_path(s, from));
        run.options = (struct drps_index_options){.from_plan = source,
                                                  .workers = workers,
                                                  .partition = partition,
                                                  .memory_bytes = 64 << 20,
                                                  .out = run.out,
                                                  .log = run.options.log};
    }
    return drps_index_run(drps_io_os(), &run.options, &run.result, err);
}

static void must_make(struct scratch *s, const char *algo, const char *input, const char *from,
                      uint32_t workers, const char *partition, const char *name)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (make(s, algo, input, from, workers, partition, name, &err) < 0)
        fail_msg("%s: %s", name, err.text);
    case_verify(scratch_path(s, name));
}

static int same_file(struct scratch *s, const char *a, const char *b, const char *name)
{
    char x[SCRATCH_PATH_BYTES + 32], y[SCRATCH_PATH_BYTES + 32];
    (void)snprintf(x, sizeof(x), "%s/%s", scratch_path(s, a), name);
    (void)snprintf(y, sizeof(y), "%s/%s", scratch_path(s, b), name);
    return files_equal(x, y);
}

/* Batches and rows of two plans for one worker are the same bytes. */
static void check_same_batches(struct scratch *s, const char *a, const char *b)
{
    assert_true(same_file(s, a, b, "data.rec"));
    assert_true(same_file(s, a, b, "rows.rec"));
    assert_true(same_file(s, a, b, "names.rec"));
}

/* A plan that is dealt from one worker to three is that of the text, in each file; so it is back
 * again, by way of others. */
static void test_a_plan_is_dealt_as_text_is(void **state)
{
    static const struct {
        const char *algo;
        enum case_format format;
    } kinds[] = {
        {"fm", CASE_LIBSVM}, {"lmf", CASE_RATINGS}, {"lor", CASE_CSV}, {"ffm", CASE_LIBFFM}};
    static const char *const files[] = {"plan.json",        "names.rec",         "rank-0/plan.json",
                                        "rank-1/plan.json", "rank-2/plan.json",  "rank-0/data.rec",
                                        "rank-1/rows.rec",  "rank-2/windows.rec"};
    struct scratch *s = *state;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
        char input[SCRATCH_PATH_BYTES], one[32], three[32], dealt[32], name[32], before[32];
        const uint32_t ways[] = {5, 2, 4, 1};
        (void)snprintf(input, sizeof(input), "%s",
                       case_input(s, "in", kinds[k].format, 900, 150, k + 3));
        (void)snprintf(one, sizeof(one), "one%zu", k);
        (void)snprintf(three, sizeof(three), "three%zu", k);
        (void)snprintf(dealt, sizeof(dealt), "dealt%zu", k);
        must_make(s, kinds[k].algo, input, NULL, 1, NULL, one);
        must_make(s, kinds[k].algo, input, NULL, 3, NULL, three);
        must_make(s, kinds[k].algo, input, one, 3, NULL, dealt);
        for (size_t f = 0; f < sizeof(files) / sizeof(*files); f++)
            if (!same_file(s, three, dealt, files[f])) fail_msg("%s differs", files[f]);
        (void)snprintf(before, sizeof(before), "%s", three);
        for (size_t i = 0; i < 4; i++) {
            (void)snprintf(name, sizeof(name), "way%zu-%zu", k, i);
            must_make(s, kinds[k].algo, input, before, ways[i], NULL, name);
            (void)snprintf(before, sizeof(before), "%s", name);
        }
        check_same_batches(s, one, name);
    }
}

/* Whoever has which samples and rows: together they are the same. */
static void test_placed_plans_are_collected(void **state)
{
    static const char *const partitions[] = {"greedy", "dppa", "auto", "hash"};
    struct scratch *s = *state;
    char input[SCRATCH_PATH_BYTES];
    struct case_lines want, got;
    (void)snprintf(input, sizeof(input), "%s", case_input(s, "in", CASE_LIBFFM, 900, 150, 8));
    must_make(s, "ffm", input, NULL, 1, NULL, "one");
    for (size_t p = 0; p < 4; p++) {
        char placed[32], one[32];
        (void)snprintf(placed, sizeof(placed), "placed%zu", p);
        (void)snprintf(one, sizeof(one), "one%zu", p);
        must_make(s, "ffm", input, NULL, 3, partitions[p], placed);
        must_make(s, "ffm", input, placed, 1, NULL, one);
        for (int evaluation = 0; evaluation < 2; evaluation++) {
            case_plan_lines(scratch_path(s, "one"), evaluation, 1, &want);
            case_plan_lines(scratch_path(s, one), evaluation, 1, &got);
            assert_true(want.n > 100 && case_lines_equal(&want, &got));
            case_lines_free(&want);
            case_lines_free(&got);
        }
        (void)snprintf(one, sizeof(one), "again%zu", p);
        must_make(s, "ffm", input, placed, 4, partitions[p], one); /* and placed anew */
    }
}

static void expect_refusal(struct scratch *s, const char *from, uint32_t workers, int code,
                           const char *text)
{
    struct drps_err err = DRPS_ERR_INIT;
    const int rc = make(s, "lmf", "-", from, workers, NULL, "refused", &err);
    if (rc != code || !strstr(err.text, text)) fail_msg("%d: %s", rc, err.text);
    assert_false(path_exists(scratch_path(s, "refused")));
}

static void test_what_cannot_be_dealt_is_refused(void **state)
{
    struct scratch *s = *state;
    struct case_run run;
    struct drps_err err = DRPS_ERR_INIT;
    char input[SCRATCH_PATH_BYTES];
    (void)snprintf(input, sizeof(input), "%s", case_input(s, "in", CASE_RATINGS, 900, 100, 2));
    case_begin(&run, s, input, "lmf");
    run.options.order = "grid";
    run.options.grid_users = run.options.grid_items = 2;
    run.options.lanes = 2;
    case_compile(&run);
    expect_refusal(s, "plan", 2, DRPS_E_CONFIG, "circulate");
    must_make(s, "lmf", input, "plan", 1, NULL, "one");
    check_same_batches(s, "plan", "one");

    must_make(s, "lmf", input, NULL, 3, NULL, "three");
    expect_refusal(s, "three/rank-1", 2, DRPS_E_CONFIG, "the part of one rank");
    expect_refusal(s, "nothing", 2, DRPS_E_NOT_FOUND, "No such file or directory");
    run.options.from_plan = scratch_path(s, "three");
    assert_int_equal(drps_index_run(drps_io_os(), &run.options, &run.result, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "name no input"));
    assert_int_equal(rename(scratch_path(s, "three/rank-2"), scratch_path(s, "away")), 0);
    expect_refusal(s, "three", 2, DRPS_E_NOT_FOUND, "rank-2");
}

/* A byte of any file that is read: an error, or it did not matter; never another batch. */
static void test_damage_is_noticed(void **state)
{
    static const char *const files[] = {
        "names.rec",        "rank-0/rows.rec",      "rank-1/data.rec",
        "rank-2/rows.rec",  "rank-1/positions.rec", "rank-0/plan.json",
        "rank-2/blocks.rec"};
    struct scratch *s = *state;
    char input[SCRATCH_PATH_BYTES];
    (void)snprintf(input, sizeof(input), "%s", case_input(s, "in", CASE_RATINGS, 600, 100, 2));
    must_make(s, "lmf", input, NULL, 3, NULL, "three");
    for (size_t f = 0; f < sizeof(files) / sizeof(*files); f++) {
        char path[SCRATCH_PATH_BYTES + 32];
        size_t n;
        (void)snprintf(path, sizeof(path), "%s/%s", scratch_path(s, "three"), files[f]);
        char *data = scratch_read(path, &n);
        for (size_t i = 0; i < 4; i++) {
            struct drps_err err = DRPS_ERR_INIT;
            const size_t at = (size_t)drps_rng_at(f, i) % n;
            data[at] ^= 16;
            scratch_write(path, data, n);
            data[at] ^= 16;
            if (make(s, "lmf", input, "three", 2, NULL, "two", &err) == 0)
                fail_msg("%s: byte %zu of %zu is another one", files[f], at, n);
        }
        scratch_write(path, data, n);
        free(data);
    }
    must_make(s, "lmf", input, "three", 2, NULL, "two");
}

/* A run that ends at any change of a file leaves nothing that is in the way of the next one. */
static void test_killed_anywhere(void **state)
{
    struct scratch *s = *state;
    char input[SCRATCH_PATH_BYTES], three[SCRATCH_PATH_BYTES];
    long k = 1;
    (void)snprintf(input, sizeof(input), "%s", case_input(s, "in", CASE_RATINGS, 300, 60, 2));
    must_make(s, "lmf", input, NULL, 3, NULL, "three");
    (void)snprintf(three, sizeof(three), "%s", scratch_path(s, "three"));
    for (;; k += DRPS_TEST_ONE_IN > 1 ? 37 : 11) {
        struct drps_err err = DRPS_ERR_INIT;
        struct case_run run;
        struct fault_io *f = fault_io_new(drps_io_os());
        case_begin(&run, s, input, "lmf");
        run.options = (struct drps_index_options){.from_plan = three,
                                                  .workers = 2,
                                                  .partition = k % 2 ? NULL : "hash",
                                                  .memory_bytes = 64 << 20,
                                                  .out = run.out,
                                                  .force = 1,
                                                  .log = run.options.log};
        fault_io_arm(f, FAULT_PWRITE | FAULT_FSYNC | FAULT_RENAME | FAULT_MKDIR | FAULT_UNLINK, k,
                     1, k % 4 < 2 ? FAULT_ERROR : FAULT_TORN, -EIO);
        const int rc = drps_index_run(&f->io, &run.options, &run.result, &err);
        const int fired = atomic_load(&f->fired);
        fault_io_free(f);
        if (!fired) {
            assert_int_equal(rc, 0);
            break;
        }
        if (drps_index_run(drps_io_os(), &run.options, &run.result, &err) < 0)
            fail_msg("after change %ld failed: %s", k, err.text);
        case_verify(run.out);
    }
    assert_true(k > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_plan_is_dealt_as_text_is, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_placed_plans_are_collected, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_dealt_is_refused, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_damage_is_noticed, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_killed_anywhere, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
