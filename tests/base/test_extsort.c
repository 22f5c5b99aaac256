/* External sorting against a plain sort, at memory from less than a run to all. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_extsort.h"
#include "support/fault_io.h"
#include "support/scratch.h"

/* Compares by key, then by order of arrival, which the test keeps in `b`. */
static int before(const void *x, const void *y)
{
    const struct drps_sort_record *p = x;
    const struct drps_sort_record *q = y;
    if (p->hi != q->hi) return p->hi < q->hi ? -1 : 1;
    if (p->lo != q->lo) return p->lo < q->lo ? -1 : 1;
    return p->b < q->b ? -1 : p->b > q->b;
}

/* Keys of few or many values; `b` is the order of arrival. */
static struct drps_sort_record *draw(struct random_source *r, size_t n)
{
    struct drps_sort_record *records = malloc(n * sizeof(*records) + 1);
    unsigned hi_bits = (unsigned)random_below(r, 65);
    unsigned lo_bits = (unsigned)random_below(r, 65);
    assert_non_null(records);
    for (size_t i = 0; i < n; i++)
        records[i] = (struct drps_sort_record){.hi = hi_bits ? random_u64(r) >> (64 - hi_bits) : 0,
                                               .lo = lo_bits ? random_u64(r) >> (64 - lo_bits) : 0,
                                               .a = (uint32_t)random_u64(r),
                                               .b = (uint32_t)i};
    return records;
}

static void test_sort_records_is_a_stable_sort(void **state)
{
    struct random_source r = random_begin("drps_sort_records");
    (void)state;
    for (int round = 0; round < 200; round++) {
        size_t n = (size_t)random_below(&r, round < 20 ? 4 : 3000);
        struct drps_sort_record *records = draw(&r, n);
        struct drps_sort_record *want = malloc(n * sizeof(*want) + 1);
        struct drps_sort_record *aux = malloc(n * sizeof(*aux) + 1);
        assert_non_null(want);
        memcpy(want, records, n * sizeof(*want));
        qsort(want, n, sizeof(*want), before);
        drps_sort_records(records, aux, n);
        if (memcmp(records, want, n * sizeof(*want)) != 0)
            fail_msg("round %d: %zu records out of order", round, n);
        free(records);
        free(want);
        free(aux);
    }
}

static int before_u32(const void *x, const void *y)
{
    uint32_t p, q;
    memcpy(&p, x, sizeof(p));
    memcpy(&q, y, sizeof(q));
    return p < q ? -1 : p > q;
}

static void test_sort_u32_sorts(void **state)
{
    struct random_source r = random_begin("drps_sort_u32");
    (void)state;
    for (int round = 0; round < 200; round++) {
        size_t n = (size_t)random_below(&r, 3000);
        uint32_t numbers[3000];
        uint32_t want[3000];
        uint32_t aux[3000];
        unsigned bits = (unsigned)random_below(&r, 33);
        for (size_t i = 0; i < n; i++)
            want[i] = numbers[i] = bits ? (uint32_t)(random_u64(&r) >> (64 - bits)) : 0;
        qsort(want, n, sizeof(*want), before_u32);
        drps_sort_u32(numbers, aux, n);
        assert_memory_equal(numbers, want, n * sizeof(*want));
    }
}

static int before_pair(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;
    return (*x > *y) - (*x < *y);
}

static void test_sort_keyed_sorts_stably(void **state)
{
    enum { MOST = 3000 };
    struct random_source r = random_begin("drps_sort_keyed");
    (void)state;
    for (int round = 0; round < 200; round++) {
        size_t n = (size_t)random_below(&r, MOST);
        uint64_t pairs[MOST];
        uint64_t want[MOST];
        uint64_t aux[MOST];
        unsigned bits = (unsigned)random_below(&r, 33);
        for (size_t i = 0; i < n; i++) /* numbers in order of arrival: equal keys must stay so */
            want[i] = pairs[i] = (bits ? random_u64(&r) >> (64 - bits) : 0) << 32 | i;
        qsort(want, n, sizeof(*want), before_pair);
        drps_sort_keyed(pairs, aux, n);
        assert_memory_equal(pairs, want, n * sizeof(*want));
    }
}

