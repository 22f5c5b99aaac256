/* Format tokens: which sample is in which sequence, its token, and its label. */
#include "index/layers/drps_layers.h"
#include "index/reader/reader_files.h"

struct token_case {
    const char *name;
    struct drps_reader_options options;
    const char *input, *expected, *error;
    uint64_t lines; /* 0: not looked at */
};

/* Samples are "class mark:token=NAME:1"; classes have numbers as they come. */
static void check_cases(const struct token_case *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct drps_classes *classes = drps_classes_new();
        struct drps_reader_options options = c[i].options;
        struct outcome o;
        assert_non_null(classes);
        options.format = "tokens";
        options.classes = classes;
        read_text(c[i].input, &options, &o);
        check_outcome(c[i].name, c[i].input, &o, c[i].expected, c[i].error);
        if (!c[i].error) assert_string_equal(o.format, "tokens");
        if (c[i].lines) assert_int_equal(o.lines, c[i].lines);
        outcome_free(&o);
        drps_classes_free(classes);
    }
}

static void test_tokens_run_on_over_line_ends(void **state)
{
    static const struct token_case cases[] = {
        {.name = "as many samples as tokens, line ends among them",
         .input = "a b\nc a\n",
         .expected = "0 0:token=<eos>:1\n1 1:token=a:1\n2 1:token=b:1\n"
                     "3 1:token=<eos>:1\n0 1:token=c:1\n2 1:token=a:1\n",
         .lines = 2},
        {.name = "a sequence begins after so many samples, within a line, too",
         .options = {.sequence = 2},
         .input = "a b\nc\n",
         .expected = "0 0:token=<eos>:1\n1 1:token=a:1\n2 0:token=b:1\n"
                     "3 1:token=<eos>:1\n2 0:token=c:1\n"},
        {.name = "sequences of one",
         .options = {.sequence = 1},
         .input = "a\n",
         .expected = "0 0:token=<eos>:1\n1 0:token=a:1\n"},
        {.name = "an empty line ends, too; a last line without an end has one",
         .input = "\n  \na",
         .expected = "0 0:token=<eos>:1\n0 1:token=<eos>:1\n1 1:token=<eos>:1\n0 1:token=a:1\n"},
        {.name = "blanks of any kind and number, CRLF, a byte order mark",
         .input = "\xef\xbb\xbf a\t b \r\n",
         .expected = "0 0:token=<eos>:1\n1 1:token=a:1\n2 1:token=b:1\n"},
        {.name = "the name of a line's end is a token like any other",
         .input = "<eos> a\n",
         .expected = "0 0:token=<eos>:1\n1 1:token=<eos>:1\n0 1:token=a:1\n"},
        {.name = "tokens are names, and labels are classes, where they are numbers, too",
         .input = "01 1 1:2 #\n",
         .expected = "0 0:token=<eos>:1\n0 1:token=01:1\n1 1:token=1:1\n2 1:token=1:2:1\n"
                     "3 1:token=#:1\n"},
        {.name = "nothing", .input = "", .expected = ""},
    };
    (void)state;
    check_cases(cases, sizeof(cases) / sizeof(cases[0]));
}

static void test_tokens_of_lines_by_themselves(void **state)
{
    static const struct token_case cases[] = {
        {.name = "one sample less than tokens; short lines have none",
         .options = {.sequence_lines = 1},
         .input = "a b c\n\nd\nb a\n",
         .expected = "0 0:token=a:1\n1 1:token=b:1\n2 0:token=b:1\n",
         .lines = 4},
        {.name = "long ones are cut, and go on as new ones",
         .options = {.sequence_lines = 1, .sequence = 2},
         .input = "a b c d\n",
         .expected = "0 0:token=a:1\n1 1:token=b:1\n2 0:token=c:1\n"},
    };
    (void)state;
    check_cases(cases, sizeof(cases) / sizeof(cases[0]));
}

static void test_tokens_that_are_bad(void **state)
{
    static char long_line[300];
    const struct token_case cases[] = {
        {.name = "not UTF-8",
         .input = "a b\nc \xff\n",
         .error = "0:2:3: token is no UTF-8 text, or has a control character in it: '\\xff'"},
        {.name = "a line of which one is bad is left out whole",
         .options = {.skip_bad_lines = 1, .sequence = 3},
         .input = "a\nb \x01 c\nd\n",
         .expected = "0 0:token=<eos>:1\n1 1:token=a:1\n2 1:token=<eos>:1\n1 0:token=d:1\n"},
        {.name = "too long",
         .input = long_line,
         .error = "0:1:3: token is longer than a class's name may be, 249 bytes: "
                  "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'"},
        {.name = "too long sequences",
         .options = {.sequence = 1025},
         .input = "a\n",
         .error = "0: sequences of 1025 samples: at most 1024"},
    };
    (void)state;
    memset(long_line, 'x', sizeof(long_line) - 1);
    long_line[1] = ' ';
    check_cases(cases, sizeof(cases) / sizeof(cases[0]));
}

