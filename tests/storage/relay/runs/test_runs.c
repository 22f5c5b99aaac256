/* Runs against lists in memory: over many rounds of the file, with merges, looks and saves in
 * between, on both engines. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/drps_checksum.h"
#include "storage/relay/runs/runs_model.h"
#include "storage/relay/runs/section.h"
#include "support/fault_io.h"
#include "support/lists.h"

enum { SEED = 7 };

static void test_windows_get_their_rows(void **state)
{
    static const struct {
        const char *name;
        size_t row_bytes;
        uint32_t runs, ahead, behind, write_chunks;
        uint64_t delay, reach;
        size_t run_rows;
        int threads_only;
    } cases[] = {
        {"small rows", 8, 12, 5, 9, 4, 20, 60, 300, 0},
        {"few runs", 72, 8, 1, 3, 1, 20, 200, 50, 0},
        {"many runs", 72, 100, 20, 20, 16, 20, 400, 100, 0},
        {"long rows", 4096, 8, 3, 6, 4, 10, 30, 40, 0},
        {"rows larger than a chunk", 9000, 8, 2, 5, 3, 5, 20, 30, 0},
        {"no queue", 520, 8, 4, 6, 4, 0, 100, 200, 0},
        {"the next window", 100, 8, 4, 6, 4, 1, 3, 20, 0},
        {"threads", 72, 10, 5, 9, 4, 20, 100, 100, 1},
    };
    struct model *m = must(malloc(sizeof(*m)));
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_runs_config c = model_config(*state);
        c.row_bytes = cases[i].row_bytes;
        c.runs = cases[i].runs;
        c.ahead = cases[i].ahead;
        c.behind = cases[i].behind;
        c.write_chunks = cases[i].write_chunks;
        c.threads_only = cases[i].threads_only;
        model_begin(m, *state, SEED + i, &c);
        m->delay = cases[i].delay;
        m->reach = cases[i].reach;
        m->run_rows = cases[i].run_rows;
        if (model_windows(m, 300, &err) < 0) fail_msg("%s: %s", cases[i].name, err.text);
        if (i == 1) assert_true(drps_runs_merged_bytes(m->runs) > 0);
        model_end(m);
        scratch_end(*state);
        scratch_begin(*state);
    }
    free(m);
}

/* ---- One thing at a time ---- */

enum { ROW = 72, PER_CHUNK = 4096 / ROW };

static struct drps_runs *open_runs(const struct drps_runs_config *c)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_runs *r;
    assert_ok(drps_runs_open(c, &r, &err), &err);
    return r;
}

/* Rows 0 .. n - 1 of memory that is zero, or where nobody looks. */
static const uint32_t *frames_up_to(uint32_t n)
{
    static uint32_t frames[MODEL_ROWS];
    assert_true(n <= MODEL_ROWS);
    for (uint32_t i = 0; i < n; i++)
        frames[i] = i;
    return frames;
}

static char rows[MODEL_ROWS * ROW];

/* A run of n rows for each of some windows. */
static void add_run(struct drps_runs *r, uint64_t from, uint64_t to, uint32_t n)
{
    struct drps_err err = DRPS_ERR_INIT;
    int rc = drps_runs_begin(r, &err);
    for (uint64_t w = from; w < to && rc == 0; w++)
        rc = drps_runs_add(r, w, rows, frames_up_to(n), n, &err);
    if (rc == 0) rc = drps_runs_end(r, &err);
    assert_ok(rc, &err);
}

static int take(struct drps_runs *r, uint64_t window, uint32_t n, struct drps_err *err)
{
    return drps_runs_take(r, window, rows, frames_up_to(n), n, err);
}

static void test_file_grows_where_it_is_too_small(void **state)
{
    struct drps_runs_config c = model_config(*state);
    struct drps_err err = DRPS_ERR_INIT;
    c.file_chunks = 1;
    struct drps_runs *r = open_runs(&c);
    for (int i = 0; i < 10; i++)
        add_run(r, 1, 20, 100);
    assert_true(r->map.n >= 10 * 19 * 100 / PER_CHUNK);
    for (uint64_t w = 1; w < 20; w++) {
        for (int i = 0; i < 5; i++)
            assert_ok(take(r, w, 200, &err), &err);
        assert_ok(drps_runs_taken(r, w, &err), &err);
    }
    assert_int_equal(drps_chunk_map_kept(&r->map), 0);
    assert_int_equal(drps_runs_live(r), 0);
    drps_runs_close(r);
}

