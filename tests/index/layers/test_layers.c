/* Nets as texts: what parses, the widths found, what each mistake is told, and texts at random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "index/layers/drps_layers.h"

enum { FIELDS = 39, LAYERS = 12, TEXTS = 20000 };
#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static const uint64_t seed = 314159;
static struct drps_layers net;

#define DEEPFM                                                                                     \
    "# DeepFM\n"                                                                                   \
    "x     = embedding 16          # a vector of 16 for each field\n"                              \
    "first = linear\n"                                                                             \
    "pairs = fm x\n"                                                                               \
    "h     = full 400 x\n"                                                                         \
    "h     = relu h\n"                                                                             \
    "deep  = full 1 h\n"                                                                           \
    "score = sum first pairs deep\n"

#define CROSSES                                                                                    \
    "x = embedding 2\n"                                                                            \
    "y = bag 2\n"                                                                                  \
    "p = dots x y\n"                                                                               \
    "c = cross x x\n"                                                                              \
    "c = cross x c\n"                                                                              \
    "j = join p c\n"                                                                               \
    "score = full 1 j\n"

/* Shapes and places, computed by hand from the header's table. */
struct want {
    enum drps_layer_kind kind;
    uint32_t line, parts, each, at;
    uint64_t first, floats;
};

static const struct good {
    const char *name, *text;
    uint32_t fields, outputs;
    uint32_t factors, width;
    uint64_t floats, kept;
    int has_fields, has_classes, has_sequences;
    int is_dense; /* no layer looks at features */
    uint32_t n;
    struct want layers[LAYERS];
    uint32_t images[LAYERS][2]; /* their rows and columns */
} goods[] = {
    {.name = "linear",
     .text = "score = linear",
     .outputs = 1,
     .width = 1,
     .floats = 1,
     .n = 1,
     .layers = {{DRPS_LAYER_LINEAR, 1, 1, 1, 0, 1, 0}}},
    {.name = "DeepFM",
     .text = DEEPFM,
     .fields = 3,
     .outputs = 1,
     .factors = 16,
     .width = 852,
     .floats = 20002,
     .has_fields = 1,
     .n = 7,
     .layers = {{DRPS_LAYER_EMBEDDING, 2, 3, 16, 0, 1, 0},
                {DRPS_LAYER_LINEAR, 3, 1, 1, 48, 1, 0},
                {DRPS_LAYER_FM, 4, 1, 1, 49, 1, 0},
                {DRPS_LAYER_FULL, 5, 1, 400, 50, 1, 400 * 48 + 400},
                {DRPS_LAYER_RELU, 6, 1, 400, 450, 19601, 0},
                {DRPS_LAYER_FULL, 7, 1, 1, 850, 19601, 401},
                {DRPS_LAYER_SUM, 8, 1, 1, 851, 20002, 0}}},
    {.name = "classes",
     .text = "n = numbers 2\nb = bag 4\nj = join n b\nd = dropout 0.25 j\ns = sigmoid d\n"
             "t = tanh d\nu = sum s t\nscore = full classes u\n",
     .fields = 2,
     .outputs = 3,
     .factors = 4,
     .width = 39,
     .floats = 28,
     .has_fields = 1,
     .has_classes = 1,
     .n = 8,
     .layers = {{DRPS_LAYER_NUMBERS, 1, 1, 2, 0, 3, 0},
                {DRPS_LAYER_BAG, 2, 1, 4, 2, 3, 4},
                {DRPS_LAYER_JOIN, 3, 1, 6, 6, 7, 0},
                {DRPS_LAYER_DROPOUT, 4, 1, 6, 12, 7, 0},
                {DRPS_LAYER_SIGMOID, 5, 1, 6, 18, 7, 0},
                {DRPS_LAYER_TANH, 6, 1, 6, 24, 7, 0},
                {DRPS_LAYER_SUM, 7, 1, 6, 30, 7, 0},
                {DRPS_LAYER_FULL, 8, 1, 3, 36, 7, 21}}},
    {.name = "sequences",
     .text = "x = bag 3\nh = lstm 2 x\nh = lstm 5 h\nscore = full classes h\n",
     .fields = DRPS_SEQUENCE_MARKS,
     .outputs = 4,
     .factors = 3,
     .width = 14,
     .kept = 68,
     .floats = 239,
     .has_sequences = 1,
     .has_classes = 1,
     .n = 4,
     .layers = {{DRPS_LAYER_BAG, 1, 1, 3, 0, 4, 3},
                {DRPS_LAYER_LSTM, 2, 1, 2, 3, 7, 4 * 2 * (3 + 2 + 1)},
                {DRPS_LAYER_LSTM, 3, 1, 5, 5, 55, 4 * 5 * (2 + 5 + 1)},
                {DRPS_LAYER_FULL, 4, 1, 4, 10, 215, 5 * 4 + 4}}},
    {.name = "dots and crosses",
     .text = CROSSES,
     .fields = 3,
     .outputs = 1,
     .factors = 2,
     .width = 39,
     .floats = 40,
     .has_fields = 1,
     .n = 7,
     .layers = {{DRPS_LAYER_EMBEDDING, 1, 3, 2, 0, 1, 0},
                {DRPS_LAYER_BAG, 2, 1, 2, 6, 1, 2},
                {DRPS_LAYER_DOTS, 3, 1, 6, 8, 3, 0},
                {DRPS_LAYER_CROSS, 4, 3, 2, 14, 3, 12},
                {DRPS_LAYER_CROSS, 5, 3, 2, 20, 15, 12},
                {DRPS_LAYER_JOIN, 6, 1, 12, 26, 27, 0},
                {DRPS_LAYER_FULL, 7, 1, 1, 38, 27, 13}}},
    {.name = "cross has the second input's shape, sum the first's, relu its input's",
     .text = "x = embedding 2\nh = full 6 x\nc = cross x h\ns = sum x c\nr = relu s\n"
             "score = fm r\n",
     .fields = 3,
     .outputs = 1,
     .factors = 2,
     .width = 31,
     .floats = 55,
     .has_fields = 1,
     .n = 6,
     .layers = {{DRPS_LAYER_EMBEDDING, 1, 3, 2, 0, 1, 0},
                {DRPS_LAYER_FULL, 2, 1, 6, 6, 1, 42},
                {DRPS_LAYER_CROSS, 3, 1, 6, 12, 43, 12},
                {DRPS_LAYER_SUM, 4, 3, 2, 18, 55, 0},
                {DRPS_LAYER_RELU, 5, 3, 2, 24, 55, 0},
                {DRPS_LAYER_FM, 6, 1, 1, 30, 55, 0}}},
    {.name = "blanks, comments and ends of lines",
     .text = "\r\n\t h=bag\t3 # = relu\r\n \t\n#\r\nscore=full classes h \t",
     .outputs = 1,
     .factors = 3,
     .width = 4,
     .floats = 8,
     .has_classes = 1,
     .n = 2,
     .layers = {{DRPS_LAYER_BAG, 2, 1, 3, 0, 1, 3}, {DRPS_LAYER_FULL, 5, 1, 1, 3, 4, 4}}},
    {.name = "images",
     .text = "x = image 2 9 12\nh = conv 5 3 2 1 x\nh = relu h\nh = pool 2 1 h\n"
             "g = conv 5 1 1 0 h\ng = tanh g\ng = sigmoid g\ng = dropout 0.5 g\n"
             "s = sum g h\nr = conv 3 4 3 3 s\nh = full 7 r\nscore = full classes h",
     .fields = 300,
     .outputs = 2,
     .factors = 255,
     .width = 216 + 150 * 2 + 100 * 6 + 27 + 9,
     .floats = 2 + 95 + 30 + 243 + 196 + 16,
     .has_fields = 1,
     .has_classes = 1,
     .is_dense = 1,
     .n = 12,
     .layers = {{DRPS_LAYER_IMAGE, 1, 108, 2, 0, 2, 0},
                {DRPS_LAYER_CONV, 2, 30, 5, 216, 2, 5 * 18 + 5},
                {DRPS_LAYER_RELU, 3, 30, 5, 366, 97, 0},
                {DRPS_LAYER_POOL, 4, 20, 5, 516, 97, 0},
                {DRPS_LAYER_CONV, 5, 20, 5, 616, 97, 5 * 5 + 5},
                {DRPS_LAYER_TANH, 6, 20, 5, 716, 127, 0},
                {DRPS_LAYER_SIGMOID, 7, 20, 5, 816, 127, 0},
                {DRPS_LAYER_DROPOUT, 8, 20, 5, 916, 127, 0},
                {DRPS_LAYER_SUM, 9, 20, 5, 1016, 127, 0},
                {DRPS_LAYER_CONV, 10, 9, 3, 1116, 127, 3 * 80 + 3},
                {DRPS_LAYER_FULL, 11, 1, 7, 1143, 370, 7 * 27 + 7},
                {DRPS_LAYER_FULL, 12, 1, 2, 1150, 566, 16}},
     .images = {{9, 12},
                {5, 6},
                {5, 6},
                {4, 5},
                {4, 5},
                {4, 5},
                {4, 5},
                {4, 5},
                {4, 5},
                {3, 3},
                {0, 0},
                {0, 0}}},
    {.name = "a score that a later score reads",
     .text = "score = linear\nscore = tanh score\n",
     .outputs = 1,
     .width = 2,
     .floats = 1,
     .n = 2,
     .layers = {{DRPS_LAYER_LINEAR, 1, 1, 1, 0, 1, 0}, {DRPS_LAYER_TANH, 2, 1, 1, 1, 1, 0}}},
};

