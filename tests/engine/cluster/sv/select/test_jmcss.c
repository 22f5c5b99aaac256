/*
 * Joint selection: the worked example by hand; equal to a version that keeps the vectors themselves
 * and projects them orthogonally; and what is left when the rank is used up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/drps_rng.h"
#include "engine/cluster/sv/select/drps_jmcss.h"

enum { MOST = 40, MATRICES = 3 };

/* Vectors of several matrices. */
struct sets {
    uint32_t n, matrices, dim;
    double x[MATRICES][MOST][MOST];
};

struct result {
    int rc;
    uint32_t picks[MOST], drawn;
    double left[MATRICES][MOST];
    struct drps_err err;
};

static void gram_of(const struct sets *s, uint32_t m, double *gram)
{
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t j = 0; j < s->n; j++) {
            double sum = 0;
            for (uint32_t k = 0; k < s->dim; k++)
                sum += s->x[m][i][k] * s->x[m][j][k];
            gram[i * s->n + j] = sum;
        }
}

static struct result choose(const struct sets *s, uint32_t count, uint64_t seed, int largest)
{
    double grams[MATRICES][MOST * MOST], left[MATRICES * MOST];
    const double *list[MATRICES];
    struct result r = {.err = DRPS_ERR_INIT};
    for (uint32_t m = 0; m < s->matrices; m++) {
        gram_of(s, m, grams[m]);
        list[m] = grams[m];
    }
    const struct drps_jmcss j = {s->n, count, s->matrices, list, seed, largest};
    void *scratch = malloc(drps_jmcss_scratch(&j));
    assert_non_null(scratch);
    r.rc = drps_jmcss(&j, scratch, r.picks, &r.drawn, left, &r.err);
    for (uint32_t m = 0; m < s->matrices && r.rc == 0; m++)
        memcpy(r.left[m], left + m * s->n, s->n * sizeof(double));
    free(scratch);
    return r;
}

static struct result chosen(const struct sets *s, uint32_t count, uint64_t seed, int largest)
{
    const struct result r = choose(s, count, seed, largest);
    if (r.rc) fail_msg("%s", r.err.text);
    return r;
}

/* ---- The worked example ---- */

static const struct sets example = {
    .n = 4,
    .matrices = 2,
    .dim = 3,
    .x = {{{2, 0}, {0, 1}, {2, .1}, {0, 0}}, {{1, 0, 0}, {0, 2, 0}, {1, 0, 0}, {5, 5, 5}}},
};

static double product(const struct result *r, uint32_t i)
{
    return r->left[0][i] * r->left[1][i];
}

/* Weights 4, 4, 4.01, 0: 2 is chosen. Then 0, 3.990025, -, 0: 1 is. Then all are 0. */
static void test_worked_example(void **state)
{
    (void)state;
    const struct result none = chosen(&example, 0, 1, 1), one = chosen(&example, 1, 1, 1),
                        two = chosen(&example, 2, 1, 1), more = chosen(&example, 3, 1, 1);
    const double want[] = {4, 4, 4.01, 0};
    for (uint32_t i = 0; i < 4; i++)
        assert_true(fabs(product(&none, i) - want[i]) < 1e-12);
    assert_true(one.picks[0] == 2 && one.drawn == 1);
    assert_true(fabs(product(&one, 1) - 3.990025) < 1e-6);
    assert_true(product(&one, 0) < 1e-12 && product(&one, 3) == 0);
    assert_true(two.picks[0] == 2 && two.picks[1] == 1 && two.drawn == 2);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(product(&two, i) < 1e-12);
    assert_int_equal(more.drawn, 2);
    assert_true(more.picks[2] == 0 || more.picks[2] == 3);
}

/* ---- The plain version ---- */

/* What is left of a matrix when a unit vector is projected out of all. */
static void project(struct sets *left, uint32_t m, const double *unit)
{
    for (uint32_t i = 0; i < left->n; i++) {
        double along = 0;
        for (uint32_t k = 0; k < left->dim; k++)
            along += left->x[m][i][k] * unit[k];
        for (uint32_t k = 0; k < left->dim; k++)
            left->x[m][i][k] -= along * unit[k];
    }
}

static double squared(const struct sets *s, uint32_t m, uint32_t i)
{
    double sum = 0;
    for (uint32_t k = 0; k < s->dim; k++)
        sum += s->x[m][i][k] * s->x[m][i][k];
    return sum;
}