static int sort_all(const struct drps_io *io, const char *dir, uint64_t memory,
                    const struct drps_sort_record *in, size_t n, struct drps_sort_record *out,
                    struct drps_err *err)
{
    struct drps_extsort *s = NULL;
    const struct drps_sort_record *record;
    size_t got = 0;
    int rc = drps_extsort_open(io, dir, "test", memory, &s, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = drps_extsort_add(s, &in[i], err);
    if (rc == 0) rc = drps_extsort_finish(s, err);
    while (rc == 0 && (rc = drps_extsort_next(s, &record, err)) > 0) {
        assert_true(got < n);
        out[got++] = *record;
        rc = 0;
    }
    if (rc == 0) assert_int_equal(got, n);
    if (rc == 0)
        assert_int_equal(drps_extsort_next(s, &record, err), 0); /* the end stays the end */
    drps_extsort_close(s);
    return rc;
}

static void test_extsort_result_does_not_depend_on_memory(void **state)
{
    static const struct {
        const char *name;
        size_t n;
        uint64_t memory;
    } cases[] = {
        {"no records", 0, 0},
        {"one record", 1, 0},
        {"just one run", 4096, 0},
        {"one more than a run", 4097, 0},
        {"two full runs", 8192, 0},
        {"fifty runs", 200000, 0},
        {"a few runs", 200000, 3 << 20},
        {"in memory", 200000, 64 << 20},
    };
    struct scratch *s = *state;
    struct random_source r = random_begin("extsort");
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        size_t n = cases[c].n;
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_sort_record *records = draw(&r, n);
        struct drps_sort_record *out = malloc(n * sizeof(*out) + 1);
        assert_non_null(out);
        if (sort_all(drps_io_os(), s->dir, cases[c].memory, records, n, out, &err))
            fail_msg("%s: %s", cases[c].name, err.text);
        qsort(records, n, sizeof(*records), before);
        if (memcmp(records, out, n * sizeof(*out)) != 0)
            fail_msg("%s: out of order", cases[c].name);
        assert_int_equal(folder_entries(s->dir), 0); /* the run file is gone */
        free(records);
        free(out);
    }
    drps_extsort_close(NULL);
}

static void test_extsort_faults_are_told(void **state)
{
    static const unsigned ops[] = {FAULT_OPEN, FAULT_PWRITE, FAULT_PREAD};
    enum { N = 20000 };
    struct scratch *s = *state;
    struct random_source r = random_begin("extsort faults");
    struct drps_sort_record *records = draw(&r, N);
    struct drps_sort_record *out = malloc(N * sizeof(*out));
    assert_non_null(out);
    for (size_t i = 0; i < 3; i++) {
        for (long k = 1;; k++) {
            struct fault_io *f = fault_io_new(drps_io_os());
            struct drps_err err = DRPS_ERR_INIT;
            assert_non_null(f);
            fault_io_arm(f, ops[i], k, 0, FAULT_ERROR, -EIO);
            int rc = sort_all(&f->io, s->dir, 0, records, N, out, &err);
            int fired = atomic_load(&f->fired);
            fault_io_free(f);
            assert_int_equal(rc, fired ? -EIO : 0);
            assert_int_equal(folder_entries(s->dir), 0);
            if (!fired) break;
            assert_true(err.text[0] != '\0');
        }
    }
    free(records);
    free(out);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sort_records_is_a_stable_sort),
        cmocka_unit_test(test_sort_u32_sorts),
        cmocka_unit_test(test_sort_keyed_sorts_stably),
        SCRATCH_TEST(test_extsort_result_does_not_depend_on_memory),
        SCRATCH_TEST(test_extsort_faults_are_told),
    };
    return cmocka_run_group_tests_name("extsort", tests, NULL, NULL);
}
