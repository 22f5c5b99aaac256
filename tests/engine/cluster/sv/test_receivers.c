/* To whom ranks send in a round: as many as asked for, each as often as others, and the same
 * whoever asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/cluster/sv/receivers.h"

enum { MOST = 40 };

static const enum drps_multicast_rule rules[] = {DRPS_MULTICAST_RANDOM, DRPS_MULTICAST_ROBIN,
                                                 DRPS_MULTICAST_FIXED};

static struct receivers of(uint32_t ranks, uint32_t to, enum drps_multicast_rule rule)
{
    return (struct receivers){.ranks = ranks, .to = to, .rule = rule, .seed = 7};
}

static void test_each_rank_sends_to_as_many_as_asked_for(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++)
        for (uint32_t ranks = 2; ranks < 12; ranks++)
            for (uint32_t to = 1; to < ranks; to++) {
                const struct receivers r = of(ranks, to, rules[k]);
                for (uint64_t round = 0; round < 50; round++) {
                    uint32_t senders[MOST] = {0};
                    for (uint32_t from = 0; from < ranks; from++) {
                        uint32_t n = 0;
                        for (uint32_t i = 0; i < ranks; i++) {
                            const int has = receivers_has(&r, round, from, i);
                            assert_false(has && i == from);
                            n += (uint32_t)has;
                            senders[i] += (uint32_t)has;
                        }
                        assert_int_equal(n, to);
                    }
                    for (uint32_t i = 0; i < ranks && rules[k] != DRPS_MULTICAST_RANDOM; i++)
                        assert_int_equal(senders[i], to);
                }
            }
}

static void test_in_turn_a_rank_meets_all_others(void **state)
{
    (void)state;
    for (uint32_t ranks = 2; ranks < 12; ranks++)
        for (uint32_t to = 1; to < ranks; to++) {
            const struct receivers r = of(ranks, to, DRPS_MULTICAST_ROBIN);
            const uint32_t rounds = (ranks - 1 + to - 1) / to;
            for (uint64_t first = 0; first < 30; first++)
                for (uint32_t i = 1; i < ranks; i++) {
                    int met = 0;
                    for (uint64_t round = first; round < first + rounds; round++)
                        met |= receivers_has(&r, round, 0, i);
                    assert_true(met);
                }
        }
}

static void test_random_ones_are_drawn_evenly_and_anew(void **state)
{
    enum { RANKS = 9, TO = 3, ROUNDS = 8000 };
    const struct receivers r = of(RANKS, TO, DRPS_MULTICAST_RANDOM);
    uint32_t got[RANKS][RANKS] = {{0}}, again = 0;
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++)
        for (uint32_t from = 0; from < RANKS; from++)
            for (uint32_t to = 0; to < RANKS; to++) {
                const int has = receivers_has(&r, round, from, to);
                got[from][to] += (uint32_t)has;
                again += (uint32_t)(has && receivers_has(&r, round + 1, from, to));
            }
    for (uint32_t from = 0; from < RANKS; from++)
        for (uint32_t to = 0; to < RANKS; to++)
            if (from != to) /* 3 of 8; a standard deviation is 43 */
                assert_in_range(got[from][to], ROUNDS * 3 / 8 - 220, ROUNDS * 3 / 8 + 220);
    const uint32_t sent = ROUNDS * RANKS * TO; /* and of these 3 of 8 in the next round, too */
    assert_in_range(again, sent * 3 / 8 - sent / 50, sent * 3 / 8 + sent / 50);
}

static void test_fixed_ones_stay(void **state)
{
    const struct receivers r = of(6, 2, DRPS_MULTICAST_FIXED);
    (void)state;
    for (uint64_t round = 0; round < 20; round++) {
        assert_true(receivers_has(&r, round, 4, 5));
        assert_true(receivers_has(&r, round, 4, 0));
        assert_false(receivers_has(&r, round, 4, 1));
    }
}

static void test_broken_links_are_broken_both_ways(void **state)
{
    enum { RANKS = 8, ROUNDS = 2000 };
    struct receivers r = of(RANKS, RANKS - 1, DRPS_MULTICAST_RANDOM);
    uint32_t broken = 0;
    (void)state;
    r.loss = .1;
    for (uint64_t round = 0; round < ROUNDS; round++)
        for (uint32_t a = 0; a < RANKS; a++)
            for (uint32_t b = 0; b < a; b++) {
                const int has = receivers_has(&r, round, a, b);
                assert_int_equal(has, receivers_has(&r, round, b, a));
                broken += (uint32_t)!has;
            }
    assert_in_range(broken, ROUNDS * 28 / 10 - 300, ROUNDS * 28 / 10 + 300); /* 71 */
}

/* Of the formulas' page: 13 ranks of which 4 receive, and 34 of which one does. */
static void test_what_is_received_stands_for_what_is_not(void **state)
{
    const struct receivers some = of(13, 4, DRPS_MULTICAST_RANDOM),
                           one = of(34, 1, DRPS_MULTICAST_ROBIN), all = of(5, 4, 0);
    (void)state;
    assert_true(receivers_scale(&some) == 3.0F);
    assert_true(receivers_scale(&one) == 33.0F);
    assert_true(receivers_scale(&all) == 1.0F);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_rank_sends_to_as_many_as_asked_for),
        cmocka_unit_test(test_in_turn_a_rank_meets_all_others),
        cmocka_unit_test(test_random_ones_are_drawn_evenly_and_anew),
        cmocka_unit_test(test_fixed_ones_stay),
        cmocka_unit_test(test_broken_links_are_broken_both_ways),
        cmocka_unit_test(test_what_is_received_stands_for_what_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
