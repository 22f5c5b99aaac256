/* Reading ahead: order, passes, errors, and closing while the thread is at work. Worth a run under
 * ThreadSanitizer. */
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

#include "base/record/drps_recstream.h"
#include "support/fault_io.h"
#include "support/scratch.h"

#define KIND DRPS_REC_KIND('T', 'E', 'S', 'T')
enum { N = 500, LARGE = 123, LARGE_BYTES = 300000 };

static size_t size_of(uint64_t i)
{
    return i == LARGE ? LARGE_BYTES : (size_t)(8 + i * 7 % 400);
}

/* N records that begin with their number; one of them is larger than the buffers used here. */
static void make(const char *path)
{
    struct drps_recwriter *w;
    char *data = calloc(1, LARGE_BYTES);
    assert_non_null(data);
    assert_int_equal(drps_recwriter_open(drps_io_os(), path, KIND, &w, NULL), 0);
    for (uint64_t i = 0; i < N; i++) {
        struct drps_piece piece = {data, size_of(i)};
        memcpy(data, &i, sizeof(i));
        assert_int_equal(drps_recwriter_add(w, &piece, 1, NULL), 0);
    }
    assert_int_equal(drps_recwriter_finish(w, NULL), 0);
    drps_recwriter_close(w);
    free(data);
}

static struct drps_recfile *open_file(const struct drps_io *io, const char *path)
{
    struct drps_recfile *f;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_recfile_open(io, path, KIND, &f, &err)) fail_msg("%s", err.text);
    return f;
}

/* Record `got` of those that come. */
static uint64_t wanted(const struct drps_recstream_options *o, uint64_t got)
{
    return o->first + (o->begin + got) % o->count;
}

/* All records have come: each was read in every pass that has it, or once. */
static void check_read(struct drps_recstream *s, const struct drps_recfile *f,
                       const struct drps_recstream_options *o)
{
    const uint64_t pass = drps_recfile_run_bytes(f, o->first, o->count);
    const uint64_t rest = pass - drps_recfile_run_bytes(f, o->first, o->begin);
    const uint64_t passes = o->passes;
    struct drps_recstream_stats stats;
    drps_recstream_stats(s, &stats);
    if (!passes)
        assert_int_equal(stats.read_bytes, 0);
    else if (!o->keep)
        assert_int_equal(stats.read_bytes, (passes - 1) * pass + rest);
    else if (passes > 1)
        assert_int_equal(stats.read_bytes, pass);
    else /* a run that is kept as it is read is read whole */
        assert_true(stats.read_bytes >= rest &&
                    stats.read_bytes <= rest + (o->unpack || !o->begin ? 0 : o->buffer_bytes));
}

enum { PASSES_MOST = 5 }; /* that a test takes */

static uint64_t records_of(const struct drps_recstream_options *o)
{
    const uint64_t passes = o->passes < PASSES_MOST ? o->passes : PASSES_MOST;
    return o->count && passes ? o->count * passes - o->begin : 0;
}

static void check_plain(struct drps_recfile *f, const char *name,
                        const struct drps_recstream_options *o)
{
    struct drps_recstream *stream;
    struct drps_err err = DRPS_ERR_INIT;
    const void *record;
    size_t bytes;
    if (drps_recstream_open(f, o, &stream, &err)) fail_msg("%s: %s", name, err.text);
    for (uint64_t got = 0; got < records_of(o); got++) {
        assert_int_equal(drps_recstream_next(stream, &record, &bytes, &err), 1);
        const uint64_t want = wanted(o, got);
        uint64_t number;
        memcpy(&number, record, sizeof(number));
        if (number != want || bytes != size_of(want) || (uintptr_t)record % 8)
            fail_msg("%s, from %" PRIu64 ": record %" PRIu64 ": expected %" PRIu64
                     ", found %" PRIu64 " of %zu bytes",
                     name, o->begin, got, want, number, bytes);
    }
    if (o->passes <= PASSES_MOST || !o->count)
        for (int i = 0; i < 2; i++) { /* the end stays the end */
            assert_int_equal(drps_recstream_next(stream, &record, &bytes, &err), 0);
            assert_null(record);
        }
    check_read(stream, f, o);
    drps_recstream_close(stream);
}

