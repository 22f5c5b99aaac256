/*
 * The forecast: traces by hand, the simulated pool against the best of all replacement decisions,
 * damaged uses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_window.h"
#include "support/lists.h"

static struct drps_window_options options_for(const struct lists *l, uint64_t memory)
{
    return (struct drps_window_options){.steps = l->steps,
                                        .train_steps = l->train,
                                        .rows = l->rows,
                                        .row_bytes = 12,
                                        .memory_bytes = memory};
}

static uint32_t *equal_blocks(uint64_t rows, uint64_t each, size_t *blocks_out)
{
    size_t n = 0;
    uint32_t *first = must(calloc(rows + 1, sizeof(*first)));
    for (uint64_t row = 0; row < rows; row += each)
        first[n++] = (uint32_t)row;
    first[n] = (uint32_t)rows;
    *blocks_out = n;
    return first;
}

static const struct drps_forecast_disk disk = {
    .seek_seconds = 1e-4, .bytes_per_s = 1e8, .gap_bytes = 0, .sector = 512};

/* The forecast with a pool of that many rows, and as many blocks; of requests, too, unless NULL. */
static int forecast_requests(const struct lists *l, const struct drps_window_options *o,
                             const uint32_t *first, size_t blocks, uint64_t rows,
                             struct drps_forecast *out, struct drps_forecast_requests *requests_out,
                             struct drps_err *err)
{
    const struct drps_pool_shape shape = {
        .unit_rows = 1, .units = (uint32_t)rows, .entries = (uint32_t)rows};
    struct drps_forecast_requests none;
    return drps_forecast_pib(drps_io_os(), l->dir, o, first, blocks, &shape, DRPS_EVICT_FARTHEST,
                             requests_out ? &disk : NULL, out, requests_out ? requests_out : &none,
                             err);
}

static int forecast(const struct lists *l, const struct drps_window_options *o,
                    const uint32_t *first, size_t blocks, uint64_t rows, struct drps_forecast *out,
                    struct drps_err *err)
{
    return forecast_requests(l, o, first, blocks, rows, out, NULL, err);
}

static void compile_uses(const struct lists *l, const uint32_t *first, size_t blocks)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_uses_result most;
    assert_ok(
        drps_uses_compile(drps_io_os(), l->dir, l->steps, first, blocks, 0, 1 << 20, &most, &err),
        &err);
}

/*
 * Blocks 0 1 2 in turn, the last of two rows, room for three rows. From the first step: 0 and 1
 * come in; 2 replaces 1 (next use: 0 at 3, 1 at 4); 0 is there; 1 replaces 0 (2 at 5, 0 at 6); 2 is
 * there: the second epoch reads block 1 and gives up block 0. What no training step changed is made
 * anew, not read. A gap of a block in the one sector that all share costs no request.
 */
static void test_forecast_pib_example(void **state)
{
    (void)state;
    const char *const text[] = {"0", "1", "2 3"};
    const uint32_t first[] = {0, 1, 2, 4};
    static const struct {
        const char *name;
        uint64_t train, rows, read, written, ios, requests;
        int feasible;
    } cases[] = {{"training dirties", 3, 3, 12, 12, 2, 3, 1}, /* a shared sector is read first */
                 {"block 0 dirty", 1, 3, 0, 12, 1, 1, 1},
                 {"evaluation dirties nothing", 0, 3, 0, 0, 0, 0, 1},
                 {"everything fits", 3, 4, 0, 0, 0, 0, 1},
                 {"room for one", 3, 2, 48, 48, 6, 7, 1},
                 {"room for none", 3, 1, 0, 0, 0, 0, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_forecast f, alone;
        struct drps_forecast_requests r;
        struct lists l;
        lists_from_text(&l, text, 3, cases[i].train, 4);
        compile_uses(&l, first, 3);
        struct drps_window_options o = options_for(&l, 1 << 20);
        assert_ok(forecast_requests(&l, &o, first, 3, cases[i].rows, &f, &r, &err), &err);
        assert_ok(forecast(&l, &o, first, 3, cases[i].rows, &alone, &err), &err);
        assert_true(alone.read_bytes == f.read_bytes && alone.written_bytes == f.written_bytes &&
                    alone.ios == f.ios && alone.feasible == f.feasible);
        if (f.read_bytes != cases[i].read || f.written_bytes != cases[i].written ||
            f.ios != cases[i].ios || r.n != cases[i].requests ||
            r.moved_bytes != cases[i].requests * disk.sector || f.feasible != cases[i].feasible)
            fail_msg("%s: read %" PRIu64 " written %" PRIu64 " ios %" PRIu64 " requests %" PRIu64
                     " feasible %d",
                     cases[i].name, f.read_bytes, f.written_bytes, f.ios, r.n, f.feasible);
        const double expected = (double)r.n * (1e-4 + 512 / 1e8);
        assert_true(r.seconds >= 0.999 * expected && r.seconds < 1.001 * expected + 1e-12);
        assert_int_equal(f.memory_bytes, cases[i].rows * 12);
        lists_free(&l);
    }
}

/* Least misses of the first `n` steps of the trace repeated, by trying every set that memory may
 * hold. */
static uint64_t least_misses(const uint32_t *uses, size_t steps, size_t n, unsigned blocks,
                             unsigned frames)
{
    uint32_t cost[256], next[256];
    uint32_t sets = 1u << blocks, best = UINT32_MAX;
    memset(cost, 0xff, sizeof(cost));
    cost[0] = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t use = uses[i % steps];
        memset(next, 0xff, sizeof(next));
        for (uint32_t a = 0; a < sets; a++) {
            if (cost[a] == UINT32_MAX) continue;
            uint32_t paid = cost[a] + (uint32_t)__builtin_popcount(use & ~a);
            for (uint32_t b = 0; b < sets; b++)
                if ((use & ~b) == 0 && (b & ~(a | use)) == 0 &&
                    (unsigned)__builtin_popcount(b) <= frames && paid < next[b])
                    next[b] = paid;
        }
        memcpy(cost, next, sizeof(cost));
    }
    for (uint32_t a = 0; a < sets; a++)
        best = cost[a] < best ? cost[a] : best;
    return best;
}

