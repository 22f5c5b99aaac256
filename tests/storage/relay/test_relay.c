/* The relay store shows the same bytes as a plain array, however its windows, runs and chunks are
 * cut; and says what is wrong when it cannot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "storage/relay/drps_moves.h"
#include "storage/relay/drps_relay.h"
#include "storage/relay/relay.h"
#include "storage/relay/run_layout.h"
#include "support/relay_ways.h"
#include "support/store_run.h"
#include "support/uring_here.h"

static const struct plan_shape shapes[] = {
    {.rows = 3000,
     .max_block_rows = 20,
     .max_step_rows = 150,
     .row_bytes = 16,
     .epoch_steps = 30,
     .epochs = 4},
    {.rows = 500,
     .max_block_rows = 9,
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
    {.rows = 60, /* a row is wider than a chunk */
     .max_block_rows = 9,
     .max_step_rows = 60,
     .row_bytes = 8000,
     .epoch_steps = 15,
     .epochs = 6},
    {.rows = 9000, /* many windows, many runs */
     .max_block_rows = 9,
     .max_step_rows = 100,
     .row_bytes = 48,
     .epoch_steps = 400,
     .epochs = 3},
    {.rows = 600, /* each window sends to few others */
     .max_block_rows = 9,
     .row_bytes = 520,
     .epoch_steps = 225,
     .epochs = 2,
     .grid = 15},
    {.rows = 200, /* the same, and a row is wider than a chunk */
     .max_block_rows = 9,
     .row_bytes = 5000,
     .epoch_steps = 144,
     .epochs = 2,
     .grid = 12},
};

enum { SHAPES = sizeof(shapes) / sizeof(*shapes) };
enum { FEW = DRPS_TEST_ONE_IN > 1 };

struct how {
    uint64_t extra_memory;
    size_t chunk_bytes, scan_bytes;
    int no_uring;
    int tight_buffers; /* 1: as few as are sure to do, and more_buffers */
    uint64_t more_buffers;
};

static void run(const struct plan *p, const struct how *how, struct drps_store_stats *stats)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_store_config config = plan_config(p);
    char *dir = scratch_new();
    config.dir = dir;
    config.chunk_bytes = how->chunk_bytes;
    config.scan_bytes = how->scan_bytes;
    config.no_uring = how->no_uring;
    config.memory_bytes = plan_least_memory(&drps_store_relay, &config) + how->extra_memory;
    if (how->tight_buffers) {
        struct drps_relay_share share;
        drps_relay_share(config.memory_bytes, p->rows, p->row_bytes, 0, &share);
        config.buffer_bytes = relay_least_buffers(&config) + how->more_buffers;
        config.memory_bytes -= share.buffer_bytes - config.buffer_bytes;
    }
    if (plan_run(p, &drps_store_relay, &config, stats, &err) < 0) fail_msg("%s", err.text);
    scratch_remove(dir);
}

static void test_equals_model(void **state)
{
    (void)state;
    const uint64_t seed = test_seed("relay");
    for (size_t i = 0; i < SHAPES; i++) {
        struct plan *p = plan_new(seed + i, &shapes[i]);
        for (size_t k = 0; k < 6; k++) {
            const struct how how = {.extra_memory = k % 2 ? 4 << 20 : 0,
                                    .chunk_bytes = k % 3 ? 4096 : 0,
                                    .scan_bytes = k % 2 ? 0 : 4,
                                    .no_uring = k >= 3};
            struct drps_store_stats stats;
            plan_cut(p, seed + k, k == 5 ? shapes[i].epoch_steps : 1 + k);
            run(p, &how, &stats);
            assert_int_equal(stats.steps, p->n_steps);
            assert_int_equal(stats.windows, p->source.windows * p->source.epochs);
            assert_true(stats.pool_bytes <= (uint64_t)p->rows * p->row_bytes);
            if (!how.extra_memory) /* of little rows, more can wait than are in windows */
                assert_true(stats.pool_bytes <= (p->source.working_rows * 5 + 64) * p->row_bytes);
            if (how.no_uring) assert_string_equal(stats.io_engine, "threads");
        }
        plan_free(p);
    }
}

/* Steps of two windows are open; one of a third has to wait. */
static void test_shows_several_steps(void **state)
{
    (void)state;
    const uint64_t seed = test_seed("relay, several steps");
    size_t all_refused = 0;
    for (size_t i = 0; i < SHAPES; i++) {
        struct plan *p = plan_new(seed + i, &shapes[i]);
        for (size_t k = 0; k < 5; k++) {
            static const unsigned spans[] = {2, 3, 8, 32, DRPS_STORE_OPEN_MOST};
            struct drps_err err = DRPS_ERR_INIT;
            struct drps_store_config config = plan_config(p);
            size_t overlaps, refused;
            char *dir = scratch_new();
            plan_cut(p, seed + k, 1 + 2 * k);
            config.windows = &p->source;
            config.dir = dir;
            config.chunk_bytes = k % 2 ? 4096 : 0;
            config.open_steps = spans[k];
            config.memory_bytes = plan_least_memory(&drps_store_relay, &config);
            if (plan_run_overlapping(p, &drps_store_relay, &config, &overlaps, &refused, &err) < 0)
                fail_msg("%s", err.text);
            assert_true(overlaps > 0);
            all_refused += refused;
            scratch_remove(dir);
        }
        plan_free(p);
    }
    assert_true(all_refused > 0);
}

/* Bytes on disk are those of rows that leave, and of their sections' headers and last chunks. */
static void test_moves_what_the_windows_say(void **state)
{
    (void)state;
    struct plan *p = plan_new(test_seed("bytes"), &shapes[2]);
    struct drps_store_stats stats;
    plan_cut(p, 5, 2);
    run(p, &(struct how){.chunk_bytes = 4096}, &stats);
    uint64_t arriving = 0, rows = 0;
    for (uint32_t w = 0; w < p->source.windows; w++) {
        arriving += p->windows[w].head.arriving;
        rows += p->windows[w].head.n;
    }
    const uint64_t all = rows * p->source.epochs;
    assert_int_equal(stats.rows_kept + stats.rows_arrived + stats.rows_created, all);
    assert_true(stats.rows_created <= p->rows);
    assert_true(stats.rows_arrived <= arriving * p->source.epochs);
    assert_int_equal(stats.merged_bytes, 0);
    /* scans read the runs, too: only what was written can be bounded from above */
    const uint64_t most = arriving * p->source.epochs * p->row_bytes;
    assert_true(stats.io.written_bytes <= most + most / 20);
    assert_true(stats.io.written_bytes > 0 && stats.io.read_bytes > 0);
    assert_true(stats.write_bytes >= 4 * stats.chunk_bytes); /* many chunks a request */
    assert_true(stats.io.writes <= stats.io.written_bytes / stats.chunk_bytes / 2);
    plan_free(p);
}