static void test_recstream_gives_records_in_order_pass_after_pass(void **state)
{
    static const struct {
        const char *name;
        struct drps_recstream_options o;
    } cases[] = {
        {"defaults", {.count = N, .passes = 1}},
        {"three passes, small buffers",
         {.count = N, .passes = 3, .buffer_bytes = 2000, .readers = 3, .depth = 2}},
        {"one buffer", {.count = N, .passes = 2, .buffer_bytes = 5000, .depth = 1}},
        {"tiny buffers, many", {.count = N, .passes = 2, .buffer_bytes = 1, .depth = 100}},
        {"a part", {.first = 100, .count = 50, .passes = 4, .buffer_bytes = 3000}},
        {"the last", {.first = N - 1, .count = 1, .passes = 5}},
        {"kept, three passes, small buffers",
         {.count = N, .passes = 3, .buffer_bytes = 2000, .readers = 3, .keep = 1}},
        {"kept, one buffer", {.count = 100, .passes = 4, .buffer_bytes = 1 << 20, .keep = 1}},
        {"kept, a part", {.first = 100, .count = 50, .passes = 2, .buffer_bytes = 3000, .keep = 1}},
        {"kept, one pass", {.count = N, .passes = 1, .buffer_bytes = 3000, .keep = 1}},
        {"kept, no records", {.first = 7, .count = 0, .passes = 2, .keep = 1}},
        {"no records", {.first = 7, .count = 0, .passes = UINT64_MAX}},
        {"no passes", {.count = N, .passes = 0}},
        {"no passes, from the middle", {.count = N, .passes = 0, .begin = 7, .keep = 1}},
    };
    struct scratch *s = *state;
    const char *path = scratch_path(s, "stream.rec");
    make(path);
    struct drps_recfile *f = open_file(drps_io_os(), path);
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
        check_plain(f, cases[c].name, &cases[c].o);
    drps_recfile_close(f);
}

/* A stream may begin at any record, with buffers that begin and end anywhere. */
static void test_recstream_begins_anywhere(void **state)
{
    static const struct drps_recstream_options cases[] = {
        {.first = 100, .count = 60, .passes = 3, .buffer_bytes = 2000, .readers = 3, .depth = 2},
        {.first = 100, .count = 60, .passes = 1, .buffer_bytes = 1, .depth = 16, .readers = 4},
        {.first = 100, .count = 60, .passes = 3, .buffer_bytes = 2000, .readers = 3, .keep = 1},
        {.first = 200, .count = 60, .passes = 1, .buffer_bytes = 5000, .keep = 1},
        {.first = 100, .count = 60, .passes = 3, .buffer_bytes = 1, .readers = 4, .keep = 1},
        {.first = 200, .count = 60, .passes = UINT64_MAX, .keep = 1},
    };
    struct scratch *s = *state;
    const char *path = scratch_path(s, "stream.rec");
    make(path);
    struct drps_recfile *f = open_file(drps_io_os(), path);
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct drps_recstream_options o = cases[c];
        char name[32];
        (void)snprintf(name, sizeof(name), "case %zu", c);
        for (o.begin = 0; o.begin < o.count; o.begin++)
            check_plain(f, name, &o);
    }
    drps_recfile_close(f);
}

static void test_recstream_begins_within_a_pass(void **state)
{
    static const struct drps_recstream_options cases[] = {
        {.count = 5, .passes = 2, .begin = 5},
        {.count = 5, .passes = 2, .begin = UINT64_MAX, .keep = 1},
        {.first = 3, .count = 0, .passes = 1, .begin = 1},
    };
    struct scratch *s = *state;
    const char *path = scratch_path(s, "stream.rec");
    make(path);
    struct drps_recfile *f = open_file(drps_io_os(), path);
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct drps_recstream *stream;
        struct drps_err err = DRPS_ERR_INIT;
        assert_int_equal(drps_recstream_open(f, &cases[c], &stream, &err), -EINVAL);
        assert_null(stream);
        assert_non_null(strstr(err.text, "cannot begin with number"));
    }
    drps_recfile_close(f);
}

