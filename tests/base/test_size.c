/* Sizes as people write them, the memory budget, and computed allocations. */
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

#include "base/drps_alloc.h"
#include "base/drps_budget.h"
#include "base/drps_endian.h"
#include "base/drps_size.h"

static void test_size_parse_accepts(void **state)
{
    static const struct {
        const char *name, *text;
        uint64_t bytes;
    } cases[] = {
        {"zero", "0", 0},
        {"plain", "4096", 4096},
        {"kilo", "3K", 3072},
        {"lower case", "3k", 3072},
        {"mega with B", "256MB", 256u << 20},
        {"mega with iB", "256MiB", 256u << 20},
        {"fraction", "1.5G", 3u << 29},
        {"tera", "2T", (uint64_t)2 << 40},
        {"bytes with B", "12B", 12},
        {"fraction of a byte is dropped", "1.9", 1},
        {"exponent", "1e3", 1000},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        uint64_t bytes = 77;
        int rc = drps_size_parse(cases[i].text, &bytes, &err);
        if (rc || bytes != cases[i].bytes)
            fail_msg("%s: '%s': expected %" PRIu64 ", found %" PRIu64 " (%d %s)", cases[i].name,
                     cases[i].text, cases[i].bytes, bytes, rc, err.text);
    }
}

static void test_size_parse_refuses_with_the_value(void **state)
{
    static const char *const texts[] = {"",     "K",   "-1",  "12Q",     "1KK",   "1 K",
                                        "nan",  "inf", "1Kx", "1MiBx",   "1e300", "9999999T",
                                        "1..5", "abc", "1iB", "8388608T"};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        uint64_t bytes = 77;
        char quoted[64];
        int rc = drps_size_parse(texts[i], &bytes, &err);
        (void)snprintf(quoted, sizeof(quoted), "'%s'", texts[i]);
        if (rc != -EINVAL || bytes != 0 || !strstr(err.text, quoted))
            fail_msg("'%s': expected -EINVAL naming it, found %d, %" PRIu64 ", '%s'", texts[i], rc,
                     bytes, err.text);
    }
}

static void test_size_format(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {1536, "1.5 KiB"},
        {3u << 29, "1.5 GiB"},
        {(uint64_t)5 << 40, "5.0 TiB"},
        {(uint64_t)5000 << 40, "5000.0 TiB"},
    };
    char buf[32];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(drps_size_format(cases[i].bytes, buf, sizeof(buf)), cases[i].text);
    assert_string_equal(drps_size_format(1536, buf, 4), "1.5");
}

uint64_t __real_drps_memory_available(void); /* not the little that tests have */

static void test_size_memory_of_this_machine(void **state)
{
    (void)state;
    assert_true(__real_drps_memory_available() > 1 << 20);
    assert_true(__real_drps_memory_available() < UINT64_MAX);
    assert_true(drps_memory_peak() > 1 << 16);
}

static void test_budget_counts_down(void **state)
{
    struct drps_budget b;
    (void)state;
    drps_budget_init(&b, 100);
    assert_int_equal(drps_budget_take(&b, "rows", 60, NULL), 0);
    assert_int_equal(drps_budget_left(&b), 40);
    assert_int_equal(drps_budget_take(&b, "buffers", 40, NULL), 0);
    assert_int_equal(drps_budget_left(&b), 0);
}

static void test_budget_refusal_has_the_breakdown(void **state)
{
    struct drps_budget b;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    drps_budget_init(&b, 4096);
    assert_int_equal(drps_budget_take(&b, "rows", 4096, &err), 0);
    assert_int_equal(drps_budget_take(&b, "buffers", 1024, &err), DRPS_E_MEMORY_BUDGET);
    assert_string_equal(err.text,
                        "a memory limit of 4.0 KiB is too small: at least 5.0 KiB is needed (rows "
                        "4.0 KiB, buffers 1.0 KiB)");
    assert_int_equal(drps_budget_left(&b), 0);
}

/* What the refusal asks for is enough, though it is rounded. */
static void test_budget_asks_for_enough(void **state)
{
    (void)state;
    for (uint64_t need = 1000; need < (uint64_t)1 << 45; need = need * 21 / 20 + 7) {
        struct drps_budget b;
        struct drps_err err = DRPS_ERR_INIT;
        char number[64] = "";
        char unit[16] = "";
        uint64_t asked = 0;
        drps_budget_init(&b, 10);
        assert_int_equal(drps_budget_take(&b, "all", need, &err), DRPS_E_MEMORY_BUDGET);
        const char *at = strstr(err.text, "at least ");
        assert_non_null(at);
        assert_int_equal(sscanf(at, "at least %40[0-9.] %15s", number, unit), 2);
        strcat(number, unit);
        assert_int_equal(drps_size_parse(number, &asked, NULL), 0);
        if (asked < need || asked > need + need / 10 + 1)
            fail_msg("need %" PRIu64 ": the text asks for %s = %" PRIu64, need, number, asked);
    }
}