static void test_full_disk_is_final(void **state)
{
    struct fault_io *f = fault_io_new(drps_io_os());
    struct drps_runs_config c = model_config(*state);
    struct drps_err err = DRPS_ERR_INIT;
    c.io = &f->io;
    c.file_chunks = 5;
    struct drps_runs *r = open_runs(&c);
    fault_io_arm(f, FAULT_FALLOCATE, 1, 1, FAULT_ERROR, -ENOSPC);
    int rc = drps_runs_begin(r, &err);
    for (uint64_t w = 1; w < 20 && rc == 0; w++)
        rc = drps_runs_add(r, w, rows, frames_up_to(100), 100, &err);
    assert_int_equal(rc, -ENOSPC);
    assert_non_null(strstr(err.text, c.path));
    assert_non_null(strstr(err.text, "no space left"));
    drps_runs_close(r);
    fault_io_free(f);
}

/* The queue's chunk, too, waits for room; then all goes on. */
static void test_save_that_finds_no_room_changes_nothing(void **state)
{
    struct model *m = must(malloc(sizeof(*m)));
    struct fault_io *f = fault_io_new(drps_io_os());
    struct drps_runs_config c = model_config(*state);
    struct drps_err err = DRPS_ERR_INIT;
    c.io = &f->io;
    c.file_chunks = 1;
    model_begin(m, *state, SEED, &c);
    assert_ok(model_run(m, &err), &err);
    for (int i = 0; i < 5; i++)
        assert_ok(model_queue(m, &err), &err);
    uint32_t taken;
    do
        (void)drps_chunk_map_take(&m->runs->map, 1, &taken);
    while (taken); /* the file is full */
    fault_io_arm(f, FAULT_FALLOCATE, 1, 1, FAULT_ERROR, -ENOSPC);
    for (int i = 0; i < 3; i++)
        assert_int_equal(drps_runs_save_begin(m->runs, &err), -ENOSPC);
    f->ops = 0;
    assert_ok(drps_runs_save_begin(m->runs, &err), &err);
    assert_ok(model_windows(m, 200, &err), &err);
    model_end(m);
    fault_io_free(f);
    free(m);
}

/* A header that counts more rows than the run has bytes, in a chunk whose checksum is right. */
static void test_rows_of_a_header_are_bounded(void **state)
{
    static const uint64_t counts[] = {2, UINT64_MAX / ROW + 2, UINT64_MAX};
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
        for (int merging = 0; merging < 2; merging++) {
            struct drps_runs_config c = model_config(*state);
            struct drps_err err = DRPS_ERR_INIT;
            struct drps_runs *r = open_runs(&c);
            char bytes[4096] = {0};
            add_run(r, 1, 2, 1);
            if (merging) add_run(r, 1, 2, 1);
            assert_ok(drps_runs_await_all(r, &err), &err);
            const uint32_t chunk = r->runs[1].chunk, used = r->map.bytes[chunk];
            (void)drps_section_put(bytes, &(struct drps_section){.rows = counts[i]});
            FILE *f = must(fopen(c.path, "r+b"));
            (void)fseek(f, (long)(chunk * c.chunk_bytes), SEEK_SET);
            assert_int_equal(fwrite(bytes, 1, used, f), used);
            assert_int_equal(fclose(f), 0);
            r->map.sums[chunk] = drps_checksum(bytes, used);
            const int rc = merging ? drps_runs_merge(r, &err) : take(r, 1, 1, &err);
            assert_int_equal(rc, DRPS_E_CORRUPT);
            assert_non_null(strstr(err.text, "not those that were written"));
            drps_runs_close(r);
            scratch_end(*state);
            scratch_begin(*state);
        }
}

/* A run that finds no room when it is ended goes on, and is ended once there is some; so does the
 * queue, whose collected chunks are as many as one request writes. */
