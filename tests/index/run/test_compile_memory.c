/*
 * Whole runs in which memory, or threads, run out: at each allocation once (with a sanitizer, at
 * one in so many). Each ends with that error and a text, leaves nothing at the plan's name, and
 * does not keep the next run from working. The sanitised build sees that nothing leaks. Argument:
 * "ranks", the shapes of several ranks, else those of one.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "index/drps_index.h"
#include "support/alloc_fault.h"
#include "support/index_case.h"
#include "support/scratch.h"

/* Run with the k-th call failing. 0 when no call failed any more. A thread that cannot be started
 * may be done without. */
static int run_with_fault(struct scratch *s, struct case_run *c, enum alloc_fault kind, long k)
{
    struct drps_err err = DRPS_ERR_INIT;
    alloc_fault_arm(kind, k);
    const int rc = drps_index_run(drps_io_os(), &c->options, &c->result, &err);
    const int fired = alloc_fault_disarm();
    if (rc == 0) {
        case_verify(c->options.out);
        assert_int_equal(drps_io_remove_tree(drps_io_os(), c->options.out, NULL), 0);
        if (fired && kind == FAULT_MEMORY && alloc_fault_where())
            fail_msg("call %ld (%#zx): nothing came of it", k, alloc_fault_where());
        return fired;
    }
    if (!fired) fail_msg("call %ld: no fault, but %d (%s)", k, rc, err.text);
    const int want = kind == FAULT_MEMORY ? -ENOMEM : -EAGAIN;
    if ((rc != want && alloc_fault_where()) || err.code != rc || !err.text[0])
        fail_msg("call %ld (%#zx): %d '%s'", k, alloc_fault_where(), rc, err.text);
    if (folder_entries(s->dir) != 1)
        fail_msg("call %ld (%#zx): more than the input was left", k, alloc_fault_where());
    return 1;
}

static const struct shape {
    const char *name, *algo, *order, *blocks, *partition;
    enum case_format format;
    uint32_t workers, lanes;
    size_t samples, features;
} shapes[] = {
    {.name = "samples as they come",
     .algo = "lor",
     .order = "given",
     .blocks = "none",
     .format = CASE_LIBSVM},
    {.name = "names, blocks by pattern", .algo = "fm", .blocks = "pattern", .format = CASE_CSV},
    {.name = "blocks merged", .algo = "lor", .blocks = "topk", .format = CASE_LIBSVM},
    {.name = "blocks chosen", .algo = "lor", .blocks = "auto", .format = CASE_LIBSVM},
    {.name = "groups by rare rows", .algo = "lor", .order = "micro", .format = CASE_LIBSVM},
    {.name = "a grid with lanes",
     .algo = "lmf",
     .order = "grid",
     .lanes = 2,
     .format = CASE_RATINGS},
    {.name = "two ranks", .algo = "lor", .workers = 2, .format = CASE_LIBSVM},
    {.name = "two ranks, placed",
     .algo = "lor",
     .workers = 2,
     .partition = "auto",
     .format = CASE_LIBSVM},
};

static void run_out(struct scratch *s, const struct shape *shape, enum alloc_fault kind)
{
    struct case_run c;
    struct random_source random = random_begin("run out");
    const long step = kind == FAULT_MEMORY ? DRPS_TEST_ONE_IN : 1;
    const long first = 1 + (long)random_below(&random, (uint64_t)step);
    long k = first;
    case_begin(&c, s, case_input(s, "input", shape->format, 60, 30, 21), shape->algo);
    c.options.test_fraction = 0.2;
    c.options.batch_size = 16;
    c.options.order = shape->order;
    c.options.blocks.by = shape->blocks;
    c.options.workers = shape->workers;
    c.options.partition = shape->partition;
    c.options.lanes = shape->lanes;
    while (run_with_fault(s, &c, kind, k))
        k += step;
    print_message("%s: %ld calls\n", shape->name, k - step);
    assert_true(k > first);
}

static int of_ranks;

static void each_shape(void **state, enum alloc_fault kind)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
        if ((shapes[i].workers > 1) == of_ranks) run_out(*state, &shapes[i], kind);
}

static void test_compile_without_memory(void **state)
{
    each_shape(state, FAULT_MEMORY);
}

static void test_compile_without_threads(void **state)
{
    each_shape(state, FAULT_THREAD);
}

#define SCRATCH_TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_compile_without_memory),
        SCRATCH_TEST(test_compile_without_threads),
    };
    of_ranks = argc > 1 && strcmp(argv[1], "ranks") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
