/* Batch bodies: exact bytes, every shape comes back, and each damaged field is refused. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_endian.h"
#include "index/plan/codec/drps_pack16.h"
#include "index/plan/drps_batch.h"
#include "support/scratch.h"

/* The pieces in one buffer; free() it. */
static unsigned char *join(const struct drps_batch_pieces *p, size_t *bytes_out)
{
    size_t at = 0;
    assert_true(p->n <= DRPS_BATCH_PIECES);
    *bytes_out = 0;
    for (size_t i = 0; i < p->n; i++)
        *bytes_out += p->pieces[i].bytes;
    unsigned char *data = malloc(*bytes_out);
    assert_non_null(data);
    for (size_t i = 0; i < p->n; i++) {
        if (p->pieces[i].bytes) memcpy(data + at, p->pieces[i].data, p->pieces[i].bytes);
        at += p->pieces[i].bytes;
    }
    return data;
}

static unsigned char *flatten(const struct drps_batch *b, size_t *bytes_out)
{
    struct drps_batch_pieces p;
    drps_batch_encode(b, &p);
    return join(&p, bytes_out);
}

static unsigned char *flatten_with(const struct drps_batch *b, int levels, size_t *bytes_out)
{
    struct drps_batch_pieces p;
    void *room = malloc(drps_batch_pack_bound(b, levels)); /* a sanitizer sees one byte too far */
    assert_non_null(room);
    drps_batch_pack(b, levels, room, &p);
    unsigned char *data = join(&p, bytes_out);
    free(room);
    return data;
}

static unsigned char *flatten_packed(const struct drps_batch *b, size_t *bytes_out)
{
    return flatten_with(b, 0, bytes_out);
}

/* Packed and unpacked, a body has the bytes of a plain one; nothing is written behind them, and no
 * less room will do. */
static void check_packed_with(const struct drps_batch *b, int levels, const unsigned char *plain,
                              size_t bytes)
{
    struct drps_err err = DRPS_ERR_INIT;
    size_t packed_bytes, got;
    unsigned char *packed = flatten_with(b, levels, &packed_bytes);
    unsigned char *room = malloc(bytes);
    struct drps_batch back;
    assert_non_null(room);
    assert_int_equal(packed_bytes % 8, 0);
    assert_int_equal(drps_batch_decode(packed, packed_bytes, &back, NULL), DRPS_E_CORRUPT);
    if (drps_batch_unpack(packed, packed_bytes, room, bytes, &got, &err)) fail_msg("%s", err.text);
    assert_int_equal(got, bytes);
    assert_memory_equal(room, plain, bytes);
    assert_int_equal(drps_batch_unpack(packed, packed_bytes, room, bytes - 1, &got, NULL),
                     DRPS_E_CORRUPT);
    if (drps_batch_unpack(plain, bytes, room, bytes, &got, &err)) fail_msg("%s", err.text);
    assert_int_equal(got, bytes); /* a plain one comes out as it is */
    assert_memory_equal(room, plain, bytes);
    free(room);
    free(packed);
}

