/* Units in the order of a number: against the same units in a list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "partition/dynamic/ordered.h"
#include "support/lists.h"

enum { UNITS = 60, MACHINES = 3, NOWHERE = MACHINES };

struct listed {
    uint32_t machine[UNITS];
    double key[UNITS];
};

static int comes_before(const struct listed *l, uint32_t a, double key, uint32_t unit)
{
    return l->key[a] < key || (l->key[a] == key && a < unit);
}

/* The neighbour of (key, unit) by looking at all units. */
static uint32_t look(const struct listed *l, uint32_t machine, double key, uint32_t unit,
                     int before)
{
    uint32_t found = DRPS_ORDERED_NONE;
    for (uint32_t u = 0; u < UNITS; u++) {
        if (l->machine[u] != machine || comes_before(l, u, key, unit) != before) continue;
        if (found == DRPS_ORDERED_NONE || comes_before(l, found, l->key[u], u) == before) found = u;
    }
    return found;
}

static void test_like_a_list(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    struct drps_ordered o = {0};
    struct listed l;
    assert_int_equal(drps_ordered_init(&o, UNITS, MACHINES), 0);
    for (uint32_t u = 0; u < UNITS; u++)
        l.machine[u] = NOWHERE;
    for (int turn = 0; turn < 20000; turn++) {
        const uint32_t u = (uint32_t)random_below(&rng, UNITS);
        if (l.machine[u] != NOWHERE) {
            drps_ordered_remove(&o, l.machine[u], u);
            l.machine[u] = NOWHERE;
        } else {
            l.machine[u] = (uint32_t)random_below(&rng, MACHINES);
            l.key[u] = (double)random_below(&rng, 9);
            drps_ordered_insert(&o, l.machine[u], u, l.key[u]);
        }
        const uint32_t m = (uint32_t)random_below(&rng, MACHINES);
        const double key = (double)random_below(&rng, 11) - 1;
        const uint32_t unit = (uint32_t)random_below(&rng, UNITS + 1);
        assert_int_equal(drps_ordered_from(&o, m, key, unit), look(&l, m, key, unit, 0));
        assert_int_equal(drps_ordered_before(&o, m, key, unit), look(&l, m, key, unit, 1));
    }
    drps_ordered_destroy(&o);
}

static uint32_t depth(const struct drps_ordered *o, uint32_t top)
{
    if (top == DRPS_ORDERED_NONE) return 0;
    const uint32_t left = depth(o, o->left[top]), right = depth(o, o->right[top]);
    return 1 + (left > right ? left : right);
}

/* Keys that rise do not make a list of it: a random tree of 2^16 has a depth of some 40. */
static void test_rising_keys_are_shallow(void **state)
{
    enum { MANY = 1 << 16 };
    (void)state;
    struct drps_ordered o = {0};
    assert_int_equal(drps_ordered_init(&o, MANY, 1), 0);
    for (uint32_t u = 0; u < MANY; u++)
        drps_ordered_insert(&o, 0, u, u);
    assert_in_range(depth(&o, o.root[0]), 17, 60);
    for (uint32_t u = 0; u < MANY; u += 2)
        drps_ordered_remove(&o, 0, u);
    assert_in_range(depth(&o, o.root[0]), 16, 60);
    assert_int_equal(drps_ordered_from(&o, 0, 100, 0), 101);
    drps_ordered_destroy(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_like_a_list),
        cmocka_unit_test(test_rising_keys_are_shallow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
