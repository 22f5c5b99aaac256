/* A model gets a calibration whole or not at all, whichever call fails; it can be taken out again;
 * its parameters are never touched. */
#include "support/plan_maker.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder/drps_lock.h"
#include "engine/drps_engine.h"
#include "engine/publish/drps_modeldir.h"
#include "support/fault_io.h"
#include "support/scratch.h"

static char *make_model(const char *dir)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result trained;
    struct maker m;
    maker_init(&m, "lor", "logistic", 60, 50);
    maker_random(&m, 500, 3, 0, 7);
    struct drps_plan *plan = maker_write(&m, dir, "plan");
    char *model = drps_path_join(dir, "model");
    const struct drps_train_options o = {.model_path = model, .epochs = 1, .seed = 3};
    if (drps_train_run(plan, &o, &trained, &err) < 0) fail_msg("%s", err.text);
    drps_train_result_free(&trained);
    drps_plan_close(plan);
    maker_free(&m);
    return model;
}

struct state {
    enum drps_calibration_kind kind;
    double a;
    uint64_t content;
};

static struct state state_of(const char *model)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_modeldir *md;
    if (drps_modeldir_open(drps_io_os(), model, 0, &md, &err) < 0) fail_msg("%s", err.text);
    const struct drps_modeldir_info *info = drps_modeldir_info(md);
    const struct state s = {info->calibration.kind, info->calibration.a, info->content};
    drps_modeldir_close(md);
    return s;
}

static void test_calibrations_come_and_go(void **unused)
{
    const struct drps_calibration platt = {
        .kind = DRPS_CALIBRATION_PLATT, .samples = 9, .a = -1.5, .b = 0.25};
    const struct drps_calibration none = {.kind = DRPS_CALIBRATION_NONE};
    struct drps_err err = DRPS_ERR_INIT;
    char *dir = temp_make(), *model = make_model(dir);
    const struct state before = state_of(model);
    (void)unused;
    for (int i = 0; i < 2; i++) {
        if (drps_modeldir_calibrate(drps_io_os(), model, before.content, &platt, &err) < 0)
            fail_msg("%s", err.text);
        const struct state with = state_of(model);
        assert_int_equal(with.kind, DRPS_CALIBRATION_PLATT);
        assert_true(with.a == platt.a && with.content == before.content);
    }
    for (int i = 0; i < 2; i++) {
        if (drps_modeldir_calibrate(drps_io_os(), model, before.content, &none, &err) < 0)
            fail_msg("%s", err.text);
        const struct state without = state_of(model);
        assert_int_equal(without.kind, DRPS_CALIBRATION_NONE);
        assert_true(without.content == before.content);
    }
    free(model);
    temp_remove(dir);
}

static void test_a_failure_leaves_a_whole_model(void **unused)
{
    const struct drps_calibration platt = {
        .kind = DRPS_CALIBRATION_PLATT, .samples = 9, .a = -1.5, .b = 0.25};
    const struct drps_calibration none = {.kind = DRPS_CALIBRATION_NONE};
    char *dir = temp_make(), *model = make_model(dir);
    const struct state before = state_of(model);
    int rc = -1, failures = 0;
    (void)unused;
    for (long n = 1; rc < 0; n++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct fault_io *f = fault_io_new(drps_io_os());
        assert_non_null(f);
        fault_io_arm(f, FAULT_OPEN | FAULT_PWRITE | FAULT_FSYNC | FAULT_FTRUNCATE | FAULT_RENAME, n,
                     0, FAULT_ERROR, -EIO);
        rc = drps_modeldir_calibrate(&f->io, model, before.content, &platt, &err);
        assert_int_equal(f->unsynced_at_rename, 0);
        fault_io_free(f);
        const struct state is = state_of(model); /* it opens: it is whole */
        assert_true(is.kind == DRPS_CALIBRATION_NONE || is.a == platt.a);
        failures += rc < 0;
        if (rc < 0 && drps_modeldir_calibrate(drps_io_os(), model, before.content, &none, &err) < 0)
            fail_msg("%s", err.text);
    }
    assert_true(failures >= 4);
    assert_int_equal(state_of(model).kind, DRPS_CALIBRATION_PLATT);
    free(model);
    temp_remove(dir);
}

