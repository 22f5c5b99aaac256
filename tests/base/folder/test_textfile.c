/* Scores on their way to a file, a pipe, a device or standard output: all of them in order, or an
 * error that names what cannot be written. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/folder/drps_textfile.h"
#include "support/scratch.h"

enum { LINES = 50000, LINE_BYTES = 16 }; /* more than one buffer */

static int put_lines(struct drps_textfile *f, struct drps_err *err)
{
    int rc = 0;
    for (int i = 0; i < LINES && rc == 0; i++) {
        char *at;
        rc = drps_textfile_room(f, LINE_BYTES + 1, &at, err);
        if (rc == 0) {
            (void)snprintf(at, LINE_BYTES + 1, "%15d\n", i);
            drps_textfile_used(f, LINE_BYTES);
        }
    }
    return rc == 0 ? drps_textfile_commit(f, err) : rc;
}

static int write_lines(const char *path, int replace, struct drps_err *err)
{
    struct drps_textfile f;
    int rc = drps_textfile_open(&f, drps_io_os(), path, replace, err);
    if (rc == 0) rc = put_lines(&f, err);
    drps_textfile_close(&f);
    return rc;
}

static void check_lines(const char *text, size_t n)
{
    assert_int_equal(n, LINES * LINE_BYTES);
    for (int i = 0; i < LINES; i++)
        assert_int_equal(atoi(text + i * LINE_BYTES), i);
}

static void test_textfile_is_there_when_it_is_complete(void **state)
{
    struct scratch *s = *state;
    const char *path = scratch_path(s, "scores");
    struct drps_textfile f;
    struct drps_err err = DRPS_ERR_INIT;
    size_t n;
    char *at;
    assert_int_equal(drps_textfile_open(&f, drps_io_os(), path, 0, &err), 0);
    assert_int_equal(drps_textfile_room(&f, 1, &at, &err), 0);
    drps_textfile_close(&f);
    assert_int_equal(folder_entries(s->dir), 0);

    assert_int_equal(write_lines(path, 0, &err), 0);
    char *text = scratch_read(path, &n);
    check_lines(text, n);
    free(text);
    assert_int_equal(folder_entries(s->dir), 1);
    assert_int_equal(write_lines(path, 0, &err), -EEXIST);
    assert_int_equal(write_lines(path, 1, &err), 0);
    drps_err_clear(&err);
    assert_int_equal(write_lines(s->dir, 1, &err), -EISDIR);
    assert_non_null(strstr(err.text, "is a folder"));
}

struct pipe_reader {
    const char *path;
    char *text; /* own */
    size_t n;
};

static void *read_all(void *arg)
{
    struct pipe_reader *r = arg;
    const int fd = open(r->path, O_RDONLY);
    for (ssize_t got = 1; fd >= 0 && got > 0 && r->n < LINES * LINE_BYTES;) {
        got = read(fd, r->text + r->n, LINES * LINE_BYTES - r->n);
        if (got > 0) r->n += (size_t)got;
    }
    if (fd >= 0) (void)close(fd);
    return NULL;
}

static void test_textfile_goes_through_a_pipe(void **state)
{
    struct scratch *s = *state;
    struct drps_err err = DRPS_ERR_INIT;
    struct pipe_reader r = {.path = scratch_path(s, "pipe"), .text = calloc(LINES, LINE_BYTES)};
    struct stat st;
    pthread_t thread;
    assert_non_null(r.text);
    assert_int_equal(mkfifo(r.path, 0600), 0);
    assert_int_equal(pthread_create(&thread, NULL, read_all, &r), 0);
    if (write_lines(r.path, 0, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(pthread_join(thread, NULL), 0);
    check_lines(r.text, r.n);
    free(r.text);
    assert_int_equal(stat(r.path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode)); /* no file has taken its place */
}

static void test_textfile_says_that_nobody_reads(void **state)
{
    struct scratch *s = *state;
    const char *path = scratch_path(s, "pipe");
    struct drps_textfile f;
    struct drps_err err = DRPS_ERR_INIT;
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(mkfifo(path, 0600), 0);
    const int fd = open(path, O_RDONLY | O_NONBLOCK);
    assert_int_equal(drps_textfile_open(&f, drps_io_os(), path, 0, &err), 0);
    (void)close(fd);
    assert_int_equal(put_lines(&f, &err), -EPIPE);
    assert_non_null(strstr(err.text, "cannot write to "));
    assert_non_null(strstr(err.text, "/pipe"));
    drps_textfile_close(&f);
}

static void test_textfile_says_that_a_device_is_full(void **state)
{
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    assert_int_equal(write_lines("/dev/full", 0, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "cannot write to /dev/full"));
}

/* Standard output fails while lines are written, or at the end, when the last ones leave the buffer
 * of the C library. */
static void test_textfile_says_that_standard_output_is_full(void **state)
{
    (void)state;
    for (int large = 0; large < 2; large++) {
        struct drps_textfile f;
        struct drps_err err = DRPS_ERR_INIT;
        char *at;
        (void)fflush(stdout);
        const int kept = dup(STDOUT_FILENO), full = open("/dev/full", O_WRONLY);
        assert_true(kept >= 0 && full >= 0);
        assert_true(dup2(full, STDOUT_FILENO) >= 0);
        int rc = drps_textfile_open(&f, drps_io_os(), "-", 0, &err);
        if (rc == 0 && large) rc = put_lines(&f, &err);
        if (rc == 0 && !large) rc = drps_textfile_room(&f, 2, &at, &err);
        if (rc == 0 && !large) {
            memcpy(at, "1\n", 2);
            drps_textfile_used(&f, 2);
            rc = drps_textfile_commit(&f, &err);
        }
        drps_textfile_close(&f);
        __fpurge(stdout);
        clearerr(stdout);
        assert_true(dup2(kept, STDOUT_FILENO) >= 0);
        (void)close(kept);
        (void)close(full);
        assert_int_equal(rc, -ENOSPC);
        assert_non_null(strstr(err.text, "cannot write to standard output"));
    }
}

#define SCRATCH_TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_textfile_is_there_when_it_is_complete),
        SCRATCH_TEST(test_textfile_goes_through_a_pipe),
        SCRATCH_TEST(test_textfile_says_that_nobody_reads),
        cmocka_unit_test(test_textfile_says_that_a_device_is_full),
        cmocka_unit_test(test_textfile_says_that_standard_output_is_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
