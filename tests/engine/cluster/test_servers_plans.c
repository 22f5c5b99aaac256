/*
 * Plans of ranks of which some have no rows, and some no samples: what contradicts that is refused,
 * by training and by who verifies the plan; names of plans; memory.
 *
 *   test_servers_plans [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/record/drps_recfile.h"
#include "engine/step/drps_feed.h"
#include "index/plan/codec/drps_list.h"
#include "index/verify/drps_verify.h"
#include "support/train_runs.h"
#include "support/world.h"

enum { WORKERS = WORLD_WORKERS, BATCH = 20 };

static uint64_t seed = 20261123;

static struct drps_train_options options(const struct world *w)
{
    struct drps_train_options o = world_options(w);
    o.log = &quiet;
    o.checkpoint_every.unit = DRPS_CHECKPOINT_NEVER;
    o.memory_bytes = UINT64_C(1) << 30; /* of all ranks together */
    return o;
}

/* ---- Plans that contradict themselves ---- */

/* A rank gets another one's file: as many records of the same kind, all of them whole. */
static void swap_file(const struct world *w, const char *name, uint32_t to, uint32_t from)
{
    char path[SCRATCH_PATH_BYTES + 64];
    size_t n;
    (void)snprintf(path, sizeof(path), "%s/rank-%u/%s", w->plan, from, name);
    char *data = scratch_read(path, &n);
    (void)snprintf(path, sizeof(path), "%s/rank-%u/%s", w->plan, to, name);
    scratch_write(path, data, n);
    free(data);
}

/* Samples on a rank without any, rows on one without any, and rows of a worker that has no batch:
 * training refuses each, and so does whoever verifies the plan. */
static void test_plans_that_contradict_their_ranks(void **state)
{
    static const struct {
        struct world_ranks shape;
        const char *file;
        uint32_t to, from;
        int unread; /* a rank without rows opens none: its lists are nobody's */
    } cases[] = {{{2, 1, 1, 3}, "data.rec", 0, 1, 0},     {{2, 1, 1, 3}, "shares.rec", 1, 0, 0},
                 {{3, 2, 0, 3}, "rows.rec", 2, 1, 1},     {{3, 2, 0, 3}, "positions.rec", 2, 1, 1},
                 {{1, 3, 0, 3}, "data.rec", 2, 0, 0},     {{2, 1, 1, 3}, "positions.rec", 0, 1, 0},
                 {{3, 1, 0, 3}, "positions.rec", 0, 2, 0}};
    struct world *w = world_begin("lor", CASE_LIBSVM, BATCH, WORKERS * BATCH, seed);
    struct drps_train_options o = options(w);
    char from[SCRATCH_PATH_BYTES];
    (void)state;
    (void)snprintf(from, sizeof(from), "%s", w->plan);
    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_train_result r;
        struct drps_plan *plan;
        world_deal(w, from, &cases[k].shape);
        swap_file(w, cases[k].file, cases[k].to, cases[k].from);
        if ((world_run(w, &o, &r, &err) >= 0) != cases[k].unread)
            fail_msg("case %zu: %s", k, err.text);
        drps_train_result_free(&r);
        drps_err_clear(&err);
        assert_int_equal(drps_plan_open(drps_io_os(), w->plan, &plan, NULL), 0);
        if (drps_plan_verify(plan, NULL, &err) >= 0) fail_msg("case %zu is whole", k);
        drps_plan_close(plan);
    }
    world_end(w);
}

/* Lists of a rank's record, one after another as they are packed. */
struct packed_lists {
    struct drps_piece piece[8];
    uint32_t n;
};

static struct packed_lists take_apart(const struct drps_piece *record, uint32_t n)
{
    struct packed_lists l = {.n = n};
    uint32_t unused[4096];
    size_t at = 0, used;
    for (uint32_t i = 0; i < n; i++, at += used) {
        const char *list = (const char *)record->data + at;
        assert_int_equal(drps_list_decode(list, record->bytes - at, unused, &used, NULL), 0);
        l.piece[i] = (struct drps_piece){list, used};
    }
    return l;
}