enum { PLAIN_BYTES = 824 }; /* of every record but LARGE */

/* A record, and itself once more, so that what it becomes is never smaller. */
static int unpack_twice(const void *record, size_t bytes, void *room, size_t room_bytes,
                        size_t *bytes_out, struct drps_err *err)
{
    *bytes_out = 2 * bytes;
    if (*bytes_out > room_bytes) return drps_err_set(err, DRPS_E_CORRUPT, "no room");
    memcpy(room, record, bytes);
    memcpy((char *)room + bytes, record, bytes);
    return 0;
}

static void check_twice(const void *record, size_t bytes, uint64_t want)
{
    const size_t half = size_of(want);
    uint64_t numbers[2];
    assert_int_equal(bytes, 2 * half);
    memcpy(&numbers[0], record, sizeof(uint64_t));
    memcpy(&numbers[1], (const char *)record + half, sizeof(uint64_t));
    assert_true(numbers[0] == want && numbers[1] == want && (uintptr_t)record % 8 == 0);
    for (size_t i = sizeof(uint64_t); i < half; i++)
        assert_true(!((const char *)record)[i] && !((const char *)record)[half + i]);
}

static void check_unpacked(struct drps_recfile *f, struct drps_recstream_options o)
{
    struct drps_recstream *stream;
    struct drps_err err = DRPS_ERR_INIT;
    const void *record;
    size_t bytes;
    uint64_t got = 0;
    int rc;
    o.first = LARGE + 1;
    o.unpack = unpack_twice;
    o.plain_bytes = PLAIN_BYTES;
    assert_int_equal(drps_recstream_open(f, &o, &stream, &err), 0);
    while ((rc = drps_recstream_next(stream, &record, &bytes, &err)) > 0)
        check_twice(record, bytes, wanted(&o, got++));
    assert_int_equal(rc, 0);
    assert_int_equal(got, records_of(&o));
    check_read(stream, f, &o);
    drps_recstream_close(stream);
}

/* Records are unpacked with direct I/O and without it, which begin elsewhere in a buffer. */
static void test_recstream_unpacks(void **state)
{
    static const struct drps_recstream_options cases[] = {
        {.count = N - LARGE - 1, .passes = 3, .buffer_bytes = 5000, .readers = 3, .depth = 4},
        {.count = N - LARGE - 1, .passes = 2, .buffer_bytes = 1, .readers = 2, .depth = 2},
        {.count = N - LARGE - 1, .passes = 2, .buffer_bytes = 100000},
        {.count = N - LARGE - 1,
         .passes = 2,
         .buffer_bytes = 900,
         .readers = 4,
         .depth = 16,
         .plain_records = 1},
        {.count = N - LARGE - 1,
         .passes = 2,
         .buffer_bytes = 5000,
         .readers = 4,
         .plain_records = 1000},
        {.count = N - LARGE - 1, .passes = 3, .buffer_bytes = 5000, .readers = 3, .keep = 1},
        {.count = 5, .passes = 4, .buffer_bytes = 1 << 20, .keep = 1},
        {.count = 1, .passes = 2},
    };
    struct scratch *s = *state;
    const char *path = scratch_path(s, "stream.rec");
    make(path);
    for (size_t c = 0; c < 2 * sizeof(cases) / sizeof(cases[0]); c++) {
        struct drps_recfile *f = open_file(drps_io_os(), path);
        if (c % 2) drps_recfile_go_direct(f);
        check_unpacked(f, cases[c / 2]);
        drps_recfile_close(f);
    }
}

