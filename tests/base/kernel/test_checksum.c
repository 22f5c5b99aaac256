/* The checksum: values of XXH3, of a run of bytes, of pieces and of bytes that arrive; and at each
 * level of instructions. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/drps_checksum.h"

enum { BYTES = 5000 };

static unsigned char data[BYTES];

static int fill(void **state)
{
    (void)state;
    for (unsigned i = 0; i < BYTES; i++)
        data[i] = (unsigned char)(i * i + 7 * i);
    return 0;
}

/* Short runs, long ones, and more than one block of the algorithm. Values are of `xxhsum -H3`. */
static const struct {
    size_t bytes;
    uint64_t sum;
} cases[] = {
    {0, 0x2d06800538d394c2},   {1, 0xc44bdff4074eecdb},    {240, 0x8e126d39279542b5},
    {241, 0x2d6873b128d3f478}, {1024, 0xbf024c61b0a161a0}, {BYTES, 0x55db894092e2dc36},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static void same(const char *what, size_t bytes, uint64_t sum, uint64_t expected)
{
    if (sum != expected)
        fail_msg("%s, %zu bytes: %016" PRIx64 ", not %016" PRIx64, what, bytes, sum, expected);
}

static void test_checksum_is_xxh3(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++)
        same("a run", cases[i].bytes, drps_checksum(data, cases[i].bytes), cases[i].sum);
}

static void test_checksum_of_pieces_is_that_of_the_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        const size_t n = cases[i].bytes, third = n / 3;
        const struct drps_piece pieces[] = {{data, third}, {data, 0}, {data + third, n - third}};
        same("pieces", n, drps_checksum_pieces(pieces, 3), cases[i].sum);
    }
}

static void test_checksum_of_bytes_that_arrive_is_that_of_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        struct drps_summer *s = drps_summer_new();
        assert_non_null(s);
        for (size_t at = 0, step = 1; at < cases[i].bytes; at += step, step = step * 3 + 1) {
            if (step > cases[i].bytes - at) step = cases[i].bytes - at;
            drps_summer_add(s, data + at, step);
        }
        same("arriving", cases[i].bytes, drps_summer_value(s), cases[i].sum);
        drps_summer_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checksum_is_xxh3),
        cmocka_unit_test(test_checksum_of_pieces_is_that_of_the_whole),
        cmocka_unit_test(test_checksum_of_bytes_that_arrive_is_that_of_all),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
