/* The state of a quasi-Newton method in a manifest: what is read is what was written, to the last
 * bit, and what no run comes to is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/drps_newton_json.h"

/* Of a run with four pairs at most. */
static struct drps_optim four_pairs(void)
{
    struct drps_optim optim;
    assert_int_equal(drps_optim_init(&optim, "lbfgs", NULL), 0);
    optim.pairs = 4;
    return optim;
}

static struct drps_newton_state some_state(void)
{
    struct drps_newton_state s = {.pass = 9,
                                  .accepts = 1,
                                  .keeps = 1,
                                  .slot = 2,
                                  .pairs = 3,
                                  .on_gradient = -1.0 / 3,
                                  .on_s = {0.1, -1e-300, 7},
                                  .on_y = {1e300, 0, -0.3},
                                  .search = {.value = 2.0 / 7,
                                             .slope = -1e-9,
                                             .step = 0.7,
                                             .low = 0.1,
                                             .low_slope = -0.01,
                                             .high = INFINITY,
                                             .trials = 3},
                                  .first_norm = 1e4 / 3,
                                  .idle = 2,
                                  .end = DRPS_NEWTON_STALLED};
    return s;
}

static int read_back(json_t *j, struct drps_newton_state *out, struct drps_err *err)
{
    const struct drps_optim optim = four_pairs();
    char *text = json_dumps(j, JSON_REAL_PRECISION(17));
    assert_non_null(text);
    json_decref(j);
    j = json_loads(text, 0, NULL);
    free(text);
    assert_non_null(j);
    const int rc = drps_newton_from_json(j, "here.json", &optim, out, err);
    json_decref(j);
    return rc;
}

static void test_all_digits_come_back(void **state)
{
    const struct drps_newton_state s = some_state();
    struct drps_newton_state got;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    if (read_back(drps_newton_to_json(&s), &got, &err) < 0) fail_msg("%s", err.text);
    json_t *a = drps_newton_to_json(&s), *b = drps_newton_to_json(&got);
    assert_true(json_equal(a, b));
    json_decref(a);
    json_decref(b);
    assert_true(got.search.high == (double)INFINITY && got.end == s.end);
    assert_memory_equal(got.on_s, s.on_s, sizeof(s.on_s));
    assert_memory_equal(got.on_y, s.on_y, sizeof(s.on_y));
}

/* One member is another value, or gone. */
static void test_what_no_run_comes_to(void **state)
{
    static const struct {
        const char *key, *value; /* JSON; NULL: gone */
    } cases[] = {
        {"pass", "0"},
        {"pass", "-1"},
        {"pass", "4294967295"},
        {"pass", "1e3"},
        {"pass", NULL},
        {"pairs", "5"},
        {"pairs", "33"},
        {"pairs", "4294967299"},
        {"pairs", "2"},
        {"slot", "3"},
        {"slot", "4294967295"},
        {"on_s", "[1, 2]"},
        {"on_s", "[1, 2, null]"},
        {"on_y", "[1, 2, \"3\"]"},
        {"on_y", NULL},
        {"on_gradient", "null"},
        {"step", "-0.5"},
        {"step", "null"},
        {"low", "-1"},
        {"high", "0.05"},
        {"high", NULL},
        {"value", "\"1\""},
        {"slope", "null"},
        {"low_slope", "null"},
        {"first_norm", "null"},
        {"end", "3"},
        {"trials", "-3"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct drps_newton_state s = some_state();
        struct drps_newton_state got;
        struct drps_err err = DRPS_ERR_INIT;
        json_t *j = drps_newton_to_json(&s);
        json_t *value = cases[i].value ? json_loads(cases[i].value, JSON_DECODE_ANY, NULL) : NULL;
        assert_true(!cases[i].value == !value);
        assert_int_equal(value ? json_object_set_new(j, cases[i].key, value)
                               : json_object_del(j, cases[i].key),
                         0);
        const int rc = read_back(j, &got, &err);
        if (rc != DRPS_E_CORRUPT || !strstr(err.text, "here.json"))
            fail_msg("%s = %s: %d, %s", cases[i].key, cases[i].value, rc, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_digits_come_back),
        cmocka_unit_test(test_what_no_run_comes_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
