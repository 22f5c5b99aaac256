/*
 * Nets on a device beside the host's passes, layer by layer: the same losses, scores and rows
 * within a tolerance, and the same bytes from run to run. Argument: the library of kernels; without
 * a device that it can open the test is skipped.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "engine/step/device/drps_device_worker.h"
#include "support/device_run.h"
#include "support/on_device.h"

enum { BATCHES = 3, FEATURES = 90, ENTRIES = 5, LEVELS = 7 };

/* Where the numbers of samples are. */
enum numbers { IN_ENTRIES, FLOATS, AS_LEVELS };

static const struct net {
    const char *name, *text;
    uint32_t fields, classes;
    enum numbers numbers;
    const char *optimizer;
    size_t samples;
} nets[] = {
    {"a filter of one pixel", "x = image 2 3 3\nh = conv 3 1 1 0 x\nscore = full 1 h", 18, 1,
     FLOATS, "sgd", 20},
    {"conv after conv, with borders and steps",
     "x = image 2 7 6\nh = conv 4 3 1 1 x\nh = tanh h\ng = conv 5 3 2 2 h\ng = sigmoid g\n"
     "g = conv 3 2 2 1 g\nscore = full classes g",
     84, 3, FLOATS, "adagrad", 70},
    {"numbers that are levels",
     "x = image channels 5 4\nh = conv 33 2 1 0 x\nh = relu h\nscore = full classes h", 60, 4,
     AS_LEVELS, "adagrad", 90},
    {"numbers of entries",
     "x = image 1 4 5\nh = conv 3 2 1 1 x\nh = tanh h\nh = pool 2 2 h\nscore = full 1 h", 20, 1,
     IN_ENTRIES, "sgd", 40},
    {"pools that overlap",
     "x = image 2 6 7\nh = conv 3 2 1 0 x\nh = tanh h\nh = pool 3 2 h\nh = pool 2 1 h\n"
     "score = full 1 h",
     84, 1, FLOATS, "adam", 30},
    {"pools of data, and of what is alike",
     "x = image 1 6 6\np = pool 3 1 x\nr = conv 2 3 1 1 x\nr = relu r\nq = pool 4 1 r\n"
     "j = join p q\nscore = full classes j",
     36, 3, AS_LEVELS, "sgd", 40},
    {"pixels that no filter sees",
     "x = image 1 7 7\nh = conv 2 2 1 0 x\nh = conv 2 2 3 0 h\n"
     "h = pool 1 2 h\nscore = full 1 h",
     49, 1, FLOATS, "sgd", 25},
    {"an image that several layers read",
     "x = image 1 5 5\nh = conv 3 3 1 1 x\ns = sum h h\nq = pool 3 2 s\ng = conv 3 3 1 1 s\n"
     "p = pool 2 1 s\nq = full 4 q\np = full 4 p\ng = full 4 g\nj = sum p g q\nscore = full 1 j",
     25, 1, FLOATS, "adagrad", 20},
    {"many filters of one pixel",
     "x = image 1 5 5\nh = conv 100 1 1 0 x\nh = pool 5 5 h\nscore = full 1 h", 25, 1, FLOATS,
     "sgd", 3},
    {"sequences", "x = bag 5\nh = lstm 4 x\nscore = full 1 h", 0, 1, IN_ENTRIES, "sgd", 60},
    {"sequences of classes, through two layers",
     "x = bag 3\ng = lstm 6 x\nt = tanh g\nh = lstm 5 t\nj = join g h x\nscore = full classes j", 0,
     4, IN_ENTRIES, "adagrad", 150},
    {"a layer that two of sequences read",
     "x = bag 4\ng = lstm 3 x\nh = lstm 7 x\ns = full 4 g\ns = sum s x\nh = join h s\n"
     "score = full 1 h",
     0, 1, IN_ENTRIES, "adam", 90},
    {"classes of several for each lane",
     "x = bag 4\nh = full 9 x\nh = tanh h\nscore = full classes h", 0, 75, IN_ENTRIES, "adagrad",
     60},
    {"adam on all rows",
     "x = embedding 3\nw = linear\np = fm x\nh = full 5 x\nh = tanh h\nh = full 1 h\n"
     "score = sum w p h",
     4, 1, IN_ENTRIES, "adam", 150},
};

