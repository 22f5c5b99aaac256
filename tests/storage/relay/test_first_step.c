/* A relay store that begins in the middle of an epoch ends with the rows of one that ran all steps,
 * whichever way rows go from window to window. */
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
#include "storage/relay/drps_relay.h"
#include "storage/relay/stream_layout.h"
#include "support/store_run.h"

enum { SEEDS = 3, EPOCHS = 3 };

static int holds_all(const struct drps_store_stats *s, uint32_t windows)
{
    (void)windows;
    return s->rows_sent == 0;
}

static int has_a_tail_each(const struct drps_store_stats *s, uint32_t windows)
{
    return s->rows_sent > 0 && !s->groups && s->tails == windows;
}

static int shares_tails(const struct drps_store_stats *s, uint32_t windows)
{
    return s->rows_sent > 0 && !s->groups && s->tails < windows;
}

static int has_groups(const struct drps_store_stats *s, uint32_t windows)
{
    (void)windows;
    return s->rows_sent > 0 && s->groups > 2;
}

/* Ways for rows, and the memory that leads to them. */
static const struct way {
    const char *name;
    struct plan_shape shape;
    size_t max_steps;  /* of a window */
    uint32_t held;     /* frames beyond two windows', a part of all rows in percent */
    int tight_buffers; /* 1: as few as are sure to do */
    int (*is)(const struct drps_store_stats *, uint32_t windows);
} ways[] = {
    {.name = "all rows in memory",
     .shape = {.rows = 700, .max_step_rows = 30, .row_bytes = 20, .epoch_steps = 40},
     .max_steps = 3,
     .held = 100,
     .is = holds_all},
    {.name = "streams",
     .shape = {.rows = 700, .max_step_rows = 30, .row_bytes = 20, .epoch_steps = 60},
     .max_steps = 3,
     .is = has_a_tail_each},
    {.name = "streams of few windows",
     .shape = {.rows = 700, .max_step_rows = 30, .row_bytes = 20, .epoch_steps = 30},
     .max_steps = 6,
     .is = has_a_tail_each},
    {.name = "streams, and rows that are held",
     .shape = {.rows = 700, .max_step_rows = 30, .row_bytes = 20, .epoch_steps = 60},
     .max_steps = 2,
     .held = 15,
     .is = has_a_tail_each},
    {.name = "streams of rows wider than a chunk",
     .shape = {.rows = 100, .max_step_rows = 20, .row_bytes = 5000, .epoch_steps = 40},
     .max_steps = 4,
     .is = has_a_tail_each},
    {.name = "shared tails",
     .shape = {.rows = 400, .row_bytes = 520, .epoch_steps = 144, .grid = 12},
     .max_steps = 2,
     .tight_buffers = 1,
     .is = shares_tails},
    {.name = "groups",
     .shape = {.rows = 900, .max_step_rows = 30, .row_bytes = 48, .epoch_steps = 120},
     .max_steps = 2,
     .tight_buffers = 1,
     .is = has_groups},
    {.name = "groups, and rows that are held",
     .shape = {.rows = 900, .max_step_rows = 30, .row_bytes = 48, .epoch_steps = 70},
     .max_steps = 1,
     .held = 10,
     .tight_buffers = 1,
     .is = has_groups},
};

enum { WAYS = sizeof(ways) / sizeof(*ways) };

static struct plan *new_plan(const struct way *way, uint64_t seed)
{
    struct plan_shape shape = way->shape;
    shape.max_block_rows = 9;
    shape.epochs = EPOCHS;
    struct plan *p = plan_new(seed, &shape);
    plan_cut(p, seed, way->max_steps);
    return p;
}

static struct drps_store_config config_of(const struct plan *p, const struct way *way)
{
    struct drps_store_config config = plan_config(p);
    struct drps_relay_share share;
    drps_relay_share(0, p->rows, p->row_bytes, 0, &share);
    if (way->tight_buffers) share.buffer_bytes = drps_stream_layout_sure_bytes(p->source.windows);
    config.buffer_bytes = share.buffer_bytes;
    config.chunk_bytes = 4096;
    config.scan_bytes = 4;
    config.memory_bytes = share.buffer_bytes + share.scan_bytes +
                          p->source.working_rows * share.row_bytes +
                          (uint64_t)way->held * p->rows / 100 * share.held_bytes;
    return config;
}

/* The last store has opened the windows from that of its first step on, and no other. */
static void check_windows(const struct plan_store *r, const struct drps_store_stats *stats)
{
    const struct plan *p = r->p;
    uint64_t before = 0;
    struct drps_rows rows;
    while (p->windows[before].head.first_step + p->windows[before].head.steps <=
           r->first % p->epoch_steps)
        before++;
    assert_int_equal(stats->windows, p->source.windows * r->windows.epochs - before);
    assert_int_equal(stats->steps, p->n_steps - r->first);
    assert_int_equal(r->ops->step_open(r->st, r->next - r->first, NULL, 0, &rows, NULL), -EINVAL);
}