/* What lengths are where none is given. */
static void test_tokens_usual_lengths(void **state)
{
    static char line[4 * DRPS_SEQUENCE_MOST + 1];
    (void)state;
    for (size_t i = 0; i + 1 < sizeof(line); i += 2)
        memcpy(line + i, "a ", 2);
    for (int alone = 0; alone < 2; alone++) {
        struct drps_classes *classes = drps_classes_new();
        const struct drps_reader_options options = {
            .format = "tokens", .classes = classes, .sequence_lines = alone};
        const size_t usual = alone ? DRPS_SEQUENCE_MOST : DRPS_SEQUENCE_USUAL;
        const char *paths[] = {"0"};
        struct files fs = {0};
        const struct drps_io io = {.ops = &files_ops, .ctx = &fs};
        struct drps_samples s = {0};
        struct drps_reader *r;
        struct drps_err err;
        size_t n = 0;
        files_add(&fs, line, sizeof(line) - 1);
        assert_int_equal(drps_reader_open(&io, paths, 1, &options, &r, &err), 0);
        while (drps_reader_next(r, &s, &err) > 0)
            for (size_t i = 0; i < s.n; i++)
                assert_int_equal(s.fields[i], n++ % usual > 0);
        assert_int_equal(n, alone ? 2 * DRPS_SEQUENCE_MOST - 1 : 2 * DRPS_SEQUENCE_MOST + 1);
        drps_samples_free(&s);
        drps_reader_close(r);
        drps_classes_free(classes);
    }
}

/* A file begins as after a line's end, and begins a sequence. */
static void test_tokens_of_files(void **state)
{
    struct drps_classes *classes = drps_classes_new();
    const struct drps_reader_options options = {.format = "tokens", .classes = classes};
    struct files fs = {0};
    struct outcome o;
    (void)state;
    files_add(&fs, "a b", 3);
    files_add(&fs, "a\n", 2);
    read_files(&fs, &options, 0, &o);
    check_outcome("files", "two", &o,
                  "0 0:token=<eos>:1\n1 1:token=a:1\n2 1:token=b:1\n"
                  "0 0:token=<eos>:1\n2 1:token=a:1\n",
                  NULL);
    outcome_free(&o);
    drps_classes_free(classes);
}

/* A label is one of the classes that are known, or none. */
static void test_tokens_of_known_classes(void **state)
{
    struct drps_classes *classes = drps_classes_new();
    struct outcome o;
    (void)state;
    (void)drps_classes_add(classes, "b", 1);
    const struct drps_reader_options options = {.format = "tokens", .known_classes = classes};
    read_text("a b\n", &options, &o);
    check_outcome("known", "a b", &o, "-1 0:token=<eos>:1\n0 1:token=a:1\n-1 1:token=b:1\n", NULL);
    outcome_free(&o);
    drps_classes_free(classes);
}

static void test_tokens_refuse_what_they_cannot_have(void **state)
{
    static const char *const weights[] = {"0"};
    struct drps_classes *classes = drps_classes_new();
    const struct drps_reader_share share = {.begin = {.path = 0, .byte = 2}, .end = {.path = 1}};
    const struct {
        const char *name, *error;
        struct drps_reader_options options;
    } rows[] = {
        {"labels of numbers",
         "0: the label of a token is the next token, which is a class, and here labels are "
         "numbers: name another format, or use a net that ends in `full classes`",
         {.format = "tokens"}},
        {"weights",
         "0: weights are for lines that each have a sample, and in format tokens a line has "
         "several",
         {.format = "tokens", .classes = classes, .weights = weights, .weights_n = 1}},
        {"columns",
         "0: to name a label column is for csv and jsonl, and this is read as tokens, which has "
         "no columns: leave it out",
         {.format = "tokens", .classes = classes, .csv_label = "a"}},
        {"a share of a file",
         "0: a file of format tokens cannot be read in shares: give as many files as there are "
         "readers",
         {.format = "tokens", .classes = classes, .share = &share}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct outcome o;
        read_text("a b\n", &rows[i].options, &o);
        check_outcome(rows[i].name, "a b", &o, NULL, rows[i].error);
        outcome_free(&o);
    }
    drps_classes_free(classes);
}

/* Lines of any size in a piece give the same samples. */
static void test_tokens_in_short_reads(void **state)
{
    static const char text[] = "one two three\n\nfour five\n six\n";
    struct text expected = {0};
    (void)state;
    for (size_t step = 0; step < 9; step++) {
        struct drps_classes *classes = drps_classes_new();
        const struct drps_reader_options options = {
            .format = "tokens", .classes = classes, .sequence = 4};
        struct files fs = {.step = step};
        struct outcome o;
        files_add(&fs, text, sizeof(text) - 1);
        read_files(&fs, &options, 0, &o);
        assert_int_equal(o.samples, 10);
        if (!step)
            expected = o.text;
        else
            assert_string_equal(o.text.p, expected.p);
        if (step) outcome_free(&o);
        drps_classes_free(classes);
    }
    free(expected.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens_run_on_over_line_ends),
        cmocka_unit_test(test_tokens_of_lines_by_themselves),
        cmocka_unit_test(test_tokens_that_are_bad),
        cmocka_unit_test(test_tokens_usual_lengths),
        cmocka_unit_test(test_tokens_of_files),
        cmocka_unit_test(test_tokens_of_known_classes),
        cmocka_unit_test(test_tokens_refuse_what_they_cannot_have),
        cmocka_unit_test(test_tokens_in_short_reads),
    };
    return cmocka_run_group_tests_name("tokens", tests, NULL, NULL);
}
