/* Store conformance: every store, on every engine, shows the same bytes as a plain array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "storage/kv/drps_kv.h"
#include "storage/pib/drps_pool.h"
#include "support/store_run.h"

/* Ranges of one row, of some, and of all. */
static uint64_t some_mark_rows(const struct drps_store_ops *ops, const struct plan *p, uint64_t i)
{
    const uint64_t ranges[] = {1, 1 + p->seed % 40, 64, p->rows / 3, p->rows};
    return ops->scan_changed ? ranges[i % 5] : 0;
}

static void run_on(const struct plan *p, const struct drps_store_ops *ops,
                   const struct drps_kv_ops *kv, uint64_t extra_memory, int threads,
                   int prefetch_steps, struct drps_store_stats *stats)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_store_config config = plan_config(p);
    char *dir = scratch_new();
    config.dir = dir;
    config.kv = kv;
    config.threads = threads;
    config.prefetch_steps = prefetch_steps;
    config.mark_rows = some_mark_rows(ops, p, p->seed + extra_memory);
    config.memory_bytes = plan_least_memory(ops, &config) + extra_memory;
    if (plan_run(p, ops, &config, stats, &err) < 0)
        fail_msg("%s: %s", kv ? kv->name : ops->name, err.text);
    scratch_remove(dir);
}

static const struct plan_shape shapes[] = {
    {.rows = 3000,
     .max_block_rows = 20,
     .max_step_rows = 150,
     .row_bytes = 16,
     .epoch_steps = 30,
     .epochs = 4},
    {.rows = 500,
     .max_block_rows = 1,
     .max_step_rows = 40,
     .row_bytes = 4,
     .epoch_steps = 50,
     .epochs = 4},
    {.rows = 20000,
     .max_block_rows = 300,
     .max_step_rows = 800,
     .row_bytes = 68,
     .epoch_steps = 20,
     .epochs = 3},
    {.rows = 60,
     .max_block_rows = 9,
     .max_step_rows = 60,
     .row_bytes = 8000,
     .epoch_steps = 15,
     .epochs = 6},
};

enum { SHAPES = sizeof(shapes) / sizeof(*shapes) };

static void test_resident_equals_model(void **state)
{
    (void)state;
    uint64_t seed = test_seed("resident");
    for (size_t i = 0; i < SHAPES; i++) {
        struct plan *p = plan_new(seed + i, &shapes[i]);
        struct drps_store_stats stats;
        run_on(p, &drps_store_resident, NULL, 0, 0, 0, &stats);
        assert_int_equal(stats.steps, p->n_steps);
        plan_free(p);
    }
}

static void overlap_on(const struct plan *p, const struct drps_store_ops *ops,
                       const struct drps_kv_ops *kv, unsigned open_steps, uint64_t extra_memory)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_store_config config = plan_config(p);
    size_t overlaps, refused;
    char *dir = scratch_new();
    config.dir = dir;
    config.kv = kv;
    config.open_steps = open_steps;
    config.mark_rows = some_mark_rows(ops, p, p->seed + open_steps);
    config.memory_bytes = plan_least_memory(ops, &config) + extra_memory;
    if (plan_run_overlapping(p, ops, &config, &overlaps, &refused, &err) < 0)
        fail_msg("%s, %u steps open: %s", kv ? kv->name : ops->name, open_steps, err.text);
    assert_int_equal(overlaps > 0, open_steps > 1);
    assert_int_equal(refused, 0);
    scratch_remove(dir);
}

static void test_resident_shows_several_steps(void **state)
{
    (void)state;
    const uint64_t seed = test_seed("resident, several steps");
    for (size_t i = 0; i < SHAPES; i++) {
        struct plan *p = plan_new(seed + i, &shapes[i]);
        overlap_on(p, &drps_store_resident, NULL, 1, 0);
        overlap_on(p, &drps_store_resident, NULL, 2, 0);
        overlap_on(p, &drps_store_resident, NULL, DRPS_STORE_OPEN_MOST, 0);
        plan_free(p);
    }
}

/* Pools from the smallest that the open steps fit in. */
static void test_pib_shows_several_steps(void **state)
{
    const struct drps_kv_ops *kv = *state;
    const uint64_t seed = test_seed(kv->name);
    for (size_t i = 0; i < SHAPES; i++) {
        struct plan *p = plan_new(seed + i, &shapes[i]);
        const uint64_t all = (uint64_t)p->blocks * shapes[i].max_block_rows * p->row_bytes;
        for (unsigned open_steps = 1; open_steps <= 8; open_steps++)
            overlap_on(p, &drps_store_pib, kv, open_steps, open_steps % 2 ? 0 : all / 20);
        plan_free(p);
    }
}

