/* Products, the filter and least squares: each beside an obvious loop. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/model/math/drps_blas.h"
#include "engine/recommend/choose.h"
#include "engine/recommend/math/drps_norm.h"
#include "engine/recommend/math/drps_products.h"
#include "engine/recommend/math/drps_solve.h"
#include "engine/recommend/math/drps_top.h"
#include "support/scratch.h"

enum { QUERIES = 31, ITEMS = 150, DIM = 130 };

static float real(struct random_source *r)
{
    return (float)random_below(r, 2001) / 1000 - 1;
}

static double exact(const float *a, const float *b, size_t d)
{
    double sum = 0;
    for (size_t k = 0; k < d; k++)
        sum += (double)a[k] * (double)b[k];
    return sum;
}

/* ---- Products ---- */

static void check_product(const char *what, drps_product product, const float *queries, size_t q,
                          const float *items, size_t n, size_t d)
{
    static float scores[QUERIES * ITEMS + 1];
    void *scratch = malloc(drps_product_scratch(d));
    assert_non_null(scratch);
    scores[q * n] = 12345;
    product(queries, q, items, n, d, scores, scratch);
    assert_true(scores[q * n] == 12345); /* nothing was written behind the end */
    for (size_t i = 0; i < q; i++)
        for (size_t j = 0; j < n; j++) {
            const float *a = queries + i * d, *b = items + j * d;
            const double want = exact(a, b, d), got = (double)scores[i * n + j];
            const double bound =
                drps_product_error(d) * drps_norm(a, d) * drps_norm(b, d) + DRPS_PRODUCT_TINY;
            if (!(fabs(got - want) <= bound))
                fail_msg("%s: %zu x %zu of %zu floats: score %zu, %zu is %.9g, not %.9g within %g",
                         what, q, n, d, i, j, got, want, bound);
        }
    free(scratch);
}

static void test_products_are_exact_within_their_error(void **state)
{
    static const struct {
        size_t q, n, d;
    } shapes[] = {{1, 1, 1},    {1, 33, 2},   {6, 32, 9},    {7, 31, 17},
                  {12, 16, 65}, {13, 65, 64}, {31, 150, 33}, {30, 97, 130}};
    struct random_source r = random_begin(__func__);
    static float queries[QUERIES * DIM], items[ITEMS * DIM];
    (void)state;
    for (size_t i = 0; i < QUERIES * DIM; i++)
        queries[i] = real(&r);
    for (size_t i = 0; i < ITEMS * DIM; i++)
        items[i] = real(&r);
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
        const size_t q = shapes[s].q, n = shapes[s].n, d = shapes[s].d;
        check_product("plain", drps_product_ref, queries, q, items, n, d);
        check_product("own", drps_product_own, queries, q, items, n, d);
        check_product("OpenBLAS", drps_product_blas, queries, q, items, n, d);
    }
}

static void test_the_product_is_the_one_asked_for(void **state)
{
    (void)state;
    assert_string_equal(drps_product_name(drps_product_choose(DRPS_PRODUCTS_OWN, 5, 1)), "own");
    if (drps_product_has_blas())
        assert_string_equal(drps_product_name(drps_product_choose(DRPS_PRODUCTS_OPENBLAS, 5, 2)),
                            "openblas");
    const drps_product one = drps_product_choose(DRPS_PRODUCTS_FASTEST, 5, 1);
    assert_true(one == drps_product_own || one == drps_product_blas);
    if (drps_blas_takes_turns())
        assert_string_equal(drps_product_name(drps_product_choose(DRPS_PRODUCTS_FASTEST, 5, 2)),
                            "own");
}

/* ---- The best ---- */

struct case_of_best {
    const char *name;
    size_t n, d, most, seen;
    unsigned levels; /* few: many equal scores */
    double base;
    float scale;
};

