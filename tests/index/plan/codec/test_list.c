/* Packed lists: exact bytes, round trips, and malformed records that must not lead outside of
 * themselves. */
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
#include "index/plan/codec/list_internal.h"
#include "index/plan/drps_batch.h"
#include "support/scratch.h"

/* The bytes follow from the layout in drps_batch.h: count, two bits a length, gaps minus 1, three
 * zeros. */
static void test_list_golden_bytes(void **state)
{
    static const struct {
        const char *name;
        int gaps; /* else plain numbers */
        uint32_t n, list[6];
        const char *bytes;
        size_t bytes_n;
    } cases[] = {
        {.name = "empty",
         .gaps = 1,
         .n = 0,
         .list = {0},
         .bytes = "\0\0\0\0"
                  "\0\0\0",
         .bytes_n = 7},
        {.name = "zero",
         .gaps = 1,
         .n = 1,
         .list = {0},
         .bytes = "\1\0\0\0"
                  "\0"
                  "\0"
                  "\0\0\0",
         .bytes_n = 9},
        {.name = "one of each length",
         .gaps = 1,
         .n = 4,
         .list = {5, 300, 70000, 20000000},
         .bytes = "\4\0\0\0"
                  "\344"
                  "\5"
                  "\46\1"
                  "\103\20\1"
                  "\217\33\60\1"
                  "\0\0\0",
         .bytes_n = 18},
        {.name = "neighbours take zeros",
         .gaps = 1,
         .n = 5,
         .list = {7, 8, 9, 10, 11},
         .bytes = "\5\0\0\0"
                  "\0\0"
                  "\7\0\0\0\0"
                  "\0\0\0",
         .bytes_n = 14},
        {.name = "the largest",
         .gaps = 1,
         .n = 2,
         .list = {0, UINT32_MAX},
         .bytes = "\2\0\0\0"
                  "\14"
                  "\0"
                  "\376\377\377\377"
                  "\0\0\0",
         .bytes_n = 13},
        {.name = "numbers in any order",
         .gaps = 0,
         .n = 3,
         .list = {256, 1, 65536},
         .bytes = "\3\0\0\0"
                  "\41"
                  "\0\1"
                  "\1"
                  "\0\0\1"
                  "\0\0\0",
         .bytes_n = 14},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned char out[64];
        uint32_t back[6] = {0};
        size_t used = 0;
        size_t n = cases[i].gaps ? drps_list_encode(cases[i].list, cases[i].n, out)
                                 : drps_numbers_encode(cases[i].list, cases[i].n, out);
        if (n != cases[i].bytes_n || memcmp(out, cases[i].bytes, n) != 0) {
            for (size_t k = 0; k < n; k++)
                print_error("%02x ", out[k]);
            fail_msg("%s: %zu bytes, expected %zu", cases[i].name, n, cases[i].bytes_n);
        }
        assert_true(n <= drps_list_encode_bound(cases[i].n));
        assert_int_equal(drps_list_count(out), cases[i].n);
        int rc = cases[i].gaps ? drps_list_decode(out, n, back, &used, NULL)
                               : drps_numbers_decode(out, n, back, &used, NULL);
        assert_int_equal(rc, 0);
        assert_int_equal(used, n);
        assert_memory_equal(back, cases[i].list, cases[i].n * sizeof(*back));
    }
}

static uint32_t random_number(struct random_source *r)
{
    return (uint32_t)(random_u64(r) >> (32 + random_below(r, 32)));
}

/* Sorted and without repeats; returns the new length. */
static size_t make_increasing(uint32_t *list, size_t n)
{
    uint32_t *aux = malloc(n * sizeof(*aux) + 1);
    size_t kept = 0;
    assert_non_null(aux);
    drps_sort_u32(list, aux, n);
    free(aux);
    for (size_t i = 0; i < n; i++)
        if (!kept || list[i] != list[kept - 1]) list[kept++] = list[i];
    return kept;
}

