/*
 * Plans and models of classes whose manifests were changed and signed anew: what cannot be is
 * refused, and a plan whose labels are no longer classes trains no model.
 */
#include "support/plan_maker.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/folder/drps_manifest.h"
#include "engine/drps_engine.h"
#include "engine/publish/drps_modeldir.h"
#include "support/index_case.h"
#include "support/scratch.h"
#include "support/train_runs.h"

static const struct edit {
    const char *name;
    const char *members; /* JSON: members that are put in place of those that are there */
    const char *says;
} edits[] = {
    {"a class twice", "{\"classes\": [\"a\", \"a\", \"c\"]}", "\"classes\" are not 2 to 65535"},
    {"not in order", "{\"classes\": [\"b\", \"a\", \"c\"]}", "\"classes\" are not 2 to 65535"},
    {"an empty name", "{\"classes\": [\"\", \"b\", \"c\"]}", "\"classes\" are not 2 to 65535"},
    {"a number", "{\"classes\": [1, \"b\", \"c\"]}", "\"classes\" are not 2 to 65535"},
    {"a name of two lines", "{\"classes\": [\"a\\nb\", \"b\", \"c\"]}", "\"classes\" are not 2 to"},
    {"one class", "{\"classes\": [\"a\"], \"dim\": 1}", "\"classes\" are not 2 to 65535"},
    {"none", "{\"classes\": []}", "\"classes\" are not 2 to 65535"},
    {"no list", "{\"classes\": null}", "\"classes\" are not 2 to 65535"},
    {"fewer than a row has", "{\"classes\": [\"a\", \"b\"]}", "dim"},
    {"a row of fewer", "{\"dim\": 2}", "dim"},
    {"a row of more than memory", "{\"dim\": 4294967295}", "dim"},
    {"factors, too", "{\"factors\": 2}", "factors"},
};

static void change(const char *dir, const char *name, const char *members)
{
    struct drps_err err = DRPS_ERR_INIT;
    char path[SCRATCH_PATH_BYTES + 16];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    json_t *j = json_load_file(path, 0, NULL), *more = json_loads(members, 0, NULL);
    assert_true(j && more && json_object_update(j, more) == 0);
    (void)json_object_del(j, "checksum");
    if (drps_manifest_write(drps_io_os(), path, j, &err) < 0) fail_msg("%s", err.text);
    json_decref(j);
    json_decref(more);
}

static void compile(struct case_run *c, struct scratch *s, const char *algo)
{
    case_begin(c, s,
               scratch_file(s, "input", "a 1:1\nb 2:1\nc 3:1\na 1:1 4:1\nb 2:1\nc 3:2\n", SIZE_MAX),
               algo);
    c->options.force = 1;
    case_compile(c);
}

static int train(const char *dir, const char *model, struct drps_err *err)
{
    struct drps_plan *plan;
    struct drps_train_result result = {0};
    const struct drps_train_options o = {
        .model_path = model, .epochs = 2, .replace = 1, .log = &quiet};
    int rc = drps_plan_open(drps_io_os(), dir, &plan, err);
    if (rc < 0) return rc;
    rc = drps_train_run(plan, &o, &result, err);
    drps_train_result_free(&result);
    drps_plan_close(plan);
    return rc;
}

static int open_model(const char *path, struct drps_err *err)
{
    struct drps_modeldir *md = NULL;
    const int rc = drps_modeldir_open(drps_io_os(), path, 64 << 20, &md, err);
    drps_modeldir_close(md);
    return rc;
}

static void check(const char *what, const struct edit *e, int rc, const struct drps_err *err)
{
    if (rc != DRPS_E_CORRUPT || !strstr(err->text, e->says))
        fail_msg("%s, %s: %d '%s'", what, e->name, rc, err->text);
}

static const char *const algos[] = {"mlr", "svm"};

static void test_plans_and_models_with_other_classes_are_refused(void **state)
{
    struct scratch *s = *state;
    char model[SCRATCH_PATH_BYTES];
    (void)snprintf(model, sizeof(model), "%s", scratch_path(s, "model"));
    for (size_t a = 0; a < 2; a++)
        for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
            struct drps_err err = DRPS_ERR_INIT;
            struct case_run c;
            compile(&c, s, algos[a]);
            if (train(c.out, model, &err) < 0) fail_msg("%s", err.text);
            change(model, "model.json", edits[i].members);
            check("model", &edits[i], open_model(model, &err), &err);
            train_remove(model);
            drps_err_clear(&err);
            change(c.out, "plan.json", edits[i].members);
            check("plan", &edits[i], train(c.out, model, &err), &err);
        }
}

/* All that plan.json says agrees, but there are labels of a class that is gone. */
static void test_labels_of_no_class_train_no_model(void **state)
{
    struct scratch *s = *state;
    char model[SCRATCH_PATH_BYTES];
    (void)snprintf(model, sizeof(model), "%s", scratch_path(s, "model"));
    for (size_t a = 0; a < 2; a++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct case_run c;
        compile(&c, s, algos[a]);
        change(c.out, "plan.json", "{\"classes\": [\"a\", \"b\"], \"dim\": 2, \"row_bytes\": 16}");
        if (train(c.out, model, &err) == 0) fail_msg("%s trains", algos[a]);
        assert_non_null(strstr(err.text, "diverged"));
    }
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_plans_and_models_with_other_classes_are_refused),
        SCRATCH_TEST(test_labels_of_no_class_train_no_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
