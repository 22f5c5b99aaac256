/*
 * What the kernel refuses for want of memory is handed over again, after a pause where nothing is
 * under way. The linker puts functions of this file in place of the call that hands over and of the
 * pause.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/drps_alloc.h"
#include "storage/io/aio_internal.h"
#include "support/lists.h"
#include "support/scratch.h"

enum { PIECE = 16 << 10, PIECES = 64 };

static struct {
    int refuse;  /* so many calls from now on; -1: all */
    int every;   /* and each so-manieth call after; 0: none */
    int refused; /* calls in all */
    int calls;
    int pauses;
    int last; /* what the last pause was told */
} kernel;

struct io_uring;
int __real_io_uring_submit_and_wait(struct io_uring *ring, unsigned wait);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned wait);
void __wrap_drps_aio_pause(int refusals);

int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned wait)
{
    kernel.calls++;
    if (kernel.refuse || (kernel.every && kernel.calls % kernel.every == 0)) {
        kernel.refuse -= kernel.refuse > 0;
        kernel.refused++;
        return kernel.refused % 2 ? -EAGAIN : -EBUSY;
    }
    return __real_io_uring_submit_and_wait(ring, wait);
}

void __wrap_drps_aio_pause(int refusals)
{
    kernel.pauses++;
    kernel.last = refusals;
}

static char *buffers; /* [PIECES][PIECE] */

static struct drps_aio *open_uring(const char *path)
{
    const struct drps_aio_config config = {.io = drps_io_os(),
                                           .path = path,
                                           .file_bytes = PIECES * PIECE,
                                           .buffers = buffers,
                                           .buffers_bytes = PIECES * PIECE,
                                           .depth = PIECES};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_aio_about about;
    struct drps_aio *aio;
    assert_ok(drps_aio_open(&config, &aio, &err), &err);
    drps_aio_about(aio, &about);
    if (strcmp(about.engine, "io_uring") == 0) return aio;
    print_message("SKIPPED: %s\n", about.why);
    drps_aio_close(aio);
    skip();
    return NULL;
}

/* All pieces, handed over one by one, and taken back. */
static int move_all(struct drps_aio *aio, int write, struct drps_err *err)
{
    uint32_t tags[PIECES];
    size_t n, seen = 0;
    int rc = 0;
    for (uint32_t i = 0; i < PIECES && rc == 0; i++) {
        const struct drps_aio_op op = {.buf = buffers + (size_t)i * PIECE,
                                       .bytes = PIECE,
                                       .offset = (uint64_t)i * PIECE,
                                       .write = write,
                                       .tag = i};
        rc = drps_aio_submit(aio, &op, 1, err);
    }
    while (rc == 0 && seen < PIECES) {
        rc = drps_aio_wait(aio, 1, tags, PIECES, &n, err);
        seen += n;
    }
    return rc;
}

static void test_refused_with_nothing_under_way(void **state)
{
    struct drps_aio *aio = open_uring(scratch_path(*state, "blocks"));
    struct drps_err err = DRPS_ERR_INIT;
    memset(&kernel, 0, sizeof(kernel));
    kernel.refuse = 7;
    assert_ok(move_all(aio, 1, &err), &err);
    assert_int_equal(kernel.refused, 7);
    assert_int_equal(kernel.pauses, 7); /* the first piece: nothing else can be waited for */
    assert_int_equal(kernel.last, 7);
    drps_aio_close(aio);
}

/* Each third call is refused, while others are under way or done. */
static void test_refused_with_others_under_way(void **state)
{
    struct drps_aio *aio = open_uring(scratch_path(*state, "blocks"));
    struct drps_err err = DRPS_ERR_INIT;
    memset(&kernel, 0, sizeof(kernel));
    kernel.every = 3;
    for (size_t i = 0; i < PIECES * PIECE; i++)
        buffers[i] = (char)(i / 100);
    assert_ok(move_all(aio, 1, &err), &err);
    memset(buffers, 0, PIECES * PIECE);
    assert_ok(move_all(aio, 0, &err), &err);
    for (size_t i = 0; i < PIECES * PIECE; i++)
        if (buffers[i] != (char)(i / 100)) fail_msg("byte %zu is another one", i);
    assert_true(kernel.refused >= PIECES / 2);
    assert_true(kernel.pauses <= kernel.refused);
    print_message("%d refused, %d paused\n", kernel.refused, kernel.pauses);
    kernel.every = 0;
    drps_aio_close(aio);
}

static void test_refused_for_ever(void **state)
{
    const char *path = scratch_path(*state, "blocks");
    struct drps_aio *aio = open_uring(path);
    struct drps_err err = DRPS_ERR_INIT;
    memset(&kernel, 0, sizeof(kernel));
    kernel.refuse = -1;
    assert_int_equal(move_all(aio, 1, &err), -EAGAIN);
    assert_non_null(strstr(err.text, "the kernel takes no more operations on"));
    assert_non_null(strstr(err.text, path));
    assert_in_range(kernel.pauses, 100, kernel.refused);
    kernel.refuse = 0;
    drps_aio_close(aio);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refused_with_nothing_under_way, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_refused_with_others_under_way, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_refused_for_ever, scratch_setup, scratch_teardown),
    };
    buffers = drps_pages_new(PIECES * PIECE);
    const int rc = buffers ? cmocka_run_group_tests_name("aio_refused", tests, NULL, NULL) : 1;
    drps_pages_free(buffers, PIECES * PIECE);
    return rc;
}
