/* Record files: what was added comes back, and no damage goes unnoticed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/drps_endian.h"
#include "base/record/drps_recfile.h"
#include "support/fault_io.h"
#include "support/scratch.h"

#define KIND DRPS_REC_KIND('T', 'E', 'S', 'T')

/* Byte k of record i. */
static unsigned char byte_of(uint64_t i, uint64_t k)
{
    return (unsigned char)(i * 37 + k * 11 + (k >> 8));
}

/* A file of n records with the given sizes, each added in a few pieces. */
static void make(const char *path, const size_t *sizes, size_t n, struct random_source *r)
{
    struct drps_recwriter *w;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_recwriter_open(drps_io_os(), path, KIND, &w, &err)) fail_msg("%s", err.text);
    for (size_t i = 0; i < n; i++) {
        unsigned char *data = malloc(sizes[i] + 1);
        struct drps_piece pieces[4];
        size_t at = 0;
        assert_non_null(data);
        for (size_t k = 0; k < sizes[i]; k++)
            data[k] = byte_of(i, k);
        for (size_t p = 0; p < 4; p++) {
            size_t part = p == 3 ? sizes[i] - at : (size_t)random_below(r, sizes[i] - at + 1);
            pieces[p] = (struct drps_piece){data + at, part};
            at += part;
        }
        if (drps_recwriter_add(w, pieces, 4, &err)) fail_msg("%s", err.text);
        free(data);
    }
    assert_int_equal(drps_recwriter_count(w), n);
    if (drps_recwriter_finish(w, &err)) fail_msg("%s", err.text);
    drps_recwriter_close(w);
}

/* Open, read everything, compare. Returns the first failure; a wrong byte is 1. */
static int check(const char *path, const size_t *sizes, size_t n, uint64_t at_once,
                 struct drps_err *err)
{
    struct drps_recfile *f;
    int rc = drps_recfile_open(drps_io_os(), path, KIND, &f, err);
    if (rc < 0) {
        assert_null(f);
        return rc;
    }
    if (drps_recfile_count(f) != n) rc = 1;
    for (uint64_t i = 0; rc == 0 && i < n;) {
        uint64_t run = drps_recfile_run_length(f, i, at_once);
        unsigned char *buf = malloc((size_t)drps_recfile_run_bytes(f, i, run) + 1);
        assert_non_null(buf);
        rc = drps_recfile_read(f, i, run, buf, err);
        for (uint64_t j = i; rc == 0 && j < i + run; j++) {
            const unsigned char *record = buf + drps_recfile_offset_in_run(f, i, j);
            if (drps_recfile_bytes(f, j) != sizes[j]) rc = 1;
            for (size_t k = 0; rc == 0 && k < sizes[j]; k++)
                rc = record[k] != byte_of(j, k);
        }
        free(buf);
        i += run;
    }
    drps_recfile_close(f);
    return rc;
}

