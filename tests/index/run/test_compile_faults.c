/*
 * Whole runs with one failing call: each ends with that call's error and a text, leaves nothing at
 * the plan's name, and does not keep the next run from working. The sanitised build sees that
 * nothing leaks.
 */
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

#include "index/drps_index.h"
#include "support/fault_io.h"
#include "support/index_case.h"
#include "support/scratch.h"

/* A build with sanitizers lets each third call fail. */
enum { STEP = DRPS_TEST_ONE_IN > 1 ? 3 : 1 };

struct fault {
    unsigned op;
    enum fault_effect effect;
    int code, persistent;
};

static struct fault_io *new_fault(void)
{
    struct fault_io *f = fault_io_new(drps_io_os());
    assert_non_null(f);
    return f;
}

/* Run with the k-th call failing. 0 when no call failed any more. */
static int run_with_fault(struct scratch *s, struct case_run *c, const struct fault *fault, long k)
{
    struct fault_io *f = new_fault();
    struct drps_err err = DRPS_ERR_INIT;
    fault_io_arm(f, fault->op, k, fault->persistent, fault->effect, fault->code);
    int rc = drps_index_run(&f->io, &c->options, &c->result, &err);
    int fired = atomic_load(&f->fired);
    size_t unsynced = f->unsynced_at_rename;
    fault_io_free(f);
    if (!fired) {
        if (rc)
            fail_msg("%s %ld: no fault, but %d (%s)", fault_op_name(fault->op), k, rc, err.text);
        if (unsynced) fail_msg("%zu files were renamed before they were synced", unsynced);
        return 0;
    }
    if (fault->effect == FAULT_SHORT) {
        if (rc)
            fail_msg("%s %ld: a short transfer gave %d (%s)", fault_op_name(fault->op), k, rc,
                     err.text);
        case_verify(c->options.out);
        assert_int_equal(drps_io_remove_tree(drps_io_os(), c->options.out, NULL), 0);
        return 1;
    }
    if (rc != fault->code || err.code != rc || !err.text[0])
        fail_msg("%s %ld: expected %d with a text, found %d '%s'", fault_op_name(fault->op), k,
                 fault->code, rc, err.text);
    if (path_exists(c->options.out))
        fail_msg("%s %ld: a plan was left", fault_op_name(fault->op), k);
    if (folder_entries(s->dir) != 1 && !fault->persistent)
        fail_msg("%s %ld: more than the input was left", fault_op_name(fault->op), k);
    return 1;
}

static void loop(void **state, const struct fault *fault, const char *algo, enum case_format format,
                 uint32_t workers, const char *partition)
{
    struct scratch *s = *state;
    struct case_run c;
    long k = 1;
    case_begin(&c, s, case_input(s, "input", format, 300, 60, 21), algo);
    c.options.test_fraction = 0.2;
    c.options.workers = workers;
    c.options.partition = partition;
    /* One spool file instead of 32 for most: their calls are alike, and each costs a run. */
    if (fault->op != FAULT_OPEN && fault->code != -EROFS) c.options.order = "given";
    if (fault->op == FAULT_PREAD && format == CASE_RATINGS) c.options.order = "grid";
    while (run_with_fault(s, &c, fault, k))
        k += STEP;
    assert_true(k > 1);         /* the operation is used */
    case_verify(c.options.out); /* a run after all the failed ones */
    assert_int_equal(folder_entries(s->dir), 2);
}

#define LOOP_TEST(name, algo, format, ...)                                                         \
    static void test_faults_##name(void **state)                                                   \
    {                                                                                              \
        const struct fault fault = {__VA_ARGS__};                                                  \
        loop(state, &fault, algo, format, 1, NULL);                                                \
    }

