/* Gram matrices: the library's, if the build has it, against three loops; sparse against dense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "engine/cluster/sv/select/drps_gram.h"
#include "support/random_vectors.h"

static void assert_near(const double *got, const double *want, uint32_t n)
{
    for (size_t i = 0; i < (size_t)n * n; i++) {
        const double scale = sqrt(want[i / n * n + i / n] * want[i % n * n + i % n]);
        if (!(fabs(got[i] - want[i]) <= 1e-12 * scale))
            fail_msg("[%zu][%zu] of %u: %.17g, expected %.17g", i / n, i % n, n, got[i], want[i]);
    }
}

static void check_dense(uint32_t n, uint32_t dim)
{
    struct own_vectors o = random_vectors(n + dim, n, dim, 1, 1);
    double *got = malloc(((size_t)n * n + 1) * sizeof(double)),
           *want = malloc(((size_t)n * n + 1) * sizeof(double));
    void *scratch = malloc(drps_gram_scratch(n) + 1);
    assert_true(got && want && scratch);
    drps_gram_dense(&o.v, scratch, got);
    drps_gram_dense_plain(&o.v, want);
    assert_near(got, want, n);
    free(got);
    free(want);
    free(scratch);
    own_vectors_free(&o);
}

/* Widths below, at and above the blocks that are multiplied at a time. */
static void test_dense_is_the_plain_loops(void **state)
{
    static const uint32_t dims[] = {1, 2, 20, 255, 256, 257, 600};
    (void)state;
    for (size_t d = 0; d < sizeof(dims) / sizeof(*dims); d++)
        for (uint32_t n = 0; n < 34; n += 11)
            check_dense(n, dims[d]);
}

static void test_plain_by_hand(void **state)
{
    const float u[] = {1, 2, 3, -4, 0, 0};
    const struct drps_vectors v = {.n = 3, .dim = 2, .u = u};
    const double want[] = {5, -5, 0, -5, 25, 0, 0, 0, 0};
    double got[9];
    (void)state;
    drps_gram_dense_plain(&v, got);
    for (int i = 0; i < 9; i++)
        assert_true(got[i] == want[i]);
}

/* Sparse vectors are dense ones whose other values are 0. Ids may take up to 32 bits. */
static void check_sparse(uint32_t n, uint32_t rows, uint32_t nnz, uint32_t step)
{
    float *dense = calloc((size_t)n * rows + 1, sizeof(*dense));
    double *got = malloc(((size_t)n * n + 1) * sizeof(double)),
           *want = malloc(((size_t)n * n + 1) * sizeof(double));
    struct own_vectors o = random_vectors(n + rows, n, 1, rows, nnz);
    void *scratch = malloc(drps_gram_sparse_scratch(o.first[n]) + 1);
    assert_true(dense && got && want && scratch);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t e = o.first[i]; e < o.first[i + 1]; e++) {
            dense[i * rows + o.ids[e]] = o.values[e];
            o.ids[e] *= step;
        }
    const struct drps_vectors d = {.n = n, .dim = rows, .u = dense};
    drps_gram_sparse(&o.v, scratch, got);
    drps_gram_dense_plain(&d, want);
    assert_near(got, want, n);
    free(scratch);
    free(dense);
    free(got);
    free(want);
    own_vectors_free(&o);
}

static void test_sparse_is_dense_with_zeros(void **state)
{
    static const uint32_t steps[] = {1, 7, 300, 70000, 100000000};
    (void)state;
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        check_sparse(0, 37, 9, steps[i]);
        check_sparse(1, 37, 9, steps[i]);
        check_sparse(20, 37, 9, steps[i]);
        check_sparse(20, 37, 37, steps[i]);
        check_sparse(20, 37, 0, steps[i]);
    }
}

/* Floats that a square of floats does not hold. */
static void test_largest_floats_stay_finite(void **state)
{
    const float u[] = {3e38f, -3e38f, 1e-38f, 1e-38f};
    const struct drps_vectors v = {.n = 2, .dim = 2, .u = u};
    double got[4], *scratch = malloc(drps_gram_scratch(2));
    (void)state;
    drps_gram_dense(&v, scratch, got);
    assert_true(isfinite(got[0]) && got[0] > 1e77 && got[3] > 0 && got[3] < 1e-75);
    free(scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense_is_the_plain_loops),
        cmocka_unit_test(test_plain_by_hand),
        cmocka_unit_test(test_sparse_is_dense_with_zeros),
        cmocka_unit_test(test_largest_floats_stay_finite),
    };
    return cmocka_run_group_tests_name("gram", tests, NULL, NULL);
}