static void test_list_random_round_trips(void **state)
{
    enum { MOST = 3000 };
    struct random_source r = random_begin("list");
    (void)state;
    for (int round = 0; round < 400; round++) {
        size_t n = (size_t)random_below(&r, round % 2 ? MOST : 20);
        uint32_t list[MOST];
        uint32_t back[MOST];
        for (size_t i = 0; i < n; i++)
            list[i] = random_number(&r);
        for (int gaps = 0; gaps < 2; gaps++) {
            size_t used = 0;
            if (gaps) n = make_increasing(list, n);
            unsigned char *out = malloc(drps_list_encode_bound(n));
            assert_non_null(out);
            size_t bytes =
                gaps ? drps_list_encode(list, n, out) : drps_numbers_encode(list, n, out);
            unsigned char *exact = malloc(bytes); /* a read beyond it is seen by the sanitizer */
            assert_non_null(exact);
            memcpy(exact, out, bytes);
            int rc = gaps ? drps_list_decode(exact, bytes, back, &used, NULL)
                          : drps_numbers_decode(exact, bytes, back, &used, NULL);
            if (rc || used != bytes || memcmp(list, back, n * sizeof(*list)) != 0)
                fail_msg("round %d, %zu numbers, gaps %d: %d, %zu of %zu bytes", round, n, gaps, rc,
                         used, bytes);
            free(exact);
            free(out);
        }
    }
}

/* Every cut is refused; a longer record tells how much of it was the list. */
static void test_list_cut_records_are_refused(void **state)
{
    static const uint32_t list[] = {1, 2, 300, 70000, 20000000, 20000001, 4000000000u};
    enum { N = sizeof(list) / sizeof(list[0]) };
    unsigned char out[100] = {0};
    uint32_t back[N];
    size_t n = drps_list_encode(list, N, out);
    size_t used;
    (void)state;
    for (size_t cut = 0; cut < n; cut++) {
        struct drps_err err = DRPS_ERR_INIT;
        unsigned char *exact = malloc(cut + 1);
        assert_non_null(exact);
        memcpy(exact, out, cut);
        int rc = drps_list_decode(exact, cut, back, &used, &err);
        if (rc != DRPS_E_CORRUPT || used != 0)
            fail_msg("cut to %zu bytes: %d, used %zu", cut, rc, used);
        free(exact);
    }
    assert_int_equal(drps_list_decode(out, sizeof(out), back, &used, NULL), 0);
    assert_int_equal(used, n);
}

/* Records with a huge count or lengths that outgrow them: refused without a look at list_out. */
static void test_list_impossible_counts_are_refused(void **state)
{
    static const uint32_t counts[] = {8, 1000, 0x7fffffff, UINT32_MAX};
    unsigned char record[16];
    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        memset(record, 0xff, sizeof(record));
        memcpy(record, &counts[i], 4);
        assert_int_equal(drps_list_decode(record, sizeof(record), NULL, NULL, NULL),
                         DRPS_E_CORRUPT);
        assert_int_equal(drps_numbers_decode(record, sizeof(record), NULL, NULL, NULL),
                         DRPS_E_CORRUPT);
    }
}

/* Only lists can be dense: whoever counts numbers without the mark must not get more. */
static void test_list_numbers_are_never_dense(void **state)
{
    uint32_t numbers[4] = {1, 2, 3, 4}, back[4];
    unsigned char record[64];
    (void)state;
    const size_t bytes = drps_numbers_encode(numbers, 4, record);
    assert_int_equal(drps_numbers_decode(record, bytes, back, NULL, NULL), 0);
    record[3] |= 0x80;
    assert_int_equal(drps_list_count(record), 4);
    assert_int_equal(drps_numbers_decode(record, bytes, back, NULL, NULL), DRPS_E_CORRUPT);
}

/* Gaps whose sum leaves 32 bits: in a group of four, between groups, in the rest, and after the
 * largest number. */