static struct drps_device_use use;
static uint64_t drawn;

static uint64_t below(uint64_t n)
{
    return drps_rng_at(20261129, drawn++) % n;
}

static float unit(void)
{
    return drps_unit_float(drps_rng_at(20261129, drawn++)) * 2 - 1;
}

static void *some(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    assert_non_null(p);
    return p;
}

/* A batch that owns its arrays. */
struct batch {
    struct drps_batch b;
    float *labels, *values, *floats, *levels;
    uint32_t *starts, *local32, *ids;
    uint16_t *fields;
    uint8_t *bytes;
};

static void make_entries(const struct net *net, const struct drps_model *model, struct batch *out)
{
    const uint32_t own = drps_model_common_rows(model);
    const int has_marks = model->layers.has_sequences;
    size_t at = 0;
    for (size_t s = 0; s < net->samples; s++) {
        const size_t n = net->numbers == IN_ENTRIES ? below(ENTRIES + 1) : 0;
        out->starts[s] = (uint32_t)at;
        for (size_t j = 0; j < n; j++, at++) {
            out->local32[at] = own + (uint32_t)(below(8) ? below(FEATURES) : 0); /* a long row */
            out->values[at] = unit();
            out->fields[at] =
                (uint16_t)(has_marks ? below(4) > 0 : below(net->fields ? net->fields : 1));
        }
        out->labels[s] = net->classes > 1 ? (float)below(net->classes) : below(2) ? 1 : -1;
    }
    out->starts[net->samples] = (uint32_t)at;
    out->b.nnz = at;
}

static void make_numbers(const struct net *net, struct batch *out)
{
    const size_t n = net->samples * net->fields;
    if (net->numbers == IN_ENTRIES) return;
    for (size_t i = 0; i < n; i++) {
        out->floats[i] = unit();
        out->bytes[i] = (uint8_t)below(LEVELS);
    }
    for (size_t i = 1; i < LEVELS; i++)
        out->levels[i] = unit();
    out->b.numbers.each = net->fields;
    out->b.numbers.floats = net->numbers == FLOATS ? out->floats : NULL;
    out->b.numbers.bytes = net->numbers == FLOATS ? NULL : out->bytes;
    out->b.numbers.levels = out->levels;
    out->b.numbers.levels_n = net->numbers == FLOATS ? 0 : LEVELS;
}

static void make_batch(const struct net *net, const struct drps_model *model, struct batch *out)
{
    const size_t n = net->samples, most = n * ENTRIES, numbers = n * net->fields;
    const uint32_t rows = drps_model_common_rows(model) + FEATURES;
    *out = (struct batch){.labels = some(n, sizeof(float)),
                          .values = some(most, sizeof(float)),
                          .floats = some(numbers, sizeof(float)),
                          .levels = some(LEVELS, sizeof(float)),
                          .starts = some(n + 1, sizeof(uint32_t)),
                          .local32 = some(most, sizeof(uint32_t)),
                          .ids = some(rows, sizeof(uint32_t)),
                          .fields = some(most, sizeof(uint16_t)),
                          .bytes = some(numbers, 1)};
    make_entries(net, model, out);
    make_numbers(net, out);
    for (uint32_t r = 0; r < rows; r++)
        out->ids[r] = r;
    out->b.samples = n;
    out->b.rows = rows;
    out->b.labels = out->labels;
    out->b.starts = out->starts;
    out->b.local32 = out->local32;
    out->b.values = out->values;
    out->b.fields = drps_layers_take_fields(&model->layers) ? out->fields : NULL;
    out->b.field_count = model->layers.has_sequences ? DRPS_SEQUENCE_MARKS : net->fields;
}

static void drop_batch(struct batch *b)
{
    free(b->labels);
    free(b->values);
    free(b->floats);
    free(b->levels);
    free(b->starts);
    free(b->local32);
    free(b->ids);
    free(b->fields);
    free(b->bytes);
}

