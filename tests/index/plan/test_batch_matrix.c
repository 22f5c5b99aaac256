/* Bodies whose entries are a matrix: they unpack to the plain body, and damage is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_endian.h"
#include "index/plan/drps_batch.h"
#include "support/scratch.h"

enum { SAMPLES = 9, ROWS = 21, MOST = SAMPLES * ROWS };

/* Samples of which each has nearly all rows. */
struct made {
    float labels[SAMPLES], weights[SAMPLES], values[MOST];
    uint32_t starts[SAMPLES + 1];
    uint16_t local[MOST], fields[MOST];
    struct drps_batch b;
};

static unsigned char *flatten(const struct drps_batch_pieces *p, size_t *bytes_out)
{
    size_t bytes = 0;
    for (size_t i = 0; i < p->n; i++)
        bytes += p->pieces[i].bytes;
    unsigned char *data = malloc(bytes + 1), *at = data;
    assert_non_null(data);
    for (size_t i = 0; i < p->n; i++) {
        if (p->pieces[i].bytes) memcpy(at, p->pieces[i].data, p->pieces[i].bytes);
        at += p->pieces[i].bytes;
    }
    *bytes_out = bytes;
    return data;
}

/* Each entry is missing with the chance 1 / missing; 0: none is, and there are no starts. */
static void make(struct made *m, struct random_source *r, size_t samples, size_t rows,
                 unsigned missing, int signs, int bias, int weights)
{
    size_t nnz = 0;
    m->starts[0] = 0;
    for (size_t s = 0; s < samples; s++) {
        m->labels[s] = !signs ? (float)s / 4 : random_below(r, 2) ? 1.0F : -1.0F;
        m->weights[s] = 1 + (float)s;
        for (size_t k = bias ? 1 : 0; k < rows; k++) {
            if (missing && s && random_below(r, missing) == 0) continue;
            m->local[nnz] = (uint16_t)k;
            m->fields[nnz] = 0;
            m->values[nnz++] = 1.5F + (float)random_below(r, 100);
        }
        m->starts[s + 1] = (uint32_t)nnz;
    }
    m->b = (struct drps_batch){.samples = samples,
                               .rows = rows,
                               .nnz = nnz,
                               .labels = m->labels,
                               .weights = weights ? m->weights : NULL,
                               .starts = missing ? m->starts : NULL,
                               .per_sample = missing ? 0 : (uint32_t)(rows - (size_t)bias),
                               .local16 = m->local,
                               .values = m->values};
}

/* The record of the batch as a matrix; NULL: there is none. */
static unsigned char *pack(const struct drps_batch *b, size_t *bytes_out)
{
    struct drps_batch_pieces pieces;
    const size_t bound = drps_batch_matrix_bound(b);
    *bytes_out = 0;
    if (!bound) return NULL;
    void *room = malloc(bound);
    assert_non_null(room);
    unsigned char *record =
        drps_batch_pack_matrix(b, room, &pieces) ? flatten(&pieces, bytes_out) : NULL;
    free(room);
    return record;
}

static void check_back(const struct drps_batch *b, const char *what)
{
    struct drps_batch_pieces pieces;
    struct drps_err err = DRPS_ERR_INIT;
    size_t plain_bytes, packed_bytes, got;
    drps_batch_encode(b, &pieces);
    unsigned char *plain = flatten(&pieces, &plain_bytes);
    unsigned char *packed = pack(b, &packed_bytes);
    assert_non_null(packed);
    assert_true(packed_bytes < plain_bytes);
    assert_int_equal(drps_batch_is_matrix(packed, packed_bytes), 1);
    assert_int_equal(drps_batch_is_matrix(plain, plain_bytes), 0);
    unsigned char *room = malloc(plain_bytes);
    assert_non_null(room);
    if (drps_batch_unpack(packed, packed_bytes, room, plain_bytes, &got, &err) < 0)
        fail_msg("%s: %s", what, err.text);
    assert_int_equal(got, plain_bytes);
    if (memcmp(room, plain, plain_bytes) != 0) fail_msg("%s: another plain body", what);
    assert_int_equal(drps_batch_unpack(packed, packed_bytes, room, plain_bytes - 8, &got, &err),
                     DRPS_E_CORRUPT);
    free(room);
    free(packed);
    free(plain);
}

static void test_matrix_unpacks_to_the_plain_body(void **state)
{
    struct random_source r = random_begin("matrix");
    static struct made m;
    (void)state;
    for (int shape = 0; shape < 16; shape++)
        for (size_t samples = 1; samples <= SAMPLES; samples++)
            for (size_t rows = 4; rows <= ROWS; rows++) {
                char what[64];
                (void)snprintf(what, sizeof(what), "shape %d, %zu samples of %zu rows", shape,
                               samples, rows);
                make(&m, &r, samples, rows, shape & 1 ? 20 : 0, (shape & 2) != 0, (shape & 4) != 0,
                     (shape & 8) != 0);
                if (drps_batch_matrix_bound(&m.b)) check_back(&m.b, what);
            }
}