/* A model in which a calibration is put in every manner that must not be. */
struct tried {
    char *dir, *model, *manifest, *next;
    uint64_t content;
    int rc;
    struct drps_err err;
};

static struct tried try_begin(void)
{
    struct tried t = {.dir = temp_make(), .err = DRPS_ERR_INIT};
    t.model = make_model(t.dir);
    t.manifest = drps_path_join(t.model, DRPS_MODEL_MANIFEST);
    t.next = drps_path_join(t.model, DRPS_MODEL_MANIFEST_NEXT);
    t.content = state_of(t.model).content;
    return t;
}

static void try_platt(struct tried *t, double a)
{
    const struct drps_calibration platt = {
        .kind = DRPS_CALIBRATION_PLATT, .samples = 9, .a = a, .b = 0.25};
    drps_err_clear(&t->err);
    t->rc = drps_modeldir_calibrate(drps_io_os(), t->model, t->content, &platt, &t->err);
}

static void try_end(struct tried *t)
{
    free(t->manifest);
    free(t->next);
    free(t->model);
    temp_remove(t->dir);
}

static void test_another_model_is_not_calibrated(void **unused)
{
    struct tried t = try_begin();
    (void)unused;
    t.content++;
    try_platt(&t, -1);
    assert_int_equal(t.rc, DRPS_E_CONFIG);
    assert_non_null(strstr(t.err.text, "another model"));
    assert_int_equal(state_of(t.model).kind, DRPS_CALIBRATION_NONE);
    try_end(&t);
}

static void test_what_could_not_be_read_is_not_written(void **unused)
{
    struct tried t = try_begin();
    (void)unused;
    try_platt(&t, 1e40);
    assert_int_equal(t.rc, DRPS_E_CORRUPT);
    assert_int_equal(state_of(t.model).kind, DRPS_CALIBRATION_NONE);
    try_end(&t);
}

static void test_nothing_is_written_through_a_link(void **unused)
{
    struct tried t = try_begin();
    char *victim = drps_path_join(t.dir, "victim"), *text;
    size_t n;
    (void)unused;
    for (int hard = 0; hard <= 1; hard++) {
        assert_int_equal(drps_io_write_file(drps_io_os(), victim, "mine", 4, &t.err), 0);
        assert_int_equal(hard ? link(victim, t.next) : symlink(victim, t.next), 0);
        try_platt(&t, -1);
        if (t.rc < 0) fail_msg("%s", t.err.text);
        assert_int_equal(drps_io_read_file(drps_io_os(), victim, 100, &text, &n, &t.err), 0);
        assert_int_equal(n, 4);
        free(text);
    }
    free(victim);
    try_end(&t);
}

static void test_the_mode_stays(void **unused)
{
    struct tried t = try_begin();
    struct stat st;
    (void)unused;
    assert_int_equal(chmod(t.manifest, 0640), 0);
    try_platt(&t, -1);
    assert_int_equal(t.rc, 0);
    assert_int_equal(stat(t.manifest, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    try_end(&t);
}

static void test_one_process_at_a_time(void **unused)
{
    struct tried t = try_begin();
    int fd;
    (void)unused;
    assert_int_equal(drps_lock_take(drps_io_os(), t.manifest, &fd, &t.err), 0);
    try_platt(&t, -1);
    assert_int_equal(t.rc, -EBUSY);
    assert_non_null(strstr(t.err.text, "by another process"));
    drps_io_close(drps_io_os(), fd);
    try_platt(&t, -1);
    assert_int_equal(t.rc, 0);
    try_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calibrations_come_and_go),
        cmocka_unit_test(test_a_failure_leaves_a_whole_model),
        cmocka_unit_test(test_another_model_is_not_calibrated),
        cmocka_unit_test(test_what_could_not_be_read_is_not_written),
        cmocka_unit_test(test_nothing_is_written_through_a_link),
        cmocka_unit_test(test_the_mode_stays),
        cmocka_unit_test(test_one_process_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
