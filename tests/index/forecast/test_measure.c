/*
 * What a relay store would send: random plans against windows that were compiled and a plain
 * simulation of its memory, a share of the rows against all, and whole plans against the store.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/step/drps_windows.h"
#include "index/drps_index.h"
#include "index/plan/drps_window.h"
#include "storage/relay/drps_moves.h"
#include "storage/relay/drps_relay.h"
#include "support/index_case.h"
#include "support/lists.h"

enum { ROW_BYTES = 12 };

static struct drps_window_options options_for(const struct lists *l)
{
    return (struct drps_window_options){.steps = l->steps,
                                        .train_steps = l->train,
                                        .rows = l->rows,
                                        .row_bytes = ROW_BYTES,
                                        .memory_bytes = 1 << 24};
}

static uint64_t most_step_rows(const struct lists *l)
{
    uint64_t most = 0;
    for (uint64_t s = 0; s < l->steps; s++)
        most = l->n[s] > most ? l->n[s] : most;
    return most;
}

/* ---- A plain simulation ---- */

/* [windows][rows] what each window of dir/windows.rec touches; own. */
static unsigned char *touched_rows(const struct lists *l, size_t *windows_out)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recfile *f;
    char *path = must(drps_path_join(l->dir, "windows.rec"));
    assert_ok(drps_recfile_open(drps_io_os(), path, DRPS_KIND_WINDOWS, &f, &err), &err);
    free(path);
    *windows_out = (size_t)drps_recfile_count(f);
    unsigned char *touched = must(calloc(*windows_out * l->rows + 1, 1));
    for (size_t w = 0; w < *windows_out; w++) {
        struct drps_window head = {0};
        void *record = must(malloc((size_t)drps_recfile_run_bytes(f, w, 1)));
        assert_ok(drps_recfile_read(f, w, 1, record, &err), &err);
        assert_ok(drps_window_head(record, (size_t)drps_recfile_bytes(f, w), &head, &err), &err);
        for (uint64_t s = head.first_step; s < head.first_step + head.steps; s++)
            for (size_t i = 0; i < l->n[s]; i++)
                touched[w * l->rows + l->list[s][i]] = 1;
        free(record);
    }
    drps_recfile_close(f);
    return touched;
}

struct plain {
    const unsigned char *touched;
    uint64_t rows;
    size_t windows;
};

static int touches(const struct plain *p, size_t w, uint64_t row)
{
    return p->touched[w % p->windows * p->rows + row];
}

static uint64_t pair_rows(const struct plain *p, size_t w)
{
    uint64_t n = 0;
    for (uint64_t row = 0; row < p->rows; row++)
        n += touches(p, w, row) || touches(p, w + 1, row);
    return n;
}

/* Windows until the row of window w is used again. */
static size_t next_use(const struct plain *p, size_t w, uint64_t row)
{
    size_t next = 1;
    while (next < p->windows && !touches(p, w + next, row))
        next++;
    return next;
}

/* Row by row, what moves.c counts: next_of[row] is the window that the row waits for, 0 if it does
 * not wait. */
struct waiting {
    size_t *next_of; /* own: [rows] */
    uint64_t n, sent;
    size_t first, next, last; /* windows of the run that is being written */
};

static void leave(struct waiting *s, uint64_t row, int written)
{
    s->next_of[row] = 0;
    s->n--;
    s->sent += (uint64_t)written;
}

static uint64_t waiting_for(const struct waiting *s, uint64_t rows, size_t window)
{
    uint64_t n = 0;
    for (uint64_t row = 0; row < rows; row++)
        n += s->next_of[row] >= window;
    return n;
}

/* Before window q opens, rows of one window after the other leave until `room` do not: a run's,
 * which ends in time to be read. A run has the furthest windows that have enough rows together. */
static void spill(struct waiting *s, const struct plain *p, size_t q, uint64_t room, uint64_t usual)
{
    if (s->first <= q + 2) s->next = s->last + 1;
    for (; s->n > room; s->next++) {
        if (s->next > s->last) {
            s->last = q + p->windows - 2;
            s->first = s->last + 1;
            while (s->first > q + 1 && waiting_for(s, p->rows, s->first) < usual)
                s->first--;
            s->next = s->first;
        }
        for (uint64_t row = 0; row < p->rows; row++)
            if (s->next_of[row] == s->next) leave(s, row, 1);
    }
    if (s->first <= q + 2) s->next = s->last + 1;
}