/* By Algorithm 2, with the same random numbers. */
static uint32_t plain(const struct sets *s, uint32_t count, uint64_t seed, uint32_t *picks,
                      struct sets *left)
{
    double first = 0, weights[MOST];
    *left = *s;
    for (uint32_t t = 0;; t++) {
        double most = 0, sum = 0, r;
        uint32_t i = 0;
        for (uint32_t k = 0; k < s->n; k++) {
            weights[k] = 1;
            for (uint32_t m = 0; m < s->matrices; m++)
                weights[k] *= squared(left, m, k);
            for (uint32_t before = 0; before < t; before++)
                if (picks[before] == k) weights[k] = 0;
            most = fmax(most, weights[k]);
            sum += weights[k];
        }
        if (!t) first = most;
        if (t == count || !(most > 1e-10 * first)) return t;
        r = drps_unit_double(drps_rng_at(seed, t)) * sum;
        for (sum = weights[0]; sum <= r; sum += weights[i])
            i++;
        picks[t] = i;
        for (uint32_t m = 0; m < s->matrices; m++) {
            double unit[MOST];
            const double norm = sqrt(squared(left, m, i));
            if (!(norm * norm > 1e-9 * squared(s, m, i))) continue;
            for (uint32_t k = 0; k < s->dim; k++)
                unit[k] = left->x[m][i][k] / norm;
            project(left, m, unit);
            project(left, m, unit); /* once more, for what rounding left */
        }
    }
}

static struct sets random_sets(uint64_t seed, uint32_t n, uint32_t matrices, uint32_t dim)
{
    struct sets s = {.n = n, .matrices = matrices, .dim = dim};
    for (uint32_t m = 0; m < matrices; m++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t k = 0; k < dim; k++)
                s.x[m][i][k] = 2 * drps_unit_double(drps_rng_at(seed + m, i * dim + k)) - 1;
    return s;
}

static void compare(const struct sets *s, uint32_t count, uint64_t seed)
{
    uint32_t picks[MOST];
    struct sets left;
    const uint32_t drawn = plain(s, count, seed, picks, &left);
    const struct result got = chosen(s, count, seed, 0);
    assert_int_equal(got.drawn, drawn);
    for (uint32_t t = 0; t < drawn; t++)
        assert_int_equal(got.picks[t], picks[t]);
    for (uint32_t m = 0; m < s->matrices; m++)
        for (uint32_t i = 0; i < s->n; i++)
            if (!(fabs(got.left[m][i] - squared(&left, m, i)) <= 1e-6 * squared(s, m, i)) ||
                got.left[m][i] < 0)
                fail_msg("seed %llu, %u chosen, matrix %u, vector %u: %.9g is left, expected %.9g",
                         (unsigned long long)seed, count, m, i, got.left[m][i],
                         squared(&left, m, i));
}

static void test_equals_orthogonal_projection(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60 / DRPS_TEST_ONE_IN; seed++) {
        const uint32_t n = 1 + (uint32_t)(seed * 7 % MOST), dim = 1 + (uint32_t)(seed % 12);
        const struct sets s = random_sets(seed * 10, n, 1 + (uint32_t)(seed % MATRICES), dim);
        for (uint32_t count = 0; count < n && count <= dim + 1; count++)
            compare(&s, count, seed);
    }
}

/* Twelve vectors of rank 3 in each matrix. */
static void test_equals_projection_of_deficient_rank(void **state)
{
    struct sets s = random_sets(7, 12, 2, 6);
    (void)state;
    for (uint32_t m = 0; m < 2; m++)
        for (uint32_t i = 3; i < 12; i++)
            for (uint32_t k = 0; k < 6; k++)
                s.x[m][i][k] = s.x[m][i % 3][k] * (1 + i);
    for (uint64_t seed = 0; seed < 20; seed++) {
        compare(&s, 3, seed);
        assert_int_equal(chosen(&s, 8, seed, 0).drawn, 3);
    }
}

/* Vector 1 is nearly a multiple of vector 0 in the first matrix, but long: it is chosen, and what
 * is left of it, a share of 5e-10, is no direction to project out of vector 2. */
static void test_rounding_is_no_direction(void **state)
{
    const struct sets s = {
        .n = 3,
        .matrices = 2,
        .dim = 2,
        .x = {{{1, 0}, {1e6, 22}, {0, 3}}, {{1e6, 0}, {0, .9}, {1e-6, 1e-6}}},
    };
    const struct result r = chosen(&s, 2, 1, 1);
    (void)state;
    assert_int_equal(r.drawn, 2);
    assert_true(r.picks[0] == 0 && r.picks[1] == 1);
    assert_true(fabs(r.left[0][2] - 9) < 1e-9);
    assert_true(fabs(r.left[0][1] - 484) < 1e-3);
}

