/* Checks of samples: the same counts in one pass and in many, and what each rule takes for wrong.
 */
#include "support/plan_maker.h"

#include <stdatomic.h>

#include "index/check/drps_check.h"

enum { N = 400 };

static char parent[] = "/tmp/drps-check-XXXXXX";

/* Sample i has feature 1 always, 2 + i % 7, and 20 + i % 11 with a value. */
static struct maker_sample *add(struct maker *m, int test, size_t i, float label)
{
    struct maker_sample *s = maker_add(m, test, label);
    maker_entry(s, 2 + (uint32_t)(i % 7), 1);
    maker_entry(s, 20 + (uint32_t)(i % 11), (float)(1 + i % 13));
    return s;
}

static float label_of(size_t i)
{
    return i * 7919 % 5 < 2 ? 1.0f : -1.0f;
}

static struct drps_check checked(struct maker *m, uint64_t memory, const char *name)
{
    struct drps_check c;
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_log quiet = {.level = DRPS_LOG_ERROR};
    struct drps_plan *plan = maker_write(m, parent, name);
    if (drps_check_plan(plan, memory, &quiet, &c, &err) < 0) fail_msg("%s: %s", name, err.text);
    drps_plan_close(plan);
    return c;
}

static void test_slices_count_the_same(void **state)
{
    (void)state;
    struct maker m;
    maker_init(&m, "lor", "logistic", 40, 16);
    for (size_t i = 0; i < N; i++)
        maker_entry(add(&m, 0, i, label_of(i)), 1, 3);
    for (size_t i = 0; i < N / 4; i++) /* every second one is that of training */
    {
        struct maker_sample *s = add(&m, 1, i, i % 2 ? label_of(i) : -label_of(i));
        maker_entry(s, 1, 3);
        maker_entry(s, 35 + (uint32_t)(i % 3), 0); /* as if it was not there */
    }
    const struct drps_check whole = checked(&m, 0, "whole"), sliced = checked(&m, 600, "sliced");
    assert_int_equal(whole.passes, 1);
    assert_true(sliced.passes > 3);
    assert_int_equal(whole.constants, 1);
    assert_int_equal(sliced.constants, 1);
    assert_int_equal(whole.copies, sliced.copies);
    assert_int_equal(whole.copies_of_few, sliced.copies_of_few);
    assert_int_equal(whole.copies_in_test, sliced.copies_in_test);
    assert_int_equal(whole.copies, N / 8); /* those with the label of training */
    maker_free(&m);
}

/* A feature that goes with the label, but for so many samples. */
static uint64_t deciding(const char *name, size_t wrong)
{
    struct maker m;
    maker_init(&m, "lor", "logistic", 40, 16);
    for (size_t i = 0; i < N; i++) {
        struct maker_sample *s = add(&m, 0, i, label_of(i));
        if ((s->label > 0) == (i >= wrong)) maker_entry(s, 39, 1);
    }
    const uint64_t n = checked(&m, 0, name).deciding;
    maker_free(&m);
    return n;
}

static void test_a_feature_that_decides_may_be_wrong_a_little(void **state)
{
    (void)state;
    assert_int_equal(deciding("right", 0), 1);
    assert_int_equal(deciding("nearly", 1), 1);
    assert_int_equal(deciding("often", 30), 0);
}

/* Values that are apart, with the zeros of samples that do not have the feature. */
static uint64_t apart(const char *name, float of_positive, float of_negative, size_t mixed)
{
    struct maker m;
    maker_init(&m, "lor", "logistic", 40, 16);
    for (size_t i = 0; i < N; i++) {
        struct maker_sample *s = add(&m, 0, i, label_of(i));
        const float value = s->label > 0 ? of_positive : of_negative;
        if (value < 0 || value > 0)
            maker_entry(s, 39, (i < mixed ? -value : value) * (1 + (float)(i % 3)));
    }
    const uint64_t n = checked(&m, 0, name).deciding;
    maker_free(&m);
    return n;
}

static void test_values_that_are_apart_decide(void **state)
{
    (void)state;
    assert_int_equal(apart("signs", 1, -1, 0), 1);
    assert_int_equal(apart("sizes", 10, 1, 0), 1);
    assert_int_equal(apart("overlap", 2, 1, 0), 0);
    assert_int_equal(apart("mixed", 1, -1, 40), 0);
}

