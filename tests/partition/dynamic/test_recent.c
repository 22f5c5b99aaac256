/* Recent samples: which ones stay, which are nearest, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "partition/dynamic/recent.h"
#include "support/lists.h"

static struct drps_recent *recent_of(uint32_t width, uint32_t units, uint32_t samples)
{
    const struct drps_recent_options o = {.width = width, .units = units, .samples = samples};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recent *r;
    assert_ok(drps_recent_new(&o, &r, &err), &err);
    return r;
}

static void add(struct drps_recent *r, uint64_t sample, float x, uint32_t unit)
{
    struct drps_err err = DRPS_ERR_INIT;
    assert_ok(drps_recent_add(r, sample, &x, &unit, 1, &err), &err);
}

/* The samples that are there, nearest to 0 first. */
static void assert_samples(const struct drps_recent *r, const uint64_t *want, uint32_t n)
{
    const float zero = 0;
    struct drps_near near[8];
    assert_int_equal(drps_recent_count(r), n);
    assert_int_equal(drps_recent_nearest(r, &zero, 8, near), n);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(near[i].sample, want[i]);
}

static void test_least_recently_trained_goes(void **state)
{
    (void)state;
    struct drps_recent *r = recent_of(1, 4, 3);
    add(r, 10, 1, 0);
    add(r, 20, 2, 1);
    add(r, 30, 3, 2);
    add(r, 10, 4, 3); /* again: it stays once, and 20 is the oldest now */
    assert_samples(r, (const uint64_t[]){20, 30, 10}, 3);
    const float two = 2;
    struct drps_near near;
    assert_int_equal(drps_recent_nearest(r, &two, 1, &near), 1); /* is no use of it */
    assert_int_equal(near.sample, 20);
    add(r, 40, 5, 0);
    assert_samples(r, (const uint64_t[]){30, 10, 40}, 3);
    add(r, 50, 6, 0);
    assert_samples(r, (const uint64_t[]){10, 40, 50}, 3);
    drps_recent_free(r);
}

/* What a sample changed before is forgotten when it is trained again. */
static void test_changes_are_those_of_the_last_time(void **state)
{
    (void)state;
    const uint32_t many[] = {0, 64, 129, 64};
    const float x = 1;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recent *r = recent_of(1, 130, 2);
    assert_ok(drps_recent_add(r, 7, &x, many, 4, &err), &err);
    assert_int_equal(r->changed[0], 1);
    assert_int_equal(r->changed[1], 1);
    assert_int_equal(r->changed[2], 2);
    add(r, 7, 1, 65);
    assert_int_equal(drps_recent_count(r), 1);
    assert_int_equal(r->changed[0], 0);
    assert_int_equal(r->changed[1], 2);
    assert_int_equal(r->changed[2], 0);
    drps_recent_free(r);
}

/* (0, 3), (4, 0) and again (4, 0), seen from (0, 0): Euclid, and the more recent of equal ones. */
static void test_nearest_by_hand(void **state)
{
    (void)state;
    static const float x[3][2] = {{0, 3}, {4, 0}, {4, 0}};
    const float from[2] = {0, 0};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_near near[3];
    struct drps_recent *r = recent_of(2, 1, 3);
    for (uint64_t i = 0; i < 3; i++)
        assert_ok(drps_recent_add(r, i, x[i], NULL, 0, &err), &err);
    assert_int_equal(drps_recent_nearest(r, from, 2, near), 2);
    assert_int_equal(near[0].sample, 0);
    assert_true(near[0].distance == 3);
    assert_int_equal(near[1].sample, 2);
    assert_true(near[1].distance == 4);
    assert_int_equal(drps_recent_nearest(r, from, 0, near), 0);
    drps_recent_free(r);
}

struct model {
    uint64_t sample, trained;
    float x;
};

static int by_distance(const void *a, const void *b)
{
    const struct model *x = a, *y = b;
    if (fabsf(x->x) != fabsf(y->x)) return fabsf(x->x) < fabsf(y->x) ? -1 : 1;
    return x->trained > y->trained ? -1 : 1;
}

