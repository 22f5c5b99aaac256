/* Weights of samples: files beside the data, columns, clicks and impressions. */
#include "index/reader/reader_files.h"

/* Samples as "label*weight key:value ...", and how reading ended. */
struct weighed {
    struct text text;
    int rc;
    uint64_t weightless, skipped;
    struct drps_err err;
};

static void read_weighed(struct files *fs, size_t data, const struct drps_reader_options *options,
                         struct weighed *out)
{
    static const char *const paths[FILES_MAX] = {"0", "1", "2", "3"};
    const struct drps_io io = {.ops = &files_ops, .ctx = fs};
    struct drps_samples s = {0};
    struct drps_reader *r;
    memset(out, 0, sizeof(*out));
    text_add(&out->text, "%s", "");
    out->rc = drps_reader_open(&io, paths, data, options, &r, &out->err);
    if (out->rc < 0) return;
    while ((out->rc = drps_reader_next(r, &s, &out->err)) > 0)
        for (size_t i = 0; i < s.n; i++) {
            text_add(&out->text, "%g", (double)s.labels[i]);
            if (s.weights) text_add(&out->text, "*%g", (double)s.weights[i]);
            for (size_t j = s.starts[i]; j < s.starts[i + 1]; j++) {
                if (s.names)
                    text_add(&out->text, " %.*s:%g", (int)s.names[j].bytes, s.names[j].text,
                             (double)s.values[j]);
                else
                    text_add(&out->text, " %llu:%g", (unsigned long long)s.keys[j],
                             (double)s.values[j]);
            }
            text_add(&out->text, "\n");
        }
    out->weightless = drps_reader_weightless(r);
    out->skipped = drps_reader_skipped(r);
    drps_reader_close(r);
    drps_samples_free(&s);
}

static void check_weighed(const char *name, const struct weighed *w, const char *want,
                          const char *error)
{
    if (error ? w->rc < 0 && strstr(w->err.text, error) != NULL
              : w->rc == 0 && strcmp(w->text.p, want) == 0)
        return;
    fail_msg("%s\nexpected: %s\nfound:    %s (code %d)", name, error ? error : want,
             w->rc < 0 ? w->err.text : w->text.p, w->rc);
}

static void test_weights_of_a_file(void **state)
{
    static const struct {
        const char *name, *format, *data, *weights, *want, *error;
        uint64_t weightless;
    } cases[] = {
        {"a number a line", "libsvm", "1 1:1\n-1 2:1\n1\n", "2\n0.5\n1\n",
         "1*2 1:1\n-1*0.5 2:1\n1*1\n", NULL, 0},
        {"lines without a sample have none", "libsvm", "# a\n1 1:1\n\n  # b\n-1 2:1\n", "2\n3",
         "1*2 1:1\n-1*3 2:1\n", NULL, 0},
        {"blank lines and CRLF", "libsvm", "1 1:1\n-1 2:1\n", "\r\n \t2 \r\n\n3e0\r\n\n",
         "1*2 1:1\n-1*3 2:1\n", NULL, 0},
        {"weight 0 leaves a sample out", "libsvm", "1 1:1\n-1 2:1\n1 3:1 3:1\n", "0\n1\n-0\n",
         "-1*1 2:1\n", NULL, 2},
        {"a header has none", "csv", "label,x\n1,a\n0,b\n", "2\n3\n", "1*2 a:1\n0*3 b:1\n", NULL,
         0},
        {"ratings", "ratings", "user,item,rating\nu,i,5\nv,i,3\n", "2\n3\n",
         "5*2 u:1 i:1\n3*3 v:1 i:1\n", NULL, 0},
        {"libffm", "libffm", "1 0:1:1\n", "7\n", "1*7 1:1\n", NULL, 0},
        {"too few", "libsvm", "1 1:1\n\n-1 2:1\n", "2\n", NULL,
         "1 ends after 1 weights, and line 3 of 0 is one sample more", 0},
        {"none at all", "libsvm", "1 1:1\n", "", NULL,
         "1 ends after 0 weights, and line 1 of 0 is one sample more", 0},
        {"too many", "libsvm", "1 1:1\n-1 2:1\n", "2\n3\n\n4\n", NULL,
         "1:4: a weight, but 0 has no more than 2 lines with a sample", 0},
        {"negative", "libsvm", "1 1:1\n-1 2:1\n", "2\n-3\n", NULL, "1:2: weight is negative: '-3'",
         0},
        {"not a number", "libsvm", "1 1:1\n", "abc\n", NULL, "1:1: weight is not a number: 'abc'",
         0},
        {"two numbers", "libsvm", "1 1:1\n", "1 2\n", NULL, "1:1: weight is not a number: '1 2'",
         0},
        {"NaN", "libsvm", "1 1:1\n-1 2:1\n", "1\nnan\n", NULL, "1:2: weight is NaN or infinite", 0},
        {"infinite", "libsvm", "1 1:1\n", "inf\n", NULL, "1:1: weight is NaN or infinite", 0},
        {"too large", "libsvm", "1 1:1\n", "1e39\n", NULL, "1:1: weight is too large", 0},
        {"documents", "docword", "1\n1\n1\n1 1 1\n", "1\n", NULL, "docword", 0},
    };
    static const char *const weights[] = {"1"};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t step = 0; step < 3; step++) {
            const struct drps_reader_options o = {
                .format = cases[i].format, .weights = weights, .weights_n = 1};
            struct files fs = {.step = step};
            struct weighed w;
            files_add(&fs, cases[i].data, strlen(cases[i].data));
            files_add(&fs, cases[i].weights, strlen(cases[i].weights));
            read_weighed(&fs, 1, &o, &w);
            check_weighed(cases[i].name, &w, cases[i].want, cases[i].error);
            if (!cases[i].error) assert_int_equal(w.weightless, cases[i].weightless);
            free(w.text.p);
        }
}

