/* Command lines as texts: a shell gets the same words from them, they stay short, and what a
 * manifest says is checked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/folder/drps_command.h"

static void test_command_quotes_what_a_shell_reads(void **state)
{
    static const struct {
        const char *name, *word, *expected;
    } cases[] = {
        {"plain", "--memory=64M", "drps --memory=64M"},
        {"a path", "/data/a_b-c.svm", "drps /data/a_b-c.svm"},
        {"empty", "", "drps ''"},
        {"a space", "a b", "drps 'a b'"},
        {"quotes", "it's \"so\"", "drps 'it'\\''s \"so\"'"},
        {"a variable", "$HOME`x`", "drps '$HOME`x`'"},
        {"UTF-8", "\xc3\xa4", "drps '\xc3\xa4'"},
        {"no UTF-8", "a\xff", "drps 'a\xef\xbf\xbd'"},
        {"control characters", "a\n\x1b[2J\xc2\x9b",
         "drps 'a\xef\xbf\xbd\xef\xbf\xbd[2J\xef\xbf\xbd'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char out[DRPS_COMMAND_BYTES], word[64], program[] = "ignored";
        char *argv[] = {program, word, NULL};
        (void)snprintf(word, sizeof(word), "%s", cases[i].word);
        if (strcmp(drps_command_text("drps", 2, argv, out), cases[i].expected) != 0)
            fail_msg("%s: expected %s, found %s", cases[i].name, cases[i].expected, out);
    }
}

static void test_command_ends_behind_a_word(void **state)
{
    enum { WORDS = 1000 };
    static char *argv[WORDS], word[] = "word-10";
    char out[DRPS_COMMAND_BYTES];
    (void)state;
    for (size_t i = 0; i < WORDS; i++)
        argv[i] = word;
    (void)drps_command_text("drps", WORDS, argv, out);
    assert_true(strlen(out) < sizeof(out) && strlen(out) > sizeof(out) - 20);
    assert_string_equal(out + strlen(out) - 11, "word-10 ...");
}

static void check_get(const char *name, json_t *value, int expected)
{
    struct drps_err err = DRPS_ERR_INIT;
    const char *text = "before";
    json_t *j = json_object();
    if (value) assert_int_equal(json_object_set_new(j, "command", value), 0);
    const int rc = drps_command_get(j, "command", "plan.json", &text, &err);
    if (rc != expected) fail_msg("%s: %d: %s", name, rc, err.text);
    if (rc < 0) assert_non_null(strstr(err.text, "plan.json: \"command\""));
    if (rc < 0 || !value)
        assert_null(text);
    else
        assert_string_equal(text, json_string_value(value));
    json_decref(j);
}

static void test_command_of_a_manifest_is_checked(void **state)
{
    static char text[DRPS_COMMAND_BYTES + 1];
    (void)state;
    check_get("missing", NULL, 0);
    check_get("a text", json_string("drps-index a.svm"), 0);
    check_get("a number", json_integer(1), DRPS_E_CORRUPT);
    check_get("a line end", json_string("a\nb"), DRPS_E_CORRUPT);
    check_get("C1", json_string("a\xc2\x9b"), DRPS_E_CORRUPT);
    memset(text, 'a', DRPS_COMMAND_BYTES);
    check_get("too long", json_string(text), DRPS_E_CORRUPT);
    text[DRPS_COMMAND_BYTES - 1] = '\0';
    check_get("the longest", json_string(text), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command_quotes_what_a_shell_reads),
        cmocka_unit_test(test_command_ends_behind_a_word),
        cmocka_unit_test(test_command_of_a_manifest_is_checked),
    };
    return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