static void test_too_many_open_steps_are_refused(void **state)
{
    (void)state;
    struct plan *p = plan_new(1, &shapes[1]);
    struct drps_store_config config = plan_config(p);
    struct drps_store *st;
    config.open_steps = DRPS_STORE_OPEN_MOST + 1;
    assert_int_equal(drps_store_resident.open(&config, &st, NULL), -EINVAL);
    config.open_steps = 2;
    assert_int_equal(drps_store_resident.open(&config, &st, NULL), 0);
    struct drps_rows rows;
    for (size_t s = 0; s < 3; s++) {
        const struct plan_step *step = &p->steps[s];
        const int rc = drps_store_resident.step_open(st, s, step->ids, step->n_ids, &rows, NULL);
        assert_int_equal(rc, s < 2 ? 0 : -EINVAL);
    }
    assert_int_equal(drps_store_resident.step_close(st, 1, 1, NULL), 0);
    assert_int_equal(drps_store_resident.step_close(st, 1, 1, NULL), -EINVAL);
    const struct plan_step *third = &p->steps[2]; /* not while the first is open */
    assert_int_equal(drps_store_resident.step_open(st, 2, third->ids, third->n_ids, &rows, NULL),
                     -EINVAL);
    assert_int_equal(drps_store_resident.step_close(st, 0, 1, NULL), 0);
    assert_int_equal(drps_store_resident.step_open(st, 2, third->ids, third->n_ids, &rows, NULL),
                     0);
    drps_store_resident.close(st);
    plan_free(p);
}

/* Pools from the smallest that can run to one that holds everything. */
static void test_pib_equals_model(void **state)
{
    const struct drps_kv_ops *kv = *state;
    uint64_t seed = test_seed(kv->name);
    for (size_t i = 0; i < SHAPES; i++) {
        struct plan *p = plan_new(seed + i, &shapes[i]);
        uint64_t all = (uint64_t)p->blocks * shapes[i].max_block_rows * p->row_bytes;
        const uint64_t extra[] = {0, all / 20, all / 4, 4 * all + (1 << 20)};
        for (size_t k = 0; k < 4; k++) {
            struct drps_store_stats stats;
            int threads = 1 + (int)(drps_rng_at(seed, 100 * i + k) % 6);
            int steps_ahead = (int)(drps_rng_at(seed, 100 * i + k + 50) % 5);
            run_on(p, &drps_store_pib, kv, extra[k], threads, steps_ahead, &stats);
            assert_int_equal(stats.steps, p->n_steps);
            assert_true(stats.blocks_hit <= stats.blocks_needed);
            assert_int_equal(stats.io.reads + stats.blocks_created,
                             stats.blocks_needed - stats.blocks_hit);
            assert_int_equal(stats.io.reads > 0, stats.io.read_calls > 0);
            if (k == 3) assert_int_equal(stats.blocks_evicted, 0);
            if (k == 0) assert_true(stats.pool.entries >= p->most.blocks);
        }
        plan_free(p);
    }
}

static void check_failing_init(const struct drps_store_ops *ops, const struct drps_kv_ops *kv)
{
    const uint64_t seed = test_seed(kv ? kv->name : ops->name);
    for (size_t i = 0; i < SHAPES; i++) {
        struct plan *p = plan_new(seed + i, &shapes[i]);
        struct drps_store_config config = plan_config(p);
        config.kv = kv;
        config.memory_bytes = plan_least_memory(ops, &config);
        plan_check_failing_init(p, ops, &config);
        plan_free(p);
    }
}

static void test_resident_init_may_fail(void **state)
{
    (void)state;
    check_failing_init(&drps_store_resident, NULL);
}

static void test_pib_init_may_fail(void **state)
{
    check_failing_init(&drps_store_pib, *state);
}

