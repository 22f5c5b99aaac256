/* Format idx: samples as those of libsvm text, labels from another file, and files that lie. */
#include "index/reader/reader_files.h"
#include "support/scratch.h"

#define BYTES(text) (text), sizeof(text) - 1

/* Two samples of 2 x 2 bytes, and their labels. */
#define HEAD_2X2 "\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x02"
#define IMAGES HEAD_2X2 "\xff\0\x33\0\0\0\0\x01"
#define LABELS "\0\0\x08\x01\0\0\0\x02\x07\x03"
static const char samples[] = "7 1:1 3:0.200000003\n3 4:0.00392156886\n";
static const char *const label_path[] = {"1"};

struct idx_case {
    const char *name, *images;
    size_t images_n;
    const char *labels;
    size_t labels_n;
    const char *expected, *error;
};

static void read_case(const struct idx_case *c, struct drps_reader_options o, size_t step)
{
    static const char *const paths[] = {"0"};
    struct files fs = {.step = step};
    const struct drps_io io = {.ops = &files_ops, .ctx = &fs};
    struct outcome out;
    files_add(&fs, c->images, c->images_n);
    files_add(&fs, c->labels, c->labels_n);
    if (c->labels) {
        o.label_files = label_path;
        o.label_files_n = 1;
    }
    read_paths(&io, paths, 1, &o, 0, &out);
    check_outcome(c->name, "bytes", &out, c->expected, c->error);
    if (!c->error) assert_string_equal(out.format, "idx");
    if (!c->error) assert_int_equal(out.bytes, c->images_n);
    outcome_free(&out);
}

static void read_cases(const struct idx_case *cases, size_t n, const struct drps_reader_options *o)
{
    for (size_t i = 0; i < n; i++)
        for (size_t step = 0; step < 4; step++)
            read_case(&cases[i], *o, step);
}
#define READ_CASES(cases, o) read_cases((cases), sizeof(cases) / sizeof((cases)[0]), (o))

static void test_idx_samples(void **state)
{
    static const struct idx_case cases[] = {
        {"3 dimensions", BYTES(IMAGES), BYTES(LABELS), samples, NULL},
        {"1 dimension", BYTES("\0\0\x08\x01\0\0\0\x02\xff\0"), BYTES(LABELS), "7 1:1\n3\n", NULL},
        {"2 dimensions", BYTES("\0\0\x08\x02\0\0\0\x02\0\0\0\x03\0\0\xff\xff\0\0"), BYTES(LABELS),
         "7 3:1\n3 1:1\n", NULL},
        {"4 dimensions", BYTES("\0\0\x08\x04\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\0\0\x02\0\xff\0\0"),
         BYTES(LABELS), "7 2:1\n3\n", NULL},
        {"signed bytes", BYTES("\0\0\x09\x02\0\0\0\x02\0\0\0\x02\xff\0\x7f\x80"), BYTES(LABELS),
         "7 1:-1\n3 1:127 2:-128\n", NULL},
        {"shorts", BYTES("\0\0\x0b\x02\0\0\0\x02\0\0\0\x01\x01\x02\x80\0"), BYTES(LABELS),
         "7 1:258\n3 1:-32768\n", NULL},
        {"ints", BYTES("\0\0\x0c\x02\0\0\0\x02\0\0\0\x01\0\x01\0\0\xff\xff\xff\xfe"), BYTES(LABELS),
         "7 1:65536\n3 1:-2\n", NULL},
        {"floats", BYTES("\0\0\x0d\x02\0\0\0\x02\0\0\0\x01\x3f\xc0\0\0\x80\0\0\0"), BYTES(LABELS),
         "7 1:1.5\n3\n", NULL},
        {"doubles",
         BYTES("\0\0\x0e\x02\0\0\0\x02\0\0\0\x01\xbf\xf8\0\0\0\0\0\0\x3f\xe0\0\0\0\0\0\0"),
         BYTES(LABELS), "7 1:-1.5\n3 1:0.5\n", NULL},
        {"labels of ints", BYTES(IMAGES), BYTES("\0\0\x0c\x01\0\0\0\x02\xff\xff\xff\xff\0\0\1\0"),
         "-1 1:1 3:0.200000003\n256 4:0.00392156886\n", NULL},
        {"labels of floats", BYTES(IMAGES), BYTES("\0\0\x0d\x01\0\0\0\x02\x3f\xc0\0\0\0\0\0\0"),
         "1.5 1:1 3:0.200000003\n0 4:0.00392156886\n", NULL},
        {"no samples", BYTES("\0\0\x08\x02\0\0\0\0\0\0\0\x01"), BYTES("\0\0\x08\x01\0\0\0\0"), "",
         NULL},
    };
    static const struct drps_reader_options automatic = {.format = "auto"},
                                            named = {.format = "idx"};
    (void)state;
    READ_CASES(cases, &automatic);
    READ_CASES(cases, &named);
}

