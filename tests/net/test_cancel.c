/* Cancel: what the user says, or the end of the job, sets one flag, and what the user says ends
 * waits for other ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "net/drps_cancel.h"
#include "support/net_job.h"

/* Rank 1 does not come to the barrier before rank 0 has been told to stop, and left. */
static void test_what_the_user_says_ends_a_wait(void **state)
{
    const struct drps_net_options options = {0};
    const atomic_int user = 1;
    struct net_job job;
    struct drps_cancel cancel;
    struct drps_err err = DRPS_ERR_INIT, end = DRPS_ERR_INIT;
    if (!net_kind_there(net_kind_of(state))) skip();
    net_job_open(&job, net_kind_of(state), 2, &options);
    assert_int_equal(drps_cancel_start(&cancel, job.nets[0], &user, &err), 0);
    assert_int_equal(drps_net_barrier(job.nets[0], NET_WAIT_MS, &err), DRPS_E_INTERRUPTED);
    assert_int_equal(atomic_load(&cancel.stop), 1);
    assert_int_equal(drps_cancel_end(&cancel, err.code, &err), DRPS_E_INTERRUPTED);
    drps_net_close(job.nets[0], NET_WAIT_MS, &err);
    job.nets[0] = NULL;
    assert_int_equal(drps_net_barrier(job.nets[1], NET_WAIT_MS, &end), DRPS_E_PEER);
    assert_non_null(strstr(end.text, "rank 0"));
    assert_non_null(strstr(end.text, "interrupted"));
    net_job_close(&job);
}

/* Alone, a rank that the user stops has done what concerns the others: they are not to be told. */
static void test_alone_waits_go_on(void **state)
{
    const struct drps_net_options options = {0};
    atomic_int user = 0;
    struct net_job job;
    struct drps_cancel cancel;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net_message *message;
    (void)state;
    net_job_open(&job, NET_INPROC, 2, &options);
    assert_int_equal(drps_cancel_start(&cancel, job.nets[0], &user, &err), 0);
    drps_cancel_alone(&cancel);
    atomic_store(&user, 1);
    while (!atomic_load(&cancel.stop)) { /* the thread looks ten times a second */
        assert_int_equal(drps_net_receive(job.nets[0], DRPS_NET_MASTER, 1, 100, &message, &err),
                         -ETIMEDOUT);
        drps_err_clear(&err);
    }
    assert_int_equal(drps_cancel_end(&cancel, 0, &err), 0);
    assert_int_equal(drps_net_receive(job.nets[0], DRPS_NET_MASTER, 1, 0, &message, &err),
                     -ETIMEDOUT);
    net_job_close(&job);
}

static void test_the_end_of_the_job_sets_the_flag(void **state)
{
    const struct drps_net_options options = {0};
    struct net_job job;
    struct drps_cancel cancel;
    struct drps_err err = DRPS_ERR_INIT, why = DRPS_ERR_INIT;
    struct drps_net_message *message;
    (void)state;
    net_job_open(&job, NET_INPROC, 2, &options);
    assert_int_equal(drps_cancel_start(&cancel, job.nets[0], NULL, &err), 0);
    (void)drps_err_set(&why, DRPS_E_FORMAT, "a bad line");
    drps_net_close(job.nets[1], NET_WAIT_MS, &why);
    job.nets[1] = NULL;
    while (!atomic_load(&cancel.stop)) { /* the wait ends with the job */
        assert_true(drps_net_receive(job.nets[0], DRPS_NET_MASTER, 1, 100, &message, &err) < 0);
        drps_err_clear(&err);
    }
    (void)drps_err_set(&err, DRPS_E_INTERRUPTED, "work was stopped");
    assert_int_equal(drps_cancel_end(&cancel, DRPS_E_INTERRUPTED, &err), DRPS_E_PEER_FAILED);
    assert_non_null(strstr(err.text, "a bad line"));
    net_job_close(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET_OVER_ALL(test_what_the_user_says_ends_a_wait),
        cmocka_unit_test(test_alone_waits_go_on),
        cmocka_unit_test(test_the_end_of_the_job_sets_the_flag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
