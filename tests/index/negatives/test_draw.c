/* Draws by prefix sums: every number finds the item that a walk finds, draws are distinct and never
 * chosen, and depend on the stream alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "index/negatives/draw.h"

enum { ITEMS = 23 };

/* Items of random masses, some of which a user has chosen. */
struct world {
    uint64_t before[ITEMS + 1], chosen_before[ITEMS + 1];
    uint32_t chosen_items[ITEMS];
    int is_chosen[ITEMS];
    struct masses masses;
    struct chosen chosen;
};

static void make_world(struct world *w, uint64_t seed, unsigned chosen_of_8, int even)
{
    memset(w, 0, sizeof(*w));
    for (uint32_t i = 0; i < ITEMS; i++) {
        const uint64_t mass = even ? 1 : 1 + drps_rng_at(seed, i) % 5;
        w->before[i + 1] = w->before[i] + mass;
        w->is_chosen[i] = drps_rng_at(seed, 100 + i) % 8 < chosen_of_8;
        if (!w->is_chosen[i]) continue;
        w->chosen_items[w->chosen.n] = i;
        w->chosen_before[w->chosen.n + 1] = w->chosen_before[w->chosen.n] + mass;
        w->chosen.n++;
    }
    w->masses = (struct masses){.before = w->before, .items = ITEMS};
    w->chosen.items = w->chosen_items;
    w->chosen.before = w->chosen_before;
}

static void test_draw_finds_what_a_walk_finds(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 200; seed++) {
        struct world w;
        uint64_t at = 0;
        make_world(&w, seed, (unsigned)(seed % 8), seed % 2);
        for (uint32_t i = 0; i < ITEMS; i++)
            for (uint64_t k = w.before[i]; k < w.before[i + 1] && !w.is_chosen[i]; k++, at++) {
                const uint32_t found = draw_find(&w.masses, &w.chosen, at);
                if (found != i)
                    fail_msg("seed %d: number %d: expected item %u, found %u", (int)seed, (int)at,
                             i, found);
            }
        assert_int_equal(at, w.before[ITEMS] - w.chosen_before[w.chosen.n]);
    }
}

static void test_draw_items_are_distinct_and_not_chosen(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 300; seed++) {
        struct world w;
        uint64_t marks[ITEMS] = {0}, mark = 0;
        uint32_t out[ITEMS], again[ITEMS];
        const size_t most = 1 + seed % ITEMS;
        make_world(&w, seed, (unsigned)(seed % 9), seed % 2);
        const size_t free = draw_others(&w.masses, &w.chosen);
        const size_t n = draw_items(&w.masses, &w.chosen, seed, most, marks, &mark, out);
        int seen[ITEMS] = {0};
        if (n != (free < most ? free : most))
            fail_msg("seed %d: of %zu items %zu were wanted, %zu were drawn", (int)seed, free, most,
                     n);
        for (size_t i = 0; i < n; i++)
            if (out[i] >= ITEMS || w.is_chosen[out[i]] || seen[out[i]]++)
                fail_msg("seed %d: item %u is chosen, or drawn twice", (int)seed, out[i]);
        assert_int_equal(draw_items(&w.masses, &w.chosen, seed, most, marks, &mark, again), n);
        assert_memory_equal(out, again, n * sizeof(out[0]));
    }
}

/* One item is nearly all of the mass: what is drawn beside it is found in the end. */
static void test_draw_ends_where_one_item_is_nearly_all(void **state)
{
    uint64_t before[5] = {0, UINT64_C(1) << 60, (UINT64_C(1) << 60) + 1, (UINT64_C(1) << 60) + 2,
                          (UINT64_C(1) << 60) + 3};
    const uint64_t none[1] = {0};
    const struct masses m = {.before = before, .items = 4};
    const struct chosen c = {.before = none};
    uint64_t marks[4] = {0}, mark = 0;
    uint32_t out[3];
    (void)state;
    assert_int_equal(draw_items(&m, &c, 7, 3, marks, &mark, out), 3);
    assert_int_equal(out[0], 0);
    assert_true(out[1] != out[2] && out[1] && out[2]);
}

/* Shares of draws are those of the masses. */
static void test_draw_shares_are_those_of_masses(void **state)
{
    enum { DRAWS = 40000 };
    const uint64_t before[5] = {0, 1, 3, 7, 15};
    const uint32_t chosen_items[1] = {1};
    const uint64_t chosen_before[2] = {0, 2};
    const struct masses m = {.before = before, .items = 4};
    const struct chosen c = {.items = chosen_items, .before = chosen_before, .n = 1};
    uint64_t marks[4] = {0}, mark = 0;
    size_t counts[4] = {0};
    (void)state;
    for (uint64_t i = 0; i < DRAWS; i++) {
        uint32_t item;
        assert_int_equal(draw_items(&m, &c, i, 1, marks, &mark, &item), 1);
        counts[item]++;
    }
    assert_int_equal(counts[1], 0);
    for (uint32_t i = 0; i < 4; i++) { /* 13 is the mass that is left; 5 standard deviations */
        const double share = i == 1 ? 0 : (double)(before[i + 1] - before[i]) / 13;
        const double off = (double)counts[i] - share * DRAWS;
        if (off * off > 25 * share * (1 - share) * DRAWS)
            fail_msg("item %u: expected %g draws, found %zu", i, share * DRAWS, counts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draw_finds_what_a_walk_finds),
        cmocka_unit_test(test_draw_items_are_distinct_and_not_chosen),
        cmocka_unit_test(test_draw_ends_where_one_item_is_nearly_all),
        cmocka_unit_test(test_draw_shares_are_those_of_masses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
