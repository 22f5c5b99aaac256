/*
 * Windows of a run, the next ones read ahead: in any order and of either part they are those that
 * the file holds, and what cannot be read says so when it is asked for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/step/drps_windows.h"
#include "storage/relay/drps_relay.h"
#include "support/fault_io.h"
#include "support/plan_maker.h"

struct fixture {
    char *dir; /* own */
    struct maker maker;
    struct fault_io *fault;
    struct drps_plan *plan;
    struct drps_windows *windows;
    struct drps_window_source source;
    struct drps_relay_share share;
    uint32_t *rows;                       /* own: [source.max_rows] */
    struct drps_use_distances next, prev; /* own: for as many */
};

static struct drps_use_distances make_ways(size_t n)
{
    struct drps_use_distances ways = {.marks = calloc(DRPS_DISTANCE_WORDS(n), sizeof(*ways.marks)),
                                      .far = calloc(n + 1, sizeof(*ways.far))};
    assert_true(ways.marks && ways.far);
    return ways;
}

static void free_ways(struct drps_use_distances *ways)
{
    free(ways->marks);
    free(ways->far);
}

static void open_fixture(struct fixture *f)
{
    struct drps_err err = DRPS_ERR_INIT;
    *f = (struct fixture){.dir = temp_make()};
    maker_init(&f->maker, "lor", "logistic", 300, 16);
    f->maker.small_windows = 1;
    maker_random(&f->maker, 400, 3, 0, 7);
    drps_plan_close(maker_write(&f->maker, f->dir, "plan"));
    f->fault = fault_io_new(drps_io_os());
    assert_non_null(f->fault);
    if (drps_plan_open(&f->fault->io, f->maker.dir, &f->plan, &err)) fail_msg("%s", err.text);
    f->share = (struct drps_relay_share){.row_bytes = 8};
    f->share.budget_bytes = f->plan->info.working_set_rows * f->share.row_bytes;
    const struct drps_windows_options o = {.plan = f->plan,
                                           .dir = f->maker.dir,
                                           .share = &f->share,
                                           .epochs = 3,
                                           .memory_bytes = 1 << 20};
    if (drps_windows_open(&o, &f->windows, &f->source, &err)) fail_msg("%s", err.text);
    assert_true(f->source.windows > 3);
    f->rows = calloc(f->source.max_rows, sizeof(*f->rows));
    assert_non_null(f->rows);
    f->next = make_ways(f->source.max_rows);
    f->prev = make_ways(f->source.max_rows);
}

static void close_fixture(struct fixture *f)
{
    drps_windows_close(f->windows);
    drps_plan_close(f->plan);
    fault_io_free(f->fault);
    maker_free(&f->maker);
    free(f->rows);
    free_ways(&f->next);
    free_ways(&f->prev);
    temp_remove(f->dir);
}

static int read_window(struct fixture *f, uint32_t number, int whole, struct drps_store_window *out,
                       struct drps_err *err)
{
    return f->source.read(f->source.ctx, number, out, whole ? f->rows : NULL, &f->next, &f->prev,
                          err);
}

static void assert_ways(const struct drps_use_distances *ways, const uint32_t *plain, size_t n)
{
    size_t k = 0;
    for (size_t s = 0; s < n; s++) {
        const int far = ways->marks[s / 64] >> s % 64 & 1;
        assert_int_equal(far ? ways->far[k] : 1, plain[s]);
        k += (size_t)far;
    }
    assert_int_equal(k, ways->n_far);
}

