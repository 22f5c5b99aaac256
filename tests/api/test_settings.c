/* Settings of programs: names, values, flags, and what hostile ones get told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "api/settings.h"

static struct drps_settings *new_settings(enum drps_task task)
{
    struct drps_settings *s;
    assert_int_equal(drps_settings_new(task, &s, NULL), 0);
    return s;
}

static void test_a_setting_is_what_the_option_is(void **state)
{
    struct drps_settings *s = new_settings(DRPS_TASK_TRAIN);
    struct drps_train_settings o;
    (void)state;
    assert_int_equal(drps_settings_set(s, "epochs", "3", NULL), 0);
    assert_int_equal(drps_settings_set(s, "lr", ".25", NULL), 0);
    assert_int_equal(drps_settings_set(s, "memory", "512M", NULL), 0);
    assert_int_equal(drps_settings_set(s, "optimizer", "ftrl", NULL), 0);
    assert_int_equal(drps_settings_set(s, "push-filter", "phi=.5,p=.25", NULL), 0);
    assert_int_equal(drps_settings_of_train(s, &o, NULL), 0);
    assert_int_equal(o.train.epochs, 3);
    assert_true(o.train.lr == .25f);
    assert_int_equal(o.train.memory_bytes, 512 << 20);
    assert_string_equal(o.train.optimizer, "ftrl");
    assert_true(o.train.push.on && o.train.push.phi == .5 && o.train.push.chance == .25);
    assert_int_equal(o.train.seed, 1); /* as the tool's default */
    drps_settings_free(s);
}

static void test_a_later_value_takes_the_place_of_an_earlier_one(void **state)
{
    struct drps_settings *s = new_settings(DRPS_TASK_TRAIN);
    struct drps_train_settings o;
    (void)state;
    assert_int_equal(drps_settings_set(s, "push-filter", "phi=.5,d=2", NULL), 0);
    assert_int_equal(drps_settings_set(s, "push-filter", "p=.5", NULL), 0);
    assert_int_equal(drps_settings_of_train(s, &o, NULL), 0);
    assert_true(o.train.push.decay == 0 && o.train.push.chance == .5);
    drps_settings_free(s);
}

static void test_flags_are_set_and_taken_back(void **state)
{
    static const char *const on[] = {NULL, "", "1", "yes"};
    struct drps_settings *s = new_settings(DRPS_TASK_TRAIN);
    struct drps_train_settings o;
    (void)state;
    for (size_t i = 0; i < sizeof(on) / sizeof(*on); i++) {
        assert_int_equal(drps_settings_set(s, "batch-mean", on[i], NULL), 0);
        assert_int_equal(drps_settings_of_train(s, &o, NULL), 0);
        assert_int_equal(o.train.batch_mean, 1);
        assert_int_equal(drps_settings_set(s, "batch-mean", "0", NULL), 0);
        assert_int_equal(drps_settings_of_train(s, &o, NULL), 0);
        assert_int_equal(o.train.batch_mean, 0);
    }
    assert_int_equal(drps_settings_set(s, "batch-mean", "perhaps", NULL), DRPS_E_CONFIG);
    drps_settings_free(s);
}

static void test_files_may_be_given_several_times(void **state)
{
    struct drps_settings *s = new_settings(DRPS_TASK_INDEX);
    struct drps_index_settings o;
    (void)state;
    assert_int_equal(drps_settings_set(s, "test", "a", NULL), 0);
    assert_int_equal(drps_settings_set(s, "test", "b", NULL), 0);
    assert_int_equal(drps_settings_of_index(s, &o, NULL), 0);
    assert_int_equal(o.tests.n, 2);
    assert_string_equal(o.tests.texts[1], "b");
    drps_index_settings_free(&o);
    drps_settings_free(s);
}