/* Against a list that is sorted whole, at random, with equal distances and samples again. */
static void test_like_a_list(void **state)
{
    enum { MOST = 8, IDS = 14, TURNS = 3000 };
    (void)state;
    struct random_source rng = random_begin(__func__);
    struct model list[MOST], sorted[MOST];
    uint32_t n = 0;
    struct drps_recent *r = recent_of(1, 3, MOST);
    for (uint64_t turn = 1; turn <= TURNS; turn++) {
        const struct model one = {random_below(&rng, IDS), turn, (float)random_below(&rng, 9) - 4};
        uint32_t at = 0, oldest = 0;
        while (at < n && list[at].sample != one.sample)
            at++;
        for (uint32_t i = 1; i < n; i++)
            if (list[i].trained < list[oldest].trained) oldest = i;
        list[at < n ? at : n < MOST ? n++ : oldest] = one;
        add(r, one.sample, one.x, 0);
        memcpy(sorted, list, sizeof(list));
        qsort(sorted, n, sizeof(*sorted), by_distance);
        const uint32_t most = (uint32_t)random_below(&rng, MOST + 2);
        const float zero = 0;
        struct drps_near near[MOST + 2];
        assert_int_equal(drps_recent_nearest(r, &zero, most, near), most < n ? most : n);
        for (uint32_t i = 0; i < most && i < n; i++)
            assert_int_equal(near[i].sample, sorted[i].sample);
    }
    drps_recent_free(r);
}

static void test_memory_is_bounded(void **state)
{
    (void)state;
    /* 4 * 10 + 8 * 2 + 16 = 72 bytes each */
    struct drps_recent_options o = {
        .width = 10, .units = 65, .samples = 1000, .memory_bytes = 3 * 72 + 71};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recent *r;
    assert_ok(drps_recent_new(&o, &r, &err), &err);
    assert_int_equal(drps_recent_most(r), 3);
    drps_recent_free(r);
    o.samples = 4;
    assert_ok(drps_recent_new(&o, &r, &err), &err);
    assert_int_equal(drps_recent_most(r), 3);
    drps_recent_free(r);
    o.samples = 2;
    assert_ok(drps_recent_new(&o, &r, &err), &err);
    assert_int_equal(drps_recent_most(r), 2);
    drps_recent_free(r);
    o.memory_bytes = 71;
    assert_int_equal(drps_recent_new(&o, &r, &err), DRPS_E_MEMORY_BUDGET);
    assert_null(r);
    assert_non_null(strstr(err.text, "72"));
}

static void test_sizes_are_checked(void **state)
{
    (void)state;
    static const struct drps_recent_options zeros[] = {{0, 1, 1, 0}, {1, 0, 1, 0}, {1, 1, 0, 0}};
    const struct drps_recent_options huge = {UINT32_MAX, UINT32_MAX, UINT32_MAX, 0};
    struct drps_recent *r;
    for (int i = 0; i < 3; i++)
        assert_int_equal(drps_recent_new(&zeros[i], &r, NULL), DRPS_E_CONFIG);
    assert_int_equal(drps_recent_new(&huge, &r, NULL), -ENOMEM); /* 2^66 bytes */
    assert_null(r);
    drps_recent_free(NULL);
}

static void test_bad_samples_change_nothing(void **state)
{
    (void)state;
    const float good[2] = {1, 2}, bad[][2] = {{1, NAN}, {INFINITY, 1}};
    const uint32_t units[] = {0, 3};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recent *r = recent_of(2, 3, 2);
    assert_int_equal(drps_recent_add(r, 5, bad[0], units, 1, &err), -EINVAL);
    assert_non_null(strstr(err.text, "sample 5: value 1"));
    assert_int_equal(drps_recent_add(r, 5, bad[1], units, 1, NULL), -EINVAL);
    drps_err_clear(&err);
    assert_int_equal(drps_recent_add(r, 5, good, units, 2, &err), -EINVAL);
    assert_non_null(strstr(err.text, "unit 3"));
    assert_int_equal(drps_recent_count(r), 0);
    drps_recent_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least_recently_trained_goes),
        cmocka_unit_test(test_changes_are_those_of_the_last_time),
        cmocka_unit_test(test_nearest_by_hand),
        cmocka_unit_test(test_like_a_list),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_sizes_are_checked),
        cmocka_unit_test(test_bad_samples_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
