/*
 * Records of windows, read ahead by threads: of files with fewer of them than are read at a time,
 * and asked for in the wrong order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "index/plan/drps_plan.h"
#include "index/windows/drps_window_records.h"
#include "support/plan_maker.h"

struct fixture {
    char *dir; /* own */
    struct maker maker;
    struct drps_recfile *file;
    struct drps_window_records *records;
    uint32_t count;
};

/* A plan of so many steps, a window each. */
static void open_fixture(struct fixture *f, size_t steps)
{
    enum { BATCH = 16 };
    struct drps_err err = DRPS_ERR_INIT;
    *f = (struct fixture){.dir = temp_make()};
    maker_init(&f->maker, "lor", "logistic", 300, BATCH);
    f->maker.small_windows = 1;
    maker_random(&f->maker, steps * BATCH, 3, 0, 7);
    drps_plan_close(maker_write(&f->maker, f->dir, "plan"));
    char *path = drps_path_join(f->maker.dir, DRPS_FILE_WINDOWS);
    assert_non_null(path);
    if (drps_recfile_open(drps_io_os(), path, DRPS_KIND_WINDOWS, &f->file, &err) ||
        drps_window_records_open(f->file, &f->records, &err))
        fail_msg("%s", err.text);
    free(path);
    f->count = (uint32_t)drps_recfile_count(f->file);
}

static void close_fixture(struct fixture *f)
{
    drps_window_records_close(f->records);
    drps_recfile_close(f->file);
    maker_free(&f->maker);
    temp_remove(f->dir);
}

/* A front begins as the whole record does. */
static void check_part(struct fixture *f, struct drps_window_part part)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_piece got;
    struct drps_window head;
    char *want = malloc(drps_recfile_run_bytes(f->file, part.number, 1));
    assert_non_null(want);
    assert_int_equal(drps_recfile_read(f->file, part.number, 1, want, NULL), 0);
    if (drps_window_records_read(f->records, part, &got, &head, &err)) fail_msg("%s", err.text);
    assert_int_equal(got.bytes,
                     part.whole ? drps_recfile_bytes(f->file, part.number) : head.front_bytes);
    assert_memory_equal(got.data, want, got.bytes);
    drps_window_records_done(f->records);
    free(want);
}

static void test_records_of_few_windows(void **state)
{
    enum { ROUNDS = 400 };
    (void)state;
    for (size_t steps = 1; steps < 20; steps += 3) {
        struct fixture f;
        open_fixture(&f, steps);
        assert_true(f.count > 0 && f.count <= steps);
        for (uint32_t q = 0; q < ROUNDS * f.count; q++)
            check_part(&f, (struct drps_window_part){q % f.count, q < f.count});
        close_fixture(&f);
    }
}

/* How long a front is, the whole record says. */
static void test_records_are_asked_for_whole_first(void **state)
{
    (void)state;
    struct fixture f;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_piece record;
    struct drps_window head;
    open_fixture(&f, 6);
    assert_true(f.count > 2);
    check_part(&f, (struct drps_window_part){0, 1});
    assert_int_equal(drps_window_records_read(f.records, (struct drps_window_part){f.count - 1, 0},
                                              &record, &head, &err),
                     -EINVAL);
    for (uint32_t w = 0; w < f.count; w++)
        check_part(&f, (struct drps_window_part){w, 1});
    check_part(&f, (struct drps_window_part){f.count - 1, 0});
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_of_few_windows),
        cmocka_unit_test(test_records_are_asked_for_whole_first),
    };
    return cmocka_run_group_tests_name("window_records", tests, NULL, NULL);
}