/* Runs of random lengths, one going on with the rows of another. */
static void reopen_on(const struct drps_store_ops *ops, const struct drps_kv_ops *kv)
{
    const uint64_t seed = test_seed(kv ? kv->name : ops->name);
    for (size_t i = 0; i < 2 * SHAPES; i++) {
        struct plan *p = plan_new(seed + i, &shapes[i % SHAPES]);
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_store_config config = plan_config(p);
        struct plan_store r;
        const size_t end = p->epoch_steps + p->epoch_steps / 2;
        char *dir = scratch_new();
        config.dir = dir;
        config.kv = kv;
        config.memory_bytes = plan_least_memory(ops, &config);
        int rc = plan_open(&r, p, ops, &config, &err);
        for (size_t k = 0; rc == 0 && k < 3; k++) {
            const size_t left = end - r.next;
            rc = plan_steps(&r, r.next + drps_rng_at(seed, 10 * i + k) % (left + 1), &err);
            char *before = dir;
            config.dir = dir = scratch_new();
            if (rc == 0) rc = plan_leave(&r, &err);
            if (rc == 0) rc = plan_reopen(&r, ops, &config, &err);
            scratch_remove(before);
        }
        if (rc == 0) rc = plan_steps(&r, end, &err);
        if (rc == 0) rc = plan_scan(&r, 0, &err);
        if (rc < 0) fail_msg("%s", err.text);
        plan_close(&r);
        scratch_remove(dir);
        plan_free(p);
    }
}

static void test_resident_goes_on(void **state)
{
    (void)state;
    reopen_on(&drps_store_resident, NULL);
}

static void test_pib_goes_on(void **state)
{
    reopen_on(&drps_store_pib, *state);
}

/* Rows that no training step touches are created anew whenever they come back, and never written.
 */
static void test_pib_read_only_steps_write_nothing(void **state)
{
    const struct drps_kv_ops *kv = *state;
    struct plan *p = plan_new(test_seed("read only"), &shapes[0]);
    struct drps_store_stats stats;
    for (size_t s = 0; s < p->n_steps; s++)
        p->steps[s].changes = 0;
    run_on(p, &drps_store_pib, kv, 0, 0, 0, &stats);
    assert_int_equal(stats.io.writes, 0);
    assert_int_equal(stats.io.reads, 0);
    assert_true(stats.blocks_created > 0);
    plan_free(p);
}

static void test_pib_closes_at_any_time(void **state)
{
    const struct drps_kv_ops *kv = *state;
    struct plan *p = plan_new(test_seed("close"), &shapes[0]);
    struct drps_err err = DRPS_ERR_INIT;
    for (size_t stop = 0; stop < 40; stop += 3) {
        struct drps_store_config config = plan_config(p);
        struct drps_store *st;
        struct drps_rows rows;
        char *dir = scratch_new();
        config.dir = dir;
        config.kv = kv;
        config.memory_bytes = plan_least_memory(&drps_store_pib, &config);
        assert_int_equal(drps_store_pib.open(&config, &st, &err), 0);
        for (size_t s = 0; s <= stop; s++) {
            const struct plan_step *step = &p->steps[s];
            assert_int_equal(drps_store_pib.step_open(st, s, step->ids, step->n_ids, &rows, &err),
                             0);
            if (s == stop && stop % 2) break; /* with a step open */
            assert_int_equal(drps_store_pib.step_close(st, s, 1, &err), 0);
        }
        drps_store_pib.close(st);
        scratch_remove(dir);
    }
    plan_free(p);
}

static void test_close_accepts_null(void **state)
{
    (void)state;
    drps_store_resident.close(NULL);
    drps_store_pib.close(NULL);
}

static void check_order(const struct plan *p, const struct drps_store_ops *ops,
                        const struct drps_kv_ops *kv)
{
    struct drps_store_config config = plan_config(p);
    struct drps_store *st;
    struct drps_rows rows;
    struct drps_err err = DRPS_ERR_INIT;
    char *dir = scratch_new();
    const struct plan_step *s0 = &p->steps[0], *s1 = &p->steps[1];
    config.dir = dir;
    config.kv = kv;
    config.memory_bytes = plan_least_memory(ops, &config);
    assert_int_equal(ops->open(&config, &st, &err), 0);
    assert_int_equal(ops->step_close(st, 0, 0, NULL), -EINVAL);
    assert_int_equal(ops->step_open(st, 1, s1->ids, s1->n_ids, &rows, NULL), -EINVAL);
    uint32_t beyond = p->rows;
    assert_int_equal(ops->step_open(st, 0, &beyond, 1, &rows, &err), -EINVAL);
    assert_non_null(strstr(err.text, "row"));
    drps_err_clear(&err);
    assert_int_equal(ops->step_open(st, 0, s0->ids, s0->n_ids, &rows, &err), 0);
    assert_int_equal(ops->step_open(st, 1, s1->ids, s1->n_ids, &rows, NULL), -EINVAL);
    assert_int_equal(ops->scan(st, 0, NULL, NULL, NULL), -EINVAL);
    assert_int_equal(ops->step_close(st, 1, 0, NULL), -EINVAL);
    assert_int_equal(ops->step_close(st, 0, 0, &err), 0);
    assert_int_equal(ops->step_open(st, 0, s0->ids, s0->n_ids, &rows, NULL), -EINVAL);
    assert_int_equal(ops->step_open(st, 1, s1->ids, s1->n_ids, &rows, &err), 0);
    assert_int_equal(ops->step_close(st, 1, 0, &err), 0);
    ops->close(st);
    scratch_remove(dir);
}