/* All steps, with so much more memory than the least. Nothing is scanned, as that ends the run that
 * is being written, which moves some rows more. */
static void run_unscanned(const struct plan *p, uint64_t extra_memory,
                          struct drps_store_stats *stats)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_store_config config = plan_config(p);
    struct plan_store r;
    char *dir = scratch_new();
    config.dir = dir;
    config.memory_bytes = plan_least_memory(&drps_store_relay, &config) + extra_memory;
    assert_int_equal(plan_open(&r, p, &drps_store_relay, &config, &err), 0);
    for (size_t s = 0; s < p->n_steps; s++)
        if (plan_step(&r, &err) < 0) fail_msg("%s", err.text);
    r.ops->stats(r.st, stats);
    plan_close(&r);
    scratch_remove(dir);
}

/* In frames beyond two windows' rows wait: fewer move, those that were planned to, and none when
 * there are frames for all. */
static void test_rows_wait_where_there_is_room(void **state)
{
    (void)state;
    const uint64_t seed = test_seed("hold");
    uint64_t moved = 0;
    for (size_t i = 0; i < SHAPES; i++) {
        struct plan *p = plan_new(seed + i, &shapes[i]);
        uint64_t before = UINT64_MAX;
        plan_cut(p, seed, 3);
        for (uint64_t share = 0; share <= 8; share++) {
            const uint64_t all = (uint64_t)p->rows * (p->row_bytes + 8);
            struct drps_store_stats stats;
            run_unscanned(p, share * all / 4, &stats);
            /* Planned are those of the second epoch, and others move nearly as many. Memory fills
             * up in the first one; rows of the last one do not come back. */
            const uint64_t sent = stats.rows_sent, epochs = p->source.epochs;
            const uint64_t few = stats.pool_bytes / p->row_bytes / 32;
            assert_true(stats.rows_arrived <= sent * epochs * 5 / 4 + few);
            assert_true(stats.rows_arrived >= sent * (epochs - 2) * 3 / 4);
            assert_true(sent <= before);
            before = sent;
            if (share == 0) moved += sent;
        }
        assert_int_equal(before, 0);
        plan_free(p);
    }
    assert_true(moved > 0);
}

static void test_window_bytes_stay_in_the_budget(void **state)
{
    (void)state;
    const struct drps_relay_share share = {
        .budget_bytes = 96000, .row_bytes = 84, .waiting_bytes = 36};
    static const struct {
        const char *name;
        uint64_t rows, step_rows, want;
    } cases[] = {
        {"all rows fit", 1142, 100, 96000},
        {"of three frames one is a window's", 5000, 100, 51660},
        {"two steps need more than that part", 5000, 550, 92400},
        {"two steps need all", 5000, 572, 96000},
        {"two steps need more than there is", 5000, 900, 96000},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const uint64_t got = drps_relay_window_bytes(&share, cases[i].rows, cases[i].step_rows);
        if (got != cases[i].want)
            fail_msg("%s: %llu bytes instead of %llu", cases[i].name, (unsigned long long)got,
                     (unsigned long long)cases[i].want);
    }
    struct drps_relay_share coarse = share;
    coarse.coarse = 1;
    assert_int_equal(drps_relay_window_bytes(&coarse, 5000, 100), 96000);
    coarse.most_rows = 700;
    assert_int_equal(drps_relay_window_bytes(&coarse, 5000, 100), 700 * share.row_bytes);
    coarse.most_rows = 5000; /* which is more than there is memory for */
    assert_int_equal(drps_relay_window_bytes(&coarse, 5000, 100), 96000);
    struct drps_relay_share bound = share;
    bound.most_rows = 300;
    assert_int_equal(drps_relay_window_bytes(&bound, 5000, 100), 300 * share.row_bytes);
    bound.most_rows = 700;
    assert_int_equal(drps_relay_window_bytes(&bound, 5000, 100), 51660);
}

/* Where two steps take nearly all of the memory, windows may be as many as steps: the buffers have
 * room for them, or fewer, on any disk, and what is left for two steps. */
static void test_sure_share_fits_any_windows(void **state)
{
    (void)state;
    static const uint64_t seeks[] = {0, 4096, 65536, 262144, 1 << 20, 4 << 20};
    struct drps_store_config config = {.rows = 1 << 30, .row_bytes = 64, .step.rows = 1 << 28};
    for (uint64_t steps = 1; steps < 40000; steps += 1 + steps / (FEW ? 5 : 50)) {
        struct drps_window_source source = {.windows = (uint32_t)steps};
        struct drps_relay_share share;
        config.epoch_steps = steps;
        config.windows = NULL;
        const uint64_t least = drps_relay_sure_bytes(&config);
        drps_relay_share_surely(least, &config, &share);
        assert_int_equal(share.budget_bytes / share.row_bytes, 2 * config.step.rows);
        config.windows = &source;
        for (; source.windows > 0; source.windows -= 1 + source.windows / 30) {
            struct drps_run_layout l;
            assert_true(drps_relay_fits(&share, source.windows));
            for (size_t i = 0; i < sizeof(seeks) / sizeof(*seeks); i++) {
                config.seek_bytes = seeks[i];
                if (drps_run_layout_choose(&config, share.buffer_bytes, 1000, &l, NULL) < 0)
                    fail_msg("%u windows of %llu steps, seeks of %llu bytes", source.windows,
                             (unsigned long long)steps, (unsigned long long)seeks[i]);
            }
        }
    }
}

/* More memory than the least: never fewer rows than the least has room for, and a share of it;
 * but no more in two windows than `frames`, if that is not 0. */
