/* The helpers over struct drps_io, on real files with faults injected. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/drps_checksum.h"
#include "base/drps_io.h"
#include "support/fault_io.h"
#include "support/scratch.h"

enum { N = 10000 };

static void fill(unsigned char *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        data[i] = (unsigned char)(i * 31 + i / 256);
}

static void test_io_interrupted_and_short_transfers_go_on(void **state)
{
    static const struct {
        const char *name;
        enum fault_effect effect;
        int code, persistent;
    } cases[] = {
        {"one short", FAULT_SHORT, 0, 0},
        {"all short", FAULT_SHORT, 0, 1},
        {"one interrupted", FAULT_ERROR, -EINTR, 0},
        {"half written, then interrupted", FAULT_TORN, -EINTR, 0},
    };
    struct scratch *s = *state;
    unsigned char data[N];
    unsigned char back[N];
    fill(data, N);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fault_io *f = fault_io_new(drps_io_os());
        struct drps_err err = DRPS_ERR_INIT;
        const char *path = scratch_path(s, "file");
        int fd;
        assert_non_null(f);
        fault_io_arm(f, FAULT_PWRITE, 1, cases[i].persistent, cases[i].effect, cases[i].code);
        int rc = drps_io_open(&f->io, path, O_RDWR | O_CREAT | O_TRUNC, &fd, &err);
        if (rc == 0) rc = drps_io_write_at(&f->io, fd, data, N, 100, path, &err);
        if (rc || !atomic_load(&f->fired))
            fail_msg("%s: writing gave %d (%s)", cases[i].name, rc, err.text);
        memset(back, 0, sizeof(back));
        fault_io_arm(f, FAULT_PREAD, 1, cases[i].persistent, cases[i].effect, cases[i].code);
        rc = drps_io_read_at(&f->io, fd, back, N, 100, path, &err);
        if (rc || !atomic_load(&f->fired))
            fail_msg("%s: reading gave %d (%s)", cases[i].name, rc, err.text);
        assert_memory_equal(back, data, N);
        drps_io_close(&f->io, fd);
        fault_io_free(f);
    }
}

/* A signal ends the call: it is made again, but not once training is to stop. */
static void test_io_preallocation_outlasts_signals(void **state)
{
    struct fault_io *f = fault_io_new(drps_io_os());
    struct drps_io io = f->io;
    struct drps_err err = DRPS_ERR_INIT;
    atomic_int stop = 0;
    uint64_t size;
    int fd;
    io.stop = &stop;
    assert_int_equal(drps_io_open(&io, scratch_path(*state, "file"), O_RDWR | O_CREAT, &fd, &err),
                     0);
    fault_io_arm(f, FAULT_FALLOCATE, 1, 0, FAULT_ERROR, -EINTR);
    assert_int_equal(drps_io_fallocate(&io, fd, N, &err), 0);
    assert_int_equal(atomic_load(&f->fired), 1);
    assert_int_equal(drps_io_size(&io, fd, "file", &size, &err), 0);
    assert_int_equal(size, N);
    fault_io_arm(f, FAULT_FALLOCATE, 1, 1, FAULT_ERROR, -EINTR);
    atomic_store(&stop, 1);
    assert_int_equal(drps_io_fallocate(&io, fd, N, &err), DRPS_E_INTERRUPTED);
    fault_io_arm(f, FAULT_FALLOCATE, 1, 1, FAULT_ERROR, -EOPNOTSUPP);
    assert_int_equal(drps_io_fallocate(&io, fd, N, &err), -EOPNOTSUPP);
    drps_io_close(&io, fd);
    fault_io_free(f);
}