/* Two samples of two of three rows: signs 1 and -1, and the matrix 1.5 2 0 3. */
static void test_matrix_golden_bytes(void **state)
{
    static const unsigned char want[] = {
        2,    0,    0,    0,    3, 0, 0,    0,
        3,    0,    0,    0,    0, 0, 0,    0, /* samples, rows, nnz */
        0x1a, 0x18, 0,    0,    0, 0, 0,    0,
        0,    0,    0,    0,    0, 0, 0,    0, /* flags 2 8 16 2048 4096 */
        1,    0,    0,    0,    0, 0, 0,    0, /* signs, padded */
        0,    0,    0xc0, 0x3f, 0, 0, 0,    0x40,
        0,    0,    0,    0,    0, 0, 0x40, 0x40};
    static const float labels[] = {1, -1}, values[] = {1.5F, 2, 3};
    static const uint32_t starts[] = {0, 2, 3};
    static const uint16_t local[] = {1, 2, 2};
    const struct drps_batch b = {.samples = 2,
                                 .rows = 3,
                                 .nnz = 3,
                                 .labels = labels,
                                 .starts = starts,
                                 .local16 = local,
                                 .values = values};
    size_t bytes;
    unsigned char *packed = pack(&b, &bytes);
    (void)state;
    assert_non_null(packed);
    assert_int_equal(bytes, sizeof(want));
    assert_memory_equal(packed, want, sizeof(want));
    free(packed);
}

static void test_matrix_is_refused_where_it_cannot_be(void **state)
{
    struct random_source r = random_begin("matrix");
    static struct made m;
    size_t bytes;
    (void)state;
    make(&m, &r, SAMPLES, ROWS, 0, 1, 1, 0);
    struct drps_batch b = m.b;
    assert_true(drps_batch_matrix_bound(&b) > 0);
    b.values = NULL;
    assert_int_equal(drps_batch_matrix_bound(&b), 0); /* all ones: indices alone are smaller */
    b = m.b;
    b.fields = m.fields;
    b.field_count = 1;
    assert_int_equal(drps_batch_matrix_bound(&b), 0);
    b = m.b;
    b.rows = 2 * ROWS; /* half of the rows are of no sample */
    assert_int_equal(drps_batch_matrix_bound(&b), 0);
    m.values[7] = 0; /* which a matrix has for what is missing */
    assert_null(pack(&m.b, &bytes));
}

static void test_matrix_damage_is_refused(void **state)
{
    static const struct {
        const char *name;
        size_t at, bytes;
        uint64_t value;
    } cases[] = {
        {"one sample more", 0, 4, 7},
        {"one sample less", 0, 4, 5},
        {"samples 2^32 - 1", 0, 4, UINT32_MAX},
        {"one row more", 4, 4, 6},
        {"one row", 4, 4, 1},
        {"no rows", 4, 4, 0},
        {"rows 2^32 - 1", 4, 4, UINT32_MAX},
        {"one entry more", 8, 8, 25},
        {"one entry less", 8, 8, 23},
        {"entries 2^64 - 1", 8, 8, UINT64_MAX},
        {"no values", 16, 4, 0x181c},
        {"fields", 16, 4, 0x1a1e},
        {"wide", 16, 4, 0x181f},
        {"with row 0", 16, 4, 0x081e},
        {"no matrix, and after", 16, 4, 0x101e},
        {"not uniform", 16, 4, 0x181a}, /* no room for the starts */
        {"another flag", 16, 4, 0x381e},
        {"other entries a sample", 20, 4, 3},
        {"a value of 0", 44, 4, 0},
    };
    struct random_source r = random_begin("matrix");
    static struct made m;
    struct drps_batch_pieces pieces;
    char room[400];
    size_t bytes, plain_bytes, got;
    (void)state;
    make(&m, &r, 6, 5, 0, 1, 1, 0);
    drps_batch_encode(&m.b, &pieces);
    free(flatten(&pieces, &plain_bytes));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned char *data = pack(&m.b, &bytes);
        assert_non_null(data);
        assert_int_equal(drps_get_u32(data + 16), 0x181e);
        memcpy(data + cases[i].at, &cases[i].value, cases[i].bytes);
        const int rc = drps_batch_unpack(data, bytes, room, plain_bytes, &got, NULL);
        if (rc != DRPS_E_CORRUPT) fail_msg("%s: found %d", cases[i].name, rc);
        free(data);
    }
    unsigned char *data = pack(&m.b, &bytes);
    for (size_t n = 0; n < bytes; n++) /* cut off */
        assert_int_equal(drps_batch_unpack(data, n, room, plain_bytes, &got, NULL), DRPS_E_CORRUPT);
    unsigned char *longer = malloc(bytes + 8);
    assert_non_null(longer);
    memcpy(longer, data, bytes);
    memset(longer + bytes, 0, 8);
    assert_int_equal(drps_batch_unpack(longer, bytes + 8, room, plain_bytes, &got, NULL),
                     DRPS_E_CORRUPT);
    free(longer);
    free(data);
}

/* Where samples have not as many entries each, their number in all must be that of the head. */
static void test_matrix_counts_its_entries(void **state)
{
    struct random_source r = random_begin("matrix");
    static struct made m;
    char room[8 * MOST + 200];
    size_t bytes, got;
    (void)state;
    make(&m, &r, SAMPLES, ROWS, 20, 1, 1, 0);
    for (int more = -1; more <= 1; more++) {
        unsigned char *data = pack(&m.b, &bytes);
        assert_non_null(data);
        drps_put_u64(data + 8, m.b.nnz + (uint64_t)(int64_t)more);
        const int rc = drps_batch_unpack(data, bytes, room, sizeof(room), &got, NULL);
        if (rc != (more ? DRPS_E_CORRUPT : 0)) fail_msg("%d more: found %d", more, rc);
        free(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrix_unpacks_to_the_plain_body),
        cmocka_unit_test(test_matrix_golden_bytes),
        cmocka_unit_test(test_matrix_is_refused_where_it_cannot_be),
        cmocka_unit_test(test_matrix_damage_is_refused),
        cmocka_unit_test(test_matrix_counts_its_entries),
    };
    return cmocka_run_group_tests_name("batch_matrix", tests, NULL, NULL);
}
