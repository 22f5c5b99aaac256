/* Sums without rounding: any order, any division into parts, against sums of wide integers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/drps_rng.h"
#include "base/exact/drps_exact.h"

static struct drps_exact sum_of(const double *x, size_t n)
{
    struct drps_exact s = {0};
    for (size_t i = 0; i < n; i++)
        drps_exact_add(&s, x[i]);
    return s;
}

static void test_exact_sums_by_hand(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double x[6];
        double want;
    } cases[] = {
        {"nothing", {0}, 0},
        {"whole numbers", {1, 2, -7}, -4},
        {"what plain sums lose", {1e100, 1, -1e100, 1}, 2},
        {"far apart", {1, 0x1p-140, -1}, 0x1p-140},
        {"negative", {0.5, -0.75, -100}, -100.25},
        {"large whole numbers", {0x1p53, 1, 1}, 0x1p53 + 2},
        {"between two doubles, to the even one", {0x1p53, 1}, 0x1p53},
        {"a little more", {0x1p53, 1, 0x1p-300}, 0x1p53 + 2},
        {"a little less", {0x1p53, 1, -0x1p-300}, 0x1p53},
        {"smallest and largest products of floats", {0x1p-447, 0x1p383}, 0x1p383},
        {"smallest product alone", {0x1p383, 0x1p-447, -0x1p383}, 0x1p-447},
        {"below what counts", {0x1p-600, 0x1p-1074}, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct drps_exact s = sum_of(cases[i].x, 6);
        if (drps_exact_value(&s) != cases[i].want)
            fail_msg("%s: %.17g, expected %.17g", cases[i].name, drps_exact_value(&s),
                     cases[i].want);
    }
}

/* Numbers of 2^-40 and more, so that 128 bits hold their sum. */
static double random_number(uint64_t seed, uint64_t i)
{
    const uint64_t bits = drps_rng_at(seed, i);
    const double x = (double)(bits >> 40) * (bits & 1 ? 0x1p-40 : bits & 2 ? 0x1p-20 : 1);
    return bits & 4 ? -x : x;
}

static void test_exact_sums_are_those_of_integers(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct drps_exact s = {0};
        __int128 want = 0;
        for (uint64_t i = 0; i < 5000; i++) {
            const double x = random_number(seed, i);
            drps_exact_add(&s, x);
            want += (__int128)(x * 0x1p40);
            if (drps_exact_value(&s) != ldexp((double)want, -40))
                fail_msg("seed %llu, after %llu: %.17g", (unsigned long long)seed,
                         (unsigned long long)i + 1, drps_exact_value(&s));
        }
    }
}

static void test_exact_parts_are_the_whole(void **state)
{
    enum { N = 1000 };
    (void)state;
    struct drps_exact whole = {0}, part[3] = {{0}}, sum = {0};
    for (uint64_t i = 0; i < N; i++) {
        const double x = ldexp(random_number(5, i), (int)(drps_rng_at(6, i) % 300) - 150);
        drps_exact_add(&whole, x);
        drps_exact_add(&part[drps_rng_at(7, i) % 3], x);
    }
    for (int p = 2; p >= 0; p--)
        drps_exact_merge(&sum, &part[p]);
    assert_true(drps_exact_value(&sum) == drps_exact_value(&whole));
}

/* (x + y) f is x f + y f, whose products are exact here. */
static void test_exact_times_a_factor(void **state)
{
    (void)state;
    static const double factors[] = {1, -1, 3, -0.1f, 0x1p-60, 1e20, 0};
    for (size_t k = 0; k < sizeof(factors) / sizeof(factors[0]); k++) {
        struct drps_exact sum = {0}, times = {0}, want = {0};
        for (uint64_t i = 0; i < 300; i++) {
            const double x = (double)(float)random_number(9, i);
            drps_exact_add(&sum, x);
            drps_exact_add(&want, x * (double)(float)factors[k]);
        }
        drps_exact_add_times(&times, &sum, (double)(float)factors[k]);
        if (drps_exact_value(&times) != drps_exact_value(&want))
            fail_msg("%g: %.17g, expected %.17g", factors[k], drps_exact_value(&times),
                     drps_exact_value(&want));
    }
}

/* Numbers at and beside the bounds of what is counted in units, and sums of more than 64 bits of
 * them. */
static void test_exact_units_have_bounds(void **state)
{
    (void)state;
    static const double sizes[] = {0x1p-48, 0x1p-49,          0x1.8p-48, 0x1p15 - 0x1p-37,
                                   0x1p15,  0x1p15 + 0x1p-37, 0x1p16,    0x1p15 - 1};
    struct drps_exact s = {0};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct drps_exact one = {0}, none = {0};
        drps_exact_add(&one, -sizes[i]);
        assert_true(drps_exact_value(&one) == -sizes[i]);
        drps_exact_add_slowly(&one, sizes[i]);
        assert_true(drps_exact_value(&one) == 0);
        drps_exact_add_times(&none, &one, 3);
        assert_true(drps_exact_value(&none) == 0);
    }
    for (int i = 0; i < 1000; i++)
        drps_exact_add(&s, -0x1p14);
    assert_true(s.units == -((__int128)1000 << 62));
    drps_exact_add(&s, 0x1p-48);
    assert_true(drps_exact_value(&s) == -1000 * 0x1p14 + 0x1p-48);
    drps_exact_add(&s, -0x1p-48);
    drps_exact_merge(&s, &s);
    assert_true(drps_exact_value(&s) == -2000 * 0x1p14);
}

/* Digits are carried before they overflow: so many additions are too long for a test, so it begins
 * shortly before. */
static void test_exact_digits_are_carried(void **state)
{
    (void)state;
    struct drps_exact s = {0};
    drps_exact_add_slowly(&s, 0x1.fffffffep-1); /* all 32 bits of a digit */
    s.added = (1u << 29) - 3;
    const int64_t before = s.digit[15];
    for (int i = 0; i < 2; i++)
        drps_exact_add_slowly(&s, 0x1.fffffffep-1);
    assert_true(s.digit[15] == 3 * before);
    drps_exact_add_slowly(&s, 0x1.fffffffep-1);
    assert_true(s.digit[15] < 2 * before);
    assert_true(drps_exact_value(&s) == 4 * 0x1.fffffffep-1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_sums_by_hand),
        cmocka_unit_test(test_exact_sums_are_those_of_integers),
        cmocka_unit_test(test_exact_parts_are_the_whole),
        cmocka_unit_test(test_exact_times_a_factor),
        cmocka_unit_test(test_exact_units_have_bounds),
        cmocka_unit_test(test_exact_digits_are_carried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