static void check_sure_share(uint64_t frames)
{
    const struct drps_store_config config = {.rows = 4000000,
                                             .row_bytes = 72,
                                             .step.rows = 3700,
                                             .epoch_steps = 5001,
                                             .device_frames = frames};
    const uint64_t least = drps_relay_sure_bytes(&config);
    for (uint64_t memory = least; memory < 64 << 20; memory += 54321) {
        struct drps_relay_share share;
        drps_relay_share_surely(memory, &config, &share);
        const uint64_t rows = drps_relay_open_bytes(&share) / share.row_bytes;
        assert_true(!frames || rows <= frames);
        const uint64_t pairs = rows / (2 * config.step.rows); /* of steps: windows have as many */
        assert_true(pairs >= 1);
        assert_int_equal(share.budget_bytes + share.buffer_bytes, memory);
        const uint64_t windows = 2 * config.epoch_steps / (pairs + 1) + 5;
        assert_true(drps_relay_fits(
            &share, (uint32_t)(windows < config.epoch_steps ? windows : config.epoch_steps)));
    }
}

static void test_sure_share_grows(void **state)
{
    (void)state;
    static const uint64_t frames[] = {0, 2 * 3700, 5 * 3700, 40 * 3700, 4000000};
    for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++)
        check_sure_share(frames[i]);
}

/* A store that was opened so is scanned while steps are open: as their rows are then. */
static void test_scans_beside_open_steps(void **state)
{
    (void)state;
    static const struct drps_store_ops *const kinds[] = {&drps_store_relay, &drps_store_resident};
    struct plan *p = plan_new(test_seed("open"), &shapes[0]);
    plan_cut(p, 3, 2);
    for (size_t i = 0; i < 4; i++) {
        const struct drps_store_ops *ops = kinds[i / 2];
        const struct plan_step *step = &p->steps[0];
        struct drps_store_config config = plan_config(p);
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_rows rows;
        struct plan_store r;
        char *dir = scratch_new();
        config.dir = dir;
        config.scans_open = (int)i % 2;
        config.memory_bytes = plan_least_memory(ops, &config);
        assert_int_equal(plan_open(&r, p, ops, &config, &err), 0);
        assert_int_equal(ops->step_open(r.st, 0, ops->by_slot ? step->slots : step->ids,
                                        step->n_ids, &rows, &err),
                         0);
        for (size_t k = 0; k < rows.n; k++) {
            memset(drps_row_at(&rows, k), (int)k, p->row_bytes);
            memset(r.model + step->ids[k] * p->row_bytes, (int)k, p->row_bytes);
        }
        assert_int_equal(plan_scan(&r, 0, &err), config.scans_open ? 0 : -EINVAL);
        if (ops->save) assert_int_equal(ops->save(r.st, dir, &(unsigned){0}, NULL), -EINVAL);
        assert_int_equal(ops->step_close(r.st, 0, 1, &err), 0);
        assert_int_equal(plan_scan(&r, 0, &err), 0);
        plan_close(&r);
        scratch_remove(dir);
    }
    plan_free(p);
}

static void test_waiting_rows_keep_order(void **state)
{
    (void)state;
    enum { N = 100 };
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_waiting *waiting = drps_waiting_new(2, 2 * N, 2 * N - 1);
    uint32_t frames[2 * N], out[2 * N];
    for (uint32_t i = 0; i < 2 * N; i++)
        frames[i] = 7 * i;
    for (int round = 0; round < 3; round++) { /* room is given back */
        for (size_t i = 0; i < N; i += 10) {
            assert_int_equal(drps_waiting_add(waiting, 0, frames + i, 10, &err), 0);
            assert_int_equal(drps_waiting_add(waiting, 1, frames + N + i, 10, &err), 0);
        }
        for (uint32_t w = 0; w < 2; w++) {
            assert_int_equal(drps_waiting_count(waiting, w), N);
            for (int clear = 0; clear < 2; clear++) {
                memset(out, 0, sizeof(out));
                drps_waiting_take(waiting, w, clear, out);
                assert_memory_equal(out, frames + w * N, N * sizeof(*out));
            }
            assert_int_equal(drps_waiting_count(waiting, w), 0);
        }
    }
    assert_int_equal(drps_waiting_add(waiting, 0, frames, 2 * N, &err), DRPS_E_CORRUPT);
    assert_int_equal(drps_waiting_add(waiting, 0, frames, 2 * N - 1, &err), 0);
    assert_int_equal(drps_waiting_add(waiting, 0, frames, 1, &err), DRPS_E_CORRUPT);
    int rc = drps_waiting_add(waiting, 1, frames, 1, &err);
    for (int i = 0; i < 100 && rc == 0; i++)
        rc = drps_waiting_add(waiting, 1, frames, 1, &err);
    assert_int_equal(rc, -EINVAL);
    drps_waiting_free(waiting);
    drps_waiting_free(NULL);
}

/* Row by row, by distance: the lists are as when each is appended to its list. */
static void test_rows_wait_by_distance(void **state)
{
    (void)state;
    enum { WINDOWS = 5, N = 400 };
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_waiting *waiting = drps_waiting_new(WINDOWS, N, N / 4);
    uint32_t distances[N], frames[N], once[N], out[N], want[N];
    size_t n = 0, wanted = 0;
    for (uint32_t i = 0; i < N; i++) {
        distances[i] = 2 + (uint32_t)(drps_rng_at(5, i) % (WINDOWS - 1));
        frames[i] = 3 * i;
    }
    assert_int_equal(drps_waiting_add_each(waiting, 3, distances, frames, 300, once, &n, &err), 0);
    for (uint32_t w = 0; w <= WINDOWS; w++) { /* the last are those of a whole epoch */
        const uint32_t distance = w == WINDOWS ? WINDOWS : (w + WINDOWS - 3) % WINDOWS;
        wanted = 0;
        for (uint32_t i = 0; i < 300; i++)
            if (distances[i] == distance) want[wanted++] = frames[i];
        if (w < WINDOWS) {
            assert_int_equal(drps_waiting_count(waiting, w), wanted);
            drps_waiting_take(waiting, w, 0, out);
        }
        assert_memory_equal(w < WINDOWS ? out : once, want, wanted * sizeof(*want));
    }
    assert_int_equal(n, wanted);
    for (uint32_t i = 0; i < N; i++)
        distances[i] = 2;
    assert_int_equal(drps_waiting_add_each(waiting, 3, distances, frames, 100, once, &n, &err),
                     DRPS_E_CORRUPT);
    drps_waiting_free(waiting);
}

