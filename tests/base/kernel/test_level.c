/* Levels of instructions: which are here, which runs, and how one is set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/kernel/drps_level.h"

/* The best of those that are here. */
static enum drps_level best(void)
{
    enum drps_level level = DRPS_LEVELS;
    while (!drps_level_is_here(--level))
        assert_int_not_equal(level, DRPS_LEVEL_BASELINE);
    return level;
}

static void test_level_highest_runs_unless_told(void **state)
{
    (void)state;
    assert_int_equal(drps_level(), best());
    assert_int_equal(drps_level_set("baseline", NULL), 0);
    assert_int_equal(drps_level(), DRPS_LEVEL_BASELINE);
    assert_int_equal(drps_level_set(NULL, NULL), 0);
    assert_int_equal(drps_level(), best());
}

static void test_level_is_set_where_it_is_here(void **state)
{
    (void)state;
    assert_true(drps_level_is_here(DRPS_LEVEL_BASELINE));
    for (enum drps_level level = 0; level < DRPS_LEVELS; level++) {
        struct drps_err err = DRPS_ERR_INIT;
        const int rc = drps_level_set(drps_level_name(level), &err);
        assert_int_equal(rc, drps_level_is_here(level) ? 0 : DRPS_E_CONFIG);
        if (rc == 0)
            assert_int_equal(drps_level(), level);
        else
            assert_non_null(strstr(err.text, drps_level_name(level)));
    }
    assert_int_equal(drps_level_set(NULL, NULL), 0);
}

static void test_level_unknown_names_change_nothing(void **state)
{
    static const char *const names[] = {"", "AVX2", "avx", "avx2 ", "unknown"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        assert_int_equal(drps_level_set(names[i], &err), DRPS_E_CONFIG);
        assert_non_null(strstr(err.text, "none of baseline, avx2, avx512"));
        assert_int_equal(drps_level(), best());
    }
    assert_string_equal(drps_level_name(DRPS_LEVELS), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_level_highest_runs_unless_told),
        cmocka_unit_test(test_level_is_set_where_it_is_here),
        cmocka_unit_test(test_level_unknown_names_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
