/* Which block the pool gives up under the rules that look back, and that a store under any of them
 * gives the same rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "storage/kv/drps_kv.h"
#include "storage/pib/drps_evict.h"
#include "support/scratch.h"
#include "support/store_run.h"

static const enum drps_evict_rule rules[] = {DRPS_EVICT_FARTHEST, DRPS_EVICT_CLOCK, DRPS_EVICT_LRU};
enum { RULES = sizeof(rules) / sizeof(*rules), ENTRIES = 9 };

static void test_evict_rules_have_names(void **state)
{
    enum drps_evict_rule found;
    (void)state;
    for (size_t i = 0; i < RULES; i++) {
        assert_int_equal(drps_evict_find(drps_evict_name(rules[i]), &found), 0);
        assert_int_equal(found, rules[i]);
    }
    assert_int_equal(drps_evict_find("fifo", &found), -1);
}

static void begin(struct drps_evict *e, enum drps_evict_rule rule)
{
    assert_int_equal(drps_evict_init(e, rule, ENTRIES, 1, 4096), 0);
    assert_int_equal(drps_evict_pop(e, 0), DRPS_NEXTUSE_NONE);
}

/* Was used just now. When it is used next does not count. */
static void use(struct drps_evict *e, uint32_t entry)
{
    assert_int_equal(drps_evict_insert(e, entry, 1, ENTRIES - entry, 0), 0);
}

/* The entries that are in, the one used longest ago first. */
struct queue {
    uint32_t entry[ENTRIES];
    size_t n;
};

static void queue_remove(struct queue *q, size_t i)
{
    memmove(&q->entry[i], &q->entry[i + 1], (--q->n - i) * sizeof(*q->entry));
}

static void test_evict_lru_gives_up_what_was_used_longest_ago(void **state)
{
    struct random_source r = random_begin("lru");
    struct drps_evict e;
    struct queue q = {.n = 0};
    (void)state;
    begin(&e, DRPS_EVICT_LRU);
    for (int round = 0; round < 5000; round++) {
        const uint32_t entry = (uint32_t)random_below(&r, ENTRIES);
        size_t at = 0;
        while (at < q.n && q.entry[at] != entry)
            at++;
        if (at == q.n) {
            use(&e, entry);
            q.entry[q.n++] = entry;
        } else if (random_below(&r, 2)) {
            drps_evict_remove(&e, entry, 1);
            queue_remove(&q, at);
        } else {
            assert_int_equal(drps_evict_pop(&e, 0), q.entry[0]);
            queue_remove(&q, 0);
        }
        assert_int_equal(e.n, q.n);
    }
    drps_evict_destroy(&e);
}

/* The hand goes round: what was used since it came by last is spared once. */
static void test_evict_clock_spares_what_was_used(void **state)
{
    struct drps_evict e;
    (void)state;
    begin(&e, DRPS_EVICT_CLOCK);
    for (uint32_t i = 0; i < 4; i++)
        use(&e, i);
    assert_int_equal(drps_evict_pop(&e, 0), 0); /* all were used: a whole turn */
    use(&e, 0);
    assert_int_equal(drps_evict_pop(&e, 0), 1);
    drps_evict_remove(&e, 2, 1);
    use(&e, 2);                                 /* again, before the hand comes by */
    assert_int_equal(drps_evict_pop(&e, 0), 3); /* 2 is spared */
    assert_int_equal(drps_evict_pop(&e, 0), 2); /* 0 is, and 2 not again */
    assert_int_equal(drps_evict_pop(&e, 0), 0);
    assert_int_equal(drps_evict_pop(&e, 0), DRPS_NEXTUSE_NONE);
    drps_evict_destroy(&e);
}

static void test_evict_rules_give_the_same_rows(void **state)
{
    static const struct plan_shape shape = {.rows = 600,
                                            .max_block_rows = 8,
                                            .max_step_rows = 40,
                                            .row_bytes = 16,
                                            .epoch_steps = 20,
                                            .epochs = 3};
    struct plan *p = plan_new(test_seed("evict"), &shape);
    (void)state;
    for (size_t i = 0; i < RULES; i++) {
        struct drps_store_config config = plan_config(p);
        struct drps_store_stats stats;
        struct drps_err err = DRPS_ERR_INIT;
        char *dir = scratch_new();
        config.dir = dir;
        config.kv = drps_kv_engines()[0];
        config.evict = rules[i];
        config.memory_bytes = plan_least_memory(&drps_store_pib, &config);
        if (plan_run(p, &drps_store_pib, &config, &stats, &err) < 0)
            fail_msg("%s: %s", drps_evict_name(rules[i]), err.text);
        assert_true(stats.blocks_evicted > 0);
        scratch_remove(dir);
    }
    plan_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evict_rules_have_names),
        cmocka_unit_test(test_evict_lru_gives_up_what_was_used_longest_ago),
        cmocka_unit_test(test_evict_clock_spares_what_was_used),
        cmocka_unit_test(test_evict_rules_give_the_same_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