static void test_run_that_finds_no_room_is_ended_later(void **state)
{
    struct fault_io *f = fault_io_new(drps_io_os());
    struct drps_runs_config c = model_config(*state);
    struct drps_err err = DRPS_ERR_INIT;
    c.io = &f->io;
    c.file_chunks = 1;
    struct drps_runs *r = open_runs(&c);
    uint32_t taken;
    (void)drps_chunk_map_take(&r->map, 1, &taken); /* the file is full */
    fault_io_arm(f, FAULT_FALLOCATE, 1, 1, FAULT_ERROR, -ENOSPC);
    assert_ok(drps_runs_begin(r, &err), &err);
    assert_ok(drps_runs_add(r, 1, rows, frames_up_to(10), 10, &err), &err);
    for (int i = 0; i < 3; i++)
        assert_int_equal(drps_runs_end(r, &err), -ENOSPC);
    for (uint64_t w = 2; w < 6; w++) { /* more windows may be added, until chunks are collected */
        assert_ok(drps_runs_add(r, w, rows, frames_up_to(10), 10, &err), &err);
        assert_int_equal(drps_runs_end(r, &err), -ENOSPC);
        if (r->collected_n + 1 == c.write_chunks) break;
    }
    f->ops = 0;
    assert_ok(drps_runs_end(r, &err), &err);
    assert_int_equal(drps_runs_live(r), 1);
    assert_ok(take(r, 1, 10, &err), &err);
    assert_ok(drps_runs_taken(r, 1, &err), &err);
    drps_runs_close(r);
    fault_io_free(f);
}

static void test_wrong_byte_is_named(void **state)
{
    static const struct {
        long at;
        int rc;
    } cases[] = {{4096, DRPS_E_CORRUPT}, {2 * 4096 - 1, DRPS_E_CORRUPT}, {3 * 4096 - 1, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_runs_config c = model_config(*state);
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_runs *r = open_runs(&c);
        add_run(r, 1, 2, 2 * PER_CHUNK + 3); /* two chunks and a partial one */
        assert_ok(drps_runs_await_all(r, &err), &err);
        FILE *f = must(fopen(c.path, "r+b"));
        (void)fseek(f, cases[i].at, SEEK_SET);
        (void)fputc(99, f);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(take(r, 1, 2 * PER_CHUNK + 3, &err), cases[i].rc);
        if (cases[i].rc) assert_non_null(strstr(err.text, "runs: the 4096 bytes at byte 4096 are"));
        drps_runs_close(r);
        assert_int_equal(unlink(c.path), 0);
    }
}

static void test_windows_that_contradict_are_errors(void **state)
{
    struct drps_runs_config c = model_config(*state);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_runs *r = open_runs(&c);
    add_run(r, 5, 8, 10);
    assert_ok(drps_runs_taken(r, 4, &err), &err);
    assert_int_equal(drps_runs_taken(r, 5, &err), DRPS_E_CORRUPT);
    assert_ok(take(r, 5, 9, &err), &err);
    assert_int_equal(drps_runs_taken(r, 5, &err), DRPS_E_CORRUPT); /* a row is left */
    assert_non_null(strstr(err.text, "rows of window 5 are left"));
    assert_int_equal(take(r, 6, 10, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "rows of window 5 are left"));
    assert_int_equal(take(r, 5, 2, &err), DRPS_E_CORRUPT); /* one is too many */
    assert_non_null(strstr(err.text, "window 5 has fewer rows"));
    assert_ok(drps_runs_queue(r, 9, rows, frames_up_to(1), 1, &err), &err);
    assert_ok(drps_runs_queue(r, 9, rows, frames_up_to(1), 1, &err), &err);
    assert_int_equal(drps_runs_queue(r, 8, rows, frames_up_to(1), 1, &err), -EINVAL);
    assert_int_equal(drps_runs_queue(r, UINT64_MAX, rows, frames_up_to(1), 1, &err), -EINVAL);
    assert_int_equal(drps_runs_queue(r, 10, rows, frames_up_to(1), 0, &err), -EINVAL);
    assert_int_equal(drps_runs_taken(r, 9, &err), DRPS_E_CORRUPT); /* the queue's, in memory */
    drps_runs_close(r);
}

/* A run whose rows are all taken lives no more, and its chunks are free. */
static void test_ended_runs_leave(void **state)
{
    struct drps_runs_config c = model_config(*state);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_runs *r = open_runs(&c);
    add_run(r, 1, 1, 1); /* it is empty */
    assert_int_equal(drps_runs_live(r), 0);
    add_run(r, 1, 3, 100);
    add_run(r, 2, 3, 100);
    assert_int_equal(drps_runs_live(r), 2);
    assert_ok(take(r, 1, 100, &err), &err);
    assert_ok(take(r, 2, 100, &err), &err);
    assert_int_equal(drps_runs_live(r), 1);
    assert_ok(take(r, 2, 100, &err), &err);
    assert_int_equal(drps_runs_live(r), 0);
    assert_int_equal(drps_chunk_map_kept(&r->map), 0);
    drps_runs_close(r);
}

/* The level with most runs merges its older half; 8 runs may live. */
static void test_runs_are_merged_when_they_are_too_many(void **state)
{
    static const char *const levels[] = {
        "00000000", /* then four of them are merged, as there are eight; later three, two */
        "100000",   "1000000", "10000000", "1100000", "11000000", "1110000", "11100000", "11110000",
    };
    struct drps_runs_config c = model_config(*state);
    struct drps_err err = DRPS_ERR_INIT;
    c.runs = DRPS_RUNS_LEAST;
    struct drps_runs *r = open_runs(&c);
    for (int i = 0; i < 7; i++)
        add_run(r, 1, 20, 10);
    for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++) {
        char got[16] = "";
        add_run(r, 1, 20, 10);
        for (uint32_t k = 1; k < r->n; k++)
            got[k - 1] = (char)('0' + r->runs[k].level);
        assert_string_equal(got, levels[i]);
        if (i == 0) { /* there is no place for one more, which may be saved */
            assert_ok(drps_runs_merge_some(r, &err), &err);
            assert_int_equal(r->merging.at, 0);
            assert_int_equal(drps_runs_merged_bytes(r), 0);
        }
        if (i == 1) assert_int_equal(drps_runs_merged_bytes(r), 4 * 19 * 10 * ROW);
    }
    drps_runs_close(r);
}