/* One run, up to `first` in one store, to `second` in another one, and to the end in a third. */
static void run_parts(const struct plan *p, const struct way *way, size_t first, size_t second)
{
    struct drps_store_config config = config_of(p, way);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_store_stats stats;
    struct plan_store r;
    const size_t ends[] = {first, second, p->n_steps};
    char *dir[3];
    int rc = 0;
    for (size_t i = 0; i < 3; i++) {
        config.dir = dir[i] = scratch_new();
        if (i && rc == 0) rc = plan_leave(&r, &err);
        if (rc == 0)
            rc = i ? plan_reopen(&r, &drps_store_relay, &config, &err)
                   : plan_open(&r, p, &drps_store_relay, &config, &err);
        if (rc == 0) rc = plan_steps(&r, ends[i], &err);
    }
    if (rc == 0) rc = plan_scan(&r, 0, &err);
    if (rc < 0)
        fail_msg("%s, seed %llu, cut at %zu and %zu: %s", way->name, (unsigned long long)p->seed,
                 first, second, err.text);
    drps_store_relay.stats(r.st, &stats);
    if (!way->is(&stats, p->source.windows))
        fail_msg("seed %llu: not what is meant by %s: %u windows, %zu tails, %u groups",
                 (unsigned long long)p->seed, way->name, p->source.windows, stats.tails,
                 stats.groups);
    check_windows(&r, &stats);
    plan_close(&r);
    for (size_t i = 0; i < 3; i++)
        scratch_remove(dir[i]);
}

/* Every step of an epoch is the first one of a run, and so are random ones after it. */
static void test_goes_on_from_any_step(void **state)
{
    (void)state;
    const uint64_t seed = test_seed("relay, first step");
    for (size_t i = 0; i < WAYS; i++)
        for (uint64_t k = 0; k < SEEDS; k++) {
            struct plan *p = new_plan(&ways[i], seed + k);
            for (size_t s = k; s < p->epoch_steps; s += SEEDS) {
                const size_t first = s + p->epoch_steps * (drps_rng_at(seed, s) % 2);
                const size_t left = p->n_steps - first;
                run_parts(p, &ways[i], first,
                          first +
                              drps_rng_at(seed, 1000 + s) %
                                  (left < p->epoch_steps * 3 / 2 ? left : p->epoch_steps * 3 / 2));
            }
            plan_free(p);
        }
}

/* Any store goes on where another kind of store has ended, with windows cut anew. */
static void test_goes_on_in_another_store(void **state)
{
    (void)state;
    const uint64_t seed = test_seed("another store");
    const struct drps_store_ops *const kinds[] = {&drps_store_relay, &drps_store_pib,
                                                  &drps_store_resident};
    for (size_t i = 0; i < WAYS; i++) {
        struct plan *p = new_plan(&ways[i], seed + i);
        struct drps_err err = DRPS_ERR_INIT;
        struct plan_store r;
        char *dir[10];
        int rc = 0;
        for (size_t k = 0; k < 10 && rc == 0; k++) {
            const struct drps_store_ops *ops = kinds[drps_rng_at(seed, 100 * i + k) % 3];
            if (k) rc = plan_leave(&r, &err);
            if (rc < 0) break;
            plan_cut(p, seed + k, ways[i].max_steps);
            struct drps_store_config config = config_of(p, &ways[i]);
            if (!ops->by_slot) {
                config.kv = drps_kv_engines()[0];
                config.memory_bytes = plan_least_memory(ops, &config);
            }
            config.dir = dir[k] = scratch_new();
            rc = k ? plan_reopen(&r, ops, &config, &err) : plan_open(&r, p, ops, &config, &err);
            if (rc == 0) rc = plan_steps(&r, p->n_steps * (k + 1) / 10, &err);
        }
        if (rc == 0) rc = plan_scan(&r, 0, &err);
        if (rc < 0) fail_msg("%s: %s", ways[i].name, err.text);
        plan_close(&r);
        for (size_t k = 0; k < 10; k++)
            scratch_remove(dir[k]);
        plan_free(p);
    }
}

static void test_step_beyond_the_epoch_is_refused(void **state)
{
    (void)state;
    struct plan *p = new_plan(&ways[1], 1);
    struct drps_store_config config = config_of(p, &ways[1]);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_store *st;
    char *dir = scratch_new();
    config.dir = dir;
    for (uint64_t more = 0; more < 2; more++) {
        drps_err_clear(&err);
        config.first_step = p->epoch_steps + more;
        assert_int_equal(drps_store_relay.open(&config, &st, &err), -EINVAL);
        assert_non_null(strstr(err.text, "60"));
        assert_null(st);
    }
    config.first_step = p->epoch_steps - 1;
    if (drps_store_relay.open(&config, &st, NULL) < 0) fail_msg("the last step is refused");
    drps_store_relay.close(st);
    scratch_remove(dir);
    plan_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goes_on_from_any_step),
        cmocka_unit_test(test_goes_on_in_another_store),
        cmocka_unit_test(test_step_beyond_the_epoch_is_refused),
    };
    return cmocka_run_group_tests_name("relay, first step", tests, NULL, NULL);
}