static void test_recfile_round_trip_of_random_records(void **state)
{
    struct scratch *s = *state;
    struct random_source r = random_begin("recfile");
    static const uint64_t at_once[] = {0, 100, 5000, 1 << 22};
    const char *path = scratch_path(s, "random.rec");
    enum { N = 300 };
    size_t sizes[N];
    for (size_t i = 0; i < N; i++)
        sizes[i] = (size_t)(random_below(&r, 4) ? random_below(&r, 40) : random_below(&r, 100000));
    sizes[7] = 3 << 20; /* beyond the writer's buffer */
    make(path, sizes, N, &r);
    for (size_t i = 0; i < sizeof(at_once) / sizeof(at_once[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        int rc = check(path, sizes, N, at_once[i], &err);
        if (rc) fail_msg("runs of %" PRIu64 " bytes: %d (%s)", at_once[i], rc, err.text);
    }
}

static void test_recfile_no_records(void **state)
{
    struct scratch *s = *state;
    struct random_source r = {0};
    const char *path = scratch_path(s, "none.rec");
    make(path, NULL, 0, &r);
    assert_int_equal(check(path, NULL, 0, 100, NULL), 0);
}

static void test_recfile_empty_records(void **state)
{
    static const size_t sizes[] = {0, 0, 5, 0};
    struct scratch *s = *state;
    struct random_source r = {0};
    const char *path = scratch_path(s, "empty.rec");
    make(path, sizes, 4, &r);
    assert_int_equal(check(path, sizes, 4, 0, NULL), 0);
    assert_int_equal(check(path, sizes, 4, 1000, NULL), 0);
}

/*
 * The bytes of a file with the records "abc" and "": header, "abc" and five zeros, index, its
 * checksum. The sums are XXH3-64 (xxhash 0.8) and were computed by xxhsum.
 */
static void test_recfile_golden_bytes(void **state)
{
    struct scratch *s = *state;
    const char *path = scratch_path(s, "golden.rec");
    struct drps_recwriter *w;
    unsigned char want[64 + 8 + 32 + 8] = "DRPSREC1";
    struct drps_piece abc[] = {{"a", 1}, {"bc", 2}};
    size_t n;

    assert_int_equal(drps_recwriter_open(drps_io_os(), path, KIND, &w, NULL), 0);
    assert_int_equal(drps_recwriter_add(w, abc, 2, NULL), 0);
    assert_int_equal(drps_recwriter_add(w, NULL, 0, NULL), 0);
    assert_int_equal(drps_recwriter_bytes(w), 72);
    assert_int_equal(drps_recwriter_finish(w, NULL), 0);
    drps_recwriter_close(w);

    drps_put_u32(want + 8, 1);
    memcpy(want + 12, "TEST", 4);
    drps_put_u64(want + 16, 2);
    drps_put_u64(want + 24, 72);
    drps_put_u64(want + 56, drps_checksum(want, 56));
    memcpy(want + 64, "abc", 3);
    drps_put_u64(want + 72, 3);
    drps_put_u64(want + 80, 0x78af5f94892f3950); /* of "abc" */
    drps_put_u64(want + 88, 0);
    drps_put_u64(want + 96, 0x2d06800538d394c2); /* of nothing */
    drps_put_u64(want + 104, drps_checksum(want + 72, 32));
    char *data = scratch_read(path, &n);
    assert_int_equal(n, sizeof(want));
    assert_memory_equal(data, want, sizeof(want));
    free(data);
}

static void test_recfile_every_flipped_bit_is_detected(void **state)
{
    static const size_t sizes[] = {3, 0, 16, 29, 1};
    struct scratch *s = *state;
    struct random_source r = {0};
    const char *path = scratch_path(s, "whole.rec");
    size_t n;
    make(path, sizes, 5, &r);
    char *data = scratch_read(path, &n);
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        struct drps_err err = DRPS_ERR_INIT;
        char flipped = (char)(data[bit / 8] ^ 1 << bit % 8);
        assert_int_equal(pwrite(fd, &flipped, 1, (off_t)(bit / 8)), 1);
        int rc = check(path, sizes, 5, 20, &err);
        if (rc != DRPS_E_CORRUPT || !strstr(err.text, "whole.rec"))
            fail_msg("bit %zu of byte %zu: found %d (%s)", bit % 8, bit / 8, rc, err.text);
        assert_int_equal(pwrite(fd, &data[bit / 8], 1, (off_t)(bit / 8)), 1);
    }
    (void)close(fd); /* synced by nobody */
    free(data);
}

static void test_recfile_every_truncation_is_detected(void **state)
{
    static const size_t sizes[] = {3, 0, 16, 29, 1};
    struct scratch *s = *state;
    struct random_source r = {0};
    const char *path = scratch_path(s, "whole.rec");
    size_t n;
    make(path, sizes, 5, &r);
    char *data = scratch_read(path, &n);
    for (size_t cut = 0; cut < n; cut++) {
        struct drps_err err = DRPS_ERR_INIT;
        const char *bad = scratch_file(s, "cut.rec", data, cut);
        int rc = check(bad, sizes, 5, 20, &err);
        if (rc != DRPS_E_CORRUPT) fail_msg("cut to %zu bytes: found %d (%s)", cut, rc, err.text);
    }
    char *longer = realloc(data, n + 8);
    assert_non_null(longer);
    memset(longer + n, 0, 8);
    assert_int_equal(check(scratch_file(s, "long.rec", longer, n + 8), sizes, 5, 20, NULL),
                     DRPS_E_CORRUPT);
    free(longer);
}

static void test_recfile_unfinished_is_refused(void **state)
{
    static const size_t sizes[] = {0, 100, 3 << 20};
    struct scratch *s = *state;
    const char *path = scratch_path(s, "unfinished.rec");
    for (size_t i = 0; i < 3; i++) {
        struct drps_recwriter *w;
        struct drps_recfile *f;
        struct drps_err err = DRPS_ERR_INIT;
        char *data = calloc(1, sizes[i] + 1);
        struct drps_piece piece = {data, sizes[i]};
        assert_int_equal(drps_recwriter_open(drps_io_os(), path, KIND, &w, NULL), 0);
        assert_int_equal(drps_recwriter_add(w, &piece, 1, NULL), 0);
        drps_recwriter_close(w);
        free(data);
        assert_int_equal(drps_recfile_open(drps_io_os(), path, KIND, &f, &err), DRPS_E_CORRUPT);
        assert_non_null(strstr(err.text, "unfinished.rec"));
    }
}

/* A header with another version, its checksum right. */
static void test_recfile_other_version_is_refused(void **state)
{
    struct scratch *s = *state;
    struct random_source r = {0};
    struct drps_recfile *f;
    struct drps_err err = DRPS_ERR_INIT;
    const char *path = scratch_path(s, "v2.rec");
    size_t n;
    make(path, NULL, 0, &r);
    char *data = scratch_read(path, &n);
    drps_put_u32(data + 8, 2);
    drps_put_u64(data + 56, drps_checksum(data, 56));
    scratch_write(path, data, n);
    assert_int_equal(drps_recfile_open(drps_io_os(), path, KIND, &f, &err), DRPS_E_VERSION);
    assert_non_null(strstr(err.text, "version 2; this program reads 1"));
    free(data);
}

static void test_recfile_other_kind_is_refused(void **state)
{
    struct scratch *s = *state;
    struct random_source r = {0};
    struct drps_recfile *f;
    struct drps_err err = DRPS_ERR_INIT;
    const char *path = scratch_path(s, "kind.rec");
    make(path, NULL, 0, &r);
    assert_int_equal(drps_recfile_open(drps_io_os(), path, KIND + 1, &f, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "another kind"));
    drps_err_clear(&err);
    assert_int_equal(drps_recfile_open(drps_io_os(), scratch_path(s, "no.rec"), KIND, &f, &err),
                     -ENOENT);
}

/* Counts and lengths that do not fit, with right checksums: refused before anything is allocated by
 * them. */
static void test_recfile_impossible_counts_are_refused(void **state)
{
    static const struct {
        const char *name;
        size_t at; /* of a u64 in the file; 64-byte header, 8 of record, then the index */
        uint64_t value;
    } cases[] = {
        {"count 0", 16, 0},
        {"count 2", 16, 2},
        {"count 2^60", 16, (uint64_t)1 << 60},
        {"count 2^64 - 1", 16, UINT64_MAX},
        {"index inside of the header", 24, 8},
        {"index beyond the end", 24, 1000000},
        {"index at 2^64 - 8", 24, UINT64_MAX - 7},
        {"record of 2^64 - 1 bytes", 72, UINT64_MAX},
        {"record of 9 bytes", 72, 9},
        {"record of no bytes", 72, 0},
    };
    static const size_t sizes[] = {8};
    struct scratch *s = *state;
    struct random_source r = {0};
    const char *path = scratch_path(s, "whole.rec");
    size_t n;
    make(path, sizes, 1, &r);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        char *data = scratch_read(path, &n);
        drps_put_u64(data + cases[i].at, cases[i].value);
        drps_put_u64(data + 56, drps_checksum(data, 56));
        drps_put_u64(data + 88, drps_checksum(data + 72, 16));
        int rc = check(scratch_file(s, "bad.rec", data, n), sizes, 1, 20, &err);
        if (rc != DRPS_E_CORRUPT) fail_msg("%s: found %d (%s)", cases[i].name, rc, err.text);
        free(data);
    }
}

