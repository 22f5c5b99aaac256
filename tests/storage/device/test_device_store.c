/*
 * Stores of a device show the same bytes as a plain array: all rows on the device, and tiers with
 * room for few and for many rows, the others in memory, or most of them on disk. Argument: the
 * library of kernels; without a device that it can open the test is skipped.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "device/drps_device_use.h"
#include "storage/device/drps_device_rows.h"
#include "storage/device/frames.h"
#include "support/fault_io.h"
#include "support/on_device.h"
#include "support/store_run.h"

static struct drps_device_use use;

static void must(int rc)
{
    if (rc < 0) fail_msg("%s", use.why);
}

/* ---- A store of a device whose rows the host can read: what a step opens is copied ---- */

enum { EVENT = 0 /* of those of workers, none of which is there */ };

struct host_store {
    const struct drps_store_ops *ops;
    const struct drps_store_ops *inner_ops;
    struct drps_store *inner;
    size_t row_bytes;
    struct drps_rows rows; /* of the open step, on the device */
    char *pinned, *device; /* frames of the step, then its rows */
    uint32_t *identity;    /* [most] */
    size_t most;
};

static const struct drps_store_ops *inner_ops; /* that the next store is opened with */
static const struct drps_store_ops host_ops, host_ops_by_slot;

/* The store that the host can read which is opened with `ops`. */
static const struct drps_store_ops *readable(const struct drps_store_ops *ops)
{
    inner_ops = ops;
    return ops->by_slot ? &host_ops_by_slot : &host_ops;
}

static void host_close(struct drps_store *base)
{
    struct host_store *st = (struct host_store *)base;
    if (!st) return;
    st->inner_ops->close(st->inner);
    use.ops->unpin(use.dev, st->pinned);
    use.ops->release(use.dev, st->device);
    free(st->identity);
    free(st);
}

static int host_open(const struct drps_store_config *config, struct drps_store **st_out,
                     struct drps_err *err)
{
    struct host_store *st = calloc(1, sizeof(*st));
    void *memory;
    *st_out = NULL;
    assert_non_null(st);
    st->ops = inner_ops->by_slot ? &host_ops_by_slot : &host_ops;
    st->inner_ops = inner_ops;
    st->row_bytes = config->row_bytes;
    st->most = config->rows;
    const size_t bytes = st->most * (sizeof(uint32_t) + st->row_bytes);
    must(use.ops->pin(use.dev, bytes, &memory, use.why));
    st->pinned = memory;
    must(use.ops->alloc(use.dev, bytes, &memory, use.why));
    st->device = memory;
    st->identity = malloc(st->most * sizeof(*st->identity));
    assert_non_null(st->identity);
    for (size_t i = 0; i < st->most; i++)
        st->identity[i] = (uint32_t)i;
    int rc = inner_ops->open(config, &st->inner, err);
    if (rc < 0)
        host_close((struct drps_store *)st);
    else
        *st_out = (struct drps_store *)st;
    return rc;
}

static int host_need(const struct drps_store_config *config, uint64_t *least_out,
                     uint64_t *most_out, struct drps_err *err)
{
    return inner_ops->memory_need(config, least_out, most_out, err);
}

static struct drps_device_rows frames_of(const struct host_store *st)
{
    return (struct drps_device_rows){st->rows.base, st->rows.stride};
}

static int host_step_open(struct drps_store *base, uint64_t step, const uint32_t *ids, size_t n,
                          struct drps_rows *rows_out, struct drps_err *err)
{
    struct host_store *st = (struct host_store *)base;
    const size_t head = st->most * sizeof(uint32_t), bytes = n * st->row_bytes;
    const uint32_t *frames = (const uint32_t *)(void *)st->device;
    int rc = st->inner_ops->step_open(st->inner, step, ids, n, &st->rows, err);
    *rows_out = (struct drps_rows){0};
    if (rc < 0) return rc;
    const struct drps_device_rows rows = frames_of(st);
    memcpy(st->pinned, st->rows.index, n * sizeof(uint32_t));
    must(use.ops->upload(use.dev, DRPS_DEVICE_COMPUTE, st->device, st->pinned, n * sizeof(uint32_t),
                         use.why));
    must(use.ops->gather(use.dev, DRPS_DEVICE_COMPUTE, &rows, frames, n, st->row_bytes,
                         st->device + head, use.why));
    must(use.ops->download(use.dev, DRPS_DEVICE_COMPUTE, st->pinned + head, st->device + head,
                           bytes, use.why));
    must(use.ops->mark(use.dev, DRPS_DEVICE_COMPUTE, EVENT, use.why));
    must(use.ops->wait(use.dev, EVENT, use.why));
    *rows_out = (struct drps_rows){
        .base = st->pinned + head, .stride = st->row_bytes, .index = st->identity, .n = n};
    return 0;
}