/*
 * Farthest next use is optimal for every prefix of a trace (what a prefix needs no more is
 * farthest), so the misses of the second epoch are the optimum for two epochs less that for one.
 */
static void test_forecast_pib_is_optimal(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int round = 0; round < 150; round++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_forecast f;
        struct lists l;
        unsigned blocks = 2 + (unsigned)random_below(&rng, 6);
        size_t n_blocks;
        uint32_t uses[12] = {0}, most = 1;
        lists_random(&l, &rng, blocks * 3, 1 + random_below(&rng, 12), 1 + random_below(&rng, 4));
        l.train = l.steps; /* all is written, so that what comes in again is read */
        uint32_t *first = equal_blocks(l.rows, 3, &n_blocks);
        compile_uses(&l, first, n_blocks);
        for (uint64_t s = 0; s < l.steps; s++) {
            for (size_t i = 0; i < l.n[s]; i++)
                uses[s] |= 1u << l.list[s][i] / 3;
            if ((uint32_t)__builtin_popcount(uses[s]) > most)
                most = (uint32_t)__builtin_popcount(uses[s]);
        }
        struct drps_window_options o = options_for(&l, 1 << 20);
        for (unsigned frames = most; frames <= blocks; frames++) {
            uint64_t steps = l.steps;
            uint64_t want = least_misses(uses, steps, 2 * steps, blocks, frames) -
                            least_misses(uses, steps, steps, blocks, frames);
            assert_ok(forecast(&l, &o, first, n_blocks, 3 * frames, &f, &err), &err);
            assert_int_equal(f.feasible, 1);
            assert_int_equal(f.read_bytes, want * 36);
            assert_int_equal(f.ios * 36, f.read_bytes + f.written_bytes);
        }
        free(first);
        lists_free(&l);
    }
}

/* What is read comes in again after it went out; everything that goes out of a training-only plan
 * is written. */
static void test_forecast_pib_writes_what_it_reads(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int round = 0; round < 20; round++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_forecast f, again;
        struct lists l;
        size_t blocks;
        /* more steps than a word of the bucket map has bits, twice over */
        lists_random(&l, &rng, 20000, 300, 50);
        l.train = l.steps;
        uint32_t *first = equal_blocks(l.rows, 10, &blocks);
        compile_uses(&l, first, blocks);
        struct drps_window_options o = options_for(&l, 1 << 20);
        assert_ok(forecast(&l, &o, first, blocks, 600 + random_below(&rng, 10000), &f, &err), &err);
        assert_int_equal(f.read_bytes, f.written_bytes);
        assert_int_equal(f.ios * 120, f.read_bytes + f.written_bytes);
        o.memory_bytes = 0;
        assert_ok(forecast(&l, &o, first, blocks, f.memory_bytes / 12, &again, &err), &err);
        assert_int_equal(again.ios, f.ios);
        free(first);
        lists_free(&l);
    }
}

/* The windows of test_window_example, in a model of 8 rows of which 5 are used; half of it is 4
 * rows. */