LOOP_TEST(open, "lmf", CASE_RATINGS, FAULT_OPEN, FAULT_ERROR, -EMFILE, 0)
LOOP_TEST(read, "lor", CASE_LIBSVM, FAULT_READ, FAULT_ERROR, -EIO, 0)
LOOP_TEST(pread, "lmf", CASE_RATINGS, FAULT_PREAD, FAULT_ERROR, -EIO, 0)
LOOP_TEST(pread_short, "lor", CASE_LIBSVM, FAULT_PREAD, FAULT_SHORT, 0, 0)
LOOP_TEST(pwrite, "lmf", CASE_RATINGS, FAULT_PWRITE, FAULT_ERROR, -EIO, 0)
LOOP_TEST(pwrite_torn, "lor", CASE_LIBSVM, FAULT_PWRITE, FAULT_TORN, -EIO, 0)
LOOP_TEST(pwrite_short, "lor", CASE_CSV, FAULT_PWRITE, FAULT_SHORT, 0, 0)
LOOP_TEST(pwrite_for_good, "svm", CASE_CSV, FAULT_PWRITE, FAULT_ERROR, -EROFS, 1)
LOOP_TEST(fsync, "lor", CASE_LIBSVM, FAULT_FSYNC, FAULT_ERROR, -EIO, 0)
LOOP_TEST(fsync_for_good, "lor", CASE_LIBSVM, FAULT_FSYNC, FAULT_ERROR, -EIO, 1)
LOOP_TEST(rename, "lor", CASE_LIBSVM, FAULT_RENAME, FAULT_ERROR, -EACCES, 0)
LOOP_TEST(mkdir, "lor", CASE_LIBSVM, FAULT_MKDIR, FAULT_ERROR, -EACCES, 0)
LOOP_TEST(size, "lor", CASE_LIBSVM, FAULT_SIZE, FAULT_ERROR, -EIO, 0)

/* Two ranks: the plan's folder has folders. */
#define RANKS_TEST(name, partition, ...)                                                           \
    static void test_faults_ranks_##name(void **state)                                             \
    {                                                                                              \
        const struct fault fault = {__VA_ARGS__};                                                  \
        loop(state, &fault, "lor", CASE_LIBSVM, 2, partition);                                     \
    }

RANKS_TEST(open, NULL, FAULT_OPEN, FAULT_ERROR, -EMFILE, 0)
RANKS_TEST(pread, NULL, FAULT_PREAD, FAULT_ERROR, -EIO, 0)
RANKS_TEST(pwrite, NULL, FAULT_PWRITE, FAULT_ERROR, -EIO, 0)
RANKS_TEST(fsync, NULL, FAULT_FSYNC, FAULT_ERROR, -EIO, 0)
RANKS_TEST(rename, NULL, FAULT_RENAME, FAULT_ERROR, -EACCES, 0)
RANKS_TEST(mkdir, NULL, FAULT_MKDIR, FAULT_ERROR, -EACCES, 0)
RANKS_TEST(placed_pread, "auto", FAULT_PREAD, FAULT_ERROR, -EIO, 0)
RANKS_TEST(placed_pwrite, "auto", FAULT_PWRITE, FAULT_ERROR, -EIO, 0)
RANKS_TEST(placed_mkdir, "auto", FAULT_MKDIR, FAULT_ERROR, -EACCES, 0)

/* Failures while cleaning up may leave the partial folder, never a plan that is not whole. */
static void test_faults_cleaning_up(void **state)
{
    static const unsigned ops[] = {FAULT_UNLINK, FAULT_RMDIR, FAULT_CLOSE};
    struct scratch *s = *state;
    struct case_run c;
    case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 300, 60, 22), "lor");
    c.options.force = 1;
    c.options.order = "given";
    for (size_t i = 0; i < 3; i++) {
        for (int persistent = 0; persistent < 2; persistent++) {
            for (long k = 1, fired = 1; fired; k += STEP) {
                struct fault_io *f = new_fault();
                struct drps_err err = DRPS_ERR_INIT;
                fault_io_arm(f, ops[i], k, persistent, FAULT_ERROR, -EPERM);
                int rc = drps_index_run(&f->io, &c.options, &c.result, &err);
                fired = atomic_load(&f->fired);
                fault_io_free(f);
                if (rc && !err.text[0])
                    fail_msg("%s %ld: %d without a text", fault_op_name(ops[i]), k, rc);
                if (rc == 0) case_verify(c.out);
                if (rc == 0 || !path_exists(c.out)) continue;
                case_verify(c.out); /* the one of a run before */
            }
        }
    }
}

