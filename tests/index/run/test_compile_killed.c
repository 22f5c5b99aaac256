/*
 * Kill a compiling child at random moments: the plan's name never names a folder that is not whole,
 * and the next run cleans up what the killed one left.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/drps_clock.h"
#include "index/drps_index.h"
#include "support/index_case.h"
#include "support/scratch.h"

enum { KILLS = 20 };

static int run(struct case_run *c)
{
    struct drps_err err = DRPS_ERR_INIT;
    int rc = drps_index_run(drps_io_os(), &c->options, &c->result, &err);
    if (rc) print_error("%s\n", err.text);
    return rc;
}

/* Start a run in a child and kill it after `us`. Returns 1 when it had finished before. */
static int run_and_kill(struct case_run *c, uint64_t us)
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(run(c) ? 1 : 0);
    const struct timespec wait = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    (void)nanosleep(&wait, NULL); /* the moment is random anyway */
    (void)kill(child, SIGKILL);   /* it may be gone already */
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) assert_int_equal(WEXITSTATUS(status), 0);
    return WIFEXITED(status);
}

static void test_kill_leaves_a_whole_plan_or_none(void **state)
{
    struct scratch *s = *state;
    struct random_source r = random_begin("kill");
    struct case_run c;
    int killed = 0;
    case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 4000, 3000, 31), "lor");
    uint64_t start = drps_clock_ns();
    assert_int_equal(run(&c), 0);
    uint64_t whole_us = (drps_clock_ns() - start) / 1000;
    assert_int_equal(drps_io_remove_tree(drps_io_os(), c.out, NULL), 0);
    for (int i = 0; i < KILLS; i++) {
        killed += !run_and_kill(&c, random_below(&r, whole_us * 5 / 4 + 1));
        if (path_exists(c.out)) case_verify(c.out);
        assert_int_equal(drps_io_remove_tree(drps_io_os(), c.out, NULL), 0);
    }
    print_message("%d of %d runs were killed\n", killed, KILLS);
    assert_int_equal(run(&c), 0);
    case_verify(c.out);
    assert_int_equal(folder_entries(s->dir), 2); /* input and plan */
    assert_int_equal(folder_entries(c.out), 8);
}

/* Killed while it replaces: the old plan or the new one is there, or the old one lies aside for a
 * moment. */
static void test_kill_while_replacing(void **state)
{
    struct scratch *s = *state;
    struct random_source r = random_begin("kill while replacing");
    struct case_run c;
    case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 500, 300, 32), "lor");
    uint64_t start = drps_clock_ns();
    assert_int_equal(run(&c), 0);
    uint64_t whole_us = (drps_clock_ns() - start) / 1000;
    c.options.force = 1;
    for (int i = 0; i < KILLS; i++) {
        (void)run_and_kill(&c, whole_us * 3 / 4 + random_below(&r, whole_us / 2 + 1));
        case_verify(path_exists(c.out) ? c.out : scratch_path(s, "plan.replaced"));
    }
    assert_int_equal(run(&c), 0);
    case_verify(c.out);
    assert_int_equal(folder_entries(s->dir), 2);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_kill_leaves_a_whole_plan_or_none),
        SCRATCH_TEST(test_kill_while_replacing),
    };
    return cmocka_run_group_tests_name("compile_killed", tests, NULL, NULL);
}