/* Each file of data has one of weights; one of them ends with its own. */
static void test_weights_of_several_files(void **state)
{
    static const char *const weights[] = {"2", "3"};
    static const struct {
        const char *name, *first, *second, *want, *error;
    } cases[] = {
        {"each its own", "2\n3\n", "4\n", "1*2 1:1\n-1*3 2:1\n1*4 3:1\n", NULL},
        {"one too few in the first", "2\n", "3\n4\n", NULL,
         "2 ends after 1 weights, and line 2 of 0"},
        {"one too many in the first", "2\n3\n4\n", "5\n", NULL, "2:3: a weight, but 0 has"},
        {"one too many in the second", "2\n3\n", "4\n5\n", NULL, "3:2: a weight, but 1 has"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_reader_options o = {.format = "libsvm", .weights = weights, .weights_n = 2};
        struct files fs = {0};
        struct weighed w;
        files_add(&fs, "1 1:1\n-1 2:1\n", 13);
        files_add(&fs, "1 3:1\n", 6);
        files_add(&fs, cases[i].first, strlen(cases[i].first));
        files_add(&fs, cases[i].second, strlen(cases[i].second));
        read_weighed(&fs, 2, &o, &w);
        check_weighed(cases[i].name, &w, cases[i].want, cases[i].error);
        free(w.text.p);
        o.weights_n = 1;
        read_weighed(&fs, 2, &o, &w);
        check_weighed("one for two", &w, NULL, "1 files of weights for 2 of data");
        free(w.text.p);
    }
}

/* A bad line that is skipped takes its weight with it. */
static void test_weights_of_skipped_lines(void **state)
{
    static const char *const weights[] = {"1"};
    const struct drps_reader_options o = {
        .format = "libsvm", .weights = weights, .weights_n = 1, .skip_bad_lines = 1};
    struct files fs = {0};
    struct weighed w;
    (void)state;
    files_add(&fs, "1 1:1\nbad\n-1 2:1\n", 17);
    files_add(&fs, "2\n3\n4\n", 6);
    read_weighed(&fs, 1, &o, &w);
    check_weighed("a skipped line", &w, "1*2 1:1\n-1*4 2:1\n", NULL);
    assert_int_equal(w.skipped, 1);
    free(w.text.p);
}

/* More weights than a buffer holds, and pieces of data that end anywhere. */
static void test_weights_of_many_lines(void **state)
{
    enum { LINES = 60000 };
    static const char *const weights[] = {"1"};
    const struct drps_reader_options o = {
        .format = "libsvm", .weights = weights, .weights_n = 1, .memory_bytes = 1 << 20};
    struct text data = {0}, beside = {0}, want = {0};
    struct files fs = {0};
    struct weighed w;
    (void)state;
    for (int i = 0; i < LINES; i++) {
        text_add(&data, "1 %d:1\n", i);
        text_add(&beside, "%d.5\n", i);
        text_add(&want, "1*%g %d:1\n", i + 0.5, i);
    }
    files_add(&fs, data.p, data.n);
    files_add(&fs, beside.p, beside.n);
    read_weighed(&fs, 1, &o, &w);
    if (w.rc != 0 || strcmp(w.text.p, want.p) != 0) fail_msg("%s", w.err.text);
    free(w.text.p);
    free(data.p);
    free(beside.p);
    free(want.p);
}

struct column_case {
    const char *name, *format, *data;
    struct drps_reader_options o;
    const char *want, *error;
};

static void check_columns(const struct column_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct drps_reader_options o = cases[i].o;
        struct files fs = {0};
        struct weighed w;
        o.format = cases[i].format;
        files_add(&fs, cases[i].data, strlen(cases[i].data));
        read_weighed(&fs, 1, &o, &w);
        check_weighed(cases[i].name, &w, cases[i].want, cases[i].error);
        free(w.text.p);
    }
}