static void test_list_numbers_beyond_32_bits_are_refused(void **state)
{
    static const struct {
        const char *name;
        size_t n;
        uint32_t gaps[8];
    } cases[] = {
        {"within a group", 4, {5, UINT32_MAX, 0, 0}},
        {"at the end of a group", 4, {UINT32_MAX - 2, 0, 0, 0}},
        {"between groups", 8, {UINT32_MAX - 3, 0, 0, 0, 0, 0, 0, 0}},
        {"between groups, far", 8, {UINT32_MAX - 3, 0, 0, 0, UINT32_MAX, 7, 7, 7}},
        {"in the rest", 2, {UINT32_MAX - 1, 1}},
        {"after the largest, in the rest", 2, {UINT32_MAX, 0}},
        {"after the largest, rest after a group", 5, {UINT32_MAX - 3, 0, 0, 0, 0}},
        {"several times around", 8, {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, 1, 1, 1, 1}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        unsigned char out[100];
        uint32_t back[8];
        size_t n = drps_numbers_encode(cases[i].gaps, cases[i].n, out);
        int rc = drps_list_decode(out, n, back, NULL, &err);
        if (rc != DRPS_E_CORRUPT) fail_msg("%s: found %d", cases[i].name, rc);
        assert_non_null(strstr(err.text, "32 bits"));
    }
}

/* Any bytes: an error, or an increasing list. */
static void test_list_random_bytes_are_safe(void **state)
{
    struct random_source r = random_begin("list bytes");
    (void)state;
    for (int round = 0; round < 20000; round++) {
        size_t bytes = (size_t)random_below(&r, 60);
        unsigned char *record = malloc(bytes + 1);
        uint32_t list[64];
        assert_non_null(record);
        for (size_t i = 0; i < bytes; i++)
            record[i] = (unsigned char)random_u64(&r);
        uint32_t n = (uint32_t)random_below(&r, 20);
        if (bytes >= 4) memcpy(record, &n, 4);
        unsigned char *exact = realloc(record, bytes ? bytes : 1);
        assert_non_null(exact);
        if (drps_list_decode(exact, bytes, list, NULL, NULL) == 0)
            for (uint32_t i = 1; i < n; i++)
                if (list[i] <= list[i - 1]) fail_msg("round %d: not increasing at %u", round, i);
        int rc = drps_numbers_decode(exact, bytes, list, NULL, NULL); /* for the sanitizer */
        assert_true(rc == 0 || rc == DRPS_E_CORRUPT);
        free(exact);
    }
}

/* With and without vectors: the same numbers, codes and bytes used, whatever follows the record. */
static void test_list_equals_reference(void **state)
{
    struct random_source r = random_begin("list reference");
    (void)state;
    for (int round = 0; round < 4000; round++) {
        uint32_t n = (uint32_t)random_below(&r, 70), list[70], want[70], found[70];
        unsigned char out[70 * 5 + 16];
        int gaps = round % 2;
        unsigned most = 1 + (unsigned)random_below(&r, 32);
        for (uint32_t i = 0; i < n; i++)
            list[i] = (uint32_t)(random_u64(&r) >> (64 - 1 - random_below(&r, most)));
        size_t bytes = drps_numbers_encode(list, n, out); /* as gaps they may leave 32 bits */
        bytes += (size_t)random_below(&r, 20) * (round % 3 == 0);
        if (bytes > sizeof(out)) bytes = sizeof(out);
        unsigned char *exact = malloc(bytes);
        assert_non_null(exact);
        memcpy(exact, out, bytes);
        size_t used[2] = {0, 0};
        int a = gaps ? drps_list_decode(exact, bytes, found, &used[0], NULL)
                     : drps_numbers_decode(exact, bytes, found, &used[0], NULL);
        int b = gaps ? drps_list_decode_ref(exact, bytes, want, &used[1], NULL)
                     : drps_numbers_decode_ref(exact, bytes, want, &used[1], NULL);
        if (a != b || used[0] != used[1] || (a == 0 && memcmp(found, want, n * sizeof(*want)) != 0))
            fail_msg("round %d: %u numbers, %d and %d", round, n, a, b);
        free(exact);
    }
}

/* A wrap in each lane, by the smallest and the largest gap that does it. */
static void test_list_wraps_in_any_lane_are_refused(void **state)
{
    (void)state;
    for (uint32_t lane = 1; lane < 24; lane++) {
        for (int largest = 0; largest < 2; largest++) {
            uint32_t gaps[24] = {0}, back[24];
            unsigned char out[24 * 5 + 16];
            gaps[0] = UINT32_MAX - 1000;
            gaps[lane] = largest ? UINT32_MAX : 1000 - lane + 1;
            size_t n = drps_numbers_encode(gaps, 24, out);
            assert_int_equal(drps_list_decode(out, n, back, NULL, NULL), DRPS_E_CORRUPT);
            if (largest) continue;
            gaps[lane] -= 24 - lane; /* the last number is UINT32_MAX */
            n = drps_numbers_encode(gaps, 24, out);
            assert_int_equal(drps_list_decode(out, n, back, NULL, NULL), 0);
            assert_int_equal(back[23], UINT32_MAX);
        }
    }
}

/* ---- Dense lists ---- */

/* Nine numbers: gaps of at most 3 bits, 5 5 0 ..., and one of 10 bits. */
static void test_list_dense_golden_bytes(void **state)
{
    static const uint32_t list[] = {5, 11, 12, 13, 14, 15, 16, 17, 1018};
    static const unsigned char want[] = {9,    0,    0, 0x80, /* dense */
                                         0x93, 0x2d, 0, 0,    /* codes 3 and 9; gaps 5, 5, 0 ... */
                                         0xe8, 3,    0, 0,    0, 0, 0, 0, 0, 0}; /* 1000 */
    unsigned char out[200];
    uint32_t back[9];
    size_t used;
    (void)state;
    assert_true(drps_list_encode_bound(9) <= sizeof(out));
    assert_int_equal(drps_list_encode_dense(list, 9, out), sizeof(want));
    assert_memory_equal(out, want, sizeof(want));
    assert_int_equal(drps_list_count(out), 9);
    assert_int_equal(drps_list_decode(out, sizeof(want), back, &used, NULL), 0);
    assert_int_equal(used, sizeof(want));
    assert_memory_equal(back, list, sizeof(list));
}

static void check_dense(const uint32_t *list, size_t n)
{
    uint32_t *back = malloc(n * sizeof(*back) + 1);
    unsigned char *out = malloc(drps_list_encode_bound(n));
    size_t used;
    assert_true(back && out);
    const size_t bytes = drps_list_encode_dense(list, n, out);
    assert_true(bytes <= drps_list_encode_bound(n));
    unsigned char *exact = malloc(bytes); /* a read beyond it is seen by the sanitizer */
    assert_non_null(exact);
    memcpy(exact, out, bytes);
    assert_int_equal(drps_list_encode_dense_ref(list, n, out), bytes);
    assert_memory_equal(out, exact, bytes);
    assert_int_equal(drps_list_decode(exact, bytes, back, &used, NULL), 0);
    assert_int_equal(used, bytes);
    assert_memory_equal(back, list, n * sizeof(*list));
    memset(back, 0, n * sizeof(*back));
    assert_int_equal(drps_list_decode_ref(exact, bytes, back, &used, NULL), 0);
    assert_memory_equal(back, list, n * sizeof(*list));
    if (n) {
        assert_int_equal(drps_list_decode(exact, bytes - 1, back, &used, NULL), DRPS_E_CORRUPT);
        assert_int_equal(used, 0);
    }
    free(exact);
    free(out);
    free(back);
}

/* Gaps of every number of bits, alone and mixed, with and without a rest. */
static void test_list_dense_round_trips(void **state)
{
    enum { MOST = 500 };
    struct random_source r = random_begin("dense");
    uint32_t list[MOST];
    (void)state;
    for (unsigned bits = 0; bits < 23; bits++) /* 500 gaps of these stay within 32 bits */
        for (size_t n = 0; n < MOST; n += n < 20 ? 1 : 37) {
            uint64_t next = 0;
            for (size_t i = 0; i < n; i++) {
                const unsigned width = n % 2 ? bits : (unsigned)random_below(&r, bits + 1);
                next += random_below(&r, (uint64_t)1 << width);
                list[i] = (uint32_t)next++;
            }
            check_dense(list, n);
        }
    for (size_t n = 0; n <= 17; n++) { /* the widest there are: more bytes than a plain list has */
        for (size_t i = 0; i < n; i++)
            list[i] = (uint32_t)i << 27 | 1 << 26;
        check_dense(list, n);
    }
    for (int round = 0; round < 200; round++) {
        const size_t n = (size_t)random_below(&r, MOST);
        for (size_t i = 0; i < n; i++)
            list[i] = random_number(&r);
        check_dense(list, make_increasing(list, n));
    }
}

/* Any bytes: an error, or an increasing list, and the same without vectors. */
static void test_list_dense_random_bytes_are_safe(void **state)
{
    struct random_source r = random_begin("dense bytes");
    int good = 0, wraps = 0;
    (void)state;
    for (int round = 0; round < 30000; round++) {
        const size_t bytes = 4 + (size_t)random_below(&r, 300);
        const uint32_t n = (uint32_t)random_below(&r, 120), head = n | DRPS_LIST_DENSE;
        unsigned char *record = malloc(bytes);
        uint32_t list[120], want[120];
        struct drps_err err = DRPS_ERR_INIT;
        assert_non_null(record);
        for (size_t i = 0; i < bytes; i++) /* mostly widths that fit */
            record[i] = (unsigned char)(random_u64(&r) & (i < 12 && round % 4 ? 0xbb : 0xff));
        memcpy(record, &head, 4);
        const int rc = drps_list_decode(record, bytes, list, NULL, &err);
        assert_int_equal(drps_list_decode_ref(record, bytes, want, NULL, NULL), rc);
        assert_true(rc == 0 || rc == DRPS_E_CORRUPT);
        if (rc == 0) assert_memory_equal(list, want, n * sizeof(*list));
        for (uint32_t i = 1; rc == 0 && i < n; i++)
            assert_true(list[i] > list[i - 1]);
        good += rc == 0;
        wraps += rc < 0 && strstr(err.text, "32 bits") != NULL;
        free(record);
    }
    assert_true(good > 1000 && wraps > 10);
}

/* A step out of 32 bits in any lane of a vector, and one that ends at the largest number. */
static void test_list_dense_wraps_are_refused(void **state)
{
    (void)state;
    for (size_t lane = 8; lane < 32; lane++) { /* the first block is not a vector's */
        uint32_t list[32], back[32];
        unsigned char out[300];
        for (size_t i = 0; i < 32; i++)
            list[i] = UINT32_MAX - 131 - 32 + (uint32_t)i + (i >= lane ? 100 : 0);
        size_t n = drps_list_encode_dense(list, 32, out);
        assert_int_equal(drps_list_decode(out, n, back, NULL, NULL), 0);
        uint32_t first = UINT32_MAX - (list[31] - list[0]); /* its block has gaps of 32 bits */
        memcpy(out + 6, &first, sizeof(first));
        assert_int_equal(drps_list_decode(out, n, back, NULL, NULL), 0);
        assert_int_equal(back[31], UINT32_MAX);
        first = UINT32_MAX - (list[lane] - list[0]) + 1;
        memcpy(out + 6, &first, sizeof(first));
        assert_int_equal(drps_list_decode(out, n, back, NULL, NULL), DRPS_E_CORRUPT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_golden_bytes),
        cmocka_unit_test(test_list_dense_golden_bytes),
        cmocka_unit_test(test_list_dense_round_trips),
        cmocka_unit_test(test_list_dense_random_bytes_are_safe),
        cmocka_unit_test(test_list_dense_wraps_are_refused),
        cmocka_unit_test(test_list_random_round_trips),
        cmocka_unit_test(test_list_cut_records_are_refused),
        cmocka_unit_test(test_list_impossible_counts_are_refused),
        cmocka_unit_test(test_list_numbers_are_never_dense),
        cmocka_unit_test(test_list_numbers_beyond_32_bits_are_refused),
        cmocka_unit_test(test_list_random_bytes_are_safe),
        cmocka_unit_test(test_list_equals_reference),
        cmocka_unit_test(test_list_wraps_in_any_lane_are_refused),
    };
    return cmocka_run_group_tests_name("list", tests, NULL, NULL);
}