/* A server's lists of two workers change places, in every round. */
static void swap_lists(const struct world *w, uint32_t server, uint32_t a, uint32_t b)
{
    char path[SCRATCH_PATH_BYTES + 64], to[SCRATCH_PATH_BYTES + 72];
    struct drps_recfile *f;
    struct drps_recwriter *out;
    (void)snprintf(path, sizeof(path), "%s/rank-%u/positions.rec", w->plan, server);
    (void)snprintf(to, sizeof(to), "%s.new", path);
    assert_int_equal(drps_recfile_open(drps_io_os(), path, DRPS_KIND_POSITIONS, &f, NULL), 0);
    assert_int_equal(drps_recwriter_open(drps_io_os(), to, DRPS_KIND_POSITIONS, &out, NULL), 0);
    for (uint64_t i = 0; i < drps_recfile_count(f); i++) {
        char *data = calloc(1, (size_t)drps_recfile_run_bytes(f, i, 1) + 8);
        assert_int_equal(drps_recfile_read(f, i, 1, data, NULL), 0);
        const struct drps_piece record = {data, (size_t)drps_recfile_bytes(f, i)};
        struct packed_lists l = take_apart(&record, w->workers);
        const struct drps_piece was = l.piece[a];
        l.piece[a] = l.piece[b];
        l.piece[b] = was;
        assert_int_equal(drps_recwriter_add(out, l.piece, l.n, NULL), 0);
        free(data);
    }
    assert_int_equal(drps_recwriter_finish(out, NULL), 0);
    drps_recwriter_close(out);
    drps_recfile_close(f);
    assert_int_equal(rename(to, path), 0);
}

/* What a rank reads of its own part: 0, or the error of its batch or of its rows. */
static int read_round(const struct world *w, uint32_t rank, struct drps_err *err)
{
    struct drps_plan *part;
    struct drps_feed *feed;
    struct drps_feed_share share;
    struct drps_feed_union u;
    assert_int_equal(drps_plan_open_rank(drps_io_os(), w->plan, rank, &part, err), 0);
    assert_int_equal(drps_feed_open(part, 1, &feed, err), 0);
    assert_int_equal(drps_feed_start(feed, 0, 1, 1 << 16, 0, err), 0);
    int rc = drps_feed_next_share(feed, &share, err);
    if (rc == 0) rc = drps_feed_next_union(feed, &u, err);
    drps_feed_close(feed);
    drps_plan_close(part);
    return rc;
}

/* Files that fit each other, but not what ranks are: a batch of a rank without samples; rows at a
 * rank without any; rows of a worker that there is not. */
static void test_ranks_read_what_they_may_have(void **state)
{
    static const struct world_ranks apart = {2, 1, 1, 3}, beside = {3, 1, 0, 3};
    struct world *w = world_begin("lor", CASE_LIBSVM, BATCH, WORKERS * BATCH, seed);
    struct drps_err err = DRPS_ERR_INIT;
    char from[SCRATCH_PATH_BYTES];
    struct drps_plan *plan;
    (void)state;
    (void)snprintf(from, sizeof(from), "%s", w->plan);
    world_deal(w, from, &apart);
    assert_int_equal(read_round(w, 0, &err), 0);
    swap_lists(w, 0, 0, 1);
    assert_int_equal(read_round(w, 0, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "of the batch of rank 0, at most 0"));
    drps_err_clear(&err);

    world_deal(w, from, &apart);
    swap_file(w, "data.rec", 0, 1);
    swap_file(w, "shares.rec", 0, 1);
    assert_int_equal(read_round(w, 0, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "samples on rank 0, without any"));
    drps_err_clear(&err);
    assert_int_equal(drps_plan_open(drps_io_os(), w->plan, &plan, NULL), 0);
    struct drps_findings found = {0};
    assert_int_equal(drps_plan_verify(plan, &found, &err), 0);
    assert_true(found.problems > 0);
    int says = 0;
    for (uint64_t i = 0; i < found.problems && i < DRPS_FINDINGS_KEPT; i++)
        says |= strstr(found.kept[i].text, "on a rank without samples") != NULL;
    assert_true(says);
    drps_plan_close(plan);

    static const struct world_ranks all = {3, 3, 0, 3};
    char other[SCRATCH_PATH_BYTES];
    world_deal(w, from, &all);
    (void)snprintf(other, sizeof(other), "%s", w->plan);
    world_deal(w, from, &beside);
    struct world of_all = *w;
    (void)snprintf(of_all.plan, sizeof(of_all.plan), "%s", other);
    char path[SCRATCH_PATH_BYTES + 64];
    size_t n;
    (void)snprintf(path, sizeof(path), "%s/rank-0/shares.rec", of_all.plan);
    char *data = scratch_read(path, &n);
    (void)snprintf(path, sizeof(path), "%s/rank-0/shares.rec", w->plan);
    scratch_write(path, data, n);
    free(data);
    assert_int_equal(read_round(w, 0, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "which has none"));
    world_end(w);
}