/* Where no label is needed none is looked for; one that is named is read. */
static void test_idx_without_labels(void **state)
{
    static const struct idx_case cases[] = {
        {"without", BYTES(IMAGES), NULL, 0, "0 1:1 3:0.200000003\n0 4:0.00392156886\n", NULL},
        {"named", BYTES(IMAGES), BYTES(LABELS), samples, NULL},
    };
    static const struct drps_reader_options optional = {.label_optional = 1};
    (void)state;
    READ_CASES(cases, &optional);
}

static void test_idx_bad_files(void **state)
{
    static const struct idx_case cases[] = {
        {"text", BYTES("1 1:1\n"), BYTES(LABELS), NULL,
         "0: byte 0: no idx file, which begins with two bytes of 0, and this with 0x31 0x20"},
        {"a type that is none", BYTES("\0\0\x0a\x01\0\0\0\x02\1\2"), BYTES(LABELS), NULL,
         "0: byte 2: type 0x0a is none of idx: known are 0x08 (unsigned byte), 0x09 (signed byte), "
         "0x0b (short), 0x0c (int), 0x0d (float) and 0x0e (double)"},
        {"no dimension", BYTES("\0\0\x08\0\0\0\0\x02"), BYTES(LABELS), NULL,
         "0: byte 3: 0 dimensions, and 1 to 4 are read"},
        {"many dimensions", BYTES("\0\0\x08\xff\0\0\0\x02"), BYTES(LABELS), NULL,
         "0: byte 3: 255 dimensions, and 1 to 4 are read"},
        {"cut in the magic", BYTES("\0\0\x08"), BYTES(LABELS), NULL,
         "0: ends at byte 3, within the header of idx"},
        {"cut in the sizes", BYTES("\0\0\x08\x02\0\0\0\x02\0\0"), BYTES(LABELS), NULL,
         "0: ends at byte 10, within the header of idx"},
        {"a size of 0", BYTES("\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\0"), BYTES(LABELS), NULL,
         "0: byte 12: the size of dimension 3 is 0"},
        {"sizes whose product overflows 32 bits", BYTES("\0\0\x08\x03\0\0\0\x02\0\1\0\0\0\1\0\0"),
         BYTES(LABELS), NULL,
         "0: byte 12: a sample would have more than 2^28 numbers: the size of dimension 3 is "
         "65536"},
        {"sizes whose product overflows 64 bits",
         BYTES("\0\0\x0e\x04\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
         BYTES(LABELS), NULL,
         "0: byte 8: a sample would have more than 2^28 numbers: the size of dimension 2 is "
         "4294967295"},
        {"a sample that does not fit the memory", BYTES("\0\0\x08\x02\0\0\0\x02\x10\0\0\0"),
         BYTES(LABELS), NULL,
         "0: a sample of 268435456 bytes is larger than 33554432, half of the reader's memory: "
         "give the reader more memory"},
        {"features that do not fit the memory", BYTES("\0\0\x08\x02\0\0\0\x02\x01\0\0\0"),
         BYTES(LABELS), NULL,
         "0: ends at byte 12, and its header promises 2 items of 16777216 bytes, up to byte "
         "33554444: the file is cut off"},
        {"cut in a sample", BYTES(HEAD_2X2 "\xff\0\x33\0\0"), BYTES(LABELS), NULL,
         "0: ends at byte 21, and its header promises 2 items of 4 bytes, up to byte 24: the file "
         "is cut off"},
        {"most samples that a header can promise", BYTES("\0\0\x08\x01\xff\xff\xff\xff\1"),
         BYTES("\0\0\x08\x01\xff\xff\xff\xff\1\2"), NULL,
         "0: ends at byte 9, and its header promises 4294967295 items of 1 bytes, up to byte "
         "4294967303: the file is cut off"},
        {"goes on", BYTES(IMAGES "\0"), BYTES(LABELS), NULL,
         "0: goes on at byte 24, behind the 2 items that its header promises"},
        {"NaN", BYTES("\0\0\x0d\x02\0\0\0\x02\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\x7f\xc0\0\0"),
         BYTES(LABELS), NULL, "0: byte 24: nan is no number that a float can hold"},
        {"above the largest float",
         BYTES("\0\0\x0e\x02\0\0\0\x02\0\0\0\x01\x7f\xe0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
         BYTES(LABELS), NULL, "0: byte 12: 8.98847e+307 is no number that a float can hold"},
    };
    static const struct drps_reader_options o = {.format = "idx"};
    (void)state;
    READ_CASES(cases, &o);
}

static void test_idx_bad_labels(void **state)
{
    static const struct idx_case cases[] = {
        {"empty", BYTES(IMAGES), "", 0, NULL, "1: ends at byte 0, within the header of idx"},
        {"fewer", BYTES(IMAGES), BYTES("\0\0\x08\x01\0\0\0\x01\x07"), NULL,
         "1: byte 4: 1 labels, and 0 has 2 samples: these are others' labels"},
        {"more", BYTES(IMAGES), BYTES("\0\0\x08\x01\0\0\0\x03\x07\x07\x07"), NULL,
         "1: byte 4: 3 labels, and 0 has 2 samples: these are others' labels"},
        {"images", BYTES(IMAGES), BYTES(IMAGES), NULL,
         "1: byte 3: 3 dimensions, and labels have one: is this a file of labels?"},
        {"text", BYTES(IMAGES), BYTES("7\n3\n"), NULL,
         "1: byte 0: no idx file, which begins with two bytes of 0, and this with 0x37 0x0a"},
        {"cut", BYTES(IMAGES), BYTES("\0\0\x08\x01\0\0\0\x02\x07"), NULL,
         "1: ends at byte 9, and its header promises 2 items of 1 bytes, up to byte 10: the file "
         "is cut off"},
        {"goes on", BYTES(IMAGES), BYTES(LABELS "\0"), NULL,
         "1: goes on at byte 10, behind the 2 items that its header promises"},
        {"infinite", BYTES(IMAGES), BYTES("\0\0\x0d\x01\0\0\0\x02\0\0\0\0\xff\x80\0\0"), NULL,
         "1: byte 12: the label -inf is no number that a float can hold"},
        {"not there", BYTES(IMAGES), NULL, 0, NULL,
         "0: idx has its labels in another file, which is found for names like "
         "train-images-idx3-ubyte: name the file of labels"},
    };
    static const struct drps_reader_options o = {.format = "idx"};
    (void)state;
    READ_CASES(cases, &o);
}

static void test_idx_options(void **state)
{
    static const char *const csv[] = {"1"}, *const dash[] = {"-"}, *const two[] = {"1", "1"};
    static const struct {
        const char *name, *data;
        size_t n;
        struct drps_reader_options o;
        const char *error;
    } cases[] = {
        {"lines to skip",
         BYTES(IMAGES),
         {.label_files = csv, .label_files_n = 1, .skip_bad_lines = 1},
         "0: idx has no lines that could be skipped: leave that out"},
        {"a label column",
         BYTES(IMAGES),
         {.csv_label = "y"},
         "0: to name a label column is for csv and jsonl, and this is read as idx, which has no "
         "columns: leave it out"},
        {"labels of text",
         BYTES("1 1:1\n"),
         {.label_files = csv, .label_files_n = 1},
         "0: files of labels are for idx, and this is read as libsvm, which has its labels with "
         "the samples: leave them out"},
        {"labels on stdin",
         BYTES(IMAGES),
         {.label_files = dash, .label_files_n = 1},
         "labels beside the data are in a file: '-' (stdin) is none"},
        {"two for one",
         BYTES(IMAGES),
         {.label_files = two, .label_files_n = 2},
         "2 files of labels for 1 of data: name one for each, in the same order"},
    };
    static const char *const paths[] = {"0"};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct files fs = {0};
        const struct drps_io io = {.ops = &files_ops, .ctx = &fs};
        struct outcome out;
        files_add(&fs, cases[i].data, cases[i].n);
        files_add(&fs, BYTES(LABELS));
        read_paths(&io, paths, 1, &cases[i].o, 0, &out);
        check_outcome(cases[i].name, "bytes", &out, NULL, cases[i].error);
        outcome_free(&out);
    }
}

/* The place of a number, from 0. */
static void test_idx_fields(void **state)
{
    static const struct drps_reader_options fields = {.fields = 1},
                                            of_four = {.fields = 1, .field_count = 4},
                                            of_five = {.fields = 1, .field_count = 5},
                                            one_feature = {.fields = 1, .one_feature = 1};
    static const struct idx_case bytes[] = {{"bytes", BYTES(IMAGES), BYTES(LABELS),
                                             "7 0:1:1 2:3:0.200000003\n3 3:4:0.00392156886\n",
                                             NULL}};
    static const struct idx_case others[] = {
        {"signed bytes", BYTES("\0\0\x09\x02\0\0\0\x02\0\0\0\x03\xff\0\x7f\0\0\x80"), BYTES(LABELS),
         "7 0:1:-1 2:3:127\n3 2:3:-128\n", NULL},
        {"65536 numbers", BYTES("\0\0\x08\x03\0\0\0\x02\0\0\x01\0\0\0\x01\0"), BYTES(LABELS), NULL,
         "0: byte 8: samples of 256 x 256 = 65536 numbers, each of which would be a field, and "
         "there are at most 65535: make them smaller, or use a model without fields"},
    };
    static const struct idx_case most[] = {
        {"65535 numbers", BYTES("\0\0\x08\x02\0\0\0\x02\0\0\xff\xff"), BYTES(LABELS), NULL,
         "0: ends at byte 12, and its header promises 2 items of 65535 bytes, up to byte 131082: "
         "the file is cut off"}};
    static const struct idx_case as_one[] = {{"one feature", BYTES(IMAGES), BYTES(LABELS),
                                              "7 0:0:1 2:0:0.200000003\n3 3:0:0.00392156886\n",
                                              NULL}};
    static const struct idx_case five[] = {
        {"another size", BYTES(IMAGES), BYTES(LABELS), NULL,
         "0: byte 8: samples of 2 x 2 = 4 numbers, and the model reads those of 5: give it samples "
         "of that size"}};
    (void)state;
    READ_CASES(bytes, &fields);
    READ_CASES(bytes, &of_four);
    READ_CASES(others, &fields);
    READ_CASES(most, &fields);
    READ_CASES(as_one, &one_feature);
    READ_CASES(five, &of_five);
}

/* The last number of every sample may be 0. */
static void test_idx_counts_fields(void **state)
{
    static const char *const paths[] = {"0"};
    (void)state;
    for (int fields = 0; fields < 2; fields++) {
        const struct drps_reader_options o = {
            .label_files = label_path, .label_files_n = 1, .fields = fields};
        struct files fs = {0};
        const struct drps_io io = {.ops = &files_ops, .ctx = &fs};
        struct drps_samples s = {0};
        struct drps_reader *r;
        files_add(&fs, BYTES(HEAD_2X2 "\xff\0\0\0\0\0\0\0"));
        files_add(&fs, BYTES(LABELS));
        assert_int_equal(drps_reader_open(&io, paths, 1, &o, &r, NULL), 0);
        assert_int_equal(drps_reader_next(r, &s, NULL), 1);
        assert_int_equal(drps_reader_field_count(r), fields ? 4 : 0);
        drps_samples_free(&s);
        drps_reader_close(r);
    }
}

/* Reads two samples as numbers by place. Returns an error's text, or "". */
static const char *read_places(const struct drps_reader_options *options, const char *images,
                               size_t images_n, float *numbers, uint32_t *each_out)
{
    static const char *const paths[] = {"0"};
    static struct drps_err err;
    struct drps_reader_options o = *options;
    struct files fs = {0};
    const struct drps_io io = {.ops = &files_ops, .ctx = &fs};
    struct drps_samples s = {0};
    struct drps_reader *r;
    err = (struct drps_err)DRPS_ERR_INIT;
    o.label_files = label_path;
    o.label_files_n = 1;
    o.fields = o.one_feature = 1;
    o.numbers = DRPS_READER_AS_FITS;
    files_add(&fs, images, images_n);
    files_add(&fs, BYTES(LABELS));
    assert_int_equal(drps_reader_open(&io, paths, 1, &o, &r, &err), 0);
    if (drps_reader_next(r, &s, &err) == 1) {
        assert_int_equal(drps_reader_has_numbers(r), 1);
        assert_int_equal(drps_reader_field_count(r), s.numbers_each);
        assert_int_equal(s.n, 2);
        assert_int_equal(s.starts[2], 0);
        *each_out = s.numbers_each;
        memcpy(numbers, s.numbers, 2 * s.numbers_each * sizeof(*numbers));
    }
    drps_samples_free(&s);
    drps_reader_close(r);
    return err.text;
}

struct places_case {
    const char *name;
    struct drps_image_shape image;
    const char *images;
    size_t n;
    uint32_t each;
    float numbers[24];
};

static void test_idx_numbers_by_place(void **state)
{
    static const struct places_case cases[] = {
        {"bytes", {0, 0, 0}, BYTES(IMAGES), 4, {1, 0, 0.2f, 0, 0, 0, 0, 1 / 255.0f}},
        {"an image", {1, 2, 2}, BYTES(IMAGES), 4, {1, 0, 0.2f, 0, 0, 0, 0, 1 / 255.0f}},
        {"an image of any channels",
         {0, 2, 2},
         BYTES(IMAGES),
         4,
         {1, 0, 0.2f, 0, 0, 0, 0, 1 / 255.0f}},
        {"floats, and -0",
         {0, 0, 0},
         BYTES("\0\0\x0d\x02\0\0\0\x02\0\0\0\x02\x3f\xc0\0\0\x80\0\0\0\0\0\0\0\xbf\x80\0\0"),
         2,
         {1.5f, 0, 0, -1}},
        {"channels first",
         {3, 1, 2},
         BYTES("\0\0\x09\x04\0\0\0\x02\0\0\0\x03\0\0\0\x01\0\0\0\x02"
               "\1\2\3\4\5\6\7\10\11\12\13\14"),
         6,
         {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
        {"channels last",
         {3, 1, 2},
         BYTES("\0\0\x09\x04\0\0\0\x02\0\0\0\x01\0\0\0\x02\0\0\0\x03"
               "\1\2\3\4\5\6\7\10\11\12\13\14"),
         6,
         {1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12}},
        {"channels last, any",
         {0, 1, 2},
         BYTES("\0\0\x08\x04\0\0\0\x02\0\0\0\x01\0\0\0\x02\0\0\0\x03"
               "\xff\0\0\0\xff\0\0\0\0\0\0\xff"),
         6,
         {1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}},
        {"flat",
         {3, 1, 2},
         BYTES("\0\0\x09\x02\0\0\0\x02\0\0\0\x06\1\2\3\4\5\6\7\10\11\12\13\14"),
         6,
         {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct drps_reader_options o = {.image = cases[i].image};
        float numbers[24] = {0};
        uint32_t each = 0;
        const char *error = read_places(&o, cases[i].images, cases[i].n, numbers, &each);
        if (*error) fail_msg("%s: %s", cases[i].name, error);
        assert_int_equal(each, cases[i].each);
        if (memcmp(numbers, cases[i].numbers, 2 * each * sizeof(*numbers)) != 0)
            fail_msg("%s: other numbers", cases[i].name);
    }
}

#define HEAD_14X56 "\0\0\x08\x03\0\0\0\x02\0\0\0\x0e\0\0\0\x38"

static void test_idx_shapes_are_checked(void **state)
{
    static const struct {
        const char *name;
        struct drps_image_shape image;
        uint32_t field_count;
        const char *images;
        size_t n;
        const char *error;
    } cases[] = {
        {"other rows",
         {1, 28, 28},
         0,
         BYTES(HEAD_14X56),
         "0: byte 8: samples of 14 x 56 numbers, and the net reads `image 1 28 28`; write the "
         "channels, rows and columns that a sample has"},
        {"rows and columns changed",
         {1, 56, 14},
         0,
         BYTES(HEAD_14X56),
         "0: byte 8: samples of 14 x 56 numbers, and the net reads `image 1 56 14`; write the "
         "channels, rows and columns that a sample has"},
        {"more channels than the file has",
         {2, 14, 28},
         0,
         BYTES(HEAD_14X56),
         "0: byte 8: samples of 14 x 56 numbers, and the net reads `image 2 14 28`; write the "
         "channels, rows and columns that a sample has"},
        {"any channels of another size",
         {0, 28, 28},
         0,
         BYTES(HEAD_14X56),
         "0: byte 8: samples of 14 x 56 numbers, and the net reads `image channels 28 28`; write "
         "the channels, rows and columns that a sample has"},
        {"flat ones of another size",
         {0, 3, 3},
         0,
         BYTES("\0\0\x08\x02\0\0\0\x02\0\0\0\x0a"),
         "0: byte 8: samples of 10 numbers, and the net reads `image channels 3 3`; write the "
         "channels, rows and columns that a sample has"},
        {"flat ones of other channels",
         {2, 3, 3},
         0,
         BYTES("\0\0\x08\x02\0\0\0\x02\0\0\0\x09"),
         "0: byte 8: samples of 9 numbers, and the net reads `image 2 3 3`; write the channels, "
         "rows and columns that a sample has"},
        {"channels in the middle",
         {3, 2, 4},
         0,
         BYTES("\0\0\x08\x04\0\0\0\x02\0\0\0\x02\0\0\0\x03\0\0\0\x04"),
         "0: byte 8: samples of 2 x 3 x 4 numbers, and the net reads `image 3 2 4`; write the "
         "channels, rows and columns that a sample has"},
        {"another count than the model's",
         {0, 14, 56},
         1568,
         BYTES(HEAD_14X56),
         "0: byte 8: samples of 14 x 56 = 784 numbers, and the model reads those of 1568: give it "
         "samples of that size"},
        {"too many numbers",
         {0, 0, 0},
         0,
         BYTES("\0\0\x08\x02\0\0\0\x02\0\x40\0\1"),
         "0: byte 8: samples of 4194305 = 4194305 numbers, and there may be 4194304: make them "
         "smaller"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct drps_reader_options o = {.image = cases[i].image,
                                              .field_count = cases[i].field_count};
        float numbers[24];
        uint32_t each;
        const char *error = read_places(&o, cases[i].images, cases[i].n, numbers, &each);
        if (strcmp(error, cases[i].error) != 0)
            fail_msg("%s\nexpected: %s\nfound:    %s", cases[i].name, cases[i].error, error);
    }
}

static void test_idx_several_files(void **state)
{
    static const char *const labels[] = {"2", "3"}, *const paths[] = {"0", "1"};
    static const struct {
        const char *name, *second;
        size_t n;
        const char *expected, *error;
    } cases[] = {
        {"another shape of as many", BYTES("\0\0\x08\x02\0\0\0\x01\0\0\0\x04\0\0\0\xff"),
         "7 1:1 3:0.200000003\n3 4:0.00392156886\n9 4:1\n", NULL},
        {"more numbers", BYTES("\0\0\x08\x03\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\0\0\0"), NULL,
         "1: byte 8: samples of 2 x 3 = 6 numbers, and those of 0 have 4"},
        {"no byte behind", BYTES(""), NULL, "1: ends at byte 0, within the header of idx"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct drps_reader_options o = {.label_files = labels, .label_files_n = 2};
        struct files fs = {0};
        const struct drps_io io = {.ops = &files_ops, .ctx = &fs};
        struct outcome out;
        files_add(&fs, BYTES(IMAGES));
        files_add(&fs, cases[i].second, cases[i].n);
        files_add(&fs, BYTES(LABELS));
        files_add(&fs, BYTES("\0\0\x08\x01\0\0\0\x01\x09"));
        read_paths(&io, paths, 2, &o, 0, &out);
        check_outcome(cases[i].name, "bytes", &out, cases[i].expected, cases[i].error);
        outcome_free(&out);
    }
}

static void test_idx_after_an_empty_file(void **state)
{
    static const char *const labels[] = {"2", "2"}, *const paths[] = {"0", "1"};
    const struct drps_reader_options o = {.label_files = labels, .label_files_n = 2};
    struct files fs = {0};
    const struct drps_io io = {.ops = &files_ops, .ctx = &fs};
    struct outcome out;
    (void)state;
    files_add(&fs, BYTES(""));
    files_add(&fs, BYTES(IMAGES));
    files_add(&fs, BYTES(LABELS));
    read_paths(&io, paths, 2, &o, 0, &out);
    check_outcome("empty first", "bytes", &out, NULL,
                  "0: ends at byte 0, within the header of idx");
    outcome_free(&out);
}

/* A share may end with a file, not within one. */
static void test_idx_in_shares(void **state)
{
    static const char *const labels[] = {"2", "2"}, *const paths[] = {"0", "1"};
    static const struct drps_reader_share second = {.begin = {1, 0}, .end = {2, 0}},
                                          within = {.begin = {0, 9}, .end = {2, 0}};
    static const struct {
        const char *name;
        const struct drps_reader_share *share;
        const char *expected, *error;
    } cases[] = {
        {"the second file", &second, samples, NULL},
        {"within a file", &within, NULL,
         "0: a file of format idx cannot be read in shares: give as many files as there are "
         "readers"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct drps_reader_options o = {
            .label_files = labels, .label_files_n = 2, .share = cases[i].share};
        struct files fs = {0};
        const struct drps_io io = {.ops = &files_ops, .ctx = &fs};
        struct outcome out;
        files_add(&fs, BYTES("\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x02\1\1\1\1\1\1\1\1"));
        files_add(&fs, BYTES(IMAGES));
        files_add(&fs, BYTES(LABELS));
        read_paths(&io, paths, 2, &o, 0, &out);
        check_outcome(cases[i].name, "bytes", &out, cases[i].expected, cases[i].error);
        outcome_free(&out);
    }
}

/* Each read fails in turn: the reader says so, and nothing leaks. */
static void test_idx_reads_that_fail(void **state)
{
    static const char *const paths[] = {"0"};
    const struct drps_reader_options o = {.label_files = label_path, .label_files_n = 1};
    int failed = 1;
    (void)state;
    for (int at = 1; failed; at++) {
        struct files fs = {.step = 3, .fail_at = at, .fail_code = -EIO};
        const struct drps_io io = {.ops = &files_ops, .ctx = &fs};
        struct outcome out;
        files_add(&fs, BYTES(IMAGES));
        files_add(&fs, BYTES(LABELS));
        read_paths(&io, paths, 1, &o, 0, &out);
        failed = fs.reads >= at;
        assert_int_equal(out.rc, failed ? -EIO : 0);
        outcome_free(&out);
    }
}

/* Labels are names of classes: those of numbers. */
static void test_idx_classes(void **state)
{
    struct drps_classes *classes = drps_classes_new();
    const struct drps_reader_options o = {
        .format = "auto", .classes = classes, .labels = DRPS_READER_NAMES};
    const struct idx_case c = {"classes", BYTES(IMAGES), BYTES(LABELS),
                               "0 1:1 3:0.200000003\n1 4:0.00392156886\n", NULL};
    (void)state;
    assert_non_null(classes);
    read_case(&c, o, 0);
    assert_int_equal(drps_classes_find(classes, "7", 1), 0);
    assert_int_equal(drps_classes_find(classes, "3", 1), 1);
    drps_classes_free(classes);
}

static void test_idx_weights(void **state)
{
    static const char *const weights[] = {"2"}, *const paths[] = {"0"};
    static const struct {
        const char *name, *weights, *expected, *error;
    } cases[] = {
        {"each its own", "2\n3\n", samples, NULL},
        {"0 leaves it out", "0\n3\n", "3 4:0.00392156886\n", NULL},
        {"too few", "2\n", NULL, "2 ends after 1 weights, and sample 2 of 0 is one sample more"},
        {"too many", "2\n3\n4\n", NULL, "2:3: a weight, but 0 has no more than 2 samples"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct drps_reader_options o = {
            .label_files = label_path, .label_files_n = 1, .weights = weights, .weights_n = 1};
        struct files fs = {0};
        const struct drps_io io = {.ops = &files_ops, .ctx = &fs};
        struct outcome out;
        files_add(&fs, BYTES(IMAGES));
        files_add(&fs, BYTES(LABELS));
        files_add(&fs, cases[i].weights, strlen(cases[i].weights));
        read_paths(&io, paths, 1, &o, 0, &out);
        check_outcome(cases[i].name, "bytes", &out, cases[i].expected, cases[i].error);
        outcome_free(&out);
    }
}

/* A file of `each` bytes a sample, of which byte k of sample i is i * 7 + k, and its text. */
enum { SAMPLES = 5000, EACH = 300 };
static void make_many(uint8_t *images, uint8_t *labels, struct text *t)
{
    static const uint8_t head[] = {0, 0, 8,         2,         0, 0, SAMPLES >> 8, SAMPLES & 255,
                                   0, 0, EACH >> 8, EACH & 255};
    static const uint8_t label_head[] = {0, 0, 8, 1, 0, 0, SAMPLES >> 8, SAMPLES & 255};
    memcpy(images, head, sizeof(head));
    memcpy(labels, label_head, sizeof(label_head));
    for (size_t i = 0; i < SAMPLES; i++) {
        labels[sizeof(label_head) + i] = (uint8_t)(i % 10);
        text_add(t, "%zu", i % 10);
        for (size_t k = 0; k < EACH; k++) {
            const uint8_t v = (uint8_t)(i * 7 + k);
            images[sizeof(head) + i * EACH + k] = v;
            if (v) text_add(t, " %zu:%.9g", k + 1, (double)((float)v / 255.0f));
        }
        text_add(t, "\n");
    }
}

/* With any memory the samples are those of the text, and the memory is kept to. */
static void test_idx_is_as_libsvm(void **state)
{
    static const char *const paths[] = {"0"};
    static const uint64_t memories[] = {1 << 20, 4 << 20, 64 << 20};
    uint8_t *images = malloc(12 + SAMPLES * EACH), *labels = malloc(8 + SAMPLES);
    struct text t = {0};
    (void)state;
    assert_non_null(images);
    assert_non_null(labels);
    make_many(images, labels, &t);
    for (size_t i = 0; i < sizeof(memories) / sizeof(memories[0]); i++) {
        const struct drps_reader_options o = {.label_files = label_path,
                                              .label_files_n = 1,
                                              .memory_bytes = memories[i]},
                                         of_text = {.format = "libsvm"};
        struct files fs = {.step = i ? 0 : 1000}, text_fs = {0};
        const struct drps_io io = {.ops = &files_ops, .ctx = &fs};
        struct outcome out, want;
        files_add(&fs, images, 12 + SAMPLES * EACH);
        files_add(&fs, labels, 8 + SAMPLES);
        files_add(&text_fs, t.p, t.n);
        read_paths(&io, paths, 1, &o, 0, &out);
        read_files(&text_fs, &of_text, 0, &want);
        assert_int_equal(want.rc, 0);
        if (out.rc < 0) fail_msg("%s", out.err.text);
        assert_int_equal(out.samples, SAMPLES);
        assert_int_equal(out.lines, SAMPLES);
        assert_true(strcmp(out.text.p, want.text.p) == 0);
        assert_true(out.largest_bytes <= memories[i]);
        outcome_free(&out);
        outcome_free(&want);
    }
    free(t.p);
    free(images);
    free(labels);
}

/* ---- Names ---- */

/* Files of any compression are told by their content, so that plain ones do here. */
static void check_found(const char *name, const char *const *files, const char *expected,
                        const char *error)
{
    struct scratch s;
    struct outcome out;
    char text[1024];
    scratch_begin(&s);
    for (const char *const *f = files; *f; f++)
        (void)(strstr(*f, "images") ? scratch_file(&s, *f, BYTES(IMAGES))
                                    : scratch_file(&s, *f, BYTES(LABELS)));
    const char *paths[] = {scratch_path(&s, files[0])};
    read_paths(drps_io_os(), paths, 1, &(struct drps_reader_options){.format = "auto"}, 0, &out);
    if (error)
        (void)snprintf(text, sizeof(text),
                       "%s: its labels should be in %s, plain or compressed, and no such file is "
                       "there: put it there, or name the file of labels",
                       paths[0], scratch_path(&s, error));
    check_outcome(name, paths[0], &out, expected, error ? text : NULL);
    outcome_free(&out);
    scratch_end(&s);
}

static void test_idx_finds_labels(void **state)
{
    static const struct {
        const char *name, *files[3], *missing;
    } cases[] = {
        {"plain", {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"}, NULL},
        {"compressed alike", {"images-idx3.xz", "labels-idx1.xz"}, NULL},
        {"the labels alone compressed", {"t-images-idx3-ubyte", "t-labels-idx1-ubyte.gz"}, NULL},
        {"the images alone compressed", {"t-images-idx3-ubyte.zst", "t-labels-idx1-ubyte"}, NULL},
        {"compressed differently", {"t-images-idx3-ubyte.gz", "t-labels-idx1-ubyte.xz"}, NULL},
        {"a point", {"train-images.idx3-ubyte", "train-labels.idx1-ubyte"}, NULL},
        {"of colours", {"a-images-idx4-ubyte", "a-labels-idx1-ubyte"}, NULL},
        {"missing", {"train-images-idx3-ubyte.xz"}, "train-labels-idx1-ubyte.xz"},
        {"of others",
         {"train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
         "train-labels-idx1-ubyte"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_found(cases[i].name, cases[i].files, samples, cases[i].missing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idx_samples),
        cmocka_unit_test(test_idx_without_labels),
        cmocka_unit_test(test_idx_bad_files),
        cmocka_unit_test(test_idx_bad_labels),
        cmocka_unit_test(test_idx_options),
        cmocka_unit_test(test_idx_fields),
        cmocka_unit_test(test_idx_counts_fields),
        cmocka_unit_test(test_idx_numbers_by_place),
        cmocka_unit_test(test_idx_shapes_are_checked),
        cmocka_unit_test(test_idx_several_files),
        cmocka_unit_test(test_idx_after_an_empty_file),
        cmocka_unit_test(test_idx_in_shares),
        cmocka_unit_test(test_idx_reads_that_fail),
        cmocka_unit_test(test_idx_classes),
        cmocka_unit_test(test_idx_weights),
        cmocka_unit_test(test_idx_is_as_libsvm),
        cmocka_unit_test(test_idx_finds_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
