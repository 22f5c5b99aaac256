/* Rules of selection: what the chosen vectors sum up to, against matrices that are written out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "engine/cluster/sv/select/drps_select.h"
#include "support/random_vectors.h"

enum { MOST = 64, DIM = 5, ROWS = 40, CELLS = ROWS * DIM };

/* A batch and what was chosen of it. */
struct chosen {
    uint32_t picks[MOST];
    float u[MOST * DIM];
    struct drps_selected out;
    int rc;
    struct drps_err err;
};

static void choose(const struct drps_vectors *v, struct drps_select_options o, float *error,
                   struct chosen *c)
{
    void *scratch = malloc(drps_select_scratch(v->n, v->first[v->n], &o));
    assert_non_null(scratch);
    memset(c, 0, sizeof(*c));
    c->out = (struct drps_selected){.picks = c->picks, .u = c->u};
    c->rc = drps_select(v, &o, error, scratch, &c->out, &c->err);
    free(scratch);
}

static void must_choose(const struct drps_vectors *v, struct drps_select_options o, float *error,
                        struct chosen *c)
{
    choose(v, o, error, c);
    if (c->rc) fail_msg("%s", c->err.text);
    for (uint32_t i = 0; i < c->out.n; i++)
        assert_true(c->picks[i] < v->n && (!i || c->picks[i] > c->picks[i - 1]));
}

/* matrix += by * what was chosen */
static void add_chosen(const struct drps_vectors *v, const struct chosen *c, double by,
                       double *matrix)
{
    struct own_vectors o = vectors_picked(v, c->picks, c->out.n, c->u);
    vectors_add(&o.v, by, matrix);
    own_vectors_free(&o);
}

static double squares(const double *matrix)
{
    double sum = 0;
    for (int i = 0; i < CELLS; i++)
        sum += matrix[i] * matrix[i];
    return sum;
}

/* |sum of the chosen - the batch's|^2 / |the batch's|^2 */
static double wrong(const struct drps_vectors *v, const struct chosen *c)
{
    double all[CELLS] = {0}, left[CELLS] = {0};
    vectors_add(v, 1, all);
    vectors_add(v, 1, left);
    add_chosen(v, c, -1, left);
    return squares(left) / squares(all);
}

/* Samples whose x are one of four, times 1, 2, 3 ...: four span all. */
static struct own_vectors alike(uint64_t seed, uint32_t n)
{
    struct own_vectors o = random_vectors(seed, n, DIM, ROWS, ROWS);
    for (uint32_t i = 4; i < n; i++)
        for (uint32_t k = 0; k < ROWS; k++)
            o.values[i * ROWS + k] = o.values[i % 4 * ROWS + k] * (float)(1 + i / 4);
    return o;
}

/* ---- Scaling ---- */

static void test_all_are_as_they_were(void **state)
{
    struct own_vectors o = random_vectors(1, 30, DIM, ROWS, 6);
    struct chosen c;
    (void)state;
    for (enum drps_select_rule rule = DRPS_SELECT_ALL; rule <= DRPS_SELECT_PROJECT; rule++)
        for (uint32_t count = 30; count < 32; count++) {
            must_choose(&o.v, (struct drps_select_options){.rule = rule, .count = count}, NULL, &c);
            assert_int_equal(c.out.n, 30);
            assert_memory_equal(c.u, o.u, 30 * DIM * sizeof(float));
            assert_int_equal(c.out.projected, 0);
        }
    must_choose(&o.v, (struct drps_select_options){.rule = DRPS_SELECT_ALL, .count = 3}, NULL, &c);
    assert_int_equal(c.out.n, 30);
    own_vectors_free(&o);
}

static void test_chosen_are_scaled(void **state)
{
    struct own_vectors o = random_vectors(2, 30, DIM, ROWS, 6);
    struct chosen c;
    (void)state;
    for (enum drps_select_rule rule = DRPS_SELECT_RANDOM; rule <= DRPS_SELECT_JMCSS; rule++) {
        must_choose(&o.v, (struct drps_select_options){.rule = rule, .count = 12, .seed = 4}, NULL,
                    &c);
        assert_int_equal(c.out.n, 12);
        for (uint32_t i = 0; i < 12 * DIM; i++)
            assert_true(c.u[i] == 2.5f * o.u[c.picks[i / DIM] * DIM + i % DIM]);
    }
    own_vectors_free(&o);
}