static void test_forecast_curve_example(void **state)
{
    (void)state;
    const char *const text[] = {"0 1", "1 2", "3", "3 4", "0 1"};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_forecast f[24];
    struct lists l;
    size_t blocks, n;
    lists_from_text(&l, text, 5, 4, 8);
    uint32_t *first = equal_blocks(l.rows, 1, &blocks);
    compile_uses(&l, first, blocks);
    for (uint64_t memory = 0; memory <= 1 << 20; memory += 1 << 20) {
        struct drps_window_options o = options_for(&l, memory);
        assert_ok(drps_forecast_curve(drps_io_os(), l.dir, &o, first, blocks, f, 24, &n, &err),
                  &err);
        assert_int_equal(n, 15);
        assert_string_equal(f[0].store, "resident");
        assert_int_equal(f[0].memory_bytes, 96);
        assert_int_equal(f[0].feasible, 1);
        for (size_t i = 0; i < 7; i++) {
            assert_string_equal(f[1 + i].store, "pib");
            assert_string_equal(f[8 + i].store, "relay");
            assert_int_equal(f[1 + i].memory_bytes, 96 >> i);
            assert_int_equal(f[8 + i].memory_bytes, 96 >> i);
            assert_int_equal(f[1 + i].feasible, i <= 2); /* two blocks a step */
            assert_int_equal(f[8 + i].feasible, i <= 1); /* twice two rows */
        }
        assert_int_equal(f[1].ios, 0);
        assert_int_equal(f[8].windows, 2);
        assert_int_equal(f[8].read_bytes, 0); /* what evaluation does not use stays through it */
        assert_int_equal(f[8].ios, 0);
        assert_int_equal(f[9].windows, 4);
        assert_int_equal(f[9].read_bytes, 4 * 12);
        assert_int_equal(f[9].written_bytes, 4 * 12);
        assert_int_equal(f[9].ios, 2);
        struct drps_forecast one;
        assert_ok(forecast(&l, &o, first, blocks, 2, &one, &err), &err);
        assert_int_equal(f[3].ios, one.ios);
        assert_int_equal(f[3].written_bytes, one.written_bytes);
    }
    struct drps_window_options o = options_for(&l, 0);
    assert_ok(drps_forecast_curve(drps_io_os(), l.dir, &o, first, blocks, f, 3, &n, &err), &err);
    assert_int_equal(n, 3);
    free(first);
    lists_free(&l);
}

/* Blocks of three kinds, one use of two, every 16th and every 200th step: a third of the uses gives
 * nearly the counts of all. */
static void test_curve_of_a_share(void **state)
{
    (void)state;
    enum { STEPS = 400, BLOCKS = 6000 };
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_forecast all[24], some[24];
    struct lists l;
    size_t blocks, n;
    char *text[STEPS], *at[STEPS];
    uint64_t uses = 0;
    for (uint32_t t = 0; t < STEPS; t++)
        at[t] = text[t] = must(calloc(BLOCKS, 6));
    for (uint32_t b = 0; b < BLOCKS; b++) {
        const uint32_t every = b < 100 ? 2 : b < 1000 ? 16 : 200;
        for (uint32_t t = (uint32_t)(drps_mix64(b) % every); t < STEPS; t += every, uses++)
            at[t] += sprintf(at[t], " %u", b);
    }
    lists_from_text(&l, (const char *const *)text, STEPS, STEPS, BLOCKS);
    for (uint32_t t = 0; t < STEPS; t++)
        free(text[t]);
    uint32_t *first = equal_blocks(l.rows, 1, &blocks);
    compile_uses(&l, first, blocks);
    struct drps_window_options o = options_for(&l, 1 << 20);
    assert_ok(drps_forecast_curve(drps_io_os(), l.dir, &o, first, blocks, all, 24, &n, &err), &err);
    o.curve_uses = uses / 3;
    assert_ok(drps_forecast_curve(drps_io_os(), l.dir, &o, first, blocks, some, 24, &n, &err),
              &err);
    for (size_t i = 1; i <= 7; i++) {
        assert_int_equal(some[i].feasible, all[i].feasible);
        assert_true(all[i].sampled > 0.999 && some[i].sampled < 0.34);
        if (!all[i].feasible) continue;
        assert_in_range(some[i].ios, all[i].ios * 9 / 10, all[i].ios * 11 / 10);
        assert_in_range(some[i].read_bytes, all[i].read_bytes * 9 / 10,
                        all[i].read_bytes * 11 / 10);
    }
    free(first);
    lists_free(&l);
}

/* Blocks of 1 to `most` rows. */
static uint32_t *random_blocks(struct random_source *rng, uint64_t rows, uint64_t most,
                               size_t *blocks_out)
{
    size_t n = 0;
    uint32_t *first = must(calloc(rows + 1, sizeof(*first)));
    for (uint64_t row = 0; row < rows; row += 1 + random_below(rng, most))
        first[n++] = (uint32_t)row;
    first[n] = (uint32_t)rows;
    *blocks_out = n;
    return first;
}

