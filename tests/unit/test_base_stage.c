/* Staged folders: whole or not at all, one writer at a time, nothing of a killed one left. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/drps_io.h"
#include "support/fault_io.h"
#include "support/scratch.h"

static int put(const struct drps_io *io, const struct drps_stage *stage, const char *name,
               const char *text)
{
    char *path = drps_path_join(stage->dir, name);
    int fd = -1;
    assert_non_null(path);
    int rc = drps_io_open(io, path, O_WRONLY | O_CREAT | O_TRUNC, &fd, NULL);
    if (rc == 0) rc = drps_io_write_at(io, fd, text, strlen(text), 0, path, NULL);
    drps_io_close(io, fd);
    free(path);
    return rc;
}

static void assert_file(struct scratch *s, const char *name, const char *text)
{
    size_t n;
    char *data = scratch_read(scratch_path(s, name), &n);
    assert_string_equal(data, text);
    free(data);
}

/* Make or replace the folder "out" with one file. Returns the first failure. */
static int write_out(struct scratch *s, const struct drps_io *io, int replace, const char *text,
                     struct drps_err *err)
{
    struct drps_stage stage;
    int rc = drps_stage_begin(&stage, io, scratch_path(s, "out"), replace ? "file" : NULL, err);
    if (rc == 0) rc = put(io, &stage, "file", text);
    if (rc == 0) rc = drps_stage_commit(&stage, err);
    drps_stage_abort(&stage);
    return rc;
}

static void test_stage_nothing_at_the_name_before_commit(void **state)
{
    struct scratch *s = *state;
    struct drps_stage stage;
    struct drps_err err = DRPS_ERR_INIT;
    const char *out = scratch_path(s, "out");
    assert_int_equal(drps_stage_begin(&stage, drps_io_os(), out, NULL, &err), 0);
    assert_int_equal(put(drps_io_os(), &stage, "file", "text"), 0);
    assert_false(path_exists(out));
    assert_int_equal(drps_stage_commit(&stage, &err), 0);
    assert_true(path_exists(out));
    drps_stage_abort(&stage);
    assert_file(s, "out/file", "text");
    assert_int_equal(folder_entries(out), 1); /* no lock file in it */
    assert_int_equal(folder_entries(s->dir), 1);
}

static void test_stage_commit_syncs_before_it_renames(void **state)
{
    struct scratch *s = *state;
    struct drps_stage stage;
    struct drps_err err = DRPS_ERR_INIT;
    struct fault_io *f = fault_io_new(drps_io_os());
    assert_non_null(f);
    assert_int_equal(drps_stage_begin(&stage, &f->io, scratch_path(s, "out"), NULL, &err), 0);
    assert_int_equal(mkdir(scratch_path(s, "out.partial/deep"), 0777), 0);
    assert_int_equal(put(&f->io, &stage, "file", "text"), 0);
    assert_int_equal(put(&f->io, &stage, "deep/file", "text"), 0);
    assert_int_equal(f->unsynced_n, 2);
    assert_int_equal(drps_stage_commit(&stage, &err), 0);
    assert_int_equal(f->unsynced_at_rename, 0);
    assert_int_equal(atomic_load(&f->calls[FAULT_NR_RENAME]), 1);
    drps_stage_abort(&stage);
    fault_io_free(f);
}

static void test_stage_abort_removes(void **state)
{
    struct scratch *s = *state;
    struct drps_stage stage;
    struct drps_stage zero = {0};
    assert_int_equal(drps_stage_begin(&stage, drps_io_os(), scratch_path(s, "out"), NULL, NULL), 0);
    assert_int_equal(put(drps_io_os(), &stage, "file", "text"), 0);
    drps_stage_abort(&stage);
    assert_int_equal(folder_entries(s->dir), 0);
    drps_stage_abort(&stage);
    drps_stage_abort(&zero);
    drps_stage_abort(NULL);
}

static void test_stage_slashes_at_the_end_do_not_matter(void **state)
{
    struct scratch *s = *state;
    struct drps_stage stage;
    assert_int_equal(drps_stage_begin(&stage, drps_io_os(), scratch_path(s, "out//"), NULL, NULL),
                     0);
    assert_int_equal(drps_stage_commit(&stage, NULL), 0);
    drps_stage_abort(&stage);
    assert_true(path_exists(scratch_path(s, "out")));
}

