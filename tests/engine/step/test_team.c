/* The team of threads: every member works, barriers order them, runs follow each other. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <setjmp.h>
#include <cmocka.h>

#include "engine/drps_engine.h"
#include "engine/step/team/apart.h"
#include "engine/step/team/drps_team.h"

enum { RUNS = 2000, MEMBERS_MOST = 8 };

struct sums {
    struct drps_team *team;
    uint64_t own[MEMBERS_MOST]; /* plain: only the barriers order the accesses (this is what tsan
                                   checks) */
    uint64_t seen[MEMBERS_MOST];
    uint64_t run;
};

static void add_up(void *ctx, unsigned member)
{
    struct sums *s = ctx;
    const unsigned n = drps_team_members(s->team);
    s->own[member] = s->run * 10 + member;
    drps_team_barrier(s->team);
    uint64_t sum = 0;
    for (unsigned k = 0; k < n; k++)
        sum += s->own[k];
    drps_team_barrier(s->team); /* nobody overwrites before all have read */
    s->seen[member] = sum;
    s->own[member] = 0;
}

static void test_team_barriers_order_the_members(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= MEMBERS_MOST; n++) {
        struct sums s = {.team = NULL};
        struct drps_err err = DRPS_ERR_INIT;
        assert_int_equal(drps_team_start(n, &s.team, &err), 0);
        assert_int_equal(drps_team_members(s.team), n);
        for (s.run = 0; s.run < RUNS / n; s.run++) {
            drps_team_run(s.team, add_up, &s);
            for (unsigned k = 0; k < n; k++)
                assert_int_equal(s.seen[k], s.run * 10 * n + n * (n - 1) / 2);
        }
        drps_team_stop(s.team);
    }
}

static void test_team_stops_without_a_run(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        struct drps_team *team;
        assert_int_equal(drps_team_start(4, &team, NULL), 0);
        drps_team_stop(team);
    }
    drps_team_stop(NULL);
}

static void test_team_refuses_wrong_sizes(void **state)
{
    (void)state;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_team *team;
    assert_int_equal(drps_team_start(0, &team, &err), DRPS_E_CONFIG);
    assert_null(team);
    drps_err_clear(&err);
    assert_int_equal(drps_team_start(DRPS_TRAIN_THREADS_MAX + 1, &team, &err), DRPS_E_CONFIG);
    assert_null(team);
}

/* ---- Processors ---- */

/* Two processors that this process may run on, or a skipped test. */
struct two {
    int first, second;
    cpu_set_t all;
};

static struct two two_processors(void)
{
    struct two t = {-1, -1, {{0}}};
    assert_int_equal(sched_getaffinity(0, sizeof(t.all), &t.all), 0);
    for (int i = CPU_SETSIZE - 1; i >= 0; i--) {
        if (!CPU_ISSET((size_t)i, &t.all)) continue;
        t.second = t.first;
        t.first = i;
    }
    if (t.second < 0) skip(); /* one processor */
    return t;
}

static void stay_on(int processor, int other)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)processor, &set);
    if (other >= 0) CPU_SET((size_t)other, &set);
    assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static void test_a_thread_leaves_processors_and_may_come_back(void **state)
{
    (void)state;
    const struct two t = two_processors();
    const int both[] = {t.first, t.second};
    cpu_set_t now;
    stay_on(t.first, -1);
    assert_int_equal(drps_leave_processors(&t.first, 1), 0); /* it may not */
    assert_int_equal(sched_getcpu(), t.first);
    stay_on(t.first, t.second);
    assert_int_equal(drps_leave_processors(both, 2), 0); /* nowhere to go */
    assert_int_equal(drps_leave_processors(&t.first, 1), 1);
    assert_int_equal(drps_leave_processors((const int[]){-1, CPU_SETSIZE}, 2), 1);
    assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
    assert_int_equal(CPU_COUNT(&now), 2);
    assert_true(CPU_ISSET((size_t)t.first, &now) && CPU_ISSET((size_t)t.second, &now));
    assert_int_equal(sched_setaffinity(0, sizeof(t.all), &t.all), 0);
}

struct crowd {
    struct drps_team *team;
    struct two at;
};

/* Member 1 stays on the first processor, where member 0 waits for it. */
static void meet_there(void *ctx, unsigned member)
{
    const struct crowd *c = ctx;
    stay_on(c->at.first, -1);
    if (member == 0) stay_on(c->at.first, c->at.second);
    drps_team_barrier(c->team);
}

static void test_members_part_that_share_a_processor(void **state)
{
    (void)state;
    struct crowd c = {.at = two_processors()};
    struct timespec begin, now;
    assert_int_equal(drps_team_start(2, &c.team, NULL), 0);
    assert_int_equal(drps_team_parted(c.team), 0);
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &begin), 0);
    do {
        drps_team_run(c.team, meet_there, &c);
        assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    } while (!drps_team_parted(c.team) && now.tv_sec - begin.tv_sec < 60);
    assert_true(drps_team_parted(c.team) > 0);
    drps_team_stop(c.team);
    assert_int_equal(sched_setaffinity(0, sizeof(c.at.all), &c.at.all), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_team_barriers_order_the_members),
        cmocka_unit_test(test_team_stops_without_a_run),
        cmocka_unit_test(test_team_refuses_wrong_sizes),
        cmocka_unit_test(test_a_thread_leaves_processors_and_may_come_back),
        cmocka_unit_test(test_members_part_that_share_a_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
