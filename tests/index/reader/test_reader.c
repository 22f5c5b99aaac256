/* The readers' formats: what each line means, and what is said of bad ones. */
#include "index/reader/reader_files.h"

/* criteo's 26 categories, and 39 empty columns */
#define CATEGORIES "a\tb\tc\td\te\tf\tg\th\ti\tj\tk\tl\tm\tn\to\tp\tq\tr\ts\tt\tu\tv\tw\tx\ty\tz"
#define CATEGORIES_OUT                                                                             \
    " C1=a:1 C2=b:1 C3=c:1 C4=d:1 C5=e:1 C6=f:1 C7=g:1 C8=h:1 C9=i:1 C10=j:1 C11=k:1 C12=l:1 "     \
    "C13=m:1 C14=n:1"                                                                              \
    " C15=o:1 C16=p:1 C17=q:1 C18=r:1 C19=s:1 C20=t:1 C21=u:1 C22=v:1 C23=w:1 C24=x:1 C25=y:1 "    \
    "C26=z:1\n"
#define EMPTY_39 "\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t"

struct row {
    const char *name, *format, *input;
    const char *expected; /* samples */
    const char *error;    /* or the error's text */
};

static void check_row_of(const struct row *row, struct drps_reader_options options)
{
    struct outcome o;
    options.format = row->format;
    read_text(row->input, &options, &o);
    check_outcome(row->name, row->input, &o, row->expected, row->error);
    outcome_free(&o);
}

static void check_row(const struct row *row, int fields)
{
    check_row_of(row, (struct drps_reader_options){.fields = fields});
}

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check_row(&rows[i], 0);
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

static void test_reader_libsvm(void **state)
{
    static const struct row rows[] = {
        {.name = "plain",
         .format = "libsvm",
         .input = "1 1:2 3:4.5\n-1 2:1\n",
         .expected = "1 1:2 3:4.5\n-1 2:1\n"},
        {.name = "no line feed at the end",
         .format = "libsvm",
         .input = "1 1:2",
         .expected = "1 1:2\n"},
        {.name = "CRLF",
         .format = "libsvm",
         .input = "1 1:2\r\n0 7:1\r\n",
         .expected = "1 1:2\n0 7:1\n"},
        {.name = "byte order mark",
         .format = "libsvm",
         .input = "\xef\xbb\xbf"
                  "1 1:2\n",
         .expected = "1 1:2\n"},
        {.name = "blanks and tabs",
         .format = "libsvm",
         .input = " \t1  1:2\t 3:4  \t\n",
         .expected = "1 1:2 3:4\n"},
        {.name = "blank lines",
         .format = "libsvm",
         .input = "\n  \n\t\n1 1:1\n\n\r\n",
         .expected = "1 1:1\n"},
        {.name = "comments",
         .format = "libsvm",
         .input = "# all\n1 1:2 # rest 3:4\n  # x\n0 1:2#y\n5#z\n",
         .expected = "1 1:2\n0 1:2\n5\n"},
        {.name = "label only", .format = "libsvm", .input = "1\n-1\n", .expected = "1\n-1\n"},
        {.name = "label forms",
         .format = "libsvm",
         .input = "+1 1:1\n-.5 1:1\n1e2 1:1\n",
         .expected = "1 1:1\n-0.5 1:1\n100 1:1\n"},
        {.name = "qid", .format = "libsvm", .input = "1 qid:12 1:2\n", .expected = "1 1:2\n"},
        {.name = "id 0", .format = "libsvm", .input = "1 0:2 1:1\n", .expected = "1 0:2 1:1\n"},
        {.name = "largest id",
         .format = "libsvm",
         .input = "1 18446744073709551615:2\n",
         .expected = "1 18446744073709551615:2\n"},
        {.name = "long ids",
         .format = "libsvm",
         .input = "1 1234567:1 12345678:1 123456789:1 12345678901234567:1\n",
         .expected = "1 1234567:1 12345678:1 123456789:1 12345678901234567:1\n"},
        {.name = "zeros before an id",
         .format = "libsvm",
         .input = "1 000000000000000000000000000007:1\n",
         .expected = "1 7:1\n"},
        {.name = "values",
         .format = "libsvm",
         .input = "1 1:-1 2:+2 3:.5 4:5. 5:1e-3 6:12\n",
         .expected = "1 1:-1 2:2 3:0.5 4:5 5:0.00100000005 6:12\n"},
        {.name = "zeros left out",
         .format = "libsvm",
         .input = "1 1:0 2:0.0 3:-0 4:1 5:1e-60\n",
         .expected = "1 4:1\n"},
        {.name = "repeated",
         .format = "libsvm",
         .input = "1 5:1 3:2 5:0.5\n",
         .expected = "1 3:2 5:1.5\n"},
        {.name = "repeated to zero",
         .format = "libsvm",
         .input = "1 5:1 3:2 5:-1\n",
         .expected = "1 3:2\n"},
        {.name = "repeated largest id",
         .format = "libsvm",
         .input = "1 18446744073709551615:1 18446744073709551615:1\n",
         .expected = "1 18446744073709551615:2\n"},
        {.name = "zero between repeated",
         .format = "libsvm",
         .input = "1 3:1 4:0 3:1\n",
         .expected = "1 3:2\n"},
        {.name = "unsorted keeps its order",
         .format = "libsvm",
         .input = "1 5:1 3:2 4:3\n",
         .expected = "1 5:1 3:2 4:3\n"},
        {.name = "empty file", .format = "libsvm", .input = "", .expected = ""},
        {.name = "only comments", .format = "libsvm", .input = "# a\n\n# b", .expected = ""},
        {.name = "bad label",
         .format = "libsvm",
         .input = "1 1:1\nabc 1:1\n",
         .error = "0:2:1: label is not a number: 'abc'"},
        {.name = "label list",
         .format = "libsvm",
         .input = "1,2 1:1\n",
         .error = "0:1:1: label is not a number: '1,2'"},
        {.name = "NaN label",
         .format = "libsvm",
         .input = "nan 1:1\n",
         .error = "0:1:1: label is NaN or infinite: 'nan'"},
        {.name = "infinite label",
         .format = "libsvm",
         .input = "-Infinity 1:1\n",
         .error = "0:1:1: label is NaN or infinite: '-Infinity'"},
        {.name = "bad id",
         .format = "libsvm",
         .input = "1 1:1 abc:1\n",
         .error = "0:1:7: feature id is not a number: 'abc:1'"},
        {.name = "negative id",
         .format = "libsvm",
         .input = "1 -1:1\n",
         .error = "0:1:3: feature id is negative: '-1:1'"},
        {.name = "id too large",
         .format = "libsvm",
         .input = "1 18446744073709551616:1\n",
         .error = "0:1:3: feature id is above 2^64 - 1: '18446744073709551616:1'"},
        {.name = "no value",
         .format = "libsvm",
         .input = "1 7 8:1\n",
         .error = "0:1:3: feature id is not followed by ':' and a value: '7'"},
        {.name = "empty value",
         .format = "libsvm",
         .input = "1 7: 8:1\n",
         .error = "0:1:5: value is not a number: ''"},
        {.name = "bad value",
         .format = "libsvm",
         .input = "1 7:1x\n",
         .error = "0:1:5: value is not a number: '1x'"},
        {.name = "hexadecimal value",
         .format = "libsvm",
         .input = "1 7:0x10\n",
         .error = "0:1:5: value is not a number: '0x10'"},
        {.name = "NaN value",
         .format = "libsvm",
         .input = "1 7:-NaN\n",
         .error = "0:1:5: value is NaN or infinite: '-NaN'"},
        {.name = "value too large",
         .format = "libsvm",
         .input = "1 7:1e39\n",
         .error = "0:1:5: value is too large: '1e39'"},
        {.name = "sum too large",
         .format = "libsvm",
         .input = "1 7:3e38 7:3e38\n",
         .error = "0:1: the values of a repeated feature add up to infinity"},
        {.name = "bad qid",
         .format = "libsvm",
         .input = "1 qid:x 7:1\n",
         .error = "0:1:3: feature id is not a number: 'qid:x'"},
        {.name = "control byte",
         .format = "libsvm",
         .input = "1 7:1\x01"
                  "8:1\n",
         .error = "0:1:6: feature id is not a number: '\\x018:1'"},
        {.name = "long token",
         .format = "libsvm",
         .input = "1 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
         .error = "0:1:3: feature id is not a number: "
                  "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'"},
    };
    (void)state;
    CHECK_ROWS(rows);
}

static void test_reader_libffm(void **state)
{
    static const struct row rows[] = {
        {.name = "plain",
         .format = "libffm",
         .input = "1 0:5:1 1:7:0.5\n0 2:1:1\n",
         .expected = "1 5:1 7:0.5\n0 1:1\n"},
        {.name = "label only, comment",
         .format = "libffm",
         .input = "1 # x\n0\n",
         .expected = "1\n0\n"},
        {.name = "one id in two fields",
         .format = "libffm",
         .input = "1 0:5:1 1:5:1 2:3:0\n",
         .expected = "1 5:2\n"},
        {.name = "two parts",
         .format = "libffm",
         .input = "1 0:5\n",
         .error = "0:1:5: feature id is not followed by ':' (field:id:value is expected): '5'"},
        {.name = "bad field",
         .format = "libffm",
         .input = "1 a:5:1\n",
         .error = "0:1:3: field is not a number: 'a:5:1'"},
        {.name = "negative id",
         .format = "libffm",
         .input = "1 1:-5:1\n",
         .error = "0:1:5: feature id is negative: '-5:1'"},
        {.name = "id too large",
         .format = "libffm",
         .input = "1 1:99999999999999999999:1\n",
         .error = "0:1:5: feature id is above 2^64 - 1: '99999999999999999999:1'"},
        {.name = "four parts",
         .format = "libffm",
         .input = "1 1:2:3:4\n",
         .error = "0:1:7: value is not a number: '3:4'"},
        {.name = "a large field that is not kept",
         .format = "libffm",
         .input = "1 99999:2:3\n",
         .expected = "1 2:3\n"},
    };
    (void)state;
    CHECK_ROWS(rows);
}