static void settle(const struct net *net, struct drps_server *server)
{
    struct drps_model model;
    struct drps_optim optim;
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_model_terms terms = {
        .algo = "net", .net = net->text, .classes = (int)net->classes};
    if (drps_model_settle(&model, &terms, &err) < 0 ||
        drps_model_set_fields(&model, net->fields, 0, &err) < 0 ||
        drps_optim_init(&optim, net->optimizer, &err) < 0)
        fail_msg("%s: %s", net->name, err.text);
    model.init_scale = 0.3f;
    model.seed = 11;
    optim.l2 = 1e-3f;
    drps_server_init(server, &model, &optim);
}

/* What is odd about the samples of a test. */
enum oddity {
    NOTHING,
    STRAYS, /* each batch has a label that is no class */
    NANS    /* each sample has a number that is a NaN */
};

static void make_odd(const struct net *net, enum oddity what, size_t i, struct batch *b)
{
    if (what == STRAYS) b->labels[i] = i % 2 ? -1 : (float)net->classes;
    for (size_t s = 0; what == NANS && s < net->samples; s++)
        b->floats[s * net->fields + below(net->fields)] = NAN;
}

static void check_net(const struct net *net, enum oddity what)
{
    struct drps_server server;
    struct batch batches[BATCHES + 1];
    struct device_batch given[BATCHES + 1];
    settle(net, &server);
    const uint64_t rows = drps_model_common_rows(&server.model) + FEATURES;
    const struct drps_plan_info info = {.max_batch_samples = net->samples,
                                        .max_batch_rows = rows,
                                        .max_batch_nnz =
                                            net->numbers == IN_ENTRIES ? net->samples * ENTRIES : 0,
                                        .numbers = net->numbers != IN_ENTRIES,
                                        .field_count = net->fields,
                                        .batches = BATCHES,
                                        .eval_batches = 1};
    for (size_t i = 0; i <= BATCHES; i++) {
        make_batch(net, &server.model, &batches[i]);
        make_odd(net, what, i, &batches[i]);
        given[i] = (struct device_batch){&batches[i].b, batches[i].ids};
    }
    device_run(&use, &server, &info, rows, given, BATCHES);
    for (size_t i = 0; i <= BATCHES; i++)
        drop_batch(&batches[i]);
}

static void test_layers_are_those_of_the_host(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(nets) / sizeof(*nets); i++) {
        print_message("%zu: %s, %s\n", i, nets[i].name, nets[i].optimizer);
        check_net(&nets[i], NOTHING);
    }
}

static void test_a_label_that_is_no_class_has_no_loss(void **state)
{
    static const struct net net = {
        "strays", "x = bag 4\nscore = full classes x", 0, 40, IN_ENTRIES, "sgd", 30};
    (void)state;
    check_net(&net, STRAYS);
}

/* All results of `pool` are NaNs: the biases of the filters before it get no slope, and stay
 * numbers. */
static void test_the_slope_of_a_nan_goes_to_nobody(void **state)
{
    static const struct net net = {
        .name = "NaNs",
        .text = "x = image 1 4 4\nh = conv 3 1 1 0 x\nh = pool 4 4 h\nscore = full 1 h",
        .fields = 16,
        .classes = 1,
        .numbers = FLOATS,
        .optimizer = "sgd",
        .samples = 20};
    (void)state;
    check_net(&net, NANS);
}

static void test_a_batch_without_samples_is_refused(void **state)
{
    const struct drps_batch none = {.labels = NULL};
    const struct drps_plan_info info = {
        .max_batch_samples = 1, .max_batch_rows = 1, .batches = 1, .numbers = 1, .field_count = 18};
    struct drps_server server;
    struct drps_device_worker *worker;
    struct drps_err err = DRPS_ERR_INIT;
    float score;
    (void)state;
    settle(&nets[0], &server);
    const struct drps_device_worker_parts parts = {.use = &use, .server = &server, .info = &info};
    if (drps_device_worker_open(&parts, &worker, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(drps_device_worker_train(worker, 0, &none, &err), DRPS_E_CORRUPT);
    assert_int_equal(drps_device_worker_predict(worker, 0, &none, &score, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "no samples"));
    drps_device_worker_close(worker);
}

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layers_are_those_of_the_host),
                                       cmocka_unit_test(test_a_label_that_is_no_class_has_no_loss),
                                       cmocka_unit_test(test_the_slope_of_a_nan_goes_to_nobody),
                                       cmocka_unit_test(test_a_batch_without_samples_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return run_on_device(argc, argv, &use, all_tests);
}