static void test_merges_when_memory_is_short(void **state)
{
    (void)state;
    struct plan *p = plan_new(test_seed("merges"), &shapes[4]);
    struct drps_store_stats stats;
    plan_cut(p, 3, 1);
    assert_int_equal(p->source.windows, 400);
    run(p, &(struct how){.tight_buffers = 1}, &stats);
    assert_true(stats.merged_bytes > 0);
    run(p, &(struct how){.extra_memory = 64 << 20}, &stats);
    assert_int_equal(stats.merged_bytes, 0);
    plan_free(p);
}

/* Where runs would be merged, more rows leave together: fewer runs, but rows leave sooner. */
static void test_more_rows_leave_together_where_runs_are_merged(void **state)
{
    (void)state;
    struct plan *p = plan_new(5, &shapes[0]);
    struct drps_store_stats tight, ample;
    plan_cut(p, 3, 1);
    run(p, &(struct how){.tight_buffers = 1}, &tight);
    run(p, &(struct how){.tight_buffers = 1, .more_buffers = 32 << 20}, &ample);
    assert_int_equal(tight.pool_bytes, ample.pool_bytes);
    assert_true(tight.merged_bytes > 0);
    assert_int_equal(ample.merged_bytes, 0);
    assert_true(tight.rows_sent > ample.rows_sent);
    plan_free(p);
}

static void test_layout_follows_cost(void **state)
{
    (void)state;
    struct drps_window_source source = {.windows = 60};
    struct drps_store_config config = {.windows = &source, .rows = 1 << 20, .row_bytes = 64};
    struct drps_run_layout l, slow;
    assert_int_equal(drps_run_layout_choose(&config, 64 << 20, 50, &l, NULL), 0);
    assert_true(l.chunk_bytes >= 256 << 10);
    assert_int_equal(drps_run_layout_choose(&config, 64 << 20, 2000, &l, NULL), 0);
    assert_true(l.chunk_bytes < 256 << 10); /* more runs, smaller chunks */
    config.seek_bytes = 750000;             /* a slow disk: larger chunks, and merges */
    assert_int_equal(drps_run_layout_choose(&config, 64 << 20, 2000, &slow, NULL), 0);
    assert_true(slow.chunk_bytes > l.chunk_bytes && slow.runs < l.runs);
    config.chunk_bytes = 4096;
    assert_int_equal(drps_run_layout_choose(&config, 64 << 20, 50, &l, NULL), 0);
    assert_int_equal(l.chunk_bytes, 4096);
    assert_int_equal(drps_run_layout_choose(&config, 1 << 20, 50, &l, NULL), DRPS_E_MEMORY_BUDGET);
}

/* How rows leave where an eighth of the frames does, or a quarter. */
struct share_cost {
    uint64_t spill_rows, sent;
    int is_merged;
    double cost;
};

static struct share_cost cost_of_share(const struct drps_store_config *config, uint64_t bytes,
                                       const struct drps_moves *moves, uint64_t frames,
                                       unsigned share)
{
    struct share_cost c = {.spill_rows = drps_relay_spill_rows(frames, share)};
    struct drps_run_layout l;
    assert_int_equal(drps_moves_written(moves, frames, share, &c.sent), 0);
    assert_int_equal(drps_run_layout_choose(config, bytes, c.sent / c.spill_rows, &l, NULL), 0);
    c.is_merged = c.sent / c.spill_rows > l.runs;
    c.cost = (double)c.sent * l.cost;
    return c;
}

/* An eighth leaves where no run is merged then; else what costs less. */
static void test_a_quarter_leaves_only_where_runs_are_merged(void **state)
{
    enum { WINDOWS = 600, ROWS = 40, FRAMES = 3000, LEAVING = WINDOWS * ROWS };
    struct drps_window_source source = {.windows = WINDOWS};
    struct drps_store_config config = {
        .windows = &source, .rows = LEAVING, .row_bytes = 1024, .seek_bytes = 65536};
    struct drps_moves m;
    int kept = 0, large = 0, small = 0;
    (void)state;
    assert_int_equal(drps_moves_init(&m, WINDOWS, 16 << 20), 0);
    for (uint32_t w = 0; w < WINDOWS; w++) {
        m.room[w] = FRAMES - 2 * ROWS;
        for (uint32_t i = 0; i < ROWS; i++)
            ++*drps_moves_count(&m, w, 2 + (uint32_t)(drps_rng_at(w, i) % 300));
    }
    for (uint64_t bytes = 1 << 20; bytes <= 64 << 20; bytes += bytes / 8) {
        struct drps_spill_plan plan;
        if (drps_relay_plan_spills(&config, bytes, &m, FRAMES, &plan, NULL) < 0) continue;
        const struct share_cost eighth =
            cost_of_share(&config, bytes, &m, FRAMES, DRPS_RELAY_SPILL_SMALL);
        const struct share_cost quarter =
            cost_of_share(&config, bytes, &m, FRAMES, DRPS_RELAY_SPILL_LARGE);
        const int takes_quarter = eighth.is_merged && quarter.cost < eighth.cost;
        const struct share_cost *due = takes_quarter ? &quarter : &eighth;
        assert_int_equal(plan.spill_rows, due->spill_rows);
        assert_int_equal(plan.rows_sent, due->sent);
        kept += !eighth.is_merged;
        large += takes_quarter;
        small += eighth.is_merged && !takes_quarter;
    }
    assert_true(kept > 0 && large > 0 && small > 0);
    drps_moves_destroy(&m);
}

/* Whoever knows the frames alone finds the chunks that the memory gives. Frames are rounded, so
 * that near a border it may be the next size. */