/* What is changed goes back, as late as the device likes. */
static int host_step_close(struct drps_store *base, uint64_t step, int changed,
                           struct drps_err *err)
{
    struct host_store *st = (struct host_store *)base;
    const size_t head = st->most * sizeof(uint32_t), n = st->rows.n;
    const struct drps_device_rows rows = frames_of(st);
    if (changed) {
        must(use.ops->upload(use.dev, DRPS_DEVICE_COMPUTE, st->device + head, st->pinned + head,
                             n * st->row_bytes, use.why));
        must(use.ops->mark(use.dev, DRPS_DEVICE_COMPUTE, EVENT, use.why));
        must(use.ops->wait(use.dev, EVENT, use.why)); /* the next step fills it again */
        must(use.ops->scatter(use.dev, DRPS_DEVICE_COMPUTE, &rows,
                              (const uint32_t *)(void *)st->device, n, st->row_bytes,
                              st->device + head, use.why));
    }
    return st->inner_ops->step_close(st->inner, step, changed, err);
}

static int host_scan(struct drps_store *base, size_t bytes, drps_row_visit visit, void *ctx,
                     struct drps_err *err)
{
    struct host_store *st = (struct host_store *)base;
    return st->inner_ops->scan(st->inner, bytes, visit, ctx, err);
}

static int host_scan_changed(struct drps_store *base, drps_row_visit visit, void *ctx,
                             struct drps_err *err)
{
    struct host_store *st = (struct host_store *)base;
    return st->inner_ops->scan_changed(st->inner, visit, ctx, err);
}

static void host_forget(struct drps_store *base)
{
    struct host_store *st = (struct host_store *)base;
    st->inner_ops->forget_changes(st->inner);
}

static void host_stats(struct drps_store *base, struct drps_store_stats *out)
{
    struct host_store *st = (struct host_store *)base;
    st->inner_ops->stats(st->inner, out);
}

static const struct drps_store_ops host_ops = {
    .name = "host",
    .memory_need = host_need,
    .open = host_open,
    .step_open = host_step_open,
    .step_close = host_step_close,
    .scan = host_scan,
    .scan_changed = host_scan_changed,
    .forget_changes = host_forget,
    .stats = host_stats,
    .close = host_close,
};

static const struct drps_store_ops host_ops_by_slot = {
    .name = "host, by slot",
    .by_slot = 1,
    .memory_need = host_need,
    .open = host_open,
    .step_open = host_step_open,
    .step_close = host_step_close,
    .scan = host_scan,
    .stats = host_stats,
    .close = host_close,
};

/* ---- Runs ---- */

static const struct plan_shape shapes[] = {
    {.rows = 3000,
     .max_block_rows = 20,
     .max_step_rows = 150,
     .row_bytes = 16,
     .epoch_steps = 30,
     .epochs = 3},
    {.rows = 500,
     .max_block_rows = 1,
     .max_step_rows = 40,
     .row_bytes = 4,
     .epoch_steps = 40,
     .epochs = 4},
    {.rows = 60,
     .max_block_rows = 9,
     .max_step_rows = 60,
     .row_bytes = 2000,
     .epoch_steps = 15,
     .epochs = 4},
};
enum { SHAPES = sizeof(shapes) / sizeof(*shapes) };

static void run_on(const struct plan *p, const struct drps_store_ops *ops, uint64_t frames,
                   uint64_t mark_rows, struct drps_store_stats *stats)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_store_config config = plan_config(p);
    config.device = &use;
    config.device_frames = frames;
    config.mark_rows = mark_rows;
    if (plan_run(p, readable(ops), &config, stats, &err) < 0)
        fail_msg("%s: %s", ops->name, err.text);
}

/* The config of a store with so many frames, and so much more memory than the least. */
static struct drps_store_config disk_config(const struct plan *p, uint64_t frames,
                                            uint64_t more_memory, const char *dir)
{
    struct drps_store_config config = plan_config(p);
    config.device = &use;
    config.device_frames = frames;
    config.dir = dir;
    config.memory_bytes = plan_least_memory(&drps_store_tiered_disk, &config) + more_memory;
    return config;
}

