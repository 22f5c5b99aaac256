/* What the reader says of columns that are read otherwise than they may be meant. */
#include "index/reader/reader_files.h"

static void keep_warning(void *ctx, enum drps_log_level level, const char *text)
{
    struct text *t = ctx;
    assert_int_equal(level, DRPS_LOG_WARN);
    text_add(t, "%s\n", text);
}

struct row {
    const char *name, *format, *head, *line; /* `line` is there n times */
    size_t n;
    const char *last, *expected; /* the last line; the warning, "" for none */
};

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct text input = {0}, said = {0};
        const struct drps_log log = {DRPS_LOG_WARN, keep_warning, &said};
        const struct drps_reader_options options = {
            .format = rows[i].format, .log = &log, .skip_bad_lines = 1};
        struct outcome o;
        text_add(&said, "%s", "");
        text_add(&input, "%s", rows[i].head);
        for (size_t k = 0; k < rows[i].n; k++)
            text_add(&input, "%s", rows[i].line);
        text_add(&input, "%s", rows[i].last);
        read_text(input.p, &options, &o);
        if (o.rc < 0) fail_msg("%s: %s", rows[i].name, o.err.text);
        if (strcmp(said.p, rows[i].expected) != 0)
            fail_msg("%s\nexpected: %s\nfound:    %s", rows[i].name, rows[i].expected, said.p);
        outcome_free(&o);
        free(input.p);
        free(said.p);
    }
}

static void test_warnings_of_keys_that_few_objects_lack(void **state)
{
#define HAVE "{\"y\": 1, \"age\": 30, \"tags\": [\"a\", \"b\"]}\n"
    static const struct row rows[] = {
        {"none lacks one", "jsonl", "", HAVE, 40, "", ""},
        {"misspelt in one", "jsonl", "", HAVE, 39, "{\"y\": 1, \"agee\": 3, \"tags\": []}\n",
         "1 of 40 objects has no key 'age', which the others have: is it spelt otherwise there? "
         "null says that a value is missing\n"},
        {"two keys in two", "jsonl", "", HAVE, 78, "{\"y\": 1, \"age\": 2}\n{\"y\": 1}\n",
         "2 of 80 objects have no key 'tags', which the others have (1 more key is lacked by some, "
         "too): is it spelt otherwise there? null says that a value is missing\n"},
        {"one that is null is there", "jsonl", "", HAVE, 39,
         "{\"y\": 1, \"age\": null, \"tags\": null}\n", ""},
        {"a bad line says nothing", "jsonl", "", HAVE, 39,
         "{\"y\": 1, \"age\": 3, \"tags\": [\"a\"}\n"
         "{\"y\": 1, \"age\": 3, \"tags\": [\"a\"]}\n",
         "0:40:32: JSON: ',' or ']' is expected: '}'; line skipped\n"},
        {"too few objects to say", "jsonl", "", HAVE, 18, "{\"y\": 1, \"tags\": [\"a\"]}\n", ""},
        {"many lack it", "jsonl", "{\"y\": 1, \"age\": 3}\n{\"y\": 1, \"age\": 3}\n", HAVE, 30, "",
         ""},
        {"csv has no such thing", "csv", "y,age\n", "1,30\n", 39, "1,\n", ""},
    };
#undef HAVE
    (void)state;
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_warnings_of_decimal_commas(void **state)
{
#define SAYS(what)                                                                                 \
    "numbers of column " what                                                                      \
    " and are taken for words: write them with points, or say that they are categories\n"
    static const struct row rows[] = {
        {"all of a column", "csv", "y;a;b\n", "1;3,14;2\n", 3, "",
         SAYS("a have decimal commas ('3,14' in line 2)")},
        {"some whole numbers among them", "csv", "y;a\n", "1;3\n", 3, "1;-0,5\n1;\n",
         SAYS("a have decimal commas ('-0,5' in line 5)")},
        {"of two columns", "csv", "y;a;b\n", "1;3,14;2,5\n", 3, "",
         SAYS("a, and 1 more column, have decimal commas ('3,14' in line 2)")},
        {"words among them", "csv", "y;a\n", "1;3,14\n", 3, "1;red\n", ""},
        {"lists of numbers", "csv", "y;a\n", "1;3,14,15\n", 3, "", ""},
        {"nothing behind the comma", "csv", "y;a\n", "1;3,\n", 3, "", ""},
        {"nothing before it", "csv", "y;a\n", "1;,3\n", 3, "", ""},
        {"strings of JSON", "jsonl", "", "{\"y\": 1, \"a\": \"3,14\"}\n", 3, "",
         SAYS("a have decimal commas ('3,14' in line 1)")},
    };
#undef SAYS
    (void)state;
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_warnings_of_few_words_among_numbers(void **state)
{
#define SAYS(column, what, are)                                                                    \
    "column " column " is taken for categories, as " what " is no number, but " are                \
    " values in the first lines are: if it is meant to have numbers, give the kind " column        \
    ":number, and such lines are bad; else " column ":category\n"
    static const struct row rows[] = {
        {"a word at the end", "csv", "y,a\n", "1,0.5\n", 19, "1,foo\n",
         SAYS("a", "'foo' in line 21", "19 of 20")},
        {"too few to say", "csv", "y,a\n", "1,0.5\n", 18, "1,foo\n", ""},
        {"one of ten", "csv", "y,a\n", "1,0.5\n", 18, "1,foo\n1,bar\n",
         SAYS("a", "'foo' in line 20", "18 of 20")},
        {"more than one of ten", "csv", "y,a\n", "1,0.5\n", 26, "1,foo\n1,bar\n1,foo\n", ""},
        {"two columns", "csv", "y,a,b,c\n", "1,0.5,2.5,3\n", 30, "1,x,y,3\n",
         SAYS("a", "'x' in line 32", "30 of 31") SAYS("b", "'y' in line 32", "30 of 31")},
        {"missing ones are no words, nor values", "csv", "y,a\n", "1,0.5\n", 19,
         "1,NA\n1,?\n1,\n1,foo\n", SAYS("a", "'foo' in line 24", "19 of 20")},
        {"missing ones alone", "csv", "y,a\n", "1,0.5\n", 30, "1,NA\n1,null\n", ""},
        {"dates count", "csv", "y,a\n", "1,0.5\n", 18, "1,foo\n1,2017-11-06\n1,2017-11-06\n", ""},
        {"numbers that name things", "csv", "y,user_id\n", "1,7\n", 60, "1,x7\n", ""},
        {"decimal commas are told already", "csv", "y;a\n", "1;3\n", 30, "1;3,5\n",
         "numbers of column a have decimal commas ('3,5' in line 32) and are taken for words: "
         "write "
         "them with points, or say that they are categories\n"},
        {"JSON", "jsonl", "", "{\"y\": 1, \"a\": 0.5}\n", 30, "{\"y\": 1, \"a\": \"foo\"}\n",
         SAYS("a", "'foo' in line 31", "30 of 31")},
    };
#undef SAYS
    (void)state;
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warnings_of_keys_that_few_objects_lack),
        cmocka_unit_test(test_warnings_of_decimal_commas),
        cmocka_unit_test(test_warnings_of_few_words_among_numbers),
    };
    return cmocka_run_group_tests_name("column_warnings", tests, NULL, NULL);
}
