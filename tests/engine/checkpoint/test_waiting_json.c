/* Weights of waiting and the rate for stale gradients in a manifest: what is read is what was
 * written, what was not set is not there, and what no option says is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "engine/checkpoint/drps_waiting_json.h"

static void test_what_is_read_is_what_was_written(void **state)
{
    const struct drps_sched_tuning some = {.has_lambda = 1, .lambda = 1.0 / 3, .has_patience = 1};
    struct drps_sched_tuning read;
    enum drps_stale stale;
    json_t *j = json_object();
    (void)state;
    drps_waiting_put(&j, &some, DRPS_STALE_ROUNDS);
    assert_null(json_object_get(json_object_get(j, "wsp"), "ema"));
    assert_int_equal(drps_waiting_get(j, "here", &read, &stale, NULL), 0);
    assert_int_equal(stale, DRPS_STALE_ROUNDS);
    assert_true(read.has_lambda && !read.has_ema && read.has_patience);
    assert_memory_equal(&read.lambda, &some.lambda, sizeof(some.lambda));
    assert_memory_equal(&read.patience, &some.patience, sizeof(some.patience));
    json_decref(j);
}

/* Manifests of earlier versions, and of runs as usual, have neither. */
static void test_what_is_usual_is_not_there(void **state)
{
    const struct drps_sched_tuning none = {0};
    struct drps_sched_tuning read = {.has_ema = 1};
    enum drps_stale stale = DRPS_STALE_BATCHES;
    json_t *j = json_object();
    (void)state;
    drps_waiting_put(&j, &none, DRPS_STALE_SAME);
    assert_int_equal(json_object_size(j), 0);
    assert_int_equal(drps_waiting_get(j, "here", &read, &stale, NULL), 0);
    assert_false(drps_sched_is_tuned(&read));
    assert_int_equal(stale, DRPS_STALE_SAME);
    json_decref(j);
}

static void test_what_no_option_says_is_refused(void **state)
{
    static const char *const bad[] = {"{\"wsp\": {\"lambda\": -1}}",
                                      "{\"wsp\": {\"ema\": 0}}",
                                      "{\"wsp\": {\"ema\": 1.5}}",
                                      "{\"wsp\": {\"patience\": -2}}",
                                      "{\"wsp\": {\"ema\": \"1\"}}",
                                      "{\"lr_stale\": \"often\"}",
                                      "{\"lr_stale\": 1}"};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct drps_sched_tuning read;
        struct drps_err err = DRPS_ERR_INIT;
        enum drps_stale stale;
        json_t *j = json_loads(bad[i], 0, NULL);
        assert_non_null(j);
        const int rc = drps_waiting_get(j, "here", &read, &stale, &err);
        if (rc != DRPS_E_CORRUPT || !strstr(err.text, "here"))
            fail_msg("%s: %d '%s'", bad[i], rc, err.text);
        json_decref(j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_read_is_what_was_written),
        cmocka_unit_test(test_what_is_usual_is_not_there),
        cmocka_unit_test(test_what_no_option_says_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