static void parse(const char *name, const char *text)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_layers_parse(&net, text, &err) < 0) fail_msg("%s: %s", name, err.text);
    if (strcmp(net.text, text) != 0) fail_msg("%s: another text is kept", name);
}

static void shape(const char *name, uint32_t fields, uint32_t outputs)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_layers_shape(&net, fields, outputs, &err) < 0) fail_msg("%s: %s", name, err.text);
}

static void check(const char *name, size_t layer, const char *what, uint64_t want, uint64_t got)
{
    if (want != got)
        fail_msg("%s, layer %zu, %s: expected %llu, found %llu", name, layer, what,
                 (unsigned long long)want, (unsigned long long)got);
}

static void check_layer(const char *name, size_t i, const struct want *w, const uint32_t image[2])
{
    const struct drps_layer *y = &net.layers[i];
    check(name, i, "kind", w->kind, y->kind);
    check(name, i, "line", w->line, y->line);
    check(name, i, "parts", w->parts, y->parts);
    check(name, i, "each", w->each, y->each);
    check(name, i, "at", w->at, y->at);
    check(name, i, "first", w->first, y->first);
    check(name, i, "floats", w->floats, y->floats);
    check(name, i, "rows", image[0], y->rows);
    check(name, i, "columns", image[1], y->columns);
}

static void test_layers_have_the_shapes_of_the_table(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(goods); k++) {
        const struct good *g = &goods[k];
        parse(g->name, g->text);
        check(g->name, 0, "n", g->n, net.n);
        check(g->name, 0, "factors", g->factors, net.factors);
        check(g->name, 0, "has_fields", (uint64_t)g->has_fields, (uint64_t)net.has_fields);
        check(g->name, 0, "has_classes", (uint64_t)g->has_classes, (uint64_t)net.has_classes);
        check(g->name, 0, "has_sequences", (uint64_t)g->has_sequences, (uint64_t)net.has_sequences);
        check(g->name, 0, "has_features", !g->is_dense, (uint64_t)net.has_features);
        for (int again = 0; again < 2; again++) { /* a second call finds the same */
            shape(g->name, g->fields, g->outputs);
            check(g->name, 0, "fields", g->fields, net.fields);
            check(g->name, 0, "outputs", g->outputs, net.outputs);
            check(g->name, 0, "width", g->width, net.width);
            check(g->name, 0, "kept", g->kept, net.kept);
            check(g->name, 0, "parameters", g->floats, net.floats);
            for (size_t i = 0; i < g->n; i++)
                check_layer(g->name, i, &g->layers[i], g->images[i]);
        }
    }
}

static void check_inputs(size_t i, size_t n, int a, int b)
{
    check("inputs", i, "count", n, net.layers[i].inputs_n);
    check("inputs", i, "first", (uint64_t)a, net.layers[i].input[0]);
    check("inputs", i, "second", (uint64_t)b, net.layers[i].input[1]);
}

static void test_layers_read_the_last_line_of_a_name(void **state)
{
    (void)state;
    parse("inputs", CROSSES);
    check_inputs(0, 0, 0, 0);
    check_inputs(2, 2, 0, 1);
    check_inputs(3, 2, 0, 0);
    check_inputs(4, 2, 0, 3);
    check_inputs(5, 2, 2, 4);
    check_inputs(6, 1, 5, 0);
    parse("numbers", "x = bag 7\nx = full 5 x\nx = dropout 0.25 x\nscore = full classes x");
    assert_int_equal(net.layers[0].number[0], 7);
    assert_int_equal(net.layers[1].number[0], 5);
    assert_int_equal(net.layers[1].classes, 0);
    assert_float_equal(net.layers[2].probability, 0.25, 0);
    assert_int_equal(net.layers[3].number[0], 0);
    assert_int_equal(net.layers[3].classes, 1);
}