/* What is no file must not be read as one, nor keep its reader waiting. */
static void test_io_reads_regular_files_only(void **state)
{
    struct scratch *s = *state;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int listening = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(mkfifo(scratch_path(s, "fifo"), 0600), 0);
    assert_int_equal(symlink("fifo", scratch_path(s, "link")), 0);
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", scratch_path(s, "socket"));
    assert_int_equal(bind(listening, (struct sockaddr *)&at, sizeof(at)), 0);
    const struct {
        const char *path;
        int code, data; /* data: what drps_io_open_data() says */
        const char *text;
    } cases[] = {
        {scratch_path(s, "fifo"), -ESPIPE, 1, "is a pipe, where a regular file is expected"},
        {scratch_path(s, "link"), -ESPIPE, 1, "is a pipe"},
        {s->dir, -EISDIR, -EISDIR, "is a folder"},
        {"/dev/zero", -ENODEV, -ENODEV, "is a device"},
        {scratch_path(s, "socket"), -ENXIO, -ENXIO, "socket"},
        {scratch_file(s, "file", "x", 1), 0, 0, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT, why = DRPS_ERR_INIT;
        char *data;
        size_t n;
        int fd;
        int rc = drps_io_read_file(drps_io_os(), cases[i].path, 10, &data, &n, &err);
        if (rc != cases[i].code || !strstr(err.text, cases[i].text))
            fail_msg("%s: %d (%s)", cases[i].path, rc, err.text);
        free(data);
        for (int look = 0; look <= 1; look++) {
            rc = drps_io_open_data(drps_io_os(), cases[i].path, look, &fd, &why);
            if (rc != cases[i].data || (fd >= 0) != (rc >= 0))
                fail_msg("%s as data, look %d: %d (%s)", cases[i].path, look, rc, why.text);
            if (fd >= 0 && !look) assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
            drps_io_close(drps_io_os(), fd);
        }
    }
    (void)close(listening);
}

static void test_io_early_end_names_file_and_offset(void **state)
{
    struct scratch *s = *state;
    const char *path = scratch_file(s, "short", "abcdef", 6);
    struct drps_err err = DRPS_ERR_INIT;
    char buf[10];
    int fd;
    assert_int_equal(drps_io_open(drps_io_os(), path, O_RDONLY, &fd, &err), 0);
    assert_int_equal(drps_io_read_at(drps_io_os(), fd, buf, 10, 2, path, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "short ends at byte 6, 6 bytes too early"));
    drps_err_clear(&err);
    assert_int_equal(drps_io_read_at(drps_io_os(), fd, buf, 0, 2, path, &err), 0);
    drps_io_close(drps_io_os(), fd);
}

static void test_io_errors_name_file_and_offset(void **state)
{
    struct scratch *s = *state;
    struct fault_io *f = fault_io_new(drps_io_os());
    struct drps_err err = DRPS_ERR_INIT;
    const char *path = scratch_file(s, "file", "abcdef", 6);
    char buf[6];
    uint64_t size;
    int fd;
    assert_non_null(f);
    assert_int_equal(drps_io_open(&f->io, path, O_RDWR, &fd, &err), 0);
    fault_io_arm(f, FAULT_PREAD | FAULT_PWRITE | FAULT_FSYNC | FAULT_SIZE, 1, 1, FAULT_ERROR, -EIO);
    assert_int_equal(drps_io_read_at(&f->io, fd, buf, 3, 2, path, &err), -EIO);
    assert_non_null(strstr(err.text, "cannot read 3 bytes at offset 2 of "));
    drps_err_clear(&err);
    assert_int_equal(drps_io_write_at(&f->io, fd, buf, 3, 2, path, &err), -EIO);
    assert_non_null(strstr(err.text, "cannot write 3 bytes at offset 2 of "));
    drps_err_clear(&err);
    assert_int_equal(drps_io_sync(&f->io, fd, path, &err), -EIO);
    assert_non_null(strstr(err.text, "cannot sync "));
    drps_err_clear(&err);
    assert_int_equal(drps_io_size(&f->io, fd, path, &size, &err), -EIO);
    assert_non_null(strstr(err.text, "cannot stat "));
    drps_io_close(&f->io, fd);
    fault_io_free(f);
}

static void test_io_full_disk_says_what_to_do(void **state)
{
    struct scratch *s = *state;
    struct fault_io *f = fault_io_new(drps_io_os());
    struct drps_err err = DRPS_ERR_INIT;
    unsigned char data[N];
    assert_non_null(f);
    fill(data, N);
    f->disk_bytes = 1000;
    assert_int_equal(drps_io_write_file(&f->io, scratch_path(s, "full"), data, N, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "no space left for "));
    assert_non_null(strstr(err.text, "full (writing 9000 bytes at offset 1000)"));
    assert_non_null(strstr(err.text, "free some space"));
    fault_io_free(f);
}

static ssize_t write_nothing(void *ctx, int fd, const void *buf, size_t n, uint64_t offset)
{
    (void)ctx;
    (void)fd;
    (void)buf;
    (void)n;
    (void)offset;
    return 0;
}

static void test_io_a_write_of_nothing_is_an_error(void **state)
{
    struct drps_io_ops ops = *drps_io_os()->ops;
    const struct drps_io io = {.ops = &ops, .ctx = NULL};
    (void)state;
    ops.pwrite = write_nothing;
    assert_int_equal(drps_io_write_at(&io, 1, "a", 1, 0, "x", NULL), -EIO);
}

static void test_io_open_says_open_or_create(void **state)
{
    struct scratch *s = *state;
    struct drps_err err = DRPS_ERR_INIT;
    const char *path = scratch_path(s, "no/such");
    int fd = 5;
    assert_int_equal(drps_io_open(drps_io_os(), path, O_RDONLY, &fd, &err), -ENOENT);
    assert_int_equal(fd, -1);
    assert_non_null(strstr(err.text, "cannot open "));
    drps_err_clear(&err);
    assert_int_equal(drps_io_open(drps_io_os(), path, O_WRONLY | O_CREAT, &fd, &err), -ENOENT);
    assert_non_null(strstr(err.text, "cannot create "));
    drps_io_close(drps_io_os(), -1);
}

static void test_io_whole_files(void **state)
{
    struct scratch *s = *state;
    struct drps_err err = DRPS_ERR_INIT;
    const char *path = scratch_path(s, "whole");
    unsigned char data[N];
    char *back;
    size_t n = 0;
    fill(data, N);
    assert_int_equal(drps_io_write_file(drps_io_os(), path, data, N, &err), 0);
    assert_int_equal(drps_io_read_file(drps_io_os(), path, N, &back, &n, &err), 0);
    assert_int_equal(n, N);
    assert_memory_equal(back, data, N);
    assert_int_equal(back[N], 0);
    free(back);
    assert_int_equal(drps_io_read_file(drps_io_os(), path, N - 1, &back, &n, &err), DRPS_E_CORRUPT);
    assert_null(back);
    assert_non_null(strstr(err.text, "has 10000 bytes; at most 9999 were expected"));
    drps_err_clear(&err);
    assert_int_equal(drps_io_write_file(drps_io_os(), path, NULL, 0, &err), 0);
    assert_int_equal(drps_io_read_file(drps_io_os(), path, N, &back, &n, &err), 0);
    assert_int_equal(n, 0);
    free(back);
    assert_true(drps_io_read_file(drps_io_os(), s->dir, N, &back, &n, &err) < 0);
}

static void test_io_remove_tree(void **state)
{
    struct scratch *s = *state;
    struct drps_err err = DRPS_ERR_INIT;
    const char *top = scratch_path(s, "top");
    const char *kept = scratch_file(s, "kept", "x", 1);
    const char *aside = scratch_path(s, "aside");
    assert_int_equal(mkdir(top, 0777), 0);
    assert_int_equal(mkdir(scratch_path(s, "top/deep"), 0777), 0);
    assert_int_equal(mkdir(scratch_path(s, "top/deep/er"), 0777), 0);
    assert_int_equal(mkdir(aside, 0777), 0);
    (void)scratch_file(s, "top/deep/er/file", "x", 1);
    (void)scratch_file(s, "aside/file", "x", 1);
    assert_int_equal(symlink(aside, scratch_path(s, "top/link")), 0);
    assert_int_equal(drps_io_remove_tree(drps_io_os(), top, &err), 0);
    assert_false(path_exists(top));
    assert_int_equal(folder_entries(aside), 1); /* links are not followed */
    assert_true(path_exists(kept));
    assert_int_equal(drps_io_remove_tree(drps_io_os(), top, &err), 0); /* missing: no error */
    assert_int_equal(drps_io_remove_tree(drps_io_os(), kept, &err), 0);
    assert_false(path_exists(kept));
}

static void test_io_remove_tree_tells_faults(void **state)
{
    static const unsigned ops[] = {FAULT_UNLINK, FAULT_RMDIR};
    struct scratch *s = *state;
    for (size_t i = 0; i < 2; i++) {
        struct fault_io *f = fault_io_new(drps_io_os());
        struct drps_err err = DRPS_ERR_INIT;
        const char *top = scratch_path(s, "top");
        assert_non_null(f);
        (void)mkdir(top, 0777); /* there in the second round */
        (void)scratch_file(s, "top/file", "x", 1);
        fault_io_arm(f, ops[i], 1, 0, FAULT_ERROR, -EACCES);
        assert_int_equal(drps_io_remove_tree(&f->io, top, &err), -EACCES);
        assert_non_null(strstr(err.text, "cannot remove "));
        fault_io_free(f);
    }
}

static void test_io_path_join(void **state)
{
    static const char *const cases[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"}, {"", "b", "/b"}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *path = drps_path_join(cases[i][0], cases[i][1]);
        assert_string_equal(path, cases[i][2]);
        free(path);
    }
}

/* The same bytes give the same sum, however they are cut. */
static void test_checksum_pieces_and_summer_agree(void **state)
{
    struct random_source r = random_begin("checksum");
    unsigned char data[3000];
    (void)state;
    fill(data, sizeof(data));
    for (int round = 0; round < 300; round++) {
        size_t n = (size_t)random_below(&r, sizeof(data) + 1);
        struct drps_piece pieces[5];
        struct drps_summer *summer = drps_summer_new();
        size_t at = 0;
        assert_non_null(summer);
        for (size_t i = 0; i < 5; i++) {
            size_t part = i == 4 ? n - at : (size_t)random_below(&r, n - at + 1);
            pieces[i] = (struct drps_piece){data + at, part};
            drps_summer_add(summer, data + at, part);
            at += part;
        }
        uint64_t sum = drps_checksum(data, n);
        if (drps_checksum_pieces(pieces, 5) != sum || drps_summer_value(summer) != sum)
            fail_msg("%zu bytes: sums differ", n);
        drps_summer_free(summer);
    }
    assert_true(drps_checksum_pieces(NULL, 0) == drps_checksum(NULL, 0));
    drps_summer_free(NULL);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_io_interrupted_and_short_transfers_go_on),
        SCRATCH_TEST(test_io_preallocation_outlasts_signals),
        SCRATCH_TEST(test_io_reads_regular_files_only),
        SCRATCH_TEST(test_io_early_end_names_file_and_offset),
        SCRATCH_TEST(test_io_errors_name_file_and_offset),
        SCRATCH_TEST(test_io_full_disk_says_what_to_do),
        cmocka_unit_test(test_io_a_write_of_nothing_is_an_error),
        SCRATCH_TEST(test_io_open_says_open_or_create),
        SCRATCH_TEST(test_io_whole_files),
        SCRATCH_TEST(test_io_remove_tree),
        SCRATCH_TEST(test_io_remove_tree_tells_faults),
        cmocka_unit_test(test_io_path_join),
        cmocka_unit_test(test_checksum_pieces_and_summer_agree),
    };
    return cmocka_run_group_tests_name("io", tests, NULL, NULL);
}
