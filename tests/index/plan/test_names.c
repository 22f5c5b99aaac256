/* names.rec: look-ups across pages, scanning, and damaged pages. */
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

#include "base/drps_endian.h"
#include "base/record/drps_recfile.h"
#include "index/plan/drps_names.h"
#include "index/plan/drps_names_writer.h"
#include "index/plan/drps_plan.h"
#include "support/scratch.h"

enum { PAGE = 4096 };

static uint64_t key_of(uint64_t i)
{
    return 10 + 3 * i;
}

static size_t text_of(uint64_t i, char *text)
{
    return i % 5 == 0 ? 0 : (size_t)sprintf(text, "name %llu", (unsigned long long)i);
}

/* n names, key_of(i) -> i + 7. */
static void make(const char *dir, size_t n, int strings)
{
    struct names_writer *w;
    struct drps_err err = DRPS_ERR_INIT;
    char text[40];
    assert_int_equal(drps_names_writer_open(drps_io_os(), dir, strings, &w, &err), 0);
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = strings ? text_of(i, text) : 0;
        assert_int_equal(
            drps_names_writer_add(w, key_of(i), i + 7, i % 3, strings ? text : NULL, bytes, &err),
            0);
    }
    assert_int_equal(drps_names_writer_finish(w, &err), 0);
    drps_names_writer_close(w);
}

static struct drps_names *open_names(const char *dir)
{
    struct drps_names *names;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_names_open(drps_io_os(), dir, &names, &err)) fail_msg("%s", err.text);
    return names;
}

static void test_names_lookup_present_and_absent(void **state)
{
    static const size_t sizes[] = {0, 1, 2, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE, 3 * PAGE + 5};
    struct scratch *s = *state;
    for (size_t c = 0; c < 2 * sizeof(sizes) / sizeof(sizes[0]); c++) {
        size_t n = sizes[c / 2];
        make(s->dir, n, c % 2);
        struct drps_names *names = open_names(s->dir);
        size_t keys_n = 3 * n + 30;
        uint64_t *keys = malloc(keys_n * sizeof(*keys));
        uint32_t *rows = malloc(keys_n * sizeof(*rows));
        assert_true(keys && rows);
        for (size_t k = 0; k < keys_n; k++)
            keys[k] = k;                                  /* below, between, and above */
        keys[keys_n - 1] = keys[keys_n - 2] = UINT64_MAX; /* twice the same */
        assert_int_equal(drps_names_lookup(names, keys, keys_n, rows, NULL), 0);
        for (size_t k = 0; k < keys_n; k++) {
            uint64_t i = keys[k] >= 10 && (keys[k] - 10) % 3 == 0 ? (keys[k] - 10) / 3 : UINT64_MAX;
            uint32_t want = i < n ? (uint32_t)i + 7 : DRPS_NO_ROW;
            if (rows[k] != want)
                fail_msg("%zu names, key %" PRIu64 ": %u, expected %u", n, keys[k], rows[k], want);
        }
        drps_names_close(names);
        free(keys);
        free(rows);
    }
    drps_names_close(NULL);
}

struct scan {
    size_t n;
    int strings;
    size_t stop;
};

static int check_name(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                      size_t bytes, struct drps_err *err)
{
    struct scan *scan = ctx;
    char want[40];
    (void)err;
    assert_true(key == key_of(scan->n));
    assert_int_equal(row, scan->n + 7);
    assert_int_equal(field, scan->strings ? scan->n % 3 : 0);
    if (scan->strings) {
        assert_int_equal(bytes, text_of(scan->n, want));
        assert_memory_equal(text, want, bytes);
    } else {
        assert_null(text);
        assert_int_equal(bytes, 0);
    }
    return ++scan->n == scan->stop ? 42 : 0;
}

static void test_names_scan_in_key_order(void **state)
{
    struct scratch *s = *state;
    for (int strings = 0; strings < 2; strings++) {
        make(s->dir, 2 * PAGE + 9, strings);
        struct drps_names *names = open_names(s->dir);
        struct scan all = {.strings = strings};
        struct scan some = {.strings = strings, .stop = PAGE + 3};
        assert_int_equal(drps_names_scan(names, check_name, &all, NULL), 0);
        assert_int_equal(all.n, 2 * PAGE + 9);
        assert_int_equal(drps_names_scan(names, check_name, &some, NULL), 42);
        assert_int_equal(some.n, PAGE + 3);
        drps_names_close(names);
    }
}

/* One page of the names a, bb, and the directory; changed by a case, its checksums right. */
static unsigned char *page(size_t *bytes_out)
{
    static const unsigned char whole[] = {
        2,   0,   0,   0, 1, 0, 0, 0,                         /* n, flags */
        5,   0,   0,   0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, /* keys */
        1,   0,   0,   0, 2, 0, 0, 0,                         /* rows */
        0,   0,   1,   0,                                     /* fields */
        0,   0,   0,   0, 1, 0, 0, 0, 3, 0, 0, 0,             /* offsets */
        'a', 'b', 'b',
    };
    unsigned char *copy = malloc(sizeof(whole));
    assert_non_null(copy);
    memcpy(copy, whole, sizeof(whole));
    *bytes_out = sizeof(whole);
    return copy;
}

