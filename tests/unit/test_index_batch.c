/* Batch bodies: exact bytes, every shape comes back, and each damaged field is refused. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_endian.h"
#include "index/drps_batch.h"
#include "support/scratch.h"

/* The pieces in one buffer; free() it. */
static unsigned char *flatten(const struct drps_batch *b, size_t *bytes_out)
{
    struct drps_batch_pieces p;
    size_t at = 0;
    drps_batch_encode(b, &p);
    assert_true(p.n <= DRPS_BATCH_PIECES);
    *bytes_out = 0;
    for (size_t i = 0; i < p.n; i++)
        *bytes_out += p.pieces[i].bytes;
    unsigned char *data = malloc(*bytes_out);
    assert_non_null(data);
    for (size_t i = 0; i < p.n; i++) {
        if (p.pieces[i].bytes) memcpy(data + at, p.pieces[i].data, p.pieces[i].bytes);
        at += p.pieces[i].bytes;
    }
    return data;
}

static const float labels[] = {1.0f, -1.0f};
static const uint32_t starts[] = {0, 1, 3};
static const uint16_t local[] = {4, 0, 2};
static const float values[] = {0.5f, 1.0f, 2.0f};
static const struct drps_batch small = {.samples = 2,
                                        .rows = 5,
                                        .nnz = 3,
                                        .labels = labels,
                                        .starts = starts,
                                        .local16 = local,
                                        .values = values};

/* From the layout in drps_batch.h; floats by IEEE 754. */
static void test_batch_golden_bytes(void **state)
{
    static const unsigned char want[] = {
        2, 0, 0,    0,    5, 0, 0,    0,
        3, 0, 0,    0,    0, 0, 0,    0, /* samples, rows, nnz */
        2, 0, 0,    0,    0, 0, 0,    0,
        0, 0, 0,    0,    0, 0, 0,    0,    /* flags: values; per_sample; zero */
        0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xbf, /* labels 1, -1 */
        0, 0, 0,    0,    1, 0, 0,    0,
        3, 0, 0,    0,    0, 0, 0,    0, /* starts, padded */
        0, 0, 0,    0x3f, 0, 0, 0x80, 0x3f,
        0, 0, 0,    0x40, 0, 0, 0,    0, /* values 0.5 1 2, padded */
        4, 0, 0,    0,    2, 0, 0,    0, /* local indices, padded */
    };
    size_t bytes;
    unsigned char *data = flatten(&small, &bytes);
    (void)state;
    assert_int_equal(bytes, sizeof(want));
    assert_memory_equal(data, want, sizeof(want));
    free(data);
}

static void test_batch_every_shape_comes_back(void **state)
{
    static const struct {
        const char *name;
        size_t samples, per_sample, rows;
    } cases[] = {
        {"one sample", 1, 1, 1},           {"samples without entries", 7, 0, 1},
        {"nothing at all", 0, 0, 0},       {"many", 100, 13, 5000},
        {"most narrow rows", 3, 4, 65536}, {"wide", 5, 9, 65537},
        {"widest", 2, 2, UINT32_MAX},
    };
    struct random_source r = random_begin("batch");
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        for (int shape = 0; shape < 4; shape++) {
            struct drps_batch b = {.samples = cases[c].samples, .rows = cases[c].rows};
            struct drps_batch back;
            struct drps_err err = DRPS_ERR_INIT;
            float lab[100];
            float val[2000];
            uint32_t sta[101] = {0};
            uint32_t wide[2000];
            uint16_t narrow[2000];
            size_t bytes;
            for (size_t s = 0; s < b.samples; s++) {
                lab[s] = (float)s;
                size_t n = shape & 1 ? cases[c].per_sample
                                     : (size_t)random_below(&r, cases[c].per_sample + 2);
                if (!b.rows) n = 0;
                sta[s + 1] = sta[s] + (uint32_t)n;
            }
            b.nnz = sta[b.samples];
            for (size_t j = 0; j < b.nnz; j++) {
                val[j] = (float)j / 4;
                wide[j] = j ? (uint32_t)random_below(&r, b.rows) : (uint32_t)(b.rows - 1);
                narrow[j] = (uint16_t)wide[j];
            }
            b.labels = lab;
            if (shape & 1)
                b.per_sample = (uint32_t)cases[c].per_sample;
            else
                b.starts = sta;
            if (shape & 2) b.values = val;
            if (b.rows > 65536)
                b.local32 = wide;
            else
                b.local16 = narrow;
            unsigned char *data = flatten(&b, &bytes);
            assert_int_equal(bytes % 8, 0);
            if (drps_batch_decode(data, bytes, &back, &err))
                fail_msg("%s, shape %d: %s", cases[c].name, shape, err.text);
            assert_true(back.samples == b.samples && back.rows == b.rows && back.nnz == b.nnz);
            assert_true(!back.starts == !b.starts && !back.values == !b.values &&
                        !back.local32 == !b.local32);
            for (size_t s = 0; s <= b.samples; s++)
                assert_int_equal(drps_batch_start(&back, s), sta[s]);
            assert_memory_equal(back.labels, lab, b.samples * sizeof(*lab));
            if (b.values) assert_memory_equal(back.values, val, b.nnz * sizeof(*val));
            for (size_t j = 0; j < b.nnz; j++)
                assert_int_equal(back.local32 ? back.local32[j] : back.local16[j], wide[j]);
            free(data);
        }
    }
}