static void run_on_disk(const struct plan *p, uint64_t frames, uint64_t more_memory,
                        struct drps_store_stats *stats)
{
    struct drps_err err = DRPS_ERR_INIT;
    char *dir = scratch_new();
    const struct drps_store_config config = disk_config(p, frames, more_memory, dir);
    if (plan_run(p, readable(&drps_store_tiered_disk), &config, stats, &err) < 0)
        fail_msg("%s", err.text);
    scratch_remove(dir);
}

static void test_all_rows_equal_the_model(void **state)
{
    (void)state;
    const uint64_t seed = test_seed("device");
    for (size_t i = 0; i < SHAPES; i++) {
        struct plan *p = plan_new(seed + i, &shapes[i]);
        struct drps_store_stats stats;
        run_on(p, &drps_store_device, p->rows, 1 + (seed + i) % 40, &stats);
        assert_int_equal(stats.steps, p->n_steps);
        plan_free(p);
    }
}

static void test_three_tiers_equal_the_model(void **state)
{
    (void)state;
    const uint64_t seed = test_seed("tiers");
    for (size_t i = 0; i < 3 * SHAPES; i++) {
        struct plan *p = plan_new(seed + i, &shapes[i % SHAPES]);
        struct drps_store_stats stats;
        plan_cut(p, seed + i, 1 + i);
        const uint64_t least = p->source.working_rows, left = p->rows - least;
        run_on(p, &drps_store_tiered, least + (i < SHAPES ? 0 : left * (i / SHAPES) / 3), 0,
               &stats);
        assert_int_equal(stats.steps, p->n_steps);
        assert_int_equal(stats.tiers.device_bytes % p->row_bytes, 0);
        assert_int_equal(stats.pool_bytes, (uint64_t)p->rows * p->row_bytes);
        if (i < SHAPES) assert_true(stats.tiers.rows_out > 0);
        plan_free(p);
    }
}

/* More room, fewer rows that move; with room for all, each comes once and none leaves. */
static void test_rows_wait_where_there_is_room(void **state)
{
    (void)state;
    struct plan *p = plan_new(5, &shapes[0]);
    struct drps_store_stats few, some, all;
    plan_cut(p, 5, 3);
    const uint64_t least = p->source.working_rows;
    run_on(p, &drps_store_tiered, least, 0, &few);
    run_on(p, &drps_store_tiered, least + least / 2, 0, &some);
    run_on(p, &drps_store_tiered, p->rows, 0, &all);
    assert_true(few.tiers.rows_out > some.tiers.rows_out && some.tiers.rows_out > 0);
    assert_int_equal(all.tiers.rows_out, 0);
    assert_true(all.tiers.rows_in < some.tiers.rows_in && some.tiers.rows_in < few.tiers.rows_in);
    plan_free(p);
}

/* Most rows are on disk. What comes to the device and leaves it is what windows do not share. */
static void test_rows_on_disk_equal_the_model(void **state)
{
    (void)state;
    const uint64_t seed = test_seed("disk");
    uint64_t read_bytes = 0;
    for (size_t i = 0; i < 4 * SHAPES; i++) {
        struct plan *p = plan_new(seed + i, &shapes[i % SHAPES]);
        struct drps_store_stats stats;
        uint64_t rows = 0, coming = 0;
        plan_cut(p, seed + i, 1 + i);
        run_on_disk(p, i % 2 ? p->rows : p->source.working_rows, i % 4 < 2 ? 0 : 1 << 20, &stats);
        for (uint32_t w = 0; w < p->source.windows; w++) {
            rows += p->windows[w].head.n;
            coming += p->windows[w].head.arriving;
        }
        assert_int_equal(stats.steps, p->n_steps);
        assert_int_equal(stats.windows, p->source.windows * p->source.epochs);
        assert_true(stats.tiers.device_bytes <= p->source.working_rows * p->row_bytes);
        assert_int_equal(stats.tiers.rows_in + stats.tiers.rows_kept, rows * p->source.epochs);
        assert_true(stats.tiers.rows_in <= coming * p->source.epochs + p->windows[0].head.n);
        assert_true(stats.tiers.rows_out <= stats.tiers.rows_in);
        assert_true(stats.tiers.rows_in - stats.tiers.rows_out <= p->source.working_rows);
        read_bytes += stats.io.read_bytes;
        plan_free(p);
    }
    assert_true(read_bytes > 0);
}