static void check_packed(const struct drps_batch *b, const unsigned char *plain, size_t bytes)
{
    check_packed_with(b, 0, plain, bytes);
    check_packed_with(b, 1, plain, bytes);
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

/* The bytes follow from the layout in drps_batch.h, and floats from IEEE 754. */
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

/* The same with weights 2 and 0.5, which follow the labels. */
static void test_batch_golden_bytes_of_weights(void **state)
{
    static const unsigned char want[] = {0, 0, 0, 0x40, 0, 0, 0, 0x3f};
    enum { HEAD_AND_LABELS = DRPS_BATCH_HEAD_BYTES + 8, FLAGS_AT = 16 };
    struct drps_batch b = small;
    size_t bytes, plain_bytes;
    b.weights = (const float[]){2.0f, 0.5f};
    unsigned char *data = flatten(&b, &bytes), *plain = flatten(&small, &plain_bytes);
    (void)state;
    assert_int_equal(bytes, plain_bytes + sizeof(want));
    assert_int_equal(drps_get_u32(data + FLAGS_AT), DRPS_BATCH_VALUES | 1024);
    drps_put_u32(data + FLAGS_AT, DRPS_BATCH_VALUES);
    assert_memory_equal(data, plain, HEAD_AND_LABELS);
    assert_memory_equal(data + HEAD_AND_LABELS, want, sizeof(want));
    assert_memory_equal(data + HEAD_AND_LABELS + sizeof(want), plain + HEAD_AND_LABELS,
                        plain_bytes - HEAD_AND_LABELS);
    free(plain);
    free(data);
}

static void test_batch_weights_are_finite_and_above_zero(void **state)
{
    static const float bad[] = {0.0f, -0.0f, -1.0f, NAN, INFINITY};
    struct drps_batch b = small, back;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        size_t bytes;
        b.weights = (const float[]){1.0f, bad[i]};
        unsigned char *data = flatten(&b, &bytes);
        struct drps_err err = DRPS_ERR_INIT;
        const int rc = drps_batch_decode(data, bytes, &back, &err);
        if (rc != DRPS_E_CORRUPT || !strstr(err.text, "weight"))
            fail_msg("weight %g: found %d, %s", (double)bad[i], rc, err.text);
        assert_int_equal(drps_batch_decode_unpacked(data, bytes, &back, NULL), DRPS_E_CORRUPT);
        free(data);
    }
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
        for (int shape = 0; shape < 64; shape++) { /* with 32: of few values */
            struct drps_batch b = {.samples = cases[c].samples, .rows = cases[c].rows};
            struct drps_batch back;
            struct drps_err err = DRPS_ERR_INIT;
            float lab[100];
            float wei[100];
            float val[2000];
            uint32_t sta[101] = {0};
            uint32_t wide[2000];
            uint16_t narrow[2000], fields[2000];
            size_t bytes;
            b.field_count = shape & 4 ? (shape & 8 ? 256 : 257) : 0;
            for (size_t s = 0; s < b.samples; s++) {
                lab[s] = (float)s;
                wei[s] = 0.5f + (float)s;
                size_t n = shape & 1 ? cases[c].per_sample
                                     : (size_t)random_below(&r, cases[c].per_sample + 2);
                if (!b.rows) n = 0;
                sta[s + 1] = sta[s] + (uint32_t)n;
            }
            b.nnz = sta[b.samples];
            for (size_t j = 0; j < b.nnz; j++) {
                val[j] = (float)(shape & 32 ? j % (1 + c * 3) : j) / 4;
                wide[j] = j ? (uint32_t)random_below(&r, b.rows) : (uint32_t)(b.rows - 1);
                narrow[j] = (uint16_t)wide[j];
                fields[j] = (uint16_t)((shape & 8 ? wide[j] : j) % 256);
            }
            if (shape & 4) b.fields = fields;
            b.labels = lab;
            if (shape & 1)
                b.per_sample = (uint32_t)cases[c].per_sample;
            else
                b.starts = sta;
            if (shape & 2) b.values = val;
            if (shape & 16) b.weights = wei;
            if (b.rows > 65536)
                b.local32 = wide;
            else
                b.local16 = narrow;
            unsigned char *data = flatten(&b, &bytes);
            assert_int_equal(bytes % 8, 0);
            if (b.local16) check_packed(&b, data, bytes);
            if (drps_batch_decode(data, bytes, &back, &err))
                fail_msg("%s, shape %d: %s", cases[c].name, shape, err.text);
            assert_true(back.samples == b.samples && back.rows == b.rows && back.nnz == b.nnz);
            assert_true(!back.starts == !b.starts && !back.values == !b.values &&
                        !back.weights == !b.weights && !back.fields == !b.fields &&
                        !back.local32 == !b.local32);
            assert_int_equal(back.field_count, b.field_count);
            for (size_t s = 0; s <= b.samples; s++)
                assert_int_equal(drps_batch_start(&back, s), sta[s]);
            assert_memory_equal(back.labels, lab, b.samples * sizeof(*lab));
            if (b.weights) assert_memory_equal(back.weights, wei, b.samples * sizeof(*wei));
            if (b.values) assert_memory_equal(back.values, val, b.nnz * sizeof(*val));
            if (b.fields) assert_memory_equal(back.fields, fields, b.nnz * sizeof(*fields));
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
        {"packed", 16, 4, DRPS_BATCH_VALUES | DRPS_BATCH_PACKED},
        {"weights", 16, 4, DRPS_BATCH_VALUES | DRPS_BATCH_WEIGHTS},
        {"a flag that is not known", 16, 4, DRPS_BATCH_VALUES | 32},
        {"a lane of no stratum", 24, 8, (uint64_t)1 << 32},
        {"lane 16", 24, 8, (uint64_t)DRPS_BATCH_LANES << 32 | 1},
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

/* Two entries of row 2 and one of row 0; fields of rows in a byte each, which a row with two fields
 * cannot have, or in two bytes each. */
static void test_batch_fields_golden_bytes(void **state)
{
    static const uint16_t rows[] = {2, 0, 2}, one_each[] = {7, 1, 7}, two[] = {7, 1, 6};
    static const struct {
        const char *name;
        const uint16_t *fields;
        uint32_t count;
        unsigned char plain[16], packed[16]; /* head, and fields with padding */
    } cases[] = {
        {"of rows, narrow",
         one_each,
         8,
         {8, 0, 0, 0, 0, 0, 0, 0, 7, 0, 1, 0, 7, 0, 0, 0},
         {8, 0, 0, 0, 1, 0, 0, 0, 1, 0, 7, 0, 0, 0, 0, 0}},
        {"of rows, wide",
         one_each,
         257,
         {1, 1, 0, 0, 0, 0, 0, 0, 7, 0, 1, 0, 7, 0, 0, 0},
         {1, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0}},
        {"of entries, narrow",
         two,
         256,
         {0, 1, 0, 0, 0, 0, 0, 0, 7, 0, 1, 0, 6, 0, 0, 0},
         {0, 1, 0, 0, 0, 0, 0, 0, 7, 1, 6, 0, 0, 0, 0, 0}},
    };
    enum { PLAIN_AT = 72, PACKED_AT = 72 }; /* behind labels or signs, starts and values */
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_batch b = small;
        size_t bytes, packed_bytes;
        b.rows = 3;
        b.local16 = rows;
        b.fields = cases[i].fields;
        b.field_count = cases[i].count;
        unsigned char *plain = flatten(&b, &bytes);
        unsigned char *packed = flatten_packed(&b, &packed_bytes);
        assert_int_equal(drps_get_u32(plain + 16), DRPS_BATCH_VALUES | DRPS_BATCH_FIELDS);
        if (memcmp(plain + PLAIN_AT, cases[i].plain, 16) != 0) fail_msg("%s: plain", cases[i].name);
        if (memcmp(packed + PACKED_AT, cases[i].packed, 16) != 0)
            fail_msg("%s: packed", cases[i].name);
        check_packed(&b, plain, bytes);
        free(packed);
        free(plain);
    }
}

static void test_batch_damaged_fields_of_entries_are_refused(void **state)
{
    static const struct {
        const char *name;
        size_t at, bytes;
        uint64_t value;
    } cases[] = {{"no fields", 0, 4, 0},
                 {"2^16 fields", 0, 4, 65536},
                 {"a field too large", 0, 4, 7},
                 {"of something else", 4, 4, 2},
                 {"the last field", 10, 1, 8}};
    static const uint16_t rows[] = {2, 0, 2}, fields[] = {7, 1, 7};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int kind = 0; kind < 2; kind++) {
            struct drps_batch back, b = small;
            char room[200];
            size_t bytes, got;
            b.rows = 3;
            b.local16 = rows;
            b.fields = fields;
            b.field_count = 8;
            unsigned char *data = kind ? flatten_with(&b, kind - 1, &bytes) : flatten(&b, &bytes);
            memcpy(data + 72 + cases[i].at, &cases[i].value, cases[i].bytes);
            const int rc = kind ? drps_batch_unpack(data, bytes, room, sizeof(room), &got, NULL)
                                : drps_batch_decode(data, bytes, &back, NULL);
            if (rc != DRPS_E_CORRUPT) fail_msg("%s, %d: %d", cases[i].name, kind, rc);
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

/* Values of which each sample has one for each row, or for each but the first, are a matrix. */
static void test_batch_dense_is_seen(void **state)
{
    static const struct {
        const char *name;
        size_t rows;
        uint16_t local[4];
        int ones, with_fields;
        uint32_t dense;
    } cases[] = {
        {"without an intercept", 2, {0, 1, 0, 1}, 0, 0, 1},
        {"with one", 3, {1, 2, 1, 2}, 0, 0, 2},
        {"all ones", 2, {0, 1, 0, 1}, 1, 0, 0},
        {"with fields", 2, {0, 1, 0, 1}, 0, 1, 0},
        {"another row in the last sample", 3, {1, 2, 0, 2}, 0, 0, 0},
        {"the last entry", 3, {1, 2, 1, 1}, 0, 0, 0},
        {"another order", 2, {1, 0, 0, 1}, 0, 0, 0},
        {"the first row of all", 3, {0, 1, 0, 1}, 0, 0, 0},
        {"more rows", 4, {2, 3, 2, 3}, 0, 0, 0},
    };
    static const float numbers[] = {1, 2, 3, 0};
    static const uint16_t of_entries[] = {0, 1, 0, 1};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct drps_batch b = {.samples = 2,
                                     .rows = cases[i].rows,
                                     .nnz = 4,
                                     .labels = labels,
                                     .per_sample = 2,
                                     .local16 = cases[i].local,
                                     .values = cases[i].ones ? NULL : numbers,
                                     .fields = cases[i].with_fields ? of_entries : NULL,
                                     .field_count = cases[i].with_fields ? 2 : 0};
        struct drps_batch back;
        size_t bytes;
        unsigned char *data = flatten(&b, &bytes);
        if (drps_batch_decode(data, bytes, &back, NULL) < 0) fail_msg("%s", cases[i].name);
        if (back.dense != cases[i].dense)
            fail_msg("%s: %u, not %u", cases[i].name, back.dense, cases[i].dense);
        free(data);
    }
}

static void test_batch_marks(void **state)
{
    struct drps_batch b = small, back;
    size_t bytes;
    (void)state;
    b.stratum = UINT32_MAX;
    b.lane = DRPS_BATCH_LANES - 1;
    unsigned char *data = flatten(&b, &bytes);
    assert_int_equal(drps_get_u32(data + 24), b.stratum);
    assert_int_equal(drps_get_u32(data + 28), b.lane);
    assert_int_equal(drps_batch_decode(data, bytes, &back, NULL), 0);
    assert_int_equal(back.stratum, b.stratum);
    assert_int_equal(back.lane, b.lane);
    assert_int_equal(drps_batch_stratum(data, bytes), b.stratum);
    assert_int_equal(drps_batch_lane(data, bytes), b.lane);
    assert_int_equal(drps_batch_stratum(data, DRPS_BATCH_HEAD_BYTES - 1), 0);
    assert_int_equal(drps_batch_lane(data, DRPS_BATCH_HEAD_BYTES - 1), 0);
    free(data);
}

/* A step that hands rows over has rows alone, and one direction. */
static void test_batch_hand_overs(void **state)
{
    static const float label[1];
    static const uint16_t entries[2] = {0, 1};
    static const struct {
        uint32_t flags, rows, samples, stratum;
        int fits;
    } cases[] = {
        {DRPS_DEPARTS, 3, 0, 0, 1},
        {DRPS_ARRIVES | DRPS_HANDS_LAST, 3, 0, 0, 1},
        {DRPS_DEPARTS | DRPS_HANDS_LAST | DRPS_HANDS_PARAMETERS, 1, 0, 0, 1},
        {DRPS_DEPARTS | DRPS_ARRIVES, 3, 0, 0, 0},
        {DRPS_HANDS_LAST, 3, 0, 0, 0},
        {DRPS_HANDS_PARAMETERS, 3, 0, 0, 0},
        {DRPS_ARRIVES, 0, 0, 0, 0},
        {DRPS_ARRIVES, 3, 0, 1, 0},
        {DRPS_ARRIVES, 3, 1, 0, 0},
        {UINT32_C(1) << 30, 3, 0, 0, 0},
    };
    (void)state;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        const struct drps_batch b = {.rows = cases[k].rows,
                                     .samples = cases[k].samples,
                                     .nnz = 2 * (size_t)cases[k].samples,
                                     .per_sample = cases[k].samples ? 2 : 0,
                                     .labels = label,
                                     .local16 = entries,
                                     .stratum = cases[k].stratum,
                                     .hand_over = cases[k].flags};
        struct drps_batch got;
        size_t bytes;
        unsigned char *data = flatten(&b, &bytes);
        const int rc = drps_batch_decode(data, bytes, &got, NULL);
        if (rc != (cases[k].fits ? 0 : DRPS_E_CORRUPT)) fail_msg("case %zu: %d", k, rc);
        if (rc == 0) assert_int_equal(got.hand_over, cases[k].flags);
        if (rc == 0) assert_int_equal(drps_batch_hand_over(data, bytes), cases[k].flags);
        free(data);
    }
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

/* Labels of -1 and 1, samples of one and two entries, a step back between them. */
static void test_batch_packed_golden_bytes(void **state)
{
    static const unsigned char want[] = {
        2,    0,    0,    0,    0x2c, 1, 0,    0,
        3,    0,    0,    0,    0,    0, 0,    0, /* samples, rows 300, nnz */
        26,   0,    0,    0,    0,    0, 0,    0,
        0,    0,    0,    0,    0,    0, 0,    0, /* flags: values, packed, signs */
        1,    0,    0,    0,    0,    0, 0,    0, /* labels 1, -1 */
        0,    0,    0,    0,    1,    0, 0,    0,
        3,    0,    0,    0,    0,    0, 0,    0, /* starts, padded */
        0,    0,    0,    0x3f, 0,    0, 0x80, 0x3f,
        0,    0,    0,    0x40, 0,    0, 0,    0, /* values 0.5 1 2, padded */
        0x2c, 0xc4, 0xff, 0xbf, 0x12, 0, 0,    0, /* 4, then 4 less, then 299 more */
    };
    static const uint16_t far[] = {4, 0, 299};
    struct drps_batch b = small;
    size_t bytes, plain_bytes;
    (void)state;
    b.rows = 300;
    b.local16 = far;
    unsigned char *data = flatten_packed(&b, &bytes);
    assert_int_equal(bytes, sizeof(want));
    assert_memory_equal(data, want, sizeof(want));
    unsigned char *plain = flatten(&b, &plain_bytes);
    check_packed(&b, plain, plain_bytes);
    free(plain);
    free(data);
}

/* Wherever an index out of range is, among those that vectors decode and the others; who unpacked
 * the body need not look for it again. */
static void test_batch_unpack_checks_indices(void **state)
{
    enum { NNZ = 45, ROWS = 3000 };
    struct drps_err err = DRPS_ERR_INIT;
    float signs[NNZ];
    uint16_t narrow[NNZ];
    uint32_t wide[NNZ];
    _Alignas(8) char room[2 * NNZ * 8];
    (void)state;
    for (size_t at = 0; at < NNZ; at++)
        for (int kind = 0; kind < 3; kind++) { /* packed; plain, narrow; plain, wide */
            struct drps_batch back, b = {.samples = NNZ,
                                         .rows = ROWS,
                                         .nnz = NNZ,
                                         .labels = signs,
                                         .per_sample = 1,
                                         .local16 = kind < 2 ? narrow : NULL,
                                         .local32 = kind < 2 ? NULL : wide};
            size_t bytes, got;
            for (size_t i = 0; i < NNZ; i++) {
                signs[i] = i % 3 ? 1.0F : -1.0F;
                narrow[i] = (uint16_t)(i == at ? ROWS : i * 61);
                wide[i] = narrow[i];
            }
            for (int good = 0; good < 2; good++) {
                b.rows = ROWS + (size_t)good;
                unsigned char *data = kind ? flatten(&b, &bytes) : flatten_packed(&b, &bytes);
                const int rc = drps_batch_unpack(data, bytes, room, sizeof(room), &got, NULL);
                assert_int_equal(rc, good ? 0 : DRPS_E_CORRUPT);
                free(data);
            }
            if (drps_batch_decode_unpacked(room, got, &back, &err)) fail_msg("%s", err.text);
            assert_memory_equal(back.labels, signs, sizeof(signs));
            for (size_t i = 0; i < NNZ; i++)
                assert_int_equal(back.local16 ? back.local16[i] : back.local32[i], narrow[i]);
        }
}

/* Every bit flipped, every shorter record: an error, or a body that fits the room. */
static void test_batch_unpack_survives_damage(void **state)
{
    struct drps_batch b = small;
    size_t bytes, got;
    char room[200];
    (void)state;
    unsigned char *data = flatten_packed(&b, &bytes);
    for (size_t n = 0; n < bytes; n++) {
        unsigned char *exact = malloc(n + 1), *copy = malloc(bytes);
        assert_true(exact && copy);
        memcpy(exact, data, n);
        assert_int_equal(drps_batch_unpack(exact, n, room, sizeof(room), &got, NULL),
                         DRPS_E_CORRUPT);
        for (int bit = 0; bit < 8; bit++) {
            memcpy(copy, data, bytes);
            copy[n] ^= (unsigned char)(1 << bit);
            const int rc = drps_batch_unpack(copy, bytes, room, sizeof(room), &got, NULL);
            assert_true(rc == 0 ? got <= sizeof(room) : rc == DRPS_E_CORRUPT && !got);
        }
        free(copy);
        free(exact);
    }
    free(data);
}

/* Two samples of three numbers each, and one entry each of row 4. */
static const uint8_t number_bytes[] = {0, 2, 0, 1, 0, 0};
static const float number_levels[] = {0, 0.5f, 1};
static const uint16_t one_row[] = {4, 4};
static const struct drps_batch with_numbers = {
    .samples = 2,
    .rows = 5,
    .nnz = 2,
    .labels = labels,
    .per_sample = 1,
    .local16 = one_row,
    .numbers = {.each = 3, .levels_n = 3, .bytes = number_bytes, .levels = number_levels}};

/* What follows the labels: the indices, head and levels of the numbers, and these. */
static void test_batch_numbers_golden_bytes(void **state)
{
    static const unsigned char want[] = {
        4, 0, 4, 0, 0, 0, 0, 0,                                  /* indices, padded */
        3, 0, 0, 0, 3, 0, 0, 0,    0, 0, 0,    0,    0, 0, 0, 0, /* each, levels */
        0, 0, 0, 0, 0, 0, 0, 0x3f, 0, 0, 0x80, 0x3f, 0, 0, 0, 0, /* 0 0.5 1, padded */
        0, 2, 0, 1, 0, 0, 0, 0,                                  /* levels of numbers, padded */
    };
    size_t bytes;
    unsigned char *data = flatten(&with_numbers, &bytes);
    (void)state;
    assert_int_equal(bytes, DRPS_BATCH_HEAD_BYTES + 8 + sizeof(want));
    assert_int_equal(drps_get_u32(data + 16), DRPS_BATCH_UNIFORM | DRPS_BATCH_NUMBERS);
    assert_memory_equal(data + DRPS_BATCH_HEAD_BYTES + 8, want, sizeof(want));
    free(data);
}

static void check_numbers(const struct drps_batch *b)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_batch back;
    size_t bytes;
    unsigned char *data = flatten(b, &bytes);
    assert_true(bytes <= drps_batch_plain_bound(b->samples, b->nnz, b->numbers.each));
    if (drps_batch_decode(data, bytes, &back, &err)) fail_msg("%s", err.text);
    assert_int_equal(back.numbers.each, b->numbers.each);
    for (size_t i = 0; i < b->samples * b->numbers.each; i++)
        assert_true(drps_dense_number(&back.numbers, i) == drps_dense_number(&b->numbers, i));
    check_packed(b, data, bytes);
    free(data);
}