/* Each vector is chosen C times in B, and the mean of the sums is the batch's. */
static void test_random_is_right_on_average(void **state)
{
    enum { TIMES = 4000 };
    struct own_vectors o = random_vectors(3, 10, DIM, ROWS, 6);
    double sum[CELLS] = {0}, all[CELLS] = {0};
    uint32_t times[10] = {0};
    struct chosen c;
    (void)state;
    vectors_add(&o.v, 1, sum);
    vectors_add(&o.v, 1, all);
    for (uint64_t seed = 0; seed < TIMES; seed++) {
        must_choose(
            &o.v,
            (struct drps_select_options){.rule = DRPS_SELECT_RANDOM, .count = 4, .seed = seed},
            NULL, &c);
        for (uint32_t i = 0; i < 4; i++)
            times[c.picks[i]]++;
        add_chosen(&o.v, &c, -1. / TIMES, sum);
    }
    for (int i = 0; i < 10; i++)
        assert_in_range(times[i], 1500, 1700);
    assert_true(squares(sum) / squares(all) < 3e-3);
    own_vectors_free(&o);
}

static void test_same_seed_same_choice(void **state)
{
    struct own_vectors o = random_vectors(4, 40, DIM, ROWS, 6);
    struct chosen a, b, other;
    (void)state;
    for (enum drps_select_rule rule = DRPS_SELECT_RANDOM; rule <= DRPS_SELECT_PROJECT; rule++) {
        struct drps_select_options options = {.rule = rule, .count = 12, .seed = 4};
        must_choose(&o.v, options, NULL, &a);
        must_choose(&o.v, options, NULL, &b);
        options.seed = 5;
        must_choose(&o.v, options, NULL, &other);
        assert_memory_equal(a.picks, b.picks, sizeof(a.picks));
        assert_memory_equal(a.u, b.u, sizeof(a.u));
        assert_memory_not_equal(a.picks, other.picks, sizeof(a.picks));
    }
    own_vectors_free(&o);
}

/* ---- Projecting ---- */

static void test_projection_is_exact_where_it_can_be(void **state)
{
    struct own_vectors o = alike(5, 40);
    struct chosen c;
    (void)state;
    must_choose(&o.v, (struct drps_select_options){.rule = DRPS_SELECT_PROJECT, .count = 4}, NULL,
                &c);
    assert_int_equal(c.out.projected, 1);
    assert_true(c.out.captured > 1 - 1e-5 && c.out.captured < 1 + 1e-9);
    assert_true(wrong(&o.v, &c) < 1e-9);
    /* The scaled ones are not. */
    must_choose(&o.v, (struct drps_select_options){.rule = DRPS_SELECT_JMCSS, .count = 4}, NULL,
                &c);
    assert_true(wrong(&o.v, &c) > 1e-2);
    own_vectors_free(&o);
}

/* What is captured is what the matrices say, and no other u do better: the gradient of the error is
 * 0, but for what is added to the diagonal. */
static void test_projection_is_the_nearest(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct own_vectors o = random_vectors(100 + seed, 12, DIM, ROWS, ROWS / 2);
        double left[CELLS] = {0};
        struct chosen c;
        must_choose(
            &o.v,
            (struct drps_select_options){
                .rule = DRPS_SELECT_PROJECT, .count = 9, .least_captured = 1e-9, .seed = seed},
            NULL, &c);
        assert_int_equal(c.out.projected, 1);
        assert_true(fabs(c.out.captured - (1 - wrong(&o.v, &c))) < 1e-6);
        vectors_add(&o.v, 1, left);
        add_chosen(&o.v, &c, -1, left);
        for (uint32_t i = 0; i < 9; i++)
            for (uint32_t k = 0; k < DIM; k++) {
                double slope = 0;
                const uint32_t from = o.first[c.picks[i]], to = o.first[c.picks[i] + 1];
                for (uint32_t e = from; e < to; e++)
                    slope += (double)o.values[e] * left[o.ids[e] * DIM + k];
                assert_true(fabs(slope) < 1e-4);
            }
        own_vectors_free(&o);
    }
}

