/* Numbers by place: exact bytes, all of them come back whatever they are, and what is no such
 * numbers is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "index/plan/codec/drps_dense.h"

enum { ROOM = 1 << 15 };

/* Numbers [n] as levels, if they are few, else as they are. */
static struct drps_dense of_floats(const float *numbers, uint32_t each, size_t n, uint8_t *bytes,
                                   float *levels)
{
    const uint32_t found = drps_dense_levels(numbers, n, bytes, levels);
    if (!found) return (struct drps_dense){.each = each, .floats = numbers};
    return (struct drps_dense){.each = each, .levels_n = found, .bytes = bytes, .levels = levels};
}

static void test_dense_golden_bytes(void **state)
{
    /* Two samples of five: 0, 0.5, 0, 0, 1 and 0, 0, 0, 0, 0.5. Levels 0, 0.5, 1; bits 2, 10, 200.
     */
    static const float numbers[] = {0, 0.5F, 0, 0, 1, 0, 0, 0, 0, 0.5F};
    static const unsigned char want[] = {5, 0, 0, 0, 3, 0, 0, 0,    0, 0, 0,    0,    0, 0, 0, 0,
                                         0, 0, 0, 0, 0, 0, 0, 0x3f, 0, 0, 0x80, 0x3f, 0, 0, 0, 0,
                                         0, 1, 0, 0, 2, 0, 0, 0,    0, 1, 0,    0,    0, 0, 0, 0};
    uint8_t bytes[10];
    float levels[DRPS_DENSE_LEVELS];
    unsigned char out[256];
    (void)state;
    const struct drps_dense d = of_floats(numbers, 5, 10, bytes, levels);
    assert_int_equal(d.levels_n, 3);
    assert_int_equal(drps_dense_plain_bytes(&d, 10), sizeof(want));
    assert_int_equal(drps_dense_packed_bytes(&d, 10), sizeof(want));
    assert_int_equal(drps_dense_pack(&d, 10, out), sizeof(want)); /* as they are: not smaller */
    assert_memory_equal(out, want, sizeof(want));
}

static void test_dense_golden_bytes_without_zeros(void **state)
{
    /* Two samples of 20 floats, of which numbers 1 and 33 are not 0. */
    static const unsigned char want[] = {20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,    0, 0, 0,    0,
                                         2,  0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0xc0, 0xbf};
    float numbers[40] = {0};
    unsigned char out[512];
    const struct drps_dense d = {.each = 20, .floats = numbers};
    (void)state;
    numbers[1] = 2;
    numbers[33] = -1.5F;
    assert_int_equal(drps_dense_pack(&d, 40, out), sizeof(want));
    assert_memory_equal(out, want, sizeof(want));
}

/* n numbers of so many levels, of which a share is 0. */
static void fill(float *numbers, size_t n, unsigned levels, unsigned zeros, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t r = drps_rng_at(seed, i);
        numbers[i] = r % 10 < zeros ? 0 : (float)(r >> 8 & 0xffff) / 7;
        if (levels && numbers[i] > 0) numbers[i] = (float)(1 + r % levels) / 255;
    }
}