static int write_some(const struct drps_io *io, const char *path, struct drps_err *err)
{
    enum { BYTES = 700 * 1024 };
    struct drps_recwriter *w;
    char *data = calloc(1, BYTES);
    struct drps_piece piece = {data, BYTES};
    assert_non_null(data);
    int rc = drps_recwriter_open(io, path, KIND, &w, err);
    for (int i = 0; rc == 0 && i < 4; i++)
        rc = drps_recwriter_add(w, &piece, 1, err);
    if (rc == 0) rc = drps_recwriter_finish(w, err);
    drps_recwriter_close(w);
    free(data);
    return rc;
}

/* Every failing call is told, and what it leaves is not taken for a finished file. */
static void test_recfile_write_faults(void **state)
{
    static const enum fault_effect effects[] = {FAULT_ERROR, FAULT_TORN};
    struct scratch *s = *state;
    const char *path = scratch_path(s, "faulty.rec");
    for (size_t e = 0; e < 2; e++) {
        for (long k = 1;; k++) {
            struct fault_io *f = fault_io_new(drps_io_os());
            struct drps_err err = DRPS_ERR_INIT;
            struct drps_recfile *file;
            assert_non_null(f);
            fault_io_arm(f, FAULT_OPEN | FAULT_PWRITE, k, 0, effects[e], -EIO);
            int rc = write_some(&f->io, path, &err);
            int fired = atomic_load(&f->fired);
            fault_io_free(f);
            if (!fired) {
                assert_int_equal(rc, 0);
                assert_true(k > 4);
                break;
            }
            assert_int_equal(rc, -EIO);
            assert_non_null(strstr(err.text, "faulty.rec"));
            if (k > 1)
                assert_int_equal(drps_recfile_open(drps_io_os(), path, KIND, &file, NULL),
                                 DRPS_E_CORRUPT);
        }
    }
}