static void test_budget_does_not_overflow(void **state)
{
    struct drps_budget b;
    (void)state;
    drps_budget_init(&b, UINT64_MAX - 1);
    assert_int_equal(drps_budget_take(&b, "a", UINT64_MAX - 8, NULL), 0);
    assert_int_equal(drps_budget_take(&b, "b", UINT64_MAX - 8, NULL), DRPS_E_MEMORY_BUDGET);
}

static void test_budget_more_items_than_it_lists(void **state)
{
    struct drps_budget b;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    drps_budget_init(&b, 10000);
    for (int i = 0; i < 100; i++)
        assert_int_equal(drps_budget_take(&b, "a part with a long name", 100, &err), 0);
    assert_int_equal(drps_budget_take(&b, "last", 1, &err), DRPS_E_MEMORY_BUDGET);
}

static void test_alloc_refuses_overflowing_products(void **state)
{
    void *array = NULL;
    size_t cap = 0;
    (void)state;
    assert_null(drps_array_new(SIZE_MAX / 4, 8));
    assert_int_equal(drps_array_reserve(&array, &cap, SIZE_MAX / 4, 8), -ENOMEM);
    assert_null(array);
    assert_int_equal(cap, 0);
}

static void test_alloc_nothing_is_a_pointer(void **state)
{
    void *p = drps_array_new(0, 8);
    (void)state;
    assert_non_null(p);
    free(p);
    p = NULL;
    size_t cap = 0;
    assert_int_equal(drps_array_reserve(&p, &cap, 0, 8), 0);
    assert_non_null(p);
    free(p);
}

static void test_alloc_reserve_keeps_content_and_doubles(void **state)
{
    uint32_t *array = NULL;
    size_t cap = 0;
    size_t grown = 0;
    (void)state;
    for (uint32_t i = 0; i < 100000; i++) {
        size_t before = cap;
        assert_int_equal(drps_array_reserve(&array, &cap, i + 1, sizeof(*array)), 0);
        grown += cap != before;
        array[i] = i;
    }
    for (uint32_t i = 0; i < 100000; i++)
        assert_int_equal(array[i], i);
    assert_true(grown < 20);
    free(array);
}

static void test_alloc_pages_are_zero(void **state)
{
    (void)state;
    for (size_t n = 0; n <= 3 << 20; n += 1 << 20) {
        unsigned char *p = drps_pages_new(n);
        assert_non_null(p);
        for (size_t i = 0; i < n; i += 511)
            assert_int_equal(p[i], 0);
        drps_pages_free(p, n);
    }
    drps_pages_free(NULL, 5);
}

static void test_endian_codecs(void **state)
{
    unsigned char bytes[8];
    (void)state;
    drps_put_u32(bytes, 0x01020304);
    assert_memory_equal(bytes, "\4\3\2\1", 4);
    assert_int_equal(drps_get_u32(bytes), 0x01020304);
    drps_put_u64(bytes, 0x0102030405060708);
    assert_memory_equal(bytes, "\10\7\6\5\4\3\2\1", 8);
    assert_true(drps_get_u64(bytes) == 0x0102030405060708);
    drps_put_be32(bytes, 0x01020304);
    assert_memory_equal(bytes, "\1\2\3\4", 4);
    assert_int_equal(drps_get_be32(bytes), 0x01020304);
    assert_int_equal(drps_align_up(0, 8), 0);
    assert_int_equal(drps_align_up(9, 8), 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size_parse_accepts),
        cmocka_unit_test(test_size_parse_refuses_with_the_value),
        cmocka_unit_test(test_size_format),
        cmocka_unit_test(test_size_memory_of_this_machine),
        cmocka_unit_test(test_budget_counts_down),
        cmocka_unit_test(test_budget_refusal_has_the_breakdown),
        cmocka_unit_test(test_budget_asks_for_enough),
        cmocka_unit_test(test_budget_does_not_overflow),
        cmocka_unit_test(test_budget_more_items_than_it_lists),
        cmocka_unit_test(test_alloc_refuses_overflowing_products),
        cmocka_unit_test(test_alloc_nothing_is_a_pointer),
        cmocka_unit_test(test_alloc_reserve_keeps_content_and_doubles),
        cmocka_unit_test(test_alloc_pages_are_zero),
        cmocka_unit_test(test_endian_codecs),
    };
    return cmocka_run_group_tests_name("size", tests, NULL, NULL);
}