static void check_comes_back(const float *numbers, uint32_t each, size_t samples)
{
    const size_t n = each * samples;
    uint8_t *bytes = malloc(n + 1);
    float levels[DRPS_DENSE_LEVELS], *back = malloc((n + 1) * sizeof(*back));
    const struct drps_dense d = of_floats(numbers, each, n, bytes, levels);
    const size_t plain = drps_dense_plain_bytes(&d, n), packed = drps_dense_packed_bytes(&d, n);
    const size_t least = packed < plain ? packed : plain;
    unsigned char *out = malloc(least), *room = malloc(plain); /* sanitizers see one byte too far */
    struct drps_dense again;
    size_t used, unpacked;
    assert_true(bytes && back && out && room);
    assert_true(plain <= drps_dense_bound(n) && packed <= drps_dense_bound(n));
    assert_int_equal(drps_dense_pack(&d, n, out), least);
    assert_int_equal(drps_dense_unpack(out, least, samples, room, plain, &used, &unpacked), 1);
    assert_int_equal(used, least);
    assert_int_equal(unpacked, plain);
    assert_int_equal(drps_dense_decode(room, plain, samples, 0, &again), plain);
    assert_int_equal(again.each, each);
    drps_dense_floats(&again, 0, n, back);
    assert_memory_equal(back, numbers, n * sizeof(*back));
    for (size_t i = 0; i < n; i++)
        assert_true(drps_dense_number(&again, i) == numbers[i]);
    for (size_t less = 0; less < plain; less++)
        assert_int_equal(drps_dense_unpack(out, least, samples, room, less, &used, &unpacked), -1);
    for (size_t less = 0; less < least; less += 3)
        assert_int_equal(drps_dense_unpack(out, less, samples, room, plain, &used, &unpacked), 0);
    free(bytes);
    free(back);
    free(out);
    free(room);
}

static void test_dense_numbers_come_back(void **state)
{
    static const uint32_t each[] = {1, 3, 8, 9, 64, 100};
    static const unsigned levels[] = {1, 2, 255, 256, 300, 0};
    float numbers[700];
    (void)state;
    for (size_t e = 0; e < sizeof(each) / sizeof(*each); e++)
        for (size_t l = 0; l < sizeof(levels) / sizeof(*levels); l++)
            for (unsigned zeros = 0; zeros <= 10; zeros += 2)
                for (size_t samples = 1; samples <= 7; samples += 3) {
                    fill(numbers, each[e] * samples, levels[l], zeros, e + 10 * l + 100 * zeros);
                    check_comes_back(numbers, each[e], samples);
                }
}

static void test_dense_counts_levels(void **state)
{
    float numbers[300], levels[DRPS_DENSE_LEVELS];
    uint8_t bytes[300];
    (void)state;
    for (size_t i = 0; i < 300; i++)
        numbers[i] = (float)(i % 255) + 1;
    numbers[7] = 0;
    assert_int_equal(drps_dense_levels(numbers, 300, bytes, levels), 256); /* 255 and 0 */
    for (size_t i = 0; i < 300; i++)
        assert_true(levels[bytes[i]] == numbers[i]);
    numbers[299] = 1000;
    assert_int_equal(drps_dense_levels(numbers, 300, bytes, levels), 0);
    assert_int_equal(drps_dense_levels(numbers, 299, bytes, levels), 256);
    assert_int_equal(drps_dense_levels(numbers, 0, bytes, levels), 1);
}

static void test_dense_one_sample(void **state)
{
    float numbers[500], back[501];
    uint8_t levels[500];
    unsigned char *out = malloc((size_t)drps_dense_bound(500));
    (void)state;
    assert_non_null(out);
    for (unsigned zeros = 0; zeros <= 10; zeros++)
        for (unsigned n = 0; n <= 300; n += 100)
            for (uint32_t each = 1; each <= 500; each += 83) {
                fill(numbers, each, n, zeros, zeros + n);
                const size_t bytes = drps_dense_pack_floats(numbers, each, levels, out);
                assert_int_equal(bytes % 8, 0);
                back[each] = 99;
                assert_int_equal(drps_dense_unpack_floats(out, bytes, each, back), 1);
                assert_memory_equal(back, numbers, each * sizeof(*back));
                assert_true(back[each] == 99);
                assert_int_equal(drps_dense_unpack_floats(out, bytes, each + 1, back), 0);
                assert_int_equal(drps_dense_unpack_floats(out, bytes - 8, each, back), 0);
                assert_int_equal(drps_dense_unpack_floats(out, bytes + 8, each, back), 0);
            }
    free(out);
}

