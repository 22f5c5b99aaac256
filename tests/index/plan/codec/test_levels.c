/* Packed values: exact bytes, every number of levels and of values comes back, and what is no list
 * of values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/plan/codec/drps_levels.h"

static void test_levels_golden_bytes(void **state)
{
    /* 1, -1, 2: numbers 0 1 0 2 1 of two bits, from the low ones on */
    static const float values[] = {1, -1, 1, 2, -1};
    static const unsigned char bytes[] = {3, 0,    0,    0, 2, 0, 0,    0, 0, 0, 0x80, 0x3f, 0,
                                          0, 0x80, 0xbf, 0, 0, 0, 0x40, 0, 0, 0, 0,    0x84, 0x01};
    unsigned char out[256];
    float back[5];
    (void)state;
    assert_int_equal(drps_levels_encode(values, 5, out), sizeof(bytes));
    assert_memory_equal(out, bytes, sizeof(bytes));
    assert_int_equal(drps_levels_decode(bytes, sizeof(bytes), 5, back), sizeof(bytes));
    assert_memory_equal(back, values, sizeof(values));
}

static void test_levels_come_back(void **state)
{
    (void)state;
    for (size_t levels = 1; levels <= DRPS_LEVELS_MOST + 1; levels++)
        for (size_t n = levels; n < levels + 40; n++) {
            float values[64], back[64];
            const size_t bound = drps_levels_bound(n);
            unsigned char *out = malloc(bound); /* a sanitizer sees one byte too far */
            assert_non_null(out);
            for (size_t i = 0; i < n; i++)
                values[i] = (float)((i * i + i) / 2 % levels) - 3;
            values[n - 1] = levels > 1 ? -0.0f : values[0]; /* another one than 0 */
            for (size_t i = 0; i < levels && i < n; i++)
                values[i] = i ? (float)i : -0.0f;
            const size_t bytes = drps_levels_encode(values, n, out);
            size_t distinct = 0;
            for (size_t i = 0; i < n; i++) {
                size_t j = 0;
                while (j < i && memcmp(&values[i], &values[j], sizeof(*values)) != 0)
                    j++;
                distinct += j == i;
            }
            assert_int_equal(bytes > 0, distinct <= DRPS_LEVELS_MOST);
            assert_true(bytes <= bound);
            if (bytes) {
                assert_int_equal(drps_levels_decode(out, bytes, n, NULL), bytes);
                assert_int_equal(drps_levels_decode(out, bytes, n, back), bytes);
                assert_memory_equal(back, values, n * sizeof(*values));
                assert_int_equal(drps_levels_decode(out, bytes - 1, n, back), 0);
            }
            free(out);
        }
    assert_int_equal(drps_levels_encode(NULL, 0, NULL), 0);
}

static void test_levels_damaged_are_refused(void **state)
{
    static const float values[] = {1, -1, 1, 2, -1};
    static const struct {
        const char *name;
        size_t at;
        unsigned char byte;
    } cases[] = {
        {"no levels", 0, 0},
        {"17 levels", 0, 17},
        {"more levels than bits", 0, 5},
        {"other bits", 4, 4},
        {"a number of no level", 24, 0x87},
        {"padding", 20, 1},
        {"behind the last value", 25, 0x05},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned char out[256];
        float back[5];
        const size_t bytes = drps_levels_encode(values, 5, out);
        out[cases[i].at] = cases[i].byte;
        if (drps_levels_decode(out, bytes, 5, back)) fail_msg("%s is taken", cases[i].name);
    }
    unsigned char out[256];
    const size_t bytes = drps_levels_encode(values, 5, out);
    assert_int_equal(drps_levels_decode(out, bytes, SIZE_MAX, NULL), 0);
    assert_int_equal(drps_levels_decode(out, bytes, 0, NULL), 0);
    assert_int_equal(drps_levels_decode(out, 7, 5, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels_golden_bytes),
        cmocka_unit_test(test_levels_come_back),
        cmocka_unit_test(test_levels_damaged_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