/* Numbers of levels and others, with few and many zeros, with indices of either width. */
static void test_batch_numbers_come_back(void **state)
{
    enum { SAMPLES = 5, EACH = 200, N = SAMPLES * EACH };
    static float floats[N];
    static uint8_t bytes[N];
    float many[SAMPLES] = {0}, levels[DRPS_DENSE_LEVELS];
    const uint16_t narrow[SAMPLES] = {7, 7, 7, 7, 7};
    const uint32_t wide[SAMPLES] = {70000, 70000, 70000, 70000, 70000};
    (void)state;
    check_numbers(&with_numbers);
    for (int is_wide = 0; is_wide < 2; is_wide++)
        for (unsigned one_in = 1; one_in < 40; one_in += 12)
            for (int few = 0; few < 2; few++) {
                struct drps_batch b = {.samples = SAMPLES,
                                       .rows = is_wide ? 70001 : 8,
                                       .nnz = SAMPLES,
                                       .labels = many,
                                       .per_sample = 1,
                                       .local16 = is_wide ? NULL : narrow,
                                       .local32 = is_wide ? wide : NULL};
                for (size_t i = 0; i < N; i++)
                    floats[i] = i % one_in ? 0 : (float)(few ? i % 200 : i) / 3;
                b.numbers = (struct drps_dense){.each = EACH, .floats = floats};
                if (few)
                    b.numbers =
                        (struct drps_dense){.each = EACH,
                                            .levels_n = drps_dense_levels(floats, N, bytes, levels),
                                            .bytes = bytes,
                                            .levels = levels};
                check_numbers(&b);
            }
}

