/* Of which run checkpoints are: a run that begins anew beside those of an earlier one is the one
 * that is resumed, and a folder of checkpoints is one run's at a time. */
#include "support/plan_maker.h"

#include <errno.h>

#include "support/train_runs.h"

/* Where the newest run began anew; 1: it did not. */
static uint64_t first_of(const struct train_job *j)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_checkpoints c;
    uint64_t first = 1;
    if (drps_checkpoints_init(&c, drps_io_os(), j->checkpoints, 0, &err) < 0 ||
        drps_checkpoints_first(&c, &first, &err) < 0)
        fail_msg("first: %s", err.text);
    drps_checkpoints_destroy(&c);
    return first;
}

/* A run that began anew beside checkpoints of an earlier one, and was killed at any instant: from
 * its first step on it is the one that is resumed, whether it has a checkpoint yet or not. Before,
 * it is the earlier one. */
static void test_resume_of_a_run_begun_anew(void **state)
{
    struct train_job *j = job_begin("lor", 0, "resident");
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r, earlier;
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    long none_yet = 0, before = 0;
    (void)state;
    struct drps_train_options old = j->o;
    old.lr = 1.0f;
    train_well(j->plan, &old, &earlier, "earlier");
    assert_true(earlier.content != j->want.content);
    for (long k = 1;; k += DRPS_TEST_ONE_IN > 1 ? 7 : 3) {
        job_leave_checkpoints(j, &old);
        if (train_until(j->plan, &j->o, k)) break;
        const uint64_t first = first_of(j);
        if (first > 1 && train_checkpoints(j->checkpoints, 0, numbers) && numbers[0] < first)
            none_yet++;
        struct drps_train_options o = j->o;
        o.resume = 1;
        o.replace = 0;
        if (drps_train_run(j->plan, &o, &r, &err) < 0) fail_msg("%ld: %s", k, err.text);
        if (first > 1 && r.content != j->want.content)
            fail_msg("%ld: begun anew at %llu, and went on as another run", k,
                     (unsigned long long)first);
        if (r.content != j->want.content && r.content != earlier.content)
            fail_msg("%ld: the model of no run", k);
        before += first == 1 && r.content == earlier.content;
        if (path_exists(j->checkpoints)) fail_msg("%ld: checkpoints stay", k);
        drps_train_result_free(&r);
    }
    assert_true(none_yet > 1);
    assert_true(before > 1);
    drps_train_result_free(&earlier);
    job_end(j);
}

/* A folder of checkpoints is one run's at a time. */
static void test_two_runs_share_no_checkpoints(void **state)
{
    struct train_job *j = job_begin("lor", 0, "resident");
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    struct drps_checkpoints other;
    char holder[64];
    (void)state;
    job_leave_checkpoints(j, &j->o);
    if (drps_checkpoints_init(&other, drps_io_os(), j->checkpoints, 0, &err) < 0 ||
        drps_checkpoints_lock(&other, &err) < 0)
        fail_msg("lock: %s", err.text);
    (void)snprintf(holder, sizeof(holder), "still going on (process %ld on ", (long)getpid());
    struct drps_train_options o = j->o;
    for (int how = 0; how < 3; how++) { /* anew, to resume, and without any of its own */
        o.resume = how == 1;
        o.checkpoint_every.unit = how == 2 ? DRPS_CHECKPOINT_NEVER : DRPS_CHECKPOINT_BATCHES;
        drps_err_clear(&err);
        assert_int_equal(drps_train_run(j->plan, &o, &r, &err), -EBUSY);
        if (!strstr(err.text, holder)) fail_msg("'%s' is not in '%s'", holder, err.text);
        drps_train_result_free(&r);
    }
    drps_checkpoints_destroy(&other);
    assert_true(job_resume(j, j->o, "the other has ended", 0) > 0);
    job_end(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume_of_a_run_begun_anew),
        cmocka_unit_test(test_two_runs_share_no_checkpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
