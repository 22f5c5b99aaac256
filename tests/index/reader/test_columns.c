/* Columns of csv: files without a header, codes, dates, bins, crosses and scales; and that a later
 * file is read as the first one was. */
#include "index/reader/reader_files.h"

/* So many lines of printf(format, i), i counted from 0. */
static char *lines(const char *head, size_t n, const char *format) __attribute__((nonnull));
static char *lines(const char *head, size_t n, const char *format)
{
    struct text t = {0};
    text_add(&t, "%s", head);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    for (size_t i = 0; i < n; i++)
        text_add(&t, format, (int)i);
#pragma GCC diagnostic pop
    return t.p;
}

struct options_row {
    const char *name;
    struct drps_reader_options options;
    const char *input, *expected, *error;
};

static void check_rows(const struct options_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct drps_reader_options options = rows[i].options;
        struct outcome o;
        if (!options.format) options.format = "csv";
        read_text(rows[i].input, &options, &o);
        check_outcome(rows[i].name, rows[i].input, &o, rows[i].expected, rows[i].error);
        outcome_free(&o);
    }
}

static void test_columns_without_a_header(void **state)
{
    static const struct options_row rows[] = {
        {.name = "numbers alone, the label first",
         .options = {.format = "auto"},
         .input = "1,0.5,2\n-1,1.5,3\n",
         .expected = "1 2=:0.5 3=:2\n-1 2=:1.5 3=:3\n"},
        {.name = "blanks, in runs and at both ends",
         .input = "  1  2   3 \n 0 4 5\n1 6 7 8 \n",
         .error = "0:3: 4 columns, the first line has 3"},
        {.name = "tabs",
         .options = {.format = "auto"},
         .input = "1\t2\t3\t4\t5\n0\t6\t7\t8\t9\n",
         .expected = "1 2=:2 3=:3 4=:4 5=:5\n0 2=:6 3=:7 4=:8 5=:9\n"},
        {.name = "missing ones in the first line",
         .options = {.format = "auto"},
         .input = "1,,NA,?,null,nan,7\n0,1,2,3,4,5,6\n",
         .expected = "1 7=:7\n0 2=:1 3=:2 4=:3 5=:4 6=:5 7=:6\n"},
        {.name = "another label",
         .options = {.csv_label = "3"},
         .input = "1,2,3\n4,5,6\n",
         .expected = "3 1=:1 2=:2\n6 1=:4 2=:5\n"},
        {.name = "words, where it is said that there is none",
         .options = {.format = "auto", .csv_header = DRPS_CSV_NO_HEADER},
         .input = "1,x,3\n0,y,6\n",
         .expected = "1 2=x:1 3=:3\n0 2=y:1 3=:6\n"},
        {.name = "numbers that are a header",
         .options = {.csv_header = DRPS_CSV_HEADER, .csv_label = "1"},
         .input = "1,2,3\n4,5,6\n",
         .expected = "4 2=:5 3=:6\n"},
        {.name = "no such column",
         .options = {.csv_kinds = "4:ignore"},
         .input = "1,2,3\n",
         .error = "0: kinds of columns: the first line has no column '4'; it has: 1, 2, 3"},
    };
    (void)state;
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

/* What is to be scored may lack the label: columns after it keep their names. */
static void test_columns_without_the_label(void **state)
{
    static const char *const fields[] = {"1:number", "3:category", "4:number"};
    static const struct {
        const char *name, *input, *expected, *error;
    } rows[] = {
        {"the label is there", "5,0,7,8\n", "0 1=:5 3=7:1 4=:8\n", NULL},
        {"it is not", "5,7,8\n", "0 1=:5 3=7:1 4=:8\n", NULL},
        {"others are not, too", "5,7\n", NULL,
         "0: the first line has no column '3', which the training data have; it has: 1, 2; give it "
         "the columns of these"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *kinds = drps_reader_csv_kinds(NULL, fields, 3);
        const struct drps_reader_options options = {.format = "csv",
                                                    .csv_kinds = kinds,
                                                    .csv_only_kinds = 1,
                                                    .csv_label = "2",
                                                    .csv_header = DRPS_CSV_NO_HEADER,
                                                    .label_optional = 1};
        struct outcome o;
        read_text(rows[i].input, &options, &o);
        check_outcome(rows[i].name, rows[i].input, &o, rows[i].expected, rows[i].error);
        outcome_free(&o);
        free(kinds);
    }
}

static void test_columns_dates(void **state)
{
    static const struct options_row rows[] = {
        {.name = "recognised",
         .input = "y,t\n1,2017-11-06 14:32:21\n0,\n",
         .expected = "1 t=hour=14:1 t=weekday=Mon:1 t=month=11:1\n0\n"},
        {.name = "a day, no time",
         .input = "y,t\n1,2000-02-29\n0,1999/12/31\n",
         .expected = "1 t=weekday=Tue:1 t=month=02:1\n0 t=weekday=Fri:1 t=month=12:1\n"},
        {.name = "fractions and zones",
         .input = "y,t\n1,2024-03-03T00:59:60.25+01:00\n0,\"2024-03-03 23:00Z\"\n",
         .expected = "1 t=hour=00:1 t=weekday=Sun:1 t=month=03:1\n"
                     "0 t=hour=23:1 t=weekday=Sun:1 t=month=03:1\n"},
        {.name = "no such day is a word",
         .input = "y,t\n1,2023-02-29\n0,2023-02-28\n",
         .expected = "1 t=2023-02-29:1\n0 t=2023-02-28:1\n"},
        {.name = "two separators are a word",
         .input = "y,t\n1,2023-02/28\n",
         .expected = "1 t=2023-02/28:1\n"},
        {.name = "text behind it is a word",
         .input = "y,t\n1,2023-02-28 11:00:00 h\n",
         .expected = "1 t=2023-02-28 11:00:00 h:1\n"},
        {.name = "seconds and milliseconds, as given",
         .options = {.csv_kinds = "t:date"},
         .input = "y,t\n1,1509978741\n0,1509978741999\n",
         .expected = "1 t=hour=14:1 t=weekday=Mon:1 t=month=11:1\n"
                     "0 t=hour=14:1 t=weekday=Mon:1 t=month=11:1\n"},
        {.name = "a word, where dates are said to be",
         .options = {.csv_kinds = "t:date"},
         .input = "y,t\n1,now\n",
         .error = "0:2:3: t is no date like 2017-11-06 or 2017-11-06 14:32:21; for words give the "
                  "kind t:category: 'now'"},
    };
    (void)state;
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

/* Every day of 400 years, one after the other, has the next weekday, and its month. */
static void test_columns_weekdays_follow_each_other(void **state)
{
    static const char *const names[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
    struct text in = {0}, out = {0};
    struct outcome o;
    int day = 0; /* 1970-01-01 was a Thursday, day 3 */
    (void)state;
    text_add(&in, "y,s,t\n");
    for (int year = 1970; year < 2370; year++)
        for (int month = 1; month <= 12; month++) {
            static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
            const int leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
            for (int d = 1; d <= days[month - 1] + (month == 2 && leap); d++, day++) {
                const long long seconds = (long long)day * 86400 + 3600;
                const int counted = seconds >= 100000000 && seconds < 10000000000;
                text_add(&in, "0,%lld,%04d-%02d-%02d\n", counted ? seconds : 100000000, year, month,
                         d);
                if (!counted) continue;
                text_add(&out, "0 s=hour=01:1 s=weekday=%s:1 s=month=%02d:1", names[(day + 3) % 7],
                         month);
                text_add(&out, " t=weekday=%s:1 t=month=%02d:1\n", names[(day + 3) % 7], month);
            }
        }
    read_text(in.p, &(struct drps_reader_options){.format = "csv", .csv_kinds = "s:date,t:date"},
              &o);
    assert_int_equal(o.rc, 0);
    /* Seconds of 9 and 10 digits are days from 1973 to 2286: what lies before and behind is left
     * out of the comparison. */
    assert_non_null(strstr(o.text.p, out.p));
    outcome_free(&o);
    free(in.p);
    free(out.p);
}

static void note_kinds(void *ctx, const struct drps_reader_column *columns, size_t n)
{
    char *text = ctx;
    for (size_t i = 0; i < n; i++)
        text += sprintf(text, "%s %d%s: %s\n", columns[i].name, (int)columns[i].kind,
                        columns[i].guessed_codes ? " codes" : "", columns[i].why);
}

/* Which whole numbers are codes. Each row has a column x of 100 lines. */
static void test_columns_codes(void **state)
{
    static const struct {
        const char *name, *head, *line, *expected;
    } rows[] = {
        {"few values", "x,y\n", "%d,1\n", "x 2: 100 numbers, 0 missing, in the first lines"},
        {"zeros in front", "x,y\n", "0%d,1\n", "x 3 codes: whole numbers with zeros in front"},
        {"ids by name", "user_id,y\n", "%d,1\n",
         "user_id 3 codes: whole numbers that name things, by the column's name"},
        {"ids by name, in humps", "userId,y\n", "%d,1\n",
         "userId 3 codes: whole numbers that name things, by the column's name"},
        {"a name that only ends so", "paid,y\n", "%d,1\n",
         "paid 2: 100 numbers, 0 missing, in the first lines"},
        {"decimals", "user_id,y\n", "%d.5,1\n",
         "user_id 2: 100 numbers, 0 missing, in the first lines"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static char text[1000];
        char *input = lines(rows[i].head, 100, rows[i].line);
        const struct drps_reader_options options = {
            .format = "csv", .on_columns = note_kinds, .columns_ctx = text};
        struct outcome o;
        read_text(input, &options, &o);
        assert_int_equal(o.rc, 0);
        if (strncmp(text, rows[i].expected, strlen(rows[i].expected)) != 0)
            fail_msg("%s: expected %s, found %s", rows[i].name, rows[i].expected, text);
        outcome_free(&o);
        free(input);
    }
}

/* Whole numbers `first` + `step` * (i % `distinct`), `zeros` of 100 replaced by 0. */
static void test_columns_codes_repeat(void **state)
{
    static const struct {
        const char *name;
        int n, first, step, distinct, zeros, codes;
    } rows[] = {
        {"ten values", 100, 1, 1, 10, 0, 1},
        {"eleven values without gaps", 100, 1, 1, 11, 0, 0},
        {"eleven values with gaps", 100, 1, 3, 11, 0, 1},
        {"each is there three times", 99, 1, 3, 33, 0, 0},
        {"each is there four times", 100, 1, 3, 25, 0, 1},
        {"0 and 1", 100, 0, 1, 2, 0, 0},
        {"1 and 2", 100, 1, 1, 2, 0, 1},
        {"most are 0", 100, 1, 1, 5, 51, 0},
        {"half are 0", 100, 1, 1, 5, 50, 1},
        {"49 lines", 49, 1, 2, 5, 0, 0},
        {"50 lines", 50, 1, 2, 5, 0, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static char text[1000];
        struct text t = {0};
        struct outcome o;
        text_add(&t, "x,y\n");
        for (int k = 0; k < rows[i].n; k++)
            text_add(&t, "%d,1\n",
                     k < rows[i].zeros ? 0 : rows[i].first + rows[i].step * (k % rows[i].distinct));
        const struct drps_reader_options options = {
            .format = "csv", .on_columns = note_kinds, .columns_ctx = text};
        read_text(t.p, &options, &o);
        assert_int_equal(o.rc, 0);
        if ((strstr(text, "codes") != NULL) != rows[i].codes)
            fail_msg("%s: %s", rows[i].name, text);
        outcome_free(&o);
        free(t.p);
    }
}

/* Cuts are at the sorted numbers 25, 50 and 75 of 0 .. 99, whatever their order in the file. */
static void test_columns_bins(void **state)
{
    static const struct options_row rows[] = {
        {.name = "cuts as given",
         .options = {.csv_kinds = "x:cuts(1;2.5)"},
         .input = "y,x\n1,0.9\n1,1\n1,2.5\n1,\n",
         .expected = "1 x=..1:1\n1 x=1..2.5:1\n1 x=2.5..:1\n1 x=:1\n"},
        {.name = "one number is no bin",
         .options = {.csv_kinds = "x:bins(4)"},
         .input = "y,x\n1,3\n0,3\n",
         .expected = "1 x=..:1\n0 x=..:1\n"},
        {.name = "equal numbers are in one bin",
         .options = {.csv_kinds = "x:bins(4)"},
         .input = "y,x\n1,1\n1,1\n1,1\n1,2\n",
         .expected = "1 x=..2:1\n1 x=..2:1\n1 x=..2:1\n1 x=2..:1\n"},
        {.name = "a word",
         .options = {.csv_kinds = "x:bins(4)"},
         .input = "y,x\n1,one\n",
         .error = "0:2:3: x is not a number: 'one'"},
        {.name = "cuts that do not grow",
         .options = {.csv_kinds = "x:cuts(2;2)"},
         .input = "y,x\n1,1\n",
         .error = "kinds of columns: 'x:cuts(2;2)' is not column:number, column:number(log), "
                  "column:category, column:date, column:bins(10), column:cuts(18;30), "
                  "column:ignore or column:label"},
        {.name = "too many bins",
         .options = {.csv_kinds = "x:bins(257)"},
         .input = "y,x\n1,1\n",
         .error = "kinds of columns: 'x:bins(257)' is not column:number, column:number(log), "
                  "column:category, column:date, column:bins(10), column:cuts(18;30), "
                  "column:ignore or column:label"},
        {.name = "bins of all columns",
         .options = {.csv_kinds = "*:bins(10)"},
         .input = "y,x\n1,1\n",
         .error = "kinds of columns: for all columns say number, category, date or ignore alone"},
    };
    struct text t = {0};
    struct outcome o;
    (void)state;
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
    text_add(&t, "y,x\n");
    for (int i = 0; i < 100; i++)
        text_add(&t, "1,%d\n", i * 37 % 100);
    read_text(t.p, &(struct drps_reader_options){.format = "csv", .csv_kinds = "x:bins(4)"}, &o);
    assert_int_equal(o.rc, 0);
    for (int i = 0; i < 100; i++) {
        static const char *const bins[] = {"..25", "25..50", "50..75", "75.."};
        char expected[40], *at = o.text.p;
        (void)snprintf(expected, sizeof(expected), "1 x=%s:1\n", bins[i * 37 % 100 / 25]);
        for (int k = 0; k < i; k++)
            at = strchr(at, '\n') + 1;
        assert_memory_equal(at, expected, strlen(expected));
    }
    outcome_free(&o);
    free(t.p);
}

static void test_columns_scales(void **state)
{
    static const struct options_row rows[] = {
        {.name = "standard", /* mean 2, standard deviation 2 */
         .options = {.csv_scale = "standard"},
         .input = "y,x\n1,0\n1,4\n",
         .expected = "1 x=:-1\n1 x=:1\n"},
        {.name = "robust", /* median 4, quartiles 2 and 8 */
         .options = {.csv_scale = "robust"},
         .input = "y,x\n1,8\n1,4\n1,2\n1,0\n",
         .expected = "1 x=:0.666666687\n1\n1 x=:-0.333333343\n1 x=:-0.666666687\n"},
        {.name = "log",
         .options = {.csv_scale = "log"},
         .input = "y,x\n1,0\n1,1\n1,-1\n",
         .expected = "1\n1 x=:0.693147182\n1 x=:-0.693147182\n"},
        {.name = "all equal",
         .options = {.csv_scale = "standard"},
         .input = "y,x\n1,5\n1,5\n",
         .expected = "1\n1\n"},
        {.name = "missing ones stay missing, and are not in the mean",
         .options = {.csv_scale = "standard"},
         .input = "y,x\n1,1\n1,\n1,3\n",
         .expected = "1 x=:-1\n1\n1 x=:1\n"},
        {.name = "as given for a column, which wins",
         .options = {.csv_scale = "log", .csv_kinds = "x:number(1;4),z:number(none)"},
         .input = "y,x,z\n1,9,1\n",
         .expected = "1 x=:2 z=:1\n"},
        {.name = "a unit of 0",
         .options = {.csv_kinds = "x:number(1;0)"},
         .input = "y,x\n1,9\n",
         .error = "kinds of columns: 'x:number(1;0)' is not column:number, column:number(log), "
                  "column:category, column:date, column:bins(10), column:cuts(18;30), "
                  "column:ignore or column:label"},
        {.name = "above the largest float",
         .options = {.csv_kinds = "x:number(0;1e-30)"},
         .input = "y,x\n1,1e20\n",
         .error = "0:2:3: x, scaled, is above the largest float: '1e20'"},
        {.name = "another scale",
         .options = {.csv_scale = "cube"},
         .input = "y,x\n1,9\n",
         .error = "scale 'cube' is not one of: standard, robust, log, none"},
    };
    (void)state;
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

/* Large numbers are scaled without being asked for: 100 of them, of mean 49.5. */
static void test_columns_scale_what_is_large(void **state)
{
    static const struct {
        const char *name, *line;
        const char *first, *second; /* the samples of 0 and 1 */
    } rows[] = {
        {"large", "1,%d\n", "1 x=:-1.71481609\n", "1 x=:-1.68017328\n"},
        {"small", "1,0.%02d\n", "1\n", "1 x=:0.00999999978\n"},
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char *input = lines("y,x\n", 100, rows[i].line), expected[100];
        struct outcome o;
        read_text(input, &(struct drps_reader_options){.format = "csv"}, &o);
        assert_int_equal(o.rc, 0);
        (void)snprintf(expected, sizeof(expected), "%s%s", rows[i].first, rows[i].second);
        if (strncmp(o.text.p, expected, strlen(expected)) != 0)
            fail_msg("%s: %.80s", rows[i].name, o.text.p);
        outcome_free(&o);
        read_text(input, &(struct drps_reader_options){.format = "csv", .csv_scale = "none"}, &o);
        if (i == 0) assert_memory_equal(o.text.p, "1\n1 x=:1\n", 9);
        outcome_free(&o);
        /* An earlier file had small numbers: nothing is learned from this one. */
        read_text(input, &(struct drps_reader_options){.format = "csv", .csv_kinds = "\nx:number"},
                  &o);
        if (i == 0) assert_memory_equal(o.text.p, "1\n1 x=:1\n", 9);
        outcome_free(&o);
        free(input);
    }
}

/* Where most numbers are 0 they stay 0, and the others are divided by the root mean square. */
static void test_columns_scale_keeps_zeros(void **state)
{
    struct text t = {0};
    struct outcome o;
    (void)state;
    text_add(&t, "y,x\n");
    for (int i = 0; i < 100; i++)
        text_add(&t, "1,%d\n", i % 4 == 3 ? 40 : 0);
    read_text(t.p, &(struct drps_reader_options){.format = "csv"}, &o);
    assert_memory_equal(o.text.p, "1\n1\n1\n1 x=:2\n", 13);
    outcome_free(&o);
    free(t.p);
}

/* Checks the fields of files of printf lines, i from 0 to n - 1, in this order. */
static void check_learned(const char *name, const char *const *texts, size_t n,
                          struct drps_reader_options options, const char *expected)
{
    static const char *const paths[] = {"0", "1"};
    struct files fs = {0};
    struct drps_io io = {.ops = &files_ops, .ctx = &fs};
    struct drps_reader *r;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_samples s = {0};
    size_t fields_n, samples = 0;
    for (size_t i = 0; i < n; i++)
        files_add(&fs, texts[i], strlen(texts[i]));
    assert_int_equal(drps_reader_open(&io, paths, n, &options, &r, &err), 0);
    const char *const *fields = drps_reader_fields(r, &fields_n);
    assert_int_equal(fields_n, 1);
    if (strcmp(fields[0], expected) != 0) fail_msg("%s: %s, not %s", name, fields[0], expected);
    while (drps_reader_next(r, &s, &err) > 0) /* what was looked at is read */
        samples += s.n;
    assert_int_equal(samples, 3000);
    drps_samples_free(&s);
    drps_reader_close(r);
}

/* A file that is sorted by a column shows small numbers first: all lines are learned from, with any
 * memory, in one file or two, with a header that looks like numbers, and bad lines aside. */
static void test_columns_learn_from_all_lines(void **state)
{
    static const struct {
        const char *name, *head, *line, *kinds, *scale, *format, *expected;
    } rows[] = {
        {"standard", "2000,1000\n", "1,%d\n", NULL, "standard", "csv",
         "1000:number(1499.5;866.02533)"},
        {"by themselves", "2000,1000\n", "1,%d\n", NULL, NULL, "csv",
         "1000:number(1499.5;866.02533)"},
        {"robust", "2000,1000\n", "1,%d\n", NULL, "robust", "csv", "1000:number(1500;1500)"},
        {"bins", "2000,1000\n", "1,%d\n", "1000:bins(3)", NULL, "csv", "1000:cuts(1000;2000)"},
        {"JSON lines", "", "{\"2000\": 1, \"1000\": %d}\n", NULL, "standard", "jsonl",
         "1000:number(1499.5;866.02533)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct drps_reader_options options = {.format = rows[i].format,
                                              .csv_header = DRPS_CSV_HEADER,
                                              .csv_label = "2000",
                                              .csv_kinds = rows[i].kinds,
                                              .csv_scale = rows[i].scale,
                                              .skip_bad_lines = 1};
        if (!*rows[i].head) options.csv_header = DRPS_CSV_HEADER_BY_LINE;
        char *all = lines(rows[i].head, 3000, rows[i].line);
        struct text first = {0}, second = {0};
        text_add(&second, "%s", rows[i].head);
        char *from = all + strlen(rows[i].head);
        for (int k = 0; k < 3000; k++) {
            char *end = strchr(from, '\n') + 1;
            if (k == 0) text_add(&first, "%s", rows[i].head);
            text_add(k < 1500 ? &first : &second, "%.*s", (int)(end - from), from);
            if (k == 2000) text_add(&second, "bad,line,here\n\n");
            from = end;
        }
        check_learned(rows[i].name, (const char *const[]){all}, 1, options, rows[i].expected);
        options.memory_bytes = 1 << 20;
        check_learned(rows[i].name, (const char *const[]){first.p, second.p}, 2, options,
                      rows[i].expected);
        free(all);
        free(first.p);
        free(second.p);
    }
}

/* Checks how the first field begins, of a file whose last lines are bad. */
static void check_learned_begins(const char *name, const char *text,
                                 struct drps_reader_options options, const char *expected)
{
    struct files fs = {0};
    struct drps_io io = {.ops = &files_ops, .ctx = &fs};
    const char *const paths[] = {"0"};
    struct drps_reader *r;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_samples s = {0};
    size_t fields_n;
    files_add(&fs, text, strlen(text));
    if (drps_reader_open(&io, paths, 1, &options, &r, &err) < 0) fail_msg("%s: %s", name, err.text);
    const char *field = drps_reader_fields(r, &fields_n)[0];
    if (strncmp(field, expected, strlen(expected)) != 0)
        fail_msg("%s: %s, not %s", name, field, expected);
    while (drps_reader_next(r, &s, &err) > 0)
        continue;
    assert_true(drps_reader_skipped(r) > 0);
    drps_samples_free(&s);
    drps_reader_close(r);
}

/* A line that is skipped decides neither scales nor bins, whatever it is skipped for, in a file
 * that its first lines are all of, and in a long one. */
static void test_columns_learn_nothing_from_bad_lines(void **state)
{
    static const struct {
        const char *name, *head, *line, *bad, *kinds, *format, *expected, *expected_long;
    } rows[] = {
        {"label", "y,x,z\n", "1,%d,0\n", "foo,1e30,0\n", NULL, "csv", "x:number(49.5;",
         "x:number(1499.5;"},
        {"number", "y,x,z\n", "1,%d,0\n", "1,1e30,1x\n", "z:number", "csv", "x:number(49.5;",
         "x:number(1499.5;"},
        {"infinite", "y,x,z\n", "1,%d,0\n", "1,1e30,inf\n", NULL, "csv", "x:number(49.5;",
         "x:number(1499.5;"},
        {"date", "y,x,z\n", "1,%d,2024-01-01\n", "1,1e30,no\n", "z:date", "csv", "x:number(49.5;",
         "x:number(1499.5;"},
        {"quote", "y,x,z\n", "1,%d,0\n", "1,1e30,\"0\n", NULL, "csv", "x:number(49.5;",
         "x:number(1499.5;"},
        {"few columns", "y,x,z\n", "1,%d,0\n", "1,1e30\n", NULL, "csv", "x:number(49.5;",
         "x:number(1499.5;"},
        {"many columns", "y,x,z\n", "1,%d,0\n", "1,1e30,0,0\n", NULL, "csv", "x:number(49.5;",
         "x:number(1499.5;"},
        {"bins", "y,x,z\n", "1,%d,0\n", "foo,1e30,0\nfoo,-3,0\nfoo,-2,0\nfoo,-1,0\n", "x:bins(2)",
         "csv", "x:cuts(50)", "x:cuts(1500)"},
        {"class", "y,x,z\n", "a,%d,0\n", ",1e30,0\n", NULL, "csv", "x:number(49.5;",
         "x:number(1499.5;"},
        {"clicks", "k,n,x\n", "1,2,%d\n", "3,2,1e30\n", NULL, "csv", "x:number(49.5;",
         "x:number(1499.5;"},
        {"JSON label", "", "{\"y\": 1, \"x\": %d}\n", "{\"x\": 1e30, \"y\": \"foo\"}\n", NULL,
         "jsonl", "x:number(49.5;", "x:number(1499.5;"},
        {"JSON without one", "", "{\"y\": 1, \"x\": %d}\n", "{\"x\": 1e30}\n", NULL, "jsonl",
         "x:number(49.5;", "x:number(1499.5;"},
        {"JSON null for one", "", "{\"y\": 1, \"x\": %d}\n", "{\"x\": 1e30, \"y\": null}\n", NULL,
         "jsonl", "x:number(49.5;", "x:number(1499.5;"},
        {"JSON two labels", "", "{\"y\": 1, \"x\": %d}\n", "{\"x\": 1e30, \"y\": 1, \"y\": 1}\n",
         NULL, "jsonl", "x:number(49.5;", "x:number(1499.5;"},
        {"JSON cut off", "", "{\"y\": 1, \"x\": %d}\n", "{\"y\": 1, \"x\": 1e30,\n", NULL, "jsonl",
         "x:number(49.5;", "x:number(1499.5;"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int is_long = 0; is_long < 2; is_long++) {
            const int clicks = strcmp(rows[i].name, "clicks") == 0;
            struct drps_classes *classes =
                strcmp(rows[i].name, "class") == 0 ? drps_classes_new() : NULL;
            const struct drps_reader_options options = {.format = rows[i].format,
                                                        .csv_label = clicks ? NULL : "y",
                                                        .clicks = clicks ? "k" : NULL,
                                                        .impressions = clicks ? "n" : NULL,
                                                        .classes = classes,
                                                        .csv_kinds = rows[i].kinds,
                                                        .csv_scale = "standard",
                                                        .skip_bad_lines = 1};
            char *text = lines(rows[i].head, is_long ? 3000 : 100, rows[i].line);
            text = realloc(text, strlen(text) + strlen(rows[i].bad) + 1);
            assert_non_null(text);
            strcat(text, rows[i].bad);
            check_learned_begins(rows[i].name, text, options,
                                 is_long ? rows[i].expected_long : rows[i].expected);
            drps_classes_free(classes);
            free(text);
        }
    }
}

/* With 1 MiB the samples of 512 columns fit. */
static void test_columns_samples_take_from_the_memory(void **state)
{
    const struct drps_reader_options options = {
        .format = "csv", .csv_label = "y", .csv_scale = "robust", .memory_bytes = 1 << 20};
    (void)state;
    for (size_t n = 512; n < 514; n++) {
        char *text = malloc(20 * n + 100), *to = text;
        struct outcome o;
        assert_non_null(text);
        to += sprintf(to, "y");
        for (size_t i = 0; i < n; i++)
            to += sprintf(to, ",c%zu", i);
        to += sprintf(to, "\n1");
        for (size_t i = 0; i < n; i++)
            to += sprintf(to, ",0.5");
        (void)sprintf(to, "\n");
        read_text(text, &options, &o);
        if (n == 512 ? o.rc < 0 : o.rc != DRPS_E_MEMORY_BUDGET)
            fail_msg("%zu columns: %d, %s", n, o.rc, o.err.text);
        if (n > 512) assert_non_null(strstr(o.err.text, "at most 512 columns"));
        outcome_free(&o);
        free(text);
    }
}

static void test_columns_crosses(void **state)
{
    static const struct options_row rows[] = {
        {.name = "two",
         .options = {.csv_cross = "a*b"},
         .input = "y,a,b\n1,p,q\n0,,r\n",
         .expected = "1 a=p:1 b=q:1 a*b=p*q:1\n0 a=:1 b=r:1 a*b=*r:1\n"},
        {.name = "three, and another; of one that is left out itself",
         .options = {.csv_cross = "a*b*c,b*c", .csv_kinds = "a:ignore"},
         .input = "y,a,b,c\n1,p,q,r\n",
         .expected = "1 b=q:1 c=r:1 a*b*c=p*q*r:1 b*c=q*r:1\n"},
        {.name = "stars and backslashes keep apart",
         .options = {.csv_cross = "a*b"},
         .input = "y,a,b\n1,x*,y\n1,x,*y\n1,x\\,y\n",
         .expected = "1 a=x*:1 b=y:1 a*b=x\\**y:1\n1 a=x:1 b=*y:1 a*b=x*\\*y:1\n"
                     "1 a=x\\:1 b=y:1 a*b=x\\\\*y:1\n"},
        {.name = "bins, dates and numbers",
         .options = {.csv_cross = "a*t*n", .csv_kinds = "a:cuts(5)"},
         .input = "y,a,t,n\n1,7,2017-11-06 03:00,0.5\n",
         .expected = "1 a=5..:1 t=hour=03:1 t=weekday=Mon:1 t=month=11:1 n=:0.5 "
                     "a*t*n=5..*hour=03*0.5:1\n"},
        {.name = "names with stars",
         .options = {.csv_cross = "a*b*c"},
         .input = "y,a*b,c\n1,p,q\n",
         .expected = "1 a*b=p:1 c=q:1 a*b*c=p*q:1\n"},
        {.name = "no such column",
         .options = {.csv_cross = "a*z"},
         .input = "y,a,b\n1,p,q\n",
         .error = "cross 'a*z' is not of 2 to 8 columns, joined by stars; there are: y, a, b"},
        {.name = "nine columns",
         .options = {.csv_cross = "a*b*c*d*e*f*g*h*i"},
         .input = "y,a,b,c,d,e,f,g,h,i\n1,p,p,p,p,p,p,p,p,p\n",
         .error = "cross 'a*b*c*d*e*f*g*h*i' is not of 2 to 8 columns, joined by stars; there are: "
                  "y, a, b, c, d, e, f, g, h, i"},
        {.name = "one column",
         .options = {.csv_cross = "a"},
         .input = "y,a,b\n1,p,q\n",
         .error = "cross 'a' is not two columns or more, joined by stars"},
        {.name = "a column twice",
         .options = {.csv_cross = "a*a"},
         .input = "y,a,b\n1,p,q\n",
         .error = "cross 'a*a' has a column twice"},
        {.name = "the label",
         .options = {.csv_cross = "a*y"},
         .input = "y,a,b\n1,p,q\n",
         .error = "cross 'a*y' has the label in it"},
    };
    (void)state;
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

/* What was learned is in the fields' names; with them another file of any numbers gives the samples
 * that it would give as a part of the first one. */
static void test_columns_are_read_again_alike(void **state)
{
    static const struct drps_reader_options first = {.format = "csv",
                                                     .csv_kinds = "b:bins(3),s:number(robust)",
                                                     .csv_scale = "standard",
                                                     .csv_cross = "b*c"};
    struct text t = {0};
    struct outcome whole, part;
    (void)state;
    text_add(&t, "y,b,s,n,c,t\n");
    for (int i = 0; i < 200; i++)
        text_add(&t, "1,%d,%d.5,%d,c%d,2020-01-0%d\n", i * 7 % 200, i * i % 91, i * 3, i % 5,
                 1 + i % 9);
    read_text(t.p, &first, &whole);
    assert_int_equal(whole.rc, 0);
    struct drps_reader_options again = {.format = "csv", .csv_scale = "standard"};
    struct files fs = {0};
    const char *path = "0";
    struct drps_io io = {.ops = &files_ops, .ctx = &fs};
    struct drps_reader *r;
    struct drps_err err = DRPS_ERR_INIT;
    size_t n;
    files_add(&fs, t.p, strlen(t.p));
    assert_int_equal(drps_reader_open(&io, &path, 1, &first, &r, &err), 0);
    const char *const *fields = drps_reader_fields(r, &n);
    again.csv_kinds = drps_reader_csv_kinds(first.csv_kinds, fields, n);
    drps_reader_close(r);
    /* Samples 0 to 4, read alone. */
    char *end = t.p;
    for (int i = 0; i < 6; i++)
        end = strchr(end, '\n') + 1;
    *end = '\0';
    read_text(t.p, &again, &part);
    assert_int_equal(part.rc, 0);
    assert_memory_equal(part.text.p, whole.text.p, part.text.n);
    assert_true(part.text.n > 100);
    outcome_free(&part);
    outcome_free(&whole);
    free((char *)again.csv_kinds);
    free(t.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_without_a_header),
        cmocka_unit_test(test_columns_without_the_label),
        cmocka_unit_test(test_columns_dates),
        cmocka_unit_test(test_columns_weekdays_follow_each_other),
        cmocka_unit_test(test_columns_codes),
        cmocka_unit_test(test_columns_codes_repeat),
        cmocka_unit_test(test_columns_bins),
        cmocka_unit_test(test_columns_scales),
        cmocka_unit_test(test_columns_scale_what_is_large),
        cmocka_unit_test(test_columns_scale_keeps_zeros),
        cmocka_unit_test(test_columns_learn_from_all_lines),
        cmocka_unit_test(test_columns_learn_nothing_from_bad_lines),
        cmocka_unit_test(test_columns_samples_take_from_the_memory),
        cmocka_unit_test(test_columns_crosses),
        cmocka_unit_test(test_columns_are_read_again_alike),
    };
    return cmocka_run_group_tests_name("columns", tests, NULL, NULL);
}