static void test_chunks_are_forecast_from_frames(void **state)
{
    (void)state;
    static const uint64_t seeks[] = {4096, 20000, 300000};
    struct drps_window_source source = {.windows = 900};
    struct drps_store_config config = {
        .windows = &source, .rows = 4000000, .row_bytes = 136, .step.rows = 9000};
    unsigned n = 0, others = 0;
    for (size_t i = 0; i < sizeof(seeks) / sizeof(*seeks); i++)
        for (uint64_t memory = 24 << 20; memory < 256 << 20; memory += 1234567) {
            struct drps_relay_share share;
            struct drps_run_layout l;
            config.seek_bytes = seeks[i];
            drps_relay_share(memory, config.rows, config.row_bytes, seeks[i], &share);
            const uint64_t window = drps_relay_window_bytes(&share, config.rows, config.step.rows);
            const uint64_t frames =
                drps_relay_frames(&share, window / share.row_bytes, config.rows);
            const uint64_t sent = 2 * (config.rows - frames);
            if (drps_run_layout_choose(&config, share.buffer_bytes,
                                       sent / drps_relay_spill_rows(frames, DRPS_RELAY_SPILL_SMALL),
                                       &l, NULL) < 0)
                continue;
            const uint64_t chunk = drps_relay_forecast_chunk(&config, frames, sent);
            n++;
            others += chunk != l.chunk_bytes;
            if (2 * chunk < l.chunk_bytes || chunk > 2 * l.chunk_bytes)
                fail_msg("%llu bytes, seeks of %llu: chunks of %llu, forecast %llu",
                         (unsigned long long)memory, (unsigned long long)seeks[i],
                         (unsigned long long)l.chunk_bytes, (unsigned long long)chunk);
        }
    if (others * 20 > n || n < 300) fail_msg("%u of %u forecasts are others", others, n);
}

static struct drps_runs_config runs_of(const struct drps_run_layout *l, size_t row_bytes)
{
    return (struct drps_runs_config){.row_bytes = row_bytes,
                                     .chunk_bytes = l->chunk_bytes,
                                     .file_chunks = l->file_chunks,
                                     .runs = l->runs,
                                     .ahead = l->ahead,
                                     .behind = l->behind,
                                     .write_chunks = l->write_chunks};
}

/* All parts of a layout fit its bytes, and use most of them where runs are many. */
static void test_layout_uses_its_bytes(void **state)
{
    (void)state;
    struct drps_window_source source = {.windows = 5};
    struct drps_store_config config = {.windows = &source, .rows = 1 << 20, .row_bytes = 64};
    for (; source.windows < 9000; source.windows += 1 + source.windows / 20)
        for (uint64_t bytes = 3 << 20; bytes <= 12 << 20; bytes += 777777) {
            struct drps_run_layout l;
            const uint64_t kept = drps_run_layout_windows(source.windows);
            if (drps_run_layout_choose(&config, bytes, 100000, &l, NULL) < 0) {
                assert_true(bytes < drps_run_layout_least(source.windows, 1 << 20, 64));
                continue;
            }
            const struct drps_runs_config runs = runs_of(&l, 64);
            const uint64_t used = drps_runs_memory(&runs);
            assert_true(used <= bytes - kept);
            assert_true(used >= (bytes - kept) * 3 / 4);
            assert_in_range(l.write_chunks, 1, l.behind - 2);
        }
}

/* What is lent has room for an entry of each partition, and a partition for rows and their bits. */
static void check_lent(const struct drps_run_layout *l, uint64_t rows, size_t row_bytes)
{
    const uint64_t first = (l->behind + drps_runs_ahead_lent(l->ahead)) * l->chunk_bytes;
    const uint64_t half = ((uint64_t)l->behind + l->ahead + l->runs + 2) * l->chunk_bytes / 2;
    const uint64_t part = drps_run_layout_part(half, row_bytes), parts = (rows + part - 1) / part;
    assert_true(parts * (row_bytes + 4) <= first);
    assert_true((part * row_bytes + 7) / 8 * 8 + (part + 63) / 64 * 8 <= half);
    assert_true(row_bytes + 4 <= half);
}

/* However wide and many rows are: where nothing is lent, buffers have room for a scan as well. */
static void test_scan_has_room(void **state)
{
    (void)state;
    struct drps_window_source source = {.windows = 100};
    struct drps_store_config c = {.windows = &source, .step.rows = 10};
    unsigned lend[2] = {0};
    for (c.row_bytes = 4; c.row_bytes < 1 << 20; c.row_bytes += c.row_bytes / 8 * 4 + 4)
        for (c.rows = 3; c.rows < 1 << 24; c.rows += c.rows / 3)
            for (uint64_t runs = 1; runs < 5000; runs *= 9) {
                struct drps_relay_share share;
                struct drps_run_layout l;
                drps_relay_share(32 << 20, c.rows, c.row_bytes, 0, &share);
                if (drps_run_layout_choose(&c, share.buffer_bytes, runs, &l, NULL) < 0) continue;
                const struct drps_runs_config config = runs_of(&l, c.row_bytes);
                const uint64_t kept = drps_run_layout_windows(source.windows);
                const uint64_t scan = l.lends ? 0 : drps_run_layout_scan(c.rows, c.row_bytes);
                const uint64_t used = kept + drps_runs_memory(&config) + scan;
                assert_true(used <= share.buffer_bytes + share.buffer_bytes / 100);
                if (l.lends) check_lent(&l, c.rows, c.row_bytes);
                lend[l.lends]++;
            }
    assert_true(lend[0] && lend[1]);
}

static void test_closes_at_any_time(void **state)
{
    (void)state;
    struct plan *p = plan_new(test_seed("close"), &shapes[0]);
    struct drps_err err = DRPS_ERR_INIT;
    plan_cut(p, 1, 3);
    for (size_t stop = 0; stop < 40; stop += 3) {
        struct drps_store_config config = plan_config(p);
        struct drps_store *st;
        struct drps_rows rows;
        char *dir = scratch_new();
        config.dir = dir;
        config.memory_bytes = plan_least_memory(&drps_store_relay, &config);
        assert_int_equal(drps_store_relay.open(&config, &st, &err), 0);
        for (size_t s = 0; s <= stop; s++) {
            const struct plan_step *step = &p->steps[s];
            assert_int_equal(
                drps_store_relay.step_open(st, s, step->slots, step->n_ids, &rows, &err), 0);
            if (s == stop && stop % 2) break; /* with a step open */
            assert_int_equal(drps_store_relay.step_close(st, s, 1, &err), 0);
        }
        drps_store_relay.close(st);
        scratch_remove(dir);
    }
    drps_store_relay.close(NULL);
    plan_free(p);
}

/* A source whose third window cannot be read before it is let go. */
struct gate {
    struct drps_window_source inner;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int is_open, told;
};

static int read_through_gate(void *ctx, uint32_t w, struct drps_store_window *out, uint32_t *rows,
                             struct drps_use_distances *next, struct drps_use_distances *prev,
                             struct drps_err *err)
{
    struct gate *g = ctx;
    pthread_mutex_lock(&g->lock);
    while (w == 2 && !g->is_open)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
    return g->inner.read(g->inner.ctx, w, out, rows, next, prev, err);
}

