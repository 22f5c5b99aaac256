/* JSON lines and Vowpal Wabbit's text: what each line means, and what is said of bad ones. */
#include "index/reader/reader_files.h"

struct row {
    const char *name;
    struct drps_reader_options options;
    const char *input, *expected, *error;
};

static void check_rows(const char *format, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct drps_reader_options options = rows[i].options;
        struct outcome o;
        if (!options.format) options.format = format;
        read_text(rows[i].input, &options, &o);
        check_outcome(rows[i].name, rows[i].input, &o, rows[i].expected, rows[i].error);
        outcome_free(&o);
    }
}

/* ---- JSON lines ---- */

static void test_jsonl_lines(void **state)
{
    static const struct row rows[] = {
        {.name = "values",
         .input = "{\"y\": 1, \"n\": -2.5e1, \"w\": \"a b\", \"t\": true, \"z\": null}\n"
                  "{\"w\":\"c\",\"y\":0,\"t\":false,\"z\":\"x\",\"n\":0}\n",
         .expected = "1 n=:-25 w=a b:1 t=true:1\n0 w=c:1 t=false:1 z=x:1\n"},
        {.name = "objects in objects",
         .input = "{\"y\":1,\"a\":{\"b\":{\"c\":3},\"d\":\"e\"}}\n",
         .expected = "1 a.b.c=:3 a.d=e:1\n"},
        {.name = "arrays are several categories; what is there twice counts twice",
         .input = "{\"y\":1,\"g\":[\"p\",\"q\"]}\n{\"y\":0,\"g\":[]}\n{\"y\":1,\"g\":[\"q\",\"q\"]}"
                  "\n{\"y\":0,\"g\":[7, null,8.5]}\n",
         .expected = "1 g=p:1 g=q:1\n0\n1 g=q:2\n0 g=7:1 g=8.5:1\n"},
        {.name = "a string is no number, but where it is said",
         .options = {.csv_kinds = "b:number"},
         .input = "{\"y\":1,\"a\":\"7\",\"b\":\"7\"}\n",
         .expected = "1 a=7:1 b=:7\n"},
        {.name = "dates",
         .input = "{\"y\":1,\"t\":\"2017-11-06T14:32:21Z\"}\n",
         .expected = "1 t=hour=14:1 t=weekday=Mon:1 t=month=11:1\n"},
        {.name = "escapes",
         .input = "{\"y\":1,\"a\\\"b\":\"\\u00e4\\u20ac\\ud83d\\ude00\\n\\/\\\\\"}\n",
         .expected = "1 a\"b=\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\n/\\:1\n"},
        {.name = "a label of words",
         .input = "{\"y\":true,\"a\":\"x\"}\n{\"y\":false,\"a\":\"x\"}\n",
         .expected = "1 a=x:1\n0 a=x:1\n"},
        {.name = "another label, and a column that is ignored",
         .options = {.csv_label = "l.m", .csv_kinds = "y:ignore"},
         .input = "{\"y\":9,\"l\":{\"m\":2},\"a\":\"x\"}\n",
         .expected = "2 a=x:1\n"},
        {.name = "crosses, of what is missing, too",
         .options = {.csv_cross = "a*b"},
         .input = "{\"y\":1,\"a\":\"p\",\"b\":\"q\"}\n{\"y\":0,\"b\":\"r\"}\n",
         .expected = "1 a=p:1 b=q:1 a*b=p*q:1\n0 b=r:1 a*b=*r:1\n"},
        {.name = "blank lines, CRLF",
         .input = "\n{ \"y\" : 1 , \"a\" : [ \"x\" ] } \r\n  \n",
         .expected = "1 a=x:1\n"},
        {.name = "a column that comes later, as said",
         .options = {.csv_kinds = "b:number"},
         .input = "{\"y\":1}\n{\"y\":0,\"b\":3}\n",
         .expected = "1\n0 b=:3\n"},
        {.name = "no label, for prediction",
         .options = {.label_optional = 1},
         .input = "{\"a\":\"x\"}\n",
         .expected = "0 a=x:1\n"},
        {.name = "labels of any kind, for prediction",
         .options = {.label_optional = 1, .label_ignored = 1},
         .input = "{\"y\":\"foo\",\"a\":\"x\"}\n{\"y\":1,\"a\":\"x\"}\n{\"y\":null,\"a\":\"x\"}\n"
                  "{\"y\":[1,\"b\"],\"a\":\"x\"}\n{\"a\":\"x\"}\n",
         .expected = "0 a=x:1\n0 a=x:1\n0 a=x:1\n0 a=x:1\n0 a=x:1\n"},
        {.name = "only these",
         .options = {.csv_kinds = "a:category", .csv_only_kinds = 1},
         .input = "{\"y\":1,\"a\":\"x\",\"b\":2}\n",
         .expected = "1 a=x:1\n"},
        {.name = "empty file", .input = "", .expected = ""},
    };
    (void)state;
    check_rows("jsonl", rows, sizeof(rows) / sizeof(rows[0]));
}