static int by_rank(const void *a, const void *b)
{
    const struct drps_best *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static void check_best(const struct case_of_best *c, struct random_source *r)
{
    float *items = calloc(c->n * c->d, sizeof(*items)), *query = calloc(c->d, sizeof(*query)),
          *products = calloc(c->n, sizeof(*products));
    uint32_t *rows = calloc(c->n, sizeof(*rows)), *seen = calloc(c->n, sizeof(*seen));
    struct drps_best *all = calloc(c->n, sizeof(*all)), *heap = calloc(c->most, sizeof(*heap));
    size_t left = 0, seen_n = 0;
    double longest = 0;
    for (size_t k = 0; k < c->d; k++)
        query[k] = (float)random_below(r, c->levels) * c->scale;
    struct drps_top top = {
        .vector = query, .d = c->d, .base = c->base, .floor = -INFINITY, .heap = heap};
    for (size_t i = 0; i < c->n; i++) {
        float *v = items + i * c->d;
        for (size_t k = 0; k < c->d; k++)
            v[k] = ((float)random_below(r, c->levels) - (float)(c->levels / 2)) * c->scale;
        if (drps_norm(v, c->d) > longest) longest = drps_norm(v, c->d);
        rows[i] = 5 + 3 * (uint32_t)i;
        drps_product_ref(query, 1, v, 1, c->d, &products[i], NULL);
        if (c->seen && random_below(r, c->seen) == 0)
            seen[seen_n++] = rows[i];
        else
            all[left++] = (struct drps_best){drps_top_score(&top, v), rows[i]};
    }
    qsort(all, left, sizeof(*all), by_rank);
    top.error = drps_product_error(c->d) * drps_norm(query, c->d);
    top.seen = seen;
    top.seen_n = seen_n;
    top.most = c->most;
    for (size_t at = 0, some; at < c->n; at += some) { /* a tile at a time */
        some = 1 + random_below(r, 200);
        if (some > c->n - at) some = c->n - at;
        const struct drps_top_items tile = {.vectors = items + at * c->d,
                                            .rows = rows + at,
                                            .products = products + at,
                                            .n = some,
                                            .norm = longest};
        assert_true(drps_top_look(&top, &tile) <= some);
    }
    drps_top_sort(&top);
    assert_int_equal(top.n, left < c->most ? left : c->most);
    for (size_t i = 0; i < top.n; i++)
        if (heap[i].row != all[i].row || heap[i].score != all[i].score)
            fail_msg("%s: rank %zu is row %u with %.17g, not %u with %.17g", c->name, i + 1,
                     heap[i].row, heap[i].score, all[i].row, all[i].score);
    free(items);
    free(query);
    free(products);
    free(rows);
    free(seen);
    free(all);
    free(heap);
}

static void test_the_best_are_those_of_all(void **state)
{
    static const struct case_of_best cases[] = {
        {"plain", 3000, 17, 10, 0, 1 << 20, 0, 1e-5f},
        {"one", 500, 9, 1, 0, 1 << 20, 3.5, 1e-5f},
        {"nearly equal scores", 3000, 33, 10, 0, 3, 1, 1},
        {"all equal", 1000, 8, 7, 0, 1, 0, 1},
        {"more than there are", 40, 5, 100, 0, 1 << 10, -1, 1},
        {"seen", 2000, 17, 10, 2, 1 << 10, 1e3, 1e-3f},
        {"all seen", 300, 17, 10, 1, 1 << 10, 0, 1e-3f},
        {"a base that hides small scores", 2000, 17, 10, 0, 1 << 20, 1e9, 1e-6f},
        {"floats that overflow", 1000, 17, 10, 0, 1 << 10, 0, 1e20f},
        {"some sums overflow", 3000, 17, 10, 0, 1 << 10, 0, 1.5e16f},
        {"some sums overflow, others are small", 3000, 2, 10, 0, 1 << 10, 0, 2e16f},
        {"floats that underflow", 1000, 17, 10, 0, 1 << 10, 0, 1e-25f},
    };
    struct random_source r = random_begin(__func__);
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int round = 0; round < 10; round++)
            check_best(&cases[i], &r);
}

/* A product may be off by its error: whatever it is within that, the best are the same. */
static void test_products_that_are_off_change_nothing(void **state)
{
    enum { N = 4000, D = 9, MOST = 10 };
    struct random_source r = random_begin(__func__);
    static float items[N * D], query[D], products[N];
    static uint32_t rows[N];
    struct drps_best all[N], heap[MOST];
    double longest = 0;
    (void)state;
    for (size_t k = 0; k < D; k++)
        query[k] = fabsf(real(&r));
    for (size_t i = 0; i < N; i++) {
        rows[i] = (uint32_t)i;
        for (size_t k = 0; k < D; k++) /* bunches; of the best one last bits decide */
            items[i * D + k] = 1 - (float)(i % 5) / 8 + (float)random_below(&r, 3) * FLT_EPSILON;
        if (drps_norm(items + i * D, D) > longest) longest = drps_norm(items + i * D, D);
    }
    struct drps_top top = {.vector = query,
                           .d = D,
                           .error = drps_product_error(D) * drps_norm(query, D),
                           .floor = -INFINITY,
                           .heap = heap,
                           .most = MOST};
    for (size_t i = 0; i < N; i++) {
        const double score = drps_top_score(&top, items + i * D);
        all[i] = (struct drps_best){score, rows[i]};
        products[i] = (float)(score + (i % 2 ? -0.99 : 0.99) * top.error * longest);
    }
    qsort(all, N, sizeof(*all), by_rank);
    const struct drps_top_items tile = {
        .vectors = items, .rows = rows, .products = products, .n = N, .norm = longest};
    assert_true(drps_top_look(&top, &tile) < N); /* some are passed over */
    drps_top_sort(&top);
    for (size_t i = 0; i < MOST; i++)
        assert_int_equal(heap[i].row, all[i].row);
}