/* The window that was read ahead is that of the file. */
static void check_window(struct fixture *f, uint32_t number, int whole)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_store_window got, head;
    struct drps_recfile *file;
    char *path = drps_path_join(f->maker.dir, "windows.rec");
    const size_t size = f->source.max_rows * sizeof(uint32_t);
    struct drps_window want = {.rows = malloc(size),
                               .next = malloc(size),
                               .prev = malloc(size),
                               .cap = f->source.max_rows};
    assert_true(path && want.rows && want.next && want.prev);
    if (drps_recfile_open(drps_io_os(), path, DRPS_KIND_WINDOWS, &file, &err))
        fail_msg("%s", err.text);
    void *record = malloc(drps_recfile_run_bytes(file, number, 1));
    assert_int_equal(drps_recfile_read(file, number, 1, record, NULL), 0);
    const unsigned all = DRPS_WINDOW_ROWS | DRPS_WINDOW_NEXT | DRPS_WINDOW_PREV;
    assert_int_equal(drps_window_decode(record, drps_recfile_bytes(file, number), all, &want, NULL),
                     0);

    if (read_window(f, number, whole, &got, &err)) fail_msg("%s", err.text);
    assert_int_equal(got.n, want.n);
    assert_int_equal(got.first_step, want.first_step);
    assert_ways(&f->next, want.next, want.n);
    assert_ways(&f->prev, want.prev, want.n);
    if (whole) assert_memory_equal(f->rows, want.rows, want.n * sizeof(uint32_t));
    if (f->source.read(f->source.ctx, number, &head, NULL, NULL, NULL, &err))
        fail_msg("%s", err.text);
    assert_memory_equal(&head, &got, sizeof(head));

    free(record);
    drps_recfile_close(file);
    free(path);
    free(want.rows);
    free(want.next);
    free(want.prev);
}

static void test_windows_in_order_are_those_of_the_file(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    for (uint32_t q = 0; q < 3 * f.source.windows; q++)
        check_window(&f, q % f.source.windows, q < f.source.windows);
    close_fixture(&f);
}

/* What was read ahead is now and then another window, or another part of it. */
static void test_windows_in_any_order_are_those_of_the_file(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    uint32_t q = 0;
    int whole = 1;
    for (uint64_t i = 0; i < 400; i++) {
        if (drps_rng_at(3, 3 * i) % 4 == 0) q = (uint32_t)(drps_rng_at(3, 3 * i + 1) % 1000);
        if (drps_rng_at(3, 3 * i) % 8 == 1) whole = (int)(drps_rng_at(3, 3 * i + 2) % 2);
        check_window(&f, q++ % f.source.windows, whole);
    }
    close_fixture(&f);
}

/* The k-th read from now on fails, whether it is made ahead or not; the window after it is whole.
 */
static void test_windows_that_cannot_be_read_say_so(void **state)
{
    (void)state;
    for (long k = 1; k <= 3; k++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_store_window out;
        struct fixture f;
        char want[64];
        uint32_t q = 0;
        open_fixture(&f);
        fault_io_arm(f.fault, FAULT_PREAD, 2 * k - 1, 1, FAULT_ERROR, -EIO);
        while (q < f.source.windows && read_window(&f, q, 1, &out, &err) == 0)
            q++;
        assert_int_equal(err.code, -EIO);
        (void)snprintf(want, sizeof(want), "windows.rec: window %u", q);
        if (!strstr(err.text, want)) fail_msg("%s in: %s", want, err.text);
        fault_io_arm(f.fault, FAULT_PREAD, 0, 0, FAULT_ERROR, 0);
        check_window(&f, q, 1);
        close_fixture(&f);
    }
}

/* The plan has fewer rows than its windows, or windows of fewer rows: of what stores size memory
 * by, nothing is larger than they were told. */