static void test_layers_probabilities(void **state)
{
    static const struct {
        const char *text;
        float want; /* below 0: it is refused */
    } rows[] = {
        {"0", 0},
        {"0.", 0},
        {".5", 0.5f},
        {"0.5", 0.5f},
        {"000.1", 0.1f},
        {"0.0625", 0.0625f},
        {"0.33333333333333333333333333333333333333333333333333", 1.0f / 3},
        {"0.9999999", 0.9999999f},
        {"0.99999999999", -1}, /* a float of it is 1 */
        {"1", -1},
        {"1.0", -1},
        {"10", -1},
        {".", -1},
        {"0.5.1", -1},
        {"-0.1", -1},
        {"+0.1", -1},
        {"1e-1", -1},
        {"0x.8", -1},
        {"nan", -1},
        {"inf", -1},
        {"0,5", -1},
        {"h", -1},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[200];
        struct drps_err err = DRPS_ERR_INIT;
        (void)snprintf(text, sizeof(text), "h = linear\nscore = dropout %s h", rows[i].text);
        const int rc = drps_layers_parse(&net, text, &err);
        if ((rc < 0) != (rows[i].want < 0)) fail_msg("%s: %d %s", rows[i].text, rc, err.text);
        if (!rc && fabsf(net.layers[1].probability - rows[i].want) > 0)
            fail_msg("%s: found %.9g", rows[i].text, (double)net.layers[1].probability);
        if (rc < 0 && !strstr(err.text, "write a probability from 0 to below 1"))
            fail_msg("%s: %s", rows[i].text, err.text);
    }
}

/* Digits that no float can tell are read, however many they are. */
static void test_layers_probability_of_many_digits(void **state)
{
    char text[500], digits[401];
    (void)state;
    memset(digits, '3', sizeof(digits) - 1);
    digits[sizeof(digits) - 1] = '\0';
    (void)snprintf(text, sizeof(text), "h = linear\nscore = dropout 0.%s h", digits);
    parse("many digits", text);
    assert_float_equal(net.layers[1].probability, 1.0f / 3, 0);
}

static const struct bad {
    const char *name, *text, *begins, *has;
} bads[] = {
    {"nothing", "", "no layer in the net", "`score = LAYER"},
    {"comments", "# score = linear\n\n", "no layer in the net", "`score = LAYER"},
    {"no =", "x linear", "line 1: = is missing behind `x`", "NAME = LAYER"},
    {"a layer alone", "embedding 16", "line 1: = is missing behind `embedding`", "NAME = LAYER"},
    {"no name", "\n= linear", "line 2: a name is missing", "x = linear"},
    {"no layer", "score =", "line 1: a layer is missing",
     "embedding, bag, linear, numbers, full, relu, sigmoid, tanh, dropout, fm, dots, cross, sum, "
     "join, lstm, image, conv, pool"},
    {"unknown layer", "score = dense 4", "line 1: there is no layer `dense`",
     "embedding, bag, linear, numbers, full, relu, sigmoid, tanh, dropout, fm, dots, cross, sum, "
     "join, lstm, image, conv, pool"},
    {"capitals", "score = Linear", "line 1: there is no layer `Linear`", "linear"},
    {"two =", "score = = linear", "line 1: there is no layer `=`", "linear"},
    {"a layer's name", "relu = linear\nscore = relu relu", "line 1: `relu` is a word", "another"},
    {"classes", "classes = linear", "line 1: `classes` is a word", "another"},
    {"a point", "a.b = linear", "line 1: `a.b` is no name", "letters, digits, _ and -"},
    {"not ASCII", "\xc3\xa9 = linear", "line 1: `??` is no name", "letters, digits, _ and -"},
    {"control", "x\x1b[2J = linear", "line 1: `x?[2J` is no name", "letters, digits, _ and -"},
    {"CR inside", "x\r = linear\n", "line 1: `x?` is no name", "letters, digits, _ and -"},
    {"33 characters", "a23456789012345678901234567890123 = linear",
     "line 1: the name `a2345678901234567890123456789012...`", "more than 32"},
    {"unknown input", "x = linear\nscore = relu y", "line 2: no line before this one", "`y`"},
    {"a later input", "x = relu y\ny = linear", "line 1: no line before this one", "`y`"},
    {"itself", "score = relu score", "line 1: no line before this one", "`score`"},
    {"part of a name", "xy = linear\nscore = relu x", "line 2: no line before this one", "`x`"},
    {"not read", "x = bag 4\ny = linear\nscore = full 1 x", "line 2: no line reads this `y`",
     "take the line away"},
    {"set again, not read", "x = bag 4\nx = bag 4\nscore = full 1 x",
     "line 1: no line reads this `x`", "take the line away"},
    {"first score not read", "score = linear\nscore = linear", "line 1: no line reads this `score`",
     "take the line away"},
    {"no score", "x = linear\ny = relu x\n\n", "line 2: the last line must be `score`", "`y`"},
    {"score not last", "score = linear\nx = relu score", "line 2: the last line must be `score`",
     "`x`"},
    {"no number", "x = embedding", "line 1: a number is missing behind embedding",
     "whole number from 1 to 524288 there"},
    {"no number of full", "x = full", "line 1: a number is missing behind full", "or `classes`"},
    {"a name for a number", "x = linear\nscore = full x", "line 2: behind full stands `x`",
     "or `classes`"},
    {"0", "x = bag 0", "line 1: behind bag stands `0`", "whole number from 1 to 524288"},
    {"524289", "x = bag 524289", "line 1: behind bag stands `524289`", "from 1 to 524288"},
    {"2^32 + 1", "x = numbers 4294967297", "line 1: behind numbers stands `4294967297`",
     "from 1 to 4194304"},
    {"5242890 numbers", "x = numbers 5242890", "line 1: behind numbers stands `5242890`",
     "from 1 to 4194304"},
    {"channels of another layer", "x = image 1 channels 5",
     "line 1: the H of image C H W is `channels`", "from 1 to 524288 there"},
    {"no channels", "x = image", "line 1: the C of image C H W is missing",
     "from 1 to 524288 or `channels` there"},
    {"2^64 + 1", "x = bag 18446744073709551617", "line 1: behind bag stands", "from 1 to 524288"},
    {"not whole", "x = bag 4.5", "line 1: behind bag stands `4.5`", "whole number"},
    {"negative", "x = bag -4", "line 1: behind bag stands `-4`", "whole number"},
    {"hexadecimal", "x = bag 0x10", "line 1: behind bag stands `0x10`", "whole number"},
    {"classes of bag", "x = bag classes", "line 1: behind bag stands `classes`",
     "from 1 to 524288"},
    {"no probability", "x = linear\nscore = dropout", "line 2: a probability is missing",
     "write `dropout 0.5 NAME`"},
    {"an input of data", "x = linear\nscore = linear x", "line 2: linear reads the data",
     "take `x` away"},
    {"an input of embedding", "x = embedding 4 x", "line 1: embedding reads the data",
     "take `x` away"},
    {"no H", "x = image 3", "line 1: the H of image C H W is missing",
     "a whole number from 1 to 524288 there"},
    {"no S", "x = image 1 5 5\nscore = conv 8 3", "line 2: the S of conv N K S P is missing",
     "from 1 to 524288"},
    {"no P", "x = image 1 5 5\nscore = conv 8 3 1 x", "line 2: the P of conv N K S P is `x`",
     "a whole number from 0 to 524288 there"},
    {"S of 0", "x = image 1 5 5\nscore = pool 2 0 x", "line 2: the S of pool K S is `0`",
     "from 1 to 524288"},
    {"a wide border", "x = image 1 5 5\nscore = conv 8 3 1 524289 x",
     "line 2: the P of conv N K S P is `524289`", "from 0 to 524288"},
    {"a border that is none", "x = image 1 5 5\nscore = conv 8 3 1 -0 x",
     "line 2: the P of conv N K S P is `-0`", "from 0 to 524288"},
    {"classes of conv", "x = image 1 5 5\nscore = conv classes 3 1 0 x",
     "line 2: the N of conv N K S P is `classes`", "from 1 to 524288"},
    {"an input of image", "x = image 1 5 5 1", "line 1: image reads the data", "take `1` away"},
    {"two of conv", "x = image 1 5 5\nscore = conv 1 2 2 0 x x", "line 2: conv has at most 1 input",
     "`x` is one more"},
    {"none of pool", "x = pool 2 2", "line 1: pool needs 1 input and has 0", "write names"},
    {"two of relu", "x = linear\ny = linear\nscore = relu x y", "line 3: relu has at most 1 input,",
     "`y` is one more"},
    {"three of cross", "x = linear\nscore = cross x x x", "line 2: cross has at most 2 inputs",
     "`x` is one more"},
    {"nine of sum", "x = linear\nscore = sum x x x x x x x x x", "line 2: sum has at most 8 inputs",
     "`x` is one more"},
    {"fields and then a sequence", "x = embedding 2\nscore = lstm 1 x",
     "line 2: lstm does not go with a net that reads fields", "bag or linear"},
    {"a sequence and then fields", "x = linear\nx = lstm 1 x\ny = numbers 2",
     "line 3: numbers does not go with a net of sequences", "bag or linear"},
    {"lstm of nothing", "score = lstm 2", "line 1: lstm needs 1 input and has 0", "write names"},
    {"none of relu", "x = relu", "line 1: relu needs 1 input and has 0", "write names"},
    {"none of full", "x = full 4", "line 1: full needs 1 input and has 0", "write names"},
    {"none of dropout", "x = dropout 0.5", "line 1: dropout needs 1 input and has 0", "write"},
    {"none of fm", "x = fm", "line 1: fm needs 1 input and has 0", "write names"},
    {"none of dots", "x = dots", "line 1: dots needs 1 input and has 0", "write names"},
    {"none of sum", "x = sum", "line 1: sum needs 1 input and has 0", "write names"},
    {"none of join", "x = join", "line 1: join needs 1 input and has 0", "write names"},
    {"one of cross", "x = linear\nscore = cross x", "line 2: cross needs 2 inputs and has 1",
     "write names"},
    {"two K", "x = embedding 8\ny = bag 4\nscore = linear", "line 2: bag has 4 factors",
     "a line before has 8"},
    {"two K of embeddings", "x = embedding 8\ny = embedding 4", "line 2: embedding has 4 factors",
     "give all lines embedding and bag the same number"},
};