/* An array without values does not say where its column is: that is as it was before they were
 * noticed, so that plans stay as they were. */
static void test_jsonl_arrays_without_values(void **state)
{
    static const struct row rows[] = {
        {.name = "before values",
         .options = {.fields = 1},
         .input = "{\"y\": 1, \"t\": [], \"a\": \"x\"}\n{\"y\": 0, \"a\": \"x\", \"t\": [\"q\"]}\n",
         .expected = "1 0:a=x:1\n0 0:a=x:1 1:t=q:1\n"},
    };
    (void)state;
    check_rows("jsonl", rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_jsonl_bad_lines(void **state)
{
#define GOOD "{\"y\":1,\"a\":\"x\"}\n"
    static const struct row rows[] = {
        {.name = "no object",
         .input = GOOD "[1]\n",
         .error = "0:2:1: JSON: a line is an object: "
                  "'{' is expected: '[1]'"},
        {.name = "no label",
         .input = GOOD "{\"a\":\"x\"}\n",
         .error = "0:2: the object has no label"},
        {.name = "a label of null",
         .input = GOOD "{\"y\":null,\"a\":\"x\"}\n",
         .error = "0:2: the object has no label"},
        {.name = "two labels",
         .input = GOOD "{\"y\":1,\"y\":1}\n",
         .error = "0:2:12: a second "
                  "label (y): '1}'"},
        {.name = "a string that does not end",
         .input = GOOD "{\"y\":1,\"a\":\"x}\n",
         .error = "0:2:12: JSON: the string is not closed on this line: '\"x}'"},
        {.name = "half of a pair",
         .input = GOOD "{\"y\":1,\"a\":\"\\ud83d\"}\n",
         .error = "0:2:19: JSON: no such escape: '\"}'"},
        {.name = "an unknown escape",
         .input = GOOD "{\"y\":1,\"a\":\"\\x\"}\n",
         .error = "0:2:14: JSON: no such escape: 'x\"}'"},
        {.name = "text behind",
         .input = GOOD "{\"y\":1} 2\n",
         .error = "0:2:9: JSON: text follows the object: '2'"},
        {.name = "no colon",
         .input = GOOD "{\"y\" 1}\n",
         .error = "0:2:6: JSON: ':' is expected: '1}'"},
        {.name = "no key",
         .input = GOOD "{y:1}\n",
         .error = "0:2:2: JSON: a key in quotes is expected: 'y:1}'"},
        {.name = "no value",
         .input = GOOD "{\"y\":}\n",
         .error = "0:2:6: JSON: a value is expected: '}'"},
        {.name = "the line ends",
         .input = GOOD "{\"y\":\n",
         .error = "0:2: JSON: the line ends "
                  "before the value"},
        {.name = "a comma too many",
         .input = GOOD "{\"y\":1,}\n",
         .error = "0:2:8: JSON: a key in quotes is expected: '}'"},
        {.name = "an array that does not end",
         .input = GOOD "{\"y\":1,\"a\":[\"x\"}\n",
         .error = "0:2:16: JSON: ',' or ']' is expected: '}'"},
        {.name = "a number that is too large",
         .input = GOOD "{\"y\":1,\"a\":1e99}\n",
         .error = "0:2:12: JSON: a value is too large: '1e99}'"},
        {.name = "a control character in a key",
         .input = GOOD "{\"a\\nb\":1}\n",
         .error = "0:2:8: JSON: a key has a control character in it: ':1}'"},
        {.name = "a label that is no number",
         .input = GOOD "{\"y\":\"x\"}\n",
         .error = "0:2:7: label (column y) is not a number: 'x'"},
        {.name = "no key is the label",
         .options = {.format = "auto"},
         .input = "{\"a\":1,\"b\":2}\n",
         .error = "0: looks like JSON lines, but no column is named label, target, y or click; the "
                  "label column must be one of: a, b (or name another format)"},
        {.name = "a separator",
         .options = {.csv_separator = ','},
         .input = GOOD,
         .error = "0: to name a separator is for csv, and this is read as jsonl, which has no such "
                  "thing: leave it out"},
    };
    (void)state;
    check_rows("jsonl", rows, sizeof(rows) / sizeof(rows[0]));
}

/* `n` brackets within each other, or a key of n letters. */
static void test_jsonl_bounds(void **state)
{
    static const struct {
        const char *name;
        int brackets, letters;
        const char *error; /* its end; NULL: it is read */
    } rows[] = {
        {"31 arrays in the object", 31, 1, NULL},
        {"32 arrays", 32, 1, "nested more than 32 deep"},
        {"255 letters", 0, 255, NULL},
        {"256 letters", 0, 256, "have more than 255 bytes"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct text t = {0};
        struct outcome o;
        text_add(&t, "{\"y\":1,\"");
        for (int k = 0; k < rows[i].letters; k++)
            text_add(&t, "k");
        text_add(&t, "\":");
        for (int k = 0; k < rows[i].brackets; k++)
            text_add(&t, "[");
        text_add(&t, "\"x\"");
        for (int k = 0; k < rows[i].brackets; k++)
            text_add(&t, "]");
        text_add(&t, "}\n");
        read_text(t.p, &(struct drps_reader_options){.format = "jsonl"}, &o);
        if ((o.rc < 0) != (rows[i].error != NULL) ||
            (rows[i].error && !strstr(o.err.text, rows[i].error)))
            fail_msg("%s: %s", rows[i].name, o.err.text);
        outcome_free(&o);
        free(t.p);
    }
}

/* Keys of the first thousand lines are columns; one that comes later is a bad line. */
static void test_jsonl_keys_that_come_later(void **state)
{
    static const struct {
        const char *kinds;
        int line, good;
    } rows[] = {{NULL, 1000, 1}, {NULL, 1001, 0}, {"*:ignore", 1001, 1}, {"late:number", 1001, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct text t = {0};
        struct outcome o;
        for (int k = 1; k <= 1100; k++)
            text_add(&t, k == rows[i].line ? "{\"y\":1,\"a\":\"x\",\"late\":1}\n"
                                           : "{\"y\":0,\"a\":\"x\"}\n");
        read_text(t.p, &(struct drps_reader_options){.format = "jsonl", .csv_kinds = rows[i].kinds},
                  &o);
        if ((o.rc == 0) != rows[i].good) fail_msg("row %zu: %d %s", i, o.rc, o.err.text);
        if (!rows[i].good)
            assert_string_equal(o.err.text,
                                "0:1001:23: the key 'late' is in none of the first lines: give its "
                                "kind, or the kind *:ignore for all that are not named: '1}'");
        outcome_free(&o);
        free(t.p);
    }
}

/* Many columns, in an order that differs from line to line. */
static void test_jsonl_many_columns(void **state)
{
    struct text in = {0}, out = {0};
    struct outcome o;
    (void)state;
    for (int i = 0; i < 5; i++) {
        text_add(&in, "{\"y\":%d", i % 2);
        text_add(&out, "%d", i % 2);
        for (int k = 0; k < 300; k++) {
            const int at = (k * (2 * i + 1)) % 300;
            text_add(&in, ",\"column%d\":%d", at, k + 1);
            text_add(&out, " column%d=:%d", at, k + 1);
        }
        text_add(&in, "}\n");
        text_add(&out, "\n");
    }
    read_text(in.p, &(struct drps_reader_options){.format = "jsonl", .csv_scale = "none"}, &o);
    assert_int_equal(o.rc, 0);
    /* Line 1 has each key once; line 2 (times 3) has every third key three times. */
    char *first = strchr(out.p, '\n');
    *first = '\0';
    assert_memory_equal(o.text.p, out.p, strlen(out.p));
    assert_int_equal(o.features, 300 + 100 + 60 + 300 + 100);
    outcome_free(&o);
    free(in.p);
    free(out.p);
}

/* ---- Vowpal Wabbit ---- */

static void test_vw_lines(void **state)
{
    static const struct row rows[] = {
        {.name = "namespaces, values, a scale",
         .input = "1 |a x y:2 |b:0.5 x z:-4\n-1 | x:.25 x^y\n",
         .expected = "1 feature=a^x:1 feature=a^y:2 feature=b^x:0.5 feature=b^z:-2\n"
                     "-1 feature=x:0.25 feature=^x^y:1\n"},
        {.name = "weights, of which those of 0 are left out",
         .input = "1 0 |f a\n-1 2.5 |f b\n",
         .expected = "-1 feature=f^b:1\n"},
        {.name = "weights of 1, tags",
         .input = "1 1 'tag|f a\n0 1.0 tag|f a\n1 'tag |f a\n-1 1 0 tag|f a\n2 1 |f a\n",
         .expected = "1 feature=f^a:1\n0 feature=f^a:1\n1 feature=f^a:1\n-1 feature=f^a:1\n"
                     "2 feature=f^a:1\n"},
        {.name = "a feature twice, a value of 0, an empty namespace",
         .input = "1 |f a a:2 b:0 |g |h c\n",
         .expected = "1 feature=f^a:3 feature=h^c:1\n"},
        {.name = "bars and tabs without blanks",
         .input = "1\t|f a\tb|g\tc\n",
         .expected = "1 feature=f^a:1 feature=f^b:1 feature=g^c:1\n"},
        {.name = "features without names are counted",
         .input = "1 | :2 :0 a :3 |f :4\n",
         .expected = "1 feature=0:2 feature=a:1 feature=2:3 feature=f^0:4\n"},
        {.name = "no features, blank lines, CRLF",
         .input = "1 |\r\n\n0 |f\n",
         .expected = "1\n0\n"},
        {.name = "no label, for prediction",
         .options = {.label_optional = 1},
         .input = "|f a\n 'tag|f b\ntag|f b\n1 |f c\n",
         .expected = "0 feature=f^a:1\n0 feature=f^b:1\n0 feature=f^b:1\n1 feature=f^c:1\n"},
        {.name = "labels of any kind, for prediction",
         .options = {.label_optional = 1, .label_ignored = 1},
         .input = "? |f a\nfoo 1 'tag|f b\n1:2:0.5 |f c\n|f d\n1 |f e\n",
         .expected = "0 feature=f^a:1\n0 feature=f^b:1\n0 feature=f^c:1\n0 feature=f^d:1\n"
                     "0 feature=f^e:1\n"},
        {.name = "empty file", .input = "", .expected = ""},
    };
    (void)state;
    check_rows("vw", rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_vw_bad_lines(void **state)
{
    static const struct row rows[] = {
        {.name = "a weight below 0",
         .input = "1 -2 |f a\n",
         .error = "0:1:3: weight is negative: '-2'"},
        {.name = "a base",
         .input = "1 1 0.5 |f a\n",
         .error = "0:1:5: a base of the prediction is not supported: '0.5'"},
        {.name = "no label", .input = "|f a\n", .error = "0:1: the line has no label"},
        {.name = "a tag alone", .input = "1|f a\n", .error = "0:1: the line has no label"},
        {.name = "no bar",
         .input = "1 f a\n",
         .error = "0:1: the line has no '|', behind which features stand"},
        {.name = "costs",
         .input = "1:2:0.5 |f a\n",
         .error = "0:1:1: label has a colon in it: labels with costs, probabilities or several "
                  "parts are not supported: '1:2:0.5'"},
        {.name = "a word for a label",
         .input = "shared |f a\n",
         .error = "0:1:1: label is not a number: 'shared'"},
        {.name = "too many words",
         .input = "1 1 0 x tag|f a\n",
         .error = "0:1:1: more than label, weight, base and tag before the first '|': '1'"},
        {.name = "four words",
         .input = "1 1 0 tag |f a\n",
         .error = "0:1:7: the tag is followed by a blank: 'tag'"},
        {.name = "a value", .input = "1 |f a:x\n", .error = "0:1:8: value is not a number: 'x'"},
        {.name = "two values",
         .input = "1 |f a:1:2\n",
         .error = "0:1:8: value is not a number: "
                  "'1:2'"},
        {.name = "an infinite value",
         .input = "1 |f a:nan\n",
         .error = "0:1:8: value is NaN or infinite: 'nan'"},
        {.name = "a scale",
         .input = "1 |f:b a\n",
         .error = "0:1:6: the namespace's scale is not a number: 'b'"},
        {.name = "a scale that makes it infinite",
         .input = "1 |f:1e30 a:1e30\n",
         .error = "0:1:11: value and the namespace's scale give infinity: 'a:1e30'"},
    };
    (void)state;
    check_rows("vw", rows, sizeof(rows) / sizeof(rows[0]));
}

/* Many features behind a long name of a namespace, read in small pieces: names that are made of
 * both have room. */
static void test_vw_long_namespaces(void **state)
{
    struct text in = {0};
    struct outcome o;
    (void)state;
    for (int i = 0; i < 50; i++) {
        text_add(&in, "1 |n%0200d", i);
        for (int k = 0; k < 100; k++)
            text_add(&in, " f%d", k);
        text_add(&in, "|m x\n");
    }
    read_text(in.p, &(struct drps_reader_options){.format = "vw", .memory_bytes = 1 << 20}, &o);
    assert_int_equal(o.rc, 0);
    assert_int_equal(o.features, 50 * 101);
    outcome_free(&o);
    free(in.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jsonl_lines),
        cmocka_unit_test(test_jsonl_arrays_without_values),
        cmocka_unit_test(test_jsonl_bad_lines),
        cmocka_unit_test(test_jsonl_bounds),
        cmocka_unit_test(test_jsonl_keys_that_come_later),
        cmocka_unit_test(test_jsonl_many_columns),
        cmocka_unit_test(test_vw_lines),
        cmocka_unit_test(test_vw_bad_lines),
        cmocka_unit_test(test_vw_long_namespaces),
    };
    return cmocka_run_group_tests_name("text_formats", tests, NULL, NULL);
}