/* ---- Edges ---- */

static void assert_distinct(const struct result *r, uint32_t picks, uint32_t n)
{
    for (uint32_t t = 0; t < picks; t++) {
        assert_true(r->picks[t] < n);
        for (uint32_t s = 0; s < t; s++)
            assert_true(r->picks[s] != r->picks[t]);
    }
}

static void test_none_and_all(void **state)
{
    const struct sets none = {.matrices = 2, .dim = 3}, s = random_sets(3, 9, 2, 4);
    (void)state;
    assert_int_equal(chosen(&none, 5, 1, 0).drawn, 0);
    for (uint64_t seed = 0; seed < 10; seed++) {
        const struct result r = chosen(&s, 100, seed, 0);
        assert_distinct(&r, 9, 9);
    }
}

/* Vectors of zeros are chosen only when nothing else is left, each with the same probability. */
static void test_zeros_fill_up_evenly(void **state)
{
    struct sets s = random_sets(3, 6, 2, 4);
    uint32_t times[6] = {0};
    (void)state;
    memset(s.x[1][0], 0, sizeof(s.x[1][0]));
    memset(s.x[0][2], 0, sizeof(s.x[0][2]));
    memset(s.x[0][5], 0, sizeof(s.x[0][5]));
    for (uint64_t seed = 0; seed < 900; seed++) {
        const struct result r = chosen(&s, 4, seed, 0);
        assert_int_equal(r.drawn, 3);
        assert_distinct(&r, 4, 6);
        times[r.picks[3]]++;
    }
    assert_true(times[1] == 0 && times[3] == 0 && times[4] == 0);
    for (uint32_t i = 0; i < 6; i++)
        if (i == 0 || i == 2 || i == 5) assert_in_range(times[i], 240, 360);
    memset(s.x, 0, sizeof(s.x));
    const struct result zeros = chosen(&s, 4, 1, 0);
    assert_int_equal(zeros.drawn, 0);
    assert_distinct(&zeros, 4, 6);
}

/* Weights 1 and 3, of vectors at right angles. */
static void test_draws_by_weight(void **state)
{
    struct sets s = {.n = 2, .matrices = 1, .dim = 2, .x = {{{1, 0}, {0, 1.7320508075688772}}}};
    uint32_t second = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 4000; seed++)
        second += chosen(&s, 1, seed, 0).picks[0];
    assert_in_range(second, 2900, 3100);
}

/* The same choices for any scale of any matrix. */
static void test_scale_does_not_matter(void **state)
{
    const struct sets s = random_sets(11, 20, 3, 8);
    struct sets huge = s;
    (void)state;
    for (uint32_t i = 0; i < 20; i++)
        for (uint32_t k = 0; k < 8; k++) {
            huge.x[0][i][k] *= 0x1p+200;
            huge.x[1][i][k] *= 0x1p+250;
            huge.x[2][i][k] *= 0x1p-300;
        }
    for (uint64_t seed = 0; seed < 20; seed++) {
        const struct result a = chosen(&s, 7, seed, 0), b = chosen(&huge, 7, seed, 0);
        assert_memory_equal(a.picks, b.picks, 7 * sizeof(*a.picks));
        assert_int_equal(b.drawn, 7);
    }
}

static void test_not_finite_is_an_error(void **state)
{
    struct sets s = random_sets(11, 20, 2, 8);
    (void)state;
    const double bad[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 1e200};
    for (size_t b = 0; b < sizeof(bad) / sizeof(*bad); b++) {
        s.x[1][13][2] = bad[b];
        const struct result r = choose(&s, 7, 1, 0);
        assert_int_equal(r.rc, -EDOM);
        assert_non_null(strstr(r.err.text, "vector 13 of 20"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worked_example),
        cmocka_unit_test(test_equals_orthogonal_projection),
        cmocka_unit_test(test_equals_projection_of_deficient_rank),
        cmocka_unit_test(test_rounding_is_no_direction),
        cmocka_unit_test(test_none_and_all),
        cmocka_unit_test(test_zeros_fill_up_evenly),
        cmocka_unit_test(test_draws_by_weight),
        cmocka_unit_test(test_scale_does_not_matter),
        cmocka_unit_test(test_not_finite_is_an_error),
    };
    return cmocka_run_group_tests_name("jmcss", tests, NULL, NULL);
}
