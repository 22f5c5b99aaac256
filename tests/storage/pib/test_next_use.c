/* The block pool evicts what is needed furthest ahead, by size: hits equal those of a brute-force
 * replay. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "storage/kv/drps_kv.h"
#include "storage/pib/next_use.h"
#include "support/store_run.h"

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

/* By hand: what is in, and when each block was used last. */
struct replay {
    const struct plan *p;
    char *in;
    size_t *used;
    size_t frames, units; /* taken */
};

static size_t units_of(const struct plan *p, const struct drps_pool_shape *shape, uint32_t b)
{
    return (p->block_first[b + 1] - p->block_first[b] + shape->unit_rows - 1) / shape->unit_rows;
}

/* (steps until it is needed) x (bytes it frees) / (time to move it), sizes in powers of two. */
static double worth(const struct replay *r, const struct drps_pool_shape *shape, size_t s,
                    uint32_t b)
{
    const size_t need = next_need(r->p, s, b);
    double bytes = (double)(shape->unit_rows * r->p->row_bytes);
    for (size_t units = units_of(r->p, shape, b); units > 1; units /= 2)
        bytes *= 2;
    return need == SIZE_MAX ? HUGE_VAL : (double)(need - s) * bytes / (49152 + bytes);
}

static int size_class(const struct replay *r, const struct drps_pool_shape *shape, uint32_t b)
{
    int c = 0;
    for (size_t units = units_of(r->p, shape, b); units > 1; units /= 2)
        c++;
    return c;
}

/* Evicts the block whose absence is worth most and that the step does not need. Among several, the
 * smaller class goes first, then the block used last, then the last block. */
static void evict_one(struct replay *r, const struct drps_pool_shape *shape, size_t s)
{
    size_t worst = SIZE_MAX;
    double most = -1;
    for (uint32_t b = 0; b < r->p->blocks; b++) {
        if (!r->in[b] || needs(&r->p->steps[s], b)) continue;
        const double w = worth(r, shape, s, b);
        if (w < most) continue;
        if (w == most) {
            const int mine = size_class(r, shape, b), other = size_class(r, shape, (uint32_t)worst);
            if (mine > other || (mine == other && r->used[b] < r->used[worst])) continue;
        }
        worst = b;
        most = w;
    }
    assert_true(worst != SIZE_MAX);
    r->in[worst] = 0;
    r->frames--;
    r->units -= units_of(r->p, shape, (uint32_t)worst);
}

static size_t brute_force_hits(const struct plan *p, const struct drps_pool_shape *shape)
{
    struct replay r = {
        .p = p, .in = calloc(p->blocks, 1), .used = calloc(p->blocks, sizeof(size_t))};
    size_t hits = 0;
    assert_non_null(r.in);
    assert_non_null(r.used);
    for (size_t s = 0; s < p->n_steps; s++) {
        const struct plan_step *step = &p->steps[s];
        for (size_t i = 0; i < step->n_blocks; i++) {
            const uint32_t b = step->blocks[i];
            hits += (size_t)r.in[b];
            r.frames += !r.in[b];
            r.units += r.in[b] ? 0 : units_of(p, shape, b);
        }
        while (r.frames > shape->entries || r.units > shape->units)
            evict_one(&r, shape, s);
        for (size_t i = 0; i < step->n_blocks; i++) {
            r.in[step->blocks[i]] = 1;
            r.used[step->blocks[i]] = s;
        }
    }
    free(r.in);
    free(r.used);
    return hits;
}

/* Run the plan with a pool that has memory for so many blocks, or rows, in one step. */
static void run_with(const struct plan *p, size_t blocks, size_t rows,
                     struct drps_store_stats *stats)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_store_config config = plan_config(p);
    char *dir = scratch_new();
    uint64_t most;
    config.dir = dir;
    config.kv = drps_kv_engines()[0];
    config.threads = 2;
    config.prefetch_steps = 1; /* reading ahead pins more than Belady's rule knows of */
    config.step = (struct drps_step_size){.blocks = blocks, .block_rows = rows};
    assert_int_equal(drps_store_pib.memory_need(&config, &config.memory_bytes, &most, &err), 0);
    if (plan_run(p, &drps_store_pib, &config, stats, &err) < 0) fail_msg("%s", err.text);
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
    run_with(p, 3, 3, &stats);
    assert_int_equal(stats.pool.entries, 3);
    assert_int_equal(stats.pool.units, 3);
    assert_int_equal(brute_force_hits(p, &stats.pool), 11);
    assert_int_equal(stats.blocks_hit, 11);
    plan_free(p);
    static const char *const pairs[] = {"01", "23", "45", "01", "67", "23", "01", "45", "67", "01"};
    p = plan_from_trace(pairs, 10, 8);
    for (size_t frames = 2; frames <= 8; frames++) {
        run_with(p, frames, frames, &stats);
        assert_int_equal(stats.blocks_hit, brute_force_hits(p, &stats.pool));
    }
    plan_free(p);
}

static void test_hits_equal_brute_force_on_random_traces(void **state)
{
    (void)state;
    static const struct plan_shape shape = {.rows = 160,
                                            .max_block_rows = 9,
                                            .max_step_rows = 12,
                                            .row_bytes = 8,
                                            .epoch_steps = 25,
                                            .epochs = 3};
    uint64_t seed = test_seed("belady");
    for (uint64_t i = 0; i < 12; i++) {
        struct plan *p = plan_new(seed + i, &shape);
        struct drps_store_stats stats;
        size_t rows =
            p->most.block_rows + drps_rng_at(seed, i) % (p->rows - p->most.block_rows + 1);
        run_with(p, p->most.blocks, rows, &stats);
        size_t expected = brute_force_hits(p, &stats.pool);
        if (stats.blocks_hit != expected)
            fail_msg("seed %llu: %llu hits with %u units, brute force has %zu",
                     (unsigned long long)p->seed, (unsigned long long)stats.blocks_hit,
                     stats.pool.units, expected);
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
    struct drps_nextuse_link link[FRAMES];
    uint64_t keys[FRAMES];
    assert_int_equal(drps_nextuse_init(&q, link, keys), 0);
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