/* A run goes on in any store with the rows that another one has left, at any step. */
static void test_goes_on_in_another_store(void **state)
{
    (void)state;
    static const struct drps_store_ops *const kinds[] = {
        &drps_store_tiered_disk, &drps_store_tiered, &drps_store_relay, &drps_store_resident};
    enum { PARTS = 12 };
    const uint64_t seed = test_seed("another store");
    for (size_t i = 0; i < SHAPES; i++) {
        struct plan *p = plan_new(seed + i, &shapes[i]);
        struct drps_err err = DRPS_ERR_INIT;
        struct plan_store r;
        char *dir[PARTS];
        int rc = 0;
        for (size_t k = 0; k < PARTS && rc == 0; k++) {
            const struct drps_store_ops *ops = kinds[drps_rng_at(seed, PARTS * i + k) % 4];
            const int on_device = ops == kinds[0] || ops == kinds[1];
            if (k) rc = plan_leave(&r, &err);
            plan_cut(p, seed + k, 1 + k);
            dir[k] = scratch_new();
            struct drps_store_config config =
                disk_config(p, p->source.working_rows + p->rows / 8, 0, dir[k]);
            if (on_device) ops = readable(ops);
            if (ops == &drps_store_resident) config.memory_bytes = 0;
            if (rc == 0)
                rc = k ? plan_reopen(&r, ops, &config, &err) : plan_open(&r, p, ops, &config, &err);
            if (rc == 0) rc = plan_steps(&r, p->n_steps * (k + 1) / PARTS, &err);
        }
        if (rc == 0) rc = plan_scan(&r, 0, &err);
        if (rc < 0) fail_msg("seed %llu: %s", (unsigned long long)p->seed, err.text);
        plan_close(&r);
        for (size_t k = 0; k < PARTS; k++)
            scratch_remove(dir[k]);
        plan_free(p);
    }
}

/* Whichever call to the disk fails, and all after it, the error comes out of a step or a scan. */
static void test_faults_of_the_disk_come_out(void **state)
{
    (void)state;
    static const unsigned ops[] = {FAULT_PREAD, FAULT_PWRITE, FAULT_FALLOCATE};
    struct plan *p = plan_new(8, &shapes[0]);
    plan_cut(p, 8, 2);
    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
        int fired = 1;
        for (long k = 1; fired; k += k < 4 ? 1 : k / 2) {
            struct fault_io *f = fault_io_new(drps_io_os());
            struct drps_err err = DRPS_ERR_INIT;
            char *dir = scratch_new();
            struct drps_store_config config = disk_config(p, p->source.working_rows, 0, dir);
            config.io = &f->io;
            fault_io_arm(f, ops[i], k, 1, FAULT_ERROR, -EIO);
            const int rc = plan_run(p, readable(&drps_store_tiered_disk), &config, NULL, &err);
            fired = atomic_load(&f->fired) > 0;
            if (fired ? rc != -EIO || !err.text[0] : rc < 0)
                fail_msg("%s, call %ld: code %d, \"%s\"", fault_op_name(ops[i]), k, rc, err.text);
            assert_true(fired || k > 1);
            fault_io_free(f);
            scratch_remove(dir);
        }
    }
    plan_free(p);
}

/* There is memory for the tables of a store that has the least, and of more no byte is lost. */
static void test_memory_is_shared(void **state)
{
    (void)state;
    struct plan *p = plan_new(6, &shapes[0]);
    plan_cut(p, 6, 2);
    struct drps_store_config config = disk_config(p, p->source.working_rows, 0, NULL);
    struct drps_store_config alone = plan_config(p);
    const uint64_t relay = plan_least_memory(&drps_store_relay, &alone);
    const uint64_t tables = config.memory_bytes - relay;
    assert_true(tables > p->source.working_rows * 4 && tables < 1 << 20);
    assert_true(drps_tiered_below_bytes(&config) >= relay);
    assert_true(drps_tiered_below_bytes(&config) < relay + p->row_bytes);
    config.memory_bytes += UINT64_C(1) << 40;
    const uint64_t most_tables = config.memory_bytes - drps_tiered_below_bytes(&config);
    assert_true(most_tables >= p->rows * 4 + p->source.working_rows * 48 && most_tables < 1 << 20);
    config.memory_bytes = 1000; /* less than pieces take */
    assert_int_equal(drps_tiered_below_bytes(&config), 0);
    plan_free(p);
}

