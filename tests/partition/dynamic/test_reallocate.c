/*
 * Algorithm 4: examples by hand, a literal twin that computes every load anew, what no move may
 * break, the search in order against the search of all, and demands that are not trusted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "partition/drps_partition.h"
#include "partition/dynamic/drps_dynamic.h"
#include "support/lists.h"

enum { UNITS = 40, MACHINES = 6 };

/* Demands as a table. */
struct table {
    size_t n;
    uint32_t machines;
    uint32_t size[UNITS], owner[UNITS];
    double amount[UNITS][MACHINES];
    size_t starts[UNITS + 1];
    struct drps_demand demand[UNITS * MACHINES];
};

static struct drps_demands demands_of(struct table *t)
{
    size_t n = 0;
    t->starts[0] = 0;
    for (size_t u = 0; u < t->n; u++) {
        for (uint32_t m = 0; m < t->machines; m++)
            if (t->amount[u][m] > 0) t->demand[n++] = (struct drps_demand){m, t->amount[u][m]};
        t->starts[u + 1] = n;
    }
    return (struct drps_demands){t->n, t->machines, t->size, t->starts, t->demand};
}

/* whole: amounts are small whole numbers, so that sums are exact and many are equal. */
static void random_table(struct table *t, struct random_source *rng, int whole)
{
    memset(t, 0, sizeof(*t));
    t->n = 1 + (size_t)random_below(rng, UNITS);
    t->machines = 1 + (uint32_t)random_below(rng, MACHINES);
    const uint64_t crowded = random_below(rng, 2); /* most units are on a few machines */
    for (size_t u = 0; u < t->n; u++) {
        t->size[u] = (uint32_t)random_below(rng, 4);
        t->owner[u] = (uint32_t)random_below(
            rng, crowded && random_below(rng, 4) ? 1 + t->machines / 3 : t->machines);
        for (uint32_t m = 0; m < t->machines; m++)
            if (random_below(rng, 2))
                t->amount[u][m] =
                    whole ? (double)random_below(rng, 12) : drps_unit_double(random_u64(rng)) * 10;
    }
}

static struct drps_reallocation reallocate(struct table *t, const struct drps_reallocate_options *o)
{
    const struct drps_demands d = demands_of(t);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_reallocation done;
    assert_ok(drps_reallocate(&d, o, t->owner, &done, &err), &err);
    return done;
}

/* ---- By hand ---- */

/* Units of 8, 5, 3 and 2 on machine 0, of 4 on machine 1, of 1 on machine 2. */
static struct table example(void)
{
    static const double amount[] = {8, 5, 3, 2, 4, 1};
    static const uint32_t owner[] = {0, 0, 0, 0, 1, 2};
    struct table t = {.n = 6, .machines = 3};
    for (size_t u = 0; u < t.n; u++) {
        t.size[u] = 1;
        t.owner[u] = owner[u];
        t.amount[u][u % 3] = amount[u]; /* who needs it does not matter */
    }
    return t;
}

/*
 * Loads 18, 4, 1: half of the difference is 8.5, the unit of 8 goes to machine 2: 10, 4, 9.
 * Half of 6 is 3: the unit of 3 goes to machine 1: 7, 7, 9. Of machines 0 and 1 the first gets the
 * unit of 1: 8, 7, 8. The next move would leave a machine with 8: it gains 0, which is below 1.
 */
static void test_held_by_hand(void **state)
{
    (void)state;
    static const uint32_t want[] = {2, 0, 1, 0, 1, 0};
    for (int plain = 0; plain <= 1; plain++) {
        const struct drps_reallocate_options o = {.load = DRPS_LOAD_HELD, .plain = plain};
        struct table t = example();
        const struct drps_reallocation done = reallocate(&t, &o);
        assert_memory_equal(t.owner, want, sizeof(want));
        assert_int_equal(done.moves, 3);
        assert_int_equal(done.moved, 3);
        assert_true(done.before == 18);
        assert_true(done.after == 8);
    }
}

