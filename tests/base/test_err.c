/* Errors and messages: the first failure wins, texts are cut but never overrun. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_err.h"
#include "base/drps_log.h"

static void test_err_first_failure_wins(void **state)
{
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    assert_int_equal(drps_err_set(&err, -EIO, "reading %s", "a"), -EIO);
    assert_int_equal(drps_err_set(&err, -ENOSPC, "writing %s", "b"), -ENOSPC);
    assert_int_equal(err.code, -EIO);
    assert_string_equal(err.text, "reading a; then: writing b");
}

static void test_err_says_a_failure_once(void **state)
{
    static const struct {
        const char *name, *context, *more, *text;
    } cases[] = {
        {"the same", NULL, "writing a", "writing a"},
        {"the same, with a context", "store", "writing a", "store: writing a"},
        {"it goes on", NULL, "writing a b", "writing a; then: writing a b"},
        {"a part of it", NULL, "writing", "writing a; then: writing"},
        {"its end", NULL, "a", "writing a; then: a"},
        {"nothing", NULL, "", "writing a"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        (void)drps_err_set(&err, -ENOSPC, "writing a");
        if (cases[i].context) (void)drps_err_context(&err, "%s", cases[i].context);
        assert_int_equal(drps_err_set(&err, -EIO, "%s", cases[i].more), -EIO);
        assert_int_equal(err.code, -ENOSPC);
        if (strcmp(err.text, cases[i].text) != 0)
            fail_msg("%s: '%s', expected '%s'", cases[i].name, err.text, cases[i].text);
    }
}

static void test_err_says_each_of_many_once(void **state)
{
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    for (int i = 0; i < 6; i++)
        (void)drps_err_set(&err, -EIO, "closing %d", i % 3);
    assert_string_equal(err.text, "closing 0; then: closing 1; then: closing 2");
}

static void test_err_may_pass(void **state)
{
    static const struct {
        int code, may;
    } cases[] = {{DRPS_E_PEER, 1},
                 {-ENOSPC, 1},
                 {-ETIMEDOUT, 1},
                 {-EADDRINUSE, 1},
                 {-EBUSY, 1},
                 {DRPS_E_PROTO, 1},
                 {DRPS_E_INTERRUPTED, 1},
                 {DRPS_E_PEER_FAILED, 0},
                 {DRPS_E_CONFIG, 0},
                 {DRPS_E_CORRUPT, 0},
                 {DRPS_E_MEMORY_BUDGET, 0},
                 {-ERANGE, 0},
                 {-EIO, 0},
                 {DRPS_E_VERSION, 0},
                 {0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (drps_err_may_pass(cases[i].code) != cases[i].may)
            fail_msg("%s: %d", drps_err_name(cases[i].code), !cases[i].may);
}

static void test_err_null_is_allowed(void **state)
{
    (void)state;
    assert_int_equal(drps_err_set(NULL, -EIO, "x"), -EIO);
    assert_int_equal(drps_err_context(NULL, "x"), 0);
    drps_err_clear(NULL);
}

static void test_err_context_goes_in_front(void **state)
{
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    assert_int_equal(drps_err_context(&err, "plan %d", 1), 0);
    assert_string_equal(err.text, "");
    (void)drps_err_set(&err, DRPS_E_CORRUPT, "bad byte");
    assert_int_equal(drps_err_context(&err, "plan %d", 1), DRPS_E_CORRUPT);
    assert_string_equal(err.text, "plan 1: bad byte");
}

static void test_err_clear_forgets(void **state)
{
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    (void)drps_err_set(&err, -EIO, "first");
    drps_err_clear(&err);
    assert_int_equal(err.code, 0);
    (void)drps_err_set(&err, -EPERM, "second");
    assert_string_equal(err.text, "second");
}

/* Texts of every length around the buffer's end: the bytes behind the struct stay as they were. */
static void test_err_long_texts_are_cut(void **state)
{
    struct {
        struct drps_err err;
        char guard[64];
    } box;
    char longer[1200];
    (void)state;
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    for (int n = 960; n < 1100; n++) {
        memset(&box, 0, sizeof(box));
        memset(box.guard, 'g', sizeof(box.guard));
        (void)drps_err_set(&box.err, -EIO, "%.*s", n, longer);
        (void)drps_err_set(&box.err, -EIO, "y%.*s", n, longer);
        (void)drps_err_context(&box.err, "%.*s", n, longer);
        (void)drps_err_context(&box.err, "%.*s", n / 2, longer);
        if (strlen(box.err.text) >= sizeof(box.err.text)) fail_msg("length %d: no end", n);
        for (size_t i = 0; i < sizeof(box.guard); i++)
            if (box.guard[i] != 'g')
                fail_msg("length %d: byte %zu behind the text was changed", n, i);
    }
}

static void test_err_name_knows_every_code(void **state)
{
    static const struct {
        const char *name;
        int code;
        const char *text;
    } cases[] = {
#define CASE(name, value, text) {#name, value, text},
        DRPS_ERR_CODES(CASE)
#undef CASE
            {"0", 0, "no error"},
        {"-ENOENT", -ENOENT, "No such file or directory"},
        {"-ENOSPC", -ENOSPC, "No space left on device"},
        {"positive", 7, "unknown error"},
        {"far below", -100000, "unknown error"},
        {"unused errno", -4000, "unknown error"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (strcmp(drps_err_name(cases[i].code), cases[i].text) != 0)
            fail_msg("%s: expected '%s', found '%s'", cases[i].name, cases[i].text,
                     drps_err_name(cases[i].code));
}

struct heard {
    int n;
    enum drps_log_level level;
    char text[4096];
};

static void listen_to(void *ctx, enum drps_log_level level, const char *text)
{
    struct heard *h = ctx;
    h->n++;
    h->level = level;
    (void)snprintf(h->text, sizeof(h->text), "%s", text);
}

static void test_log_levels_above_the_limit_are_dropped(void **state)
{
    struct heard h = {0};
    const struct drps_log log = {.level = DRPS_LOG_INFO, .sink = listen_to, .ctx = &h};
    (void)state;
    drps_log(&log, DRPS_LOG_DEBUG, "no");
    assert_int_equal(h.n, 0);
    drps_log(&log, DRPS_LOG_INFO, "yes %d", 5);
    assert_int_equal(h.n, 1);
    assert_string_equal(h.text, "yes 5");
    assert_int_equal(h.level, DRPS_LOG_INFO);
}

static void test_log_long_messages_are_cut(void **state)
{
    struct heard h = {0};
    const struct drps_log log = {.level = DRPS_LOG_ERROR, .sink = listen_to, .ctx = &h};
    char longer[4000];
    (void)state;
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    drps_log(&log, DRPS_LOG_ERROR, "%s", longer);
    assert_int_equal(strlen(h.text), 2047);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_err_first_failure_wins),
        cmocka_unit_test(test_err_says_a_failure_once),
        cmocka_unit_test(test_err_says_each_of_many_once),
        cmocka_unit_test(test_err_may_pass),
        cmocka_unit_test(test_err_null_is_allowed),
        cmocka_unit_test(test_err_context_goes_in_front),
        cmocka_unit_test(test_err_clear_forgets),
        cmocka_unit_test(test_err_long_texts_are_cut),
        cmocka_unit_test(test_err_name_knows_every_code),
        cmocka_unit_test(test_log_levels_above_the_limit_are_dropped),
        cmocka_unit_test(test_log_long_messages_are_cut),
    };
    return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