/* Eight x at right angles, two chosen: a quarter is captured. */
static void test_too_little_captured_is_random(void **state)
{
    enum { N = 8 };
    float u[N * DIM], values[N];
    uint32_t first[N + 1], ids[N];
    struct chosen c;
    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        first[i] = ids[i] = i;
        values[i] = 1;
        for (uint32_t k = 0; k < DIM; k++)
            u[i * DIM + k] = 1;
    }
    first[N] = N;
    const struct drps_vectors v = {N, DIM, u, first, ids, values};
    struct drps_select_options o = {.rule = DRPS_SELECT_PROJECT, .count = 2, .seed = 1};
    float error[CELLS] = {0};
    must_choose(&v, o, error, &c);
    assert_int_equal(c.out.projected, 0);
    assert_true(fabs(c.out.captured - .25) < 1e-5);
    for (uint32_t i = 0; i < 2 * DIM; i++)
        assert_true(c.u[i] == 4);
    for (int i = 0; i < CELLS; i++)
        assert_true(error[i] == 0);
    o.least_captured = .2; /* enough now */
    must_choose(&v, o, error, &c);
    assert_int_equal(c.out.projected, 1);
    o.least_captured = 0;
    o.count = 7; /* .875 */
    must_choose(&v, o, NULL, &c);
    assert_int_equal(c.out.projected, 1);
}

/* What was sent and what is still held back are all of the gradients so far. */
static void test_errors_are_fed_back(void **state)
{
    float error[CELLS] = {0};
    double all[CELLS] = {0}, left[CELLS] = {0}, held = 0;
    (void)state;
    for (uint64_t t = 0; t < 12; t++) {
        struct own_vectors o = alike(200 + t / 4, 16);
        struct chosen c;
        must_choose(&o.v,
                    (struct drps_select_options){
                        .rule = DRPS_SELECT_PROJECT, .count = 3, .least_captured = .01, .seed = t},
                    error, &c);
        assert_int_equal(c.out.projected, 1);
        vectors_add(&o.v, 1, all);
        vectors_add(&o.v, 1, left);
        add_chosen(&o.v, &c, -1, left);
        own_vectors_free(&o);
    }
    for (int i = 0; i < CELLS; i++) {
        held += (double)error[i] * (double)error[i];
        left[i] -= (double)error[i];
    }
    assert_true(held > 1e-3 * squares(all));
    assert_true(squares(left) < 1e-10 * squares(all));
}

/* With errors fed back the sum of many rounds is nearer than without. */
static void test_feedback_brings_the_sum_nearer(void **state)
{
    double left[2][CELLS] = {{0}};
    float error[CELLS] = {0};
    struct own_vectors o = alike(300, 16);
    (void)state;
    for (uint64_t t = 0; t < 40; t++)
        for (int fed = 0; fed < 2; fed++) {
            struct chosen c;
            must_choose(
                &o.v,
                (struct drps_select_options){
                    .rule = DRPS_SELECT_PROJECT, .count = 3, .least_captured = .01, .seed = t},
                fed ? error : NULL, &c);
            vectors_add(&o.v, 1, left[fed]);
            add_chosen(&o.v, &c, -1, left[fed]);
        }
    assert_true(squares(left[1]) < .1 * squares(left[0]));
    own_vectors_free(&o);
}

/* ---- Edges ---- */