static void test_stage_existing_is_refused(void **state)
{
    struct scratch *s = *state;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(write_out(s, drps_io_os(), 0, "old", NULL), 0);
    assert_int_equal(write_out(s, drps_io_os(), 0, "new", &err), -EEXIST);
    assert_non_null(strstr(err.text, "--force"));
    assert_file(s, "out/file", "old");
    assert_int_equal(folder_entries(s->dir), 1);
}

/* --force must not be able to remove what drps did not make. */
static void test_stage_replace_refuses_other_folders(void **state)
{
    struct scratch *s = *state;
    struct drps_stage stage;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(write_out(s, drps_io_os(), 0, "precious", NULL), 0);
    assert_int_equal(
        drps_stage_begin(&stage, drps_io_os(), scratch_path(s, "out"), "plan.json", &err), -EEXIST);
    assert_non_null(strstr(err.text, "holds no plan.json"));
    assert_file(s, "out/file", "precious");
    drps_err_clear(&err);
    assert_int_equal(mkdir(scratch_path(s, "new.partial"), 0777), 0);
    (void)scratch_file(s, "new.partial/notes", "mine", 4);
    assert_int_equal(drps_stage_begin(&stage, drps_io_os(), scratch_path(s, "new"), NULL, &err),
                     -EEXIST);
    assert_non_null(strstr(err.text, "was not left by an earlier run"));
    assert_file(s, "new.partial/notes", "mine");
}

static void test_stage_replace_replaces(void **state)
{
    struct scratch *s = *state;
    assert_int_equal(write_out(s, drps_io_os(), 0, "old", NULL), 0);
    assert_int_equal(write_out(s, drps_io_os(), 1, "new", NULL), 0);
    assert_file(s, "out/file", "new");
    assert_int_equal(folder_entries(s->dir), 1);
}

/* A run that was killed between its two renames has left the old folder aside. */
static void test_stage_replace_removes_what_a_killed_one_left(void **state)
{
    struct scratch *s = *state;
    assert_int_equal(write_out(s, drps_io_os(), 0, "old", NULL), 0);
    assert_int_equal(rename(scratch_path(s, "out"), scratch_path(s, "out.replaced")), 0);
    assert_int_equal(write_out(s, drps_io_os(), 1, "new", NULL), 0);
    assert_file(s, "out/file", "new");
    assert_int_equal(folder_entries(s->dir), 1);
}

static void test_stage_stale_partial_is_replaced(void **state)
{
    struct scratch *s = *state;
    struct drps_stage stage;
    assert_int_equal(mkdir(scratch_path(s, "out.partial"), 0777), 0);
    (void)scratch_file(s, "out.partial/lock", "", 0);
    (void)scratch_file(s, "out.partial/garbage", "x", 1);
    assert_int_equal(drps_stage_begin(&stage, drps_io_os(), scratch_path(s, "out"), NULL, NULL), 0);
    assert_int_equal(folder_entries(stage.dir), 1); /* the lock */
    assert_int_equal(drps_stage_commit(&stage, NULL), 0);
    drps_stage_abort(&stage);
    assert_int_equal(folder_entries(scratch_path(s, "out")), 0);
}