static void test_recstream_unpacks_from_anywhere(void **state)
{
    static const struct drps_recstream_options cases[] = {
        {.count = 50, .passes = 3, .buffer_bytes = 3000, .readers = 3, .depth = 4},
        {.count = 50, .passes = 2, .buffer_bytes = 1, .readers = 2, .depth = 2, .plain_records = 1},
        {.count = 50, .passes = 1, .buffer_bytes = 900, .plain_records = 1000},
        {.count = 50, .passes = 3, .buffer_bytes = 3000, .readers = 3, .keep = 1},
        {.count = 50, .passes = 3, .buffer_bytes = 1, .readers = 4, .depth = 16, .keep = 1},
        {.count = 50, .passes = 1, .buffer_bytes = 900, .depth = 1, .keep = 1},
        {.count = 1, .passes = 2, .keep = 1},
    };
    struct scratch *s = *state;
    const char *path = scratch_path(s, "stream.rec");
    make(path);
    struct drps_recfile *f = open_file(drps_io_os(), path);
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct drps_recstream_options o = cases[c];
        for (o.begin = 0; o.begin < o.count; o.begin++)
            check_unpacked(f, o);
    }
    drps_recfile_close(f);
}

/* A record that is larger than any should be, and one that cannot be unpacked. */
static void test_recstream_unpack_errors_surface(void **state)
{
    struct scratch *s = *state;
    const char *path = scratch_path(s, "stream.rec");
    make(path);
    struct drps_recfile *f = open_file(drps_io_os(), path);
    for (int narrow = 0; narrow < 2; narrow++) {
        const struct drps_recstream_options o = {.count = N,
                                                 .passes = 2,
                                                 .buffer_bytes = 5000,
                                                 .unpack = unpack_twice,
                                                 .plain_bytes = narrow ? 416 : PLAIN_BYTES};
        struct drps_recstream *stream;
        struct drps_err err = DRPS_ERR_INIT;
        const void *record;
        size_t bytes;
        int rc;
        uint64_t got = 0;
        assert_int_equal(drps_recstream_open(f, &o, &stream, NULL), 0);
        while ((rc = drps_recstream_next(stream, &record, &bytes, &err)) > 0)
            got++;
        assert_int_equal(rc, DRPS_E_CORRUPT);
        assert_non_null(strstr(err.text, narrow ? ": no room" : "record 123 takes 300000 bytes"));
        assert_int_equal(got, narrow ? 29 : LARGE); /* the first of more than 416 / 2 bytes */
        drps_recstream_close(stream);
    }
    drps_recfile_close(f);
}

static void test_recstream_memory_covers_the_largest_record(void **state)
{
    struct scratch *s = *state;
    const char *path = scratch_path(s, "stream.rec");
    const struct drps_recstream_options all = {
        .count = N, .passes = 1, .buffer_bytes = 1000, .depth = 2};
    const struct drps_recstream_options few = {
        .count = 10, .passes = 1, .buffer_bytes = 1000, .depth = 2};
    make(path);
    struct drps_recfile *f = open_file(drps_io_os(), path);
    const uint64_t more = 2 * 2 * DRPS_RECFILE_ALIGN;
    assert_int_equal(drps_recstream_memory(f, &all), 2 * LARGE_BYTES + more);
    assert_int_equal(drps_recstream_memory(f, &few), 2000 + more);
    const struct drps_recstream_options kept = {
        .count = 10, .passes = 2, .buffer_bytes = 1 << 20, .keep = 1};
    assert_int_equal(drps_recstream_memory(f, &kept), drps_recfile_run_bytes(f, 0, 10) + more / 2);
    /* two buffers of 23 records of the largest size, and plain records with their bytes */
    struct drps_recstream_options packed = {.count = 10,
                                            .passes = 1,
                                            .buffer_bytes = 1700,
                                            .depth = 2,
                                            .plain_records = 3,
                                            .unpack = unpack_twice,
                                            .plain_bytes = PLAIN_BYTES};
    const uint64_t plain = PLAIN_BYTES + sizeof(size_t);
    assert_int_equal(drps_recstream_memory(f, &packed), 2 * (23 * 72) + more + 3 * plain);
    packed.keep = 1;
    assert_int_equal(drps_recstream_memory(f, &packed), 2 * (23 * 72) + more + 10 * plain);
    /* a record that cannot be: its plain form would be smaller */
    packed.keep = 0;
    packed.count = N;
    assert_int_equal(drps_recstream_memory(f, &packed), 2 * (2 * PLAIN_BYTES) + more + 3 * plain);
    drps_recfile_close(f);
}