static void test_none_and_zeros(void **state)
{
    struct own_vectors none = random_vectors(1, 0, DIM, ROWS, 5),
                       zeros = random_vectors(1, 9, DIM, ROWS, 5);
    struct chosen c;
    (void)state;
    memset(zeros.u, 0, 9 * DIM * sizeof(float));
    for (enum drps_select_rule rule = DRPS_SELECT_ALL; rule <= DRPS_SELECT_PROJECT; rule++) {
        struct drps_select_options o = {.rule = rule, .count = 4, .seed = 3};
        must_choose(&none.v, o, NULL, &c);
        assert_int_equal(c.out.n, 0);
        must_choose(&zeros.v, o, NULL, &c);
        assert_int_equal(c.out.n, rule == DRPS_SELECT_ALL ? 9 : 4);
        for (uint32_t i = 0; i < c.out.n * DIM; i++)
            assert_true(c.u[i] == 0);
    }
    memset(zeros.first, 0, 10 * sizeof(uint32_t)); /* x of zeros, too */
    must_choose(&zeros.v, (struct drps_select_options){.rule = DRPS_SELECT_PROJECT, .count = 4},
                NULL, &c);
    assert_int_equal(c.out.projected, 0);
    own_vectors_free(&none);
    own_vectors_free(&zeros);
}

/* The largest floats are chosen from and projected like others. */
static void test_huge_values(void **state)
{
    struct own_vectors o = alike(6, 12);
    struct chosen c, huge;
    const struct drps_select_options options = {.rule = DRPS_SELECT_PROJECT, .count = 4};
    (void)state;
    must_choose(&o.v, options, NULL, &c);
    for (uint32_t i = 0; i < 12 * DIM; i++)
        o.u[i] *= 0x1p+120f;
    for (uint32_t i = 0; i < 12 * ROWS; i++)
        o.values[i] *= 0x1p-60f;
    must_choose(&o.v, options, NULL, &huge);
    assert_memory_equal(c.picks, huge.picks, sizeof(c.picks));
    assert_true(fabs(c.out.captured - huge.out.captured) < 1e-9);
    for (uint32_t i = 0; i < 4 * DIM; i++)
        assert_true(fabsf(c.u[i] - huge.u[i] * 0x1p-120f) <= 1e-5f * fabsf(c.u[i]) + 1e-5f);
    own_vectors_free(&o);
}

static void test_what_is_refused(void **state)
{
    struct own_vectors o = random_vectors(1, 9, DIM, ROWS, 5);
    struct drps_select_options options = {.rule = DRPS_SELECT_RANDOM};
    struct chosen c;
    (void)state;
    choose(&o.v, options, NULL, &c);
    assert_int_equal(c.rc, -EINVAL);
    assert_string_equal(c.err.text, "0 of 9 sufficient vectors cannot be chosen");
    struct drps_vectors many = o.v;
    many.n = DRPS_SELECT_VECTORS_MOST + 1;
    struct drps_selected out = {.picks = c.picks, .u = c.u};
    options.rule = DRPS_SELECT_ALL;
    assert_int_equal(drps_select(&many, &options, NULL, c.u, &out, NULL), -EINVAL);
    o.u[3 * DIM] = NAN;
    for (enum drps_select_rule rule = DRPS_SELECT_JMCSS; rule <= DRPS_SELECT_PROJECT; rule++) {
        choose(&o.v, (struct drps_select_options){.rule = rule, .count = 4}, NULL, &c);
        assert_int_equal(c.rc, -EDOM);
        assert_non_null(strstr(c.err.text, "vector 3 of 9"));
    }
    own_vectors_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_as_they_were),
        cmocka_unit_test(test_chosen_are_scaled),
        cmocka_unit_test(test_random_is_right_on_average),
        cmocka_unit_test(test_same_seed_same_choice),
        cmocka_unit_test(test_projection_is_exact_where_it_can_be),
        cmocka_unit_test(test_projection_is_the_nearest),
        cmocka_unit_test(test_too_little_captured_is_random),
        cmocka_unit_test(test_errors_are_fed_back),
        cmocka_unit_test(test_feedback_brings_the_sum_nearer),
        cmocka_unit_test(test_none_and_zeros),
        cmocka_unit_test(test_huge_values),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests_name("select", tests, NULL, NULL);
}