/* A disk that fills up after so many bytes; every size from nothing to enough, in steps. */
static void test_faults_full_disk(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    int fired = 1;
    case_begin(&c, s, case_input(s, "input", CASE_RATINGS, 300, 60, 23), "lmf");
    for (uint64_t bytes = 1; fired; bytes += bytes < 600 ? 97 : 2711) {
        struct fault_io *f = new_fault();
        struct drps_err err = DRPS_ERR_INIT;
        f->disk_bytes = bytes;
        int rc = drps_index_run(&f->io, &c.options, &c.result, &err);
        fired = atomic_load(&f->fired);
        fault_io_free(f);
        if (rc != (fired ? -ENOSPC : 0))
            fail_msg("%" PRIu64 " bytes: %d (%s)", bytes, rc, err.text);
        if (!fired) break;
        if (!strstr(err.text, "no space left for "))
            fail_msg("%" PRIu64 " bytes: '%s'", bytes, err.text);
        if (folder_entries(s->dir) != 1) fail_msg("%" PRIu64 " bytes: something was left", bytes);
    }
    case_verify(c.out);
}

/* Replacing a plan: whatever fails, the old one stays. Only a folder that is being removed need not
 * be synced. */
static void test_faults_replacing(void **state)
{
    static const unsigned ops[] = {FAULT_OPEN, FAULT_PWRITE, FAULT_FSYNC, FAULT_RENAME,
                                   FAULT_MKDIR};
    struct scratch *s = *state;
    struct case_run c;
    struct drps_err err = DRPS_ERR_INIT;
    case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 100, 30, 24), "lor");
    if (drps_index_run(drps_io_os(), &c.options, &c.result, &err)) fail_msg("%s", err.text);
    c.options.force = 1;
    c.options.order = "given";
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        for (long k = 1, fired = 1; fired; k += ops[i] == FAULT_OPEN ? 9 : STEP) {
            struct fault_io *f = new_fault();
            drps_err_clear(&err);
            fault_io_arm(f, ops[i], k, 0, FAULT_ERROR, -EIO);
            int rc = drps_index_run(&f->io, &c.options, &c.result, &err);
            fired = atomic_load(&f->fired);
            const int removing = strcmp(f->struck, scratch_path(s, "plan.partial")) == 0;
            fault_io_free(f);
            if (rc || !removing) assert_int_equal(rc, fired ? -EIO : 0);
            case_verify(c.out);
            if (folder_entries(s->dir) != 2)
                fail_msg("%s %ld: something was left", fault_op_name(ops[i]), k);
        }
    }
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_faults_open),
        SCRATCH_TEST(test_faults_read),
        SCRATCH_TEST(test_faults_pread),
        SCRATCH_TEST(test_faults_pread_short),
        SCRATCH_TEST(test_faults_pwrite),
        SCRATCH_TEST(test_faults_pwrite_torn),
        SCRATCH_TEST(test_faults_pwrite_short),
        SCRATCH_TEST(test_faults_pwrite_for_good),
        SCRATCH_TEST(test_faults_fsync),
        SCRATCH_TEST(test_faults_fsync_for_good),
        SCRATCH_TEST(test_faults_rename),
        SCRATCH_TEST(test_faults_mkdir),
        SCRATCH_TEST(test_faults_size),
        SCRATCH_TEST(test_faults_cleaning_up),
        SCRATCH_TEST(test_faults_full_disk),
        SCRATCH_TEST(test_faults_replacing),
        SCRATCH_TEST(test_faults_ranks_open),
        SCRATCH_TEST(test_faults_ranks_pread),
        SCRATCH_TEST(test_faults_ranks_pwrite),
        SCRATCH_TEST(test_faults_ranks_fsync),
        SCRATCH_TEST(test_faults_ranks_rename),
        SCRATCH_TEST(test_faults_ranks_mkdir),
        SCRATCH_TEST(test_faults_ranks_placed_pread),
        SCRATCH_TEST(test_faults_ranks_placed_pwrite),
        SCRATCH_TEST(test_faults_ranks_placed_mkdir),
    };
    return cmocka_run_group_tests_name("compile_faults", tests, NULL, NULL);
}
