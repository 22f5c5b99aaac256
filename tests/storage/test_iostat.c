/* Counters of disk I/O: latencies in buckets, sums of counters, and those of the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "storage/drps_iostat.h"
#include "support/store_plan.h"

static void test_no_latency_is_zero(void **state)
{
    (void)state;
    struct drps_latency l = {.n = 0};
    assert_true(drps_latency_quantile_us(&l, 0.5) == 0);
}

static void test_latencies_fall_into_quarter_octaves(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t ns;
        unsigned bucket;
    } cases[] = {
        {"nothing", 0, 0},           {"below 1 us", 999, 0},           {"1 us", 1000, 0},
        {"below 2^(1/4)", 1189, 0},  {"above 2^(1/4)", 1190, 1},       {"2 us", 2000, 4},
        {"1.024 ms", 1024000, 40},   {"below the last", 54700000, 62}, {"the last", 55200000, 63},
        {"beyond", 10000000000, 63},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_latency l = {.n = 0};
        drps_latency_add(&l, cases[i].ns);
        if (l.count[cases[i].bucket] != 1)
            fail_msg("%s: not in bucket %u", cases[i].name, cases[i].bucket);
        assert_int_equal(l.n, 1);
        assert_int_equal(l.sum_ns, cases[i].ns);
        assert_int_equal(l.max_ns, cases[i].ns);
    }
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* A bucket is a quarter octave wide: an estimate is never too low, and at most 19 % too high. */
static void test_quantiles_agree_with_sorting(void **state)
{
    (void)state;
    enum { N = 5000 };
    static const double quantiles[] = {0.0001, 0.1, 0.5, 0.9, 0.99, 0.999, 1};
    static uint64_t ns[N];
    struct drps_latency l = {.n = 0};
    uint64_t seed = test_seed("quantiles");
    for (uint64_t i = 0; i < N; i++) {
        double u = drps_unit_double(drps_rng_at(seed, i));
        ns[i] = (uint64_t)(1010.0 / (1e-4 + u)); /* 1.01 us to 10.1 ms */
        drps_latency_add(&l, ns[i]);
    }
    qsort(ns, N, sizeof(*ns), by_size);
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(*quantiles); i++) {
        double rank = quantiles[i] * N;
        size_t at = (double)(size_t)rank < rank ? (size_t)rank : (size_t)rank - 1;
        double exact = (double)ns[at] * 1e-3, found = drps_latency_quantile_us(&l, quantiles[i]);
        if (found < exact * 0.9999 || found > exact * 1.1893)
            fail_msg("quantile %g: %g us, sorting says %g us", quantiles[i], found, exact);
    }
}

static void test_the_last_bucket_reports_the_maximum(void **state)
{
    (void)state;
    struct drps_latency l = {.n = 0};
    drps_latency_add(&l, 1000);
    drps_latency_add(&l, 3000000000);
    assert_true(drps_latency_quantile_us(&l, 0.99) == 3e6);
    assert_true(drps_latency_quantile_us(&l, 0.5) < 1.2);
}

static void test_merging_adds(void **state)
{
    (void)state;
    struct drps_iostat a, b;
    memset(&a, 0, sizeof(a));
    b = a;
    a.reads = 3;
    b.reads = 4;
    b.seeks = 2;
    b.written_bytes = 100;
    drps_latency_add(&a.read_latency, 5000);
    drps_latency_add(&b.read_latency, 9000);
    drps_iostat_merge(&a, &b);
    assert_int_equal(a.reads, 7);
    assert_int_equal(a.seeks, 2);
    assert_int_equal(a.written_bytes, 100);
    assert_int_equal(a.read_latency.n, 2);
    assert_int_equal(a.read_latency.max_ns, 9000);
    assert_int_equal(a.read_latency.sum_ns, 14000);
}

static void test_process_io_never_falls(void **state)
{
    (void)state;
    struct drps_process_io before, after;
    drps_process_io_now(&before);
    drps_process_io_now(&after);
    assert_true(after.read_bytes >= before.read_bytes &&
                after.written_bytes >= before.written_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_latency_is_zero),
        cmocka_unit_test(test_latencies_fall_into_quarter_octaves),
        cmocka_unit_test(test_quantiles_agree_with_sorting),
        cmocka_unit_test(test_the_last_bucket_reports_the_maximum),
        cmocka_unit_test(test_merging_adds),
        cmocka_unit_test(test_process_io_never_falls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
