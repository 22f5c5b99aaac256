/* Checkpoints that share parts of rows with the one before: from each of them a run goes on to the
 * model of one that was not disturbed, whatever failed between. */
#include "support/plan_maker.h"

#include <errno.h>
#include <fcntl.h>

#include "base/folder/drps_manifest.h"
#include "storage/kv/drps_kv.h"
#include "support/fault_io.h"
#include "support/train_runs.h"

enum {
    PART_BYTES = 256
}; /* of some 400 rows: many parts, of which most do not change in a batch */

static void fail_run(const char *what, const struct drps_err *err)
{
    fail_msg("%s: %s", what, err->text);
}

/* A run whose checkpoints share parts. */
static struct train_job *begin_parts(const char *store)
{
    struct train_job *j = job_begin("fm", 4, store);
    j->o.checkpoint_every.n = 1;
    j->o.checkpoint_part_bytes = PART_BYTES;
    return j;
}

/* Opens the newest checkpoint. */
static struct drps_checkpoint *open_newest(const struct train_job *j)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    struct drps_checkpoints c;
    struct drps_checkpoint *cp = NULL;
    size_t n = 0;
    if (drps_checkpoints_init(&c, drps_io_os(), j->checkpoints, 0, &err) < 0 ||
        drps_checkpoints_list(&c, numbers, &n, &err) < 0 || !n ||
        drps_checkpoint_open(&c, numbers[0], &cp, &err) < 0)
        fail_run("newest", &err);
    drps_checkpoints_destroy(&c);
    return cp;
}

/* How many parts of a checkpoint have other names. */
static size_t shared_parts(const struct drps_checkpoint *cp)
{
    size_t n = 0;
    for (uint64_t i = 0; i < drps_checkpoint_parts(cp); i++) {
        struct stat st;
        char *path = drps_checkpoint_part(cp, i);
        assert_int_equal(stat(path, &st), 0);
        n += st.st_nlink > 1;
        free(path);
    }
    return n;
}

/* Ended at any time, such runs go on to the undisturbed model, and share parts with the checkpoint
 * that they go on from. */
static void check_every_instant_of_parts(const char *store, long step)
{
    struct train_job *j = begin_parts(store);
    long resumed = 0;
    for (long k = 1;; k += step) {
        job_clear(j);
        if (train_until(j->plan, &j->o, k)) break;
        resumed += job_resume(j, j->o, store, k) > 0;
    }
    assert_true(resumed > 3);
    job_end(j);
}

/* A build with sanitizers takes fewer instants, and one block store. */
enum { FEW = DRPS_TEST_ONE_IN > 1 };

static void test_resume_parts(void **state)
{
    (void)state;
    check_every_instant_of_parts("resident", FEW ? 1997 : 997);
    for (const struct drps_kv_ops *const *kv = drps_kv_engines(); *kv; kv++)
        if (!FEW || strcmp((*kv)->name, "file") == 0)
            check_every_instant_of_parts((*kv)->name, FEW ? 3989 : 2503);
}

/* The rows of the newest checkpoint. */
static char *rows_of_newest(const struct train_job *j, size_t *bytes_out, size_t *shared_out)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_checkpoint *cp = open_newest(j);
    const size_t n = (size_t)drps_checkpoint_rows(cp);
    *bytes_out = n * drps_checkpoint_row_bytes(cp);
    *shared_out = shared_parts(cp);
    char *rows = malloc(*bytes_out);
    assert_non_null(rows);
    if (drps_checkpoint_read(cp, 0, n, rows, &err) < 0) fail_run("rows", &err);
    drps_checkpoint_close(cp);
    return rows;
}

static void train_parts(struct train_job *j, const struct drps_train_options *o,
                        const struct drps_io *io, struct drps_train_result *r)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_plan plan = *j->plan;
    job_clear(j);
    plan.io = io;
    if (drps_train_run(&plan, o, r, &err) < 0) fail_run("parts", &err);
    train_check_same(r, &j->want, "parts", 0);
}

static void check_rows_are(const struct train_job *j, const char *want, const char *what, long k)
{
    size_t bytes, shared;
    char *rows = rows_of_newest(j, &bytes, &shared);
    if (memcmp(rows, want, bytes) != 0) fail_msg("%s %ld: other rows", what, k);
    free(rows);
}

static void note_cut(void *ctx, const struct drps_train_cut *cut)
{
    *(struct drps_train_cut *)ctx = *cut;
}

/* A checkpoint that shares parts has the rows of one that is written whole, also after some that
 * could not be written. */
static void check_rows_of_parts(const char *store)
{
    struct train_job *j = begin_parts(store);
    struct drps_train_result r;
    size_t bytes, shared;
    struct drps_train_options o = j->o;
    o.checkpoint_every.n = 7;
    o.keep_checkpoints = 1;
    o.checkpoint_rows = 1;
    train_parts(j, &o, drps_io_os(), &r);
    char *want = rows_of_newest(j, &bytes, &shared);
    const uint64_t all = r.checkpoints.bytes / r.checkpoints.n;
    assert_int_equal(shared, 0);
    drps_train_result_free(&r);

    o.checkpoint_every.n = 1;
    o.checkpoint_rows = 0;
    train_parts(j, &o, drps_io_os(), &r);
    assert_true(r.checkpoints.bytes / r.checkpoints.n < all * 3 / 4);
    drps_train_result_free(&r);
    check_rows_are(j, want, store, 0);

    /* In the last checkpoints: what they lack is not made good by later steps. */
    uint64_t failed = 0;
    int compared = 0;
    long last = 0;
    for (long k = 0; !k || k > last - 600; k = (k ? k : last) - 67) {
        struct fault_io *f = fault_io_new(drps_io_os());
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_plan plan = *j->plan;
        struct drps_train_cut cut = {0};
        o.on_checkpoint = note_cut;
        o.ctx = &cut;
        job_clear(j);
        plan.io = &f->io;
        if (k) fault_io_arm(f, FAULT_FSYNC, k, 0, FAULT_ERROR, -EIO);
        const int rc = drps_train_run(&plan, &o, &r, &err); /* the fault may hit the model */
        failed += r.checkpoints.failed;
        drps_train_result_free(&r);
        const int has_last = cut.epoch == JOB_EPOCHS + 1; /* the fault did not hit that one */
        if (rc == 0 && has_last) check_rows_are(j, want, store, k);
        compared += rc == 0 && has_last && k;
        if (!k) last = (long)atomic_load(&f->calls[FAULT_NR_FSYNC]);
        fault_io_free(f);
    }
    assert_true(failed > 0);
    assert_true(compared > 3);
    free(want);
    job_end(j);
}