static void check_error(const char *name, int rc, const struct drps_err *err, const char *begins,
                        const char *has)
{
    if (rc != DRPS_E_CONFIG || err->code != DRPS_E_CONFIG ||
        strncmp(err->text, begins, strlen(begins)) != 0 || !strstr(err->text, has))
        fail_msg("%s: expected `%s ... %s`, found %d `%s`", name, begins, has, rc, err->text);
}

static void test_layers_mistakes_have_a_line_and_a_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bads); i++) {
        const struct bad *b = &bads[i];
        struct drps_err err = DRPS_ERR_INIT;
        const int rc = drps_layers_parse(&net, b->text, &err);
        check_error(b->name, rc, &err, b->begins, b->has);
        check(b->name, 0, "n", 0, net.n);
        assert_int_equal(drps_layers_parse(&net, b->text, NULL), DRPS_E_CONFIG);
    }
}

static const struct bad_shape {
    const char *name, *text;
    uint32_t fields, outputs;
    const char *begins, *has;
} bad_shapes[] = {
    {"no fields", "x = embedding 4\nscore = full 1 x", 0, 1,
     "line 1: embedding needs fields, and the data has none", "use bag"},
    {"no fields of numbers", "x = numbers 4\nscore = full 1 x", 0, 1,
     "line 1: numbers needs fields, and the data has none", "linear"},
    {"too many numbers", "x = numbers 4\nscore = full 1 x", 3, 1, "line 1: numbers 4",
     "has 3 fields; write at most 3"},
    {"fm of one field", "x = embedding 4\nscore = fm x", 1, 1, "line 2: fm needs", "line 1 gives"},
    {"fm of full", "x = bag 4\nx = full 4 x\nscore = fm x", 9, 1, "line 3: fm needs", "line 2"},
    {"fm of join", "x = embedding 4\nx = join x\nscore = fm x", 9, 1, "line 3: fm needs", "line 2"},
    {"dots of one part", "x = bag 4\nscore = dots x", 9, 1, "line 2: dots needs 2 parts", "has 1"},
    {"dots of other widths", "x = bag 4\ny = full 5 x\nscore = dots x y", 9, 1,
     "line 3: dots needs", "those of line 1 have 4 floats, those of line 2 have 5"},
    {"sum of other widths", "x = bag 4\ny = full 5 x\nscore = sum x x y", 9, 4,
     "line 3: sum needs inputs", "line 1 gives 4 floats, line 2 gives 5"},
    {"cross of other widths", "x = bag 4\ny = full 5 x\nscore = cross y x", 9, 4,
     "line 3: cross needs inputs", "line 2 gives 5 floats, line 1 gives 4"},
    {"a wide score", "x = bag 4\nscore = relu x", 9, 1, "line 2: score has 4 floats",
     "a sample has 1 score; end the net with `score = full classes NAME`"},
    {"a narrow score", "score = linear", 9, 3, "line 1: score has 1 floats",
     "a sample has 3 scores"},
    {"no score", "score = linear", 9, 0, "a net gives 1 to 524288 scores", "0 are asked for"},
    {"524289 scores", "score = linear", 9, 524289, "a net gives 1 to 524288 scores", "524289"},
    {"a wide embedding", "x = embedding 16\nscore = full 1 x", 32769, 1,
     "line 1: embedding gives 32769 times 16 floats", "a layer can have 524288"},
    {"2^16 times 2^16", "x = embedding 65536\nscore = full 1 x", 65536, 1,
     "line 1: embedding gives 65536 times 65536", "can have 524288"},
    {"all fields", "x = embedding 2\nscore = full 1 x", UINT32_MAX, 1,
     "line 1: embedding gives 4294967295 times 2", "can have 524288"},
    {"dots of 1025", "x = embedding 1\nx = dots x\nscore = full 1 x", 1025, 1,
     "line 2: dots gives 1 times 524800", "can have 524288"},
    {"dots of 8 times 2^16", "x = embedding 1\nx = dots x x x x x x x x\nscore = full 1 x", 65536,
     1, "line 2: dots gives 1 times 137438691328", "can have 524288"},
    {"a wide join", "x = bag 524288\ny = linear\nx = join x y\nscore = full 1 x", 9, 1,
     "line 3: join gives 1 times 524289", "can have 524288"},
    {"an image without fields", "x = image 1 2 2\nscore = full 1 x", 0, 1,
     "line 1: image needs fields, and the data has none", "fields"},
    {"a large image", "x = image 3 5 7\nscore = full 1 x", 104, 1,
     "line 1: image 3 5 7 reads 105 numbers, and the data has 104 fields", "write the channels"},
    {"2^57 numbers", "x = image 524288 524288 524288\nscore = full 1 x", UINT32_MAX, 1,
     "line 1: image gives 274877906944 times 524288 floats", "can have 4194304"},
    {"an image of a broken channel", "x = image channels 3 5\nscore = full 1 x", 31, 1,
     "line 1: image channels 3 5, and the data has 31 fields", "whole number of channels"},
    {"an image of half a channel", "x = image channels 3 5\nscore = full 1 x", 14, 1,
     "line 1: image channels 3 5, and the data has 14 fields", "whole number of channels"},
    {"channels without fields", "x = image channels 3 5\nscore = full 1 x", 0, 1,
     "line 1: image needs fields, and the data has none", "fields"},
    {"too many numbers", "x = image 3 1183 1183\nscore = full 1 x", UINT32_MAX, 1,
     "line 1: image gives 1399489 times 3", "can have 4194304"},
    {"conv of no image", "x = image 1 4 4\nx = full 16 x\nscore = conv 1 4 1 0 x", 16, 1,
     "line 3: conv reads an image, and line 2 gives none", "read `image`"},
    {"pool of numbers", "x = numbers 16\nscore = pool 4 1 x", 16, 1,
     "line 2: pool reads an image, and line 1 gives none", "read `image`"},
    {"conv of cross", "x = image 1 4 4\nx = cross x x\nscore = conv 1 4 1 0 x", 16, 1,
     "line 3: conv reads an image, and line 2 gives none", "read `image`"},
    {"a filter as large as its border", "x = image 1 4 4\nscore = conv 1 3 1 3 x", 16, 1,
     "line 2: a border of 3 is as wide as a filter of 3 x 3", "P below K"},
    {"a filter of too many rows", "x = image 1 3 9\nscore = conv 1 6 1 1 x", 27, 1,
     "line 2: conv looks at 6 x 6 pixels, and line 1 gives 3 x 9 without the border", "K smaller"},
    {"a pool of too many columns", "x = image 1 9 3\nscore = pool 4 1 x", 27, 1,
     "line 2: pool looks at 4 x 4 pixels, and line 1 gives 9 x 3; make K smaller", "K smaller"},
    {"too many filters", "x = image 1 725 725\nscore = conv 2 2 1 0 x", 525625, 1,
     "line 2: conv gives 524176 times 2", "can have 524288"},
    {"too wide a result", "x = image 1 724 724\nscore = conv 2 2 1 0 x", 524176, 1,
     "line 2: conv gives 522729 times 2", "can have 524288"},
    {"a wide result of a wide border", "x = image 1 1 1\nscore = conv 1 524288 1 524287 x", 1, 1,
     "line 2: conv gives 274877906944 times 1", "can have 524288"},
    {"filters of 2^38 numbers",
     "x = image 1 1 1\nx = conv 524288 524288 524288 524287 x\nscore = full 1 x", 1, 1,
     "line 2: the layers up to here have more than 268435456 parameters", "smaller"},
    {"filters of 2^57 numbers",
     "x = image 524288 1 1\nx = conv 524288 524288 524288 524287 x\nscore = full 1 x", 524288, 1,
     "line 2: the layers up to here have more than 268435456 parameters", "smaller"},
    {"2^28 parameters", "x = bag 65536\nx = full 4096 x\nscore = full 1 x", 9, 1,
     "line 2: the layers up to here have more than 268435456 parameters", "smaller"},
    {"2^32 parameters", "x = bag 65536\nx = full 65536 x\nscore = full 1 x", 9, 1,
     "line 2: the layers up to here have more than 268435456 parameters", "smaller"},
    {"2^28 parameters of two",
     "x = bag 65536\ny = full 2048 x\nz = full 2048 x\nx = join y z\nscore = full 1 x", 9, 1,
     "line 3: the layers up to here have more than 268435456 parameters", "smaller"},
};