static void opened(void *ctx)
{
    struct gate *g = ctx;
    pthread_mutex_lock(&g->lock);
    g->told++;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

static void run_steps(struct drps_store *st, const struct plan *p, uint64_t from, uint64_t to)
{
    struct drps_rows rows;
    for (uint64_t s = from; s < to; s++) {
        const struct plan_step *step = &p->steps[s % p->epoch_steps];
        assert_int_equal(drps_store_relay.step_open(st, s, step->slots, step->n_ids, &rows, NULL),
                         0);
        assert_int_equal(drps_store_relay.step_close(st, s, 1, NULL), 0);
    }
}

/* A source that counts what is read of it, but for heads. */
struct counted {
    struct drps_window_source inner;
    uint64_t reads;
};

static int read_counted(void *ctx, uint32_t w, struct drps_store_window *out, uint32_t *rows,
                        struct drps_use_distances *next, struct drps_use_distances *prev,
                        struct drps_err *err)
{
    struct counted *c = ctx;
    c->reads += rows || next || prev;
    return c->inner.read(c->inner.ctx, w, out, rows, next, prev, err);
}

static int visit_nothing(void *ctx, uint64_t first, size_t n, const void *rows,
                         struct drps_err *err)
{
    (void)ctx, (void)first, (void)n, (void)rows, (void)err;
    return 0;
}

/* However many runs there are: a window's record is read once for the rows that come to it; those
 * of the two open windows once more. */
static void test_scan_reads_each_window_once(void **state)
{
    (void)state;
    struct plan *p = plan_new(test_seed("scan"), &shapes[4]);
    struct drps_store *st;
    struct drps_err err = DRPS_ERR_INIT;
    char *dir = scratch_new();
    plan_cut(p, 3, 1);
    const uint64_t windows = p->source.windows;
    struct counted c = {.inner = p->source};
    struct drps_window_source source = p->source;
    source.ctx = &c;
    source.read = read_counted;
    struct drps_store_config config = plan_config(p);
    config.dir = dir;
    config.windows = &source;
    config.memory_bytes = plan_least_memory(&drps_store_relay, &config);
    if (drps_store_relay.open(&config, &st, &err) < 0) fail_msg("%s", err.text);
    for (uint64_t done = 0, next; done < p->n_steps; done = next) {
        next = done + windows / 2 < p->n_steps ? done + windows / 2 : p->n_steps;
        run_steps(st, p, done, next);
        if (drps_store_relay.scan(st, 0, visit_nothing, NULL, &err) < 0) fail_msg("%s", err.text);
        c.reads = 0; /* the store's thread may still open two windows */
        if (drps_store_relay.scan(st, 0, visit_nothing, NULL, &err) < 0) fail_msg("%s", err.text);
        assert_in_range(c.reads, windows, windows + 4);
    }
    drps_store_relay.close(st);
    scratch_remove(dir);
    plan_free(p);
}

/* Who asks first need not wait: the store's thread says when to ask again. */
static void test_says_when_a_window_is_open(void **state)
{
    (void)state;
    struct plan *p = plan_new(test_seed("relay, ready"), &shapes[0]);
    struct drps_store *st;
    struct drps_err err = DRPS_ERR_INIT;
    char *dir = scratch_new();
    plan_cut(p, 1, 3);
    struct gate g = {.inner = p->source, .is_open = 1};
    struct drps_window_source source = p->source;
    struct drps_store_config config = plan_config(p);
    pthread_mutex_init(&g.lock, NULL);
    pthread_cond_init(&g.changed, NULL);
    config.dir = dir;
    config.memory_bytes = plan_least_memory(&drps_store_relay, &config);
    source.ctx = &g;
    source.read = read_through_gate;
    config.windows = &source;
    config.opened = opened;
    config.opened_ctx = &g;
    if (drps_store_relay.open(&config, &st, &err) < 0) fail_msg("%s", err.text);
    pthread_mutex_lock(&g.lock);
    g.is_open = 0; /* the store's thread reads the third when the first was left */
    pthread_mutex_unlock(&g.lock);
    const uint64_t first = p->windows[0].head.steps, second = p->windows[1].head.steps;

    run_steps(st, p, 0, first + second - 1); /* which wait, and nobody is told */
    if (second > 1) assert_true(drps_store_relay.step_ready(st)); /* its window is entered */
    run_steps(st, p, first + second - 1, first + second);
    assert_int_equal(g.told, 0);
    assert_false(drps_store_relay.step_ready(st)); /* the third is held up */
    pthread_mutex_lock(&g.lock);
    assert_int_equal(g.told, 0);
    g.is_open = 1;
    pthread_cond_broadcast(&g.changed);
    while (!g.told)
        pthread_cond_wait(&g.changed, &g.lock);
    pthread_mutex_unlock(&g.lock);
    assert_true(drps_store_relay.step_ready(st));
    run_steps(st, p, first + second, first + second + 1);
    drps_store_relay.close(st);
    assert_int_equal(g.told, 1);
    pthread_cond_destroy(&g.changed);
    pthread_mutex_destroy(&g.lock);
    scratch_remove(dir);
    plan_free(p);
}

static void test_wrong_use_is_refused(void **state)
{
    (void)state;
    struct plan *p = plan_new(test_seed("use"), &shapes[0]);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_store *st;
    struct drps_rows rows;
    char *dir = scratch_new();
    plan_cut(p, 1, 3);
    struct drps_store_config config = plan_config(p);
    config.dir = dir;
    const uint64_t least = plan_least_memory(&drps_store_relay, &config);
    config.memory_bytes = least - 1;
    assert_int_equal(drps_store_relay.open(&config, &st, &err), DRPS_E_MEMORY_BUDGET);
    char number[32];
    (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)least);
    assert_non_null(strstr(err.text, number));
    drps_err_clear(&err);
    config.memory_bytes = least;
    struct drps_store_config bad = config;
    bad.windows = NULL;
    assert_int_equal(drps_store_relay.open(&bad, &st, NULL), -EINVAL);
    bad = config;
    bad.row_bytes = 6;
    assert_int_equal(drps_store_relay.open(&bad, &st, NULL), -EINVAL);

    const struct plan_step *s0 = &p->steps[0], *s1 = &p->steps[1];
    assert_int_equal(drps_store_relay.open(&config, &st, &err), 0);
    assert_int_equal(drps_store_relay.step_close(st, 0, 0, NULL), -EINVAL);
    assert_int_equal(drps_store_relay.step_open(st, 1, s1->slots, s1->n_ids, &rows, NULL), -EINVAL);
    const uint32_t beyond = p->rows;
    assert_int_equal(drps_store_relay.step_open(st, 0, &beyond, 1, &rows, &err), -EINVAL);
    assert_non_null(strstr(err.text, "row"));
    drps_err_clear(&err);
    assert_int_equal(drps_store_relay.step_open(st, 0, s0->slots, s0->n_ids, &rows, &err), 0);
    assert_int_equal(drps_store_relay.scan(st, 0, NULL, NULL, NULL), -EINVAL);
    assert_int_equal(drps_store_relay.step_close(st, 1, 0, NULL), -EINVAL);
    assert_int_equal(drps_store_relay.step_close(st, 0, 0, &err), 0);
    drps_store_relay.close(st);
    scratch_remove(dir);
    plan_free(p);
}

