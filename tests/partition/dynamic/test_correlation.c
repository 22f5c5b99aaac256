/*
 * Algorithm 3 and demands: an example by hand, what is printed beside what the text says, samples
 * at distance 0, and sums by machine against a plain twin.
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

#include "partition/drps_partition.h"
#include "partition/dynamic/drps_dynamic.h"
#include "support/alloc_fault.h"
#include "support/lists.h"

enum { UNITS = 5 };

static struct drps_recent *recent_of(uint32_t width, uint32_t units, uint32_t samples)
{
    const struct drps_recent_options o = {.width = width, .units = units, .samples = samples};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recent *r;
    assert_ok(drps_recent_new(&o, &r, &err), &err);
    return r;
}

/*
 * Three recent samples at 1, 2 and -4: from 0 their similarities are 1, 1/2 and 1/4, in all 7/4.
 * Units 0 to 4 were changed by: all; the first; the second and third; the third; none.
 */
static struct drps_recent *example(void)
{
    static const float x[] = {1, 2, -4};
    static const uint32_t changed[3][3] = {{0, 1}, {0, 2}, {0, 2, 3}};
    static const size_t n[] = {2, 2, 3};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recent *r = recent_of(1, UNITS, 4);
    for (uint64_t i = 0; i < 3; i++)
        assert_ok(drps_recent_add(r, i, &x[i], changed[i], n[i], &err), &err);
    return r;
}

/* The edges of one sample, which are to be f[UNITS]; 0: there is none. */
static void assert_edges(const struct drps_recent *r, float x,
                         const struct drps_correlation_options *o, const double *f)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_correlation c;
    size_t edges = 0;
    assert_ok(drps_correlation_new(r, &x, 1, o, &c, &err), &err);
    assert_int_equal(c.n, 1);
    assert_int_equal(c.units, UNITS);
    for (uint32_t u = 0; u < UNITS; u++) {
        if (f[u] == 0) continue;
        assert_true(edges < c.starts[1]);
        assert_int_equal(c.unit[edges], u);
        assert_true(fabs(c.weight[edges] - f[u]) < 1e-15);
        edges++;
    }
    assert_int_equal(c.starts[0], 0);
    assert_int_equal(c.starts[1], edges);
    drps_correlation_destroy(&c);
}

static void test_example_by_hand(void **state)
{
    (void)state;
    struct drps_recent *r = example();
    const struct drps_correlation_options o = {.nearest = 3};
    assert_edges(r, 0, &o, (const double[]){1, 4. / 7, 3. / 7, 1. / 7, 0});
    /* Two neighbours are asked for, so that the third sample does not count. */
    const struct drps_correlation_options two = {.nearest = 2};
    assert_edges(r, 0, &two, (const double[]){1, 2. / 3, 1. / 3, 0, 0});
    /* c is not reached, it is exceeded. */
    const struct drps_correlation_options above = {.nearest = 3, .least = 3. / 7};
    assert_edges(r, 0, &above, (const double[]){1, 4. / 7, 0, 0, 0});
    const struct drps_correlation_options one = {.nearest = 3, .least = 1};
    assert_edges(r, 0, &one, (const double[]){0, 0, 0, 0, 0});
    drps_recent_free(r);
}

/* By the printed formula a unit that all r neighbours changed has 1 / r. */
static void test_printed_formula(void **state)
{
    (void)state;
    struct drps_recent *r = example();
    const struct drps_correlation_options o = {.nearest = 3, .printed = 1};
    assert_edges(r, 0, &o, (const double[]){1. / 3, 4. / 21, 3. / 21, 1. / 21, 0});
    const struct drps_correlation_options half = {.nearest = 3, .printed = 1, .least = .34};
    assert_edges(r, 0, &half, (const double[]){0, 0, 0, 0, 0});
    const struct drps_correlation_options more = {.nearest = 9, .printed = 1}; /* three are found */
    assert_edges(r, 0, &more, (const double[]){1. / 3, 4. / 21, 3. / 21, 1. / 21, 0});
    drps_recent_free(r);
}

/* Neighbours at distance 0 alone count, each as much. */
static void test_the_same_sample(void **state)
{
    (void)state;
    static const uint32_t changed[] = {3, 4};
    const float two = 2;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recent *r = example();
    const struct drps_correlation_options o = {.nearest = 3};
    assert_edges(r, 2, &o, (const double[]){1, 0, 1, 0, 0});
    assert_ok(drps_recent_add(r, 9, &two, changed, 2, &err), &err);
    assert_edges(r, 2, &o, (const double[]){.5, 0, .5, .5, .5});
    drps_recent_free(r);
}

