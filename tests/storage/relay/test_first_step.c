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
#include "support/relay_ways.h"
#include "support/store_run.h"

enum { SEEDS = 3, EPOCHS = 3, STEP = DRPS_TEST_ONE_IN > 1 ? 3 * SEEDS : SEEDS };

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
static void run_parts(const struct plan *p, const struct relay_way *way, size_t first,
                      size_t second)
{
    struct drps_store_config config = relay_config(p, way);
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
    if (!way->is(&stats))
        fail_msg("seed %llu: not what is meant by %s: %u windows, %u runs",
                 (unsigned long long)p->seed, way->name, p->source.windows, stats.runs);
    check_windows(&r, &stats);
    plan_close(&r);
    for (size_t i = 0; i < 3; i++)
        scratch_remove(dir[i]);
}

/* Every step of an epoch is the first one of a run, one in three where tests are few, and so are
 * random ones after it. */
static void test_goes_on_from_any_step(void **state)
{
    (void)state;
    const uint64_t seed = test_seed("relay, first step");
    for (size_t i = 0; i < RELAY_WAYS; i++)
        for (uint64_t k = 0; k < SEEDS; k++) {
            struct plan *p = relay_plan(&relay_ways[i], 0, EPOCHS, seed + k);
            for (size_t s = k; s < p->epoch_steps; s += STEP) {
                const size_t first = s + p->epoch_steps * (drps_rng_at(seed, s) % 2);
                const size_t left = p->n_steps - first;
                run_parts(p, &relay_ways[i], first,
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
    for (size_t i = 0; i < RELAY_WAYS; i++) {
        struct plan *p = relay_plan(&relay_ways[i], 0, EPOCHS, seed + i);
        struct drps_err err = DRPS_ERR_INIT;
        struct plan_store r;
        char *dir[10];
        int rc = 0;
        for (size_t k = 0; k < 10 && rc == 0; k++) {
            const struct drps_store_ops *ops = kinds[drps_rng_at(seed, 100 * i + k) % 3];
            if (k) rc = plan_leave(&r, &err);
            if (rc < 0) break;
            plan_cut(p, seed + k, relay_ways[i].max_steps);
            struct drps_store_config config = relay_config(p, &relay_ways[i]);
            if (!ops->by_slot) {
                config.kv = drps_kv_engines()[0];
                config.memory_bytes = plan_least_memory(ops, &config);
            }
            config.dir = dir[k] = scratch_new();
            rc = k ? plan_reopen(&r, ops, &config, &err) : plan_open(&r, p, ops, &config, &err);
            if (rc == 0) rc = plan_steps(&r, p->n_steps * (k + 1) / 10, &err);
        }
        if (rc == 0) rc = plan_scan(&r, 0, &err);
        if (rc < 0) fail_msg("%s: %s", relay_ways[i].name, err.text);
        plan_close(&r);
        for (size_t k = 0; k < 10; k++)
            scratch_remove(dir[k]);
        plan_free(p);
    }
}

static void test_step_beyond_the_epoch_is_refused(void **state)
{
    (void)state;
    struct plan *p = relay_plan(&relay_ways[1], 0, EPOCHS, 1);
    struct drps_store_config config = relay_config(p, &relay_ways[1]);
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