/* Rows that one of the next two windows uses always stay. */
static uint64_t sent_by(const struct plain *p, uint64_t frames, unsigned share)
{
    struct waiting s = {.next_of = must(calloc(p->rows + 1, sizeof(*s.next_of))), .next = 1};
    for (size_t q = 0; q < 2 * p->windows && frames < p->rows; q++) {
        const uint64_t pair = pair_rows(p, q + 1), usual = frames / share + 1;
        assert_true(pair <= frames);
        const uint64_t room = frames - pair;
        const uint64_t before = frames - pair_rows(p, q);
        const int queues = (before > s.n ? before - s.n : 0) < frames / 4;
        if (q == p->windows) s.sent = 0; /* the first epoch begins with empty memory */
        for (size_t d = 3; d <= p->windows; d++)
            for (uint64_t row = 0; row < p->rows; row++) {
                if (!touches(p, q, row) || next_use(p, q, row) != d) continue;
                s.next_of[row] = q + d;
                s.n++;
                if (d == p->windows && queues) leave(&s, row, 1);
            }
        for (uint64_t row = 0; row < p->rows; row++)
            if (s.next_of[row] == q + 2) leave(&s, row, 0);
        spill(&s, p, q + 2, room, usual);
    }
    free(s.next_of);
    return s.sent;
}

static void test_measure_is_what_compiled_windows_send(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    uint64_t moved = 0, sent = 0;
    int large = 0;
    for (int round = 0; round < 300; round++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_window_result r;
        struct drps_window_measure m[2];
        struct lists l;
        lists_random(&l, &rng, 1 + random_below(&rng, 300), 1 + random_below(&rng, 60),
                     1 + random_below(&rng, 60));
        const uint64_t step_rows = most_step_rows(&l);
        const uint64_t frames[2] = {2 * step_rows + random_below(&rng, 100), UINT64_MAX};
        struct drps_window_options o = options_for(&l);
        assert_ok(drps_windows_measure(drps_io_os(), l.dir, &o, frames, 2, m, &err), &err);
        assert_true(m[1].cut.windows <= 2 && m[1].rows_sent == 0);

        o.row_bytes = m[0].share.row_bytes;
        o.budget_bytes = drps_relay_window_bytes(&m[0].share, l.rows, step_rows);
        assert_ok(drps_windows_compile(drps_io_os(), l.dir, l.dir, &o, &r, &err), &err);
        assert_memory_equal(&m[0].cut, &r, sizeof(r));
        struct plain p = {.rows = l.rows};
        unsigned char *touched = touched_rows(&l, &p.windows);
        p.touched = touched;
        const uint64_t there = drps_relay_frames(&m[0].share, r.working_set_rows, l.rows);
        if (m[0].rows_sent != sent_by(&p, there, DRPS_RELAY_SPILL_SMALL)) {
            assert_int_equal(m[0].rows_sent, sent_by(&p, there, DRPS_RELAY_SPILL_LARGE));
            large++;
        }
        moved += r.rows_moved;
        sent += m[0].rows_sent;
        free(touched);
        lists_free(&l);
    }
    assert_true(sent > 0 && sent < moved);
    assert_in_range(large, 0, 100); /* rows leave in large shares where runs would be merged */
}

/* Small ones are those of two steps; the rest as drps-train has them. */
static void test_share_of_frames_has_them(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int round = 0; round < 1000; round++) {
        struct drps_relay_share share;
        const uint64_t rows = 1 + random_below(&rng, 1000000);
        const uint64_t frames = 1 + random_below(&rng, rows);
        const uint64_t step_rows = 1 + random_below(&rng, frames);
        const size_t row_bytes = 4 * (size_t)(1 + random_below(&rng, 100));
        drps_relay_share_frames(frames, rows, step_rows, row_bytes, &share);
        const uint64_t open = drps_relay_window_bytes(&share, rows, step_rows) / share.row_bytes;
        const uint64_t there = drps_relay_frames(&share, open, rows);
        if (frames == rows || 2 * step_rows >= frames)
            assert_int_equal(open, frames);
        else
            assert_in_range(open, 2 * step_rows > frames / 3 ? 2 * step_rows : frames / 3, frames);
        assert_in_range(there + 12, frames, frames + 24); /* two rows of windows: rounded */
    }
}