/* Every bit flipped, every shorter record: an error, or numbers that are there. */
static void test_batch_numbers_survive_damage(void **state)
{
    static const float sparse[64] = {[3] = 1, [40] = 2};
    struct drps_batch back, b = with_numbers;
    _Alignas(8) unsigned char room[512];
    size_t bytes, got, sum = 0;
    (void)state;
    b.numbers = (struct drps_dense){.each = 32, .floats = sparse};
    unsigned char *data = flatten_packed(&b, &bytes);
    assert_true(bytes < 2 * 32 * sizeof(float)); /* zeros are left out */
    for (size_t n = 0; n < bytes; n++)
        for (int bit = 0; bit < 8; bit++) {
            unsigned char *copy = malloc(bytes), *exact = malloc(n + 1);
            assert_true(copy && exact);
            memcpy(copy, data, bytes);
            memcpy(exact, data, n);
            assert_int_equal(drps_batch_unpack(exact, n, room, sizeof(room), &got, NULL),
                             DRPS_E_CORRUPT);
            copy[n] ^= (unsigned char)(1 << bit);
            int rc = drps_batch_unpack(copy, bytes, room, sizeof(room), &got, NULL);
            assert_true(rc == 0 ? got <= sizeof(room) : rc == DRPS_E_CORRUPT && !got);
            if (rc == 0) rc = drps_batch_decode_unpacked(room, got, &back, NULL);
            for (size_t i = 0; rc == 0 && i < back.samples * back.numbers.each; i++)
                sum += drps_dense_number(&back.numbers, i) != 0; /* read it */
            free(copy);
            free(exact);
        }
    assert_true(sum > 0);
    free(data);
}