static void test_layers_widths_that_do_not_do(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad_shapes); i++) {
        const struct bad_shape *b = &bad_shapes[i];
        struct drps_err err = DRPS_ERR_INIT;
        parse(b->name, b->text);
        const int rc = drps_layers_shape(&net, b->fields, b->outputs, &err);
        check_error(b->name, rc, &err, b->begins, b->has);
    }
    net.n = 0;
    assert_int_equal(drps_layers_shape(&net, 9, 1, NULL), DRPS_E_CONFIG);
}

/* A net of `n` layers that are all `width` wide. */
static void tower(char text[DRPS_LAYERS_TEXT], int n, int width)
{
    int at = snprintf(text, DRPS_LAYERS_TEXT, "x = bag %d\n", width);
    for (int i = 2; i < n; i++)
        at += snprintf(text + at, DRPS_LAYERS_TEXT - (size_t)at, "x = relu x\n");
    (void)snprintf(text + at, DRPS_LAYERS_TEXT - (size_t)at, "score = relu x\n");
}

static void test_layers_most_that_fits(void **state)
{
    char text[DRPS_LAYERS_TEXT + 1];
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    tower(text, DRPS_LAYERS_MOST, 4);
    parse("64 layers", text);
    shape("64 layers", 0, 4);
    assert_int_equal(net.n, DRPS_LAYERS_MOST);
    tower(text, DRPS_LAYERS_MOST + 1, 4);
    check_error("65 layers", drps_layers_parse(&net, text, &err), &err,
                "line 65: more than 64 layers", "smaller");
    tower(text, 8, DRPS_LAYER_WIDTH);
    parse("2^22 floats", text);
    shape("2^22 floats", 0, DRPS_LAYER_WIDTH);
    assert_int_equal(net.width, DRPS_LAYERS_WIDTH);
    tower(text, 9, DRPS_LAYER_WIDTH);
    parse("more than 2^22 floats", text);
    drps_err_clear(&err);
    check_error("more than 2^22 floats", drps_layers_shape(&net, 0, DRPS_LAYER_WIDTH, &err), &err,
                "line 9: the layers up to here give more than 4194304 floats", "smaller");

    memset(text, ' ', sizeof(text));
    memcpy(text, "score = linear\n#", 16);
    text[DRPS_LAYERS_TEXT - 1] = '\0';
    parse("4095 characters", text);
    text[DRPS_LAYERS_TEXT - 1] = ' ';
    text[DRPS_LAYERS_TEXT] = '\0';
    drps_err_clear(&err);
    check_error("4096 characters", drps_layers_parse(&net, text, &err), &err,
                "the net has more than 4095 characters", "shorter");
}

