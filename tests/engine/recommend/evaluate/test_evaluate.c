/* Hits of recommendations among held-out items, against values by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/drps_io.h"
#include "engine/recommend/evaluate/drps_evaluate.h"
#include "index/plan/drps_names.h"
#include "support/scratch.h"

enum { ROWS = 100, MOST = 4, NO = -1 };

/* Lists end with 0; NO is an item that the model does not have. */
struct user_case {
    const char *name;
    size_t n;
    int held[6], found[6], seen[6];
    double precision, recall, ndcg, map;
    uint64_t users, items, missing;
};

static void hold(struct drps_evaluate *e, uint32_t user, const int *items)
{
    const struct drps_rating_sink sink = drps_evaluate_sink(e);
    for (size_t i = 0; items[i]; i++) {
        const struct drps_rating r = {.user = user,
                                      .item = items[i] == NO ? DRPS_NO_ROW : (uint32_t)items[i],
                                      .value = (float)items[i]};
        assert_int_equal(sink.take(sink.ctx, &r, NULL), 0);
    }
}

static size_t copy(const int *from, uint32_t *to)
{
    size_t n = 0;
    for (; from[n]; n++)
        to[n] = (uint32_t)from[n];
    return n;
}

static void check(const struct user_case *c, const struct drps_evaluation *q)
{
    const double want[] = {c->precision, c->recall, c->ndcg, c->map};
    const double found[] = {q->precision, q->recall, q->ndcg, q->map};
    for (size_t i = 0; i < 4; i++)
        if (!(fabs(want[i] - found[i]) < 1e-12) && !(isnan(want[i]) && isnan(found[i])))
            fail_msg("%s: number %zu: expected %.9g, found %.9g", c->name, i, want[i], found[i]);
    if (q->users != c->users || q->items != c->items || q->missing != c->missing)
        fail_msg("%s: expected %d users, %d items, %d missing; found %d, %d, %d", c->name,
                 (int)c->users, (int)c->items, (int)c->missing, (int)q->users, (int)q->items,
                 (int)q->missing);
}

static void test_evaluation_by_hand(void **state)
{
    const double g2 = 1 / log2(3), g3 = 0.5;
    const struct user_case rows[] = {
        {"all of it", 2, {5, 6}, {6, 5}, {0}, 1, 1, 1, 1, 1, 2, 0},
        {"the second and third of three",
         3,
         {8, 5},
         {6, 5, 8},
         {0},
         2 / 3.0,
         1,
         (g2 + g3) / (1 + g2),
         (1 / 2.0 + 2 / 3.0) / 2,
         1,
         2,
         0},
        {"fewer are wanted than are held out", 1, {5, 6, 7}, {7}, {0}, 1, 1 / 3.0, 1, 1, 1, 3, 0},
        {"no hit", 2, {5}, {6, 7}, {0}, 0, 0, 0, 0, 1, 1, 0},
        {"one that is held out twice", 2, {5, 5}, {5, 6}, {0}, 0.5, 1, 1, 1, 1, 1, 0},
        {"one that was seen does not count", 2, {5, 6}, {6, 7}, {5}, 0.5, 1, 1, 1, 1, 1, 0},
        {"one that the model does not have counts",
         2,
         {5, NO},
         {5, 6},
         {0},
         0.5,
         0.5,
         1 / (1 + g2),
         0.5,
         1,
         2,
         1},
        {"fewer items than wanted", 4, {5}, {6, 5}, {0}, 0.25, 1, g2, 0.5, 1, 1, 0},
        {"all were seen",
         2,
         {5},
         {6},
         {5},
         (double)NAN,
         (double)NAN,
         (double)NAN,
         (double)NAN,
         0,
         0,
         0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scratch s;
        struct drps_evaluate *e;
        struct drps_rowset users;
        struct drps_evaluation q;
        uint32_t found[6], seen[6];
        const size_t found_n = copy(rows[i].found, found), seen_n = copy(rows[i].seen, seen);
        scratch_begin(&s);
        assert_int_equal(drps_evaluate_open(drps_io_os(), s.dir, 1 << 20, ROWS, NULL, &e, NULL), 0);
        hold(e, 3, rows[i].held);
        assert_true(drps_rowset_init(&users, ROWS));
        drps_rowset_add(&users, 3);
        drps_rowset_add(&users, 4);
        assert_int_equal(drps_evaluate_begin(e, &users, NULL), 0);
        assert_int_equal(users.n, 1); /* 4 has none held out */
        assert_int_equal(drps_evaluate_user(e, 3, found, found_n, rows[i].n, seen, seen_n, NULL),
                         0);
        drps_evaluate_result(e, &q);
        check(&rows[i], &q);
        drps_rowset_destroy(&users);
        drps_evaluate_close(e);
        scratch_end(&s);
    }
}

/* Means are over users; one that is not asked for is passed over; small ratings do not count. */
static void test_evaluation_is_a_mean_over_users(void **state)
{
    struct scratch s;
    struct drps_evaluate *e;
    struct drps_rowset users;
    struct drps_evaluation q;
    const uint32_t found[] = {10, 20};
    const double least = 10;
    (void)state;
    scratch_begin(&s);
    assert_int_equal(drps_evaluate_open(drps_io_os(), s.dir, 1 << 20, ROWS, &least, &e, NULL), 0);
    hold(e, 9, (const int[]){30, 20, 0});
    hold(e, 2, (const int[]){10, 5, 0});
    hold(e, 5, (const int[]){10, 0});
    assert_true(drps_rowset_init(&users, ROWS));
    drps_rowset_add(&users, 2);
    drps_rowset_add(&users, 9);
    assert_int_equal(drps_evaluate_begin(e, &users, NULL), 0);
    assert_int_equal(drps_evaluate_user(e, 2, found, 2, 2, NULL, 0, NULL), 0);
    assert_int_equal(drps_evaluate_user(e, 9, found, 2, 2, NULL, 0, NULL), 0);
    drps_evaluate_result(e, &q);
    assert_int_equal(q.users, 2);
    assert_int_equal(q.items, 3);
    assert_true(fabs(q.precision - 0.5) < 1e-12);
    assert_true(fabs(q.recall - 0.75) < 1e-12);
    assert_true(fabs(q.map - (1 + 0.25) / 2) < 1e-12);
    drps_rowset_destroy(&users);
    drps_evaluate_close(e);
    drps_evaluate_close(NULL);
    scratch_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evaluation_by_hand),
        cmocka_unit_test(test_evaluation_is_a_mean_over_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