/* Plans of the same batches and rows for other ranks are other plans. */
static void test_plans_have_names_of_their_own(void **state)
{
    static const struct world_ranks some[] = {{1, 3, 0, 3}, {2, 3, 0, 3}, {3, 3, 0, 3}};
    char id[3][DRPS_PLAN_ID_BYTES];
    struct world *w = world_begin("lor", CASE_LIBSVM, BATCH, WORKERS * BATCH, seed);
    char from[SCRATCH_PATH_BYTES];
    (void)state;
    (void)snprintf(from, sizeof(from), "%s", w->plan);
    for (size_t k = 0; k < 3; k++) {
        struct drps_plan *plan;
        world_deal(w, from, &some[k]);
        assert_int_equal(drps_plan_open(drps_io_os(), w->plan, &plan, NULL), 0);
        memcpy(id[k], plan->info.id, sizeof(id[k]));
        drps_plan_close(plan);
        for (size_t i = 0; i < k; i++)
            assert_string_not_equal(id[i], id[k]);
    }
    world_end(w);
}

/* ---- Memory ---- */

/* A rank without rows takes what one batch takes, whatever the store and however many rows there
 * are; one without samples less than one with both. */
static void test_what_they_need(void **state)
{
    static const char *const stores[] = {"auto", "resident", "relay", "file"};
    static const struct world_ranks apart = {WORKERS, 2, 1, WORKERS + 2};
    struct world *w = world_begin_sized("fm", CASE_LIBSVM, 900, 20000, 200, 200, seed);
    struct drps_plan *whole, *server, *worker;
    char from[SCRATCH_PATH_BYTES];
    (void)state;
    (void)snprintf(from, sizeof(from), "%s", w->plan);
    assert_int_equal(drps_plan_open_rank(drps_io_os(), from, 0, &whole, NULL), 0);
    world_deal(w, from, &apart);
    assert_int_equal(drps_plan_open_rank(drps_io_os(), w->plan, 0, &server, NULL), 0);
    assert_int_equal(drps_plan_open_rank(drps_io_os(), w->plan, 2, &worker, NULL), 0);
    for (size_t s = 0; s < 4; s++) {
        const struct drps_train_options o = {.memory_bytes = 1 << 30, .store = stores[s]};
        struct drps_train_needs both, rows, none;
        assert_int_equal(drps_train_needs(whole, &o, &both, NULL), 0);
        assert_int_equal(drps_train_needs(server, &o, &rows, NULL), 0);
        assert_int_equal(drps_train_needs(worker, &o, &none, NULL), 0);
        assert_true(none.fits && none.keeps_all_rows);
        assert_true(none.least_bytes < both.least_bytes);
        if (s > 1) assert_true(rows.least_bytes < both.least_bytes + (2 << 20));
    }
    drps_plan_close(whole);
    drps_plan_close(server);
    drps_plan_close(worker);
    world_end(w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_that_contradict_their_ranks),
        cmocka_unit_test(test_ranks_read_what_they_may_have),
        cmocka_unit_test(test_plans_have_names_of_their_own),
        cmocka_unit_test(test_what_they_need),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
