/* Batches of a feed that is started in the middle of an epoch: those of a whole run, from there on.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/step/drps_feed.h"
#include "index/drps_index.h"
#include "support/index_case.h"
#include "support/world.h"

enum { SAMPLES = 1500, NAMES = 300, BATCH = 64, EPOCHS = 3, BUFFER = 1 << 16 };

static struct drps_plan *make_plan(struct scratch *s)
{
    struct case_run c;
    case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, SAMPLES, NAMES, 3), "lor");
    c.options.batch_size = BATCH;
    c.options.test_fraction = 0.1;
    struct drps_plan *plan = case_plan(&c);
    assert_true(plan->info.batches > 3 && plan->info.eval_batches > 1);
    return plan;
}

static uint64_t steps_of(const struct drps_plan *plan)
{
    return plan->info.batches + plan->info.eval_batches;
}

static struct drps_feed *start_feed(const struct drps_plan *plan, uint64_t first, int keep)
{
    struct drps_feed *feed;
    assert_int_equal(drps_feed_open(plan, 1, &feed, NULL), 0);
    assert_int_equal(drps_feed_start(feed, first, EPOCHS, BUFFER, keep, NULL), 0);
    return feed;
}

static void assert_same_body(const struct drps_batch *a, const struct drps_batch *b)
{
    assert_int_equal(a->samples, b->samples);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->nnz, b->nnz);
    assert_memory_equal(a->labels, b->labels, a->samples * sizeof(*a->labels));
    assert_memory_equal(a->local16, b->local16, a->nnz * sizeof(*a->local16));
}

static void check_batches(const struct drps_plan *plan, uint64_t first, int keep)
{
    struct drps_feed *whole = start_feed(plan, 0, 0), *feed = start_feed(plan, first, keep);
    struct drps_feed_batch want, got;
    for (uint64_t i = 0; i < EPOCHS * steps_of(plan); i++) {
        assert_int_equal(drps_feed_next(whole, &want, NULL), 0);
        if (i < first) continue;
        assert_int_equal(drps_feed_next(feed, &got, NULL), 0);
        assert_same_body(&want.body, &got.body);
        assert_memory_equal(want.ids, got.ids, want.body.rows * sizeof(*want.ids));
    }
    assert_int_equal(drps_feed_next(feed, &got, NULL), DRPS_E_CORRUPT); /* there are no more */
    drps_feed_close(feed);
    drps_feed_close(whole);
}

static void test_feed_begins_at_any_step(void **state)
{
    struct drps_plan *plan = make_plan(*state);
    for (uint64_t first = 0; first < steps_of(plan); first++)
        for (int keep = 0; keep < 2; keep++)
            check_batches(plan, first, keep);
    drps_plan_close(plan);
}

static void test_feed_names_the_steps_of_the_epoch(void **state)
{
    struct drps_plan *plan = make_plan(*state);
    const uint64_t steps = steps_of(plan), first = steps - 2;
    struct drps_feed *feed = start_feed(plan, first, 0);
    struct drps_feed_raw raw;
    for (uint64_t i = 0; i < steps; i++) {
        assert_int_equal(drps_feed_take(feed, &raw, NULL), 0);
        assert_int_equal(raw.step, (first + i) % steps);
    }
    drps_feed_close(feed);
    drps_plan_close(plan);
}

/* Batches are counted as soon as each step of an epoch has come once. */
static void test_feed_counts_samples_from_any_step_on(void **state)
{
    struct drps_plan *plan = make_plan(*state);
    const uint64_t steps = steps_of(plan);
    plan->info.samples++;
    for (uint64_t first = 0; first < steps; first++) {
        struct drps_feed *feed = start_feed(plan, first, 1);
        struct drps_feed_batch batch;
        struct drps_err err = DRPS_ERR_INIT;
        for (uint64_t i = 0; i + 1 < steps; i++)
            assert_int_equal(drps_feed_next(feed, &batch, &err), 0);
        assert_int_equal(drps_feed_next(feed, &batch, &err), DRPS_E_CORRUPT);
        assert_non_null(strstr(err.text, "make the plan anew"));
        drps_feed_close(feed);
    }
    drps_plan_close(plan);
}

static void test_feed_has_no_step_behind_an_epoch(void **state)
{
    struct drps_plan *plan = make_plan(*state);
    struct drps_feed *feed;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(drps_feed_open(plan, 1, &feed, NULL), 0);
    assert_int_equal(drps_feed_start(feed, steps_of(plan), EPOCHS, BUFFER, 0, &err), -EINVAL);
    drps_feed_close(feed);
    drps_plan_close(plan);
}

/* ---- Of a rank ---- */

static void assert_same_share(const struct drps_feed_share *a, const struct drps_feed_share *b)
{
    assert_same_body(&a->body, &b->body);
    assert_memory_equal(a->shares, b->shares, WORLD_WORKERS * sizeof(*a->shares));
}

static void assert_same_union(const struct drps_feed_union *a, const struct drps_feed_union *b)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->ids, b->ids, a->n * sizeof(*a->ids));
    assert_memory_equal(a->part, b->part, (WORLD_WORKERS + 1) * sizeof(*a->part));
    assert_memory_equal(a->positions, b->positions, a->part[WORLD_WORKERS] * sizeof(*a->positions));
}