/* Without memory they run one after the other, each as drps_forecast_pib() runs its own. */
static void test_curve_side_by_side(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int round = 0; round < 200; round++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_forecast beside[24], alone[24];
        struct lists l;
        size_t blocks, n;
        lists_random(&l, &rng, 1 + random_below(&rng, 400), 1 + random_below(&rng, 150),
                     1 + random_below(&rng, 30));
        uint32_t *first = random_blocks(&rng, l.rows, 1 + random_below(&rng, 20), &blocks);
        compile_uses(&l, first, blocks);
        struct drps_window_options much = options_for(&l, 1 << 24), none = options_for(&l, 0);
        much.curve_uses = none.curve_uses = random_below(&rng, 2) ? 0 : 1 + random_below(&rng, 500);
        assert_ok(
            drps_forecast_curve(drps_io_os(), l.dir, &much, first, blocks, beside, 24, &n, &err),
            &err);
        assert_ok(
            drps_forecast_curve(drps_io_os(), l.dir, &none, first, blocks, alone, 24, &n, &err),
            &err);
        for (size_t i = 1; i <= 7; i++) {
            assert_int_equal(beside[i].feasible, alone[i].feasible);
            assert_int_equal(beside[i].ios, alone[i].ios);
            assert_int_equal(beside[i].read_bytes, alone[i].read_bytes);
            assert_int_equal(beside[i].written_bytes, alone[i].written_bytes);
        }
        free(first);
        lists_free(&l);
    }
}

/* Replace record 1 of uses.rec (of 3) and expect a refusal that names it, or a result, but no
 * crash. */
static int forecast_with(const struct lists *l, const uint32_t *first, size_t blocks,
                         const unsigned char *record, size_t bytes, struct drps_err *err)
{
    struct drps_recfile *f;
    struct drps_recwriter *w;
    struct drps_forecast out, curve[24];
    size_t points;
    char buf[4][512];
    size_t n[4];
    char *path = must(drps_path_join(l->dir, "uses.rec"));
    assert_int_equal(drps_recfile_open(drps_io_os(), path, DRPS_KIND_USES, &f, NULL), 0);
    for (uint64_t s = 0; s < 3; s++) {
        n[s] = (size_t)drps_recfile_bytes(f, s);
        assert_int_equal(drps_recfile_read(f, s, 1, buf[s], NULL), 0);
    }
    drps_recfile_close(f);
    assert_int_equal(drps_recwriter_open(drps_io_os(), path, DRPS_KIND_USES, &w, NULL), 0);
    for (uint64_t s = 0; s < 3; s++) {
        struct drps_piece piece = {s == 1 ? (const void *)record : buf[s], s == 1 ? bytes : n[s]};
        assert_int_equal(drps_recwriter_add(w, &piece, 1, NULL), 0);
    }
    assert_int_equal(drps_recwriter_finish(w, NULL), 0);
    drps_recwriter_close(w);
    free(path);
    struct drps_window_options o = options_for(l, 1 << 20);
    int rc = drps_forecast_curve(drps_io_os(), l->dir, &o, first, blocks, curve, 24, &points, err);
    return rc < 0 ? rc : forecast(l, &o, first, blocks, 3, &out, err);
}

static void test_forecast_survives_damage(void **state)
{
    (void)state;
    const char *const text[] = {"0 1 9", "1 4 9", "0 4 5"};
    struct drps_err err = DRPS_ERR_INIT;
    struct lists l;
    size_t blocks, n;
    unsigned char record[64];
    const uint32_t list[] = {1, 4, 9}, distance[] = {2, 1, 2};
    lists_from_text(&l, text, 3, 2, 10);
    uint32_t *first = equal_blocks(l.rows, 1, &blocks);
    compile_uses(&l, first, blocks);
    n = drps_list_encode(list, 3, record);
    n += drps_numbers_encode(distance, 3, record + n);
    assert_ok(forecast_with(&l, first, blocks, record, n, &err), &err);
    for (size_t i = 0; i < n * 8; i++) {
        record[i / 8] ^= (unsigned char)(1 << i % 8);
        int rc = forecast_with(&l, first, blocks, record, n, &err);
        assert_true(rc == 0 || rc == DRPS_E_CORRUPT);
        if (rc < 0) assert_non_null(strstr(err.text, "uses.rec: record "));
        drps_err_clear(&err);
        record[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    for (size_t i = 0; i < n; i++)
        assert_int_equal(forecast_with(&l, first, blocks, record, i, NULL), DRPS_E_CORRUPT);
    free(first);
    lists_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forecast_pib_example),
        cmocka_unit_test(test_forecast_pib_is_optimal),
        cmocka_unit_test(test_forecast_pib_writes_what_it_reads),
        cmocka_unit_test(test_forecast_curve_example),
        cmocka_unit_test(test_curve_of_a_share),
        cmocka_unit_test(test_curve_side_by_side),
        cmocka_unit_test(test_forecast_survives_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
