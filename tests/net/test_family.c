/* Processes of ranks: how they ended is known once they are waited for. */
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <setjmp.h>
#include <cmocka.h>

#include "base/drps_err.h"
#include "net/drps_family.h"

enum { WAIT_MS = 60000 };

/* Ranks 1 and 2 end with these statuses; -1: killed by a signal. */
static void run_family(struct drps_family *f, int first, int second)
{
    const int status[] = {0, first, second};
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(drps_family_open(f, 3, &err), 0);
    for (uint32_t r = 1; r < 3; r++) {
        const int rc = drps_family_fork(f, r, &err);
        if (rc == 1 && status[r] < 0) (void)raise(SIGKILL);
        if (rc == 1) _exit(status[r]);
        assert_int_equal(rc, 0);
    }
    drps_family_wait(f, 0, WAIT_MS);
}

static void test_statuses_are_known(void **state)
{
    (void)state;
    struct drps_family f;
    struct drps_err err = DRPS_ERR_INIT;
    run_family(&f, 0, 2);
    assert_int_equal(drps_family_failure(&f, &err), DRPS_E_PEER_FAILED);
    assert_string_equal(err.text, "rank 2 ended with status 2");
    assert_int_equal(drps_family_has_status(&f, 2), 1);
    assert_int_equal(drps_family_has_status(&f, 1), 0);
    assert_int_equal(drps_family_has_status(&f, 0), 0);
    drps_family_close(&f);
}

/* A signal's number is no status. */
static void test_a_killed_rank_has_no_status(void **state)
{
    (void)state;
    struct drps_family f;
    struct drps_err err = DRPS_ERR_INIT;
    run_family(&f, -1, 1);
    assert_int_equal(drps_family_failure(&f, &err), DRPS_E_PEER);
    assert_int_equal(drps_family_has_status(&f, 0), 0);
    assert_int_equal(drps_family_has_status(&f, SIGKILL), 0);
    assert_int_equal(drps_family_has_status(&f, 1), 1);
    drps_family_close(&f);
}

static void test_all_went_well(void **state)
{
    (void)state;
    struct drps_family f;
    run_family(&f, 0, 0);
    assert_int_equal(drps_family_failure(&f, NULL), 0);
    assert_int_equal(drps_family_has_status(&f, 1), 0);
    drps_family_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statuses_are_known),
        cmocka_unit_test(test_a_killed_rank_has_no_status),
        cmocka_unit_test(test_all_went_well),
    };
    return cmocka_run_group_tests_name("family", tests, NULL, NULL);
}
