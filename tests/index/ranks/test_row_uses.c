/*
 * Uses of rows by workers: what a walk visits, against a recount of the row lists, of one machine
 * and of two that tell each other. What a hostile one tells is refused, with its name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "index/plan/codec/drps_list.h"
#include "index/ranks/row_uses.h"
#include "support/lists.h"
#include "support/net_job.h"

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
    for (uint64_t k = 0; k < l->train; k++)
        for (size_t i = 0; i < l->n[k]; i++)
            want[l->list[k][i] * machines + first + k % workers]++;
    assert_ok(drps_row_uses_walk(u, see, &s, &err), &err);
    assert_memory_equal(s.uses, want, l->rows * machines * sizeof(*want));
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

/* ---- Two machines ---- */

enum { ROWS = 20 };

/* What rank 1 tells rank 0 of the rows 0 to 19, in place of its own uses. */
struct told {
    const char *text; /* the error of rank 0; NULL: there is none */
    uint32_t rows[ROWS + 1], counts[ROWS + 1];
    uint32_t n, counts_n;
    size_t behind, missing; /* bytes too many in the record, or too few */
    size_t extra;           /* bytes behind the record */
};

struct pair {
    struct lists lists[2];
    const struct told *told;
    struct seen seen[2];
    struct drps_err err[2];
};

/* The steps of drps_row_uses_open(), by hand. */
static void tell(struct swap_ranks *ranks, const struct told *t)
{
    const uint64_t slice = 1 << 16;
    unsigned char packed[1024] = {0};
    struct drps_err err = DRPS_ERR_INIT;
    struct swap *swap;
    uint64_t *all;
    size_t n = drps_list_encode(t->rows, t->n, packed);
    n += drps_numbers_encode(t->counts, t->counts_n, packed + n);
    const uint32_t bytes = (uint32_t)(n + t->behind - t->missing);
    NET_OK(drps_swap_gather(ranks, &slice, 1, &all, &err));
    free(all);
    NET_OK(drps_swap_open(ranks, &swap, &err));
    NET_OK(drps_swap_put(swap, 0, &bytes, sizeof(bytes), &err));
    NET_OK(drps_swap_put(swap, 0, packed, bytes, &err));
    NET_OK(drps_swap_put(swap, 0, packed, t->extra, &err));
    NET_OK(drps_swap_end(swap, &err));
    drps_swap_close(swap);
}

static int note(void *ctx, uint32_t row, const struct drps_touch *touches, size_t n,
                struct drps_err *err)
{
    struct seen *s = ctx;
    (void)err;
    NET_CHECK(row < ROWS);
    for (size_t t = 0; t < n; t++)
        s->uses[(size_t)row * s->workers + touches[t].machine] = touches[t].count;
    return 0;
}

static void count_rank(struct drps_net *net, uint32_t rank, void *ctx)
{
    struct pair *p = ctx;
    struct lists *l = &p->lists[rank];
    struct swap_ranks ranks = {
        .io = drps_io_os(), .net = net, .dir = l->dir, .rank = rank, .count = 2};
    const struct row_uses_job job = {.io = drps_io_os(),
                                     .dir = l->dir,
                                     .batches = l->train,
                                     .records = l->steps,
                                     .rows = ROWS,
                                     .workers = 2,
                                     .memory_bytes = 1 << 24,
                                     .ranks = &ranks};
    struct row_uses *u = NULL;
    if (rank == 1 && p->told) {
        tell(&ranks, p->told);
        return;
    }
    int rc = drps_row_uses_open(&job, &u, &p->err[rank]);
    if (rc == 0) rc = drps_row_uses_walk(u, note, &p->seen[rank], &p->err[rank]);
    NET_CHECK(rc == p->err[rank].code);
    drps_row_uses_close(u);
}

static void run_pair(struct pair *p)
{
    static const char *const text[2][2] = {{"0 3 17", "3"}, {"3 19", "19"}};
    struct drps_net_options options = {0};
    struct net_job job;
    for (int r = 0; r < 2; r++) {
        lists_from_text(&p->lists[r], text[r], 2, 2, ROWS);
        p->seen[r] = (struct seen){.uses = must(calloc(2 * ROWS, sizeof(uint32_t))), .workers = 2};
        p->err[r] = (struct drps_err)DRPS_ERR_INIT;
    }
    drps_swap_net_options(&options);
    net_job_open(&job, NET_INPROC, 2, &options);
    net_job_run(&job, count_rank, p);
    net_job_close(&job);
}

static void end_pair(struct pair *p)
{
    for (int r = 0; r < 2; r++) {
        free(p->seen[r].uses);
        lists_free(&p->lists[r]);
    }
}

static void test_machines_tell_each_other(void **state)
{
    struct pair p = {.told = NULL};
    (void)state;
    run_pair(&p);
    for (int r = 0; r < 2; r++) {
        uint32_t want[ROWS][2] = {0};
        want[0][0] = want[17][0] = want[3][1] = 1;
        want[3][0] = want[19][1] = 2;
        assert_string_equal(p.err[r].text, "");
        assert_memory_equal(p.seen[r].uses, want, sizeof(want));
    }
    end_pair(&p);
}

static void test_what_cannot_be_is_refused(void **state)
{
    static const char no_sense[] = "rank 1 sent uses of rows that make no sense";
    static const struct told told[] = {
        {.text = NULL, .n = 2, .rows = {0, 19}, .counts_n = 2, .counts = {1, 7}},
        {.text = no_sense, .n = 1, .rows = {ROWS}, .counts_n = 1, .counts = {1}},
        {.text = no_sense, .n = 2, .rows = {0, 19}, .counts_n = 2, .counts = {1, 0}},
        {.text = no_sense, .n = 2, .rows = {0, 19}, .counts_n = 1, .counts = {1}},
        {.text = no_sense, .n = 1, .rows = {4}, .counts_n = 1, .counts = {1}, .behind = 1},
        {.text = no_sense, .n = 1, .rows = {4}, .counts_n = 1, .counts = {1}, .missing = 1},
        {.text = "rank 1 sent 3 bytes too many",
         .n = 1,
         .rows = {4},
         .counts_n = 1,
         .counts = {1},
         .extra = 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++) {
        struct pair p = {.told = &told[i]};
        run_pair(&p);
        assert_int_equal(p.err[0].code, told[i].text ? DRPS_E_PROTO : 0);
        if (told[i].text)
            assert_non_null(strstr(p.err[0].text, told[i].text));
        else
            assert_int_equal(p.seen[0].uses[2 * 19 + 1], 7);
        end_pair(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walk_equals_recount),
        cmocka_unit_test(test_walk_ends_with_the_first_error),
        cmocka_unit_test(test_machines_tell_each_other),
        cmocka_unit_test(test_what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