static void test_weights_of_a_column(void **state)
{
    static const struct column_case cases[] = {
        {"csv",
         "csv",
         "label,w,x\n1,2,a\n0,0.5,b\n",
         {.weight = "w"},
         "1*2 a:1\n0*0.5 b:1\n",
         NULL},
        {"behind the features", "csv", "x,label,w\na,1,2\n", {.weight = "w"}, "1*2 a:1\n", NULL},
        {"weight 0", "csv", "label,w,x\n1,0,a\n0,1,b\n", {.weight = "w"}, "0*1 b:1\n", NULL},
        {"weight 0 is kept",
         "csv",
         "label,w,x\n1,0,a\n",
         {.weight = "w", .keep_weightless = 1},
         "1*0 a:1\n",
         NULL},
        {"missing",
         "csv",
         "label,w,x\n1,,a\n",
         {.weight = "w"},
         NULL,
         "0:2:3: weight (column w): is not a number"},
        {"negative",
         "csv",
         "label,w,x\n1,-1,a\n",
         {.weight = "w"},
         NULL,
         "0:2:3: weight (column w): is negative"},
        {"no such column",
         "csv",
         "label,w,x\n1,1,a\n",
         {.weight = "v"},
         NULL,
         "the header has no column 'v' for the weight; it has: label, w, x"},
        {"the label",
         "csv",
         "label,w,x\n1,1,a\n",
         {.weight = "label"},
         NULL,
         "column 'label' cannot be the weight and the label at once"},
        {"a feature",
         "csv",
         "label,w,x\n1,1,a\n",
         {.weight = "w", .csv_kinds = "w:number"},
         NULL,
         "column 'w' cannot be the weight and something else at once"},
        {"jsonl",
         "jsonl",
         "{\"label\": 1, \"w\": 2, \"x\": \"a\"}\n{\"w\": 0.5, \"x\": \"b\", \"label\": 0}\n",
         {.weight = "w"},
         "1*2 a:1\n0*0.5 b:1\n",
         NULL},
        {"jsonl, a key of an object",
         "jsonl",
         "{\"label\": 1, \"of\": {\"w\": 3}, \"x\": \"a\"}\n",
         {.weight = "of.w"},
         "1*3 a:1\n",
         NULL},
        {"jsonl, missing",
         "jsonl",
         "{\"label\": 1, \"w\": 2}\n{\"label\": 1, \"w\": null}\n",
         {.weight = "w"},
         NULL,
         "0:2: the object has no weight (w)"},
        {"jsonl, several",
         "jsonl",
         "{\"label\": 1, \"w\": [2, 3]}\n",
         {.weight = "w"},
         NULL,
         "0:1:23: a second weight (w): '3"},
        {"jsonl, negative",
         "jsonl",
         "{\"label\": 1, \"w\": -2}\n",
         {.weight = "w"},
         NULL,
         "0:1:19: weight (column w): is negative"},
        {"jsonl, no such key",
         "jsonl",
         "{\"label\": 1, \"w\": 2}\n",
         {.weight = "v"},
         NULL,
         "the first lines have no key 'v' for the weight; they have: label, w"},
        {"ratings",
         "ratings",
         "u::i::5::2\nv::i::3::0.5\n",
         {.weight = "4"},
         "5*2 u:1 i:1\n3*0.5 v:1 i:1\n",
         NULL},
        {"a timestamp otherwise", "ratings", "u::i::5::2\n", {.weight = NULL}, "5 u:1 i:1\n", NULL},
        {"ratings without it",
         "ratings",
         "u::i::5\n",
         {.weight = "4"},
         NULL,
         "0:1: 3 columns, and the weight is column 4"},
        {"ratings, negative",
         "ratings",
         "u::i::5::-2\n",
         {.weight = "4"},
         NULL,
         "weight is negative"},
        {"another column of ratings",
         "ratings",
         "u::i::5::2\n",
         {.weight = "3"},
         NULL,
         "of ratings the weight is column 4, which is not '3'"},
        {"libsvm",
         "libsvm",
         "1 1:1\n",
         {.weight = "w"},
         NULL,
         "a column of weights is for csv, jsonl and ratings, and this is read as libsvm"},
        {"two sources",
         "csv",
         "label,w,x\n1,1,a\n",
         {.weight = "w", .clicks = "x", .impressions = "label"},
         NULL,
         "give one of these"},
    };
    (void)state;
    check_columns(cases, sizeof(cases) / sizeof(cases[0]));
}

