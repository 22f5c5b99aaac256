/* How the time of rounds is split, with clocks that the test sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "engine/cluster/rounds_internal.h"

static const struct drps_plan_ranks alike = {.count = 2, .workers = 2, .servers = 2};
static const struct drps_plan_ranks one_server = {.count = 2, .workers = 2, .servers = 1};

static int begin(void **state)
{
    struct drps_rounds *r = calloc(1, sizeof(*r));
    *state = r;
    if (r) r->shape = &alike;
    if (r) r->train = 2;
    return r ? 0 : -1;
}

static int end(void **state)
{
    free(*state);
    return 0;
}

static void check(const struct drps_rounds *r, struct drps_rounds_times want)
{
    struct drps_rounds_times got;
    drps_rounds_times(r, &got);
    assert_int_equal(got.network_ns, want.network_ns);
    assert_int_equal(got.store_ns, want.store_ns);
    assert_int_equal(got.reduce_ns, want.reduce_ns);
    assert_int_equal(got.broadcast_ns, want.broadcast_ns);
}

/* The gradient was sent at 200, this rank's rows were stepped at 230; the worker waits from 210 on.
 */
static void test_a_round_after_a_gradient(void **state)
{
    struct drps_rounds *r = *state;
    r->worker.pushed_ns = 200;
    r->server.trained_ns = 230;
    drps_rounds_count_wait(r, 210, 250);
    check(r, (struct drps_rounds_times){.network_ns = 40, .reduce_ns = 30, .broadcast_ns = 20});
    assert_int_equal(r->worker.pushed_ns, 0);

    r->worker.at = 1; /* again: it adds up */
    r->worker.pushed_ns = 300;
    r->server.trained_ns = 307;
    drps_rounds_count_wait(r, 301, 311);
    check(r, (struct drps_rounds_times){.network_ns = 50, .reduce_ns = 37, .broadcast_ns = 24});
}

/* A rank without rows does not know when its gradient was stepped. */
static void test_a_rank_without_rows_waits_for_the_broadcast(void **state)
{
    struct drps_rounds *r = *state;
    r->shape = &one_server;
    r->rank = 1;
    r->worker.pushed_ns = 200;
    drps_rounds_count_wait(r, 210, 250);
    check(r, (struct drps_rounds_times){.network_ns = 40, .broadcast_ns = 50});
}

static void test_the_first_round_is_all_broadcast(void **state)
{
    struct drps_rounds *r = *state;
    drps_rounds_count_wait(r, 100, 170);
    check(r, (struct drps_rounds_times){.network_ns = 70, .broadcast_ns = 70});
}

/* Evaluation is no broadcast of training; the last gradient is reduced meanwhile. */
static void test_rounds_of_evaluation_count_as_waiting_alone(void **state)
{
    struct drps_rounds *r = *state;
    r->worker.at = 2;
    r->worker.pushed_ns = 100;
    r->server.trained_ns = 140;
    drps_rounds_count_wait(r, 110, 190);
    check(r, (struct drps_rounds_times){.network_ns = 80, .reduce_ns = 40});
    drps_rounds_count_wait(r, 200, 205);
    check(r, (struct drps_rounds_times){.network_ns = 85, .reduce_ns = 40});
}

/* Of what the worker waits, the store's part is not the network's; it is counted once. */
static void test_the_store_is_no_network(void **state)
{
    struct drps_rounds *r = *state;
    r->worker.at = 2;
    r->server.store_ns = 30;
    drps_rounds_count_wait(r, 100, 170);
    check(r, (struct drps_rounds_times){.network_ns = 40, .store_ns = 30});
    drps_rounds_count_wait(r, 200, 210);
    check(r, (struct drps_rounds_times){.network_ns = 50, .store_ns = 30});
    r->server.store_ns = 130; /* the worker was late itself, and waited for little of it */
    drps_rounds_count_wait(r, 300, 320);
    check(r, (struct drps_rounds_times){.network_ns = 50, .store_ns = 130});
}

/* After the last round of an epoch nobody waits, but gradients are still reduced and rows closed.
 */
static void test_the_end_of_an_epoch_is_counted(void **state)
{
    struct drps_rounds *r = *state;
    r->worker.pushed_ns = 100;
    r->server.trained_ns = 160;
    r->server.store_ns = 5;
    drps_rounds_count_rest(r);
    drps_rounds_count_rest(r);
    check(r, (struct drps_rounds_times){.store_ns = 5, .reduce_ns = 60});
}

/* A server that failed has not stepped the last gradient. */
static void test_a_gradient_that_is_never_reduced(void **state)
{
    struct drps_rounds *r = *state;
    r->worker.pushed_ns = 500;
    r->server.trained_ns = 160;
    drps_rounds_count_rest(r);
    check(r, (struct drps_rounds_times){.reduce_ns = 0});
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_a_round_after_a_gradient),
        TEST(test_the_first_round_is_all_broadcast),
        TEST(test_a_rank_without_rows_waits_for_the_broadcast),
        TEST(test_rounds_of_evaluation_count_as_waiting_alone),
        TEST(test_the_store_is_no_network),
        TEST(test_the_end_of_an_epoch_is_counted),
        TEST(test_a_gradient_that_is_never_reduced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
