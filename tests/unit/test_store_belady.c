/* The block pool evicts what is needed furthest ahead: hits equal those of a brute-force replay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "storage/nextuse.h"
#include "unit/store_plan.h"

/* The next step after s that needs block b, by looking. */
static size_t next_need(const struct plan *p, size_t s, uint32_t b)
{
    for (s++; s < p->n_steps; s++)
        for (size_t i = 0; i < p->steps[s].n_blocks; i++)
            if (p->steps[s].blocks[i] == b) return s;
    return SIZE_MAX;
}

static int needs(const struct plan_step *step, uint32_t b)
{
    for (size_t i = 0; i < step->n_blocks; i++)
        if (step->blocks[i] == b) return 1;
    return 0;
}

/* Evict, of the blocks that the step does not need, the one with the farthest next need. */
static void evict_one(const struct plan *p, size_t s, char *in)
{
    size_t worst = SIZE_MAX, worst_need = 0;
    for (uint32_t b = 0; b < p->blocks; b++) {
        if (!in[b] || needs(&p->steps[s], b)) continue;
        size_t need = next_need(p, s, b);
        if (worst == SIZE_MAX || need > worst_need) {
            worst = b;
            worst_need = need;
        }
    }
    assert_true(worst != SIZE_MAX);
    in[worst] = 0;
}

static size_t brute_force_hits(const struct plan *p, size_t frames)
{
    char *in = calloc(p->blocks, 1);
    size_t used = 0, hits = 0;
    assert_non_null(in);
    for (size_t s = 0; s < p->n_steps; s++) {
        size_t missing = 0;
        for (size_t i = 0; i < p->steps[s].n_blocks; i++)
            missing += !in[p->steps[s].blocks[i]];
        hits += p->steps[s].n_blocks - missing;
        used += missing;
        for (; used > frames; used--)
            evict_one(p, s, in);
        for (size_t i = 0; i < p->steps[s].n_blocks; i++)
            in[p->steps[s].blocks[i]] = 1;
    }
    free(in);
    return hits;
}

/* Adds memory until the pool has exactly that many frames. */
static void run_with_frames(const struct plan *p, size_t frames, struct drps_store_stats *stats)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_store_config config = plan_config(p);
    char *dir = scratch_new();
    uint64_t least, most;
    config.dir = dir;
    config.kv = drps_kv_engines()[0];
    config.threads = 2;
    config.prefetch_steps = 1; /* reading ahead pins more than Belady's rule knows of */
    assert_int_equal(drps_store_pib.memory_need(&config, frames, &least, &most, &err), 0);
    config.max_step_blocks = frames;
    config.memory_bytes = least;
    if (plan_run(p, &drps_store_pib, &config, stats, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(stats->pool_blocks, frames < p->blocks ? frames : p->blocks);
    scratch_remove(dir);
}

static void test_hits_equal_brute_force_on_known_traces(void **state)
{
    (void)state;
    /* Three frames, one block a step: the textbook string of Belady's paper family has 9 misses
     * in 20. */
    static const char *const textbook[] = {"7", "0", "1", "2", "0", "3", "0", "4", "2", "3",
                                           "0", "3", "2", "1", "2", "0", "1", "7", "0", "1"};
    struct drps_store_stats stats;
    struct plan *p = plan_from_trace(textbook, 20, 8);
    assert_int_equal(brute_force_hits(p, 3), 11);
    run_with_frames(p, 3, &stats);
    assert_int_equal(stats.blocks_hit, 11);
    plan_free(p);
    static const char *const pairs[] = {"01", "23", "45", "01", "67", "23", "01", "45", "67", "01"};
    p = plan_from_trace(pairs, 10, 8);
    for (size_t frames = 2; frames <= 8; frames++) {
        run_with_frames(p, frames, &stats);
        assert_int_equal(stats.blocks_hit, brute_force_hits(p, frames));
    }
    plan_free(p);
}

static void test_hits_equal_brute_force_on_random_traces(void **state)
{
    (void)state;
    static const struct plan_shape shape = {.rows = 80,
                                            .max_block_rows = 4,
                                            .max_step_rows = 12,
                                            .row_bytes = 8,
                                            .epoch_steps = 25,
                                            .epochs = 3};
    uint64_t seed = test_seed("belady");
    for (uint64_t i = 0; i < 12; i++) {
        struct plan *p = plan_new(seed + i, &shape);
        struct drps_store_stats stats;
        size_t frames =
            p->max_step_blocks + drps_rng_at(seed, i) % (p->blocks - p->max_step_blocks + 1);
        run_with_frames(p, frames, &stats);
        size_t expected = brute_force_hits(p, frames);
        if (stats.blocks_hit != expected)
            fail_msg("seed %llu: %llu hits with %zu frames, brute force has %zu",
                     (unsigned long long)p->seed, (unsigned long long)stats.blocks_hit, frames,
                     expected);
        plan_free(p);
    }
}

/* The queue alone, against a search through all keys: with growth of its ring, ties and removals.
 */
static void test_queue_pops_the_largest(void **state)
{
    (void)state;
    enum { FRAMES = 200 };
    uint64_t seed = test_seed("queue");
    struct drps_nextuse q;
    uint64_t key[FRAMES];
    char in[FRAMES] = {0};
    uint64_t floor = 0;
    assert_int_equal(drps_nextuse_init(&q, FRAMES), 0);
    for (uint64_t i = 0; i < 200000; i++) {
        uint32_t f = (uint32_t)(drps_rng_at(seed, 3 * i) % FRAMES);
        uint64_t r = drps_rng_at(seed, 3 * i + 1);
        if (!in[f]) {
            uint64_t span = 1ull << (r % (i < 1000 ? 9 : 18));
            key[f] = r % 7 == 0 ? UINT64_MAX : floor + drps_rng_at(seed, 3 * i + 2) % span;
            assert_int_equal(drps_nextuse_insert(&q, f, key[f], floor), 0);
            in[f] = 1;
            continue;
        }
        uint64_t largest = 0, smallest = UINT64_MAX;
        for (uint32_t k = 0; k < FRAMES; k++) {
            if (in[k] && key[k] > largest) largest = key[k];
            if (in[k] && key[k] < smallest) smallest = key[k];
        }
        if (r % 3 == 0) {
            drps_nextuse_remove(&q, f);
        } else {
            f = drps_nextuse_pop(&q);
            assert_true(f < FRAMES && in[f]);
            assert_int_equal(key[f], largest);
        }
        in[f] = 0;
        if (smallest != UINT64_MAX && r % 5 == 0) floor = smallest;
    }
    drps_nextuse_destroy(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queue_pops_the_largest),
        cmocka_unit_test(test_hits_equal_brute_force_on_known_traces),
        cmocka_unit_test(test_hits_equal_brute_force_on_random_traces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