static void test_weights_of_clicks_and_impressions(void **state)
{
#define CLICKS .clicks = "c", .impressions = "i"
    static const struct column_case cases[] = {
        {"two samples",
         "csv",
         "c,i,x,y\n3,10,a,b\n",
         {CLICKS},
         "1*3 a:1 b:1\n-1*7 a:1 b:1\n",
         NULL},
        {"no click",
         "csv",
         "x,c,i\na,0,10\nb,2,3\n",
         {CLICKS},
         "-1*10 a:1\n1*2 b:1\n-1*1 b:1\n",
         NULL},
        {"clicks alone",
         "csv",
         "x,c,i\na,4,4\nb,1,2\n",
         {CLICKS},
         "1*4 a:1\n1*1 b:1\n-1*1 b:1\n",
         NULL},
        {"never shown", "csv", "x,c,i\na,0,0\nb,1,1\n", {CLICKS}, "1*1 b:1\n", NULL},
        {"two of each line are kept",
         "csv",
         "x,c,i\na,0,2\nb,1,1\n",
         {CLICKS, .keep_weightless = 1},
         "1*0 a:1\n-1*2 a:1\n1*1 b:1\n-1*0 b:1\n",
         NULL},
        {"detected", "auto", "x,c,i\na,1,3\n", {CLICKS}, "1*1 a:1\n-1*2 a:1\n", NULL},
        {"a column of a usual name",
         "csv",
         "click,i,x\n1,3,a\n",
         {.clicks = "click", .impressions = "i"},
         "1*1 a:1\n-1*2 a:1\n",
         NULL},
        {"more clicks than impressions",
         "csv",
         "x,c,i\na,5,3\n",
         {CLICKS},
         NULL,
         "0:2: 5 clicks of 3 impressions"},
        {"negative", "csv", "x,c,i\na,-1,3\n", {CLICKS}, NULL, "clicks (column c): is negative"},
        {"one of the two", "csv", "x,c,i\na,1,3\n", {.clicks = "c"}, NULL, "name both"},
        {"and a label",
         "csv",
         "x,c,i\na,1,3\n",
         {CLICKS, .csv_label = "x"},
         NULL,
         "clicks and impressions are the labels"},
        {"and a kind that is the label",
         "csv",
         "x,c,i\na,1,3\n",
         {CLICKS, .csv_kinds = "x:label"},
         NULL,
         "clicks and impressions are the labels"},
        {"the same column",
         "csv",
         "x,c,i\na,1,3\n",
         {.clicks = "c", .impressions = "c"},
         NULL,
         "column 'c' cannot be impressions and something else"},
        {"ratings",
         "ratings",
         "u,i,1\n",
         {CLICKS},
         NULL,
         "clicks and impressions are columns of csv, and this is read as ratings"},
    };
#undef CLICKS
    (void)state;
    check_columns(cases, sizeof(cases) / sizeof(cases[0]));
}

/* A piece that had weights gives them up where another reader has none. */
static void test_weights_pieces_change_readers(void **state)
{
    static const char *const paths[] = {"0"}, *const weights[] = {"1"};
    struct files fs = {0};
    const struct drps_io io = {.ops = &files_ops, .ctx = &fs};
    struct drps_reader_options o = {.format = "libsvm", .weights = weights, .weights_n = 1};
    struct drps_samples s = {0};
    struct drps_reader *r;
    (void)state;
    files_add(&fs, "1 1:1\n", 6);
    files_add(&fs, "2\n", 2);
    for (int k = 0; k < 4; k++) {
        o.weights_n = (size_t)k % 2;
        assert_int_equal(drps_reader_open(&io, paths, 1, &o, &r, NULL), 0);
        assert_int_equal(drps_reader_next(r, &s, NULL), 1);
        assert_int_equal(s.weights != NULL, k % 2);
        drps_reader_close(r);
    }
    drps_samples_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights_of_a_file),
        cmocka_unit_test(test_weights_of_several_files),
        cmocka_unit_test(test_weights_of_skipped_lines),
        cmocka_unit_test(test_weights_of_many_lines),
        cmocka_unit_test(test_weights_of_a_column),
        cmocka_unit_test(test_weights_of_clicks_and_impressions),
        cmocka_unit_test(test_weights_pieces_change_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
