/* Uses of rows by workers: what a walk visits, against a recount of the row lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "index/ranks/row_uses.h"
#include "support/lists.h"

struct seen {
    uint32_t *uses; /* own [rows][workers] */
    uint32_t workers;
    uint64_t next; /* rows are visited in order: the least that may come */
    uint64_t visits;
};

static int see(void *ctx, uint32_t row, const struct drps_touch *touches, size_t n,
               struct drps_err *err)
{
    struct seen *s = ctx;
    (void)err; /* fails the test itself */
    assert_true(row >= s->next && n > 0);
    s->next = (uint64_t)row + 1;
    s->visits++;
    for (size_t t = 0; t < n; t++) {
        assert_true(t == 0 || touches[t].machine > touches[t - 1].machine);
        assert_true(touches[t].count > 0);
        s->uses[(size_t)row * s->workers + touches[t].machine] = touches[t].count;
    }
    return 0;
}

/* Machines are those of the workers from `first` on; `machines` with those before. */
static void check_walk(struct row_uses *u, const struct lists *l, uint32_t workers, uint32_t first)
{
    const uint32_t machines = first + workers;
    struct drps_err err = DRPS_ERR_INIT;
    struct seen s = {.uses = must(calloc(l->rows * machines + 1, sizeof(*s.uses))),
                     .workers = machines};
    uint32_t *want = must(calloc(l->rows * machines + 1, sizeof(*want)));
    uint64_t sum = 0;
    for (uint64_t k = 0; k < l->train; k++)
        for (size_t i = 0; i < l->n[k]; i++, sum++)
            want[l->list[k][i] * machines + first + k % workers]++;
    assert_ok(drps_row_uses_walk(u, see, &s, &err), &err);
    assert_memory_equal(s.uses, want, l->rows * machines * sizeof(*want));
    assert_int_equal(drps_row_uses_sum(u), sum);
    free(s.uses);
    free(want);
}

/* More rows than a slice has where memory is short, and fewer; walked twice. The file goes. */
static void test_walk_equals_recount(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int turn = 0; turn < 20; turn++) {
        struct drps_err err = DRPS_ERR_INIT;
        const uint64_t rows = 1 + random_below(&rng, turn % 2 ? 3000 : 300);
        struct lists l;
        struct row_uses *u;
        struct stat st;
        lists_random(&l, &rng, rows, random_below(&rng, 60), 200);
        const struct row_uses_job job = {.io = drps_io_os(),
                                         .dir = l.dir,
                                         .batches = l.train,
                                         .records = l.steps,
                                         .rows = (uint32_t)rows,
                                         .workers = 1 + (uint32_t)random_below(&rng, 9),
                                         .first_machine = (uint32_t)random_below(&rng, 4),
                                         .memory_bytes = turn % 3 ? 1 << 16 : 1 << 24};
        assert_ok(drps_row_uses_open(&job, &u, &err), &err);
        check_walk(u, &l, job.workers, job.first_machine);
        check_walk(u, &l, job.workers, job.first_machine);
        drps_row_uses_close(u);
        char *path = must(drps_path_join(l.dir, "rows.uses.tmp"));
        assert_int_equal(stat(path, &st), -1);
        free(path);
        lists_free(&l);
    }
}

static int stop(void *ctx, uint32_t row, const struct drps_touch *touches, size_t n,
                struct drps_err *err)
{
    (void)row, (void)touches, (void)n, (void)err;
    ++*(int *)ctx;
    return -ECANCELED;
}

static void test_walk_ends_with_the_first_error(void **state)
{
    static const char *const text[] = {"0 3 17", "3 4"};
    struct drps_err err = DRPS_ERR_INIT;
    struct row_uses *u;
    struct lists l;
    int visits = 0;
    (void)state;
    lists_from_text(&l, text, 2, 2, 20);
    const struct row_uses_job job = {.io = drps_io_os(),
                                     .dir = l.dir,
                                     .batches = 2,
                                     .records = 2,
                                     .rows = 20,
                                     .workers = 2,
                                     .memory_bytes = 1 << 20};
    assert_ok(drps_row_uses_open(&job, &u, &err), &err);
    assert_int_equal(drps_row_uses_walk(u, stop, &visits, &err), -ECANCELED);
    assert_int_equal(visits, 1);
    drps_row_uses_close(u);
    lists_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walk_equals_recount),
        cmocka_unit_test(test_walk_ends_with_the_first_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