/* All that is nearly alike: similarities that differ in the last bits still add up to 1. */
static void test_all_is_one(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    const uint32_t unit = 4;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recent *r = recent_of(1, UNITS, 50);
    for (uint64_t i = 0; i < 50; i++) {
        const float x = 1e-3f * (float)(1 + random_below(&rng, 1000));
        assert_ok(drps_recent_add(r, i, &x, &unit, 1, &err), &err);
    }
    for (uint32_t nearest = 1; nearest < 60; nearest++) {
        const float zero = 0;
        const struct drps_correlation_options o = {.nearest = nearest};
        struct drps_correlation c;
        assert_ok(drps_correlation_new(r, &zero, 1, &o, &c, &err), &err);
        assert_int_equal(c.starts[1], 1);
        assert_true(c.weight[0] == 1);
        drps_correlation_destroy(&c);
    }
    drps_recent_free(r);
}

static void test_nothing_known(void **state)
{
    (void)state;
    struct drps_recent *r = recent_of(1, UNITS, 4);
    const struct drps_correlation_options o = {.nearest = 3};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_correlation c;
    assert_edges(r, 0, &o, (const double[]){0, 0, 0, 0, 0});
    assert_ok(drps_correlation_new(r, NULL, 0, &o, &c, &err), &err);
    assert_int_equal(c.starts[0], 0);
    drps_correlation_destroy(&c);
    drps_recent_free(r);
}

static void test_bad_options_and_values(void **state)
{
    (void)state;
    static const struct drps_correlation_options bad[] = {
        {.nearest = 0}, {.nearest = 1, .least = -.1}, {.nearest = 1, .least = NAN}};
    const struct drps_correlation_options good = {.nearest = 1};
    const float x[] = {0, 1, INFINITY};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_correlation c;
    struct drps_recent *r = example();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(drps_correlation_new(r, x, 1, &bad[i], &c, NULL), DRPS_E_CONFIG);
        assert_null(c.starts);
    }
    assert_int_equal(drps_correlation_new(r, x, 3, &good, &c, &err), -EINVAL);
    assert_non_null(strstr(err.text, "sample 2 of the batch"));
    assert_null(c.starts);
    drps_recent_free(r);
}

/* ---- Demands ---- */

/* Samples 0 and 2 are on machine 1, sample 1 on machine 0; machine 2 has none. */
static void test_demands_by_hand(void **state)
{
    (void)state;
    size_t starts[] = {0, 2, 4, 6};
    uint32_t unit[] = {0, 2, 0, 1, 0, 2}, owner[] = {1, 0, 1}, size[] = {10, 0, 4};
    double weight[] = {.5, 1, .25, 1, .5, .5};
    const struct drps_correlation c = {3, 3, starts, unit, weight};
    const struct drps_demand sums[] = {{0, 2.5}, {1, 10}, {1, 6}};
    const struct drps_demand chances[] = {{0, 2.5}, {1, 7.5}, {1, 4}};
    for (int once = 0; once <= 1; once++) {
        const struct drps_demand *want = once ? chances : sums;
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_demands d;
        assert_ok(drps_demands_new(&c, owner, size, 3, once, &d, &err), &err);
        assert_int_equal(d.n, 3);
        assert_int_equal(d.machines, 3);
        assert_ptr_equal(d.size, size);
        assert_int_equal(d.starts[1], 2);
        assert_int_equal(d.starts[2], 2); /* all of unit 1 is pruned: nobody needs it */
        assert_int_equal(d.starts[3], 3);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(d.demand[i].machine, want[i].machine);
            assert_true(d.demand[i].amount == want[i].amount);
        }
        drps_demands_destroy(&d);
    }
}