static void test_wrong_order_is_refused(void **state)
{
    (void)state;
    struct plan *p = plan_new(test_seed("order"), &shapes[0]);
    check_order(p, &drps_store_resident, NULL);
    check_order(p, &drps_store_pib, drps_kv_engines()[0]);
    plan_free(p);
}

static void test_pib_refuses_rows_outside_its_blocks(void **state)
{
    (void)state;
    static const char *const trace[] = {"02", "1"};
    static const uint32_t bad[][2] = {{0, 1}, {1, 2}, {2, 0}, {0, 3}};
    struct plan *p = plan_from_trace(trace, 2, 4);
    struct drps_store_config config = plan_config(p);
    struct drps_store *st;
    struct drps_rows rows;
    char *dir = scratch_new();
    config.dir = dir;
    config.kv = drps_kv_engines()[0];
    config.memory_bytes = plan_least_memory(&drps_store_pib, &config);
    assert_int_equal(drps_store_pib.open(&config, &st, NULL), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(drps_store_pib.step_open(st, 0, bad[i], 2, &rows, NULL), -EINVAL);
    drps_store_pib.close(st);
    scratch_remove(dir);
    plan_free(p);
}

static void test_too_small_memory_names_what_would_do(void **state)
{
    (void)state;
    struct plan *p = plan_new(test_seed("memory"), &shapes[2]);
    struct drps_store_config config = plan_config(p);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_store *st;
    char *dir = scratch_new();
    char number[32];
    config.dir = dir;
    config.kv = drps_kv_engines()[0];
    uint64_t least = plan_least_memory(&drps_store_pib, &config);
    config.memory_bytes = least - 1;
    assert_int_equal(drps_store_pib.open(&config, &st, &err), DRPS_E_MEMORY_BUDGET);
    assert_null(st);
    (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)least);
    assert_non_null(strstr(err.text, number));
    drps_err_clear(&err);

    /* Not told how large steps are, it opens, and fails at the first step that does not fit. */
    config.step = (struct drps_step_size){.rows = 1};
    config.memory_bytes = 0;
    assert_int_equal(drps_store_pib.open(&config, &st, NULL), DRPS_E_MEMORY_BUDGET);
    uint64_t least_unknown, most;
    assert_int_equal(drps_store_pib.memory_need(&config, &least_unknown, &most, &err), 0);
    config.memory_bytes = least_unknown;
    int rc = plan_run(p, &drps_store_pib, &config, NULL, &err);
    assert_int_equal(rc, DRPS_E_MEMORY_BUDGET);

    assert_int_equal(drps_store_resident.memory_need(&config, &least, &most, NULL), 0);
    assert_int_equal(least, (uint64_t)p->rows * p->row_bytes);
    config.memory_bytes = least - 1;
    assert_int_equal(drps_store_resident.open(&config, &st, NULL), DRPS_E_MEMORY_BUDGET);
    scratch_remove(dir);
    plan_free(p);
}

static void test_memory_does_not_grow_with_epochs(void **state)
{
    (void)state;
    struct plan *p = plan_new(1, &shapes[1]);
    struct drps_store_config config = plan_config(p);
    struct drps_timeline timeline = {.steps = 100, .max_use_distance = 100};
    uint64_t one_epoch, many, unknown, most;
    config.kv = drps_kv_engines()[0];
    config.timeline = &timeline;
    assert_int_equal(drps_store_pib.memory_need(&config, &one_epoch, &most, NULL), 0);
    timeline.steps = 100 * 100000;
    assert_int_equal(drps_store_pib.memory_need(&config, &many, &most, NULL), 0);
    assert_int_equal(many, one_epoch);
    timeline.max_use_distance = 0;
    assert_int_equal(drps_store_pib.memory_need(&config, &unknown, &most, NULL), 0);
    assert_true(unknown > many);
    plan_free(p);
}