static void test_a_bad_one_is_told_and_changes_nothing(void **state)
{
    static const struct {
        const char *name, *value, *told;
    } bad[] = {
        {"lr", "fast", "lr: 'fast' is not a number"},
        {"lr", "-1", "lr: '-1' is out of range"},
        {"lr", NULL, "lr needs a value: RATE"},
        {"epochs", "0", "epochs: '0' is out of range: from 1"},
        {"epoch", "3", "did you mean 'epochs'?"},
        {"learning_rate", "3", "there is no setting 'learning_rate'"},
        {"output", "x", "there is no setting 'output'"},
        {"local", "2", "there is no setting 'local'"},
        {"peers", "x", "there is no setting 'peers'"},
        {"store", "tape", "store: 'tape' is not one of: auto, resident"},
        {"checkpoint-every", "5", "is no time"},
        {"push-filter", "phi=1,q=2", "'q=2' is none of phi=X"},
        {"", "1", "there is no setting ''"},
    };
    struct drps_settings *s = new_settings(DRPS_TASK_TRAIN);
    struct drps_train_settings o;
    (void)state;
    assert_int_equal(drps_settings_set(s, "lr", ".5", NULL), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        const int rc = drps_settings_set(s, bad[i].name, bad[i].value, &err);
        if (rc != DRPS_E_CONFIG || !strstr(err.text, bad[i].told))
            fail_msg("%s=%s: found %d, '%s'", bad[i].name, bad[i].value ? bad[i].value : "NULL", rc,
                     err.text);
        if (strstr(err.text, "--")) fail_msg("an option is named: %s", err.text);
    }
    assert_int_equal(drps_settings_of_train(s, &o, NULL), 0);
    assert_true(o.train.lr == .5f);
    drps_settings_free(s);
}

/* Long texts, formats, and bytes that are no text. */
static void test_hostile_texts_are_refused(void **state)
{
    enum { LONG = 1 << 16 };
    char *text = malloc(LONG + 1);
    const char *name;
    (void)state;
    assert_non_null(text);
    for (int task = DRPS_TASK_INDEX; task <= DRPS_TASK_RECOMMEND; task++) {
        struct drps_settings *s = new_settings((enum drps_task)task);
        for (size_t i = 0; (name = drps_settings_name((enum drps_task)task, i, NULL)); i++) {
            static const char *const texts[] = {"%s%n", "{x}", "\xff\xfe", "1e999", "-0", ",,,,"};
            for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++)
                (void)!drps_settings_set(s, name, texts[k], NULL); /* either is right */
            memset(text, '9', LONG);
            text[LONG] = '\0';
            (void)!drps_settings_set(s, name, text, NULL);
            (void)!drps_settings_set(s, text, "1", NULL);
        }
        drps_settings_free(s);
    }
    free(text);
}

static void test_settings_are_of_one_task(void **state)
{
    struct drps_settings *s = new_settings(DRPS_TASK_TRAIN);
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    assert_int_equal(drps_index_files(s, NULL, 0, "x", NULL, NULL, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "settings of drps-train were given, not of drps-index"));
    drps_settings_free(s);
    assert_int_equal(drps_settings_new((enum drps_task)99, &s, NULL), DRPS_E_CONFIG);
    assert_null(s);
    assert_int_equal(drps_settings_set(NULL, "lr", "1", NULL), DRPS_E_CONFIG);
    drps_settings_free(NULL);
}

static void test_names_are_listed(void **state)
{
    const char *help, *name;
    int has_algo = 0;
    size_t i = 0;
    (void)state;
    for (; (name = drps_settings_name(DRPS_TASK_INDEX, i, &help)); i++) {
        assert_non_null(help);
        has_algo |= strcmp(name, "algo") == 0;
        if (strcmp(name, "output") == 0 || strcmp(name, "peers") == 0 ||
            strcmp(name, "shards") == 0) /* which forks */
            fail_msg("%s is no setting", name);
    }
    assert_true(has_algo && i > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_setting_is_what_the_option_is),
        cmocka_unit_test(test_a_later_value_takes_the_place_of_an_earlier_one),
        cmocka_unit_test(test_flags_are_set_and_taken_back),
        cmocka_unit_test(test_files_may_be_given_several_times),
        cmocka_unit_test(test_a_bad_one_is_told_and_changes_nothing),
        cmocka_unit_test(test_hostile_texts_are_refused),
        cmocka_unit_test(test_settings_are_of_one_task),
        cmocka_unit_test(test_names_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