static void test_init_may_fail(void **state)
{
    (void)state;
    struct plan *p = plan_new(3, &shapes[2]);
    struct drps_store_config config = plan_config(p);
    config.device = &use;
    config.device_frames = p->rows;
    plan_check_failing_init(p, readable(&drps_store_device), &config);
    plan_cut(p, 3, 2);
    config.windows = &p->source;
    plan_check_failing_init(p, readable(&drps_store_tiered), &config);
    config = disk_config(p, p->source.working_rows, 0, NULL);
    plan_check_failing_init(p, readable(&drps_store_tiered_disk), &config);
    plan_free(p);
}

static void test_too_few_frames_are_refused(void **state)
{
    (void)state;
    struct plan *p = plan_new(4, &shapes[1]);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_store *st;
    plan_cut(p, 4, 3);
    struct drps_store_config config = plan_config(p);
    config.device = &use;
    config.device_frames = p->source.working_rows - 1;
    assert_int_equal(drps_store_tiered.open(&config, &st, &err), DRPS_E_MEMORY_BUDGET);
    assert_null(st);
    char *dir = scratch_new();
    config = disk_config(p, p->source.working_rows - 1, 0, dir);
    assert_int_equal(drps_store_tiered_disk.open(&config, &st, &err), DRPS_E_MEMORY_BUDGET);
    assert_null(st);
    config = disk_config(p, p->source.working_rows, 0, dir);
    config.memory_bytes /= 2;
    assert_int_equal(drps_store_tiered_disk.open(&config, &st, &err), DRPS_E_MEMORY_BUDGET);
    assert_null(st);
    scratch_remove(dir);
    drps_store_tiered.close(NULL);
    drps_store_tiered_disk.close(NULL);
    drps_store_device.close(NULL);
    plan_free(p);
}

/* A step that needs a row which its window does not have is refused, before the device reads it. */
static void test_rows_outside_a_window_are_refused(void **state)
{
    (void)state;
    static const char *const trace[] = {"0", "1"};
    struct plan *p = plan_from_trace(trace, 2, 4);
    struct drps_rows rows;
    struct drps_store *st;
    plan_cut(p, 1, 1);
    struct drps_store_config config = plan_config(p);
    const uint32_t outside = p->rows - 1, beyond = p->rows;
    config.device = &use;
    config.device_frames = p->rows;
    assert_int_equal(drps_store_tiered.open(&config, &st, NULL), 0);
    assert_int_equal(drps_store_tiered.step_open(st, 0, &outside, 1, &rows, NULL), -EINVAL);
    assert_int_equal(drps_store_tiered.step_open(st, 0, &beyond, 1, &rows, NULL), -EINVAL);
    drps_store_tiered.close(st);
    char *dir = scratch_new();
    const struct drps_store_config on_disk = disk_config(p, p->source.working_rows, 0, dir);
    const uint32_t slot = (uint32_t)p->windows[0].head.n;
    assert_int_equal(drps_store_tiered_disk.open(&on_disk, &st, NULL), 0);
    assert_int_equal(drps_store_tiered_disk.step_open(st, 0, &slot, 1, &rows, NULL), -EINVAL);
    drps_store_tiered_disk.close(st);
    scratch_remove(dir);
    config.mark_rows = 0;
    assert_int_equal(drps_store_device.open(&config, &st, NULL), 0);
    assert_int_equal(drps_store_device.step_open(st, 0, &beyond, 1, &rows, NULL), -EINVAL);
    drps_store_device.close(st);
    plan_free(p);
}

/* Those leave first that are used again last; whose window has come does not leave. */
static void test_frames_leave_in_the_order_of_their_next_use(void **state)
{
    (void)state;
    struct frames f;
    assert_int_equal(frames_init(&f, 100, 4, 9, NULL), 0);
    uint32_t of[4];
    for (uint32_t r = 0; r < 4; r++)
        of[r] = frames_put(&f, 10 + r);
    assert_int_equal(f.n_free, 0);
    frames_wait(&f, of[0], 12);
    frames_wait(&f, of[1], 14);
    frames_wait(&f, of[2], 11);
    frames_come_to(&f, 11);
    assert_int_equal(frames_take_farthest(&f, 11), of[1]);
    assert_int_equal(f.frame_of[11], FRAMES_NONE);
    assert_int_equal(f.place_of[of[1]], 11);
    assert_false(frames_has_row(&f, of[1]));
    assert_int_equal(frames_put(&f, 50), of[1]);
    assert_int_equal(frames_take_farthest(&f, 11), of[0]);
    assert_int_equal(frames_take_farthest(&f, 11), FRAMES_NONE);
    assert_int_equal(f.frame_of[12], of[2]);
    assert_int_equal(f.n_free, 1);
    frames_destroy(&f);
}