static void test_parts_have_all_rows(void **state)
{
    (void)state;
    check_rows_of_parts("resident");
    for (const struct drps_kv_ops *const *kv = drps_kv_engines(); *kv; kv++)
        if (!FEW || strcmp((*kv)->name, "file") == 0) check_rows_of_parts((*kv)->name);
}

static void remove_a_part(void *ctx, const struct drps_train_cut *cut)
{
    char path[512];
    if (cut->number % 5) return;
    (void)snprintf(path, sizeof(path), "%s/rank-0/%llu/rows/00003.rec", (const char *)ctx,
                   (unsigned long long)cut->number);
    assert_int_equal(unlink(path), 0);
}

/* Somebody removes a part: the next checkpoint is written whole. */
static void test_a_part_that_is_gone(void **state)
{
    struct train_job *j = begin_parts("resident");
    struct drps_train_result r;
    (void)state;
    struct drps_train_options o = j->o;
    o.on_checkpoint = remove_a_part;
    o.ctx = j->checkpoints;
    train_parts(j, &o, drps_io_os(), &r);
    assert_true(r.checkpoints.n > 10);
    assert_int_equal(r.checkpoints.failed, 0);
    drps_train_result_free(&r);
    job_end(j);
}

static void flip(const char *path, size_t at)
{
    unsigned char byte;
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    assert_int_equal(close(fd), 0);
}

static void count_fallbacks(void *ctx, enum drps_log_level level, const char *text)
{
    (void)level;
    *(int *)ctx += strstr(text, "the one before is looked for") != NULL;
}

/* A part that is damaged: of the newest checkpoint alone, the one before serves; one that both
 * share is lost with both. */
static void test_resume_with_a_damaged_part(void **state)
{
    struct train_job *j = begin_parts("resident");
    (void)state;
    for (int share = 0; share < 2; share++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_train_result r;
        int fallbacks = 0, damaged = 0;
        const struct drps_log log = {DRPS_LOG_WARN, count_fallbacks, &fallbacks};
        job_leave_checkpoints(j, &j->o);
        struct drps_checkpoint *cp = open_newest(j);
        assert_true(shared_parts(cp) > 0);
        for (uint64_t i = 0; i < drps_checkpoint_parts(cp) && !damaged; i++) {
            struct stat st;
            char *path = drps_checkpoint_part(cp, i);
            assert_int_equal(stat(path, &st), 0);
            damaged = (st.st_nlink > 1) == share;
            if (damaged) flip(path, 70);
            free(path);
        }
        drps_checkpoint_close(cp);
        assert_true(damaged);
        struct drps_train_options o = j->o;
        o.log = &log;
        o.resume = 1;
        if (drps_train_run(j->plan, &o, &r, &err) < 0) fail_run("damaged", &err);
        train_check_same(&r, &j->want, "damaged", share);
        assert_int_equal(fallbacks, 1 + share);
        assert_int_equal(r.resumed_epoch > 0, !share);
        drps_train_result_free(&r);
    }
    job_end(j);
}

/* Checkpoints of an earlier version are not read, and training does not begin anew unasked. */
static void test_resume_refuses_another_version(void **state)
{
    struct train_job *j = job_begin("lor", 0, "resident");
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    struct drps_train_result r;
    (void)state;
    job_leave_checkpoints(j, &j->o);
    const size_t n = train_checkpoints(j->checkpoints, 0, numbers);
    for (size_t i = 0; i < n; i++) {
        char path[SCRATCH_PATH_BYTES + 64];
        json_t *manifest = json_pack("{s:s, s:i}", "kind", DRPS_CHECKPOINT_KIND, "version", 1);
        (void)snprintf(path, sizeof(path), "%s/rank-0/%llu/checkpoint.json", j->checkpoints,
                       (unsigned long long)numbers[i]);
        if (drps_manifest_write(drps_io_os(), path, manifest, &err) < 0) fail_run("write", &err);
        json_decref(manifest);
    }
    struct drps_train_options o = j->o;
    o.resume = 1;
    assert_int_equal(drps_train_run(j->plan, &o, &r, &err), DRPS_E_VERSION);
    assert_non_null(strstr(err.text, "start anew"));
    drps_train_result_free(&r);
    assert_true(path_exists(j->checkpoints));
    job_end(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume_parts),
        cmocka_unit_test(test_parts_have_all_rows),
        cmocka_unit_test(test_a_part_that_is_gone),
        cmocka_unit_test(test_resume_with_a_damaged_part),
        cmocka_unit_test(test_resume_refuses_another_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