static void test_layers_most_of_a_line(void **state)
{
    (void)state;
    parse("32 characters", "a2345678901234567890123456789_-Z = linear\n"
                           "score = relu a2345678901234567890123456789_-Z");
    parse("8 inputs", "x = linear\nscore = sum x x x x x x x x");
    check("8 inputs", 1, "inputs", 8, net.layers[1].inputs_n);
    parse("one input each", "x = embedding 2\nd = dots x\nj = join d\nscore = sum j");
    shape("one input each", 2, 1);
    parse("a number with zeros", "x = bag 0000000000000000524288\nscore = full 1 x");
    shape("a number with zeros", 0, 1);
    check("a number with zeros", 0, "each", 524288, net.layers[0].each);
    parse("all numbers", "x = numbers 4\nscore = full 1 x");
    shape("all numbers", 4, 1);
    parse("dots of 1024", "x = embedding 1\nx = dots x\nscore = full 1 x");
    shape("dots of 1024", 1024, 1);
    check("dots of 1024", 1, "each", 523776, net.layers[1].each);
    parse("just below 2^28 parameters", "x = bag 65536\nx = full 4094 x\nscore = full 1 x");
    shape("just below 2^28 parameters", 0, 1);
    check("just below 2^28 parameters", 2, "all", 1 + 65536 + 4094 * 65537 + 4095, net.floats);
}

static void check_init(uint64_t first, uint64_t last, double want)
{
    for (uint64_t i = first; i <= last; i++)
        if (fabs((double)drps_layers_init(&net, i) - want) > 1e-7)
            fail_msg("parameter %llu: expected %g, found %g", (unsigned long long)i, want,
                     (double)drps_layers_init(&net, i));
}

/* The largest that one layer reads. */
static void test_layers_numbers(void **state)
{
    (void)state;
    parse("none", "x = embedding 2\nscore = fm x");
    check("none", 0, "numbers", 0, drps_layers_numbers(&net, 9));
    parse("numbers", "x = numbers 7\ny = numbers 5\nz = join x y\nscore = full 1 z");
    check("numbers", 0, "numbers", 7, drps_layers_numbers(&net, 9));
    parse("image", "x = numbers 29\ny = image 2 3 5\nz = join x y\nscore = full 1 z");
    check("image", 0, "numbers", 30, drps_layers_numbers(&net, 9));
    const struct drps_image_shape none = drps_layers_image(&(struct drps_layers){.n = 0});
    const struct drps_image_shape image = drps_layers_image(&net);
    check("no image", 0, "rows", 0, none.rows);
    check("image", 0, "channels", 2, image.channels);
    check("image", 0, "rows", 3, image.rows);
    check("image", 0, "columns", 5, image.columns);
    parse("channels", "x = image channels 3 5\nscore = full 1 x");
    check("no fields", 0, "numbers", 15, drps_layers_numbers(&net, 0));
    check("a channel", 0, "numbers", 15, drps_layers_numbers(&net, 15));
    check("more", 0, "numbers", 30, drps_layers_numbers(&net, 16));
    check("channels", 0, "channels", 0, drps_layers_image(&net).channels);
    shape("channels", 45, 1);
    check("three", 0, "channels", 3, net.layers[0].each);
    check("three", 0, "pixels", 15, net.layers[0].parts);
    shape("channels", 15, 1);
    check("one", 0, "channels", 1, net.layers[0].each);
}

static void test_layers_init(void **state)
{
    (void)state;
    parse("DeepFM", DEEPFM);
    shape("DeepFM", 3, 1);
    check_init(0, 0, 0);                           /* the intercept */
    check_init(1, 400 * 48, sqrt(6.0 / 48));       /* W of full 400 */
    check_init(400 * 48 + 1, 400 * 48 + 400, 0);   /* b */
    check_init(19601, 20000, sqrt(6.0 / 400));     /* W of full 1 */
    check_init(20001, 20003, 0);                   /* b, and none */
    check_init(UINT64_MAX - 1, UINT64_MAX - 1, 0); /* none */
    parse("lstm", "x = bag 3\nscore = lstm 2 x");
    shape("lstm", 2, 2);
    check_init(0, 4, 0);                             /* intercepts, b of the bag */
    check_init(5, 4 + 8 * 3 + 8 * 2, sqrt(3.0 / 5)); /* W and U */
    check_init(45, 52, 0);                           /* b */
    parse("crosses", CROSSES);
    shape("crosses", 3, 1);
    check_init(0, 2, 0); /* the bag's b, too */
    for (uint64_t c = 3; c < 27; c += 12) {
        check_init(c, c + 5, sqrt(1.0 / 6));
        check_init(c + 6, c + 11, 0);
    }
    check_init(27, 38, sqrt(6.0 / 12));
    check_init(39, 40, 0);
    parse("images", "x = image 2 5 5\nh = conv 3 2 1 0 x\nh = pool 4 4 h\nscore = full 1 h");
    shape("images", 50, 1);
    check_init(0, 0, 0);
    check_init(1, 24, sqrt(6.0 / 8)); /* W of conv */
    check_init(25, 27, 0);            /* b */
    check_init(28, 30, sqrt(6.0 / 3));
    check_init(31, 32, 0);
    parse("classes", "x = bag 2\nscore = full classes x");
    shape("classes", 0, 3);
    check_init(0, 2, 0);
    check_init(3, 4, 0);
    check_init(5, 10, sqrt(6.0 / 2));
    check_init(11, 14, 0);
}

/* Parameters for 39 fields, the usual factors and one score, computed by hand. */
static const struct named {
    const char *name;
    uint32_t factors;
    uint64_t floats;
    int for_classes; /* 1: several scores do too */
    int has_fields;
} nameds[] = {
    {"mlp", 16, 1 + 16 + 64 * 17 + 65, 1, 0},
    {"wide-deep", 16, 1 + 128 * 625 + 64 * 129 + 65, 0, 1},
    {"deepfm", 16, 1 + 128 * 625 + 128 * 129 + 129, 0, 1},
    {"dlrm", 16, 1 + 128 * (741 + 624 + 1) + 64 * 129 + 65, 1, 1},
    {"dcn", 16, 1 + 3 * 2 * 624 + 128 * 625 + 128 * 129 + 624 + 128 + 1, 1, 1},
    {"lstm", 200, 1 + 200 + 2 * 800 * 401 + 201, 1, 0},
};