/* A level that there is not, in a plain record; numbers beside fields; wide indices in a packed one
 * without numbers. */
static void test_batch_numbers_are_checked(void **state)
{
    struct drps_batch back;
    size_t bytes, got;
    _Alignas(8) unsigned char room[512];
    (void)state;
    unsigned char *data = flatten(&with_numbers, &bytes);
    data[bytes - 8] = 3;
    assert_int_equal(drps_batch_decode(data, bytes, &back, NULL), DRPS_E_CORRUPT);
    free(data);
    data = flatten_packed(&with_numbers, &bytes);
    data[bytes - 8] = 3;
    assert_int_equal(drps_batch_unpack(data, bytes, room, sizeof(room), &got, NULL),
                     DRPS_E_CORRUPT);
    free(data);
    const uint32_t flags[] = {DRPS_BATCH_FIELDS, DRPS_BATCH_MATRIX};
    for (size_t i = 0; i < 2; i++) {
        data = flatten_packed(&with_numbers, &bytes);
        drps_put_u32(data + 16, drps_get_u32(data + 16) | flags[i]);
        assert_int_equal(drps_batch_unpack(data, bytes, room, sizeof(room), &got, NULL),
                         DRPS_E_CORRUPT);
        free(data);
    }
    const uint16_t fields[] = {0, 1};
    struct drps_batch both = with_numbers;
    both.fields = fields;
    both.field_count = 2;
    data = flatten(&both, &bytes);
    assert_int_equal(drps_batch_decode(data, bytes, &back, NULL), DRPS_E_CORRUPT);
    free(data);
    data = flatten_packed(&both, &bytes);
    assert_int_equal(drps_batch_unpack(data, bytes, room, sizeof(room), &got, NULL),
                     DRPS_E_CORRUPT);
    free(data);
    const uint32_t far[] = {4, 5};
    struct drps_batch wide = with_numbers;
    wide.local16 = NULL;
    wide.local32 = far;
    data = flatten_packed(&wide, &bytes); /* row 5 of 5 */
    assert_int_equal(drps_batch_unpack(data, bytes, room, sizeof(room), &got, NULL),
                     DRPS_E_CORRUPT);
    free(data);
    wide.rows = 6;
    wide.numbers.each = 0;
    data = flatten_packed(&wide, &bytes);
    assert_int_equal(drps_batch_unpack(data, bytes, room, sizeof(room), &got, NULL),
                     DRPS_E_CORRUPT);
    free(data);
}

