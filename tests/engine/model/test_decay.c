/* Rates of epochs, against their formulas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "engine/model/drps_decay.h"

static void test_rates_follow_their_formulas(void **state)
{
    (void)state;
    const struct {
        enum drps_decay decay;
        uint64_t e, epochs;
        double want;
    } rows[] = {
        {DRPS_DECAY_USUAL, 7, 10, .5},     {DRPS_DECAY_CONSTANT, 7, 10, .5},
        {DRPS_DECAY_INVERSE, 1, 10, .5},   {DRPS_DECAY_INVERSE, 4, 10, .125},
        {DRPS_DECAY_SQRT, 1, 10, .5},      {DRPS_DECAY_SQRT, 4, 10, .25},
        {DRPS_DECAY_COSINE, 1, 4, .5},     {DRPS_DECAY_COSINE, 2, 4, .25 * (1 + M_SQRT1_2)},
        {DRPS_DECAY_COSINE, 3, 4, .25},    {DRPS_DECAY_COSINE, 4, 4, .25 * (1 - M_SQRT1_2)},
        {DRPS_DECAY_INVERSE, 12, 10, .05},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const float got = drps_decay_rate(rows[i].decay, .5f, rows[i].e, rows[i].epochs);
        if (fabs((double)got - rows[i].want) > 1e-7)
            fail_msg("%s, epoch %u: expected %.9g, found %.9g", drps_decay_name(rows[i].decay),
                     (unsigned)rows[i].e, rows[i].want, (double)got);
    }
}

static void test_names_are_found(void **state)
{
    (void)state;
    enum drps_decay found;
    for (int i = DRPS_DECAY_CONSTANT; i < DRPS_DECAYS; i++) {
        assert_true(drps_decay_find(drps_decay_name((enum drps_decay)i), &found));
        assert_int_equal(found, i);
    }
    assert_false(drps_decay_find("slowly", &found));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates_follow_their_formulas),
        cmocka_unit_test(test_names_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
