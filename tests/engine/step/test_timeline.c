/* The uses of blocks, epoch after epoch, from any step of the first one on. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/step/drps_timeline.h"
#include "index/drps_index.h"
#include "support/index_case.h"

enum { SAMPLES = 1500, NAMES = 300, BATCH = 64, EPOCHS = 3, BUFFER = 4096 };

static struct drps_plan *make_plan(struct scratch *s)
{
    struct case_run c;
    case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, SAMPLES, NAMES, 3), "lor");
    c.options.batch_size = BATCH;
    c.options.test_fraction = 0.1;
    return case_plan(&c);
}

static uint64_t steps_of(const struct drps_plan *plan)
{
    return plan->info.batches + plan->info.eval_batches;
}

static struct drps_uses *start(const struct drps_plan *plan, uint64_t first,
                               struct drps_timeline *timeline_out)
{
    struct drps_uses *uses;
    assert_int_equal(drps_uses_open(plan, &uses, NULL), 0);
    assert_int_equal(drps_uses_start(uses, first, EPOCHS, BUFFER, timeline_out, NULL), 0);
    return uses;
}

/* What was said of step `step`, counted from `first` on. */
static void assert_same_step(const struct drps_step_blocks *want,
                             const struct drps_step_blocks *got, uint64_t first)
{
    assert_int_equal(want->n, got->n);
    assert_memory_equal(want->blocks, got->blocks, want->n * sizeof(*want->blocks));
    for (size_t i = 0; i < want->n; i++)
        assert_int_equal(got->next_use[i],
                         want->next_use[i] == UINT64_MAX ? UINT64_MAX : want->next_use[i] - first);
}

static void check(const struct drps_plan *plan, uint64_t first)
{
    struct drps_timeline whole, timeline;
    struct drps_uses *all = start(plan, 0, &whole), *uses = start(plan, first, &timeline);
    struct drps_step_blocks want, got;
    uint64_t used = 0;
    assert_int_equal(timeline.steps, whole.steps - first);
    assert_int_equal(timeline.max_use_distance, whole.max_use_distance);
    for (uint64_t i = 0; i < whole.steps; i++) {
        assert_int_equal(whole.step_blocks(whole.ctx, i, &want, NULL), 0);
        if (i < first) continue;
        assert_int_equal(timeline.step_blocks(timeline.ctx, i - first, &got, NULL), 0);
        assert_same_step(&want, &got, first);
        used += got.n;
    }
    assert_true(used > timeline.steps);
    assert_int_equal(timeline.step_blocks(timeline.ctx, timeline.steps, &got, NULL),
                     DRPS_E_CORRUPT);
    drps_uses_close(uses);
    drps_uses_close(all);
}

static void test_timeline_begins_at_any_step(void **state)
{
    struct drps_plan *plan = make_plan(*state);
    for (uint64_t first = 0; first < steps_of(plan); first++)
        check(plan, first);
    drps_plan_close(plan);
}

static void test_timeline_has_no_step_behind_an_epoch(void **state)
{
    struct drps_plan *plan = make_plan(*state);
    struct drps_timeline timeline;
    struct drps_uses *uses;
    assert_int_equal(drps_uses_open(plan, &uses, NULL), 0);
    assert_int_equal(drps_uses_start(uses, steps_of(plan), EPOCHS, BUFFER, &timeline, NULL),
                     -EINVAL);
    drps_uses_close(uses);
    drps_plan_close(plan);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_timeline_begins_at_any_step),
        SCRATCH_TEST(test_timeline_has_no_step_behind_an_epoch),
    };
    return cmocka_run_group_tests_name("timeline", tests, NULL, NULL);
}