/* Chunks that coming windows need are there before these are taken. */
static void check_read_ahead(const struct drps_runs_config *c, uint64_t more)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_iostat io;
    struct drps_runs *r = open_runs(c);
    add_run(r, 1, 30, PER_CHUNK);
    add_run(r, 3, 30, PER_CHUNK);
    assert_ok(drps_runs_await_all(r, &err), &err);
    assert_ok(drps_runs_prefetch(r, 1, &err), &err);
    assert_ok(drps_runs_await_all(r, &err), &err);
    drps_runs_stats(r, &io);
    assert_int_equal(io.reads, 2 + more);
    assert_ok(drps_runs_prefetch(r, 1, &err), &err);
    assert_ok(take(r, 1, PER_CHUNK, &err), &err);
    assert_ok(take(r, 2, PER_CHUNK, &err), &err);
    assert_ok(drps_runs_await_all(r, &err), &err);
    drps_runs_stats(r, &io);
    assert_int_equal(io.reads, 2 + more);
    drps_runs_close(r);
}

static void test_chunks_are_read_ahead(void **state)
{
    struct drps_runs_config c = model_config(*state);
    c.ahead = 8;
    c.spare = 1;
    check_read_ahead(&c, 8);
}

/* Merging that is done at once finds a quarter of the memory free. */
static void test_chunks_are_read_ahead_beside_merging_at_once(void **state)
{
    struct drps_runs_config c = model_config(*state);
    c.ahead = 8;
    c.spare = 0;
    check_read_ahead(&c, 6);
}

