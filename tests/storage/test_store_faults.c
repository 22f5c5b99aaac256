/*
 * Failing engines under the block store: whichever call fails first, the error comes out with its
 * text, nothing hangs, and close releases everything (the sanitised build checks that).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "storage/kv/drps_kv.h"
#include "support/store_run.h"

/* An engine that passes calls on to a real one until its countdown ends. */
struct faulty {
    const struct drps_kv_ops *ops;
    struct drps_kv *inner;
};

enum operation { NO_FAULT, OPEN, GET, PUT, SCAN };

static struct {
    const struct drps_kv_ops *ops; /* the real one */
    enum operation which;
    _Atomic long countdown; /* the call that brings it to 0 fails, and all later ones */
    _Atomic int fired;
    _Atomic int slow_us; /* every get takes at least that long */
} plan_of_faults;

static int strikes(enum operation which, struct drps_err *err)
{
    if (plan_of_faults.which != which || --plan_of_faults.countdown > 0) return 0;
    plan_of_faults.fired = 1;
    return drps_err_set(err, -EIO, "injected fault");
}

static int faulty_open(const char *path, const struct drps_kv_options *options,
                       struct drps_kv **kv_out, struct drps_err *err)
{
    *kv_out = NULL;
    if (strikes(OPEN, err)) return -EIO;
    struct faulty *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    int rc = plan_of_faults.ops->open(path, options, &f->inner, err);
    if (rc < 0)
        free(f);
    else
        *kv_out = (struct drps_kv *)f;
    return rc;
}

static int faulty_get(struct drps_kv *kv, const uint32_t *keys, size_t n, void *const *values_out,
                      const size_t *value_bytes, struct drps_err *err)
{
    for (size_t i = 1; i < n; i++)
        if (keys[i] <= keys[i - 1]) return drps_err_set(err, -EINVAL, "keys not increasing");
    if (plan_of_faults.slow_us) (void)usleep((useconds_t)plan_of_faults.slow_us);
    if (strikes(GET, err)) return -EIO;
    return plan_of_faults.ops->get_many(((struct faulty *)kv)->inner, keys, n, values_out,
                                        value_bytes, err);
}

static int faulty_put(struct drps_kv *kv, const uint32_t *keys, size_t n, const void *const *values,
                      const size_t *value_bytes, struct drps_err *err)
{
    if (strikes(PUT, err)) return -EIO;
    return plan_of_faults.ops->put_many(((struct faulty *)kv)->inner, keys, n, values, value_bytes,
                                        err);
}

static int faulty_scan(struct drps_kv *kv, uint32_t first, uint32_t end, drps_kv_visit visit,
                       void *ctx, struct drps_err *err)
{
    if (strikes(SCAN, err)) return -EIO;
    return plan_of_faults.ops->scan(((struct faulty *)kv)->inner, first, end, visit, ctx, err);
}

static int faulty_sync(struct drps_kv *kv, struct drps_err *err)
{
    return plan_of_faults.ops->sync(((struct faulty *)kv)->inner, err);
}

static void faulty_stats(const struct drps_kv *kv, struct drps_kv_stats *out)
{
    plan_of_faults.ops->stats(((const struct faulty *)kv)->inner, out);
}

static void faulty_memory_need(const struct drps_kv_options *options, uint64_t *least_out,
                               uint64_t *most_out)
{
    plan_of_faults.ops->memory_need(options, least_out, most_out);
}

static void faulty_close(struct drps_kv *kv)
{
    if (!kv) return;
    plan_of_faults.ops->close(((struct faulty *)kv)->inner);
    free(kv);
}

static const struct drps_kv_ops faulty_ops = {
    .name = "faulty",
    .memory_need = faulty_memory_need,
    .open = faulty_open,
    .get_many = faulty_get,
    .put_many = faulty_put,
    .scan = faulty_scan,
    .sync = faulty_sync,
    .stats = faulty_stats,
    .close = faulty_close,
};

static int run_with_fault(const struct plan *p, enum operation which, long countdown,
                          struct drps_err *err)
{
    struct drps_store_config config = plan_config(p);
    char *dir = scratch_new();
    plan_of_faults.which = which;
    plan_of_faults.countdown = countdown;
    plan_of_faults.fired = 0;
    config.dir = dir;
    config.kv = &faulty_ops;
    config.threads = 3;
    config.memory_bytes = plan_least_memory(&drps_store_pib, &config);
    int rc = plan_run(p, &drps_store_pib, &config, NULL, err);
    scratch_remove(dir);
    return rc;
}

static const struct plan_shape shape = {.rows = 1000,
                                        .max_block_rows = 10,
                                        .max_step_rows = 60,
                                        .row_bytes = 16,
                                        .epoch_steps = 15,
                                        .epochs = 2};