static void test_recfile_read_faults(void **state)
{
    struct scratch *s = *state;
    const char *path = scratch_path(s, "fine.rec");
    assert_int_equal(write_some(drps_io_os(), path, NULL), 0);
    for (long k = 1;; k++) {
        struct fault_io *f = fault_io_new(drps_io_os());
        struct drps_recfile *file = NULL;
        struct drps_err err = DRPS_ERR_INIT;
        assert_non_null(f);
        fault_io_arm(f, FAULT_OPEN | FAULT_PREAD | FAULT_SIZE, k, 0, FAULT_ERROR, -EIO);
        int rc = drps_recfile_open(&f->io, path, KIND, &file, &err);
        char *buf = malloc(4 * 700 * 1024);
        if (rc == 0) rc = drps_recfile_read(file, 0, 4, buf, &err);
        int fired = atomic_load(&f->fired);
        free(buf);
        drps_recfile_close(file);
        fault_io_free(f);
        assert_int_equal(rc, fired ? -EIO : 0);
        if (!fired) break;
        assert_non_null(strstr(err.text, "fine.rec"));
    }
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_recfile_round_trip_of_random_records),
        SCRATCH_TEST(test_recfile_no_records),
        SCRATCH_TEST(test_recfile_empty_records),
        SCRATCH_TEST(test_recfile_golden_bytes),
        SCRATCH_TEST(test_recfile_every_flipped_bit_is_detected),
        SCRATCH_TEST(test_recfile_every_truncation_is_detected),
        SCRATCH_TEST(test_recfile_unfinished_is_refused),
        SCRATCH_TEST(test_recfile_other_version_is_refused),
        SCRATCH_TEST(test_recfile_other_kind_is_refused),
        SCRATCH_TEST(test_recfile_impossible_counts_are_refused),
        SCRATCH_TEST(test_recfile_write_faults),
        SCRATCH_TEST(test_recfile_read_faults),
    };
    return cmocka_run_group_tests_name("recfile", tests, NULL, NULL);
}