/* Of two windows a frame is held for the later one. */
static void test_frames_are_held_for_a_window(void **state)
{
    (void)state;
    struct frames f;
    assert_int_equal(frames_init(&f, 9, 2, 1, NULL), 0);
    assert_false(frames_has_row(&f, 0) || frames_has_row(&f, 1));
    const uint32_t frame = frames_put(&f, 0);
    frames_hold(&f, frame, 7);
    assert_true(frames_held_for(&f, frame, 7));
    frames_hold(&f, frame, 8);
    assert_false(frames_held_for(&f, frame, 7));
    assert_true(frames_has_row(&f, frame));
    frames_leave(&f, frame);
    assert_false(frames_has_row(&f, frame));
    assert_int_equal(f.n_free, 2);
    frames_destroy(&f);
}

/* check(store, its plan) of both kinds of tiers, in windows of the plan. */
static void with_each_kind(struct plan *p, void (*check)(struct plan_store *r, struct plan *p))
{
    static const struct drps_store_ops *const kinds[] = {&drps_store_tiered,
                                                         &drps_store_tiered_disk};
    for (size_t i = 0; i < 2; i++) {
        char *dir = scratch_new();
        const struct drps_store_config config = disk_config(p, p->source.working_rows, 0, dir);
        struct plan_store r;
        assert_int_equal(plan_open(&r, p, readable(kinds[i]), &config, NULL), 0);
        check(&r, p);
        plan_close(&r);
        scratch_remove(dir);
    }
    plan_free(p);
}

static struct plan *plan_of_windows(uint64_t seed, const struct plan_shape *shape)
{
    struct plan *p = plan_new(seed, shape);
    plan_cut(p, seed, 3);
    assert_true(p->source.windows > 1);
    return p;
}

static void check_no_step_behind(struct plan_store *r, struct plan *p)
{
    struct drps_rows rows;
    assert_int_equal(plan_steps(r, p->n_steps, NULL), 0);
    assert_int_equal(r->ops->step_open(r->st, p->n_steps, NULL, 0, &rows, NULL), -EINVAL);
    assert_int_equal(plan_scan(r, 0, NULL), 0);
}

/* Behind the last window of the last epoch nothing is fetched, and no step opens. */
static void test_no_step_behind_the_last(void **state)
{
    (void)state;
    with_each_kind(plan_of_windows(7, &shapes[2]), check_no_step_behind);
}

static void check_windows_ahead(struct plan_store *r, struct plan *p)
{
    struct drps_store_stats stats;
    assert_int_equal(plan_steps(r, 1, NULL), 0);
    assert_int_equal(plan_scan(r, 0, NULL), 0);
    r->ops->stats(r->st, &stats);
    assert_int_equal(stats.windows_ahead, 1);
    assert_int_equal(plan_steps(r, p->n_steps, NULL), 0);
    r->ops->stats(r->st, &stats);
    assert_int_equal(stats.windows_ahead, 0);
}

/* Once a scan has waited for the window after the open one, that window is ahead; behind the last
 * window there is none. */
static void test_windows_ahead_are_those_of_the_device(void **state)
{
    (void)state;
    with_each_kind(plan_of_windows(9, &shapes[0]), check_windows_ahead);
}

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_leave_in_the_order_of_their_next_use),
        cmocka_unit_test(test_frames_are_held_for_a_window),
        cmocka_unit_test(test_all_rows_equal_the_model),
        cmocka_unit_test(test_three_tiers_equal_the_model),
        cmocka_unit_test(test_rows_wait_where_there_is_room),
        cmocka_unit_test(test_rows_on_disk_equal_the_model),
        cmocka_unit_test(test_goes_on_in_another_store),
        cmocka_unit_test(test_no_step_behind_the_last),
        cmocka_unit_test(test_windows_ahead_are_those_of_the_device),
        cmocka_unit_test(test_faults_of_the_disk_come_out),
        cmocka_unit_test(test_memory_is_shared),
        cmocka_unit_test(test_init_may_fail),
        cmocka_unit_test(test_too_few_frames_are_refused),
        cmocka_unit_test(test_rows_outside_a_window_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return run_on_device(argc, argv, &use, all_tests);
}