static void test_a_number_that_is_the_label_decides(void **state)
{
    (void)state;
    struct maker m;
    maker_init(&m, "lir", "squared", 40, 16);
    for (size_t i = 0; i < N; i++) {
        const float y = (float)(i * 7919 % 97);
        struct maker_sample *s = add(&m, 0, i, y);
        maker_entry(s, 38, -3 * y + 5);                       /* a line */
        maker_entry(s, 39, y + 8 * (float)(i * 104729 % 11)); /* goes with it */
    }
    const struct drps_check c = checked(&m, 0, "line");
    assert_int_equal(c.deciding, 1);
    assert_int_equal(c.remarks.n, 1);
    if (!strstr(c.remarks.text[0], "feature 119 alone decides the label: "))
        fail_msg("%s", c.remarks.text[0]);
    maker_free(&m);
}

/* Numbers of plan.json are not trusted: they say how many passes there are. */
static void test_other_samples_than_said_are_refused(void **state)
{
    (void)state;
    struct maker m;
    struct drps_check c;
    struct drps_err err = DRPS_ERR_INIT;
    maker_init(&m, "lor", "logistic", 40, 16);
    for (size_t i = 0; i < N; i++)
        add(&m, i % 4 == 0, i, label_of(i));
    struct drps_plan *plan = maker_write(&m, parent, "said");
    plan->info.test_samples += UINT64_C(1) << 30;
    assert_int_equal(drps_check_plan(plan, 0, NULL, &c, &err), DRPS_E_CORRUPT);
    drps_err_clear(&err);
    plan->info.test_samples -= UINT64_C(1) << 30;
    plan->info.samples--;
    assert_int_equal(drps_check_plan(plan, 0, NULL, &c, &err), DRPS_E_CORRUPT);
    if (!strstr(err.text, "other samples than its plan.json says")) fail_msg("%s", err.text);
    drps_plan_close(plan);
    maker_free(&m);
}

/* Asks to stop at a read. */
struct asking {
    atomic_int stop;
    size_t reads;
};

static ssize_t counted_pread(void *ctx, int fd, void *buf, size_t n, uint64_t offset)
{
    struct asking *a = ctx;
    if (a->reads && !--a->reads) atomic_store(&a->stop, 1);
    return drps_io_os()->ops->pread(drps_io_os()->ctx, fd, buf, n, offset);
}

static void test_an_interruption_is_no_fault_of_a_record(void **state)
{
    (void)state;
    struct maker m;
    struct asking asking = {0};
    struct drps_io_ops ops = *drps_io_os()->ops;
    const struct drps_io io = {.ops = &ops, .ctx = &asking, .stop = &asking.stop};
    const struct drps_log quiet = {.level = DRPS_LOG_ERROR};
    int rc = DRPS_E_INTERRUPTED;
    size_t stopped = 0;
    ops.pread = counted_pread;
    ops.asked = NULL;
    ops.told = NULL;
    maker_init(&m, "lor", "logistic", 40, 16);
    for (size_t i = 0; i < N; i++)
        add(&m, i % 4 == 0, i, label_of(i));
    struct drps_plan *plan = maker_write(&m, parent, "stopped");
    plan->io = &io;
    for (size_t reads = 1; rc < 0; reads++) {
        struct drps_check c;
        struct drps_err err = DRPS_ERR_INIT;
        asking.reads = reads;
        atomic_store(&asking.stop, 0);
        rc = drps_check_plan(plan, 0, &quiet, &c, &err);
        if (rc == 0) break;
        stopped++;
        assert_int_equal(rc, DRPS_E_INTERRUPTED);
        assert_string_equal(err.text, "interrupted");
    }
    assert_true(stopped > 2);
    plan->io = drps_io_os();
    drps_plan_close(plan);
    maker_free(&m);
}

static int begin(void **state)
{
    (void)state;
    return mkdtemp(parent) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    struct drps_err err = DRPS_ERR_INIT;
    return drps_io_remove_tree(drps_io_os(), parent, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices_count_the_same),
        cmocka_unit_test(test_a_feature_that_decides_may_be_wrong_a_little),
        cmocka_unit_test(test_values_that_are_apart_decide),
        cmocka_unit_test(test_a_number_that_is_the_label_decides),
        cmocka_unit_test(test_other_samples_than_said_are_refused),
        cmocka_unit_test(test_an_interruption_is_no_fault_of_a_record),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