static void test_reader_fields(void **state)
{
    static const struct row rows[] = {
        {.name = "plain",
         .format = "libffm",
         .input = "1 0:5:1 65534:7:0.5\n0 2:1:1\n",
         .expected = "1 0:5:1 65534:7:0.5\n0 2:1:1\n"},
        {.name = "one id in two fields, and twice in one",
         .format = "libffm",
         .input = "1 1:5:1 0:5:2 1:5:3 2:3:0\n",
         .expected = "1 0:5:2 1:5:4\n"},
        {.name = "repeated to zero in one of two fields",
         .format = "libffm",
         .input = "1 1:5:1 0:5:2 1:5:-1\n",
         .expected = "1 0:5:2\n"},
        {.name = "too large",
         .format = "libffm",
         .input = "1 0:5:1 65535:7:1\n",
         .error = "0:1:9: field is above 65534: '65535:7:1'"},
        {.name = "columns",
         .format = "csv",
         .input = "label,a,b\n1,x,2\n0,,0\n",
         .expected = "1 0:a=x:1 1:b=:2\n0 0:a=:1\n"},
        {.name = "users and items",
         .format = "ratings",
         .input = "1 2 3\n",
         .expected = "3 0:user=1:1 1:item=2:1\n"},
        {.name = "none in the format",
         .format = "libsvm",
         .input = "1 2:3\n",
         .error =
             "0: a field-aware model needs fields, and format libsvm has none: give the data as "
             "libffm, as csv, jsonl, criteo, avazu or ratings, whose columns are the fields, or as "
             "idx (in a net, `bag` needs none)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_row(&rows[i], 1);
}

/* Where fields alone are looked at, numbers of features are all the same; names are kept. */
static void test_reader_one_feature(void **state)
{
    static const struct row rows[] = {
        {.name = "numbers",
         .format = "libffm",
         .input = "1 0:5:1 65534:7:0.5 0:9:2\n0 2:1:1\n",
         .expected = "1 0:0:1 65534:0:0.5 0:0:2\n0 2:0:1\n"},
        {.name = "no features", .format = "libffm", .input = "1\n", .expected = "1\n"},
        {.name = "columns",
         .format = "csv",
         .input = "label,a,b\n1,x,2\n0,,0\n",
         .expected = "1 0:a=x:1 1:b=:2\n0 0:a=:1\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_row_of(&rows[i], (struct drps_reader_options){.fields = 1, .one_feature = 1});
}

/* A dictionary tells names apart by their keys. */
static void test_reader_one_feature_keeps_keys_of_names(void **state)
{
    static const char *const paths[] = {"0"};
    static const char text[] = "label,a,b\n1,x,2\n";
    const struct drps_reader_options o = {.format = "csv", .fields = 1, .one_feature = 1};
    struct files fs = {0};
    const struct drps_io io = {.ops = &files_ops, .ctx = &fs};
    struct drps_samples s = {0};
    struct drps_reader *r;
    (void)state;
    files_add(&fs, text, sizeof(text) - 1);
    assert_int_equal(drps_reader_open(&io, paths, 1, &o, &r, NULL), 0);
    assert_int_equal(drps_reader_next(r, &s, NULL), 1);
    assert_int_equal(s.starts[1], 2);
    assert_true(s.keys[0] && s.keys[1] && s.keys[0] != s.keys[1]);
    drps_samples_free(&s);
    drps_reader_close(r);
}

struct places {
    const char *name, *format, *kinds, *text;
    enum drps_reader_numbers numbers;
    uint32_t field_count;  /* that is asked for */
    uint32_t each, fields; /* that there are; 0: samples have no numbers by place */
    float want[6];         /* of two samples */
};

static void check_places(const struct places *c)
{
    static const char *const paths[] = {"0"};
    const struct drps_reader_options o = {.format = c->format,
                                          .fields = 1,
                                          .one_feature = 1,
                                          .csv_kinds = c->kinds,
                                          .csv_scale = "none",
                                          .numbers = c->numbers,
                                          .field_count = c->field_count};
    struct drps_reader_options of_text = o;
    struct files fs = {0};
    const struct drps_io io = {.ops = &files_ops, .ctx = &fs};
    struct drps_samples s = {0};
    struct drps_reader *r;
    struct drps_err err = DRPS_ERR_INIT;
    if (strcmp(c->format, "libffm") == 0) of_text.csv_scale = of_text.csv_kinds = NULL;
    files_add(&fs, c->text, strlen(c->text));
    if (drps_reader_open(&io, paths, 1, &of_text, &r, &err)) fail_msg("%s: %s", c->name, err.text);
    assert_int_equal(drps_reader_has_numbers(r), c->each > 0); /* before the first sample */
    assert_int_equal(drps_reader_next(r, &s, NULL), 1);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.numbers_each, c->each);
    assert_int_equal(s.starts[2] == 0, c->each > 0);
    if (c->each) assert_int_equal(drps_reader_field_count(r), c->fields);
    for (size_t i = 0; i < 2 * (size_t)c->each; i++)
        if (memcmp(&s.numbers[i], &c->want[i], sizeof(float)) != 0)
            fail_msg("%s: number %zu is %g, not %g", c->name, i, (double)s.numbers[i],
                     (double)c->want[i]);
    drps_samples_free(&s);
    drps_reader_close(r);
}

/* Columns that are all numbers, and entries with fields where that is asked for. */
static void test_reader_numbers_by_place(void **state)
{
    static const char columns[] = "label,a,b,c\n1,2,,-0\n0,0,0.5,7\n",
                      ffm[] = "1 0:5:1 2:7:0.5 0:9:2 3:1:4\n0 1:1:-0.0\n";
    static const struct places cases[] = {
        {"csv", "csv", "*:number", columns, DRPS_READER_AS_FITS, 0, 3, 3, {2, 0, 0, 0, 0.5f, 7}},
        {"csv of fields", "csv", "*:number", columns, DRPS_READER_SPARSE, 0, 0, 0, {0}},
        {"a category", "csv", "*:number,b:category", columns, DRPS_READER_AS_FITS, 0, 0, 0, {0}},
        {"a date",
         "csv",
         "*:number,b:date",
         "label,a,b\n1,2,2024-01-02\n0,1,2024-01-03\n",
         DRPS_READER_AS_FITS,
         0,
         0,
         0,
         {0}},
        {"as many as are asked for",
         "csv",
         "*:number",
         columns,
         DRPS_READER_DENSE,
         2,
         2,
         3,
         {2, 0, 0, 0.5f}},
        {"jsonl",
         "jsonl",
         "*:number",
         "{\"label\": 1, \"a\": 2, \"b\": 3}\n{\"label\": 0, \"b\": -1.5}\n",
         DRPS_READER_AS_FITS,
         0,
         2,
         2,
         {2, 3, 0, -1.5f}},
        {"libffm", "libffm", NULL, ffm, DRPS_READER_AS_FITS, 3, 0, 0, {0}},
        {"libffm by place", "libffm", NULL, ffm, DRPS_READER_DENSE, 3, 3, 4, {3, 0, 0.5f, 0, 0, 0}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_places(&cases[i]);
}

static void test_reader_ratings(void **state)
{
    static const struct row rows[] = {
        {.name = "tabs",
         .format = "ratings",
         .input = "196\t242\t3\t881250949\n",
         .expected = "3 user=196:1 item=242:1\n"},
        {.name = "three columns",
         .format = "ratings",
         .input = "1\t2\t5\n",
         .expected = "5 user=1:1 item=2:1\n"},
        {.name = "colons",
         .format = "ratings",
         .input = "1::1193::5::978300760\n",
         .expected = "5 user=1:1 item=1193:1\n"},
        {.name = "single colons belong to ids",
         .format = "ratings",
         .input = "a:b::c::5\n",
         .expected = "5 user=a:b:1 item=c:1\n"},
        {.name = "commas and blanks",
         .format = "ratings",
         .input = "u1, i 2 , 4.5,\n",
         .expected = "4.5 user=u1:1 item=i 2:1\n"},
        {.name = "spaces only",
         .format = "ratings",
         .input = "  a   b  3  \n",
         .expected = "3 user=a:1 item=b:1\n"},
        {.name = "header",
         .format = "ratings",
         .input = "userId,movieId,rating,timestamp\n1,2,3,4\n",
         .expected = "3 user=1:1 item=2:1\n"},
        {.name = "negative and zero ratings",
         .format = "ratings",
         .input = "a b -1\na b 0\n",
         .expected = "-1 user=a:1 item=b:1\n0 user=a:1 item=b:1\n"},
        {.name = "CRLF, blank lines",
         .format = "ratings",
         .input = "1\t2\t3\r\n\r\n\n4\t5\t6\r\n",
         .expected = "3 user=1:1 item=2:1\n6 user=4:1 item=5:1\n"},
        {.name = "header again",
         .format = "ratings",
         .input = "1,2,3\nu,i,rating\n",
         .error = "0:2:5: rating is not a number: 'rating'"},
        {.name = "NaN is no header",
         .format = "ratings",
         .input = "1,2,nan\n",
         .error = "0:1:5: rating is NaN or infinite: 'nan'"},
        {.name = "too few",
         .format = "ratings",
         .input = "1 2\n",
         .error = "0:1:1: fewer than 3 columns, expected user, item, rating and perhaps a "
                  "timestamp: '1'"},
        {.name = "too many",
         .format = "ratings",
         .input = "1 2 3 4 5\n",
         .error = "0:1:1: more than 4 columns, expected user, item, rating and perhaps a "
                  "timestamp: '1'"},
        {.name = "empty user",
         .format = "ratings",
         .input = "\t2\t3\n",
         .error = "0:1:1: user is empty: ''"},
        {.name = "empty item",
         .format = "ratings",
         .input = "1\t \t3\n",
         .error = "0:1:4: item is empty: ''"},
        {.name = "a separator within quotes",
         .format = "ratings",
         .input = "1,2,3\n1,\"Seven, the film\",4\n",
         .error = "0:2:11: rating is not a number; quotes around names are not read: separate "
                  "columns by tabs: 'the'"},
        {.name = "empty rating",
         .format = "ratings",
         .input = "1\t2\t\t4\n",
         .error = "0:1:5: rating is not a number: ''"},
    };
    (void)state;
    CHECK_ROWS(rows);
}

static void test_reader_criteo(void **state)
{
    static const struct row rows[] = {
        {.name = "integers",
         .format = "criteo",
         .input = "1\t-"
                  "3\t0\t1\t2\t3\t9\t10\t100\t1000\t\t65535\t4294967296\t9223372036854775807"
                  "\t" CATEGORIES "\n",
         .expected = /* floor(ln(v)^2): ln(3)^2 = 1.2, 9: 4.8, 10: 5.3, 100: 21.2, 1000: 47.7,
      65535: 122.99, 2^32: 492.0, 2^63 - 1: 1906.9 */
         "1 I1=-3:1 I2=0:1 I3=1:1 I4=2:1 I5=L1:1 I6=L4:1 I7=L5:1 I8=L21:1 I9=L47:1 I10=:1 "
         "I11=L122:1 I12=L491:1"
         " I13=L1906:1" CATEGORIES_OUT},
        {.name = "odd spellings",
         .format = "criteo",
         .input = "0\t+1\t007\t-0\t-007\t+002\t00\t-0001\t\t\t\t\t\t\t" CATEGORIES "\n",
         .expected = "0 I1=1:1 I2=L3:1 I3=0:1 I4=-7:1 I5=2:1 I6=0:1 I7=-1:1 I8=:1 I9=:1 I10=:1 "
                     "I11=:1 I12=:1 "
                     "I13=:1" CATEGORIES_OUT},
        {.name = "all missing",
         .format = "criteo",
         .input = "0" EMPTY_39 "\r\n",
         .expected =
             "0 I1=:1 I2=:1 I3=:1 I4=:1 I5=:1 I6=:1 I7=:1 I8=:1 I9=:1 I10=:1 I11=:1 I12=:1 I13=:1 "
             "C1=:1 C2=:1 C3=:1"
             " C4=:1 C5=:1 C6=:1 C7=:1 C8=:1 C9=:1 C10=:1 C11=:1 C12=:1 C13=:1 C14=:1 C15=:1 "
             "C16=:1 "
             "C17=:1 C18=:1"
             " C19=:1 C20=:1 C21=:1 C22=:1 C23=:1 C24=:1 C25=:1 C26=:1\n"},
        {.name = "one too many",
         .format = "criteo",
         .input = "0" EMPTY_39 "\t\n",
         .error = "0:1: 41 tab-separated columns, expected label + 13 integers + 26 categories"},
        {.name = "one too few",
         .format = "criteo",
         .input = "0\t12\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13\t14\t15\t16\n",
         .error = "0:1: 15 tab-separated columns, expected label + 13 integers + 26 categories"},
        {.name = "twelve integers",
         .format = "criteo",
         .input = "0\t12\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13\t14\n",
         .error = "0:1: 13 tab-separated columns, expected label + 13 integers + 26 categories"},
        {.name = "thirteen integers",
         .format = "criteo",
         .input = "0\t12\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13\t14\t15\n",
         .error = "0:1: 14 tab-separated columns, expected label + 13 integers + 26 categories"},
        {.name = "label only",
         .format = "criteo",
         .input = "0\n",
         .error = "0:1: 1 tab-separated columns, expected label + 13 integers + 26 categories"},
        {.name = "bad label",
         .format = "criteo",
         .input = "x" EMPTY_39 "\n",
         .error = "0:1:1: label is not a number: 'x'"},
        {.name = "no label", .format = "criteo", .input = EMPTY_39 "\n", .expected = ""},
        {.name = "fraction",
         .format = "criteo",
         .input = "0\t1.5" EMPTY_39 "\n",
         .error = "0:1:3: I1 is not an integer: '1.5'"},
        {.name = "beyond 63 bits",
         .format = "criteo",
         .input = "0\t1\t9223372036854775808" EMPTY_39 "\n",
         .error = "0:1:5: I2 is beyond 2^63 - 1: '9223372036854775808'"},
    };
    (void)state;
    CHECK_ROWS(rows);
}

static void test_reader_avazu(void **state)
{
    static const struct row rows[] = {
        {.name = "plain",
         .format = "avazu",
         .input = "id,click,hour,C1,banner_pos\n10,0,14102100,1005,0\n11,1,14103123,,1\n",
         .expected = "0 hour=00:1 C1=1005:1 banner_pos=0:1\n1 hour=23:1 C1=:1 banner_pos=1:1\n"},
        {.name = "header only", .format = "avazu", .input = "id,click,hour\n", .expected = ""},
        {.name = "empty", .format = "avazu", .input = "", .expected = ""},
        {.name = "hour 24",
         .format = "avazu",
         .input = "id,click,hour\n1,0,14102124\n",
         .error = "0:2:5: hour is not YYMMDDHH: '14102124'"},
        {.name = "short hour",
         .format = "avazu",
         .input = "id,click,hour\n1,0,141021\n",
         .error = "0:2:5: hour is not YYMMDDHH: '141021'"},
        {.name = "bad label",
         .format = "avazu",
         .input = "id,click,hour\n1,x,14102100\n",
         .error = "0:2:3: label (column click) is not a number: 'x,14102100'"},
        {.name = "columns",
         .format = "avazu",
         .input = "id,click,hour\n1,0\n",
         .error = "0:2: 2 columns, the header has 3"},
        {.name = "other header",
         .format = "avazu",
         .input = "id,clicks,hour\n",
         .error = "0: the header has no column 'click': not avazu data"},
    };
    (void)state;
    CHECK_ROWS(rows);
}

static void test_reader_csv(void **state)
{
    static const struct row rows[] = {
        {.name = "by content",
         .format = "csv",
         .input = "label,a,b\n1,x,2.5\n0,7,0\n",
         .expected = "1 a=x:1 b=:2.5\n0 a=7:1\n"},
        {.name = "label anywhere, any case",
         .format = "csv",
         .input = "a,Target\n1,0.5\n",
         .expected = "0.5 a=:1\n"},
        {.name = "label before y",
         .format = "csv",
         .input = "y,label\n1,2\n",
         .expected = "2 y=:1\n"},
        {.name = "semicolon", .format = "csv", .input = "y;a\n1;x,y\n", .expected = "1 a=x,y:1\n"},
        {.name = "tab", .format = "csv", .input = "y\ta b\n1\tx\n", .expected = "1 a b=x:1\n"},
        {.name = "quotes",
         .format = "csv",
         .input = "label,\"a,\"\"b\"\"\"\n1,\"x, \"\"y\"\"\"\n0,\"\"\n\"2\",z\n",
         .expected = "1 a,\"b\"=x, \"y\":1\n0 a,\"b\"=:1\n2 a,\"b\"=z:1\n"},
        {.name = "quote within",
         .format = "csv",
         .input = "label,a\n1,x\"y\"\n",
         .expected = "1 a=x\"y\":1\n"},
        {.name = "empty number, empty category",
         .format = "csv",
         .input = "y,n,c\n1,2,a\n0,,\n",
         .expected = "1 n=:2 c=a:1\n0 c=:1\n"},
        {.name = "blanks around numbers",
         .format = "csv",
         .input = "y,n\n 1 , 2 \n0, \n",
         .expected = "1 n=:2\n0\n"},
        {.name = "CRLF, blank lines",
         .format = "csv",
         .input = "\r\ny,a\r\n\r\n1,x\r\n",
         .expected = "1 a=x:1\n"},
        {.name = "label only", .format = "csv", .input = "y\n1\n2\n", .expected = "1\n2\n"},
        {.name = "header only", .format = "csv", .input = "y,a\n", .expected = ""},
        {.name = "empty file", .format = "csv", .input = "", .expected = ""},
        {.name = "NUL is text", .format = "csv", .input = "y,a\n1,b\n", .expected = "1 a=b:1\n"},
        {.name = "no label column",
         .format = "csv",
         .input = "a,b\n1,2\n",
         .error = "0: no column is named label, target, y or click; the label column must be one "
                  "of: a, b; if the first line is no header, say so"},
        {.name = "labels of words",
         .format = "csv",
         .input = "y,a\nyes,1\n No ,1\nYES,1\n",
         .expected = "1 a=:1\n0 a=:1\n1 a=:1\n"},
        {.name = "true and false",
         .format = "csv",
         .input = "y,a\nfalse,1\ntrue,1\n",
         .expected = "0 a=:1\n1 a=:1\n"},
        {.name = "y and n",
         .format = "csv",
         .input = "a,y\n1,y\n1,N\n",
         .expected = "1 a=:1\n0 a=:1\n"},
        {.name = "two pairs of words",
         .format = "csv",
         .input = "y,a\nyes,1\ntrue,1\n",
         .error = "0:3:1: label (column y): all labels before are yes or no: 'true,1'"},
        {.name = "a word among numbers",
         .format = "csv",
         .input = "y,a\n1,1\nno,1\n",
         .error = "0:3:1: label (column y): all labels before are numbers: 'no,1'"},
        {.name = "a number among words",
         .format = "csv",
         .input = "y,a\nno,1\n1,1\n",
         .error = "0:3:1: label (column y): all labels before are yes or no: '1,1'"},
        {.name = "other words",
         .format = "csv",
         .input = "y,a\nspam,1\n",
         .error = "0:2:1: label (column y) is not a number: 'spam,1'"},
        {.name = "double column",
         .format = "csv",
         .input = "y,a,a\n",
         .error = "0: two columns of the header are named 'a'"},
        {.name = "open quote in the header",
         .format = "csv",
         .input = "y,\"a\n",
         .error = "0: header: the quote is not closed on this line"},
        {.name = "empty label",
         .format = "csv",
         .input = "y,a\n,1\n",
         .error = "0:2:1: label (column y) is not a number: ',1'"},
        {.name = "a word below numbers",
         .format = "csv",
         .input = "y,a\n1,2\n1,x\n",
         .expected = "1 a=2:1\n1 a=x:1\n"},
        {.name = "missing in the first line",
         .format = "csv",
         .input = "y,a\n1,n/a\n1,2\n",
         .expected = "1\n1 a=:2\n"},
        {.name = "every word for a missing number",
         .format = "csv",
         .input = "y,a\n1,2\n1,\n1, "
                  "\n1,NA\n1,N/A\n1,#n/a\n1,NaN\n1,NULL\n1,None\n1,-\n1,?\n1,\\N\n1,\"na\"\n",
         .expected = "1 a=:2\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n"},
        {.name = "all missing are categories",
         .format = "csv",
         .input = "y,a\n1,NA\n1,\n",
         .expected = "1 a=NA:1\n1 a=:1\n"},
        {.name = "infinite in the first line",
         .format = "csv",
         .input = "y,a\n1,-Inf\n1,2\n",
         .error = "0:2:3: a is NaN or infinite; for words give the kind a:category: '-Inf'"},
        {.name = "too large in the first line",
         .format = "csv",
         .input = "y,a\n1,1e99\n1,2\n",
         .error = "0:2:3: a is too large; for words give the kind a:category: '1e99'"},
        {.name = "words that begin as numbers",
         .format = "csv",
         .input = "y,a,b,c\n1,inf,1e99x,nano\n1,info,2,3\n",
         .expected = "1 a=inf:1 b=1e99x:1 c=nano:1\n1 a=info:1 b=2:1 c=3:1\n"},
        {.name = "open quote",
         .format = "csv",
         .input = "y,a\n1,\"x\n",
         .error = "0:2:3: the quote is not closed on this line: '\"x'"},
        {.name = "text after quote",
         .format = "csv",
         .input = "y,a\n1,\"x\"z\n",
         .error = "0:2:6: text follows the closing quote: 'z'"},
        {.name = "too few",
         .format = "csv",
         .input = "y,a,b\n1,2\n",
         .error = "0:2: 2 columns, the header has 3"},
        {.name = "too many",
         .format = "csv",
         .input = "y,a\n1,2,3\n",
         .error = "0:2: 3 columns, the header has 2"},
    };
    (void)state;
    CHECK_ROWS(rows);
}

/* ---- The lines that decide what a csv column is ---- */

/* The text of `lines` lines of "1,<n>", of which line `at` of the file (the header is line 1) holds
 * `odd`; `pad` blanks make lines longer. */
static char *csv_text(size_t lines, size_t at, const char *odd, int pad)
{
    char *text = malloc(16 + lines * (size_t)(32 + pad));
    assert_non_null(text);
    int n = sprintf(text, "y,age\n");
    for (size_t i = 2; i <= lines + 1; i++)
        n += i == at ? sprintf(text + n, "1,%s\n", odd)
                     : sprintf(text + n, "1,%*zu\n", pad, i % 90 + 1);
    return text;
}

static void test_reader_csv_decides_by_a_thousand_lines(void **state)
{
    static const struct {
        const char *name;
        size_t lines, at;
        const char *odd;
        int pad;
        const char *kinds, *error; /* NULL: it is read, as categories */
    } rows[] = {
        {.name = "the first", .lines = 1500, .at = 2, .odd = "x", .pad = 0},
        {.name = "the thousandth", .lines = 1500, .at = 1001, .odd = "x", .pad = 0},
        {.name = "the next",
         .lines = 1500,
         .at = 1002,
         .odd = "x",
         .pad = 0,
         .error = "0:1002:3: age is not a number; for words give the kind age:category: 'x'"},
        {.name = "a last line without the others", .lines = 1000, .at = 1001, .odd = "x", .pad = 0},
        {.name = "an option decides",
         .lines = 1500,
         .at = 500,
         .odd = "x",
         .pad = 0,
         .kinds = "age:number",
         .error = "0:500:3: age is not a number: 'x'"},
        {.name = "an option for words",
         .lines = 1500,
         .at = 1400,
         .odd = "x",
         .pad = 0,
         .kinds = "age:category"},
        {.name = "within the first MiB", .lines = 1500, .at = 400, .odd = "x", .pad = 2000},
        {.name = "beyond the first MiB",
         .lines = 1500,
         .at = 600,
         .odd = "x",
         .pad = 2000,
         .error = "0:600:3: age is not a number; for words give the kind age:category: 'x'"},
        {.name = "a line of other columns says nothing",
         .lines = 1500,
         .at = 10,
         .odd = "x,1",
         .pad = 0,
         .error = "0:10:3: age is not a number; for words give the kind age:category: 'x,1'"},
    };
    static const uint64_t memory[] = {8 << 20, 24 << 20, 512 << 20};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t k = 0; k < 3; k++) {
            char *text = csv_text(rows[i].lines, rows[i].at, rows[i].odd, rows[i].pad);
            struct drps_reader_options options = {
                .format = "csv", .csv_kinds = rows[i].kinds, .memory_bytes = memory[k]};
            struct files fs = {0};
            struct outcome o;
            files_add(&fs, text, strlen(text));
            read_files(&fs, &options, 1, &o);
            if (rows[i].error) {
                check_outcome(rows[i].name, "", &o, NULL, rows[i].error);
            } else if (o.rc || o.samples != rows[i].lines) { /* as numbers, `odd` is an error */
                fail_msg("%s: %d %s, %llu samples", rows[i].name, o.rc, o.err.text,
                         (unsigned long long)o.samples);
            }
            outcome_free(&o);
            free(text);
        }
}

static void note_columns(void *ctx, const struct drps_reader_column *columns, size_t n)
{
    char *text = ctx;
    for (size_t i = 0; i < n; i++)
        text += sprintf(text, "%s %d: %s\n", columns[i].name, (int)columns[i].kind, columns[i].why);
}

static void test_reader_csv_tells_what_was_decided(void **state)
{
    static char text[1000];
    static const char expected[] = "y 1: by its name\n"
                                   "age 2: 2 numbers, 1 missing, in the first lines\n"
                                   "zip 3: 'z' in line 3 is no number\n"
                                   "none 3: nothing in the first lines\n"
                                   "id 0: as given\n";
    struct drps_reader_options options = {
        .format = "csv", .csv_kinds = "id:ignore", .on_columns = note_columns, .columns_ctx = text};
    struct outcome o;

    (void)state;
    read_text("y,age,zip,none,id\n1,n/a,1,,7\n1,3,z,,8\n0,4,\"\",,9\n", &options, &o);
    assert_int_equal(o.rc, 0);
    if (strcmp(text, expected) != 0) fail_msg("expected:\n%sfound:\n%s", expected, text);
    outcome_free(&o);
    read_text("y,id\nno,1\nYes,2\n", &options, &o);
    assert_int_equal(o.rc, 0);
    assert_string_equal(text, "y 1: by its name; yes is 1, the positive class, and no is 0\n"
                              "id 0: as given\n");
    outcome_free(&o);
}

static void test_reader_csv_options(void **state)
{
    static const struct {
        const char *name, *label, *kinds;
        char separator;
        const char *input, *expected, *error;
    } rows[] = {
        {.name = "label",
         .label = "b",
         .separator = 0,
         .input = "y,b\n1,2\n",
         .expected = "2 y=:1\n"},
        {.name = "kinds",
         .kinds = "a:category,b:ignore,c:number",
         .separator = 0,
         .input = "y,a,b,c\n1,2,3,\n0,x,y,4\n",
         .expected = "1 a=2:1\n0 a=x:1 c=:4\n"},
        {.name = "label by kind",
         .kinds = "c:label",
         .separator = 0,
         .input = "y,c\n1,2\n",
         .expected = "2 y=:1\n"},
        {.name = "usual label ignored",
         .kinds = "label:ignore",
         .separator = 0,
         .input = "label,y\n1,2\n",
         .expected = "2\n"},
        {.name = "colon in a name",
         .kinds = "a:b:category",
         .separator = 0,
         .input = "y,a:b\n1,2\n",
         .expected = "1 a:b=2:1\n"},
        {.name = "separator", .separator = '|', .input = "y|a,b\n1|x\n", .expected = "1 a,b=x:1\n"},
        {.name = "no such label",
         .label = "z",
         .separator = 0,
         .input = "y,b\n1,2\n",
         .error = "0: the header has no column 'z'; the label column must be one of: y, b; if the "
                  "first line is no header, say so"},
        {.name = "no such column",
         .kinds = "z:number",
         .separator = 0,
         .input = "y,b\n1,2\n",
         .error = "0: kinds of columns: the header has no column 'z'; it has: y, b"},
        {.name = "all others",
         .kinds = "*:category,b:number,d:ignore",
         .separator = 0,
         .input = "y,a,b,c,d\n1,2,3,4,5\n",
         .expected = "1 a=2:1 b=:3 c=4:1\n"},
        {.name = "all others ignored",
         .kinds = "b:number,*:ignore",
         .separator = 0,
         .input = "a,y,b\n1,2,3\n",
         .expected = "2 b=:3\n"},
        {.name = "all are the label",
         .kinds = "*:label",
         .separator = 0,
         .input = "a,b\n1,2\n",
         .error = "kinds of columns: one column is the label, not all"},
        {.name = "a column of that name",
         .kinds = "*:category",
         .separator = 0,
         .input = "y,*,a\n1,2,3\n",
         .expected = "1 *=2:1 a=:3\n"},
        {.name = "two labels",
         .label = "y",
         .kinds = "b:label",
         .separator = 0,
         .input = "y,b\n1,2\n",
         .error = "csv: 2 columns are to be the label"},
        {.name = "bad kind",
         .kinds = "b:text",
         .separator = 0,
         .input = "y,b\n1,2\n",
         .error = "kinds of columns: 'b:text' is not column:number, column:number(log), "
                  "column:category, column:date, column:bins(10), column:cuts(18;30), "
                  "column:ignore or column:label"},
        {.name = "no kind",
         .kinds = "b",
         .separator = 0,
         .input = "y,b\n1,2\n",
         .error = "kinds of columns: 'b' is not column:number, column:number(log), "
                  "column:category, column:date, column:bins(10), column:cuts(18;30), "
                  "column:ignore or column:label"},
        {.name = "digit as separator",
         .separator = '1',
         .input = "y,b\n1,2\n",
         .error = "byte 0x31 cannot separate csv columns"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct drps_reader_options options = {.format = "csv",
                                              .csv_label = rows[i].label,
                                              .csv_kinds = rows[i].kinds,
                                              .csv_separator = rows[i].separator};
        struct outcome o;
        read_text(rows[i].input, &options, &o);
        check_outcome(rows[i].name, rows[i].input, &o, rows[i].expected, rows[i].error);
        outcome_free(&o);
    }
}

/* Input without labels may be ratings of two columns, or lack the label column that is named
 * although it has one of a usual name. */
static void test_reader_without_labels(void **state)
{
    static const struct {
        const char *name, *format, *label, *input, *expected, *error;
    } rows[] = {
        {.name = "ratings",
         .format = "ratings",
         .input = "17 5\n17 99 4\n",
         .expected = "0 user=17:1 item=5:1\n4 user=17:1 item=99:1\n"},
        {.name = "ratings, header",
         .format = "ratings",
         .input = "user_id,item_id\nu,i\n",
         .expected = "0 user=u:1 item=i:1\n"},
        {.name = "ratings, no header",
         .format = "ratings",
         .input = "user1,item1\n",
         .expected = "0 user=user1:1 item=item1:1\n"},
        {.name = "ratings, header of three",
         .format = "ratings",
         .input = "u,i,rating\n1,2,3\n",
         .expected = "3 user=1:1 item=2:1\n"},
        {.name = "ratings, one column",
         .format = "ratings",
         .input = "17\n",
         .error =
             "0:1:1: fewer than 2 columns, expected user, item, perhaps a rating and perhaps a "
             "timestamp: '17'"},
        {.name = "ratings, empty item",
         .format = "ratings",
         .input = "17,\n",
         .error = "0:1:4: item is empty: ''"},
        {.name = "csv, named label",
         .format = "csv",
         .label = "z",
         .input = "x,y,z\n1,a,3\n",
         .expected = "3 x=:1 y=a:1\n"},
        {.name = "csv, named label missing",
         .format = "csv",
         .label = "z",
         .input = "x,y\n1,a\n",
         .expected = "0 x=:1 y=a:1\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct drps_reader_options options = {
            .format = rows[i].format, .csv_label = rows[i].label, .label_optional = 1};
        struct outcome o;
        read_text(rows[i].input, &options, &o);
        check_outcome(rows[i].name, rows[i].input, &o, rows[i].expected, rows[i].error);
        outcome_free(&o);
    }
}

/* A later file is read with the kinds of the first one's columns, whatever its own first line
 * holds. */
static void test_reader_csv_kinds(void **state)
{
    static const char *const fields[] = {"zip:category", "age:number"};
    static const struct {
        const char *name, *wanted;
        int optional; /* 2: and columns that are not named are ignored */
        const char *input, *expected, *error;
    } rows[] = {
        {.name = "kinds kept",
         .optional = 0,
         .input = "zip,age,y\n77,3,1\n",
         .expected = "1 zip=77:1 age=:3\n"},
        {.name = "wanted besides",
         .wanted = "id:ignore",
         .optional = 0,
         .input = "id,zip,age,y\n9,77,3,1\n",
         .expected = "1 zip=77:1 age=:3\n"},
        {.name = "commas in names",
         .optional = 0,
         .input = "\"a,b\",zip,age,y\n5,77,3,1\n",
         .expected = "1 a,b=:5 zip=77:1 age=:3\n"},
        {.name = "column missing",
         .optional = 0,
         .input = "zip,y\n77,1\n",
         .error =
             "0: the header has no column 'age', which the training data have; it has: zip, y; "
             "name its columns as in these"},
        {.name = "no header, but data with a word in the first line",
         .optional = 1,
         .input = "M,0.25,-1e3\n",
         .error =
             "0: the header has no column 'zip', which the training data have; it has: M, 0.25, "
             "-1e3; is it a line of data? Then put the header of these before it"},
        {.name = "no label",
         .optional = 1,
         .input = "zip,age\n77,3\n",
         .expected = "0 zip=77:1 age=:3\n"},
        {.name = "another column",
         .optional = 1,
         .input = "zip,age,x\n77,3,5\n",
         .expected = "0 zip=77:1 age=:3 x=:5\n"},
        {.name = "only these",
         .optional = 2,
         .input = "zip,y,age,x\n77,1,3,5\n78,0,4,a\n",
         .expected = "1 zip=77:1 age=:3\n0 zip=78:1 age=:4\n"},
        {.name = "no label, but one wanted",
         .optional = 0,
         .input = "zip,age\n77,3\n",
         .error = "0: no column is named label, target, y or click; the label column must be one "
                  "of: zip, "
                  "age; if the first line is no header, say so"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *kinds = drps_reader_csv_kinds(rows[i].wanted, fields, 2);
        struct drps_reader_options options = {.format = "csv",
                                              .csv_kinds = kinds,
                                              .label_optional = rows[i].optional > 0,
                                              .csv_only_kinds = rows[i].optional == 2};
        struct outcome o;
        assert_non_null(kinds);
        read_text(rows[i].input, &options, &o);
        check_outcome(rows[i].name, rows[i].input, &o, rows[i].expected, rows[i].error);
        outcome_free(&o);
        free(kinds);
    }
    char *none = drps_reader_csv_kinds(NULL, NULL, 0);
    assert_string_equal(none, "");
    free(none);
}

static void test_reader_docword(void **state)
{
    static const struct row rows[] = {
        {.name = "plain",
         .format = "docword",
         .input = "3\n9\n4\n1 1 2\n1 3 1\n3 2 1\n3 9 5\n",
         .expected = "0 1:2 3:1\n0 2:1 9:5\n"},
        {.name = "repeated word",
         .format = "docword",
         .input = "3\n9\n3\n1 4 2\n1 3 1\n1 4 1\n",
         .expected = "0 3:1 4:3\n"},
        {.name = "zero count",
         .format = "docword",
         .input = "3\n9\n2\n1 4 0\n2 3 1\n",
         .expected = "0\n0 3:1\n"},
        {.name = "blanks",
         .format = "docword",
         .input = " 3 \n9\t\n\n1\n\n 1  4\t1 \n",
         .expected = "0 4:1\n"},
        {.name = "no lines", .format = "docword", .input = "3\n9\n0\n", .expected = ""},
        {.name = "empty file", .format = "docword", .input = "", .expected = ""},
        {.name = "header",
         .format = "docword",
         .input = "3\nx\n4\n",
         .error = "0:2:1: the number of words (header line 2 of 3) is not a whole number: 'x'"},
        {.name = "no header",
         .format = "docword",
         .input = "1 1 2\n",
         .error = "0:1:1: the number of documents (header line 1 of 3) is not a whole number: '1'"},
        {.name = "header cut off",
         .format = "docword",
         .input = "3\n9\n",
         .error = "0: ends within the three header lines"},
        {.name = "unsorted",
         .format = "docword",
         .input = "3\n9\n2\n2 1 1\n1 1 1\n",
         .error = "0:5:1: document comes after document 2: the file is not sorted: '1'"},
        {.name = "document too large",
         .format = "docword",
         .input = "3\n9\n1\n4 1 1\n",
         .error = "0:4:1: document is not between 1 and the header's 3: '4'"},
        {.name = "word 0",
         .format = "docword",
         .input = "3\n9\n1\n1 0 1\n",
         .error = "0:4:3: word is not between 1 and the header's 9: '0'"},
        {.name = "negative count",
         .format = "docword",
         .input = "3\n9\n1\n1 1 -1\n",
         .error = "0:4:5: count is negative: '-1'"},
        {.name = "two columns",
         .format = "docword",
         .input = "3\n9\n1\n1 1\n",
         .error = "0:4:3: word is not a whole number ('doc word count' is expected): '1'"},
        {.name = "four columns",
         .format = "docword",
         .input = "3\n9\n1\n1 1 1 1\n",
         .error = "0:4:5: count is not a number: '1'"},
        {.name = "cut off",
         .format = "docword",
         .input = "3\n9\n2\n1 1 1\n",
         .error = "0: the header promises 2 lines, the file has 1"},
        {.name = "longer",
         .format = "docword",
         .input = "3\n9\n1\n1 1 1\n1 2 1\n",
         .error = "0: the header promises 1 lines, the file has 2"},
    };
    (void)state;
    CHECK_ROWS(rows);
}

static void test_reader_detects_the_format(void **state)
{
    static const struct {
        const char *name, *input, *format;
    } rows[] = {
        {"libsvm", "1 1:1 2:0.5\n", "libsvm"},
        {"libsvm, first line without features", "1\n0 3:1\n", "libsvm"},
        {"libsvm, comment first", "# x\n1 1:1\n", "libsvm"},
        {"libsvm, a bad line", "1 1:1\n1 2:x\n1 3:1\n", "libsvm"},
        {"libsvm with qid", "2 qid:1 1:1\n", "libsvm"},
        {"labels only", "1\n2\n3\n4\n", "libsvm"},
        {"nothing", "", "libsvm"},
        {"blank", "\n\n", "libsvm"},
        {"libffm", "1 0:1:1 1:5:0.5\n", "libffm"},
        {"ratings, tabs", "1\t2\t3\n", "ratings"},
        {"ratings, colons", "1::2::3::4\n", "ratings"},
        {"ratings, commas", "1,2,3.5\n", "ratings"},
        {"ratings, spaces", "u1 i1 3.5 7\n", "ratings"},
        {"ratings, header", "userId,movieId,rating,timestamp\n1,2,3,4\n", "ratings"},
        {"criteo", "0" EMPTY_39 "\n", "criteo"},
        {"avazu", "id,click,hour,C1\n1,0,14102100,5\n", "avazu"},
        {"csv", "label,a,b,c\n1,2,3,4\n", "csv"},
        {"csv of three columns", "a,b,y\nx,2,3\n", "csv"},
        {"csv, quoted names", "\"a\";\"y\"\n1;2\n", "csv"},
        {"csv, numbers without a header", "1,0.5,3,4,5\n0,1,2,3,4\n", "csv"},
        {"csv, three decimals are no rating", "1,0.5,3\n0,1.5,3\n", "csv"},
        {"csv, a fourth decimal is no time", "1,5,3,0.5\n0,5,3,1.5\n", "csv"},
        {"csv, blanks", "1 2 3 4 5\n0 2 3 4 5\n", "csv"},
        {"jsonl", "{\"y\":1}\n", "jsonl"},
        {"jsonl, blanks", "\n { \"y\" : 1 }\n", "jsonl"},
        {"vw", "1 |f a:1 b\n", "vw"},
        {"vw, no namespace, no label", "| a b\n", "vw"},
        {"vw, several without a name", "1 | 0:4.5 | 1:9.4\n", "vw"},
        {"vw, weight and tag", "1 1.0 'x|f a\n", "vw"},
        {"docword", "3\n9\n1\n1 1 2\n", "docword"},
        {"docword without lines", "3\n9\n0\n", "docword"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct outcome o;
        read_text(rows[i].input, i % 2 ? NULL : &(struct drps_reader_options){.format = "auto"},
                  &o);
        if (strcmp(o.format, rows[i].format) != 0)
            fail_msg("%s\ninput:    %s\nexpected: %s\nfound:    %s %s", rows[i].name, rows[i].input,
                     rows[i].format, o.format, o.err.text);
        outcome_free(&o);
    }
}

static void test_reader_counts_blank_lines(void **state)
{
    static const struct {
        const char *format, *input;
        uint64_t blank;
    } rows[] = {{"libsvm", "1 1:1\n0 2:1\n", 0},
                {"libsvm", "# a\n1 1:1 # b\n\n \t\n\r\n0 2:1\n\n", 5},
                {"libsvm", "1 1:1\nbad\n", 0},
                {"csv", "y,a\n1,2\n\n0,1\n", 1},
                {"docword", "1\n2\n1\n\n1 1 2\n", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct outcome o;
        read_text(rows[i].input,
                  &(struct drps_reader_options){.format = rows[i].format, .skip_bad_lines = 1}, &o);
        if (o.blank != rows[i].blank)
            fail_msg("%s\n%s\n%llu blank lines", rows[i].format, rows[i].input,
                     (unsigned long long)o.blank);
        outcome_free(&o);
    }
}

static void test_reader_asks_for_the_format(void **state)
{
    static const struct row rows[] = {
        {.name = "prose",
         .input = "\nIt was a dark and stormy night.\n",
         .error = "0: no format fits the first lines: 'It was a dark and stormy night.'; name one "
                  "of libsvm, "
                  "libffm, ratings, criteo, avazu, csv, jsonl, vw, docword, idx, tokens"},
        {.name = "csv without label",
         .input = "a,b,c,d\n1,2,3,4\n",
         .error =
             "0: looks like csv, but no column is named label, target, y or click; the label "
             "column "
             "must be one "
             "of: a, b, c, d (or name another format); if the first line is no header, say so"},
        {.name = "csv without a header",
         .input = "5.1,3.5,setosa\n4.9,3,virginica\n",
         .error = "0: looks like csv without a header: '5.1,3.5,setosa'; say that there is none, "
                  "and which column is the label"},
        {.name = "a table within bars",
         .input = "1 | 2 | 3\n4 | 5 | 6\n",
         .error = "0: no format fits the first lines: '1 | 2 | 3'; name one of libsvm, libffm, "
                  "ratings, criteo, avazu, csv, jsonl, vw, docword, idx, tokens"},
        {.name = "lines of other columns",
         .input = "a,b,c,d\n1,2,3\n",
         .error = "0: no format fits the first lines: 'a,b,c,d'; name one of libsvm, libffm, "
                  "ratings, criteo, "
                  "avazu, csv, jsonl, vw, docword, idx, tokens"},
        {.name = "binary",
         .input = "\x7f"
                  "ELF\x01\xff\n",
         .error = "0: no format fits the first lines: '\\x7fELF\\x01\\xff'; name one of libsvm, "
                  "libffm, ratings, "
                  "criteo, avazu, csv, jsonl, vw, docword, idx, tokens"},
        {.name = "a bad value in one of two lines",
         .input = "1 1:0.5 2:1\n0 1:abc 2:1\n",
         .error = "0:2:5: value is not a number: 'abc'"},
        {.name = "a bad value in the only line",
         .input = "1 1:0.5 2:abc\n",
         .error = "0:1:11: value is not a number: 'abc'"},
        {.name = "a bad value in one of two lines, with fields",
         .input = "\n1 0:1:x 1:2:1\n0 0:1:1 1:2:1\n",
         .error = "0:2:7: value is not a number: 'x'"},
        {.name = "a label that is no number above a bad value",
         .input = "a 1:1\nb 1:x\n",
         .error = "0:1:1: label is not a number: 'a'"},
        {.name = "a label that is no number in one of two lines",
         .input = "1 1:1\nb 1:2\n",
         .error = "0:2:1: label is not a number: 'b'"},
        {.name = "a third of the lines begin as libsvm",
         .input = "1 1:1 x\nno line\nof data\n",
         .error = "0: no format fits the first lines: '1 1:1 x'; name one of libsvm, libffm, "
                  "ratings, criteo, avazu, csv, jsonl, vw, docword, idx, tokens"},
        {.name = "names of classes where labels are numbers",
         .input = "alt.atheism 90:1 117:2\nsci.med 3:1\n",
         .error = "0: looks like libsvm whose labels are names: 'alt.atheism 90:1 117:2'; here "
                  "labels are numbers: names are for the algorithm mlr, for svm, and for nets that "
                  "end in `full classes`"},
        {.name = "names of classes where labels are numbers, with fields",
         .input = "spam 1:90:1\nham 0:3:1\n",
         .error = "0: looks like libffm whose labels are names: 'spam 1:90:1'; here labels are "
                  "numbers: names are for the algorithm mlr, for svm, and for nets that end in "
                  "`full classes`"},
        {.name = "unknown",
         .format = "svm",
         .input = "1 1:1\n",
         .error =
             "unknown input format 'svm', known are: libsvm, libffm, ratings, criteo, avazu, csv, "
             "jsonl, vw, docword, idx, tokens"},
    };
    (void)state;
    CHECK_ROWS(rows);
}

static void test_reader_says_what_may_be_the_label(void **state)
{
    struct drps_reader_options options = {.csv_label = "clicked"};
    struct outcome o;
    (void)state;
    read_text("ip,app,\"os, version\"\n1,2,3\n", &options, &o);
    check_outcome(
        "auto", "", &o, NULL,
        "0: looks like csv, but has no column 'clicked'; the label column must be one of: ip, app, "
        "os, version (or name another format); if the first line is no header, say so");
    outcome_free(&o);
    read_text("1 2:3\n", &options, &o);
    check_outcome(
        "not csv", "", &o, NULL,
        "0: to name a label column is for csv and jsonl, and this is read as libsvm, which has no "
        "columns: leave it out");
    outcome_free(&o);
}

/* What is said of columns tells a table of three columns from ratings, where it can be one. */
static void test_reader_takes_tables_for_csv_where_columns_are_named(void **state)
{
    struct drps_reader_options label = {.csv_label = "3"}, columns = {.csv_kinds = "2:category"},
                               scale = {.csv_scale = "none"}, cross = {.csv_cross = "2*3"};
    const struct drps_reader_options *const said[] = {&label, &columns, &scale, &cross};
    struct drps_reader_options none = {.csv_label = NULL};
    struct outcome o;
    (void)state;
    read_text("49,12772,1\n50,12773,0\n", &none, &o);
    assert_string_equal(o.format, "ratings");
    outcome_free(&o);
    for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
        read_text("49,12772,1\n50,12773,0\n", said[i], &o);
        assert_string_equal(o.format, "csv");
        outcome_free(&o);
    }
    read_text("anna,12772,1\nbert,12773,0\n", &label, &o);
    check_outcome("names", "", &o, NULL,
                  "0: to name a label column is for csv and jsonl, and this is read as ratings: "
                  "leave it out, or name the format csv");
    outcome_free(&o);
}

/* Prediction is asked of pairs that say who rates what, but not how. */
static void test_reader_ratings_may_lack_the_rating(void **state)
{
    static const struct row rows[] = {
        {.name = "tab",
         .format = "ratings",
         .input = "u1\ti1\nu2\ti2\n",
         .expected = "0 user=u1:1 item=i1:1\n0 user=u2:1 item=i2:1\n"},
        {.name = "header",
         .format = "ratings",
         .input = "UserId,movieId\nu1,i1\n",
         .expected = "0 user=u1:1 item=i1:1\n"},
        {.name = "a user called so",
         .format = "ratings",
         .input = "user7 i1\n",
         .expected = "0 user=user7:1 item=i1:1\n"},
        {.name = "some have one",
         .format = "ratings",
         .input = "a b\na b 3\n",
         .expected = "0 user=a:1 item=b:1\n3 user=a:1 item=b:1\n"},
        {.name = "no item",
         .format = "ratings",
         .input = "a\n",
         .error =
             "0:1:1: fewer than 2 columns, expected user, item, perhaps a rating and perhaps a "
             "timestamp: 'a'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct drps_reader_options options = {.format = "ratings", .label_optional = 1};
        struct outcome o;
        read_text(rows[i].input, &options, &o);
        check_outcome(rows[i].name, rows[i].input, &o, rows[i].expected, rows[i].error);
        outcome_free(&o);
    }
}

#define CRITEO_ONES                                                                                \
    "0 I1=1:1 I2=1:1 I3=1:1 I4=1:1 I5=1:1 I6=1:1 I7=1:1 I8=1:1 I9=1:1 I10=1:1 I11=1:1 I12=1:1 "    \
    "I13=1:1" CATEGORIES_OUT

/* What stands where a label does is passed over, and nothing need to stand there. */
static void test_reader_ignores_labels(void **state)
{
    static const struct row rows[] = {
        {.name = "libsvm",
         .format = "libsvm",
         .input = "? 1:2 3:1\nfoo 1:1\n1:2 3:4\n1#c\nc# 2:1\na:b 2:1\nqid:4 2:1\n-3 5:1\n",
         .expected = "0 1:2 3:1\n0 1:1\n0 1:2 3:4\n0\n0 2:1\n0 2:1\n0 2:1\n0 5:1\n"},
        {.name = "libsvm, a feature that is none",
         .format = "libsvm",
         .input = "-1:3 2:1\n",
         .error = "0:1:1: feature id is negative: '-1:3'"},
        {.name = "libffm",
         .format = "libffm",
         .input = "? 0:1:2\nfoo 0:1:1\n0:1:2 1:3:4\n7 0:5:1\n",
         .expected = "0 1:2\n0 1:1\n0 1:2 3:4\n0 5:1\n"},
        {.name = "csv",
         .format = "csv",
         .input = "y,a\nNA,x\n,x\n?,x\nfoo,x\n\"b,c\",x\nyes,x\n1,x\n",
         .expected = "0 a=x:1\n0 a=x:1\n0 a=x:1\n0 a=x:1\n0 a=x:1\n0 a=x:1\n0 a=x:1\n"},
        {.name = "csv, a column too few",
         .format = "csv",
         .input = "y,a\nNA,x\nx\n",
         .error = "0:3: 1 columns, the header has 2"},
        {.name = "ratings",
         .format = "ratings",
         .input = "u,i,NA\nu,i,foo\nu,i,\nu,i\nu,i,3\n",
         .expected = "0 user=u:1 item=i:1\n0 user=u:1 item=i:1\n0 user=u:1 item=i:1\n"
                     "0 user=u:1 item=i:1\n0 user=u:1 item=i:1\n"},
        {.name = "ratings with a header",
         .format = "ratings",
         .input = "u,i,r\nu,i,?\n",
         .expected = "0 user=u:1 item=i:1\n"},
        {.name = "criteo, whose columns are counted as ever",
         .format = "criteo",
         .input = "?\t1\n",
         .error = "0:1: 2 tab-separated columns, expected label + 13 integers + 26 categories"},
        {.name = "criteo",
         .format = "criteo",
         .input = "?\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1\t" CATEGORIES "\n"
                  "\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1\t" CATEGORIES "\n",
         .expected = CRITEO_ONES CRITEO_ONES},
    };
    struct drps_classes *classes = drps_classes_new();
    (void)state;
    assert_non_null(classes);
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i / 2];
        const struct drps_reader_options options = {.format = row->format,
                                                    .label_optional = 1,
                                                    .label_ignored = 1,
                                                    .known_classes = i % 2 ? classes : NULL,
                                                    .labels = i % 2 ? DRPS_READER_AS_FIRST
                                                                    : DRPS_READER_NAMES};
        struct outcome o;
        read_text(row->input, &options, &o);
        check_outcome(row->name, row->input, &o, row->expected, row->error);
        outcome_free(&o);
    }
    const struct drps_reader_options named = {
        .format = "libsvm", .label_optional = 1, .label_ignored = 1, .known_classes = classes};
    struct outcome o;
    read_text("1#c 2:1\n", &named, &o); /* of classes it is a name, else a number and a comment */
    check_outcome("a name with a hash", "1#c 2:1", &o, "0 2:1\n", NULL);
    outcome_free(&o);
    drps_classes_free(classes);
}

static void test_reader_lists_its_formats(void **state)
{
    const char *const *names = drps_reader_formats();
    struct drps_classes *classes = drps_classes_new();
    (void)state;
    for (; *names; names++) {
        struct outcome o;
        struct drps_reader_options options = {.format = *names};
        if (strcmp(*names, "tokens") == 0)
            options.classes = classes; /* they have no other labels */
        read_text("", &options, &o); /* every name is known, and an empty file is no error in any */
        check_outcome(*names, "", &o, "", NULL);
        assert_string_equal(o.format, *names);
        outcome_free(&o);
    }
    drps_classes_free(classes);
}

struct log_lines {
    int n;
    char first[300], last[300];
};

static void count_log(void *ctx, enum drps_log_level level, const char *text)
{
    struct log_lines *l = ctx;
    assert_int_equal(level, DRPS_LOG_WARN);
    (void)snprintf(l->n++ == 0 ? l->first : l->last, sizeof(l->first), "%s", text);
}

static void test_reader_skips_bad_lines(void **state)
{
    struct log_lines lines = {0};
    struct drps_log log = {DRPS_LOG_INFO, count_log, &lines};
    struct drps_reader_options options = {.format = "libsvm", .skip_bad_lines = 1, .log = &log};
    struct text input = {0};
    struct outcome o;

    (void)state;
    text_add(&input, "1 1:1\n");
    for (int i = 0; i < 15; i++)
        text_add(&input, "1 2:1 3:0.5 bad\n");
    text_add(&input, "2 1:1\n");
    read_text(input.p, &options, &o);
    check_outcome("bad lines between good ones", input.p, &o, "1 1:1\n2 1:1\n", NULL);
    assert_int_equal(o.skipped, 15);
    assert_int_equal(o.lines, 17);
    assert_true(o.all_ones); /* the 0.5 was taken back */
    assert_int_equal(lines.n, 10);
    assert_string_equal(lines.first, "0:2:13: feature id is not a number: 'bad'; line skipped");
    assert_string_equal(
        lines.last, "0:11:13: feature id is not a number: 'bad'; line skipped; further bad lines "
                    "are only counted");
    outcome_free(&o);
    free(input.p);
}

static void test_reader_skips_bad_lines_of_every_format(void **state)
{
    static const struct row rows[] = {
        {.name = "libffm",
         .format = "libffm",
         .input = "1 1:1:1 x\n0 1:2:1\n",
         .expected = "0 2:1\n"},
        {.name = "ratings",
         .format = "ratings",
         .input = "1 2 3\n1 2\n1 2 x\n4 5 6\n",
         .expected = "3 user=1:1 item=2:1\n6 user=4:1 item=5:1\n"},
        {.name = "criteo", .format = "criteo", .input = "0\t1\t2.5" EMPTY_39 "\n", .expected = ""},
        {.name = "avazu",
         .format = "avazu",
         .input = "id,click,hour,C\n1,2,3,4\n1,2,14010111,4\n",
         .expected = "2 hour=11:1 C=4:1\n"},
        {.name = "csv",
         .format = "csv",
         .input = "y,a,b\n1,2,x\n1,\"2\",\"\n1,3,z\n",
         .expected = "1 a=:2 b=x:1\n1 a=:3 b=z:1\n"},
        {.name = "docword",
         .format = "docword",
         .input = "5\n9\n6\n1 1 1\n2 1 1\n1 2 1\n2 x 1\n2 2 1\n3 1 1\n",
         .expected = "0 1:1\n0 1:1 2:1\n0 1:1\n"},
        {.name = "a document's sum",
         .format = "docword",
         .input = "5\n9\n4\n1 1 3e38\n1 1 3e38\n2 1 1\n2 2 1\n",
         .expected = "0 1:1 2:1\n"},
        {.name = "docword's header is not skipped",
         .format = "docword",
         .input = "x\n9\n5\n",
         .error = "0:1:1: the number of documents (header line 1 of 3) is not a whole number: 'x'"},
    };
    struct log_lines lines = {0};
    struct drps_log log = {DRPS_LOG_ERROR, count_log, &lines};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct drps_reader_options options = {
            .format = rows[i].format, .skip_bad_lines = 1, .log = &log};
        struct outcome o;
        read_text(rows[i].input, &options, &o);
        check_outcome(rows[i].name, rows[i].input, &o, rows[i].expected, rows[i].error);
        outcome_free(&o);
    }
    assert_int_equal(lines.n, 0); /* warnings were not wanted */
}

static void test_reader_tells_all_ones(void **state)
{
    static const struct {
        const char *name, *format, *input;
        int ones;
    } rows[] = {
        {"ones", "libsvm", "1 1:1 2:1.0 3:10e-1\n", 1},
        {"a two", "libsvm", "1 1:1 2:2\n", 0},
        {"a zero is left out", "libsvm", "1 1:1 2:0\n", 1},
        {"repeated", "libsvm", "1 1:1 1:1\n", 0},
        {"halves add up", "libsvm", "1 1:0.5 1:0.5\n", 1},
        {"no features", "libsvm", "1\n2\n", 1},
        {"ratings", "ratings", "1 2 3\n", 1},
        {"numbers", "csv", "y,a\n1,2\n", 0},
        {"counts", "docword", "1\n9\n1\n1 1 3\n", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct drps_reader_options options = {.format = rows[i].format};
        struct outcome o;
        read_text(rows[i].input, &options, &o);
        if (o.rc != 0 || o.all_ones != rows[i].ones)
            fail_msg("%s\ninput:    %s\nexpected: %d\nfound:    %d %s", rows[i].name, rows[i].input,
                     rows[i].ones, o.all_ones, o.err.text);
        outcome_free(&o);
    }
}

/*
 * Computed once with the xxhash library, version 0.8.1: an index on disk depends on these never
 * changing.
 */
static void test_reader_hashes_names(void **state)
{
    static const struct {
        const char *text;
        uint32_t field;
        uint64_t seed, key;
        uint32_t check;
    } rows[] = {
        {.text = "", .field = 0, .seed = 0, .key = 0xadb33bd7d7f147adu, .check = 0x67f90352u},
        {.text = "", .field = 1, .seed = 0, .key = 0x5933451a5a91ebc8u, .check = 0xed223b96u},
        {.text = "7", .field = 0, .seed = 0, .key = 0xac8a797987a0d393u, .check = 0x14a68d0au},
        {.text = "7", .field = 1, .seed = 0, .key = 0x82c0447acfce985du, .check = 0x2dace110u},
        {.text = "68fd1e64",
         .field = 0,
         .seed = 12345,
         .key = 0xe9eaf429b8eab11du,
         .check = 0x6869ce46u},
        {.text = "a longer name, of more than sixteen bytes",
         .field = 0,
         .seed = 0,
         .key = 0x5302a66c2ebd1300u,
         .check = 0x370d78ceu},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t key;
        uint32_t check;
        drps_name_hash(rows[i].field, rows[i].text, strlen(rows[i].text), rows[i].seed, &key,
                       &check);
        if (key != rows[i].key || check != rows[i].check)
            fail_msg("'%s' field %u seed %llu\nexpected: %llx %x\nfound:    %llx %x", rows[i].text,
                     rows[i].field, (unsigned long long)rows[i].seed,
                     (unsigned long long)rows[i].key, rows[i].check, (unsigned long long)key,
                     check);
    }
}

/* Labels that are names: samples have the numbers of classes in the order of their coming. */
static void test_reader_named_labels(void **state)
{
    static const struct row rows[] = {
        {.name = "libsvm",
         .input = "cat 1:2\ndog 3:1 # x\n\ncat\nC# 1:1\n",
         .expected = "0 1:2\n1 3:1\n0\n2 1:1\n"},
        {.name = "libsvm, numbers",
         .input = "+1 1:2\n-1 1:1\n1.0 2:1\n16777217 2:1\n16777216 2:1\n",
         .expected = "0 1:2\n1 1:1\n0 2:1\n2 2:1\n3 2:1\n"},
        {.name = "libsvm, a label that is missing",
         .input = "cat 1:2\ndog 1:1\n3:1 4:1\n",
         .error = "0:3:1: label has a colon in it: is it missing, and this a feature?: '3:1'"},
        {.name = "libffm", .input = "b 1:2:3\na 1:3:1\n", .expected = "0 2:3\n1 3:1\n"},
        {.name = "csv",
         .input = "label,x\n\"New York, NY\",1\n yes ,2\nno,3\nyes,1\n1:2,1\n",
         .expected = "0 x=:1\n1 x=:2\n2 x=:3\n1 x=:1\n3 x=:1\n"},
        {.name = "csv, a label that is missing",
         .input = "label,x\na,1\n,2\n",
         .error = "0:3:1: label is empty: ',2'"},
        {.name = "not UTF-8",
         .format = "libsvm",
         .input = "\xff 1:2\n",
         .error = "0:1:1: label is no UTF-8 text, or has a control character in it: '\\xff'"},
        {.name = "ratings",
         .input = "u1\ti1\t3\nu2\ti1\t4\n",
         .error =
             "0: labels that are classes are read from libsvm, libffm, csv, jsonl, vw and idx, and "
             "this is "
             "read as ratings"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct drps_classes *classes = drps_classes_new();
        const struct drps_reader_options options = {.format = rows[i].format, .classes = classes};
        struct outcome o;
        assert_non_null(classes);
        read_text(rows[i].input, &options, &o);
        check_outcome(rows[i].name, rows[i].input, &o, rows[i].expected, rows[i].error);
        outcome_free(&o);
        drps_classes_free(classes);
    }
}

/* Labels that are no class are -1, whatever they are; a line that is skipped makes no class. */
static void test_reader_known_labels(void **state)
{
    struct drps_classes *classes = drps_classes_new();
    struct drps_reader_options options = {
        .format = "libsvm", .classes = classes, .skip_bad_lines = 1};
    struct outcome o;
    (void)state;
    read_text("a 1:1\nbad 1:x\nb 1:1\n", &options, &o);
    check_outcome("skipped", "", &o, "0 1:1\n1 1:1\n", NULL);
    outcome_free(&o);
    assert_int_equal(drps_classes_count(classes), 2);

    options = (struct drps_reader_options){.format = "libsvm", .known_classes = classes};
    read_text("b 1:1\nc 1:1\n\xff 1:1\na 1:1\n", &options, &o);
    check_outcome("known", "", &o, "1 1:1\n-1 1:1\n-1 1:1\n0 1:1\n", NULL);
    outcome_free(&o);
    assert_int_equal(drps_classes_count(classes), 2);
    drps_classes_free(classes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reader_libsvm),
        cmocka_unit_test(test_reader_named_labels),
        cmocka_unit_test(test_reader_known_labels),
        cmocka_unit_test(test_reader_libffm),
        cmocka_unit_test(test_reader_fields),
        cmocka_unit_test(test_reader_one_feature),
        cmocka_unit_test(test_reader_one_feature_keeps_keys_of_names),
        cmocka_unit_test(test_reader_numbers_by_place),
        cmocka_unit_test(test_reader_ratings),
        cmocka_unit_test(test_reader_without_labels),
        cmocka_unit_test(test_reader_criteo),
        cmocka_unit_test(test_reader_avazu),
        cmocka_unit_test(test_reader_csv),
        cmocka_unit_test(test_reader_csv_decides_by_a_thousand_lines),
        cmocka_unit_test(test_reader_csv_tells_what_was_decided),
        cmocka_unit_test(test_reader_csv_options),
        cmocka_unit_test(test_reader_csv_kinds),
        cmocka_unit_test(test_reader_docword),
        cmocka_unit_test(test_reader_detects_the_format),
        cmocka_unit_test(test_reader_asks_for_the_format),
        cmocka_unit_test(test_reader_counts_blank_lines),
        cmocka_unit_test(test_reader_says_what_may_be_the_label),
        cmocka_unit_test(test_reader_takes_tables_for_csv_where_columns_are_named),
        cmocka_unit_test(test_reader_ratings_may_lack_the_rating),
        cmocka_unit_test(test_reader_ignores_labels),
        cmocka_unit_test(test_reader_lists_its_formats),
        cmocka_unit_test(test_reader_skips_bad_lines),
        cmocka_unit_test(test_reader_skips_bad_lines_of_every_format),
        cmocka_unit_test(test_reader_tells_all_ones),
        cmocka_unit_test(test_reader_hashes_names),
    };
    return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