/* Bits behind the last number would say of numbers that there are not. */
static void test_dense_bits_end_with_the_numbers(void **state)
{
    for (uint32_t each = 1; each <= 70; each++)
        for (uint32_t bit = each; bit < each + 64 && bit / 64 == (each - 1) / 64; bit++)
            for (int levels = 0; levels < 2; levels++) {
                float numbers[70] = {0}, list[DRPS_DENSE_LEVELS], back[70];
                uint8_t bytes[70];
                unsigned char out[1024], *room;
                size_t used, plain;
                (void)state;
                const struct drps_dense d = of_floats(numbers, each, each, bytes, list);
                const struct drps_dense floats = {.each = each, .floats = numbers};
                size_t n = drps_dense_pack(levels ? &d : &floats, each, out);
                if (out[8] == 0) continue; /* zeros are not left out */
                const size_t front = DRPS_DENSE_HEAD + (levels ? 8 : 0);
                out[front + bit / 8] = (unsigned char)(out[front + bit / 8] | 1 << bit % 8);
                memset(out + n, 0, 8); /* the number that it would have */
                n += 8;
                room = malloc(drps_dense_plain_bytes(levels ? &d : &floats, each));
                assert_non_null(room);
                assert_int_equal(
                    drps_dense_unpack(out, n, 1, room,
                                      drps_dense_plain_bytes(levels ? &d : &floats, each), &used,
                                      &plain),
                    0);
                assert_int_equal(drps_dense_unpack_floats(out, n, each, back), 0);
                free(room);
            }
}

static void test_dense_damaged_are_refused(void **state)
{
    static const struct {
        const char *name;
        size_t at;
        unsigned char byte;
    } cases[] = {
        {"no numbers", 0, 0},
        {"many more numbers", 0, 200},
        {"too many numbers", 3, 9},
        {"257 levels", 5, 1},
        {"no levels", 4, 0},
        {"left out twice", 8, 2},
        {"not left out", 8, 0},
        {"what must be 0", 12, 1},
        {"a first level that is not 0", 19, 0x3f},
        {"many bits more", 33, 0xff},
        {"a bit behind the last number", 37, 1},
        {"padding of bits", 39, 1},
        {"a number of no level", 40, 3},
    };
    float numbers[40] = {0}, levels[DRPS_DENSE_LEVELS];
    uint8_t bytes[40];
    unsigned char out[256];
    _Alignas(8) unsigned char room[ROOM];
    size_t used, plain;
    (void)state;
    numbers[1] = 2;
    numbers[33] = -1.5F;
    const struct drps_dense d = of_floats(numbers, 20, 40, bytes, levels);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const size_t n = drps_dense_pack(&d, 40, out);
        out[cases[i].at] = cases[i].byte;
        const int taken = drps_dense_unpack(out, n, 2, room, sizeof(room), &used, &plain);
        if (taken == 1 && used == n) fail_msg("%s is taken", cases[i].name);
        if (drps_dense_unpack_floats(out, n, 20, numbers)) fail_msg("%s is one", cases[i].name);
        memset(numbers, 0, sizeof(numbers));
        numbers[1] = 2;
        numbers[33] = -1.5F;
    }
    const size_t n = drps_dense_pack(&d, 40, out);
    assert_int_equal(drps_dense_unpack(out, n, UINT64_MAX, room, sizeof(room), &used, &plain), 0);
    assert_int_equal(drps_dense_unpack(out, n, UINT32_MAX, room, sizeof(room), &used, &plain), -1);
    struct drps_dense again;
    assert_int_equal(drps_dense_decode(out, n, 2, 0, &again), 0); /* zeros are left out */
    assert_int_equal(drps_dense_unpack(out, n, 2, room, sizeof(room), &used, &plain), 1);
    room[plain - 40] = 3;
    assert_int_equal(drps_dense_decode(room, plain, 2, 0, &again), 0); /* of no level */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense_golden_bytes),
        cmocka_unit_test(test_dense_golden_bytes_without_zeros),
        cmocka_unit_test(test_dense_numbers_come_back),
        cmocka_unit_test(test_dense_counts_levels),
        cmocka_unit_test(test_dense_one_sample),
        cmocka_unit_test(test_dense_bits_end_with_the_numbers),
        cmocka_unit_test(test_dense_damaged_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