static void test_stage_live_partial_is_refused(void **state)
{
    struct scratch *s = *state;
    struct drps_stage stage;
    assert_int_equal(drps_stage_begin(&stage, drps_io_os(), scratch_path(s, "out"), NULL, NULL), 0);
    assert_int_equal(put(drps_io_os(), &stage, "file", "first"), 0);
    pid_t child = fork();
    if (child == 0) {
        struct drps_err err = DRPS_ERR_INIT;
        int rc = write_out(s, drps_io_os(), 1, "second", &err);
        _exit(rc == -EBUSY && strstr(err.text, "another process") ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(drps_stage_commit(&stage, NULL), 0);
    drps_stage_abort(&stage);
    assert_file(s, "out/file", "first");
}

/* Another writer that comes at any moment of a commit is refused, or finds the folder in place. */
struct intruder {
    struct drps_io io;
    struct scratch *s;
    int calls, wrong;
};

static void intrude(struct intruder *in)
{
    struct drps_stage other;
    struct drps_err err = DRPS_ERR_INIT;
    int rc = drps_stage_begin(&other, drps_io_os(), scratch_path(in->s, "out"), NULL, &err);
    in->calls++;
    if (rc != -EBUSY && rc != -EEXIST) in->wrong++;
    drps_stage_abort(&other);
}

static int intruded_fsync(void *ctx, int fd)
{
    intrude(ctx);
    return drps_io_os()->ops->fsync(NULL, fd);
}

static int intruded_rename(void *ctx, const char *from, const char *to)
{
    intrude(ctx);
    int rc = drps_io_os()->ops->rename(NULL, from, to);
    intrude(ctx);
    return rc;
}

static int intruded_unlink(void *ctx, const char *path)
{
    intrude(ctx);
    return drps_io_os()->ops->unlink(NULL, path);
}

static void test_stage_is_locked_until_it_is_in_place(void **state)
{
    struct scratch *s = *state;
    struct drps_io_ops ops = *drps_io_os()->ops;
    struct intruder in = {.io = {.ops = &ops, .ctx = &in}, .s = s};
    ops.fsync = intruded_fsync;
    ops.rename = intruded_rename;
    ops.unlink = intruded_unlink;
    assert_int_equal(write_out(s, &in.io, 0, "text", NULL), 0);
    assert_true(in.calls > 4);
    assert_int_equal(in.wrong, 0);
    assert_file(s, "out/file", "text");
    assert_int_equal(folder_entries(s->dir), 1);
}

/* Whichever call of a replacement fails: an error with a text, the old folder is still there,
 * nothing else is. */
static void test_stage_replace_keeps_the_old_on_any_fault(void **state)
{
    static const unsigned ops[] = {FAULT_OPEN, FAULT_PWRITE, FAULT_FSYNC, FAULT_RENAME,
                                   FAULT_MKDIR};
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        assert_int_equal(write_out(s, drps_io_os(), 1, "old", NULL), 0);
        for (long k = 1;; k++) {
            struct fault_io *f = fault_io_new(drps_io_os());
            struct drps_err err = DRPS_ERR_INIT;
            assert_non_null(f);
            fault_io_arm(f, ops[i], k, 0, FAULT_ERROR, -EIO);
            int rc = write_out(s, &f->io, 1, "new", &err);
            int fired = atomic_load(&f->fired);
            fault_io_free(f);
            if (!fired) {
                assert_int_equal(rc, 0);
                assert_true(k > 1);
                assert_file(s, "out/file", "new");
                break;
            }
            if (rc != -EIO)
                fail_msg("%s %ld: found %d (%s)", fault_op_name(ops[i]), k, rc, err.text);
            assert_file(s, "out/file", "old");
            if (folder_entries(s->dir) != 1)
                fail_msg("%s %ld: something was left", fault_op_name(ops[i]), k);
        }
    }
}

static void test_stage_missing_parent_is_named(void **state)
{
    struct scratch *s = *state;
    struct drps_stage stage;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(drps_stage_begin(&stage, drps_io_os(), scratch_path(s, "no/out"), NULL, &err),
                     -ENOENT);
    assert_non_null(strstr(err.text, "no/out.partial"));
    drps_stage_abort(&stage);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_stage_nothing_at_the_name_before_commit),
        SCRATCH_TEST(test_stage_commit_syncs_before_it_renames),
        SCRATCH_TEST(test_stage_abort_removes),
        SCRATCH_TEST(test_stage_slashes_at_the_end_do_not_matter),
        SCRATCH_TEST(test_stage_existing_is_refused),
        SCRATCH_TEST(test_stage_replace_refuses_other_folders),
        SCRATCH_TEST(test_stage_replace_replaces),
        SCRATCH_TEST(test_stage_replace_removes_what_a_killed_one_left),
        SCRATCH_TEST(test_stage_stale_partial_is_replaced),
        SCRATCH_TEST(test_stage_live_partial_is_refused),
        SCRATCH_TEST(test_stage_is_locked_until_it_is_in_place),
        SCRATCH_TEST(test_stage_replace_keeps_the_old_on_any_fault),
        SCRATCH_TEST(test_stage_missing_parent_is_named),
    };
    return cmocka_run_group_tests_name("base_stage", tests, NULL, NULL);
}