/* Rows of three kinds, used in one step of two, of 16 and of 200. */
static void test_measure_of_a_share_is_near(void **state)
{
    (void)state;
    enum { STEPS = 400, ROWS = 20000 };
    struct drps_err err = DRPS_ERR_INIT;
    struct lists l;
    char *text[STEPS], *at[STEPS];
    uint64_t uses = 0;
    for (uint32_t t = 0; t < STEPS; t++)
        at[t] = text[t] = must(calloc(ROWS, 7));
    for (uint32_t row = 0; row < ROWS; row++) {
        const uint32_t every = row < 300 ? 2 : row < 3000 ? 16 : 200;
        for (uint32_t t = (uint32_t)((row * UINT64_C(2654435761) >> 7) % every); t < STEPS;
             t += every, uses++)
            at[t] += sprintf(at[t], " %u", row);
    }
    lists_from_text(&l, (const char *const *)text, STEPS, STEPS, ROWS);
    for (uint32_t t = 0; t < STEPS; t++)
        free(text[t]);
    const uint64_t frames[] = {ROWS / 2, ROWS / 4, ROWS / 8, 0};
    struct drps_window_measure all[4], some[4];
    struct drps_window_options o = options_for(&l);
    assert_ok(drps_windows_measure(drps_io_os(), l.dir, &o, frames, 4, all, &err), &err);
    o.curve_uses = uses / 4;
    assert_ok(drps_windows_measure(drps_io_os(), l.dir, &o, frames, 4, some, &err), &err);
    for (size_t i = 0; i < 3; i++) {
        assert_memory_equal(&all[i].cut, &some[i].cut, sizeof(all[i].cut));
        assert_true(all[i].rows_sent > 0 && all[i].rows_sent < all[i].cut.rows_moved);
        assert_in_range(some[i].rows_sent, all[i].rows_sent * 95 / 100,
                        all[i].rows_sent * 105 / 100);
    }
    assert_int_equal(some[3].cut.windows, 0);
    lists_free(&l);
}

static void test_measure_refuses_too_many_sizes(void **state)
{
    (void)state;
    const char *const text[] = {"0 1"};
    struct drps_window_measure m[DRPS_WINDOW_MEASURE_MOST + 1];
    const uint64_t frames[DRPS_WINDOW_MEASURE_MOST + 1] = {0};
    struct lists l;
    lists_from_text(&l, text, 1, 1, 2);
    const struct drps_window_options o = options_for(&l);
    assert_int_equal(drps_windows_measure(drps_io_os(), l.dir, &o, frames,
                                          DRPS_WINDOW_MEASURE_MOST + 1, m, NULL),
                     -EINVAL);
    lists_free(&l);
}

/* ---- Whole plans ---- */

static int fresh_rows(void *ctx, uint64_t first, size_t n, void *rows_out, struct drps_err *err)
{
    (void)first, (void)err;
    memset(rows_out, 0, n * *(const size_t *)ctx);
    return 0;
}

/* Memory that a store divides into that budget for rows. */
static uint64_t memory_for(uint64_t budget_bytes, uint64_t rows, size_t row_bytes)
{
    uint64_t low = 0, high = UINT64_C(1) << 40;
    while (low < high) {
        struct drps_relay_share share;
        const uint64_t memory = (low + high) / 2;
        drps_relay_share(memory, rows, row_bytes, 0, &share);
        if (share.budget_bytes < budget_bytes)
            low = memory + 1;
        else
            high = memory;
    }
    return low;
}

struct measured {
    uint64_t sent, leaving, windows;
};

/* The store itself, opened with memory for so many rows. */
static struct measured open_store(struct scratch *s, const struct drps_plan *plan, uint64_t frames)
{
    const struct drps_plan_info *info = &plan->info;
    const size_t row_bytes = (size_t)info->row_bytes;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_relay_share share;
    struct drps_windows *windows;
    struct drps_window_source source;
    struct drps_store *store;
    struct drps_store_stats stats;
    struct drps_store_window head;