static int visit_nothing(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                         size_t bytes, struct drps_err *err)
{
    size_t *sum = ctx;
    (void)key;
    (void)row;
    (void)field;
    (void)err;
    for (size_t i = 0; i < bytes; i++) /* for the sanitizer */
        *sum += (unsigned char)text[i];
    return 0;
}

static int read_page(const char *dir, const unsigned char *data, size_t bytes, uint64_t first,
                     size_t directory, struct drps_err *err)
{
    struct drps_recwriter *w;
    struct drps_names *names = NULL;
    char *path = drps_path_join(dir, "names.rec");
    struct drps_piece pieces[] = {{data, bytes}, {&first, directory}};
    size_t sum = 0;
    assert_int_equal(drps_recwriter_open(drps_io_os(), path, DRPS_KIND_NAMES, &w, NULL), 0);
    assert_int_equal(drps_recwriter_add(w, &pieces[0], 1, NULL), 0);
    if (directory) assert_int_equal(drps_recwriter_add(w, &pieces[1], 1, NULL), 0);
    assert_int_equal(drps_recwriter_finish(w, NULL), 0);
    drps_recwriter_close(w);
    free(path);
    int rc = drps_names_open(drps_io_os(), dir, &names, err);
    if (rc == 0) rc = drps_names_scan(names, visit_nothing, &sum, err);
    drps_names_close(names);
    return rc;
}

static void test_names_golden_page(void **state)
{
    struct scratch *s = *state;
    struct names_writer *w;
    struct drps_recfile *f;
    unsigned char back[64];
    size_t bytes;
    unsigned char *want = page(&bytes);
    assert_int_equal(read_page(s->dir, want, bytes, 5, 8, NULL), 0);
    assert_int_equal(drps_names_writer_open(drps_io_os(), s->dir, 1, &w, NULL), 0);
    assert_int_equal(drps_names_writer_add(w, 5, 1, 0, "a", 1, NULL), 0);
    assert_int_equal(drps_names_writer_add(w, 9, 2, 1, "bb", 2, NULL), 0);
    assert_int_equal(drps_names_writer_finish(w, NULL), 0);
    drps_names_writer_close(w);
    assert_int_equal(
        drps_recfile_open(drps_io_os(), scratch_path(s, "names.rec"), DRPS_KIND_NAMES, &f, NULL),
        0);
    assert_int_equal(drps_recfile_count(f), 2);
    assert_int_equal(drps_recfile_bytes(f, 0), bytes);
    assert_int_equal(drps_recfile_read(f, 0, 1, back, NULL), 0);
    assert_memory_equal(back, want, bytes);
    drps_recfile_close(f);
    free(want);
}

static void test_names_malformed_pages_are_refused(void **state)
{
    static const struct {
        const char *name;
        size_t at;
        uint32_t value;
        size_t cut; /* bytes taken off the end */
    } cases[] = {
        {"a third name", 0, 3, 0},
        {"no names", 0, 0, 0},
        {"too many names", 0, 5000, 0},
        {"2^32 - 1 names", 0, UINT32_MAX, 0},
        {"no strings after all", 4, 0, 0},
        {"unknown flags", 4, 2, 0},
        {"another first key", 8, 4, 0},
        {"offsets going back", 40, 9, 0},
        {"first offset too large", 36, 2, 0},
        {"last offset too large", 44, 100, 0},
        {"last offset too small", 44, 2, 0},
        {"text cut", 0, 2, 1},
        {"offsets cut", 0, 2, 5},
        {"only the head", 0, 2, 43},
        {"half a head", 0, 2, 47},
        {"nothing", 0, 2, 51},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        size_t bytes;
        unsigned char *data = page(&bytes);
        drps_put_u32(data + cases[i].at, cases[i].value);
        int rc = read_page(s->dir, data, bytes - cases[i].cut, 5, 8, &err);
        if (rc != DRPS_E_CORRUPT || !strstr(err.text, "names.rec"))
            fail_msg("%s: %d (%s)", cases[i].name, rc, err.text);
        free(data);
    }
}

static void test_names_malformed_directory_is_refused(void **state)
{
    static const size_t directory[] = {0, 1, 7};
    struct scratch *s = *state;
    size_t bytes;
    unsigned char *data = page(&bytes);
    for (size_t i = 0; i < 3; i++) {
        struct drps_err err = DRPS_ERR_INIT;
        int rc = read_page(s->dir, data, bytes, 5, directory[i], &err);
        if (rc != DRPS_E_CORRUPT)
            fail_msg("directory of %zu bytes: %d (%s)", directory[i], rc, err.text);
    }
    free(data);
}

static void test_names_missing_file_is_named(void **state)
{
    struct scratch *s = *state;
    struct drps_names *names;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(drps_names_open(drps_io_os(), s->dir, &names, &err), -ENOENT);
    assert_null(names);
    assert_non_null(strstr(err.text, "names.rec"));
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_names_lookup_present_and_absent),
        SCRATCH_TEST(test_names_scan_in_key_order),
        SCRATCH_TEST(test_names_golden_page),
        SCRATCH_TEST(test_names_malformed_pages_are_refused),
        SCRATCH_TEST(test_names_malformed_directory_is_refused),
        SCRATCH_TEST(test_names_missing_file_is_named),
    };
    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