/* Alter a byte in each 4 KiB of a file, whatever was altered before. */
static void alter(const char *path)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    (void)fseek(f, 0, SEEK_END);
    const long bytes = ftell(f);
    for (long at = 100; at < bytes; at += 4096) {
        (void)fseek(f, at, SEEK_SET);
        const int c = fgetc(f);
        (void)fseek(f, at, SEEK_SET);
        (void)fputc(c + 1, f);
    }
    assert_int_equal(fclose(f), 0);
}

/* A byte of the file that was altered behind the store's back is found, and its offset is named. It
 * is altered after each step of the second epoch and those that follow: another thread may have
 * read what is there, or may write it anew. */
static void test_wrong_byte_is_named(void **state)
{
    (void)state;
    struct plan *p = plan_new(test_seed("byte"), &shapes[2]);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_store *st;
    struct drps_rows rows;
    char *dir = scratch_new();
    char *path = drps_path_join(dir, "runs");
    plan_cut(p, 1, 1);
    struct drps_store_config config = plan_config(p);
    config.dir = dir;
    config.chunk_bytes = 4096;
    config.memory_bytes = plan_least_memory(&drps_store_relay, &config);
    assert_int_equal(drps_store_relay.open(&config, &st, &err), 0);
    int rc = 0;
    for (size_t s = 0; s < p->n_steps && rc == 0; s++) {
        const struct plan_step *step = &p->steps[s];
        rc = drps_store_relay.step_open(st, s, step->slots, step->n_ids, &rows, &err);
        if (rc == 0) rc = drps_store_relay.step_close(st, s, 1, &err);
        if (s >= p->epoch_steps) alter(path);
    }
    assert_int_equal(rc, DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "runs"));
    assert_non_null(strstr(err.text, "at byte"));
    drps_store_relay.close(st);
    free(path);
    scratch_remove(dir);
    plan_free(p);
}

/* Windows that contradict each other end the training with an error. */
static int lie(void *ctx, uint32_t w, struct drps_store_window *out, uint32_t *rows,
               struct drps_use_distances *next, struct drps_use_distances *prev,
               struct drps_err *err)
{
    const struct plan *p = ctx;
    const struct plan_window *win = &p->windows[w];
    int rc = p->source.read((void *)p, w, out, rows, next, prev, err);
    uint32_t *plain = malloc((win->head.n + 1) * sizeof(*plain));
    assert_non_null(plain);
    for (size_t s = 0; s < win->head.n; s++) /* one of them has rows that stay */
        plain[s] = win->next[s] == 1 ? 2 : win->next[s];
    if (next && w % 2 == 1) plan_distances(plain, win->head.n, next);
    free(plain);
    return rc;
}

static void test_contradicting_windows_are_refused(void **state)
{
    (void)state;
    struct plan *p = plan_new(test_seed("lie"), &shapes[0]);
    struct drps_err err = DRPS_ERR_INIT;
    char *dir = scratch_new();
    plan_cut(p, 1, 2);
    struct drps_window_source source = p->source;
    source.read = lie;
    struct drps_store_config config = plan_config(p);
    config.dir = dir;
    config.windows = &source;
    config.memory_bytes = plan_least_memory(&drps_store_relay, &config);
    assert_int_equal(plan_run(p, &drps_store_relay, &config, NULL, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "contradict"));
    scratch_remove(dir);
    plan_free(p);
}

/* Whichever call fails first: the error comes out, names a file, nothing hangs and all is released.
 */
static void test_faults_come_out(void **state)
{
    static const unsigned ops[] = {FAULT_OPEN, FAULT_FALLOCATE, FAULT_PREAD, FAULT_PWRITE};
    (void)state;
    const uint64_t seed = test_seed("faults");
    struct plan *p = plan_new(seed, &shapes[0]);
    plan_cut(p, seed, 2);
    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
        int met = 0;
        for (long k = 1; k < 2000; k += k < 4 ? 1 : k / 3) {
            struct fault_io *f = uring_faults_new();
            struct drps_err err = DRPS_ERR_INIT;
            struct drps_store_config config = plan_config(p);
            char *dir = scratch_new();
            config.io = &f->io;
            config.dir = dir;
            config.chunk_bytes = 4096;
            config.memory_bytes = plan_least_memory(&drps_store_relay, &config);
            fault_io_arm(f, ops[i], k, 1, FAULT_ERROR, k % 2 ? -EIO : -ENOSPC);
            const int rc = plan_run(p, &drps_store_relay, &config, NULL, &err);
            assert_int_equal(rc<0, f->fired> 0);
            if (rc < 0) assert_non_null(strstr(err.text, dir));
            met += rc < 0;
            uring_faults_free(f);
            scratch_remove(dir);
        }
        assert_true(met > 0);
    }
    plan_free(p);
}

static void test_init_may_fail(void **state)
{
    (void)state;
    const uint64_t seed = test_seed("relay, init");
    for (size_t i = 0; i < SHAPES; i++) {
        struct plan *p = plan_new(seed + i, &shapes[i]);
        plan_cut(p, seed, 1 + i % 3);
        struct drps_store_config config = plan_config(p);
        config.chunk_bytes = 4096;
        config.memory_bytes = plan_least_memory(&drps_store_relay, &config);
        plan_check_failing_init(p, &drps_store_relay, &config);
        plan_free(p);
    }
}

