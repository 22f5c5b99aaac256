/* Dense batches: scores and gradients have the bits of the passes that go through indices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "engine/model/kernels.h"

static const uint64_t seed = 271828;

enum { SAMPLES = 70, FEATURES = 67, MOST = SAMPLES * FEATURES };

struct dense {
    float values[MOST], slopes[SAMPLES], params[FEATURES + 1];
    uint16_t local[MOST];
    struct drps_batch b;
};

static float number(uint64_t i)
{
    return drps_unit_float(drps_rng_at(seed, i)) * 4 - 2;
}

/* n values a sample; row 0 is left to the intercept where there is one. */
static void make(struct dense *d, size_t samples, size_t n, int bias)
{
    for (size_t i = 0; i < samples * n; i++) {
        d->values[i] = i % 13 == 5 ? 0 : number(i); /* zeros are values as any other */
        d->local[i] = (uint16_t)((size_t)bias + i % n);
    }
    for (size_t s = 0; s < samples; s++)
        d->slopes[s] = number(MOST + s);
    for (size_t k = 0; k <= n; k++)
        d->params[k] = number(2 * MOST + k);
    d->b = (struct drps_batch){.samples = samples,
                               .rows = n + (size_t)bias,
                               .nnz = samples * n,
                               .per_sample = (uint32_t)n,
                               .local16 = d->local,
                               .values = d->values,
                               .dense = 1 + (uint32_t)bias};
}

static void compare(const struct dense *d, size_t first, size_t last)
{
    float scores[2][SAMPLES] = {{0}}, grads[2][FEATURES + 1];
    struct drps_batch plain = d->b;
    plain.dense = 0;
    for (size_t k = 0; k <= FEATURES; k++)
        grads[0][k] = grads[1][k] = number(3 * MOST + k);
    drps_linear_forward(&d->b, 1, 0.25f, first, last, d->params, scores[0]);
    drps_linear_forward(&plain, 1, 0.25f, first, last, d->params, scores[1]);
    drps_linear_backward(&d->b, 1, first, last, d->slopes, grads[0]);
    drps_linear_backward(&plain, 1, first, last, d->slopes, grads[1]);
    if (memcmp(scores[0], scores[1], sizeof(scores[0])) != 0)
        fail_msg("%u values, first row %u, samples %zu to %zu: other scores", d->b.per_sample,
                 d->b.dense - 1, first, last);
    if (memcmp(grads[0], grads[1], sizeof(grads[0])) != 0)
        fail_msg("%u values, first row %u, samples %zu to %zu: other gradients", d->b.per_sample,
                 d->b.dense - 1, first, last);
}

static void test_dense_has_the_bits_of_indices(void **state)
{
    static struct dense d;
    static const size_t ranges[][2] = {{0, SAMPLES}, {0, 1}, {3, 10}, {5, 5}, {1, SAMPLES - 1}};
    (void)state;
    for (size_t n = 1; n <= FEATURES; n++)
        for (int bias = 0; bias < 2; bias++) {
            make(&d, SAMPLES, n, bias);
            for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
                compare(&d, ranges[i][0], ranges[i][1]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_dense_has_the_bits_of_indices)};
    return cmocka_run_group_tests_name("linear_dense", tests, NULL, NULL);
}