/* Half of the memory to read ahead is for runs that are merged, while some are. */
static void test_chunks_are_read_ahead_of_merging(void **state)
{
    struct drps_runs_config c = model_config(*state);
    struct drps_err err = DRPS_ERR_INIT;
    c.runs = DRPS_RUNS_LEAST;
    c.spare = 2;
    c.ahead = 8;
    struct drps_runs *r = open_runs(&c);
    for (int i = 0; i < 6; i++)
        add_run(r, 1, 30, PER_CHUNK);
    r->added = 0;
    assert_ok(drps_runs_merge_some(r, &err), &err);
    assert_int_equal(r->merging.n, 3);
    assert_ok(drps_runs_prefetch(r, 1, &err), &err);
    assert_int_equal(r->extra[0], 4);
    r->added = 1;
    assert_ok(drps_runs_merge_some(r, &err), &err);
    assert_int_equal(r->extra[0], 4);
    assert_int_equal(r->extra[1], 4);
    assert_ok(drps_runs_stop_merging(r, &err), &err);
    assert_int_equal(r->extra[0], 8);
    drps_runs_close(r);
}

/* Merge what is owed, which what was not read yet would put off. */
static void merge_owed(struct drps_runs *r)
{
    struct drps_err err = DRPS_ERR_INIT;
    do {
        assert_ok(drps_runs_merge_some(r, &err), &err);
        assert_ok(drps_runs_await_all(r, &err), &err);
    } while (r->merging.owed);
}

/* What is merged to and a run that is being written need a place each, also when merging ends. */
static void test_merging_begins_while_there_is_room(void **state)
{
    enum { N = DRPS_RUNS_LEAST };
    for (int live = N - 2; live < N; live++) {
        struct drps_runs_config c = model_config(*state);
        struct drps_err err = DRPS_ERR_INIT;
        c.runs = N;
        struct drps_runs *r = open_runs(&c);
        for (int i = 0; i < live; i++)
            add_run(r, 1, 20, 10);
        assert_ok(drps_runs_begin(r, &err), &err);
        assert_ok(drps_runs_add(r, 1, rows, frames_up_to(10), 10, &err), &err);
        r->added = 0;
        assert_ok(drps_runs_merge_some(r, &err), &err);
        assert_int_equal(r->merging.at != 0, live == N - 2);
        assert_ok(drps_runs_end(r, &err), &err);
        assert_ok(drps_runs_stop_merging(r, &err), &err);
        assert_in_range(drps_runs_live(r), N - 1, N);
        add_run(r, 1, 20, 10);
        drps_runs_close(r);
        scratch_end(*state);
        scratch_begin(*state);
    }
}

/* What is not there yet is merged by a later call, and by the next run at the latest. */
static void test_merging_waits_for_no_read(void **state)
{
    enum { N = DRPS_RUNS_LEAST, MERGED = 3, RUN_BYTES = 29 * PER_CHUNK * ROW };
    struct drps_runs_config c = model_config(*state);
    struct drps_err err = DRPS_ERR_INIT;
    c.runs = N;
    c.spare = 2;
    c.run_bytes = 2 * RUN_BYTES;
    struct drps_runs *r = open_runs(&c);
    for (int i = 0; i < N - 2; i++)
        add_run(r, 1, 30, PER_CHUNK);
    assert_ok(drps_runs_await_all(r, &err), &err);
    r->added = RUN_BYTES;
    assert_ok(drps_runs_merge_some(r, &err), &err); /* it begins to read */
    assert_int_equal(r->merging.n, MERGED);
    assert_int_equal(drps_runs_merged_bytes(r), 0);
    const uint64_t owed = r->merging.owed;
    assert_true(owed >= MERGED * RUN_BYTES / 2);
    assert_ok(drps_runs_await_all(r, &err), &err);
    assert_ok(drps_runs_merge_some(r, &err), &err); /* as much as was read */
    assert_true(drps_runs_merged_bytes(r) > 0);
    assert_int_equal(drps_runs_merged_bytes(r) + r->merging.owed, owed);
    merge_owed(r);
    assert_int_equal(r->merging.owed, 0);
    assert_true(r->merging.n > 0 && drps_runs_merged_bytes(r) < MERGED * RUN_BYTES);
    add_run(r, 1, 30, PER_CHUNK);
    add_run(r, 1, 30, PER_CHUNK); /* there is no place: all is merged */
    assert_int_equal(r->merging.at, 0);
    assert_int_equal(drps_runs_merged_bytes(r), MERGED * RUN_BYTES);
    drps_runs_close(r);
}

/* Merging is spread over the runs that are written until it has to be done, so that none waits for
 * it, and as much is merged for each of them. */