    drps_relay_share_frames(frames, info->rows, info->ranks.max_round_rows, row_bytes, &share);
    const uint64_t memory = memory_for(share.budget_bytes, info->rows, row_bytes);
    drps_relay_share(memory, info->rows, row_bytes, 0, &share);
    const struct drps_windows_options options = {
        .plan = plan, .dir = s->dir, .share = &share, .epochs = 1, .memory_bytes = 1 << 24};
    assert_ok(drps_windows_open(&options, &windows, &source, &err), &err);
    const struct drps_store_config config = {.io = drps_io_os(),
                                             .rows = info->rows,
                                             .row_bytes = row_bytes,
                                             .init = fresh_rows,
                                             .init_ctx = (void *)&row_bytes,
                                             .dir = s->dir,
                                             .memory_bytes = memory,
                                             .windows = &source};
    assert_ok(drps_store_relay.open(&config, &store, &err), &err);
    drps_store_relay.stats(store, &stats);
    struct measured out = {.sent = stats.rows_sent, .windows = source.windows};
    drps_store_relay.close(store);
    assert_int_equal(unlink(scratch_path(s, "runs")), 0);
    assert_int_equal(unlink(scratch_path(s, "scan")), 0);
    for (uint32_t w = 0; w < source.windows; w++) {
        assert_ok(source.read(source.ctx, w, &head, NULL, NULL, NULL, &err), &err);
        out.leaving += head.leaving;
    }
    drps_windows_close(windows);
    return out;
}

/* Every point of the curve but that of all rows; at one of them at least half of what leaves its
 * window stays in memory. */
static void check_curve(struct scratch *s, const struct case_run *c)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_plan *plan;
    unsigned points = 0, staying = 0;
    assert_ok(drps_plan_open(drps_io_os(), c->out, &plan, &err), &err);
    const uint64_t row_bytes = plan->info.row_bytes;
    for (size_t i = 0; i < c->result.forecasts; i++) {
        const struct drps_forecast *f = &c->result.forecast[i];
        if (strcmp(f->store, "relay") != 0 || !f->feasible) continue;
        if (f->memory_bytes == plan->info.rows * row_bytes) continue;
        const struct measured m = open_store(s, plan, f->memory_bytes / row_bytes);
        const uint64_t sent = f->read_bytes / row_bytes; /* distances are counted one by one as far
                                                            as there is memory for it */
        if (f->windows != m.windows || sent > m.sent * 21 / 20 || m.sent > sent * 21 / 20)
            fail_msg("memory for %" PRIu64 " rows: forecast %" PRIu64 " windows, %" PRIu64
                     " rows; the store's %" PRIu64 ", %" PRIu64,
                     f->memory_bytes / row_bytes, f->windows, f->read_bytes / row_bytes, m.windows,
                     m.sent);
        points++;
        staying += 2 * m.sent < m.leaving;
    }
    drps_plan_close(plan);
    assert_true(points >= 3);
    assert_true(staying >= 1);
}

static void run_case(struct case_run *c)
{
    case_compile(c);
}

/* Few features often, many seldom. */
static void put_clicks(const char *path, unsigned samples, unsigned features)
{
    struct random_source r = {.seed = 5};
    FILE *f = must(fopen(path, "w"));
    for (unsigned i = 0; i < samples; i++) {
        (void)fprintf(f, "%u", (unsigned)random_below(&r, 2));
        for (unsigned field = 0; field < 10; field++) {
            const double u = (double)random_below(&r, 1 << 20) / (1 << 20);
            (void)fprintf(f, " %u:1", field * features + (unsigned)(features * u * u * u * u));
        }
        (void)fputc('\n', f);
    }
    assert_int_equal(fclose(f), 0);
}

static void test_forecast_of_clicks_is_what_the_store_sends(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    case_begin(&c, s, scratch_path(s, "clicks"), "fm");
    put_clicks(c.input, 20000, 2000);
    c.options.factors = 8;
    c.options.batch_size = 100;
    c.options.test_fraction = 0.1;
    run_case(&c);
    check_curve(s, &c);
}

static void test_forecast_of_a_grid_is_what_the_store_sends(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    case_begin(&c, s, case_input(s, "ratings", CASE_RATINGS, 100000, 2000, 3), "lmf");
    c.options.factors = 8;
    c.options.order = "grid";
    c.options.batch_size = 50;
    c.options.test_fraction = 0.1;
    run_case(&c);
    check_curve(s, &c);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measure_is_what_compiled_windows_send),
        cmocka_unit_test(test_share_of_frames_has_them),
        cmocka_unit_test(test_measure_of_a_share_is_near),
        cmocka_unit_test(test_measure_refuses_too_many_sizes),
        SCRATCH_TEST(test_forecast_of_clicks_is_what_the_store_sends),
        SCRATCH_TEST(test_forecast_of_a_grid_is_what_the_store_sends),
    };
    return cmocka_run_group_tests_name("measure", tests, NULL, NULL);
}