/* A sum that overflows to minus infinity on its way to a large number hides no item. */
static void test_a_sum_that_overflows_hides_nothing(void **state)
{
    enum { D = 5, N = 2 };
    const float big = 2.5e38f, query[D] = {1, 1, 1, 1, 1};
    const float items[N * D] = {1, 0, 0, 0, 0, -big, -big, big, big, big};
    const float products[N] = {1, -INFINITY};
    const uint32_t rows[N] = {1, 2};
    struct drps_best best;
    struct drps_top top = {.vector = query,
                           .d = D,
                           .error = drps_product_error(D) * drps_norm(query, D),
                           .floor = -INFINITY,
                           .heap = &best,
                           .most = 1};
    const struct drps_top_items tile = {.vectors = items,
                                        .rows = rows,
                                        .products = products,
                                        .n = N,
                                        .norm = drps_norm(items + D, D)};
    (void)state;
    assert_int_equal(drps_top_look(&top, &tile), 2);
    assert_int_equal(best.row, 2);
    assert_true(best.score == (double)big);
}

/* ---- Least squares ---- */

/* At the solution the slope of sum (<z, x> - y)^2 + penalty |x|^2 is 0 in each direction. */
static void test_the_slope_is_zero_at_the_solution(void **state)
{
    enum { D = 7, N = 20 };
    struct random_source r = random_begin(__func__);
    double matrix[D * D], right[D], slope[D] = {0};
    float z[N][D - 1];
    double y[N];
    struct drps_normal s = {.d = D, .matrix = matrix, .right = right};
    (void)state;
    drps_normal_clear(&s);
    for (size_t i = 0; i < N; i++) {
        y[i] = (double)real(&r);
        for (size_t k = 0; k < D - 1; k++)
            z[i][k] = real(&r);
        drps_normal_add(&s, z[i], y[i]);
    }
    assert_int_equal(s.n, N);
    assert_true(drps_normal_solve(&s, 0.3));
    for (size_t i = 0; i < N; i++) {
        double off = right[0] - y[i];
        for (size_t k = 1; k < D; k++)
            off += right[k] * (double)z[i][k - 1];
        slope[0] += off;
        for (size_t k = 1; k < D; k++)
            slope[k] += off * (double)z[i][k - 1];
    }
    for (size_t k = 0; k < D; k++)
        assert_true(fabs(slope[k] + 0.3 * right[k]) < 1e-12);
}

static void test_no_equations_give_zero_and_lost_pivots_are_told(void **state)
{
    enum { D = 3 };
    double matrix[D * D], right[D];
    const float z[D - 1] = {1, 2};
    struct drps_normal s = {.d = D, .matrix = matrix, .right = right};
    (void)state;
    drps_normal_clear(&s);
    assert_true(drps_normal_solve(&s, 0));
    for (size_t k = 0; k < D; k++)
        assert_true(right[k] == 0);
    drps_normal_add(&s, z, 1); /* one equation, three unknowns */
    assert_false(drps_normal_solve(&s, 0));
    drps_normal_clear(&s);
    drps_normal_add(&s, z, 1);
    assert_true(drps_normal_solve(&s, 0.5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_are_exact_within_their_error),
        cmocka_unit_test(test_the_product_is_the_one_asked_for),
        cmocka_unit_test(test_the_best_are_those_of_all),
        cmocka_unit_test(test_products_that_are_off_change_nothing),
        cmocka_unit_test(test_a_sum_that_overflows_hides_nothing),
        cmocka_unit_test(test_the_slope_is_zero_at_the_solution),
        cmocka_unit_test(test_no_equations_give_zero_and_lost_pivots_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