/* Below LevelDB a pool of one step's blocks is not enough: the least has room for those of four. */
static void test_least_pool_is_as_large_as_the_engine_asks(void **state)
{
    (void)state;
    struct plan *p = plan_new(1, &shapes[1]);
    struct drps_store_config config = plan_config(p);
    struct drps_step_size steps = config.step;
    struct drps_pool_shape one, four;
    config.kv = drps_kv_find("leveldb");
    if (!config.kv || !drps_kv_find("rocksdb")) skip();
    steps.blocks *= 4;
    steps.block_rows = steps.block_rows * 4 < p->rows ? steps.block_rows * 4 : p->rows;
    if (steps.blocks > p->blocks) steps.blocks = p->blocks;
    drps_pool_shape(p->block_first, p->blocks, p->row_bytes, &config.step, 0, &one);
    drps_pool_shape(p->block_first, p->blocks, p->row_bytes, &steps, 0, &four);
    assert_true(four.least_bytes > one.least_bytes);
    const uint64_t asked = plan_least_memory(&drps_store_pib, &config);
    config.open_steps = 4; /* not those beside them */
    assert_int_equal(plan_least_memory(&drps_store_pib, &config), asked);
    config.open_steps = 1;
    config.kv = drps_kv_find("rocksdb");
    assert_int_equal(asked - plan_least_memory(&drps_store_pib, &config),
                     four.least_bytes - one.least_bytes);
    plan_free(p);
}

static void test_bad_configs_are_refused(void **state)
{
    (void)state;
    struct plan *p = plan_new(1, &shapes[1]);
    struct drps_store_config good = plan_config(p);
    struct drps_store *st;
    uint64_t least, most;
    good.kv = drps_kv_engines()[0];
    struct drps_store_config bad = good;
    bad.row_bytes = 6;
    assert_int_equal(drps_store_pib.memory_need(&bad, &least, &most, NULL), -EINVAL);
    assert_int_equal(drps_store_resident.open(&bad, &st, NULL), -EINVAL);
    bad = good;
    bad.rows++;
    assert_int_equal(drps_store_pib.memory_need(&bad, &least, &most, NULL), -EINVAL);
    bad = good;
    bad.blocks = 0;
    assert_int_equal(drps_store_pib.open(&bad, &st, NULL), -EINVAL);
    bad = good;
    bad.timeline = NULL;
    assert_int_equal(drps_store_pib.open(&bad, &st, NULL), -EINVAL);
    bad = good;
    bad.rows = 1ull << 40;
    assert_int_equal(drps_store_resident.open(&bad, &st, NULL), DRPS_E_CONFIG);
    plan_free(p);
}

int main(void)
{
    const struct CMUnitTest once[] = {
        cmocka_unit_test(test_resident_equals_model),
        cmocka_unit_test(test_resident_shows_several_steps),
        cmocka_unit_test(test_resident_init_may_fail),
        cmocka_unit_test(test_resident_goes_on),
        cmocka_unit_test(test_too_many_open_steps_are_refused),
        cmocka_unit_test(test_close_accepts_null),
        cmocka_unit_test(test_wrong_order_is_refused),
        cmocka_unit_test(test_pib_refuses_rows_outside_its_blocks),
        cmocka_unit_test(test_too_small_memory_names_what_would_do),
        cmocka_unit_test(test_least_pool_is_as_large_as_the_engine_asks),
        cmocka_unit_test(test_bad_configs_are_refused),
        cmocka_unit_test(test_memory_does_not_grow_with_epochs),
    };
    struct CMUnitTest tests[48];
    size_t n = sizeof(once) / sizeof(*once);
    memcpy(tests, once, sizeof(once));
    for (const struct drps_kv_ops *const *kv = drps_kv_engines(); *kv; kv++) {
        void *ctx = (void *)*kv;
        tests[n++] = (struct CMUnitTest)cmocka_unit_test_prestate(test_pib_equals_model, ctx);
        tests[n++] =
            (struct CMUnitTest)cmocka_unit_test_prestate(test_pib_shows_several_steps, ctx);
        tests[n++] = (struct CMUnitTest)cmocka_unit_test_prestate(
            test_pib_read_only_steps_write_nothing, ctx);
        tests[n++] = (struct CMUnitTest)cmocka_unit_test_prestate(test_pib_closes_at_any_time, ctx);
        tests[n++] = (struct CMUnitTest)cmocka_unit_test_prestate(test_pib_init_may_fail, ctx);
        tests[n++] = (struct CMUnitTest)cmocka_unit_test_prestate(test_pib_goes_on, ctx);
    }
    return _cmocka_run_group_tests("store", tests, n, NULL, NULL);
}