static void test_batch_damaged_fields_are_refused(void **state)
{
    static const struct {
        const char *name;
        size_t at, bytes;
        uint64_t value;
    } cases[] = {
        {"one sample more", 0, 4, 3},
        {"one sample less", 0, 4, 1},
        {"samples 2^32 - 1", 0, 4, UINT32_MAX},
        {"rows below an index", 4, 4, 4},
        {"no rows", 4, 4, 0},
        {"nnz 2^64 - 1", 8, 8, UINT64_MAX},
        {"nnz 2^63", 8, 8, (uint64_t)1 << 63},
        {"nnz 2^62 + 3", 8, 8, ((uint64_t)1 << 62) + 3},
        {"nnz one more", 8, 8, 4},
        {"nnz one less", 8, 8, 2},
        {"no values", 16, 4, 0},
        {"uniform", 16, 4, DRPS_BATCH_VALUES | DRPS_BATCH_UNIFORM},
        {"wide", 16, 4, DRPS_BATCH_VALUES | DRPS_BATCH_WIDE},
        {"a flag that is not known", 16, 4, DRPS_BATCH_VALUES | 8},
        {"reserved bytes", 24, 8, 1},
        {"first start not 0", 40, 4, 1},
        {"starts going back", 44, 4, 4},
        {"last start not nnz", 48, 4, 2},
        {"index out of range", 72, 2, 5},
        {"last index out of range", 76, 2, 65535},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_batch b;
        struct drps_err err = DRPS_ERR_INIT;
        size_t bytes;
        unsigned char *data = flatten(&small, &bytes);
        memcpy(data + cases[i].at, &cases[i].value, cases[i].bytes);
        int rc = drps_batch_decode(data, bytes, &b, &err);
        if (rc != DRPS_E_CORRUPT || !err.text[0]) fail_msg("%s: found %d", cases[i].name, rc);
        free(data);
    }
}

static void test_batch_uniform_counts_must_agree(void **state)
{
    static const uint32_t per_sample[] = {0, 1, 3, UINT32_MAX};
    struct drps_batch b = {.samples = 2,
                           .rows = 5,
                           .nnz = 4,
                           .labels = labels,
                           .per_sample = 2,
                           .local16 = (const uint16_t[]){0, 1, 2, 3}};
    struct drps_batch back;
    size_t bytes;
    unsigned char *data = flatten(&b, &bytes);
    (void)state;
    assert_int_equal(drps_batch_decode(data, bytes, &back, NULL), 0);
    for (size_t i = 0; i < 4; i++) {
        drps_put_u32(data + 20, per_sample[i]);
        assert_int_equal(drps_batch_decode(data, bytes, &back, NULL), DRPS_E_CORRUPT);
    }
    free(data);
}

static void test_batch_any_other_length_is_refused(void **state)
{
    struct drps_batch b;
    size_t bytes;
    unsigned char *data = flatten(&small, &bytes);
    (void)state;
    for (size_t n = 0; n < bytes; n++) {
        unsigned char *exact = malloc(n + 1);
        assert_non_null(exact);
        memcpy(exact, data, n);
        if (drps_batch_decode(exact, n, &b, NULL) != DRPS_E_CORRUPT)
            fail_msg("%zu of %zu bytes passed", n, bytes);
        free(exact);
    }
    unsigned char *longer = calloc(1, bytes + 8);
    assert_non_null(longer);
    memcpy(longer, data, bytes);
    assert_int_equal(drps_batch_decode(longer, bytes + 8, &b, NULL), DRPS_E_CORRUPT);
    free(longer);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_golden_bytes),
        cmocka_unit_test(test_batch_every_shape_comes_back),
        cmocka_unit_test(test_batch_damaged_fields_are_refused),
        cmocka_unit_test(test_batch_uniform_counts_must_agree),
        cmocka_unit_test(test_batch_any_other_length_is_refused),
    };
    return cmocka_run_group_tests_name("index_batch", tests, NULL, NULL);
}