static void test_merging_keeps_up_with_writing(void **state)
{
    enum { WINDOWS = 40, N = 64, MERGED = 16, RUN_BYTES = WINDOWS * 10 * ROW };
    struct drps_runs_config c = model_config(*state);
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t least = UINT64_MAX, most = 0;
    c.runs = N;
    c.spare = N / 16;
    c.run_bytes = RUN_BYTES;
    c.file_chunks = 2000;
    struct drps_runs *r = open_runs(&c);
    for (int i = 0; i < N - N / 16 - 1; i++) {
        add_run(r, 1, 1 + WINDOWS, 10);
        merge_owed(r);
    }
    assert_int_equal(r->merging.at, 0);
    for (int i = 0; i < 4; i++) { /* the first of these is the last without merging */
        assert_ok(drps_runs_begin(r, &err), &err);
        for (uint64_t w = 1; w <= WINDOWS; w++) {
            const uint64_t before = drps_runs_merged_bytes(r);
            assert_ok(drps_runs_add(r, w, rows, frames_up_to(10), 10, &err), &err);
            assert_int_equal(drps_runs_merged_bytes(r), before);
            merge_owed(r);
            const uint64_t now = drps_runs_merged_bytes(r) - before;
            if (i && r->merging.at && now < least) least = now;
            if (now > most) most = now;
        }
        assert_ok(drps_runs_end(r, &err), &err);
        merge_owed(r);
    }
    assert_int_equal(r->merging.at, 0);
    assert_int_equal(drps_runs_live(r), N - MERGED);
    assert_int_equal(drps_runs_merged_bytes(r), MERGED * WINDOWS * 10 * ROW);
    assert_true(least >= 4 * 10 * ROW && most <= 7 * 10 * ROW); /* 16 runs' sections for 3 runs' */
    drps_runs_close(r);
}

/* Runs that end early count as whole ones, as each takes the place of one. */
static void test_merging_keeps_up_with_short_runs(void **state)
{
    enum { N = 64, MERGED = 16 };
    struct drps_runs_config c = model_config(*state);
    c.runs = N;
    c.spare = N / 16;
    c.run_bytes = 20 * 10 * ROW;
    c.file_chunks = 2000;
    struct drps_runs *r = open_runs(&c);
    for (int i = 0; i < N - N / 16; i++)
        add_run(r, 1, 21, 10);
    r->added = 0;
    merge_owed(r);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(r->merging.n, MERGED);
        add_run(r, 1, 2, 1);
        merge_owed(r);
    }
    assert_int_equal(r->merging.at, 0);
    assert_int_equal(drps_runs_live(r), N - MERGED);
    drps_runs_close(r);
}

/* ---- A store that is only looked at ---- */

static void test_a_saved_file_is_only_read(void **state)
{
    struct model *m = must(malloc(sizeof(*m)));
    struct drps_runs_config c = model_config(*state);
    struct drps_err err = DRPS_ERR_INIT;
    const char *dir;
    size_t n, now;
    model_begin(m, *state, SEED, &c);
    assert_ok(model_windows(m, 50, &err), &err);
    assert_ok(model_save(m, &dir, &err), &err);
    char *before = scratch_read(c.path, &n);
    m->config.behind = m->config.write_chunks = 0;
    for (int i = 0; i < 2; i++) {
        assert_ok(model_reopen(m, dir, 1, &err), &err);
        assert_int_equal(m->runs->saves, 0);
        assert_ok(model_look(m, &err), &err);
    }
    drps_runs_close(m->runs);
    m->runs = NULL;
    char *after = scratch_read(c.path, &now);
    assert_int_equal(n, now);
    assert_memory_equal(before, after, n);
    free(before);
    free(after);
    model_end(m);
    free(m);
}

/* ---- Faults ---- */