/* Against a table of all units and machines. */
static void test_demands_like_a_table(void **state)
{
    enum { N = 30, MACHINES = 4 };
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int turn = 0; turn < 200; turn++) {
        struct drps_err err = DRPS_ERR_INIT;
        size_t starts[N + 1] = {0};
        uint32_t unit[N * UNITS], owner[N], size[UNITS];
        double weight[N * UNITS], sum[UNITS][MACHINES] = {0}, none[UNITS][MACHINES];
        const int once = turn % 2;
        for (int u = 0; u < UNITS; u++)
            for (int m = 0; m < MACHINES; m++)
                none[u][m] = 1;
        for (int u = 0; u < UNITS; u++)
            size[u] = (uint32_t)random_below(&rng, 3);
        for (size_t s = 0; s < N; s++) {
            owner[s] = (uint32_t)random_below(&rng, MACHINES);
            starts[s + 1] = starts[s];
            for (uint32_t u = 0; u < UNITS; u++) {
                if (random_below(&rng, 3)) continue;
                const double f = (double)(1 + random_below(&rng, 16)) / 16;
                weight[starts[s + 1]] = f;
                unit[starts[s + 1]++] = u;
                sum[u][owner[s]] += f;
                none[u][owner[s]] *= 1 - f;
            }
        }
        const struct drps_correlation c = {N, UNITS, starts, unit, weight};
        struct drps_demands d;
        assert_ok(drps_demands_new(&c, owner, size, MACHINES, once, &d, &err), &err);
        for (uint32_t u = 0; u < UNITS; u++) {
            size_t t = d.starts[u];
            for (uint32_t m = 0; m < MACHINES; m++) {
                if (!size[u] || sum[u][m] == 0) continue;
                assert_true(t < d.starts[u + 1]);
                assert_int_equal(d.demand[t].machine, m);
                const double want = size[u] * (once ? 1 - none[u][m] : sum[u][m]);
                assert_true(fabs(d.demand[t++].amount - want) < 1e-12);
            }
            assert_int_equal(t, d.starts[u + 1]);
        }
        drps_demands_destroy(&d);
    }
}

static void test_bad_machines(void **state)
{
    (void)state;
    size_t starts[] = {0, 1};
    uint32_t unit[] = {0}, owner[] = {2}, size[] = {1};
    double weight[] = {1};
    const struct drps_correlation c = {1, 1, starts, unit, weight};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_demands d;
    assert_int_equal(drps_demands_new(&c, owner, size, 2, 0, &d, &err), -EINVAL);
    assert_non_null(strstr(err.text, "sample 0 is on machine 2"));
    assert_int_equal(drps_demands_new(&c, owner, size, 0, 0, &d, NULL), DRPS_E_CONFIG);
    assert_int_equal(drps_demands_new(&c, owner, size, DRPS_MACHINES_MAX + 1, 0, &d, NULL),
                     DRPS_E_CONFIG);
    assert_null(d.starts);
}

/* All that asks for memory, from recent samples to new owners. */
static int whole_way(uint32_t *owner, struct drps_err *err)
{
    static const float x[] = {1, 2, -4};
    static const uint32_t changed[] = {0, 1, 2, 3}, at[] = {0, 1, 2}, size[] = {1, 1, 1, 1, 1};
    const struct drps_recent_options recent = {.width = 1, .units = UNITS, .samples = 3};
    const struct drps_correlation_options nearest = {.nearest = 2};
    const struct drps_reallocate_options held = {.load = DRPS_LOAD_HELD, .ahead = 3};
    struct drps_recent *r;
    struct drps_correlation c = {0};
    struct drps_demands d = {0};
    struct drps_reallocation done;
    int rc = drps_recent_new(&recent, &r, err);
    for (uint64_t i = 0; i < 3 && rc == 0; i++)
        rc = drps_recent_add(r, i, &x[i], changed, 4, err);
    if (rc == 0) rc = drps_correlation_new(r, x, 3, &nearest, &c, err);
    if (rc == 0) rc = drps_demands_new(&c, at, size, 3, 0, &d, err);
    if (rc == 0) rc = drps_reallocate(&d, &held, owner, &done, err);
    drps_recent_free(r);
    drps_correlation_destroy(&c);
    drps_demands_destroy(&d);
    return rc;
}

static void test_each_allocation_fails(void **state)
{
    (void)state;
    int fired = 1;
    long k = 1;
    for (; fired; k++) {
        struct drps_err err = DRPS_ERR_INIT;
        uint32_t owner[UNITS] = {0};
        alloc_fault_arm(FAULT_MEMORY, k);
        const int rc = whole_way(owner, &err);
        fired = alloc_fault_disarm();
        assert_int_equal(rc, fired ? -ENOMEM : 0);
        for (int u = 0; u < UNITS && fired; u++)
            assert_int_equal(owner[u], 0);
        if (fired) assert_true(strlen(err.text) > 0);
        if (!fired) assert_int_not_equal(owner[0] + owner[1] + owner[2] + owner[3], 0);
    }
    assert_true(k > 20); /* there is that much to fail */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example_by_hand), cmocka_unit_test(test_printed_formula),
        cmocka_unit_test(test_the_same_sample), cmocka_unit_test(test_all_is_one),
        cmocka_unit_test(test_nothing_known),   cmocka_unit_test(test_bad_options_and_values),
        cmocka_unit_test(test_demands_by_hand), cmocka_unit_test(test_demands_like_a_table),
        cmocka_unit_test(test_bad_machines),    cmocka_unit_test(test_each_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