static uint64_t bytes_of(const char *dir, const char *name)
{
    struct stat st;
    char *path = drps_path_join(dir, name);
    assert_non_null(path);
    assert_int_equal(stat(path, &st), 0);
    free(path);
    return (uint64_t)st.st_size;
}

/* A scan that the disk has no room for says so. A scan that needs no more than the room that was
 * set aside goes on. Reads are not counted: the window thread may read before the scan and after
 * it. */
static void scan_without_room(const struct plan_store *r, struct fault_io *f)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (plan_scan(r, 0, &err) < 0) fail_msg("%s", err.text);
    fault_io_arm(f, FAULT_FALLOCATE, 1, 1, FAULT_ERROR, -ENOSPC);
    assert_int_equal(plan_scan(r, 0, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "no space left"));
    drps_err_clear(&err);
    if (plan_scan(r, 4, &err) < 0) fail_msg("%s", err.text);
    fault_io_arm(f, 0, 0, 0, FAULT_ERROR, 0);
}

/* Scans whose k-th entries cannot be written, while runs are read and written. Returns how many
 * failed. */
static unsigned scan_without_writing(const struct plan_store *r, struct fault_io *f)
{
    unsigned failed = 0;
    f->only = "scan";
    for (long k = 1; k < 100; k += k) {
        struct drps_err err = DRPS_ERR_INIT;
        if (plan_scan(r, 0, &err) < 0) fail_msg("%s", err.text);
        fault_io_arm(f, FAULT_PWRITE, k, 0, FAULT_ERROR, -EIO);
        const int rc = plan_scan(r, 0, &err);
        if (rc != (f->fired ? -EIO : 0)) fail_msg("entry %ld: code %d, %s", k, rc, err.text);
        fault_io_arm(f, 0, 0, 0, FAULT_ERROR, 0);
        failed += rc < 0;
    }
    f->only = NULL;
    return failed;
}

static void test_failed_scans_disturb_nothing(void **state)
{
    (void)state;
    const uint64_t seed = test_seed("relay, failed scans");
    for (size_t i = 0; i < SHAPES; i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct plan *p = plan_new(seed + i, &shapes[i]);
        struct fault_io *f = uring_faults_new();
        struct plan_store r;
        unsigned failed = 0;
        char *dir = scratch_new();
        plan_cut(p, seed, 1);
        struct drps_store_config config = plan_config(p);
        config.io = &f->io;
        config.dir = dir;
        config.scan_bytes = 4;
        config.memory_bytes = plan_least_memory(&drps_store_relay, &config);
        if (plan_open(&r, p, &drps_store_relay, &config, &err) < 0) fail_msg("%s", err.text);
        const uint64_t set_aside = bytes_of(dir, "scan");
        for (size_t s = 0; s < p->n_steps; s += 1 + p->epoch_steps / 3) {
            if (plan_steps(&r, s, &err) < 0) fail_msg("%s", err.text);
            if (p->row_bytes > 4) scan_without_room(&r, f);
            failed += scan_without_writing(&r, f);
            assert_int_equal(bytes_of(dir, "scan"), set_aside);
        }
        if (plan_steps(&r, p->n_steps, &err) < 0) fail_msg("%s", err.text);
        if (plan_scan(&r, 0, &err) < 0) fail_msg("%s", err.text);
        assert_true(failed > 0);
        plan_close(&r);
        uring_faults_free(f);
        scratch_remove(dir);
        plan_free(p);
    }
}

static void test_short_transfers_are_continued(void **state)
{
    (void)state;
    const uint64_t seed = test_seed("short");
    struct plan *p = plan_new(seed, &shapes[2]);
    plan_cut(p, seed, 2);
    for (long k = 1; k < 40; k += 3) {
        struct fault_io *f = uring_faults_new();
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_store_config config = plan_config(p);
        char *dir = scratch_new();
        config.io = &f->io;
        config.dir = dir;
        config.chunk_bytes = 4096;
        config.memory_bytes = plan_least_memory(&drps_store_relay, &config);
        fault_io_arm(f, FAULT_PREAD | FAULT_PWRITE, k, 0, FAULT_SHORT, 0);
        if (plan_run(p, &drps_store_relay, &config, NULL, &err) < 0) fail_msg("%s", err.text);
        assert_true(f->fired > 0);
        uring_faults_free(f);
        scratch_remove(dir);
    }
    plan_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_model),
        cmocka_unit_test(test_shows_several_steps),
        cmocka_unit_test(test_moves_what_the_windows_say),
        cmocka_unit_test(test_rows_wait_where_there_is_room),
        cmocka_unit_test(test_window_bytes_stay_in_the_budget),
        cmocka_unit_test(test_sure_share_fits_any_windows),
        cmocka_unit_test(test_sure_share_grows),
        cmocka_unit_test(test_scans_beside_open_steps),
        cmocka_unit_test(test_waiting_rows_keep_order),
        cmocka_unit_test(test_rows_wait_by_distance),
        cmocka_unit_test(test_merges_when_memory_is_short),
        cmocka_unit_test(test_more_rows_leave_together_where_runs_are_merged),
        cmocka_unit_test(test_layout_follows_cost),
        cmocka_unit_test(test_a_quarter_leaves_only_where_runs_are_merged),
        cmocka_unit_test(test_chunks_are_forecast_from_frames),
        cmocka_unit_test(test_layout_uses_its_bytes),
        cmocka_unit_test(test_scan_has_room),
        cmocka_unit_test(test_closes_at_any_time),
        cmocka_unit_test(test_scan_reads_each_window_once),
        cmocka_unit_test(test_says_when_a_window_is_open),
        cmocka_unit_test(test_wrong_use_is_refused),
        cmocka_unit_test(test_wrong_byte_is_named),
        cmocka_unit_test(test_contradicting_windows_are_refused),
        cmocka_unit_test(test_init_may_fail),
    };
    const struct CMUnitTest faults[] = {
        cmocka_unit_test(test_faults_come_out),
        cmocka_unit_test(test_failed_scans_disturb_nothing),
        cmocka_unit_test(test_short_transfers_are_continued),
    };
    const int failed = cmocka_run_group_tests_name("relay", tests, NULL, NULL) +
                       cmocka_run_group_tests_name("relay, faults", faults, NULL, NULL);
    return failed + RUN_OVER_URING("relay, faults", faults);
}
