/* An export of two files, whichever call fails: names are never those of another model than the
 * numbers beside them, and a failure leaves nothing of its own. */
#include "support/plan_maker.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "engine/drps_engine.h"
#include "engine/export/drps_export.h"
#include "support/fault_io.h"
#include "support/scratch.h"

enum { FEW = 40, MANY = 60, FILE_MOST = 1 << 20 };

struct fixture {
    char *dir, *models[2]; /* with other rows */
    char *file, *names;    /* where they are exported to */
    char *wholes[2][2];    /* own: what file and names hold of each model */
    size_t bytes[2][2];
};

static char *make_model(const char *dir, const char *name, uint32_t features)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result trained;
    struct maker m;
    char plan_name[32];
    maker_init(&m, "lor", "logistic", features, 50);
    maker_random(&m, 300, 3, 0, 7);
    (void)snprintf(plan_name, sizeof(plan_name), "%s.plan", name);
    struct drps_plan *plan = maker_write(&m, dir, plan_name);
    char *model = drps_path_join(dir, name);
    const struct drps_train_options o = {.model_path = model, .epochs = 1, .seed = 3};
    if (drps_train_run(plan, &o, &trained, &err) < 0) fail_msg("%s", err.text);
    drps_train_result_free(&trained);
    drps_plan_close(plan);
    maker_free(&m);
    return model;
}

static int export(const struct fixture *f, const struct drps_io *io, int model, int replace)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_export_result result;
    const struct drps_export_options o = {
        .model = f->models[model], .output = f->file, .as = "npy", .replace = replace};
    return drps_export_run(io, &o, &result, &err);
}

static char *read_whole(const char *path, size_t *n_out)
{
    char *text = NULL;
    FILE *file = fopen(path, "re");
    *n_out = 0;
    if (!file) return NULL;
    text = malloc(FILE_MOST);
    assert_non_null(text);
    *n_out = fread(text, 1, FILE_MOST, file);
    assert_int_equal(fclose(file), 0);
    return text;
}

static void remove_both(const struct fixture *f)
{
    (void)unlink(f->file); /* they may not be there */
    (void)unlink(f->names);
}

static void setup(struct fixture *f)
{
    f->dir = temp_make();
    f->models[0] = make_model(f->dir, "few", FEW);
    f->models[1] = make_model(f->dir, "many", MANY);
    f->file = drps_path_join(f->dir, "out.npy");
    f->names = drps_path_join(f->dir, "out.npy.names");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(export(f, drps_io_os(), i, 1), 0);
        f->wholes[i][0] = read_whole(f->file, &f->bytes[i][0]);
        f->wholes[i][1] = read_whole(f->names, &f->bytes[i][1]);
    }
    assert_int_not_equal(f->bytes[0][0], f->bytes[1][0]);
    assert_int_not_equal(f->bytes[0][1], f->bytes[1][1]);
    remove_both(f);
}

static void teardown(struct fixture *f)
{
    for (int i = 0; i < 2; i++) {
        free(f->wholes[i][0]);
        free(f->wholes[i][1]);
        free(f->models[i]);
    }
    free(f->file);
    free(f->names);
    temp_remove(f->dir);
}

/* Whether the file `which` is whole, and of that model. */
static int is_of(const struct fixture *f, int which, int model)
{
    size_t n;
    char *text = read_whole(which ? f->names : f->file, &n);
    const int same =
        text && n == f->bytes[model][which] && memcmp(text, f->wholes[model][which], n) == 0;
    free(text);
    return same;
}

/* Export the second model with the n-th call failing, and from then on, if `persistent`. */
static int export_failing(const struct fixture *f, long n, int persistent, int replace)
{
    struct fault_io *fault = fault_io_new(drps_io_os());
    assert_non_null(fault);
    fault_io_arm(
        fault, FAULT_OPEN | FAULT_PWRITE | FAULT_FSYNC | FAULT_RENAME | FAULT_UNLINK | FAULT_MKDIR,
        n, persistent, FAULT_ERROR, -EIO);
    const int rc = export(f, &fault->io, 1, replace);
    fault_io_free(fault);
    return rc;
}

/* Nothing more is done from some call on, as when it is killed there. */
static void test_a_kill_leaves_no_wrong_pair(void **state)
{
    struct fixture f;
    int rc = -1, gone = 0;
    (void)state;
    setup(&f);
    for (long n = 1; rc < 0; n++) {
        remove_both(&f);
        assert_int_equal(export(&f, drps_io_os(), 0, 1), 0);
        rc = export_failing(&f, n, 1, 1);
        if (access(f.file, F_OK)) {
            gone++;
            continue;
        }
        const int model = is_of(&f, 0, 1);
        assert_true(is_of(&f, 0, model));
        assert_true(is_of(&f, 1, model));
    }
    assert_true(gone >= 1);
    assert_true(is_of(&f, 0, 1));
    teardown(&f);
}

static void test_a_failure_leaves_nothing(void **state)
{
    struct fixture f;
    int rc = -1, failures = 0;
    (void)state;
    setup(&f);
    for (long n = 1; rc < 0; n++) {
        rc = export_failing(&f, n, 0, 0);
        if (rc == 0) break;
        failures++;
        assert_int_not_equal(access(f.file, F_OK), 0);
        assert_int_not_equal(access(f.names, F_OK), 0);
    }
    assert_true(failures >= 6);
    assert_true(is_of(&f, 0, 1) && is_of(&f, 1, 1));
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_kill_leaves_no_wrong_pair),
        cmocka_unit_test(test_a_failure_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
