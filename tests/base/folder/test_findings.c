/* Which failures are problems of a folder, which of them are kept, and what becomes of warnings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/folder/drps_findings.h"

static void test_findings_take_problems_alone(void **state)
{
    static const struct {
        int rc, problem;
    } cases[] = {{0, 0},
                 {DRPS_E_CORRUPT, 1},
                 {-ENOENT, 1},
                 {-EIO, 1},
                 {DRPS_E_VERSION, 1},
                 {DRPS_E_NOT_FOUND, 1},
                 {-ENOMEM, 0},
                 {DRPS_E_INTERRUPTED, 0},
                 {DRPS_E_MEMORY_BUDGET, 0},
                 {DRPS_E_FORMAT, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_findings f = {0};
        struct drps_err err = DRPS_ERR_INIT, first = DRPS_ERR_INIT;
        if (cases[i].rc) (void)drps_err_set(&err, cases[i].rc, "what was read");
        assert_int_equal(drps_findings_take(&f, cases[i].rc, &err),
                         cases[i].problem ? 0 : cases[i].rc);
        assert_int_equal(f.problems, cases[i].problem);
        assert_int_equal(err.code, cases[i].problem ? 0 : cases[i].rc);
        assert_int_equal(drps_findings_result(&f, &first), cases[i].problem ? cases[i].rc : 0);
        if (cases[i].problem) assert_string_equal(first.text, "what was read");
    }
}

static void test_findings_keep_the_first_ones(void **state)
{
    struct drps_findings f = {0};
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    for (int i = 0; i < 12; i++)
        drps_findings_add(&f, "problem %d", i);
    assert_int_equal(f.problems, 12);
    assert_string_equal(f.kept[9].text, "problem 9");
    assert_int_equal(drps_findings_result(&f, &err), DRPS_E_CORRUPT);
    assert_string_equal(err.text, "problem 0");
}

static void test_findings_keep_the_first_stranger(void **state)
{
    struct drps_findings f = {0};
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    (void)drps_err_set(&err, DRPS_E_NOT_FOUND, "one");
    drps_findings_stranger(&f, &err);
    drps_err_clear(&err);
    (void)drps_err_set(&err, DRPS_E_NOT_FOUND, "two");
    drps_findings_stranger(&f, &err);
    assert_int_equal(f.strangers, 2);
    assert_string_equal(f.stranger.text, "one");
    assert_int_equal(f.problems, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_findings_take_problems_alone),
        cmocka_unit_test(test_findings_keep_the_first_ones),
        cmocka_unit_test(test_findings_keep_the_first_stranger),
    };
    return cmocka_run_group_tests_name("findings", tests, NULL, NULL);
}