/* The countdown goes up until a whole run passes without reaching it. */
static void test_every_fault_surfaces(void **state)
{
    static const struct {
        const char *name;
        enum operation which;
        long stride;
    } cases[] = {{"open", OPEN, 1}, {"get", GET, 5}, {"put", PUT, 5}, {"scan", SCAN, 1}};
    (void)state;
    struct plan *p = plan_new(test_seed("faults"), &shape);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        long countdown = 1;
        for (;; countdown += cases[i].stride) {
            struct drps_err err = DRPS_ERR_INIT;
            int rc = run_with_fault(p, cases[i].which, countdown, &err);
            if (!plan_of_faults.fired) {
                if (rc) fail_msg("%s: %s", cases[i].name, err.text);
                break;
            }
            if (rc != -EIO || !strstr(err.text, "injected fault"))
                fail_msg("%s %ld: code %d, text \"%s\"", cases[i].name, countdown, rc, err.text);
        }
        assert_true(countdown > 1);
    }
    plan_free(p);
}

/* After a failure every call says so, and no call waits. */
static void test_failure_is_kept(void **state)
{
    (void)state;
    static const char *const trace[] = {"01", "23", "01", "23", "01", "23"};
    struct plan *p = plan_from_trace(trace, 6, 4);
    struct drps_store_config config = plan_config(p);
    struct drps_store *st;
    struct drps_rows rows;
    struct drps_err err = DRPS_ERR_INIT;
    char *dir = scratch_new();
    plan_of_faults.which = PUT;
    plan_of_faults.countdown = 1;
    config.dir = dir;
    config.kv = &faulty_ops;
    config.memory_bytes = plan_least_memory(&drps_store_pib, &config);
    assert_int_equal(drps_store_pib.open(&config, &st, &err), 0);
    assert_int_equal(drps_store_pib.step_open(st, 0, p->steps[0].ids, 2, &rows, &err), 0);
    (void)drps_store_pib.step_close(
        st, 0, 1, NULL); /* step 1's eviction may have failed by now, or not yet */
    for (int i = 0; i < 3; i++) {
        drps_err_clear(&err);
        assert_int_equal(drps_store_pib.step_open(st, 1, p->steps[1].ids, 2, &rows, &err), -EIO);
        assert_non_null(strstr(err.text, "injected fault"));
        assert_int_equal(drps_store_pib.scan(st, 0, NULL, NULL, NULL), -EIO);
    }
    drps_store_pib.close(st);
    scratch_remove(dir);
    plan_free(p);
}

static int bad_blocks(void *ctx, uint64_t step, struct drps_step_blocks *out, struct drps_err *err)
{
    static const uint32_t blocks[] = {1, 0};
    static const uint64_t next_use[] = {UINT64_MAX, UINT64_MAX};
    (void)step;
    if (!ctx) return drps_err_set(err, DRPS_E_FORMAT, "no such step");
    *out = (struct drps_step_blocks){.blocks = blocks, .next_use = next_use, .n = 2};
    return 0;
}

static void test_bad_timeline_is_refused(void **state)
{
    (void)state;
    static const char *const trace[] = {"01"};
    struct plan *p = plan_from_trace(trace, 1, 4);
    plan_of_faults.which = NO_FAULT;
    for (int i = 0; i < 2; i++) {
        struct drps_store_config config = plan_config(p);
        struct drps_timeline bad = {.ctx = i ? p : NULL, .steps = 1, .step_blocks = bad_blocks};
        struct drps_err err = DRPS_ERR_INIT;
        char *dir = scratch_new();
        config.dir = dir;
        config.kv = &faulty_ops;
        config.timeline = &bad;
        config.memory_bytes = plan_least_memory(&drps_store_pib, &config);
        assert_int_equal(plan_run(p, &drps_store_pib, &config, NULL, &err),
                         i ? DRPS_E_CORRUPT : DRPS_E_FORMAT);
        scratch_remove(dir);
    }
    plan_free(p);
}

/* Reads slower than the steps: the engine waits, the wait is counted, and the bytes are still
 * right. */
static void test_slow_reads_stall_and_are_counted(void **state)
{
    (void)state;
    struct plan *p = plan_new(test_seed("stall"), &shape);
    struct drps_store_config config = plan_config(p);
    struct drps_store_stats stats;
    struct drps_err err = DRPS_ERR_INIT;
    char *dir = scratch_new();
    plan_of_faults.which = NO_FAULT;
    plan_of_faults.slow_us = 2000;
    config.dir = dir;
    config.kv = &faulty_ops;
    config.memory_bytes = plan_least_memory(&drps_store_pib, &config);
    if (plan_run(p, &drps_store_pib, &config, &stats, &err) < 0) fail_msg("%s", err.text);
    assert_true(stats.stalled_steps > 0 && stats.stall_ns > 1000000);
    assert_true(drps_latency_quantile_us(&stats.io.read_latency, 0.5) >= 1900);
    plan_of_faults.slow_us = 0;
    scratch_remove(dir);
    plan_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_fault_surfaces),
        cmocka_unit_test(test_failure_is_kept),
        cmocka_unit_test(test_bad_timeline_is_refused),
        cmocka_unit_test(test_slow_reads_stall_and_are_counted),
    };
    plan_of_faults.ops = drps_kv_engines()[0];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
