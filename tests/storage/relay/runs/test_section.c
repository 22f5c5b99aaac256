/* Headers of sections: what is written comes back, and nothing else is taken for a header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "storage/relay/runs/section.h"
#include "support/scratch.h"

static void test_bytes_are_as_described(void **state)
{
    static const struct {
        struct drps_section section;
        size_t n;
        const char *bytes;
    } cases[] = {
        {{0, 1}, 2, "\x00\x01"},
        {{1, 127}, 2, "\x01\x7f"},
        {{128, 300}, 4, "\x80\x01\xac\x02"},
        {{UINT64_MAX, 1}, 11, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char bytes[DRPS_SECTION_BYTES_MOST];
        assert_int_equal(drps_section_put(bytes, &cases[i].section), cases[i].n);
        assert_memory_equal(bytes, cases[i].bytes, cases[i].n);
    }
}

static void test_what_was_written_comes_back(void **state)
{
    struct random_source rng = random_begin("section");
    (void)state;
    for (int i = 0; i < 10000; i++) {
        const struct drps_section put = {random_u64(&rng) >> random_below(&rng, 64),
                                         random_u64(&rng) >> random_below(&rng, 64)};
        struct drps_section got;
        char bytes[DRPS_SECTION_BYTES_MOST];
        const size_t n = drps_section_put(bytes, &put);
        assert_int_equal(drps_section_get(bytes, n, &got), n);
        assert_true(got.later == put.later && got.rows == put.rows);
        for (size_t k = 0; k < n; k++) /* cut short */
            assert_int_equal(drps_section_get(bytes, k, &got), 0);
    }
}

static void test_no_header_is_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
    } cases[] = {
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\x01", 11}, /* more than 64 bits */
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01", 12},
        {"\x00\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 13},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_section got;
        assert_int_equal(drps_section_get(cases[i].bytes, cases[i].n, &got), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_are_as_described),
        cmocka_unit_test(test_what_was_written_comes_back),
        cmocka_unit_test(test_no_header_is_refused),
    };
    return cmocka_run_group_tests_name("section", tests, NULL, NULL);
}