static void test_windows_of_rows_that_the_plan_has_not_are_refused(void **state)
{
    (void)state;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_store_window out;
    struct fixture f;
    open_fixture(&f);
    struct drps_plan_info *info = &f.plan->info;
    const uint64_t rows = info->rows;
    const uint32_t windows = f.source.windows;
    const struct drps_windows_options o = {.plan = f.plan,
                                           .dir = f.maker.dir,
                                           .share = &f.share,
                                           .epochs = 3,
                                           .memory_bytes = 1 << 20};
    drps_windows_close(f.windows);
    uint32_t largest = 0;
    for (uint32_t w = 0; w < windows; w++) {
        if (w == 0) assert_int_equal(drps_windows_open(&o, &f.windows, &f.source, &err), 0);
        assert_int_equal(read_window(&f, w, 1, &out, &err), 0);
        if (f.rows[out.n - 1] > largest) largest = f.rows[out.n - 1];
    }
    drps_windows_close(f.windows);
    info->rows = largest; /* its last row is one too far */
    int rc = drps_windows_open(&o, &f.windows, &f.source, &err);
    for (uint32_t w = 0; w < windows && rc == 0; w++)
        rc = read_window(&f, w, 1, &out, &err);
    assert_int_equal(rc, DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "windows.rec"));
    drps_windows_close(f.windows);
    f.windows = NULL;
    info->rows = rows;
    info->working_set_rows--;
    drps_err_clear(&err);
    f.share.budget_bytes = info->working_set_rows * f.share.row_bytes; /* so that it suits */
    assert_int_equal(drps_windows_open(&o, &f.windows, &f.source, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "two windows have"));
    close_fixture(&f);
}

static void test_windows_close_while_one_is_read_ahead(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        struct drps_store_window out;
        struct fixture f;
        open_fixture(&f);
        if (i % 2) assert_int_equal(read_window(&f, (uint32_t)i % 3, 1, &out, NULL), 0);
        close_fixture(&f);
    }
    drps_windows_close(NULL);
}

/* A signal before the first step ends compiling. */
static void test_windows_compiling_is_interrupted(void **state)
{
    (void)state;
    struct fixture f;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_windows *w;
    struct drps_window_source source;
    atomic_int stop = 1;
    open_fixture(&f);
    f.share.budget_bytes *= 4; /* others than the plan's */
    char *dir = drps_path_join(f.dir, "own");
    assert_true(dir && mkdir(dir, 0700) == 0);
    const struct drps_windows_options o = {.plan = f.plan,
                                           .dir = dir,
                                           .share = &f.share,
                                           .epochs = 1,
                                           .memory_bytes = 1 << 20,
                                           .stop = &stop};
    assert_int_equal(drps_windows_open(&o, &w, &source, &err), DRPS_E_INTERRUPTED);
    assert_null(w);
    drps_err_clear(&err);
    stop = 0;
    if (drps_windows_open(&o, &w, &source, &err)) fail_msg("%s", err.text);
    assert_string_equal(drps_windows_dir(w), dir);
    drps_windows_close(w);
    free(dir);
    close_fixture(&f);
}

/* However well they fit: it is their number that coarse windows are cut anew for. */
static void test_windows_of_the_plan_are_not_coarse_ones(void **state)
{
    (void)state;
    struct fixture f;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_windows *w;
    struct drps_window_source source;
    open_fixture(&f);
    assert_string_equal(drps_windows_dir(f.windows), f.maker.dir);
    f.share.coarse = 1;
    f.share.budget_bytes += f.share.budget_bytes / 3; /* room for two steps */
    char *dir = drps_path_join(f.dir, "own");
    assert_true(dir && mkdir(dir, 0700) == 0);
    const struct drps_windows_options o = {
        .plan = f.plan, .dir = dir, .share = &f.share, .epochs = 1, .memory_bytes = 1 << 20};
    if (drps_windows_open(&o, &w, &source, &err)) fail_msg("%s", err.text);
    assert_string_equal(drps_windows_dir(w), dir);
    drps_windows_close(w);
    free(dir);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_compiling_is_interrupted),
        cmocka_unit_test(test_windows_of_the_plan_are_not_coarse_ones),
        cmocka_unit_test(test_windows_in_order_are_those_of_the_file),
        cmocka_unit_test(test_windows_in_any_order_are_those_of_the_file),
        cmocka_unit_test(test_windows_that_cannot_be_read_say_so),
        cmocka_unit_test(test_windows_of_rows_that_the_plan_has_not_are_refused),
        cmocka_unit_test(test_windows_close_while_one_is_read_ahead),
    };
    return cmocka_run_group_tests_name("run_windows", tests, NULL, NULL);
}