/* Vector instructions unpack as both ways without them do, from memory of exactly the packed bytes.
 */
static void test_batch_pack16(void **state)
{
    enum { MOST = 100 };
    struct random_source r = random_begin("pack16");
    uint16_t numbers[MOST], back[MOST], ref[MOST];
    (void)state;
    for (size_t n = 1; n <= MOST; n++)
        for (unsigned wide = 0; wide <= 4; wide++) { /* quarters of the differences */
            static const unsigned narrow[] = {16, 128, 2048};
            uint16_t at = 0;
            for (size_t i = 0; i < n; i++) {
                const unsigned below =
                    random_below(&r, 4) < wide ? 65536 : narrow[random_below(&r, 3)];
                at = (uint16_t)(at + random_below(&r, below));
                numbers[i] = at;
            }
            unsigned char *room = malloc(drps_pack16_bound(n));
            assert_non_null(room);
            const size_t bytes = drps_pack16_encode(numbers, n, room);
            unsigned char *packed = malloc(bytes);
            assert_non_null(packed);
            memcpy(packed, room, bytes);
            assert_int_equal(drps_pack16_encode_ref(numbers, n, room), bytes);
            assert_memory_equal(room, packed, bytes);
            uint16_t largest = 0, found;
            for (size_t i = 0; i < n; i++)
                largest = numbers[i] > largest ? numbers[i] : largest;
            assert_int_equal(drps_pack16_decode(packed, bytes, n, back, &found), bytes);
            assert_memory_equal(back, numbers, n * sizeof(*numbers));
            assert_int_equal(found, largest);
            assert_int_equal(drps_pack16_decode_ref(packed, bytes, n, ref, &found), bytes);
            assert_memory_equal(ref, numbers, n * sizeof(*numbers));
            assert_int_equal(found, largest);
            assert_int_equal(drps_pack16_decode(packed, bytes - 1, n, back, &found), 0);
            assert_int_equal(drps_pack16_decode_ref(packed, bytes - 1, n, ref, &found), 0);
            if (n % 4) { /* the width of a number that is not there */
                packed[n / 4] |= 0x80;
                assert_int_equal(drps_pack16_decode(packed, bytes, n, back, &found), 0);
                assert_int_equal(drps_pack16_decode_ref(packed, bytes, n, ref, &found), 0);
            }
            free(packed);
            free(room);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_golden_bytes),
        cmocka_unit_test(test_batch_golden_bytes_of_weights),
        cmocka_unit_test(test_batch_weights_are_finite_and_above_zero),
        cmocka_unit_test(test_batch_every_shape_comes_back),
        cmocka_unit_test(test_batch_packed_golden_bytes),
        cmocka_unit_test(test_batch_numbers_golden_bytes),
        cmocka_unit_test(test_batch_numbers_come_back),
        cmocka_unit_test(test_batch_numbers_survive_damage),
        cmocka_unit_test(test_batch_numbers_are_checked),
        cmocka_unit_test(test_batch_unpack_checks_indices),
        cmocka_unit_test(test_batch_unpack_survives_damage),
        cmocka_unit_test(test_batch_pack16),
        cmocka_unit_test(test_batch_damaged_fields_are_refused),
        cmocka_unit_test(test_batch_fields_golden_bytes),
        cmocka_unit_test(test_batch_damaged_fields_of_entries_are_refused),
        cmocka_unit_test(test_batch_uniform_counts_must_agree),
        cmocka_unit_test(test_batch_dense_is_seen),
        cmocka_unit_test(test_batch_marks),
        cmocka_unit_test(test_batch_hand_overs),
        cmocka_unit_test(test_batch_any_other_length_is_refused),
    };
    return cmocka_run_group_tests_name("batch", tests, NULL, NULL);
}