static void check_shares(const struct drps_plan *part, uint64_t first, int keep)
{
    struct drps_feed *whole = start_feed(part, 0, 0), *feed = start_feed(part, first, keep);
    struct drps_feed_share want, got;
    struct drps_feed_union want_union, got_union;
    for (uint64_t i = 0; i < EPOCHS * steps_of(part); i++) {
        assert_int_equal(drps_feed_next_share(whole, &want, NULL), 0);
        assert_int_equal(drps_feed_next_union(whole, &want_union, NULL), 0);
        if (i < first) continue;
        assert_int_equal(drps_feed_next_share(feed, &got, NULL), 0);
        assert_int_equal(drps_feed_next_union(feed, &got_union, NULL), 0);
        assert_same_share(&want, &got);
        assert_same_union(&want_union, &got_union);
    }
    drps_feed_close(feed);
    drps_feed_close(whole);
}

static void test_feed_of_a_rank_begins_at_any_step(void **state)
{
    struct world *w = world_begin("lor", CASE_LIBSVM, 32, 32, 5);
    struct drps_plan *part;
    (void)state;
    assert_int_equal(drps_plan_open_rank(drps_io_os(), w->plan, 1, &part, NULL), 0);
    for (uint64_t first = 0; first < steps_of(part); first++)
        for (int keep = 0; keep < 2; keep++)
            check_shares(part, first, keep);
    drps_plan_close(part);
    world_end(w);
}

/* By range the first ranks have fewer rows than the net, whose 82 are in all batches. */
static void test_feed_of_ranks_with_parts_of_a_net(void **state)
{
    static const char net[] =
        "first = linear\nx = numbers 3\nh = full 16 x\nh = full 1 h\nscore = sum first h\n";
    enum { WORKERS = 3, NET_ROWS = 1 + 4 * 16 + 17 };
    struct scratch *s = *state;
    struct case_run c;
    uint64_t found = 0, least = NET_ROWS;
    char path[SCRATCH_PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s", scratch_path(s, "net.txt"));
    scratch_write(path, net, sizeof(net) - 1);
    case_begin(&c, s, case_input(s, "input", CASE_LIBFFM, 100, 40, 3), "net");
    c.options.net = path;
    c.options.batch_size = 10;
    c.options.workers = WORKERS;
    c.options.partition = "range";
    case_compile(&c);
    for (uint32_t rank = 0; rank < WORKERS; rank++) {
        struct drps_plan *part;
        struct drps_feed *feed;
        struct drps_feed_share share;
        struct drps_feed_union u;
        struct drps_err err = DRPS_ERR_INIT;
        assert_int_equal(drps_plan_open_rank(drps_io_os(), c.out, rank, &part, &err), 0);
        const uint64_t first = part->info.ranks.first_row, rows = part->info.rows;
        const uint64_t due = first >= NET_ROWS         ? 0
                             : NET_ROWS - first < rows ? NET_ROWS - first
                                                       : rows;
        if (rows < least) least = rows;
        assert_int_equal(drps_feed_open(part, NET_ROWS, &feed, NULL), 0);
        assert_int_equal(drps_feed_start(feed, 0, 1, BUFFER, 0, NULL), 0);
        for (uint64_t i = 0; i < steps_of(part); i++) {
            assert_int_equal(drps_feed_next_share(feed, &share, NULL), 0);
            if (drps_feed_next_union(feed, &u, &err) < 0) fail_msg("rank %u: %s", rank, err.text);
            assert_true(u.n >= due);
            if (due) assert_int_equal(u.ids[due - 1], due - 1);
        }
        found += due;
        drps_feed_close(feed);
        drps_plan_close(part);
    }
    assert_int_equal(found, NET_ROWS);
    assert_true(least < NET_ROWS);
}

/* A feed that is told of more rows than all batches have: the server's list may begin with these,
 * but not the rows of each worker. */
static void test_feed_finds_out_that_a_batch_lacks_common_rows(void **state)
{
    struct world *w = world_begin("lor", CASE_LIBSVM, 16, 16, 5);
    struct drps_plan *part;
    int found = 0;
    (void)state;
    assert_int_equal(drps_plan_open_rank(drps_io_os(), w->plan, 0, &part, NULL), 0);
    for (uint32_t common = 1; common < 20; common++) {
        struct drps_feed *feed;
        struct drps_feed_union u;
        struct drps_err err = DRPS_ERR_INIT;
        int rc = 0;
        assert_int_equal(drps_feed_open(part, common, &feed, NULL), 0);
        assert_int_equal(drps_feed_start(feed, 0, 1, BUFFER, 0, NULL), 0);
        for (uint64_t i = 0; i < steps_of(part) && rc == 0; i++)
            rc = drps_feed_next_union(feed, &u, &err);
        assert_int_equal(rc, common > 1 ? DRPS_E_CORRUPT : 0);
        found += strstr(err.text, "rows that all batches have") != NULL;
        drps_feed_close(feed);
    }
    assert_true(found > 0);
    drps_plan_close(part);
    world_end(w);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_feed_begins_at_any_step),
        SCRATCH_TEST(test_feed_names_the_steps_of_the_epoch),
        SCRATCH_TEST(test_feed_counts_samples_from_any_step_on),
        SCRATCH_TEST(test_feed_has_no_step_behind_an_epoch),
        cmocka_unit_test(test_feed_of_a_rank_begins_at_any_step),
        SCRATCH_TEST(test_feed_of_ranks_with_parts_of_a_net),
        cmocka_unit_test(test_feed_finds_out_that_a_batch_lacks_common_rows),
    };
    return cmocka_run_group_tests_name("feed", tests, NULL, NULL);
}