static void test_short_transfers_are_continued(void **state)
{
    struct model *m = must(malloc(sizeof(*m)));
    for (long k = 1; k < 40; k += 13) {
        struct fault_io *f = fault_io_new(drps_io_os());
        struct drps_runs_config c = model_config(*state);
        struct drps_err err = DRPS_ERR_INIT;
        c.io = &f->io;
        model_begin(m, *state, SEED, &c);
        for (int i = 0; i < 5; i++) {
            fault_io_arm(f, FAULT_PREAD | FAULT_PWRITE, k, 0, FAULT_SHORT, 0);
            assert_ok(model_windows(m, 15, &err), &err);
        }
        assert_true(atomic_load(&f->fired) > 0);
        model_end(m);
        fault_io_free(f);
        scratch_end(*state);
        scratch_begin(*state);
    }
    free(m);
}

static void test_faults_come_out(void **state)
{
    static const unsigned ops[] = {FAULT_PREAD, FAULT_PWRITE};
    struct model *m = must(malloc(sizeof(*m)));
    for (size_t i = 0; i < 4; i++)
        for (long k = 1; k < 60; k += k < 6 ? 1 : 17) {
            struct fault_io *f = fault_io_new(drps_io_os());
            struct drps_runs_config c = model_config(*state);
            struct drps_err err = DRPS_ERR_INIT;
            c.io = &f->io;
            model_begin(m, *state, SEED, &c);
            fault_io_arm(f, ops[i % 2], k, 1, i < 3 ? FAULT_ERROR : FAULT_TORN, -EIO);
            assert_int_equal(model_windows(m, 300, &err), -EIO);
            assert_non_null(strstr(err.text, c.path));
            model_end(m);
            fault_io_free(f);
            scratch_end(*state);
            scratch_begin(*state);
        }
    free(m);
}

static void test_open_refuses(void **state)
{
    const struct drps_runs_config good = model_config(*state);
    struct drps_runs_config bad[12];
    for (size_t i = 0; i < 12; i++)
        bad[i] = good;
    bad[0].chunk_bytes = 1000;
    bad[1].chunk_bytes = 0;
    bad[2].write_chunks = 0;
    bad[3].write_chunks = good.behind - 1;
    bad[4].write_chunks = bad[4].behind = DRPS_AIO_PIECES_MAX + 1;
    bad[4].behind += 2;
    bad[5].ahead = 0;
    bad[6].file_chunks = 0;
    bad[7].file_chunks = UINT32_MAX;
    bad[8].runs = DRPS_RUNS_LEAST - 1;
    bad[9].row_bytes = 0;
    bad[10].looking = 1;
    bad[11].ahead = bad[11].behind = INT32_MAX;
    for (size_t i = 0; i < 12; i++) {
        struct drps_runs *r;
        assert_int_equal(drps_runs_open(&bad[i], &r, NULL), -EINVAL);
        assert_null(r);
        assert_false(path_exists(good.path));
    }
}

int main(void)
{
#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(test_windows_get_their_rows),
        WITH_SCRATCH(test_file_grows_where_it_is_too_small),
        WITH_SCRATCH(test_full_disk_is_final),
        WITH_SCRATCH(test_save_that_finds_no_room_changes_nothing),
        WITH_SCRATCH(test_run_that_finds_no_room_is_ended_later),
        WITH_SCRATCH(test_rows_of_a_header_are_bounded),
        WITH_SCRATCH(test_wrong_byte_is_named),
        WITH_SCRATCH(test_windows_that_contradict_are_errors),
        WITH_SCRATCH(test_ended_runs_leave),
        WITH_SCRATCH(test_runs_are_merged_when_they_are_too_many),
        WITH_SCRATCH(test_chunks_are_read_ahead),
        WITH_SCRATCH(test_chunks_are_read_ahead_beside_merging_at_once),
        WITH_SCRATCH(test_chunks_are_read_ahead_of_merging),
        WITH_SCRATCH(test_merging_begins_while_there_is_room),
        WITH_SCRATCH(test_merging_waits_for_no_read),
        WITH_SCRATCH(test_merging_keeps_up_with_writing),
        WITH_SCRATCH(test_merging_keeps_up_with_short_runs),
        WITH_SCRATCH(test_a_saved_file_is_only_read),
        WITH_SCRATCH(test_short_transfers_are_continued),
        WITH_SCRATCH(test_faults_come_out),
        WITH_SCRATCH(test_open_refuses),
    };
    return cmocka_run_group_tests_name("runs", tests, NULL, NULL);
}