/* Parameters for ten classes, computed by hand. */
static const struct of_images {
    const char *name;
    uint32_t fields;
    uint64_t floats;
    uint32_t width;
} of_images[] = {
    {"lenet", 784, 10 + 20 * 26 + 50 * 501 + 500 * 801 + 10 * 501,
     784 + 2 * 11520 + 2880 + 2 * 3200 + 800 + 3 * 500 + 10},
    {"alexnet", 150528,
     10 + 96 * 364 + 256 * 2401 + 384 * 2305 + 384 * 3457 + 256 * 3457 + 4096 * 9217 + 4096 * 4097 +
         10 * 4097,
     150528 + 2 * 96 * 55 * 55 + 96 * 27 * 27 + 2 * 256 * 27 * 27 + 256 * 13 * 13 +
         4 * 384 * 13 * 13 + 2 * 256 * 13 * 13 + 2 * 9216 + 5 * 4096 + 10},
    {"alexnet", 50176,
     10 + 96 * 122 + 256 * 2401 + 384 * 2305 + 384 * 3457 + 256 * 3457 + 4096 * 9217 + 4096 * 4097 +
         10 * 4097,
     50176 + 2 * 96 * 55 * 55 + 96 * 27 * 27 + 2 * 256 * 27 * 27 + 256 * 13 * 13 +
         4 * 384 * 13 * 13 + 2 * 256 * 13 * 13 + 2 * 9216 + 5 * 4096 + 10},
};

static void test_layers_named_for_images(void **state)
{
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    for (size_t i = 0; i < COUNT(of_images); i++) {
        const struct of_images *n = &of_images[i];
        assert_true(drps_layers_has_name(n->name));
        assert_int_equal(drps_layers_named(&net, n->name, 0, NULL), 0);
        check(n->name, 0, "factors", DRPS_LAYERS_DIM - 1, net.factors);
        shape(n->name, n->fields, 10);
        check(n->name, 0, "parameters", n->floats, net.floats);
        check(n->name, 0, "width", n->width, net.width);
        check(n->name, 0, "one field less", 0,
              drps_layers_shape(&net, n->fields - 1, 10, NULL) == 0);
        check_error(n->name, drps_layers_named(&net, n->name, 8, &err), &err, "the net ",
                    "looks at no feature, and so has no factors");
        drps_err_clear(&err);
    }
}

static void check_named(const struct named *n)
{
    static struct drps_layers again;
    assert_true(drps_layers_has_name(n->name));
    assert_int_equal(drps_layers_named(&net, n->name, 0, NULL), 0);
    check(n->name, 0, "factors", n->factors, net.factors);
    check(n->name, 0, "has_classes", (uint64_t)n->for_classes, (uint64_t)net.has_classes);
    check(n->name, 0, "has_fields", (uint64_t)n->has_fields, (uint64_t)net.has_fields);
    shape(n->name, FIELDS, 1);
    check(n->name, 0, "parameters", n->floats, net.floats);
    assert_int_equal(drps_layers_parse(&again, net.text, NULL), 0);
    check(n->name, 0, "layers of its text", net.n, again.n);
    check(n->name, 0, "several scores", (uint64_t)n->for_classes,
          drps_layers_shape(&net, FIELDS, 3, NULL) == 0);
    check(n->name, 0, "no fields", (uint64_t)!n->has_fields,
          drps_layers_shape(&net, 0, 1, NULL) == 0);
    assert_int_equal(drps_layers_named(&net, n->name, 8, NULL), 0);
    check(n->name, 0, "factors", 8, net.factors);
    assert_int_equal(drps_layers_for_numbers(&net, NULL), 0);
    check(n->name, 0, "for numbers", 0, (uint64_t)net.has_classes);
    assert_null(strstr(net.text, "classes"));
    shape(n->name, FIELDS, 1);
}

static void test_layers_named(void **state)
{
    char names[DRPS_LAYERS_NAMES_BYTES];
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    for (size_t i = 0; i < COUNT(nameds); i++) {
        check_named(&nameds[i]);
    }
    assert_string_equal(drps_layers_names(names),
                        "mlp, wide-deep, deepfm, dlrm, dcn, lstm, lenet, alexnet");
    assert_false(drps_layers_has_name("deep"));
    assert_false(drps_layers_has_name(""));
    check_error("an unknown net", drps_layers_named(&net, "resnet", 0, &err), &err,
                "there is no net `resnet`",
                "mlp, wide-deep, deepfm, dlrm, dcn, lstm, lenet, alexnet");
    check("an unknown net", 0, "n", 0, net.n);
    drps_err_clear(&err);
    check_error("too many factors", drps_layers_named(&net, "mlp", 524289, &err), &err,
                "line 2: ", "from 1 to 524288");
}

static void test_layers_kinds_have_names(void **state)
{
    (void)state;
    assert_string_equal(drps_layer_name(DRPS_LAYER_EMBEDDING), "embedding");
    assert_string_equal(drps_layer_name(DRPS_LAYER_DROPOUT), "dropout");
    assert_string_equal(drps_layer_name(DRPS_LAYER_JOIN), "join");
    assert_string_equal(drps_layer_name(DRPS_LAYER_POOL), "pool");
}

/* Numbers at random, one after another. */
struct random {
    uint64_t at;
};

static size_t below(struct random *r, size_t n)
{
    return (size_t)(drps_rng_at(seed, r->at++) % n);
}

/* What holds of every text that parses. */
static void check_parsed(const char *text)
{
    if (!net.n || net.n > DRPS_LAYERS_MOST) fail_msg("%u layers of\n%s", net.n, text);
    for (uint32_t i = 0; i < net.n; i++) {
        const struct drps_layer *y = &net.layers[i];
        if (y->inputs_n > DRPS_LAYER_INPUTS) fail_msg("too many inputs of\n%s", text);
        for (size_t k = 0; k < y->inputs_n; k++)
            if (y->input[k] >= i) fail_msg("layer %u reads layer %u of\n%s", i, y->input[k], text);
    }
}

/* Layers lie one behind the other and within bounds. */
static void check_shaped(const char *text)
{
    uint64_t at = 0, first = net.outputs;
    for (uint32_t i = 0; i < net.n; i++) {
        const struct drps_layer *y = &net.layers[i];
        const uint64_t width = (uint64_t)y->parts * y->each;
        if (!width || width > DRPS_LAYER_WIDTH || y->at != at || y->first != first)
            fail_msg("seed %llu, layer %u of\n%s", (unsigned long long)seed, i, text);
        at += width;
        first += y->floats;
    }
    if (at != net.width || at > DRPS_LAYERS_WIDTH || first != net.floats ||
        first > DRPS_LAYERS_FLOATS)
        fail_msg("seed %llu, sums of\n%s", (unsigned long long)seed, text);
}

/* Parse and shape a text. Returns 0: it does not parse; 1: it does; 2: it has widths too. An error
 * must have a text. */
