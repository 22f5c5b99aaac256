/* The team of threads: every member works, barriers order them, runs follow each other. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <cmocka.h>

#include "engine/drps_engine.h"
#include "engine/step/drps_team.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_team_barriers_order_the_members),
        cmocka_unit_test(test_team_stops_without_a_run),
        cmocka_unit_test(test_team_refuses_wrong_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
