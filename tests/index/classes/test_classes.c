/* Classes: what labels name them, their order, their bounds, and what manifests may hold of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "index/classes/drps_classes.h"

static struct drps_classes *classes_new(void)
{
    struct drps_classes *c = drps_classes_new();
    assert_non_null(c);
    return c;
}

static int32_t add(struct drps_classes *c, const char *label)
{
    return drps_classes_add(c, label, strlen(label));
}

/* Labels and the name of the class that each stands for. */
static void test_numbers_are_named_by_their_value(void **state)
{
    static const char *const cases[][2] = {
        {"1", "1"},
        {"+1", "1"},
        {"01", "1"},
        {"1.0", "1"},
        {"-1", "-1"},
        {"-0", "0"},
        {"0.0", "0"},
        {".5", "0.5"},
        {"5.", "5"},
        {"-00.50", "-0.5"},
        {"100", "100"},
        {"1e2", "1e2"},
        {"1.2.3", "1.2.3"},
        {"-", "-"},
        {".", "."},
        {"+", "+"},
        {"cat", "cat"},
        {"1a", "1a"},
        {"C#", "C#"},
        {"two words", "two words"},
        {"123456789012345678901234567890", "123456789012345678901234567890"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_classes *c = classes_new();
        assert_int_equal(add(c, cases[i][0]), 0);
        assert_string_equal(drps_classes_name(c, 0), cases[i][1]);
        assert_int_equal(add(c, cases[i][1]), 0);
        assert_int_equal(drps_classes_find(c, cases[i][0], strlen(cases[i][0])), 0);
        assert_int_equal(drps_classes_find(c, "other", 5), -1);
        assert_int_equal(drps_classes_count(c), 1);
        drps_classes_free(c);
    }
}

/* Labels as they come, and the classes in order, as a text. */
static void test_classes_are_in_the_order_of_their_names(void **state)
{
    static const struct {
        const char *labels[8], *sorted;
    } cases[] = {
        {{"10", "9", "-2", "-10", "0", "9.5", "9.25"}, "-10, -2, 0, 9, 9.25, 9.5, 10"},
        {{"b", "a", "B", "10", "9"}, "10, 9, B, a, b"},
        {{"2", "1"}, "1, 2"},
        {{"0.5", "0.25", "-0.5", "-0.25"}, "-0.5, -0.25, 0.25, 0.5"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_classes *c = classes_new();
        char text[100];
        uint32_t *to;
        for (int32_t k = 0; k < 8 && cases[i].labels[k]; k++)
            assert_int_equal(add(c, cases[i].labels[k]), k);
        assert_int_equal(drps_classes_sort(c, &to, NULL), 0);
        assert_string_equal(drps_classes_text(c, text, sizeof(text)), cases[i].sorted);
        for (size_t k = 0; k < drps_classes_count(c); k++) {
            assert_string_equal(drps_classes_name(c, to[k]), cases[i].labels[k]);
            assert_int_equal(drps_classes_find(c, cases[i].labels[k], strlen(cases[i].labels[k])),
                             to[k]);
        }
        free(to);
        drps_classes_free(c);
    }
}

static void test_what_is_no_class(void **state)
{
    char name[DRPS_CLASS_NAME_BYTES + 1];
    struct drps_classes *c = classes_new();
    (void)state;
    memset(name, 'x', sizeof(name));
    assert_int_equal(drps_classes_add(c, "", 0), DRPS_CLASS_EMPTY);
    assert_int_equal(drps_classes_add(c, name, DRPS_CLASS_NAME_BYTES - 1), DRPS_CLASS_LONG);
    assert_int_equal(drps_classes_add(c, name, DRPS_CLASS_NAME_BYTES - 2), 0);
    assert_int_equal(add(c, "a\tb"), DRPS_CLASS_TEXT);
    assert_int_equal(add(c, "\x7f"), DRPS_CLASS_TEXT);
    assert_int_equal(add(c, "\xff"), DRPS_CLASS_TEXT);
    assert_int_equal(drps_classes_add(c, "a\0b", 3), DRPS_CLASS_TEXT);
    assert_int_equal(drps_classes_find(c, "", 0), -1);
    assert_int_equal(drps_classes_find(c, name, sizeof(name)), -1);
    assert_int_equal(drps_classes_count(c), 1);
    drps_classes_free(c);
}

static void test_classes_are_bounded(void **state)
{
    struct drps_classes *c = classes_new();
    char label[16];
    (void)state;
    for (int32_t i = 0; i < DRPS_CLASSES_MOST; i++) {
        (void)snprintf(label, sizeof(label), "c%d", i);
        assert_int_equal(add(c, label), i);
    }
    assert_int_equal(add(c, "one more"), DRPS_CLASS_MANY);
    assert_int_equal(add(c, "c0"), 0);
    assert_int_equal(add(c, label), DRPS_CLASSES_MOST - 1);
    drps_classes_free(c);
}

static void test_copies_are_the_same(void **state)
{
    struct drps_classes *a = classes_new();
    (void)state;
    (void)add(a, "x");
    (void)add(a, "y");
    struct drps_classes *b = drps_classes_copy(a);
    assert_true(drps_classes_same(a, b) && drps_classes_same(NULL, NULL));
    assert_false(drps_classes_same(a, NULL));
    (void)add(b, "z");
    assert_false(drps_classes_same(a, b));
    drps_classes_free(b);
    b = classes_new();
    (void)add(b, "y");
    (void)add(b, "x");
    assert_false(drps_classes_same(a, b));
    drps_classes_free(a);
    drps_classes_free(b);
}

/* Manifests, and whether they are taken. */
static void test_manifests_hold_names_in_order(void **state)
{
    static const struct {
        const char *json;
        int good;
    } cases[] = {
        {"{\"classes\": [\"a\", \"b\"]}", 1},
        {"{\"classes\": [\"9\", \"10\"]}", 1},
        {"{\"classes\": [\"b\", \"a\"]}", 0},
        {"{\"classes\": [\"10\", \"9\"]}", 0},
        {"{\"classes\": [\"a\", \"a\"]}", 0},
        {"{\"classes\": [\"a\"]}", 0},
        {"{\"classes\": []}", 0},
        {"{\"classes\": \"ab\"}", 0},
        {"{\"classes\": [1, 2]}", 0},
        {"{\"classes\": [\"+1\", \"2\"]}", 0},
        {"{\"classes\": [\"\", \"b\"]}", 0},
        {"{\"classes\": [\"a\\n\", \"b\"]}", 0},
        {"{\"classes\": {\"a\": 1, \"b\": 2}}", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_classes *c;
        json_t *j = json_loads(cases[i].json, 0, NULL);
        assert_non_null(j);
        const int rc = drps_classes_get(j, "file", &c, &err);
        if (rc != (cases[i].good ? 0 : DRPS_E_CORRUPT) || !c != !cases[i].good)
            fail_msg("%s: %d, %s", cases[i].json, rc, err.text);
        json_t *back = c ? drps_classes_to_json(c) : NULL;
        if (c) assert_true(json_equal(back, json_object_get(j, "classes")));
        json_decref(back);
        json_decref(j);
        drps_classes_free(c);
    }
    struct drps_classes *none;
    json_t *j = json_object();
    assert_int_equal(drps_classes_get(j, "file", &none, NULL), 0);
    assert_null(none);
    json_decref(j);
}

static void test_long_lists_are_cut(void **state)
{
    struct drps_classes *c = classes_new();
    char label[16], text[40];
    (void)state;
    for (int i = 0; i < 30; i++) {
        (void)snprintf(label, sizeof(label), "n%d", i);
        (void)add(c, label);
    }
    assert_string_equal(drps_classes_text(c, text, sizeof(text)),
                        "n0, n1, n2, n3, ... (30 in all)");
    drps_classes_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_are_named_by_their_value),
        cmocka_unit_test(test_classes_are_in_the_order_of_their_names),
        cmocka_unit_test(test_what_is_no_class),
        cmocka_unit_test(test_classes_are_bounded),
        cmocka_unit_test(test_copies_are_the_same),
        cmocka_unit_test(test_manifests_hold_names_in_order),
        cmocka_unit_test(test_long_lists_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