/* A gain that equals the cost is taken, one below is not; for two rounds it counts twice. */
static void test_gain_against_cost(void **state)
{
    (void)state;
    static const struct {
        uint32_t size;
        double rounds;
        uint64_t moves;
    } cases[] = {{8, 0, 1}, {9, 0, 0}, {9, 1, 0}, {16, 2, 1}, {17, 2, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct drps_reallocate_options o = {.load = DRPS_LOAD_HELD,
                                                  .rounds = cases[i].rounds};
        struct table t = example();
        for (size_t u = 0; u < t.n; u++)
            t.size[u] = 100;
        t.size[0] = cases[i].size; /* the first move gains 8 */
        const struct drps_reallocation done = reallocate(&t, &o);
        assert_int_equal(done.moves, cases[i].moves);
        assert_int_equal(done.moved, cases[i].moves * cases[i].size);
    }
}

/*
 * By what crosses the network. Machine 0 has both units: the first is needed by 1 and 2 (10 and 4),
 * the second by 0 and 1 (2 and 3). Loads: 14 + 3, 10 + 3, 4. Half of 13 is 6.5, as far from 10 (of
 * the first, which machine 2 would then have at hand) as from 3: the first moves. Loads are 3, 13
 * and 10 then, and machine 1 has nothing to give.
 */
static void test_network_by_hand(void **state)
{
    (void)state;
    for (int plain = 0; plain <= 1; plain++)
        for (uint32_t size = 4; size <= 5; size++) {
            const struct drps_reallocate_options o = {.plain = plain};
            struct table t = {.n = 2, .machines = 3, .size = {size, size}};
            double load[3];
            t.amount[0][1] = 10;
            t.amount[0][2] = 4;
            t.amount[1][0] = 2;
            t.amount[1][1] = 3;
            const struct drps_demands d = demands_of(&t);
            drps_dynamic_loads(&d, t.owner, DRPS_LOAD_NETWORK, load);
            assert_true(load[0] == 17 && load[1] == 13 && load[2] == 4);
            drps_dynamic_loads(&d, t.owner, DRPS_LOAD_HELD, load);
            assert_true(load[0] == 19 && load[1] == 0 && load[2] == 0);
            const struct drps_reallocation done = reallocate(&t, &o);
            assert_int_equal(done.moves, size == 4);
            assert_int_equal(t.owner[0], size == 4 ? 2 : 0);
            assert_int_equal(t.owner[1], 0);
            assert_true(done.after == (size == 4 ? 13 : 17));
        }
}

/* Two machines have the largest load: no single move gains, two together do. */
static void test_ahead(void **state)
{
    (void)state;
    static const struct {
        uint32_t size, ahead;
        uint64_t moves;
    } cases[] = {{1, 0, 0}, {1, 1, 2}, {2, 1, 2}, {3, 1, 0}, {3, 9, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        for (int plain = 0; plain <= 1; plain++) {
            const struct drps_reallocate_options o = {
                .load = DRPS_LOAD_HELD, .ahead = cases[i].ahead, .plain = plain};
            struct table t = {.n = 6, .machines = 3};
            uint32_t before[6];
            for (uint32_t u = 0; u < 6; u++) {
                t.size[u] = cases[i].size;
                t.owner[u] = before[u] = u / 3;
                t.amount[u][0] = 4;
            }
            const struct drps_reallocation done = reallocate(&t, &o);
            assert_int_equal(done.moves, cases[i].moves);
            assert_true(done.before == 12);
            assert_true(done.after == (cases[i].moves ? 8 : 12));
            if (!cases[i].moves) assert_memory_equal(t.owner, before, sizeof(before));
        }
}

static void test_trigger(void **state)
{
    (void)state;
    const double load[] = {5, 2, 7.5};
    assert_true(drps_dynamic_uneven(load, 3, 5.4));
    assert_false(drps_dynamic_uneven(load, 3, 5.5));
    assert_false(drps_dynamic_uneven(load, 1, 0));
}

/* ---- A literal twin ---- */

static double twin_load(const struct table *t, enum drps_dynamic_load what, uint32_t machine)
{
    double sum = 0;
    for (size_t u = 0; u < t->n; u++)
        for (uint32_t m = 0; m < t->machines; m++) {
            const int own = t->owner[u] == machine;
            if (what == DRPS_LOAD_HELD ? own : own != (m == machine)) sum += t->amount[u][m];
        }
    return sum;
}

static uint32_t twin_extreme(const struct table *t, enum drps_dynamic_load what, int largest)
{
    uint32_t best = 0;
    for (uint32_t m = 1; m < t->machines; m++) {
        const double a = twin_load(t, what, m), b = twin_load(t, what, best);
        if (largest ? a > b : a < b) best = m;
    }
    return best;
}

static double twin_largest(const struct table *t, enum drps_dynamic_load what)
{
    return twin_load(t, what, twin_extreme(t, what, 1));
}

/* One turn of the loop as printed; 0: it breaks. */
static int twin_turn(struct table *t, enum drps_dynamic_load what)
{
    const uint32_t most = twin_extreme(t, what, 1), least = twin_extreme(t, what, 0);
    const double before = twin_largest(t, what);
    size_t best = SIZE_MAX;
    double difference = INFINITY;
    if (most == least) return 0;
    for (size_t u = 0; u < t->n; u++) {
        if (t->owner[u] != most || !t->size[u]) continue;
        t->owner[u] = least;
        const double now = fabs(twin_load(t, what, most) - twin_load(t, what, least));
        t->owner[u] = most;
        if (now < difference) {
            difference = now;
            best = u;
        }
    }
    if (best == SIZE_MAX) return 0;
    t->owner[best] = least;
    if (before - twin_largest(t, what) >= t->size[best]) return 1;
    t->owner[best] = most;
    return 0;
}

static void test_like_the_twin(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    uint64_t moves = 0;
    for (int turn = 0; turn < 3000; turn++) {
        struct table t, twin;
        const struct drps_reallocate_options o = {
            .load = turn % 2 ? DRPS_LOAD_HELD : DRPS_LOAD_NETWORK, .plain = turn / 2 % 2};
        uint64_t turns = 0;
        random_table(&t, &rng, 1);
        twin = t;
        const struct drps_reallocation done = reallocate(&t, &o);
        assert_true(done.before == twin_largest(&twin, o.load));
        while (twin_turn(&twin, o.load))
            turns++;
        assert_memory_equal(t.owner, twin.owner, sizeof(t.owner));
        assert_int_equal(done.moves, turns);
        assert_true(done.after == twin_largest(&twin, o.load));
        moves += turns;
    }
    assert_true(moves > 3000);
}

/* ---- What no move may break ---- */

static void test_never_worse(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int turn = 0; turn < 3000; turn++) {
        struct table t, start;
        struct drps_reallocate_options o = {.load = turn % 2 ? DRPS_LOAD_HELD : DRPS_LOAD_NETWORK,
                                            .rounds = (double)random_below(&rng, 4),
                                            .ahead = (uint32_t)random_below(&rng, 6)};
        const double rounds = o.rounds > 0 ? o.rounds : 1;
        uint64_t moved = 0;
        random_table(&start, &rng, 1);
        t = start;
        const struct drps_reallocation done = reallocate(&t, &o);
        for (size_t u = 0; u < t.n; u++) {
            moved += t.owner[u] != start.owner[u] ? t.size[u] : 0;
            if (!t.size[u]) assert_int_equal(t.owner[u], start.owner[u]); /* pruned: it stays */
        }
        assert_int_equal(done.moved, moved);
        assert_true(done.after == twin_largest(&t, o.load));
        assert_true(done.after <= done.before);
        assert_true(rounds * done.after + (double)moved <= rounds * done.before);
        /* What came out is a fixed point. */
        const struct drps_reallocation again = reallocate(&t, &o);
        assert_int_equal(again.moves, 0);
        assert_int_equal(again.moved, 0);
        /* Move by move the largest load never grows, and the end is the same. */
        struct table step = start;
        double last = done.before;
        o.ahead = 0;
        o.most_moves = 1;
        for (int moves = 0; moves < 1000; moves++) {
            const struct drps_reallocation one = reallocate(&step, &o);
            assert_true(one.moves <= 1);
            assert_true(one.after <= last);
            last = one.after;
            if (!one.moves) break;
        }
        o.most_moves = 0;
        t = start;
        reallocate(&t, &o);
        assert_memory_equal(t.owner, step.owner, sizeof(t.owner));
    }
}

/* In order and by looking at all: the same to the last bit, also of sums that are rounded. */
static void test_search_in_order(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    uint64_t moves = 0;
    for (int turn = 0; turn < 6000; turn++) {
        struct table t, plain;
        struct drps_reallocate_options o = {.load = turn % 2 ? DRPS_LOAD_HELD : DRPS_LOAD_NETWORK,
                                            .rounds = (double)random_below(&rng, 4),
                                            .ahead = (uint32_t)random_below(&rng, 9)};
        random_table(&t, &rng, turn % 3 == 0);
        plain = t;
        const struct drps_reallocation a = reallocate(&t, &o);
        o.plain = 1;
        const struct drps_reallocation b = reallocate(&plain, &o);
        assert_memory_equal(t.owner, plain.owner, sizeof(t.owner));
        assert_int_equal(a.moves, b.moves);
        assert_int_equal(a.moved, b.moved);
        assert_true(a.before == b.before);
        assert_true(a.after == b.after);
        moves += a.moves;
    }
    assert_true(moves > 6000);
}

/* ---- Small, large and hostile ---- */

static void test_nothing_to_move(void **state)
{
    (void)state;
    const struct drps_reallocate_options o = {.load = DRPS_LOAD_HELD, .ahead = 5};
    struct table t = {.n = 0, .machines = 3};
    assert_int_equal(reallocate(&t, &o).moves, 0); /* no units */
    t = (struct table){.n = 2, .machines = 1, .size = {1, 1}};
    t.amount[0][0] = 9;
    assert_int_equal(reallocate(&t, &o).moves, 0); /* one machine */
    t = (struct table){.n = 2, .machines = 2};
    t.amount[0][0] = t.amount[1][0] = 9;
    assert_int_equal(reallocate(&t, &o).moves, 0); /* all is pruned */
    t = (struct table){.n = 2, .machines = 2, .size = {1, 1}};
    const struct drps_reallocation done = reallocate(&t, &o); /* nobody needs anything */
    assert_int_equal(done.moves, 0);
    assert_true(done.before == 0 && done.after == 0);
}

static void test_bad_demands(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        struct drps_demand demand[2];
        size_t starts[3];
        uint32_t owner, machines;
    } cases[] = {
        {"fine", NULL, {{0, 1}, {1, 1}}, {0, 2, 2}, 1, 2},
        {"owner", "unit 0 is on machine 2", {{0, 1}, {1, 1}}, {0, 2, 2}, 2, 2},
        {"machine", "unit 0", {{0, 1}, {2, 1}}, {0, 2, 2}, 1, 2},
        {"twice", "does not rise", {{1, 1}, {1, 1}}, {0, 2, 2}, 1, 2},
        {"negative", "needs -1", {{0, -1}, {1, 1}}, {0, 2, 2}, 1, 2},
        {"no number", "needs", {{0, NAN}, {1, 1}}, {0, 2, 2}, 1, 2},
        {"infinite", "needs inf", {{0, 1}, {1, INFINITY}}, {0, 2, 2}, 1, 2},
        {"sum", "too large", {{0, 1e308}, {1, 1e308}}, {0, 2, 2}, 1, 2},
        {"first start", "start at 0", {{0, 1}, {1, 1}}, {1, 2, 2}, 1, 2},
        {"falling start", "unit 1 end", {{0, 1}, {1, 1}}, {0, 2, 1}, 1, 2},
        {"no machines", "0 machines", {{0, 1}, {1, 1}}, {0, 2, 2}, 0, 0},
        {"machines", "65537 machines", {{0, 1}, {1, 1}}, {0, 2, 2}, 0, DRPS_MACHINES_MAX + 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_demand demand[2];
        size_t starts[3];
        const uint32_t size[2] = {1, 1};
        uint32_t owner[2] = {cases[i].owner, cases[i].owner};
        memcpy(demand, cases[i].demand, sizeof(demand));
        memcpy(starts, cases[i].starts, sizeof(starts));
        const struct drps_demands d = {2, cases[i].machines, size, starts, demand};
        const struct drps_reallocate_options o = {0};
        struct drps_reallocation done = {.moves = 9};
        const int rc = drps_reallocate(&d, &o, owner, &done, &err);
        if (rc != (cases[i].text ? -EINVAL : 0) ||
            (cases[i].text && !strstr(err.text, cases[i].text)))
            fail_msg("%s: %d '%s'", cases[i].name, rc, err.text);
        assert_int_equal(done.moves, 0);
        assert_int_equal(owner[0], cases[i].owner);
        assert_int_equal(owner[1], cases[i].owner);
    }
}

static void test_bad_options(void **state)
{
    (void)state;
    static const struct drps_reallocate_options cases[] = {
        {.rounds = -1}, {.rounds = NAN}, {.rounds = INFINITY}, {.load = (enum drps_dynamic_load)2}};
    struct table t = example();
    const struct drps_demands d = demands_of(&t);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_reallocation done;
        assert_int_equal(drps_reallocate(&d, &cases[i], t.owner, &done, NULL), DRPS_E_CONFIG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held_by_hand),    cmocka_unit_test(test_gain_against_cost),
        cmocka_unit_test(test_network_by_hand), cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_trigger),         cmocka_unit_test(test_like_the_twin),
        cmocka_unit_test(test_never_worse),     cmocka_unit_test(test_search_in_order),
        cmocka_unit_test(test_nothing_to_move), cmocka_unit_test(test_bad_demands),
        cmocka_unit_test(test_bad_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