static void test_recstream_close_at_any_moment(void **state)
{
    struct scratch *s = *state;
    const char *path = scratch_path(s, "stream.rec");
    const struct drps_recstream_options o = {
        .count = N, .passes = 1000, .buffer_bytes = 4000, .depth = 3};
    make(path);
    struct drps_recfile *f = open_file(drps_io_os(), path);
    for (int take = 0; take < 200; take += 7) {
        struct drps_recstream *stream;
        const void *record;
        size_t bytes;
        assert_int_equal(drps_recstream_open(f, &o, &stream, NULL), 0);
        for (int i = 0; i < take; i++)
            assert_int_equal(drps_recstream_next(stream, &record, &bytes, NULL), 1);
        drps_recstream_close(stream);
    }
    drps_recstream_close(NULL);
    drps_recfile_close(f);
}

/* Records before the fault are given; then the error, as often as one asks. */
static void test_recstream_error_surfaces(void **state)
{
    struct scratch *s = *state;
    const char *path = scratch_path(s, "stream.rec");
    struct drps_recstream_options o = {
        .first = LARGE + 1, .count = N - LARGE - 1, .passes = 2, .buffer_bytes = 2000, .depth = 2};
    make(path);
    for (long k = 1; k < 40; k += 3) {
        o.keep = k % 2 == 0;
        o.begin = k % 4 < 2 ? 0 : 200;
        struct fault_io *fault = fault_io_new(drps_io_os());
        struct drps_recstream *stream;
        struct drps_err err = DRPS_ERR_INIT;
        const void *record;
        size_t bytes;
        uint64_t got = 0;
        int rc;
        assert_non_null(fault);
        struct drps_recfile *f = open_file(&fault->io, path);
        fault_io_arm(fault, FAULT_PREAD, k, 0, FAULT_ERROR, -EIO);
        assert_int_equal(drps_recstream_open(f, &o, &stream, NULL), 0);
        while ((rc = drps_recstream_next(stream, &record, &bytes, &err)) > 0)
            got++;
        assert_int_equal(rc, -EIO);
        assert_null(record);
        assert_non_null(strstr(err.text, "stream.rec"));
        assert_true(k == 1 ? got == 0 : got > 0);
        assert_int_equal(drps_recstream_next(stream, &record, &bytes, NULL), -EIO);
        drps_recstream_close(stream);
        drps_recfile_close(f);
        fault_io_free(fault);
    }
}

static void test_recstream_damage_surfaces(void **state)
{
    struct scratch *s = *state;
    const char *path = scratch_path(s, "stream.rec");
    const struct drps_recstream_options o = {.count = N, .passes = 1, .buffer_bytes = 2000};
    struct drps_recstream *stream;
    struct drps_err err = DRPS_ERR_INIT;
    const void *record;
    size_t bytes, n;
    int rc;
    make(path);
    char *data = scratch_read(path, &n);
    data[n / 2]++; /* within a record */
    scratch_write(path, data, n);
    free(data);
    struct drps_recfile *f = open_file(drps_io_os(), path);
    assert_int_equal(drps_recstream_open(f, &o, &stream, NULL), 0);
    while ((rc = drps_recstream_next(stream, &record, &bytes, &err)) > 0) {
    }
    assert_int_equal(rc, DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "fails its checksum"));
    drps_recstream_close(stream);
    drps_recfile_close(f);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_recstream_unpacks),
        SCRATCH_TEST(test_recstream_unpacks_from_anywhere),
        SCRATCH_TEST(test_recstream_unpack_errors_surface),
        SCRATCH_TEST(test_recstream_gives_records_in_order_pass_after_pass),
        SCRATCH_TEST(test_recstream_begins_anywhere),
        SCRATCH_TEST(test_recstream_begins_within_a_pass),
        SCRATCH_TEST(test_recstream_memory_covers_the_largest_record),
        SCRATCH_TEST(test_recstream_close_at_any_moment),
        SCRATCH_TEST(test_recstream_error_surfaces),
        SCRATCH_TEST(test_recstream_damage_surfaces),
    };
    return cmocka_run_group_tests_name("recstream", tests, NULL, NULL);
}