static int try_text(struct random *r, const char *text)
{
    static const uint32_t fields[] = {0, 1, 2, 39, 1025, 65536, UINT32_MAX};
    struct drps_err err = DRPS_ERR_INIT;
    int rc = drps_layers_parse(&net, text, &err);
    if (rc < 0) {
        if (rc != DRPS_E_CONFIG || !err.text[0] || net.n) fail_msg("%d of\n%s", rc, text);
        for (const char *c = err.text; *c; c++)
            if (*c < ' ' || *c > '~') fail_msg("byte %d in the error of\n%s", *c, text);
        return 0;
    }
    check_parsed(text);
    rc = drps_layers_shape(&net, fields[below(r, COUNT(fields))], 1 + (uint32_t)below(r, 3), &err);
    if (rc < 0) {
        if (rc != DRPS_E_CONFIG || strncmp(err.text, "line ", 5) != 0)
            fail_msg("%d, %s, of\n%s", rc, err.text, text);
        return 1;
    }
    check_shaped(text);
    return 2;
}

/* Any bytes, in a buffer of their own size, so that a sanitizer sees what is read beyond. */
static void test_layers_any_bytes(void **state)
{
    struct random r = {0};
    size_t tried = 0;
    (void)state;
    for (size_t t = 0; t < TEXTS; t++) {
        const size_t n = below(&r, t % 100 ? 100 : 5000);
        char *text = malloc(n + 1);
        assert_non_null(text);
        for (size_t i = 0; i < n; i++)
            text[i] = (char)(1 + below(&r, t % 2 ? 255 : 127));
        text[n] = '\0';
        tried += try_text(&r, text) >= 0;
        free(text);
    }
    assert_int_equal(tried, TEXTS);
}

static void add(char *text, size_t size, const char *word)
{
    const size_t n = strlen(text);
    (void)snprintf(text + n, size - n, "%s", word);
}

/* Words of the language in any order. */
static void test_layers_any_words(void **state)
{
    static const char *words[] = {
        "embedding ",  "bag ",     "linear",   "numbers ", "full ",    "relu ",  "sigmoid ",
        "tanh ",       "dropout ", "fm ",      "dots ",    "cross ",   "sum ",   "join ",
        "classes ",    "score ",   "image ",   "conv ",    "pool ",    "lstm ",  "0 ",
        "x ",          "x ",       "h ",       " = ",      " = ",      " = ",    "\n",
        "\n",          "\r\n",     "1 ",       "16 ",      "0.5 ",     "65536 ", "#",
        "\t",          "\r",       "score = ", "score = ", "linear\n", "\nx = ", "\nh = ",
        "4294967296 ", "-1 ",      "\xff",
    };
    struct random r = {1ULL << 40};
    size_t parsed = 0;
    char text[600];
    (void)state;
    for (size_t t = 0; t < TEXTS; t++) {
        text[0] = '\0';
        const size_t n = below(&r, 40);
        for (size_t i = 0; i < n; i++)
            add(text, sizeof(text), words[below(&r, COUNT(words))]);
        parsed += try_text(&r, text) > 0;
    }
    assert_in_range(parsed, 1, TEXTS); /* such as `score = linear` */
}

/* A line of a net whose names are a, b, c ...; i of them are there. */
static void add_line(struct random *r, char *text, size_t size, size_t i)
{
    static const char *numbers[] = {"1 ", "2 ", "2 ", "16 ", "65536 "};
    static const char *probabilities[] = {"0 ", "0.5 ", "1 "};
    const enum drps_layer_kind kind =
        i ? (enum drps_layer_kind)below(r, DRPS_LAYER_KINDS) : DRPS_LAYER_EMBEDDING;
    add(text, size, drps_layer_name(kind));
    add(text, size, " ");
    if (kind <= DRPS_LAYER_BAG) add(text, size, "2 ");
    if (kind == DRPS_LAYER_NUMBERS || kind == DRPS_LAYER_FULL)
        add(text, size, below(r, 9) ? numbers[below(r, COUNT(numbers))] : "classes ");
    if (kind == DRPS_LAYER_DROPOUT) add(text, size, probabilities[below(r, COUNT(probabilities))]);
    if (kind == DRPS_LAYER_IMAGE) add(text, size, below(r, 2) ? "2 4 5 " : "1 5 6 ");
    if (kind == DRPS_LAYER_CONV) add(text, size, below(r, 2) ? "2 2 1 1 " : "1 3 2 0 ");
    if (kind == DRPS_LAYER_POOL) add(text, size, below(r, 2) ? "2 1 " : "3 2 ");
    if (kind <= DRPS_LAYER_NUMBERS || kind == DRPS_LAYER_IMAGE) return;
    size_t inputs = kind == DRPS_LAYER_CROSS                             ? 2
                    : kind >= DRPS_LAYER_DOTS && kind <= DRPS_LAYER_JOIN ? 1 + below(r, 3)
                                                                         : 1;
    while (inputs--) {
        const char name[] = {(char)('a' + below(r, i)), ' ', '\0'};
        add(text, size, name);
    }
}

/* Nets whose lines are right mostly, and whose score reads all names. */
static void test_layers_any_nets(void **state)
{
    struct random r = {1ULL << 41};
    size_t found[3] = {0};
    char text[2000];
    (void)state;
    for (size_t t = 0; t < TEXTS; t++) {
        text[0] = '\0';
        const size_t n = 1 + below(&r, DRPS_LAYER_INPUTS);
        char all[] = "j = join a b c d e f g h";
        all[strlen("j = join") + 2 * n] = '\0';
        for (size_t i = 0; i < n; i++) {
            const char name[] = {(char)('a' + i), ' ', '=', ' ', '\0'};
            add(text, sizeof(text), name);
            add_line(&r, text, sizeof(text), i);
            add(text, sizeof(text), "\n");
        }
        add(text, sizeof(text), all);
        add(text, sizeof(text), "\nscore = full classes j\n");
        found[try_text(&r, text)]++;
    }
    for (size_t i = 0; i < COUNT(found); i++) /* all three happen often */
        assert_in_range(found[i], TEXTS / 20, TEXTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers_have_the_shapes_of_the_table),
        cmocka_unit_test(test_layers_read_the_last_line_of_a_name),
        cmocka_unit_test(test_layers_probabilities),
        cmocka_unit_test(test_layers_probability_of_many_digits),
        cmocka_unit_test(test_layers_mistakes_have_a_line_and_a_text),
        cmocka_unit_test(test_layers_widths_that_do_not_do),
        cmocka_unit_test(test_layers_most_that_fits),
        cmocka_unit_test(test_layers_most_of_a_line),
        cmocka_unit_test(test_layers_init),
        cmocka_unit_test(test_layers_numbers),
        cmocka_unit_test(test_layers_named),
        cmocka_unit_test(test_layers_named_for_images),
        cmocka_unit_test(test_layers_kinds_have_names),
        cmocka_unit_test(test_layers_any_bytes),
        cmocka_unit_test(test_layers_any_words),
        cmocka_unit_test(test_layers_any_nets),
    };
    return cmocka_run_group_tests_name("layers", tests, NULL, NULL);
}
