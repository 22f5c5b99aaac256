/* Batches that are decoded once: those of a feed, epoch after epoch, and they stay where they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/drps_engine.h"
#include "engine/step/drps_batch_cache.h"
#include "index/drps_index.h"
#include "support/index_case.h"
#include "support/scratch.h"

enum { SAMPLES = 3000, NAMES = 300, BATCH = 64, EPOCHS = 3, BUFFER = 1 << 16 };

static struct drps_plan *make_plan(struct scratch *s)
{
    struct case_run c;
    case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, SAMPLES, NAMES, 3), "lor");
    c.options.batch_size = BATCH;
    c.options.test_fraction = 0.1;
    c.options.force = 1;
    struct drps_plan *plan = case_plan(&c);
    assert_true(plan->info.row_uses > 0);
    return plan;
}

static struct drps_feed *start_feed(const struct drps_plan *plan, uint64_t first, int keep)
{
    struct drps_feed *feed;
    assert_int_equal(drps_feed_open(plan, 1, &feed, NULL), 0);
    assert_int_equal(drps_feed_start(feed, first, EPOCHS, BUFFER, keep, NULL), 0);
    return feed;
}

static void assert_same_batch(const struct drps_feed_batch *a, const struct drps_feed_batch *b)
{
    assert_int_equal(a->body.samples, b->body.samples);
    assert_int_equal(a->body.rows, b->body.rows);
    assert_int_equal(a->body.nnz, b->body.nnz);
    assert_memory_equal(a->ids, b->ids, a->body.rows * sizeof(*a->ids));
    assert_memory_equal(a->body.labels, b->body.labels, a->body.samples * sizeof(*a->body.labels));
    assert_memory_equal(a->body.local16, b->body.local16, a->body.nnz * sizeof(*a->body.local16));
}

static void check_from(const struct drps_plan *plan, uint64_t first)
{
    struct drps_feed *read = start_feed(plan, first, 0), *feed = start_feed(plan, first, 1);
    struct drps_batch_cache *kept;
    struct drps_feed_batch want, got, earliest = {.ids = NULL};
    const uint64_t steps = plan->info.batches + plan->info.eval_batches;
    assert_int_equal(drps_batch_cache_open(&plan->info, feed, &kept, NULL), 0);
    for (uint64_t i = 0; i < EPOCHS * steps - first; i++) {
        assert_int_equal(drps_feed_next(read, &want, NULL), 0);
        assert_int_equal(drps_batch_cache_next(kept, &got, NULL), 0);
        assert_same_batch(&want, &got);
        if (i == 0) earliest = got;
        if (i % steps == 0) assert_ptr_equal(got.ids, earliest.ids);
    }
    drps_batch_cache_close(kept);
    drps_feed_close(feed);
    drps_feed_close(read);
}

static void test_batch_cache_has_the_feeds_batches(void **state)
{
    struct drps_plan *plan = make_plan(*state);
    for (uint64_t first = 0; first < plan->info.batches + plan->info.eval_batches; first++)
        check_from(plan, first);
    drps_plan_close(plan);
}

/* Room is made for as many rows as plan.json counts. */
static void test_batch_cache_refuses_more_rows_than_counted(void **state)
{
    struct drps_plan *plan = make_plan(*state);
    struct drps_feed *feed = start_feed(plan, 0, 1);
    struct drps_batch_cache *kept;
    struct drps_feed_batch batch;
    struct drps_err err = DRPS_ERR_INIT;
    const uint64_t steps = plan->info.batches + plan->info.eval_batches;
    int rc = 0;
    plan->info.row_uses--;
    assert_int_equal(drps_batch_cache_open(&plan->info, feed, &kept, NULL), 0);
    for (uint64_t i = 0; i < steps && rc == 0; i++) {
        rc = drps_batch_cache_next(kept, &batch, &err);
        assert_int_equal(rc, i + 1 < steps ? 0 : DRPS_E_CORRUPT);
    }
    assert_non_null(strstr(err.text, "plan.json counts for all"));
    drps_batch_cache_close(kept);
    drps_feed_close(feed);
    drps_plan_close(plan);
}

static uint64_t decoded_bytes(const struct drps_train_result *r)
{
    for (size_t i = 0; i < r->memory.n; i++)
        if (strcmp(r->memory.items[i].what, "keeping the plan decoded") == 0)
            return r->memory.items[i].bytes;
    return 0;
}

static struct drps_train_result train(struct scratch *s, const struct drps_plan *plan)
{
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_train_options o = {.model_path = scratch_path(s, "model"),
                                         .replace = 1,
                                         .epochs = EPOCHS,
                                         .store = "resident",
                                         .threads = 2};
    if (drps_train_run(plan, &o, &r, &err)) fail_msg("%s", err.text);
    return r;
}

/* A plan that does not count its rows, or counts more than memory holds: decoded in each epoch,
 * with the same model. */
static void test_batch_cache_is_left_out_where_it_cannot_be(void **state)
{
    static const uint64_t uses[] = {0, UINT64_C(1) << 40};
    struct drps_plan *plan = make_plan(*state);
    struct drps_train_result kept = train(*state, plan);
    assert_int_equal(decoded_bytes(&kept), drps_batch_cache_memory(&plan->info));
    for (size_t i = 0; i < sizeof(uses) / sizeof(*uses); i++) {
        plan->info.row_uses = uses[i];
        struct drps_train_result r = train(*state, plan);
        assert_int_equal(decoded_bytes(&r), 0);
        assert_int_equal(r.content, kept.content);
        drps_train_result_free(&r);
    }
    drps_train_result_free(&kept);
    drps_plan_close(plan);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_batch_cache_has_the_feeds_batches),
        SCRATCH_TEST(test_batch_cache_refuses_more_rows_than_counted),
        SCRATCH_TEST(test_batch_cache_is_left_out_where_it_cannot_be),
    };
    return cmocka_run_group_tests_name("batch_cache", tests, NULL, NULL);
}
